//! One sync group: what a member does when a sync Interest arrives, its timer expires or it publishes.
//!
//! Question: when does a member send a sync Interest, so that all members learn what one of them knows, and few members
//! send the same news?
//!
//! ```text
//!             vector older than ours            timer: the others know all that we know
//!   steady ───────────────────────► suppression ───────────────────────────────► steady
//!     ▲ timer, every 30 s: send          │ timer, after a random time: someone still lacks something
//!     └──────────────────────────────────┴──────────────────────────────────────► send, steady
//! ```
//!
//! In suppression, the member merges all vectors that arrive. If the result is as new as our vector, other members have
//! answered, and we send nothing. We do not treat a vector as old if we learned what it lacks within the last
//! suppression period: its sender may have sent it before that news arrived.
//!
//! In version 3 a sync Interest carries a Data that its sender signed. A member without a key of the group, such as a
//! repository, repeats Data of others: for each producer, the Data that announced its highest number. (ndnd's
//! repository does the same.) In version 2, or with a key, it sends its own vector.
//!
//! Limits: the caller admits each new producer; a vector with a bootstrap time of more than a day ahead is ignored, as
//! the specification says. If one Data of version 3 announced several producers, they share one copy of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Version;
use super::vector::{News, Producer, StateVector};
use super::wire::{VectorError, read_parameters, write_vector};

/// How far ahead of our clock a bootstrap time may be.
const BOOTSTRAP_AHEAD_S: u64 = 86_400;

/// Times of a group.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Mean time between sync Interests in a group where nothing happens. It varies by a tenth.
    pub period_ms: u64,
    /// The longest wait in suppression.
    pub suppression_ms: u64,
}

impl Limits {
    /// The times that NDNts (version 2) and ndnd (version 3) have.
    pub const fn of(version: Version) -> Self {
        let suppression_ms = match version {
            Version::V2 => 2_200,
            Version::V3 => 200,
        };
        Limits { period_ms: 30_000, suppression_ms }
    }
}

/// The time of an event.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Milliseconds of a clock that never goes back.
    pub monotonic_ms: u64,
    /// Seconds since 1970.
    pub unix_s: u64,
}

/// What a sync Interest told.
#[derive(Debug, PartialEq, Eq)]
pub struct Received {
    /// What to fetch.
    pub news: Vec<News>,
    /// Producers that were not admitted; nothing of them is fetched.
    pub left_out: usize,
}

/// Why a sync Interest is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IgnoredError {
    /// Its parameters are not a vector of this version.
    #[error(transparent)]
    Vector(#[from] VectorError),
    /// A bootstrap time is more than a day ahead.
    #[error("a bootstrap time is more than a day ahead")]
    FarFuture,
}

/// The state of one group.
#[derive(Debug)]
pub struct Group {
    version: Version,
    limits: Limits,
    vector: StateVector,
    /// When the number of a producer last rose.
    raised_ms: BTreeMap<Producer, u64>,
    /// Version 3: the parameters that told the number of a producer.
    told: BTreeMap<Producer, Arc<[u8]>>,
    /// In suppression: all that arrived since it began.
    merged: Option<StateVector>,
    timer_ms: u64,
}

impl Group {
    /// Joins with what was stored before. The first sync Interest is due at once.
    pub fn new(version: Version, limits: Limits, stored: StateVector, now: Now) -> Self {
        let timer_ms = now.monotonic_ms;
        let (raised_ms, told) = (BTreeMap::new(), BTreeMap::new());
        Group { version, limits, vector: stored, raised_ms, told, merged: None, timer_ms }
    }

    /// What the group is known to have published.
    pub fn vector(&self) -> &StateVector {
        &self.vector
    }

    /// When [`Group::on_timer`] is due, on the monotonic clock.
    pub fn timer_ms(&self) -> u64 {
        self.timer_ms
    }

    /// Takes the ApplicationParameters of a sync Interest. `random` is uniform in 0..1. `admit` is called for each new
    /// producer and says if the group may have it.
    ///
    /// # Errors
    /// [`IgnoredError`] if nothing was taken from them.
    pub fn on_interest(
        &mut self,
        parameters: &[u8],
        now: Now,
        random: f64,
        admit: impl FnMut() -> bool,
    ) -> Result<Received, IgnoredError> {
        let theirs = read_parameters(self.version, parameters)?;
        if theirs.iter().any(|(producer, _)| producer.bootstrap_s > now.unix_s.saturating_add(BOOTSTRAP_AHEAD_S)) {
            return Err(IgnoredError::FarFuture);
        }
        let (news, left_out) = self.vector.merge(&theirs, admit);
        for item in &news {
            self.raised_ms.insert(item.producer.clone(), now.monotonic_ms);
        }
        if self.version == Version::V3 {
            self.keep_told(&theirs, parameters);
        }
        if let Some(merged) = &mut self.merged {
            merged.merge(&theirs, || true);
        }
        let (is_outdated, must_answer) = self.judge(&theirs, now);
        if !is_outdated {
            self.enter_steady(now, random);
        } else if must_answer && self.merged.is_none() {
            self.merged = Some(theirs);
            self.timer_ms = now.monotonic_ms + self.suppression_ms(random);
        }
        Ok(Received { news, left_out })
    }

    /// Keeps these parameters for each producer of which they tell the newest.
    fn keep_told(&mut self, theirs: &StateVector, parameters: &[u8]) {
        let shared: Arc<[u8]> = parameters.into();
        for (producer, number) in theirs.iter().filter(|(producer, _)| self.vector.get(producer) > 0) {
            if number >= self.vector.get(producer) {
                self.told.insert(producer.clone(), Arc::clone(&shared));
            }
        }
    }

    /// Whether the vector is older than ours, and whether it is so for longer than the suppression period.
    fn judge(&self, theirs: &StateVector, now: Now) -> (bool, bool) {
        let (mut is_outdated, mut must_answer) = (false, false);
        for producer in self.vector.newer_than(theirs) {
            let settled_ms = self.raised_ms.get(producer).map_or(0, |raised_ms| raised_ms + self.limits.suppression_ms);
            is_outdated = true;
            must_answer |= now.monotonic_ms >= settled_ms;
        }
        (is_outdated, must_answer)
    }

    /// The timer expired: returns the ApplicationParameters of the sync Interests that a member without a key sends.
    pub fn on_timer(&mut self, now: Now, random: f64) -> Vec<Arc<[u8]>> {
        if self.must_speak(now, random) { self.parameters() } else { Vec::new() }
    }

    /// The timer expired: says if a sync Interest is to be sent.
    pub fn must_speak(&mut self, now: Now, random: f64) -> bool {
        let is_silent = self.merged.as_ref().is_some_and(|merged| self.vector.newer_than(merged).next().is_none());
        self.enter_steady(now, random);
        !is_silent
    }

    /// This member published; a sync Interest is to be sent now.
    pub fn on_publication(&mut self, producer: &Producer, number: u64, now: Now, random: f64) {
        self.vector.raise(producer, number);
        self.raised_ms.insert(producer.clone(), now.monotonic_ms);
        self.enter_steady(now, random);
    }

    fn parameters(&self) -> Vec<Arc<[u8]>> {
        match self.version {
            Version::V2 => {
                let mut out = Vec::new();
                write_vector(self.version, &self.vector, &mut out);
                vec![out.into()]
            }
            Version::V3 => self.told.values().cloned().collect::<BTreeSet<_>>().into_iter().collect(),
        }
    }

    fn enter_steady(&mut self, now: Now, random: f64) {
        self.merged = None;
        self.timer_ms = now.monotonic_ms + (self.limits.period_ms as f64 * (0.9 + 0.2 * random)) as u64;
    }

    /// c · (1 − e^((v − c) / (c / 10))) with v uniform in 0..c: most waits are near c, few are short.
    fn suppression_ms(&self, random: f64) -> u64 {
        let longest = self.limits.suppression_ms as f64;
        (longest * (1.0 - (10.0 * (random - 1.0)).exp())) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::vector::tests::producer;
    use super::*;
    use namewire_packet::{DataBuilder, NameBuf};

    fn anyone() -> bool {
        true
    }

    fn at(monotonic_ms: u64) -> Now {
        Now { monotonic_ms, unix_s: 1_700_000_000 }
    }

    fn vector(entries: &[(&str, u64)], bootstrap_s: u64) -> StateVector {
        let mut vector = StateVector::default();
        for &(name, number) in entries {
            vector.raise(&producer(name, bootstrap_s), number);
        }
        vector
    }

    fn parameters(version: Version, vector: &StateVector) -> Vec<u8> {
        let mut out = Vec::new();
        write_vector(version, vector, &mut out);
        match version {
            Version::V2 => out,
            Version::V3 => DataBuilder::new("/group/v=3".parse::<NameBuf>().unwrap()).content(&out).sign_digest(),
        }
    }

    fn v2(entries: &[(&str, u64)]) -> Vec<u8> {
        parameters(Version::V2, &vector(entries, 0))
    }

    fn joined(version: Version, entries: &[(&str, u64)]) -> Group {
        Group::new(version, Limits::of(version), vector(entries, 0), at(0))
    }

    #[test]
    fn an_old_vector_is_answered_unless_another_member_did() {
        for another_answers in [false, true] {
            let mut group = joined(Version::V2, &[("/a", 7), ("/b", 1)]);
            assert_eq!(group.on_timer(at(0), 0.5).len(), 1);
            assert_eq!(group.timer_ms(), 30_000);
            assert!(group.on_interest(&v2(&[("/a", 5)]), at(10_000), 0.5, anyone).unwrap().news.is_empty());
            assert_eq!(group.timer_ms(), 10_000 + 2_185);
            if another_answers {
                group.on_interest(&v2(&[("/a", 7), ("/b", 1)]), at(10_100), 0.5, anyone).unwrap();
                assert_eq!(group.timer_ms(), 40_100, "steady again");
            } else {
                assert_eq!(group.on_timer(at(12_185), 0.5), [v2(&[("/a", 7), ("/b", 1)]).into()]);
            }
        }
    }

    #[test]
    fn two_answers_that_together_have_all_news_suppress_ours() {
        let mut group = joined(Version::V2, &[("/a", 7), ("/b", 1)]);
        group.on_interest(&v2(&[]), at(10_000), 0.5, anyone).unwrap();
        group.on_interest(&v2(&[("/a", 7)]), at(10_100), 0.5, anyone).unwrap();
        group.on_interest(&v2(&[("/b", 1)]), at(10_200), 0.5, anyone).unwrap();
        assert_eq!(group.timer_ms(), 12_185);
        assert!(group.on_timer(at(12_185), 0.5).is_empty());
    }

    #[test]
    fn a_vector_that_crossed_fresh_news_is_not_answered() {
        let mut group = joined(Version::V2, &[("/a", 7)]);
        let received = group.on_interest(&v2(&[("/a", 9)]), at(10_000), 0.5, anyone).unwrap();
        assert_eq!(received.news, [News { producer: producer("/a", 0), first: 8, last: 9 }]);
        let timer_ms = group.timer_ms();
        group.on_interest(&v2(&[("/a", 7)]), at(12_199), 0.5, anyone).unwrap();
        assert_eq!(group.timer_ms(), timer_ms);
        group.on_interest(&v2(&[("/a", 7)]), at(12_200), 0.5, anyone).unwrap();
        assert_eq!(group.timer_ms(), 12_200 + 2_185);
    }

    #[test]
    fn version_3_repeats_data_that_members_signed() {
        let mut group = joined(Version::V3, &[]);
        assert!(group.on_timer(at(0), 0.5).is_empty(), "nothing to tell yet");
        let both = parameters(Version::V3, &vector(&[("/a", 1), ("/b", 1)], 1_600_000_000));
        let newer = parameters(Version::V3, &vector(&[("/a", 2)], 1_600_000_000));
        group.on_interest(&both, at(1_000), 0.5, anyone).unwrap();
        assert_eq!(group.on_timer(at(31_000), 0.5), [both.clone().into()]);
        group.on_interest(&newer, at(31_500), 0.5, anyone).unwrap();
        let sent = group.on_timer(at(62_000), 0.5);
        assert_eq!(sent.len(), 2);
        assert!(sent.contains(&both.into()) && sent.contains(&newer.into()));
    }

    #[test]
    fn the_far_future_and_producers_not_admitted_are_left_out() {
        let mut group = joined(Version::V3, &[]);
        let ahead = |ahead_s: u64| parameters(Version::V3, &vector(&[("/a", 1)], 1_700_000_000 + ahead_s));
        assert_eq!(group.on_interest(&ahead(86_401), at(0), 0.5, anyone), Err(IgnoredError::FarFuture));
        assert_eq!(group.on_interest(&ahead(86_400), at(0), 0.5, anyone).unwrap().news.len(), 1);
        let (mut group, mut asked) = (joined(Version::V2, &[]), 0);
        let two = || {
            asked += 1;
            asked <= 2
        };
        let received = group.on_interest(&v2(&[("/a", 1), ("/b", 1), ("/c", 1)]), at(0), 0.5, two).unwrap();
        assert_eq!((received.news.len(), received.left_out, group.vector().len()), (2, 1, 2));
    }

    /// Members that each know one producer more, in a network that loses a third of all sync Interests.
    #[test]
    fn members_converge_in_spite_of_losses() {
        for version in [Version::V2, Version::V3] {
            let mut random = fastrand::Rng::with_seed(18);
            let mut members: Vec<_> = (0..8).map(|_| joined(version, &[])).collect();
            for (index, member) in members.iter_mut().enumerate() {
                let own = vector(&[(&format!("/node/{index}"), index as u64 + 1)], 0);
                member.on_interest(&parameters(version, &own), at(0), random.f64(), anyone).unwrap();
            }
            let (mut now_ms, mut sent) = (0, 0);
            while members.iter().any(|member| member.vector().len() < 8) {
                let (due, member) = members.iter_mut().enumerate().min_by_key(|(_, m)| m.timer_ms()).unwrap();
                now_ms = member.timer_ms();
                let packets = member.on_timer(at(now_ms), random.f64());
                sent += packets.len();
                for (index, member) in members.iter_mut().enumerate().filter(|(index, _)| *index != due) {
                    for packet in &packets {
                        if random.u8(..) < 85 {
                            continue; // lost
                        }
                        let received = member.on_interest(packet, at(now_ms), random.f64(), anyone).unwrap();
                        assert!(received.news.iter().all(|news| news.first == 1), "{index} heard news twice");
                    }
                }
            }
            assert!(now_ms < 300_000 && sent < 300, "{version:?}: {sent} sync Interests in {now_ms} ms");
        }
    }
}
