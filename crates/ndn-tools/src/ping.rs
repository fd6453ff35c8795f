//! `ndnping`: round-trip times to a ping server.

use crate::{
    Call, Stop, USAGE,
    command_line::{self, Common},
    environment::{self, connect},
    pinging::{Pinger, Pings, Pong},
    print_version,
    text::number,
};
use namewire_client::ExpressError;
use namewire_packet::NameBuf;
use namewire_printing::output::write_out;
use std::{
    io,
    time::{Duration, SystemTime},
};
use tokio::signal::unix::{SignalKind, signal};

/// Exit code: some pings were not answered.
const UNANSWERED: u8 = 1;
/// Exit code: there is no forwarder (any more).
const NO_FORWARDER: u8 = 2;

#[derive(Debug, clap::Args)]
struct Args {
    #[command(flatten)]
    common: Common,
    /// time from one ping to the next, in milliseconds
    #[arg(short, long, default_value_t = 1000)]
    interval: i64,
    /// time to wait for each answer, in milliseconds
    #[arg(short = 'o', long, default_value_t = 4000)]
    timeout: i64,
    /// pings to send (without it, ping until Ctrl-C)
    #[arg(short, long)]
    count: Option<i32>,
    /// number of the first ping (without it, a random one)
    #[arg(short = 'n', long)]
    start: Option<u64>,
    /// component before the number, so that two programs send different pings
    #[arg(short = 'p', long)]
    identifier: Option<String>,
    /// accept stale answers from caches
    #[arg(short = 'a', long)]
    cache: bool,
    /// print the time before each line
    #[arg(short, long)]
    timestamp: bool,
    prefix: Option<String>,
}

/// Results so far. A ping counts as sent when it has ended.
#[derive(Debug, Default)]
struct Statistics {
    sent: u64,
    received: u64,
    nacked: u64,
    rtt_ms_min: f64,
    rtt_ms_max: f64,
    rtt_ms_sum: f64,
    rtt_ms_square_sum: f64,
}

impl Statistics {
    fn add_rtt(&mut self, rtt_ms: f64) {
        let is_first = self.received == 0;
        self.rtt_ms_min = if is_first { rtt_ms } else { self.rtt_ms_min.min(rtt_ms) };
        self.rtt_ms_max = self.rtt_ms_max.max(rtt_ms);
        self.rtt_ms_sum += rtt_ms;
        self.rtt_ms_square_sum += rtt_ms * rtt_ms;
        self.received += 1;
    }

    /// `, 0% lost, 0% nacked`.
    fn shares(&self) -> String {
        if self.sent == 0 {
            return String::new();
        }
        let percent = |count: u64| number(count as f64 * 100.0 / self.sent as f64);
        format!(", {}% lost, {}% nacked", percent(self.sent - self.received - self.nacked), percent(self.nacked))
    }

    /// `min/avg/max/mdev = 1/1/1/0 ms` behind `before`, if there was an answer.
    fn rtts(&self, before: &str) -> String {
        if self.received == 0 {
            return String::new();
        }
        let count = self.received as f64;
        let mean = self.rtt_ms_sum / count;
        let deviation = (self.rtt_ms_square_sum / count - mean * mean).max(0.0).sqrt();
        let [min, mean, max, deviation] = [self.rtt_ms_min, mean, self.rtt_ms_max, deviation].map(number);
        format!("{before}min/avg/max/mdev = {min}/{mean}/{max}/{deviation} ms")
    }

    /// What Ctrl-\ prints.
    fn summary(&self) -> String {
        format!("{}/{} packets{}{}\n", self.received, self.sent, self.shares(), self.rtts(", "))
    }

    /// What the program prints at its end.
    fn full(&self, prefix: &NameBuf) -> String {
        format!(
            "\n--- {prefix} ping statistics ---\n{} packets transmitted, {} received, {} nacked{}, time {} ms{}\n",
            self.sent,
            self.received,
            self.nacked,
            self.shares(),
            number(self.rtt_ms_sum),
            self.rtts("\nrtt ")
        )
    }
}

fn usage() -> String {
    format!(
        "Usage: ndnping [options] ndn:/name/prefix\n\nSends Interests for ndn:/name/prefix/ping/number, and measures when \
         their answers come.\n\n{}",
        command_line::options::<Args>()
    )
}

/// The usage goes to standard output, whatever the error.
fn refused(error: impl std::fmt::Display) -> Stop {
    let stop = Stop::usage(error);
    match write_out(usage().as_bytes()) {
        Ok(()) => stop,
        Err(error) => error.into(),
    }
}

fn pings(args: &Args) -> Result<Pings, Stop> {
    let Some(prefix) = &args.prefix else {
        return Err(refused("No prefix specified"));
    };
    let prefix = environment::name(prefix)?;
    if args.interval < 1 {
        return Err(refused("Specified ping interval is less than the minimum (1 ms)"));
    }
    if args.count.is_some_and(|count| count <= 0) {
        return Err(refused("Number of ping must be positive"));
    }
    let is_acceptable = |text: &String| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if args.identifier.as_ref().is_some_and(|identifier| !is_acceptable(identifier)) {
        return Err(refused("Unacceptable client identifier"));
    }
    let timeout_ms = u64::try_from(args.timeout).map_err(|_| refused("InterestLifetime must be >= 0"))?;
    Ok(Pings {
        prefix,
        identifier: args.identifier.clone(),
        first: args.start.unwrap_or_else(|| fastrand::u64(..)),
        count: args.count.map(|count| u64::from(count.unsigned_abs())),
        interval: Duration::from_millis(args.interval.unsigned_abs()),
        timeout_ms,
        must_be_fresh: !args.cache,
    })
}

pub(crate) async fn run(call: &Call) -> Result<u8, Stop> {
    let args: Args = command_line::parse(&call.words).map_err(refused)?;
    if args.common.help {
        // ndnping ends with 2 here, too.
        write_out(usage().as_bytes())?;
        return Ok(USAGE);
    }
    if args.common.version {
        return print_version("ndnping");
    }
    let pings = pings(&args)?;
    let prefix = pings.prefix.clone();
    write_out(format!("PING {prefix}\n").as_bytes())?;
    let client = connect(NO_FORWARDER).await?;
    let mut pinger = Pinger::new(client, pings);
    let statistics = measure(&mut pinger, &prefix, args.timestamp).await?;
    write_out(statistics.full(&prefix).as_bytes())?;
    Ok(if statistics.received == statistics.sent { 0 } else { UNANSWERED })
}

/// Pings until all have ended. After Ctrl-C, it sends no more.
async fn measure(pinger: &mut Pinger, prefix: &NameBuf, has_time: bool) -> Result<Statistics, Stop> {
    let (mut interrupt, mut quit) = (signal(SignalKind::interrupt())?, signal(SignalKind::quit())?);
    let mut statistics = Statistics::default();
    loop {
        tokio::select! {
            pong = pinger.next() => match pong {
                Some(pong) => tell(&pong, prefix, has_time, &mut statistics)?,
                None => return Ok(statistics),
            },
            _ = interrupt.recv() => pinger.stop(),
            _ = quit.recv() => write_out(statistics.summary().as_bytes())?,
        }
    }
}

fn tell(pong: &Pong, prefix: &NameBuf, has_time: bool, statistics: &mut Statistics) -> Result<(), Stop> {
    let (seq, rtt_ms) = (pong.number, pong.elapsed.as_secs_f64() * 1000.0);
    let line = match &pong.outcome {
        Ok(()) => {
            statistics.add_rtt(rtt_ms);
            format!("content from {prefix}: seq={seq} time={} ms", number(rtt_ms))
        }
        Err(ExpressError::Nack(reason)) => {
            statistics.nacked += 1;
            format!("nack from {prefix}: seq={seq} time={} ms reason={reason}", number(rtt_ms))
        }
        Err(ExpressError::Timeout(_)) => format!("timeout from {prefix}: seq={seq}"),
        Err(ExpressError::Closed(reason)) => return Err(Stop::error(NO_FORWARDER, environment::lost(reason))),
        Err(error) => return Err(Stop::error(NO_FORWARDER, error)),
    };
    statistics.sent += 1;
    print(&line, has_time)?;
    Ok(())
}

/// Prints a line, behind the time if wanted: `20260131T120000.123456 - `.
pub(crate) fn print(line: &str, has_time: bool) -> io::Result<()> {
    let time = match has_time {
        true => format!(
            "{} - ",
            humantime::format_rfc3339_micros(SystemTime::now()).to_string().replace(['-', ':', 'Z'], "")
        ),
        false => String::new(),
    };
    write_out(format!("{time}{line}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_count_nacks_apart_from_losses() {
        let mut statistics = Statistics { sent: 6, nacked: 1, ..Statistics::default() };
        for rtt in [2.0, 1.0, 3.0] {
            statistics.add_rtt(rtt);
        }
        assert_eq!(
            statistics.full(&"/a".parse().unwrap()),
            "\n--- /a ping statistics ---\n6 packets transmitted, 3 received, 1 nacked, 33.3333% lost, 16.6667% nacked, \
             time 6 ms\nrtt min/avg/max/mdev = 1/2/3/0.816497 ms\n"
        );
        let summary = "3/6 packets, 33.3333% lost, 16.6667% nacked, min/avg/max/mdev = 1/2/3/0.816497 ms\n";
        assert_eq!(statistics.summary(), summary);
        assert_eq!(Statistics::default().summary(), "0/0 packets\n");
    }
}
