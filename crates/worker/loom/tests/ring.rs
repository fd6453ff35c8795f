//! The ring under loom: no interleaving of the two threads may lose, tear or repeat a record. None may touch bytes that
//! the other side owns, or leave the consumer asleep for good.
//!
//! Each model explores every interleaving and every value that a relaxed load may return. Loom fails a model that races
//! on the bytes (the shadow cells of `ring::Buffer`) or that ends with a thread parked.

use loom::sync::Arc;
use loom::thread;
use namewire_worker_loom::ring::{self, Consumer, Doorbell, MIN_CAPACITY_BYTES, PushError, RoomWish};

/// Receives the waiting records and checks that the payloads continue the count. It also writes into them, so that loom
/// sees it if the producer reuses the bytes too early.
fn receive(consumer: &mut Consumer, next: &mut u8, max_records: usize) {
    let mut batch = consumer.batch(max_records);
    for record in batch.records() {
        assert!(record.iter().all(|byte| *byte == *next), "{record:?}, expected {next}");
        record.fill(0xEE);
        *next += 1;
    }
}

/// Three records of 16 bytes through a ring of 32: full after two, wraps after the second.
#[test]
fn full_empty_and_wrap() {
    loom::model(|| {
        let (mut producer, mut consumer) = ring::channel(MIN_CAPACITY_BYTES);
        let pushing = thread::spawn(move || {
            let mut refused = 0;
            for number in 0..3u8 {
                match producer.try_push(&[&[number; 3], &[number; 5]]) {
                    Ok(()) => assert!(producer.publish()),
                    Err(error) => {
                        assert_eq!(error, PushError::Full);
                        refused += 1;
                    }
                }
            }
            refused
        });
        let mut next = 0;
        receive(&mut consumer, &mut next, 8);
        receive(&mut consumer, &mut next, 1);
        let refused = pushing.join().unwrap();
        receive(&mut consumer, &mut next, 8);
        receive(&mut consumer, &mut next, 8);
        assert_eq!(next + refused, 3, "every record was delivered or refused");
        assert!(!consumer.has_records());
    });
}

/// Records of 16 and 24 bytes in a ring of 64. The third does not fit before the end, so the producer writes a padding
/// record while the consumer reads and releases.
#[test]
fn padding_before_the_wrap() {
    loom::model(|| {
        let (mut producer, mut consumer) = ring::channel(2 * MIN_CAPACITY_BYTES);
        for number in 0..2u8 {
            producer.try_push(&[&[number; 13]]).unwrap();
        }
        producer.publish();
        // 48 of 64 bytes are taken; the next needs 16 of padding and 24 at offset 0.
        let pushing = thread::spawn(move || {
            let taken = producer.try_push(&[&[2; 13]]).is_ok();
            assert_eq!(producer.publish(), taken);
            taken
        });
        let mut next = 0;
        receive(&mut consumer, &mut next, 1);
        receive(&mut consumer, &mut next, 8);
        let taken = pushing.join().unwrap();
        receive(&mut consumer, &mut next, 8);
        assert_eq!(next, 2 + u8::from(taken));
    });
}

/// Two batches with a gap between them; the second is written while the consumer reads the first. Under loom, batches
/// of 32 bytes have a gap of 8.
#[test]
fn a_gap_between_batches() {
    loom::model(|| {
        let (mut producer, mut consumer) = ring::channel(4 * MIN_CAPACITY_BYTES);
        for number in 0..2u8 {
            producer.try_push(&[&[number; 8]]).unwrap();
        }
        producer.publish();
        let pushing = thread::spawn(move || {
            producer.try_push(&[&[2; 8]]).unwrap();
            producer.publish();
        });
        let mut next = 0;
        receive(&mut consumer, &mut next, 2);
        receive(&mut consumer, &mut next, 2);
        pushing.join().unwrap();
        receive(&mut consumer, &mut next, 2);
        assert_eq!(next, 3);
        assert!(!consumer.has_records());
    });
}

/// A batch published with one store arrives whole: never its first record alone.
#[test]
fn one_publication_shows_all_records() {
    loom::model(|| {
        let (mut producer, mut consumer) = ring::channel(2 * MIN_CAPACITY_BYTES);
        let pushing = thread::spawn(move || {
            producer.try_push(&[&[0; 8]]).unwrap();
            producer.try_push(&[&[1; 2]]).unwrap();
            producer.publish();
        });
        let seen = consumer.batch(8).len();
        assert!(seen == 0 || seen == 2, "saw {seen}");
        pushing.join().unwrap();
        assert_eq!(consumer.batch(8).len(), 2 - seen);
    });
}

/// Sleeps on an empty ring until `expected` records came. Loom reports a deadlock if a wake-up is lost.
fn sleep_until(consumers: &mut [Consumer], bell: &Doorbell, expected: usize) {
    let mut received = 0;
    while received < expected {
        for consumer in consumers.iter_mut() {
            received += consumer.batch(8).len();
        }
        if received < expected && bell.may_sleep(|| consumers.iter_mut().any(Consumer::has_records)) {
            thread::park();
            bell.awake();
        }
    }
}

#[test]
fn no_wake_up_is_lost() {
    loom::model(|| {
        let (mut producer, consumer) = ring::channel(MIN_CAPACITY_BYTES);
        let bell = Arc::new(Doorbell::new());
        let consumer_bell = Arc::clone(&bell);
        let consuming = thread::spawn(move || sleep_until(&mut [consumer], &consumer_bell, 2));
        for number in 0..2u8 {
            producer.try_push(&[&[number; 8]]).unwrap();
            producer.publish();
            bell.ring(|| consuming.thread().unpark());
        }
        consuming.join().unwrap();
    });
}

/// Two producers, two rings, one sleeper. The ringer that loses the race for the flag relies on the other's wake-up.
/// With three threads, loom explores at most three preemptions (all of them would take 4 min).
#[test]
fn two_ringers_share_one_doorbell() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let (mut producer_a, consumer_a) = ring::channel(MIN_CAPACITY_BYTES);
        let (mut producer_b, consumer_b) = ring::channel(MIN_CAPACITY_BYTES);
        let bell = Arc::new(Doorbell::new());
        let consumer_bell = Arc::clone(&bell);
        let consuming = thread::spawn(move || sleep_until(&mut [consumer_a, consumer_b], &consumer_bell, 2));
        let (sleeper, other_bell) = (consuming.thread().clone(), Arc::clone(&bell));
        let other = thread::spawn(move || {
            producer_b.try_push(&[&[9; 8]]).unwrap();
            producer_b.publish();
            other_bell.ring(|| sleeper.unpark());
        });
        producer_a.try_push(&[&[8; 8]]).unwrap();
        producer_a.publish();
        bell.ring(|| consuming.thread().unpark());
        other.join().unwrap();
        consuming.join().unwrap();
    });
}

/// A producer finds its ring full and sleeps until the consumer has made room.
#[test]
fn a_producer_that_waits_for_room_is_woken() {
    loom::model(|| {
        let (mut producer, mut consumer) = ring::channel(MIN_CAPACITY_BYTES);
        (0..2u8).for_each(|number| producer.try_push(&[&[number; 8]]).unwrap());
        producer.publish();
        let (bell, wish) = (Arc::new(Doorbell::new()), Arc::new(RoomWish::default()));
        let (its_bell, its_wish) = (Arc::clone(&bell), Arc::clone(&wish));
        let pushing = thread::spawn(move || {
            while producer.try_push(&[&[2; 8]]).is_err() {
                its_wish.make();
                if producer.try_push(&[&[2; 8]]).is_ok() {
                    break;
                }
                if its_bell.may_sleep(|| !its_wish.is_made()) {
                    thread::park();
                    its_bell.awake();
                }
            }
            producer.publish();
        });
        assert_eq!(consumer.batch(8).len(), 2);
        if wish.take() {
            bell.ring(|| pushing.thread().unpark());
        }
        pushing.join().unwrap();
        assert_eq!(consumer.batch(8).len(), 1);
    });
}

/// How much waits: never less than what does, whatever the consumer releases meanwhile; and right once it has ended.
#[test]
fn what_waits_is_counted() {
    loom::model(|| {
        let (mut producer, mut consumer) = ring::channel(2 * MIN_CAPACITY_BYTES);
        for number in 0..2u8 {
            producer.try_push(&[&[number; 8]]).unwrap();
            producer.publish();
        }
        let releasing = thread::spawn(move || {
            let mut next = 0;
            receive(&mut consumer, &mut next, 1);
            receive(&mut consumer, &mut next, 8);
            assert_eq!(next, 2);
        });
        assert!(!producer.holds_more_than(2, 32));
        producer.holds_more_than(0, 0); // whatever it finds
        producer.try_push(&[&[2; 8]]).unwrap();
        assert!(producer.holds_more_than(0, usize::MAX) && producer.holds_more_than(usize::MAX, 8));
        releasing.join().unwrap();
        assert!(!producer.holds_more_than(1, 16));
    });
}
