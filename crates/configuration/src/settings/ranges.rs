//! Readers of values that have a range, so that an error names the line.

use crate::text::Prefix;
use crate::units::{Bytes, Span};
use namewire_designs::policies::filter::COUNTERS_LOG2;
use namewire_engine::{MAX_COUNTED_PREFIXES, dispatch::MAX_WORKERS};
use namewire_tables::fingerprint_pit::{MAX_OVERFLOW_ENTRIES, MAX_SEGMENTS};
use serde::{Deserialize, Deserializer, de::Error};
use std::{fmt::Display, ops::RangeInclusive, time::Duration};

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

pub(super) fn workers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    within(deserializer, 1..=MAX_WORKERS as u16)
}

pub(super) fn busy_poll<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
    within(deserializer, Span::default()..=Span::from_secs(1)) // for a worker, a second is for ever
}

pub(super) fn max_lifetime<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
    within(deserializer, Span(Duration::from_millis(1))..=Span::from_secs(864_000))
}

pub(super) fn idle_timeout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
    within(deserializer, Span::from_secs(1)..=Span::from_secs(864_000))
}

pub(super) fn pit_capacity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, 1..=1 << 25)
}

pub(super) fn pit_face_share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, 1..=100)
}

pub(super) fn fib_capacity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, 1..=1 << 25)
}

pub(super) fn dead_nonces<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, 1..=1 << 25)
}

pub(super) fn measurement_capacity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, 1..=1 << 22)
}

/// The maximum fits in 2 GiB, before shares are rounded up. The minimum is 64: two workers with four subtables, each a
/// bucket of at least 8.
pub(super) fn fingerprints<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, 64..=1 << 28)
}

pub(super) fn fingerprint_bits<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    within(deserializer, 1..=16)
}

pub(super) fn subtables<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    match u8::deserialize(deserializer)? {
        number @ (2 | 4) => Ok(number),
        other => Err(D::Error::custom(format!("{other} is neither 2 nor 4"))),
    }
}

pub(super) fn segments<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    within(deserializer, 1..=MAX_SEGMENTS)
}

pub(super) fn overflow<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    within(deserializer, 0..=MAX_OVERFLOW_ENTRIES).map(Some)
}

pub(super) fn face_sets<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    within(deserializer, 1..=u16::MAX)
}

pub(super) fn round_trips<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u8>, D::Error> {
    within(deserializer, 1..=100).map(Some)
}

pub(super) fn max_per_worker<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, 1..=1 << 20)
}

pub(super) fn mtu<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let range = Bytes(64)..=Bytes(namewire_packet::MAX_PACKET_BYTES as u64);
    within(deserializer, range).map(|bytes| Some(bytes.0))
}

/// A limit for the whole router.
pub(super) fn filter_history<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    within(deserializer, 1..=1 << 30).map(Some)
}

pub(super) fn filter_threshold<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u16>, D::Error> {
    within(deserializer, 1..=u16::MAX).map(Some)
}

/// A limit for the whole router.
pub(super) fn tiny_lfu_window<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    within(deserializer, 1..=u32::MAX).map(Some)
}

pub(super) fn w_tiny_lfu_window<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u8>, D::Error> {
    within(deserializer, 1..=100).map(Some)
}

pub(super) fn request_count_least<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    within(deserializer, 1..=1_024).map(Some) // as many downstreams as an entry may have
}

pub(super) fn filter_counters<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let (fewest, most) = COUNTERS_LOG2.into_inner();
    let counters = within(deserializer, 1 << fewest..=1 << most)?;
    if u32::is_power_of_two(counters) {
        return Ok(Some(counters));
    }
    Err(D::Error::custom(format!("{counters} is not a power of two")))
}

pub(super) fn counted_prefixes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Prefix>, D::Error> {
    let prefixes = Vec::<Prefix>::deserialize(deserializer)?;
    if prefixes.len() <= MAX_COUNTED_PREFIXES {
        return Ok(prefixes);
    }
    Err(D::Error::custom(format!("{} prefixes are more than {MAX_COUNTED_PREFIXES}", prefixes.len())))
}
