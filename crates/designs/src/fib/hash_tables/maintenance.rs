//! Maintenance: which markers inherit from a prefix that is inserted, changed or removed?
//!
//! Source: Yuan15 §3.3.1, "FIB Updates", after Waldvogel et al. There are three ways: enumerate all longer entries;
//! keep for each prefix a list of its markers ([`super::marker_lists`]); or let markers that inherit from one prefix
//! share partitions ([`super::marker_partitions`]). Deviation: what markers inherit from the root is not written into
//! them, so that a default route costs nothing.
//!
//! | | memory | a change, m markers inherit from the prefix | a new prefix |
//! | --- | --- | --- | --- |
//! | enumerate | none | every longer entry | every longer entry |
//! | lists | 8 to 16 bytes per marker | m | those that it takes over |
//! | partitions | 10 to 20 bytes per marker | the partitions below it, m / 64 at best | the same; at most two partitions, of 64 markers each, are cut |
//!
//! Writers: the owner.

use super::fingerprint_table::FingerprintTable;
use super::marker_lists::MarkerLists;
use super::marker_partitions::MarkerPartitions;
use super::name_entries::{Forwarding, IN_PARTITION, NOTHING, NameEntries, SlotRef};
use super::search_order::SearchOrder;
use namewire_tables::pages::PageSize;
use std::io;

namewire_packet::names! {
    /// How markers follow the prefixes that they inherit from.
    #[derive(Default)]
    pub enum MarkerMaintenance {
        /// All longer entries are looked through at every update.
        Enumerate = "enumerate",
        /// Every prefix has a list of its markers.
        Lists = "lists",
        /// Markers that inherit from the same prefix share an indirection, 64 at most.
        #[default]
        Partitions = "partitions",
    }
}

/// A marker: its slot, and how many bytes it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marker {
    pub(super) name_entry: u32,
    pub(super) bytes: u16,
    pub(super) slot: u8,
}

impl Marker {
    pub(super) fn at(self) -> SlotRef {
        SlotRef { name_entry: self.name_entry, slot: self.slot }
    }
}

/// The marker's own bytes.
pub(super) fn name_of(names: &NameEntries, marker: Marker) -> &[u8] {
    &names.string(marker.name_entry)[..marker.bytes.into()]
}

/// The tables, for who looks through all of them.
pub(super) struct Everything<'t> {
    pub(super) tables: &'t [FingerprintTable],
    pub(super) order: &'t SearchOrder,
}

/// The method and its data.
pub(super) enum MarkerKeeper {
    Enumerate,
    Lists(MarkerLists),
    Partitions(MarkerPartitions),
}

impl MarkerKeeper {
    pub(super) fn new(maintenance: MarkerMaintenance, pages: PageSize) -> io::Result<Self> {
        Ok(match maintenance {
            MarkerMaintenance::Enumerate => Self::Enumerate,
            MarkerMaintenance::Lists => Self::Lists(MarkerLists::default()),
            MarkerMaintenance::Partitions => Self::Partitions(MarkerPartitions::new(pages)?),
        })
    }

    /// Makes sure that there can be this many more markers.
    ///
    /// # Errors
    /// If the kernel has no memory for them; nothing changed.
    pub(super) fn reserve(&mut self, more: usize) -> io::Result<()> {
        match self {
            Self::Enumerate | Self::Lists(_) => Ok(()),
            Self::Partitions(partitions) => partitions.reserve(more),
        }
    }

    /// A marker is there from now on and inherits this from its longest prefix.
    pub(super) fn enter(&mut self, names: &mut NameEntries, marker: Marker, inherited: Forwarding) {
        match self {
            Self::Enumerate => names.set(marker.at(), inherited),
            Self::Lists(lists) => lists.enter(names, marker, inherited),
            Self::Partitions(partitions) => partitions.enter(names, marker, inherited),
        }
    }

    /// A marker is removed, or is a prefix from now on.
    pub(super) fn leave(&mut self, names: &mut NameEntries, marker: Marker) {
        match self {
            Self::Enumerate => {}
            Self::Lists(lists) => lists.leave(names, marker),
            Self::Partitions(partitions) => partitions.leave(names, marker),
        }
    }

    /// Markers below `prefix` that inherit from a prefix of `from` bytes inherit `to` now. One of the two is of
    /// `prefix` itself, and the other is of `prefix` too, or of the longest prefix above it.
    pub(super) fn hand_over(
        &mut self,
        names: &mut NameEntries,
        everything: Everything<'_>,
        prefix: &[u8],
        components: usize,
        from: u16,
        to: Forwarding,
    ) {
        match self {
            Self::Enumerate => {
                let Everything { tables, order } = everything;
                for (components, table) in tables.iter().enumerate().skip(components + 1) {
                    let slot = order.slot(components) as u8;
                    for name_entry in table.name_entries() {
                        let at = SlotRef { name_entry, slot };
                        // No prefix below `prefix` has this few bytes, so the entry is a marker.
                        if names.forwarding(at).matched_bytes == from && names.begins_with(name_entry, prefix) {
                            names.set(at, to);
                        }
                    }
                }
            }
            Self::Lists(lists) => lists.hand_over(names, prefix, from, to),
            Self::Partitions(partitions) => partitions.hand_over(names, prefix, from, to),
        }
    }

    /// What a slot means.
    #[inline(always)]
    pub(super) fn resolve(&self, forwarding: Forwarding) -> Forwarding {
        match self {
            Self::Partitions(partitions) if forwarding.matched_bytes == IN_PARTITION => {
                partitions.forwarding(forwarding.number)
            }
            _ => forwarding,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Enumerate => 0,
            Self::Lists(lists) => lists.bytes(),
            Self::Partitions(partitions) => partitions.bytes(),
        }
    }
}

const _: () = assert!(namewire_tables::fib::MAX_PREFIX_BYTES < NOTHING as usize - 2, "the special lengths are none");
