//! `nfdc strategy`: list, show, set and unset.

use crate::{
    arguments::Arguments,
    context::{Context, Refusal, Stop, UNKNOWN_STRATEGY, USAGE, Unanswered, required},
    text::{self, Attributes},
};
use namewire_packet::{
    NameBuf,
    nfd::{ControlParameters, StrategyChoice},
};

pub(crate) async fn list(context: &mut Context) -> Result<(), Stop> {
    for choice in choices(context).await? {
        context.out += &text::strategy(&choice);
        context.out.push('\n');
    }
    Ok(())
}

/// The choice of the longest prefix. Without any, an empty one is shown.
pub(crate) async fn show(context: &mut Context, arguments: &Arguments) -> Result<(), Stop> {
    let name = arguments.required_name("prefix");
    let choices = choices(context).await?;
    let applying = choices.into_iter().filter(|choice| choice.name.as_name().is_prefix_of(&name.as_name()));
    let nothing = StrategyChoice { name: NameBuf::new(), strategy: NameBuf::new() };
    let longest = applying.max_by_key(|choice| choice.name.len()).unwrap_or(nothing);
    context.out += &text::strategy_in_lines(&longest);
    Ok(())
}

async fn choices(context: &Context) -> Result<Vec<StrategyChoice>, Stop> {
    let choices = context.list("strategy-choice", "list").await;
    choices.map_err(|error| error.when("fetching strategy choice dataset"))
}

pub(crate) async fn set(context: &mut Context, arguments: &Arguments) -> Result<(), Stop> {
    let strategy = arguments.required_name("strategy");
    let parameters = ControlParameters {
        name: Some(arguments.required_name("prefix")),
        strategy: Some(strategy.clone()),
        ..ControlParameters::default()
    };
    let doing = "setting strategy";
    let done = match context.control("strategy-choice", "set", &parameters).await {
        Ok(done) => done,
        Err(Unanswered::Refused(Refusal { code: 404, .. })) => {
            return Err(Stop::new(UNKNOWN_STRATEGY, format!("Unknown strategy: {strategy}")));
        }
        Err(error) => return Err(error.when(doing)),
    };
    let mut attributes = Attributes::in_one_line();
    attributes
        .add("prefix", required(done.name, "Name", doing)?)
        .add("strategy", required(done.strategy, "Strategy", doing)?);
    context.out += &format!("strategy-set {}\n", attributes.take());
    Ok(())
}

pub(crate) async fn unset(context: &mut Context, arguments: &Arguments) -> Result<(), Stop> {
    let prefix = arguments.required_name("prefix");
    if prefix.is_empty() {
        return Err(Stop::new(USAGE, "Unsetting default strategy is prohibited"));
    }
    let parameters = ControlParameters { name: Some(prefix), ..ControlParameters::default() };
    let doing = "unsetting strategy";
    let done = context.control("strategy-choice", "unset", &parameters).await.map_err(|error| error.when(doing))?;
    let prefix = required(done.name, "Name", doing)?;
    context.out += &format!("strategy-unset prefix={prefix}\n");
    Ok(())
}
