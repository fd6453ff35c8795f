//! Effects: what the router must do. They are management's only way to act.
//!
//! The router carries effects out in order. The reply to a command that changes the FIB follows the change.

use crate::{authorization::PassedCommand, fib_computation::FibChange};
use namewire_packet::{
    FaceId, NameBuf,
    lp::PitToken,
    nfd::{ControlParameters, FacePersistency, FaceUri},
};

/// The number of a face command. The router returns it when the command is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send a Data packet from the internal face.
    Reply {
        /// The Data, of at most 8800 bytes.
        packet: Vec<u8>,
        /// Token of the Interest that it answers.
        pit_token: Option<PitToken>,
    },
    /// Send an Interest from the internal face. The answer goes to [`crate::Management::on_answer`].
    Express {
        /// The Interest. The engine adds a nonce if it has none.
        packet: Vec<u8>,
        /// The face to send it to, past Content Store and FIB; `None`: as any Interest.
        to: Option<FaceId>,
    },
    /// Make a face, then call [`crate::Management::on_face_command_done`].
    CreateFace(CreateFace),
    /// Change a face, then call [`crate::Management::on_face_command_done`].
    UpdateFace(UpdateFace),
    /// Close a face, then call [`crate::Management::on_face_command_done`].
    DestroyFace {
        /// The ticket to return.
        ticket: Ticket,
        /// The face to close.
        face: FaceId,
    },
    /// Change the FIB.
    Fib(Vec<FibChange>),
    /// Look at pending Interests under each prefix again, because it has a new next hop.
    NewNextHops(Vec<(NameBuf, FaceId)>),
    /// Erase Data from the Content Stores of all workers, then call
    /// [`crate::Management::on_cs_erased`].
    EraseCs {
        /// The ticket to return.
        ticket: Ticket,
        /// Erase Data of this name and of longer names.
        prefix: NameBuf,
        /// Most Data to erase, over all workers.
        limit: u64,
    },
    /// Ask all workers what they have pending and stored for a name, then call
    /// [`crate::Management::on_name_looked`].
    LookAtName {
        /// The ticket to return.
        ticket: Ticket,
        /// The name.
        name: NameBuf,
    },
    /// From now on exactly these announcements may be carried by Data to routers that discovered their way here. Each
    /// is a prefix and its announcing Data.
    Announcements(Vec<(NameBuf, std::sync::Arc<[u8]>)>),
    /// Keep this command for the next start, before anything that follows ([`crate::Management::keep_commands`]).
    KeepCommand(PassedCommand),
    /// Change the Content Store; `None` leaves a setting as it is.
    ConfigureCs {
        /// Limit in packets, over all workers.
        capacity_packets: Option<u64>,
        /// Limit in bytes, over all workers.
        capacity_bytes: Option<u64>,
        /// The full policy, from [`crate::Environment::resolve_cs_policy`].
        policy: Option<String>,
        /// Whether new Data is admitted.
        admit: Option<bool>,
        /// Whether Interests are answered from the store.
        serve: Option<bool>,
    },
}

/// Arguments of [`Effect::CreateFace`], checked as far as possible without sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateFace {
    /// The ticket to return.
    pub ticket: Ticket,
    /// Remote end: canonical, unicast, of a scheme that this forwarder may support.
    pub remote: FaceUri,
    /// Local end: `dev://` for Ethernet, otherwise absent.
    pub local: Option<FaceUri>,
    /// Persistent or permanent.
    pub persistency: FacePersistency,
    /// [`namewire_packet::nfd::face_flags`]; bits outside `mask` are 0.
    pub flags: u64,
    /// Which flags the command sets; others take the transport's default.
    pub mask: u64,
    /// Nanoseconds between congestion marks at the threshold.
    pub base_congestion_marking_interval_ns: Option<u64>,
    /// Send queue length in bytes that counts as congestion.
    pub default_congestion_threshold_bytes: Option<u64>,
    /// Largest frame in bytes, 64 or more.
    pub mtu: Option<u64>,
}

/// Arguments of [`Effect::UpdateFace`]. `None` leaves a property as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateFace {
    /// The ticket to return.
    pub ticket: Ticket,
    /// The face to change.
    pub face: FaceId,
    /// New values of the flags in `mask`.
    pub flags: u64,
    /// Which flags change.
    pub mask: u64,
    /// How long it stays.
    pub persistency: Option<FacePersistency>,
    /// Nanoseconds between congestion marks at the threshold.
    pub base_congestion_marking_interval_ns: Option<u64>,
    /// Send queue length in bytes that counts as congestion.
    pub default_congestion_threshold_bytes: Option<u64>,
    /// Largest frame in bytes, 64 or more.
    pub mtu: Option<u64>,
}

/// Why a face command failed. It becomes the answer without changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaceCommandError {
    /// Status code, for example 406 or 504.
    pub code: u64,
    /// The reason in words.
    pub text: String,
    /// Properties of the face in the way (409), if any.
    pub body: Option<Box<ControlParameters>>,
}
