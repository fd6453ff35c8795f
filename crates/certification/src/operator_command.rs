//! The operator's command: how is it called, and what does it say?
//!
//! `COMMAND address prefix key-name` sends a code by mail; the code is a line on standard input, because all users of a
//! machine see the arguments of its processes. `COMMAND` for a challenge of the operator's own gets what the requester
//! says as a line of JSON there:
//!
//! ```text
//!   {"challenge":"badge","identity":"/site/bob","key":"/site/bob/KEY/…","parameters":{"number":"4711"}}
//! ```
//!
//! Exit code 0 certifies (the mail was sent), 2 asks the requester with the first line of standard output as the
//! question, another one refuses with that line as the reason. No shell is involved, and nothing of the requester
//! becomes an option.
//!
//! Limits: [`TIME`]; [`ERRANDS_MAX`] at the same time. Of the output, [`LINE_BYTES_MAX`] bytes
//! count.

#[cfg(doc)]
use crate::authority::ERRANDS_MAX;
use crate::authority::{CommandSaid, Errand, Task};
use std::{io, path::Path, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::Command,
    time::timeout,
};

/// How long a command may take.
pub const TIME: Duration = Duration::from_secs(60);
/// Longest answer of a command.
pub const LINE_BYTES_MAX: u64 = 200;
/// The exit code that asks the requester.
const ASKS: i32 = 2;

/// Runs the command for an errand.
pub async fn run(command: &Path, errand: &Errand, prefix: &str) -> CommandSaid {
    match timeout(TIME, called(command, errand, prefix)).await {
        Ok(Ok(said)) => said,
        Ok(Err(error)) => {
            tracing::error!(target: "certification", "{}: {error}", command.display());
            CommandSaid::No("the authority cannot check this now".to_owned())
        }
        Err(_) => {
            tracing::error!(target: "certification", "{} took longer than {} s", command.display(), TIME.as_secs());
            CommandSaid::No("the authority cannot check this now".to_owned())
        }
    }
}

async fn called(command: &Path, errand: &Errand, prefix: &str) -> io::Result<CommandSaid> {
    let mut process = Command::new(command);
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let input = match &errand.task {
        Task::Mail { address, code } => {
            process.args([address, prefix, &errand.key_name.to_string()]);
            format!("{code}\n").into_bytes()
        }
        Task::Judge { challenge, parameters } => {
            let pairs = parameters.iter().map(|(key, value)| (key, String::from_utf8_lossy(value)));
            let said: serde_json::Map<String, serde_json::Value> =
                pairs.map(|(key, value)| (key.to_owned(), value.into())).collect();
            let (identity, key) = (errand.identity.to_string(), errand.key_name.to_string());
            let about = serde_json::json!({
                "challenge": challenge, "identity": identity, "key": key, "parameters": said,
            });
            format!("{about}\n").into_bytes()
        }
    };
    let mut child = process.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that does not read its input closes the pipe.
        let _ = stdin.write_all(&input).await;
    }
    let mut output = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        let mut limited = stdout.take(LINE_BYTES_MAX);
        limited.read_to_end(&mut output).await?;
        // The rest is read, so that the command can end.
        tokio::io::copy(&mut limited.into_inner(), &mut tokio::io::sink()).await?;
    }
    let status = child.wait().await?;
    let text = String::from_utf8_lossy(&output);
    let line = text.lines().next().unwrap_or_default().trim().to_owned();
    Ok(match (status.code(), &errand.task) {
        (Some(0), _) => CommandSaid::Yes,
        (Some(ASKS), Task::Judge { .. }) if !line.is_empty() => CommandSaid::Ask(line),
        _ if line.is_empty() => CommandSaid::No("the authority refuses".to_owned()),
        _ => CommandSaid::No(line),
    })
}
