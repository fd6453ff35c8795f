//! Prefix index: finds stored Data under every prefix of its name, as in NFD.
//!
//! The index holds the [order](crate::name_order) of the names that have Data, and for each entry what
//! the [versions](super::versions) need. A store that looks up only full names needs no index.
//!
//! ```text
//! version, 40 bytes, by entry:
//!  0        32                   36
//!  | digest | next version, or 0 | digest is known |
//! ```
//!
//! Bytes: the order takes 36 per Data and 4 per name group. Versions take 40 per Data; these bytes are
//! touched only for names with several versions. All these bytes do not count against `cs.capacity`; `cs
//! info` shows them.

use crate::name_group::NameGroups;
use crate::name_order::{MAX_ORDERED_NAME_BYTES, NameOrder};
use crate::pages::{PageArray, PageSize};
use bytemuck::Zeroable;
use std::io;

namewire_packet::names! {
    /// Under which prefixes of its name a stored Data is found.
    #[derive(Default)]
    pub enum PrefixLookup {
        /// The prefixes that Interests for it used.
        #[default]
        Own = "own",
        /// All of them: the first Data in canonical order answers. A name may have several Data.
        All = "all",
    }
}

/// An entry among the Data of its name.
#[derive(Clone, Copy, Zeroable)]
#[repr(C)]
struct Version {
    digest: [u8; 32],
    /// 1 + the entry with the next higher digest; 0 = there is none.
    next: u32,
    digest_is_known: u32,
}

const _: () = assert!(size_of::<Version>() == 40);

pub(super) struct PrefixIndex {
    names: NameOrder,
    /// By entry. Zero unless its name has several Data.
    versions: PageArray<Version>,
}

impl PrefixIndex {
    pub(super) fn new(entries: u32, slots: u32, groups: u32, pages: PageSize) -> io::Result<Self> {
        Ok(Self { names: NameOrder::new(entries, groups, pages)?, versions: PageArray::zeroed(slots as usize, pages)? })
    }

    pub(super) fn grow(&mut self, entries: u32, slots: u32, groups: u32) -> io::Result<()> {
        self.versions.grow(slots as usize)?;
        self.names.grow(entries, groups)
    }

    pub(super) fn bytes(&self) -> usize {
        self.names.bytes() + self.versions.mapped_bytes()
    }

    pub(super) fn next(&self, id: u32) -> Option<u32> {
        self.versions[id as usize].next.checked_sub(1)
    }

    pub(super) fn set_next(&mut self, id: u32, next: Option<u32>) {
        self.versions[id as usize].next = next.map_or(0, |next| next + 1);
    }

    pub(super) fn digest(&self, id: u32) -> Option<&[u8; 32]> {
        let version = &self.versions[id as usize];
        (version.digest_is_known != 0).then_some(&version.digest)
    }

    pub(super) fn set_digest(&mut self, id: u32, digest: [u8; 32]) {
        let version = &mut self.versions[id as usize];
        (version.digest, version.digest_is_known) = (digest, 1);
    }

    /// Removes the entry from the list of its name's Data; returns the entry after it.
    pub(super) fn forget_version(&mut self, id: u32) -> Option<u32> {
        let next = self.next(id);
        // Most elements are zero, on pages that were never touched; keep them so.
        if next.is_some() || self.versions[id as usize].digest_is_known != 0 {
            self.versions[id as usize] = Version::zeroed();
        }
        next
    }

    /// Adds a name that gets its first Data; false if it is too long to be found under a prefix.
    pub(super) fn insert_name(&mut self, groups: &NameGroups, group: u32, fresh_until_ns: u64) -> bool {
        let is_ordered = is_ordered(groups, group);
        if is_ordered {
            self.names.insert(groups, group, fresh_until_ns);
        }
        is_ordered
    }

    /// Removes a name that lost its last Data; its group is still there.
    pub(super) fn remove_name(&mut self, groups: &NameGroups, group: u32) {
        if is_ordered(groups, group) {
            self.names.remove(group);
        }
    }

    pub(super) fn set_fresh_until(&mut self, groups: &NameGroups, group: u32, fresh_until_ns: u64) {
        if is_ordered(groups, group) {
            self.names.set_fresh_until(group, fresh_until_ns);
        }
    }

    pub(super) fn first_under(&self, groups: &NameGroups, prefix: &[u8], fresh_at_ns: Option<u64>) -> Option<u32> {
        self.names.first_under(groups, prefix, fresh_at_ns)
    }
}

fn is_ordered(groups: &NameGroups, group: u32) -> bool {
    groups.name(group).len() <= MAX_ORDERED_NAME_BYTES
}
