//! What the engine must know of a face to decide whether a packet may leave
//! through it. The face itself (socket, queue, link service) is elsewhere.

use namewire_packet::FaceId;
use std::sync::atomic::{AtomicBool, Ordering};

/// Who can be at the other end. Numbers are NFD's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaceScope {
    /// Another node, perhaps.
    NonLocal = 0,
    /// An application of this machine.
    Local = 1,
}

/// How many peers a face has. Numbers are NFD's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// One.
    PointToPoint = 0,
    /// Several, who hear each other.
    MultiAccess = 1,
    /// Several, who may not hear each other: an Interest may go back where it came from.
    AdHoc = 2,
}

/// The attributes that eligibility needs (house plan §4).
#[derive(Debug)]
pub struct FaceAttributes {
    /// Who can be at the other end.
    pub scope: FaceScope,
    /// How many.
    pub link_type: LinkType,
    /// The worker that owns socket and link state.
    pub owner: u8,
    /// Our PIT tokens may go out: the link is a router's, or has shown NDNLPv2.
    /// Bare applications get bare packets.
    pub tokens: AtomicBool,
    /// False while the link does not carry packets: strategies skip the face.
    pub is_up: bool,
}

impl Clone for FaceAttributes {
    fn clone(&self) -> Self {
        let Self { scope, link_type, owner, is_up, .. } = *self;
        FaceAttributes { scope, link_type, owner, tokens: AtomicBool::new(self.wants_tokens()), is_up }
    }
}

impl FaceAttributes {
    /// A point-to-point face that `owner` owns and that is up.
    pub fn new(scope: FaceScope, owner: u8, tokens: bool) -> Self {
        FaceAttributes { scope, link_type: LinkType::PointToPoint, owner, tokens: AtomicBool::new(tokens), is_up: true }
    }

    /// True if our PIT tokens may go out here.
    pub fn wants_tokens(&self) -> bool {
        self.tokens.load(Ordering::Relaxed)
    }

    /// True for applications of this machine.
    pub fn is_local(&self) -> bool {
        self.scope == FaceScope::Local
    }
}

/// All faces of the router. Written by the control side, read by every engine: every packet
/// asks for two or three of them.
pub type FaceTable = FaceMap<FaceAttributes>;

/// Something about each of some faces.
///
/// Open addressing with linear probing, less than half full: 1 line nearly always, 16 bytes
/// per slot. Numbers are ours, counted up one by one, so nobody outside can choose them to collide.
#[derive(Clone, Debug)]
pub struct FaceMap<T> {
    /// A power of two of them.
    slots: Vec<Option<(FaceId, T)>>,
    len: usize,
}

const _: () = assert!(size_of::<Option<(FaceId, FaceAttributes)>>() == 16);

/// Slots of a table that holds little.
const MIN_SLOTS: usize = 64;

impl Default for FaceTable {
    /// Holds the internal face (management) and nothing else.
    fn default() -> Self {
        let mut table = FaceTable::with_room(1);
        table.insert(FaceId::INTERNAL, FaceAttributes::new(FaceScope::Local, 0, true));
        table
    }
}

impl<T: Clone> FaceMap<T> {
    /// An empty one that does not allocate before it holds more than `faces`.
    pub(crate) fn with_room(faces: usize) -> Self {
        let slots = (2 * (faces + 1)).next_power_of_two().max(MIN_SLOTS);
        FaceMap { slots: vec![None; slots], len: 0 }
    }

    /// What is known of `face`.
    #[inline]
    pub fn get(&self, face: FaceId) -> Option<&T> {
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

    /// Removes a face; true if it was there. Those behind it that it kept from their places move up.
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

    /// Number of faces; of a [`FaceTable`] the internal one included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none; of a [`FaceTable`] the internal one is always there.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All faces, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (FaceId, &T)> {
        self.slots.iter().flatten().map(|(face, value)| (*face, value))
    }

    /// Where a search for `face` begins.
    #[inline]
    fn home(&self, face: FaceId) -> usize {
        // Fibonacci hashing: the upper bits of the product are the even ones.
        (face.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (self.slots.len() - 1)
    }

    /// The slot of `face`, or the free one where it would be put.
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

    /// Peers can make many faces go at once: a removal must not cost more than what stands behind it.
    #[test]
    fn many_faces_go_quickly() {
        let mut table = FaceTable::default();
        let faces = || (256..66_000).map(FaceId);
        faces().for_each(|face| table.insert(face, FaceAttributes::new(FaceScope::NonLocal, 0, false)));
        let started = std::time::Instant::now();
        faces().for_each(|face| assert!(table.remove(face)));
        // Made anew for every removal, it took 28 s.
        assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
        assert_eq!(table.len(), 1);
    }
}
