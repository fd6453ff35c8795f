//! The messages between control and workers. All of them are rare: packets use the rings.

use crate::{cs_settings::CsSettings, descriptors::TakenDescriptors, requests::Request, stream_request::StreamRequest};
use namewire_configuration::trust_anchors::TrustAnchors;
use namewire_engine::dispatch::Visits;
use namewire_faces::{
    AddFaceError, CloseReason, FaceCounters, FaceInfo, LinkPolicy, StreamSocket, capture::CaptureTap,
    ethernet::LinkSocket, memory, udp_multicast::MulticastSockets,
};
use namewire_management::{Ticket, TrustConfig};
use namewire_packet::{
    FaceId, NackReason, NameBuf,
    lp::{LpHeaders, PitToken},
    nfd::{FacePersistency, LinkType, MacAddress, NameLook},
};
use namewire_shares::HolderId;
use std::{net::SocketAddr, sync::Arc};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// From control to one worker.
pub(crate) enum ToWorker {
    /// Take over a connected stream.
    AddStream { face: FaceId, socket: StreamSocket, info: FaceInfo, policy: LinkPolicy, ticket: Option<Ticket> },
    /// Take over the memory of an application.
    AddMemory { face: FaceId, port: Box<memory::Port>, info: FaceInfo, policy: LinkPolicy },
    /// Connect a UDP socket to `remote`.
    AddUdp {
        face: FaceId,
        local: SocketAddr,
        remote: SocketAddr,
        persistency: FacePersistency,
        mtu: usize,
        policy: LinkPolicy,
        ticket: Option<Ticket>,
    },
    /// Take over the sockets of a UDP multicast face.
    AddMulticast { face: FaceId, sockets: MulticastSockets, info: FaceInfo, policy: LinkPolicy },
    /// Take over the packet socket of a network interface; with `listens`, unknown stations get faces.
    AddLink { interface: u32, socket: LinkSocket, listens: bool },
    /// Make a face to a station or group of an interface whose socket this worker has.
    AddEthernet {
        face: FaceId,
        interface: u32,
        address: MacAddress,
        persistency: FacePersistency,
        link_type: LinkType,
        mtu: Option<usize>,
        policy: LinkPolicy,
        ticket: Option<Ticket>,
    },
    /// A network interface is gone, and its faces with it.
    RemoveLink { interface: u32 },
    /// A network interface has another MTU.
    SetLinkMtu { interface: u32, mtu: usize },
    /// From now on, unknown stations of a network interface get faces, or do not.
    SetLinkListens { interface: u32, listens: bool },
    /// The network interface of these datagram faces of this worker is up or down.
    SetInterfaceUp { faces: Vec<FaceId>, is_up: bool },
    /// Give a permanent stream face its new connection.
    Reconnect { face: FaceId, socket: StreamSocket },
    /// Close a face of this worker.
    RemoveFace { face: FaceId },
    /// Close the longest idle connections of a holder: the process is short of descriptors, or a listener of places.
    DisplaceIdle { holder: HolderId },
    /// Change a face of this worker.
    UpdateFace { face: FaceId, change: FaceChange },
    /// Faces of any worker, in ascending order, are gone: forget their records.
    ForgetFaces(Arc<[FaceId]>),
    /// The links of these faces of any worker, in ascending order, carry nothing any more. Interests that wait for
    /// these faces alone go to other next hops. The face table already shows it.
    FacesDown(Arc<[FaceId]>),
    /// The links of these faces, in ascending order, carry packets again. Interests that wait for no face are sent
    /// there. The face table already shows it.
    FacesUp(Arc<[FaceId]>),
    /// A packet from the internal face; `visits` are the workers that come after this one.
    Packet { packet: Vec<u8>, headers: LpHeaders, visits: Visits },
    /// Send a packet of control through a face of this worker.
    Transmit { face: FaceId, packet: Vec<u8> },
    /// Prefixes have gained next hops.
    NewNextHops(Arc<Vec<(NameBuf, FaceId)>>),
    /// New Content Store settings: this worker's share.
    ConfigureCs(CsSettings),
    /// Erase from the Content Store, then report [`ToControl::CsErased`].
    EraseCs(CsErasure),
    /// Report what is pending and stored for this name ([`ToControl::NameLooked`]).
    LookAtName { id: LookId, name: Arc<NameBuf> },
    /// Begin or end a capture, or a part of one.
    Capture(CaptureChange),
    /// End the thread.
    Stop,
}

/// Number of a look at a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LookId(pub(crate) u64);

/// What changes about captures.
pub(crate) enum CaptureChange {
    /// Copy the frames of a face of this worker.
    Face { face: FaceId, tap: CaptureTap },
    /// Copy the frames of the faces that the capture takes by itself.
    Scope(CaptureTap),
    /// Note the decisions about packets under the capture's prefix.
    Decisions(CaptureTap),
    /// The faces of all clients that capture: they are in no capture.
    Clients(Vec<FaceId>),
    /// End a capture.
    End { id: u64 },
}

/// An erasure that one worker should make.
pub(crate) struct CsErasure {
    pub(crate) ticket: Ticket,
    pub(crate) prefix: Arc<NameBuf>,
    /// Most Data to erase.
    pub(crate) limit: u64,
}

/// A change to a face; `None` leaves a value as it is.
#[derive(Default)]
pub(crate) struct FaceChange {
    pub(crate) persistency: Option<FacePersistency>,
    pub(crate) mtu: Option<usize>,
    pub(crate) local_fields: Option<bool>,
    pub(crate) policy: Option<LinkPolicy>,
}

/// From a worker (or a listener) to control.
pub(crate) enum ToControl {
    /// An Interest for the internal face.
    Interest { incoming: FaceId, pit_token: Option<PitToken>, packet: Vec<u8> },
    /// Data for the internal face that came through `from`, or a Nack with its Interest.
    Answer { from: Option<FaceId>, packet: Vec<u8>, nack: Option<NackReason> },
    /// Self-learning: Data with this announcement came through `face`.
    RouteLearned { face: FaceId, announcement: Vec<u8> },
    /// Self-learning: `face` has no route for this name (TLV-VALUE).
    RouteLost { face: FaceId, name: Vec<u8> },
    /// A neighbour's packet about TagNet's trees.
    TagRouting { face: FaceId, packet: Vec<u8> },
    /// The result of [`ToWorker::AddStream`], [`ToWorker::AddMemory`], [`ToWorker::AddUdp`],
    /// [`ToWorker::AddMulticast`] or [`ToWorker::AddEthernet`].
    FaceAdded {
        worker: u8,
        face: FaceId,
        ticket: Option<Ticket>,
        result: Result<(FaceInfo, Arc<FaceCounters>), AddFaceError>,
    },
    /// A datagram has made a face.
    FaceMade { worker: u8, face: FaceId, info: FaceInfo, counters: Arc<FaceCounters> },
    /// A face closed by itself.
    FaceClosed { face: FaceId, reason: CloseReason },
    /// The link of a permanent face carries nothing.
    FaceDown { face: FaceId, reason: CloseReason },
    /// The link of a permanent datagram face carries packets again.
    FaceUp { face: FaceId },
    /// The result of [`ToWorker::EraseCs`].
    CsErased { ticket: Ticket, erased: u64 },
    /// A listener accepted a connection.
    Accepted(AcceptedConnection),
    /// A listener has refused a connection for lack of descriptors or of a place; idle connections of this holder
    /// should close.
    ShortOfConnections { holder: HolderId },
    /// A worker has traffic again. Control had asked for this message.
    Traffic,
    /// A worker has freed much memory.
    MemoryFreed,
    /// A listener could not accept: there were no descriptors, or no memory.
    AcceptFailed,
    /// An outgoing connection was made, or failed.
    Connected { request: Box<StreamRequest>, result: std::io::Result<(StreamSocket, FaceInfo)> },
    /// Network interfaces or their addresses have changed.
    InterfacesChanged,
    /// A worker could not watch the packet socket of an interface.
    LinkFailed { interface: u32 },
    /// A worker's answer to [`ToWorker::LookAtName`].
    NameLooked { id: LookId, look: NameLook },
    /// It is time to try a permanent face's connection again.
    Retry { face: FaceId },
    /// The rules of who may command, from now on.
    Trust { trust: Box<TrustConfig>, anchors: TrustAnchors },
    /// A request of the process that runs the router.
    Operate(Request),
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
        matches!(self, ToControl::Interest { .. } | ToControl::Answer { .. })
    }

    /// Perhaps the answer shows what faces did lately.
    pub(crate) fn is_for_operator(&self) -> bool {
        matches!(self, ToControl::Interest { .. } | ToControl::Operate(Request::Snapshot(_)))
    }
}
