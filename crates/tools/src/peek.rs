//! `namewire peek`: one Interest, one Data, its content on standard output.
//!
//! The content of an application Nack is not the content that the user asked for. So it is not printed alone. The exit
//! code reports the Nack, even if the whole packet is printed.

use crate::{
    ExitCode, Failure, Global, explain, name_argument,
    output::{Output, write_out},
    quantity,
};
use namewire_client::{Client, DataBuf, ExpressError, FetchError};
use namewire_packet::{InterestBuilder, NameBuf, content_type};
use namewire_printing::text_only::is_text;
use serde::Serialize;
use std::{
    io::{self, IsTerminal},
    time::Duration,
};
use tokio::time::{Instant, timeout};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the Data
    #[arg(value_parser = name_argument::parse_not_root)]
    name: NameBuf,
    /// Take Data under longer names, too (CanBePrefix)
    #[arg(short, long)]
    prefix: bool,
    /// Take no stale Data from caches (MustBeFresh)
    #[arg(short, long)]
    fresh: bool,
    /// InterestLifetime, for example 500ms; a number alone is in milliseconds
    #[arg(long, value_name = "TIME", default_value = "4s", value_parser = quantity::ms_in(1..=3_600_000))]
    lifetime: u64,
    /// Repeat the Interest for this time [default: the lifetime]
    #[arg(long, value_name = "TIME", value_parser = quantity::ms_in(1..=u64::MAX))]
    timeout: Option<u64>,
    /// Print the content alone (this is the default)
    #[arg(long, conflicts_with = "wire")]
    payload: bool,
    /// Print the whole packet as it came
    #[arg(long)]
    wire: bool,
    /// Describe the packet on standard error
    #[arg(short, long)]
    verbose: bool,
}

#[derive(Serialize)]
struct Peeked {
    name: String,
    content_type: u64,
    freshness_ms: u64,
    final_block_id: Option<String>,
    signature_type: u64,
    digest_is_valid: Option<bool>,
    congestion_mark: u64,
    rtt_ms: f64,
    packet_bytes: usize,
    content_bytes: usize,
    content_hex: String,
    content_text: Option<String>,
}

pub(crate) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    let name = args.name.clone();
    let client = global.connect().await?;
    match fetch(&client, global, args).await {
        Err(failure) => Err(explain::blame(&client, failure, name).await),
        done => done,
    }
}

async fn fetch(client: &Client, global: &Global, args: Args) -> Result<(), Failure> {
    let interest = InterestBuilder::new(args.name.clone())
        .can_be_prefix(args.prefix)
        .must_be_fresh(args.fresh)
        .lifetime_ms(args.lifetime);
    let limit = Duration::from_millis(args.timeout.unwrap_or(args.lifetime));
    let begun = Instant::now();
    let ask = async {
        loop {
            let start = Instant::now();
            match client.express(&interest).await {
                // An Interest at the very end would only wait in routers.
                Err(ExpressError::Timeout(_)) if begun.elapsed() < limit => {}
                result => return result.map(|data| (data, start.elapsed())),
            }
        }
    };
    let (data, rtt) = timeout(limit, ask).await.unwrap_or(Err(ExpressError::Timeout(limit.as_millis() as u64)))?;
    let packet = describe(&data, rtt);
    let is_nack = packet.content_type == content_type::NACK;
    if args.verbose {
        eprintln!("{}", summary(&packet));
    }
    if global.json {
        Output { json: true }.print(&packet, String::new)?;
    } else if args.wire {
        write_out(data.wire())?;
    } else if !is_nack {
        let content = data.data().content();
        if io::stdout().is_terminal() && !is_text(content) {
            let why = "this is binary data, and standard output a terminal; use --json, or pipe it into a program";
            return Err(Failure::new(ExitCode::Failed, why));
        }
        write_out(content)?;
        // A program gets the content as it is; in a terminal, the prompt gets a line of its own.
        if io::stdout().is_terminal() && content.last().is_some_and(|last| *last != b'\n') {
            write_out(b"\n")?;
        }
    }
    if is_nack {
        return Err(FetchError::ApplicationNack(data.data().name().to_buf()).into());
    }
    Ok(())
}

fn describe(data: &DataBuf, rtt: Duration) -> Peeked {
    let view = data.data();
    let content = view.content();
    let signature_type = view.signature_info().signature_type();
    Peeked {
        name: view.name().to_string(),
        content_type: view.content_type(),
        freshness_ms: view.freshness_ms(),
        final_block_id: view.final_block_id().map(|component| component.to_string()),
        signature_type,
        digest_is_valid: (signature_type == 0).then(|| view.verify_digest_sha256()),
        congestion_mark: data.congestion_mark,
        rtt_ms: rtt.as_secs_f64() * 1000.0,
        packet_bytes: data.wire().len(),
        content_bytes: content.len(),
        content_hex: content.iter().map(|byte| format!("{byte:02x}")).collect(),
        content_text: std::str::from_utf8(content).ok().map(str::to_owned),
    }
}

fn summary(packet: &Peeked) -> String {
    let signature = match packet.digest_is_valid {
        Some(true) => "digest valid".to_owned(),
        Some(false) => "digest WRONG".to_owned(),
        None => format!("signature type {} not checked", packet.signature_type),
    };
    let last = packet.final_block_id.as_ref().map(|id| format!(", final block {id}")).unwrap_or_default();
    format!(
        "{}\n  {} B content, content type {}, fresh for {} ms{last}, {signature}, {:.3} ms",
        packet.name, packet.content_bytes, packet.content_type, packet.freshness_ms, packet.rtt_ms
    )
}
