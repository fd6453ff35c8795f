//! The small numbers that identify faces and nonces.

use std::fmt;

/// Identifies a face of one forwarder. Never reused while the forwarder runs.
///
/// Values below 256 are reserved, as in NFD (`face-common.hpp`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FaceId(pub u64);

impl FaceId {
    /// No face. In a command: "the face this command came from".
    pub const INVALID: FaceId = FaceId(0);
    /// The face of management.
    pub const INTERNAL: FaceId = FaceId(1);
    /// The incoming face of a cache hit.
    pub const CONTENT_STORE: FaceId = FaceId(254);
    /// Drops everything.
    pub const NULL: FaceId = FaceId(255);
    /// As NextHopFaceId, inside a forwarder: the packet's PathLabel chooses the next hop.
    pub const BY_PATH_LABEL: FaceId = FaceId(u64::MAX);
    /// First id of faces created at run time.
    pub const FIRST_DYNAMIC: FaceId = FaceId(256);
}

impl fmt::Display for FaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The four bytes that, with the name, identify one Interest for loop detection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Nonce(pub [u8; 4]);

impl Nonce {
    /// The nonce as a big-endian number, for tables that store integers.
    pub const fn to_u32(self) -> u32 {
        u32::from_be_bytes(self.0)
    }

    /// Inverse of [`Nonce::to_u32`].
    pub const fn from_u32(n: u32) -> Self {
        Nonce(n.to_be_bytes())
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.to_u32())
    }
}
