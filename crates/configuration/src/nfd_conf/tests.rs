use super::*;
use crate::{InterfacePattern, units::Bytes};
use namewire_designs::policies::catalogue::EvictionName;
use namewire_management::trust_config::Signer;
use namewire_security::trust::{KeyLocatorRule, PacketKind, RulesOrAny, TrustAnchor};
use namewire_tables::PrefixLookup;
use proptest::prelude::*;

/// The sections and keys of NFD 24.07.
const WHOLE: &str = include_str!("../../tests/nfd.conf");

fn read(text: &str) -> Configuration {
    from_nfd_conf(text, Path::new("/etc/ndn")).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn error(text: &str) -> String {
    from_nfd_conf(text, Path::new("/etc/ndn")).expect_err(text).to_string()
}

/// NFD has no such privilege; a file for both gets a warning from NFD only.
#[test]
fn the_privilege_for_tags_is_known() {
    let read = read("authorizations { authorize { certfile any\n privileges { tags } } }");
    assert!(read.warnings.is_empty() && read.trust.authorizations[0].privileges.tags, "{read:?}");
    assert!(!read.trust.authorizations[0].privileges.faces);
}

#[test]
fn a_whole_file_is_read() {
    let Configuration { settings, trust, warnings, .. } = read(WHOLE);
    assert_eq!(settings.cs.capacity(), (1000 * CS_PACKET_BYTES, 1000));
    assert_eq!(settings.cs.unsolicited.0, UnsolicitedPolicy::AdmitLocal);
    assert_eq!(settings.cs.policy.0, EvictionName::PriorityFifo);
    assert_eq!(read("general { }").settings.cs.policy.0, EvictionName::Lru);
    assert_eq!(settings.strategy.len(), 4);
    assert_eq!(
        settings.tables.regions.iter().map(Prefix::to_string).collect::<Vec<_>>().join(" "),
        "/example/region1 /example/region2"
    );
    assert_eq!(settings.router.user.as_deref(), Some("ndn"));
    assert_eq!(settings.router.group.as_deref(), Some("ndn"));
    assert_eq!(settings.faces.unix.path.as_deref(), Some(Path::new("/run/nfd/nfd.sock")));
    let both = ["0.0.0.0:6363".parse().unwrap(), "[::]:6363".parse().unwrap()];
    assert_eq!((settings.faces.tcp.addresses(), settings.faces.udp.addresses()), (both.to_vec(), both.to_vec()));
    assert_eq!(settings.faces.udp.idle_timeout.0.as_secs(), 300);
    assert!(!settings.faces.congestion_marking && !settings.rib.readvertise().nlsr);
    assert!(read("rib { readvertise_nlsr yes }").settings.rib.readvertise_nlsr);
    assert!(!settings.faces.multicast.enabled && !settings.faces.websocket.enabled);
    assert!(!settings.faces.ethernet.listen && !settings.faces.ethernet.multicast);
    let except: Vec<String> = settings.faces.multicast.except.iter().map(InterfacePattern::to_string).collect();
    assert_eq!(except, ["docker*", "02:42:00:00:00:01", "192.0.2.0/24"]);

    assert!(
        matches!(&trust.authorizations[..], [one] if one.signer == Signer::Any && one.privileges.cs && !one.privileges.rib && !one.privileges.tags)
    );
    assert_eq!((&trust.localhost_rib, &trust.prefix_announcement), (&Some(RulesOrAny::Any), &Some(RulesOrAny::Any)));
    let Some(RulesOrAny::Rules(rules)) = trust.localhop_rib else { panic!("rules") };
    assert_eq!(
        rules.rules.iter().map(|rule| rule.packet).collect::<Vec<_>>(),
        [PacketKind::Interest, PacketKind::Data]
    );
    assert!(matches!(rules.rules[0].checkers[0].key_locator, KeyLocatorRule::Regex(_)));
    assert!(matches!(&rules.anchors[..], [TrustAnchor::File { path, refresh: Some(refresh) }]
        if path == Path::new("/etc/ndn/keys/default.ndncert") && refresh.as_secs() == 7200));

    let warned: Vec<&str> = warnings.iter().filter_map(|text| text.split_whitespace().nth(2)).collect();
    assert_eq!(warned, ["local", "keep_alive_interval"], "{warnings:#?}");
}

#[test]
fn the_content_store_is_that_of_nfd() {
    let nothing = read("").settings;
    assert_eq!((nothing.cs.policy.0, nothing.cs.prefix_lookup.0), (EvictionName::Lru, PrefixLookup::All));
    assert_eq!(nothing.engine_config().cs_prefix_lookup, PrefixLookup::All);
    assert_eq!(Settings::default().engine_config().cs_prefix_lookup, PrefixLookup::Own);
    assert_eq!(nothing.router.workers, 1, "with more, which of several Data answers is not NFD's to say");
}

/// `unicast_mtu` was ignored with a warning, although routers of the testbed set it.
#[test]
fn the_mtu_of_unicast_udp_faces_is_that_of_nfd() {
    let udp = |text: &str| format!("face_system {{ udp {{ {text} }} }}");
    assert_eq!(read(&udp("")).settings.faces.udp.mtu, Bytes(8800));
    for mtu in [64, 1452, 8800] {
        let read = read(&udp(&format!("unicast_mtu {mtu}")));
        assert_eq!((read.settings.faces.udp.mtu, read.warnings), (Bytes(mtu), Vec::new()));
    }
    for mtu in ["63", "8801", "-1", "large"] {
        assert!(error(&udp(&format!("unicast_mtu {mtu}"))).starts_with("line 1: "), "{mtu}");
    }
}

#[test]
fn a_missing_section_switches_its_protocol_off() {
    let nothing = read("").settings;
    assert!(!nothing.faces.unix.enabled && !nothing.faces.websocket.enabled && !nothing.faces.multicast.enabled);
    let faces = nothing.faces;
    assert_eq!((faces.tcp.addresses(), faces.udp.addresses()), (Vec::new(), Vec::new()));
    assert!(!faces.tcp.outgoing && !faces.udp.outgoing && faces.ethernet.group().is_none());
    assert!(!faces.ethernet.by_command);

    let faces = read("face_system { unix\n tcp { listen no\n port 7000 }\n udp { enable_v6 no }\n ether\n websocket }")
        .settings
        .faces;
    assert_eq!(faces.unix.path.as_deref(), Some(Path::new("/run/nfd/nfd.sock")));
    assert!(!faces.tcp.enabled && faces.tcp.outgoing, "outgoing TCP faces only");
    assert_eq!(faces.udp.listen, Some(vec!["0.0.0.0:6363".parse().unwrap()]));
    assert!(faces.multicast.enabled && faces.multicast.ipv4 && !faces.multicast.ipv6);
    assert!(faces.ethernet.listen && faces.ethernet.multicast && faces.websocket.enabled);
    let ethernet = read("face_system { ether { listen no\n mcast no } }").settings.faces.ethernet;
    assert!(!ethernet.listen && !ethernet.multicast && ethernet.by_command, "Ethernet faces by command only");
}

#[test]
fn what_nfd_refuses_is_refused_with_its_line() {
    for (text, word) in [
        ("face_system\n{\n tcp { listen maybe }\n}", "line 3: listen: expected yes or no"),
        ("face_system { udp { port 70000 } }", "70000"),
        ("face_system { udp { mcast_group x } }", "mcast_group"),
        ("face_system { tcp { enable_v4 no\nenable_v6 no } }", "both off"),
        ("face_system { ether { mcast_group x } }", "Ethernet address"),
        ("face_system { udp { blacklist { subnet x } } }", "subnet"),
        ("face_system { udp { blacklist { ifname 10.0.0.0/8 } } }", "not the name of an interface"),
        ("face_system { udp { whitelist { ifname a\\0b } } }", "expected an interface name"),
        ("tables { cs_policy lifo }", "lifo"),
        ("tables { cs_max_packets many }", "many"),
        (
            "tables { strategy_choice { / /localhost/nfd/strategy/multicast\n / /localhost/nfd/strategy/multicast } }",
            "two",
        ),
        ("authorizations { authorize { privileges { faces } } }", "certfile is missing"),
        ("rib { localhop_security { rule { id x } } }", "for is missing"),
        ("rib { localhop_security { trust-anchor { type magic } } }", "magic"),
        ("rib { localhop_security { trust-anchor { type any } }\n auto_prefix_propagate }", "excludes"),
        ("face_system {", "line 1: a brace is not closed"),
    ] {
        assert!(error(text).contains(word), "{text}: {}", error(text));
    }
}

/// Ours, for old Data: a rule says so, and only one for Data may.
#[test]
fn a_rule_for_data_may_ask_for_the_signing_time() {
    let with = |packet: &str, line: &str| {
        format!(
            "rib {{ localhop_security {{ rule {{ id x\nfor {packet}\nchecker {{ type hierarchical }}\n{line} }} }} }}"
        )
    };
    for (line, expected) in [("", false), ("at-signing-time no", false), ("at-signing-time yes", true)] {
        let Some(RulesOrAny::Rules(rules)) = read(&with("data", line)).trust.localhop_rib else { panic!("rules") };
        assert_eq!(rules.rules[0].at_signing_time, expected, "{line}");
    }
    assert!(error(&with("interest", "at-signing-time yes")).contains("a command must be signed now"));
    assert!(error(&with("data", "at-signing-time maybe")).contains("\"maybe\" is neither yes nor no"));
}

#[test]
fn what_nfd_does_not_know_is_named_with_the_nearest_key() {
    let warnings = read("face_system { udp { idle_timeot 3 } }\ntabels { }\nrib { localhost_securty }").warnings;
    assert_eq!(
        warnings,
        [
            "line 1: unknown key idle_timeot in face_system.udp is ignored; did you mean idle_timeout?",
            "line 2: unknown key tabels is ignored; did you mean tables?",
            "line 3: unknown key localhost_securty in rib is ignored; did you mean localhost_security?",
        ]
    );
    let loaded = read("tables { strategy_choice { /a /localhost/nfd/strategy/teleport } }");
    assert!(loaded.settings.strategy.is_empty() && loaded.warnings[0].contains("teleport"), "{:?}", loaded.warnings);
    let loaded = read("authorizations { authorize { certfile missing.ndncert\n privileges { faces } } }");
    assert!(loaded.trust.authorizations.is_empty() && loaded.warnings[0].contains("missing.ndncert"));
}

/// Keys, values and braces of the whole file in any order.
fn shuffled() -> impl Strategy<Value = String> {
    let words: Vec<&str> = WHOLE.split_inclusive(char::is_whitespace).collect();
    prop::collection::vec(prop::sample::select(words), 0..80).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn no_file_is_too_strange(text in shuffled(), at in 0usize..2000) {
        let _ = from_nfd_conf(&text, Path::new("/nowhere"));
        let cut: String = WHOLE.chars().take(at).collect();
        let _ = from_nfd_conf(&cut, Path::new("/nowhere"));
    }
}
