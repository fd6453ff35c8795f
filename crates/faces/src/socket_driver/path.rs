//! Path: the MTU of a face's path as far as it is known, and when to look again. The page of [`super::paths`] says what
//! follows from it.

use namewire_packet::nfd::{FaceUri, LinkType};

use crate::FaceInfo;

/// Pause between two looks at the path of a face in use.
pub(super) const LOOK_PAUSE_NS: u64 = 10_000_000_000;

/// No time.
const NEVER: u64 = u64::MAX;

/// A path whose MTU is not known takes anything.
const UNKNOWN: usize = usize::MAX;

pub(super) struct Path {
    /// Largest datagram that it takes, in bytes.
    mtu: usize,
    next_look_ns: u64,
}

impl Path {
    /// The path of a new face. The first look is due with the face's first use, or never if the kernel knows no path.
    pub(super) fn new(info: &FaceInfo) -> Self {
        let is_udp = matches!(info.remote, FaceUri::Udp4(_) | FaceUri::Udp6(_));
        let has_looks = is_udp && info.link_type == LinkType::PointToPoint;
        Path { mtu: UNKNOWN, next_look_ns: if has_looks { 0 } else { NEVER } }
    }

    /// Largest datagram that the path takes, in bytes; [`usize::MAX`] if that is not known.
    pub(super) fn mtu(&self) -> usize {
        self.mtu
    }

    /// True if the kernel knows paths of faces of this kind.
    pub(super) fn has_looks(&self) -> bool {
        self.next_look_ns != NEVER
    }

    #[inline]
    pub(super) fn is_look_due(&self, now_ns: u64) -> bool {
        self.next_look_ns <= now_ns
    }

    /// A look has begun.
    pub(super) fn note_look(&mut self, now_ns: u64) {
        self.next_look_ns = now_ns.saturating_add(LOOK_PAUSE_NS);
    }

    /// A look has found this MTU. True if it was the first.
    pub(super) fn take(&mut self, found: usize) -> bool {
        std::mem::replace(&mut self.mtu, found) == UNKNOWN
    }
}
