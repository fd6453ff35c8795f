//! Reads values that have a range, so that an error names the line.

use crate::text::Prefix;
use crate::units::{Bytes, Span};
use namewire_designs::policies::filter::{COUNTERS_LOG2, COUNTERS_PER_NAME};
use namewire_engine::{MAX_COUNTED_PREFIXES, dispatch::MAX_WORKERS};
use namewire_tables::{
    fib::MAX_FLOWS,
    fingerprint_pit::{MAX_OVERFLOW_ENTRIES, MAX_SEGMENTS},
};
use serde::{Deserialize, Deserializer, de::Error};
use std::{fmt::Display, ops::RangeInclusive, time::Duration};

/// Most trees of a router.
const MAX_TREES: usize = 16;

/// The MTUs that a face may have.
const MTU_BYTES: RangeInclusive<Bytes> = Bytes(64)..=Bytes(namewire_packet::MAX_PACKET_BYTES as u64);

fn within<'de, D: Deserializer<'de>, T: Deserialize<'de> + PartialOrd + Display>(
    deserializer: D,
    range: RangeInclusive<T>,
) -> Result<T, D::Error> {
    let value = T::deserialize(deserializer)?;
    if range.contains(&value) {
        return Ok(value);
    }
    Err(D::Error::custom(format!("{value} is not from {} to {}", range.start(), range.end())))
}

/// Declares readers of numbers by their ranges; an optional number is one that may be left out.
macro_rules! ranges {
    ($kind:ident $($(#[$about:meta])* $name:ident: $value:ty = $range:expr;)+) => {$(
        $(#[$about])*
        pub(super) fn $name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ranges!(@$kind $value), D::Error> {
            within::<D, $value>(deserializer, $range).map(Into::into)
        }
    )+};
    (@required $value:ty) => { $value };
    (@optional $value:ty) => { Option<$value> };
}

ranges! {
    required
    workers: u16 = 1..=MAX_WORKERS as u16;
    io_threads: u16 = 0..=MAX_WORKERS as u16 - 1;
    max_lifetime: Span = Span(Duration::from_millis(1))..=Span::from_secs(864_000);
    idle_timeout: Span = Span::from_secs(1)..=Span::from_secs(864_000);
    udp_mtu: Bytes = MTU_BYTES;
    pit_capacity: u32 = 1..=1 << 25;
    pit_face_share: u32 = 1..=100;
    fib_capacity: u32 = 1..=1 << 25;
    dead_nonces: u32 = 1..=1 << 25;
    measurement_capacity: u32 = 1..=1 << 22;
    flow_cache: u32 = 0..=MAX_FLOWS;
    /// The maximum fits in 2 GiB, before shares are rounded up. The minimum is 64: two workers with four subtables,
    /// each a bucket of at least 8.
    fingerprints: u32 = 64..=1 << 28;
    fingerprint_bits: u8 = 1..=16;
    segments: u8 = 1..=MAX_SEGMENTS;
    face_sets: u16 = 1..=u16::MAX;
    max_per_worker: u32 = 1..=1 << 20;
    tag_descriptors: u32 = 1..=1 << 27;
    readers: u16 = 1..=64;
    probe_rate: u32 = 1..=100_000;
    commands_max: u32 = 1..=1 << 20;
    commands_running: u32 = 1..=1 << 16;
    retention_interval: Span = Span::from_secs(1)..=Span::from_secs(864_000);
}

ranges! {
    optional
    overflow: u32 = 0..=MAX_OVERFLOW_ENTRIES;
    round_trips: u8 = 1..=100;
    /// A limit for the whole router.
    filter_history: u32 = 1..=1 << 30;
    filter_threshold: u16 = 1..=u16::MAX;
    filter_counters_per_name: u8 = COUNTERS_PER_NAME;
    /// A limit for the whole router.
    tiny_lfu_window: u32 = 1..=u32::MAX;
    w_tiny_lfu_window: u8 = 1..=100;
    // As many downstreams as an entry may have.
    request_count_least: u32 = 1..=1_024;
}

pub(super) fn subtables<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    match u8::deserialize(deserializer)? {
        number @ (2 | 4) => Ok(number),
        other => Err(D::Error::custom(format!("{other} is neither 2 nor 4"))),
    }
}

pub(super) fn mtu<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    within(deserializer, MTU_BYTES).map(|bytes| Some(bytes.0))
}

pub(super) fn filter_counters<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let (fewest, most) = COUNTERS_LOG2.into_inner();
    let counters = within(deserializer, 1 << fewest..=1 << most)?;
    if u32::is_power_of_two(counters) {
        return Ok(Some(counters));
    }
    Err(D::Error::custom(format!("{counters} is not a power of two")))
}

pub(super) fn trees<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u16>, D::Error> {
    let trees = Vec::<u16>::deserialize(deserializer)?;
    if trees.len() > MAX_TREES {
        return Err(D::Error::custom(format!("{} trees are more than {MAX_TREES}", trees.len())));
    }
    match trees.iter().enumerate().find(|(place, tree)| **tree == 0 || trees[..*place].contains(tree)) {
        Some((_, 0)) => Err(D::Error::custom("no tree has the number 0")),
        Some((_, tree)) => Err(D::Error::custom(format!("tree {tree} is there twice"))),
        None => Ok(trees),
    }
}

pub(super) fn counted_prefixes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Prefix>, D::Error> {
    let prefixes = Vec::<Prefix>::deserialize(deserializer)?;
    if prefixes.len() <= MAX_COUNTED_PREFIXES {
        return Ok(prefixes);
    }
    Err(D::Error::custom(format!("{} prefixes are more than {MAX_COUNTED_PREFIXES}", prefixes.len())))
}
