//! Copies of everything that the node shows (`namewire-observe`), made on the control thread.
//!
//! Cost: some microseconds, one more for each face and route, and ten for each application (its name in /proc). The
//! observer asks at most four times a second, and only while somebody looks.
//!
//! Limits: [`ROUTES_MAX`] routes and [`FACES_MAX`] faces, and [`STRATEGIES_MAX`] strategies among the settings; the
//! rest is left out.

use super::{Control, faces::FaceRecord, node::Node};
use crate::{
    answer_times::{AnswerTimes, answered},
    pool_report::PoolReport,
    privileges,
};
use namewire_configuration::text::Origin;
use namewire_engine::{UPSTREAM_BUCKETS_NS, UpstreamTime};
use namewire_faces::LinkDrop;
use namewire_management::Environment;
use namewire_node_model::counters::is_event;
use namewire_observe::{
    snapshot::{
        Answers, ContentPrefix, ContentStore, DropCount, Face, Fib, LastDrop, NextHop, Pit, Pool, Privileges, Route,
        Snapshot, StrategyChoice, Worker,
    },
    source::SettingsInForce,
};
use namewire_packet::FaceId;
use namewire_worker::unix_ms;
use std::collections::BTreeMap;

/// Routes and faces of a copy.
const ROUTES_MAX: usize = 20_000;
const FACES_MAX: usize = 20_000;
/// Strategies among the settings of a copy.
const STRATEGIES_MAX: usize = 1000;

impl Control {
    pub(super) fn snapshot(&self) -> Snapshot {
        let (node, status) = (&self.node, self.node.forwarder_status());
        let counters = node.drop_counters().into_iter();
        let counters = counters.map(|drop| DropCount { reason: drop.reason, count: drop.count });
        let (events, drops) = counters.partition(|counter| is_event(&counter.reason));
        Snapshot {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            start_unix_ms: status.start_timestamp_ms,
            now_unix_ms: unix_ms(),
            workers: node.workers_shown(),
            faces: node.faces_shown(),
            routes: self.routes_shown(),
            drops,
            events,
            last_drops: node.last_drops_shown(),
            pools: node.pools_shown(),
            cs: node.content_store_shown(),
            fib: self.fib_shown(),
            privileges: privileges_shown(),
            pit: Pit { entries: status.n_pit_entries, capacity_entries: node.pit_capacity_entries },
            strategies: self
                .management
                .strategies()
                .dataset()
                .map(|choice| StrategyChoice { prefix: choice.name.to_string(), strategy: choice.strategy.to_string() })
                .collect(),
            ..Snapshot::default()
        }
    }

    /// What `namewire config show --running` prints, but for strategies above the limit.
    pub(super) fn settings_shown(&self) -> SettingsInForce {
        let strategies = self.management.strategies();
        let settings = self.node.settings_with(strategies.dataset().take(STRATEGIES_MAX));
        SettingsInForce {
            settings: settings.iter().filter_map(|setting| serde_json::to_value(setting).ok()).collect(),
            left_out: strategies.len().saturating_sub(STRATEGIES_MAX) as u64,
        }
    }

    fn routes_shown(&self) -> Vec<Route> {
        let now_ns = self.node.shared.now_ns();
        let entries = self.management.rib().dataset(now_ns).take(ROUTES_MAX);
        let routes = entries.map(|entry| {
            let mut next_hops: Vec<NextHop> = entry
                .routes
                .iter()
                .map(|route| NextHop {
                    face: route.face_id.0,
                    cost: route.cost,
                    origin: Origin(route.origin).to_string(),
                })
                .collect();
            next_hops.sort_by_key(|hop| hop.cost);
            Route { prefix: entry.name.to_string(), next_hops }
        });
        routes.collect()
    }

    fn fib_shown(&self) -> Fib {
        let usage = self.node.fib_usage();
        Fib {
            design: usage.design,
            entries: self.management.fib_entries() as u64,
            bytes: usage.bytes,
            capacity_entries: usage.capacity_entries,
        }
    }
}

/// The name of a process and its number. The process may have ended, or be hidden from us.
fn process_shown(pid: i32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    match name.trim_end() {
        "" => format!("process {pid}"),
        name => format!("{name} ({pid})"),
    }
}

fn privileges_shown() -> Privileges {
    let of = privileges::of_process();
    Privileges {
        user: of.user,
        capabilities: of.capabilities.split_whitespace().map(str::to_owned).collect(),
        no_new_privileges: of.no_new_privileges,
    }
}

impl Node {
    fn workers_shown(&self) -> Vec<Worker> {
        let shown = (0..self.workers.len()).map(|number| {
            let status = self.shared.status(number as u8);
            let counters = &status.counters;
            Worker {
                number: number as u64,
                busy_ratio: None, // the source knows two moments
                pit_entries: status.pit_entries,
                cs_entries: status.cs_entries,
                cs_bytes: status.cs_bytes,
                packets: counters.packets(),
                satisfied: counters.satisfied + counters.fingerprints_satisfied,
                unsatisfied: counters.unsatisfied,
                cs_hits: counters.cs_hits,
                cs_misses: counters.cs_misses,
            }
        });
        shown.collect()
    }

    fn faces_shown(&self) -> Vec<Face> {
        let times = AnswerTimes::of(&self.shared);
        let faces = self.faces.iter().take(FACES_MAX);
        faces.map(|(face, record)| self.face_shown(*face, record, &times)).collect()
    }

    fn face_shown(&self, face: FaceId, record: &FaceRecord, times: &AnswerTimes) -> Face {
        let info = &record.info;
        let time = times.get(face).copied().unwrap_or_default();
        let heard_ns = record.counters.last_received_ns.load(std::sync::atomic::Ordering::Relaxed);
        Face {
            id: face.0,
            remote: info.remote.to_string(),
            process: info.credentials.as_ref().map(|peer| process_shown(peer.pid)),
            local: info.local.to_string(),
            scope: info.scope.to_string(),
            persistency: info.persistency.to_string(),
            link_type: info.link_type.to_string(),
            mtu: info.mtu as u64,
            state: self.state_shown(face).to_owned(),
            since_unix_ms: Some(record.since_unix_ms),
            counters: self.face_counters(face),
            drops: LinkDrop::named(&record.counters.snapshot().drops)
                .filter(|(_, count)| *count > 0)
                .map(|(reason, count)| DropCount { reason: reason.to_owned(), count })
                .collect(),
            port: self.port_of(&info.local),
            rtt_ms: (time.last_ns > 0).then_some(time.last_ns as f64 / 1e6),
            loss: loss(&time),
            answers: answers(&time),
            idle_ms: (heard_ns > 0).then(|| self.shared.now_ns().saturating_sub(heard_ns) / 1_000_000),
        }
    }

    fn state_shown(&self, face: FaceId) -> &'static str {
        match self.recent.of(face) {
            _ if self.faces.is_down(face) => "down",
            Some(recent) if recent.is_degraded() => "degraded",
            _ => "up",
        }
    }

    fn last_drops_shown(&self) -> Vec<LastDrop> {
        let packets = self.dropped_packets().into_iter().filter(|packet| packet.time_ms > 0); // links note no time
        let shown = packets.map(|packet| LastDrop {
            time_unix_ms: packet.time_ms,
            reason: packet.reason,
            packet: packet.kind.to_string(),
            face: packet.face.map(|face| face.0),
            name: packet.name.map(|name| format!("{name}{}", if packet.is_name_cut { "/…" } else { "" })),
        });
        shown.collect()
    }

    fn pools_shown(&self) -> Vec<Pool> {
        let mut pools: BTreeMap<String, Pool> = BTreeMap::new();
        for holding in PoolReport::of(&self.shared).holdings() {
            let pool =
                pools.entry(holding.pool.clone()).or_insert_with(|| Pool { name: holding.pool, ..Pool::default() });
            match holding.holder {
                None => (pool.used, pool.capacity, pool.refused) = (holding.held, holding.capacity, holding.refused),
                Some(_) => pool.holders += u64::from(holding.held > 0),
            }
        }
        pools.into_values().collect()
    }

    fn content_store_shown(&self) -> ContentStore {
        let (info, usage) = (self.cs_info(), self.cs_usage());
        let prefixes = usage.prefixes.into_iter().map(|prefix| ContentPrefix {
            prefix: prefix.prefix.to_string(),
            hits: prefix.hits,
            misses: prefix.misses,
            insertions: prefix.insertions,
        });
        ContentStore {
            policy: usage.policy,
            admission: usage.admission,
            entries: info.n_cs_entries,
            bytes: usage.bytes,
            capacity_bytes: usage.capacity_bytes,
            hits: info.n_hits,
            misses: info.n_misses,
            prefixes: prefixes.collect(),
        }
    }
}

/// The share of Interests that expired; `None` if none was sent.
fn loss(time: &UpstreamTime) -> Option<f64> {
    let all = answered(time) + time.unanswered;
    (all > 0).then(|| time.unanswered as f64 / all as f64)
}

fn answers(time: &UpstreamTime) -> Option<Answers> {
    let is_measured = answered(time) + time.unanswered > 0;
    let bounds_s = UPSTREAM_BUCKETS_NS.iter().map(|bound_ns| *bound_ns as f64 / 1e9);
    is_measured.then(|| Answers {
        buckets: bounds_s.zip(time.answered).collect(),
        slower: time.answered[UPSTREAM_BUCKETS_NS.len()],
        sum_s: time.answered_ns as f64 / 1e9,
        unanswered: time.unanswered,
    })
}
