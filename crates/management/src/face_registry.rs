//! The properties of each face that commands ask for and change. The faces keep their own counters
//! ([`crate::Environment::fill`]).
//!
//! Source: forwarding.md §5. Limit: as many faces as the router reports.

use namewire_packet::{
    FaceId,
    nfd::{
        ControlParameters, FaceCounters, FacePersistency, FaceScope, FaceState, FaceStatus, FaceUri, LinkType,
        face_flags,
    },
};
use namewire_shares::HolderId;
use std::collections::{BTreeMap, BTreeSet};

/// The interval that NFD shows for its internal face, which is never congested: its default.
const MARKING_INTERVAL_NS: u64 = 100_000_000;
const MARKING_THRESHOLD_BYTES: u64 = 65_536;

/// Properties of one face.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaceProperties {
    /// Its number.
    pub face: FaceId,
    /// Remote end.
    pub remote: FaceUri,
    /// Local end.
    pub local: FaceUri,
    /// Local or not.
    pub scope: FaceScope,
    /// How long it stays.
    pub persistency: FacePersistency,
    /// Point-to-point or multi-access.
    pub link_type: LinkType,
    /// [`namewire_packet::nfd::face_flags`].
    pub flags: u64,
    /// Nanoseconds between congestion marks at the threshold.
    pub base_congestion_marking_interval_ns: Option<u64>,
    /// Send queue length in bytes that counts as congestion.
    pub default_congestion_threshold_bytes: Option<u64>,
    /// Largest frame in bytes; at most 8800 is shown.
    pub mtu: Option<u64>,
    /// Whose share of each pool its commands use.
    pub holder: HolderId,
    /// The process at the other end of a Unix socket. No dataset shows it.
    pub credentials: Option<PeerCredentials>,
}

/// What the kernel says about the process at the other end of a Unix socket, as of the time it connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerCredentials {
    /// Effective user.
    pub uid: u32,
    /// Effective group.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
    /// Process; it may have ended since.
    pub pid: i32,
}

impl PeerCredentials {
    /// True if the process has this group.
    pub fn is_member_of(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }
}

impl FaceProperties {
    /// Body of an answer to `faces/update`; `faces/create` adds the FaceUris.
    pub(crate) fn to_update_body(&self) -> ControlParameters {
        ControlParameters {
            face_id: Some(self.face),
            flags: Some(self.flags),
            face_persistency: Some(self.persistency.code()),
            base_congestion_marking_interval_ns: self.base_congestion_marking_interval_ns,
            default_congestion_threshold_bytes: self.default_congestion_threshold_bytes,
            mtu: self.shown_mtu(),
            ..Default::default()
        }
    }

    /// Body of an answer to `faces/create`, 200 or 409.
    pub(crate) fn to_create_body(&self) -> ControlParameters {
        ControlParameters {
            uri: Some(self.remote.to_string()),
            local_uri: Some(self.local.to_string()),
            ..self.to_update_body()
        }
    }

    fn shown_mtu(&self) -> Option<u64> {
        self.mtu.map(|mtu| mtu.min(namewire_packet::MAX_PACKET_BYTES as u64))
    }

    /// Without what the router keeps of it ([`crate::Environment::fill`]).
    fn to_status(&self) -> FaceStatus {
        FaceStatus {
            face_id: self.face,
            uri: self.remote.to_string(),
            local_uri: self.local.to_string(),
            expiration_period_ms: None,
            face_scope: self.scope,
            face_persistency: self.persistency,
            link_type: self.link_type,
            base_congestion_marking_interval_ns: self.base_congestion_marking_interval_ns,
            default_congestion_threshold_bytes: self.default_congestion_threshold_bytes,
            mtu: self.shown_mtu(),
            counters: FaceCounters::default(),
            flags: self.flags,
            port: None,
            state: None,
            path_mtu: None,
            link: Default::default(),
        }
    }
}

/// All faces of this node, by number.
#[derive(Debug, Default)]
pub(crate) struct FaceRegistry {
    faces: BTreeMap<FaceId, FaceProperties>,
    /// Faces that were reported down, and not up since.
    down: BTreeSet<FaceId>,
}

impl FaceRegistry {
    pub(crate) fn get(&self, face: FaceId) -> Option<&FaceProperties> {
        self.faces.get(&face)
    }

    /// Whose share the commands of this face use. The forwarder's own faces are management's.
    pub(crate) fn holder(&self, face: FaceId) -> HolderId {
        self.get(face).map_or(HolderId::MANAGEMENT, |face| face.holder)
    }

    /// True for a face that is not here. The forwarder's own faces never go.
    pub(crate) fn is_gone(&self, face: FaceId) -> bool {
        face >= FaceId::FIRST_DYNAMIC && !self.faces.contains_key(&face)
    }

    pub(crate) fn insert(&mut self, properties: FaceProperties) -> Option<FaceProperties> {
        self.faces.insert(properties.face, properties)
    }

    pub(crate) fn remove(&mut self, face: FaceId) -> Option<FaceProperties> {
        self.down.remove(&face);
        self.faces.remove(&face)
    }

    /// Records whether a face can send.
    pub(crate) fn set_state(&mut self, face: FaceId, state: FaceState) {
        match state {
            FaceState::Up => self.down.remove(&face),
            FaceState::Down => self.faces.contains_key(&face) && self.down.insert(face),
        };
    }

    fn state(&self, face: FaceId) -> FaceState {
        if self.down.contains(&face) { FaceState::Down } else { FaceState::Up }
    }

    /// The face that a command with these FaceUris would make again. Cost: a scan, one per `faces/create`.
    pub(crate) fn find(&self, remote: &FaceUri, local: Option<&FaceUri>) -> Option<&FaceProperties> {
        let is_it = |face: &&FaceProperties| face.remote == *remote && local.is_none_or(|local| face.local == *local);
        self.faces.values().find(is_it)
    }

    /// The forwarder's own faces first, then the reported ones, without what the router keeps of them.
    pub(crate) fn dataset(&self) -> impl Iterator<Item = FaceStatus> {
        let own = RESERVED.iter().map(|(face, uri)| reserved(*face, uri).to_status());
        let all = own.chain(self.faces.values().map(FaceProperties::to_status));
        all.map(|face| FaceStatus { state: Some(self.state(face.face_id)), ..face })
    }
}

/// Faces that every forwarder has (forwarding.md §5). Datasets show them, because tools look for them there. Commands
/// cannot change or destroy them, and no route leads to them.
const RESERVED: [(FaceId, FaceUri); 3] = [
    (FaceId::INTERNAL, FaceUri::Internal),
    (FaceId::CONTENT_STORE, FaceUri::ContentStore),
    (FaceId::NULL, FaceUri::Null),
];

/// A face of the forwarder itself, with the properties that NFD 24.07 shows.
fn reserved(face: FaceId, uri: &FaceUri) -> FaceProperties {
    // Only the internal face has a link service. In NFD it marks congestion and has local fields.
    let is_internal = face == FaceId::INTERNAL;
    FaceProperties {
        face,
        remote: uri.clone(),
        local: uri.clone(),
        scope: FaceScope::Local,
        persistency: FacePersistency::Permanent,
        link_type: LinkType::PointToPoint,
        flags: if is_internal { face_flags::LOCAL_FIELDS } else { 0 },
        base_congestion_marking_interval_ns: is_internal.then_some(MARKING_INTERVAL_NS),
        default_congestion_threshold_bytes: is_internal.then_some(MARKING_THRESHOLD_BYTES),
        mtu: Some(namewire_packet::MAX_PACKET_BYTES as u64),
        holder: HolderId::MANAGEMENT,
        credentials: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_faces_are_below_the_first_dynamic_one() {
        for (face, uri) in RESERVED {
            assert!(face != FaceId::INVALID && face < FaceId::FIRST_DYNAMIC);
            assert!(uri.to_string().ends_with("://"));
        }
    }
}
