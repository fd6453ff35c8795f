//! `namewire pingserver`: answers `/<prefix>/ping/…`, as ndnpingserver does, also over a restart of the router.

use crate::{ExitCode, Failure, Global, name_argument, output::write_out, quantity};
use namewire_ndn_tools::answers::{AnswerError, PingAnswers};
use namewire_packet::NameBuf;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Prefix, without /ping
    #[arg(value_parser = name_argument::parse)]
    prefix: NameBuf,
    /// FreshnessPeriod of the answers; a number alone is in milliseconds
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = quantity::ms_in(0..=u64::MAX))]
    freshness: u64,
    /// Bytes of content in each answer
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=8192))]
    size: u16,
    /// Stop after this number of answers [default: at Ctrl-C]
    #[arg(short, long)]
    count: Option<u64>,
    /// Do not print each ping
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Serialize)]
struct Served {
    prefix: String,
    answered: u64,
}

impl From<AnswerError> for Failure {
    fn from(error: AnswerError) -> Self {
        match error {
            AnswerError::Sign(error) => Failure::new(ExitCode::Failed, error.to_string()),
            AnswerError::Respond(error) => error.into(),
            AnswerError::Print(error) => error.into(),
        }
    }
}

pub(crate) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    let signer = global.signer()?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut prefix = args.prefix.clone();
    prefix.push_generic(b"ping");
    let client = global.connect().await?;
    let mut interests = client.interests(&prefix).await?;
    eprintln!("ping server ready: {}", args.prefix);
    let content = PingAnswers::content_of(usize::from(args.size));
    let mut answers = PingAnswers { signer, freshness_ms: args.freshness, content, count: args.count, answered: 0 };
    let prints = !args.quiet && !global.json;
    let tell = |name: &NameBuf| match prints {
        true => write_out(format!("interest received: {name}\n").as_bytes()),
        false => Ok(()),
    };
    let is_interrupted = tokio::select! {
        served = answers.serve(&mut interests, tell) => served.map(|()| false)?,
        _ = interrupt.recv() => true,
    };
    client.flush().await;
    let served = Served { prefix: args.prefix.to_string(), answered: answers.answered };
    global.output().print_line(&served, || format!("{} pings answered", served.answered))?;
    if is_interrupted && args.count.is_some() { Err(Failure::interrupted()) } else { Ok(()) }
}
