//! An engine whose buffers have grown to what packets ask for allocates nothing, whatever
//! they carry: hints of long names, missing nonces, Nacks, prefixes, timers. A file of its
//! own: it counts the allocations of the whole process.
#![allow(unsafe_code, reason = "leaf: an allocator that counts, around the system's")]

use namewire_engine::{
    Engine, EngineConfig, FaceAttributes, FaceId, FaceScope, FaceTable, Frame, Instant, Output, StrategyTable, View,
    dispatch::{Dispatcher, Round},
};
use namewire_packet::{DataBuilder, InterestBuilder, NackReason, Name, NameBuf, Nonce, lp::LpHeaders};
use namewire_tables::{Fib, HashKey, NextHop};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that ends has no counter any more, and none of ours does that here.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call goes to the system's allocator with the arguments that the caller
// vouches for; counting allocates nothing (a const thread local without a destructor).
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above; the block came from `System`.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above; the block came from `System`.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const DOWN: FaceId = FaceId(300);
const OTHER: FaceId = FaceId(301);
const UP: FaceId = FaceId(302);

/// `/<first>/…` of that many components, the last two telling the numbers.
fn name(first: &str, components: usize, round: u32, number: u32) -> NameBuf {
    let mut value = format!("\x08\x01{first}").into_bytes();
    (3..components).for_each(|_| value.extend_from_slice(b"\x08\x01n"));
    for last in [round, number] {
        value.extend_from_slice(&[8, 4]);
        value.extend_from_slice(&last.to_be_bytes());
    }
    Name::parse_value(&value).unwrap().to_buf()
}

/// Packets of one batch, with the face that each comes from.
fn packets(round: u32) -> Vec<(FaceId, LpHeaders, Vec<u8>)> {
    let plain = LpHeaders::default();
    let mut packets = Vec::new();
    for number in 0..9 {
        let nonce = Nonce::from_u32(number);
        let hint: Vec<NameBuf> =
            (0..9).map(|place| name(if place < 7 { "x" } else { "r" }, 30, round, place)).collect();
        let hinted = InterestBuilder::new(name("h", 20, round, number)).forwarding_hint(&hint).nonce(nonce).build();
        let nack = LpHeaders { nack: Some(NackReason::NoRoute), ..plain };
        let asked = name("r", 20, round, number);
        let by_prefix = InterestBuilder::new(&asked).can_be_prefix(true);
        let answer = DataBuilder::new(name("r", 20, round, number).join(namewire_packet::Component::generic(b"x")));
        packets.extend([
            (DOWN, plain, hinted.clone()),
            (DOWN, plain, by_prefix.build()), // without a nonce
            (OTHER, plain, by_prefix.nonce(nonce).build()),
            (UP, nack, hinted),
        ]);
        if number % 2 == 0 {
            packets.push((UP, plain, answer.sign_digest()));
        }
        packets.push((UP, plain, DataBuilder::new(name("u", 20, round, number)).sign_digest()));
    }
    packets
}

#[test]
fn an_engine_allocates_nothing_once_its_buffers_have_grown() {
    let key = HashKey::from_seed(1);
    let dispatcher = Dispatcher::new(1, HashKey::from_seed(2)).into();
    let config = EngineConfig { cs_capacity_packets: 20, dead_nonce_capacity: 50, ..EngineConfig::default() };
    let mut engine = Engine::new(config, 0, dispatcher, key, 3).unwrap();
    let (mut fib, mut faces, strategies) = (Fib::new(10, key), FaceTable::default(), StrategyTable::default());
    for face in [DOWN, OTHER, UP] {
        faces.insert(face, FaceAttributes::new(FaceScope::NonLocal, 0, true));
    }
    fib.insert(b"\x08\x01r", &[NextHop { face: UP.0, cost: 0 }], 0, false).unwrap();
    let view = View { fib: fib.view(), strategies: &strategies, faces: &faces };
    let mut out = Output::default();
    let mut run = |round: u32| {
        let mut packets = packets(round);
        let mut frames: Vec<Frame<'_>> = packets
            .iter_mut()
            .map(|(face, headers, packet)| Frame { face: *face, headers: *headers, packet, round: Round::default() })
            .collect();
        let before = ALLOCATIONS.get();
        engine.process(Instant::default().plus_ms(u64::from(round) * 5000), &view, &mut frames, &mut out);
        engine.run_timers(Instant::default().plus_ms(u64::from(round) * 5000 + 4500), &view, &mut out);
        ALLOCATIONS.get() - before
    };
    assert!(run(0) > 0, "the counter counts: buffers for long names grow");
    (1..10).for_each(|round| assert_eq!(run(round), 0, "allocations in round {round}"));
    let counters = engine.counters();
    let seen = [counters.satisfied, counters.unsatisfied, counters.out_nacks, counters.aggregated];
    assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
    assert!(counters.limits.iter().sum::<u64>() > 0);
}
