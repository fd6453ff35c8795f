//! The requests of the process that runs a router to its control thread, and the answers.

use crate::{cs_settings::CsChange, process_desk::Task};
use namewire_configuration::in_force::InForce;
use namewire_faces::capture::CaptureReader;
use namewire_handover::Line;
use namewire_management::{CaptureRefusal, FaceProperties, Management};
use namewire_node_model::explanation::Explanation;
use namewire_observe::{snapshot::Snapshot, source::SettingsInForce};
use namewire_packet::{
    FaceId, NameBuf,
    nfd::{ControlResponse, FacePersistency, StrategyChoice, origin},
};
use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    time::Duration,
};
use tokio::sync::{mpsc::Receiver, oneshot};

/// A copy, and when it was made.
pub(crate) struct Taken {
    pub(crate) snapshot: Snapshot,
    pub(crate) at_ns: u64,
}

/// Most routes of an [`Inventory`].
pub const INVENTORY_ROUTES_MAX: usize = 100_000;

/// Origins of routes that a daemon registers again by itself.
const ORIGINS_OF_DAEMONS: [u64; 4] = [origin::AUTOREG, origin::AUTOCONF, origin::NLSR, origin::PREFIX_ANNOUNCEMENT];

/// A route by the number of its face.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InventoryRoute {
    /// The names that it is for.
    pub prefix: NameBuf,
    /// Next hop.
    pub face: FaceId,
    /// The component that registered it.
    pub origin: u64,
    /// Lower is better.
    pub cost: u64,
    /// [`namewire_packet::nfd::route_flags`].
    pub flags: u64,
}

/// What management commands can make again: faces to other hosts; routes to them that do not expire and that no daemon
/// looks after; all strategy choices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inventory {
    /// Permanent faces, and those that a route leads to.
    pub faces: Vec<FaceProperties>,
    /// In canonical order of their prefixes.
    pub routes: Vec<InventoryRoute>,
    /// Routes beyond [`INVENTORY_ROUTES_MAX`].
    pub routes_left_out: u64,
    /// With whole names.
    pub strategies: Vec<StrategyChoice>,
    /// How often management had changed something when this was taken.
    pub revision: u64,
}

impl Inventory {
    /// The inventory, from all faces that there are.
    pub(crate) fn of(management: &Management, faces: impl Iterator<Item = FaceId>) -> Self {
        let is_made_by_command = |face: &&FaceProperties| {
            face.persistency != FacePersistency::OnDemand && face.remote.is_canonical() && !face.remote.is_multicast()
        };
        let faces: HashMap<FaceId, &FaceProperties> =
            faces.filter_map(|face| management.face(face)).filter(is_made_by_command).map(|p| (p.face, p)).collect();
        let mut inventory = Inventory::default();
        let mut used = HashSet::new();
        for entry in management.rib().dataset(0) {
            for route in entry.routes {
                let lasts = route.expiration_period_ms.is_none() && !ORIGINS_OF_DAEMONS.contains(&route.origin);
                if !lasts || !faces.contains_key(&route.face_id) {
                    continue;
                }
                if inventory.routes.len() >= INVENTORY_ROUTES_MAX {
                    inventory.routes_left_out += 1;
                    continue;
                }
                used.insert(route.face_id);
                inventory.routes.push(InventoryRoute {
                    prefix: entry.name.clone(),
                    face: route.face_id,
                    origin: route.origin,
                    cost: route.cost,
                    flags: route.flags,
                });
            }
        }
        let is_kept =
            |face: &&&FaceProperties| face.persistency == FacePersistency::Permanent || used.contains(&face.face);
        inventory.faces = faces.values().filter(is_kept).map(|face| (*face).clone()).collect();
        inventory.faces.sort_by_key(|face| face.face);
        inventory.strategies = management.strategies().dataset().collect();
        inventory.revision = management.revision();
        inventory
    }
}

/// A face whose peer may be elsewhere by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoubtfulFace {
    /// Its number.
    pub face: FaceId,
    /// It is down; otherwise it has only heard nothing for a minute.
    pub is_down: bool,
}

/// A request of an operator to the control thread.
pub(crate) enum Request {
    /// Carry out a command. The answer's Data has the name of the Interest.
    Command { name: NameBuf, packet: Vec<u8>, reply: oneshot::Sender<ControlResponse> },
    /// Return the inventory.
    Inventory(oneshot::Sender<Inventory>),
    /// Return the faces that are down or silent.
    DoubtfulFaces(oneshot::Sender<Vec<DoubtfulFace>>),
    /// Return what would happen to an Interest for this name.
    Explain { name: NameBuf, reply: oneshot::Sender<Explanation> },
    /// Begin to note decisions about packets under this name, of one name in `one_in`. The requester chose the number.
    BeginTrace {
        number: u64,
        prefix: NameBuf,
        one_in: u64,
        reply: oneshot::Sender<Result<CaptureReader, CaptureRefusal>>,
    },
    /// End the trace of this number, if there is one.
    EndTrace { number: u64 },
    /// Return a copy of all that the node shows.
    Snapshot(oneshot::Sender<Taken>),
    /// Return the settings in force, as the observer shows them.
    Settings(oneshot::Sender<SettingsInForce>),
    /// Note the settings that were read again.
    Reloaded(Box<InForce>),
    /// Change the Content Store.
    ConfigureCs(CsChange),
    /// From now on, let answers to commands wait for the state file, or no longer.
    HoldAnswers(bool),
    /// From now on, keep the commands that keys sign in this file, or in none.
    KeepCommands(Option<PathBuf>),
    /// All that the state file and the configuration declare is made.
    SetUpDone,
    /// Record an attempt to write the state file.
    StateWritten(StateWritten),
    /// Give freed memory back to the system.
    GiveMemoryBack,
    /// From now on, pass tasks of the process on.
    OpenTasks(oneshot::Sender<Receiver<Task>>),
    /// What became of a task.
    NoteOutcome { number: u64, report: String },
    /// Return what cannot be handed over, in words.
    Hindrances(oneshot::Sender<Vec<String>>),
    /// Hand over to a new program.
    HandOver(Box<HandOver>),
}

/// A hand-over that begins.
pub(crate) struct HandOver {
    pub(crate) line: Line,
    /// Ends the new program, and waits until it has ended.
    pub(crate) end_program: Box<dyn FnOnce() + Send>,
    pub(crate) reply: oneshot::Sender<Result<HandedOver, String>>,
}

/// What was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandedOver {
    /// Faces that the new program has.
    pub faces: u64,
    /// Routes that it has.
    pub routes: u64,
    /// How long this program had used no socket.
    pub frozen: Duration,
}

/// The result of an attempt to write the state file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateWritten {
    /// Revision of the [`Inventory`] to be written.
    pub revision: u64,
    /// Why it is not on disk; `None` if it is.
    pub failure: Option<String>,
}
