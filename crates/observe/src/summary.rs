//! The summary of this router, for views of several: `/summary.json`.

use namewire_network::summary::{Dropped, Drops, FaceSummary, Rates, Summary, Traffic};

use crate::snapshot::{Face, LastDrop, Snapshot};

/// What the router says of itself in short. `instance` is that of this start.
pub(crate) fn of(snapshot: &Snapshot, instance: &str) -> Summary {
    let busy = snapshot.workers.iter().filter_map(|worker| worker.busy_ratio);
    let sum = |of: fn(&namewire_packet::nfd::WorkerLoad) -> u64| -> u64 {
        snapshot.workers.iter().map(|worker| of(&worker.load)).sum()
    };
    let drops = snapshot.drops.iter().filter(|drop| drop.count > 0);
    Summary {
        instance: instance.to_owned(),
        version: snapshot.version.clone(),
        host: snapshot.host.clone(),
        start_unix_ms: snapshot.start_unix_ms,
        now_unix_ms: snapshot.now_unix_ms,
        faces: snapshot.faces.iter().map(face).collect(),
        face_count: snapshot.faces.len() as u64,
        pit_entries: snapshot.pit.entries,
        pit_capacity: snapshot.pit.capacity_entries,
        fib_entries: snapshot.fib.entries,
        cs_hits: sum(|load| load.cs_hits),
        cs_misses: sum(|load| load.cs_misses),
        busiest_worker: busy.reduce(f64::max),
        drops: drops.map(|drop| Drops { reason: drop.reason.clone(), count: drop.count }).collect(),
        last_drops: snapshot.last_drops.iter().map(dropped).collect(),
        ..Summary::default()
    }
    .bounded()
}

fn face(face: &Face) -> FaceSummary {
    let Face { about, counters, .. } = face;
    let rates = face.recent.map(|recent| recent.rates());
    FaceSummary {
        id: about.id,
        remote: about.remote.clone(),
        local: about.local.clone(),
        is_local: about.scope == "local",
        has_several_peers: about.link_type == "multi-access",
        process: about.process.clone(),
        state: about.state.clone(),
        rtt_ms: about.rtt_ms,
        traffic: Traffic {
            in_packets: counters.packets.received(),
            in_bytes: counters.in_bytes,
            out_packets: counters.packets.sent(),
            out_bytes: counters.out_bytes,
        },
        rates: rates.map(|rates| Rates {
            in_packets_per_s: rates.in_packets_per_s,
            in_bits_per_s: rates.in_bits_per_s,
            out_packets_per_s: rates.out_packets_per_s,
            out_bits_per_s: rates.out_bits_per_s,
        }),
    }
}

fn dropped(drop: &LastDrop) -> Dropped {
    Dropped {
        time_unix_ms: drop.time_unix_ms,
        reason: drop.reason.clone(),
        packet: drop.packet.clone(),
        face: drop.face,
        name: drop.name.clone(),
    }
}
