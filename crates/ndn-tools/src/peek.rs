//! `ndnpeek`: one Interest, and the packet or content that answers it.

use crate::{
    Call, FAILED, Stop,
    command_line::{self, Common},
    environment::{self, connect},
    print_version, text,
};
use base64::Engine as _;
use namewire_client::{DataBuf, ExpressError};
use namewire_nfdc::system_text;
use namewire_packet::{
    Interest, InterestBuilder, NackReason, NameBuf,
    tlv::{self, types},
};
use namewire_printing::output::write_out;
use std::{fs, time::Duration};
use tokio::time::{Instant, timeout};

/// Exit code: no answer.
const TIMEOUT: u8 = 3;
/// Exit code: a Nack.
const NACK: u8 = 4;

const GENERIC: &str = "Generic options";
const INTEREST: &str = "Interest construction";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = GENERIC)]
struct Args {
    #[command(flatten)]
    common: Common,
    /// print the content alone instead of the whole packet
    #[arg(short, long)]
    payload: bool,
    /// time after which the program gives up, in milliseconds
    #[arg(short = 'w', long)]
    timeout: Option<i64>,
    /// print the Interest and its answer on standard error
    #[arg(short, long)]
    verbose: bool,
    /// set CanBePrefix
    #[arg(short = 'P', long, help_heading = INTEREST)]
    prefix: bool,
    /// set MustBeFresh
    #[arg(short, long, help_heading = INTEREST)]
    fresh: bool,
    /// add this name to the ForwardingHint (repeatable)
    #[arg(short = 'F', long, help_heading = INTEREST)]
    fwhint: Vec<NameBuf>,
    /// InterestLifetime, in milliseconds
    #[arg(short, long, default_value_t = 4000, help_heading = INTEREST)]
    lifetime: i64,
    /// HopLimit, 0 to 255
    #[arg(short = 'H', long, help_heading = INTEREST)]
    hop_limit: Option<i32>,
    /// ApplicationParameters, in base64
    #[arg(short = 'A', long, help_heading = INTEREST)]
    app_params: Option<String>,
    /// ApplicationParameters, from a file
    #[arg(long, help_heading = INTEREST)]
    app_params_file: Option<String>,
    name: Option<NameBuf>,
}

fn usage(called: &str) -> String {
    format!(
        "Usage: {called} [options] /name\n\nFetches one Data packet and writes it to standard output.\n\n{}",
        command_line::options::<Args>()
    )
}

fn parameters(args: &Args) -> Result<Option<Vec<u8>>, Stop> {
    match (&args.app_params, &args.app_params_file) {
        (Some(_), Some(_)) => Err(Stop::usage("cannot specify both '--app-params' and '--app-params-file'")),
        (Some(text), None) => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(text);
            bytes.map(Some).map_err(|error| Stop::usage(format!("invalid ApplicationParameters string: {error}")))
        }
        (None, Some(path)) => {
            let failed = |error| Stop::usage(format!("cannot open '{path}' for reading: {}", system_text(&error)));
            fs::read(path).map(Some).map_err(failed)
        }
        (None, None) => Ok(None),
    }
}

fn interest(args: &Args, name: &NameBuf) -> Result<InterestBuilder, Stop> {
    if args.timeout.is_some_and(|ms| ms < 0) {
        return Err(Stop::usage("timeout cannot be negative"));
    }
    let lifetime_ms = u64::try_from(args.lifetime).map_err(|_| Stop::usage("InterestLifetime cannot be negative"))?;
    let mut builder = InterestBuilder::new(name.clone())
        .can_be_prefix(args.prefix)
        .must_be_fresh(args.fresh)
        .forwarding_hint(&args.fwhint)
        .lifetime_ms(lifetime_ms);
    if let Some(limit) = args.hop_limit {
        builder =
            builder.hop_limit(u8::try_from(limit).map_err(|_| Stop::usage("HopLimit must be between 0 and 255"))?);
    }
    if let Some(parameters) = parameters(args)? {
        builder = builder.application_parameters(parameters);
    }
    Ok(builder)
}

pub(crate) async fn run(call: &Call) -> Result<u8, Stop> {
    let args: Args = command_line::parse(&call.words).map_err(Stop::usage)?;
    if args.common.help {
        write_out(usage(&call.called).as_bytes())?;
        return Ok(0);
    }
    if args.common.version {
        return print_version("ndnpeek");
    }
    let Some(name) = &args.name else {
        return Err(Stop::usage(format!("missing name\n\n{}", usage(&call.called).trim_end())));
    };
    let interest = interest(&args, name)?;
    let client = connect(FAILED).await?;
    if args.verbose {
        let wire = interest.build();
        let shown = Interest::parse(&wire).map_err(|error| Stop::error(FAILED, error))?;
        eprintln!("INTEREST: {}", text::interest(&shown));
    }
    let start = Instant::now();
    let patience = Duration::from_millis(args.timeout.map_or(u64::MAX, i64::unsigned_abs));
    let answer = timeout(patience, client.express(&interest)).await;
    show(&args, answer.unwrap_or(Err(ExpressError::Timeout(0))), start.elapsed())
}

fn show(args: &Args, answer: Result<DataBuf, ExpressError>, rtt: Duration) -> Result<u8, Stop> {
    let tell = |what: String| {
        if args.verbose {
            eprintln!("{what}");
        }
    };
    let with_rtt = |what: String| format!("{what}\nRTT: {} ms", rtt.as_millis());
    match answer {
        Ok(data) => {
            tell(with_rtt(format!("DATA: {}", data.name())));
            write_out(if args.payload { data.content() } else { data.wire() })?;
            Ok(0)
        }
        Err(ExpressError::Nack(reason)) => {
            tell(with_rtt(format!("NACK: {reason}")));
            let header = if args.payload { format!("{reason}\n").into_bytes() } else { nack_header(reason) };
            write_out(&header)?;
            Ok(NACK)
        }
        Err(ExpressError::Timeout(_)) => {
            tell("TIMEOUT".to_owned());
            Ok(TIMEOUT)
        }
        Err(ExpressError::Closed(reason)) => Err(Stop::error(FAILED, environment::lost(&reason))),
        Err(error) => Err(Stop::error(FAILED, error)),
    }
}

/// The Nack element of NDNLPv2 (§1.3).
fn nack_header(reason: NackReason) -> Vec<u8> {
    let mut header = Vec::new();
    tlv::write_nested(&mut header, types::LP_NACK, |out| {
        if reason != NackReason::None {
            tlv::write_nni(out, types::LP_NACK_REASON, reason.code());
        }
    });
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nack_is_an_element() {
        assert_eq!(nack_header(NackReason::NoRoute), [0xfd, 3, 0x20, 5, 0xfd, 3, 0x21, 1, 150]);
        assert_eq!(nack_header(NackReason::None), [0xfd, 3, 0x20, 0]);
    }
}
