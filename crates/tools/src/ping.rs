//! `namewire ping`: round-trip times to a ping server.
//!
//! The numbers in the names count up from a random start, the printed ones from 0.

use crate::{ExitCode, Failure, Global, explain, name_argument, quantity};
use namewire_client::{Client, ExpressError};
use namewire_ndn_tools::pinging::{self, Pinger, Pings};
use namewire_packet::NameBuf;
use namewire_probing::echo::Echo;
use serde::Serialize;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Prefix of the ping server, without /ping
    #[arg(value_parser = name_argument::parse)]
    prefix: NameBuf,
    /// Stop after this number of pings [default: at Ctrl-C]
    #[arg(short, long)]
    count: Option<u64>,
    /// Time from one ping to the next, for example 200ms; a number alone is in milliseconds
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = quantity::ms_in(1..=u64::MAX))]
    interval: u64,
    /// Time to wait for each answer
    #[arg(long, value_name = "TIME", default_value = "4s", value_parser = quantity::ms_in(1..=u64::MAX))]
    timeout: u64,
    /// Take stale answers from caches, too
    #[arg(short, long)]
    allow_stale: bool,
    /// Ping forwarders in place of a ping server: the router with this name, one whose application serves it, or one
    /// that has stored it (RFC 9508)
    #[arg(long, conflicts_with = "allow_stale")]
    forwarders: bool,
    /// Print the statistics only
    #[arg(short, long)]
    quiet: bool,
}

/// What became of one ping.
#[derive(Serialize)]
struct Pong {
    /// Counts from 0.
    sequence: u64,
    /// The number in the name.
    number: u64,
    rtt_ms: Option<f64>,
    nack: Option<String>,
}

impl Pong {
    /// The connection must not have been lost.
    fn of(pong: pinging::Pong) -> Result<Self, ExpressError> {
        let (rtt_ms, nack) = match pong.outcome {
            Ok(()) => (Some(pong.elapsed.as_secs_f64() * 1000.0), None),
            Err(ExpressError::Nack(reason)) => (None, Some(reason.to_string())),
            Err(ExpressError::Timeout(_)) => (None, None),
            Err(error) => return Err(error),
        };
        Ok(Pong { sequence: pong.sequence, number: pong.number, rtt_ms, nack })
    }
}

#[derive(Debug, Default, Serialize)]
struct Statistics {
    prefix: String,
    sent: u64,
    received: u64,
    nacked: u64,
    timed_out: u64,
    rtt_ms_min: Option<f64>,
    rtt_ms_mean: Option<f64>,
    rtt_ms_max: Option<f64>,
    /// Standard deviation, as the "mdev" of other pings.
    rtt_ms_deviation: Option<f64>,
    #[serde(skip)]
    rtt_ms_sum: f64,
    #[serde(skip)]
    rtt_ms_square_sum: f64,
}

impl Statistics {
    fn add(&mut self, pong: &Pong) {
        match (pong.rtt_ms, &pong.nack) {
            (Some(rtt), _) => {
                self.received += 1;
                self.rtt_ms_sum += rtt;
                self.rtt_ms_square_sum += rtt * rtt;
                let count = self.received as f64;
                let mean = self.rtt_ms_sum / count;
                self.rtt_ms_min = Some(self.rtt_ms_min.map_or(rtt, |least| least.min(rtt)));
                self.rtt_ms_max = Some(self.rtt_ms_max.map_or(rtt, |most| most.max(rtt)));
                self.rtt_ms_mean = Some(mean);
                self.rtt_ms_deviation = Some((self.rtt_ms_square_sum / count - mean * mean).max(0.0).sqrt());
            }
            (None, Some(_)) => self.nacked += 1,
            (None, None) => self.timed_out += 1,
        }
    }

    fn text(&self) -> String {
        let lost = self.nacked + self.timed_out;
        let share = if self.received + lost == 0 { 0.0 } else { lost as f64 * 100.0 / (self.received + lost) as f64 };
        let mut text = format!(
            "--- {} ping statistics ---\n{} sent, {} received, {} Nacks, {} time-outs, {share:.0} % lost\n",
            self.prefix, self.sent, self.received, self.nacked, self.timed_out
        );
        if let (Some(min), Some(mean), Some(max), Some(deviation)) =
            (self.rtt_ms_min, self.rtt_ms_mean, self.rtt_ms_max, self.rtt_ms_deviation)
        {
            text += &format!("rtt min/mean/max/deviation = {min:.3}/{mean:.3}/{max:.3}/{deviation:.3} ms\n");
        }
        text
    }

    fn outcome(&self) -> Result<(), Failure> {
        if self.received > 0 || self.sent == 0 {
            Ok(())
        } else if self.nacked > 0 {
            Err(Failure::new(ExitCode::Nack, "no answers, only Nacks"))
        } else {
            Err(Failure::new(ExitCode::Timeout, "no answers"))
        }
    }
}

pub(crate) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    let name = args.prefix.clone();
    let client = global.connect().await?;
    let measured = match args.forwarders {
        true => measure_forwarders(&client, global, args).await,
        false => measure(&client, global, args).await,
    };
    match measured {
        Err(failure) => Err(explain::blame(&client, failure, name).await),
        done => done,
    }
}

/// Pings that forwarders answer.
async fn measure_forwarders(client: &Client, global: &Global, args: Args) -> Result<(), Failure> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut statistics = Statistics { prefix: args.prefix.to_string(), ..Statistics::default() };
    let mut ticks = tokio::time::interval(Duration::from_millis(args.interval));
    let timeout = Duration::from_millis(args.timeout);
    while args.count.is_none_or(|count| statistics.sent < count) {
        let ping = async {
            ticks.tick().await;
            Echo::once(client, &args.prefix, statistics.sent, timeout).await
        };
        let echo = tokio::select! {
            echo = ping => echo?,
            _ = interrupt.recv() => break,
        };
        statistics.sent += 1;
        let Echo { sequence, rtt_ms, nack, .. } = echo.clone();
        statistics.add(&Pong { sequence, number: sequence, rtt_ms, nack });
        if !args.quiet {
            global.output().print_line(&echo, || echo.text(&args.prefix))?;
        }
    }
    global.output().print_line(&statistics, || statistics.text().trim_end().to_owned())?;
    let is_cut_short = args.count.is_some_and(|count| statistics.sent < count);
    if is_cut_short { Err(Failure::interrupted()) } else { statistics.outcome() }
}

async fn measure(client: &Client, global: &Global, args: Args) -> Result<(), Failure> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut statistics = Statistics { prefix: args.prefix.to_string(), ..Statistics::default() };
    let pings = Pings {
        prefix: args.prefix,
        identifier: None,
        first: fastrand::u64(..) >> 1,
        count: args.count,
        interval: Duration::from_millis(args.interval),
        timeout_ms: args.timeout,
        must_be_fresh: !args.allow_stale,
    };
    let mut pinger = Pinger::new(client.clone(), pings);
    let is_interrupted = loop {
        let ended = tokio::select! {
            ended = pinger.next() => ended,
            _ = interrupt.recv() => break true,
        };
        let Some(ended) = ended else { break false };
        let pong = Pong::of(ended)?;
        statistics.add(&pong);
        if !args.quiet {
            global.output().print_line(&pong, || line(&statistics.prefix, &pong))?;
        }
    };
    statistics.sent = pinger.sent();
    global.output().print_line(&statistics, || statistics.text().trim_end().to_owned())?;
    if is_interrupted && args.count.is_some() { Err(Failure::interrupted()) } else { statistics.outcome() }
}

fn line(prefix: &str, pong: &Pong) -> String {
    match (pong.rtt_ms, &pong.nack) {
        (Some(rtt), _) => format!("content from {prefix}: seq={} time={rtt:.3} ms", pong.sequence),
        (None, Some(reason)) => format!("nack from {prefix}: seq={} reason={reason}", pong.sequence),
        (None, None) => format!("timeout from {prefix}: seq={}", pong.sequence),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_add_up() {
        let mut statistics = Statistics { prefix: "/a".to_owned(), sent: 5, ..Statistics::default() };
        assert_eq!(statistics.outcome().unwrap_err().code(), ExitCode::Timeout);
        let pong = |rtt_ms, nack: Option<&str>| Pong { sequence: 0, number: 0, rtt_ms, nack: nack.map(str::to_owned) };
        statistics.add(&pong(None, Some("NoRoute")));
        assert_eq!(statistics.outcome().unwrap_err().code(), ExitCode::Nack);
        for rtt in [1.0, 2.0, 3.0] {
            statistics.add(&pong(Some(rtt), None));
        }
        statistics.add(&pong(None, None));
        statistics.outcome().unwrap();
        let text = statistics.text();
        assert!(text.contains("5 sent, 3 received, 1 Nacks, 1 time-outs, 40 % lost"), "{text}");
        assert!(text.contains("1.000/2.000/3.000/0.816 ms"), "{text}");
    }
}
