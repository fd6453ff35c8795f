//! `namewire config`: print the defaults, check a file, show what would be in effect.

use crate::run;
use namewire_configuration::{DEFAULT_TOML, Source, input_file, open_observers};
use namewire_tools::{ExitCode, Failure, Global, show_running};
use std::path::PathBuf;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Print a configuration file with every key, its default and what it means
    Default,
    /// Check a configuration file; exit code 1 if a router would reject it
    Check {
        /// Configuration file of Namewire
        #[arg(value_name = "FILE", required_unless_present = "nfd_conf", conflicts_with = "nfd_conf")]
        file: Option<PathBuf>,
        /// Configuration file of NFD
        #[arg(long, value_name = "FILE")]
        nfd_conf: Option<PathBuf>,
    },
    /// Print the settings that `namewire run` would use with the same options, or those of a running router
    Show(Box<Show>),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// Ask the running router: every setting in force, its value, and where that came from (default, file and line,
    /// option, command). Takes the options of tools, as --json
    #[arg(long, conflicts_with = "Args")]
    running: bool,
    #[command(flatten)]
    args: run::Args,
}

pub(crate) async fn execute(global: &Global, command: Command) -> Result<(), Failure> {
    if matches!(&command, Command::Show(show) if show.running) {
        return show_running(global).await;
    }
    global.refuse_options_of_tools()?;
    match command {
        Command::Default => print!("{DEFAULT_TOML}"),
        Command::Check { file, nfd_conf } => {
            let Some(source) = file.map(Source::Toml).or(nfd_conf.map(Source::NfdConf)) else {
                return Err(Failure::usage("no file to check"));
            };
            check(&source)?;
        }
        Command::Show(show) => {
            let configuration = show.args.load()?;
            let path = show.args.source().map(|source| source.path().display().to_string()).unwrap_or_default();
            warn(&path, &configuration.warnings);
            let text = toml::to_string(&configuration.settings)
                .map_err(|error| Failure::new(ExitCode::Failed, error.to_string()))?;
            print!("{text}");
        }
    }
    Ok(())
}

/// Warnings go to standard error, the verdict to standard output.
fn check(source: &Source) -> Result<(), Failure> {
    let path = source.path().display();
    let mut configuration = source.load().map_err(|error| {
        let hint = if is_of_nfd(source) {
            format!("\nThis is a configuration file of NFD: `namewire config check --nfd-conf {path}` checks it")
        } else {
            String::new()
        };
        Failure::new(ExitCode::Failed, format!("{error}{hint}"))
    })?;
    configuration.warnings.extend(open_observers(&configuration.settings));
    warn(&path.to_string(), &configuration.warnings);
    match configuration.warnings.len() {
        0 => println!("{path}: good"),
        1 => println!("{path}: good, with 1 warning"),
        warnings => println!("{path}: good, with {warnings} warnings"),
    }
    Ok(())
}

/// Sections of NFD's file. Our own file has them, if at all, in brackets.
const NFD_SECTIONS: [&str; 6] = ["general", "log", "tables", "face_system", "authorizations", "rib"];

/// Larger files are not looked at: NFD's sample has 12 KiB.
const NFD_BYTES_MAX: u64 = 1 << 20;

/// True for a regular file that is given as ours, and is one of NFD.
fn is_of_nfd(source: &Source) -> bool {
    let Source::Toml(path) = source else { return false };
    let bytes = input_file::read(path, NFD_BYTES_MAX).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let begins_section = |line: &str| NFD_SECTIONS.contains(&line.trim_end_matches('{').trim());
    text.lines().any(begins_section) && Source::NfdConf(path.clone()).load().is_ok()
}

fn warn(path: &str, warnings: &[String]) {
    for warning in warnings {
        eprintln!("namewire: {path}: {warning}");
    }
}
