//! Status: the counters, datasets and strategies that management asks the node for.

use super::{
    TagControl,
    faces::{FaceRecord, flag},
    node::Node,
};
use crate::{
    cs_settings::{CsSettings, parse_policy, policy_text},
    privileges,
};
use namewire_configuration::{
    settings::{Choice, StrategyEntry},
    text::{Prefix, StrategyName},
    units::Bytes,
};
use namewire_engine::{CsPolicyCounts, CsPrefixCounts};
use namewire_faces::{LinkCounters, LinkDrop};
use namewire_management::{
    CapturePlane, Environment, LogPlane, ProcessPlane, ResolvedStrategy, StrategyError, StrategyRegistry, TagPlane,
};
use namewire_packet::{
    FaceId, NameBuf,
    nfd::{
        ChannelStatus, CsInfo, CsPolicyUsage, CsPrefixUsage, CsUsage, DropCounter, DroppedPacket, FaceCounters,
        FaceHealth, FaceStatus, FaceUri, FibUsage, ForwarderStatus, NodeState, PacketKind, Part, SettingInForce,
        StrategyChoice, WorkerLoad, cs_flags,
    },
};
use namewire_tables::CsPolicy;
use namewire_worker::answer_times::{AnswerTimes, answered, bound_ns};
use namewire_worker::drop_report::DropReport;
use namewire_worker::pool_report::PoolReport;
use namewire_worker::{WorkerStatus, unix_ms};
use std::sync::atomic::Ordering;

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

impl Node {
    /// The settings in force, with these of the strategies in force.
    pub(super) fn settings_with(&self, strategies: impl Iterator<Item = StrategyChoice>) -> Vec<SettingInForce> {
        let mut now = self.in_force.settings().clone();
        let CsSettings { policy, capacity_bytes, capacity_packets, admit, serve, .. } = self.cs.settings();
        now.cs.capacity = Some(Bytes(*capacity_bytes));
        now.cs.packets = Some(*capacity_packets);
        (now.cs.policy, now.cs.admission) = (Choice(policy.eviction), Choice(policy.admission));
        (now.cs.admit, now.cs.serve) = (*admit, *serve);
        if let Some(log) = self.log {
            now.log.areas = log.levels().iter().map(|(area, level)| (Choice(area), Choice(level))).collect();
        }
        now.strategy = strategies
            .map(|choice| StrategyEntry { prefix: Prefix(choice.name), strategy: StrategyName(choice.strategy) })
            .collect();
        self.in_force.list(&now)
    }
}

impl Node {
    /// What a face received and sent; zeros if it is unknown.
    pub(super) fn face_counters(&self, face: FaceId) -> FaceCounters {
        match self.faces.get(face) {
            Some(record) => self.counted(face, record).passed(),
            None if face == FaceId::INTERNAL => self.counts.internal,
            None => FaceCounters::default(),
        }
    }

    /// What the link of a face has counted, with its lanes.
    pub(super) fn counted(&self, face: FaceId, record: &FaceRecord) -> LinkCounters {
        let mut counted = record.counters.snapshot();
        counted.merge(&self.lanes.counted(face));
        counted
    }

    /// What management does not know of a face.
    fn complete(&self, face: &mut FaceStatus) {
        let id = face.face_id;
        face.counters = self.face_counters(id);
        face.expiration_period_ms = self.faces.expiration(id).map(|left| left.as_millis() as u64);
        face.path_mtu = self.faces.path_mtu(id);
        if let Some(record) = self.faces.get(id) {
            let port = self.links.port_of(&record.info.local).map(str::to_owned);
            face.port = port.or_else(|| self.lanes.words(id));
            face.link = self.counted(id, record).link();
        }
    }

    fn face_health(&self) -> Vec<FaceHealth> {
        let times = AnswerTimes::of(&self.shared);
        let health = self.faces.iter().map(|(&face, record)| {
            let time = times.get(face).copied().unwrap_or_default();
            let bound_us = |part| bound_ns(&time, part).map(|nanos| nanos / 1000);
            FaceHealth {
                face,
                since_ms: record.since_unix_ms,
                answered: answered(&time),
                unanswered: time.unanswered,
                last_us: (time.last_ns > 0).then_some(time.last_ns / 1000),
                median_us: bound_us(0.5),
                p99_us: bound_us(0.99),
                recent: self.recent.of(face),
            }
        });
        health.collect()
    }

    fn forwarder_status(&self) -> ForwarderStatus {
        let status = self.shared.total_status();
        let counters = status.counters;
        ForwarderStatus {
            nfd_version: concat!("namewire-", env!("CARGO_PKG_VERSION")).to_owned(),
            start_timestamp_ms: self.counts.start_unix_ms,
            current_timestamp_ms: unix_ms(),
            n_name_tree_entries: status.name_groups,
            n_fib_entries: 0, // management fills it in: it knows the hidden entries
            n_pit_entries: status.pit_entries,
            n_measurements_entries: status.measurement_entries,
            n_cs_entries: status.cs_entries,
            packets: counters.packets(),
            n_satisfied_interests: counters.satisfied + counters.fingerprints_satisfied,
            n_unsatisfied_interests: counters.unsatisfied,
        }
    }

    /// Reasons that never occurred are left out.
    fn drop_counters(&self) -> Vec<DropCounter> {
        let (status, counts) = (self.shared.total_status(), &self.counts);
        let mut report = DropReport::default();
        report.add_engine(&status);
        // A listener waited until the connections that it had accepted were faces. The others wait in the kernel.
        report.add("limit.accepts-held", counts.accepts.held.load(Ordering::Relaxed));
        // A peer closed its connection, without a packet, before the router accepted it.
        report.add("router.connection-left", counts.accepts.left.load(Ordering::Relaxed));
        // A peer sent something and closed its connection; too many such connections waited for their turn.
        report.add("router.connection-left-unheard", counts.accepts.left_unheard.load(Ordering::Relaxed));
        let mut links = self.faces.link_counters();
        links.merge(&self.lanes.counted_in_all());
        report.add_links(&status, &links);
        // Requests of a face that found its queue to management full; the eight faces with most are named.
        report.add_cuts("management-cut", &self.interests.cut());
        report.add_all("router", self.fib_writer.refusals());
        report.add_all("tag-routing", self.tags.iter().flat_map(TagControl::refusals));
        // A connection became no face: no descriptor, no memory, or an application of shared memory that does not
        // connect properly.
        report.add("router.accept-failed", counts.accept_failures);
        // A certificate that a trust rule names cannot be read.
        report.add("router.anchor-unreadable", counts.unreadable_anchors);
        // A connection was closed, because its worker had no room for its face.
        report.add("router.connection-refused", self.faces.counts().refused_connections);
        // A face to a group, or to an interface or device, could not be made. The start or the log says why.
        report.add("router.link-face-failed", self.links.failures());
        PoolReport::of(&self.shared).add_refusals(&mut report);
        // A ping or traceroute of a host that `probes.refuse` names got no answer.
        report.add("router.probe-refused", self.probes.counts.refused);
        // A ping or traceroute of a host or user that asks more often than `probes.rate` got no answer.
        report.add("router.probe-too-many", self.probes.counts.too_many);
        // A frame that a capture had no room for. The packet itself went on.
        report.add("capture.frames-missed", self.captures.missed());
        // A line of the log that standard error did not take in time.
        report.add("log.lines-lost", self.log.map_or(0, |log| log.lines_lost()));
        report.add_all("state", self.held_answers.counts());
        // The file of commands that keys signed could not be written.
        report.add("state.commands-not-kept", self.journal.as_ref().map_or(0, |journal| journal.failures));
        report.add_all("websocket", self.websockets.counts());
        report.add_all("face-closed", self.faces.counts().by_reason.iter().map(|(reason, count)| (*reason, *count)));
        report.into_counters()
    }

    fn dropped_packets(&self) -> Vec<DroppedPacket> {
        let mut packets = self.shared.last_drops();
        packets.sort_by_key(|packet| packet.time_ms);
        packets.extend(self.faces.iter().flat_map(|(&face, record)| link_drops(face, &self.counted(face, record))));
        packets
    }

    fn cs_info(&self) -> CsInfo {
        let status = self.shared.total_status();
        CsInfo {
            capacity: self.cs.capacity(&self.shared.total_cs_report()).1,
            flags: flag(self.cs.settings().admit, cs_flags::ADMIT) | flag(self.cs.settings().serve, cs_flags::SERVE),
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
        let policy = report.policy.unwrap_or_else(|| CsPolicy::from(self.cs.settings().policy).name());
        let (capacity_bytes, _) = self.cs.capacity(&report);
        let by_policy = report.policies.into_iter().map(|CsPolicyCounts { policy, counts }| CsPolicyUsage {
            policy: policy.eviction.to_owned(),
            admission: policy.admission.to_owned(),
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
            policy: policy.eviction.to_owned(),
            admission: policy.admission.to_owned(),
            capacity_bytes,
            bytes: self.shared.total_status().cs_bytes,
            policy_bytes: report.policy_bytes,
            policies: by_policy.collect(),
            prefixes: by_prefix.collect(),
            prefix_lookup: report.prefix_lookup.name().to_owned(),
            prefix_index_bytes: report.prefix_index_bytes,
        }
    }

    fn worker_loads(&self) -> Vec<WorkerLoad> {
        let load = |number: usize| {
            let status = *self.shared.status(number as u8);
            let WorkerStatus { counters, busy_ns, polling, pit_entries, cs_entries, cs_bytes, crossed, .. } = status;
            WorkerLoad {
                number: number as u64,
                busy_ns,
                pit_entries,
                cs_entries,
                cs_bytes,
                packets: counters.packets(),
                satisfied: counters.satisfied + counters.fingerprints_satisfied,
                unsatisfied: counters.unsatisfied,
                cs_hits: counters.cs_hits,
                cs_misses: counters.cs_misses,
                polled_ns: polling.polled_ns,
                polls: polling.polls,
                polls_found: polling.polls_found,
                sleeps: polling.sleeps,
                poll_window_ns: polling.window_ns,
                crossed,
                is_io_thread: self.shared.is_io_thread(number as u8),
            }
        };
        (0..self.workers.len()).map(load).collect()
    }

    fn channels(&self) -> impl Iterator<Item = FaceUri> {
        self.listening.channels.iter().chain(self.websockets.channels()).cloned().chain(self.links.channels())
    }
}

impl Environment for Node {
    fn fill(&self, part: Part, state: &mut NodeState) {
        match part {
            Part::General => state.general = Some(self.forwarder_status()),
            Part::Faces => state.faces.iter_mut().for_each(|face| self.complete(face)),
            Part::Health => state.health = self.face_health(),
            Part::Channels => {
                state.channels = self.channels().map(|uri| ChannelStatus { local_uri: uri.to_string() }).collect();
            }
            Part::Strategies => {}
            Part::FibUsage => state.fib_usage = Some(self.fib_usage()),
            Part::Cs => state.cs = Some(self.cs_info()),
            Part::CsUsage => state.cs_usage = Some(self.cs_usage()),
            Part::Workers => state.workers = self.worker_loads(),
            Part::Drops => state.drops = self.drop_counters(),
            Part::Dropped => state.dropped = self.dropped_packets(),
            Part::Holders => state.holders = PoolReport::of(&self.shared).holdings(),
            Part::Privileges => state.privileges = Some(privileges::of_process()),
            Part::Settings => state.settings = self.settings_with(state.strategies.iter().cloned()),
        }
    }

    fn resolve_cs_policy(&self, text: &str) -> Result<String, String> {
        parse_policy(text, self.cs.settings().policy).map(policy_text).map_err(|error| error.to_string())
    }

    fn tag_plane(&mut self) -> Option<&mut dyn TagPlane> {
        self.tags.as_mut().map(|tags| tags as &mut dyn TagPlane)
    }

    fn capture_plane(&mut self) -> Option<&mut dyn CapturePlane> {
        Some(self)
    }

    fn process_plane(&mut self) -> Option<&mut dyn ProcessPlane> {
        Some(&mut self.process)
    }

    fn log_plane(&mut self) -> Option<&mut dyn LogPlane> {
        self.log.as_mut().map(|log| log as &mut dyn LogPlane)
    }
}

/// What the link of a face dropped so far. Links count, and do not look at names or clocks.
fn link_drops(face: FaceId, counted: &LinkCounters) -> impl Iterator<Item = DroppedPacket> + use<> {
    LinkDrop::named(&counted.drops).filter(|(_, count)| *count > 0).map(move |(reason, count)| DroppedPacket {
        reason: format!("link.{reason}"),
        time_ms: 0,
        kind: PacketKind::Unknown,
        face: Some(face),
        name: None,
        is_name_cut: false,
        count,
    })
}
