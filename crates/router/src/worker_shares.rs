//! The settings of each thread: a worker's share of every table, and the options of its sockets.

use crate::{cs_settings::share_of_policy, secrets::Secrets};
use namewire_configuration::Settings;
use namewire_engine::{EngineConfig, PitRole};
use namewire_faces::{DriverConfig, FaceIdAllocator, LinkPolicy};
use namewire_shares::HolderTable;
use namewire_worker::WorkersConfig;

/// What the workers are started with.
pub(crate) fn workers_config(
    settings: &Settings,
    secrets: &Secrets,
    holders: &HolderTable,
    face_ids: &FaceIdAllocator,
) -> WorkersConfig {
    WorkersConfig {
        engine: engine_share(settings),
        io_engine: settings.engine_config().without_names(),
        driver: driver_config(settings, holders, face_ids),
        busy_poll: settings.router.busy_poll.fixed(),
        pin: settings.router.pin.clone(),
        table_key: secrets.tables,
        seed: secrets.seed,
    }
}

/// The sockets of a worker.
fn driver_config(settings: &Settings, holders: &HolderTable, face_ids: &FaceIdAllocator) -> DriverConfig {
    let faces = &settings.faces;
    DriverConfig {
        udp_idle_timeout: faces.udp.idle_timeout.0,
        udp_mtu: faces.udp.mtu.0 as usize,
        first_packet_timeout: faces.tcp.first_packet_timeout.0,
        max_faces: faces.max_per_worker as usize,
        face_ids: face_ids.clone(),
        holders: holders.clone(),
        udp_offload: faces.udp.offload,
        link_policy: LinkPolicy { congestion_marking: faces.congestion_marking, ..LinkPolicy::default() },
        ..DriverConfig::default()
    }
}

/// One worker's share of the tables.
fn engine_share(settings: &Settings) -> EngineConfig {
    let (whole, workers) = (settings.engine_config(), u32::from(settings.router.workers));
    let share = |total: u64| total.div_ceil(workers.into());
    EngineConfig {
        pit_capacity_entries: whole.pit_capacity_entries.div_ceil(workers),
        pit_role: match &whole.pit_role {
            PitRole::Edge => PitRole::Edge,
            PitRole::Core(core) => PitRole::Core(core.share_of(workers)),
        },
        record_capacity: whole.record_capacity.div_ceil(workers),
        interest_overflow_bytes: share(whole.interest_overflow_bytes),
        cs_capacity_bytes: share(whole.cs_capacity_bytes),
        cs_capacity_packets: share(whole.cs_capacity_packets),
        cs_policy: share_of_policy(settings.cs.policy(), workers.into()).into(),
        measurement_capacity: whole.measurement_capacity.div_ceil(workers),
        dead_nonce_capacity: whole.dead_nonce_capacity.div_ceil(workers as usize),
        ..whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_has_its_share_of_every_table() {
        let toml = r#"
            router.workers = 3
            [tables]
            pit_capacity = 3_000
            dead_nonces = 100
            measurement_capacity = 31
            interest_overflow = "3 MiB"
            [pit]
            role = "core"
            fingerprints = 3_000
            overflow = 10
            names_up_to = 100
            [cs]
            capacity = "30 MiB"
            packets = 301
            admission = "filter"
            filter_history = 9_000
        "#;
        let settings: Settings = toml::from_str(toml).expect("a configuration");
        let share = engine_share(&settings);
        let of_whole = settings.engine_config();
        assert_eq!(share.pit_capacity_entries, 1_000);
        assert_eq!(share.dead_nonce_capacity, 34);
        assert_eq!(share.measurement_capacity, 11);
        assert_eq!(share.record_capacity, of_whole.record_capacity.div_ceil(3));
        assert_eq!((share.interest_overflow_bytes, share.cs_capacity_bytes), (1 << 20, 10 << 20));
        assert_eq!(share.cs_capacity_packets, 101);
        let PitRole::Core(core) = &share.pit_role else { panic!("{:?}", share.pit_role) };
        let fingerprints = &core.fingerprints;
        assert_eq!((fingerprints.capacity_entries, fingerprints.overflow_entries, core.names_up_to), (1_000, 4, 34));
        let filter_history = share_of_policy(settings.cs.policy(), 3).options.filter.history.map(u64::from);
        assert_eq!(filter_history, Some(3_000));
        assert_eq!(share.schedule, of_whole.schedule, "what is not a size stays");
    }
}
