//! Face list: which ports do the 16 bits of an entry's face list stand for?
//!
//! Source: Yuan15 §5.4.2 (a bit vector, bit i = face i), §5.4.3 (a segment has the faces of 1/s of the
//! ports). *Bits*: port p is bit ⌊p/s⌋ of the entries of segment p mod s, so that s segments serve 16·s
//! ports. *Sets*: the number of an interned set; see [`super::face_sets`].

use super::class::Shape;
use super::config::{FaceList, FingerprintPitRefusal};
use super::face_sets::FaceSets;
use super::port_set::{MAX_PORTS, PortSet};
use crate::pages::PageSize;
use std::io;

/// Bits of a face list: n of the paper.
const FACE_LIST_BITS: u16 = 16;

/// Encodes and decodes face lists.
pub(super) enum FaceLists {
    Bits {
        segments: u16,
        /// For each segment the bits of ports whose face is closed, but that some entries may still name.
        leaving: [u16; (MAX_PORTS / FACE_LIST_BITS) as usize],
    },
    Sets(FaceSets),
}

impl FaceLists {
    pub(super) fn new(list: FaceList, shape: &Shape, pages: PageSize) -> io::Result<Self> {
        match list {
            FaceList::Bits => Ok(Self::Bits { segments: shape.segments() as u16, leaving: [0; 16] }),
            FaceList::Sets { max_sets: 0 } => Err(io::ErrorKind::InvalidInput.into()),
            FaceList::Sets { max_sets } => FaceSets::new(max_sets, pages).map(Self::Sets),
        }
    }

    /// How many ports there are.
    pub(super) fn ports(&self) -> u16 {
        match self {
            Self::Bits { segments, .. } => segments * FACE_LIST_BITS,
            Self::Sets(_) => MAX_PORTS,
        }
    }

    /// The face list of an entry that had `list` and gains this port.
    #[inline(always)]
    pub(super) fn with(&mut self, list: u16, port: u16) -> Result<u16, FingerprintPitRefusal> {
        match self {
            Self::Bits { segments, .. } => Ok(list | bit(port, *segments)),
            Self::Sets(sets) => {
                let number = sets.hold_with(list, port).ok_or(FingerprintPitRefusal::FaceSetsFull)?;
                sets.release(list);
                Ok(number)
            }
        }
    }

    /// Whether an entry with this list, in the segment of the port, names that port.
    #[inline]
    pub(super) fn contains(&self, list: u16, port: u16) -> bool {
        match self {
            Self::Bits { segments, .. } => list & bit(port, *segments) != 0,
            Self::Sets(sets) => sets.ports(list).contains(port),
        }
    }

    /// Tells that an entry with this list was removed.
    #[inline(always)]
    pub(super) fn release(&mut self, list: u16) {
        if let Self::Sets(sets) = self {
            sets.release(list);
        }
    }

    /// Adds the ports of an entry of this segment.
    #[inline(always)]
    pub(super) fn collect(&self, list: u16, segment: usize, ports: &mut PortSet) {
        match self {
            Self::Bits { segments, leaving } => {
                let mut bits = list & !leaving[segment];
                if *segments == 1 {
                    return ports.insert_first_sixteen(bits);
                }
                while bits != 0 {
                    ports.insert(bits.trailing_zeros() as u16 * segments + segment as u16);
                    bits &= bits - 1;
                }
            }
            Self::Sets(sets) => ports.extend(&sets.ports(list)),
        }
    }

    /// The faces of these ports are closed. True if entries must still be cleared of them, by
    /// [`FaceLists::leaving`].
    pub(super) fn begin_removal(&mut self, ports: &PortSet) -> bool {
        match self {
            Self::Bits { segments, leaving } => {
                ports.iter().for_each(|port| leaving[usize::from(port % *segments)] |= bit(port, *segments));
                true
            }
            Self::Sets(sets) => {
                sets.remove_ports(ports);
                false
            }
        }
    }

    /// Every entry was cleared of this port.
    pub(super) fn end_removal(&mut self, port: u16) {
        if let Self::Bits { segments, leaving } = self {
            leaving[usize::from(port % *segments)] &= !bit(port, *segments);
        }
    }

    /// Bits that no entry of this segment may keep.
    #[inline(always)]
    pub(super) fn leaving(&self, segment: usize) -> u16 {
        match self {
            Self::Bits { leaving, .. } => leaving[segment],
            Self::Sets(_) => 0,
        }
    }

    /// Bytes of memory, as allocated.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Bits { .. } => 0,
            Self::Sets(sets) => sets.bytes(),
        }
    }
}

#[inline(always)]
fn bit(port: u16, segments: u16) -> u16 {
    1 << (if segments == 1 { port } else { port / segments })
}
