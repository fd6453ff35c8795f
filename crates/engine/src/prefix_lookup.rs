//! Stored Data under every prefix of its name (`cs.prefix_lookup = "all"`): the part of the Incoming Interest
//! pipeline that only such a router needs.
//!
//! Source: forwarding §2.2. One worker has what NFD has: the first Data in canonical order that satisfies. Of
//! several workers each has the Data of its share of the names, so an Interest by prefix visits the others
//! before it comes to its home ([`crate::dispatch`]).

use crate::{
    Engine,
    batch::{Arrival, HandOver, Pass},
    incoming_interest::violates_localhost,
};
use namewire_packet::Interest;
use namewire_tables::{CsId, CsWanted, GroupId, NameHashes};

impl Engine {
    /// An Interest for a prefix, on its round of the workers before it comes to its home: Data may be stored here. It is
    /// counted where its round ends.
    #[cold]
    pub(crate) fn visiting_interest(
        &mut self,
        pass: &mut Pass<'_, '_>,
        arrival: &Arrival<'_>,
        interest: &Interest<'_>,
        hashes: &NameHashes,
    ) -> Option<CsId> {
        let face = pass.view.faces.get(arrival.face);
        let is_sound = face.is_some_and(|face| !violates_localhost(interest.name(), face));
        let looks_up = is_sound && self.config.cs_serve && interest.hop_limit() != Some(0);
        let stored = self.other_match(pass, interest, None).filter(|_| looks_up);
        if stored.is_some() {
            self.counters.in_interests += 1;
            self.count_look_up(hashes, true);
        } else {
            pass.out.hand_over.push(HandOver { frame: arrival.index, round: arrival.round.going_on() });
        }
        stored
    }

    /// What else there is if all prefixes are looked up: other Data of the name, whose `group` has some, or
    /// under it.
    #[cold]
    pub(crate) fn other_match(
        &self,
        pass: &Pass<'_, '_>,
        interest: &Interest<'_>,
        group: Option<GroupId>,
    ) -> Option<CsId> {
        let fresh_at_ns = interest.must_be_fresh().then_some(pass.now.0);
        match group {
            _ if interest.can_be_prefix() => self.tables.cs_first_under(interest.name().value(), fresh_at_ns),
            Some(group) => self.tables.cs_version(group, CsWanted { fresh_at_ns, digest: None }),
            None => None,
        }
    }
}
