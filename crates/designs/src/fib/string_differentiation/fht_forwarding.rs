//! FHT, forwarding side: under which root rule does this name lie, by fingerprints?
//!
//! Source: Yuan15 §4.3.4 (look-up: the collision table first, then the four subtables) and §4.3.7 (prefetching: the
//! buckets of all subtables at the same time; 4 KiB and 2 MiB pages; with and without the collision table, which
//! hardware may take over). Deviation: the paper's names have one component. Here root rules of any length share the
//! table, since the hash of a prefix depends on its length. The lengths that occur are tried from the shortest on. A
//! hit ends the search: the controller ensures that no prefix of a name with a route finds the slot of another.
//!
//! Batches: for each length, the lines of all names are prefetched first, then all names are looked up.
//!
//! Cost: for each length, a look-up reads 4 lines of the collision table and 4 buckets, and 1 line more for wide leads
//! (`wide_leads`). Bytes: those of the parts. Writers: the owner.

use super::differentiator::{Differentiator, Leads, RootMatch};
use super::exact_table::{ExactTable, Key};
use super::fingerprint_hash_table::{FingerprintHashTable, SlotFormat};
use super::wide_leads::WideLeads;
use namewire_tables::fib::DESIGN_BATCH_NAMES;
use namewire_tables::name_hash::NameHashes;
use namewire_tables::pages::PageSize;
use std::io;

/// How a fingerprint hash table is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FhtOptions {
    /// Widths of its fields.
    pub format: SlotFormat,
    /// Pages of the slots and of the collision table.
    pub pages: PageSize,
    /// Entries that the collision table is made for, beside those that the model expects.
    pub collision_entries: usize,
    /// Whether a batch prefetches.
    pub prefetch: bool,
}

impl Default for FhtOptions {
    fn default() -> Self {
        Self { format: SlotFormat::PAPER, pages: PageSize::default(), collision_entries: 0, prefetch: true }
    }
}

/// One change of [`FhtTable`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FhtInstruction {
    /// Occupies a slot, or changes what is in it.
    SetSlot {
        /// Which.
        slot: u32,
        /// The fingerprint of the rule.
        fingerprint: u32,
        /// Where the rule leads.
        leads: Leads,
    },
    /// Makes a slot vacant.
    ClearSlot {
        /// Which.
        slot: u32,
    },
    /// A rule of the collision table, or where it leads now.
    InsertCollision {
        /// Hash of the prefix.
        hash: u64,
        /// The prefix.
        prefix: Box<[u8]>,
        /// Where it leads.
        leads: Leads,
    },
    /// Takes a rule out of the collision table.
    RemoveCollision {
        /// Hash of the prefix.
        hash: u64,
        /// The prefix.
        prefix: Box<[u8]>,
    },
    /// Root rules of this many components are there from now on.
    AddLength {
        /// How many.
        components: u16,
    },
    /// There are none of this many components any more.
    RemoveLength {
        /// How many.
        components: u16,
    },
}

/// The table of a forwarding engine.
pub struct FhtTable {
    slots: FingerprintHashTable,
    collisions: ExactTable,
    wide: WideLeads,
    /// Components of root rules, ascending.
    lengths: Vec<u16>,
    prefetches: bool,
    queries_collisions: bool,
}

impl FhtTable {
    /// An empty one for this many root rules at a load of 93 % at most.
    ///
    /// # Errors
    /// See [`FingerprintHashTable::for_names`].
    pub fn new(rules: usize, options: FhtOptions) -> io::Result<Self> {
        let slots = FingerprintHashTable::for_names(rules, options.format, options.pages)?;
        let expected = expected_collisions(rules, slots.hashes()) + expected_overflows(rules);
        Ok(Self {
            collisions: ExactTable::for_entries(options.collision_entries + expected as usize, options.pages)?,
            slots,
            wide: WideLeads::default(),
            lengths: Vec::new(),
            prefetches: options.prefetch,
            queries_collisions: true,
        })
    }

    /// The slots.
    pub fn slots(&self) -> &FingerprintHashTable {
        &self.slots
    }

    /// The collision table.
    pub fn collisions(&self) -> &ExactTable {
        &self.collisions
    }

    /// Whether batches prefetch from now on.
    pub fn set_prefetch(&mut self, prefetches: bool) {
        self.prefetches = prefetches;
    }

    /// Whether look-ups ask the collision table from now on. Without it rules that are there are not
    /// found: for measuring what hardware in front would save (Fig. 4.7 and 4.14, "w/o ct").
    pub fn set_query_of_collisions(&mut self, queries: bool) {
        self.queries_collisions = queries;
    }

    pub(super) fn set_slot(&mut self, slot: u32, fingerprint: u32, leads: Leads) {
        let escape = (1 << self.slots.format().port_bits) - 1;
        if leads.bits() < escape {
            self.wide.remove(slot);
            self.slots.set(slot, fingerprint, leads.bits() as u32);
        } else {
            self.wide.set(slot, leads);
            self.slots.set(slot, fingerprint, escape as u32);
        }
    }

    pub(super) fn insert_collision(&mut self, hash: u64, prefix: &[u8], leads: Leads) {
        self.collisions.insert(Key { hash, group: 0, bytes: prefix }, leads);
    }

    fn add_length(&mut self, components: u16) {
        if let Err(at) = self.lengths.binary_search(&components) {
            self.lengths.insert(at, components);
        }
    }

    /// Begins to fetch the slots that a name of this hash may have.
    #[inline]
    pub(super) fn prefetch_slots(&self, hash: u64) {
        self.slots.prefetch(hash);
    }

    /// Begins to fetch what [`FhtTable::find_prefix`] reads.
    #[inline]
    fn prefetch(&self, hash: u64) {
        if self.queries_collisions {
            self.collisions.prefetch(hash);
        }
        self.slots.prefetch(hash);
    }

    #[inline]
    fn find_prefix(&self, hash: u64, prefix: &[u8]) -> Option<Leads> {
        if self.queries_collisions
            && let Some(leads) = self.collisions.find(Key { hash, group: 0, bytes: prefix })
        {
            return Some(leads);
        }
        let (slot, port) = self.slots.find(hash)?;
        let escape = (1 << self.slots.format().port_bits) - 1;
        if port == escape { self.wide.get(slot) } else { Some(Leads::to_number(port)) }
    }

    #[inline]
    fn find_length(&self, components: u16, name: &[u8], hashes: &NameHashes) -> Option<RootMatch> {
        let n = components.into();
        let bytes = hashes.prefix_bytes(n);
        let leads = self.find_prefix(hashes.prefix_hash(n), &name[..bytes])?;
        Some(RootMatch { leads, prefix_bytes: bytes as u16 })
    }

    fn find_in_turn(&self, names: &[&[u8]], hashes: &[NameHashes], out: &mut [Option<RootMatch>]) {
        for ((name, hashes), out) in names.iter().zip(hashes).zip(out) {
            let lengths = self.lengths.iter().take_while(|&&length| usize::from(length) <= hashes.components());
            *out = lengths.copied().find_map(|length| self.find_length(length, name, hashes));
        }
    }
}

impl Differentiator for FhtTable {
    type Instruction = FhtInstruction;

    const READS_HASHES: bool = true;

    fn apply(&mut self, instruction: &FhtInstruction) {
        match instruction {
            &FhtInstruction::SetSlot { slot, fingerprint, leads } => self.set_slot(slot, fingerprint, leads),
            &FhtInstruction::ClearSlot { slot } => {
                self.wide.remove(slot);
                self.slots.clear(slot);
            }
            FhtInstruction::InsertCollision { hash, prefix, leads } => self.insert_collision(*hash, prefix, *leads),
            FhtInstruction::RemoveCollision { hash, prefix } => {
                self.collisions.remove(Key { hash: *hash, group: 0, bytes: prefix });
            }
            &FhtInstruction::AddLength { components } => self.add_length(components),
            FhtInstruction::RemoveLength { components } => self.lengths.retain(|length| length != components),
        }
    }

    fn find_root_rules(&self, names: &[&[u8]], hashes: &[NameHashes], out: &mut [Option<RootMatch>]) {
        if !self.prefetches {
            return self.find_in_turn(names, hashes, out);
        }
        out[..names.len()].fill(None);
        let mut open: [u8; DESIGN_BATCH_NAMES] = std::array::from_fn(|name| name as u8);
        let mut open_names = names.len();
        for &length in &self.lengths {
            let mut kept = 0;
            for place in 0..open_names {
                let hashes = &hashes[usize::from(open[place])];
                if hashes.components() >= length.into() {
                    self.prefetch(hashes.prefix_hash(length.into()));
                    open[kept] = open[place];
                    kept += 1;
                }
            }
            open_names = 0;
            for place in 0..kept {
                let name = usize::from(open[place]);
                out[name] = self.find_length(length, names[name], &hashes[name]);
                if out[name].is_none() {
                    open[open_names] = open[place];
                    open_names += 1;
                }
            }
            if open_names == 0 {
                break;
            }
        }
    }

    fn bytes(&self) -> usize {
        self.slots.bytes() + self.collisions.bytes() + self.wide.bytes() + self.lengths.capacity() * 2
    }
}

/// How many of these names find that another name has their hash. All hashes are equally likely.
pub fn expected_collisions(names: usize, hashes: u64) -> f64 {
    let (names, hashes) = (names as f64, hashes as f64);
    // Names less hashes that occur: n - m(1 - e^(-n/m)), n²/2m for small n/m, without its cancellation.
    if names / hashes < 1e-4 { names * names / hashes / 2.0 } else { names + hashes * (-names / hashes).exp_m1() }
}

/// Room for names that find no slot at the load of the paper: 10⁵ of 10⁹, as Table 4.4 has at w = 24. Not a model: it
/// sizes the collision table, and is no evidence for that table.
pub fn expected_overflows(names: usize) -> f64 {
    names as f64 * 1e-4
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 4.4, S_CT. Names without a slot are as many for each length, so that the differences are collisions alone.
    #[test]
    fn the_model_gives_the_differences_between_the_papers_collision_tables() {
        let collisions = |bits: u32| expected_collisions(1_000_000_000, 1 << (25 + bits));
        for (bits, paper) in [(12, 3.69e6), (16, 3.24e5), (20, 1.13e5)] {
            let (model, paper) = (collisions(bits) - collisions(24), paper - 1.01e5);
            // The paper rounds to three digits: 500 names of each of the last two.
            assert!((model - paper).abs() < 0.02 * paper + 2_000.0, "w = {bits}: {model}, paper {paper}");
        }
        assert_eq!(expected_collisions(1_000_000_000, 1 << 41).round(), 227_339.0); // n²/2m: 227,374
    }
}
