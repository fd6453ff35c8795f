//! Config: the sizes of a fingerprint-only PIT, and its reasons to refuse.

use crate::pages::PageSize;

/// The largest s.
pub const MAX_SEGMENTS: u8 = 16;
/// The most entries of the overflow table.
pub const MAX_OVERFLOW_ENTRIES: u32 = 1 << 30;

/// How an entry keeps its faces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaceList {
    /// A vector of 16 bits: 16 ports, or 16 for each segment.
    Bits,
    /// The number of one of `max_sets` (1 to 65,535) sets of [`super::MAX_PORTS`] ports. Four times the
    /// number of ports is plenty, unless many ports request many of the same names.
    Sets {
        /// The most different sets that pending entries may have.
        max_sets: u16,
    },
}

/// Sizes of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FingerprintPitConfig {
    /// N, the entries of all subtables of all segments together. It is rounded up so that a subtable has a
    /// power of two of buckets. Up to 75 % of the rounded number, overflow is rare.
    pub capacity_entries: u32,
    /// d: 2 or 4.
    pub subtables: u8,
    /// s: 1 to [`MAX_SEGMENTS`]. A port's Interests are in segment *port mod s*.
    pub segments: u8,
    /// w for one segment: 1 to 16. With more segments, ⌈log₂ s⌉ bits are added.
    pub fingerprint_bits: u8,
    /// Entries of the overflow table, at most [`MAX_OVERFLOW_ENTRIES`].
    pub overflow_entries: u32,
    /// How an entry keeps its faces.
    pub faces: FaceList,
    /// The pages of the arrays.
    pub pages: PageSize,
}

impl FingerprintPitConfig {
    /// The paper's sizes: d = 2, one segment, fingerprints of 16 bits, 16 ports. The overflow table has a
    /// thirty-second of the entries, four times the most that the paper saw in use at 75 %.
    pub const fn new(capacity_entries: u32) -> Self {
        let overflow_entries = if capacity_entries < 1024 { 32 } else { capacity_entries / 32 };
        Self {
            capacity_entries,
            subtables: 2,
            segments: 1,
            fingerprint_bits: 16,
            overflow_entries,
            faces: FaceList::Bits,
            pages: PageSize::Transparent,
        }
    }
}

/// Why an Interest was not recorded. Then nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FingerprintPitRefusal {
    /// All buckets of the name are full, and so is the overflow table.
    #[error("the overflow table of the fingerprint-only PIT is full")]
    OverflowFull,
    /// No entry can have this port: a mistake of the caller.
    #[error("the fingerprint-only PIT has no such port")]
    UnknownPort,
    /// The face that last had this port is closed, and some entries may still name the port.
    #[error("the port of the fingerprint-only PIT is still being cleared")]
    PortLeaving,
    /// There is no room for another set of faces.
    #[error("the face sets of the fingerprint-only PIT are full")]
    FaceSetsFull,
}

/// What happened in a table since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FingerprintPitCounters {
    /// Interests that found an entry of their own name or of another name of the same class.
    pub collisions: u64,
    /// Entries that were made in the overflow table.
    pub overflows: u64,
    /// Interests refused, for any reason.
    pub refused: u64,
    /// Entries that expired and were noticed by a visit to their bucket.
    pub expired_lazily: u64,
}
