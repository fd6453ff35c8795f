//! NFD's Content Store as forwarding §2.2 states it: an ordered map by full name, and a walk from the first name under
//! a prefix to the first entry that satisfies. When the table is full, it chooses the victim, and the test passes the
//! choice to the model. The fuzz target of the tables also uses this file.

use namewire_packet::digest::sha256;
use namewire_tables::CsId;
use std::collections::BTreeMap;

/// One Data.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// Its id in the table.
    pub(crate) id: CsId,
    /// Its bytes.
    pub(crate) data: Vec<u8>,
    /// 0 = never.
    pub(crate) fresh_until_ns: u64,
}

/// Full names in canonical order: the TLV-VALUE, then the implicit digest.
#[derive(Default)]
pub(crate) struct NfdStore {
    /// What is stored.
    pub(crate) entries: BTreeMap<(Vec<u8>, [u8; 32]), Stored>,
}

impl NfdStore {
    /// Stores Data, or makes the same Data fresh again.
    pub(crate) fn insert(&mut self, name: &[u8], stored: Stored) {
        self.entries.insert((name.to_vec(), sha256(&[&stored.data])), stored);
    }

    /// Whether these bytes are stored under this name.
    pub(crate) fn get(&self, name: &[u8], data: &[u8]) -> Option<&Stored> {
        self.entries.get(&(name.to_vec(), sha256(&[data])))
    }

    /// Data of exactly this name.
    pub(crate) fn versions(&self, name: &[u8]) -> usize {
        self.entries.keys().filter(|(other, _)| other == name).count()
    }

    /// The first entry that `satisfies`.
    fn first(&self, fresh_at_ns: Option<u64>, satisfies: impl Fn(&[u8], &[u8; 32]) -> bool) -> Option<CsId> {
        let is_fresh = |stored: &Stored| {
            fresh_at_ns.is_none_or(|at_ns| stored.fresh_until_ns != 0 && stored.fresh_until_ns >= at_ns)
        };
        let mut entries = self.entries.iter();
        entries
            .find(|((name, digest), stored)| satisfies(name, digest) && is_fresh(stored))
            .map(|(_, stored)| stored.id)
    }

    /// An Interest with CanBePrefix.
    pub(crate) fn first_under(&self, prefix: &[u8], fresh_at_ns: Option<u64>) -> Option<CsId> {
        self.first(fresh_at_ns, |name, _| name.starts_with(prefix))
    }

    /// An Interest without.
    pub(crate) fn exact(&self, asked: &[u8], fresh_at_ns: Option<u64>) -> Option<CsId> {
        self.first(fresh_at_ns, |name, _| name == asked)
    }

    /// An Interest for a digest.
    pub(crate) fn by_digest(&self, asked: &[u8], wanted: &[u8; 32], fresh_at_ns: Option<u64>) -> Option<CsId> {
        self.first(fresh_at_ns, |name, digest| name == asked && digest == wanted)
    }

    /// Forgets entries that the table no longer has; returns how many.
    pub(crate) fn forget_gone(&mut self, is_stored: impl Fn(CsId) -> bool) -> usize {
        let before = self.entries.len();
        self.entries.retain(|_, stored| is_stored(stored.id));
        before - self.entries.len()
    }
}
