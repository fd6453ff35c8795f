//! A Content Store that answers under every prefix of a name, as NFD's does (forwarding §2.2), with one worker
//! and with several.

use namewire_engine::{DropReason, EngineConfig, LimitMet};
use namewire_packet::DataBuilder;
use namewire_tables::{PrefixLookup, content_store::MAX_VERSIONS, name_order::MAX_ORDERED_NAME_BYTES};
use namewire_testbed::*;

const WORKERS: [usize; 4] = [1, 2, 4, 16];

fn node(cs_prefix_lookup: PrefixLookup, workers: usize) -> Forwarder {
    let mut node = Forwarder::with_workers(EngineConfig { cs_prefix_lookup, ..EngineConfig::default() }, workers);
    node.route("/", &[B]);
    node
}

/// Fetches Data by its own name.
fn fetch(node: &mut Forwarder, packet: Packet, name: &str, nonce: u32) {
    node.receive(A, interest(name, nonce).must_be_fresh());
    let sent = node.receive(B, packet);
    assert_eq!(sent.len(), 1, "{name}: {sent:?}");
}

fn cached(sent: &[Sent]) -> Option<&[u8]> {
    match sent {
        [only] if only.line().contains(" cached") => Some(&only.wire),
        _ => None,
    }
}

fn content(name: &str, content: &str, freshness_ms: u64) -> Packet {
    Packet::raw(DataBuilder::new(uri(name)).content(content.as_bytes()).freshness_ms(freshness_ms).sign_digest())
}

/// The finding of issue 15: stored Data was not found under a prefix that had not fetched it. By default it still is
/// not; the setting changes that.
#[test]
fn stored_data_answers_under_every_prefix() {
    for workers in WORKERS {
        for lookup in [PrefixLookup::Own, PrefixLookup::All] {
            let mut node = node(lookup, workers);
            let stored = fresh_data("/a/b/c/v=1/seg=0", 1000);
            fetch(&mut node, stored.clone(), "/a/b/c/v=1/seg=0", 1);
            for (number, prefix) in (10..).zip(["/a", "/a/b", "/a/b/c", "/a/b/c/v=1", "/a/b/c/v=1/seg=0"]) {
                let is_own = prefix.ends_with("seg=0");
                let sent = node.receive(C, interest(prefix, number).can_be_prefix().token(&[7, number as u8]));
                let expected = (is_own || lookup == PrefixLookup::All).then_some(&stored.wire[..]);
                assert_eq!(cached(&sent), expected, "{prefix}, {workers} workers, {lookup:?}");
                if expected.is_some() {
                    let token = format!("C Data /a/b/c/v=1/seg=0 cached token=07{number:02x}");
                    assert_eq!(sent, [&*token], "the token of who asked");
                }
                let fresh = node.receive(D, interest(prefix, number + 10).can_be_prefix().must_be_fresh());
                assert_eq!(cached(&fresh).is_some(), expected.is_some());
                let exact = node.receive(D, interest(prefix, number + 20));
                assert_eq!(cached(&exact).is_some(), is_own, "without CanBePrefix its own name only");
            }
            for other in ["/a/b/c/v=1/seg=1", "/b", "/a/c", "/a/b/c/v=1/seg=0/x"] {
                let sent = node.receive(C, interest(other, 5).can_be_prefix());
                assert_eq!(sent, [&*format!("B Interest {other} #5 CanBePrefix")], "{workers} workers");
            }
        }
    }
}

/// Several workers count as many Interests and hits as one does: no Interest is counted at each of its visits.
#[test]
fn a_round_is_counted_as_one_interest() {
    for workers in WORKERS {
        let mut node = node(PrefixLookup::All, workers);
        for number in 0..20 {
            fetch(&mut node, fresh_data(&format!("/a/{number}/x"), 1000), &format!("/a/{number}/x"), number);
        }
        for number in 0..20 {
            let sent = node.receive(C, interest(&format!("/a/{number}"), 100 + number).can_be_prefix());
            assert!(cached(&sent).is_some());
            node.receive(C, interest(&format!("/c/{number}"), 200 + number).can_be_prefix());
            node.receive(C, interest(&format!("/a/{number}"), 300 + number).can_be_prefix().hop_limit(0));
            node.receive(C, interest("/localhost/x", 400 + number).can_be_prefix());
        }
        let counters = node.counters();
        assert_eq!((counters.in_interests, counters.cs_hits, counters.cs_misses), (100, 20, 40), "{workers} workers");
        assert_eq!(node.dropped(DropReason::HopLimitZero), 20);
        assert_eq!(node.dropped(DropReason::ScopeViolation), 20);
        assert_eq!(node.pit_len(), 20);
    }
}

/// The first in canonical order; with MustBeFresh the first fresh one.
#[test]
fn the_first_that_satisfies_answers() {
    let mut node = node(PrefixLookup::All, 1);
    // A shorter component comes before a longer one, and a lower type before a higher.
    let names = ["/a/b", "/a/b/c", "/a/aa", "/a/seg=0"];
    for (name, number) in names.iter().zip(1..5).rev() {
        fetch(&mut node, fresh_data(name, 10 * u64::from(number)), name, number);
    }
    for (at_ms, first) in [(10, 0), (11, 1), (21, 2), (31, 3)] {
        node.at(at_ms);
        let sent = node.receive(C, interest("/a", at_ms as u32).can_be_prefix().must_be_fresh());
        assert_eq!(cached(&sent), Some(&fresh_data(names[first], 10 * (first as u64 + 1)).wire[..]), "{at_ms} ms");
        let stale = node.receive(C, interest("/a", 100 + at_ms as u32).can_be_prefix());
        assert_eq!(cached(&stale), Some(&fresh_data("/a/b", 10).wire[..]));
    }
    assert_eq!(node.at(41).receive(C, interest("/a", 300).can_be_prefix().must_be_fresh()).len(), 1);
    assert_eq!(node.counters().cs_hits, 8);
}

/// Data of one name that newer Data replaced is still found by its digest.
#[test]
fn older_data_of_a_name_is_found_by_its_digest() {
    for workers in WORKERS {
        for lookup in [PrefixLookup::Own, PrefixLookup::All] {
            let mut node = node(lookup, workers);
            let versions: Vec<Packet> = (0..5).map(|number| content("/a", &format!("{number}"), 100)).collect();
            for (number, version) in (0..).zip(&versions) {
                node.at(u64::from(number) * 200);
                fetch(&mut node, version.clone(), "/a", number);
            }
            let now_ms = 801;
            for (number, version) in (0..).zip(&versions) {
                let is_kept = lookup == PrefixLookup::All || number == 4;
                let asked = full_name(version);
                let sent = node.at(now_ms).receive(C, interest(&asked, 10 + number));
                assert_eq!(
                    cached(&sent),
                    is_kept.then_some(&version.wire[..]),
                    "{number}, {workers} workers, {lookup:?}"
                );
                let sent = node.receive(D, interest(&asked, 20 + number).can_be_prefix().must_be_fresh());
                assert_eq!(cached(&sent).is_some(), number == 4, "only the newest is fresh");
            }
            // By name and MustBeFresh only the newest matches, whichever digest is the lowest.
            let sent = node.receive(C, interest("/a", 40).must_be_fresh());
            assert_eq!(cached(&sent), Some(&versions[4].wire[..]));
        }
    }
}

#[test]
fn limits_are_counted() {
    let mut node = node(PrefixLookup::All, 1);
    for number in 0..=MAX_VERSIONS as u32 {
        node.at(u64::from(number) * 10);
        fetch(&mut node, content("/a", &number.to_string(), 1), "/a", number);
    }
    assert_eq!(node.counters().met(LimitMet::CsVersionReplaced), 1);
    assert_eq!(node.engine().cs_len(), MAX_VERSIONS);
    let long = format!("/a/{}", "x".repeat(MAX_ORDERED_NAME_BYTES));
    fetch(&mut node, data(&long), &long, 100);
    assert_eq!(node.counters().met(LimitMet::CsNameNotOrdered), 1);
    assert!(cached(&node.receive(C, interest(&long, 101))).is_some());
    node.engines[0].configure_cs(0, 0, true, true);
    assert_eq!((node.engine().cs_len(), node.engine().name_groups()), (0, 0));
    node.engines[0].configure_cs(1 << 20, 100, true, true);
    fetch(&mut node, data("/b/c"), "/b/c", 200);
    assert!(cached(&node.receive(C, interest("/b", 201).can_be_prefix())).is_some());
}
