//! `namewire pingserver`: answers `/<prefix>/ping/…`, as ndnpingserver does, also over a restart of the router.

use crate::{ExitCode, Failure, Global, name_argument, output::write_out, quantity};
use namewire_client::{InterestStream, RespondError};
use namewire_packet::{Component, DataBuilder, NameBuf, tlv::types::IMPLICIT_SHA256_DIGEST};
use namewire_security::Signer;
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

/// Answers pings, over one connection after the other.
struct Server<'a> {
    args: &'a Args,
    signer: Signer,
    content: Vec<u8>,
    prints: bool,
    answered: u64,
}

pub(crate) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    let signer = global.signer()?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut prefix = args.prefix.clone();
    prefix.push_generic(b"ping");
    let client = global.connect().await?;
    let mut interests = client.interests(&prefix).await?;
    eprintln!("ping server ready: {}", args.prefix);
    let content = vec![b'a'; usize::from(args.size)];
    let mut server = Server { args: &args, signer, content, prints: !args.quiet && !global.json, answered: 0 };
    let is_interrupted = tokio::select! {
        served = server.serve(&mut interests) => served.map(|()| false)?,
        _ = interrupt.recv() => true,
    };
    client.flush().await;
    let served = Served { prefix: args.prefix.to_string(), answered: server.answered };
    global.output().print_line(&served, || format!("{} pings answered", served.answered))?;
    if is_interrupted && args.count.is_some() { Err(Failure::interrupted()) } else { Ok(()) }
}

impl Server<'_> {
    async fn serve(&mut self, interests: &mut InterestStream) -> Result<(), Failure> {
        while self.args.count.is_none_or(|count| self.answered < count) {
            let Some(incoming) = interests.next().await else { break };
            let name = incoming.interest().name().to_buf();
            let names_digest = |component: Component<'_>| component.type_number == IMPLICIT_SHA256_DIGEST;
            if name.as_name().components().any(names_digest) {
                continue; // it asks for a Data that was made before, and no Data has such a name
            }
            let data = DataBuilder::new(name.clone()).freshness_ms(self.args.freshness).content(&self.content);
            let signed =
                self.signer.sign_data(&data).map_err(|error| Failure::new(ExitCode::Failed, error.to_string()))?;
            match incoming.respond(&signed).await {
                Ok(()) => {}
                Err(RespondError::Closed(_)) => continue, // the stream comes back
                Err(error) => return Err(error.into()),
            }
            self.answered += 1;
            if self.prints {
                write_out(format!("interest received: {name}\n").as_bytes())?;
            }
        }
        Ok(())
    }
}
