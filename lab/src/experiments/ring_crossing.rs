//! What does a packet cost when its name or its face belongs to another worker?
//!
//! The run uses the router's own rings (`namewire_worker::mesh`), metadata included. The sending worker writes metadata
//! and bytes and publishes a batch. The receiving worker borrows the batch, decodes the metadata and reads every cache
//! line of every packet. This shows the transfer between the cores: the engine would read the packet anyway, but from
//! its own cache. Time in which a side only waits for the other does not count, nor does the work before and after
//! (sockets, engine).
//!
//! * *two threads*: on a processor each; at most [`BATCHES_IN_FLIGHT`] batches between them, as between workers that
//!   keep up.
//! * *one thread*: both ends in turn, so that no line moves: the cost of the instructions.
//! * *line-round-trip*: one cache line, written by the two processors in turn. It shows their distance: some 160 cycles
//!   on this kind of processor if they share a last-level cache, some 1,000 if not. A host may move a virtual machine's
//!   processors during the run, and the ring's cost follows.
//!
//! The headline is the more expensive of Interest and Data in full batches: the cost of one packet for sender and
//! receiver together. Limits: waking a sleeping worker (a system call, once per sleep), and cores that share no
//! last-level cache.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use namewire_packet::FaceId;
use namewire_packet::lp::{LpHeaders, PitToken};
use namewire_worker::mesh::{self, Bell, Inbox, Outbox, Room, Task};

use crate::clock::Clock;
use crate::experiment::{Context, Outcome, Samples, Scale};
use crate::process;
use crate::statistics::Summary;

pub(super) const FILE: &str = include_str!("ring_crossing.toml");

/// A batch of the router: most records that a worker takes from a ring in one turn.
const FULL_BATCH_PACKETS: usize = 64;

/// Most batches that the sender is ahead.
const BATCHES_IN_FLIGHT: u64 = 4;

/// Distance between the bytes that the receiver reads: a cache line.
const LINE_BYTES: usize = 64;

/// A packet of a typical size for its kind.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    bytes: usize,
}

const KINDS: [Kind; 2] = [Kind { name: "interest-100", bytes: 100 }, Kind { name: "data-250", bytes: 250 }];

/// The cost of one crossing for each side, in ticks of [`ticks`].
#[derive(Clone, Copy, Debug)]
struct Crossing {
    /// The sender: metadata, copy, publication.
    sender_ticks: f64,
    /// The receiver: borrowing, metadata, reading the bytes.
    receiver_ticks: f64,
}

impl Crossing {
    /// Both sides together.
    fn total_ticks(&self) -> f64 {
        self.sender_ticks + self.receiver_ticks
    }
}

/// Cycles for one packet that crosses between two processors in full batches, both sides together, for the more
/// expensive of an Interest of 100 bytes and a Data of 250. `None` with only one processor or without a cycle counter.
/// It is a single repetition: the caller takes the median of several.
///
/// Cost: some 40 ms for 2,000 batches of each.
///
/// # Errors
/// If the threads cannot be placed.
pub fn crossing_cycles(clock: &Clock, batches: u64) -> anyhow::Result<Option<f64>> {
    let (Some(cpus), Some(_)) = (process::processors_to_pin(), clock.tsc_hz()) else { return Ok(None) };
    let mut dearer = 0.0_f64;
    for kind in KINDS {
        dearer = dearer.max(two_threads(clock, cpus, kind, FULL_BATCH_PACKETS, batches)?.total_ticks());
    }
    Ok(Some(dearer))
}

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let (repetitions, batches) = match context.scale {
        Scale::Smoke => (3, 500),
        Scale::Quick => (15, 10_000),
        Scale::Full => (31, 20_000),
    };
    let cpus = process::processors_to_pin();
    let cases: Vec<(Kind, usize)> =
        KINDS.into_iter().flat_map(|kind| [1, 8, FULL_BATCH_PACKETS].map(|batch| (kind, batch))).collect();
    let mut table = Table { clock: &context.clock, samples: BTreeMap::new() };
    context.plan_steps(repetitions * cases.len());
    for _ in 0..repetitions {
        for &(kind, batch) in &cases {
            let case = format!("{}-batch-{batch}", kind.name);
            context.begin_step(&case)?;
            table.add(&case, "one thread", one_thread(&context.clock, kind, batch, batches)?);
            if let Some(cpus) = cpus {
                table.add(&case, "two threads", two_threads(&context.clock, cpus, kind, batch, batches)?);
            }
        }
        if let Some(cpus) = cpus {
            table.add_one("line-round-trip", "two threads", "both", line_round_trip(&context.clock, cpus, batches)?);
        }
    }
    Ok(table.outcome(cpus))
}

/// Repetitions by case, subject and metric, in nanoseconds.
struct Table<'a> {
    clock: &'a Clock,
    samples: BTreeMap<(String, &'static str, &'static str), Samples>,
}

impl Table<'_> {
    fn add(&mut self, case: &str, subject: &'static str, crossing: Crossing) {
        for (metric, value) in
            [("sender", crossing.sender_ticks), ("receiver", crossing.receiver_ticks), ("both", crossing.total_ticks())]
        {
            self.add_one(case, subject, metric, value);
        }
    }

    fn add_one(&mut self, case: &str, subject: &'static str, metric: &'static str, value: f64) {
        self.samples.entry((case.to_owned(), subject, metric)).or_default().add(value);
    }

    fn outcome(self, cpus: Option<(usize, usize)>) -> Outcome {
        let row = |((case, subject, metric), samples): (&(String, &'static str, &'static str), &Samples)| {
            let per = if case == "line-round-trip" { "round trip" } else { "packet" };
            samples.row(case, subject, metric, &format!("{} per {per}", self.clock.tick_unit()), None)
        };
        let rows: Vec<_> = self.samples.iter().map(row).collect();
        let full = KINDS.map(|kind| format!("{}-batch-{FULL_BATCH_PACKETS}", kind.name));
        let dearest = |cases: &[String], subject: &str| {
            let of_both = rows.iter().filter(|row| row.subject == subject && row.metric == "both");
            let medians =
                of_both.filter(|row| cases.contains(&row.case)).filter_map(|row| Some(row.value.as_ref()?.median));
            medians.max_by(f64::total_cmp)
        };
        let values = [
            ("ring_crossing", dearest(&full, "two threads")),
            ("ring_one_thread", dearest(&full, "one thread")),
            ("line_round_trip", dearest(&["line-round-trip".to_owned()], "two threads")),
        ];
        let mut headline = BTreeMap::new();
        for (key, value) in values {
            let Some(value) = value else { continue };
            if let Some(hz) = self.clock.tsc_hz() {
                headline.insert(format!("{key}_cycles"), value);
                headline.insert(format!("{key}_ns"), value * 1e9 / hz);
            } else {
                headline.insert(format!("{key}_ns"), value);
            }
        }
        let notes = vec![
            "A sample is the median over the batches of one run, divided by the packets of a batch.".to_owned(),
            match cpus {
                Some((sender, receiver)) => format!("Sender on CPU {sender}, receiver on CPU {receiver}."),
                None => "Only one CPU: two threads were not measured.".to_owned(),
            },
        ];
        Outcome { rows, headline, notes, ..Outcome::default() }
    }
}

/// The rings of two workers; only the direction from the first to the second is used.
fn connect() -> anyhow::Result<(Outbox, Inbox)> {
    let bells: Arc<[Bell]> = [Bell::new()?, Bell::new()?].into();
    let mut ends = mesh::connect(&bells).into_iter();
    let (Some((outbox, _)), Some((_, inbox))) = (ends.next(), ends.next()) else {
        anyhow::bail!("two workers need two ends");
    };
    Ok((outbox, inbox))
}

/// The metadata of a packet: a face, a token and an incoming face, as for forwarded Data.
fn headers() -> LpHeaders {
    LpHeaders { pit_token: PitToken::new(&[7; 6]), incoming_face_id: Some(FaceId(300)), ..LpHeaders::default() }
}

/// The sender's part of one batch; false if the ring was full.
fn send(outbox: &mut Outbox, packets: usize, packet: &[u8], headers: &LpHeaders) -> bool {
    let task = Task::Transmit;
    let is_sent = (0..packets).all(|_| outbox.push(1, Room::All, task, FaceId(301), headers, packet));
    outbox.publish();
    is_sent
}

/// The receiver's part: the number of packets, and a sum over their bytes.
fn receive(inbox: &mut Inbox) -> (u64, u64) {
    let (mut packets, mut sum) = (0, 0);
    inbox.drain_transmissions(FULL_BATCH_PACKETS, |records| {
        for record in records {
            packets += 1;
            let lines: u64 = record.packet.iter().step_by(LINE_BYTES).map(|&byte| u64::from(byte)).sum();
            sum += lines + record.face.0 + u64::from(record.headers.pit_token.is_some());
        }
    });
    (packets, sum)
}

/// The sum that [`receive`] must return for one packet.
fn expected_sum(kind: Kind) -> u64 {
    kind.bytes.div_ceil(LINE_BYTES) as u64 + 301 + 1
}

fn one_thread(clock: &Clock, kind: Kind, batch: usize, batches: u64) -> anyhow::Result<Crossing> {
    let (mut outbox, mut inbox) = connect()?;
    let (packet, headers) = (vec![1; kind.bytes], headers());
    let (mut sender, mut receiver) = (Vec::new(), Vec::new());
    for _ in 0..batches {
        let started = clock.ticks();
        let is_sent = send(&mut outbox, batch, &packet, &headers);
        let sent = clock.ticks();
        let (packets, sum) = receive(&mut inbox);
        let received = clock.ticks();
        anyhow::ensure!(is_sent && packets == batch as u64 && sum == packets * expected_sum(kind), "a packet was lost");
        sender.push(per_packet(started, sent, packets));
        receiver.push(per_packet(sent, received, packets));
    }
    summed_up(&sender, &receiver)
}

fn two_threads(
    clock: &Clock,
    (sender_cpu, receiver_cpu): (usize, usize),
    kind: Kind,
    batch: usize,
    batches: u64,
) -> anyhow::Result<Crossing> {
    let (mut outbox, mut inbox) = connect()?;
    let total = batches * batch as u64;
    let received_total = AtomicU64::new(0);
    let failed = AtomicBool::new(false);
    let (sender, receiver) = std::thread::scope(|scope| {
        let sending = scope.spawn(|| -> anyhow::Result<Vec<f64>> {
            process::stay_on(sender_cpu).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
            let (packet, headers) = (vec![1; kind.bytes], headers());
            let mut samples = Vec::new();
            let in_flight = BATCHES_IN_FLIGHT * batch as u64;
            for sent_batches in 0..batches {
                let sent_packets = sent_batches * batch as u64;
                while sent_packets - received_total.load(Ordering::Relaxed) >= in_flight {
                    anyhow::ensure!(!failed.load(Ordering::Relaxed), "the receiver failed");
                    std::hint::spin_loop();
                }
                let started = clock.ticks();
                let is_sent = send(&mut outbox, batch, &packet, &headers);
                samples.push(per_packet(started, clock.ticks(), batch as u64));
                anyhow::ensure!(is_sent, "the ring was full with {in_flight} packets in flight");
            }
            Ok(samples)
        });
        let receiving = scope.spawn(|| -> anyhow::Result<Vec<f64>> {
            process::stay_on(receiver_cpu).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
            let mut samples = Vec::new();
            let (mut received, mut total_sum) = (0, 0);
            while received < total {
                if !inbox.has_transmissions() {
                    anyhow::ensure!(!failed.load(Ordering::Relaxed), "the sender failed");
                    std::hint::spin_loop();
                    continue;
                }
                let started = clock.ticks();
                let (packets, sum) = receive(&mut inbox);
                samples.push(per_packet(started, clock.ticks(), packets));
                received += packets;
                total_sum += sum;
                received_total.store(received, Ordering::Relaxed);
            }
            anyhow::ensure!(total_sum == total * expected_sum(kind), "a packet was damaged");
            Ok(samples)
        });
        let sent = sending.join();
        failed.store(!matches!(sent, Ok(Ok(_))), Ordering::Relaxed);
        (sent, receiving.join())
    });
    let samples = |side: std::thread::Result<anyhow::Result<Vec<f64>>>| {
        side.map_err(|_| anyhow::anyhow!("a measuring thread panicked")).and_then(|samples| samples)
    };
    summed_up(&samples(sender)?, &samples(receiver)?)
}

/// Ticks for a round trip: the other processor writes a line, this one reads and writes it, the other one reads it.
fn line_round_trip(clock: &Clock, cpus: (usize, usize), trains: u64) -> anyhow::Result<f64> {
    /// Round trips timed together.
    const TRAIN: u64 = 16;
    let line = AtomicU64::new(0);
    let failed = AtomicBool::new(false);
    // Each side waits for its turn, odd or even, then passes the turn on.
    let play = |cpu: usize, turn: u64| -> anyhow::Result<Vec<f64>> {
        process::stay_on(cpu).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
        let mut samples = Vec::new();
        let mut started = clock.ticks();
        for round_trip in 1..=trains * TRAIN {
            let expected = 2 * (round_trip - 1) + turn;
            while line.load(Ordering::Acquire) != expected {
                anyhow::ensure!(!failed.load(Ordering::Relaxed), "the other side failed");
                std::hint::spin_loop();
            }
            line.store(expected + 1, Ordering::Release);
            if round_trip % TRAIN == 0 {
                let now = clock.ticks();
                samples.push(per_packet(started, now, TRAIN));
                started = now;
            }
        }
        Ok(samples)
    };
    let (mine, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| play(cpus.1, 1));
        (scope.spawn(|| play(cpus.0, 0)).join(), other.join())
    });
    let samples = mine.map_err(|_| anyhow::anyhow!("a measuring thread panicked"))??;
    other.map_err(|_| anyhow::anyhow!("a measuring thread panicked"))??;
    Summary::of(&samples).map(|summary| summary.median).ok_or_else(|| anyhow::anyhow!("nothing was measured"))
}

fn per_packet(started: u64, ended: u64, packets: u64) -> f64 {
    ended.saturating_sub(started) as f64 / packets.max(1) as f64
}

/// Medians: single disturbed batches have little effect.
fn summed_up(sender: &[f64], receiver: &[f64]) -> anyhow::Result<Crossing> {
    match (Summary::of(sender), Summary::of(receiver)) {
        (Some(sender), Some(receiver)) => Ok(Crossing { sender_ticks: sender.median, receiver_ticks: receiver.median }),
        _ => anyhow::bail!("nothing was measured"),
    }
}
