//! Commands of the `faces` module. Management checks what it can check without a socket, lets the router act, and
//! answers when the router has acted.
//!
//! Source: management.md §4 (codes and texts), §5 (fields), §7 (FaceUri);
//! forwarding.md §5 (what each transport allows).
//!
//! Limit: [`MAX_PENDING`] commands in progress.

use crate::{
    command::{Refusal, invalid_parameters, malformed, refusal},
    effect::{CreateFace, Effect, FaceCommandError, Ticket, UpdateFace},
    environment::Times,
    face_registry::FaceProperties,
    log_lines,
    management::Management,
    pending_commands::FaceCommand,
    replies::ReplyTo,
};
use namewire_packet::{
    FaceId,
    nfd::{ControlParameters, ControlResponse, FacePersistency, FaceScope, FaceUri, face_flags},
};

use std::net::{IpAddr, Ipv4Addr};

/// Most face commands in progress.
const MAX_PENDING: usize = 1024;

/// Smallest MTU override in bytes.
const MIN_MTU: u64 = 64;

/// The flags that exist.
const KNOWN_FLAGS: u64 =
    face_flags::LOCAL_FIELDS | face_flags::LP_RELIABILITY | face_flags::CONGESTION_MARKING | face_flags::LANES;

/// `None`: the answer comes later.
type FaceCommandResult = Result<Option<ControlParameters>, Refusal>;

impl Management {
    /// `faces/create`.
    pub(crate) fn create_face(
        &mut self,
        parameters: ControlParameters,
        reply_to: &ReplyTo,
        out: &mut Vec<Effect>,
    ) -> FaceCommandResult {
        let remote = read_uri(parameters.uri.as_deref(), "remote")?;
        let remote = remote.ok_or_else(|| invalid_parameters("Uri is required"))?;
        let local = read_uri(parameters.local_uri.as_deref(), "local")?;
        let persistency = match parameters.face_persistency {
            None => FacePersistency::Persistent,
            Some(code) => FacePersistency::from_code(code)
                .ok_or_else(|| invalid_parameters(&format!("FacePersistency {code} does not exist")))?,
        };
        // Checked first, as in NFD: a command that no face could satisfy is refused even if a face exists.
        check_transport(&remote, local.as_ref(), persistency, &parameters)?;
        if let Some(existing) = self.faces.find(&remote, local.as_ref()) {
            return Err(Box::new(already_exists(existing)));
        }
        if self.join_create(&remote, &local, reply_to)? {
            return Ok(None);
        }
        let reply_to = reply_to.clone();
        let ticket = self.issue(FaceCommand::Create {
            remote: remote.clone(),
            local: local.clone(),
            reply_to,
            others: Vec::new(),
        })?;
        let mask = parameters.mask.unwrap_or(0) & KNOWN_FLAGS;
        out.push(Effect::CreateFace(CreateFace {
            ticket,
            remote,
            local,
            persistency,
            flags: parameters.flags.unwrap_or(0) & mask,
            mask,
            base_congestion_marking_interval_ns: parameters.base_congestion_marking_interval_ns,
            default_congestion_threshold_bytes: parameters.default_congestion_threshold_bytes,
            mtu: parameters.mtu,
        }));
        Ok(None)
    }

    /// Lets a second request for a face that is being made wait for the first.
    fn join_create(&mut self, remote: &FaceUri, local: &Option<FaceUri>, reply_to: &ReplyTo) -> Result<bool, Refusal> {
        let others = self.pending.of_faces.values_mut().find_map(|command| match command {
            FaceCommand::Create { remote: r, local: l, others, .. } if r == remote && l == local => Some(others),
            _ => None,
        });
        match others {
            Some(others) if others.len() >= MAX_PENDING => Err(too_many_pending()),
            Some(others) => {
                others.push(reply_to.clone());
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// `faces/update`: with nothing to change, the answer holds the properties.
    pub(crate) fn update_face(
        &mut self,
        parameters: ControlParameters,
        reply_to: &ReplyTo,
        out: &mut Vec<Effect>,
    ) -> FaceCommandResult {
        let face = parameters.face_id.unwrap_or(FaceId::INVALID);
        check_not_reserved(face)?;
        let known = self.faces.get(face).ok_or_else(|| refusal(404, "Specified face does not exist"))?;
        let refused = refused_properties(known, &parameters);
        if refused != ControlParameters::default() {
            let refusal = ControlResponse::new(409, "Invalid properties specified").with_body(refused);
            return Err(Box::new(refusal));
        }
        let mask = parameters.mask.unwrap_or(0) & KNOWN_FLAGS;
        let changes = mask != 0
            || parameters.face_persistency.is_some()
            || parameters.base_congestion_marking_interval_ns.is_some()
            || parameters.default_congestion_threshold_bytes.is_some()
            || parameters.mtu.is_some();
        if !changes {
            return Ok(Some(known.to_update_body()));
        }
        let ticket = self.issue(FaceCommand::Update { reply_to: reply_to.clone() })?;
        out.push(Effect::UpdateFace(UpdateFace {
            ticket,
            face,
            flags: parameters.flags.unwrap_or(0) & mask,
            mask,
            persistency: parameters.face_persistency.and_then(FacePersistency::from_code),
            base_congestion_marking_interval_ns: parameters.base_congestion_marking_interval_ns,
            default_congestion_threshold_bytes: parameters.default_congestion_threshold_bytes,
            mtu: parameters.mtu,
        }));
        Ok(None)
    }

    /// `faces/destroy`: 200 even if the face does not exist.
    pub(crate) fn destroy_face(
        &mut self,
        parameters: ControlParameters,
        reply_to: &ReplyTo,
        out: &mut Vec<Effect>,
    ) -> FaceCommandResult {
        let face = match parameters.face_id {
            None | Some(FaceId::INVALID) => return Err(invalid_parameters("FaceId must not be 0")),
            Some(face) => face,
        };
        check_not_reserved(face)?;
        if self.faces.get(face).is_none() {
            return Ok(Some(ControlParameters { face_id: Some(face), ..Default::default() }));
        }
        let ticket = self.issue(FaceCommand::Destroy { face, reply_to: reply_to.clone() })?;
        out.push(Effect::DestroyFace { ticket, face });
        Ok(None)
    }

    fn issue(&mut self, command: FaceCommand) -> Result<Ticket, Refusal> {
        if self.pending.of_faces.len() >= MAX_PENDING {
            return Err(too_many_pending());
        }
        let ticket = self.pending.next_ticket();
        self.pending.of_faces.insert(ticket, command);
        Ok(ticket)
    }

    /// Answers a face command. The router calls this once for each ticket, with the face's properties after the command
    /// (for a destroyed face: before it).
    ///
    /// A created face is recorded here. Calling [`Management::on_face_created`] for it as well, before or after, is
    /// harmless. For a destroyed face, [`Management::on_face_closed`] must still be called.
    pub fn on_face_command_done(
        &mut self,
        now: Times,
        ticket: Ticket,
        result: Result<FaceProperties, FaceCommandError>,
        out: &mut Vec<Effect>,
    ) {
        match (self.pending.of_faces.remove(&ticket), result) {
            (None, _) => {} // the ticket was never issued, or is done already
            (Some(FaceCommand::Create { reply_to, others, .. }), Ok(face)) => {
                self.on_face_created(now, face.clone(), out);
                self.replies.succeed(&reply_to, face.to_create_body(), out);
                let exists = already_exists(&face);
                others.iter().for_each(|other| self.replies.refuse(other, &exists, out));
            }
            (Some(FaceCommand::Create { reply_to, others, .. }), Err(error)) => {
                let refusal = error.to_response();
                self.replies.refuse(&reply_to, &refusal, out);
                others.iter().for_each(|other| self.replies.refuse(other, &refusal, out));
            }
            (Some(FaceCommand::Update { reply_to }), Ok(face)) => {
                let body = face.to_update_body();
                // The face may have closed while it was changed.
                if self.faces.get(face.face).is_some() {
                    log_lines::face_changed(&face);
                    self.faces.insert(face);
                }
                self.replies.succeed(&reply_to, body, out);
            }
            (Some(FaceCommand::Destroy { face, reply_to }), Ok(_)) => {
                self.replies.succeed(&reply_to, ControlParameters { face_id: Some(face), ..Default::default() }, out);
            }
            (Some(FaceCommand::Update { reply_to } | FaceCommand::Destroy { reply_to, .. }), Err(error)) => {
                self.replies.refuse(&reply_to, &error.to_response(), out);
            }
        }
    }
}

impl FaceCommandError {
    /// An error without a body.
    pub fn new(code: u64, text: impl Into<String>) -> Self {
        FaceCommandError { code, text: text.into(), body: None }
    }

    fn to_response(&self) -> ControlResponse {
        ControlResponse { code: self.code, text: self.text.clone(), body: self.body.as_deref().cloned() }
    }
}

fn already_exists(face: &FaceProperties) -> ControlResponse {
    ControlResponse::new(409, "Face with remote URI already exists").with_body(face.to_create_body())
}

/// NFD lets a command destroy its internal face. After that, no command can reach NFD, so there is no use for it.
fn check_not_reserved(face: FaceId) -> Result<(), Refusal> {
    if face != FaceId::INVALID && face < FaceId::FIRST_DYNAMIC {
        return Err(refusal(403, format!("Face {face} belongs to the forwarder")));
    }
    Ok(())
}

fn too_many_pending() -> Refusal {
    refusal(503, format!("Too many face commands in progress (limit is {MAX_PENDING})"))
}

fn not_acceptable(text: &str) -> Refusal {
    refusal(406, text)
}

/// A FaceUri of a command, which must be canonical; `which` says which end it names.
fn read_uri(text: Option<&str>, which: &str) -> Result<Option<FaceUri>, Refusal> {
    let Some(text) = text else { return Ok(None) };
    let uri: FaceUri = text.parse().map_err(|error| malformed(&format!("{which} URI {error}")))?;
    if !uri.is_canonical() {
        return Err(refusal(400, format!("Non-canonical {which} URI")));
    }
    Ok(Some(uri))
}

/// Refuses what the transport of `remote` cannot do, in NFD's words.
fn check_transport(
    remote: &FaceUri,
    local: Option<&FaceUri>,
    persistency: FacePersistency,
    parameters: &ControlParameters,
) -> Result<(), Refusal> {
    let is_on_demand = persistency == FacePersistency::OnDemand;
    let (protocol, kind) = match remote {
        FaceUri::Udp4(_) | FaceUri::Udp6(_) => ("UDP", "Unicast UDP"),
        FaceUri::Tcp4(_) | FaceUri::Tcp6(_) => ("TCP", "Unicast TCP"),
        FaceUri::WebSocket(_) | FaceUri::WebSocketUrl(_) => ("WebSocket", "WebSocket"),
        FaceUri::Ether(_) => ("Ethernet", "unicast Ethernet"),
        _ => return Err(not_acceptable("Unsupported protocol")),
    };
    let is_ethernet = protocol == "Ethernet";
    if is_ethernet && !matches!(local, Some(FaceUri::Dev(_))) {
        return Err(not_acceptable(&format!("Creation of {kind} faces requires a LocalUri with dev:// scheme")));
    }
    if !is_ethernet {
        check_address(remote, protocol)?;
    }
    if is_on_demand {
        return Err(not_acceptable(&format!("Outgoing {protocol} faces do not support on-demand persistency")));
    }
    if !is_ethernet && local.is_some() {
        return Err(not_acceptable(&format!("{kind} faces cannot be created with a LocalUri")));
    }
    if is_ethernet && remote.is_multicast() {
        return Err(not_acceptable("Cannot create multicast Ethernet faces"));
    }
    if parameters.mtu.is_some() && matches!(protocol, "TCP" | "WebSocket") {
        return Err(not_acceptable(&format!("{protocol} faces do not support MTU overrides")));
    }
    if protocol == "WebSocket" && sets_flag(parameters, face_flags::LP_RELIABILITY) {
        return Err(not_acceptable("WebSocket faces do not support LpReliability"));
    }
    if protocol != "UDP" && sets_flag(parameters, face_flags::LANES) {
        return Err(not_acceptable(&format!("{protocol} faces do not support lanes")));
    }
    if parameters.mtu.is_some_and(|mtu| mtu < MIN_MTU) {
        return Err(not_acceptable("Override MTU cannot be less than 64"));
    }
    // Only TCP within this host becomes a local face (forwarding.md §3).
    let may_be_local =
        matches!(remote, FaceUri::Tcp4(_) | FaceUri::Tcp6(_)) && remote.ip().is_some_and(|ip| ip.is_loopback());
    if sets_flag(parameters, face_flags::LOCAL_FIELDS) && !may_be_local {
        return Err(not_acceptable("Local fields can only be enabled on faces with local scope"));
    }
    Ok(())
}

/// Refuses addresses where no single peer can be. Only the router knows whether an address and port are its own.
fn check_address(remote: &FaceUri, protocol: &str) -> Result<(), Refusal> {
    // `[::ffff:0.0.0.0]` means the same as `0.0.0.0`.
    if let Some(ip) = remote.literal_ip().map(|ip| ip.to_canonical()) {
        if ip.is_unspecified() {
            return Err(refusal(406, format!("Cannot create {protocol} faces to an unspecified address")));
        }
        if ip.is_multicast() {
            return Err(refusal(406, format!("Cannot create multicast {protocol} faces")));
        }
        if ip == IpAddr::V4(Ipv4Addr::BROADCAST) {
            return Err(refusal(406, format!("Cannot create broadcast {protocol} faces")));
        }
    }
    if remote.port() == Some(0) {
        return Err(refusal(406, format!("Cannot create {protocol} faces to port 0")));
    }
    Ok(())
}

fn sets_flag(parameters: &ControlParameters, flag: u64) -> bool {
    parameters.flags.unwrap_or(0) & parameters.mask.unwrap_or(0) & flag != 0
}

/// True for a UDP face to one neighbour that is not on demand after the command.
fn may_have_lanes(face: &FaceProperties, parameters: &ControlParameters) -> bool {
    let persistency = parameters.face_persistency.and_then(FacePersistency::from_code).unwrap_or(face.persistency);
    let is_udp = matches!(face.remote, FaceUri::Udp4(_) | FaceUri::Udp6(_)) && !face.remote.is_multicast();
    is_udp && persistency != FacePersistency::OnDemand
}

/// True for links to one other node. They may be reliable (NDNLPv2 §5) and have any persistency.
fn is_unicast_link(remote: &FaceUri) -> bool {
    matches!(remote, FaceUri::Udp4(_) | FaceUri::Udp6(_) | FaceUri::Tcp4(_) | FaceUri::Tcp6(_) | FaceUri::Ether(_))
        && !remote.is_multicast()
}

/// The properties that this face cannot take; empty if it can take all.
fn refused_properties(face: &FaceProperties, parameters: &ControlParameters) -> ControlParameters {
    let mut refused = ControlParameters::default();
    let no_local_fields = sets_flag(parameters, face_flags::LOCAL_FIELDS) && face.scope != FaceScope::Local;
    let no_reliability = sets_flag(parameters, face_flags::LP_RELIABILITY) && !is_unicast_link(&face.remote);
    let no_lanes = sets_flag(parameters, face_flags::LANES) && !may_have_lanes(face, parameters);
    for (is_refused, flag) in [
        (no_local_fields, face_flags::LOCAL_FIELDS),
        (no_reliability, face_flags::LP_RELIABILITY),
        (no_lanes, face_flags::LANES),
    ] {
        if is_refused {
            refused.flags = Some(refused.flags.unwrap_or(0) | flag);
            refused.mask = refused.flags;
        }
    }
    if let Some(code) = parameters.face_persistency {
        // NFD takes any number here. A face must not get a number without a meaning.
        let is_web_socket = matches!(face.remote, FaceUri::WebSocket(_) | FaceUri::WebSocketUrl(_));
        let is_possible = FacePersistency::from_code(code)
            .is_some_and(|wanted| wanted == face.persistency || is_unicast_link(&face.remote) || is_web_socket);
        if !is_possible {
            refused.face_persistency = Some(code);
        }
    }
    if let Some(mtu) = parameters.mtu {
        let has_mtu = face.remote.is_datagrams();
        if !has_mtu || mtu < MIN_MTU {
            refused.mtu = Some(mtu);
        }
    }
    refused
}
