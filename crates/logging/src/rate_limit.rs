//! Rate limit: how many lines of a kind may be written? A kind is one statement of the program, for example that a face
//! is up.
//!
//! In a second, [`LINES_PER_SECOND`] lines of a kind are written. The others are counted, and one line gives their
//! number when the second is over. A second begins with the first line of the kind. So ten thousand faces that come
//! and go make about a hundred lines a second, and hide no lines of other kinds.
//!
//! Memory: one entry for each statement that was used. Time is an argument.

use namewire_packet::nfd::LogRecord;
use std::{collections::HashMap, hash::Hash};
use tracing::callsite::Identifier;

/// Lines of a kind that are written in a second.
pub(crate) const LINES_PER_SECOND: u64 = 50;

const SECOND_NS: u64 = 1_000_000_000;

/// One statement of the program.
pub(crate) type Kind = Identifier;

/// The lines of one kind in the present second.
#[derive(Default)]
struct Second {
    ends_ns: u64,
    written: u64,
    refused: u64,
    /// A line of this kind, for the line that gives their number.
    example: Option<LogRecord>,
}

/// The lines of all kinds.
pub(crate) struct RateLimit<K = Kind> {
    kinds: HashMap<K, Second>,
}

impl<K> Default for RateLimit<K> {
    fn default() -> Self {
        RateLimit { kinds: HashMap::new() }
    }
}

/// What happens to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Write,
    /// It is the first in its second that is only counted; [`RateLimit::describe`] takes it as the example.
    CountFirst,
    Count,
}

impl<K: Clone + Eq + Hash> RateLimit<K> {
    /// Judges one more line of this kind. While a number is still to be given, none is written: the number belongs
    /// before the lines of the next second.
    pub(crate) fn judge(&mut self, kind: &K, now_ns: u64) -> Verdict {
        let second = self.kinds.entry(kind.clone()).or_default();
        if now_ns >= second.ends_ns && second.refused == 0 {
            *second = Second { ends_ns: now_ns + SECOND_NS, ..Second::default() };
        }
        if second.written < LINES_PER_SECOND {
            second.written += 1;
            return Verdict::Write;
        }
        second.refused += 1;
        if second.refused == 1 { Verdict::CountFirst } else { Verdict::Count }
    }

    /// Keeps an example of a kind that is counted.
    pub(crate) fn describe(&mut self, kind: &K, example: LogRecord) {
        if let Some(second) = self.kinds.get_mut(kind) {
            second.example = Some(example);
        }
    }

    /// For each kind whose second is over: an example, and how many lines were refused.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Vec<(LogRecord, u64)> {
        let due = self.kinds.values_mut().filter(|second| second.refused > 0 && second.ends_ns <= now_ns);
        due.filter_map(|second| {
            let refused = std::mem::take(&mut second.refused);
            Some((second.example.take()?, refused))
        })
        .collect()
    }

    /// When [`RateLimit::take_due`] has something to give.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        self.kinds.values().filter(|second| second.refused > 0).map(|second| second.ends_ns).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Refuses as the log does: with an example of the first.
    fn take(limit: &mut RateLimit<u8>, kind: u8, now_ns: u64) -> bool {
        let verdict = limit.judge(&kind, now_ns);
        if verdict == Verdict::CountFirst {
            limit.describe(&kind, LogRecord { message: kind.to_string(), ..LogRecord::default() });
        }
        verdict == Verdict::Write
    }

    fn due(limit: &mut RateLimit<u8>, now_ns: u64) -> Vec<(String, u64)> {
        let mut due: Vec<_> =
            limit.take_due(now_ns).into_iter().map(|(record, count)| (record.message, count)).collect();
        due.sort();
        due
    }

    #[test]
    fn a_flood_of_one_kind_is_counted_and_hides_no_other() {
        let mut limit = RateLimit::default();
        let admitted = (0..10_000).filter(|line| take(&mut limit, 1, 5 + line)).count();
        assert_eq!(admitted as u64, LINES_PER_SECOND);
        assert!(take(&mut limit, 2, 20_000), "another kind");
        assert_eq!(limit.next_due_ns(), Some(5 + SECOND_NS));
        assert_eq!(due(&mut limit, 4 + SECOND_NS), [], "the second is not over");
        assert!(!take(&mut limit, 1, 6 + SECOND_NS), "the number comes first");
        assert_eq!(due(&mut limit, 6 + SECOND_NS), [("1".to_owned(), 10_001 - LINES_PER_SECOND)]);
        assert_eq!(limit.next_due_ns(), None);
        assert!(take(&mut limit, 1, 7 + SECOND_NS), "the next second");
        assert_eq!(due(&mut limit, 100 * SECOND_NS), []);
    }

    #[test]
    fn a_slow_trickle_is_never_refused() {
        let mut limit = RateLimit::default();
        for line in 0..1000 {
            assert!(take(&mut limit, 1, line * SECOND_NS / LINES_PER_SECOND), "{line}");
        }
    }

    #[test]
    fn every_line_is_written_or_counted() {
        let mut limit = RateLimit::default();
        let (mut written, mut counted) = (0, 0);
        for tick in 0..100_u64 {
            let now_ns = tick * SECOND_NS / 3;
            for line in 0..tick * 7 % 200 {
                written += u64::from(take(&mut limit, (line % 2) as u8, now_ns));
            }
            counted += due(&mut limit, now_ns).iter().map(|(_, count)| count).sum::<u64>();
        }
        counted += due(&mut limit, u64::MAX).iter().map(|(_, count)| count).sum::<u64>();
        assert_eq!(written + counted, (0..100_u64).map(|tick| tick * 7 % 200).sum::<u64>());
        assert!(written <= 2 * 34 * LINES_PER_SECOND, "{written}");
    }
}
