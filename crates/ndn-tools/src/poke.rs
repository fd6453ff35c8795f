//! `ndnpoke`: one Data packet with the bytes of standard input, for the Interest that asks for it.

use crate::{
    Call, FAILED, Stop,
    answers::answer_one,
    command_line::{self, Common},
    environment::{self, connect, not_registered},
    print_version, text,
};
use namewire_client::{Client, ServeError};
use namewire_packet::{Data, DataBuilder, Interest, MAX_PACKET_BYTES, NameBuf};
use namewire_printing::output::write_out;
use std::{
    io::{Read, stdin},
    time::Duration,
};
use tokio::time::timeout;

/// Exit code: nobody asked.
const TIMEOUT: u8 = 3;
/// Exit code: the forwarder gives no route.
const NOT_REGISTERED: u8 = 5;

const GENERIC: &str = "Generic options";
const DATA: &str = "Data construction";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = GENERIC)]
struct Args {
    #[command(flatten)]
    common: Common,
    /// send the packet without waiting for an Interest
    #[arg(short, long)]
    unsolicited: bool,
    /// time to wait for an Interest, in milliseconds
    #[arg(short = 'w', long)]
    timeout: Option<i64>,
    /// print Interests and the packet on standard error
    #[arg(short, long)]
    verbose: bool,
    /// FreshnessPeriod, in milliseconds
    #[arg(short, long, default_value_t = 0, help_heading = DATA)]
    freshness: i64,
    /// set FinalBlockId to the last component of the name
    #[arg(short = 'F', long = "final", help_heading = DATA)]
    is_final: bool,
    /// who signs: id:NAME, key:NAME or cert:NAME
    #[arg(short = 'S', long, help_heading = DATA)]
    signing_info: Option<String>,
    name: Option<String>,
}

fn usage(called: &str) -> String {
    format!(
        "Usage: {called} [options] /name\n\nSends the bytes of standard input as one Data packet.\n\n{}",
        command_line::options::<Args>()
    )
}

fn packet(args: &Args, name: &NameBuf) -> Result<Vec<u8>, Stop> {
    let freshness_ms = u64::try_from(args.freshness).map_err(|_| Stop::usage("freshness cannot be negative"))?;
    let signer = environment::signer(args.signing_info.as_deref().unwrap_or_default())?;
    if args.timeout.is_some() && args.unsolicited {
        return Err(Stop::usage("conflicting '--unsolicited' and '--timeout' options specified"));
    }
    if args.timeout.is_some_and(|ms| ms < 0) {
        return Err(Stop::usage("timeout cannot be negative"));
    }
    let mut content = Vec::new();
    stdin().lock().take(MAX_PACKET_BYTES as u64 + 1).read_to_end(&mut content)?;
    let mut builder = DataBuilder::new(name.clone()).freshness_ms(freshness_ms).content(&content);
    if let Some(last) = name.as_name().last().filter(|_| args.is_final) {
        builder = builder.final_block_id(last);
    }
    let wire = signer.sign_data(&builder).map_err(|error| Stop::error(FAILED, error))?;
    if wire.len() > MAX_PACKET_BYTES {
        let size = wire.len();
        return Err(Stop::error(
            FAILED,
            format!("Data {name} encodes into {size} bytes, more than {MAX_PACKET_BYTES}"),
        ));
    }
    Ok(wire)
}

pub(crate) async fn run(call: &Call) -> Result<u8, Stop> {
    let args: Args = command_line::parse(&call.words).map_err(Stop::usage)?;
    if args.common.help {
        write_out(usage(&call.called).as_bytes())?;
        return Ok(0);
    }
    if args.common.version {
        return print_version("ndnpoke");
    }
    let Some(name) = &args.name else {
        return Err(Stop::usage(format!("missing name\n\n{}", usage(&call.called).trim_end())));
    };
    let name: NameBuf = name.parse().map_err(|error| Stop::usage(format!("invalid name: {error}")))?;
    if name.is_empty() {
        return Err(Stop::usage("name cannot have zero components"));
    }
    let wire = packet(&args, &name)?;
    let data = Data::parse(&wire).map_err(|error| Stop::error(FAILED, error))?;
    let client = connect(FAILED).await?;
    if args.unsolicited {
        client.send_unsolicited(&wire).await.map_err(|error| Stop::error(FAILED, error))?;
    } else if let Some(code) = answer(&args, &client, &name, &data).await? {
        return Ok(code);
    }
    client.flush().await;
    if args.verbose {
        eprint!("DATA: {}", text::data(&data));
    }
    Ok(0)
}

/// Answers one Interest; an exit code if none came.
async fn answer(args: &Args, client: &Client, name: &NameBuf, data: &Data<'_>) -> Result<Option<u8>, Stop> {
    let mut interests = match client.interests(name).await {
        Ok(interests) => interests,
        Err(ServeError::Closed(reason)) => return Err(Stop::error(FAILED, environment::lost(&reason))),
        Err(error) => {
            eprintln!("Prefix registration failure ({})", not_registered(&error));
            return Ok(Some(NOT_REGISTERED));
        }
    };
    let is_verbose = args.verbose;
    if is_verbose {
        eprintln!("Prefix registration successful");
    }
    let tell = |interest: &Interest<'_>, matches: bool| {
        if is_verbose {
            eprintln!("INTEREST: {}", text::interest(interest));
            if !matches {
                eprintln!("Interest cannot be satisfied");
            }
        }
    };
    let patience = Duration::from_millis(args.timeout.map_or(u64::MAX, i64::unsigned_abs));
    match timeout(patience, answer_one(&mut interests, data, tell)).await {
        Ok(Ok(Some(_))) => Ok(None),
        Ok(Ok(None)) => Err(Stop::error(FAILED, "socket read error (End of file)")),
        Ok(Err(error)) => Err(Stop::error(FAILED, error)),
        Err(_) => {
            if is_verbose {
                eprintln!("TIMEOUT");
            }
            Ok(Some(TIMEOUT))
        }
    }
}
