//! `namewire nfd`: takes NFD's command line, so that a service that starts NFD changes only one word.
//!
//! Source: drop-in.md §3 (options and exit codes of NFD's `daemon/main.cpp`): 0 done,
//! 1 failed, 2 bad usage, 4 the system does not allow it.

use crate::run;
use namewire_configuration::nfd_modules;
use namewire_tools::Failure;
use std::path::{Path, PathBuf};

/// Where NFD's packages put its configuration, the usual place first.
const USUAL_PLACES: [&str; 2] = ["/etc/ndn/nfd.conf", "/usr/local/etc/ndn/nfd.conf"];

#[derive(Debug, clap::Args)]
#[command(disable_version_flag = true)]
pub(crate) struct Args {
    /// Configuration file [default: /etc/ndn/nfd.conf, else /usr/local/etc/ndn/nfd.conf]
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// List the modules of NFD whose names have an effect in the section log of the configuration file
    #[arg(short, long)]
    modules: bool,
    /// Print the version
    #[arg(short = 'V', long)]
    version: bool,
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    if args.version {
        println!("{}", env!("CARGO_PKG_VERSION"));
        return Ok(());
    }
    if args.modules {
        nfd_modules().for_each(|module| println!("{module}"));
        return Ok(());
    }
    let usual =
        || USUAL_PLACES.map(Path::new).into_iter().find(|path| path.exists()).unwrap_or(Path::new(USUAL_PLACES[0]));
    let nfd_conf = Some(args.config.unwrap_or_else(|| usual().to_owned()));
    run::execute(run::Args { nfd_conf, nfd_exit_codes: true, ..run::Args::default() }).await
}
