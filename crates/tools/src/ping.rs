//! `namewire ping`: round-trip times to a ping server.
//!
//! The protocol is that of ndnping: Interests for `/<prefix>/ping/<number>` with MustBeFresh. The number has decimal
//! digits in a generic component, and counts up from a random start. The printed numbers count from 0.

use crate::{ExitCode, Failure, Global, explain, name_argument, quantity};
use namewire_client::{Client, ExpressError};
use namewire_packet::{InterestBuilder, NameBuf};
use serde::Serialize;
use std::time::Duration;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval},
};

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
    match measure(&client, global, args).await {
        Err(failure) => Err(explain::blame(&client, failure, name).await),
        done => done,
    }
}

async fn measure(client: &Client, global: &Global, args: Args) -> Result<(), Failure> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut prefix = args.prefix.clone();
    prefix.push_generic(b"ping");
    let mut statistics = Statistics { prefix: args.prefix.to_string(), ..Statistics::default() };
    let first = fastrand::u64(..) >> 1;
    let mut ticks = interval(Duration::from_millis(args.interval));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Bounded by time: each ping ends after `timeout`.
    let (sender, mut pongs) = mpsc::unbounded_channel();
    let wants_more = |sent: u64| args.count.is_none_or(|count| sent < count);
    let (mut answered, mut is_interrupted) = (0, false);
    while wants_more(statistics.sent) || answered < statistics.sent {
        tokio::select! {
            _ = ticks.tick(), if wants_more(statistics.sent) => {
                let mut name = prefix.clone();
                name.push_generic(first.wrapping_add(statistics.sent).to_string().as_bytes());
                let interest = InterestBuilder::new(name).must_be_fresh(!args.allow_stale).lifetime_ms(args.timeout);
                let (client, sender, sequence) = (client.clone(), sender.clone(), statistics.sent);
                tokio::spawn(async move {
                    let start = Instant::now();
                    let result = client.express(&interest).await;
                    drop(sender.send((sequence, result.map(|_| start.elapsed()))));
                });
                statistics.sent += 1;
            }
            Some((sequence, result)) = pongs.recv() => {
                answered += 1;
                let (rtt_ms, nack) = match result {
                    Ok(rtt) => (Some(rtt.as_secs_f64() * 1000.0), None),
                    Err(ExpressError::Nack(reason)) => (None, Some(reason.to_string())),
                    Err(ExpressError::Timeout(_)) => (None, None),
                    Err(error) => return Err(error.into()),
                };
                let pong = Pong { sequence, number: first.wrapping_add(sequence), rtt_ms, nack };
                statistics.add(&pong);
                if !args.quiet {
                    global.output().print_line(&pong, || line(&statistics.prefix, &pong))?;
                }
            }
            _ = interrupt.recv() => {
                is_interrupted = true;
                break;
            }
        }
    }
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
