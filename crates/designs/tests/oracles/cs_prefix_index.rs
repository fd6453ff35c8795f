//! The Content Store that answers under every prefix, against [`NfdStore`].

use crate::adversarial_names::{Components, component, pool, value};
use crate::cs_policy::may_refuse;
use crate::nfd_store::{NfdStore, Stored};
use namewire_designs::policies::catalogue::{AdmissionName, EvictionName, PolicyChoice};
use namewire_packet::digest::sha256;
use namewire_tables::CsPolicy;
use namewire_tables::content_store::MAX_VERSIONS;
use namewire_tables::name_order::MAX_ORDERED_NAME_BYTES;
use namewire_tables::{
    CsArrival, CsId, CsInsert, CsRefusal, CsWanted, HashKey, PageSize, PitCs, PitCsConfig, PitId, PrefixLookup,
    Recycle, Variant, hash_name,
};
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::BTreeSet;
use std::sync::LazyLock;

#[derive(Default)]
struct Nothing;

impl Recycle for Nothing {
    fn recycle(&mut self) {}
}

static CONFIG: LazyLock<PitCsConfig> = LazyLock::new(|| PitCsConfig {
    pit_capacity_entries: 4,
    interest_overflow_bytes: 4000,
    cs_capacity_bytes: 12_000,
    cs_capacity_packets: 12,
    cs_policy: CsPolicy::default(),
    cs_prefix_lookup: PrefixLookup::All,
    pages: PageSize::Base,
});

/// An operation on either; the fuzz target uses them too.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Pend { name: Index },
    Forget { entry: Index },
    Insert { name: Index, byte: u8, bytes: usize, arrival: CsArrival },
    AddIndirect { name: Index, entry: Index },
    Touch { entry: Index },
    SetCapacity { bytes: u64, packets: u64 },
    SetPolicy(PolicyChoice),
    Erase { prefix: Index, limit: usize },
    EndOfBatch,
}

pub(crate) fn operation() -> impl Strategy<Value = Operation> {
    let index = any::<Index>;
    prop_oneof![
        2 => index().prop_map(|name| Operation::Pend { name }),
        1 => index().prop_map(|entry| Operation::Forget { entry }),
        12 => (index(), 0..4_u8, prop_oneof![4 => 0..3_usize, 1 => 0..900_usize], (0..5_u64, 0..5_u64)).prop_map(
            |(name, byte, bytes, (fresh_until_ns, now_ns))| {
                let arrival = CsArrival { fresh_until_ns, now_ns, requests: 2, unsolicited: false };
                Operation::Insert { name, byte, bytes, arrival }
            }
        ),
        1 => (index(), index()).prop_map(|(name, entry)| Operation::AddIndirect { name, entry }),
        2 => index().prop_map(|entry| Operation::Touch { entry }),
        1 => (prop_oneof![Just(0), 0..15_000_u64], 0..15_u64)
            .prop_map(|(bytes, packets)| Operation::SetCapacity { bytes, packets }),
        1 => policy().prop_map(Operation::SetPolicy),
        1 => (index(), 0..4_usize).prop_map(|(prefix, limit)| Operation::Erase { prefix, limit }),
        2 => Just(Operation::EndOfBatch),
    ]
}

fn policy() -> impl Strategy<Value = PolicyChoice> {
    let eviction = prop::sample::select(&EvictionName::ALL);
    let admission = prop_oneof![4 => Just(AdmissionName::All), 1 => prop::sample::select(&AdmissionName::ALL)];
    (eviction, admission).prop_map(|(eviction, admission)| PolicyChoice {
        eviction,
        admission,
        ..PolicyChoice::default()
    })
}

struct Pair {
    table: PitCs<Nothing>,
    model: NfdStore,
    pending: Vec<PitId>,
    names: Vec<Vec<u8>>,
    /// The names and all their prefixes.
    prefixes: BTreeSet<Vec<u8>>,
    /// Data that was evicted in this batch and can still be read.
    readable: Vec<(CsId, Vec<u8>)>,
}

impl Pair {
    fn new(names: Vec<Vec<Vec<u8>>>, config: PitCsConfig, seed: u64) -> Self {
        let prefixes = names.iter().flat_map(|name| (0..=name.len()).map(|count| value(&name[..count]))).collect();
        Self {
            table: PitCs::new(config, HashKey::from_seed(seed)).unwrap(),
            model: NfdStore::default(),
            pending: Vec::new(),
            names: names.iter().map(|name| value(name)).collect(),
            prefixes,
            readable: Vec::new(),
        }
    }

    fn hash(&self, name: &[u8]) -> u64 {
        hash_name(self.table.key(), name)
    }

    fn insert(&mut self, name: Vec<u8>, data: Vec<u8>, arrival: CsArrival) {
        let known = self.model.get(&name, &data).map(|stored| stored.id);
        let versions = self.model.versions(&name);
        let (evictions, stored) = (self.table.cs_evictions(), self.table.cs_len());
        let result = self.table.cs_insert(self.hash(&name), &name, &data, arrival);
        let evicted = (self.table.cs_evictions() - evictions) as usize;
        match (result, known) {
            (CsInsert::Refreshed(id), Some(known)) => assert_eq!(id, known),
            (CsInsert::Stored(id), None) => assert!(self.table.cs_contains(id)),
            (CsInsert::Replaced(id), None) => assert!(versions == MAX_VERSIONS && self.table.cs_contains(id)),
            (CsInsert::Refused(CsRefusal::NotAdmitted), None) => assert!(may_refuse(self.table.cs_policy().name())),
            (CsInsert::Refused(_), _) => {}
            other => panic!("{other:?}"),
        }
        self.note_gone(evicted + usize::from(matches!(result, CsInsert::Replaced(_))));
        if let Some(id) = result.id() {
            self.model.insert(&name, Stored { id, data, fresh_until_ns: arrival.fresh_until_ns });
        }
        assert!(self.table.cs_len() <= stored + 1);
    }

    /// `count` Data went; their bytes stay until the batch ends.
    fn note_gone(&mut self, count: usize) {
        let gone = self.model.entries.values().filter(|stored| !self.table.cs_contains(stored.id));
        self.readable.extend(gone.map(|stored| (stored.id, stored.data.clone())));
        assert_eq!(self.model.forget_gone(|id| self.table.cs_contains(id)), count);
    }

    fn stored(&self, entry: Index) -> Option<CsId> {
        let ids: Vec<CsId> = self.model.entries.values().map(|stored| stored.id).collect();
        (!ids.is_empty()).then(|| *entry.get(&ids))
    }

    fn apply(&mut self, operation: Operation) {
        let evictions = self.table.cs_evictions();
        match operation {
            Operation::Pend { name } => {
                let name = name.get(&self.names).clone();
                let pending = self.table.pit_insert(self.hash(&name), &name, Variant::CanBePrefix, b"");
                self.pending.extend(pending.ok().filter(|(_, is_new)| *is_new).map(|(id, _)| id));
            }
            Operation::Forget { entry } if !self.pending.is_empty() => {
                let id = self.pending.swap_remove(entry.index(self.pending.len()));
                self.table.pit_remove(id);
            }
            Operation::Insert { name, byte, bytes, arrival } => {
                self.insert(name.get(&self.names).clone(), vec![byte; bytes], arrival);
            }
            Operation::AddIndirect { name, entry } => {
                let name = name.get(&self.names).clone();
                let Some(id) = self.stored(entry) else { return };
                assert_eq!(self.table.cs_add_indirect(self.hash(&name), &name, id), Ok(()));
                assert_eq!(self.table.cs_indirect_len(), 0, "every prefix leads to it anyway");
            }
            Operation::Touch { entry } => self.stored(entry).into_iter().for_each(|id| self.table.cs_touch(id)),
            Operation::SetCapacity { bytes, packets } => {
                self.table.cs_set_capacity(bytes, packets).unwrap();
                self.note_gone((self.table.cs_evictions() - evictions) as usize);
            }
            Operation::SetPolicy(policy) => self.table.cs_set_policy(policy.into()).unwrap(),
            Operation::Erase { prefix, limit } => {
                let prefix = prefix.get(&self.names).clone();
                let under = self.model.entries.keys().filter(|(name, _)| name.starts_with(&prefix)).count();
                let erased = self.table.cs_erase_prefix(&prefix, limit);
                assert_eq!(erased, under.min(limit));
                self.note_gone(erased);
            }
            Operation::EndOfBatch => {
                self.table.end_of_batch();
                self.readable.clear();
            }
            Operation::Forget { .. } => {}
        }
    }

    /// Every question that an Interest can ask gets the model's answer.
    fn check(&self) {
        assert_eq!(self.table.cs_len(), self.model.entries.len());
        let (bytes, packets) = self.table.cs_capacity();
        assert!(self.table.cs_bytes() <= bytes && self.table.cs_len() as u64 <= packets);
        for fresh_at_ns in [None, Some(0), Some(1), Some(3), Some(4), Some(5)] {
            for prefix in &self.prefixes {
                let found = self.table.cs_first_under(prefix, fresh_at_ns);
                assert_eq!(found, self.model.first_under(prefix, fresh_at_ns), "under {prefix:?} at {fresh_at_ns:?}");
                let group = self.table.find(self.hash(prefix), prefix);
                let version =
                    |digest| group.and_then(|group| self.table.cs_version(group, CsWanted { fresh_at_ns, digest }));
                assert_eq!(version(None), self.model.exact(prefix, fresh_at_ns), "{prefix:?}");
                for (_, digest) in self.model.entries.keys().chain([&(Vec::new(), sha256(&[b"other"]))]) {
                    assert_eq!(version(Some(digest)), self.model.by_digest(prefix, digest, fresh_at_ns));
                }
                let direct = group.and_then(|group| self.table.cs_lookup(group)).map(|hit| hit.id);
                assert_eq!(direct, self.model.exact(prefix, None), "a hit needs no further look");
            }
        }
        for stored in self.model.entries.values() {
            assert_eq!(self.table.cs(stored.id).data(), stored.data);
        }
        for (id, data) in &self.readable {
            assert_eq!(self.table.cs(*id).data(), data);
        }
    }
}

/// Names, operations on them, and the policy at first.
pub(crate) fn runs() -> impl Strategy<Value = (Vec<Components>, Vec<Operation>, PolicyChoice)> {
    (pool(), prop::collection::vec(operation(), 1..60), policy())
}

/// Both must answer every Interest with the same Data.
pub(crate) fn replay(pool: Vec<Components>, operations: Vec<Operation>, policy: PolicyChoice, seed: u64) {
    let is_ordered = |name: &Components| value(name).len() <= MAX_ORDERED_NAME_BYTES;
    let names = pool.into_iter().filter(is_ordered).chain([vec![]]).collect();
    let mut pair = Pair::new(names, PitCsConfig { cs_policy: policy.into(), ..CONFIG.clone() }, seed);
    for operation in operations {
        pair.apply(operation);
        pair.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn every_interest_finds_what_nfd_s_store_has((pool, operations, policy) in runs(), seed: u64) {
        replay(pool, operations, policy, seed);
    }
}

/// If a name has more Data than allowed, the one whose freshness ends first goes.
#[test]
fn a_name_has_so_many_versions_and_no_more() {
    let mut pair = Pair::new(vec![vec![component(8, b"a")]], CONFIG.clone(), 1);
    pair.table.cs_set_capacity(1 << 20, 100).unwrap();
    let name = component(8, b"a");
    for number in 0..3 * MAX_VERSIONS as u8 {
        let arrival = CsArrival { fresh_until_ns: 100 + u64::from(number), ..CsArrival::default() };
        pair.insert(name.clone(), vec![number; 9], arrival);
        pair.check();
    }
    let mut kept: Vec<u8> = pair.model.entries.values().map(|stored| stored.data[0]).collect();
    kept.sort();
    assert_eq!(kept, (2 * MAX_VERSIONS as u8..3 * MAX_VERSIONS as u8).collect::<Vec<_>>());
}

/// A name beyond the limit is found by itself and by its digest, and counted.
#[test]
fn a_very_long_name_has_no_prefixes() {
    let mut pair = Pair::new(vec![], CONFIG.clone(), 1);
    for (bytes, is_ordered) in [(MAX_ORDERED_NAME_BYTES - 4, true), (MAX_ORDERED_NAME_BYTES - 3, false)] {
        let name = component(8, &vec![7; bytes]);
        let id = pair.table.cs_insert(pair.hash(&name), &name, b"data", CsArrival::default()).id().unwrap();
        let group = pair.table.find(pair.hash(&name), &name).unwrap();
        let wanted = CsWanted { digest: Some(&sha256(&[b"data"])), fresh_at_ns: None };
        assert_eq!(pair.table.cs_version(group, wanted), Some(id));
        assert_eq!(pair.table.cs_first_under(b"", None), is_ordered.then_some(id));
        assert_eq!(pair.table.cs_unordered_names(), u64::from(!is_ordered));
        // Other Data of the name comes, and all of it goes.
        pair.table.cs_insert(pair.hash(&name), &name, b"other", CsArrival { fresh_until_ns: 9, ..Default::default() });
        assert_eq!(pair.table.cs_erase_prefix(b"", 10), 2);
        assert_eq!((pair.table.cs_first_under(b"", None), pair.table.cs_len()), (None, 0));
    }
}

/// Names that differ from one long name in each of its bits: the longest descent for a name of its length.
#[test]
fn a_name_with_a_neighbour_in_every_bit_is_found() {
    let long = component(8, &[0x55; 200]);
    let mut table: PitCs<Nothing> = PitCs::new(
        PitCsConfig { cs_capacity_bytes: 4 << 20, cs_capacity_packets: 3000, ..CONFIG.clone() },
        HashKey::from_seed(1),
    )
    .unwrap();
    let mut model = NfdStore::default();
    let mut insert = |name: &[u8]| {
        let id = table.cs_insert(hash_name(table.key(), name), name, b"data", CsArrival::default()).id().unwrap();
        model.insert(name, Stored { id, data: b"data".to_vec(), fresh_until_ns: 0 });
        id
    };
    let id = insert(&long);
    let neighbours: Vec<Vec<u8>> = (16..long.len() * 8)
        .map(|bit| {
            let mut name = long.clone();
            name[bit / 8] ^= 1 << (7 - bit % 8);
            name
        })
        .collect();
    for name in &neighbours {
        insert(name);
    }
    assert_eq!(table.cs_first_under(&long, None), Some(id));
    for name in &neighbours {
        assert_eq!(table.cs_first_under(name, None), model.exact(name, None));
    }
    assert_eq!(table.cs_first_under(b"", None), model.first_under(b"", None));
    assert_eq!(table.cs_erase_prefix(&neighbours[0][..2], usize::MAX), neighbours.len() + 1);
    assert_eq!(table.cs_first_under(b"", None), None);
}
