//! The node as management sees it: faces, counters, strategies.

use crate::{
    cs_erasure::CsErasures,
    cs_settings::{CsSettings, parse_policy, policy_text},
    fib_writer::FibWriter,
    held_answers::HeldAnswers,
    link_faces::LinkFaces,
    link_state::{LinkChanges, LocalEnds},
    listeners::AcceptCounters,
    messages::{ControlSender, WorkerSender},
    router_drop::RouterDrop,
    shared::Shared,
    websocket::WebSockets,
};
use namewire_engine::{CsPolicyCounts, CsPrefixCounts, CsReport, DropReason, LimitMet};
use namewire_faces::{
    CloseReason, FaceCounters, FaceIdAllocator, FaceInfo, LinkCounters, LinkDrop, LinkPolicy, Persistency,
};
use namewire_management::{
    Environment, FaceProperties, PeerCredentials, ResolvedStrategy, StrategyError, StrategyRegistry, Times,
};
use namewire_packet::{
    FaceId, NameBuf,
    nfd::{
        self, CsInfo, CsPolicyUsage, CsPrefixUsage, CsUsage, DropCounter, FacePersistency, FaceScope, FaceUri,
        FibUsage, ForwarderStatus, LinkType, cs_flags, face_flags,
    },
};
use namewire_tables::{content_store::ENTRY_OVERHEAD_BYTES, fib::designs::catalogue::FibDesign};
use std::{
    collections::{HashMap, VecDeque},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::sync::OwnedSemaphorePermit;

/// What control knows of a face.
pub(crate) struct FaceRecord {
    pub(crate) worker: u8,
    pub(crate) info: FaceInfo,
    pub(crate) counters: Arc<FaceCounters>,
    pub(crate) local_fields: bool,
    pub(crate) policy: LinkPolicy,
}

impl FaceRecord {
    /// True without a connection.
    pub(crate) fn is_datagrams(&self) -> bool {
        ["udp", "ether"].iter().any(|scheme| self.info.remote_uri.starts_with(scheme))
    }
}

/// What a face that is being made is to have.
pub(crate) struct Wanted {
    pub(crate) local_fields: bool,
    pub(crate) policy: LinkPolicy,
}

/// A face that has closed, while its last packets may be on their way between workers.
pub(crate) struct ClosingFace {
    pub(crate) face: FaceId,
    pub(crate) counters: Arc<FaceCounters>,
    /// When to forget it.
    pub(crate) due_ns: u64,
}

/// The node beside its management.
pub(crate) struct Node {
    pub(crate) shared: Arc<Shared>,
    pub(crate) workers: Vec<WorkerSender>,
    pub(crate) sender: ControlSender,
    pub(crate) face_ids: FaceIdAllocator,
    pub(crate) faces: HashMap<FaceId, FaceRecord>,
    pub(crate) faces_per_worker: Vec<usize>,
    pub(crate) udp_listeners: Vec<SocketAddr>,
    /// Whether management may make TCP and UDP faces.
    pub(crate) outgoing_tcp: bool,
    pub(crate) outgoing_udp: bool,
    pub(crate) channels: Vec<FaceUri>,
    pub(crate) links: LinkFaces,
    pub(crate) websockets: WebSockets,
    pub(crate) cs: CsSettings,
    pub(crate) cs_erasures: CsErasures,
    pub(crate) start_unix_ms: u64,
    /// Whether new faces mark packets.
    pub(crate) congestion_marking: bool,
    /// When silent on-demand UDP faces close.
    pub(crate) udp_idle_timeout: Duration,
    /// Faces being made.
    pub(crate) pending: HashMap<FaceId, Wanted>,
    /// Links that changed and that engines have not been told of.
    pub(crate) link_changes: LinkChanges,
    /// Local ends of faces that some interface has which is up.
    pub(crate) local_ends: LocalEnds,
    /// Faces made by command that closed by themselves.
    pub(crate) faces_lost: u64,
    /// Permanent stream faces that are down, and the pause before the next attempt.
    pub(crate) retry_pauses: HashMap<FaceId, Duration>,
    pub(crate) fib_design: FibDesign,
    pub(crate) fib_writer: FibWriter,
    pub(crate) held_answers: HeldAnswers,
    /// Times that a listener could not accept.
    pub(crate) accept_failures: u64,
    pub(crate) accepts: Arc<AcceptCounters>,
    /// Places at their listeners of the connections that workers make faces of.
    pub(crate) places: HashMap<FaceId, OwnedSemaphorePermit>,
    /// Times that a trust anchor's file could not be read again.
    pub(crate) unreadable_anchors: u64,
    /// Connections closed because a worker had no room for them.
    pub(crate) refused_connections: u64,
    /// Faces that have closed and are not yet forgotten, in the order of their time.
    pub(crate) closing: VecDeque<ClosingFace>,
    /// The counters of faces that are gone, added up.
    pub(crate) closed_faces: LinkCounters,
    /// Faces that closed by themselves, by reason.
    pub(crate) close_counts: HashMap<&'static str, u64>,
    /// What workers dropped that belonged to no face.
    pub(crate) faceless: Vec<Arc<FaceCounters>>,
    /// What went through the internal face: out to management, in from it.
    pub(crate) internal: nfd::FaceCounters,
}

/// `bit` if it is set.
fn flag(is_set: bool, bit: u64) -> u64 {
    if is_set { bit } else { 0 }
}

pub(crate) fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

impl Node {
    pub(crate) fn times(&self) -> Times {
        Times { mono_ns: self.shared.now_ns(), unix_ms: unix_ms() }
    }

    /// The worker with the fewest faces.
    pub(crate) fn choose_worker(&self) -> u8 {
        let fewest = self.faces_per_worker.iter().enumerate().min_by_key(|(_, faces)| **faces);
        fewest.map_or(0, |(worker, _)| worker as u8)
    }

    pub(crate) fn worker(&self, worker: u8) -> &WorkerSender {
        &self.workers[usize::from(worker)]
    }

    /// Counts a face that closed, or whose connection failed, by itself.
    pub(crate) fn count_closed(&mut self, reason: CloseReason) {
        let name = match reason {
            CloseReason::PeerClosed | CloseReason::Idle | CloseReason::InterfaceGone => return, // the normal ends of a face
            CloseReason::Refused => "refused",
            CloseReason::InterfaceDown => "interface-down",
            CloseReason::Io(_) => "socket-failed",
            CloseReason::OversizeElement => "oversize-element",
            CloseReason::MalformedElement => "malformed-element",
            CloseReason::ForeignProtocol => "foreign-protocol",
        };
        *self.close_counts.entry(name).or_default() += 1;
    }

    /// A face as management keeps it.
    pub(crate) fn properties(&self, face: FaceId) -> Option<FaceProperties> {
        let record = self.faces.get(&face)?;
        let info = &record.info;
        let uri = |text: &str| text.parse::<FaceUri>().unwrap_or(FaceUri::Null);
        Some(FaceProperties {
            face,
            remote: uri(&info.remote_uri),
            local: uri(&info.local_uri),
            scope: match info.scope {
                namewire_faces::FaceScope::Local => FaceScope::Local,
                namewire_faces::FaceScope::NonLocal => FaceScope::NonLocal,
            },
            persistency: FacePersistency::from_code(info.persistency as u64).unwrap_or(FacePersistency::Persistent),
            link_type: LinkType::from_code(info.link_type as u64).unwrap_or(LinkType::PointToPoint),
            flags: flag(record.local_fields, face_flags::LOCAL_FIELDS)
                | flag(record.policy.reliability, face_flags::LP_RELIABILITY)
                | flag(record.policy.congestion_marking, face_flags::CONGESTION_MARKING),
            // Shown whether marking is on or not, as NFD does.
            base_congestion_marking_interval_ns: Some(record.policy.marking_interval_ns),
            default_congestion_threshold_bytes: Some(record.policy.marking_threshold_octets),
            mtu: Some(info.mtu as u64),
            credentials: info.credentials.as_ref().map(|peer| PeerCredentials {
                uid: peer.uid,
                gid: peer.gid,
                groups: peer.groups.clone(),
                pid: peer.pid,
            }),
        })
    }

    /// Octets and packets that the Content Store may hold by what its workers report: less than was asked for if the
    /// system gave no memory for it. (A worker's share is rounded up; a limit that octets do not let it come to is
    /// told as it was asked for. A change is told once the workers have made it.)
    fn cs_capacity(&self, report: &CsReport) -> (u64, u64) {
        let CsSettings { capacity_bytes: bytes, capacity_packets: packets, .. } = self.cs;
        if report.policy.is_none() {
            return (bytes, packets);
        }
        let bytes = bytes.min(report.capacity_bytes);
        let is_limit = report.capacity_packets < bytes / ENTRY_OVERHEAD_BYTES;
        (bytes, if is_limit { packets.min(report.capacity_packets) } else { packets })
    }
}

impl StrategyRegistry for Node {
    fn resolve(&mut self, requested: &NameBuf) -> Result<ResolvedStrategy, StrategyError> {
        let resolved = self.shared.strategies.change(|strategies| strategies.resolve(requested));
        match resolved {
            Ok((id, instance)) => Ok(ResolvedStrategy { id, instance }),
            Err(namewire_engine::StrategyError::Unknown) => {
                Err(StrategyError::Unknown(namewire_engine::strategy::registry::known_strategies()))
            }
            Err(namewire_engine::StrategyError::Invalid(why)) => Err(StrategyError::Invalid(why)),
            Err(namewire_engine::StrategyError::TooMany) => Err(StrategyError::Full),
        }
    }
}

impl Environment for Node {
    fn face_counters(&self, face: FaceId) -> nfd::FaceCounters {
        if face == FaceId::INTERNAL {
            return self.internal;
        }
        let Some(record) = self.faces.get(&face) else { return nfd::FaceCounters::default() };
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &record.counters;
        nfd::FaceCounters {
            n_in_interests: read(&counters.in_interests),
            n_in_data: read(&counters.in_data),
            n_in_nacks: read(&counters.in_nacks),
            n_out_interests: read(&counters.out_interests),
            n_out_data: read(&counters.out_data),
            n_out_nacks: read(&counters.out_nacks),
            n_in_bytes: read(&counters.in_octets),
            n_out_bytes: read(&counters.out_octets),
        }
    }

    /// Time that an on-demand UDP or Ethernet face has left: workers publish when they last heard from a face.
    fn face_expiration_ms(&self, face: FaceId) -> Option<u64> {
        let record = self.faces.get(&face)?;
        let closes_when_idle = record.info.persistency == Persistency::OnDemand && record.is_datagrams();
        let silent_ns = self.shared.now_ns().saturating_sub(record.counters.last_received_ns.load(Ordering::Relaxed));
        let left = self.udp_idle_timeout.saturating_sub(Duration::from_nanos(silent_ns));
        closes_when_idle.then_some(left.as_millis() as u64)
    }

    fn forwarder_status(&self) -> ForwarderStatus {
        let status = self.shared.total_status();
        let counters = status.counters;
        ForwarderStatus {
            nfd_version: concat!("namewire-", env!("CARGO_PKG_VERSION")).to_owned(),
            start_timestamp_ms: self.start_unix_ms,
            current_timestamp_ms: unix_ms(),
            n_name_tree_entries: status.name_groups,
            n_fib_entries: 0, // filled in by management, which knows the hidden ones
            n_pit_entries: status.pit_entries,
            n_measurements_entries: status.measurement_entries,
            n_cs_entries: status.cs_entries,
            n_in_interests: counters.in_interests,
            n_in_data: counters.in_data,
            n_in_nacks: counters.in_nacks,
            n_out_interests: counters.out_interests,
            n_out_data: counters.out_data,
            n_out_nacks: counters.out_nacks,
            n_satisfied_interests: counters.satisfied + counters.fingerprints_satisfied,
            n_unsatisfied_interests: counters.unsatisfied,
        }
    }

    /// Reasons that never occurred are left out.
    fn drop_counters(&self) -> Vec<DropCounter> {
        let status = self.shared.total_status();
        let mut counters: Vec<DropCounter> = Vec::new();
        let mut add = |place: &str, name: &str, count: u64| {
            if count > 0 {
                counters.push(DropCounter { reason: format!("{place}.{name}"), count });
            }
        };
        for reason in DropReason::ALL {
            add("engine", reason.name(), status.counters.dropped(*reason));
        }
        for cut in status.counters.faces_cut.iter() {
            add("cut", &format!("face-{}", cut.face.0), cut.interests);
        }
        for limit in LimitMet::ALL {
            add("limit", limit.name(), status.counters.met(*limit));
        }
        add("limit", "short-reads", status.short_reads);
        add("limit", "accepts-held", self.accepts.held.load(Ordering::Relaxed));
        add("router", "connection-left", self.accepts.left.load(Ordering::Relaxed));
        add("router", "connection-left-unheard", self.accepts.left_unheard.load(Ordering::Relaxed));
        let mut links = self.closed_faces;
        let closing = self.closing.iter().map(|closing| &closing.counters);
        for counters in self.faces.values().map(|record| &record.counters).chain(closing).chain(&self.faceless) {
            links.merge(&counters.snapshot());
        }
        for reason in LinkDrop::ALL {
            add("link", reason.name(), links.dropped(reason));
        }
        for (name, count) in status.counters.core_counts() {
            add("core", name, count);
        }
        add("reliability", "acknowledged", links.acknowledged);
        add("reliability", "retransmitted", links.retransmitted);
        add("reliability", "frames-retransmitted", links.frames_retransmitted);
        add("congestion", "marked", links.congestion_marked);
        for reason in RouterDrop::ALL {
            add("router", reason.name(), status.drops[reason as usize]);
        }
        for cut in self.sender.interests.cut().iter() {
            add("management-cut", &format!("face-{}", cut.face.0), cut.interests);
        }
        for (refusal, count) in self.fib_writer.refusals() {
            add("router", refusal, count);
        }
        add("router", "accept-failed", self.accept_failures);
        add("router", "anchor-unreadable", self.unreadable_anchors);
        add("router", "connection-refused", self.refused_connections);
        add("router", "link-face-failed", self.links.failures);
        for (name, count) in self.held_answers.counts() {
            add("state", name, count);
        }
        for (name, count) in self.websockets.counters.counts() {
            add("websocket", name, count);
        }
        for (reason, count) in &self.close_counts {
            add("face-closed", reason, *count);
        }
        counters
    }

    fn cs_info(&self) -> CsInfo {
        let status = self.shared.total_status();
        CsInfo {
            capacity: self.cs_capacity(&self.shared.total_cs_report()).1,
            flags: flag(self.cs.admit, cs_flags::ADMIT) | flag(self.cs.serve, cs_flags::SERVE),
            n_cs_entries: status.cs_entries,
            n_hits: status.counters.cs_hits,
            n_misses: status.counters.cs_misses,
        }
    }

    fn fib_usage(&self) -> FibUsage {
        let fib = self.shared.fib();
        FibUsage {
            design: self.fib_design.name().to_owned(),
            capacity_entries: fib.capacity_entries() as u64,
            bytes: fib.bytes() as u64,
            is_lossy: !self.fib_design.is_lossless(),
        }
    }

    fn cs_usage(&self) -> CsUsage {
        let report = self.shared.total_cs_report();
        let policy = report.policy.unwrap_or(self.cs.policy);
        let (capacity_bytes, _) = self.cs_capacity(&report);
        let by_policy =
            report.policies.into_iter().map(|CsPolicyCounts { eviction, admission, counts }| CsPolicyUsage {
                policy: eviction.as_str().to_owned(),
                admission: admission.as_str().to_owned(),
                hits: counts.hits,
                misses: counts.misses,
                insertions: counts.insertions,
                not_admitted: counts.not_admitted,
                evictions: counts.evictions,
            });
        let by_prefix = report.prefixes.into_iter().map(|CsPrefixCounts { prefix, counts }| CsPrefixUsage {
            prefix,
            hits: counts.hits,
            misses: counts.misses,
            insertions: counts.insertions,
        });
        CsUsage {
            policy: policy.eviction.as_str().to_owned(),
            admission: policy.admission.as_str().to_owned(),
            capacity_bytes,
            bytes: self.shared.total_status().cs_bytes,
            policy_bytes: report.policy_bytes,
            policies: by_policy.collect(),
            prefixes: by_prefix.collect(),
            prefix_lookup: report.prefix_lookup.as_str().to_owned(),
            prefix_index_bytes: report.prefix_index_bytes,
        }
    }

    fn resolve_cs_policy(&self, text: &str) -> Result<String, String> {
        parse_policy(text, self.cs.policy).map(policy_text).map_err(|error| error.to_string())
    }

    fn channels(&self) -> Vec<FaceUri> {
        self.channels.iter().chain(self.websockets.channels()).cloned().chain(self.links.channels()).collect()
    }
}
