//! Path: the MTU of a face's path as far as it is known, and when to look again. The header of [`super::paths`]
//! describes what the face does with it.

use namewire_packet::nfd::{FaceUri, LinkType};

use crate::FaceInfo;

/// Pause between two looks at the path of a face in use.
pub(super) const LOOK_PAUSE_NS: u64 = 10_000_000_000;

/// Least pause between two looks that reports lead to.
const REPORTED_LOOK_PAUSE_NS: u64 = 1_000_000_000;

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
    /// What it takes without falling into a black hole that was found, and until when that counts.
    past_black_hole: usize,
    black_hole_until_ns: u64,
    /// Sizes to try after a black hole.
    past_black_holes: &'static [usize],
    next_look_ns: u64,
    last_look_ns: Option<u64>,
    /// A large datagram is to go alone.
    pub(super) wants_scout: bool,
}

impl Path {
    /// The path of a new face. The first look is due with the face's first use, or never if the kernel knows no path.
    pub(super) fn new(info: &FaceInfo) -> Self {
        let is_udp = matches!(info.remote, FaceUri::Udp4(_) | FaceUri::Udp6(_));
        let has_looks = is_udp && info.link_type == LinkType::PointToPoint;
        let sizes = if matches!(info.remote, FaceUri::Udp6(_)) { 1 } else { 2 };
        Path {
            mtu: UNKNOWN,
            past_black_hole: UNKNOWN,
            black_hole_until_ns: 0,
            past_black_holes: &PAST_BLACK_HOLES[..sizes],
            next_look_ns: if has_looks { 0 } else { NEVER },
            last_look_ns: None,
            wants_scout: false,
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

    /// A look is due with the next use: the peer was found to know link headers.
    pub(super) fn look_with_next_use(&mut self) {
        if self.has_looks() {
            self.next_look_ns = 0;
        }
    }

    /// Whether a report may lead to a look now. If not, one is due a second after the last.
    pub(super) fn may_look_again(&mut self, now_ns: u64) -> bool {
        let Some(last_ns) = self.last_look_ns else { return true };
        let again_ns = last_ns.saturating_add(REPORTED_LOOK_PAUSE_NS);
        self.next_look_ns = self.next_look_ns.min(again_ns);
        again_ns <= now_ns
    }

    /// A look has begun.
    pub(super) fn note_look(&mut self, now_ns: u64) {
        self.next_look_ns = now_ns.saturating_add(LOOK_PAUSE_NS);
        self.last_look_ns = Some(now_ns);
        if now_ns >= self.black_hole_until_ns {
            self.past_black_hole = UNKNOWN;
        }
    }

    /// Frames of so many bytes vanish. True if smaller ones are tried than before.
    pub(super) fn avoid(&mut self, now_ns: u64, vanished_bytes: usize) -> bool {
        let size = self.past_black_holes.iter().copied().find(|size| *size < vanished_bytes);
        let Some(size) = size.filter(|size| *size < self.mtu()) else { return false };
        self.past_black_hole = size;
        self.black_hole_until_ns = now_ns.saturating_add(BLACK_HOLE_NS);
        true
    }

    /// A look has found this MTU. True if it was the first.
    pub(super) fn take(&mut self, found: usize) -> bool {
        std::mem::replace(&mut self.mtu, found) == UNKNOWN
    }
}
