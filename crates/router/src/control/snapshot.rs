//! Copies of everything that the node shows (`namewire-observe`), made on the control thread.
//!
//! Cost: some microseconds, one more for each face and route, and ten for each application (its name in /proc). The
//! observer asks at most four times a second, and only while a client asks.
//!
//! Limits: [`ROUTES_MAX`] routes and [`FACES_MAX`] faces, and [`STRATEGIES_MAX`] strategies among the settings; the
//! rest is left out.

use super::{Control, faces::FaceRecord, node::Node};
use namewire_configuration::text::Origin;
use namewire_engine::{UPSTREAM_BUCKETS_NS, UpstreamTime};
use namewire_faces::LinkDrop;
use namewire_node_model::counters::is_event;
use namewire_observe::{
    snapshot::{Answers, ContentStore, Face, FaceAbout, Fib, LastDrop, NextHop, Pit, Pool, Route, Snapshot, Worker},
    source::SettingsInForce,
};
use namewire_packet::{
    FaceId,
    nfd::{DropCounter, DroppedPacket, FaceHealth, FaceState, FaceStatus, NodeState, Part},
};
use namewire_worker::{
    answer_times::{AnswerTimes, answered},
    pool_report::PoolReport,
};
use std::{
    collections::{BTreeMap, HashMap},
    mem,
    sync::atomic::Ordering,
};

/// Routes and faces of a copy.
const ROUTES_MAX: usize = 20_000;
const FACES_MAX: usize = 20_000;
/// Strategies among the settings of a copy.
const STRATEGIES_MAX: usize = 1000;

/// What a copy is made of.
const PARTS: [Part; 11] = [
    Part::General,
    Part::Faces,
    Part::Health,
    Part::Strategies,
    Part::FibUsage,
    Part::Cs,
    Part::CsUsage,
    Part::Workers,
    Part::Drops,
    Part::Dropped,
    Part::Privileges,
];

impl Control {
    pub(super) fn snapshot(&self) -> Snapshot {
        let node = &self.node;
        let mut state = self.management.state(node.times(), &PARTS, node);
        let status = state.general.take().unwrap_or_default();
        let (events, drops) = mem::take(&mut state.drops).into_iter().partition(|counter| is_event(&counter.reason));
        Snapshot {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            start_unix_ms: status.start_timestamp_ms,
            now_unix_ms: status.current_timestamp_ms,
            faces: node.faces_shown(&state),
            workers: state.workers.into_iter().map(|load| Worker { load, ..Worker::default() }).collect(),
            routes: self.routes_shown(),
            drops,
            events,
            last_drops: state.dropped.into_iter().filter(|packet| !packet.is_of_link()).map(last_drop).collect(),
            pools: node.pools_shown(),
            cs: ContentStore { info: state.cs.unwrap_or_default(), usage: state.cs_usage.unwrap_or_default() },
            fib: Fib { entries: status.n_fib_entries, usage: state.fib_usage.unwrap_or_default() },
            privileges: state.privileges.unwrap_or_default(),
            pit: Pit { entries: status.n_pit_entries, capacity_entries: node.pit_capacity_entries },
            strategies: state.strategies,
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
}

/// The name of a process and its number. The process may have ended, or be hidden from us.
fn process_shown(pid: i32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    match name.trim_end() {
        "" => format!("process {pid}"),
        name => format!("{name} ({pid})"),
    }
}

fn last_drop(packet: DroppedPacket) -> LastDrop {
    LastDrop {
        time_unix_ms: packet.time_ms,
        reason: packet.reason,
        packet: packet.kind.to_string(),
        face: packet.face.map(|face| face.0),
        name: packet.name.map(|name| format!("{name}{}", if packet.is_name_cut { "/…" } else { "" })),
    }
}

impl Node {
    fn faces_shown(&self, state: &NodeState) -> Vec<Face> {
        let times = AnswerTimes::of(&self.shared);
        let health: HashMap<FaceId, &FaceHealth> = state.health.iter().map(|health| (health.face, health)).collect();
        let dynamic = state.faces.iter().filter_map(|status| Some((status, self.faces.get(status.face_id)?)));
        let shown = dynamic.take(FACES_MAX).map(|(status, record)| {
            let id = status.face_id;
            self.face_shown(status, record, health.get(&id).copied(), times.get(id))
        });
        shown.collect()
    }

    fn face_shown(
        &self,
        status: &FaceStatus,
        record: &FaceRecord,
        health: Option<&FaceHealth>,
        time: Option<&UpstreamTime>,
    ) -> Face {
        let heard_ns = record.counters.last_received_ns.load(Ordering::Relaxed);
        let about = FaceAbout {
            id: status.face_id.0,
            remote: status.uri.clone(),
            process: record.info.credentials.as_ref().map(|peer| process_shown(peer.pid)),
            local: status.local_uri.clone(),
            scope: status.face_scope.to_string(),
            persistency: status.face_persistency.to_string(),
            link_type: status.link_type.to_string(),
            mtu: status.mtu.unwrap_or_default(),
            state: FaceHealth::state_word(health, status.state.unwrap_or(FaceState::Up)).to_owned(),
            since_unix_ms: Some(record.since_unix_ms),
            drops: LinkDrop::named(&self.counted(status.face_id, record).drops)
                .filter(|(_, count)| *count > 0)
                .map(|(reason, count)| DropCounter { reason: reason.to_owned(), count })
                .collect(),
            port: status.port.clone(),
            rtt_ms: time.filter(|time| time.last_ns > 0).map(|time| time.last_ns as f64 / 1e6),
            loss: health.and_then(FaceHealth::loss),
            idle_ms: (heard_ns > 0).then(|| self.shared.now_ns().saturating_sub(heard_ns) / 1_000_000),
        };
        let recent = health.and_then(|health| health.recent);
        Face { about, counters: status.counters, link: status.link, answers: time.and_then(answers), recent }
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
