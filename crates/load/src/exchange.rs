//! The exchange loop: keeps a window of Interests in flight, or a constant rate, and accounts for every Interest.
//!
//! Every Interest ends in exactly one way: its own Data satisfies it, a Nack refuses it, or it is lost when its time
//! ([`Phase::lost_after_ns`]) has passed. The loop never retransmits, so every loss shows. Latency starts
//! just before the Interest is handed to the kernel. At a constant rate, latency starts when the Interest was due. So a
//! stall shows in every Interest that was due during it.

use std::io;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::exchange_packets::{ExchangePackets, Received};
use crate::link::{Link, Outbox, wait_readable};

/// Time between two searches for losses; also the longest wait.
const EXPIRY_INTERVAL: Duration = Duration::from_millis(50);
/// Limit for the path to come up: a router answers the command before it applies the route.
pub const PROBE_LIMIT: Duration = Duration::from_secs(5);
/// Time between two probes.
pub const PROBE_INTERVAL: Duration = Duration::from_millis(20);
/// First sequence number of the probes, above all others.
pub const PROBE_BASE: u32 = 0xF000_0000;

/// Consumer and producer, each connected to the router.
#[derive(Debug)]
pub struct Exchange {
    /// Sends Interests.
    pub consumer: Link,
    /// Answers them.
    pub producer: Link,
    /// What they send.
    pub packets: ExchangePackets,
}

impl Exchange {
    /// Sends Interests until a Data comes back.
    ///
    /// # Errors
    /// If none comes within [`PROBE_LIMIT`], or a connection is broken.
    pub fn probe(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + PROBE_LIMIT;
        let mut is_answered = false;
        for sequence in PROBE_BASE.. {
            if Instant::now() >= deadline {
                let text = format!("no Data came back within {PROBE_LIMIT:?}: does the route work?");
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            self.consumer.outbox.push(|out| self.packets.write_interest(sequence, out));
            self.consumer.flush()?;
            let next = Instant::now() + PROBE_INTERVAL;
            while !is_answered && Instant::now() < next {
                let packets = &self.packets;
                wait_readable(&[&self.consumer, &self.producer], PROBE_INTERVAL)?;
                self.producer.receive(|wire, outbox| {
                    if let (Received::Interest(sequence), token) = packets.classify(wire) {
                        outbox.push(|out| packets.write_data(sequence, token, out));
                    }
                })?;
                self.producer.flush()?;
                self.consumer
                    .receive(|wire, _| is_answered |= matches!(packets.classify(wire).0, Received::Data(_)))?;
            }
            if is_answered {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Makes one series of exchanges.
    ///
    /// # Errors
    /// If a connection is broken.
    pub fn run(&mut self, phase: &Phase) -> io::Result<LoadReport> {
        Accounts::new(phase).run(self)
    }
}

/// What became of the Interests of a series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadReport {
    /// Interests sent in the measured part.
    pub sent: u64,
    /// Interests answered by the right Data.
    pub satisfied: u64,
    /// Interests whose lifetime passed, or that were never sent because the run gave up.
    pub unsatisfied: u64,
    /// Nacks received (counted in `unsatisfied` too).
    pub nacks: u64,
    /// Data that were damaged, or did not answer their Interest.
    pub wrong: u64,
    /// Data that answered no outstanding Interest: duplicates, or later than the lifetime.
    pub unexpected: u64,
    /// Interests that reached the producer in the measured part.
    pub producer_interests: u64,
    /// How many of these carried a PIT token.
    pub producer_tokens: u64,
    /// Duration of the measured part.
    pub elapsed_ns: u64,
    /// CPU time of the watched process over the measured part; this and the next two are for who watches processes.
    pub watched_cpu_ns: Option<u64>,
    /// Resident memory of the watched process at the end, in KiB.
    pub watched_resident_kib: Option<u64>,
    /// CPU time of the load generator itself over the measured part.
    pub generator_cpu_ns: Option<u64>,
    /// Median latency.
    pub latency_ns_p50: u32,
    /// 99th percentile of the latency.
    pub latency_ns_p99: u32,
    /// Largest latency.
    pub latency_ns_max: u32,
}

impl LoadReport {
    /// True if every Interest was sent and answered by exactly its Data.
    pub const fn is_clean(&self) -> bool {
        self.unsatisfied == 0 && self.wrong == 0 && self.nacks == 0 && self.satisfied == self.sent && self.sent > 0
    }
}

/// One uninterrupted series of exchanges.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    /// Sequence number of the first name.
    pub base: u32,
    /// Different names.
    pub names: u32,
    /// Interests.
    pub count: u32,
    /// Most Interests in flight.
    pub window: u32,
    /// Time from one Interest to the next; without it, as the window allows.
    pub interval_ns: Option<u64>,
    /// An Interest without a Data is lost after this time.
    pub lost_after_ns: u64,
    /// The series ends after so many lost Interests.
    pub give_up: u32,
    /// Answer with the PIT token of the Interest.
    pub echo_tokens: bool,
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

    fn run(mut self, links: &mut Exchange) -> io::Result<LoadReport> {
        self.started = Instant::now();
        while !self.is_over() {
            self.send_due(&mut links.packets, &mut links.consumer.outbox);
            links.consumer.flush()?;
            let [consumer_ready, producer_ready] =
                wait_readable(&[&links.consumer, &links.producer], self.longest_wait())?;
            let packets = &links.packets;
            if producer_ready {
                links.producer.receive(|wire, outbox| self.answer(packets, wire, outbox))?;
            }
            links.producer.flush()?;
            if consumer_ready {
                let now_ns = self.now_ns();
                links.consumer.receive(|wire, _| self.settle(packets, wire, now_ns))?;
            }
            self.expire();
        }
        self.report.elapsed_ns = self.now_ns();
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
                if now_ns.saturating_sub(*sent_at - 1) < self.phase.lost_after_ns {
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

/// The value below which `percent` of `sorted` lies (nearest rank); 0 if empty.
///
/// `sorted` must be in ascending order.
pub fn percentile(sorted: &[u32], percent: f64) -> u32 {
    if sorted.is_empty() {
        return 0;
    }
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::ExchangeShape;
    use namewire_packet::tlv::{element_size, types};

    const PHASE: Phase = Phase {
        base: 0,
        names: 500,
        count: 500,
        window: 16,
        interval_ns: None,
        lost_after_ns: 150_000_000,
        give_up: 500,
        echo_tokens: false,
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
        let mut links = Exchange {
            consumer: Link::stream(consumer).expect("a link"),
            producer: Link::stream(producer).expect("a link"),
            packets: ExchangePackets::new(&shape).expect("a legal shape"),
        };
        links.run(&phase).expect("the streams hold")
    }

    #[test]
    fn percentiles_are_nearest_rank() {
        let sorted: Vec<u32> = (1..=100).collect();
        assert_eq!(percentile(&sorted, 50.0), 50);
        assert_eq!(percentile(&sorted, 99.0), 99);
        assert_eq!(percentile(&sorted, 100.0), 100);
        assert_eq!(percentile(&sorted, 0.0), 1);
        assert_eq!(percentile(&[7], 99.0), 7);
        assert_eq!(percentile(&[], 50.0), 0);
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
