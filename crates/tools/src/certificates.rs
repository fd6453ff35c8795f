//! `namewire key serve`: certificates are served until SIGTERM or Ctrl-C. And for commands that serve what they sign:
//! the certificates of `--identity`, through the connection of the command.

use crate::{
    ExitCode, Failure, Global, key,
    service::{EndSignals, notify},
};
use namewire_certificates::{CertificateServer, KeyChainPart, Limits, ServerEvent, Sources};
use namewire_client::{Client, ServeError};
use namewire_packet::NameBuf;
use sd_notify::NotifyState;
use serde::Serialize;
use std::{io, path::PathBuf, time::Duration};
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    task::JoinHandle,
    time::timeout,
};

/// How long a command waits until its certificates are registered. A command to the router takes at most 4 s.
const REGISTRATION_TIME: Duration = Duration::from_secs(10);

/// What `key serve` prints, one line each.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Line {
    Serving { key: String, certificates: usize },
    Withdrawn { key: String },
    Ready { keys: usize, certificates: usize },
}

impl Line {
    fn text(&self) -> String {
        match self {
            Line::Serving { key, certificates } => format!("serving {key} ({})", counted(*certificates)),
            Line::Withdrawn { key } => format!("no longer serving {key}"),
            Line::Ready { keys, certificates } => {
                let certificates = counted(*certificates);
                format!("serving {certificates} of {keys} key{}; Ctrl-C to stop", if *keys == 1 { "" } else { "s" })
            }
        }
    }
}

fn counted(certificates: usize) -> String {
    format!("{certificates} certificate{}", if certificates == 1 { "" } else { "s" })
}

/// `key serve`: the certificates of these names, or of the whole key chain, and those in these files.
pub(crate) async fn execute(global: &Global, names: Vec<NameBuf>, files: Vec<PathBuf>) -> Result<(), Failure> {
    let mut end = EndSignals::listen()?;
    match key::open() {
        // The files alone, until there is a key chain.
        Err(_) if names.is_empty() && !files.is_empty() => {}
        chain => {
            let chain = chain?;
            names.iter().try_for_each(|name| chain.key_of(name.as_name()).map(drop))?;
        }
    }
    for file in &files {
        std::fs::metadata(file)
            .map_err(|error| Failure::new(ExitCode::Failed, format!("{}: {error}", file.display())))?;
    }
    let names = (!names.is_empty()).then_some(names);
    let client = global.connect().await?;
    let sources = Sources { key_chain: Some(key_chain_part(names)?), paths: files, given: Vec::new() };
    let server = CertificateServer::new(sources, Limits::default());
    let (running, mut events) = start(&server, &client);
    let result = loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => say(global, event)?,
                None => break ended(running).await,
            },
            () = end.came() => break Ok(()),
        }
    };
    notify(&[NotifyState::Stopping]);
    client.flush().await;
    let counters = server.counters();
    eprintln!("{} Interests answered, {} for what is not here", counters.answered, counters.missing);
    result
}

fn say(global: &Global, event: ServerEvent) -> io::Result<()> {
    let line = match event {
        ServerEvent::Serving { key, certificates } => Line::Serving { key: key.to_string(), certificates },
        ServerEvent::Withdrawn { key } => Line::Withdrawn { key: key.to_string() },
        ServerEvent::Settled { certificates, keys } => {
            notify(&[NotifyState::Ready]);
            Line::Ready { keys, certificates }
        }
        ServerEvent::NotRegistered { key, why } => {
            eprintln!("namewire: the certificates of {key} are not served: {why}");
            return Ok(());
        }
        ServerEvent::Problem(problem) => {
            eprintln!("namewire: {problem}");
            return Ok(());
        }
        ServerEvent::Lost(_) => {
            eprintln!("namewire: the connection to the forwarder was lost; trying again");
            return Ok(());
        }
        ServerEvent::Restored => {
            eprintln!("namewire: connected again");
            return Ok(());
        }
    };
    global.output().print_line(&line, || line.text())
}

fn key_chain_part(names: Option<Vec<NameBuf>>) -> Result<KeyChainPart, Failure> {
    let (location, _) = key::location()?;
    Ok(KeyChainPart { pib_directory: location.pib_directory, names })
}

type Running = JoinHandle<Result<(), ServeError>>;

fn start(server: &CertificateServer, client: &Client) -> (Running, UnboundedReceiver<ServerEvent>) {
    let (sender, events) = unbounded_channel();
    let (server, client) = (server.clone(), client.clone());
    let run = async move { server.run(&client, |event| drop(sender.send(event))).await };
    (tokio::spawn(run), events)
}

/// Why a server has ended by itself.
async fn ended(running: Running) -> Result<(), Failure> {
    match running.await {
        Ok(result) => Ok(result?),
        Err(error) => Err(Failure::new(ExitCode::Failed, error.to_string())),
    }
}

/// The certificates of the signer of a command that serves, while the command runs.
pub(crate) struct SignersCertificates {
    /// How many are served.
    pub(crate) count: Option<usize>,
    running: Option<Running>,
}

impl Drop for SignersCertificates {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.abort();
        }
    }
}

impl SignersCertificates {
    /// Serves the certificates of `--identity` over this connection, with those of their issuers that the key chain
    /// has. Consumers fetch them to verify what the command serves. If the router does not allow it, a line on
    /// standard error says so, and the command goes on.
    pub(crate) async fn serve(global: &Global, client: &Client) -> Result<Self, Failure> {
        let Some(identity) = global.signing_identity()? else {
            return Ok(SignersCertificates { count: None, running: None });
        };
        let sources = Sources { key_chain: Some(key_chain_part(Some(vec![identity]))?), ..Sources::default() };
        let (running, mut events) = start(&CertificateServer::new(sources, Limits::default()), client);
        let settled = timeout(REGISTRATION_TIME, async {
            loop {
                match events.recv().await? {
                    ServerEvent::Settled { certificates, .. } => return Some(certificates),
                    other => say_refusal(other),
                }
            }
        });
        let count = settled.await.ok().flatten().unwrap_or(0);
        tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                say_refusal(event);
            }
        });
        Ok(SignersCertificates { count: Some(count), running: Some(running) })
    }

    /// For the line of the command: `, 1 certificate`; nothing without `--identity`.
    pub(crate) fn text(&self) -> String {
        self.count.map_or_else(String::new, |count| format!(", {}", counted(count)))
    }
}

fn say_refusal(event: ServerEvent) {
    match event {
        ServerEvent::NotRegistered { key, why } => {
            eprintln!("namewire: the certificates of {key} are not served, so consumers must have them: {why}");
        }
        ServerEvent::Problem(problem) => eprintln!("namewire: {problem}"),
        // The command itself says what happens to its connection.
        _ => {}
    }
}
