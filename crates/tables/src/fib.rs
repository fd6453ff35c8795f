//! FIB: which next hops has the longest prefix of this name?
//!
//! Source: NFD developer guide (NDN-0021) for the content; Takemasa17 §3.3.1 for
//! the search: longest first, one hash probe per length. This is the papers'
//! "Naive" (Takemasa19 §4.4.1). Deviation: lengths that no prefix has are skipped,
//! and the table is a SwissTable instead of cache-line buckets with chains.
//!
//! One entry = one prefix with its next hops (cheapest first), the strategy that
//! applies there and whether the entry is *hidden*: made for a strategy choice
//! only, and not shown in datasets. An entry has an id and a generation; the
//! generation grows when the slot is reused or its content changes, so that side
//! tables keyed by (id, generation) notice.
//!
//! Cost of a look-up: per length that exists and is no longer than the name, 1
//! line of control bytes, on a tag match 1 line of indices, 2 of the entry, 1-2
//! of its name. Bytes per entry: 116 + about 6 of index + the name
//! in a box + next hops beyond four.
//! Limits: the capacity, [`MAX_NAME_COMPONENTS`], [`MAX_PREFIX_OCTETS`],
//! [`MAX_NEXT_HOPS`]; beyond them `insert` refuses and nothing changes.
//! Who may write: the one owner (`&mut`); readers share `&Fib`.

use crate::name_hash::{HashKey, MAX_NAME_COMPONENTS, NameHashes, count_components, hash_name};
use crate::slab::Slab;
use hashbrown::HashTable;
use smallvec::SmallVec;

/// The longest prefix, in octets of its TLV-VALUE: what fits into one packet.
pub const MAX_PREFIX_OCTETS: usize = 8800;
/// The most next hops of one entry.
pub const MAX_NEXT_HOPS: usize = 1024;

/// One way onwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// The face to send to.
    pub face: u64,
    /// Lower is better.
    pub cost: u64,
}

/// Names an entry while it exists; a small number, reused after removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FibEntryId(pub u32);

/// A view of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FibEntry<'a> {
    /// The prefix: octets of a Name TLV-VALUE.
    pub name_value: &'a [u8],
    /// Cheapest first; equal costs in the order given at insertion.
    pub nexthops: &'a [NextHop],
    /// An opaque number of the strategy that applies here.
    pub strategy: u32,
    /// Not to be shown in datasets.
    pub hidden: bool,
    /// The entry's slot.
    pub id: FibEntryId,
    /// Grows when the slot is reused or its content changes; wraps after 2³².
    pub generation: u32,
}

/// What an insertion did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inserted {
    /// The entry, new or old.
    pub id: FibEntryId,
    /// The prefix was there before.
    pub replaced: bool,
}

/// Why an insertion was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FibRefusal {
    /// The capacity is used up.
    #[error("the FIB is full")]
    Full,
    /// The prefix is longer than [`MAX_PREFIX_OCTETS`] or [`MAX_NAME_COMPONENTS`].
    #[error("the prefix is too long for the FIB")]
    PrefixTooLong,
    /// More than [`MAX_NEXT_HOPS`].
    #[error("the FIB entry would have more than {MAX_NEXT_HOPS} next hops")]
    TooManyNextHops,
}

/// The forwarding information base.
#[derive(Clone)]
pub struct Fib {
    key: HashKey,
    index: HashTable<u32>,
    slots: Slab<Slot>,
    lengths: Lengths,
}

#[derive(Clone, Default)]
struct Slot {
    hash: u64,
    name_value: Box<[u8]>,
    nexthops: SmallVec<[NextHop; 4]>,
    generation: u32,
    strategy: u32,
    components: u16,
    hidden: bool,
}

const _: () = assert!(size_of::<Slot>() == 112);

impl Fib {
    /// An empty FIB of at most `capacity_entries`. `key` must be the one that the
    /// [`NameHashes`] of look-ups are made with.
    pub fn new(capacity_entries: usize, key: HashKey) -> Self {
        let capacity = u32::try_from(capacity_entries).unwrap_or(u32::MAX);
        Self { key, index: HashTable::new(), slots: Slab::new(capacity), lengths: Lengths::default() }
    }

    /// The key for [`NameHashes::compute`].
    pub fn key(&self) -> &HashKey {
        &self.key
    }

    /// How many prefixes there are.
    pub fn len(&self) -> usize {
        self.slots.len() as usize
    }

    /// Whether there is no prefix at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many prefixes there may be.
    pub fn capacity_entries(&self) -> usize {
        self.slots.capacity() as usize
    }

    /// Adds the prefix, or replaces what it leads to.
    pub fn insert(
        &mut self,
        name_value: &[u8],
        nexthops: &[NextHop],
        strategy: u32,
        hidden: bool,
    ) -> Result<Inserted, FibRefusal> {
        if name_value.len() > MAX_PREFIX_OCTETS {
            return Err(FibRefusal::PrefixTooLong);
        }
        let components = count_components(name_value).map_err(|_| FibRefusal::PrefixTooLong)?;
        if nexthops.len() > MAX_NEXT_HOPS {
            return Err(FibRefusal::TooManyNextHops);
        }
        let mut nexthops: SmallVec<[NextHop; 4]> = SmallVec::from_slice(nexthops);
        nexthops.sort_by_key(|next_hop| next_hop.cost); // stable

        let hash = hash_name(&self.key, name_value);
        if let Some(id) = self.find(hash, name_value) {
            let slot = self.slots.get_mut(id);
            if (&slot.nexthops, slot.strategy, slot.hidden) != (&nexthops, strategy, hidden) {
                slot.nexthops = nexthops;
                slot.strategy = strategy;
                slot.hidden = hidden;
                slot.generation = slot.generation.wrapping_add(1);
            }
            return Ok(Inserted { id: FibEntryId(id), replaced: true });
        }

        let id = self.slots.allocate().ok_or(FibRefusal::Full)?;
        let slot = self.slots.get_mut(id);
        *slot = Slot {
            hash,
            name_value: name_value.into(),
            nexthops,
            generation: slot.generation.wrapping_add(1),
            strategy,
            components: components as u16,
            hidden,
        };
        let slots = &self.slots;
        self.index.insert_unique(hash, id, |&other| slots.get(other).hash);
        self.lengths.add(components);
        Ok(Inserted { id: FibEntryId(id), replaced: false })
    }

    /// Removes the prefix; says whether it was there.
    pub fn remove(&mut self, name_value: &[u8]) -> bool {
        let hash = hash_name(&self.key, name_value);
        let slots = &self.slots;
        let Ok(found) = self.index.find_entry(hash, |&id| slots.get(id).is(hash, name_value)) else {
            return false;
        };
        let (id, _) = found.remove();
        let slot = self.slots.get_mut(id);
        slot.name_value = Box::default();
        slot.nexthops = SmallVec::new();
        let components = slot.components as usize;
        self.slots.release(id);
        self.lengths.subtract(components);
        true
    }

    /// The entry of exactly this prefix.
    pub fn get(&self, name_value: &[u8]) -> Option<FibEntry<'_>> {
        let id = self.find(hash_name(&self.key, name_value), name_value)?;
        Some(self.entry(FibEntryId(id)))
    }

    /// The entry of the longest prefix of `name_value`, the root included.
    ///
    /// `hashes` must be those of `name_value` under [`Fib::key`].
    pub fn longest_prefix_match(&self, name_value: &[u8], hashes: &NameHashes) -> Option<FibEntry<'_>> {
        self.longest(name_value, hashes).map(|id| self.entry(id))
    }

    /// [`Fib::longest_prefix_match`] of every name of a batch.
    ///
    /// # Panics
    /// If `out` is shorter than `names`.
    pub fn longest_prefix_match_batch(&self, names: &[(&[u8], &NameHashes)], out: &mut [Option<FibEntryId>]) {
        assert!(out.len() >= names.len(), "one result per name");
        for (&(name_value, hashes), result) in names.iter().zip(out) {
            *result = self.longest(name_value, hashes);
        }
    }

    /// The entry that has this id now.
    ///
    /// # Panics
    /// If no entry has it. Ids from this `&Fib` are good as long as the borrow.
    #[inline]
    pub fn entry(&self, id: FibEntryId) -> FibEntry<'_> {
        assert!(self.slots.is_live(id.0), "FIB entry {} does not exist", id.0);
        let slot = self.slots.get(id.0);
        FibEntry {
            name_value: &slot.name_value,
            nexthops: &slot.nexthops,
            strategy: slot.strategy,
            hidden: slot.hidden,
            id,
            generation: slot.generation,
        }
    }

    /// The entry with this id if it still has this generation.
    pub fn entry_of_generation(&self, id: FibEntryId, generation: u32) -> Option<FibEntry<'_>> {
        let entry = self.slots.is_live(id.0).then(|| self.entry(id))?;
        (entry.generation == generation).then_some(entry)
    }

    /// Every entry, hidden ones included, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = FibEntry<'_>> {
        self.slots.live_ids().map(|id| self.entry(FibEntryId(id)))
    }

    fn longest(&self, name_value: &[u8], hashes: &NameHashes) -> Option<FibEntryId> {
        self.lengths.descending_from(hashes.components()).find_map(|n| {
            let prefix = name_value.get(..hashes.prefix_octets(n))?;
            self.find(hashes.prefix_hash(n), prefix).map(FibEntryId)
        })
    }

    #[inline]
    fn find(&self, hash: u64, name_value: &[u8]) -> Option<u32> {
        self.index.find(hash, |&id| self.slots.get(id).is(hash, name_value)).copied()
    }
}

impl Slot {
    #[inline]
    fn is(&self, hash: u64, name_value: &[u8]) -> bool {
        self.hash == hash && *self.name_value == *name_value
    }
}

/// Which prefix lengths (in components) exist, with how many prefixes each.
#[derive(Clone)]
struct Lengths {
    prefixes: Box<[u32; MAX_NAME_COMPONENTS + 1]>,
    present: [u64; MAX_NAME_COMPONENTS / 64 + 1],
}

impl Default for Lengths {
    fn default() -> Self {
        Self { prefixes: Box::new([0; MAX_NAME_COMPONENTS + 1]), present: [0; MAX_NAME_COMPONENTS / 64 + 1] }
    }
}

impl Lengths {
    fn add(&mut self, components: usize) {
        self.prefixes[components] += 1;
        self.present[components / 64] |= 1 << (components % 64);
    }

    fn subtract(&mut self, components: usize) {
        self.prefixes[components] -= 1;
        if self.prefixes[components] == 0 {
            self.present[components / 64] &= !(1 << (components % 64));
        }
    }

    /// The lengths that exist and are at most `longest`, longest first.
    #[inline]
    fn descending_from(&self, longest: usize) -> impl Iterator<Item = usize> + '_ {
        let longest = longest.min(MAX_NAME_COMPONENTS);
        let mut word = longest / 64;
        let mut bits = self.present[word] & (u64::MAX >> (63 - longest % 64));
        std::iter::from_fn(move || {
            while bits == 0 {
                word = word.checked_sub(1)?;
                bits = self.present[word];
            }
            let bit = bits.ilog2() as usize;
            bits &= !(1 << bit);
            Some(word * 64 + bit)
        })
    }
}

/// SHIM
#[derive(Clone, Copy, Debug)]
pub struct FibHint(u32);
/// SHIM
impl Fib {
    /// SHIM
    pub fn prefetch_buckets(&self, _h: &NameHashes) {}
    /// SHIM
    pub fn candidate(&self, _h: &NameHashes) -> Option<FibHint> { None }
    /// SHIM
    pub fn prefetch_entry(&self, _hint: FibHint) {}
    /// SHIM
    pub fn longest_prefix_match_hinted(&self, name: &[u8], h: &NameHashes, _hint: Option<FibHint>) -> Option<FibEntry<'_>> { self.longest_prefix_match(name, h) }
}
