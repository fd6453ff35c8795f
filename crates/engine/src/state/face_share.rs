//! Face share: how much of the PIT may one face hold, and which faces wanted more?
//!
//! Source: ours. Yuan15 §5.7.2 leaves floods of unanswerable Interests to statistics and countermeasures. Our rule was
//! made for queues that share a memory (Choudhury and Hahne, "Dynamic Queue Length Thresholds", 1998). An Interest that
//! needs a new PIT entry is accepted while its face waits for fewer answers than
//!
//! ```text
//! share / (1 − share) · free entries
//! ```
//!
//! With the default of 80 %, one face alone holds at most four fifths of the PIT. Two faces that flood hold 4/9 each,
//! and n such faces hold 4/(1 + 4 n) each. A part of 1/(1 + 4 n) stays free for faces that wait for few answers. No
//! face is limited while there is room for all. Interests beyond the share are dropped as
//! [`DropReason::FaceShareUsed`](crate::DropReason::FaceShareUsed).
//!
//! A face waits for as many answers as it has in-records. The engine counts in-records by face number modulo [`SLOTS`]:
//! faces whose numbers differ by a multiple of [`SLOTS`] share a count and a limit. By default a router has at most
//! [`SLOTS`] faces at a time.
//!
//! The [core role](crate::core)'s fingerprints have no share: an entry belongs to no face, and takes 8 bytes. A
//! flooding face can fill the table of fingerprints. Interests that find no room in it are kept by name, within the
//! share.
//!
//! Cost: an Interest, or an in-record that ends, touches one cache line, the same for all packets of a face. Memory: an
//! engine has 64 KiB of counts. Writer: the engine.

use namewire_packet::{FaceId, counters::Count};

/// Number of counts.
const SLOTS: usize = 16_384;
/// Faces that are counted individually when cut.
const NAMED: usize = 8;

/// In-records by face.
pub(crate) struct WaitingByFace {
    counts: Box<[u32; SLOTS]>,
}

impl WaitingByFace {
    pub(crate) fn new() -> Self {
        Self { counts: Box::new([0; SLOTS]) }
    }

    /// Pending answers of the face.
    #[inline]
    pub(crate) fn of(&self, face: FaceId) -> u32 {
        self.counts[Self::slot(face)]
    }

    #[inline(always)]
    pub(crate) fn count_up_if(&mut self, face: FaceId, counts: bool) {
        self.counts[Self::slot(face)] += u32::from(counts);
    }

    #[inline(always)]
    pub(crate) fn count_down(&mut self, face: FaceId) {
        let count = &mut self.counts[Self::slot(face)];
        debug_assert!(*count > 0, "an in-record that was not counted");
        *count = count.saturating_sub(1);
    }

    #[inline(always)]
    fn slot(face: FaceId) -> usize {
        face.0 as usize % SLOTS
    }
}

/// Whether a face that waits for `waiting` answers may take one of the `free` entries. If none is free, the answer is
/// yes: that is not the face's fault.
#[inline]
pub(crate) const fn may_ask(waiting: u32, free: usize, share_percent: u32) -> bool {
    free == 0 || (waiting as u64) * (100 - share_percent as u64) < share_percent as u64 * free as u64
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

    /// Faces that ask without end, one entry each in turn.
    fn flooded(capacity: u32, faces: usize, share_percent: u32) -> (Vec<u32>, u32) {
        let (mut waiting, mut free) = (vec![0; faces], capacity);
        for _ in 0..capacity {
            for waiting in &mut waiting {
                if free > 0 && may_ask(*waiting, free as usize, share_percent) {
                    (*waiting, free) = (*waiting + 1, free - 1);
                }
            }
        }
        (waiting, free)
    }

    #[test]
    fn floods_leave_what_the_rule_says() {
        for faces in 1..=6 {
            let (waiting, free) = flooded(65_536, faces, 80);
            let wanted = 65_536.0 * 4.0 / (1.0 + 4.0 * faces as f64);
            assert!(waiting.iter().all(|&waiting| (f64::from(waiting) - wanted).abs() < 4.0), "{waiting:?}");
            assert!((f64::from(free) - wanted / 4.0).abs() < 8.0, "{free}");
            assert!(may_ask(0, free as usize, 80), "somebody new is always let in");
        }
        assert_eq!(flooded(1_000, 2, 100), (vec![500, 500], 0), "100 % is no limit");
        assert!(may_ask(1_000, 0, 80), "a full PIT is not the face's fault");
    }

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
