//! Adaptive window: window and SIEVE, with the window size that did best in miniature.
//!
//! Source: ours; the parts are from the literature. [`WindowSieve`] decides which Data is stored and
//! evicted. Three [`Miniature`]s of it try different windows ([`WINDOW_PERCENTS`]). No fixed window does
//! well everywhere. Independent requests (the web workloads of Takemasa19 §5.4.1) do best without a window;
//! then little is stored. Bursts do best if every newcomer stays for a while.
//!
//! The sketch counts every request, and halves its counts every W requests, as in W-TinyLFU. A miniature
//! with 1/n of the entries sees 1/n of the names. An epoch has [`EPOCH_PER_ENTRY`] requests for each entry.
//! At its end each miniature loses a twentieth of its score and adds its hits. Then the store takes the
//! window of the miniature with the best score, but only if this score beats the score of the present
//! window's miniature by more than 1/[`BETTER_BY`]. No score stays more than a third behind the
//! best.
//!
//! Cost: a request (B2) writes 1 line of the sketch and, if the miniatures see its name, some lines that
//! are in cache. They see 1 name in 400 at 10⁵ entries, and 1 in 4 at 1,024 or fewer. A hit writes at most
//! the entry's own line. For the other calls see [`WindowSieve`].
//! Bytes: an entry takes 8 for the sketch and 5 for the queue. The three miniatures take some 30 KiB each.
//! Limits: Interests that are never answered are counted as if Data had arrived.
//! Writers: the worker that owns the store.
//!
//! N.B. Other ways were tried on the lab's traces, with stores of 0.1, 1 and 10 % of the objects. One half
//! of each trace served to choose, the other half to confirm.
//! - A window that grows when names it just evicted are requested again. Three counterweights were tried.
//!   With such requests for names of the main part (as in ARC), or with the frequency of its victims, the
//!   policy was as good on the traces, and up to 12 points behind on video. With hits of entries that a
//!   comparison had spared, it was worse.
//! - Hill climbing by the hit ratio (W-TinyLFU): up to 6 points behind, because epochs differ too much from
//!   one another.
//! - No window: 21 points behind on the trace `orm` (`lab/record`).
//! - Epochs of 2 and 10 requests for each entry, and W = 30 × the entries: within 0.4 points on average.
//! - Beginning without a window: 4 points behind on traces of few epochs.
//! - Scores that forget a tenth in an epoch: 1.4 points behind on video with 0.1 % of the objects. With 1,000
//!   entries and 8 videos at a time, an epoch has the Data of 4 views, and two views of one video chose
//!   another window. Scores that forget a fortieth: within 0.02 points on average.
//! - Scores that may be a half behind the best, or all of it: 0.2 points better on video with 0.1 % (six
//!   seeds), but after a long workload the store took up to twice as long to follow the next one. A quarter:
//!   0.9 points behind there. An eighth: 1.5 points.
//! - An advantage of 2 to 10 % for the present window (instead of 0.5 %), or of 1 to 3 standard deviations of
//!   the hits: up to 2.6 points behind on video with 10 %, where the store kept its first window.

use super::frequency_sketch::{FEWEST_COUNTED, FrequencySketch, window};
use super::miniature::{MOST_ENTRIES, Miniature};
use super::window_sieve::WindowSieve;
use super::{Eviction, Marks, Newcomer, RemovalReason};
use crate::pages::PageSize;
use std::io;

/// The windows that are tried, in percent of the entries; the store begins with the first.
pub const WINDOW_PERCENTS: [u32; 3] = [20, 0, 100];
/// Requests until the windows are compared again, for each entry.
pub const EPOCH_PER_ENTRY: u64 = 4;
/// Another window must be better by one part in this number.
pub const BETTER_BY: u64 = 200;

/// In an epoch a score forgets one part in this number.
const FORGETS: u64 = 20;
/// A score is behind the best by at most one part in this number, so that a former workload does not decide
/// for long.
const BEHIND_MOST: u64 = 3;
/// What one hit adds to a score: large, so that divisions lose little.
const SCORE_OF_HIT: u64 = 256;
/// The store has at least this many times the entries of a miniature, so that most requests are not for a
/// miniature. (With 1 for stores of 1,024 and fewer: 0.02 points better, and five times as slow there.)
const SMALLEST_SCALE: u32 = 4;
/// The shortest epoch, in requests.
const SHORTEST_EPOCH: u64 = 500;

/// The store's own window, and the miniatures.
pub struct AdaptiveWindow {
    sketch: FrequencySketch,
    policy: WindowSieve,
    miniatures: [Miniature; WINDOW_PERCENTS.len()],
    scores: [u64; WINDOW_PERCENTS.len()],
    /// The miniatures see a name if its [`number`] is below this; 0 until the store is full.
    sampled_below: u64,
    /// Entries of each miniature.
    miniature_entries: u32,
    until_epoch: u64,
}

impl AdaptiveWindow {
    /// A policy for this many entries.
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(entries: u32, pages: PageSize) -> io::Result<Self> {
        let [first, second, third] = WINDOW_PERCENTS.map(|percent| Miniature::new(percent, pages));
        Ok(Self {
            sketch: FrequencySketch::new(entries.max(FEWEST_COUNTED), window(entries), pages)?,
            policy: WindowSieve::new(entries, WINDOW_PERCENTS[0], pages)?,
            miniatures: [first?, second?, third?],
            scores: [0; WINDOW_PERCENTS.len()],
            sampled_below: 0,
            miniature_entries: 0,
            until_epoch: 0,
        })
    }

    /// The store's present window, in percent of its entries.
    pub fn window_percent(&self) -> u32 {
        self.policy.window_percent()
    }

    #[inline]
    fn sample(&mut self, hash: u64) {
        if number(hash) < self.sampled_below {
            for miniature in &mut self.miniatures {
                miniature.request(hash, self.miniature_entries, &self.sketch);
            }
        }
        self.until_epoch -= 1;
        if self.until_epoch == 0 {
            self.compare();
            self.begin_epoch();
        }
    }

    /// Bytes may limit the store, so the epoch depends on how many entries it holds.
    #[cold]
    fn begin_epoch(&mut self) {
        let held = self.policy.len();
        self.miniature_entries = held.div_ceil(SMALLEST_SCALE).min(MOST_ENTRIES);
        let sampled_below = (u64::from(self.miniature_entries) << 32) / u64::from(held.max(1));
        if sampled_below < self.sampled_below {
            self.miniatures.iter_mut().for_each(|miniature| miniature.retain(|hash| number(hash) < sampled_below));
        }
        self.sampled_below = sampled_below;
        self.until_epoch = (EPOCH_PER_ENTRY * u64::from(held)).max(SHORTEST_EPOCH);
        self.sketch.set_window(window(held));
    }

    fn compare(&mut self) {
        let (mut own, mut best) = (0, (0, 0));
        for (miniature, score) in self.miniatures.iter_mut().zip(&mut self.scores) {
            *score = *score - *score / FORGETS + SCORE_OF_HIT * miniature.take_hits();
            if miniature.window_percent() == self.policy.window_percent() {
                own = *score;
            }
            best = best.max((*score, miniature.window_percent()));
        }
        let least = best.0 - best.0 / BEHIND_MOST;
        self.scores.iter_mut().for_each(|score| *score = least.max(*score));
        if best.0 > own + own / BETTER_BY {
            self.policy.set_window_percent(best.1);
        }
    }
}

impl Eviction for AdaptiveWindow {
    #[inline]
    fn request(&mut self, hash: u64) {
        self.sketch.increment(hash);
        if self.sampled_below > 0 {
            self.sample(hash);
        }
    }

    #[inline]
    fn prefetch_request(&self, hash: u64) {
        self.sketch.prefetch(hash);
    }

    #[inline]
    fn hit(&mut self, marks: &mut impl Marks, slot: u32) {
        self.policy.hit(marks, slot);
    }

    #[inline]
    fn admits(&mut self, marks: &mut impl Marks, newcomer: &Newcomer) -> bool {
        if self.sampled_below == 0 {
            self.begin_epoch();
        }
        self.policy.admits(marks, newcomer, &self.sketch)
    }

    #[inline]
    fn victim(&mut self, marks: &mut impl Marks, _: &Newcomer) -> Option<u32> {
        self.policy.victim(marks, &self.sketch)
    }

    #[inline]
    fn insert(&mut self, marks: &mut impl Marks, slot: u32, _: &Newcomer) {
        self.policy.insert(marks, slot);
    }

    fn take_over(&mut self, marks: &mut impl Marks, slot: u32, _: &Newcomer) {
        self.policy.take_over(marks, slot);
    }

    #[inline]
    fn remove(&mut self, marks: &mut impl Marks, slot: u32, _: RemovalReason) {
        self.policy.remove(marks, slot);
    }

    fn upcoming(&self, count: usize, slots: &mut Vec<u32>) {
        self.policy.upcoming(count, slots);
    }

    fn grow(&mut self, entries: u32) -> io::Result<()> {
        self.policy.grow(entries)?;
        self.sketch.resize(entries.max(FEWEST_COUNTED), window(entries))
    }

    fn bytes(&self) -> usize {
        let miniatures: usize = self.miniatures.iter().map(Miniature::bytes).sum();
        self.sketch.bytes() + self.policy.bytes() + miniatures
    }
}

/// A number below 2³², independent of the bits that place the hash in a table.
#[inline]
fn number(hash: u64) -> u64 {
    hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scores by hand: a twentieth is forgotten in each epoch, the best must be better by more than 1 in 200, and
    /// the others are at most a third behind it.
    #[test]
    fn another_window_must_be_better_by_enough() {
        let mut policy = AdaptiveWindow::new(100, PageSize::Base).unwrap();
        let mut epoch = |hits: [u64; 3]| {
            for (miniature, hits) in policy.miniatures.iter_mut().zip(hits) {
                (0..hits).for_each(|_| miniature.request(7, 10, &policy.sketch));
            }
            policy.compare();
            (policy.scores, policy.window_percent())
        };
        assert_eq!(epoch([1, 1, 1]), ([0; 3], 20), "the first request of each hits nothing");
        assert_eq!(epoch([200, 201, 0]), ([51_200, 51_456, 34_304], 20), "better by 1 in 200");
        assert_eq!(epoch([1, 1, 0]), ([48_896, 49_140, 32_760], 20));
        assert_eq!(epoch([0, 1, 0]), ([46_452, 46_939, 31_293], 0), "better by more");
        assert_eq!(epoch([165, 0, 0]), ([86_370, 57_580, 57_580], 20), "and back");
        assert_eq!(epoch([0, 0, 109]), ([82_052, 55_070, 82_605], 100), "what was is forgotten");
    }
}
