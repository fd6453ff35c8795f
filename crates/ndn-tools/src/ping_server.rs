//! `ndnpingserver`: answers pings, also over a restart of the forwarder.

use crate::{
    Call, FAILED, Stop,
    answers::PingAnswers,
    command_line::{self, Common},
    environment::{self, connect, not_registered},
    ping::print,
    print_version,
};
use namewire_packet::NameBuf;
use namewire_printing::output::write_out;
use namewire_security::Signer;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Debug, clap::Args)]
struct Args {
    #[command(flatten)]
    common: Common,
    /// FreshnessPeriod of the answers, in milliseconds
    #[arg(short, long, default_value_t = 1000)]
    freshness: i64,
    /// answers to give (0: until Ctrl-C)
    #[arg(short = 'p', long, default_value_t = 0)]
    satisfy: i64,
    /// bytes of content in each answer
    #[arg(short, long, default_value_t = 0)]
    size: i64,
    /// print the time before each line
    #[arg(short, long)]
    timestamp: bool,
    /// do not print a line for each ping
    #[arg(short, long)]
    quiet: bool,
    prefix: Option<String>,
}

fn usage(called: &str) -> String {
    format!(
        "Usage: {called} [options] <prefix>\n\nAnswers Interests under ndn:<prefix>/ping.\n\n{}",
        command_line::options::<Args>()
    )
}

/// The prefix to serve, and how.
fn plan(args: &Args, prefix: &str) -> Result<(NameBuf, PingAnswers), Stop> {
    let prefix = environment::name(prefix)?;
    let at_least_0 =
        |number: i64, what: &str| u64::try_from(number).map_err(|_| Stop::usage(format!("{what} cannot be negative")));
    let freshness_ms = at_least_0(args.freshness, "FreshnessPeriod")?;
    let count = at_least_0(args.satisfy, "maximum number of pings to satisfy")?;
    let size = at_least_0(args.size, "payload size")?;
    let answers = PingAnswers {
        signer: Signer::digest(),
        freshness_ms,
        content: PingAnswers::content_of(usize::try_from(size).map_err(Stop::usage)?),
        count: Some(count).filter(|count| *count > 0),
        answered: 0,
    };
    Ok((prefix, answers))
}

pub(crate) async fn run(call: &Call) -> Result<u8, Stop> {
    let refused = |error: String| Stop::usage(format!("{error}\n\n{}", usage(&call.called).trim_end()));
    let args: Args = command_line::parse(&call.words).map_err(refused)?;
    if args.common.help {
        write_out(usage(&call.called).as_bytes())?;
        return Ok(0);
    }
    if args.common.version {
        return print_version("ndnpingserver");
    }
    let Some(prefix) = args.prefix.as_deref().filter(|prefix| !prefix.is_empty()) else {
        return Err(refused("no name prefix specified".to_owned()));
    };
    let (prefix, mut answers) = plan(&args, prefix)?;
    write_out(format!("PING SERVER {prefix}\n").as_bytes())?;
    serve(&args, &prefix, &mut answers).await?;
    let statistics = format!("\n--- {prefix} ping server statistics ---\n{} packets processed\n", answers.answered);
    write_out(statistics.as_bytes())?;
    Ok(0)
}

/// Answers until the wanted number is reached, or Ctrl-C.
async fn serve(args: &Args, prefix: &NameBuf, answers: &mut PingAnswers) -> Result<(), Stop> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let client = connect(FAILED).await?;
    let mut below = prefix.clone();
    below.push_generic(b"ping");
    let registered = client.interests(&below).await;
    let mut interests = registered
        .map_err(|error| Stop::error(FAILED, format!("Failed to register prefix: {}", not_registered(&error))))?;
    let tell = |name: &NameBuf| {
        let last = name.as_name().last().map(|last| last.to_string()).unwrap_or_default();
        if args.quiet { Ok(()) } else { print(&format!("interest received: seq={last}"), args.timestamp) }
    };
    tokio::select! {
        served = answers.serve(&mut interests, tell) => served.map_err(|error| Stop::error(FAILED, error))?,
        _ = interrupt.recv() => {}
    }
    client.flush().await;
    Ok(())
}
