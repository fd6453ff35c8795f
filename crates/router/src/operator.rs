//! Operator: lets the process that runs a router give it commands without a socket, and see the results of commands.
//!
//! A command is the Interest that an application would send. Management receives it as if it came from the router's own
//! face ([`FaceId::INTERNAL`]; no packet of the network has this face). The operator takes the answer before it is
//! sent. So one mechanism carries out the commands of files and of people, even in a router that no application can
//! connect to.
//!
//! Limits: a command fails if it has no answer after [`ANSWER_TIMEOUT`]. An [`Inventory`] holds at most
//! [`INVENTORY_ROUTES_MAX`] routes.

pub use crate::{
    cs_settings::CsChange,
    process_desk::Task,
    requests::{DoubtfulFace, HandedOver, INVENTORY_ROUTES_MAX, Inventory, InventoryRoute, StateWritten},
};

pub use namewire_management::{ProcessTask, UpgradeTask};

use crate::{
    messages::ToControl,
    requests::{HandOver, Request},
};
use namewire_configuration::{in_force::InForce, state_file::commands_beside};
use namewire_handover::Line;
use namewire_packet::{
    Data, Interest, InterestBuilder, MAX_PACKET_BYTES, NameBuf, SignedInterestFields,
    nfd::{ControlParameters, ControlResponse, FaceUri},
};
use namewire_worker::unix_ms;
use std::{
    collections::HashMap,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::sync::{mpsc, oneshot, watch};

/// Longer than a connection may take to be made.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

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

/// Access to the management of a running router.
#[derive(Clone)]
pub struct Operator {
    events: mpsc::UnboundedSender<ToControl>,
    revision: watch::Receiver<u64>,
    faces_lost: watch::Receiver<u64>,
    udp_mtu: u64,
}

impl Operator {
    /// The MTU of a face to `remote` if the command that makes it gives none.
    pub fn default_mtu(&self, remote: &FaceUri) -> u64 {
        let is_udp = matches!(remote.scheme(), "udp" | "udp4" | "udp6");
        let is_group = remote.literal_ip().is_some_and(|ip| ip.is_multicast());
        if is_udp && !is_group { self.udp_mtu } else { MAX_PACKET_BYTES as u64 }
    }

    /// Carries out one command, for example `("rib", "register", …)`, and returns the answer's body.
    ///
    /// # Errors
    /// If the command is refused, or no answer comes.
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
        // The number makes names of this process's commands unique.
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let fields = SignedInterestFields {
            nonce: number.to_be_bytes().to_vec(),
            time_ms: Some(unix_ms()),
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

    /// What commands have made so far.
    ///
    /// # Errors
    /// If the router has stopped.
    pub async fn inventory(&self) -> Result<Inventory, OperatorError> {
        let (reply, answer) = oneshot::channel();
        self.ask(Request::Inventory(reply))?;
        answer.await.map_err(|_| OperatorError::Stopped)
    }

    /// The faces that are down, and the UDP and Ethernet faces that have heard nothing for a minute.
    ///
    /// # Errors
    /// If the router has stopped.
    pub async fn doubtful_faces(&self) -> Result<Vec<DoubtfulFace>, OperatorError> {
        let (reply, answer) = oneshot::channel();
        self.ask(Request::DoubtfulFaces(reply))?;
        answer.await.map_err(|_| OperatorError::Stopped)
    }

    /// Changes the Content Store.
    ///
    /// # Errors
    /// If the router has stopped.
    pub fn configure_cs(&self, change: CsChange) -> Result<(), OperatorError> {
        self.ask(Request::ConfigureCs(change))
    }

    /// Reports that the configuration was read again. It changes nothing but what the router says of its settings.
    ///
    /// # Errors
    /// If the router has stopped.
    pub fn reloaded(&self, read: InForce) -> Result<(), OperatorError> {
        self.ask(Request::Reloaded(Box::new(read)))
    }

    /// Turns on or off that answers to commands wait until [`Operator::state_written`] says that their changes are on
    /// disk. Commands of this process never wait.
    ///
    /// # Errors
    /// If the router has stopped.
    pub fn hold_answers(&self, is_on: bool) -> Result<(), OperatorError> {
        self.ask(Request::HoldAnswers(is_on))
    }

    /// From now on, keeps the commands that keys sign beside this state file, so that none passes again after a
    /// restart. The router starts with the state file of its settings.
    ///
    /// # Errors
    /// If the router has stopped.
    pub fn keep_commands(&self, state_file: Option<&Path>) -> Result<(), OperatorError> {
        self.ask(Request::KeepCommands(state_file.map(commands_beside)))
    }

    /// Reports that all that the state file and the configuration declare is made. A router whose settings name a state
    /// file answers requests for lists from now on; before, they wait.
    ///
    /// # Errors
    /// If the router has stopped.
    pub fn set_up_done(&self) -> Result<(), OperatorError> {
        self.ask(Request::SetUpDone)
    }

    /// Reports an attempt to write the state file. The router counts it and releases answers.
    ///
    /// # Errors
    /// If the router has stopped.
    pub fn state_written(&self, written: StateWritten) -> Result<(), OperatorError> {
        self.ask(Request::StateWritten(written))
    }

    /// Says that this process has freed much memory, for example after it read a long file. The router gives it back to
    /// the system a little later.
    ///
    /// # Errors
    /// If the router has stopped.
    pub fn memory_freed(&self) -> Result<(), OperatorError> {
        self.ask(Request::GiveMemoryBack)
    }

    /// The tasks that commands have for this process, from now on. Without this call they are refused.
    ///
    /// # Errors
    /// If the router has stopped.
    pub async fn tasks(&self) -> Result<mpsc::Receiver<Task>, OperatorError> {
        let (reply, answer) = oneshot::channel();
        self.ask(Request::OpenTasks(reply))?;
        answer.await.map_err(|_| OperatorError::Stopped)
    }

    /// Says what became of a task, as JSON, for clients that ask.
    ///
    /// # Errors
    /// If the router has stopped.
    pub fn note_outcome(&self, number: u64, report: String) -> Result<(), OperatorError> {
        self.ask(Request::NoteOutcome { number, report })
    }

    /// What this router has that cannot be handed over to another program, in words.
    ///
    /// # Errors
    /// If the router has stopped.
    pub async fn hindrances(&self) -> Result<Vec<String>, OperatorError> {
        let (reply, answer) = oneshot::channel();
        self.ask(Request::Hindrances(reply))?;
        answer.await.map_err(|_| OperatorError::Stopped)
    }

    /// Hands over to the new program at the other end of the line, which has said that it is ready. If it does not take
    /// everything, `end_program` is called, and the router goes on. Otherwise it has stopped:
    /// [`RouterHandle::leave`](crate::RouterHandle::leave) comes next.
    ///
    /// # Errors
    /// If the router has stopped; the inner one says why the new program did not take over.
    pub async fn hand_over(
        &self,
        line: Line,
        end_program: impl FnOnce() + Send + 'static,
    ) -> Result<Result<HandedOver, String>, OperatorError> {
        let (reply, answer) = oneshot::channel();
        let request = HandOver { line, end_program: Box::new(end_program), reply };
        self.ask(Request::HandOver(Box::new(request)))?;
        answer.await.map_err(|_| OperatorError::Stopped)
    }

    /// Waits until management has changed something since the last call.
    ///
    /// # Errors
    /// If the router has stopped.
    pub async fn changed(&mut self) -> Result<(), OperatorError> {
        self.revision.changed().await.map_err(|_| OperatorError::Stopped)
    }

    /// Waits until a face made by command has closed by itself, or has gone down, since the last call.
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

/// Control's side: the requesters that wait, by the name of the answer.
pub(crate) struct OperatorDesk {
    waiting: HashMap<NameBuf, oneshot::Sender<ControlResponse>>,
    revision: watch::Sender<u64>,
    faces_lost: watch::Sender<u64>,
}

impl OperatorDesk {
    /// Control's side and the other. New UDP faces have the MTU `udp_mtu`.
    pub(crate) fn open(events: mpsc::UnboundedSender<ToControl>, udp_mtu: u64) -> (Self, Operator) {
        let (revision, revision_seen) = watch::channel(0);
        let (faces_lost, faces_lost_seen) = watch::channel(0);
        let operator = Operator { events, revision: revision_seen, faces_lost: faces_lost_seen, udp_mtu };
        (OperatorDesk { waiting: HashMap::new(), revision, faces_lost }, operator)
    }

    /// Records that the answer of this name is wanted.
    pub(crate) fn expect(&mut self, name: NameBuf, reply: oneshot::Sender<ControlResponse>) {
        self.waiting.retain(|_, reply| !reply.is_closed()); // their requesters have given up
        self.waiting.insert(name, reply);
    }

    /// True if the packet was an answer that a requester here waits for.
    pub(crate) fn take(&mut self, packet: &[u8]) -> bool {
        if self.waiting.is_empty() {
            return false;
        }
        let Ok(data) = Data::parse(packet) else { return false };
        let Some(reply) = self.waiting.remove(&data.name().to_buf()) else { return false };
        if let Ok(response) = ControlResponse::decode(data.content()) {
            let _ = reply.send(response); // the requester may have stopped waiting
        }
        true
    }

    /// Publishes how often management has changed something, and how often a face made by command has closed by itself
    /// or has gone down.
    pub(crate) fn publish(&self, revision: u64, faces_lost: u64) {
        self.revision.send_if_modified(|last| std::mem::replace(last, revision) != revision);
        self.faces_lost.send_if_modified(|last| std::mem::replace(last, faces_lost) != faces_lost);
    }
}
