//! What control and workers tell each other. All of it is rare: packets take the rings.

use crate::{
    cs_erasure::CsErasure, cs_settings::CsSettings, management_queue::ManagementQueue, trust_anchors::TrustAnchors,
};
use namewire_engine::dispatch::Round;
use namewire_faces::{
    AddFaceError, CloseReason, FaceCounters, FaceInfo, LinkPolicy, LinkType, Persistency, StreamSocket, Waker,
    ethernet::LinkSocket, udp_multicast::MulticastSockets,
};
use namewire_management::{Ticket, TrustConfig};
use namewire_packet::{FaceId, NackReason, NameBuf, lp::PitToken, nfd::MacAddress};
use std::{
    cell::Cell,
    net::SocketAddr,
    sync::{
        Arc,
        mpsc::{SyncSender, TrySendError},
    },
};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// From control to one worker.
pub(crate) enum ToWorker {
    /// Take over a connected stream.
    AddStream { face: FaceId, socket: StreamSocket, info: FaceInfo, policy: LinkPolicy, ticket: Option<Ticket> },
    /// Connect a UDP socket to `remote`.
    AddUdp {
        face: FaceId,
        local: SocketAddr,
        remote: SocketAddr,
        persistency: Persistency,
        mtu: usize,
        policy: LinkPolicy,
        ticket: Option<Ticket>,
    },
    /// Take over the sockets of a UDP multicast face.
    AddMulticast { face: FaceId, sockets: MulticastSockets, info: FaceInfo, policy: LinkPolicy },
    /// Take over the packet socket of a network interface; with `listens`, unknown stations get faces.
    AddLink { interface: u32, socket: LinkSocket, listens: bool },
    /// Make a face to a station or group of an interface that this worker has.
    AddEthernet {
        face: FaceId,
        interface: u32,
        address: MacAddress,
        persistency: Persistency,
        link_type: LinkType,
        mtu: Option<usize>,
        policy: LinkPolicy,
        ticket: Option<Ticket>,
    },
    /// A network interface is gone, with its faces.
    RemoveLink { interface: u32 },
    /// A network interface has another MTU.
    SetLinkMtu { interface: u32, mtu: usize },
    /// Unknown stations of a network interface get faces from now on, or do not.
    SetLinkListens { interface: u32, listens: bool },
    /// The network interface of these datagram faces of this worker is up or down.
    SetInterfaceUp { faces: Vec<FaceId>, is_up: bool },
    /// Give a permanent stream face its new connection.
    Reconnect { face: FaceId, socket: StreamSocket },
    /// Close a face of this worker.
    RemoveFace { face: FaceId },
    /// Change a face of this worker.
    UpdateFace { face: FaceId, change: FaceChange },
    /// Faces of any worker, in ascending order, are gone: forget their records.
    ForgetFaces(Arc<[FaceId]>),
    /// The links of these faces of any worker, in ascending order, carry nothing any more: Interests that wait for
    /// them alone go to other next hops. The face table says so already.
    FacesDown(Arc<[FaceId]>),
    /// The links of these faces, in ascending order, carry packets again: Interests that wait for nothing are sent there.
    /// The face table says so already.
    FacesUp(Arc<[FaceId]>),
    /// A packet from the internal face; `round`: who is asked after this worker.
    Packet { packet: Vec<u8>, pit_token: Option<PitToken>, round: Round },
    /// Prefixes have gained next hops.
    NewNextHops(Arc<Vec<(NameBuf, FaceId)>>),
    /// New Content Store settings, this worker's share.
    ConfigureCs(CsSettings),
    /// Erase from the Content Store, then report [`ToControl::CsErased`].
    EraseCs(CsErasure),
    /// End the thread.
    Stop,
}

/// What changes of a face; `None` stays as it is.
#[derive(Default)]
pub(crate) struct FaceChange {
    pub(crate) persistency: Option<Persistency>,
    pub(crate) mtu: Option<usize>,
    pub(crate) local_fields: Option<bool>,
    pub(crate) policy: Option<LinkPolicy>,
}

/// From a worker (or a listener) to control.
pub(crate) enum ToControl {
    /// An Interest for the internal face.
    Interest { incoming: FaceId, pit_token: Option<PitToken>, packet: Vec<u8> },
    /// Data for the internal face, or a Nack with its Interest.
    Answer { packet: Vec<u8>, nack: Option<NackReason> },
    /// Self-learning: Data with this announcement came through `face`.
    RouteLearned { face: FaceId, announcement: Vec<u8> },
    /// Self-learning: `face` has no route for this name (TLV-VALUE).
    RouteLost { face: FaceId, name: Vec<u8> },
    /// What became of [`ToWorker::AddStream`], [`ToWorker::AddUdp`], [`ToWorker::AddMulticast`] or
    /// [`ToWorker::AddEthernet`].
    FaceAdded {
        worker: u8,
        face: FaceId,
        ticket: Option<Ticket>,
        result: Result<(FaceInfo, Arc<FaceCounters>), AddFaceError>,
    },
    /// A datagram made a face.
    FaceMade { worker: u8, face: FaceId, info: FaceInfo, counters: Arc<FaceCounters> },
    /// A face closed by itself.
    FaceClosed { face: FaceId, reason: CloseReason },
    /// The link of a permanent face carries nothing.
    FaceDown { face: FaceId, reason: CloseReason },
    /// The link of a permanent datagram face carries packets again.
    FaceUp { face: FaceId },
    /// What became of [`ToWorker::EraseCs`].
    CsErased { ticket: Ticket, erased: u64 },
    /// A listener accepted a connection.
    Accepted(AcceptedConnection),
    /// A listener could not accept: no descriptors, or no memory.
    AcceptFailed,
    /// An outgoing connection was made, or not.
    Connected { request: Box<crate::face_creation::StreamRequest>, result: std::io::Result<(StreamSocket, FaceInfo)> },
    /// Network interfaces or their addresses have changed.
    InterfacesChanged,
    /// A worker could not watch the packet socket of an interface.
    LinkFailed { interface: u32 },
    /// It is time to try a permanent face's connection again.
    Retry { face: FaceId },
    /// Who may command, from now on.
    Trust { trust: Box<TrustConfig>, anchors: TrustAnchors },
    /// Something that the process running the router asks for.
    Operate(crate::operator::Request),
    /// End.
    Stop,
}

/// A connection that a listener accepted.
pub(crate) struct AcceptedConnection {
    pub(crate) socket: StreamSocket,
    pub(crate) info: FaceInfo,
    /// Its place among those of its listener that are no faces yet.
    pub(crate) place: OwnedSemaphorePermit,
}

impl ToControl {
    /// A packet for management.
    pub(crate) fn is_for_management(&self) -> bool {
        matches!(self, ToControl::Interest { .. } | ToControl::Answer { .. })
    }
}

/// How workers reach control. Interests are refused when too many wait; events
/// never are: there are at most a few per face, and listeners wait until what they accepted are faces.
#[derive(Clone)]
pub(crate) struct ControlSender {
    pub(crate) events: mpsc::UnboundedSender<ToControl>,
    pub(crate) interests: Arc<ManagementQueue>,
}

/// How control reaches one worker. Dropping it ends the worker.
pub(crate) struct WorkerSender {
    messages: SyncSender<ToWorker>,
    waker: Waker,
    /// Messages were handed over that the worker has not been woken for.
    owes_wake: Cell<bool>,
}

/// Messages that may wait for a worker before control waits for it.
pub(crate) const WORKER_QUEUE: usize = 4096;

impl WorkerSender {
    pub(crate) const fn new(messages: SyncSender<ToWorker>, waker: Waker) -> Self {
        WorkerSender { messages, waker, owes_wake: Cell::new(false) }
    }

    /// Hands over a message, for which [`WorkerSender::wake`] is to be called: once for many
    /// messages, because it is a system call and ends the worker's sleep. A worker that is gone
    /// (the router is stopping) takes none.
    pub(crate) fn send(&self, message: ToWorker) {
        self.owes_wake.set(true);
        if let Err(TrySendError::Full(message)) = self.messages.try_send(message) {
            // It may sleep still, and would then never make room.
            self.waker.wake();
            let _ = self.messages.send(message);
        }
    }

    /// Wakes the worker if it has messages that it was not woken for.
    pub(crate) fn wake(&self) {
        if self.owes_wake.take() {
            self.waker.wake();
        }
    }
}

impl Drop for WorkerSender {
    fn drop(&mut self) {
        self.send(ToWorker::Stop);
        self.wake();
    }
}
