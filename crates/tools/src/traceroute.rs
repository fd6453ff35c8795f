//! `namewire traceroute NAME`: which forwarders are on the way to a name, and where does the way end?
//!
//! Exit codes: 0 the name was found, 3 a forwarder has no route or next hop, 5 nothing answers, 1 the way is a circle.

use crate::{ExitCode, Failure, Global, name_argument, parse_bytes, quantity};
use namewire_packet::NameBuf;
use namewire_probing::{
    Route, WalkOptions,
    ending::{Ending, EndingKind, ending, warnings},
    text::text,
    walk,
};
use serde::Serialize;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name or prefix to find
    #[arg(value_parser = name_argument::parse)]
    name: NameBuf,
    /// Most hops
    #[arg(short, long, value_name = "NUMBER", default_value_t = 30, value_parser = clap::value_parser!(u8).range(1..))]
    max_hops: u8,
    /// Time to wait for the answer of a hop; a number alone is in milliseconds
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = quantity::ms_in(10..=60_000))]
    timeout: u64,
    /// Show the way of an Interest only, not the other next hops on it
    #[arg(long)]
    one_path: bool,
    /// Size of the packets that show where large ones are lost; 0: send none
    #[arg(long, value_name = "BYTES", default_value = "8000", value_parser = parse_bytes)]
    large: u64,
}

fn is_of_the_machine(name: &NameBuf) -> bool {
    name.as_name().get(0).is_some_and(|first| first.value == b"localhost")
}

/// What is printed with `--json`.
#[derive(Serialize)]
struct Found<'a> {
    name: String,
    /// The way of an Interest, then what branches off.
    routes: &'a [Route],
    ending: &'a Ending,
    warnings: Vec<String>,
}

pub(crate) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    if is_of_the_machine(&args.name) {
        let why = "names under /localhost stay on this machine";
        return Err(Failure::usage(format!("{why}; {} says what happens to them", global.typed("namewire explain"))));
    }
    let client = global.connect().await?;
    let options = WalkOptions {
        max_hops: args.max_hops,
        timeout: Duration::from_millis(args.timeout),
        branches: !args.one_path,
        large: usize::try_from(args.large).ok().filter(|bytes| *bytes > 0),
    };
    let routes = walk(&client, &args.name, &options).await?;
    let first = routes.first().cloned().unwrap_or_default();
    let ending = ending(&first, args.max_hops);
    let found = Found { name: args.name.to_string(), routes: &routes, ending: &ending, warnings: warnings(&first) };
    global.output().print(&found, || text(&routes, &ending))?;
    let code = match ending.kind {
        _ if ending.is_reached() => return Ok(()),
        EndingKind::NoRoute | EndingKind::NoNextHop => ExitCode::NotFound,
        EndingKind::Loop | EndingKind::HopLimit => ExitCode::Failed,
        EndingKind::Refused => ExitCode::Nack,
        _ => ExitCode::Timeout,
    };
    Err(Failure::of_code(code))
}
