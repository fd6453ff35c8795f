//! Content Store counts, by policy and by prefix.
//!
//! [`Counters`](crate::Counters) has the totals; this module divides them by policy and by prefix. By policy: at a
//! change of policy, the engine credits everything counted since the last change to the former policy, so a packet
//! costs nothing more. By prefix: the engine looks up the configured prefixes by the name's hashes, which exist anyway.
//! It looks up only the lengths that configured prefixes have. The table takes one or two cache lines. Two names with
//! one keyed 64-bit hash would share a count.
//!
//! Cost: without configured prefixes a packet takes one test, otherwise one look-up per length. Limits: there are at
//! most [`MAX_COUNTED_PREFIXES`] prefixes, and as many policies as the catalogue has names.

use crate::Counters;
use namewire_packet::{NameBuf, counters::Count};
use namewire_tables::{HashKey, NameHashes, PolicyName, PrefixLookup, hash_name};

/// The most prefixes that are counted.
pub const MAX_COUNTED_PREFIXES: usize = 64;

namewire_packet::counters! {
    /// What happened in a Content Store.
    pub struct CsCounts {
        /// Interests that it answered.
        pub hits: u64,
        /// Interests that it could not answer.
        pub misses: u64,
        /// Data that it stored.
        pub insertions: u64,
        /// Data that its policy did not admit.
        pub not_admitted: u64,
        /// Data evicted because of the limits.
        pub evictions: u64,
    }
}

impl CsCounts {
    fn since(&self, earlier: &CsCounts) -> CsCounts {
        CsCounts {
            hits: self.hits - earlier.hits,
            misses: self.misses - earlier.misses,
            insertions: self.insertions - earlier.insertions,
            not_admitted: self.not_admitted - earlier.not_admitted,
            evictions: self.evictions - earlier.evictions,
        }
    }
}

/// What happened under one policy, whatever its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsPolicyCounts {
    /// Name of the policy.
    pub policy: PolicyName,
    /// The counts.
    pub counts: CsCounts,
}

/// What happened to names under a prefix. `not_admitted` and `evictions` are always 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsPrefixCounts {
    /// The prefix.
    pub prefix: NameBuf,
    /// The counts.
    pub counts: CsCounts,
}

/// The report of one engine, or the sum of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsReport {
    /// The policy in force; `None` in a report that an engine has not written.
    pub policy: Option<PolicyName>,
    /// Bytes of memory that the policy has mapped.
    pub policy_bytes: u64,
    /// Under which prefixes stored Data is found.
    pub prefix_lookup: PrefixLookup,
    /// Bytes of memory mapped for finding it so.
    pub prefix_index_bytes: u64,
    /// Most bytes stored, as accounted: the limit in force.
    pub capacity_bytes: u64,
    /// Most packets stored: the limit in force.
    pub capacity_packets: u64,
    /// By policy, in the order in which they first came into force.
    pub policies: Vec<CsPolicyCounts>,
    /// By prefix.
    pub prefixes: Vec<CsPrefixCounts>,
}

impl CsReport {
    /// Adds the report of another engine.
    pub fn merge(&mut self, other: &CsReport) {
        self.policy = self.policy.or(other.policy);
        self.policy_bytes += other.policy_bytes;
        self.prefix_lookup = other.prefix_lookup;
        self.prefix_index_bytes += other.prefix_index_bytes;
        self.capacity_bytes = self.capacity_bytes.saturating_add(other.capacity_bytes);
        self.capacity_packets = self.capacity_packets.saturating_add(other.capacity_packets);
        other.policies.iter().for_each(|counts| add_to(&mut self.policies, counts));
        for more in &other.prefixes {
            match self.prefixes.iter_mut().find(|known| known.prefix == more.prefix) {
                Some(known) => known.counts.merge(&more.counts),
                None => self.prefixes.push(more.clone()),
            }
        }
    }
}

fn add_to(policies: &mut Vec<CsPolicyCounts>, more: &CsPolicyCounts) {
    let is_same = |known: &&mut CsPolicyCounts| known.policy == more.policy;
    match policies.iter_mut().find(is_same) {
        Some(known) => known.counts.merge(&more.counts),
        None => policies.push(*more),
    }
}

/// Policies that were in force before, and the counts when the last of them was replaced.
#[derive(Debug, Default)]
struct FormerPolicies {
    policies: Vec<CsPolicyCounts>,
    counted: CsCounts,
}

/// Places of the table: a power of two, at least twice the prefixes, so that one is always free.
const PLACES: usize = 2 * MAX_COUNTED_PREFIXES;
const FREE: u8 = u8::MAX;

/// The prefixes that are counted.
struct CountedPrefixes {
    counts: Vec<CsPrefixCounts>,
    hashes: Vec<u64>,
    /// Numbers of components of the counted prefixes, each number once, in ascending order.
    lengths: Vec<usize>,
    /// Indices into `counts`, by hash. A prefix whose place is taken goes to the next free place.
    places: [u8; PLACES],
}

impl Default for CountedPrefixes {
    fn default() -> Self {
        Self { counts: Vec::new(), hashes: Vec::new(), lengths: Vec::new(), places: [FREE; PLACES] }
    }
}

impl CountedPrefixes {
    fn insert(&mut self, prefix: &NameBuf, hash: u64, counts: CsCounts) {
        let is_known = self.counts.iter().any(|known| known.prefix == *prefix);
        if is_known || self.counts.len() == MAX_COUNTED_PREFIXES {
            return;
        }
        let mut place = hash as usize % PLACES;
        while self.places[place] != FREE {
            place = (place + 1) % PLACES;
        }
        self.places[place] = self.counts.len() as u8;
        self.counts.push(CsPrefixCounts { prefix: prefix.clone(), counts });
        self.hashes.push(hash);
        let length = prefix.as_name().len();
        if let Err(place) = self.lengths.binary_search(&length) {
            self.lengths.insert(place, length);
        }
    }

    #[inline(always)]
    fn count(&mut self, hashes: &NameHashes, count: impl Fn(&mut CsCounts)) {
        if !self.lengths.is_empty() {
            self.count_all(hashes, count);
        }
    }

    #[inline(never)]
    fn count_all(&mut self, hashes: &NameHashes, count: impl Fn(&mut CsCounts)) {
        for at in 0..self.lengths.len() {
            if self.lengths[at] > hashes.components() {
                return;
            }
            if let Some(number) = self.find(hashes.prefix_hash(self.lengths[at])) {
                count(&mut self.counts[number].counts);
            }
        }
    }

    fn find(&self, hash: u64) -> Option<usize> {
        let mut place = hash as usize % PLACES;
        loop {
            let number = usize::from(self.places[place]);
            if *self.hashes.get(number)? == hash {
                return Some(number);
            }
            place = (place + 1) % PLACES;
        }
    }
}

/// What the engine counts of its Content Store beyond [`Counters`].
#[derive(Default)]
pub struct CsCounting {
    former_policies: FormerPolicies,
    prefixes: CountedPrefixes,
}

impl CsCounting {
    /// Whether what happens under some prefixes is counted.
    #[inline]
    pub fn counts_prefixes(&self) -> bool {
        !self.prefixes.lengths.is_empty()
    }

    /// Credits what was counted so far to the `former` policy.
    pub fn note_policy_change(&mut self, former: PolicyName, counted: CsCounts) {
        let counts = counted.since(&self.former_policies.counted);
        self.former_policies.counted = counted;
        add_to(&mut self.former_policies.policies, &CsPolicyCounts { policy: former, counts });
    }

    /// Counts from now on what happens to names under these prefixes, hashed under `key`; at most
    /// [`MAX_COUNTED_PREFIXES`]. Prefixes that were counted before keep their counts.
    pub fn count_prefixes(&mut self, key: &HashKey, prefixes: &[NameBuf]) {
        let former = std::mem::take(&mut self.prefixes);
        for prefix in prefixes {
            let known = former.counts.iter().find(|known| known.prefix == *prefix);
            let counts = known.map(|known| known.counts).unwrap_or_default();
            self.prefixes.insert(prefix, hash_name(key, prefix.as_name().value()), counts);
        }
    }

    /// Overwrites `report` with the counts by policy and by prefix. The report keeps its memory.
    pub fn report(&self, policy: PolicyName, counted: CsCounts, report: &mut CsReport) {
        report.policy = Some(policy);
        report.policies.clone_from(&self.former_policies.policies);
        let counts = counted.since(&self.former_policies.counted);
        add_to(&mut report.policies, &CsPolicyCounts { policy, counts });
        // N.B. Copies names only when they changed, so that rewriting a report allocates nothing.
        let counted = &self.prefixes.counts;
        report.prefixes.truncate(counted.len());
        for (known, now) in report.prefixes.iter_mut().zip(counted) {
            if known.prefix != now.prefix {
                known.prefix.clone_from(&now.prefix);
            }
            known.counts = now.counts;
        }
        report.prefixes.extend_from_slice(&counted[report.prefixes.len()..]);
    }

    /// Counts an Interest that the store was asked for.
    #[inline]
    pub fn count_look_up(&mut self, counters: &mut Counters, hashes: &NameHashes, is_hit: bool) {
        if is_hit {
            counters.cs_hits += 1;
            self.prefixes.count(hashes, |counts| counts.hits += 1);
        } else {
            counters.cs_misses += 1;
            self.prefixes.count(hashes, |counts| counts.misses += 1);
        }
    }

    /// Counts a Data that was stored.
    #[inline]
    pub fn count_insertion(&mut self, counters: &mut Counters, hashes: &NameHashes) {
        counters.cs_insertions += 1;
        self.prefixes.count(hashes, |counts| counts.insertions += 1);
    }
}
