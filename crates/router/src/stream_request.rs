//! A connection attempt, from the command to its result.

use namewire_faces::LinkPolicy;
use namewire_management::Ticket;
use namewire_packet::{
    FaceId,
    nfd::{FacePersistency, WebSocketUrl},
};
use std::{net::SocketAddr, time::Duration};

/// The options of a face that is being made.
pub(crate) struct FaceOptions {
    pub(crate) local_fields: bool,
    pub(crate) policy: LinkPolicy,
    /// All workers send and receive its packets (decision 0019).
    pub(crate) lanes: bool,
}

/// A TCP or WebSocket connection under way.
pub(crate) struct StreamRequest {
    pub(crate) remote: StreamRemote,
    pub(crate) persistency: FacePersistency,
    pub(crate) options: FaceOptions,
    pub(crate) purpose: Purpose,
}

/// The remote end.
#[derive(Clone)]
pub(crate) enum StreamRemote {
    Tcp(SocketAddr),
    WebSocket(WebSocketUrl),
}

/// Why the connection is made.
pub(crate) enum Purpose {
    /// For a new face.
    Create(Ticket),
    /// For a permanent face whose connection failed, with the pause that follows if this attempt fails too.
    Reconnect(FaceId, Duration),
}
