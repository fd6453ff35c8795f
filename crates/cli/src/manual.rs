//! `namewire manual`: manual pages of the command and of each subcommand, made from their help.

use crate::command_line;
use namewire_tools::{ExitCode, Failure};
use std::{fs, path::PathBuf};

#[derive(Debug, clap::Args)]
#[command(after_help = "For one user: namewire manual ~/.local/share/man/man1, then man namewire-run")]
pub(crate) struct Args {
    /// Folder for namewire.1, namewire-run.1 and so on; it is made if it is missing
    folder: PathBuf,
}

pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let folder = &args.folder;
    let written = fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command_line(), folder));
    written.map_err(|error| {
        Failure::new(ExitCode::Failed, format!("cannot write manual pages to {}: {error}", folder.display()))
    })
}
