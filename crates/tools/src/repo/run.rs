//! `namewire repo run`: a repository in a separate process from its router. When the router ends, the repository waits
//! for another one.

use super::settings::{self, Place};
use crate::{
    ExitCode, Failure, Global, name_argument,
    service::{EndSignals, notify},
};
use namewire_client::Client;
use namewire_configuration::{Configuration, text::Prefix};
use namewire_packet::NameBuf;
use namewire_repo::{Repo, RepoSettings, store::Store};
use sd_notify::NotifyState;
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::time::sleep;

/// Pauses between attempts to connect again.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_LAST: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// The repository's own name, under which it takes commands [default: /localhost/repo]
    #[arg(long, value_name = "NAME", value_parser = name_argument::parse_not_root)]
    name: Option<NameBuf>,
    /// Prefix of Data that it serves from the start, repeatable
    #[arg(long = "prefix", value_name = "NAME", value_parser = name_argument::parse)]
    prefixes: Vec<NameBuf>,
    /// Address for bulk insertion, which is Data over TCP without commands, for example 127.0.0.1:7376
    #[arg(long, value_name = "ADDR:PORT")]
    bulk_listen: Option<SocketAddr>,
    /// Threads that answer Interests [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    readers: Option<u16>,
    /// Answer with a Nack if no stored Data matches
    #[arg(long)]
    nack_missing: bool,
    /// Print nothing but errors and warnings
    #[arg(short, long)]
    quiet: bool,
}

impl Args {
    fn load(&self) -> Result<Configuration, Failure> {
        let mut configuration = self.place.load()?;
        let section = &mut configuration.settings.repo;
        section.name = self.name.clone().map_or(section.name.clone(), Prefix);
        section.prefixes.extend(self.prefixes.iter().cloned().map(Prefix));
        section.bulk_listen = self.bulk_listen.or(section.bulk_listen);
        section.readers = self.readers.unwrap_or(section.readers);
        section.nack_missing |= self.nack_missing;
        Ok(configuration)
    }
}

pub(super) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::new(ExitCode::Failed, format!("cannot wait for signals: {error}"));
    let mut end = EndSignals::listen().map_err(failed)?;
    let configuration = args.load()?;
    for problem in configuration.repo_trust.unreadable() {
        eprintln!("namewire: {problem}");
    }
    let settings = settings::repo_settings(&configuration, global.signer()?)?;
    let store = settings::open(&configuration.settings.repo)?;
    let mut client = global.connect().await?;
    let mut is_first = true;
    loop {
        match serve(&settings, client, &store, is_first && !args.quiet, &mut end).await {
            Ok(Served::Ended) => return Ok(()),
            Ok(Served::Disconnected) => {
                eprintln!("namewire: the connection to the router was lost; it will be tried again")
            }
            Err(failure) if is_first => return Err(failure),
            Err(failure) => eprintln!("namewire: {failure}; it will be tried again"),
        }
        is_first = false;
        client = tokio::select! {
            client = connect_again(global) => client,
            () = end.came() => return Ok(()),
        };
    }
}

enum Served {
    Ended,
    Disconnected,
}

/// Serves over one connection.
async fn serve(
    settings: &RepoSettings,
    client: Client,
    store: &Arc<dyn Store>,
    tells: bool,
    end: &mut EndSignals,
) -> Result<Served, Failure> {
    let failed = |error: namewire_repo::RepoError| Failure::new(ExitCode::Failed, error.to_string());
    let mut repo = Repo::start(settings.clone(), client, Arc::clone(store)).await.map_err(failed)?;
    for warning in repo.warnings() {
        eprintln!("namewire: {warning}");
    }
    if tells {
        println!("{}", what_runs(&repo, settings, &**store));
    }
    notify(&[NotifyState::Ready]);
    let served = tokio::select! {
        () = repo.disconnected() => Served::Disconnected,
        () = end.came() => Served::Ended,
    };
    if matches!(served, Served::Ended) {
        notify(&[NotifyState::Stopping]);
    }
    repo.stop().await;
    Ok(served)
}

/// The line that the command prints when the repository has started.
pub(super) fn what_runs(repo: &Repo, settings: &RepoSettings, store: &dyn Store) -> String {
    let held = store.usage().map_or(String::new(), |usage| format!(" with {} Data", usage.records));
    let bulk = repo.bulk_address().map_or(String::new(), |address| format!("; bulk insertion at {address}"));
    format!("repository {} is running: {} store{held}{bulk}", settings.name, store.kind())
}

async fn connect_again(global: &Global) -> Client {
    let mut pause = RETRY_FIRST;
    loop {
        sleep(pause).await;
        if let Ok(client) = global.connect().await {
            return client;
        }
        pause = (pause * 2).min(RETRY_LAST);
    }
}
