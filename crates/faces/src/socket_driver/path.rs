//! Path: the MTU of a face's path as far as it is known, and when to look again. The page of [`super::paths`] says what
//! follows from it.

use namewire_packet::nfd::{FaceUri, LinkType};

use crate::FaceInfo;

/// Pause between two looks at the path of a face in use.
pub(super) const LOOK_PAUSE_NS: u64 = 10_000_000_000;

/// Sizes tried after a black hole, in bytes: 1280 bytes, which every path of IPv6 takes, and 576 bytes, which every
/// host of IPv4 takes, without the headers of IP and UDP.
const PAST_BLACK_HOLES: [usize; 2] = [1280 - 48, 576 - 28];

/// After this time, larger frames are tried again. The kernel forgets a router's report after the same time.
const BLACK_HOLE_NS: u64 = 600_000_000_000;

/// No time.
const NEVER: u64 = u64::MAX;

/// A path whose MTU is not known takes anything.
const UNKNOWN: usize = usize::MAX;

pub(super) struct Path {
    /// Largest datagram that it takes, in bytes, as the kernel says.
    mtu: usize,
    /// The same as a black hole has shown, and until when that counts.
    past_black_hole: usize,
    black_hole_until_ns: u64,
    next_look_ns: u64,
}

impl Path {
    /// The path of a new face. The first look is due with the face's first use, or never if the kernel knows no path.
    pub(super) fn new(info: &FaceInfo) -> Self {
        let is_udp = matches!(info.remote, FaceUri::Udp4(_) | FaceUri::Udp6(_));
        let has_looks = is_udp && info.link_type == LinkType::PointToPoint;
        Path {
            mtu: UNKNOWN,
            past_black_hole: UNKNOWN,
            black_hole_until_ns: 0,
            next_look_ns: if has_looks { 0 } else { NEVER },
        }
    }

    /// Largest datagram that the path takes, in bytes; [`usize::MAX`] if that is not known.
    pub(super) fn mtu(&self) -> usize {
        self.mtu.min(self.past_black_hole)
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
        if now_ns >= self.black_hole_until_ns {
            self.past_black_hole = UNKNOWN;
        }
    }

    /// Frames of so many bytes vanish. False if smaller ones are not tried.
    pub(super) fn avoid(&mut self, now_ns: u64, vanished_bytes: usize) -> bool {
        let Some(size) = PAST_BLACK_HOLES.into_iter().find(|size| *size < vanished_bytes) else { return false };
        self.past_black_hole = size.min(self.past_black_hole);
        self.black_hole_until_ns = now_ns.saturating_add(BLACK_HOLE_NS);
        true
    }

    /// A look has found this MTU. True if it was the first.
    pub(super) fn take(&mut self, found: usize) -> bool {
        std::mem::replace(&mut self.mtu, found) == UNKNOWN
    }
}
