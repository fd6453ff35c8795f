//! What the engine must know of a face to decide whether a packet may leave
//! through it. The face itself (socket, queue, link service) is elsewhere.

use hashbrown::HashMap;
use namewire_packet::FaceId;
use std::hash::{BuildHasherDefault, Hasher};
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
}

impl Clone for FaceAttributes {
    fn clone(&self) -> Self {
        let Self { scope, link_type, owner, .. } = *self;
        FaceAttributes { scope, link_type, owner, tokens: AtomicBool::new(self.wants_tokens()) }
    }
}

impl FaceAttributes {
    /// A point-to-point face owned by `owner`.
    pub fn new(scope: FaceScope, owner: u8, tokens: bool) -> Self {
        FaceAttributes { scope, link_type: LinkType::PointToPoint, owner, tokens: AtomicBool::new(tokens) }
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

/// All faces of the router. Written by the control side, read by every engine.
#[derive(Clone, Debug)]
pub struct FaceTable {
    faces: HashMap<FaceId, FaceAttributes, BuildHasherDefault<FaceIdHasher>>,
}

/// One multiplication: every packet asks for two or three faces, and the numbers are
/// ours, counted up one by one, so nobody outside can choose them to collide.
#[derive(Debug, Default)]
struct FaceIdHasher(u64);

impl Hasher for FaceIdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, number: u64) {
        // Fibonacci hashing; the table takes both ends of the product.
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }

    fn write(&mut self, octets: &[u8]) {
        for &octet in octets {
            self.write_u64(self.0 ^ u64::from(octet));
        }
    }
}

impl Default for FaceTable {
    /// Holds the internal face (management) and nothing else.
    fn default() -> Self {
        let mut faces = HashMap::default();
        faces.insert(FaceId::INTERNAL, FaceAttributes::new(FaceScope::Local, 0, true));
        FaceTable { faces }
    }
}

impl FaceTable {
    /// The attributes of `face`.
    #[inline]
    pub fn get(&self, face: FaceId) -> Option<&FaceAttributes> {
        self.faces.get(&face)
    }

    /// Adds or replaces a face.
    pub fn insert(&mut self, face: FaceId, attributes: FaceAttributes) {
        self.faces.insert(face, attributes);
    }

    /// Removes a face; true if it was there.
    pub fn remove(&mut self, face: FaceId) -> bool {
        self.faces.remove(&face).is_some()
    }

    /// Number of faces, the internal one included.
    pub fn len(&self) -> usize {
        self.faces.len()
    }

    /// False: the internal face is always there.
    pub fn is_empty(&self) -> bool {
        self.faces.is_empty()
    }

    /// All faces, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (FaceId, &FaceAttributes)> {
        self.faces.iter().map(|(&face, attributes)| (face, attributes))
    }
}
