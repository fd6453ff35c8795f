//! Restoration: management takes over the tables of another process, as datasets say them.
//!
//! The faces come first ([`Management::restore_face`]). Nothing is announced, logged or authorized: it was, in the
//! other process. A route belongs to the holder of its face if an application may have registered it, otherwise to
//! management. Announcing Data is not restored.

use crate::{
    effect::Effect,
    environment::{Environment, Times},
    face_registry::FaceProperties,
    management::Management,
    next_hop_sets::NextHop,
    rib::{Route, deadline_ns},
};
use namewire_packet::{
    FaceId, NameBuf,
    nfd::{FaceState, FibEntry, NextHopRecord, RibEntry, StrategyChoice, origin},
};
use namewire_shares::HolderId;
use std::collections::BTreeSet;

/// Origins with which applications register routes to themselves.
const ORIGINS_OF_APPLICATIONS: [u64; 3] = [origin::APP, origin::CLIENT, origin::PREFIX_ANNOUNCEMENT];

impl Management {
    /// A face that another process had.
    pub fn restore_face(&mut self, face: FaceProperties, is_down: bool) {
        let id = face.face;
        self.faces.insert(face);
        self.faces.set_state(id, if is_down { FaceState::Down } else { FaceState::Up });
        self.replies.store.note_change();
    }

    /// Next hops without a route, except those of management itself.
    pub fn manual_next_hops(&self) -> Vec<FibEntry> {
        let entries = self.routes.manual.iter().map(|(name, next_hops)| FibEntry {
            name: name.to_buf(),
            next_hops: next_hops
                .iter()
                .filter(|next_hop| next_hop.face != FaceId::INTERNAL)
                .map(|next_hop| NextHopRecord { face_id: next_hop.face, cost: next_hop.cost })
                .collect(),
        });
        entries.filter(|entry| !entry.next_hops.is_empty()).collect()
    }

    /// Takes over strategy choices; those that are not among them go. Unknown strategies are left out.
    pub fn restore_strategies(
        &mut self,
        choices: Vec<StrategyChoice>,
        environment: &mut dyn Environment,
        out: &mut Vec<Effect>,
    ) {
        let wanted: BTreeSet<NameBuf> = choices.iter().map(|choice| choice.name.clone()).collect();
        let present: Vec<NameBuf> = self.routes.strategies.dataset().map(|choice| choice.name).collect();
        let gone = present.into_iter().filter(|name| !name.is_empty() && !wanted.contains(name));
        let mut changed: Vec<NameBuf> = gone.collect();
        let mut former: Vec<_> =
            changed.iter().filter_map(|name| self.routes.strategies.unset(name.as_name())).collect();
        for StrategyChoice { name, strategy } in choices {
            if !self.routes.strategies.has_room_for(name.as_name()) {
                continue;
            }
            if let Ok(strategy) = environment.resolve(&strategy) {
                former.extend(self.routes.strategies.set(name.as_name(), strategy));
                changed.push(name);
            }
        }
        self.update_fib(changed, out);
        former.into_iter().for_each(|old| self.routes.release_strategies(Some(old.id), environment));
    }

    /// Takes over next hops without a route.
    pub fn restore_next_hops(&mut self, entries: Vec<FibEntry>, out: &mut Vec<Effect>) {
        for FibEntry { name, next_hops } in entries {
            for NextHopRecord { face_id: face, cost } in next_hops {
                if self.faces.get(face).is_some() {
                    self.routes.manual.insert(name.as_name(), NextHop { face, cost });
                }
            }
            self.update_fib(vec![name], out);
        }
    }

    /// Takes over routes. Returns how many there was no room for; routes of faces that are not here are left out.
    pub fn restore_routes(&mut self, now: Times, entries: Vec<RibEntry>, out: &mut Vec<Effect>) -> u64 {
        let (mut changed, mut refused) = (Vec::with_capacity(entries.len()), 0);
        for RibEntry { name, routes } in entries {
            for route in routes {
                let Some(face) = self.faces.get(route.face_id) else { continue };
                let is_of_application = ORIGINS_OF_APPLICATIONS.contains(&route.origin);
                let route = Route {
                    face: route.face_id,
                    origin: route.origin,
                    cost: route.cost,
                    flags: route.flags,
                    expires_at_ns: route.expiration_period_ms.and_then(|ms| deadline_ns(now.mono_ns, ms)),
                    holder: if is_of_application { face.holder } else { HolderId::MANAGEMENT },
                };
                let inserted = self.routes.insert(now, name.as_name(), route, &mut self.replies, out);
                refused += u64::from(inserted.is_err());
            }
            changed.push(name);
        }
        self.replies.store.note_change();
        self.update_fib(changed, out);
        refused
    }
}
