//! Next hops in the FIB without a route: those of `fib/add-nexthop`, and the forwarder's own entry for management.
//!
//! They are not inherited and inherit nothing. If a manual next hop and routes of the same prefix have one face, the
//! manual next hop wins; in NFD the later one of the two wins. Limit: [`MAX_MANUAL_NEXT_HOPS`]. Cost: an operation
//! takes O(log n) and visits the next hops of one prefix.

use crate::{
    name_key::{NameKey, subtree},
    next_hop_sets::NextHop,
};
use namewire_packet::{FaceId, Name, NameBuf};
use std::collections::{BTreeMap, BTreeSet};

/// Most next hops added by command.
pub const MAX_MANUAL_NEXT_HOPS: usize = 100_000;

/// Next hops added by hand, by prefix.
#[derive(Debug, Default)]
pub struct ManualNextHops {
    entries: BTreeMap<NameKey, Vec<NextHop>>,
    by_face: BTreeSet<(FaceId, NameKey)>,
}

impl ManualNextHops {
    /// Next hops of exactly this prefix, by face; empty if there are none.
    pub fn get(&self, prefix: Name<'_>) -> &[NextHop] {
        self.entries.get(prefix.value()).map_or(&[], Vec::as_slice)
    }

    /// Adds a next hop or sets its cost. `Some(true)` if that changed anything,
    /// `None` if the table is full.
    pub fn insert(&mut self, prefix: Name<'_>, next_hop: NextHop) -> Option<bool> {
        let known =
            self.entries.get_mut(prefix.value()).and_then(|hops| hops.iter_mut().find(|h| h.face == next_hop.face));
        if let Some(known) = known {
            let changes = known.cost != next_hop.cost;
            known.cost = next_hop.cost;
            return Some(changes);
        }
        if self.by_face.len() >= MAX_MANUAL_NEXT_HOPS {
            return None;
        }
        let key = NameKey::new(prefix);
        let next_hops = self.entries.entry(key.clone()).or_default();
        next_hops.push(next_hop);
        next_hops.sort_by_key(|next_hop| next_hop.face);
        self.by_face.insert((next_hop.face, key));
        Some(true)
    }

    /// Removes a next hop. True if it was there.
    pub fn remove(&mut self, prefix: Name<'_>, face: FaceId) -> bool {
        let Some(next_hops) = self.entries.get_mut(prefix.value()) else { return false };
        let before = next_hops.len();
        next_hops.retain(|next_hop| next_hop.face != face);
        if next_hops.len() == before {
            return false;
        }
        if next_hops.is_empty() {
            self.entries.remove(prefix.value());
        }
        self.by_face.remove(&(face, NameKey::new(prefix)));
        true
    }

    /// Removes all next hops of a face and returns their prefixes in canonical order.
    pub fn remove_face(&mut self, face: FaceId) -> Vec<NameBuf> {
        let root = NameKey::new(Name::ROOT);
        let of_face = self.by_face.range((face, root)..).take_while(|(found, _)| *found == face);
        let prefixes: Vec<NameBuf> = of_face.map(|(_, key)| key.to_buf()).collect();
        for prefix in &prefixes {
            self.remove(prefix.as_name(), face);
        }
        prefixes
    }

    /// All prefixes with their next hops.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&NameKey, &[NextHop])> {
        self.entries.iter().map(|(name, next_hops)| (name, &next_hops[..]))
    }

    pub(crate) fn keys_under<'t>(
        &'t self,
        prefix: Name<'t>,
        after: Option<&'t NameKey>,
    ) -> impl Iterator<Item = &'t NameKey> {
        subtree(&self.entries, prefix, after).map(|(key, _)| key)
    }
}
