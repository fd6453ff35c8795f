//! Foresight: where would a strategy send a new Interest for a name now, and which next hops does it avoid?
//!
//! `namewire explain` shows this to operators. The answer comes from the same rule as in forwarding ([`pick`]), with
//! the worker's measurements. It changes nothing and sends nothing.

use crate::{
    FaceTable, Instant,
    state::measurements::{Measurements, NextHopMeasurement, measurement_key},
    verdict::{journey::Journey, scope::NameScope},
};
use namewire_packet::FaceId;
use namewire_tables::NextHop;

/// What a strategy would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Foresight {
    /// The next hops that would get the Interest. Empty if the strategy cannot tell, or has none.
    pub chosen: Vec<FaceId>,
    /// Next hops that it avoids, because earlier Interests got no answer there.
    pub silent: Vec<FaceId>,
}

/// A name, as a strategy looks at it without an Interest.
pub struct Prospect<'a> {
    pub(crate) now: Instant,
    pub(crate) faces: &'a FaceTable,
    pub(crate) scope: NameScope,
    pub(crate) next_hops: &'a [NextHop],
    /// Hash of the FIB prefix.
    pub(crate) prefix_hash: u64,
    pub(crate) measurements: &'a Measurements,
}

impl<'a> Prospect<'a> {
    /// Next hops of the longest matching prefix, the cheapest first.
    pub fn next_hops(&self) -> &'a [NextHop] {
        self.next_hops
    }

    /// True if an Interest from some application here may go to `face`.
    pub fn is_eligible(&self, face: FaceId) -> bool {
        let journey = Journey { faces: self.faces, ingress: FaceId::INTERNAL, scope: self.scope, hop_limit: None };
        journey.is_eligible(face)
    }

    /// What strategies of this `kind` know of a next hop under the FIB prefix.
    pub fn known(&self, kind: u64, face: FaceId) -> Option<&'a NextHopMeasurement> {
        let id = self.measurements.find(measurement_key(self.prefix_hash, kind), self.now)?;
        self.measurements.next_hop(id, face, self.now)
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The cheapest eligible next hops, at most so many.
    pub(crate) fn cheapest(&self, most: usize) -> Foresight {
        let eligible = self.next_hops.iter().map(|hop| FaceId(hop.face)).filter(|face| self.is_eligible(*face));
        Foresight { chosen: eligible.take(most).collect(), silent: Vec::new() }
    }
}

/// What the rule of a strategy says of a next hop.
pub(crate) enum Fitness<R> {
    /// It cannot get the Interest.
    Unfit,
    /// It can, but earlier Interests got no answer there.
    Silent(R),
    /// It can; the lowest rank is the best, and among equals the first.
    Fit(R),
}

/// The choice among next hops: the best that answers, else the best silent one. Also the first silent one that is
/// passed over.
#[inline]
pub(crate) fn pick<R: Ord>(
    next_hops: &[NextHop],
    mut judge: impl FnMut(&NextHop) -> Fitness<R>,
) -> (Option<FaceId>, Option<FaceId>) {
    let mut fit: Option<(R, FaceId)> = None;
    let mut silent: Option<(R, FaceId)> = None;
    let mut first_silent = None;
    for hop in next_hops {
        let face = FaceId(hop.face);
        let (best, rank) = match judge(hop) {
            Fitness::Unfit => continue,
            Fitness::Fit(rank) => (&mut fit, rank),
            Fitness::Silent(rank) => {
                first_silent = first_silent.or(Some(face));
                (&mut silent, rank)
            }
        };
        if best.as_ref().is_none_or(|(other, _)| rank < *other) {
            *best = Some((rank, face));
        }
    }
    match fit {
        Some((_, face)) => (Some(face), first_silent),
        None => (silent.map(|(_, face)| face), None),
    }
}
