//! The exchange loop: keeps a window of Interests in flight, or a constant rate, and accounts for every Interest.
//!
//! Every Interest ends in exactly one way: its own Data satisfies it, a Nack refuses it, or it is lost when its
//! lifetime (and [`LIFETIME_SLACK_NS`]) has passed. The loop never retransmits, so every loss shows. Latency starts
//! just before the Interest is handed to the kernel. At a constant rate it starts when the Interest was due, so that a
//! stall delays every Interest due during it.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use super::connection::{Connection, PROBE_BASE, wait_readable};
use super::exchange_packets::{ExchangePackets, Received};
use super::load_face::Outbox;
use super::{LoadPlan, LoadReport};
use crate::process;
use crate::statistics::percentile;

/// A Data that arrives this long after the lifetime still counts.
const LIFETIME_SLACK_NS: u64 = 500_000_000;
/// Time between two searches for losses; also the longest wait.
const EXPIRY_INTERVAL: Duration = Duration::from_millis(50);
/// First sequence number of the warm-up.
const WARMUP_BASE: u32 = 0x8000_0000;
/// Interests in flight while the Content Store is filled.
const PREFETCH_WINDOW: u32 = 64;

impl Connection {
    /// Runs warm-up, prefetch and measured part; reports on the measured part.
    pub(super) fn exchange(mut self, plan: &LoadPlan) -> anyhow::Result<LoadReport> {
        // Otherwise the kernel rounds every wait up by 50 µs.
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        let names = plan.names.unwrap_or(plan.count).clamp(1, plan.count.max(1));
        let measured = Phase {
            base: 0,
            names,
            count: plan.count,
            window: plan.window.max(1),
            interval_ns: plan.rate.map(|rate| 1_000_000_000 / u64::from(rate.max(1))),
            lifetime_ns: u64::from(plan.lifetime_ms) * 1_000_000 + LIFETIME_SLACK_NS,
            give_up: plan.give_up,
            echo_tokens: plan.echo_tokens,
            watch: None,
        };
        if plan.warmup > 0 {
            let warmup =
                Phase { base: WARMUP_BASE, names: plan.warmup, count: plan.warmup, interval_ns: None, ..measured };
            Accounts::new(&warmup).run(&mut self)?;
        }
        if plan.from_store {
            let prefetch = Phase { count: names, window: PREFETCH_WINDOW, interval_ns: None, ..measured };
            Accounts::new(&prefetch).run(&mut self)?;
        }
        let report = Accounts::new(&Phase { watch: plan.watch, ..measured }).run(&mut self)?;
        self.close()?;
        Ok(report)
    }
}

/// One uninterrupted series of exchanges.
#[derive(Clone, Copy, Debug)]
struct Phase {
    base: u32,
    names: u32,
    count: u32,
    window: u32,
    interval_ns: Option<u64>,
    lifetime_ns: u64,
    give_up: u32,
    echo_tokens: bool,
    watch: Option<u32>,
}

/// The state of every Interest of a phase.
struct Accounts<'a> {
    phase: &'a Phase,
    started: Instant,
    /// Per name: 0 if nothing is outstanding, else the instant it was sent (or due) plus one.
    sent_at: Vec<u64>,
    latencies_ns: Vec<u32>,
    /// Interests sent so far; the n-th is for name n modulo the number of names.
    next: u32,
    /// All Interests before this one are settled.
    oldest: u32,
    in_flight: u32,
    lost: u32,
    expiry_checked_ns: u64,
    report: LoadReport,
}

impl<'a> Accounts<'a> {
    fn new(phase: &'a Phase) -> Self {
        Self {
            phase,
            started: Instant::now(),
            sent_at: vec![0; phase.names as usize],
            latencies_ns: Vec::with_capacity(phase.count as usize),
            next: 0,
            oldest: 0,
            in_flight: 0,
            lost: 0,
            expiry_checked_ns: 0,
            report: LoadReport::default(),
        }
    }

    fn run(mut self, connection: &mut Connection) -> anyhow::Result<LoadReport> {
        let account = |pid: Option<u32>| pid.and_then(process::cpu_time_ns);
        let own_pid = Some(std::process::id());
        let (watched_before, own_before) = (account(self.phase.watch), account(own_pid));
        self.started = Instant::now();
        while !self.is_over() {
            self.send_due(&mut connection.packets, &mut connection.consumer.outbox);
            connection.consumer.flush()?;
            let [consumer_ready, producer_ready] =
                wait_readable(&[&connection.consumer, &connection.producer], self.longest_wait())?;
            let packets = &connection.packets;
            if producer_ready {
                connection.producer.receive(|wire, outbox| self.answer(packets, wire, outbox))?;
            }
            connection.producer.flush()?;
            if consumer_ready {
                let now_ns = self.now_ns();
                connection.consumer.receive(|wire, _| self.settle(packets, wire, now_ns))?;
            }
            self.expire();
        }
        self.report.elapsed_ns = self.now_ns();
        let spent = |before: Option<u64>, after: Option<u64>| after?.checked_sub(before?);
        self.report.watched_cpu_ns = spent(watched_before, account(self.phase.watch));
        self.report.watched_resident_kib = self.phase.watch.and_then(process::resident_kib);
        self.report.generator_cpu_ns = spent(own_before, account(own_pid));
        Ok(self.finish())
    }

    fn now_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    fn is_over(&self) -> bool {
        (self.next == self.phase.count && self.in_flight == 0) || self.lost > self.phase.give_up
    }

    fn longest_wait(&self) -> Duration {
        match self.phase.interval_ns {
            Some(interval_ns) if self.next < self.phase.count && self.in_flight < self.phase.window => {
                let due_ns = u64::from(self.next) * interval_ns;
                EXPIRY_INTERVAL.min(Duration::from_nanos(due_ns.saturating_sub(self.now_ns())))
            }
            _ => EXPIRY_INTERVAL,
        }
    }

    /// Fills the window, as far as the rate allows.
    fn send_due(&mut self, packets: &mut ExchangePackets, outbox: &mut Outbox) {
        if self.in_flight >= self.phase.window || self.next == self.phase.count {
            return;
        }
        let now_ns = self.now_ns();
        while self.in_flight < self.phase.window && self.next < self.phase.count {
            let due_ns = self.phase.interval_ns.map_or(now_ns, |interval_ns| u64::from(self.next) * interval_ns);
            let index = self.next % self.phase.names;
            let sent_at = &mut self.sent_at[index as usize];
            if due_ns > now_ns || *sent_at != 0 {
                return;
            }
            *sent_at = due_ns + 1;
            self.next += 1;
            self.in_flight += 1;
            outbox.push(|out| packets.write_interest(self.phase.base + index, out));
        }
    }

    /// The producer handles a packet.
    fn answer(&mut self, packets: &ExchangePackets, wire: &[u8], outbox: &mut Outbox) {
        match packets.classify(wire) {
            (Received::Interest(sequence), token) => {
                let is_ours = sequence.wrapping_sub(self.phase.base) < self.phase.names;
                self.report.producer_interests += u64::from(is_ours);
                self.report.producer_tokens += u64::from(is_ours && token.is_some());
                let token = token.filter(|_| self.phase.echo_tokens);
                outbox.push(|out| packets.write_data(sequence, token, out));
            }
            (Received::Foreign, _) => {}
            _ => self.report.wrong += 1,
        }
    }

    /// The consumer handles a packet. A probe may be answered late: on a busy machine several are sent.
    fn settle(&mut self, packets: &ExchangePackets, wire: &[u8], now_ns: u64) {
        let (received, _) = packets.classify(wire);
        let (Received::Data(sequence) | Received::Nack(sequence)) = received else {
            self.report.wrong += u64::from(received != Received::Foreign);
            return;
        };
        if sequence >= PROBE_BASE {
            return;
        }
        let index = sequence.wrapping_sub(self.phase.base);
        let sent_at = self.sent_at.get_mut(index as usize).filter(|sent_at| **sent_at != 0);
        let Some(sent_at) = sent_at else {
            self.report.unexpected += 1;
            return;
        };
        let latency_ns = now_ns.saturating_sub(*sent_at - 1);
        *sent_at = 0;
        self.in_flight -= 1;
        if let Received::Nack(_) = received {
            self.report.nacks += 1;
            self.lost += 1;
        } else {
            self.report.satisfied += 1;
            self.latencies_ns.push(u32::try_from(latency_ns).unwrap_or(u32::MAX));
        }
    }

    /// Gives up Interests whose lifetime has passed. They were sent in order, so only the oldest need a look.
    fn expire(&mut self) {
        let now_ns = self.now_ns();
        if now_ns - self.expiry_checked_ns < EXPIRY_INTERVAL.as_nanos() as u64 {
            return;
        }
        self.expiry_checked_ns = now_ns;
        while self.oldest < self.next {
            let sent_at = &mut self.sent_at[(self.oldest % self.phase.names) as usize];
            if *sent_at != 0 {
                if now_ns.saturating_sub(*sent_at - 1) < self.phase.lifetime_ns {
                    return;
                }
                *sent_at = 0;
                self.in_flight -= 1;
                self.lost += 1;
            }
            self.oldest += 1;
        }
    }

    fn finish(mut self) -> LoadReport {
        self.report.sent = u64::from(self.next);
        self.report.unsatisfied = u64::from(self.phase.count) - self.report.satisfied;
        self.latencies_ns.sort_unstable();
        self.report.latency_ns_p50 = percentile(&self.latencies_ns, 50.0);
        self.report.latency_ns_p99 = percentile(&self.latencies_ns, 99.0);
        self.report.latency_ns_max = self.latencies_ns.last().copied().unwrap_or(0);
        self.report
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::load::exchange_packets::ExchangeShape;
    use crate::load::load_face::LoadFace;
    use namewire_packet::tlv::{element_size, types};

    const PHASE: Phase = Phase {
        base: 0,
        names: 500,
        count: 500,
        window: 16,
        interval_ns: None,
        lifetime_ns: 150_000_000,
        give_up: 500,
        echo_tokens: false,
        watch: None,
    };

    /// Copies elements from one stream to the other. `copies` may change an element and says how often to send it.
    fn pass(mut from: UnixStream, mut to: UnixStream, mut copies: impl FnMut(usize, &mut Vec<u8>) -> usize) {
        let (mut buffer, mut chunk, mut number) = (Vec::new(), [0; 4096], 0);
        while let Ok(bytes @ 1..) = from.read(&mut chunk) {
            buffer.extend_from_slice(&chunk[..bytes]);
            while let Ok(Some(size)) = element_size(&buffer)
                && size <= buffer.len()
            {
                let mut element: Vec<u8> = buffer.drain(..size).collect();
                number += 1;
                for _ in 0..copies(number, &mut element) {
                    // The test ends by closing the streams; elements in flight do not matter then.
                    let _ = to.write_all(&element);
                }
            }
        }
    }

    /// Runs one phase through a fake router, which treats Interests and Data as the closures say.
    fn run_through(
        phase: Phase,
        interests: impl FnMut(usize, &mut Vec<u8>) -> usize + Send + 'static,
        data: impl FnMut(usize, &mut Vec<u8>) -> usize + Send + 'static,
    ) -> LoadReport {
        let (consumer, consumer_peer) = UnixStream::pair().expect("a pair");
        let (producer, producer_peer) = UnixStream::pair().expect("a pair");
        let forth = (consumer_peer.try_clone().expect("a copy"), producer_peer.try_clone().expect("a copy"));
        std::thread::spawn(move || pass(forth.0, forth.1, interests));
        std::thread::spawn(move || pass(producer_peer, consumer_peer, data));
        let shape = ExchangeShape {
            run: "test",
            stream: 0,
            content_bytes: 100,
            can_be_prefix: false,
            lifetime_ms: 100,
            freshness_ms: 1,
            seed: 1,
        };
        let mut connection = Connection::of_faces(
            LoadFace::stream(consumer).expect("a face"),
            LoadFace::stream(producer).expect("a face"),
            ExchangePackets::new(&shape).expect("a legal shape"),
        );
        Accounts::new(&phase).run(&mut connection).expect("the streams hold")
    }

    #[test]
    fn a_faithful_router_loses_nothing() {
        let report = run_through(PHASE, |_, _| 1, |_, _| 1);
        assert!(report.is_clean(), "{report:?}");
        assert_eq!((report.sent, report.satisfied, report.producer_interests), (500, 500, 500));
        assert!(report.latency_ns_p50 > 0 && report.latency_ns_p99 >= report.latency_ns_p50);
    }

    #[test]
    fn lost_interests_are_lost_exchanges() {
        let report = run_through(PHASE, |number, _| usize::from(number % 100 != 0), |_, _| 1);
        assert_eq!((report.sent, report.satisfied, report.unsatisfied), (500, 495, 5), "{report:?}");
        assert_eq!(report.producer_interests, 495);
        assert!(!report.is_clean());
    }

    #[test]
    fn damaged_and_repeated_data_are_counted_apart() {
        let damage_or_repeat = |number: usize, wire: &mut Vec<u8>| {
            if number == 10 {
                // The last bytes are the signature's; 20 before the end is content.
                let at = wire.len() - 20;
                wire[at] ^= 1;
            }
            if number == 20 { 2 } else { 1 }
        };
        let report = run_through(PHASE, |_, _| 1, damage_or_repeat);
        assert_eq!(
            (report.satisfied, report.unsatisfied, report.wrong, report.unexpected),
            (499, 1, 1, 1),
            "{report:?}"
        );
    }

    #[test]
    fn late_answers_to_probes_are_no_exchanges() {
        let report =
            run_through(Phase { base: PROBE_BASE - 1, names: 3, count: 3, give_up: 2, ..PHASE }, |_, _| 1, |_, _| 1);
        assert_eq!((report.satisfied, report.unexpected, report.wrong), (1, 0, 0), "{report:?}");
    }

    #[test]
    fn a_nack_is_no_interest_to_a_producer() {
        let refuse = |number: usize, wire: &mut Vec<u8>| {
            if number == 7 {
                let interest = std::mem::take(wire);
                namewire_packet::tlv::write_nested(wire, types::LP_PACKET, |out| {
                    namewire_packet::tlv::write_tlv(out, types::LP_NACK, &[]);
                    namewire_packet::tlv::write_tlv(out, types::LP_FRAGMENT, &interest);
                });
            }
            1
        };
        // The false router sends the Nack to the producer's side, where it is no Interest.
        let report = run_through(PHASE, refuse, |_, _| 1);
        assert_eq!((report.unsatisfied, report.wrong), (1, 1), "{report:?}");
    }

    #[test]
    fn a_pace_is_kept_and_a_run_that_loses_everything_gives_up() {
        let paced =
            run_through(Phase { interval_ns: Some(1_000_000), count: 100, names: 100, ..PHASE }, |_, _| 1, |_, _| 1);
        assert!(paced.is_clean(), "{paced:?}");
        assert!(paced.elapsed_ns >= 99_000_000, "{paced:?}");
        let dead = run_through(Phase { give_up: 20, ..PHASE }, |_, _| 0, |_, _| 1);
        assert_eq!((dead.satisfied, dead.unsatisfied), (0, 500), "{dead:?}");
        assert!(dead.sent < 100, "{dead:?}");
    }
}
