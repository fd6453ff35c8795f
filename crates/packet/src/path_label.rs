//! PathLabel: the path that a packet takes, as one label for each hop (RFC 9531).
//!
//! A Data gathers a label at each forwarder on its way to the consumer: that of the face it came through. An Interest
//! with these labels goes the same way: each forwarder takes the last label and sends the Interest to the next hop with
//! this label, if the FIB has it among the next hops of the name.
//!
//! ```text
//! PathLabel         = 952 TLV-LENGTH PathLabelFlags PathLabelBitmap PathLabelHopCount     an NDNLPv2 header
//! PathLabelFlags    = 11 1 OCTET                 0 discovery, 1 fallback, 2 strict
//! PathLabelBitmap   = 13 64 64OCTET              labels of 12 bits, the first one in the highest bits
//! PathLabelHopCount = 15 1 OCTET                 the number of labels
//! ```
//!
//! The RFC suggests 10 for the header's type. A forwarder that does not know a header of such a number drops the packet
//! (NDNLPv2 §1.2), and today that is every other forwarder. 952 is a number that they ignore.
//!
//! Limits: [`MAX_HOPS`] labels; a label is [`label_of`] a face, so two faces may share one.

use crate::{
    FaceId, PacketError,
    tlv::{self, Reader, types},
};

/// Most labels that a packet carries.
pub const MAX_HOPS: usize = BITMAP_BYTES * 8 / LABEL_BITS;

/// Most bytes of the header, with type and length.
pub const MAX_PATH_LABEL_BYTES: usize = 96;

const BITMAP_BYTES: usize = 64;
const LABEL_BITS: usize = 12;

crate::names! {
    /// What a forwarder does with an Interest whose label is of no next hop (RFC 9531 §3.1).
    pub enum PathMode {
        /// The label only records the path.
        Discovery = "discovery",
        /// It forwards the Interest as if it had no label.
        Fallback = "fallback",
        /// It refuses the Interest.
        Strict = "strict",
    }
}

/// A face's label, 1 to 4095.
pub const fn label_of(face: FaceId) -> u16 {
    (face.0 % 4095) as u16 + 1
}

/// The labels of a path, the hop that is nearest to the consumer last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathLabel {
    mode: PathMode,
    hops: u8,
    bitmap: [u8; BITMAP_BYTES],
}

impl PathLabel {
    /// A path of no hops.
    pub const fn empty(mode: PathMode) -> Self {
        PathLabel { mode, hops: 0, bitmap: [0; BITMAP_BYTES] }
    }

    /// The path along these labels, the farthest hop first; labels beyond [`MAX_HOPS`] are left out.
    pub fn of(mode: PathMode, labels: &[u16]) -> Self {
        let mut path = PathLabel::empty(mode);
        labels.iter().for_each(|&label| {
            path.push(label);
        });
        path
    }

    /// What forwarders do if a label is void.
    pub const fn mode(&self) -> PathMode {
        self.mode
    }

    /// The labels, the farthest hop first.
    pub fn labels(&self) -> impl Iterator<Item = u16> + '_ {
        (0..usize::from(self.hops)).map(|place| self.label(place))
    }

    /// Adds the label of the next hop on the way back; false if there is no room.
    pub fn push(&mut self, label: u16) -> bool {
        let place = usize::from(self.hops);
        if place >= MAX_HOPS {
            return false;
        }
        self.set_label(place, label);
        self.hops += 1;
        true
    }

    /// Takes the label of the nearest hop.
    pub fn pop(&mut self) -> Option<u16> {
        let place = usize::from(self.hops.checked_sub(1)?);
        let label = self.label(place);
        self.set_label(place, 0);
        self.hops -= 1;
        Some(label)
    }

    /// Two labels take three bytes.
    fn label(&self, place: usize) -> u16 {
        let at = place * LABEL_BITS / 8;
        let (first, second) = (u16::from(self.bitmap[at]), u16::from(self.bitmap[at + 1]));
        if place.is_multiple_of(2) { first << 4 | second >> 4 } else { (first & 0xf) << 8 | second }
    }

    fn set_label(&mut self, place: usize, label: u16) {
        let at = place * LABEL_BITS / 8;
        let [first, second] = &mut self.bitmap[at..at + 2] else { return };
        if place.is_multiple_of(2) {
            *first = (label >> 4) as u8;
            *second = *second & 0xf | (label << 4) as u8;
        } else {
            *first = *first & 0xf0 | (label >> 8 & 0xf) as u8;
            *second = label as u8;
        }
    }

    /// Appends the header.
    pub fn write_tlv(&self, out: &mut Vec<u8>) {
        tlv::write_nested(out, types::LP_PATH_LABEL, |out| {
            tlv::write_tlv(out, types::PATH_LABEL_FLAGS, &[self.mode as u8]);
            tlv::write_tlv(out, types::PATH_LABEL_BITMAP, &self.bitmap);
            tlv::write_tlv(out, types::PATH_LABEL_HOP_COUNT, &[self.hops]);
        });
    }

    /// Reads the header. Fields that are not listed above are skipped.
    ///
    /// # Errors
    /// If it is malformed, lacks a field, has an unknown mode, or counts more than [`MAX_HOPS`] labels.
    pub fn parse_tlv(wire: &[u8]) -> Result<Self, PacketError> {
        let header = tlv::read_element(wire)?;
        if header.type_number != types::LP_PATH_LABEL {
            return Err(PacketError::WrongType { expected: types::LP_PATH_LABEL, found: header.type_number });
        }
        let (mut mode, mut bitmap, mut hops) = (None, None, None);
        let mut reader = Reader::new(header.value);
        while let Some(element) = reader.next_element()? {
            match (element.type_number, element.value) {
                (types::PATH_LABEL_FLAGS, &[flags]) => mode = PathMode::ALL.get(usize::from(flags)).copied(),
                (types::PATH_LABEL_BITMAP, value) => bitmap = <[u8; BITMAP_BYTES]>::try_from(value).ok(),
                (types::PATH_LABEL_HOP_COUNT, &[count]) => hops = Some(count).filter(|&n| usize::from(n) <= MAX_HOPS),
                _ => {}
            }
        }
        let mode = mode.ok_or(PacketError::BadValue(types::PATH_LABEL_FLAGS))?;
        let bitmap = bitmap.ok_or(PacketError::BadValue(types::PATH_LABEL_BITMAP))?;
        let hops = hops.ok_or(PacketError::BadValue(types::PATH_LABEL_HOP_COUNT))?;
        Ok(PathLabel { mode, hops, bitmap })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_come_back_in_the_order_of_the_way_back() {
        let mut path = PathLabel::empty(PathMode::Strict);
        let labels: Vec<u16> = (0..MAX_HOPS as u16).map(|hop| 1 + hop * 97).collect();
        assert!(labels.iter().all(|&label| path.push(label)));
        assert!(!path.push(1), "the bitmap is full");
        assert!(path.labels().eq(labels.iter().copied()));
        assert_eq!(PathLabel::of(PathMode::Strict, &labels), path);
        let mut wire = Vec::new();
        path.write_tlv(&mut wire);
        assert!(wire.len() <= MAX_PATH_LABEL_BYTES);
        assert_eq!(PathLabel::parse_tlv(&wire), Ok(path));
        for &label in labels.iter().rev() {
            assert_eq!(path.pop(), Some(label));
        }
        assert_eq!((path.pop(), path), (None, PathLabel::empty(PathMode::Strict)));
    }

    /// RFC 9531 §2.5, figure 3, and §3.3: 12 bits a label, the bitmap of 64 bytes, flags and count of one byte.
    #[test]
    fn the_header_has_the_form_of_the_rfc() {
        let mut wire = Vec::new();
        PathLabel::of(PathMode::Fallback, &[0xabc, 0x123]).write_tlv(&mut wire);
        let mut expected = vec![0xfd, 0x03, 0xb8, 72, 11, 1, 1, 13, 64, 0xab, 0xc1, 0x23];
        expected.extend([0; 61]);
        expected.extend([15, 1, 2]);
        assert_eq!(wire, expected);
    }

    #[test]
    fn a_header_that_lacks_something_is_refused() {
        let mut good = Vec::new();
        PathLabel::of(PathMode::Strict, &[1]).write_tlv(&mut good);
        let with = |change: fn(&mut Vec<u8>)| {
            let mut wire = good.clone();
            change(&mut wire);
            PathLabel::parse_tlv(&wire)
        };
        assert!(with(|_| {}).is_ok());
        assert!(with(|wire| wire[6] = 3).is_err(), "no such mode");
        assert!(with(|wire| wire[75] = MAX_HOPS as u8 + 1).is_err(), "too many labels");
        assert!(with(|wire| wire[7] = 14).is_err(), "no bitmap");
        assert!(with(|wire| wire.truncate(70)).is_err(), "cut off");
    }
}
