//! From settings to a router, and which changes of settings a running one can take.

use super::settings::{DEFAULT_LISTENERS, Pages, Settings, Unsolicited};
use crate::{
    EthernetConfig, InterfaceFilter, InterfacePattern, RouterConfig, TlsFiles, UdpMulticastConfig, WebSocketConfig,
    WebSocketListener,
};
use namewire_engine::{EngineConfig, UnsolicitedPolicy};
use namewire_management::{ReadvertiseConfig, TrustConfig};
use namewire_packet::NameBuf;
use namewire_tables::PageSize;
use std::net::SocketAddr;

/// Keys (and all below them) that a running router takes over.
const LIVE: [&str; 20] = [
    "face",
    "route",
    "strategy",
    "trust",
    "state.file",
    "state.sync",
    "router.quiet",
    "cs.capacity",
    "cs.packets",
    "cs.admit",
    "cs.serve",
    "cs.policy",
    "cs.admission",
    "cs.filter_history",
    "cs.filter_counters",
    "cs.filter_threshold",
    "cs.tiny_lfu_window",
    "cs.w_tiny_lfu_window",
    "cs.request_count_least",
    "cs.count",
];

/// Addresses to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenAddresses {
    /// The addresses.
    pub addresses: Vec<SocketAddr>,
    /// Somebody asked for these very addresses. The default ones may fail, for example
    /// where there is no IPv6.
    pub is_explicit: bool,
}

impl ListenAddresses {
    fn of(is_enabled: bool, given: Option<&Vec<SocketAddr>>) -> Self {
        match given {
            _ if !is_enabled => ListenAddresses { addresses: Vec::new(), is_explicit: true },
            Some(addresses) => ListenAddresses { addresses: addresses.clone(), is_explicit: true },
            None => {
                let addresses = DEFAULT_LISTENERS.iter().filter_map(|text| text.parse().ok()).collect();
                ListenAddresses { addresses, is_explicit: false }
            }
        }
    }
}

impl Settings {
    /// Where to listen for datagrams.
    pub fn udp_listeners(&self) -> ListenAddresses {
        ListenAddresses::of(self.faces.udp.enabled, self.faces.udp.listen.as_ref())
    }

    /// Where to listen for TCP connections.
    pub fn tcp_listeners(&self) -> ListenAddresses {
        ListenAddresses::of(self.faces.tcp.enabled, self.faces.tcp.listen.as_ref())
    }

    /// The settings of a router, but for its Unix socket, of which its user finds out where it can
    /// be made, and for trust, whose files [`super::Loaded`] has read.
    pub fn router_config(&self) -> RouterConfig {
        let (router, tables, faces) = (&self.router, &self.tables, &self.faces);
        let (cs_capacity_bytes, cs_capacity_packets) = self.cs_capacity();
        RouterConfig {
            socket: None,
            tcp: self.tcp_listeners().addresses,
            udp: self.udp_listeners().addresses,
            outgoing_tcp: faces.tcp.outgoing,
            outgoing_udp: faces.udp.outgoing,
            websocket: self.websocket_config(),
            udp_multicast: self.multicast_config(),
            ethernet: self.ethernet_config(),
            workers: router.workers.into(),
            busy_poll: router.busy_poll.0,
            pin: router.pin.clone(),
            engine: EngineConfig {
                pit_capacity_entries: tables.pit_capacity,
                pit_role: self.pit.role(),
                face_share_percent: tables.pit_face_share,
                max_lifetime_ms: tables.max_lifetime.0.as_millis() as u64,
                record_capacity: EngineConfig::default().record_capacity.max(tables.pit_capacity),
                interest_overflow_bytes: tables.interest_overflow.0,
                cs_capacity_bytes,
                cs_capacity_packets,
                cs_policy: self.cs.policy(),
                cs_prefix_lookup: self.cs.prefix_lookup.0,
                cs_counted_prefixes: self.cs_counted_prefixes(),
                cs_admit: self.cs.admit,
                cs_serve: self.cs.serve,
                dead_nonce_capacity: tables.dead_nonces as usize,
                measurement_capacity: tables.measurement_capacity,
                unsolicited: match self.cs.unsolicited {
                    Unsolicited::DropAll => UnsolicitedPolicy::DropAll,
                    Unsolicited::AdmitLocal => UnsolicitedPolicy::AdmitLocal,
                    Unsolicited::AdmitNetwork => UnsolicitedPolicy::AdmitNetwork,
                    Unsolicited::AdmitAll => UnsolicitedPolicy::AdmitAll,
                },
                region_names: tables.regions.iter().map(|region| region.0.clone()).collect(),
                pages: match tables.pages {
                    Pages::Transparent => PageSize::Transparent,
                    Pages::Base => PageSize::Base,
                    Pages::Huge2MiB => PageSize::Huge2MiB,
                    Pages::Huge1GiB => PageSize::Huge1GiB,
                },
                ..EngineConfig::default()
            },
            fib_capacity_entries: tables.fib_capacity as usize,
            fib_design: self.fib.design.0,
            fib_options: self.fib.options(),
            readvertise: ReadvertiseConfig {
                nlsr: self.rib.readvertise_nlsr,
                origins: self.rib.readvertise_origins.iter().map(|origin| origin.0).collect(),
            },
            max_faces: faces.max_per_worker as usize,
            udp_idle_timeout: faces.udp.idle_timeout.0,
            udp_offload: faces.udp.offload,
            trust: TrustConfig::default(),
            congestion_marking: faces.congestion_marking,
            seed: router.seed,
        }
    }

    fn websocket_config(&self) -> WebSocketConfig {
        let section = &self.faces.websocket;
        let tls = section.certificate.clone().zip(section.key.clone());
        let tls = tls.map(|(certificate, key)| TlsFiles { certificate, key });
        let plain = section.listen.iter().map(|&address| WebSocketListener { address, tls: None });
        let secure = section.listen_tls.iter().map(|&address| WebSocketListener { address, tls: tls.clone() });
        WebSocketConfig {
            listeners: plain.chain(secure).filter(|_| section.enabled).collect(),
            trusted_certificates: section.trusted_certificates.clone(),
        }
    }

    fn multicast_config(&self) -> UdpMulticastConfig {
        let section = &self.faces.multicast;
        UdpMulticastConfig {
            group4: (section.enabled && section.ipv4).then_some(section.group_v4),
            group6: (section.enabled && section.ipv6).then_some(section.group_v6),
            ad_hoc: section.ad_hoc,
            interfaces: filter(&section.interfaces, &section.except),
        }
    }

    fn ethernet_config(&self) -> EthernetConfig {
        let section = &self.faces.ethernet;
        EthernetConfig {
            listen: section.listen,
            group: section.multicast.then_some(section.group.0),
            ad_hoc: section.ad_hoc,
            interfaces: filter(&section.interfaces, &section.except),
        }
    }

    /// Prefixes whose look-ups in the Content Store are counted.
    pub fn cs_counted_prefixes(&self) -> Vec<NameBuf> {
        self.cs.count.iter().map(|prefix| prefix.0.clone()).collect()
    }

    /// Octets and packets that the Content Store may hold.
    pub fn cs_capacity(&self) -> (u64, u64) {
        let defaults = EngineConfig::default();
        let octets = self.cs.capacity.map_or(defaults.cs_capacity_bytes, |octets| octets.0);
        // Asked for in octets alone, the store is not to stop at the default number of packets.
        let packets_default = if self.cs.capacity.is_some() { u64::MAX } else { defaults.cs_capacity_packets };
        (octets, self.cs.packets.unwrap_or(packets_default))
    }
}

fn filter(allow: &[InterfacePattern], deny: &[InterfacePattern]) -> InterfaceFilter {
    InterfaceFilter { allow: allow.to_vec(), deny: deny.to_vec() }
}

/// The keys in which two settings differ and which a running router cannot take over.
pub fn needs_restart(old: &Settings, new: &Settings) -> Vec<String> {
    // Whatever a file or an option can say has a TOML form.
    let (old, new) = (toml::Value::try_from(old).ok(), toml::Value::try_from(new).ok());
    let mut keys = Vec::new();
    compare("", old.as_ref(), new.as_ref(), &mut keys);
    keys
}

fn compare(path: &str, old: Option<&toml::Value>, new: Option<&toml::Value>, keys: &mut Vec<String>) {
    if old == new || LIVE.contains(&path) {
        return;
    }
    let empty = toml::Table::new();
    let ((Some(toml::Value::Table(_)), _) | (_, Some(toml::Value::Table(_)))) = (old, new) else {
        keys.push(path.to_owned());
        return;
    };
    let table = |value: Option<&'_ toml::Value>| value.and_then(toml::Value::as_table).cloned();
    let (old, new) = (table(old).unwrap_or(empty.clone()), table(new).unwrap_or(empty));
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        compare(&path, old.get(name), new.get(name), keys);
    }
}

#[cfg(test)]
mod tests {
    use super::{super::from_toml, *};
    use namewire_engine::{CoreConfig, PitRole};
    use namewire_tables::{
        AdmissionName, CsPolicy, EvictionName,
        fib::designs::{FibPrefetch, catalogue::FibDesign},
        fingerprint_pit::{FaceList, FingerprintPitConfig},
    };

    /// The defaults of a file are those of the library, said once each.
    #[test]
    fn default_settings_make_a_default_router() {
        let made = Settings::default().router_config();
        let mut expected = RouterConfig::default();
        let listeners: Vec<SocketAddr> = DEFAULT_LISTENERS.map(|text| text.parse().unwrap()).to_vec();
        (expected.tcp, expected.udp) = (listeners.clone(), listeners);
        assert_eq!(format!("{made:?}"), format!("{expected:?}"));
    }

    #[test]
    fn a_cache_asked_for_in_octets_has_no_limit_of_packets() {
        let capacity = |text: &str| from_toml(text).unwrap().cs_capacity();
        assert_eq!(capacity(""), (64 << 20, 65_536));
        assert_eq!(capacity("[cs]\ncapacity = \"1 MiB\""), (1 << 20, u64::MAX));
        assert_eq!(capacity("[cs]\ncapacity = \"1 MiB\"\npackets = 7"), (1 << 20, 7));
        assert_eq!(capacity("[cs]\npackets = 7"), (64 << 20, 7));
    }

    #[test]
    fn tables_are_as_large_as_they_are_said_to_be() {
        let text = "[tables]\npit_capacity = 11\npit_face_share = 60\nfib_capacity = 12\ndead_nonces = 13\nmeasurement_capacity = 14";
        let config = from_toml(text).unwrap().router_config();
        let engine = config.engine;
        assert_eq!((engine.pit_capacity_entries, config.fib_capacity_entries), (11, 12));
        assert_eq!(engine.face_share_percent, 60);
        assert_eq!((engine.dead_nonce_capacity, engine.measurement_capacity), (13, 14));
        for beyond in ["measurement_capacity = 0", "measurement_capacity = 4194305"] {
            let error = from_toml(&format!("[tables]\n{beyond}")).unwrap_err().to_string();
            assert!(error.contains("line 2") && error.contains("not from 1 to 4194304"), "{error}");
        }
    }

    #[test]
    fn pending_interests_are_kept_as_the_role_says() {
        assert_eq!(from_toml("[pit]\nnames_up_to = 7").unwrap().router_config().engine.pit_role, PitRole::Edge);
        let text = "[router]\nworkers = 3\n[pit]\nrole = \"core\"\nfingerprints = 3000\noverflow = 10\nfaces = \"sets\"\n\
                    face_sets = 500\nnames_up_to = 100\nexpiry_round_trips = 3\nsubtables = 4\nsegments = 2\n\
                    fingerprint_bits = 12\naggregate = true";
        let settings = from_toml(text).unwrap();
        let PitRole::Core(core) = settings.router_config().engine_per_worker().pit_role else { panic!("an edge") };
        let fingerprints = FingerprintPitConfig {
            subtables: 4,
            segments: 2,
            fingerprint_bits: 12,
            overflow_entries: 4,
            faces: FaceList::Sets { max_sets: 500 },
            ..FingerprintPitConfig::new(1000)
        };
        let expected = CoreConfig { fingerprints, names_up_to: 34, aggregate: true, expiry_round_trips: Some(3) };
        assert_eq!(core, expected);
        assert!(needs_restart(&Settings::default(), &settings).contains(&"pit.role".to_owned()));
        for (wrong, what) in [
            ("role = \"coer\"", "line 2: unknown value \"coer\"; did you mean \"core\"?"),
            ("subtables = 3", "line 2: 3 is neither 2 nor 4"),
            ("fingerprint_bits = 17", "line 2: 17 is not from 1 to 16"),
            ("fingerprints = 63", "line 2: 63 is not from 64 to 268435456"),
            ("expiry_round_trips = 0", "line 2: 0 is not from 1 to 100"),
            ("face_sets = 0", "line 2: 0 is not from 1 to 65535"),
            ("segments = 17", "line 2: 17 is not from 1 to 16"),
        ] {
            assert_eq!(from_toml(&format!("[pit]\n{wrong}")).unwrap_err().to_string(), what);
        }
    }

    #[test]
    fn the_content_store_has_the_policy_that_is_asked_for() {
        let text = "[cs]\npolicy = \"priority-fifo\"\nadmission = \"filter\"\nfilter_history = 100\n\
                    filter_counters = 1024\nfilter_threshold = 3\ncount = [\"/a\", \"/b/c\"]\n\
                    tiny_lfu_window = 5000\nw_tiny_lfu_window = 20\nrequest_count_least = 4";
        let engine = from_toml(text).unwrap().router_config().engine;
        let CsPolicy { eviction, admission, options } = engine.cs_policy;
        assert_eq!((eviction, admission), (EvictionName::PriorityFifo, AdmissionName::Filter));
        let filter = options.filter;
        assert_eq!((filter.history, filter.counters_log2, filter.threshold), (Some(100), Some(10), Some(3)));
        assert_eq!((options.tiny_lfu.window, options.request_count.least), (Some(5000), Some(4)));
        assert_eq!(options.w_tiny_lfu.window_percent, Some(20));
        assert_eq!(engine.cs_counted_prefixes.len(), 2);
        for eviction in EvictionName::ALL {
            for admission in AdmissionName::ALL {
                let (policy, admitted) = (eviction.as_str(), admission.as_str());
                let settings = from_toml(&format!("[cs]\npolicy = \"{policy}\"\nadmission = \"{admitted}\"")).unwrap();
                assert_eq!((settings.cs.policy.0, settings.cs.admission.0), (*eviction, *admission));
            }
        }
        let many = format!("[cs]\ncount = {:?}", (0..65).map(|number| format!("/{number}")).collect::<Vec<_>>());
        for (text, what) in [
            ("[cs]\nprefix_lookup = \"al\"", "line 2: unknown value \"al\"; did you mean \"all\"?"),
            ("[cs]\nadmission = \"filer\"", "line 2: unknown value \"filer\"; did you mean \"filter\"?"),
            ("[cs]\nfilter_threshold = 0", "line 2: 0 is not from 1 to 65535"),
            ("[cs]\nfilter_history = 0", "line 2: 0 is not from 1 to 1073741824"),
            ("[cs]\nfilter_counters = 8", "line 2: 8 is not from 32 to 134217728"),
            ("[cs]\ntiny_lfu_window = 0", "line 2: 0 is not from 1 to 4294967295"),
            ("[cs]\nw_tiny_lfu_window = 101", "line 2: 101 is not from 1 to 100"),
            ("[cs]\nrequest_count_least = 2000", "line 2: 2000 is not from 1 to 1024"),
            ("[cs]\nfilter_counters = 1000", "line 2: 1000 is not a power of two"),
            (&many, "line 2: 65 prefixes are more than 64"),
        ] {
            assert_eq!(from_toml(text).unwrap_err().to_string(), what);
        }
    }

    #[test]
    fn the_fib_is_of_the_design_that_is_asked_for() {
        let text = "[fib]\ndesign = \"npt\"\nprefetch = \"none\"";
        let settings = from_toml(text).unwrap();
        let config = settings.router_config();
        assert_eq!((config.fib_design, config.fib_options.prefetch), (FibDesign::Npt, Some(FibPrefetch::None)));
        assert_eq!(needs_restart(&Settings::default(), &settings), ["fib.design", "fib.prefetch"]);
        for (text, what) in [
            (
                "[fib]\ndesign = \"component-tree\"",
                "line 2: unknown value \"component-tree\"; did you mean \"component-trie\"?",
            ),
            ("[fib]\ndesing = \"npt\"", "line 2: unknown key \"desing\"; did you mean \"design\"?"),
            (
                "[fib]\ndesign = \"binary\"\nstring_matching = \"allways\"",
                "line 3: unknown value \"allways\"; did you mean \"always\"?",
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

    #[test]
    fn what_cannot_change_in_a_running_router_is_named() {
        let old = Settings::default();
        let new = "[router]\nworkers = 2\nquiet = true\n[cs]\ncapacity = 1000\npolicy = \"fifo\"\n\
                   admission = \"filter\"\nfilter_threshold = 3\ncount = [\"/a\"]\nunsolicited = \"admit-all\"\n\
                   prefix_lookup = \"all\"\n\
                   [faces.tcp]\nlisten = []\n[trust]\ngroups = [7]\n[[face]]\nuri = \"udp://a\"\n";
        let new = from_toml(new).unwrap();
        assert_eq!(
            needs_restart(&old, &new),
            ["cs.prefix_lookup", "cs.unsolicited", "faces.tcp.listen", "router.workers"]
        );
        assert_eq!(
            needs_restart(&new, &old),
            ["cs.prefix_lookup", "cs.unsolicited", "faces.tcp.listen", "router.workers"]
        );
        assert_eq!(needs_restart(&new, &new), <[&str; 0]>::default());
    }
}
