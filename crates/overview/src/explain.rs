//! `namewire explain NAME`: what would the forwarder do with an Interest for this name now? With `--all`: what would
//! each named router do, in the order of the Interest's path?

use crate::all;
use namewire_configuration::text::parse_name;
use namewire_network::{
    fate::{Asked, Fate, Kind, Step},
    links::Links,
    network::{Network, Watch, Watched},
};
use namewire_packet::NameBuf;
use namewire_printing::terminal;
use namewire_tools::{Failure, Global, explain};
use std::{fmt::Write as _, time::Duration};

/// How long a router may take with `--all`.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the Interest
    #[arg(value_parser = parse_name)]
    name: NameBuf,
    /// Face through which the Interest would arrive; it is not sent back there
    #[arg(long, value_name = "FACE", conflicts_with = "all")]
    from: Option<u64>,
    /// Ask all named routers, and show them in the order of the Interest's path
    #[arg(long)]
    all: bool,
}

pub(crate) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    if args.all {
        return explain_all(global, &args.name).await;
    }
    let client = global.connect().await?;
    let explanation = explain::explain(&client, &args.name, args.from).await?;
    global.output().print(&explanation, || explain::text(&explanation))?;
    Ok(())
}

async fn explain_all(global: &Global, name: &NameBuf) -> Result<(), Failure> {
    global.refuse_router()?;
    let named = all::named()?;
    let said = all::summaries(&named, PATIENCE).await;
    let watched = named.iter().zip(said).map(|(router, said)| {
        let mut watch = Watch::new(&router.name, router.place());
        watch.push(Duration::ZERO, said);
        watch.shown().clone()
    });
    let network = Network::of(watched.collect());
    // A router that has two names is asked by the first.
    let asked: Vec<_> = network
        .routers
        .iter()
        .filter_map(|router| named.iter().find(|named| named.name == router.name).cloned())
        .collect();
    let explained = all::explanations(&asked, name, PATIENCE).await;
    let asked: Vec<Asked<'_>> = network
        .routers
        .iter()
        .zip(explained)
        .map(|(router, explained)| Asked { name: &router.name, explained, summary: router.said() })
        .collect();
    let links = Links::between(&network.routers.iter().map(Watched::present).collect::<Vec<_>>());
    let fate = Fate::of(name, &asked, &links);
    global.output().print(&fate, || text(&fate, &network))?;
    Ok(())
}

fn text(fate: &Fate, network: &Network) -> String {
    let mut text = format!("{}\n", terminal::bold(&fate.name));
    for sentence in &fate.verdict {
        let _ = writeln!(text, "{sentence}");
    }
    let width = fate.steps.iter().map(|step| step.name.chars().count()).max().unwrap_or(0);
    for step in &fate.steps {
        let line = format!("  {:<width$}  {}: {}", step.name, word(step.kind), step.text);
        let is_wrong = matches!(step.kind, Kind::Dropped | Kind::Waits | Kind::Unknown);
        let _ = writeln!(text, "{}", if is_wrong { terminal::alarming(&line) } else { line });
        write_details(step, network, width, &mut text);
    }
    text
}

/// What a router does, in a word.
fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Answers => "answers",
        Kind::Application => "to an application",
        Kind::Forwards => "forwards",
        Kind::Leaves => "leaves the list",
        Kind::Dropped => "DROPS",
        Kind::Waits => "WAITS",
        Kind::Unknown => "unknown",
    }
}

fn write_details(step: &Step, network: &Network, width: usize, text: &mut String) {
    let margin = " ".repeat(width + 4);
    for hop in &step.to {
        let router = hop.router.and_then(|index| network.routers.get(index)).map(|router| &*router.name);
        let to = match (router, hop.is_application) {
            (Some(name), _) => format!("{name}, by "),
            (None, true) => "an application, by ".to_owned(),
            (None, false) => String::new(),
        };
        let silent = if hop.is_silent { "; earlier Interests got no answer" } else { "" };
        let _ = writeln!(text, "{margin}→ {to}face {} {}{silent}", hop.face, hop.remote);
    }
    if step.lately_count > 0 {
        let reasons: Vec<&str> = step.lately.iter().map(|drop| &*drop.reason).collect();
        let first = reasons.first().copied().unwrap_or_default();
        let others = if reasons.iter().all(|reason| *reason == first) { "" } else { " and others" };
        let count = step.lately_count;
        let _ = writeln!(text, "{margin}dropped lately under this name: {count}, {first}{others}");
    }
    if matches!(step.kind, Kind::Dropped | Kind::Waits) {
        for hint in &step.hints {
            let _ = writeln!(text, "{margin}{hint}");
        }
    }
}
