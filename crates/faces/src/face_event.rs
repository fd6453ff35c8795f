//! Events of faces: created, closed, down, refused, each with its reason.

use std::io;

use namewire_packet::{FaceId, lane_hello::LaneHello};

use crate::FaceInfo;

/// An event of a face that the caller did not cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaceEvent {
    /// A datagram from an unknown remote made a face.
    Created {
        /// Its new id.
        face: FaceId,
        /// Its facts.
        info: FaceInfo,
    },
    /// The face has closed. Not reported for [`crate::SocketDriver::remove_face`].
    Closed {
        /// Its id, never used again.
        face: FaceId,
        /// Why.
        reason: CloseReason,
    },
    /// The link of a permanent face carries nothing. A stream face waits for [`crate::SocketDriver::reconnect`] and
    /// refuses packets meanwhile; a datagram face retries its link by itself.
    Down {
        /// Its id.
        face: FaceId,
        /// Why.
        reason: CloseReason,
    },
    /// The link of a datagram face that was down carries packets again.
    Up {
        /// Its id.
        face: FaceId,
    },
    /// The peer says what its lanes are. Reported if [`crate::SocketDriver::hear_lane_hellos`] asked for it.
    LaneHello {
        /// The face's id.
        face: FaceId,
        /// What it says.
        hello: LaneHello,
    },
    /// The peer sent its first LpPacket, so it understands link headers.
    SpokeLp {
        /// Its id.
        face: FaceId,
    },
}

/// Why a face closed or went down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The peer closed the connection.
    PeerClosed,
    /// The socket failed.
    Io(io::ErrorKind),
    /// The stream has an element of more than 8800 bytes.
    OversizeElement,
    /// The stream has bytes that cannot start an element.
    MalformedElement,
    /// A TCP connection does not begin with a packet of NDN.
    ForeignProtocol,
    /// Nothing was received for the idle time-out.
    Idle,
    /// No packet came over the connection for the time-out.
    NeverSpoke,
    /// It was idle, and another face needed its place or its descriptor.
    Displaced,
    /// The network interface no longer exists.
    InterfaceGone,
    /// The network interface is down.
    InterfaceDown,
    /// The peer's port is closed: no forwarder listens there.
    Refused,
}

impl std::fmt::Display for CloseReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CloseReason::PeerClosed => f.write_str("closed by the peer"),
            CloseReason::Io(kind) => write!(f, "socket failed: {kind}"),
            CloseReason::OversizeElement => f.write_str("element of more than 8800 bytes"),
            CloseReason::MalformedElement => f.write_str("malformed element header"),
            CloseReason::ForeignProtocol => f.write_str("not a packet of NDN at the start"),
            CloseReason::Idle => f.write_str("idle"),
            CloseReason::NeverSpoke => f.write_str("no packet came"),
            CloseReason::Displaced => f.write_str("idle, and its place was needed"),
            CloseReason::InterfaceGone => f.write_str("the network interface is no more"),
            CloseReason::InterfaceDown => f.write_str("the network interface is down"),
            CloseReason::Refused => f.write_str("the peer's port is closed"),
        }
    }
}

/// Why a face was not added.
#[derive(Debug, thiserror::Error)]
pub enum AddFaceError {
    /// This worker has as many faces as it may.
    #[error("the limit of {0} faces is reached")]
    FaceLimit(usize),
    /// The peer's address, or user, has its share of the faces of this worker.
    #[error("this host or user has its share of the faces")]
    HolderShare,
    /// The id is in use.
    #[error("face {0} exists already")]
    Exists(FaceId),
    /// This interface number was not opened here.
    #[error("network interface {0} is not open")]
    NoLink(u32),
    /// There is no such face, or it is not a stream face that is down.
    #[error("face {0} is not a stream face that is down")]
    NotDown(FaceId),
    /// The socket could not be made or watched.
    #[error(transparent)]
    Io(#[from] io::Error),
}
