//! The part of a node's settings that an engine needs.

use super::{Settings, choice::Choice};
use namewire_engine::{EngineConfig, Schedule};
use serde::{Deserialize, Serialize};

/// `[engine]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineSection {
    /// The order of the stages of a batch, and what they prefetch.
    pub schedule: Choice<Schedule>,
}

impl Settings {
    /// Tables and policies of the whole router, which its workers share.
    pub fn engine_config(&self) -> EngineConfig {
        let Settings { tables, cs, .. } = self;
        let (cs_capacity_bytes, cs_capacity_packets) = cs.capacity();
        let defaults = EngineConfig::default();
        EngineConfig {
            pit_capacity_entries: tables.pit_capacity,
            pit_role: self.pit.role(),
            face_share_percent: tables.pit_face_share,
            max_lifetime_ms: tables.max_lifetime.0.as_millis() as u64,
            record_capacity: defaults.record_capacity.max(tables.pit_capacity),
            interest_overflow_bytes: tables.interest_overflow.0,
            cs_capacity_bytes,
            cs_capacity_packets,
            cs_policy: cs.policy().into(),
            cs_prefix_lookup: cs.prefix_lookup.0,
            cs_counted_prefixes: cs.counted_prefixes(),
            cs_admit: cs.admit,
            cs_serve: cs.serve,
            dead_nonce_capacity: tables.dead_nonces as usize,
            measurement_capacity: tables.measurement_capacity,
            flow_cache: tables.flow_cache,
            unsolicited: cs.unsolicited.0,
            data_from: tables.data_from.0,
            answers_probes: self.probes.answer.0,
            region_names: tables.regions.iter().map(|region| region.0.clone()).collect(),
            pages: tables.pages.0,
            schedule: self.engine.schedule.0,
            ..defaults
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{from_toml, needs_restart};
    use namewire_designs::{
        fib::{FibPrefetch, catalogue::FibDesign},
        policies::catalogue::{AdmissionName, EvictionName, PolicyChoice},
    };
    use namewire_engine::{CoreConfig, PitRole};
    use namewire_tables::fingerprint_pit::{FaceList, FingerprintPitConfig};

    #[test]
    fn default_settings_are_the_engines() {
        assert_eq!(format!("{:?}", Settings::default().engine_config()), format!("{:?}", EngineConfig::default()));
    }

    #[test]
    fn a_cache_asked_for_in_bytes_has_no_limit_of_packets() {
        let capacity = |text: &str| from_toml(text).unwrap().cs.capacity();
        assert_eq!(capacity(""), (64 << 20, 65_536));
        assert_eq!(capacity("[cs]\ncapacity = \"1 MiB\""), (1 << 20, u64::MAX));
        assert_eq!(capacity("[cs]\ncapacity = \"1 MiB\"\npackets = 7"), (1 << 20, 7));
        assert_eq!(capacity("[cs]\npackets = 7"), (64 << 20, 7));
    }

    #[test]
    fn tables_are_as_large_as_they_are_said_to_be() {
        let text = "[tables]\npit_capacity = 11\npit_face_share = 60\nfib_capacity = 12\ndead_nonces = 13\n\
                    measurement_capacity = 14\nflow_cache = 0";
        let settings = from_toml(text).unwrap();
        let engine = settings.engine_config();
        assert_eq!((engine.pit_capacity_entries, settings.tables.fib_capacity), (11, 12));
        assert_eq!(engine.face_share_percent, 60);
        assert_eq!((engine.dead_nonce_capacity, engine.measurement_capacity, engine.flow_cache), (13, 14, 0));
        for (beyond, range) in [
            ("measurement_capacity = 0", "1 to 4194304"),
            ("measurement_capacity = 4194305", "1 to 4194304"),
            ("flow_cache = 1048577", "0 to 1048576"),
        ] {
            let error = from_toml(&format!("[tables]\n{beyond}")).unwrap_err().to_string();
            assert!(error.contains("line 2") && error.contains(&format!("not from {range}")), "{error}");
        }
    }

    #[test]
    fn a_batch_follows_the_schedule_that_is_asked_for() {
        for schedule in Schedule::ALL {
            let text = format!("[engine]\nschedule = \"{}\"", schedule.name());
            let settings = from_toml(&text).unwrap();
            assert_eq!(settings.engine_config().schedule, schedule);
        }
        let naive = from_toml("[engine]\nschedule = \"naive\"").unwrap();
        assert_eq!(needs_restart(&Settings::default(), &naive), ["engine.schedule"]);
        let error = from_toml("[engine]\nschedule = \"shlt\"").unwrap_err().to_string();
        assert_eq!(error, "line 2: engine.schedule: unknown value \"shlt\"; did you mean \"shtl\"?");
    }

    #[test]
    fn pending_interests_are_kept_as_the_role_says() {
        assert_eq!(from_toml("[pit]\nnames_up_to = 7").unwrap().engine_config().pit_role, PitRole::Edge);
        let text = "[pit]\nrole = \"core\"\nfingerprints = 3000\noverflow = 10\nfaces = \"sets\"\n\
                    face_sets = 500\nnames_up_to = 100\nexpiry_round_trips = 3\nsubtables = 4\nsegments = 2\n\
                    fingerprint_bits = 12\naggregate = true";
        let settings = from_toml(text).unwrap();
        let PitRole::Core(core) = settings.engine_config().pit_role else { panic!("an edge") };
        let fingerprints = FingerprintPitConfig {
            subtables: 4,
            segments: 2,
            fingerprint_bits: 12,
            overflow_entries: 10,
            faces: FaceList::Sets { max_sets: 500 },
            ..FingerprintPitConfig::new(3000)
        };
        let expected = CoreConfig { fingerprints, names_up_to: 100, aggregate: true, expiry_round_trips: Some(3) };
        assert_eq!(core, expected);
        assert!(needs_restart(&Settings::default(), &settings).contains(&"pit.role".to_owned()));
        for (wrong, what) in [
            ("role = \"coer\"", "line 2: pit.role: unknown value \"coer\"; did you mean \"core\"?"),
            ("subtables = 3", "line 2: pit.subtables: 3 is neither 2 nor 4"),
            ("fingerprint_bits = 17", "line 2: pit.fingerprint_bits: 17 is not from 1 to 16"),
            ("fingerprints = 63", "line 2: pit.fingerprints: 63 is not from 64 to 268435456"),
            ("expiry_round_trips = 0", "line 2: pit.expiry_round_trips: 0 is not from 1 to 100"),
            ("face_sets = 0", "line 2: pit.face_sets: 0 is not from 1 to 65535"),
            ("segments = 17", "line 2: pit.segments: 17 is not from 1 to 16"),
        ] {
            assert_eq!(from_toml(&format!("[pit]\n{wrong}")).unwrap_err().to_string(), what);
        }
    }

    #[test]
    fn the_content_store_has_the_policy_that_is_asked_for() {
        let text = "[cs]\npolicy = \"priority-fifo\"\nadmission = \"filter\"\nfilter_history = 100\n\
                    filter_counters = 1024\nfilter_threshold = 3\nfilter_counters_per_name = 1\ncount = [\"/a\", \"/b/c\"]\n\
                    tiny_lfu_window = 5000\nw_tiny_lfu_window = 20\nrequest_count_least = 4";
        let settings = from_toml(text).unwrap();
        let PolicyChoice { eviction, admission, options } = settings.cs.policy();
        assert_eq!((eviction, admission), (EvictionName::PriorityFifo, AdmissionName::Filter));
        let filter = options.filter;
        assert_eq!((filter.history, filter.counters_log2, filter.threshold), (Some(100), Some(10), Some(3)));
        assert_eq!(filter.counters_per_name, Some(1));
        assert_eq!((options.tiny_lfu.window, options.request_count.least), (Some(5000), Some(4)));
        assert_eq!(options.w_tiny_lfu.window_percent, Some(20));
        assert_eq!(settings.engine_config().cs_counted_prefixes.len(), 2);
        for eviction in EvictionName::ALL {
            for admission in AdmissionName::ALL {
                let (policy, admitted) = (eviction.name(), admission.name());
                let settings = from_toml(&format!("[cs]\npolicy = \"{policy}\"\nadmission = \"{admitted}\"")).unwrap();
                assert_eq!((settings.cs.policy.0, settings.cs.admission.0), (eviction, admission));
            }
        }
        let many = format!("[cs]\ncount = {:?}", (0..65).map(|number| format!("/{number}")).collect::<Vec<_>>());
        for (text, what) in [
            ("[cs]\nprefix_lookup = \"al\"", "line 2: cs.prefix_lookup: unknown value \"al\"; did you mean \"all\"?"),
            ("[cs]\nadmission = \"filer\"", "line 2: cs.admission: unknown value \"filer\"; did you mean \"filter\"?"),
            ("[cs]\nfilter_threshold = 0", "line 2: cs.filter_threshold: 0 is not from 1 to 65535"),
            ("[cs]\nfilter_counters_per_name = 3", "line 2: cs.filter_counters_per_name: 3 is not from 1 to 2"),
            ("[cs]\nfilter_history = 0", "line 2: cs.filter_history: 0 is not from 1 to 1073741824"),
            ("[cs]\nfilter_counters = 8", "line 2: cs.filter_counters: 8 is not from 32 to 134217728"),
            ("[cs]\ntiny_lfu_window = 0", "line 2: cs.tiny_lfu_window: 0 is not from 1 to 4294967295"),
            ("[cs]\nw_tiny_lfu_window = 101", "line 2: cs.w_tiny_lfu_window: 101 is not from 1 to 100"),
            ("[cs]\nrequest_count_least = 2000", "line 2: cs.request_count_least: 2000 is not from 1 to 1024"),
            ("[cs]\nfilter_counters = 1000", "line 2: cs.filter_counters: 1000 is not a power of two"),
            (&many, "line 2: cs.count: 65 prefixes are more than 64"),
        ] {
            assert_eq!(from_toml(text).unwrap_err().to_string(), what);
        }
    }

    #[test]
    fn the_fib_is_of_the_design_that_is_asked_for() {
        let text = "[fib]\ndesign = \"npt\"\nprefetch = \"none\"";
        let settings = from_toml(text).unwrap();
        assert_eq!((settings.fib.design.0, settings.fib.options().prefetch), (FibDesign::Npt, Some(FibPrefetch::None)));
        assert_eq!(needs_restart(&Settings::default(), &settings), ["fib.design", "fib.prefetch"]);
        for (text, what) in [
            (
                "[fib]\ndesign = \"component-tree\"",
                "line 2: fib.design: unknown value \"component-tree\"; did you mean \"component-trie\"?",
            ),
            (
                "[fib]\ndesign = \"marker-filter\"",
                "line 2: fib.design: the FIB design marker-filter was dropped; its successor is one-bucket",
            ),
            ("[fib]\ndesing = \"npt\"", "line 2: unknown key \"desing\"; did you mean \"design\"?"),
            (
                "[fib]\ndesign = \"binary\"\nstring_matching = \"allways\"",
                "line 3: fib.string_matching: unknown value \"allways\"; did you mean \"always\"?",
            ),
            (
                "[fib]\ndesign = \"npt\"\nprefetch = \"first\"",
                "[fib]: the FIB design npt knows no prefetch = \"first\"",
            ),
        ] {
            assert_eq!(from_toml(text).unwrap_err().to_string(), what);
        }
        let pulled = from_toml("[fib]\ndesign = \"binary\"\nhash = \"city\"\nlevel_pulling = 16").unwrap().fib;
        assert_eq!(pulled.options().level_pulling.map(u32::from), Some(16));
        assert_eq!(from_toml("[fib]\ndesign = \"nametrie\"").unwrap().fib.design.0, FibDesign::NameTrie);
        for design in FibDesign::ALL {
            let settings = from_toml(&format!("[fib]\ndesign = \"{}\"", design.name())).unwrap();
            assert_eq!(settings.fib.design.0, design);
        }
    }
}
