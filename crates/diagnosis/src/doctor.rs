//! `namewire doctor`: what is wrong here, and what to type?

use crate::{
    diagnosis::Diagnosis,
    gather::{Wanted, gather},
};
use namewire_configuration::Source;
use namewire_tools::{Failure, Global};
use std::{path::PathBuf, time::Duration};

/// Longest watch, in seconds: a day.
const WATCH_S_MAX: f64 = 86_400.0;

/// `namewire doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes: 0 nothing or notes only, 8 warnings, 9 errors.\n\n\
    Examples:\n  namewire doctor\n  namewire doctor --watch 10 --verbose\n  \
    namewire doctor --json | jq '.findings[] | select(.severity == \"error\")'")]
pub struct Args {
    /// Show every check, also those that found nothing or could not be made
    #[arg(short, long)]
    verbose: bool,
    /// Compare counters over this many seconds, so that drops are found that grow slowly
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    watch: Duration,
    /// Send no Interests to neighbours
    #[arg(long)]
    no_probe: bool,
    /// Check this configuration file, too [default: the one of the running router, or /etc/namewire/namewire.toml]
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Check this configuration file of NFD, too
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    nfd_conf: Option<PathBuf>,
}

/// Seconds, with a fraction if need be.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if !(0.0..=WATCH_S_MAX).contains(&seconds) {
        return Err(format!("not from 0 to {WATCH_S_MAX} seconds"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Makes all checks and prints what they found.
///
/// # Errors
/// [`ExitCode::Warnings`](namewire_tools::ExitCode::Warnings) or
/// [`ExitCode::Errors`](namewire_tools::ExitCode::Errors), without a message, if that is what was found; or if nothing
/// can be printed.
pub async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    let source = args.config.map(Source::Toml).or(args.nfd_conf.map(Source::NfdConf));
    let transport = global.transport()?;
    let signer = global.named_signer()?;
    let wanted = Wanted { transport, signer, source, watch: args.watch, probe: !args.no_probe };
    let (facts, _client) = gather(wanted).await;
    let diagnosis = Diagnosis::of(&facts).typed(|command| global.typed(command));
    global.output().print(&diagnosis, || diagnosis.text(args.verbose))?;
    diagnosis.exit_code().map_or(Ok(()), |code| Err(Failure::of_code(code)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_is_a_number_of_seconds() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert!(["-1", "x", "NaN", "86401", "inf"].iter().all(|text| seconds(text).is_err()));
    }
}
