//! Taking: control goes on with the sockets and the state of an old program (decision 0017).
//!
//! While control takes, its workers are frozen. Nothing here reads or writes a socket that the old program has, or a
//! file: the old program may still go on. [`Control::go_on`] follows when it does not.

use super::{Control, node::Node};
use crate::{
    cs_settings::{CsChange, parse_policy, said},
    messages::ToControl,
    stream_request::FaceOptions,
};
use namewire_faces::{FaceCounters, HandedChannel, HandedFace};
use namewire_handover::{
    Handed,
    faces::{self, FaceFacts},
    messages::{Command, Node as NodeSaid},
};
use namewire_management::{PASSED_NONCE_BYTES, PassedCommand};
use namewire_packet::{
    Data, FaceId,
    nfd::{FaceUri, LinkType},
};
use namewire_worker::{HandOverMessage, ToWorker};
use std::{
    collections::BTreeMap,
    net::UdpSocket,
    sync::{Arc, mpsc::sync_channel},
};

/// The entries of a table that are restored together.
const ENTRIES_AT_ONCE: usize = 4096;

/// What was taken, and what is done when the old program has stopped.
#[derive(Default)]
pub(crate) struct TakenOver {
    pub(crate) faces: u64,
    pub(crate) routes: u64,
    commands: Vec<PassedCommand>,
    /// Permanent stream faces without a connection.
    down: Vec<FaceId>,
}

impl Control {
    /// Takes all that the old program has said. `udp_sockets` are the UDP listeners of each worker.
    pub(crate) fn take_over(&mut self, handed: &mut Handed, udp_sockets: Vec<Vec<UdpSocket>>) {
        for (worker, sockets) in self.node.workers.iter().zip(udp_sockets) {
            let (frozen, _) = sync_channel(1);
            worker.send(ToWorker::Freeze(frozen));
            sockets
                .into_iter()
                .for_each(|socket| worker.send(ToWorker::HandOver(HandOverMessage::AddUdpListener(socket))));
            worker.wake();
        }
        self.node.faces.skip_numbers_to(FaceId(handed.node.next_face));
        let mut taken = TakenOver { commands: commands(&handed.node), ..TakenOver::default() };
        for face in std::mem::take(&mut handed.faces) {
            if let Some((face, facts)) = faces::of_line(face) {
                self.take_face(face, facts, &mut taken);
            }
        }
        self.node.faces.publish_taken();
        self.take_cs(&handed.node);
        let mut effects = Vec::new();
        let now = self.node.times();
        let (management, node) = (&mut self.management, &mut self.node);
        management.restore_strategies(std::mem::take(&mut handed.strategies), node, &mut effects);
        management.restore_next_hops(std::mem::take(&mut handed.next_hops), &mut effects);
        self.carry_out(effects);
        let mut routes = std::mem::take(&mut handed.routes).into_iter();
        while routes.len() > 0 {
            let (some, mut effects) = (routes.by_ref().take(ENTRIES_AT_ONCE).collect(), Vec::new());
            self.management.restore_routes(now, some, &mut effects);
            self.carry_out(effects);
        }
        self.settle();
        taken.routes = self.management.rib().len() as u64;
        self.taken_over = Some(taken);
        self.wake_workers();
    }

    /// Faces and routes that were taken.
    pub(crate) fn taken(&self) -> (u64, u64) {
        self.taken_over.as_ref().map_or((0, 0), |taken| (taken.faces, taken.routes))
    }

    /// The old program has stopped: this one uses sockets and files. Without an old program, there is nothing to do.
    pub(super) fn go_on(&mut self) {
        let Some(taken) = self.taken_over.take() else { return };
        self.node.workers.iter().for_each(|worker| worker.send(ToWorker::GoOn));
        self.wake_workers();
        if let Err(error) = self.node.websockets.listen() {
            tracing::warn!(target: "faces", "no WebSocket connections: {error}");
        }
        let (now, start_unix_ms) = (self.node.times(), self.node.counts.start_unix_ms);
        // The old program has told all that it knew, so no command is refused for being older than this program.
        self.management.remember_commands(now, &taken.commands, true, start_unix_ms);
        self.write_journal();
        for face in taken.down {
            // Control is this thread.
            let _ = self.node.events.send(ToControl::Retry { face });
        }
    }

    /// The whole FIB, before anyone forwards.
    fn settle(&mut self) {
        loop {
            self.run_fib_writer(u64::MAX);
            if self.management.is_settled() && !self.node.fib_writer.is_behind() {
                return;
            }
            let mut effects = Vec::new();
            let now = self.node.times();
            self.management.run_timers(now, &mut self.node, &mut effects);
            self.carry_out(effects);
        }
    }

    fn take_face(&mut self, handed: HandedFace, facts: FaceFacts, taken: &mut TakenOver) {
        let face = handed.face;
        let worker = match &handed.channel {
            HandedChannel::OpenedAnew if handed.info.link_type != LinkType::PointToPoint => {
                // It was opened with the links, and has its number already.
                self.node.links.worker_of_group(face)
            }
            HandedChannel::OpenedAnew => self.take_station(&handed),
            _ => Some(facts.worker),
        };
        let Some(worker) = worker.filter(|worker| usize::from(*worker) < self.node.workers.len()) else {
            tracing::warn!(target: "faces", face = face.0, remote = %handed.info.remote, "face not taken over");
            return;
        };
        let counters = Arc::new(FaceCounters::default());
        counters.publish(&handed.counters);
        let is_down = matches!(handed.channel, HandedChannel::Down);
        self.node.faces.take_over(&handed, FaceFacts { worker, is_down, ..facts }, Arc::clone(&counters));
        self.node.link_states.look_at_local_end(&self.node.faces, face);
        if let Some(properties) = self.node.faces.properties(face) {
            self.management.restore_face(properties, is_down);
        }
        if is_down {
            taken.down.push(face);
        }
        taken.faces += 1;
        let message = HandOverMessage::TakeOver { handed: Box::new(handed), counters };
        self.node.faces.send(worker, ToWorker::HandOver(message));
    }

    /// Makes the face of a station on its link, which is opened anew. Returns its worker.
    fn take_station(&mut self, handed: &HandedFace) -> Option<u8> {
        let (FaceUri::Ether(address), FaceUri::Dev(name)) = (&handed.info.remote, &handed.info.local) else {
            return None;
        };
        let Node { links, faces, .. } = &mut self.node;
        let (interface, worker) = links.open_device(faces, name).ok().flatten()?;
        let options = FaceOptions { local_fields: handed.local_fields, policy: handed.policy, lanes: false };
        faces.expect(handed.face, options, None);
        faces.send(
            worker,
            ToWorker::AddEthernet {
                face: handed.face,
                interface,
                address: *address,
                persistency: handed.info.persistency,
                link_type: LinkType::PointToPoint,
                mtu: Some(handed.info.mtu),
                policy: handed.policy,
            },
        );
        Some(worker)
    }

    /// What commands had changed of the Content Store, unless the configuration says something else than before.
    fn take_cs(&mut self, node: &NodeSaid) {
        if *self.node.cs.configured() != node.cs_configured || node.cs == node.cs_configured {
            return;
        }
        let policy = parse_policy(&node.cs.policy, self.node.cs.settings().policy);
        self.node.cs.change(|settings| {
            settings.policy = policy.unwrap_or(settings.policy);
            settings.take(CsChange {
                capacity_bytes: Some(node.cs.capacity_bytes),
                capacity_packets: Some(node.cs.capacity_packets),
                admit: Some(node.cs.admit),
                serve: Some(node.cs.serve),
                ..CsChange::default()
            });
        });
        tracing::info!(target: "management", settings = ?said(self.node.cs.settings()), "Content Store as commands had set it");
    }

    /// Gives Data that the old program had stored to the workers of their names.
    pub(super) fn take_stored(&self, stored: Vec<(Vec<u8>, u64)>) {
        let mut by_worker: BTreeMap<usize, Vec<(Vec<u8>, u64)>> = BTreeMap::new();
        for (bytes, fresh_ms) in stored {
            let home = Data::parse(&bytes).map(|data| self.node.shared.dispatcher.home(data.name()));
            if let Ok(home) = home {
                by_worker.entry(usize::from(home)).or_default().push((bytes, fresh_ms));
            }
        }
        for (worker, stored) in by_worker {
            self.node.workers[worker].send(ToWorker::HandOver(HandOverMessage::Store(stored)));
        }
        self.wake_workers();
    }
}

fn commands(node: &NodeSaid) -> Vec<PassedCommand> {
    let passed = |command: &Command| {
        let nonce: [u8; PASSED_NONCE_BYTES] = command.nonce.as_slice().try_into().ok()?;
        Some(PassedCommand { key: command.key.parse().ok()?, time_ms: command.time_ms, nonce })
    };
    node.commands.iter().filter_map(passed).collect()
}
