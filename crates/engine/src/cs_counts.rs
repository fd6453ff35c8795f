//! What the Content Store did: under which policy, and for which prefixes?
//!
//! The counters of the whole are [`Counters`](crate::Counters)'; here they are divided. By policy: when
//! another policy comes, what was counted since the last change is put down to the former one,
//! so that a packet costs nothing more. By prefix: the prefixes to be counted are looked for by
//! the hashes that the name has anyway, in a table of one line or two, and only those lengths that
//! occur among them; of two names with one keyed hash of 64 bits nobody will hear.
//!
//! Cost: without prefixes one test; with them one look per length. Limits:
//! [`MAX_COUNTED_PREFIXES`]; there are as many policies as the catalogue has names.

use crate::{Engine, LimitMet};
use namewire_packet::NameBuf;
use namewire_tables::{AdmissionName, CsPolicy, EvictionName, NameHashes, PrefixLookup, hash_name};
use std::io;

/// The most prefixes that are counted.
pub const MAX_COUNTED_PREFIXES: usize = 64;

/// What happened in a Content Store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CsCounts {
    /// Interests that it answered.
    pub hits: u64,
    /// Interests that it could not answer.
    pub misses: u64,
    /// Data that it took in.
    pub insertions: u64,
    /// Data that its policy did not let in.
    pub not_admitted: u64,
    /// Data that went because of the limits.
    pub evictions: u64,
}

impl CsCounts {
    /// Adds up.
    pub fn add(&mut self, more: &CsCounts) {
        self.hits += more.hits;
        self.misses += more.misses;
        self.insertions += more.insertions;
        self.not_admitted += more.not_admitted;
        self.evictions += more.evictions;
    }

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

/// What happened while a policy was in force, its options aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsPolicyCounts {
    /// What went.
    pub eviction: EvictionName,
    /// What came in.
    pub admission: AdmissionName,
    /// How often what.
    pub counts: CsCounts,
}

/// What happened to names under a prefix: not admitted and evicted are always 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsPrefixCounts {
    /// The prefix.
    pub prefix: NameBuf,
    /// How often what.
    pub counts: CsCounts,
}

/// All of it, of one engine or of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsReport {
    /// The policy in force; `None` in a report that an engine has not written.
    pub policy: Option<CsPolicy>,
    /// Octets of memory that it has mapped.
    pub policy_bytes: u64,
    /// Under which prefixes Data is found.
    pub prefix_lookup: PrefixLookup,
    /// Bytes of memory mapped for that.
    pub prefix_index_bytes: u64,
    /// The octets that may be stored, as accounted: the limit in force.
    pub capacity_bytes: u64,
    /// The packets that may be stored: the limit in force.
    pub capacity_packets: u64,
    /// By policy, in the order in which they were first in force.
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
                Some(known) => known.counts.add(&more.counts),
                None => self.prefixes.push(more.clone()),
            }
        }
    }
}

fn add_to(policies: &mut Vec<CsPolicyCounts>, more: &CsPolicyCounts) {
    let is_same = |known: &&mut CsPolicyCounts| (known.eviction, known.admission) == (more.eviction, more.admission);
    match policies.iter_mut().find(is_same) {
        Some(known) => known.counts.add(&more.counts),
        None => policies.push(*more),
    }
}

/// Policies that were in force before, and what had been counted when the last of them went.
#[derive(Debug, Default)]
pub(crate) struct FormerPolicies {
    policies: Vec<CsPolicyCounts>,
    counted: CsCounts,
}

/// Places of the table: twice the prefixes and a power of two, so that one is always free.
const PLACES: usize = 2 * MAX_COUNTED_PREFIXES;
const FREE: u8 = u8::MAX;

/// The prefixes that are counted.
pub(crate) struct CountedPrefixes {
    counts: Vec<CsPrefixCounts>,
    hashes: Vec<u64>,
    /// How many components they have, each number once, in ascending order.
    lengths: Vec<usize>,
    /// Places in `counts`, by hash; what does not fit its place stands in the next that is free.
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

    #[inline]
    fn count(&mut self, hashes: &NameHashes, count: impl Fn(&mut CsCounts)) {
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

impl Engine {
    /// Another policy for the Content Store; everything stays stored. Visits every entry.
    ///
    /// # Errors
    /// If the kernel does not map the policy's memory; then the former one stays, and
    /// [`LimitMet::CsPolicyNotChanged`] counts it.
    pub fn set_cs_policy(&mut self, policy: CsPolicy) -> io::Result<()> {
        let former = self.tables.cs_policy();
        if let Err(error) = self.tables.cs_set_policy(policy) {
            self.counters.meet(LimitMet::CsPolicyNotChanged);
            return Err(error);
        }
        let counted = self.cs_counts();
        let CsPolicy { eviction, admission, .. } = former;
        let counts = counted.since(&self.former_policies.counted);
        self.former_policies.counted = counted;
        add_to(&mut self.former_policies.policies, &CsPolicyCounts { eviction, admission, counts });
        Ok(())
    }

    /// Counts from now on what the Content Store does for names under these prefixes, at most
    /// [`MAX_COUNTED_PREFIXES`] of them; those that were counted before go on from where they are.
    pub fn count_cs_prefixes(&mut self, prefixes: &[NameBuf]) {
        let former = std::mem::take(&mut self.counted_prefixes);
        for prefix in prefixes {
            let known = former.counts.iter().find(|known| known.prefix == *prefix);
            let counts = known.map(|known| known.counts).unwrap_or_default();
            self.counted_prefixes.insert(prefix, hash_name(self.tables.key(), prefix.as_name().value()), counts);
        }
    }

    /// Writes what this engine has counted over `report`, which keeps its memory.
    pub fn cs_report(&self, report: &mut CsReport) {
        let policy = self.tables.cs_policy();
        let CsPolicy { eviction, admission, .. } = policy;
        report.policy = Some(policy);
        report.policy_bytes = self.tables.cs_policy_bytes() as u64;
        report.prefix_lookup = self.tables.cs_prefix_lookup();
        report.prefix_index_bytes = self.tables.cs_prefix_index_bytes() as u64;
        (report.capacity_bytes, report.capacity_packets) = self.tables.cs_capacity();
        report.policies.clone_from(&self.former_policies.policies);
        let counts = self.cs_counts().since(&self.former_policies.counted);
        add_to(&mut report.policies, &CsPolicyCounts { eviction, admission, counts });
        // N.B. Names are copied when they are others than before: a report that is written again and
        // again allocates nothing.
        let counted = &self.counted_prefixes.counts;
        report.prefixes.truncate(counted.len());
        for (known, now) in report.prefixes.iter_mut().zip(counted) {
            if known.prefix != now.prefix {
                known.prefix.clone_from(&now.prefix);
            }
            known.counts = now.counts;
        }
        report.prefixes.extend_from_slice(&counted[report.prefixes.len()..]);
    }

    fn cs_counts(&self) -> CsCounts {
        CsCounts {
            hits: self.counters.cs_hits,
            misses: self.counters.cs_misses,
            insertions: self.counters.cs_insertions,
            not_admitted: self.counters.cs_not_admitted,
            evictions: self.tables.cs_evictions(),
        }
    }

    /// An Interest looked into the store.
    #[inline]
    pub(crate) fn count_look_up(&mut self, hashes: &NameHashes, is_hit: bool) {
        if is_hit {
            self.counters.cs_hits += 1;
            self.counted_prefixes.count(hashes, |counts| counts.hits += 1);
        } else {
            self.counters.cs_misses += 1;
            self.counted_prefixes.count(hashes, |counts| counts.misses += 1);
        }
    }

    /// A Data was stored.
    #[inline]
    pub(crate) fn count_insertion(&mut self, hashes: &NameHashes) {
        self.counters.cs_insertions += 1;
        self.counted_prefixes.count(hashes, |counts| counts.insertions += 1);
    }
}
