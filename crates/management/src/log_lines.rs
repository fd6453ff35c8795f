//! The lines that management adds to the router's log: faces that come up, commands and their refusals, and routes that
//! come and go without a command.
//!
//! The target of a line is an area of the log. A value is turned into text only if the line is written.

use crate::{
    command::{COMMAND_NAME_LEN, signature_of},
    face_registry::{FaceProperties, FaceRegistry},
    replies::ReplyTo,
    request::Request,
    rib::{Rib, Route},
};
use namewire_packet::{
    FaceId, Interest, Name, NameBuf,
    nfd::{ControlParameters, ControlResponse, origin},
    tlv::types,
};
use namewire_security::trust::quoted;
use std::fmt;

/// A command that was carried out.
pub(crate) struct Done<'a> {
    pub(crate) request: &'a Request<'a>,
    /// The body of its answer.
    pub(crate) body: &'a ControlParameters,
    /// The route that it concerned, as it was before.
    pub(crate) before: Option<&'a Route>,
    pub(crate) faces: &'a FaceRegistry,
    pub(crate) rib: &'a Rib,
}

impl Done<'_> {
    const fn by(&self) -> Sender<'_> {
        Sender { faces: self.faces, incoming: self.request.incoming(), interest: self.request.interest }
    }

    const fn prefix(&self) -> Shown<'_> {
        Shown(self.body.name.as_ref())
    }

    fn face(&self) -> u64 {
        self.body.face_id.map_or(0, |face| face.0)
    }

    fn cost(&self) -> u64 {
        self.body.cost.unwrap_or(0)
    }

    fn flags(&self) -> u64 {
        self.body.flags.unwrap_or(0)
    }

    fn origin(&self) -> OriginWord {
        OriginWord(self.body.origin.unwrap_or(0))
    }
}

/// Who gave a command: its face, the user of the process there, and the key that signed.
struct Sender<'a> {
    faces: &'a FaceRegistry,
    incoming: FaceId,
    interest: &'a Interest<'a>,
}

impl fmt::Display for Sender<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.incoming == FaceId::INTERNAL {
            return f.write_str("this router");
        }
        write!(f, "face {}", self.incoming)?;
        if let Some(peer) = self.faces.get(self.incoming).and_then(|face| face.credentials.as_ref()) {
            write!(f, ", uid {}", peer.uid)?;
        }
        match signature_of(self.interest, 1) {
            Ok(Some(signature)) if !signature.is_digest() => write!(f, ", {}", signature.signer()),
            _ => Ok(()),
        }
    }
}

/// A name as lines show it.
struct Shown<'a>(Option<&'a NameBuf>);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |name| f.write_str(&quoted(name.as_name())))
    }
}

/// The origin of a route in words.
struct OriginWord(u64);

impl fmt::Display for OriginWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match origin::name(self.0) {
            Some(word) => f.write_str(word),
            None => write!(f, "{}", self.0),
        }
    }
}

/// A face is new.
pub(crate) fn face_up(face: &FaceProperties) {
    let uid = face.credentials.as_ref().map(|peer| peer.uid);
    let pid = face.credentials.as_ref().map(|peer| peer.pid);
    tracing::info!(
        target: "faces", face = face.face.0, remote = %face.remote, local = %face.local,
        persistency = face.persistency.word(), uid, pid, "face up"
    );
}

/// A permanent face has a link again.
pub(crate) fn face_up_again(face: &FaceProperties) {
    tracing::info!(target: "faces", face = face.face.0, remote = %face.remote, local = %face.local, "face up again");
}

/// A command has changed a face.
pub(crate) fn face_changed(face: &FaceProperties) {
    tracing::info!(
        target: "faces", face = face.face.0, remote = %face.remote, persistency = face.persistency.word(),
        flags = face.flags, mtu = face.mtu, "face changed"
    );
}

/// Faces write lines of their own, and so does the begin of a capture.
pub(crate) const fn elsewhere(_: &Done<'_>) {}

pub(crate) fn route_registered(done: &Done<'_>) {
    let (prefix, face, origin, by) = (done.prefix(), done.face(), done.origin(), done.by());
    let (cost, flags, expires_ms) = (done.cost(), done.flags(), done.body.expiration_period_ms);
    match done.before {
        None => {
            tracing::info!(target: "routes", %prefix, face, %origin, cost, flags, expires_ms, %by, "route added");
            prefix_contested(done);
        }
        Some(before) if (before.cost, before.flags) != (cost, flags) => {
            tracing::info!(target: "routes", %prefix, face, %origin, cost, flags, expires_ms, %by, "route changed");
        }
        Some(_) => tracing::debug!(target: "routes", %prefix, face, %origin, expires_ms, %by, "route renewed"),
    }
}

pub(crate) fn route_unregistered(done: &Done<'_>) {
    let (prefix, face, origin, by) = (done.prefix(), done.face(), done.origin(), done.by());
    match done.before {
        None => {
            tracing::debug!(target: "routes", %prefix, face, %origin, %by, "there was no such route to remove");
        }
        Some(_) => tracing::info!(target: "routes", %prefix, face, %origin, %by, "route removed"),
    }
}

pub(crate) fn next_hop_added(done: &Done<'_>) {
    let (prefix, face, cost, by) = (done.prefix(), done.face(), done.cost(), done.by());
    tracing::info!(target: "routes", %prefix, face, cost, %by, "next hop added");
}

pub(crate) fn next_hop_removed(done: &Done<'_>) {
    tracing::info!(target: "routes", prefix = %done.prefix(), face = done.face(), by = %done.by(), "next hop removed");
}

pub(crate) fn strategy_set(done: &Done<'_>) {
    let strategy = Shown(done.body.strategy.as_ref());
    tracing::info!(target: "strategy", prefix = %done.prefix(), %strategy, by = %done.by(), "strategy set");
}

pub(crate) fn strategy_unset(done: &Done<'_>) {
    tracing::info!(target: "strategy", prefix = %done.prefix(), by = %done.by(), "strategy unset");
}

pub(crate) fn cs_configured(done: &Done<'_>) {
    let (capacity, policy) = (done.body.capacity, done.body.cs_policy.as_deref());
    tracing::info!(
        target: "management", capacity, flags = done.flags(), policy, by = %done.by(), "Content Store configured"
    );
}

pub(crate) fn tags_advertised(done: &Done<'_>) {
    let expires_ms = done.body.expiration_period_ms;
    tracing::info!(target: "tag", face = done.face(), expires_ms, by = %done.by(), "tags advertised");
}

pub(crate) fn tags_withdrawn(done: &Done<'_>) {
    tracing::info!(target: "tag", face = done.face(), by = %done.by(), "tags withdrawn");
}

pub(crate) fn may_push(done: &Done<'_>) {
    tracing::info!(target: "tag", face = done.face(), by = %done.by(), "application may push");
}

/// Without the name: it is a secret of the client.
pub(crate) fn capture_started(done: &Done<'_>) {
    let interface = done.body.local_uri.as_deref();
    tracing::info!(target: "management", face = done.face(), interface, by = %done.by(), "capture started");
}

pub(crate) fn capture_stopped(done: &Done<'_>) {
    tracing::info!(target: "management", by = %done.by(), "capture stopped");
}

pub(crate) fn task_begun(done: &Done<'_>) {
    let report = done.body.report.as_deref();
    tracing::info!(target: "management", report, by = %done.by(), "task for the process");
}

pub(crate) fn log_levels_set(done: &Done<'_>) {
    let levels = done.body.log_levels.as_deref();
    tracing::info!(target: "management", levels, by = %done.by(), "levels of the log set");
}

pub(crate) fn log_marked(done: &Done<'_>) {
    tracing::info!(target: "management", mark = %done.prefix(), by = %done.by(), "mark");
}

/// Warns if the route is for a prefix of `/localhost` for which another user has a route.
fn prefix_contested(done: &Done<'_>) {
    let (Some(prefix), incoming) = (done.body.name.as_ref(), done.request.incoming()) else { return };
    let Some(other) = done.rib.held_by_another(prefix.as_name(), done.faces.holder(incoming)) else { return };
    let user = |face| done.faces.get(face).and_then(|face| face.credentials.as_ref()).map(|peer| peer.uid);
    tracing::warn!(
        target: "routes", prefix = %done.prefix(), face = incoming.0, uid = user(incoming), held_by = other.face.0,
        held_by_uid = user(other.face), "two users have routes for a prefix of this machine: either may answer"
    );
}

/// A command or request got another code than 200.
pub(crate) fn refused(to: &ReplyTo, refusal: &ControlResponse) {
    let name = to.name.as_name();
    let (command, about, face) = (CommandWord(name), About(name), to.from.0);
    let (code, why) = (refusal.code, refusal.text.as_str());
    match code {
        403 => tracing::warn!(target: "trust", %command, %about, face, code, why, "command refused"),
        // A client that asks for a face that is there takes it as it is.
        409 => tracing::debug!(target: "management", %command, %about, face, code, why, "command refused"),
        _ => tracing::info!(target: "management", %command, %about, face, code, why, "command refused"),
    }
}

/// `rib/register` of the name of a command.
struct CommandWord<'a>(Name<'a>);

impl fmt::Display for CommandWord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.0.len().min(COMMAND_NAME_LEN);
        for at in 2..last {
            let end = if at + 1 < last { "/" } else { "" };
            if let Some(component) = self.0.get(at) {
                let text = component.to_string();
                write!(f, "{}{end}", text.chars().take(64).collect::<String>())?;
            }
        }
        Ok(())
    }
}

/// What a command is about: the prefix, FaceUri or face among its parameters.
struct About<'a>(Name<'a>);

impl fmt::Display for About<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let component = self.0.get(COMMAND_NAME_LEN).filter(|one| one.type_number == types::GENERIC_COMPONENT);
        let Some(parameters) = component.and_then(|one| ControlParameters::decode(one.value).ok()) else {
            return Ok(());
        };
        if self.0.get(2).is_some_and(|module| module.value == b"capture") {
            return Ok(()); // its name is a secret of the client
        }
        match (&parameters.name, &parameters.uri, parameters.face_id) {
            (Some(name), ..) => f.write_str(&quoted(name.as_name())),
            (None, Some(uri), _) => f.write_str(uri),
            (None, None, Some(face)) => write!(f, "face {face}"),
            _ => Ok(()),
        }
    }
}

/// Routes to these prefixes have expired.
pub(crate) fn routes_expired(prefixes: &[NameBuf]) {
    for prefix in prefixes {
        tracing::info!(target: "routes", prefix = %Shown(Some(prefix)), "route expired");
    }
}

/// An announcement made a route, by request (`rib/announce`) or because Data carried it.
pub(crate) fn route_announced(done: &ControlParameters, is_learned: bool) {
    let (prefix, face) = (Shown(done.name.as_ref()), done.face_id.map_or(0, |face| face.0));
    let expires_ms = done.expiration_period_ms;
    match is_learned {
        true => tracing::info!(target: "routes", %prefix, face, expires_ms, "route learned from an announcement"),
        false => tracing::info!(target: "routes", %prefix, face, expires_ms, "route announced by its application"),
    }
}

/// The next hop of an announced route has no route itself.
pub(crate) fn route_forgotten(prefix: Name<'_>, face: FaceId) {
    tracing::info!(target: "routes", prefix = %quoted(prefix), face = face.0, "announced route is over: no route there");
}

/// The router has other rules of who may command.
pub(crate) fn trust_replaced() {
    tracing::info!(target: "trust", "rules of who may command were read");
}
