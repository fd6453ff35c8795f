//! Churn: names are inserted into a fingerprint-only PIT and deleted from it, at a steady load.
//!
//! Source: Yuan15 §5.6.2. The table has N entries, filled to ld = 75 %. m names are pending at a time, and a share d_p
//! of them is requested twice. Phase one inserts m names. Phase two deletes name i (its Data arrives) and inserts name
//! i + m. Time is the index of the latest name: m names take T_rtt = 80 ms, and an entry lives T_life = k·T_rtt, which
//! is 50 ticks of the table. Names requested twice stay for T_life, so m = ld·N / (1 + (k − 1)·d_p).
//!
//! Every Data must find the port of its request.

use anyhow::ensure;
use namewire_tables::fingerprint_pit::{FingerprintPit, FingerprintPitConfig, Inserted};

use super::requested_names::{NameHash, RequestedNames};
use crate::split_mix::split_mix;

/// k of the paper.
pub(super) const LIFETIME_FACTOR: u64 = 10;
/// ld of the paper.
const LOAD_PERCENT: u64 = 75;
/// T_rtt of the paper.
const ROUND_TRIP_NS: u64 = 80_000_000;
/// n of the paper.
const PORTS: u64 = 16;

/// The table and its pending names.
pub(super) struct Churn<'n> {
    pub(super) pit: FingerprintPit,
    names: &'n RequestedNames,
    hash: NameHash,
    /// d_p.
    duplicate_percent: u64,
    /// m.
    pending: u64,
    /// i: the oldest pending name.
    oldest: u64,
    /// The next name to insert.
    next: u64,
    /// Names that found the entry of another name at their first insertion.
    fingerprint_collisions: u64,
    overflowed_max: usize,
    name: Vec<u8>,
}

impl<'n> Churn<'n> {
    /// An empty table of `capacity_entries` = N.
    pub(super) fn new(
        names: &'n RequestedNames,
        hash: NameHash,
        (capacity_entries, subtables): (u32, u8),
        duplicate_percent: u64,
        seed: u64,
    ) -> anyhow::Result<Self> {
        let config = FingerprintPitConfig { subtables, ..FingerprintPitConfig::new(capacity_entries) };
        let pending = u64::from(capacity_entries) * LOAD_PERCENT / (100 + (LIFETIME_FACTOR - 1) * duplicate_percent);
        Ok(Self {
            pit: FingerprintPit::new(config, seed)?,
            names,
            hash,
            duplicate_percent,
            pending,
            oldest: 0,
            next: 0,
            fingerprint_collisions: 0,
            overflowed_max: 0,
            name: Vec::new(),
        })
    }

    /// m.
    pub(super) const fn pending(&self) -> u64 {
        self.pending
    }

    /// Phase one. `check` is called regularly.
    pub(super) fn fill(&mut self, check: &dyn Fn() -> anyhow::Result<()>) -> anyhow::Result<()> {
        ensure!(self.pending <= self.names.len(), "{} names are too few", self.names.len());
        while self.next < self.pending {
            self.insert_next()?;
            if self.next.is_multiple_of(1 << 16) {
                check()?;
            }
        }
        Ok(())
    }

    /// Phase two, for `names` deletions and as many insertions.
    pub(super) fn turn_over(&mut self, names: u64, check: &dyn Fn() -> anyhow::Result<()>) -> anyhow::Result<()> {
        ensure!(self.next + names <= self.names.len(), "{} names are too few", self.names.len());
        for _ in 0..names {
            self.delete_oldest()?;
            self.insert_next()?;
            if self.next.is_multiple_of(1 << 12) {
                self.overflowed_max = self.overflowed_max.max(self.pit.overflow_len());
                check()?;
            }
        }
        self.overflowed_max = self.overflowed_max.max(self.pit.overflow_len());
        Ok(())
    }

    /// Names inserted so far.
    pub(super) const fn inserted(&self) -> u64 {
        self.next
    }

    /// How many of these found the entry of another name.
    pub(super) const fn fingerprint_collisions(&self) -> u64 {
        self.fingerprint_collisions
    }

    /// The most names in the overflow table at a time.
    pub(super) const fn overflowed_max(&self) -> usize {
        self.overflowed_max
    }

    /// The hash of name `index`.
    #[inline]
    pub(super) fn hash_of(&mut self, index: u64) -> u64 {
        self.names.write(index, &mut self.name);
        self.hash.of(&self.name)
    }

    /// The hash function of the names.
    pub(super) const fn hash(&self) -> NameHash {
        self.hash
    }

    /// Writes the next names to delete and to insert, in turn; the caller applies them: see [`Turn`].
    pub(super) fn next_turns(&mut self, turns: &mut [Turn]) -> anyhow::Result<()> {
        ensure!(self.next + turns.len() as u64 <= self.names.len(), "{} names are too few", self.names.len());
        for turn in turns {
            self.names.write(self.oldest, &mut turn.gone);
            self.names.write(self.next, &mut turn.come);
            (turn.gone_hash, turn.come_hash) = (self.hash.of(&turn.gone), self.hash.of(&turn.come));
            (turn.gone_port, turn.come_port) = (port(self.oldest), port(self.next));
            (turn.now_ns, turn.expires_ns) = (self.time_ns(self.next), self.expiry_ns(self.next));
            self.oldest += 1;
            self.next += 1;
        }
        Ok(())
    }

    fn delete_oldest(&mut self) -> anyhow::Result<()> {
        let index = self.oldest;
        let hash = self.hash_of(index);
        let satisfied = self.pit.satisfy(hash, self.time_ns(self.next), false);
        let is_answered = satisfied.is_some_and(|found| found.ports.contains(port(index)));
        ensure!(is_answered, "the Data of name {index} does not find its port");
        self.oldest += 1;
        Ok(())
    }

    fn insert_next(&mut self) -> anyhow::Result<()> {
        let index = self.next;
        let hash = self.hash_of(index);
        let (now_ns, expires_ns) = (self.time_ns(index), self.expiry_ns(index));
        let inserted = self.pit.insert(hash, port(index), now_ns, expires_ns)?;
        self.fingerprint_collisions += u64::from(inserted == Inserted::Collided);
        if split_mix(index) % 100 < self.duplicate_percent {
            let again = self.pit.insert(hash, port(index + 1), now_ns, expires_ns)?;
            ensure!(again == Inserted::Collided, "name {index} is not found");
        }
        self.next += 1;
        Ok(())
    }

    fn time_ns(&self, index: u64) -> u64 {
        (u128::from(index) * u128::from(ROUND_TRIP_NS) / u128::from(self.pending)) as u64
    }

    fn expiry_ns(&self, index: u64) -> u64 {
        self.time_ns(index) + LIFETIME_FACTOR * ROUND_TRIP_NS
    }
}

/// A name to delete and a name to insert.
#[derive(Clone, Default)]
pub(super) struct Turn {
    pub(super) gone: Vec<u8>,
    pub(super) come: Vec<u8>,
    pub(super) gone_hash: u64,
    pub(super) come_hash: u64,
    pub(super) gone_port: u16,
    pub(super) come_port: u16,
    pub(super) now_ns: u64,
    pub(super) expires_ns: u64,
}

/// The port that requests a name.
const fn port(index: u64) -> u16 {
    (split_mix(index ^ 0x5eed) % PORTS) as u16
}
