//! Bulk load: how are a billion names put into fingerprint hash tables without a controller that keeps them?
//!
//! Source: Yuan15 §4.3.4 to §4.3.7, one billion random names of one component. Their full names (30 bytes each, and
//! what a RIB needs in addition) do not fit into memory. So they are handed over once, in batches, and forgotten.
//! Forgetting them is right if the caller knows what a controller would have checked: all names are different, and none
//! is a prefix of another or of a name with a route. Then a name whose fingerprint is taken is inserted into the
//! collision table. In the second phase of §4.3.5, a name of the default table that finds a slot with its fingerprint
//! is also inserted into the collision table. What is loaded cannot be changed later.
//!
//! Cost: loading a name reads what a look-up reads, and writes one line. The buckets of all names of a batch are
//! prefetched first.
//! Writers: the owner.

use super::differentiator::Leads;
use super::fht_forwarding::{FhtInstruction, FhtTable};
use super::forwarding_table::{ForwardingTable, Instruction};
use namewire_tables::fib::{DESIGN_BATCH_NAMES, PrefixMatch};
use namewire_tables::name_hash::{HashKey, hash_name};

/// Fills one table.
pub struct BulkLoad {
    key: HashKey,
    table: ForwardingTable<FhtTable>,
    names: u64,
    collisions: u64,
    overflows: u64,
}

impl BulkLoad {
    /// Fills `table`, which is empty, with names of this many components; `key` is the table's. Names that are not
    /// found lead to `default`.
    pub fn new(key: HashKey, mut table: ForwardingTable<FhtTable>, components: u16, default: Option<u32>) -> Self {
        table.apply(&Instruction::RootRule(FhtInstruction::AddLength { components }));
        table.apply(&Instruction::SetDefault { number: default });
        Self { key, table, names: 0, collisions: 0, overflows: 0 }
    }

    /// Adds names, at most [`DESIGN_BATCH_NAMES`], and the number that each leads to.
    pub fn insert_batch(&mut self, names: &[&[u8]], numbers: &[u32]) {
        let hashes = self.hashes(names);
        let table = self.table.differentiator_mut();
        for ((name, &number), hash) in names.iter().zip(numbers).zip(hashes) {
            let leads = Leads::to_number(number);
            let slot = if table.slots().find(hash).is_some() {
                self.collisions += 1;
                None
            } else {
                let slot = table.slots().vacant_slot(hash);
                self.overflows += u64::from(slot.is_none());
                slot
            };
            match slot {
                Some(slot) => {
                    let fingerprint = table.slots().fingerprint(hash);
                    table.set_slot(slot, fingerprint, leads);
                }
                None => table.insert_collision(hash, name, leads),
            }
            self.names += 1;
        }
    }

    /// Notes names of the default table: those that would be taken for others go to the collision table.
    pub fn note_default_batch(&mut self, names: &[&[u8]], number: u32) {
        let hashes = self.hashes(names);
        let table = self.table.differentiator_mut();
        for (name, hash) in names.iter().zip(hashes) {
            if table.slots().find(hash).is_some() {
                table.insert_collision(hash, name, Leads::to_number(number));
                self.collisions += 1;
            }
        }
    }

    /// Hashes the names and asks for their buckets.
    fn hashes(&self, names: &[&[u8]]) -> [u64; DESIGN_BATCH_NAMES] {
        let mut hashes = [0; DESIGN_BATCH_NAMES];
        for (name, hash) in names.iter().zip(&mut hashes) {
            *hash = hash_name(&self.key, name);
            self.table.differentiator().prefetch_slots(*hash);
        }
        hashes
    }

    /// The table as it is.
    pub fn table(&self) -> &ForwardingTable<FhtTable> {
        &self.table
    }

    /// The same, to set its options.
    pub fn table_mut(&mut self) -> &mut ForwardingTable<FhtTable> {
        &mut self.table
    }

    /// How many names were added, not counting those of the default table.
    pub fn names(&self) -> u64 {
        self.names
    }

    /// How many names found their fingerprint taken.
    pub fn collisions(&self) -> u64 {
        self.collisions
    }

    /// How many names found no room.
    pub fn overflows(&self) -> u64 {
        self.overflows
    }

    /// Looks names up; see [`ForwardingTable::longest_prefix_match_batch`].
    pub fn longest_prefix_match_batch(&self, names: &[&[u8]], out: &mut [Option<PrefixMatch>]) {
        self.table.longest_prefix_match_batch(names, out);
    }
}
