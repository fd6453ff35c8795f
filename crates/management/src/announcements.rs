//! Announced routes: `rib/announce`, and announcements that self-learning finds in the network.
//!
//! Source: management.md §5; forwarding.md §4.6, §6. A prefix announcement becomes a route of origin `prefixann` and
//! cost 2048, which lives as long as the announcement says. The announcing Data is kept with the route, so that the
//! self-learning strategy can pass it on ([`Effect::Announcements`]).
//!
//! Authorization: the command needs the same permission as any other of `rib`. The announcing Data must satisfy the
//! rules for prefix announcements ([`Management::authorize_announcement`]). Without such rules, an application of this
//! machine may announce routes to itself, just as it may register them; announcements from the network are ignored.
//!
//! Limits: those of the RIB; for kept announcements, [`MAX_ANNOUNCEMENTS`] and [`MAX_ANNOUNCEMENT_BYTES`]. An
//! announcement beyond these two makes a route, but is not passed on.

pub use crate::announcement_store::{MAX_ANNOUNCEMENT_BYTES, MAX_ANNOUNCEMENTS};
use crate::{
    authorization::{
        Module,
        gate::{Admission, Arrival},
    },
    command::{COMMAND_NAME_LEN, Refusal, malformed, refusal},
    effect::Effect,
    environment::Times,
    log_lines,
    management::Management,
    request::Request,
    rib::{MAX_PREFIX_COMPONENTS, Rib, Route, deadline_ns},
};
use namewire_packet::{
    Data, FaceId, Name,
    nfd::{ControlParameters, origin, prefix_announcement::PrefixAnnouncement, route_flags},
    tlv::types,
};
use namewire_shares::HolderId;

/// Cost of an announced route.
pub const ANNOUNCED_COST: u64 = 2048;

/// Longest life of a route that was learned from the network: 10 minutes.
pub const MAX_LEARNED_LIFETIME_MS: u64 = 10 * 60 * 1000;

/// The route that an announcement makes; `None` if the announcement is not valid now.
pub fn announced_route(
    announcement: &PrefixAnnouncement<'_>,
    face: FaceId,
    holder: HolderId,
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
        holder,
    })
}

/// Removes the announced route to `face` that Interests for `name` take. Returns the prefix of that route.
pub fn forget_announced<'n>(rib: &mut Rib, name: Name<'n>, face: FaceId) -> Option<Name<'n>> {
    let lengths = (0..=name.len().min(MAX_PREFIX_COMPONENTS)).rev();
    lengths.map(|n| name.prefix(n)).find(|prefix| rib.remove(*prefix, face, origin::PREFIX_ANNOUNCEMENT))
}

impl Management {
    /// `rib/announce`: its ApplicationParameters are the announcing Data.
    pub(crate) fn on_announce(&mut self, request: &Request<'_>, out: &mut Vec<Effect>) {
        match self.announce_prefix(request, out) {
            Ok(Some(body)) => {
                log_lines::route_announced(&body, false);
                self.replies.succeed(&request.reply_to, body, out);
                self.keep_answer(request, out);
            }
            Ok(None) => {} // the command comes again when a certificate is there, or its face is gone
            Err(refusal) => self.replies.refuse(&request.reply_to, &refusal, out),
        }
    }

    fn announce_prefix(
        &mut self,
        request: &Request<'_>,
        out: &mut Vec<Effect>,
    ) -> Result<Option<ControlParameters>, Refusal> {
        let (now, incoming) = (request.now, request.incoming());
        let name = request.interest.name();
        let has_digest = name.last().is_some_and(|last| last.type_number == types::PARAMETERS_SHA256_DIGEST);
        if name.len() != COMMAND_NAME_LEN + 1 || !has_digest {
            return Err(malformed("the name must be followed by a parameters digest and nothing else"));
        }
        let parameters =
            request.interest.application_parameters().ok_or_else(|| malformed("no ApplicationParameters"))?;
        let data = Data::parse(parameters)
            .map_err(|error| malformed(&format!("ApplicationParameters are no announcing Data: {error}")))?;
        let announcement = PrefixAnnouncement::read(&data)
            .map_err(|error| malformed(&format!("ApplicationParameters are no prefix announcement: {error}")))?;
        let arrival = Arrival { request, module: Module::Rib, names_face: None, parameter_components: 0 };
        if self.admit(&arrival, out)? != Admission::Now {
            return Ok(None);
        }
        if self.faces.get(incoming).is_none() {
            return Err(refusal(410, "Face not found"));
        }
        self.authorize_announcement(now, incoming, &data)
            .map_err(|denial| refusal(403, format!("Prefix announcement rejected: {denial}")))?;
        self.add_announced(now, incoming, (&announcement, parameters), u64::MAX, out).map(Some)
    }

    /// A route that the self-learning strategy found: `announcement` came with Data through `face`. An announcement
    /// without permission is counted. It gets no answer, because it was no request.
    pub fn learn_route(&mut self, now: Times, face: FaceId, announcement: &[u8], out: &mut Vec<Effect>) {
        let is_learned = self.try_learn(now, face, announcement, out);
        if is_learned {
            self.replies.counters.routes_learned += 1;
            self.replies.store.note_change();
        } else {
            self.replies.counters.announcements_refused += 1;
        }
    }

    fn try_learn(&mut self, now: Times, face: FaceId, announcement: &[u8], out: &mut Vec<Effect>) -> bool {
        let Ok(data) = Data::parse(announcement) else { return false };
        let Ok(read) = PrefixAnnouncement::read(&data) else { return false };
        let is_here = self.faces.get(face).is_some();
        is_here
            && self.authorize_announcement(now, face, &data).is_ok()
            && self
                .add_announced(now, face, (&read, announcement), MAX_LEARNED_LIFETIME_MS, out)
                .inspect(|route| log_lines::route_announced(route, true))
                .is_ok()
    }

    /// `face` has no route for `name`: removes the announced route by which Interests for the name go there.
    pub fn forget_route(&mut self, face: FaceId, name: Name<'_>, out: &mut Vec<Effect>) {
        if let Some(prefix) = forget_announced(&mut self.routes.rib, name, face) {
            self.replies.counters.routes_forgotten += 1;
            log_lines::route_forgotten(prefix, face);
            self.replies.store.note_change();
            self.update_fib(vec![prefix.to_buf()], out);
        }
    }

    fn add_announced(
        &mut self,
        now: Times,
        face: FaceId,
        (announcement, bytes): (&PrefixAnnouncement<'_>, &[u8]),
        lifetime_ms_max: u64,
        out: &mut Vec<Effect>,
    ) -> Result<ControlParameters, Refusal> {
        let prefix = announcement.prefix;
        self.check_prefix_length(prefix, "Route prefix cannot exceed 32 components")?;
        self.check_not_own(prefix)?;
        let route = announced_route(announcement, face, self.faces.holder(face), now, lifetime_ms_max)
            .ok_or_else(|| refusal(403, "Prefix announcement rejected: it is not valid now"))?;
        let inserted = self.routes.insert(now, prefix, route, &mut self.replies, out);
        let fib_depends = inserted.map_err(|full| self.rib_full(&full))?;
        if !self.routes.announcements.keep(prefix, face, bytes) {
            self.replies.counters.announcements_not_kept += 1;
        }
        if fib_depends {
            self.update_fib(vec![prefix.to_buf()], out);
        } else {
            self.routes.publish_announcements(out);
        }
        Ok(ControlParameters {
            name: Some(prefix.to_buf()),
            face_id: Some(face),
            origin: Some(route.origin),
            cost: Some(route.cost),
            flags: Some(route.flags),
            expiration_period_ms: route.expires_at_ns.map(|at_ns| at_ns.get().saturating_sub(now.mono_ns) / 1_000_000),
            ..Default::default()
        })
    }
}
