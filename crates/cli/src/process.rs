//! `namewire reload` and `namewire upgrade`: what the process of the running router does with itself.

use crate::outcome::{Outcome, State, Upgraded};
use namewire_client::{Client, ControlError, ExpressError};
use namewire_packet::nfd::ControlParameters;
use namewire_tools::{ExitCode, Failure, Global};
use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Pause between two questions.
const PAUSE: Duration = Duration::from_millis(50);

/// The flag of `process/upgrade`.
const FORCE: u64 = 1;

/// How long an upgrade may take beyond the time that the new program has to start.
const BEYOND: Duration = Duration::from_secs(90);

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ReloadArgs {
    /// Give up after so many seconds; the router goes on with it
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct UpgradeArgs {
    /// The program that takes over [default: the file that the running router was started from]
    #[arg(value_name = "PROGRAM")]
    program: Option<PathBuf>,
    /// Drop what cannot be handed over, for example WebSocket faces; without it, the router refuses
    #[arg(long)]
    force: bool,
    /// Seconds that the new program has until it is ready
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,
}

pub(crate) async fn reload(global: &Global, args: &ReloadArgs) -> Result<(), Failure> {
    let client = global.connect().await?;
    let number = begin(&client, "reload", &ControlParameters::default()).await?;
    let outcome = wait(&client, number, Duration::from_secs(args.timeout)).await?;
    global.output().print(&outcome, || text_of_reload(&outcome))?;
    failure_of(&outcome)?;
    if outcome.problems.is_empty() { Ok(()) } else { Err(Failure::of_code(ExitCode::Failed)) }
}

pub(crate) async fn upgrade(global: &Global, args: &UpgradeArgs) -> Result<(), Failure> {
    let program = args.program.as_deref().map(absolute).transpose()?;
    let client = global.connect().await?;
    let force = args.force.then_some(FORCE);
    let parameters = ControlParameters {
        uri: program,
        flags: force,
        mask: force,
        expiration_period_ms: Some(args.timeout * 1000),
        ..ControlParameters::default()
    };
    let number = begin(&client, "upgrade", &parameters).await?;
    let outcome = wait(&client, number, Duration::from_secs(args.timeout) + BEYOND).await?;
    global.output().print(&outcome, || text_of_upgrade(&outcome))?;
    failure_of(&outcome)
}

/// The router may be in another folder.
fn absolute(program: &Path) -> Result<String, Failure> {
    let cannot = |why: String| Failure::new(ExitCode::Failed, format!("{}: {why}", program.display()));
    let path = std::path::absolute(program).map_err(|error| cannot(error.to_string()))?;
    path.to_str().map(str::to_owned).ok_or_else(|| cannot("the path is not UTF-8".to_owned()))
}

/// Asks for a task; returns its number.
async fn begin(client: &Client, verb: &str, parameters: &ControlParameters) -> Result<u64, Failure> {
    let response = client.control("process", verb, parameters).await?;
    Ok(read(response.body)?.number)
}

fn read(body: Option<ControlParameters>) -> Result<Outcome, Failure> {
    let report = body.and_then(|body| body.report).unwrap_or_default();
    let unreadable = |_| Failure::new(ExitCode::Failed, "the router's answer cannot be read");
    serde_json::from_str(&report).map_err(unreadable)
}

/// Asks until the task has ended. While one program hands over to the next, some questions have no answer.
async fn wait(client: &Client, number: u64, patience: Duration) -> Result<Outcome, Failure> {
    let begun = Instant::now();
    loop {
        match client.control("process", "outcome", &ControlParameters::default()).await {
            Ok(response) => {
                let outcome = read(response.body)?;
                if outcome.number > number {
                    return Err(Failure::new(ExitCode::Failed, "another reload or upgrade came after this one"));
                }
                if outcome.number == number && outcome.state != State::Running {
                    return Ok(outcome);
                }
            }
            Err(ControlError::Express(ExpressError::Timeout(_))) => {}
            Err(error) => return Err(error.into()),
        }
        if begun.elapsed() >= patience {
            let why = format!("the router has not ended it within {} s", patience.as_secs());
            return Err(Failure::new(ExitCode::Timeout, why));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn failure_of(outcome: &Outcome) -> Result<(), Failure> {
    match (&outcome.state, &outcome.why) {
        (State::Failed, why) => {
            let why = why.as_deref().unwrap_or("no reason was given");
            Err(Failure::new(ExitCode::Failed, format!("{} failed: {why}", outcome.task)))
        }
        _ => Ok(()),
    }
}

fn text_of_reload(outcome: &Outcome) -> String {
    if outcome.state == State::Failed {
        return String::new();
    }
    let mut text = format!("{} was read\n", outcome.file.as_deref().unwrap_or("the configuration"));
    let none = if outcome.changed.is_empty() { "  nothing\n" } else { "" };
    text += &format!("changed:\n{none}{}", lines(&outcome.changed));
    if !outcome.needs_restart.is_empty() {
        text += &format!("not before the next start or upgrade:\n{}", lines(&outcome.needs_restart));
    }
    if !outcome.problems.is_empty() {
        text += &format!("problems:\n{}", lines(&outcome.problems));
    }
    text
}

fn text_of_upgrade(outcome: &Outcome) -> String {
    let Some(Upgraded { from_version, version, pid, faces, routes, stall_ms }) = &outcome.upgraded else {
        return String::new();
    };
    format!(
        "namewire {version} (process {pid}) has taken over from {from_version}: {faces} faces, {routes} routes; nothing \
         was forwarded for {stall_ms:.1} ms\n{}",
        lines(&outcome.problems)
    )
}

fn lines(of: &[String]) -> String {
    of.iter().map(|line| format!("  {line}\n")).collect()
}
