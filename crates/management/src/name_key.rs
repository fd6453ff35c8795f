//! A name as a key of an ordered table.
//!
//! Canonical order of names is the order of their TLV-VALUE bytes (packet-format §3.2), and all names under a prefix
//! start with the prefix's bytes. So in an ordered table the subtree of a prefix is one contiguous range. A prefix can
//! be looked up as a slice, without an owned name.
//!
//! Tables share the bytes: a clone only raises a reference count. A key takes 8 bytes: the length lies beside the
//! bytes.

use namewire_packet::{Name, NameBuf};
use std::{
    borrow::Borrow,
    collections::{BTreeMap, btree_map},
    fmt,
    ops::Bound,
};
use triomphe::ThinArc;

/// A shared name, ordered canonically: its TLV-VALUE.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NameKey(ThinArc<(), u8>);

impl NameKey {
    pub(crate) fn new(name: Name<'_>) -> Self {
        NameKey(ThinArc::from_header_and_slice((), name.value()))
    }

    pub(crate) fn value(&self) -> &[u8] {
        &self.0.slice
    }

    /// Cost: a walk over the components.
    pub(crate) fn name(&self) -> Name<'_> {
        Name::parse_value(self.value()).expect("made from a name")
    }

    pub(crate) fn to_buf(&self) -> NameBuf {
        self.name().to_buf()
    }
}

impl Borrow<[u8]> for NameKey {
    fn borrow(&self) -> &[u8] {
        self.value()
    }
}

impl fmt::Debug for NameKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(f)
    }
}

/// The entries at and under `prefix`, in canonical order. With `after`, only the entries behind it. Cost: one look-up,
/// then one step per entry of the subtree.
pub(crate) fn subtree<'m, V>(
    map: &'m BTreeMap<NameKey, V>,
    prefix: Name<'m>,
    after: Option<&'m NameKey>,
) -> impl Iterator<Item = (&'m NameKey, &'m V)> {
    let from = after.map_or(Bound::Included(prefix.value()), |after| Bound::Excluded(after.value()));
    let from: btree_map::Range<'m, NameKey, V> = map.range::<[u8], _>((from, Bound::Unbounded));
    from.take_while(move |(key, _)| key.value().starts_with(prefix.value()))
}

/// A name written in this crate's source.
pub(crate) fn fixed_name(uri: &str) -> NameBuf {
    uri.parse().expect("names in the source are well-formed")
}
