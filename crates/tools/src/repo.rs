//! `namewire repo`: run a repository, use one, and look after its store.
//!
//! ```text
//!   run                                  a repository beside a router; `namewire run --repo` has one inside
//!   put, get, list, delete, join, stats  a client of any repository, through the router
//!   check, export, import, compact       the store itself, whether or not a repository runs
//! ```

mod client;
mod hosted;
mod offline;
mod put;
mod run;
mod settings;

pub use hosted::HostedRepo;

use crate::{Failure, Global, get};
use namewire_client::Discovery;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Run a repository that serves through a router
    Run(Box<run::Args>),
    /// Store a file, a stream or a folder in a repository
    Put(put::PutArgs),
    /// Fetch an object that a repository holds, or with -r a folder. Of a file that was stored alone under several
    /// versions, a name without one gets the oldest
    Get(get::Args),
    /// List the names that a repository holds, in canonical order
    List(client::ListArgs),
    /// Delete objects from a repository
    Delete(client::DeleteArgs),
    /// Make a repository a member of a sync group: it stores what the group publishes
    Join(client::JoinArgs),
    /// End a repository's membership of a sync group; stored Data stays
    Leave(client::LeaveArgs),
    /// Show what a repository has done
    Stats(client::Repository),
    /// Read a whole store and report what is wrong with it
    Check(settings::Place),
    /// Write the Data of a store to a file
    Export(offline::ExportArgs),
    /// Store the Data of a file that `export` wrote
    Import(offline::ImportArgs),
    /// Copy an embedded store without its free space
    Compact(offline::CompactArgs),
}

pub(crate) async fn execute(global: &Global, command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(args) => run::execute(global, *args).await,
        Command::Put(args) => put::put(global, args).await,
        // What a repository holds may be stale.
        Command::Get(args) => get::fetch(global, args, Discovery::AnySegment).await,
        Command::List(args) => client::list(global, args).await,
        Command::Delete(args) => client::delete(global, args).await,
        Command::Join(args) => client::join(global, args).await,
        Command::Leave(args) => client::leave(global, args).await,
        Command::Stats(repository) => client::stats(global, repository).await,
        Command::Check(place) => offline::check(global, &place),
        Command::Export(args) => offline::export(global, &args),
        Command::Import(args) => offline::import(global, &args),
        Command::Compact(args) => offline::compact(global, &args),
    }
}
