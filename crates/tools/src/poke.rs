//! `namewire poke`: answer one Interest with the bytes of standard input.

use crate::{ExitCode, Failure, Global, name_argument, quantity};
use namewire_ndn_tools::answers::answer_one;
use namewire_packet::{Data, DataBuilder, MAX_PACKET_BYTES, NameBuf};
use serde::Serialize;
use std::{
    io::{Read, stdin},
    time::Duration,
};
use tokio::time::timeout;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the Data
    #[arg(value_parser = name_argument::parse_not_root)]
    name: NameBuf,
    /// FreshnessPeriod, for example 5s; a number alone is in milliseconds
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = quantity::ms_in(0..=u64::MAX))]
    freshness: u64,
    /// Mark the packet as the last of its object (FinalBlockId)
    #[arg(long = "final")]
    is_final: bool,
    /// Give up after this time [default: wait for ever]
    #[arg(long, value_name = "TIME", value_parser = quantity::ms_in(0..=u64::MAX))]
    timeout: Option<u64>,
}

#[derive(Serialize)]
struct Poked {
    name: String,
    packet_bytes: usize,
    interest: String,
}

pub(crate) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    let mut content = Vec::new();
    stdin().lock().take(MAX_PACKET_BYTES as u64 + 1).read_to_end(&mut content)?;
    let mut builder = DataBuilder::new(args.name.clone()).freshness_ms(args.freshness).content(&content);
    if let Some(last) = args.name.as_name().last().filter(|_| args.is_final) {
        builder = builder.final_block_id(last);
    }
    let wire =
        global.signer()?.sign_data(&builder).map_err(|error| Failure::new(ExitCode::Failed, error.to_string()))?;
    if wire.len() > MAX_PACKET_BYTES {
        let message = "the content does not fit into one packet of 8800 bytes; use `namewire put` for larger ones";
        return Err(Failure::new(ExitCode::Failed, message));
    }
    let data = Data::parse(&wire).map_err(|error| Failure::new(ExitCode::Failed, error.to_string()))?;

    let client = global.connect().await?;
    let mut interests = client.interests(&args.name).await?;
    let answered = async {
        let lost = || Failure::new(ExitCode::NoForwarder, "the connection to the forwarder was lost");
        let interest = answer_one(&mut interests, &data, |_, _| ()).await?.ok_or_else(lost)?;
        client.flush().await;
        Ok::<_, Failure>(interest.to_string())
    };
    let interest = match args.timeout {
        None => answered.await?,
        Some(ms) => timeout(Duration::from_millis(ms), answered)
            .await
            .map_err(|_| Failure::new(ExitCode::Timeout, format!("nobody asked within {ms} ms")))??,
    };
    let poked = Poked { name: args.name.to_string(), packet_bytes: wire.len(), interest };
    if global.json {
        global.output().print(&poked, String::new)?;
    }
    Ok(())
}
