//! Face table: what the engine must know of a face to decide whether a packet may be sent on it. The face itself
//! (socket, queue, link service) is outside the engine.

use namewire_packet::FaceId;
pub use namewire_packet::nfd::{FaceScope, LinkType};
use namewire_shares::HolderId;
use std::sync::atomic::{AtomicBool, Ordering};

/// The attributes that eligibility needs.
#[derive(Debug)]
pub struct FaceAttributes {
    /// Whether the peer is an application of this machine or another node.
    pub scope: FaceScope,
    /// Point-to-point, multi-access or ad hoc.
    pub link_type: LinkType,
    /// The worker that owns socket and link state.
    pub owner: u8,
    /// Whether our PIT tokens may be sent: the link leads to a router, or the peer has shown NDNLPv2. Other
    /// applications get bare packets.
    pub tokens: AtomicBool,
    /// The application has sent a tag packet, so that tag packets may go to its place.
    pub speaks_tags: AtomicBool,
    /// False while the link is down: strategies skip the face.
    pub is_up: bool,
    /// Whose share of the pools its packets use.
    pub holder: HolderId,
}

impl Clone for FaceAttributes {
    fn clone(&self) -> Self {
        let Self { scope, link_type, owner, is_up, holder, .. } = *self;
        let (tokens, speaks_tags) = (AtomicBool::new(self.wants_tokens()), AtomicBool::new(self.speaks_tags()));
        FaceAttributes { scope, link_type, owner, tokens, speaks_tags, is_up, holder }
    }
}

impl FaceAttributes {
    /// A point-to-point face that `owner` owns and that is up, with a holder that all such faces of its scope share.
    pub fn new(scope: FaceScope, owner: u8, tokens: bool) -> Self {
        let (link_type, tokens) = (LinkType::PointToPoint, AtomicBool::new(tokens));
        let holder = if scope == FaceScope::Local { HolderId::ANY_LOCAL } else { HolderId::ANY_REMOTE };
        FaceAttributes { scope, link_type, owner, tokens, speaks_tags: AtomicBool::new(false), is_up: true, holder }
    }

    /// True if our PIT tokens may be sent here.
    pub fn wants_tokens(&self) -> bool {
        self.tokens.load(Ordering::Relaxed)
    }

    /// True if the application has sent a tag packet.
    pub fn speaks_tags(&self) -> bool {
        self.speaks_tags.load(Ordering::Relaxed)
    }

    /// True for applications of this machine.
    pub fn is_local(&self) -> bool {
        self.scope == FaceScope::Local
    }
}

/// All faces of the router. The control side writes it and every engine reads it, two or three look-ups per packet.
pub type FaceTable = FaceMap<FaceAttributes>;

/// A map from faces to values.
///
/// Open addressing with linear probing, less than half full: one cache line nearly always, 16 bytes per slot. The
/// router assigns face numbers one by one, so a peer cannot choose them to collide.
#[derive(Clone, Debug)]
pub struct FaceMap<T> {
    /// A power of two of them.
    slots: Vec<Option<(FaceId, T)>>,
    len: usize,
}

const _: () = assert!(size_of::<Option<(FaceId, FaceAttributes)>>() == 16);

/// Slots of a small table.
const MIN_SLOTS: usize = 64;

impl Default for FaceTable {
    /// Holds the internal face (management) and nothing else.
    fn default() -> Self {
        let mut table = FaceTable::with_room(1);
        let management = FaceAttributes::new(FaceScope::Local, 0, true);
        table.insert(FaceId::INTERNAL, FaceAttributes { holder: HolderId::MANAGEMENT, ..management });
        table
    }
}

impl<T: Clone> FaceMap<T> {
    /// An empty map that does not allocate before it holds more than `faces`.
    pub(crate) fn with_room(faces: usize) -> Self {
        let slots = (2 * (faces + 1)).next_power_of_two().max(MIN_SLOTS);
        FaceMap { slots: vec![None; slots], len: 0 }
    }

    /// The value of `face`.
    #[inline(always)]
    pub fn get(&self, face: FaceId) -> Option<&T> {
        match &self.slots[self.home(face)] {
            Some((other, value)) if *other == face => Some(value),
            Some(_) => self.get_displaced(face),
            None => None,
        }
    }

    /// The value of a face that is not in its home.
    #[cold]
    fn get_displaced(&self, face: FaceId) -> Option<&T> {
        self.slots[self.place(face)].as_ref().map(|(_, value)| value)
    }

    /// Adds or replaces a face.
    pub fn insert(&mut self, face: FaceId, value: T) {
        if 2 * (self.len + 1) >= self.slots.len() {
            self.enlarge();
        }
        let place = self.place(face);
        self.len += usize::from(self.slots[place].is_none());
        self.slots[place] = Some((face, value));
    }

    /// Removes a face; true if it was there. Displaced faces behind it move up.
    pub fn remove(&mut self, face: FaceId) -> bool {
        let mask = self.slots.len() - 1;
        let mut hole = self.place(face);
        if self.slots[hole].take().is_none() {
            return false;
        }
        self.len -= 1;
        let mut place = (hole + 1) & mask;
        while let Some((other, _)) = &self.slots[place] {
            let (from_home, from_hole) = (place.wrapping_sub(self.home(*other)), place.wrapping_sub(hole));
            if from_home & mask >= from_hole & mask {
                self.slots[hole] = self.slots[place].take();
                hole = place;
            }
            place = (place + 1) & mask;
        }
        true
    }

    /// Number of faces; in a [`FaceTable`] with the internal one.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none; a [`FaceTable`] always has the internal one.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All faces, in arbitrary order.
    pub fn iter(&self) -> impl Iterator<Item = (FaceId, &T)> {
        self.slots.iter().flatten().map(|(face, value)| (*face, value))
    }

    /// Where a search for `face` begins.
    #[inline(always)]
    fn home(&self, face: FaceId) -> usize {
        // Fibonacci hashing: the upper bits of the product are evenly distributed.
        (face.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (self.slots.len() - 1)
    }

    /// The slot of `face`, or the free one where it would go.
    #[inline]
    fn place(&self, face: FaceId) -> usize {
        let mut place = self.home(face);
        while self.slots[place].as_ref().is_some_and(|(other, _)| *other != face) {
            place = (place + 1) & (self.slots.len() - 1);
        }
        place
    }

    fn enlarge(&mut self) {
        let slots = vec![None; 2 * self.slots.len()];
        let former = std::mem::replace(self, FaceMap { slots, len: 0 });
        for (face, value) in former.slots.into_iter().flatten() {
            self.insert(face, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_table_equals_a_map(operations in prop::collection::vec((0_u64..400, any::<u8>(), 0_u8..3), 0..600)) {
            let mut table = FaceTable::default();
            let mut model = BTreeMap::from([(FaceId::INTERNAL, 0)]);
            for (face, owner, kind) in operations {
                let face = FaceId(face);
                if kind > 0 {
                    table.insert(face, FaceAttributes::new(FaceScope::NonLocal, owner, false));
                    model.insert(face, owner);
                } else {
                    prop_assert_eq!(table.remove(face), model.remove(&face).is_some());
                }
                prop_assert_eq!(table.get(face).map(|found| found.owner), model.get(&face).copied());
            }
            let listed: BTreeMap<FaceId, u8> = table.iter().map(|(face, found)| (face, found.owner)).collect();
            prop_assert_eq!((table.len(), &listed), (model.len(), &model));
            prop_assert!(model.iter().all(|(&face, &owner)| table.get(face).is_some_and(|found| found.owner == owner)));
        }
    }

    /// Peers can close many faces at once: a removal must not cost more than the slots behind it.
    #[test]
    fn many_faces_are_removed_quickly() {
        let mut table = FaceTable::default();
        let faces = || (256..66_000).map(FaceId);
        faces().for_each(|face| table.insert(face, FaceAttributes::new(FaceScope::NonLocal, 0, false)));
        let started = std::time::Instant::now();
        faces().for_each(|face| assert!(table.remove(face)));
        // A table rebuilt for every removal took 28 s.
        assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
        assert_eq!(table.len(), 1);
    }
}
