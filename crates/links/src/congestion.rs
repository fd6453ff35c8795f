//! Congestion marks by the length of a send queue (NDNLPv2 §6), at the intervals at which CoDel drops.
//!
//! ```text
//!   queue > threshold ──► next mark = now + interval
//!   still above then  ──► mark, n += 1, next mark += interval / √(n + 1)
//!   queue ≤ threshold ──► start again
//! ```
//!
//! The queue is our own plus the kernel's. The marker asks the kernel by a system call, so it asks only if the answer
//! can matter. If the queue had `q` bytes at the last measurement, it now holds at most `q` plus the bytes written
//! since. While that sum is within the threshold, the marker does not ask. It asks at most once in every 64th part of
//! the interval. So a packet costs a subtraction and two branches, even with marking off.

/// Time between the first measurement of a long queue and the first mark: 100 ms.
pub const DEFAULT_INTERVAL_NS: u64 = 100_000_000;

/// A queue of more bytes is congested.
pub const DEFAULT_THRESHOLD_BYTES: u64 = 65_536;

/// Optional work of one link beyond carrying packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkPolicy {
    /// Acknowledge frames and send lost ones again ([`crate::reliability`]).
    pub reliability: bool,
    /// Mark packets when the send queue is long.
    pub congestion_marking: bool,
    /// BaseCongestionMarkingInterval, in nanoseconds.
    pub marking_interval_ns: u64,
    /// DefaultCongestionThreshold, in bytes.
    pub marking_threshold_bytes: u64,
}

impl Default for LinkPolicy {
    /// No optional work.
    fn default() -> Self {
        LinkPolicy {
            reliability: false,
            congestion_marking: false,
            marking_interval_ns: DEFAULT_INTERVAL_NS,
            marking_threshold_bytes: DEFAULT_THRESHOLD_BYTES,
        }
    }
}

/// Most measurements of the queue in one interval.
const LOOKS_PER_INTERVAL: u64 = 64;

/// When to mark, for one link.
#[derive(Default)]
pub(crate) struct CongestionMarker {
    interval_ns: u64,
    threshold_bytes: u64,
    /// Bytes that can be written before the queue can exceed the threshold.
    unseen_bytes: u64,
    /// The queue is not measured before this.
    next_look_ns: u64,
    /// The last measurement found the queue above the threshold.
    is_long: bool,
    next_mark_ns: Option<u64>,
    /// Marks since the queue was last short.
    marks: u32,
}

impl CongestionMarker {
    /// A marker that marks if `policy` says so.
    pub(crate) fn new(policy: &LinkPolicy) -> Self {
        CongestionMarker {
            interval_ns: policy.marking_interval_ns,
            threshold_bytes: policy.marking_threshold_bytes,
            // N.B. without marking it is never measured: no link writes that many bytes.
            unseen_bytes: if policy.congestion_marking { policy.marking_threshold_bytes } else { u64::MAX },
            ..CongestionMarker::default()
        }
    }

    /// Whether the queue may exceed the threshold, given what is known.
    pub(crate) fn wants_queue_length(&self, now_ns: u64) -> bool {
        self.unseen_bytes == 0 && now_ns >= self.next_look_ns
    }

    pub(crate) fn note_queue_length(&mut self, now_ns: u64, bytes: u64) {
        self.is_long = bytes > self.threshold_bytes;
        self.unseen_bytes = self.threshold_bytes.saturating_sub(bytes);
        self.next_look_ns = now_ns.saturating_add((self.interval_ns / LOOKS_PER_INTERVAL).max(1));
        if !self.is_long {
            (self.next_mark_ns, self.marks) = (None, 0);
        }
    }

    pub(crate) fn note_written(&mut self, bytes: u64) {
        self.unseen_bytes = self.unseen_bytes.saturating_sub(bytes);
    }

    /// Whether the last measurement found the queue above the threshold.
    pub(crate) fn is_long(&self) -> bool {
        self.is_long
    }

    /// Whether the packet sent now must carry a mark.
    pub(crate) fn marks(&mut self, now_ns: u64) -> bool {
        if !self.is_long {
            return false;
        }
        let Some(next_mark_ns) = self.next_mark_ns else {
            self.next_mark_ns = Some(now_ns.saturating_add(self.interval_ns));
            return false;
        };
        if now_ns < next_mark_ns {
            return false;
        }
        self.marks = self.marks.saturating_add(1);
        let pause_ns = self.interval_ns as f64 / (f64::from(self.marks) + 1.0).sqrt();
        self.next_mark_ns = Some(next_mark_ns.saturating_add(pause_ns as u64));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn marker(queue_bytes: u64) -> CongestionMarker {
        let mut marker = CongestionMarker::new(&LinkPolicy { congestion_marking: true, ..LinkPolicy::default() });
        marker.note_queue_length(0, queue_bytes);
        marker
    }

    /// The times, in milliseconds, of the marks when one packet leaves per millisecond.
    fn marked_ms(marker: &mut CongestionMarker, ms: std::ops::Range<u64>) -> Vec<u64> {
        ms.filter(|at| marker.marks(at * MS)).collect()
    }

    #[test]
    fn a_queue_above_the_threshold_is_marked_after_the_interval_and_then_more_often() {
        let mut marker = marker(DEFAULT_THRESHOLD_BYTES + 1);
        // 100, then 100 / √2 = 70.7, 100 / √3 = 57.7, 100 / √4 = 50 later, on the next packet.
        assert_eq!(marked_ms(&mut marker, 0..300), [100, 171, 229, 279]);
        marker.note_queue_length(300 * MS, DEFAULT_THRESHOLD_BYTES);
        assert_eq!(marked_ms(&mut marker, 300..301), []);
        marker.note_queue_length(301 * MS, DEFAULT_THRESHOLD_BYTES + 1);
        assert_eq!(marked_ms(&mut marker, 301..500), [401, 472], "all over again");
    }

    #[test]
    fn a_queue_at_the_threshold_is_not_congested() {
        assert_eq!(marked_ms(&mut marker(DEFAULT_THRESHOLD_BYTES), 0..1000), []);
    }

    #[test]
    fn the_kernel_is_asked_only_when_enough_was_written_and_not_too_often() {
        let mut marker = marker(10_000);
        marker.note_written(DEFAULT_THRESHOLD_BYTES - 10_001);
        assert!(!marker.wants_queue_length(50 * MS));
        marker.note_written(1);
        assert!(!marker.wants_queue_length(MS), "asked before 1.56 ms have passed");
        assert!(marker.wants_queue_length(2 * MS));
        marker.note_queue_length(2 * MS, 0);
        assert!(!marker.wants_queue_length(50 * MS));
        marker.note_queue_length(50 * MS, DEFAULT_THRESHOLD_BYTES + 1);
        assert!(!marker.wants_queue_length(51 * MS));
        assert!(marker.wants_queue_length(52 * MS), "is it still long?");
    }

    #[test]
    fn without_marking_nobody_asks() {
        let mut marker = CongestionMarker::new(&LinkPolicy::default());
        marker.note_written(1 << 60);
        assert!(!marker.wants_queue_length(u64::MAX) && !marker.marks(u64::MAX));
    }
}
