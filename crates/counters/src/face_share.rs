//! Face share: for how many answers does each face wait, and which faces exceeded their limit?
//!
//! A face waits for as many answers as it has in-records. The engine counts in-records by face number modulo [`SLOTS`]:
//! faces whose numbers differ by a multiple of [`SLOTS`] share a count and a limit. By default a router has at most
//! [`SLOTS`] faces at a time. The engine's `pit_shares` has the rule; Interests beyond it are dropped as
//! [`DropReason::FaceShareUsed`](crate::DropReason::FaceShareUsed).
//!
//! Cost: an Interest, or an in-record that ends, touches one cache line, the same for all packets of a face. Memory: an
//! engine has 64 KiB of counts. Writer: the engine.

use namewire_packet::{FaceId, counters::Count};

/// Number of counts.
const SLOTS: usize = 16_384;
/// Faces that are counted individually when cut.
const NAMED: usize = 8;

/// In-records by face.
pub struct WaitingByFace {
    counts: Box<[u32; SLOTS]>,
}

impl Default for WaitingByFace {
    fn default() -> Self {
        Self { counts: Box::new([0; SLOTS]) }
    }
}

impl WaitingByFace {
    /// Pending answers of the face.
    #[inline]
    pub fn of(&self, face: FaceId) -> u32 {
        self.counts[Self::slot(face)]
    }

    /// The face waits for one answer more.
    #[inline(always)]
    pub fn count_up(&mut self, face: FaceId) {
        self.counts[Self::slot(face)] += 1;
    }

    /// The face waits for one answer less.
    #[inline(always)]
    pub fn count_down(&mut self, face: FaceId) {
        let count = &mut self.counts[Self::slot(face)];
        debug_assert!(*count > 0, "an in-record that was not counted");
        *count = count.saturating_sub(1);
    }

    #[inline(always)]
    fn slot(face: FaceId) -> usize {
        face.0 as usize % SLOTS
    }
}

/// How many Interests of a face were dropped for its share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaceCut {
    /// The face.
    pub face: FaceId,
    /// Number of Interests; 0 if there is no such face. Exact unless more than eight faces were ever cut; then it may
    /// be too large, never too small.
    pub interests: u64,
}

/// The faces that were cut most: Space-Saving of Metwally et al. 2005. A new face takes the place, and the count, of
/// the face that was cut least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FacesCut {
    faces: [FaceCut; NAMED],
}

impl FacesCut {
    /// The faces that were cut.
    pub fn iter(&self) -> impl Iterator<Item = FaceCut> {
        self.faces.iter().copied().filter(|cut| cut.interests > 0)
    }

    /// Counts Interests of a face.
    pub fn add(&mut self, face: FaceId, interests: u64) {
        let known = self.faces.iter().position(|cut| cut.interests > 0 && cut.face == face);
        let least = || (0..NAMED).min_by_key(|&place| self.faces[place].interests).unwrap_or(0);
        let cut = &mut self.faces[known.unwrap_or_else(least)];
        *cut = FaceCut { face, interests: cut.interests + interests };
    }
}

impl Count for FacesCut {
    const ZERO: Self = FacesCut { faces: [FaceCut { face: FaceId(0), interests: 0 }; NAMED] };

    fn merge(&mut self, other: &Self) {
        other.iter().for_each(|cut| self.add(cut.face, cut.interests));
    }

    fn visit(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        self.faces.iter_mut().for_each(|cut| visit(&mut cut.interests));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faces_cut_most_are_named() {
        let mut cut = FacesCut::default();
        for number in 0..1_000 {
            cut.add(FaceId(300), 2);
            cut.add(FaceId(301 + number % 5), 1);
        }
        let mut other = FacesCut::default();
        other.add(FaceId(300), 1);
        other.add(FaceId(900), 7);
        cut.merge(&other);
        let of = |face| cut.iter().find(|cut| cut.face == FaceId(face)).map(|cut| cut.interests);
        assert_eq!((of(300), of(303), of(900), cut.iter().count()), (Some(2_001), Some(200), Some(7), 7));
        (0..500).for_each(|face| cut.add(FaceId(1_000 + face), 1));
        let most = cut.iter().max_by_key(|cut| cut.interests);
        assert_eq!(most, Some(FaceCut { face: FaceId(300), interests: 2_001 }), "rare ones do not displace it");
    }
}
