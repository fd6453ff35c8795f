//! Packet tables of the Content Store as the pipelines use it (forwarding §2.2).

use namewire_designs::policies::{
    catalogue::{AdmissionName, EvictionName, PolicyChoice, PolicyOptions},
    filter::FilterOptions,
};
use namewire_engine::{CsCounts, CsReport, DropReason, EngineConfig, FaceId, LimitMet};
use namewire_packet::{DataBuilder, counters::Count};
use namewire_testbed::*;

/// A node that has fetched `packet` for an Interest of its name, at 0 ms.
fn holding(packet: Packet, name: &str) -> Forwarder {
    let mut node = Forwarder::routing("/", &[B]);
    node.receive(A, interest(name, 1).can_be_prefix());
    assert_eq!(node.receive(B, packet).len(), 1);
    node
}

fn is_cached(sent: &[Sent]) -> bool {
    sent.len() == 1 && sent[0].line().contains(" cached")
}

#[test]
fn hit_does_not_touch_the_pit() {
    let mut node = holding(data("/a"), "/a");
    let packet = node.receive(C, interest("/a", 2));
    assert_eq!(packet, ["C Data /a cached"]);
    assert_eq!(packet[0].wire, data("/a").wire);
    let counters = node.counters();
    assert_eq!((counters.cs_hits, counters.cs_misses, node.pit_len()), (1, 1, 0));
}

#[test]
fn the_asking_face_gets_its_own_data_back() {
    let mut node = holding(data("/a"), "/a");
    assert!(is_cached(&node.receive(B, interest("/a", 2))));
}

/// FreshnessPeriod ms, ms after arrival → fresh?
#[test]
fn must_be_fresh() {
    let table = [(0, 0, false), (0, 1, false), (100, 0, true), (100, 100, true), (100, 101, false), (1, 1, true)];
    for (freshness_ms, later_ms, fresh) in table {
        let mut node = holding(fresh_data("/a", freshness_ms), "/a");
        node.at(later_ms);
        assert!(is_cached(&node.receive(C, interest("/a", 8))), "without MustBeFresh");
        let sent = node.receive(C, interest("/a", 9).must_be_fresh());
        assert_eq!(is_cached(&sent), fresh, "{freshness_ms} ms, asked {later_ms} ms later");
    }
    // Absent is 0, and the last nanosecond counts.
    let mut node = holding(fresh_data("/a", 100), "/a");
    node.now.0 = 100_000_001;
    assert!(!is_cached(&node.receive(C, interest("/a", 9).must_be_fresh())));
}

/// A regression: at the very first instant of the clock, 0 looked like a deadline not yet passed.
#[test]
fn freshness_zero_is_stale_in_the_first_nanosecond() {
    let mut node = holding(data("/a"), "/a");
    assert_eq!(node.now.0, 0);
    assert_eq!(node.receive(C, interest("/a", 9).must_be_fresh()), ["B Interest /a #9 MustBeFresh"]);
}

#[test]
fn same_data_again_is_fresh_again() {
    let mut node = holding(fresh_data("/a", 100), "/a");
    assert_eq!(node.at(500).receive(C, interest("/a", 2).must_be_fresh()).len(), 1);
    node.receive(B, fresh_data("/a", 100));
    assert!(is_cached(&node.at(590).receive(D, interest("/a", 3).must_be_fresh())));
    assert_eq!(node.engine().cs_len(), 1);
}

#[test]
fn prefix_that_fetched_it_finds_it_again() {
    let mut node = holding(data("/a/b/c"), "/a");
    assert!(is_cached(&node.receive(C, interest("/a", 2).can_be_prefix())));
    assert!(is_cached(&node.receive(C, interest("/a/b/c", 3))));
    assert!(!is_cached(&node.receive(C, interest("/a", 4))), "/a itself was never stored");
    assert!(!is_cached(&node.receive(C, interest("/a/b", 5).can_be_prefix())), "the house plan: other prefixes miss");
}

#[test]
fn prefix_hit_obeys_must_be_fresh() {
    let mut node = holding(fresh_data("/a/b", 50), "/a");
    assert!(is_cached(&node.at(50).receive(C, interest("/a", 2).can_be_prefix().must_be_fresh())));
    assert!(!is_cached(&node.at(51).receive(C, interest("/a", 3).can_be_prefix().must_be_fresh())));
}

#[test]
fn digest() {
    let answer = data("/a");
    let (right, wrong) = (full_name(&answer), full_name(&fresh_data("/a", 9)));
    let mut node = holding(answer.clone(), "/a");
    assert!(is_cached(&node.receive(C, interest(&right, 2))));
    assert_eq!(node.receive(C, interest(&wrong, 3)).len(), 1);
    assert_eq!(node.counters().cs_hits, 1);
    // Fetched by digest, then asked for by digest and by name.
    let mut node = holding(answer, &right);
    assert!(is_cached(&node.receive(C, interest(&right, 2))));
    assert!(is_cached(&node.receive(C, interest("/a", 3))));
    assert!(!is_cached(&node.receive(C, interest(&right, 4).must_be_fresh())));
}

/// A defect: Data with a digest written in its name answered the Interest for that digest, and was stored for later
/// ones. Before that, so did Data whose name only continued after the digest. Both are malformed.
#[test]
fn data_that_claims_a_digest_is_no_answer() {
    let honest = data("/a");
    let asked = full_name(&honest);
    for workers in [1, 2, 4] {
        for (claimed, by_prefix) in [(asked.clone(), false), (asked.clone(), true), (format!("{asked}/x"), true)] {
            let mut node = Forwarder::with_workers(EngineConfig::default(), workers);
            node.route("/", &[B]);
            let ask = |nonce| match by_prefix {
                true => interest(&asked, nonce).can_be_prefix(),
                false => interest(&asked, nonce),
            };
            node.receive(A, ask(1));
            let poison = Packet::raw(DataBuilder::new(uri(&claimed)).content(b"poison").sign_digest());
            assert_eq!(node.receive(B, poison), NOTHING, "{claimed}");
            assert_eq!(node.counters().dropped(DropReason::Malformed), 1);
            assert_eq!(node.engines.iter().map(|engine| engine.cs_len()).sum::<usize>(), 0);
            // The Interest still waits for the Data that it asked for.
            assert_eq!(node.receive(B, honest.clone()), ["A Data /a"]);
            assert!(is_cached(&node.receive(C, ask(2))));
        }
    }
}

#[test]
fn no_cache_is_not_stored() {
    let mut node = Forwarder::routing("/a", &[B]);
    node.receive(A, interest("/a", 1));
    assert_eq!(node.receive(B, data("/a").no_cache()), ["A Data /a"]);
    assert_eq!(node.engine().cs_len(), 0);
}

#[test]
fn link_headers_are_not_stored() {
    let mut node = Forwarder::routing("/a", &[B]);
    node.receive(A, interest("/a", 1));
    assert_eq!(node.receive(B, data("/a").mark(1)), ["A Data /a mark=1"]);
    let sent = node.receive(C, interest("/a", 2).mark(1));
    assert_eq!(sent, ["C Data /a cached"]);
}

#[test]
fn admit_and_serve_switches() {
    let mut node = Forwarder::routing("/", &[B]);
    node.engines[0].configure_cs(1 << 20, 100, false, true);
    node.receive(A, interest("/a", 1));
    node.receive(B, data("/a"));
    assert_eq!(node.engine().cs_len(), 0);
    node.engines[0].configure_cs(1 << 20, 100, true, false);
    node.receive(A, interest("/a", 2));
    node.receive(B, data("/a"));
    assert_eq!(node.engine().cs_len(), 1);
    assert!(!is_cached(&node.receive(C, interest("/a", 3))));
    node.engines[0].configure_cs(1 << 20, 100, true, true);
    node.receive(B, data("/a"));
    assert!(is_cached(&node.receive(C, interest("/a", 4))));
    node.engines[0].configure_cs(0, 0, true, true);
    assert_eq!((node.engine().cs_len(), node.engine().cs_bytes()), (0, 0));
}

/// A policy's counts continue when it comes back; those of prefixes do not depend on the policy.
#[test]
fn what_the_store_does_is_counted_by_policy_and_by_prefix() {
    let mut node = Forwarder::with_workers(
        EngineConfig {
            cs_capacity_packets: 3,
            cs_policy: EvictionName::Lru.into(),
            cs_counted_prefixes: ["/a", "/a/b", "/a", "/", "/c/d/e"].map(uri).to_vec(),
            ..EngineConfig::default()
        },
        1,
    );
    node.route("/", &[B]);
    let mut nonce = 0;
    let mut ask = |node: &mut Forwarder, name: &str| {
        nonce += 1;
        if !is_cached(&node.receive(A, interest(name, nonce))) {
            node.receive(B, data(name));
        }
    };
    for name in ["/a/1", "/a/b", "/a/b/2", "/a/b/2", "/x", "/a/b"] {
        ask(&mut node, name);
    }
    let mut report = CsReport::default();
    node.engine().cs_report(&mut report);
    let counts =
        |hits, misses, insertions, evictions| CsCounts { hits, misses, insertions, not_admitted: 0, evictions };
    let lru = counts(2, 4, 4, 1);
    let of = |report: &CsReport| report.policies.iter().map(|p| (p.policy.eviction, p.counts)).collect::<Vec<_>>();
    assert_eq!(of(&report), [("lru", lru)]);
    let stored = node.engine().cs_len();
    node.engines[0].set_cs_policy(EvictionName::Fifo.into()).unwrap();
    assert_eq!(node.engine().cs_len(), stored);
    for name in ["/a/b", "/y", "/a/b/2"] {
        ask(&mut node, name);
    }
    node.engines[0].set_cs_policy(EvictionName::Lru.into()).unwrap();
    node.engines[0].count_cs_prefixes(&["/a/b", "/y"].map(uri));
    ask(&mut node, "/y");
    let before = report.clone();
    node.engine().cs_report(&mut report);
    // /a/b/2 was least recently used: /y evicts it, and it comes again for /x.
    let mut lru_again = lru;
    lru_again.merge(&counts(1, 0, 0, 0));
    assert_eq!(of(&report), [("lru", lru_again), ("fifo", counts(1, 2, 2, 2))]);
    let by_prefix =
        |report: &CsReport| report.prefixes.iter().map(|p| (p.prefix.to_string(), p.counts)).collect::<Vec<_>>();
    let named = |name: &str, counts| (name.to_owned(), counts);
    let expected = [
        named("/a", counts(2, 3, 3, 0)),
        named("/a/b", counts(2, 2, 2, 0)),
        named("/", counts(2, 4, 4, 0)),
        named("/c/d/e", counts(0, 0, 0, 0)),
    ];
    assert_eq!(by_prefix(&before), expected);
    assert_eq!(by_prefix(&report), [named("/a/b", counts(3, 3, 3, 0)), named("/y", counts(1, 0, 0, 0))]);
    assert!(report.policy == Some(namewire_tables::CsPolicy::Lru.name()) && report.policy_bytes > 0);
    let mut twice = report.clone();
    twice.merge(&report);
    assert_eq!((report.capacity_packets, twice.capacity_packets), (3, 6));
    assert_eq!(twice.capacity_bytes, 2 * report.capacity_bytes);
    let doubled = (twice.policies.len(), twice.policies[1].counts.misses, twice.prefixes[1].counts.hits);
    assert_eq!(doubled, (2, 4, 2));
}

#[test]
fn capacities() {
    for config in [
        EngineConfig { cs_capacity_packets: 3, ..EngineConfig::default() },
        EngineConfig { cs_capacity_bytes: 3 * 350, ..EngineConfig::default() },
    ] {
        let config = EngineConfig { cs_policy: EvictionName::Lru.into(), ..config };
        let mut node = Forwarder::new(config.clone());
        node.route("/", &[B]);
        for n in 0..20 {
            node.receive(A, interest(&format!("/a/{n}"), n));
            node.receive(B, data(&format!("/a/{n}")));
            assert!(node.engine().cs_len() <= 3 && node.engine().cs_bytes() <= config.cs_capacity_bytes);
        }
        assert!(is_cached(&node.receive(C, interest("/a/19", 100))));
        assert!(!is_cached(&node.receive(C, interest("/a/0", 101))));
    }
}

/// Data requested by a prefix is as popular as other Data: policies compare its own name.
#[test]
fn interests_by_prefix_count_for_the_data_that_answers_them() {
    let cs_policy = PolicyChoice { admission: AdmissionName::Filter, ..EvictionName::Fifo.into() }.into();
    let mut node = Forwarder::new(EngineConfig { cs_policy, cs_capacity_packets: 4, ..EngineConfig::default() });
    node.route("/", &[B]);
    for n in 0..4 {
        node.receive(A, interest(&format!("/full/{n}"), n));
        node.receive(B, data(&format!("/full/{n}")));
    }
    for round in 0..2 {
        node.receive(A, interest("/a", 10 + round).can_be_prefix());
        node.receive(B, data("/a/v1"));
    }
    assert!(is_cached(&node.receive(C, interest("/a/v1", 20))));
    assert!(!is_cached(&node.receive(C, interest("/full/0", 21))));
}

/// A late second copy of one Interest once raised its name towards the filter's threshold, as a new request does.
#[test]
fn a_copy_that_looped_is_no_request() {
    let filter = FilterOptions { threshold: Some(3), ..FilterOptions::default() };
    let options = PolicyOptions { filter, ..PolicyOptions::default() };
    let cs_policy = PolicyChoice { eviction: EvictionName::Fifo, admission: AdmissionName::Filter, options };
    for (second_nonce, is_stored) in [(10, false), (11, true)] {
        let cs_policy = cs_policy.into();
        let mut node = Forwarder::new(EngineConfig { cs_policy, cs_capacity_packets: 4, ..EngineConfig::default() });
        node.route_with("/", &[B, C], "multicast"); // what goes to both leaves its nonce behind
        for n in 0..4 {
            node.receive(A, interest(&format!("/full/{n}"), n));
            node.receive(B, data(&format!("/full/{n}")));
        }
        for nonce in [10, second_nonce, 12] {
            node.receive(A, interest("/a", nonce));
            node.receive(B, data("/a"));
        }
        assert_eq!(node.dropped(DropReason::DuplicateNonce), u64::from(!is_stored));
        assert_eq!(is_cached(&node.receive(C, interest("/a", 20))), is_stored);
    }
}

/// When the store refuses or evicts Data, packets still get their answers, and it is counted.
#[test]
fn limits_of_the_store_are_counted() {
    let exchange = |node: &mut Forwarder, n: u32| {
        node.receive(A, interest(&format!("/a/{n}"), n));
        assert_eq!(node.receive(B, data(&format!("/a/{n}"))).len(), 1);
    };
    let node_with = |config: EngineConfig| {
        let mut node = Forwarder::new(config);
        node.route("/", &[B]);
        node
    };
    let mut node = node_with(EngineConfig { cs_capacity_packets: 3, ..EngineConfig::default() });
    (0..20).for_each(|n| exchange(&mut node, n));
    assert_eq!(node.counters().met(LimitMet::CsEvicted), 17);

    let mut node = node_with(EngineConfig { cs_capacity_bytes: 100, ..EngineConfig::default() });
    (0..5).for_each(|n| exchange(&mut node, n));
    assert_eq!((node.counters().met(LimitMet::CsDataTooLarge), node.counters().dropped_total()), (5, 0));

    // A disabled store meets no limit.
    for off in [
        EngineConfig { cs_capacity_bytes: 0, ..EngineConfig::default() },
        EngineConfig { cs_capacity_packets: 0, ..EngineConfig::default() },
    ] {
        let mut node = node_with(off);
        exchange(&mut node, 0);
        assert_eq!(node.counters().limits.iter().sum::<u64>(), 0);
    }

    // "/a" is the name of other Data already.
    let mut node = holding(data("/a"), "/a");
    node.receive(A, interest("/a", 2).can_be_prefix().must_be_fresh());
    assert_eq!(node.receive(B, data("/a/b")), ["A Data /a/b"]);
    assert_eq!(node.counters().met(LimitMet::CsNameRefused), 1);
}

#[test]
fn pending_interest_is_not_looked_up_again() {
    let mut node = Forwarder::routing("/", &[B]);
    node.receive(A, interest("/a", 1));
    node.receive(C, interest("/a", 2));
    assert_eq!(node.counters().cs_misses, 1);
}

/// Management asks the commanding host itself for a certificate: stored Data may be another's word. An application that
/// names its next hop gets stored Data, as with NFD.
#[test]
fn management_gets_no_stored_data_when_it_asks_one_face() {
    let mut node = holding(data("/a"), "/a");
    assert_eq!(node.receive(L, interest("/a", 2).next_hop(C)), ["L Data /a cached"]);
    let asked = node.receive(FaceId::INTERNAL, bare_interest("/a").next_hop(C));
    assert_eq!((asked.len(), asked[0].face), (1, C), "its Interests have no nonce");
    let answer = node.receive(C, data("/a"));
    assert_eq!((answer.len(), answer[0].face), (1, FaceId::INTERNAL));
    assert_eq!(node.receive(FaceId::INTERNAL, bare_interest("/a")).len(), 1, "stored Data, where no face is named");
}
