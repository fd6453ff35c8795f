//! Units: the entry array is divided into units.

/// Bytes of a unit.
pub(super) const UNIT_BYTES: usize = 4;
/// Units before a plain name.
pub(super) const HEADER_UNITS: usize = 2;
