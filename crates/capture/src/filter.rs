//! Which frames does the user want to see? The frames of packets under a prefix, with all their fragments.
//!
//! Only the first fragment of a packet has its name. The filter remembers the packets that it took by their faces and
//! sequence numbers.
//!
//! Limit: the last [`PACKETS_MAX`] fragmented packets. Fragments that arrive before the first one are left out.

use crate::frame::{FrameView, Packet};
use namewire_packet::{FaceId, NameBuf, nfd::CaptureFrame};
use std::collections::VecDeque;

/// Fragmented packets remembered.
const PACKETS_MAX: usize = 256;

/// Takes the frames about some names.
pub struct Filter {
    /// Empty: everything is wanted.
    prefixes: Vec<NameBuf>,
    /// Face, direction and first sequence number of the fragmented packets taken last.
    fragmented: VecDeque<(FaceId, bool, u64)>,
}

impl Filter {
    /// A filter of frames under these prefixes; none: all frames.
    pub fn new(prefixes: Vec<NameBuf>) -> Self {
        Filter { prefixes, fragmented: VecDeque::new() }
    }

    /// Whether this frame is wanted.
    pub fn takes(&mut self, frame: &CaptureFrame, view: &FrameView) -> bool {
        if self.prefixes.is_empty() {
            return true;
        }
        let first_sequence = view.sequence.unwrap_or_default().wrapping_sub(view.frag_index);
        let packet = (frame.face, frame.is_sent, first_sequence);
        if view.packet == Packet::Fragment {
            return self.fragmented.contains(&packet);
        }
        let Some(name) = &view.name else { return false };
        let is_wanted = self.prefixes.iter().any(|prefix| prefix.as_name().is_prefix_of(&name.as_name()));
        if is_wanted && view.frag_count > 1 {
            if self.fragmented.len() >= PACKETS_MAX {
                self.fragmented.pop_front();
            }
            self.fragmented.push_back(packet);
        }
        is_wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(name: Option<&str>, sequence: u64, frag_index: u64) -> FrameView {
        FrameView {
            packet: if frag_index > 0 { Packet::Fragment } else { Packet::Data },
            name: name.map(|name| name.parse().unwrap()),
            sequence: Some(sequence),
            frag_index,
            frag_count: 2,
            ..FrameView::default()
        }
    }

    #[test]
    fn fragments_follow_their_first_one() {
        let mut filter = Filter::new(vec!["/a".parse().unwrap()]);
        let frame = |face| CaptureFrame { face: FaceId(face), ..CaptureFrame::default() };
        assert!(filter.takes(&frame(1), &view(Some("/a/b"), 7, 0)));
        assert!(filter.takes(&frame(1), &view(None, 8, 1)));
        assert!(!filter.takes(&frame(2), &view(None, 8, 1)), "of another face");
        assert!(!filter.takes(&CaptureFrame { is_sent: true, ..frame(1) }, &view(None, 8, 1)), "the other way");
        assert!(!filter.takes(&frame(1), &view(Some("/b"), 9, 0)));
        assert!(!filter.takes(&frame(1), &view(None, 10, 1)));
        assert!(!filter.takes(&frame(1), &FrameView::default()), "no packet");
        (0..PACKETS_MAX as u64).for_each(|at| assert!(filter.takes(&frame(1), &view(Some("/a"), 100 + 2 * at, 0))));
        assert!(!filter.takes(&frame(1), &view(None, 8, 1)), "forgotten");
        assert!(Filter::new(Vec::new()).takes(&frame(1), &FrameView::default()));
    }
}
