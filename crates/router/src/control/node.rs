//! The node without its management: one part for each task of control.

use super::{
    captures::Captures,
    faces::Faces,
    fib_writer::FibWriter,
    held_answers::HeldAnswers,
    held_requests::HeldRequests,
    link_state::LinkStates,
    links::{Followed, LinkFaces},
    recent::{HealthChange, Recent, Totals},
    tags::TagControl,
};
use crate::{
    content_stores::ContentStores, listeners::AcceptCounters, messages::ToControl, name_looks::Asker,
    probe_desk::Probes, process_desk::ProcessDesk,
};
use namewire_configuration::{command_journal::CommandJournal, in_force::InForce, settings::DpdkSection};
use namewire_designs::fib::catalogue::FibDesign;
use namewire_handover::messages::Listener;
use namewire_logging::Log;
use namewire_management::Times;
use namewire_packet::{
    FaceId, NameBuf,
    nfd::{FaceCounters, FaceUri},
};
use namewire_websocket::WebSockets;
use namewire_worker::answer_times::{AnswerTimes, answered};
use namewire_worker::{LaneFaces, LaneReport, ManagementQueue, NameLooks, Shared, WorkerSender, unix_ms};
use std::{io, net::SocketAddr, os::fd::OwnedFd, sync::Arc};
use tokio::sync::mpsc::UnboundedSender;

/// See the module documentation.
pub(crate) struct Node {
    pub(crate) shared: Arc<Shared>,
    /// The workers, then the I/O threads.
    pub(crate) workers: Arc<[WorkerSender]>,
    /// The channel by which workers, listeners and connections under way report.
    pub(crate) events: UnboundedSender<ToControl>,
    /// What workers have for management.
    pub(crate) interests: Arc<ManagementQueue>,
    pub(crate) faces: Faces,
    /// The links that are up and down.
    pub(crate) link_states: LinkStates,
    /// Faces that follow the network interfaces.
    pub(crate) links: LinkFaces,
    /// Faces that all workers serve.
    pub(crate) lanes: LaneFaces,
    pub(crate) listening: Listening,
    pub(crate) websockets: WebSockets,
    pub(crate) cs: ContentStores,
    pub(crate) name_looks: NameLooks<Asker>,
    pub(crate) probes: Probes,
    pub(crate) fib_design: FibDesign,
    pub(crate) pit_capacity_entries: u64,
    pub(crate) fib_writer: FibWriter,
    pub(crate) held_answers: HeldAnswers,
    pub(crate) held_requests: HeldRequests,
    /// Where commands of keys are kept for the next start, if they are.
    pub(crate) journal: Option<CommandJournal>,
    /// `None` while TagNet is off.
    pub(crate) tags: Option<TagControl>,
    pub(crate) captures: Captures,
    pub(crate) recent: Recent,
    /// The log of this process, if it has one.
    pub(crate) log: Option<&'static Log>,
    pub(crate) counts: NodeCounts,
    pub(crate) in_force: InForce,
    pub(crate) process: ProcessDesk,
}

/// Where the node listens, and whether it may make connections of the same kind.
pub(crate) struct Listening {
    pub(crate) udp: Vec<SocketAddr>,
    /// Unix, TCP and UDP listeners.
    pub(crate) channels: Vec<FaceUri>,
    /// Other descriptors of all stream listeners, for a program that takes over.
    pub(crate) sockets: Vec<(Listener, OwnedFd)>,
    /// Management may make TCP faces.
    pub(crate) outgoing_tcp: bool,
    /// Management may make UDP faces.
    pub(crate) outgoing_udp: bool,
}

/// Control's own counts.
#[derive(Default)]
pub(crate) struct NodeCounts {
    pub(crate) start_unix_ms: u64,
    /// Times that a listener could not accept.
    pub(crate) accept_failures: u64,
    pub(crate) accepts: Arc<AcceptCounters>,
    /// Times that a trust anchor's file or directory could not be read.
    pub(crate) unreadable_anchors: u64,
    /// Packets through the internal face: out to management, in from it.
    pub(crate) internal: FaceCounters,
}

impl Node {
    /// Asks the workers for what is pending and stored for a name.
    pub(crate) fn look_at_name(&mut self, name: NameBuf, asker: Asker) {
        // I/O threads have no names.
        let forwarders = &self.workers[..self.shared.dispatcher.workers()];
        self.name_looks.start(forwarders, name, asker);
    }

    pub(crate) fn times(&self) -> Times {
        Times { mono_ns: self.shared.now_ns(), unix_ms: unix_ms() }
    }

    /// Opens the links that the configuration wants. Returns, in words, those that could not be opened, and how frames
    /// of the others get to the router where the configuration leaves a choice.
    pub(crate) fn start_links(&mut self, dpdk: &DpdkSection) -> (Vec<String>, Vec<String>) {
        let mut problems = self.links.open_devices(dpdk);
        match self.links.subscribe().and_then(|()| self.links.list_interfaces()) {
            Ok(interfaces) => {
                self.link_states.follow(&self.faces, &interfaces);
                problems.extend(self.links.follow(&mut self.faces, &interfaces).problems);
            }
            Err(error) => problems.push(self.links.unlisted(&error)),
        }
        (problems, self.links.choices())
    }

    /// The interfaces have changed: closes and opens faces, and tells workers about links that are down or up.
    pub(crate) fn interfaces_changed(&mut self) -> Followed {
        match self.links.list_interfaces() {
            Ok(interfaces) => {
                self.link_states.follow(&self.faces, &interfaces);
                self.links.follow(&mut self.faces, &interfaces)
            }
            Err(error) => {
                self.links.unlisted(&error);
                Followed::default()
            }
        }
    }

    /// Notes what all faces have counted, unless that was noted just now. Returns the faces whose health has changed.
    pub(crate) fn sample_faces(&mut self) -> Vec<HealthChange> {
        let now_ns = self.shared.now_ns();
        if !self.recent.is_due(now_ns) {
            return Vec::new();
        }
        let times = AnswerTimes::of(&self.shared);
        let totals = |face| {
            let (counters, time) = (self.face_counters(face), times.get(face).copied().unwrap_or_default());
            Totals {
                span_ms: 0,
                in_packets: counters.packets.received(),
                in_bytes: counters.in_bytes,
                out_packets: counters.packets.sent(),
                out_bytes: counters.out_bytes,
                answered: answered(&time),
                unanswered: time.unanswered,
                avoided: time.avoided,
            }
        };
        let faces = self.faces.iter().map(|(&face, _)| (face, totals(face))).collect();
        self.recent.sample(now_ns, faces)
    }

    /// Follows a report about lanes.
    pub(crate) fn note_lanes(&mut self, report: LaneReport) {
        let now_ns = self.shared.now_ns();
        let (face, result) = match report {
            LaneReport::Opened { worker, face, result } => match getrandom::u64() {
                Ok(instance) => (face, self.lanes.opened(now_ns, worker, face, result, instance)),
                Err(error) => (face, Err(io::Error::other(error.to_string()).into())),
            },
            LaneReport::Linked { worker, face, result } => (face, self.lanes.linked(now_ns, worker, face, result)),
            LaneReport::Hello { face, hello } => {
                if let Some(record) = self.faces.get(face) {
                    self.lanes.heard(now_ns, face, hello, &record.info, record.policy);
                }
                return;
            }
        };
        if let Err(error) = result {
            tracing::warn!(target: "faces", face = face.0, "no lanes: {error}");
        }
    }

    /// Sends what the agreements on lanes want to be sent now.
    pub(crate) fn run_lanes(&mut self, now_ns: u64) {
        for (face, is_used) in self.lanes.run(now_ns) {
            tracing::info!(target: "faces", face = face.0, in_use = is_used, "lanes");
        }
    }

    /// Records that the link of a face carries packets, or does not.
    pub(crate) fn note_link(&mut self, face: FaceId, is_up: bool) {
        self.faces.note_link(face, is_up);
        self.link_states.note(self.shared.now_ns(), face, is_up);
    }
}
