//! Which publications of one producer the member fetches, and when.
//!
//! Question: how does a member catch up with a producer, although some of its publications are lost, some are slow, and
//! a forged vector may announce 2⁶³ of them?
//!
//! ```text
//!   1 … done │ a window of WINDOW numbers: fetched at the same time, each at most TRIES_MAX times │ … last
//! ```
//!
//! The member remembers `done`: every publication up to this number is stored or lost. After a failure, the whole
//! producer pauses. The pause doubles with each failure, and a success ends it. If a whole window is lost, the backlog
//! gives up the older publications and continues with the newest. So a forged number costs a few Interests and little
//! time.
//!
//! Cost: each call takes O(log [`WINDOW`]); [`Backlogs::next`] and [`Backlogs::wake_ms`] take O(producers) if all
//! pause.
//! Memory: one window for each producer.

use super::vector::{News, Producer, StateVector};
use std::{collections::BTreeMap, ops::Bound};

/// Publications of one producer that are fetched at the same time.
pub const WINDOW: u64 = 8;
/// Failures after which a publication is lost.
pub const TRIES_MAX: u32 = 3;
/// The first and the longest pause after a failure.
const PAUSE_FIRST_MS: u64 = 1_000;
const PAUSE_LAST_MS: u64 = 300_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight { failures: u32 },
    Failed { failures: u32 },
    Stored,
}

/// The publications of one producer that are known and not stored.
#[derive(Clone, Debug, Default)]
pub struct Backlog {
    done: u64,
    last: u64,
    /// Numbers of the window that were begun.
    begun: BTreeMap<u64, State>,
    lost_in_row: u64,
    pause_ms: u64,
    /// Nothing is fetched before this moment of the monotonic clock.
    pub not_before_ms: u64,
}

impl Backlog {
    /// Everything up to `done` is stored or lost.
    pub fn new(done: u64) -> Self {
        Backlog { done, last: done, ..Backlog::default() }
    }

    /// The number up to which all is stored or lost.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Learns of publications up to `last`.
    pub fn learn(&mut self, last: u64) {
        self.last = self.last.max(last);
    }

    /// The next number to fetch now. The caller reports its end by [`Backlog::end`].
    pub fn next(&mut self, now_ms: u64) -> Option<u64> {
        if now_ms < self.not_before_ms {
            return None;
        }
        let window = self.done + 1..=self.last.min(self.done.saturating_add(WINDOW));
        for number in window {
            let failures = match self.begun.get(&number) {
                None => 0,
                Some(State::Failed { failures }) if *failures < TRIES_MAX => *failures,
                Some(_) => continue,
            };
            self.begun.insert(number, State::InFlight { failures });
            return Some(number);
        }
        None
    }

    /// A fetch has ended. Returns how many publications are lost by it.
    pub fn end(&mut self, number: u64, is_stored: bool, now_ms: u64) -> u64 {
        let Some(State::InFlight { failures }) = self.begun.get(&number).copied() else { return 0 };
        if is_stored {
            self.begun.insert(number, State::Stored);
            (self.pause_ms, self.not_before_ms) = (0, now_ms);
        } else {
            self.begun.insert(number, State::Failed { failures: failures + 1 });
            self.pause_ms = (self.pause_ms * 2).clamp(PAUSE_FIRST_MS, PAUSE_LAST_MS);
            self.not_before_ms = now_ms + self.pause_ms;
        }
        self.advance()
    }

    fn advance(&mut self) -> u64 {
        let mut lost = 0;
        while let Some(state) = self.begun.get(&(self.done + 1)) {
            match state {
                State::Stored => self.lost_in_row = 0,
                State::Failed { failures: TRIES_MAX.. } => {
                    self.lost_in_row += 1;
                    lost += 1;
                }
                State::Failed { .. } | State::InFlight { .. } => break,
            }
            self.done += 1;
            self.begun.remove(&self.done);
        }
        let newest = self.last.saturating_sub(WINDOW);
        if self.lost_in_row >= WINDOW && newest > self.done && self.begun.is_empty() {
            lost += newest - self.done;
            (self.done, self.lost_in_row) = (newest, 0);
        }
        lost
    }
}

/// What is to be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Whose publication it is.
    pub producer: Producer,
    /// Its number.
    pub number: u64,
    /// Which of its names answered last for this producer ([`super::names::SyncNames::of_publication`]); `None`: not
    /// known.
    pub way: Option<usize>,
}

/// What the end of a fetch changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// How many publications are lost by it.
    pub lost: u64,
    /// The number up to which all is stored or lost, if it rose.
    pub done: Option<u64>,
}

#[derive(Debug)]
struct Source {
    backlog: Backlog,
    way: Option<usize>,
}

/// The backlogs of all producers of a group. Each producer has its turn, so none keeps the others waiting.
#[derive(Debug, Default)]
pub struct Backlogs {
    sources: BTreeMap<Producer, Source>,
    /// The producer that was served last.
    served: Option<Producer>,
}

impl Backlogs {
    /// Everything up to this vector is stored or lost.
    pub fn after(stored: &StateVector) -> Self {
        let source = |(producer, number): (&Producer, u64)| {
            (producer.clone(), Source { backlog: Backlog::new(number), way: None })
        };
        Backlogs { sources: stored.iter().map(source).collect(), served: None }
    }

    /// Learns of publications.
    pub fn learn(&mut self, news: News) {
        let new = || Source { backlog: Backlog::new(news.first - 1), way: None };
        self.sources.entry(news.producer).or_insert_with(new).backlog.learn(news.last);
    }

    /// What to fetch now. The caller reports its end by [`Backlogs::end`].
    pub fn next(&mut self, now_ms: u64) -> Option<Wanted> {
        let after = self.served.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut next = |range: (Bound<&Producer>, Bound<&Producer>)| {
            let mut sources = self.sources.range_mut::<Producer, _>(range);
            sources.find_map(|(producer, source)| {
                let number = source.backlog.next(now_ms)?;
                Some(Wanted { producer: producer.clone(), number, way: source.way })
            })
        };
        let found = next((after, Bound::Unbounded)).or_else(|| next((Bound::Unbounded, Bound::Unbounded)))?;
        self.served = Some(found.producer.clone());
        Some(found)
    }

    /// A fetch has ended: this name answered, or none.
    pub fn end(&mut self, producer: &Producer, number: u64, way: Option<usize>, now_ms: u64) -> Ended {
        let Some(source) = self.sources.get_mut(producer) else { return Ended::default() };
        let before = source.backlog.done();
        let lost = source.backlog.end(number, way.is_some(), now_ms);
        source.way = way;
        let done = source.backlog.done();
        Ended { lost, done: (done > before).then_some(done) }
    }

    /// When a pause ends; `u64::MAX` if there is none.
    pub fn wake_ms(&self, now_ms: u64) -> u64 {
        let pauses = self.sources.values().map(|source| source.backlog.not_before_ms).filter(|at_ms| *at_ms > now_ms);
        pauses.min().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Everything that may be fetched now.
    fn begin(backlog: &mut Backlog, now_ms: u64) -> Vec<u64> {
        std::iter::from_fn(|| backlog.next(now_ms)).collect()
    }

    #[test]
    fn a_window_moves_on_in_order_and_a_failure_pauses() {
        let mut backlog = Backlog::new(2);
        assert!(begin(&mut backlog, 0).is_empty());
        backlog.learn(13);
        assert_eq!(begin(&mut backlog, 0), (3..=10).collect::<Vec<_>>());
        assert_eq!(backlog.end(4, true, 0), 0);
        assert_eq!((backlog.done(), backlog.next(0)), (2, None), "3 is not stored");
        assert_eq!(backlog.end(3, true, 0), 0);
        assert_eq!((backlog.done(), begin(&mut backlog, 0)), (4, vec![11, 12]));
        assert_eq!(backlog.end(5, false, 0), 0);
        assert_eq!((backlog.next(999), backlog.next(1_000)), (None, Some(5)), "after a pause");
        backlog.end(5, false, 1_000);
        assert_eq!((backlog.next(2_999), backlog.next(3_000)), (None, Some(5)), "after twice the pause");
        assert_eq!(backlog.end(5, false, 3_000), 1, "lost");
        assert_eq!(backlog.done(), 5);
    }

    #[test]
    fn a_forged_number_costs_a_few_windows() {
        let mut backlog = Backlog::new(0);
        backlog.learn(u64::MAX - 1);
        let (mut now_ms, mut fetches, mut lost) = (0, 0, 0);
        while backlog.done() < u64::MAX - 1 {
            now_ms = now_ms.max(backlog.not_before_ms);
            for number in begin(&mut backlog, now_ms) {
                fetches += 1;
                lost += backlog.end(number, false, now_ms);
            }
        }
        assert_eq!((fetches, lost), (2 * WINDOW * u64::from(TRIES_MAX), u64::MAX - 1));
        assert!(backlog.next(u64::MAX).is_none());
    }

    #[test]
    fn a_producer_with_much_to_fetch_does_not_keep_the_others_waiting() {
        let producer = |name: &str| Producer { name: name.parse().unwrap(), bootstrap_s: 0 };
        let (greedy, modest) = (producer("/a"), producer("/b"));
        let mut backlogs = Backlogs::after(&StateVector::default());
        backlogs.learn(News { producer: greedy.clone(), first: 1, last: u64::MAX - 1 });
        backlogs.learn(News { producer: modest.clone(), first: 3, last: 4 });
        let order: Vec<_> = std::iter::from_fn(|| backlogs.next(0)).map(|one| (one.producer, one.number)).collect();
        assert_eq!(order[..4], [(greedy.clone(), 1), (modest.clone(), 3), (greedy.clone(), 2), (modest.clone(), 4)]);
        assert_eq!(order.len() as u64, WINDOW + 2);
        assert_eq!(backlogs.end(&modest, 4, Some(1), 0), Ended::default(), "3 is not there");
        assert_eq!(backlogs.end(&modest, 3, Some(1), 0), Ended { lost: 0, done: Some(4) });
        backlogs.learn(News { producer: modest.clone(), first: 5, last: 5 });
        assert_eq!(backlogs.next(0).map(|one| (one.producer, one.way)), Some((modest, Some(1))));
        backlogs.end(&greedy, 1, None, 7);
        assert_eq!((backlogs.wake_ms(7), backlogs.wake_ms(2_000)), (1_007, u64::MAX));
    }

    proptest! {
        /// Whatever fails: each number is stored or lost, and none is fetched twice at the same time.
        #[test]
        fn every_publication_is_stored_or_lost_in_the_end(fails in prop::collection::vec(any::<bool>(), 1..64), last in 1_u64..200) {
            let (mut backlog, mut now_ms, mut lost, mut stored) = (Backlog::new(0), 0, 0, 0);
            backlog.learn(last);
            let mut fails = fails.iter().cycle();
            let mut in_flight = Vec::new();
            while backlog.done() < last {
                now_ms = now_ms.max(backlog.not_before_ms);
                in_flight.extend(begin(&mut backlog, now_ms));
                prop_assert!(in_flight.len() as u64 <= WINDOW);
                // It is never empty: after the pause something may be fetched.
                let number = in_flight.pop().unwrap();
                let is_stored = !fails.next().unwrap();
                stored += u64::from(is_stored);
                lost += backlog.end(number, is_stored, now_ms);
            }
            prop_assert_eq!((backlog.done(), stored + lost), (last, last));
        }
    }
}
