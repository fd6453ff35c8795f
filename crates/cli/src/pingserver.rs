//! `namewire pingserver`: answers `/<prefix>/ping/…`, as ndnpingserver does.

use crate::{ExitCode, Failure, Global, name_argument};
use namewire_client::RouteOptions;
use namewire_packet::{Component, DataBuilder, NameBuf, tlv::types::IMPLICIT_SHA256_DIGEST};
use serde::Serialize;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Prefix, without /ping
    #[arg(value_parser = name_argument::parse)]
    prefix: NameBuf,
    /// FreshnessPeriod of the answers in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    freshness: u64,
    /// Bytes of content in each answer
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=8192))]
    size: u16,
    /// Stop after so many answers [default: at Ctrl-C]
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

pub(crate) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    let signer = global.signer()?;
    let client = global.connect().await?;
    let mut prefix = args.prefix.clone();
    prefix.push_generic(b"ping");
    let mut interests = client.serve(&prefix).map_err(|error| Failure::new(ExitCode::Failed, error.to_string()))?;
    client.register_prefix(&prefix, RouteOptions::default()).await?;
    eprintln!("ping server ready: {}", args.prefix);
    let content = vec![b'a'; usize::from(args.size)];
    let mut answered = 0;
    while args.count.is_none_or(|count| answered < count) {
        let incoming = tokio::select! {
            incoming = interests.next() => incoming,
            _ = tokio::signal::ctrl_c() => break,
        };
        let Some(incoming) = incoming else {
            return Err(Failure::new(ExitCode::NoForwarder, "the connection to the forwarder was lost"));
        };
        let name = incoming.interest().name().to_buf();
        let names_digest = |component: Component<'_>| component.type_number == IMPLICIT_SHA256_DIGEST;
        if name.as_name().components().any(names_digest) {
            continue; // it asks for a Data that was made before, and no Data has such a name
        }
        let data = DataBuilder::new(name.clone()).freshness_ms(args.freshness).content(&content);
        let signed = signer.sign_data(&data).map_err(|error| Failure::new(ExitCode::Failed, error.to_string()))?;
        incoming.respond(&signed).await?;
        answered += 1;
        if !args.quiet && !global.json {
            global.output().print_line(&(), || format!("interest received: {name}"))?;
        }
    }
    client.flush().await;
    let served = Served { prefix: args.prefix.to_string(), answered };
    global.output().print_line(&served, || format!("{} pings answered", served.answered))?;
    Ok(())
}
