//! The messages to control, from workers, listeners, connection attempts, and the process that runs the router.

use crate::{descriptors::TakenDescriptors, requests::Request, stream_request::StreamRequest};
use namewire_configuration::trust_anchors::TrustAnchors;
use namewire_faces::{FaceInfo, StreamSocket, memory};
use namewire_management::TrustConfig;
use namewire_packet::FaceId;
use namewire_shares::HolderId;
use namewire_websocket::AcceptedWebSocket;
use namewire_worker::{ForManagement, FromWorker};
use std::sync::{Arc, mpsc::SyncSender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// To control.
pub(crate) enum ToControl {
    /// A report of a worker.
    Worker(FromWorker),
    /// What a worker has for management.
    Management(ForManagement),
    /// A listener accepted a connection.
    Accepted(AcceptedConnection),
    /// A listener has refused a connection for lack of descriptors or of a place; idle connections of this holder
    /// should close.
    ShortOfConnections { holder: HolderId },
    /// A listener could not accept: there were no descriptors, or no memory.
    AcceptFailed,
    /// An outgoing connection was made, or failed.
    Connected { request: Box<StreamRequest>, result: std::io::Result<(StreamSocket, FaceInfo)> },
    /// Network interfaces or their addresses have changed.
    InterfacesChanged,
    /// It is time to try a permanent face's connection again.
    Retry { face: FaceId },
    /// The rules of who may command, from now on.
    Trust { trust: Box<TrustConfig>, anchors: TrustAnchors },
    /// A request of the process that runs the router.
    Operate(Request),
    /// Data that another process had stored, each with the milliseconds for which it is fresh. The sender waits for
    /// `done`.
    Stored { data: Vec<(Vec<u8>, u64)>, done: SyncSender<()> },
    /// End.
    Stop,
}

/// What a listener accepts.
pub(crate) enum Connection {
    Stream(StreamSocket),
    /// Memory that an application shares with the router.
    Memory(Box<memory::Port>),
}

/// A connection that a listener accepted.
pub(crate) struct AcceptedConnection {
    pub(crate) connection: Connection,
    pub(crate) info: FaceInfo,
    /// The place that it holds at its listener until it is a face.
    pub(crate) place: OwnedSemaphorePermit,
    /// Its share of the descriptors, if it is not counted elsewhere.
    pub(crate) descriptors: Option<TakenDescriptors>,
}

impl From<AcceptedWebSocket> for AcceptedConnection {
    fn from(AcceptedWebSocket { socket, info, place }: AcceptedWebSocket) -> Self {
        // The thread of WebSocket keeps the descriptors.
        AcceptedConnection { connection: Connection::Stream(socket), info, place, descriptors: None }
    }
}

impl AcceptedConnection {
    /// A connection that takes no place at a listener.
    pub(crate) fn apart_from_listeners(socket: StreamSocket, info: FaceInfo) -> Self {
        let place = Arc::new(Semaphore::new(1)).try_acquire_owned().expect("it has one place");
        AcceptedConnection { connection: Connection::Stream(socket), info, place, descriptors: None }
    }
}

impl ToControl {
    /// A packet for management.
    pub(crate) fn is_for_management(&self) -> bool {
        matches!(self, ToControl::Management(ForManagement::Interest { .. } | ForManagement::Answer { .. }))
    }

    /// Perhaps the answer shows what faces did lately.
    pub(crate) fn is_for_operator(&self) -> bool {
        matches!(self, ToControl::Management(ForManagement::Interest { .. }) | ToControl::Operate(Request::Snapshot(_)))
    }
}
