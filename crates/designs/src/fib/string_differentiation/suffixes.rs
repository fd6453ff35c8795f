//! Suffixes: which longer rule below this root rule does the name lie under?
//!
//! Source: Yuan15 §4.2: where rules have proper prefixes among them, the suffix strings are kept. With /a and /a/b/c in
//! the FIB, the suffix is /b/c. The paper leaves the structure of the suffixes open. Ours is one [`ExactTable`] for all
//! suffixes. A key has two parts: the *group*, to which a root rule with rules below it leads, and the bytes after the
//! root rule. So nothing of the root rule is kept here, and a search finds exactly the rule.
//!
//! ```text
//! Group │ number of the root rule u32 │ lengths there are, longest first: (components u16, rules u32) … │
//! ```
//!
//! Cost: a look-up reads 1 line of the group. Then, for each of the group's lengths that the name has, longest first,
//! it reads the lines of [`ExactTable`]. Bytes: a group takes 40; a rule takes 16 at 50 to 75 % load, and the suffix.
//! When the table is full, it grows.
//! Writers: the owner.

use super::differentiator::{Leads, Target};
use super::exact_table::{ExactTable, Key};
use namewire_tables::fib::PrefixMatch;
use namewire_tables::name_hash::NameHashes;
use namewire_tables::pages::PageSize;
use namewire_tables::prefetch::prefetch;
use smallvec::SmallVec;
use std::io;

/// How many rules of a group have this many components, root rule included.
#[derive(Clone, Copy)]
struct Length {
    components: u16,
    rules: u32,
}

#[derive(Default)]
struct Group {
    number: u32,
    lengths: SmallVec<[Length; 2]>,
}

/// A rule below a root rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suffix {
    /// The group of its root rule.
    pub group: u32,
    /// The hash of the whole rule.
    pub hash: u64,
    /// How many components the whole rule has.
    pub components: u16,
    /// The bytes after the root rule.
    pub bytes: Box<[u8]>,
}

impl Suffix {
    fn key(&self) -> Key<'_> {
        Key { hash: self.hash, group: self.group, bytes: &self.bytes }
    }
}

/// All groups and their suffixes.
pub struct Suffixes {
    groups: Vec<Group>,
    strings: ExactTable,
}

impl Suffixes {
    /// None.
    ///
    /// # Errors
    /// If the kernel does not map the first pages.
    pub fn new(pages: PageSize) -> io::Result<Self> {
        Ok(Self { groups: Vec::new(), strings: ExactTable::for_entries(0, pages)? })
    }

    /// What the root rule of the group itself leads to.
    pub fn set_root(&mut self, group: u32, number: u32) {
        if self.groups.len() <= group as usize {
            self.groups.resize_with(group as usize + 1, Group::default);
        }
        self.groups[group as usize].number = number;
    }

    /// Adds the rule or lets it lead elsewhere; its group has a root.
    pub fn insert(&mut self, suffix: &Suffix, number: u32) {
        if self.strings.find(suffix.key()).is_none() {
            let lengths = &mut self.groups[suffix.group as usize].lengths;
            let at = lengths.partition_point(|length| length.components > suffix.components);
            match lengths.get_mut(at).filter(|length| length.components == suffix.components) {
                Some(length) => length.rules += 1,
                None => lengths.insert(at, Length { components: suffix.components, rules: 1 }),
            }
        }
        self.strings.insert(suffix.key(), Leads::to_number(number));
    }

    /// Takes the rule out, if it is there.
    pub fn remove(&mut self, suffix: &Suffix) {
        if self.strings.find(suffix.key()).is_none() {
            return;
        }
        self.strings.remove(suffix.key());
        let lengths = &mut self.groups[suffix.group as usize].lengths;
        for length in lengths.iter_mut().filter(|length| length.components == suffix.components) {
            length.rules -= 1;
        }
        lengths.retain(|length| length.rules > 0);
        if lengths.is_empty() {
            lengths.shrink_to_fit();
        }
    }

    /// The longest rule of the group that the name lies under; it lies under the root rule, whose bytes these are.
    pub fn longest(&self, group: u32, root_bytes: u16, name: &[u8], hashes: &NameHashes) -> Option<PrefixMatch> {
        let group_id = group;
        let group = self.groups.get(group as usize)?;
        for length in &group.lengths {
            let n = usize::from(length.components);
            if n > hashes.components() {
                continue;
            }
            let prefix_bytes = hashes.prefix_bytes(n);
            let Some(bytes) = name.get(root_bytes.into()..prefix_bytes) else { break };
            let found = self.strings.find(Key { hash: hashes.prefix_hash(n), group: group_id, bytes });
            if let Some(Target::Number(number)) = found.map(Leads::target) {
                return Some(PrefixMatch { number, prefix_bytes: prefix_bytes as u16 });
            }
        }
        Some(PrefixMatch { number: group.number, prefix_bytes: root_bytes })
    }

    /// Begins to fetch what [`Suffixes::longest`] reads first.
    #[inline]
    pub fn prefetch(&self, group: u32) {
        if let Some(group) = self.groups.get(group as usize) {
            prefetch(group);
        }
    }

    /// How many suffixes there are.
    pub fn len(&self) -> usize {
        self.strings.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.strings.is_empty()
    }

    /// Bytes of memory, as allocated.
    pub fn bytes(&self) -> usize {
        let spilled = self.groups.iter().filter(|group| group.lengths.spilled());
        self.strings.bytes()
            + self.groups.capacity() * size_of::<Group>()
            + spilled.map(|group| group.lengths.capacity() * size_of::<Length>()).sum::<usize>()
    }
}
