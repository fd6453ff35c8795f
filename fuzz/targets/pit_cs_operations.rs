//! Question: does the table of pending Interests and stored Data keep exactly what was put into it, within its limits,
//! in any order of operations?
//!
//! Input: a list of operations on sixteen names. A map is the model of the PIT side. Checks of the Content Store: a
//! match is the Data that was stored last, no Data vanishes without a counted eviction, and the accounted bytes stay
//! within the capacity.
#![no_main]

use std::collections::{BTreeMap, BTreeSet};

use libfuzzer_sys::{
    arbitrary::{self, Arbitrary},
    fuzz_target,
};
use namewire_designs::policies::catalogue::{AdmissionName, EvictionName, PolicyChoice};
use namewire_tables::{
    CsArrival, CsInsert, GroupToken, HashKey, PageSize, PitCs, PitCsConfig, PitId, PitRefusal, PrefixLookup, Recycle,
    Variant, hash_name,
};

const PIT_CAPACITY_ENTRIES: u32 = 20;
const INTEREST_OVERFLOW_BYTES: u64 = 2_000;

#[derive(Arbitrary, Debug)]
enum Operation {
    Pend { name: u8, variant: u8, interest_bytes: u16 },
    Forget { name: u8, variant: u8 },
    Store { name: u8, data_bytes: u16, fill: u8 },
    AlsoUnder { stored: u8, name: u8 },
    Request { name: u8 },
    Touch { name: u8 },
    Resize { kib: u8, packets: u8 },
    Erase { prefix: u8, limit: u8 },
    EndOfBatch,
}

#[derive(Default)]
struct State(u64);

impl Recycle for State {
    fn recycle(&mut self) {
        self.0 = 0;
    }
}

/// `/a` to `/p` and below each other: /n, /n/n+1; number 0 is long.
fn name_value(number: u8) -> Vec<u8> {
    let number = number % 16;
    let letter = |n: u8| [8, 1, b'a' + n];
    match number {
        0 => [&[8, 200][..], &[7; 200]].concat(), // too long to be stored inline
        1..8 => letter(number).to_vec(),
        _ => [letter(number - 8), letter(number)].concat(),
    }
}

fn variant(number: u8) -> Variant {
    Variant::ALL[usize::from(number % 4)]
}

/// The table and its model.
struct Checked {
    table: PitCs<State>,
    pending: BTreeMap<(Vec<u8>, u8), (PitId, Vec<u8>)>,
    /// The Data last stored under a name; absent if it may have been evicted.
    stored: BTreeMap<Vec<u8>, Vec<u8>>,
    evictions_seen: u64,
    old_tokens: BTreeMap<Vec<u8>, Vec<u64>>,
    serial: u64,
}

impl Checked {
    fn hash(&self, name: &[u8]) -> u64 {
        hash_name(self.table.key(), name)
    }

    fn pend(&mut self, name: Vec<u8>, kind: u8, interest_bytes: u16) {
        let interest = vec![kind; usize::from(interest_bytes % 600)];
        let known = self.pending.get(&(name.clone(), kind % 4)).cloned();
        match self.table.pit_insert(self.hash(&name), &name, variant(kind), &interest) {
            Ok((id, is_new)) => {
                assert_eq!(is_new, known.is_none());
                if let Some((known_id, known_interest)) = known {
                    assert_eq!((id, self.table.pit_rest(id)), (known_id, &known_interest[..]));
                    return;
                }
                assert_eq!(self.table.pit(id).state.0, 0, "state left over from an earlier entry");
                self.serial += 1;
                self.table.pit_mut(id).state.0 = self.serial;
                self.pending.insert((name, kind % 4), (id, interest));
            }
            Err(PitRefusal::Full) => assert_eq!(self.table.pit_len(), PIT_CAPACITY_ENTRIES as usize),
            Err(PitRefusal::OverflowFull) => assert!(known.is_none() && (interest.len() > 48 || name.len() > 96)),
        }
    }

    fn forget(&mut self, name: Vec<u8>, kind: u8) {
        if let Some((id, _)) = self.pending.remove(&(name, kind % 4)) {
            self.table.pit_remove(id);
            assert!(!self.table.pit_exists(id));
        }
    }

    fn store(&mut self, name: Vec<u8>, data_bytes: u16, fill: u8) {
        let data = vec![fill; usize::from(data_bytes % 4000)];
        let inserted = self.table.cs_insert(
            self.hash(&name),
            &name,
            &data,
            CsArrival { fresh_until_ns: 5, ..CsArrival::default() },
        );
        if let CsInsert::Refused(_) = inserted {
            return; // the stored Data stays
        }
        self.stored.insert(name, data);
        let id = inserted.id().expect("not refused");
        assert!(self.table.cs_contains(id));
    }

    fn direct(&self, name: &[u8]) -> Option<namewire_tables::CsId> {
        let group = self.table.find(self.hash(name), name)?;
        self.table.cs_lookup(group).filter(|hit| hit.direct).map(|hit| hit.id)
    }

    fn also_under(&mut self, stored: &[u8], name: &[u8]) {
        let Some(id) = self.direct(stored) else { return };
        if self.table.cs_add_indirect(self.hash(name), name, id).is_ok() {
            let group = self.table.find(self.hash(name), name).expect("just added");
            assert_eq!(self.table.cs_lookup(group).expect("just added").id, id);
        }
    }

    fn erase(&mut self, prefix: &[u8], limit: usize) {
        let before = self.table.cs_len();
        let erased = self.table.cs_erase_prefix(prefix, limit);
        assert!(erased <= limit);
        assert_eq!(self.table.cs_len(), before - erased);
        let gone: Vec<Vec<u8>> = self.stored.keys().filter(|name| self.direct(name).is_none()).cloned().collect();
        assert!(gone.iter().all(|name| name.starts_with(prefix)), "erased another name");
        gone.iter().for_each(|name| drop(self.stored.remove(name)));
    }

    fn check(&mut self) {
        assert_eq!(self.table.pit_len(), self.pending.len());
        assert!(self.table.pit_overflow_bytes() <= INTEREST_OVERFLOW_BYTES);
        let (bytes, packets) = self.table.cs_capacity();
        assert!(self.table.cs_bytes() <= bytes && self.table.cs_len() as u64 <= packets);
        for ((name, kind), (id, interest)) in &self.pending {
            let group = self.table.find(self.hash(name), name).expect("pending");
            assert_eq!(self.table.group_name(group), name);
            assert_eq!(self.table.pit_of_group(group)[usize::from(*kind)], Some(*id));
            assert_eq!(self.table.pit_rest(*id), interest);
            assert_ne!(self.table.pit(*id).state.0, 0);
        }
        self.check_stored();
        self.check_tokens();
    }

    fn check_stored(&mut self) {
        let evicted = self.table.cs_evictions() - self.evictions_seen;
        self.evictions_seen += evicted;
        let mut gone = Vec::new();
        for (name, data) in &self.stored {
            match self.direct(name) {
                Some(id) => assert_eq!(self.table.cs(id).data(), data),
                None => gone.push(name.clone()),
            }
        }
        assert!(gone.len() as u64 <= evicted, "{} Data vanished, {evicted} evictions counted", gone.len());
        gone.iter().for_each(|name| drop(self.stored.remove(name)));
        assert_eq!(self.table.cs_len(), self.stored.len());
    }

    /// A token leads to its name, and to no entry once the name is gone.
    fn check_tokens(&mut self) {
        for name in (0..16).map(name_value) {
            let found = self.table.find(self.hash(&name), &name);
            let current = found.map(|group| self.table.token(group).to_bits());
            if let Some(group) = found {
                assert_eq!(self.table.group_by_token(self.table.token(group)), Some(group));
            }
            let tokens = self.old_tokens.entry(name).or_default();
            for bits in tokens.iter().filter(|bits| Some(**bits) != current) {
                assert_eq!(self.table.group_by_token(GroupToken::from_bits(*bits)), None);
            }
            tokens.extend(current.filter(|bits| !tokens.contains(bits)));
        }
    }
}

fuzz_target!(|operations: Vec<Operation>| {
    let (evictions, admissions) = (EvictionName::ALL, AdmissionName::ALL);
    let cs_policy = PolicyChoice {
        eviction: evictions[operations.len() % evictions.len()],
        admission: admissions[operations.len() / evictions.len() % admissions.len()],
        ..PolicyChoice::default()
    };
    let config = PitCsConfig {
        pit_capacity_entries: PIT_CAPACITY_ENTRIES,
        interest_overflow_bytes: INTEREST_OVERFLOW_BYTES,
        cs_capacity_bytes: 8_000,
        cs_capacity_packets: 6,
        cs_policy: cs_policy.into(),
        cs_prefix_lookup: PrefixLookup::Own,
        pages: PageSize::Base,
    };
    let mut checked = Checked {
        table: PitCs::new(config, HashKey::from_seed(7)).unwrap(),
        pending: BTreeMap::new(),
        stored: BTreeMap::new(),
        evictions_seen: 0,
        old_tokens: BTreeMap::new(),
        serial: 0,
    };
    for operation in operations {
        match operation {
            Operation::Pend { name, variant, interest_bytes } => {
                checked.pend(name_value(name), variant, interest_bytes)
            }
            Operation::Forget { name, variant } => checked.forget(name_value(name), variant),
            Operation::Store { name, data_bytes, fill } => checked.store(name_value(name), data_bytes, fill),
            Operation::AlsoUnder { stored, name } => checked.also_under(&name_value(stored), &name_value(name)),
            Operation::Request { name } => {
                let hash = checked.hash(&name_value(name));
                checked.table.cs_request(hash);
            }
            Operation::Touch { name } => {
                if let Some(id) = checked.direct(&name_value(name)) {
                    checked.table.cs_touch(id);
                }
            }
            Operation::Resize { kib, packets } => {
                checked.table.cs_set_capacity(u64::from(kib % 16) * 1024, u64::from(packets % 8)).unwrap();
            }
            Operation::Erase { prefix, limit } => checked.erase(&name_value(prefix), usize::from(limit % 4)),
            Operation::EndOfBatch => checked.table.end_of_batch(),
        }
        checked.check();
    }
    let ids: BTreeSet<PitId> = checked.table.pit_iter_ids().collect();
    assert_eq!(ids, checked.pending.values().map(|(id, _)| *id).collect());
});
