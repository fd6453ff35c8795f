//! `namewire strategy`: list, show, set and unset strategy choices.

use crate::{Failure, Global, name_argument, output::table};
use namewire_client::ControlError;
use namewire_configuration::text::{nearest_strategy, parse_strategy};
use namewire_packet::{
    NameBuf,
    nfd::{ControlParameters, StrategyChoice},
};
use serde::Serialize;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// List all strategy choices
    List,
    /// Show the choice that applies to a name
    Show {
        /// Name of an Interest
        #[arg(value_parser = name_argument::parse)]
        name: NameBuf,
    },
    /// Choose the strategy for a prefix
    Set {
        /// Names the choice is for
        #[arg(value_parser = name_argument::parse)]
        prefix: NameBuf,
        /// Short name such as multicast, or the whole name of the strategy
        #[arg(value_parser = parse_strategy)]
        strategy: NameBuf,
    },
    /// Undo a choice, so that the one of the next shorter prefix applies
    Unset {
        /// Names the choice is for
        #[arg(value_parser = name_argument::parse_not_root)]
        prefix: NameBuf,
    },
}

#[derive(Serialize)]
struct Applied {
    name: NameBuf,
    #[serde(flatten)]
    choice: StrategyChoice,
}

#[derive(Serialize)]
struct Unset {
    prefix: String,
}

/// The forwarder's refusal. If it knows no such strategy, the message has the one that was meant.
fn refused(error: ControlError, strategy: &NameBuf) -> Failure {
    let is_unknown = matches!(&error, ControlError::Refused(response) if response.code == 404);
    let failure = Failure::from(error);
    match nearest_strategy(strategy).filter(|_| is_unknown) {
        Some(nearest) => Failure::new(failure.code(), format!("{failure}; did you mean {nearest}?")),
        None => failure,
    }
}

pub(crate) async fn execute(global: &Global, command: Command) -> Result<(), Failure> {
    let client = global.connect().await?;
    match command {
        Command::List => {
            let choices: Vec<StrategyChoice> = client.list().await?;
            global.output().print(&choices, || {
                let mut rows = vec![vec!["PREFIX".to_owned(), "STRATEGY".to_owned()]];
                rows.extend(choices.iter().map(|choice| vec![choice.name.to_string(), choice.strategy.to_string()]));
                table(&rows, "no strategy choices")
            })?;
        }
        Command::Show { name } => {
            let choices: Vec<StrategyChoice> = client.list().await?;
            let covers = |choice: &&StrategyChoice| choice.name.as_name().is_prefix_of(&name.as_name());
            let longest = choices.iter().filter(covers).max_by_key(|choice| choice.name.len());
            let Some(choice) = longest.cloned() else {
                return Err(Failure::not_found(format!("no strategy choice covers {name}")));
            };
            let text = format!("{name}: {}, chosen for {}\n", choice.strategy, choice.name);
            global.output().print(&Applied { name, choice }, || text)?;
        }
        Command::Set { prefix, strategy } => {
            let parameters = ControlParameters {
                name: Some(prefix.clone()),
                strategy: Some(strategy.clone()),
                ..ControlParameters::default()
            };
            let done = client.control("strategy-choice", "set", &parameters).await;
            let done = done.map_err(|error| refused(error, &strategy))?.body.unwrap_or(parameters);
            // The answer has the version that was chosen.
            let strategy = done.strategy.unwrap_or(strategy);
            let choice = StrategyChoice { name: prefix, strategy };
            global.output().print(&choice, || format!("strategy of {} is {}\n", choice.name, choice.strategy))?;
        }
        Command::Unset { prefix } => {
            // The command succeeds also where there is no choice, so look first.
            let choices: Vec<StrategyChoice> = client.list().await?;
            if choices.iter().all(|choice| choice.name != prefix) {
                let hint = format!("`namewire strategy show {prefix}` says which one applies");
                return Err(Failure::not_found(format!("{prefix} has no strategy choice of its own; {hint}")));
            }
            let parameters = ControlParameters { name: Some(prefix.clone()), ..ControlParameters::default() };
            client.control("strategy-choice", "unset", &parameters).await?;
            global.output().print(&Unset { prefix: prefix.to_string() }, || format!("strategy of {prefix} unset\n"))?;
        }
    }
    Ok(())
}
