//! A rate of fetching: when may the next segment be asked for?
//!
//! Fetches that share a limit keep to it together. Each reserves a turn for its next segment, in the order in which
//! they ask, and sends that Interest when the turn has come. So none of them wakes for the turn of another.
//!
//! An Interest is charged with the bytes of content that its segment probably has: the mean of the segments that the
//! fetch has received, or what its limits of size and segments say, or [`SEGMENT_BYTES_GUESS`].
//!
//! Limit: after a pause, what was not used of the last [`RATE_BURST`] is caught up with. A turn of a fetch that ends
//! before it is lost.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// Content of a segment of which nothing is known.
pub(crate) const SEGMENT_BYTES_GUESS: u64 = 8000;
/// Longest pause that is caught up with.
const RATE_BURST: Duration = Duration::from_millis(20);

/// Bytes of content per second, of all fetches that share it.
#[derive(Debug)]
pub struct RateLimit {
    bytes_per_s: u64,
    /// The turn after the last one that was reserved; `None`: there was none.
    next: Mutex<Option<Instant>>,
}

impl RateLimit {
    /// At most so many bytes per second, at least 1.
    pub fn new(bytes_per_s: u64) -> Self {
        RateLimit { bytes_per_s: bytes_per_s.max(1), next: Mutex::new(None) }
    }

    /// When a segment of `bytes` may be asked for.
    pub(crate) fn reserve(&self, now: Instant, bytes: u64) -> Instant {
        // A panic elsewhere leaves a time, and any time will do.
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = next.unwrap_or(now).max(now.checked_sub(RATE_BURST).unwrap_or(now));
        *next = Some(turn + Duration::from_secs_f64(bytes as f64 / self.bytes_per_s as f64));
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fetches_that_share_a_limit_take_turns() {
        let (limit, start) = (RateLimit::new(1000), Instant::now());
        let after_ms = |turn: Instant| turn.duration_since(start).as_millis();
        let turns: Vec<_> = [500, 250, 1000, 1].iter().map(|bytes| after_ms(limit.reserve(start, *bytes))).collect();
        assert_eq!(turns, [0, 500, 750, 1750]);
    }

    #[test]
    fn a_pause_is_caught_up_with_for_a_moment_only() {
        let (limit, start) = (RateLimit::new(1000), Instant::now());
        limit.reserve(start, 1);
        let later = start + Duration::from_secs(60);
        let in_time = (0..1000).take_while(|_| limit.reserve(later, 1) <= later).count();
        assert_eq!(in_time, 21);
    }
}
