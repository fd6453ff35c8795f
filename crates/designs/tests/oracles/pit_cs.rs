//! PIT and Content Store against lists that are searched from end to end.

use crate::adversarial_names::{Components, component, pool, value};
use crate::cs_policy::may_refuse;
use namewire_designs::policies::catalogue::{AdmissionName, EvictionName, PolicyChoice};
use namewire_tables::CsPolicy;
use namewire_tables::content_store::{
    ENTRY_OVERHEAD_BYTES, INDIRECT_OVERHEAD_BYTES, MAX_CAPACITY_BYTES, MAX_EVICTED_PER_BATCH, MAX_INDIRECT,
    stored_bytes,
};
use namewire_tables::name_group::INLINE_NAME_BYTES;
use namewire_tables::pit::{INLINE_REST_BYTES, overflow_bytes};
use namewire_tables::pit_cs::MAX_PIT_ENTRIES;
use namewire_tables::{
    CsArrival, CsId, CsInsert, CsRefusal, GroupHint, GroupToken, HashKey, IndirectRefusal, PageSize, PitCs,
    PitCsConfig, PitId, PitRefusal, PrefixLookup, Probed, Recycle, Variant, hash_name,
};
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::BTreeMap;
use std::sync::LazyLock;

#[derive(Default)]
struct Records(Vec<u32>);

impl Recycle for Records {
    fn recycle(&mut self) {
        self.0.clear();
    }
}

static CONFIG: LazyLock<PitCsConfig> = LazyLock::new(|| PitCsConfig {
    pit_capacity_entries: 6,
    interest_overflow_bytes: 1500,
    cs_capacity_bytes: 5000,
    cs_capacity_packets: 5,
    cs_policy: CsPolicy::default(),
    cs_prefix_lookup: PrefixLookup::Own,
    pages: PageSize::Base,
});

/// An operation on either; the fuzz target uses them too.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    PitInsert { name: Index, variant: usize, bytes: usize },
    PitRemove { entry: Index },
    CsInsert { name: Index, byte: u8, bytes: usize, arrival: CsArrival },
    CsRequest { name: Index },
    CsAddIndirect { name: Index, entry: Index },
    CsTouch { entry: Index },
    CsSetCapacity { bytes: u64, packets: u64 },
    CsSetPolicy(PolicyChoice),
    CsErase { prefix: Index, limit: usize, visits: Option<u32> },
    EndOfBatch,
}

pub(crate) fn operation() -> impl Strategy<Value = Operation> {
    let index = any::<Index>;
    let rest = || prop_oneof![0..100_usize, Just(900)];
    prop_oneof![
        6 => (index(), 0..4_usize, rest())
            .prop_map(|(name, variant, bytes)| Operation::PitInsert { name, variant, bytes }),
        3 => index().prop_map(|entry| Operation::PitRemove { entry }),
        6 => (index(), 0..2_u8, prop_oneof![4 => 0..3_usize, 2 => 0..900_usize, 1 => Just(4700)],
              (0..5_u64, 0..5_u64, 0..4_u32, any::<bool>()))
            .prop_map(|(name, byte, bytes, (fresh_until_ns, now_ns, requests, unsolicited))| {
                let arrival = CsArrival { fresh_until_ns, now_ns, requests, unsolicited };
                Operation::CsInsert { name, byte, bytes, arrival }
            }),
        2 => index().prop_map(|name| Operation::CsRequest { name }),
        5 => (index(), index())
            .prop_map(|(name, entry)| Operation::CsAddIndirect { name, entry }),
        1 => index().prop_map(|entry| Operation::CsTouch { entry }),
        1 => (prop_oneof![Just(0), 0..6000_u64], 0..7_u64)
            .prop_map(|(bytes, packets)| Operation::CsSetCapacity { bytes, packets }),
        1 => policy().prop_map(Operation::CsSetPolicy),
        1 => (index(), 0..4_usize, prop::option::of(1..4_u32))
            .prop_map(|(prefix, limit, visits)| Operation::CsErase { prefix, limit, visits }),
        1 => Just(Operation::EndOfBatch),
    ]
}

fn policy() -> impl Strategy<Value = PolicyChoice> {
    let eviction = prop::sample::select(&EvictionName::ALL);
    let admission = prop_oneof![Just(AdmissionName::All), prop::sample::select(&AdmissionName::ALL)];
    (eviction, admission).prop_map(|(eviction, admission)| PolicyChoice {
        eviction,
        admission,
        ..PolicyChoice::default()
    })
}

struct NaivePending {
    id: PitId,
    rest: Vec<u8>,
    mark: u32,
}

#[derive(Debug)]
struct NaiveStored {
    id: CsId,
    name: Vec<u8>,
    data: Vec<u8>,
    fresh_until_ns: u64,
    unsolicited: bool,
    /// Oldest first.
    indirect: Vec<Vec<u8>>,
}

impl NaiveStored {
    fn bytes(&self) -> u64 {
        let indirect: u64 = self.indirect.iter().map(|name| INDIRECT_OVERHEAD_BYTES + name_bytes(name)).sum();
        ENTRY_OVERHEAD_BYTES + stored_bytes(self.data.len()) + name_bytes(&self.name) + indirect
    }
}

/// The bytes that a name takes outside its group.
fn name_bytes(name: &[u8]) -> u64 {
    if name.len() > INLINE_NAME_BYTES { stored_bytes(name.len()) } else { 0 }
}

struct Token {
    token: GroupToken,
    name: Vec<u8>,
    /// An Interest of the name was pending all the time: the token must resolve.
    pending: bool,
}

#[derive(Default)]
struct Naive {
    pit: BTreeMap<(Vec<u8>, usize), NaivePending>,
    /// Least recently used first.
    cs: Vec<NaiveStored>,
    evicted: Vec<(CsId, Vec<u8>)>,
    evictions: u64,
    capacity: (u64, u64),
    policy: PolicyChoice,
    /// `cs` is in the order in which its Data goes, if the policy has an order.
    order_is_kept: bool,
    tokens: Vec<Token>,
    marks: u32,
}

/// The policies whose order of eviction a list of entries can tell.
fn has_an_order(policy: PolicyChoice) -> bool {
    matches!(policy.eviction, EvictionName::Lru | EvictionName::Fifo) && policy.admission == AdmissionName::All
}

impl Naive {
    fn pending(&self, name: &[u8]) -> bool {
        self.pit.keys().any(|(other, _)| other == name)
    }

    fn lookup(&self, name: &[u8]) -> Option<(CsId, bool)> {
        let direct = self.cs.iter().find(|stored| stored.name == name);
        let indirect = self.cs.iter().find(|stored| stored.indirect.iter().any(|other| other == name));
        direct.map(|stored| (stored.id, true)).or(indirect.map(|stored| (stored.id, false)))
    }

    fn bytes(&self) -> u64 {
        self.cs.iter().map(NaiveStored::bytes).sum()
    }

    fn overflow_bytes(&self) -> u64 {
        let mut names: Vec<_> = self.pit.keys().map(|(name, _)| name).collect();
        names.dedup();
        let names = names.into_iter().map(|name| (name.len(), INLINE_NAME_BYTES));
        let rests = self.pit.values().map(|e| (e.rest.len(), INLINE_REST_BYTES));
        let outside = names.chain(rests).filter(|(bytes, inline)| bytes > inline);
        outside.map(|(bytes, _)| overflow_bytes(bytes)).sum()
    }

    fn drop_stored(&mut self, place: usize) {
        let stored = self.cs.remove(place);
        self.evicted.push((stored.id, stored.data));
    }

    fn fits(&self, more_bytes: u64, more_packets: usize) -> bool {
        let (bytes, packets) = self.capacity;
        self.bytes() + more_bytes <= bytes && (self.cs.len() + more_packets) as u64 <= packets
    }

    /// All Data stays, in the order in which it would have gone. If that order is not known, it is known
    /// again once the store is empty.
    fn set_policy(&mut self, policy: PolicyChoice) {
        self.order_is_kept = has_an_order(self.policy) && self.order_is_kept || self.cs.is_empty();
        self.policy = policy;
    }

    /// Whether this list tells which entry goes, or only that one must.
    fn order_is_known(&mut self) -> bool {
        self.order_is_kept |= self.cs.is_empty();
        self.order_is_kept && has_an_order(self.policy)
    }

    /// `is_stored` tells whether the table has an entry.
    fn evict_until_fits(&mut self, more_bytes: u64, more_packets: usize, is_stored: impl Fn(CsId) -> bool) {
        if self.order_is_known() {
            while !self.cs.is_empty() && !self.fits(more_bytes, more_packets) {
                self.drop_stored(0);
                self.evictions += 1;
            }
            return;
        }
        let mut largest = None;
        while let Some(place) = self.cs.iter().position(|stored| !is_stored(stored.id)) {
            largest = largest.max(Some(self.cs[place].bytes()));
            self.drop_stored(place);
            self.evictions += 1;
        }
        assert!(self.cs.is_empty() || self.fits(more_bytes, more_packets));
        let needed = |largest| !self.fits(more_bytes + largest, more_packets + 1);
        assert!(largest.is_none_or(needed), "one went too many");
    }

    /// How many Data the limits allow, and how many indirect names.
    fn entries_max(&self) -> usize {
        self.capacity.1.min(self.capacity.0 / ENTRY_OVERHEAD_BYTES) as usize
    }

    /// Makes the entry at `place` the newest, if use matters to the policy.
    fn use_stored(&mut self, place: usize) {
        if self.policy.eviction == EvictionName::Lru {
            let stored = self.cs.remove(place);
            self.cs.push(stored);
        }
    }

    fn drop_indirect(&mut self, name: &[u8]) {
        for stored in &mut self.cs {
            stored.indirect.retain(|other| other != name);
        }
    }
}

struct Pair {
    table: PitCs<Records>,
    naive: Naive,
    names: Vec<Vec<u8>>,
    /// Every hint ever given: nearly all of them are stale, or of other names.
    hints: std::collections::BTreeSet<GroupHint>,
    /// Names that were absent when they were probed in this batch.
    absent: std::collections::BTreeSet<Vec<u8>>,
}

impl Pair {
    fn new(names: Vec<Vec<u8>>, cs_policy: PolicyChoice, seed: u64) -> Self {
        let capacity = (CONFIG.cs_capacity_bytes, CONFIG.cs_capacity_packets);
        let naive = Naive { capacity, policy: cs_policy, order_is_kept: true, ..Naive::default() };
        let table = PitCs::new(PitCsConfig { cs_policy: cs_policy.into(), ..CONFIG.clone() }, HashKey::from_seed(seed))
            .unwrap();
        Self { table, naive, names, hints: Default::default(), absent: Default::default() }
    }

    fn hash(&self, name: &[u8]) -> u64 {
        hash_name(self.table.key(), name)
    }

    fn pit_insert(&mut self, name: Vec<u8>, variant: usize, bytes: usize) {
        let rest = vec![variant as u8; bytes];
        let hash = self.hash(&name);
        let found = self.table.find(hash, &name);
        let key = (name, variant);
        let name = &key.0;
        let is_new = !self.naive.pit.contains_key(&key);
        let result = match bytes % 2 {
            1 if is_new => {
                let new = self.table.pit_insert_new(found, hash, name, Variant::ALL[variant], &rest);
                new.map(|(id, _)| (id, true))
            }
            _ => self.table.pit_insert(hash, name, Variant::ALL[variant], &rest),
        };
        if let Some(known) = self.naive.pit.get(&key) {
            assert_eq!(result, Ok((known.id, false)));
            return;
        }
        if self.naive.pit.len() == CONFIG.pit_capacity_entries as usize {
            assert_eq!(result, Err(PitRefusal::Full));
            return;
        }
        self.naive.marks += 1;
        let mark = self.naive.marks;
        let id = result.map_or(PitId(u32::MAX), |(id, _)| id);
        self.naive.pit.insert(key.clone(), NaivePending { id, rest, mark });
        if self.naive.overflow_bytes() > CONFIG.interest_overflow_bytes {
            self.naive.pit.remove(&key);
            assert_eq!(result, Err(PitRefusal::OverflowFull));
            return;
        }
        assert_eq!(result, Ok((id, true)));
        let entry = self.table.pit_mut(id);
        assert!(entry.state.0.is_empty(), "state of an earlier entry shows");
        entry.state.0.push(mark);
        let token = self.table.token(self.table.pit(id).group());
        assert_eq!(GroupToken::from_bits(token.to_bits()), token);
        self.naive.tokens.push(Token { token, name: key.0, pending: true });
    }

    fn pit_remove(&mut self, entry: Index) {
        if self.naive.pit.is_empty() {
            return;
        }
        let key = self.naive.pit.keys().nth(entry.index(self.naive.pit.len())).unwrap().clone();
        let pending = self.naive.pit.remove(&key).unwrap();
        self.table.pit_remove(pending.id);
        assert!(!self.table.pit_exists(pending.id));
        if !self.naive.pending(&key.0) {
            for token in self.naive.tokens.iter_mut().filter(|token| token.name == key.0) {
                token.pending = false;
            }
        }
    }

    fn cs_insert(&mut self, name: Vec<u8>, data: Vec<u8>, arrival: CsArrival) {
        let result = self.table.cs_insert(self.hash(&name), &name, &data, arrival);
        let CsArrival { fresh_until_ns, unsolicited, .. } = arrival;
        let naive = &mut self.naive;
        let bytes = ENTRY_OVERHEAD_BYTES + stored_bytes(data.len()) + name_bytes(&name);
        if bytes > naive.capacity.0 || naive.capacity.1 == 0 {
            assert_eq!(result, CsInsert::Refused(CsRefusal::LargerThanCapacity));
            return;
        }
        let former = naive.cs.iter().position(|stored| stored.name == name);
        if let Some(place) = former {
            if naive.cs[place].data == data {
                let stored = &mut naive.cs[place];
                assert_eq!(result, CsInsert::Refreshed(stored.id));
                stored.fresh_until_ns = fresh_until_ns;
                stored.unsolicited &= unsolicited;
                naive.use_stored(place);
                return;
            }
            naive.drop_stored(place);
        }
        if result == CsInsert::Refused(CsRefusal::NotAdmitted) {
            assert!(former.is_none() && !naive.fits(bytes, 1), "admission is asked when the store is full");
            assert!(may_refuse(CsPolicy::from(naive.policy).name()));
            return;
        }
        naive.drop_indirect(&name);
        naive.evict_until_fits(bytes, 1, |id| self.table.cs_contains(id));
        let id = result.id().expect("it fits");
        let expected = if former.is_some() { CsInsert::Replaced(id) } else { CsInsert::Stored(id) };
        assert_eq!(result, expected);
        let indirect = Vec::new();
        naive.cs.push(NaiveStored { id, name, data, fresh_until_ns, unsolicited, indirect });
    }

    fn cs_add_indirect(&mut self, name: Vec<u8>, entry: Index) {
        if self.naive.cs.is_empty() {
            return;
        }
        let place = entry.index(self.naive.cs.len());
        let id = self.naive.cs[place].id;
        let indirect_names_before = self.table.cs_indirect_len();
        let result = self.table.cs_add_indirect(self.hash(&name), &name, id);
        let naive = &mut self.naive;
        let more_bytes = INDIRECT_OVERHEAD_BYTES + name_bytes(&name);
        if naive.cs[place].bytes() + more_bytes > naive.capacity.0 {
            assert_eq!(result, Err(IndirectRefusal::LargerThanCapacity));
            return;
        }
        let indirect_names: usize = naive.cs.iter().map(|stored| stored.indirect.len()).sum();
        assert_eq!(indirect_names_before, indirect_names);
        match naive.lookup(&name) {
            Some((_, true)) => assert_eq!(result, Err(IndirectRefusal::NameOfOtherData)),
            Some((other, false)) if other == id => assert_eq!(result, Ok(())),
            None if indirect_names >= naive.entries_max() && naive.cs[place].indirect.len() < MAX_INDIRECT => {
                assert_eq!(result, Err(IndirectRefusal::NamesFull))
            }
            _ => {
                naive.drop_indirect(&name);
                let stored = &mut naive.cs[place];
                if stored.indirect.len() == MAX_INDIRECT {
                    stored.indirect.remove(0);
                }
                stored.indirect.push(name);
                naive.evict_until_fits(0, 0, |id| self.table.cs_contains(id));
                let is_stored = naive.cs.iter().any(|stored| stored.id == id);
                assert_eq!(result, if is_stored { Ok(()) } else { Err(IndirectRefusal::NotStored) });
            }
        }
    }

    fn cs_touch(&mut self, entry: Index) {
        if !self.naive.cs.is_empty() {
            let place = entry.index(self.naive.cs.len());
            self.table.cs_touch(self.naive.cs[place].id);
            self.naive.use_stored(place);
        }
    }

    fn cs_erase(&mut self, prefix: &[u8], limit: usize, visits: Option<u32>) {
        let erased = match visits {
            None => self.table.cs_erase_prefix(prefix, limit),
            Some(visits) => self.cs_erase_in_steps(prefix, limit, visits),
        };
        let under = |stored: &NaiveStored| stored.name.starts_with(prefix);
        assert_eq!(erased, self.naive.cs.iter().filter(|s| under(s)).count().min(limit));
        // Which entries went, if not all, is not promised.
        while let Some(place) = self.naive.cs.iter().position(|s| under(s) && !self.table.cs_contains(s.id)) {
            self.naive.drop_stored(place);
        }
    }

    fn cs_erase_in_steps(&mut self, prefix: &[u8], limit: usize, visits: u32) -> usize {
        let (mut erased, mut start) = (0, Some(0));
        while let Some(from) = start {
            if erased == limit {
                break;
            }
            let step = self.table.cs_erase_prefix_step(prefix, limit - erased, from, visits);
            erased += step.0;
            start = step.1;
        }
        erased
    }

    fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::PitInsert { name, variant, bytes } => {
                self.pit_insert(name.get(&self.names).clone(), variant, bytes);
            }
            Operation::PitRemove { entry } => self.pit_remove(entry),
            Operation::CsInsert { name, byte, bytes, arrival } => {
                let name = name.get(&self.names).clone();
                self.cs_insert(name, vec![byte; bytes], arrival);
            }
            Operation::CsRequest { name } => {
                let hash = self.hash(name.get(&self.names[..]).as_slice());
                self.table.prefetch_cs_request(hash);
                self.table.cs_request(hash);
            }
            Operation::CsAddIndirect { name, entry } => {
                self.cs_add_indirect(name.get(&self.names).clone(), entry);
            }
            Operation::CsTouch { entry } => self.cs_touch(entry),
            Operation::CsSetCapacity { bytes, packets } => {
                self.table.cs_set_capacity(bytes, packets).unwrap();
                self.naive.capacity = (bytes, packets);
                self.naive.evict_until_fits(0, 0, |id| self.table.cs_contains(id));
            }
            Operation::CsSetPolicy(policy) => {
                self.table.cs_set_policy(policy.into()).unwrap();
                assert_eq!(*self.table.cs_policy(), policy.into());
                self.naive.set_policy(policy);
            }
            Operation::CsErase { prefix, limit, visits } => {
                self.cs_erase(&prefix.get(&self.names).clone(), limit, visits);
            }
            Operation::EndOfBatch => {
                self.table.end_of_batch();
                self.absent.clear();
                self.naive.evicted.clear();
            }
        }
    }

    fn check(&mut self) {
        self.check_hints();
        self.check_names();
        self.check_pit();
        self.check_cs();
        self.check_tokens();
    }

    /// The hint does not change the answer; and the prefetches take any hint.
    fn check_hints(&mut self) {
        let count = self.hints.len();
        self.table.prefetch_victims(count);
        self.table.prefetch_victim_links(count / 2..count);
        for name in &self.names {
            let hash = self.hash(name);
            self.table.prefetch_bucket(hash);
            let probed = self.table.probe(hash);
            let found = self.table.find(hash, name);
            assert!(probed != Probed::Absent || found.is_none());
            assert_eq!(self.table.find_probed(hash, name, probed), found);
            assert_eq!(self.table.find_probed(hash, name, Probed::NotYet), found);
            if self.absent.contains(name) {
                assert_eq!(self.table.find_probed(hash, name, Probed::Absent), found);
            }
            for &stale in &self.hints {
                assert_eq!(self.table.find_probed(hash, name, Probed::Candidate(stale)), found);
            }
            self.hints.extend(probed.candidate());
            if probed == Probed::Absent {
                self.absent.insert(name.clone());
            }
        }
        for &hint in &self.hints {
            self.table.prefetch_group(hint);
            let first = self.table.prefetch_entries(hint);
            assert!(first.is_none_or(|id| self.table.pit_exists(id)));
        }
    }

    fn check_names(&self) {
        let hashed: Vec<_> = self.names.iter().map(|name| (self.hash(name), name.as_slice())).collect();
        let mut held = std::collections::BTreeSet::new();
        for (hash, name) in hashed {
            let group = self.table.find(hash, name);
            let exists = self.naive.pending(name) || self.naive.lookup(name).is_some();
            assert_eq!(group.is_some(), exists, "a group lives as long as something is in it");
            let Some(group) = group else { continue };
            held.insert(name);
            assert_eq!(self.table.group_name(group), name);
            let hit = self.table.cs_lookup(group).map(|hit| (hit.id, hit.direct));
            assert_eq!(hit, self.naive.lookup(name));
            for (variant, id) in self.table.pit_of_group(group).into_iter().enumerate() {
                let pending = self.naive.pit.get(&(name.to_vec(), variant));
                assert_eq!(id, pending.map(|pending| pending.id));
                if let Some(id) = id {
                    assert_eq!(self.table.pit(id).group(), group);
                }
            }
        }
        assert_eq!(self.table.group_len(), held.len());
    }

    fn check_pit(&self) {
        let mut ids: Vec<_> = self.naive.pit.values().map(|pending| pending.id).collect();
        ids.sort();
        assert_eq!(self.table.pit_iter_ids().collect::<Vec<_>>(), ids);
        assert_eq!(self.table.pit_len(), ids.len());
        assert_eq!(self.table.pit_overflow_bytes(), self.naive.overflow_bytes());
        assert!(self.table.pit_overflow_bytes() <= CONFIG.interest_overflow_bytes);
        for ((_, variant), pending) in &self.naive.pit {
            let entry = self.table.pit(pending.id);
            assert_eq!(entry.variant() as usize, *variant);
            assert_eq!(self.table.pit_rest(pending.id), pending.rest);
            assert_eq!(entry.state.0, [pending.mark]);
        }
    }

    fn check_cs(&self) {
        assert_eq!(self.table.cs_len(), self.naive.cs.len());
        assert_eq!(self.table.cs_bytes(), self.naive.bytes());
        assert_eq!(self.table.cs_capacity(), self.naive.capacity);
        assert!(self.table.cs_bytes() <= self.naive.capacity.0);
        assert!(self.table.cs_len() as u64 <= self.naive.capacity.1);
        assert_eq!(self.table.cs_evictions(), self.naive.evictions);
        for stored in &self.naive.cs {
            let entry = self.table.cs(stored.id);
            assert!(self.table.cs_contains(stored.id));
            assert_eq!(entry.data(), stored.data);
            assert_eq!(entry.name_value(), Some(&stored.name[..]));
            assert_eq!(entry.fresh_until_ns(), stored.fresh_until_ns);
            assert_eq!(entry.is_unsolicited(), stored.unsolicited);
        }
        for (id, data) in &self.naive.evicted {
            assert_eq!(self.table.cs(*id).data(), data, "readable to the end of the batch");
            assert_eq!(self.table.cs(*id).name_value(), None);
            assert!(!self.table.cs_contains(*id));
        }
    }

    fn check_tokens(&self) {
        for Token { token, name, pending } in &self.naive.tokens {
            let group = self.table.group_by_token(*token);
            assert!(group.is_some() || !pending, "the token of a pending Interest is lost");
            if let Some(group) = group {
                assert_eq!(self.table.group_name(group), name);
                assert_eq!(self.table.token(group), *token);
            }
        }
    }
}

/// Names, operations on them, and the policy at first.
pub(crate) fn runs() -> impl Strategy<Value = (Vec<Components>, Vec<Operation>, PolicyChoice)> {
    (pool(), prop::collection::vec(operation(), 1..80), policy())
}

/// Both must do the same.
pub(crate) fn replay(pool: &[Components], operations: Vec<Operation>, policy: PolicyChoice, seed: u64) {
    let names = pool.iter().map(|name| value(name)).collect();
    let mut pair = Pair::new(names, policy, seed);
    for operation in operations {
        pair.apply(operation);
        pair.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn pit_and_cs_equal_the_naive_ones((pool, operations, policy) in runs(), seed: u64) {
        replay(&pool, operations, policy, seed);
    }
}

fn named(number: u32) -> Vec<u8> {
    component(8, &number.to_be_bytes())
}

fn table(config: PitCsConfig) -> PitCs<Records> {
    PitCs::new(config, HashKey::from_seed(1)).unwrap()
}

/// A token's group is freed and its slot reused by other names, once less than there are generations: the
/// token never resolves.
#[test]
fn a_token_never_resolves_to_a_later_group() {
    let mut pit = table(CONFIG.clone());
    let insert = |pit: &mut PitCs<Records>, number| {
        let name = named(number);
        pit.pit_insert(hash_name(pit.key(), &name), &name, Variant::Exact, b"").unwrap().0
    };
    let id = insert(&mut pit, 0);
    let token = pit.token(pit.pit(id).group());
    pit.pit_remove(id);
    for number in 1..1 << 14 {
        assert_eq!(pit.group_by_token(token), None);
        let id = insert(&mut pit, number);
        let group = pit.pit(id).group();
        assert_eq!(group.0, token.index, "the only free slot is used again");
        assert_eq!(pit.group_by_token(token), None);
        assert_eq!(pit.group_by_token(pit.token(group)), Some(group));
        pit.pit_remove(id);
    }
}

#[test]
fn tokens_from_outside_resolve_to_nothing() {
    let mut pit = table(CONFIG.clone());
    pit.pit_insert(hash_name(pit.key(), b""), b"", Variant::Exact, b"").unwrap();
    for bits in [1, 1 << 26, (1 << 40) - 1, u64::MAX] {
        assert_eq!(pit.group_by_token(GroupToken::from_bits(bits)), None);
    }
}

/// An Interest flood meets the capacity, and the Content Store does not take the PIT's room: both fill up
/// completely at once.
#[test]
fn a_flood_of_names_fills_pit_and_cs_and_stops() {
    let mut pit_cs = table(PitCsConfig {
        cs_policy: EvictionName::Lru.into(),
        pit_capacity_entries: 3000,
        interest_overflow_bytes: 0,
        cs_capacity_bytes: u64::MAX,
        cs_capacity_packets: 2000,
        ..CONFIG.clone()
    });
    for number in 0..10_000 {
        let name = [component(8, b"stored"), named(number)].concat();
        let id = pit_cs.cs_insert(hash_name(pit_cs.key(), &name), &name, b"data", CsArrival::default()).id();
        for indirect in 0..5 {
            let name = [named(number), named(indirect)].concat();
            let added = pit_cs.cs_add_indirect(hash_name(pit_cs.key(), &name), &name, id.unwrap());
            // As many as Data: a fourth of the Data take them all, and the others get none until one of
            // those goes. A Data that has four exchanges one for another.
            let is_full = number % 2000 >= 500;
            assert_eq!(added, if is_full { Err(IndirectRefusal::NamesFull) } else { Ok(()) }, "{number} {indirect}");
        }
        pit_cs.end_of_batch();
    }
    assert_eq!((pit_cs.cs_len(), pit_cs.cs_evictions()), (2000, 8000));
    let mut refused = 0;
    for number in 0..10_000 {
        let name = named(number);
        let result = pit_cs.pit_insert(hash_name(pit_cs.key(), &name), &name, Variant::Exact, b"");
        refused += usize::from(result == Err(PitRefusal::Full));
    }
    assert_eq!((pit_cs.pit_len(), refused), (3000, 7000));
    assert_eq!(pit_cs.group_len(), 3000 + 2000 * 2);
}

/// A caller that forgets `end_of_batch` is refused, and memory stops growing.
#[test]
fn evictions_of_one_batch_are_bounded() {
    let mut pit_cs = table(PitCsConfig { cs_capacity_packets: 1, ..CONFIG.clone() });
    let mut insert = |number| {
        let name = named(number);
        let result = pit_cs.cs_insert(hash_name(pit_cs.key(), &name), &name, b"data", CsArrival::default());
        if number > MAX_EVICTED_PER_BATCH {
            assert_eq!(result, CsInsert::Refused(CsRefusal::TooManyEvictions));
            pit_cs.end_of_batch();
            return;
        }
        assert!(result.id().is_some());
    };
    for number in 0..=MAX_EVICTED_PER_BATCH + 1 {
        insert(number);
    }
    assert!(pit_cs.cs_insert(hash_name(pit_cs.key(), b""), b"", b"", CsArrival::default()).id().is_some());
}

#[test]
fn limits_are_clamped_so_that_tokens_can_name_every_group() {
    let pit_cs = table(PitCsConfig {
        pit_capacity_entries: u32::MAX,
        interest_overflow_bytes: u64::MAX,
        cs_capacity_bytes: u64::MAX,
        cs_capacity_packets: u64::MAX,
        ..CONFIG.clone()
    });
    assert_eq!(pit_cs.pit_capacity_entries(), MAX_PIT_ENTRIES);
    let (bytes, packets) = pit_cs.cs_capacity();
    let groups = u64::from(MAX_PIT_ENTRIES) + 2 * packets + 1;
    assert!(groups <= 1 << 26 && groups > (1 << 26) - 2);
    assert_eq!(bytes, MAX_CAPACITY_BYTES);
}

#[test]
fn variants_are_their_selectors() {
    for (number, variant) in Variant::ALL.into_iter().enumerate() {
        assert_eq!(variant as usize, number);
        assert_eq!(Variant::new(variant.can_be_prefix(), variant.must_be_fresh()), variant);
    }
}

/// The Interest that a PIT entry returns equals the one that came, byte for byte.
#[test]
fn an_interest_is_rebuilt_from_its_name_and_its_rest() {
    let mut pit = table(PitCsConfig { interest_overflow_bytes: 1 << 20, ..CONFIG.clone() });
    for (name_bytes, rest_bytes) in [(0, 6), (100, 48), (247, 0), (250, 49), (251, 3), (253, 8000), (30_000, 40_000)] {
        let name = vec![8; name_bytes];
        let rest: Vec<u8> = (0..rest_bytes).map(|byte| byte as u8).collect();
        let tlv = |type_number, value: &[u8]| [component(type_number, value)].concat();
        let interest = match name_bytes + rest_bytes {
            70_000 => {
                let value = [tlv(7, &name), rest.clone()].concat();
                [&[5, 254][..], &(value.len() as u32).to_be_bytes(), &value].concat()
            }
            _ => tlv(5, &[tlv(7, &name), rest.clone()].concat()),
        };
        let (id, _) = pit.pit_insert(hash_name(pit.key(), &name), &name, Variant::Exact, &rest).unwrap();
        let mut rebuilt = vec![77];
        pit.pit_interest(id, &mut rebuilt);
        assert_eq!(rebuilt[1..], interest, "{name_bytes} {rest_bytes}");
        pit.pit_remove(id);
    }
    let too_long = vec![0; 1 << 16];
    for (name, rest) in [(&too_long[..], &b""[..]), (b"", &too_long)] {
        let hash = hash_name(pit.key(), name);
        assert_eq!(pit.pit_insert(hash, name, Variant::Exact, rest), Err(PitRefusal::OverflowFull));
    }
    assert_eq!((pit.pit_len(), pit.pit_overflow_bytes(), pit.group_len()), (0, 0, 0));
}

/// Data evicted in a batch still holds its bytes: the arena runs out of room, says so, and has room again
/// when the batch ends. The store never loses its newest Data by that.
#[test]
fn a_batch_that_evicts_more_than_the_arena_spares_is_refused() {
    let mut pit_cs = table(PitCsConfig { cs_capacity_bytes: 100_000, cs_capacity_packets: 1000, ..CONFIG.clone() });
    let mut numbers = 0..;
    let mut insert = |pit_cs: &mut PitCs<Records>| {
        let name = named(numbers.next().unwrap());
        pit_cs.cs_insert(hash_name(pit_cs.key(), &name), &name, &[7; 8000], CsArrival::default())
    };
    for _ in 0..3 {
        let stored = (0..10_000).take_while(|_| insert(&mut pit_cs).id().is_some()).count();
        assert!((260..300).contains(&stored), "{stored} Data in one batch");
        assert_eq!(insert(&mut pit_cs), CsInsert::Refused(CsRefusal::NoRoomInBatch));
        pit_cs.end_of_batch();
    }
    for _ in 0..1000 {
        assert!(insert(&mut pit_cs).id().is_some());
        pit_cs.end_of_batch();
        assert!((7..=11).contains(&pit_cs.cs_len()));
    }
}

/// Sizes that change again and again scatter holes; the arena's spare room is enough.
#[test]
fn data_of_all_sizes_is_stored_for_ever() {
    for cs_policy in EvictionName::ALL.iter().map(|&eviction| PolicyChoice::from(eviction)) {
        let mut pit_cs = table(PitCsConfig {
            cs_capacity_bytes: 8 << 20,
            cs_capacity_packets: 1 << 20,
            cs_policy: cs_policy.into(),
            ..CONFIG.clone()
        });
        let mut random = fastrand::Rng::with_seed(3);
        let mut refused = 0;
        for number in 0..60_000 {
            let name = named(number);
            let bytes = if number / 10_000 % 2 == 0 { random.usize(0..300) } else { random.usize(0..8800) };
            let inserted =
                pit_cs.cs_insert(hash_name(pit_cs.key(), &name), &name, &vec![1; bytes], CsArrival::default());
            refused += usize::from(inserted.id().is_none());
            let older = named(number - random.u32(0..=number.min(2000)));
            if let Some(group) = pit_cs.find(hash_name(pit_cs.key(), &older), &older) {
                let hit = pit_cs.cs_lookup(group).unwrap();
                pit_cs.cs_touch(hit.id);
            }
            if number % 64 == 0 {
                pit_cs.end_of_batch();
            }
        }
        assert_eq!(refused, 0, "{cs_policy:?}");
    }
}

/// Growing keeps everything stored and pending, in the old places and findable.
#[test]
fn a_store_grows_while_it_is_in_use() {
    let mut pit_cs = table(CONFIG.clone());
    let insert = |pit_cs: &mut PitCs<Records>, number| {
        let name = named(number);
        pit_cs
            .cs_insert(hash_name(pit_cs.key(), &name), &name, &number.to_be_bytes(), CsArrival::default())
            .id()
            .unwrap()
    };
    let name = vec![9; 200];
    let (pending, _) = pit_cs.pit_insert(hash_name(pit_cs.key(), &name), &name, Variant::Exact, &[5; 60]).unwrap();
    let token = pit_cs.token(pit_cs.pit(pending).group());
    let mut last = 0;
    for packets in [5, 500, 20_000] {
        pit_cs.cs_set_capacity(1 << 30, packets).unwrap();
        assert_eq!(pit_cs.cs_capacity(), (1 << 30, packets));
        for number in last..packets as u32 {
            insert(&mut pit_cs, number);
        }
        last = packets as u32;
        for number in 0..last {
            let name = named(number);
            let group = pit_cs.find(hash_name(pit_cs.key(), &name), &name).expect("stored before it grew");
            let hit = pit_cs.cs_lookup(group).unwrap();
            assert_eq!(pit_cs.cs(hit.id).data(), number.to_be_bytes());
        }
        assert_eq!(pit_cs.cs_evictions(), 0);
    }
    let group = pit_cs.group_by_token(token).unwrap();
    assert_eq!((pit_cs.group_name(group), pit_cs.pit_rest(pending)), (&name[..], &[5; 60][..]));
    pit_cs.cs_set_capacity(0, 0).unwrap();
    assert_eq!((pit_cs.cs_len(), pit_cs.group_len()), (0, 1));
}

/// First in, first out: hits and refreshes save no entry.
#[test]
fn fifo_evicts_what_came_first() {
    let mut pit_cs =
        table(PitCsConfig { cs_policy: EvictionName::Fifo.into(), cs_capacity_packets: 3, ..CONFIG.clone() });
    let insert = |pit_cs: &mut PitCs<Records>, number| {
        let name = named(number);
        pit_cs.cs_insert(hash_name(pit_cs.key(), &name), &name, b"data", CsArrival::default())
    };
    let ids = [0, 1, 2].map(|number| insert(&mut pit_cs, number).id().unwrap());
    pit_cs.cs_touch(ids[0]);
    assert_eq!(insert(&mut pit_cs, 0), CsInsert::Refreshed(ids[0]));
    insert(&mut pit_cs, 3);
    assert_eq!(ids.map(|id| pit_cs.cs_contains(id)), [false, true, true]);
}
