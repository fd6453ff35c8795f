//! `namewire log`: sets how much a running router logs, by area, and writes marks into its log.

use crate::{Failure, Global, name_argument, output::table};
use namewire_configuration::log_levels::LogChange;
use namewire_packet::{
    NameBuf,
    nfd::{ControlParameters, LogAreaLevel},
};
use serde::Serialize;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Show the level of each area
    Show,
    /// Change levels until the next start or SIGHUP
    Set {
        /// For example faces=debug, or info,faces=debug,drops=off
        #[arg(value_name = "LEVELS")]
        levels: LogChange,
    },
    /// Write a line with this name into the log, for example where an experiment begins
    Mark {
        /// For example /run/3
        #[arg(value_parser = name_argument::parse_not_root)]
        name: NameBuf,
    },
}

#[derive(Serialize)]
struct Marked {
    mark: String,
}

#[derive(Serialize)]
struct Levels {
    levels: String,
}

pub(crate) async fn execute(global: &Global, command: Command) -> Result<(), Failure> {
    let client = global.connect().await?;
    match command {
        Command::Show => {
            let levels: Vec<LogAreaLevel> = client.list().await?;
            global.output().print(&levels, || {
                let mut rows = vec![vec!["AREA".to_owned(), "LEVEL".to_owned()]];
                rows.extend(levels.iter().map(|one| vec![one.area.clone(), one.level.clone()]));
                table(&rows, "no log")
            })?;
        }
        Command::Set { levels } => {
            let parameters = ControlParameters { log_levels: Some(levels.to_string()), ..ControlParameters::default() };
            let done = client.control("log", "set", &parameters).await?.body.unwrap_or(parameters);
            let levels = done.log_levels.unwrap_or_default();
            global
                .output()
                .print(&Levels { levels: levels.clone() }, || format!("levels of the log are {levels}\n"))?;
        }
        Command::Mark { name } => {
            let marked = Marked { mark: name.to_string() };
            let parameters = ControlParameters { name: Some(name), ..ControlParameters::default() };
            client.control("log", "mark", &parameters).await?;
            global.output().print(&marked, || format!("marked {}\n", marked.mark))?;
        }
    }
    Ok(())
}
