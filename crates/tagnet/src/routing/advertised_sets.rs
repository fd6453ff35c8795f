//! Advertised sets: which sets of tags did applications of this machine advertise, and until when?
//!
//! An application that is gone may leave tens of thousands of sets. They no longer count from that moment, and are
//! removed a part at a time ([`AdvertisedSets::throw_away`]). Expired sets are also removed a part at a time
//! ([`AdvertisedSets::take_over`]).

use crate::TagSet;
use namewire_packet::FaceId;
use std::collections::{BTreeMap, BTreeSet};

/// See the module documentation. A time of `u64::MAX` means: until the face is gone.
#[derive(Debug, Default)]
pub(super) struct AdvertisedSets {
    of_faces: BTreeMap<FaceId, BTreeMap<TagSet, u64>>,
    /// Those that end at a time.
    ends: BTreeSet<(u64, FaceId, TagSet)>,
    /// The sets of faces that are gone.
    gone: Vec<(FaceId, BTreeMap<TagSet, u64>)>,
}

impl AdvertisedSets {
    /// Notes a set, or another end of it.
    pub(super) fn insert(&mut self, face: FaceId, tags: TagSet, ends_ms: u64) {
        if ends_ms < u64::MAX {
            self.ends.insert((ends_ms, face, tags.clone()));
        }
        let before = self.of_faces.entry(face).or_default().insert(tags.clone(), ends_ms);
        if let Some(before) = before.filter(|before| *before != ends_ms) {
            self.ends.remove(&(before, face, tags));
        }
    }

    /// Forgets a set; false if it is not there.
    pub(super) fn remove(&mut self, face: FaceId, tags: &TagSet) -> bool {
        let Some(of_face) = self.of_faces.get_mut(&face) else { return false };
        let Some(ends_ms) = of_face.remove(tags) else { return false };
        if of_face.is_empty() {
            self.of_faces.remove(&face);
        }
        self.ends.remove(&(ends_ms, face, tags.clone()));
        true
    }

    pub(super) fn contains(&self, face: FaceId, tags: &TagSet) -> bool {
        self.of_faces.get(&face).is_some_and(|of_face| of_face.contains_key(tags))
    }

    /// A face is gone.
    pub(super) fn face_down(&mut self, face: FaceId) {
        self.gone.extend(self.of_faces.remove(&face).map(|sets| (face, sets)));
    }

    /// Throws away at most so many sets of faces that are gone.
    pub(super) fn throw_away(&mut self, most: usize) {
        for _ in 0..most {
            let Some((face, sets)) = self.gone.last_mut() else { return };
            match sets.pop_first() {
                Some((tags, ends_ms)) => drop(self.ends.remove(&(ends_ms, *face, tags))),
                None => drop(self.gone.pop()),
            }
        }
    }

    /// A set whose time is over, which is forgotten.
    pub(super) fn take_over(&mut self, now_ms: u64) -> Option<(FaceId, TagSet)> {
        while self.ends.first().is_some_and(|(ends_ms, ..)| *ends_ms <= now_ms) {
            let (_, face, tags) = self.ends.pop_first()?;
            // Those of a face that is gone are withdrawn already.
            if self.remove(face, &tags) {
                return Some((face, tags));
            }
        }
        None
    }

    /// When something is to be done.
    pub(super) fn deadline_ms(&self) -> u64 {
        match self.gone.is_empty() {
            true => self.ends.first().map_or(u64::MAX, |(ends_ms, ..)| *ends_ms),
            false => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(text: &str) -> TagSet {
        text.parse().unwrap()
    }

    #[test]
    fn sets_end_in_order_and_a_face_that_is_gone_leaves_nothing() {
        let mut sets = AdvertisedSets::default();
        sets.insert(FaceId(1), tags("a"), 50);
        sets.insert(FaceId(1), tags("b"), u64::MAX);
        sets.insert(FaceId(2), tags("a"), 40);
        sets.insert(FaceId(1), tags("a"), 60);
        assert_eq!((sets.deadline_ms(), sets.take_over(39)), (40, None));
        assert_eq!(sets.take_over(60), Some((FaceId(2), tags("a"))));
        assert_eq!((sets.take_over(59), sets.take_over(60)), (None, Some((FaceId(1), tags("a")))));
        assert!(sets.contains(FaceId(1), &tags("b")) && !sets.contains(FaceId(1), &tags("a")));
        assert!(sets.remove(FaceId(1), &tags("b")) && !sets.remove(FaceId(1), &tags("b")));
        assert_eq!(sets.deadline_ms(), u64::MAX);

        (0..100).for_each(|number| sets.insert(FaceId(3), tags(&format!("set{number}")), 70));
        sets.face_down(FaceId(3));
        assert_eq!((sets.deadline_ms(), sets.contains(FaceId(3), &tags("set5"))), (0, false));
        sets.throw_away(60);
        assert_eq!((sets.ends.len(), sets.deadline_ms()), (40, 0));
        assert_eq!(sets.take_over(100), None, "they were withdrawn with the face");
        sets.throw_away(60);
        assert_eq!(sets.deadline_ms(), u64::MAX);
    }
}
