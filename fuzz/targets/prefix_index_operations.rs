//! Question: does a Content Store that answers under every prefix find the same Data as NFD's store, after any sequence
//! of storing, refreshing, evicting and erasing?
//!
//! Input: a list of operations on sixteen names, some of them prefixes of others. The model is that of the property
//! tests. After each operation, every Interest that the names allow is looked up in both.
#![no_main]

use libfuzzer_sys::{
    arbitrary::{self, Arbitrary},
    fuzz_target,
};
use namewire_designs::policies::catalogue::EvictionName;
use namewire_tables::{
    CsArrival, CsWanted, HashKey, PageSize, PitCs, PitCsConfig, PitId, PrefixLookup, Recycle, Variant, hash_name,
};

#[path = "../../crates/designs/tests/oracles/nfd_store.rs"]
mod nfd_store;

use nfd_store::{NfdStore, Stored};

#[derive(Arbitrary, Debug)]
enum Operation {
    Pend { name: u8 },
    Forget,
    Store { name: u8, fill: u8, data_bytes: u8, fresh_until_ns: u8 },
    Touch { name: u8 },
    Resize { packets: u8 },
    Erase { prefix: u8, limit: u8 },
    EndOfBatch,
}

#[derive(Default)]
struct Nothing;

impl Recycle for Nothing {
    fn recycle(&mut self) {}
}

/// `/`, `/a` to `/c`, `/a/a` to `/c/a`, …: every second bit pair is a component; number 0 is the root.
fn name_value(number: u8) -> Vec<u8> {
    let mut value = Vec::new();
    let mut left = number % 16;
    while left > 0 {
        value.extend([8 + (left & 1) * 46, 1, b'a' + (left & 3)]);
        left >>= 2;
    }
    value
}

struct Checked {
    table: PitCs<Nothing>,
    model: NfdStore,
    pending: Vec<PitId>,
}

impl Checked {
    fn hash(&self, name: &[u8]) -> u64 {
        hash_name(self.table.key(), name)
    }

    fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Pend { name } => {
                let name = name_value(name);
                let pending = self.table.pit_insert(self.hash(&name), &name, Variant::Exact, b"");
                self.pending.extend(pending.ok().filter(|(_, is_new)| *is_new).map(|(id, _)| id));
            }
            Operation::Forget => self.pending.pop().into_iter().for_each(|id| self.table.pit_remove(id)),
            Operation::Store { name, fill, data_bytes, fresh_until_ns } => {
                let (name, data) = (name_value(name), vec![fill % 4; usize::from(data_bytes % 4)]);
                let fresh_until_ns = u64::from(fresh_until_ns % 8);
                let arrival = CsArrival { fresh_until_ns, ..CsArrival::default() };
                let inserted = self.table.cs_insert(self.hash(&name), &name, &data, arrival);
                self.model.forget_gone(|id| self.table.cs_contains(id));
                if let Some(id) = inserted.id() {
                    self.model.insert(&name, Stored { id, data, fresh_until_ns });
                }
            }
            Operation::Touch { name } => {
                let id = self.model.first_under(&name_value(name), None);
                id.into_iter().for_each(|id| self.table.cs_touch(id));
            }
            Operation::Resize { packets } => {
                self.table.cs_set_capacity(20_000, u64::from(packets % 20)).expect("address space");
            }
            Operation::Erase { prefix, limit } => {
                self.table.cs_erase_prefix(&name_value(prefix), usize::from(limit % 4));
            }
            Operation::EndOfBatch => self.table.end_of_batch(),
        }
        self.model.forget_gone(|id| self.table.cs_contains(id));
        assert_eq!(self.table.cs_len(), self.model.entries.len(), "what went and what is left");
    }

    fn check(&self) {
        for name in (0..16).map(name_value) {
            let group = self.table.find(self.hash(&name), &name);
            for fresh_at_ns in [None, Some(0), Some(3), Some(7)] {
                assert_eq!(self.table.cs_first_under(&name, fresh_at_ns), self.model.first_under(&name, fresh_at_ns));
                let version =
                    |digest| group.and_then(|group| self.table.cs_version(group, CsWanted { fresh_at_ns, digest }));
                assert_eq!(version(None), self.model.exact(&name, fresh_at_ns));
                for (_, digest) in self.model.entries.keys() {
                    assert_eq!(version(Some(digest)), self.model.by_digest(&name, digest, fresh_at_ns));
                }
            }
        }
        for ((name, _), stored) in &self.model.entries {
            assert_eq!(self.table.cs(stored.id).data(), stored.data);
            assert!(self.model.get(name, &stored.data).is_some() && self.model.versions(name) > 0);
        }
    }
}

fuzz_target!(|operations: Vec<Operation>| {
    let config = PitCsConfig {
        pit_capacity_entries: 8,
        interest_overflow_bytes: 1_000,
        cs_capacity_bytes: 20_000,
        cs_capacity_packets: 12,
        cs_policy: EvictionName::ALL[operations.len() % EvictionName::ALL.len()].into(),
        cs_prefix_lookup: PrefixLookup::All,
        pages: PageSize::Base,
    };
    let table = PitCs::new(config, HashKey::from_seed(7)).expect("address space");
    let mut checked = Checked { table, model: NfdStore::default(), pending: Vec::new() };
    for operation in operations {
        checked.apply(operation);
        checked.check();
    }
});
