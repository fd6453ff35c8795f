//! Black hole: do frames above some size vanish on the path, without a report, while smaller ones arrive?
//!
//! The sign: reliability gave up [`SIGNS`] frames in a row, each after four transmissions. After the first transmission
//! of each, a frame of a smaller class was sent and arrived, but no frame of the same class or a larger one. The upper
//! ends of the classes are the sizes that a face tries after a black hole. An Ack for a frame of the same size or
//! larger disproves the black hole. A link that loses at random, or whose queue overflows, would deliver one of these
//! transmissions. On a link that died, nothing arrives that was sent after the first lost frame. (RFC 4821 and RFC 8899
//! look for the same sign.)
//!
//! N.B. The rule does not require that the smaller frame was sent after the *last* transmission. That would find too
//! few black holes: small frames are often those at the end of large packets, and the next packet comes later.
//!
//! Limit: on a link where all frames are large, no smaller frame is acknowledged, and no hole is found.

/// Frames given up in a row that show a black hole.
pub const SIGNS: u32 = 3;

/// Frames of this size or less pass everywhere: 576 bytes, which every host of IPv4 takes, without the headers of IP
/// and UDP. Their loss has another cause.
pub const SAFE_BYTES: u32 = 548;

/// What every path of IPv6 takes: 1280 bytes without headers.
const MIDDLE_BYTES: u32 = 1232;

pub(super) struct BlackHole {
    /// The smallest frame given up since a frame of that size was acknowledged.
    least_bytes: u32,
    signs: u32,
    /// The largest TxSequence of each class that has arrived.
    arrived: [Option<u64>; 3],
    found: Option<u32>,
}

impl Default for BlackHole {
    fn default() -> Self {
        BlackHole { least_bytes: u32::MAX, signs: 0, arrived: [None; 3], found: None }
    }
}

impl BlackHole {
    /// A frame was acknowledged.
    #[inline]
    pub(super) fn note_arrived(&mut self, tx_sequence: u64, bytes: u32) {
        let arrived = &mut self.arrived[class(bytes)];
        *arrived = (*arrived).max(Some(tx_sequence));
        if bytes >= self.least_bytes {
            (self.least_bytes, self.signs) = (u32::MAX, 0);
        }
    }

    /// A frame was given up whose first transmission had this TxSequence.
    pub(super) fn note_given_up(&mut self, tx_sequence: u64, bytes: u32) {
        let (smaller, others) = self.arrived.split_at(class(bytes));
        let has_later = |arrived: &[Option<u64>]| arrived.iter().any(|arrived| *arrived > Some(tx_sequence));
        if !has_later(smaller) || has_later(others) {
            return;
        }
        self.least_bytes = self.least_bytes.min(bytes);
        self.signs += 1;
        if self.signs >= SIGNS {
            self.found = Some(self.least_bytes);
            (self.least_bytes, self.signs) = (u32::MAX, 0);
        }
    }

    /// The size of the smallest frame that vanished, if a hole was found since the last call.
    #[inline]
    pub(super) fn take(&mut self) -> Option<u32> {
        self.found.take()
    }
}

/// The class of a frame of so many bytes: which of the sizes tried after a black hole takes it.
fn class(bytes: u32) -> usize {
    [SAFE_BYTES, MIDDLE_BYTES].iter().filter(|size| bytes > **size).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame was acknowledged (`Ok`) or given up (`Err`): its TxSequence, or the first one; its size.
    fn found(story: &[(Result<u64, u64>, u32)]) -> Option<u32> {
        let mut hole = BlackHole::default();
        for &(fate, bytes) in story {
            match fate {
                Ok(arrived) => hole.note_arrived(arrived, bytes),
                Err(first) => hole.note_given_up(first, bytes),
            }
        }
        hole.take()
    }

    #[test]
    fn only_large_frames_that_vanish_among_small_ones_show_a_hole() {
        let (small, large) = (100, 1472);
        let arrives = |tx_sequence, bytes| (Ok(tx_sequence), bytes);
        let vanishes = |tx_sequence, bytes| (Err(tx_sequence), bytes);
        let hole = [arrives(10, small), vanishes(5, large), vanishes(6, 1400), vanishes(7, large)];
        assert_eq!(found(&hole), Some(1400));
        assert_eq!(found(&hole[..3]), None, "two may be chance");
        let dead = [arrives(4, small), vanishes(5, large), vanishes(6, large), vanishes(7, large)];
        assert_eq!(found(&dead), None, "nothing arrives");
        let small_ones = [arrives(10, 50), vanishes(5, small), vanishes(6, small), vanishes(7, SAFE_BYTES)];
        assert_eq!(found(&small_ones), None);
        let lossy = [
            arrives(10, small),
            vanishes(5, large),
            vanishes(6, large),
            arrives(11, large),
            vanishes(7, large),
            arrives(12, small),
            vanishes(8, large),
        ];
        assert_eq!(found(&lossy), None, "a frame of that size has passed");
        let later = [arrives(30, small), vanishes(25, large), vanishes(26, 1400), vanishes(27, large)];
        assert_eq!(found(&[&lossy[..4], &later[..]].concat()), Some(1400), "and then no longer");
        let outage =
            [vanishes(5, large), vanishes(6, large), arrives(12, large), vanishes(7, large), arrives(13, large)];
        assert_eq!(found(&outage), None, "large ones arrive after it");
    }
}
