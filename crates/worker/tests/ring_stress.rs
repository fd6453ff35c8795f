//! The ring: two real threads get every record once, whole and in order, and any sequence of operations gives what a
//! plain queue gives.
//!
//! Oracle: each record carries its number and a checksum (threads); a `VecDeque` (operations).

use namewire_worker::ring::{self, Consumer, Doorbell, Producer, PushError, RECORD_HEADER_BYTES};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

const STRESS_RECORDS: u64 = 1_000_000;

/// Number, checksum, then bytes from a generator seeded with the number.
fn fill_record(number: u64, body: &mut Vec<u8>) -> [u8; 16] {
    let mut random = fastrand::Rng::with_seed(number);
    body.clear();
    // Mostly small, sometimes near the limit: both the dense and the padded case occur often.
    let len = if random.u8(..16) == 0 { random.usize(..1900) } else { random.usize(..100) };
    body.resize_with(len, || random.u8(..));
    let mut head = [0; 16];
    head[..8].copy_from_slice(&number.to_le_bytes());
    head[8..].copy_from_slice(&checksum(body).to_le_bytes());
    head
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn produce(mut producer: Producer, bell: &Doorbell, sleeper: &std::thread::Thread) -> u64 {
    let (mut body, mut random, mut times_full) = (Vec::new(), fastrand::Rng::with_seed(7), 0);
    for number in 0..STRESS_RECORDS {
        let head = fill_record(number, &mut body);
        let (left, right) = body.split_at(body.len() / 3);
        while let Err(error) = producer.try_push(&[&head, left, right]) {
            assert_eq!(error, PushError::Full);
            times_full += 1;
            if producer.publish() {
                bell.ring(|| sleeper.unpark());
            }
            std::thread::yield_now();
        }
        if random.u8(..8) == 0 && producer.publish() {
            bell.ring(|| sleeper.unpark());
        }
    }
    producer.publish();
    bell.ring(|| sleeper.unpark());
    times_full
}

fn consume(mut consumer: Consumer, bell: &Doorbell) -> u64 {
    let (mut body, mut random, mut sleeps) = (Vec::new(), fastrand::Rng::with_seed(9), 0);
    let mut next = 0;
    while next < STRESS_RECORDS {
        let mut batch = consumer.batch(random.usize(1..=64));
        let announced = batch.len();
        // All records of the batch are held at once, as a forwarding batch does.
        let lent: Vec<&mut [u8]> = batch.records().collect();
        assert_eq!(lent.len(), announced);
        for record in lent {
            let head = fill_record(next, &mut body);
            assert_eq!(record.as_ptr().align_offset(8), 0);
            assert_eq!(record[..16], head, "record {next}");
            assert_eq!(checksum(&record[16..]), checksum(&body), "record {next}");
            // The engine writes HopLimit this way: the lent bytes are ours until the batch ends.
            record.fill(0xEE);
            next += 1;
        }
        drop(batch);
        if announced == 0 && bell.may_sleep(|| consumer.has_records()) {
            sleeps += 1;
            let before = Instant::now();
            std::thread::park_timeout(Duration::from_secs(20));
            assert!(before.elapsed() < Duration::from_secs(15), "lost wake-up at record {next}");
            bell.awake();
        }
    }
    sleeps
}

#[test]
fn two_threads_deliver_every_record_in_order() {
    let (producer, consumer) = ring::channel(4096);
    let bell = Arc::new(Doorbell::new());
    let consumer_bell = Arc::clone(&bell);
    let consumer_thread = std::thread::spawn(move || consume(consumer, &consumer_bell));
    let times_full = produce(producer, &bell, consumer_thread.thread());
    let sleeps = consumer_thread.join().expect("the consumer's assertions held");
    // A run that never reached either limit would prove little.
    assert!(times_full > 0 && sleeps > 0, "full {times_full} times, slept {sleeps} times");
}

#[test]
fn a_dropped_producer_leaves_its_records() {
    let (mut producer, mut consumer) = ring::channel(64);
    producer.try_push(&[b"kept"]).expect("the ring is empty");
    assert!(consumer.batch(8).is_empty(), "not published yet");
    drop(producer);
    assert_eq!(consumer.batch(8).records().map(|r| r.to_vec()).collect::<Vec<_>>(), [b"kept"]);
}

#[test]
fn a_record_of_more_than_half_the_ring_is_refused_for_good() {
    let (mut producer, mut consumer) = ring::channel(64);
    assert_eq!(producer.max_record_bytes(), 24);
    // From every start offset, the largest legal record fits in an empty ring.
    for _ in 0..64 {
        producer.try_push(&[&[0]]).expect("empty");
        producer.publish();
        consumer.batch(1);
        producer.try_push(&[&[1; 24]]).expect("empty");
        assert_eq!(producer.try_push(&[&[1; 20], &[1; 5]]), Err(PushError::TooLarge));
        producer.publish();
        consumer.batch(1);
    }
}

#[test]
fn a_leaked_batch_comes_again() {
    let (mut producer, mut consumer) = ring::channel(64);
    producer.try_push(&[b"again"]).expect("empty");
    producer.publish();
    std::mem::forget(consumer.batch(1));
    assert_eq!(consumer.batch(1).records().next().expect("still there"), b"again");
    assert!(!consumer.has_records());
}

#[test]
#[should_panic(expected = "power of two")]
fn a_capacity_that_is_no_power_of_two_is_refused() {
    ring::channel(100);
}

#[derive(Debug, Clone)]
enum Operation {
    Push(Vec<u8>),
    Publish,
    Batch(usize),
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..80).prop_map(Operation::Push),
        2 => Just(Operation::Publish),
        2 => (0usize..6).prop_map(Operation::Batch),
    ]
}

/// The expected behaviour of the ring, with a queue and a sum instead of positions. It knows the layout only as far as
/// the contract states it. A record takes its header and its payload filled up to 8, and starts at offset 0 if it does
/// not fit before the end.
#[derive(Default)]
struct Model {
    waiting: VecDeque<(Vec<u8>, usize)>,
    pushed: VecDeque<(Vec<u8>, usize)>,
    used: usize,
    offset: usize,
}

impl Model {
    fn push(&mut self, payload: &[u8], capacity: usize) -> Result<(), PushError> {
        let span = RECORD_HEADER_BYTES + payload.len().div_ceil(8) * 8;
        if payload.len() > capacity / 2 - RECORD_HEADER_BYTES {
            return Err(PushError::TooLarge);
        }
        let skipped = if self.offset + span > capacity { capacity - self.offset } else { 0 };
        if self.used + skipped + span > capacity {
            return Err(PushError::Full);
        }
        self.used += skipped + span;
        self.offset = (self.offset + skipped + span) % capacity;
        self.pushed.push_back((payload.to_vec(), skipped + span));
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    /// Any sequence of operations gives what a queue gives. A batch may be shorter than the queue would allow, because
    /// the ring looks at the producer only when it must. It is never empty without reason.
    #[test]
    fn agrees_with_a_queue(
        capacity_log2 in 5u32..9,
        operations in prop::collection::vec(operation(), 1..300),
    ) {
        let capacity = 1 << capacity_log2;
        let (mut producer, mut consumer) = ring::channel(capacity);
        let mut model = Model::default();
        for operation in operations {
            match operation {
                Operation::Push(payload) => {
                    let (a, b) = payload.split_at(payload.len() / 2);
                    prop_assert_eq!(producer.try_push(&[a, b]), model.push(&payload, capacity));
                }
                Operation::Publish => {
                    prop_assert_eq!(producer.publish(), !model.pushed.is_empty());
                    model.waiting.append(&mut model.pushed);
                }
                Operation::Batch(max_records) => {
                    prop_assert_eq!(consumer.has_records(), !model.waiting.is_empty());
                    let mut batch = consumer.batch(max_records);
                    let len = batch.len();
                    prop_assert!(len <= max_records);
                    prop_assert!(len > 0 || max_records == 0 || model.waiting.is_empty());
                    for record in batch.records() {
                        let (expected, span) = model.waiting.pop_front().expect("no record from nowhere");
                        prop_assert_eq!(&record[..], &expected[..]);
                        model.used -= span;
                    }
                }
            }
        }
    }
}
