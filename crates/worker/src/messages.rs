//! The messages between control and workers. All of them are rare: packets use the rings.

use namewire_engine::dispatch::{Homes, Visits};
use namewire_faces::{
    AddFaceError, CloseReason, FaceCounters, FaceInfo, HandedFace, HandedListener, LinkPolicy, StreamSocket,
    capture::CaptureTap, ethernet::LinkSocket, memory, udp_multicast::MulticastSockets,
};
use namewire_packet::{
    FaceId, NackReason, NameBuf,
    lane_hello::LaneHello,
    lp::{LpHeaders, PitToken},
    nfd::{FacePersistency, LinkType, MacAddress, NameLook},
};
use namewire_shares::HolderId;
use namewire_tables::CsPolicy;
use std::{
    io,
    net::{SocketAddr, UdpSocket},
    sync::{Arc, mpsc::SyncSender},
};

/// From control to one worker.
#[allow(missing_docs, reason = "the fields are named for what they hold")]
pub enum ToWorker {
    /// Take over a connected stream.
    AddStream { face: FaceId, socket: StreamSocket, info: FaceInfo, policy: LinkPolicy },
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
    /// Send a packet of control through a face of this worker, with its lead in front if the headers say so.
    Transmit { face: FaceId, headers: LpHeaders, packet: Vec<u8> },
    /// Prefixes have gained next hops.
    NewNextHops(Arc<Vec<(NameBuf, FaceId)>>),
    /// New Content Store settings: this worker's share.
    ConfigureCs(CsShare),
    /// Erase from the Content Store, then report [`FromWorker::CsErased`].
    EraseCs(CsErasure),
    /// Report what is pending and stored for this name ([`FromWorker::NameLooked`]).
    LookAtName { id: LookId, name: Arc<NameBuf> },
    /// Change this worker's lane of a face.
    Lane { face: FaceId, change: LaneChange },
    /// Begin or end a capture, or a part of one.
    Capture(CaptureChange),
    /// Use no socket from now on, but decide what other workers have passed on, until [`ToWorker::GoOn`] or
    /// [`ToWorker::Stop`]. Answer how many packets that were. A frozen worker serves all messages, and this one again.
    Freeze(SyncSender<usize>),
    /// Use sockets again.
    GoOn,
    /// A part of a hand-over between two processes.
    HandOver(HandOverMessage),
    /// End the thread.
    Stop,
}

/// What control wants of a worker when another process takes over, or when this one does.
#[allow(missing_docs, reason = "the fields are named for what they hold")]
pub enum HandOverMessage {
    /// Describe all faces and listening sockets for another process. The worker is frozen.
    Describe(SyncSender<io::Result<HandedOver>>),
    /// Show the stored Data in batches, then drop the channel. The worker is frozen.
    ShowStored(SyncSender<StoredBatch>),
    /// Go on with a face of another process; `counters` are its published ones. If that fails, report
    /// [`FromWorker::FaceClosed`].
    TakeOver { handed: Box<HandedFace>, counters: Arc<FaceCounters> },
    /// Read a listening UDP socket.
    AddUdpListener(UdpSocket),
    /// Store Data that another process had stored, each with the milliseconds for which it is fresh.
    Store(Vec<(Vec<u8>, u64)>),
}

/// The faces and the listening sockets of a worker.
pub type HandedOver = (Vec<HandedFace>, Vec<HandedListener>);

/// Data, one after the other, and the milliseconds for which each is still fresh.
#[derive(Debug, Default)]
pub struct StoredBatch {
    /// Their bytes.
    pub data: Vec<u8>,
    /// One for each.
    pub fresh_ms: Vec<u64>,
}

/// Number of a look at a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LookId(pub u64);

/// Number of an erasure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErasureId(pub u64);

/// The settings of one worker's Content Store.
#[derive(Clone)]
pub struct CsShare {
    /// What it keeps.
    pub policy: CsPolicy,
    /// Most bytes.
    pub capacity_bytes: u64,
    /// Most packets.
    pub capacity_packets: u64,
    /// Whether Data is stored.
    pub admit: bool,
    /// Whether Interests are answered from it.
    pub serve: bool,
    /// Prefixes whose look-ups and insertions are counted.
    pub counted_prefixes: Arc<[NameBuf]>,
}

/// What control wants of a worker's lane of a face (decision 0019).
#[allow(missing_docs, reason = "the fields are named for what they hold")]
pub enum LaneChange {
    /// Open it at any port of this address, then report [`LaneReport::Opened`]. The owner of the face listens to
    /// LaneHellos from now on.
    Open { local: SocketAddr },
    /// Link it to the neighbour's lanes in place of earlier ones, then report [`LaneReport::Linked`]. It is not used
    /// yet.
    Link(Arc<LanePeer>),
    /// Send by it from now on, or no longer.
    Use(bool),
    /// Send this frame by the socket of the face. For its owner.
    Hello(Vec<u8>),
    /// Send an idle packet to each lane of the neighbour.
    Greet,
    /// Close it.
    Close,
}

/// The lanes of a neighbour.
pub struct LanePeer {
    /// Facts about the face.
    pub info: FaceInfo,
    /// Reliability and congestion marks of the face.
    pub policy: LinkPolicy,
    /// Where its lanes are.
    pub remotes: Vec<SocketAddr>,
    /// To which of them a name belongs.
    pub homes: Arc<Homes>,
}

/// What changes about captures.
#[allow(missing_docs, reason = "the fields are named for what they hold")]
pub enum CaptureChange {
    /// Copy the frames of a face of this worker.
    Face { face: FaceId, tap: CaptureTap },
    /// Copy the frames of this worker's lane of a face, too.
    Lane { face: FaceId, tap: CaptureTap },
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
pub struct CsErasure {
    /// Its number.
    pub id: ErasureId,
    /// Data with this prefix go.
    pub prefix: Arc<NameBuf>,
    /// Most Data to erase.
    pub limit: u64,
}

/// A change to a face; `None` leaves a value as it is.
#[derive(Clone, Copy, Default)]
pub struct FaceChange {
    /// When it ends.
    pub persistency: Option<FacePersistency>,
    /// Most bytes of a frame.
    pub mtu: Option<usize>,
    /// Whether its application may see and choose faces.
    pub local_fields: Option<bool>,
    /// Reliability and congestion marks.
    pub policy: Option<LinkPolicy>,
}

/// What a worker reports of the lanes of a face.
#[allow(missing_docs, reason = "the fields are named for what they hold")]
pub enum LaneReport {
    /// The result of [`LaneChange::Open`]: its port.
    Opened { worker: u8, face: FaceId, result: Result<u16, AddFaceError> },
    /// The result of [`LaneChange::Link`]: the counters of the link to each lane of the neighbour.
    Linked { worker: u8, face: FaceId, result: Result<Vec<Arc<FaceCounters>>, AddFaceError> },
    /// The neighbour says what its lanes are.
    Hello { face: FaceId, hello: LaneHello },
}

/// What a worker reports to control.
#[allow(missing_docs, reason = "the fields are named for what they hold")]
pub enum FromWorker {
    /// The result of [`ToWorker::AddStream`], [`ToWorker::AddMemory`], [`ToWorker::AddUdp`],
    /// [`ToWorker::AddMulticast`] or [`ToWorker::AddEthernet`].
    FaceAdded { worker: u8, face: FaceId, result: Result<(FaceInfo, Arc<FaceCounters>), AddFaceError> },
    /// A datagram has made a face.
    FaceMade { worker: u8, face: FaceId, info: FaceInfo, counters: Arc<FaceCounters> },
    /// A face closed by itself.
    FaceClosed { face: FaceId, reason: CloseReason },
    /// The link of a permanent face carries nothing.
    FaceDown { face: FaceId, reason: CloseReason },
    /// The link of a permanent datagram face carries packets again.
    FaceUp { face: FaceId },
    /// The result of [`ToWorker::EraseCs`].
    CsErased { id: ErasureId, erased: u64 },
    /// There is traffic again. Control had asked for this message.
    Traffic,
    /// The worker has freed much memory.
    MemoryFreed,
    /// The worker could not watch the packet socket of an interface.
    LinkFailed { interface: u32 },
    /// About the lanes of a face.
    Lane(LaneReport),
    /// The answer to [`ToWorker::LookAtName`].
    NameLooked { id: LookId, look: NameLook },
}

/// What a worker has for management. It goes through the [`ManagementQueue`](crate::ManagementQueue).
#[allow(missing_docs, reason = "the fields are named for what they hold")]
pub enum ForManagement {
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
}
