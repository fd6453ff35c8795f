//! Commands that look at one router or at several, and the list of those that have names.
//!
//! | question | file |
//! | --- | --- |
//! | which commands are there? | [`Command`], here |
//! | `namewire top` | `top` |
//! | `namewire explain` | `explain` |
//! | `namewire router` | `router` |
//! | how are all named routers read? | `all` |
//! | what may a word of a command line be? | [`candidates`] |

mod all;
pub mod candidates;
mod explain;
mod router;
mod top;

use namewire_tools::{Failure, Global};

/// A command and its arguments.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Watch a running router in the terminal, or all named ones: rates, faces, tables, drops
    Top(top::Args),
    /// Show what the forwarder would do with an Interest for a name, and why
    Explain(explain::Args),
    /// Name routers, so that --router finds them
    #[command(subcommand)]
    Router(router::Command),
}

impl Command {
    /// Does what was asked for.
    ///
    /// # Errors
    /// What failed, in words and as an exit code.
    pub async fn execute(self, global: &Global) -> Result<(), Failure> {
        global.told(match self {
            Command::Top(args) => top::execute(global, args).await,
            Command::Explain(args) => explain::execute(global, args).await,
            Command::Router(command) => router::execute(global, command),
        })
    }
}
