//! What the router must do: management's only way to act.
//!
//! Effects are carried out in order. A reply to a command that changes the FIB
//! stands after the change.

use crate::fib_computation::FibChange;
use namewire_packet::{
    FaceId, NameBuf,
    lp::PitToken,
    nfd::{ControlParameters, FacePersistency, FaceUri},
};

/// Number of a face command, given back when it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send a Data packet from the internal face.
    Reply {
        /// The Data, of at most 8800 octets.
        packet: Vec<u8>,
        /// Token of the Interest that it answers.
        pit_token: Option<PitToken>,
    },
    /// Send an Interest from the internal face; what comes back goes to
    /// [`crate::Management::on_answer`].
    Express {
        /// The Interest; without a nonce it gets one from the engine.
        packet: Vec<u8>,
    },
    /// Make a face, then call [`crate::Management::on_face_command_done`].
    CreateFace(CreateFace),
    /// Change a face, then call [`crate::Management::on_face_command_done`].
    UpdateFace(UpdateFace),
    /// Close a face, then call [`crate::Management::on_face_command_done`].
    DestroyFace {
        /// To be given back.
        ticket: Ticket,
        /// Which.
        face: FaceId,
    },
    /// Change the FIB.
    Fib(Vec<FibChange>),
    /// Look at pending Interests under each prefix again: it has a new next hop.
    NewNextHops(Vec<(NameBuf, FaceId)>),
    /// Erase Data from the Content Stores of all workers, then call
    /// [`crate::Management::on_cs_erased`].
    EraseCs {
        /// To be given back.
        ticket: Ticket,
        /// Data of this name and longer ones.
        prefix: NameBuf,
        /// Most Data, over all workers.
        limit: u64,
    },
    /// From now on these, and no others, are the announcements that Data may carry to routers which
    /// discovered their way here: prefix and announcing Data.
    Announcements(Vec<(NameBuf, std::sync::Arc<[u8]>)>),
    /// Change the Content Store; `None` leaves a setting as it is.
    ConfigureCs {
        /// Limit in packets, over all workers.
        capacity_packets: Option<u64>,
        /// The policy in full, as [`crate::Environment::resolve_cs_policy`] gave it.
        policy: Option<String>,
        /// Whether new Data is admitted.
        admit: Option<bool>,
        /// Whether Interests are answered from it.
        serve: Option<bool>,
    },
}

/// Arguments of [`Effect::CreateFace`], checked as far as possible without sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateFace {
    /// To be given back.
    pub ticket: Ticket,
    /// Far end: canonical, unicast, of a scheme that this forwarder may support.
    pub remote: FaceUri,
    /// Near end; `dev://` for Ethernet, else absent.
    pub local: Option<FaceUri>,
    /// Persistent or permanent.
    pub persistency: FacePersistency,
    /// [`namewire_packet::nfd::face_flags`]; bits outside `mask` are 0.
    pub flags: u64,
    /// Which flags the command sets; others take the transport's default.
    pub mask: u64,
    /// Nanoseconds between congestion marks at the threshold.
    pub base_congestion_marking_interval_ns: Option<u64>,
    /// Send queue length in octets that counts as congestion.
    pub default_congestion_threshold_bytes: Option<u64>,
    /// Largest frame in octets, 64 or more.
    pub mtu: Option<u64>,
}

/// Arguments of [`Effect::UpdateFace`]: what is `None` stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateFace {
    /// To be given back.
    pub ticket: Ticket,
    /// Which.
    pub face: FaceId,
    /// New values of the flags in `mask`.
    pub flags: u64,
    /// Which flags change.
    pub mask: u64,
    /// How long it stays.
    pub persistency: Option<FacePersistency>,
    /// Nanoseconds between congestion marks at the threshold.
    pub base_congestion_marking_interval_ns: Option<u64>,
    /// Send queue length in octets that counts as congestion.
    pub default_congestion_threshold_bytes: Option<u64>,
    /// Largest frame in octets, 64 or more.
    pub mtu: Option<u64>,
}

/// Why a face command failed; becomes the answer as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaceCommandError {
    /// Status code, for example 406 or 504.
    pub code: u64,
    /// In words.
    pub text: String,
    /// Properties of the face in the way (409), if any.
    pub body: Option<Box<ControlParameters>>,
}
