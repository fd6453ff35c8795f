//! Told: which claims of a root may a router still believe, given the number that it has told its neighbours?
//!
//! ```text
//!   sequence number of a claim, beside the one that was told
//!     ... │ told − JUMP_MAX ... told − 1 │ told │ told + 1 ... told + JUMP_MAX │ ...
//!     far │            older             │ same │            newer             │ far
//! ```
//!
//! | claim | while the told number is alive | dead | forgotten |
//! | --- | --- | --- | --- |
//! | newer | believed | believed | believed |
//! | same | if it is nearer than all that was told | no | believed |
//! | older | no | no | believed |
//! | far | no: [`Belief::Jump`] | believed: the root has started again, or what was told was forged | believed |
//!
//! A number is alive for [`TreeTimes::root_dead_ms`] after it was heard first, and forgotten [`FORGET_MS`] later. A
//! claim carries the age of its number, and no router believes a number that should be forgotten by this age. So when a
//! router forgets a number, no other router passes it on, and parents form no circle.
//!
//! An honest root raises its number by one for each hello. A forger can move the told number by at most [`JUMP_MAX`] at
//! a time. If the root receives the forged number, it jumps past it; if not, routers forget it later. A router believes
//! a number that is farther away only while it has no number that is alive. While forged numbers circulate, parents may
//! form a circle, which ends when these numbers are forgotten.
//!
//! Limits: [`TOLD_MAX`] roots; the router forgets the oldest first.

use super::{Claim, TreeTimes};
use std::collections::BTreeMap;

/// Most roots for which a router remembers what it told.
pub(super) const TOLD_MAX: usize = 64;
/// Sequence numbers that a root may raise at once, as far as its neighbours believe.
pub(super) const JUMP_MAX: i32 = 64;
/// What was told is forgotten this long after it is dead.
pub(super) const FORGET_MS: u64 = 2_000;

/// What a router has told its neighbours of a root.
#[derive(Clone, Copy, Debug)]
struct Told {
    sequence: u32,
    /// The least distance, for that sequence number.
    distance: u16,
    /// When this router first heard the sequence number.
    rose_ms: u64,
    /// When the root raised it, as far as this router knows.
    raised_ms: u64,
}

/// A neighbour's claim, as a router hears it.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeardClaim {
    pub(super) root: u64,
    pub(super) sequence: u32,
    /// The neighbour's distance.
    pub(super) distance: u16,
    /// When the root raised the sequence number, as far as is known.
    pub(super) raised_ms: u64,
}

/// Whether a claim may be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Belief {
    Feasible,
    Infeasible,
    /// Infeasible, because the number is too far from the one that was told and is alive.
    Jump,
}

/// What a router has told of each root that it believed in.
#[derive(Debug, Default)]
pub(super) struct ToldRoots(BTreeMap<u64, Told>);

impl ToldRoots {
    /// Whether the router may take the neighbour that claims this as its parent.
    pub(super) fn belief(&self, claim: &HeardClaim, times: &TreeTimes, now_ms: u64) -> Belief {
        let forget_ms = times.root_dead_ms + FORGET_MS;
        let is_fresh = now_ms < claim.raised_ms + forget_ms;
        let fresh = if is_fresh { Belief::Feasible } else { Belief::Infeasible };
        let Some(told) = self.0.get(&claim.root).filter(|told| now_ms < told.rose_ms + forget_ms) else { return fresh };
        let is_alive = now_ms < told.rose_ms + times.root_dead_ms;
        match claim.sequence.wrapping_sub(told.sequence).cast_signed() {
            1..=JUMP_MAX => fresh,
            0 if is_alive && claim.distance < told.distance => Belief::Feasible,
            ahead if ahead.unsigned_abs() <= JUMP_MAX.unsigned_abs() => Belief::Infeasible,
            _ if is_alive => Belief::Jump,
            _ => fresh,
        }
    }

    /// Notes what the router tells from now on: `claim` with its own distance.
    pub(super) fn note(&mut self, claim: Claim, raised_ms: u64, now_ms: u64) {
        match self.0.get_mut(&claim.root) {
            Some(told) if told.sequence == claim.sequence => {
                told.distance = told.distance.min(claim.distance);
                told.raised_ms = told.raised_ms.min(raised_ms);
            }
            _ => {
                let Claim { root, sequence, distance } = claim;
                self.0.insert(root, Told { sequence, distance, rose_ms: now_ms, raised_ms });
            }
        }
        if self.0.len() > TOLD_MAX {
            let oldest = self.0.iter().min_by_key(|(_, told)| told.rose_ms).map(|(root, _)| *root);
            oldest.and_then(|root| self.0.remove(&root));
        }
    }

    /// The newest sequence number of a root that is not forgotten; 0 if there is none.
    pub(super) fn sequence_of(&self, root: u64, times: &TreeTimes, now_ms: u64) -> u32 {
        let told = self.0.get(&root).filter(|told| now_ms < told.rose_ms + times.root_dead_ms + FORGET_MS);
        told.map_or(0, |told| told.sequence)
    }

    /// How long ago the root raised the number that was told.
    pub(super) fn age_ms(&self, root: u64, now_ms: u64) -> u64 {
        self.0.get(&root).map_or(0, |told| now_ms.saturating_sub(told.raised_ms))
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: u32 = 1_000;

    fn told() -> ToldRoots {
        let mut told = ToldRoots::default();
        told.note(Claim { root: 1, sequence: TOLD, distance: 3 }, 10_000, 10_000);
        told
    }

    fn belief(told: &ToldRoots, sequence: u32, distance: u16, now_ms: u64) -> Belief {
        let claim = HeardClaim { root: 1, sequence, distance, raised_ms: now_ms - 100 };
        told.belief(&claim, &TreeTimes::default(), now_ms)
    }

    #[test]
    fn the_table_of_the_header_holds() {
        use Belief::{Feasible, Infeasible, Jump};
        let (told, times) = (told(), TreeTimes::default());
        let (dead_ms, forgotten_ms) = (10_000 + times.root_dead_ms, 10_000 + times.root_dead_ms + FORGET_MS);
        let far = [65, 1 << 15, 1 << 16, (1 << 31) - 1, 1 << 31, u32::MAX - 64];
        for (sequence, beliefs) in [(TOLD + 1, [Feasible; 3]), (TOLD + 64, [Feasible; 3])]
            .into_iter()
            .chain([1, 64].map(|older| (TOLD - older, [Infeasible, Infeasible, Feasible])))
            .chain([(TOLD, [Infeasible, Infeasible, Feasible])])
            .chain(far.map(|jump| (TOLD.wrapping_add(jump), [Jump, Feasible, Feasible])))
        {
            let at = [10_500, dead_ms, forgotten_ms].map(|now_ms| belief(&told, sequence, 3, now_ms));
            assert_eq!(at, beliefs, "{sequence}");
        }
        let nearer = [10_500, dead_ms, forgotten_ms].map(|now_ms| belief(&told, TOLD, 2, now_ms));
        assert_eq!(nearer, [Feasible, Infeasible, Feasible]);
    }

    /// Two routers that learn of a root's end at different times would believe each other for ever.
    #[test]
    fn no_router_believes_an_old_number_even_after_it_forgot_it() {
        let (told, times) = (told(), TreeTimes::default());
        let now_ms = 10_000 + times.root_dead_ms + FORGET_MS;
        let ghost = |sequence| HeardClaim { root: 1, sequence, distance: 0, raised_ms: 10_000 };
        assert_eq!(told.belief(&ghost(TOLD), &times, now_ms), Belief::Infeasible);
        assert_eq!(told.belief(&ghost(TOLD + 1), &times, now_ms), Belief::Infeasible);
        assert_eq!(ToldRoots::default().belief(&ghost(TOLD), &times, now_ms), Belief::Infeasible);
    }
}
