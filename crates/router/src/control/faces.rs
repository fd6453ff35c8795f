//! The faces of a node as control knows them: the worker of each, the faces being made, the faces that have closed.
//!
//! [`Faces`] writes the face table for the engines: a face is in the table before its first packet and until after its
//! last. [`super::links`] handles faces that follow the network interfaces, [`super::face_commands`] handles commands.

use crate::{
    descriptors::{Descriptors, OF_STREAM, TakenDescriptors},
    messages::{AcceptedConnection, Connection, ToControl},
    requests::DoubtfulFace,
    stream_request::FaceOptions,
};
use namewire_engine::FaceAttributes;
use namewire_faces::{
    CloseReason, FaceCounters, FaceIdAllocator, FaceInfo, HandedChannel, HandedFace, LinkCounters, LinkPolicy,
    StreamSocket, ethernet,
};
use namewire_handover::faces::FaceFacts;
use namewire_management::{FaceProperties, PeerCredentials, Ticket, UpdateFace};
use namewire_packet::{
    FaceId, MAX_PACKET_BYTES,
    nfd::{FacePersistency, FaceScope, FaceUri, LinkType, face_flags},
};
use namewire_shares::{Holder, HolderId};
use namewire_worker::{FaceChange, Shared, ToWorker, WorkerSender, unix_ms};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    net::IpAddr,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc::UnboundedSender},
    task::spawn_local,
};

/// First pause before a permanent stream face connects again.
pub(super) const RETRY_FIRST: Duration = Duration::from_secs(1);

/// Packets that a face sent before it closed may lie in a ring for this long. Engines must know the face until then, or
/// its last packets would be dropped as unknown-face.
const CLOSING_NS: u64 = 100_000_000;

/// A datagram face that has heard nothing for this long may have lost its peer without a sign.
const SILENT_NS: u64 = 60_000_000_000;

/// What control knows of a face.
pub(crate) struct FaceRecord {
    pub(super) worker: u8,
    pub(crate) info: FaceInfo,
    pub(crate) counters: Arc<FaceCounters>,
    pub(crate) local_fields: bool,
    pub(crate) policy: LinkPolicy,
    /// It is to have lanes ([`namewire_worker::LaneFaces`]).
    pub(super) wants_lanes: bool,
    /// Since when it is up or down, in milliseconds since 1970.
    pub(super) since_unix_ms: u64,
}

impl FaceRecord {
    /// Of a face that is made now.
    fn new(worker: u8, info: FaceInfo, counters: Arc<FaceCounters>, options: &FaceOptions) -> Self {
        let &FaceOptions { local_fields, policy, lanes: wants_lanes } = options;
        let since_unix_ms = unix_ms();
        FaceRecord { worker, info, counters, local_fields, policy, wants_lanes, since_unix_ms }
    }

    /// True if the face has no connection.
    pub(crate) fn is_datagrams(&self) -> bool {
        self.info.remote.is_datagrams()
    }
}

/// A face that a worker was asked to make.
struct BeingMade {
    options: FaceOptions,
    /// The command that asked for it, if one did.
    ticket: Option<Ticket>,
}

/// A face that has closed, while its last packets may still be on their way between workers.
struct ClosingFace {
    face: FaceId,
    counters: Arc<FaceCounters>,
    /// When to forget it.
    due_ns: u64,
}

/// How new faces begin, by the configuration.
#[derive(Clone, Copy)]
pub(crate) struct FaceDefaults {
    /// New faces mark packets while their send queues are long.
    pub(crate) congestion_marking: bool,
    /// On-demand datagram faces close after this much silence.
    pub(crate) udp_idle_timeout: Duration,
    /// Faces to one UDP peer have this MTU, unless a command gives another.
    pub(crate) udp_mtu: usize,
}

/// Counts of what happened to faces.
#[derive(Default)]
pub(crate) struct FaceCounts {
    /// How often a face made by command has closed by itself, or has gone down.
    pub(super) lost: u64,
    /// Connections closed because a worker had no room for them.
    pub(super) refused_connections: u64,
    /// The summed counters of faces that are gone.
    closed: LinkCounters,
    /// Faces that closed by themselves, by reason.
    pub(super) by_reason: HashMap<&'static str, u64>,
    /// Counters of drops that belong to no face, one per worker.
    faceless: Vec<Arc<FaceCounters>>,
}

/// See the module documentation.
pub(crate) struct Faces {
    shared: Arc<Shared>,
    workers: Arc<[WorkerSender]>,
    events: UnboundedSender<ToControl>,
    ids: FaceIdAllocator,
    /// The number of the next face that is made, if another process gave it.
    numbered: Option<FaceId>,
    /// Faces of another process that engines do not know yet.
    taken: Vec<(FaceId, FaceAttributes)>,
    /// The holder of each face that engines know.
    holder_of: HashMap<FaceId, HolderId>,
    /// Faces of each worker and I/O thread, including those being made.
    load: Vec<usize>,
    defaults: FaceDefaults,
    records: HashMap<FaceId, FaceRecord>,
    being_made: HashMap<FaceId, BeingMade>,
    /// The places that connections hold at their listeners while workers make faces of them.
    places: HashMap<FaceId, OwnedSemaphorePermit>,
    /// The descriptors that faces with sockets of their own use.
    descriptors_of: HashMap<FaceId, TakenDescriptors>,
    descriptors: Descriptors,
    /// Permanent stream faces that are down, each with the pause before the next attempt.
    retry_pauses: HashMap<FaceId, Duration>,
    /// Permanent faces that are down.
    down: HashSet<FaceId>,
    /// Faces that have closed and are not yet forgotten, ordered by time.
    closing: VecDeque<ClosingFace>,
    counts: FaceCounts,
}

/// The parts that [`Faces`] is made of.
pub(crate) struct FaceParts {
    pub(crate) shared: Arc<Shared>,
    pub(crate) workers: Arc<[WorkerSender]>,
    pub(crate) events: UnboundedSender<ToControl>,
    pub(crate) ids: FaceIdAllocator,
    pub(crate) faceless: Vec<Arc<FaceCounters>>,
    pub(crate) descriptors: Descriptors,
    /// The key by which names find their home, which neighbours with lanes are told.
    pub(crate) shards_bytes: [u8; 16],
}

impl Faces {
    /// No faces yet.
    pub(crate) fn new(parts: FaceParts, defaults: FaceDefaults) -> Self {
        let FaceParts { shared, workers, events, ids, faceless, descriptors, .. } = parts;
        Faces {
            load: vec![0; workers.len()],
            shared,
            workers,
            events,
            ids,
            numbered: None,
            taken: Vec::new(),
            holder_of: HashMap::new(),
            defaults,
            records: HashMap::new(),
            being_made: HashMap::new(),
            places: HashMap::new(),
            descriptors_of: HashMap::new(),
            descriptors,
            retry_pauses: HashMap::new(),
            down: HashSet::new(),
            closing: VecDeque::new(),
            counts: FaceCounts { faceless, ..FaceCounts::default() },
        }
    }

    /// The next number that no face has had.
    pub(super) fn next_number(&self) -> FaceId {
        self.ids.next()
    }

    /// From now on, new faces have no number below this one.
    pub(super) fn skip_numbers_to(&self, least: FaceId) {
        self.ids.skip_to(least);
    }

    /// The next face that is made has this number, which another process gave it.
    pub(super) fn number_next(&mut self, face: Option<FaceId>) {
        self.numbered = face;
    }

    /// Whether our PIT tokens may leave through the face.
    pub(super) fn has_tokens(&self, face: FaceId) -> bool {
        self.shared.faces.look(|faces| faces.get(face).is_some_and(FaceAttributes::wants_tokens))
    }

    pub(super) fn since_unix_ms(&self, face: FaceId) -> Option<u64> {
        Some(self.records.get(&face)?.since_unix_ms)
    }

    pub(super) fn is_down(&self, face: FaceId) -> bool {
        self.down.contains(&face)
    }

    /// Records a face of another process. Engines learn of it by [`Faces::publish_taken`], the worker by the caller.
    pub(super) fn take_over(&mut self, handed: &HandedFace, facts: FaceFacts, counters: Arc<FaceCounters>) {
        let (face, info, worker) = (handed.face, handed.info.clone(), facts.worker);
        // A multicast face was opened anew, and lacks only its record.
        if !self.holder_of.contains_key(&face) {
            self.enter_taken(handed, facts);
        }
        let FaceFacts { since_unix_ms, .. } = facts;
        // Whoever declares the face asks for its lanes again.
        let options = FaceOptions { local_fields: handed.local_fields, policy: handed.policy, lanes: false };
        let record = FaceRecord::new(worker, info, counters, &options);
        self.records.insert(face, FaceRecord { since_unix_ms, ..record });
    }

    fn enter_taken(&mut self, handed: &HandedFace, facts: FaceFacts) {
        let (face, info, worker) = (handed.face, &handed.info, facts.worker);
        let holder = info.holder();
        let id = self.shared.holders.enter(&holder);
        self.load[usize::from(worker)] += 1;
        self.holder_of.insert(face, id);
        if matches!(handed.channel, HandedChannel::Stream(..) | HandedChannel::Udp { .. }) {
            // The descriptor is there, whether or not the holder has its share.
            let is_on_demand = info.persistency == FacePersistency::OnDemand;
            let taken = if is_on_demand { self.descriptors.take(&holder, OF_STREAM).ok() } else { None };
            self.descriptors_of.insert(face, taken.unwrap_or_else(|| self.descriptors.take_for_operator()));
        }
        let attributes = FaceAttributes {
            link_type: info.link_type,
            holder: id,
            is_up: !facts.is_down,
            ..FaceAttributes::new(info.scope, worker, facts.has_tokens)
        };
        self.taken.push((face, attributes));
        if facts.is_down {
            self.down.insert(face);
        }
    }

    /// Tells engines of the faces that were taken over.
    pub(super) fn publish_taken(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        self.shared.faces.change(|faces| {
            for (face, attributes) in taken {
                faces.insert(face, attributes);
            }
        });
    }

    pub(super) fn get(&self, face: FaceId) -> Option<&FaceRecord> {
        self.records.get(&face)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&FaceId, &FaceRecord)> {
        self.records.iter()
    }

    pub(super) fn counts(&self) -> &FaceCounts {
        &self.counts
    }

    /// The counters of all present and former faces, and of packets that belonged to no face.
    pub(super) fn link_counters(&self) -> LinkCounters {
        let mut links = self.counts.closed;
        let present = self.records.values().map(|record| &record.counters);
        let closing = self.closing.iter().map(|closing| &closing.counters);
        for counters in present.chain(closing).chain(&self.counts.faceless) {
            links.merge(&counters.snapshot());
        }
        links
    }

    /// Time that an on-demand datagram face has left. Workers publish when they last heard from a face.
    pub(super) fn expiration(&self, face: FaceId) -> Option<Duration> {
        let record = self.records.get(&face)?;
        let closes_when_idle = record.info.persistency == FacePersistency::OnDemand && record.is_datagrams();
        let heard_ns = record.counters.last_received_ns.load(Ordering::Relaxed);
        let silent = Duration::from_nanos(self.shared.now_ns().saturating_sub(heard_ns));
        closes_when_idle.then(|| self.defaults.udp_idle_timeout.saturating_sub(silent))
    }

    /// Largest frame that the path of a face takes, in bytes. Workers publish what the kernel says.
    pub(super) fn path_mtu(&self, face: FaceId) -> Option<u64> {
        let path_mtu = self.records.get(&face)?.counters.path_mtu.load(Ordering::Relaxed);
        (1..u64::MAX).contains(&path_mtu).then_some(path_mtu)
    }

    /// Whose share the packets of a face use, and the address of the host that they come from, if it has one.
    pub(super) fn asker(&self, face: FaceId) -> (HolderId, Option<IpAddr>) {
        let holder = self.holder_of.get(&face).copied().unwrap_or(HolderId::ANY_REMOTE);
        (holder, self.records.get(&face).and_then(|record| record.info.remote.ip()))
    }

    /// A face in the form that management keeps.
    pub(super) fn properties(&self, face: FaceId) -> Option<FaceProperties> {
        let record = self.records.get(&face)?;
        let info = &record.info;
        Some(FaceProperties {
            face,
            remote: info.remote.clone(),
            local: info.local.clone(),
            scope: info.scope,
            persistency: info.persistency,
            link_type: info.link_type,
            flags: flag(record.local_fields, face_flags::LOCAL_FIELDS)
                | flag(record.policy.reliability, face_flags::LP_RELIABILITY)
                | flag(record.policy.congestion_marking, face_flags::CONGESTION_MARKING)
                | flag(record.wants_lanes, face_flags::LANES),
            // Shown whether marking is on or not, as NFD does.
            base_congestion_marking_interval_ns: Some(record.policy.marking_interval_ns),
            default_congestion_threshold_bytes: Some(record.policy.marking_threshold_bytes),
            mtu: Some(info.mtu as u64),
            holder: self.holder_of.get(&face).copied().unwrap_or(HolderId::ANY_REMOTE),
            credentials: info.credentials.as_ref().map(|peer| PeerCredentials {
                uid: peer.uid,
                gid: peer.gid,
                groups: peer.groups.clone(),
                pid: peer.pid,
            }),
        })
    }

    /// The worker with the fewest faces. I/O threads have none but those of their ports.
    pub(super) fn choose_worker(&self) -> u8 {
        let fewest = self.load[..self.shared.dispatcher.workers()].iter().enumerate().min_by_key(|(_, faces)| **faces);
        fewest.map_or(0, |(worker, _)| worker as u8)
    }

    /// How many workers have names: the first ones.
    pub(super) fn forwarders(&self) -> u8 {
        self.shared.dispatcher.workers() as u8
    }

    /// A descriptor for a socket of the operator's.
    pub(super) fn take_descriptor(&self) -> TakenDescriptors {
        self.descriptors.take_for_operator()
    }

    /// The numbers of the I/O threads.
    pub(super) fn io_threads(&self) -> std::ops::Range<u8> {
        self.shared.dispatcher.workers() as u8..self.workers.len() as u8
    }

    /// Sends to one worker.
    pub(super) fn send(&self, worker: u8, message: ToWorker) {
        self.workers[usize::from(worker)].send(message);
    }

    /// The MTU of a face to one UDP peer if the command gives none.
    pub(super) fn default_udp_mtu(&self) -> usize {
        self.defaults.udp_mtu
    }

    /// The first policy of a face to `remote`. NFD marks packets on Unix, TCP and UDP faces.
    pub(super) fn default_policy(&self, remote: &FaceUri) -> LinkPolicy {
        let may_mark = matches!(
            remote,
            FaceUri::Unix(_)
                | FaceUri::Fd(_)
                | FaceUri::Tcp4(_)
                | FaceUri::Tcp6(_)
                | FaceUri::Udp4(_)
                | FaceUri::Udp6(_)
        );
        LinkPolicy { congestion_marking: self.defaults.congestion_marking && may_mark, ..LinkPolicy::default() }
    }

    /// The options of a face that no command has changed.
    pub(super) fn default_options(&self, info: &FaceInfo) -> FaceOptions {
        FaceOptions { local_fields: false, policy: self.default_policy(&info.remote), lanes: false }
    }

    /// Allots an id on a worker, and tells engines of the face before its first packet. With `tokens`, our PIT tokens
    /// may leave through the face.
    pub(super) fn reserve(
        &mut self,
        worker: u8,
        scope: FaceScope,
        link_type: LinkType,
        tokens: bool,
        holder: &Holder,
    ) -> FaceId {
        let (face, holder) = self.allot(worker, holder);
        let attributes = FaceAttributes { link_type, holder, ..FaceAttributes::new(scope, worker, tokens) };
        self.shared.faces.change(|faces| faces.insert(face, attributes));
        face
    }

    fn allot(&mut self, worker: u8, holder: &Holder) -> (FaceId, HolderId) {
        let face = self.numbered.take().unwrap_or_else(|| self.ids.allocate());
        let holder = self.shared.holders.enter(holder);
        self.load[usize::from(worker)] += 1;
        self.holder_of.insert(face, holder);
        (face, holder)
    }

    /// A face that engines do not know any more has no holder.
    fn leave(&mut self, face: FaceId) {
        if let Some(holder) = self.holder_of.remove(&face) {
            self.shared.holders.leave(holder);
        }
    }

    /// Records the options of a face that a worker is about to make, and the command that asked for it.
    pub(super) fn expect(&mut self, face: FaceId, options: FaceOptions, ticket: Option<Ticket>) {
        self.being_made.insert(face, BeingMade { options, ticket });
    }

    /// Gives a connected stream to a worker.
    pub(super) fn add_stream(&mut self, socket: StreamSocket, info: FaceInfo, options: FaceOptions, ticket: Ticket) {
        // A non-local face made by command leads to a router.
        let tokens = info.scope == FaceScope::NonLocal;
        let worker = self.choose_worker();
        let face = self.reserve(worker, info.scope, LinkType::PointToPoint, tokens, &info.holder());
        let policy = options.policy;
        self.expect(face, options, Some(ticket));
        self.send(worker, ToWorker::AddStream { face, socket, info, policy });
    }

    /// Gives workers the connections that listeners accepted.
    pub(super) fn add_accepted(&mut self, connections: Vec<AcceptedConnection>) {
        if connections.is_empty() {
            return;
        }
        let mut allotted = Vec::with_capacity(connections.len());
        for connection in connections {
            let worker = self.choose_worker();
            let (face, holder) = self.allot(worker, &connection.info.holder());
            allotted.push((face, worker, holder, connection));
        }
        self.shared.faces.change(|faces| {
            for (face, worker, holder, AcceptedConnection { info, .. }) in &allotted {
                // A peer counts as a router only once it uses NDNLPv2.
                let attributes = FaceAttributes::new(info.scope, *worker, false);
                faces.insert(*face, FaceAttributes { holder: *holder, ..attributes });
            }
        });
        for (face, worker, _, AcceptedConnection { connection, info, place, descriptors }) in allotted {
            let options = self.default_options(&info);
            let policy = options.policy;
            self.expect(face, options, None);
            self.places.insert(face, place);
            self.descriptors_of.extend(descriptors.map(|descriptors| (face, descriptors)));
            self.send(
                worker,
                match connection {
                    Connection::Stream(socket) => ToWorker::AddStream { face, socket, info, policy },
                    Connection::Memory(port) => ToWorker::AddMemory { face, port, info, policy },
                },
            );
        }
    }

    /// A datagram has made a face.
    pub(super) fn made(&mut self, worker: u8, face: FaceId, info: FaceInfo, counters: Arc<FaceCounters>) {
        self.load[usize::from(worker)] += 1;
        self.holder_of.insert(face, self.shared.holders.enter(&info.holder()));
        let options = self.default_options(&info);
        self.records.insert(face, FaceRecord::new(worker, info, counters, &options));
    }

    /// A worker has added a face that it was given. Returns the command that asked for it.
    pub(super) fn added(
        &mut self,
        worker: u8,
        face: FaceId,
        info: FaceInfo,
        counters: Arc<FaceCounters>,
    ) -> Option<Ticket> {
        let made = self.being_made.remove(&face);
        self.places.remove(&face);
        let BeingMade { options, ticket } =
            made.unwrap_or_else(|| BeingMade { options: self.default_options(&info), ticket: None });
        let local_fields = options.local_fields;
        if info.persistency != FacePersistency::OnDemand && !matches!(info.remote, FaceUri::Ether(_)) {
            // The operator's faces are not asked: they are few, and have a reserve.
            self.descriptors_of.insert(face, self.descriptors.take_for_operator());
        }
        self.records.insert(face, FaceRecord::new(worker, info, counters, &options));
        if local_fields {
            let change = FaceChange { local_fields: Some(true), ..FaceChange::default() };
            self.send(worker, ToWorker::UpdateFace { face, change });
        }
        ticket
    }

    /// A worker could not add a face that it was given. Returns the command that asked for it.
    pub(super) fn not_added(&mut self, worker: u8, face: FaceId) -> Option<Ticket> {
        let made = self.being_made.remove(&face);
        self.places.remove(&face);
        self.descriptors_of.remove(&face);
        self.load[usize::from(worker)] -= 1;
        self.leave(face);
        self.shared.faces.change(|faces| faces.remove(face));
        made.and_then(|made| made.ticket)
    }

    /// Changes a face, whose MTU may be `mtu_max` at most. Does nothing if no face has this number.
    pub(super) fn update(&mut self, update: &UpdateFace, mtu_max: usize) {
        let Some(record) = self.records.get_mut(&update.face) else { return };
        let persistency = update.persistency;
        let mtu = update.mtu.map(|mtu| mtu.min(mtu_max as u64) as usize);
        let sets_local_fields = update.mask & face_flags::LOCAL_FIELDS != 0;
        let local_fields = sets_local_fields.then_some(update.flags & face_flags::LOCAL_FIELDS != 0);
        record.info.persistency = persistency.unwrap_or(record.info.persistency);
        record.info.mtu = mtu.unwrap_or(record.info.mtu);
        record.local_fields = local_fields.unwrap_or(record.local_fields);
        if update.mask & face_flags::LANES != 0 {
            record.wants_lanes = update.flags & face_flags::LANES != 0;
        }
        let has_lanes = record.wants_lanes;
        record.policy = PolicyChange {
            flags: update.flags,
            mask: update.mask,
            interval_ns: update.base_congestion_marking_interval_ns,
            threshold_bytes: update.default_congestion_threshold_bytes,
        }
        .of(record.policy);
        let change = FaceChange { persistency, mtu, local_fields, policy: Some(record.policy) };
        let (face, worker) = (update.face, record.worker);
        for other in (0..self.forwarders()).filter(|other| has_lanes && *other != worker) {
            self.send(other, ToWorker::UpdateFace { face, change });
        }
        self.send(worker, ToWorker::UpdateFace { face, change });
    }

    /// Gives a face its new connection, which has another local port.
    pub(super) fn reconnected(&mut self, face: FaceId, socket: StreamSocket, local: FaceUri) {
        let Some(record) = self.records.get_mut(&face) else { return };
        record.info.local = local;
        let worker = record.worker;
        self.send(worker, ToWorker::Reconnect { face, socket });
    }

    /// The MTU of a network device has changed. Returns the faces whose MTU changed with it.
    pub(super) fn follow_mtu(&mut self, device: &str, before: usize, now: usize) -> Vec<FaceId> {
        let mut changed = Vec::new();
        let is_there = |local: &FaceUri| matches!(local, FaceUri::Dev(name) if name == device);
        for (face, record) in self.records.iter_mut().filter(|(_, record)| is_there(&record.info.local)) {
            if ethernet::follows_link(record.info.mtu, before, now) {
                record.info.mtu = now.min(MAX_PACKET_BYTES);
                changed.push(*face);
            }
        }
        changed
    }

    /// Tries a connection again after a pause.
    pub(super) fn retry_later(&mut self, face: FaceId, pause: Duration) {
        self.retry_pauses.insert(face, pause);
        let events = self.events.clone();
        spawn_local(async move {
            tokio::time::sleep(pause).await;
            let _ = events.send(ToControl::Retry { face });
        });
    }

    /// The pause that has just passed.
    pub(super) fn take_retry_pause(&mut self, face: FaceId) -> Duration {
        self.retry_pauses.remove(&face).unwrap_or(RETRY_FIRST)
    }

    /// A connection was closed because a worker had no room for it.
    pub(super) fn count_refused(&mut self) {
        self.counts.refused_connections += 1;
    }

    /// Counts a face that closed by itself.
    pub(super) fn count_lost(&mut self, face: FaceId, reason: CloseReason) {
        self.count_closed(reason);
        let persistency = self.records.get(&face).map(|record| record.info.persistency);
        self.counts.lost += u64::from(persistency.is_some_and(|persistency| persistency != FacePersistency::OnDemand));
    }

    /// Counts a permanent face that has gone down.
    pub(super) fn count_down(&mut self, reason: CloseReason) {
        self.count_closed(reason);
        self.counts.lost += 1;
    }

    /// Records that the link of a face carries packets, or does not.
    pub(super) fn note_link(&mut self, face: FaceId, is_up: bool) {
        let has_changed = match self.records.contains_key(&face) && !is_up {
            true => self.down.insert(face),
            false => self.down.remove(&face),
        };
        if let Some(record) = self.records.get_mut(&face).filter(|_| has_changed) {
            record.since_unix_ms = unix_ms();
        }
    }

    /// The faces whose peers may be elsewhere by now: those that are down, and datagram faces that have heard nothing
    /// for [`SILENT_NS`].
    pub(super) fn doubtful(&self) -> Vec<DoubtfulFace> {
        let now_ns = self.shared.now_ns();
        let is_silent = |record: &FaceRecord| {
            let heard_ns = record.counters.last_received_ns.load(Ordering::Relaxed);
            record.is_datagrams() && now_ns.saturating_sub(heard_ns) >= SILENT_NS
        };
        let doubtful = self.records.iter().filter(|(face, record)| self.down.contains(face) || is_silent(record));
        doubtful.map(|(face, _)| DoubtfulFace { face: *face, is_down: self.down.contains(face) }).collect()
    }

    /// Counts a face that closed, or whose connection failed, by itself.
    pub(super) fn count_closed(&mut self, reason: CloseReason) {
        let name = match reason {
            // The normal ends of a face.
            CloseReason::PeerClosed | CloseReason::Idle | CloseReason::InterfaceGone => return,
            CloseReason::NeverSpoke => "never-spoke",
            CloseReason::Displaced => "displaced",
            CloseReason::Refused => "refused",
            CloseReason::InterfaceDown => "interface-down",
            CloseReason::Io(_) => "socket-failed",
            CloseReason::OversizeElement => "oversize-element",
            CloseReason::MalformedElement => "malformed-element",
            CloseReason::ForeignProtocol => "foreign-protocol",
        };
        *self.counts.by_reason.entry(name).or_default() += 1;
    }

    /// Records that a face is gone; true if the face was known. Engines know it a little longer.
    pub(super) fn forget(&mut self, face: FaceId) -> bool {
        let Some(record) = self.records.remove(&face) else { return false };
        self.retry_pauses.remove(&face);
        self.down.remove(&face);
        self.descriptors_of.remove(&face);
        self.load[usize::from(record.worker)] -= 1;
        // Rounded up, so that faces that close at about the same time are forgotten in one walk over the PITs.
        let due_ns = (self.shared.now_ns() + CLOSING_NS).next_multiple_of(CLOSING_NS);
        self.closing.push_back(ClosingFace { face, counters: record.counters, due_ns });
        true
    }

    /// When [`Faces::forget_closed`] has something to do.
    pub(super) fn next_forgetting_ns(&self) -> Option<u64> {
        self.closing.front().map(|closing| closing.due_ns)
    }

    /// Lets engines forget the faces that closed long enough ago.
    pub(super) fn forget_closed(&mut self, now_ns: u64) {
        let due = self.closing.partition_point(|closing| closing.due_ns <= now_ns);
        if due == 0 {
            return;
        }
        let closed: Vec<ClosingFace> = self.closing.drain(..due).collect();
        self.shared.faces.change(|faces| closed.iter().for_each(|closing| _ = faces.remove(closing.face)));
        let mut ids: Vec<FaceId> = closed.iter().map(|closing| closing.face).collect();
        ids.sort();
        let ids: Arc<[FaceId]> = ids.into();
        for worker in self.workers.iter() {
            worker.send(ToWorker::ForgetFaces(Arc::clone(&ids)));
        }
        closed.iter().for_each(|closing| self.leave(closing.face));
        closed.iter().for_each(|closing| self.counts.closed.merge(&closing.counters.snapshot()));
    }
}

/// The change that a command makes to a link's policy.
pub(super) struct PolicyChange {
    pub(super) flags: u64,
    /// The flags that change.
    pub(super) mask: u64,
    pub(super) interval_ns: Option<u64>,
    pub(super) threshold_bytes: Option<u64>,
}

impl PolicyChange {
    /// The policy afterwards.
    pub(super) fn of(&self, policy: LinkPolicy) -> LinkPolicy {
        let flag = |bit: u64, before: bool| if self.mask & bit != 0 { self.flags & bit != 0 } else { before };
        LinkPolicy {
            reliability: flag(face_flags::LP_RELIABILITY, policy.reliability),
            congestion_marking: flag(face_flags::CONGESTION_MARKING, policy.congestion_marking),
            marking_interval_ns: self.interval_ns.unwrap_or(policy.marking_interval_ns),
            marking_threshold_bytes: self.threshold_bytes.unwrap_or(policy.marking_threshold_bytes),
        }
    }
}

/// `bit` if it is set.
pub(super) fn flag(is_set: bool, bit: u64) -> u64 {
    if is_set { bit } else { 0 }
}
