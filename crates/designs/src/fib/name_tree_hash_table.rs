//! HT: which is the longest prefix of this name, by NFD's name tree?
//!
//! Source: NameTrie18 §V, "HT": a table by the strategy of NFD, which is NFD's name tree (NFD developer guide,
//! NDN-0021, §3.8). **A reconstruction**: from the guide, not from NFD's sources, and the paper describes its own HT in
//! one sentence. It is a chained hash table of *name tree entries*: one for every prefix in the FIB, and one for
//! every prefix of such a prefix, the root included. An entry has its full name and leads to its parent. It is removed
//! when it has neither a FIB entry nor children. A look-up hashes all prefixes of the name. It then asks for each
//! prefix in turn, from the longest length that any entry has down to the root. It compares the hash first and then
//! the whole prefix. The first entry with a FIB entry is the answer.
//!
//! ```text
//! buckets   | u32 | u32 | …         heads of chains (0 = empty)
//!              ▼
//! entry     | hash | next | before | parent | name | children | number | bytes | has number |
//!           0      8      12       16       20     24         28       32       34           40
//! name      the prefix's bytes, in an allocation of its own (`arena`)
//! ```
//!
//! As in NFD: the hash of a prefix is the exclusive or of CityHash64 of its component TLVs. Beyond a load of 1/2 there
//! are twice as many buckets; below 1/10, half as many, but never less than 1024.
//!
//! Deviations:
//! - An entry is 40 bytes and its allocation 8 and fill. NFD's class has several hundred: names parsed, children as a
//!   vector, room for PIT entries. So the memory is what the paper's C program may have needed, not what NFD needs.
//! - NFD ends at 32 components, this table at the limits of all designs.
//! - Batches can be looked up with buckets, entries and names fetched ahead ([`BatchPrefetch`]); NFD does not.
//!
//! An attacker who chooses names can make chains long: equal components cancel out in the hash, which has no key.
//! Answers stay right.
//!
//! Cost of a look-up: for each length, from the longest on, it reads a bucket, and an entry if the bucket has any. If
//! the hash of the entry is the same, it also reads the entry's name. Bytes: an entry takes 40, 2 to 8 for buckets,
//! and the name + 8, rounded up to 16. A prefix has 1 entry and those between it and the next prefix above. Limits:
//! 2³² − 1 entries, 32 GiB of names. Writers: the owner, while there are no readers.

use super::BatchPrefetch;
use crate::city_hash::city_hash_64;
use namewire_tables::arena::Arena;
use namewire_tables::fib::{DESIGN_BATCH_NAMES, PrefixMatch, PrefixTable};
use namewire_tables::fib::{FibRefusal, MAX_PREFIX_BYTES};
use namewire_tables::name_hash::MAX_NAME_COMPONENTS;
use namewire_tables::pages::{PageArray, PageSize};
use namewire_tables::prefetch::prefetch;
use prefixes::Prefixes;
use std::cell::RefCell;
use std::io;

mod prefixes;

/// No entry: 0, so that zeroed buckets are empty. Entry `n` is at place `n - 1`.
const NONE: u32 = 0;
const LEAST_BUCKETS: usize = 1024;
/// Bytes of names that the arena begins with.
const FIRST_NAME_BYTES: u64 = 1 << 16;

#[derive(Clone, Copy, bytemuck::Zeroable)]
#[repr(C)]
struct Entry {
    hash: u64,
    /// In the chain, or in the list of free entries.
    next: u32,
    before: u32,
    parent: u32,
    name: u32,
    children: u32,
    number: u32,
    bytes: u16,
    has_number: bool,
}

const _: () = assert!(size_of::<Entry>() == 40 && std::mem::offset_of!(Entry, has_number) == 34);

/// HT.
pub struct NameTreeHashTable {
    look_ups: BatchPrefetch,
    pages: PageSize,
    buckets: PageArray<u32>,
    entries: PageArray<Entry>,
    /// Places of `entries` that were ever used.
    used_entries: usize,
    free_entry: u32,
    live_entries: usize,
    names: Arena,
    names_bytes: u64,
    /// Element `n`: entries of `n` components.
    entries_of_depth: Box<[u32]>,
    /// The components of the longest entry.
    depth: usize,
    len: usize,
    capacity_entries: usize,
    /// Of the writer.
    prefixes: Prefixes,
}

impl NameTreeHashTable {
    /// An empty table for this many prefixes, on these pages.
    ///
    /// # Errors
    /// If the kernel does not map its arrays.
    pub fn new(capacity_entries: usize, look_ups: BatchPrefetch, pages: PageSize) -> io::Result<Self> {
        Ok(Self {
            look_ups,
            pages,
            buckets: PageArray::zeroed_preferably(LEAST_BUCKETS, pages)?,
            entries: PageArray::zeroed_preferably(0, pages)?,
            used_entries: 0,
            free_entry: NONE,
            live_entries: 0,
            names: Arena::new(FIRST_NAME_BYTES, pages)?.or_transparent(),
            names_bytes: FIRST_NAME_BYTES,
            entries_of_depth: vec![0; MAX_NAME_COMPONENTS + 1].into(),
            depth: 0,
            len: 0,
            capacity_entries,
            prefixes: Prefixes::default(),
        })
    }

    /// How many name tree entries there are: those of prefixes and those between.
    pub fn name_tree_entries(&self) -> usize {
        self.live_entries
    }

    /// Changes how names are looked up from now on.
    pub fn set_look_ups(&mut self, look_ups: BatchPrefetch) {
        self.look_ups = look_ups;
    }

    #[inline]
    fn bucket(&self, hash: u64) -> usize {
        (hash % self.buckets.len() as u64) as usize
    }

    #[inline]
    fn entry(&self, entry: u32) -> &Entry {
        &self.entries[entry as usize - 1]
    }

    fn entry_mut(&mut self, entry: u32) -> &mut Entry {
        &mut self.entries[entry as usize - 1]
    }

    /// The entry of a prefix.
    #[inline]
    fn find(&self, prefix: &[u8], hash: u64) -> Option<u32> {
        let mut at = self.buckets[self.bucket(hash)];
        while at != NONE {
            let entry = self.entry(at);
            let bytes = usize::from(entry.bytes);
            if entry.hash == hash && bytes == prefix.len() && self.names.get(entry.name, bytes) == prefix {
                return Some(at);
            }
            at = entry.next;
        }
        None
    }

    /// The longest prefix of a name, from the prefixes of at most `depth` components.
    fn longest(&self, name: &[u8], hashes: &[u64], ends: &[u16]) -> Option<PrefixMatch> {
        hashes.iter().zip(ends).rev().find_map(|(&hash, &bytes)| {
            let entry = self.entry(self.find(&name[..usize::from(bytes)], hash)?);
            entry.has_number.then_some(PrefixMatch { number: entry.number, prefix_bytes: bytes })
        })
    }

    fn fetch_ahead(&self, hashes: &[u64]) {
        hashes.iter().for_each(|&hash| prefetch(&self.buckets[self.bucket(hash)]));
    }

    fn fetch_entries(&self, hashes: &[u64]) {
        let heads = hashes.iter().map(|&hash| self.buckets[self.bucket(hash)]);
        heads.filter(|&head| head != NONE).for_each(|head| prefetch(self.entry(head)));
    }

    fn fetch_names(&self, hashes: &[u64]) {
        for &hash in hashes {
            let head = self.buckets[self.bucket(hash)];
            if head != NONE && self.entry(head).hash == hash {
                self.names.prefetch(self.entry(head).name, 1);
            }
        }
    }

    /// Adds the entries of all prefixes that have none; that of the longest, or `None` and nothing
    /// changed where there is no memory.
    fn add_entries(&mut self, name: &[u8], prefixes: &Prefixes) -> Option<u32> {
        let (hashes, ends) = prefixes.of(0);
        let known = |n: &usize| self.find(&name[..usize::from(ends[*n])], hashes[*n]);
        let (mut parent, first) = (0..hashes.len()).rev().find_map(|n| Some((known(&n)?, n + 1))).unwrap_or((NONE, 0));
        for n in first..hashes.len() {
            match self.add_entry(&name[..usize::from(ends[n])], hashes[n], n, parent) {
                Some(entry) => parent = entry,
                None => {
                    self.remove_if_empty(parent, n.saturating_sub(1));
                    return None;
                }
            }
        }
        Some(parent)
    }

    fn add_entry(&mut self, prefix: &[u8], hash: u64, depth: usize, parent: u32) -> Option<u32> {
        let at = self.room_for_entry()?;
        let name = self.allocate_name(prefix)?;
        if self.free_entry == at {
            self.free_entry = self.entry(at).next;
        } else {
            self.used_entries += 1;
        }
        *self.entry_mut(at) = Entry { hash, parent, name, bytes: prefix.len() as u16, ..bytemuck::Zeroable::zeroed() };
        self.link(at);
        if parent != NONE {
            self.entry_mut(parent).children += 1;
        }
        self.live_entries += 1;
        self.entries_of_depth[depth] += 1;
        self.depth = self.depth.max(depth);
        if self.live_entries * 2 > self.buckets.len() {
            self.resize(self.buckets.len() * 2);
        }
        Some(at)
    }

    /// Where the next entry is put.
    fn room_for_entry(&mut self) -> Option<u32> {
        if self.free_entry != NONE {
            return Some(self.free_entry);
        }
        if self.used_entries == self.entries.len() {
            let grown = self.used_entries + self.used_entries / 16 + 64;
            u32::try_from(grown).ok()?;
            self.entries.grow(grown).ok()?;
        }
        Some(self.used_entries as u32 + 1)
    }

    fn allocate_name(&mut self, prefix: &[u8]) -> Option<u32> {
        if let Some(name) = self.names.allocate(prefix) {
            return Some(name);
        }
        let grown = self.names_bytes + self.names_bytes / 16 + FIRST_NAME_BYTES;
        self.names.grow(grown).ok()?;
        self.names_bytes = grown;
        self.names.allocate(prefix)
    }

    /// Removes an entry of `depth` components that has neither number nor children, and so on to the root.
    fn remove_if_empty(&mut self, mut at: u32, mut depth: usize) {
        while at != NONE {
            let entry = *self.entry(at);
            if entry.has_number || entry.children > 0 {
                break;
            }
            self.unlink(at);
            self.names.free(entry.name);
            self.entry_mut(at).next = std::mem::replace(&mut self.free_entry, at);
            self.live_entries -= 1;
            self.entries_of_depth[depth] -= 1;
            if entry.parent != NONE {
                self.entry_mut(entry.parent).children -= 1;
            }
            (at, depth) = (entry.parent, depth.saturating_sub(1));
        }
        while self.depth > 0 && self.entries_of_depth[self.depth] == 0 {
            self.depth -= 1;
        }
        if self.live_entries * 10 < self.buckets.len() && self.buckets.len() > LEAST_BUCKETS {
            self.resize(self.buckets.len() / 2);
        }
    }

    /// Puts an entry at the head of its chain.
    fn link(&mut self, at: u32) {
        let bucket = self.bucket(self.entry(at).hash);
        let next = std::mem::replace(&mut self.buckets[bucket], at);
        self.entry_mut(at).next = next;
        self.entry_mut(at).before = NONE;
        if next != NONE {
            self.entry_mut(next).before = at;
        }
    }

    fn unlink(&mut self, at: u32) {
        let Entry { hash, next, before, .. } = *self.entry(at);
        if before == NONE {
            let bucket = self.bucket(hash);
            self.buckets[bucket] = next;
        } else {
            self.entry_mut(before).next = next;
        }
        if next != NONE {
            self.entry_mut(next).before = before;
        }
    }

    /// Moves all chains to another number of buckets; stays as it is where there is no memory for them.
    fn resize(&mut self, buckets: usize) {
        let Ok(fresh) = PageArray::zeroed_preferably(buckets, self.pages) else { return };
        let former = std::mem::replace(&mut self.buckets, fresh);
        for &head in former.iter() {
            let mut at = head;
            while at != NONE {
                let next = self.entry(at).next;
                self.link(at);
                at = next;
            }
        }
    }

    /// The entry of a prefix within the limits, and its components.
    fn get(&mut self, prefix: &[u8]) -> Option<(u32, usize)> {
        let mut prefixes = std::mem::take(&mut self.prefixes);
        let is_whole = prefixes.compute_one(prefix);
        let (hashes, _) = prefixes.of(0);
        let depth = hashes.len() - 1;
        let found = is_whole.then(|| self.find(prefix, hashes[depth])).flatten();
        self.prefixes = prefixes;
        Some((found?, depth))
    }
}

impl PrefixTable for NameTreeHashTable {
    fn insert(&mut self, prefix: &[u8], number: u32) -> Result<Option<u32>, FibRefusal> {
        if let Some((at, _)) = self.get(prefix).filter(|&(at, _)| self.entry(at).has_number) {
            return Ok(Some(std::mem::replace(&mut self.entry_mut(at).number, number)));
        }
        let mut prefixes = std::mem::take(&mut self.prefixes);
        let is_whole = prefixes.compute_one(prefix);
        let result = if !is_whole {
            Err(FibRefusal::PrefixTooLong)
        } else if self.len == self.capacity_entries {
            Err(FibRefusal::Full)
        } else {
            self.add_entries(prefix, &prefixes).ok_or(FibRefusal::NoMemory)
        };
        self.prefixes = prefixes;
        let at = result?;
        let entry = self.entry_mut(at);
        (entry.number, entry.has_number) = (number, true);
        self.len += 1;
        Ok(None)
    }

    fn remove(&mut self, prefix: &[u8]) -> Option<u32> {
        let (at, depth) = self.get(prefix)?;
        let entry = self.entry_mut(at);
        if !std::mem::take(&mut entry.has_number) {
            return None;
        }
        let number = entry.number;
        self.len -= 1;
        self.remove_if_empty(at, depth);
        Some(number)
    }

    fn longest_prefix_match_batch(&self, names: &[&[u8]], out: &mut [Option<PrefixMatch>]) {
        assert!(names.len() <= DESIGN_BATCH_NAMES && names.len() <= out.len());
        PREFIXES.with_borrow_mut(|prefixes| {
            prefixes.clear();
            if self.look_ups == BatchPrefetch::None {
                for (name, out) in names.iter().zip(out) {
                    prefixes.clear();
                    prefixes.compute(name, self.depth);
                    let (hashes, ends) = prefixes.of(0);
                    *out = self.longest(name, hashes, ends);
                }
                return;
            }
            for (place, name) in names.iter().enumerate() {
                prefixes.compute(name, self.depth);
                self.fetch_ahead(prefixes.of(place).0);
            }
            (0..names.len()).for_each(|place| self.fetch_entries(prefixes.of(place).0));
            (0..names.len()).for_each(|place| self.fetch_names(prefixes.of(place).0));
            for (place, (name, out)) in names.iter().zip(out).enumerate() {
                let (hashes, ends) = prefixes.of(place);
                *out = self.longest(name, hashes, ends);
            }
        });
    }

    fn len(&self) -> usize {
        self.len
    }

    fn bytes(&self) -> usize {
        let arrays = self.buckets.mapped_bytes() + self.entries.mapped_bytes() + self.names_bytes as usize;
        size_of::<Self>() + arrays + size_of_val(&*self.entries_of_depth) + self.prefixes.bytes()
    }
}

thread_local! {
    /// A buffer that outlives the batch.
    static PREFIXES: RefCell<Prefixes> = RefCell::default();
}
