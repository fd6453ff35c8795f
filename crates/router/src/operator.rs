//! The process that runs a router, as a user of its management: commands without a
//! socket, and a look at what commands have made.
//!
//! A command is the Interest that an application would send, handed to management as if
//! it came from the router's own face ([`FaceId::INTERNAL`], from which no packet of the
//! network comes); its answer is caught before it is sent. So one mechanism carries out what
//! files and people ask for, also where nobody listens for applications.
//!
//! Limits: a command that has no answer after [`ANSWER_TIMEOUT`] has failed; an
//! [`Inventory`] holds at most [`INVENTORY_ROUTES_MAX`] routes.

use crate::{configuration::Settings, messages::ToControl};
use namewire_management::{FaceProperties, Management};
use namewire_packet::{
    Data, FaceId, Interest, InterestBuilder, NameBuf, SignedInterestFields,
    nfd::{ControlParameters, ControlResponse, FacePersistency, StrategyChoice, origin},
};
use namewire_tables::{AdmissionName, EvictionName, cs_policy::catalogue::PolicyOptions};
use std::{
    collections::{HashMap, HashSet},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::sync::{mpsc, oneshot, watch};

/// Longer than a connection may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// Most routes of an [`Inventory`].
pub const INVENTORY_ROUTES_MAX: usize = 100_000;

/// Origins of routes that a daemon registers again by itself.
const ORIGINS_OF_DAEMONS: [u64; 4] = [origin::AUTOREG, origin::AUTOCONF, origin::NLSR, origin::PREFIX_ANNOUNCEMENT];

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The router has stopped.
    #[error("the router has stopped")]
    Stopped,
    /// No answer in time.
    #[error("no answer")]
    NoAnswer,
    /// Management refused.
    #[error("{} ({})", .0.text, .0.code)]
    Refused(Box<ControlResponse>),
}

/// Content Store settings that a running router is to take; the others stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsChange {
    /// Limit in octets, over all workers.
    pub capacity_bytes: Option<u64>,
    /// Limit in packets, over all workers.
    pub capacity_packets: Option<u64>,
    /// Which Data goes first.
    pub eviction: Option<EvictionName>,
    /// Which Data comes in.
    pub admission: Option<AdmissionName>,
    /// Options of both.
    pub options: Option<PolicyOptions>,
    /// Whether new Data is admitted.
    pub admit: Option<bool>,
    /// Whether Interests are answered from it.
    pub serve: Option<bool>,
    /// Prefixes whose look-ups and insertions are counted.
    pub counted_prefixes: Option<Vec<NameBuf>>,
}

impl CsChange {
    /// What is not the same in two configurations.
    pub fn between(former: &Settings, latter: &Settings) -> Self {
        fn change<T: PartialEq>(former: T, latter: T) -> Option<T> {
            (former != latter).then_some(latter)
        }
        let [(former_bytes, former_packets), (bytes, packets)] = [former.cs_capacity(), latter.cs_capacity()];
        let [former_policy, policy] = [former.cs.policy(), latter.cs.policy()];
        Self {
            capacity_bytes: change(former_bytes, bytes),
            capacity_packets: change(former_packets, packets),
            eviction: change(former_policy.eviction, policy.eviction),
            admission: change(former_policy.admission, policy.admission),
            options: change(former_policy.options, policy.options),
            admit: change(former.cs.admit, latter.cs.admit),
            serve: change(former.cs.serve, latter.cs.serve),
            counted_prefixes: change(former.cs_counted_prefixes(), latter.cs_counted_prefixes()),
        }
    }
}

/// A route by the number of its face.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InventoryRoute {
    /// Names it is for.
    pub prefix: NameBuf,
    /// Next hop.
    pub face: FaceId,
    /// Who registered it.
    pub origin: u64,
    /// Lower is better.
    pub cost: u64,
    /// [`namewire_packet::nfd::route_flags`].
    pub flags: u64,
}

/// What management commands can make again: faces to other hosts; routes to them that do
/// not expire and that no daemon looks after; all strategy choices.
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
    /// How often management had changed something by then.
    pub revision: u64,
}

impl Inventory {
    /// `faces`: all that there are.
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

/// What an operator asks of the control thread.
pub(crate) enum Request {
    /// Carry out a command; the answer's Data has the name of the Interest.
    Command { name: NameBuf, packet: Vec<u8>, reply: oneshot::Sender<ControlResponse> },
    /// Say what there is.
    Inventory(oneshot::Sender<Inventory>),
    /// Change the Content Store.
    ConfigureCs(CsChange),
    /// Let answers to commands wait for the state file from now on, or no longer.
    HoldAnswers(bool),
    /// Take note of an attempt to write the state file.
    StateWritten(StateWritten),
}

/// What became of an attempt to write the state file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateWritten {
    /// Of the [`Inventory`] that was to be written.
    pub revision: u64,
    /// Why it is not on disk.
    pub failure: Option<String>,
}

/// A way to the management of a running router.
#[derive(Clone)]
pub struct Operator {
    pub(crate) events: mpsc::UnboundedSender<ToControl>,
    pub(crate) revision: watch::Receiver<u64>,
    pub(crate) faces_lost: watch::Receiver<u64>,
}

impl Operator {
    /// Carries out one command, for example `("rib", "register", …)`; the answer's body.
    ///
    /// # Errors
    /// If it is refused, or there is no answer.
    pub async fn command(
        &self,
        module: &str,
        verb: &str,
        parameters: &ControlParameters,
    ) -> Result<ControlParameters, OperatorError> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let mut name = NameBuf::new();
        for part in ["localhost", "nfd", module, verb] {
            name.push_generic(part.as_bytes());
        }
        name.push_generic(&parameters.to_wire());
        // No two commands of this process have the same name.
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let fields = SignedInterestFields {
            nonce: number.to_be_bytes().to_vec(),
            time_ms: Some(crate::environment::unix_ms()),
            ..SignedInterestFields::default()
        };
        let packet = InterestBuilder::new(name).sign_digest(&fields);
        let name = Interest::parse(&packet).map_or_else(|_| NameBuf::new(), |interest| interest.name().to_buf());
        let (reply, answer) = oneshot::channel();
        self.ask(Request::Command { name, packet, reply })?;
        let response = match tokio::time::timeout(ANSWER_TIMEOUT, answer).await {
            Ok(Ok(response)) => response,
            Ok(Err(_)) => return Err(OperatorError::Stopped),
            Err(_) => return Err(OperatorError::NoAnswer),
        };
        if response.code == 200 {
            return Ok(response.body.unwrap_or_default());
        }
        Err(OperatorError::Refused(Box::new(response)))
    }

    /// What commands have made, as of now.
    ///
    /// # Errors
    /// If the router has stopped.
    pub async fn inventory(&self) -> Result<Inventory, OperatorError> {
        let (reply, answer) = oneshot::channel();
        self.ask(Request::Inventory(reply))?;
        answer.await.map_err(|_| OperatorError::Stopped)
    }

    /// Changes the Content Store.
    ///
    /// # Errors
    /// If the router has stopped.
    pub fn configure_cs(&self, change: CsChange) -> Result<(), OperatorError> {
        self.ask(Request::ConfigureCs(change))
    }

    /// Lets answers to commands wait until [`Operator::state_written`] tells that what they changed
    /// is on disk, or no longer. Commands of this process never wait.
    ///
    /// # Errors
    /// If the router has stopped.
    pub fn hold_answers(&self, is_on: bool) -> Result<(), OperatorError> {
        self.ask(Request::HoldAnswers(is_on))
    }

    /// Tells what became of an attempt to write the state file, to count it and to release answers.
    ///
    /// # Errors
    /// If the router has stopped.
    pub fn state_written(&self, written: StateWritten) -> Result<(), OperatorError> {
        self.ask(Request::StateWritten(written))
    }

    /// Waits until management has changed something since the last call.
    ///
    /// # Errors
    /// If the router has stopped.
    pub async fn changed(&mut self) -> Result<(), OperatorError> {
        self.revision.changed().await.map_err(|_| OperatorError::Stopped)
    }

    /// Waits until a face that was made by command has closed by itself since the last call.
    ///
    /// # Errors
    /// If the router has stopped.
    pub async fn face_lost(&mut self) -> Result<(), OperatorError> {
        self.faces_lost.changed().await.map_err(|_| OperatorError::Stopped)
    }

    fn ask(&self, request: Request) -> Result<(), OperatorError> {
        self.events.send(ToControl::Operate(request)).map_err(|_| OperatorError::Stopped)
    }
}

/// The control thread's side: who waits for which answer.
pub(crate) struct OperatorDesk {
    waiting: HashMap<NameBuf, oneshot::Sender<ControlResponse>>,
    revision: watch::Sender<u64>,
    faces_lost: watch::Sender<u64>,
}

impl OperatorDesk {
    pub(crate) fn new(revision: watch::Sender<u64>, faces_lost: watch::Sender<u64>) -> Self {
        OperatorDesk { waiting: HashMap::new(), revision, faces_lost }
    }

    /// Takes note that the answer of this name is wanted.
    pub(crate) fn expect(&mut self, name: NameBuf, reply: oneshot::Sender<ControlResponse>) {
        self.waiting.retain(|_, reply| !reply.is_closed()); // given up
        self.waiting.insert(name, reply);
    }

    /// True if the packet was an answer that somebody here waits for.
    pub(crate) fn take(&mut self, packet: &[u8]) -> bool {
        if self.waiting.is_empty() {
            return false;
        }
        let Ok(data) = Data::parse(packet) else { return false };
        let Some(reply) = self.waiting.remove(&data.name().to_buf()) else { return false };
        if let Ok(response) = ControlResponse::decode(data.content()) {
            let _ = reply.send(response); // nobody waits any longer
        }
        true
    }

    /// Says how often management has changed something, and how many faces made by command have
    /// closed by themselves.
    pub(crate) fn publish(&self, revision: u64, faces_lost: u64) {
        self.revision.send_if_modified(|last| std::mem::replace(last, revision) != revision);
        self.faces_lost.send_if_modified(|last| std::mem::replace(last, faces_lost) != faces_lost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_file_is_what_it_says_anew() {
        let settings = |text: &str| -> Settings { toml::from_str(text).expect("a configuration") };
        let former = settings("[cs]\npolicy = \"fifo\"\npackets = 9\ncount = [\"/a\"]");
        assert_eq!(CsChange::between(&former, &former), CsChange::default());
        let latter = settings("[cs]\npolicy = \"fifo\"\npackets = 9\nadmit = false\ncount = [\"/b\"]");
        let change =
            CsChange { admit: Some(false), counted_prefixes: Some(vec!["/b".parse().unwrap()]), ..CsChange::default() };
        assert_eq!(CsChange::between(&former, &latter), change);
        let latter = settings("[cs]\nadmission = \"filter\"\nfilter_threshold = 3\npackets = 9\ncount = [\"/a\"]");
        let change = CsChange::between(&former, &latter);
        assert_eq!((change.eviction, change.admission), (Some(EvictionName::default()), Some(AdmissionName::Filter)));
        assert_eq!(change.options.and_then(|options| options.filter.threshold), Some(3));
        assert_eq!((change.capacity_packets, change.counted_prefixes), (None, None));
    }
}
