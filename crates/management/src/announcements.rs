//! Announced routes: `rib/announce`, and what self-learning finds in the network.
//!
//! Source: management.md §5; forwarding.md §4.6, §6. A prefix announcement becomes a route of origin
//! `prefixann` and cost 2048 that lives as long as it says. The announcing Data is kept beside the route, so that the
//! self-learning strategy can hand it on ([`Effect::Announcements`]).
//!
//! Who may: the command is authorized as any other of `rib`, and the announcing Data by the rules for prefix
//! announcements ([`Management::authorize_announcement`]), which without configuration let an application of this
//! machine announce itself, as it may register itself, and believe nobody in the network.
//!
//! Limits: the RIB's; [`MAX_ANNOUNCEMENTS`] and [`MAX_ANNOUNCEMENT_BYTES`] for what is kept: without it a route is
//! made, but not handed on.

use crate::{
    authorization::{
        Module, Prefix,
        gate::{Admission, Arrival},
    },
    command::{COMMAND_NAME_LEN, Refusal, malformed, refusal},
    dispatcher::{Management, ReplyTo},
    effect::Effect,
    environment::Times,
    name_key::NameKey,
    rib::{MAX_PREFIX_COMPONENTS, Rib, Route, deadline_ns},
    table_commands::check_prefix_length,
};
use namewire_packet::{
    Data, FaceId, Interest, Name,
    nfd::{ControlParameters, origin, prefix_announcement::PrefixAnnouncement, route_flags},
    tlv::types,
};
use std::{collections::BTreeMap, sync::Arc};

/// Cost of an announced route.
pub const ANNOUNCED_COST: u64 = 2048;

/// Longest life of a route that was learned from the network: 10 minutes.
pub const MAX_LEARNED_LIFETIME_MS: u64 = 10 * 60 * 1000;

/// Most announcements that are kept.
pub const MAX_ANNOUNCEMENTS: usize = 1024;

/// Largest announcement that is kept.
pub const MAX_ANNOUNCEMENT_BYTES: usize = 2048;

/// The route that follows from an announcement; `None` if it is not valid now.
pub fn announced_route(
    announcement: &PrefixAnnouncement<'_>,
    face: FaceId,
    now: Times,
    lifetime_ms_max: u64,
) -> Option<Route> {
    let lifetime_ms = announcement.lifetime_ms(now.unix_ms).min(lifetime_ms_max);
    (lifetime_ms > 0).then_some(Route {
        face,
        origin: origin::PREFIX_ANNOUNCEMENT,
        cost: ANNOUNCED_COST,
        flags: route_flags::CHILD_INHERIT,
        expires_at_ns: deadline_ns(now.mono_ns, lifetime_ms),
    })
}

/// Removes the announced route to `face` that Interests for `name` take; the name that it was for.
pub fn forget_announced<'n>(rib: &mut Rib, name: Name<'n>, face: FaceId) -> Option<Name<'n>> {
    let lengths = (0..=name.len().min(MAX_PREFIX_COMPONENTS)).rev();
    lengths.map(|n| name.prefix(n)).find(|prefix| rib.remove(*prefix, face, origin::PREFIX_ANNOUNCEMENT))
}

/// The announcing Data of routes.
#[derive(Debug, Default)]
pub(crate) struct Announcements {
    kept: BTreeMap<NameKey, BTreeMap<FaceId, Arc<[u8]>>>,
}

impl Announcements {
    pub(crate) fn concerns(&self, prefix: Name<'_>) -> bool {
        self.kept.contains_key(prefix.value())
    }

    /// False if there is no room.
    fn keep(&mut self, prefix: Name<'_>, face: FaceId, announcement: &[u8]) -> bool {
        let is_known = self.kept.get(prefix.value()).is_some_and(|of_prefix| of_prefix.contains_key(&face));
        let has_room = is_known || self.kept.values().map(BTreeMap::len).sum::<usize>() < MAX_ANNOUNCEMENTS;
        let fits = has_room && announcement.len() <= MAX_ANNOUNCEMENT_BYTES;
        if fits {
            self.kept.entry(NameKey::new(prefix)).or_default().insert(face, announcement.into());
        }
        fits
    }
}

impl Management {
    /// `rib/announce`: ApplicationParameters are the announcing Data.
    #[allow(clippy::too_many_arguments)] // the request, taken apart once
    pub(crate) fn on_announce(
        &mut self,
        now: Times,
        incoming: FaceId,
        prefix: Prefix,
        interest: &Interest<'_>,
        fetches: usize,
        reply_to: &ReplyTo,
        out: &mut Vec<Effect>,
    ) {
        let arrival = Arrival {
            prefix,
            module: Module::Rib,
            incoming,
            names_face: None,
            interest,
            parameter_components: 0,
            pit_token: reply_to.pit_token,
            fetches,
        };
        match self.announce_prefix(now, &arrival, out) {
            Ok(Some(body)) => {
                self.succeed(reply_to, body, out);
                self.keep_answer(now, prefix, incoming, reply_to, out);
            }
            Ok(None) => {} // it comes again when a certificate is there, or its face is gone
            Err(refusal) => self.refuse(reply_to, &refusal, out),
        }
    }

    fn announce_prefix(
        &mut self,
        now: Times,
        arrival: &Arrival<'_>,
        out: &mut Vec<Effect>,
    ) -> Result<Option<ControlParameters>, Refusal> {
        let name = arrival.interest.name();
        let has_digest = name.last().is_some_and(|last| last.type_number == types::PARAMETERS_SHA256_DIGEST);
        if name.len() != COMMAND_NAME_LEN + 1 || !has_digest {
            return Err(malformed("the name must be followed by a parameters digest and nothing else"));
        }
        let parameters =
            arrival.interest.application_parameters().ok_or_else(|| malformed("no ApplicationParameters"))?;
        let data = Data::parse(parameters)
            .map_err(|error| malformed(&format!("ApplicationParameters are no announcing Data: {error}")))?;
        let announcement = PrefixAnnouncement::read(&data)
            .map_err(|error| malformed(&format!("ApplicationParameters are no prefix announcement: {error}")))?;
        if self.admit(now, arrival, out)? != Admission::Now {
            return Ok(None);
        }
        if self.faces.get(arrival.incoming).is_none() {
            return Err(refusal(410, "Face not found"));
        }
        self.authorize_announcement(now, arrival.incoming, &data)
            .map_err(|denial| refusal(403, format!("Prefix announcement rejected: {denial}")))?;
        self.add_announced(now, arrival.incoming, (&announcement, parameters), u64::MAX, out).map(Some)
    }

    /// A route that the self-learning strategy found: `announcement` came with Data through `face`.
    /// Who may not announce is counted, and answered by nothing: nobody asked.
    pub fn learn_route(&mut self, now: Times, face: FaceId, announcement: &[u8], out: &mut Vec<Effect>) {
        let is_learned = self.try_learn(now, face, announcement, out);
        if is_learned {
            self.counters.routes_learned += 1;
            self.store.note_change();
        } else {
            self.counters.announcements_refused += 1;
        }
    }

    fn try_learn(&mut self, now: Times, face: FaceId, announcement: &[u8], out: &mut Vec<Effect>) -> bool {
        let Ok(data) = Data::parse(announcement) else { return false };
        let Ok(read) = PrefixAnnouncement::read(&data) else { return false };
        let is_here = self.faces.get(face).is_some();
        is_here
            && self.authorize_announcement(now, face, &data).is_ok()
            && self.add_announced(now, face, (&read, announcement), MAX_LEARNED_LIFETIME_MS, out).is_ok()
    }

    /// `face` has no route for `name`: ends the announced route by which Interests for it go there.
    pub fn forget_route(&mut self, face: FaceId, name: Name<'_>, out: &mut Vec<Effect>) {
        if let Some(prefix) = forget_announced(&mut self.rib, name, face) {
            self.counters.routes_forgotten += 1;
            self.store.note_change();
            self.update_fib(vec![prefix.to_buf()], out);
        }
    }

    fn add_announced(
        &mut self,
        now: Times,
        face: FaceId,
        (announcement, octets): (&PrefixAnnouncement<'_>, &[u8]),
        lifetime_ms_max: u64,
        out: &mut Vec<Effect>,
    ) -> Result<ControlParameters, Refusal> {
        let prefix = announcement.prefix;
        check_prefix_length(prefix, "Route prefix cannot exceed 32 components")?;
        self.check_not_own(prefix)?;
        let route = announced_route(announcement, face, now, lifetime_ms_max)
            .ok_or_else(|| refusal(403, "Prefix announcement rejected: it is not valid now"))?;
        let inserted = self.insert_route(now, prefix, route, out);
        let fib_depends = inserted.map_err(|full| self.rib_full(&full))?;
        if !self.announcements.keep(prefix, face, octets) {
            self.counters.announcements_not_kept += 1;
        }
        if fib_depends {
            self.update_fib(vec![prefix.to_buf()], out);
        } else {
            self.publish_announcements(out);
        }
        Ok(ControlParameters {
            name: Some(prefix.to_buf()),
            face_id: Some(face),
            origin: Some(route.origin),
            cost: Some(route.cost),
            flags: Some(route.flags),
            expiration_period_ms: route.expires_at_ns.map(|at_ns| at_ns.saturating_sub(now.mono_ns) / 1_000_000),
            ..Default::default()
        })
    }

    /// Gives out the announcements whose routes are still there.
    pub(crate) fn publish_announcements(&mut self, out: &mut Vec<Effect>) {
        let rib = &self.rib;
        let is_live = |key: &NameKey, face: FaceId| {
            rib.live_routes(key.name())
                .iter()
                .any(|route| (route.face, route.origin) == (face, origin::PREFIX_ANNOUNCEMENT))
        };
        self.announcements.kept.retain(|key, of_prefix| {
            of_prefix.retain(|face, _| is_live(key, *face));
            !of_prefix.is_empty()
        });
        // Of several faces' announcements of one prefix any will do.
        let one_each = |(key, of_prefix): (&NameKey, &BTreeMap<FaceId, Arc<[u8]>>)| {
            of_prefix.values().next().map(|octets| (key.to_buf(), Arc::clone(octets)))
        };
        out.push(Effect::Announcements(self.announcements.kept.iter().filter_map(one_each).collect()));
    }
}
