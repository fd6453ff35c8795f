//! A name as a key of an ordered table.
//!
//! Canonical order of names is the order of their TLV-VALUE octets
//! (packet-format §3.2), and all names under a prefix start with its octets.
//! So in a `BTreeMap` the subtree of a prefix is one contiguous range, and any
//! prefix can be looked up as a slice, without making an owned name.
//!
//! Tables share the octets: a clone is a reference count.

use namewire_packet::{Name, NameBuf};
use std::{
    borrow::Borrow,
    collections::{BTreeMap, btree_map},
    fmt,
    ops::Bound,
    sync::Arc,
};

/// A shared name, ordered canonically.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NameKey(Arc<NameBuf>);

impl NameKey {
    pub(crate) fn new(name: Name<'_>) -> Self {
        NameKey(Arc::new(name.to_buf()))
    }

    pub(crate) fn name(&self) -> Name<'_> {
        self.0.as_name()
    }

    pub(crate) fn to_buf(&self) -> NameBuf {
        NameBuf::clone(&self.0)
    }
}

impl Borrow<[u8]> for NameKey {
    fn borrow(&self) -> &[u8] {
        self.0.value()
    }
}

impl fmt::Debug for NameKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The entries at and under `prefix`, in canonical order.
/// Cost: one look-up, then one step per entry of the subtree.
pub(crate) fn subtree<'m, V>(
    map: &'m BTreeMap<NameKey, V>,
    prefix: Name<'_>,
) -> impl Iterator<Item = (&'m NameKey, &'m V)> {
    let from: btree_map::Range<'m, NameKey, V> =
        map.range::<[u8], _>((Bound::Included(prefix.value()), Bound::Unbounded));
    let octets = prefix.value().to_vec();
    from.take_while(move |(key, _)| key.name().value().starts_with(&octets))
}
