//! Packet tables of asf, access, random and self-learning (forwarding §4.3, §4.5, §4.6).

use namewire_engine::{DropReason, EngineConfig, FaceId, LimitMet, RouteRequest};
use namewire_packet::NackReason;
use namewire_testbed::*;
use std::collections::BTreeMap;

/// A node that asks with one strategy, one new name at a time.
struct Asking {
    node: Forwarder,
    asked: u32,
}

impl Asking {
    fn new(strategy: &str, next_hops: &[FaceId]) -> Self {
        let mut node = Forwarder::default();
        node.route_with("/a", next_hops, strategy);
        Asking { node, asked: 0 }
    }

    /// Asks for a new name at `ms`. Returns where the Interest went, probes last.
    fn ask(&mut self, ms: u64) -> Vec<FaceId> {
        self.asked += 1;
        let (name, nonce) = (self.name(), self.asked);
        let sent = self.node.at(ms).receive(A, interest(&name, nonce).lifetime_ms(60_000));
        assert!(sent.iter().all(|sent| sent.line().contains(&format!("Interest {name}"))), "{sent:?}");
        sent.iter().map(|sent| sent.face).collect()
    }

    fn name(&self) -> String {
        format!("/a/{}", self.asked)
    }

    /// `face` answers the last Interest.
    fn answer(&mut self, ms: u64, face: FaceId) {
        let name = self.name();
        self.node.at(ms).receive(face, data(&name));
    }
}

#[test]
fn asf_prefers_the_faster_next_hop_at_any_cost() {
    let mut asking = Asking::new("asf/v=5/probing-interval~1000", &[B, C, D]);
    // The next hops' answer times; D does not answer.
    let rtt_ms = BTreeMap::from([(B, 40), (C, 20)]);
    let mut first_choices: Vec<FaceId> = Vec::new();
    for second in 0..60 {
        let sent = asking.ask(second * 1000);
        first_choices.push(sent[0]);
        let mut answers: Vec<(u64, FaceId)> =
            sent.iter().filter_map(|face| Some((*rtt_ms.get(face)?, *face))).collect();
        answers.sort();
        for (rtt, face) in answers {
            asking.answer(second * 1000 + rtt, face);
        }
        asking.node.at(second * 1000 + 900).run_timers();
    }
    assert_eq!(first_choices[0], B, "the cheapest while nothing is known");
    assert_eq!(first_choices[30..], [C; 30], "the fastest once it was probed: {first_choices:?}");
    assert_eq!(asking.node.counters().satisfied, 60, "every entry counts once");
    assert_eq!(asking.node.counters().out_data, 60, "the consumer gets one answer each");
    assert_eq!(asking.node.engine().measurements_len(), 1);
}

/// Answers slower than the first are measured because the entry waits 50 ms for them.
#[test]
fn asf_waits_for_the_answers_to_probes() {
    let mut asking = Asking::new("asf/v=5/probing-interval~1000", &[B, C]);
    let mut second = 0;
    let probed = loop {
        let sent = asking.ask(second * 1000);
        if sent.len() == 2 {
            break sent;
        }
        asking.answer(second * 1000 + 10, sent[0]);
        second += 1;
        assert!(second <= 6, "the first probe comes within 5 s");
    };
    assert_eq!(probed, [B, C]);
    let start = second * 1000;
    asking.answer(start + 10, B);
    assert_eq!((asking.node.pit_len(), asking.node.dropped(DropReason::UnsolicitedData)), (1, 0));
    let name = asking.name();
    // A consumer that asks meanwhile is served from the store or, as here by another name, without delay.
    assert_eq!(asking.node.at(start + 20).receive(D, interest(&name, 9)), [format!("D Data {name} cached").as_str()]);
    asking.answer(start + 40, C);
    assert_eq!((asking.node.pit_len(), asking.node.dropped(DropReason::UnsolicitedData)), (0, 0));
    let totals = asking.node.counters();
    assert_eq!((totals.satisfied, totals.unsatisfied), (second + 1, 0));
    // Both have answered: the next probe, if there is one, goes to the other one again, never to a third.
    assert_eq!(asking.ask(start + 100), [B], "40 ms is slower than 10");
}

#[test]
fn an_entry_that_waits_for_probes_ends_without_them_and_can_be_asked_again() {
    let config = EngineConfig { cs_capacity_packets: 0, ..EngineConfig::default() };
    let mut asking = Asking { node: Forwarder::new(config), asked: 0 };
    asking.node.route_with("/a", &[B, C], "asf/v=5/probing-interval~1000");
    let mut ms = 0;
    while asking.ask(ms).len() == 1 {
        asking.answer(ms + 1, B);
        ms += 1000;
    }
    asking.answer(ms + 1, B);
    let name = asking.name();
    assert_eq!(asking.node.pit_len(), 1);
    // Without a store, a consumer that asks meanwhile makes the entry pending again.
    let sent = asking.node.at(ms + 10).receive(D, interest(&name, 0xffff));
    assert_eq!(sent, [format!("B Interest {name} #ffff").as_str()]);
    assert_eq!(asking.node.at(ms + 100).run_timers(), NOTHING);
    assert_eq!(asking.node.at(ms + 110).receive(B, data(&name)), [format!("D Data {name}").as_str()]);
    assert_eq!(asking.node.at(ms + 200).run_timers(), NOTHING);
    let totals = asking.node.counters();
    let asked = u64::from(asking.asked) + 1;
    assert_eq!((asking.node.pit_len(), totals.satisfied, totals.unsatisfied), (0, asked, 0));
}

#[test]
fn asf_gives_a_next_hop_up_after_its_timeouts_and_comes_back() {
    for max_timeouts in [1, 3] {
        let mut asking = Asking::new(&format!("asf/v=5/max-timeouts~{max_timeouts}"), &[B, C]);
        for ms in [0, 100] {
            assert_eq!(asking.ask(ms), [B]);
            asking.answer(ms + 10, B);
        }
        // B falls silent. Its RTO is the minimum, 200 ms; one Interest at a time is watched.
        let mut ms = 1000;
        let mut given_up = 0;
        while asking.ask(ms)[0] == B {
            given_up = ms;
            ms += 50;
        }
        let silent_ms = given_up + 50 - 1000;
        assert_eq!(silent_ms, 200 * max_timeouts, "max-timeouts {max_timeouts}");
        assert_eq!(asking.ask(ms + 50), [C]);
        asking.answer(ms + 60, C);
        assert_eq!(asking.ask(ms + 300), [C], "what works comes before what timed out");
        // A late answer makes it work again, if its Interest is still pending.
        let late = format!("/a/{}", 3);
        asking.node.at(ms + 310).receive(B, data(&late));
        asking.answer(ms + 2000, C);
        assert_eq!(asking.ask(ms + 2010)[0], B, "1 s for B's late answer, then C took 1.7 s");
    }
}

#[test]
fn asf_takes_a_nack_for_a_timeout_at_once() {
    let mut asking = Asking::new("asf", &[B, C]);
    asking.ask(0);
    asking.answer(10, B);
    assert_eq!(asking.ask(100), [B]);
    let sent = asking.node.at(110).receive(B, nack(NackReason::NoRoute, "/a/2", 2));
    assert_eq!(sent, ["A Nack NoRoute /a/2 #2"]);
    assert_eq!(asking.ask(200), [C]);
    asking.node.at(210).receive(C, nack(NackReason::Congestion, "/a/3", 3));
    assert_eq!(asking.ask(300), [B], "both have failed: the cheaper one");
}

#[test]
fn asf_retransmits_to_the_unused_then_to_the_oldest_after_its_interval() {
    let mut node = Forwarder::default();
    node.route_with("/a", &[B, C], "asf");
    let mut ask = |ms, nonce| node.at(ms).receive(D, interest("/a", nonce)).first().map(|sent| sent.face);
    let asked: Vec<_> = [(0, 1), (1, 2), (5, 3), (12, 4), (13, 5), (20, 6), (33, 7), (34, 8)]
        .into_iter()
        .map(|(ms, nonce)| ask(ms, nonce))
        .collect();
    // B at 0, C at 1; B again at 12 and 33 (intervals 10, 20), C at 13 and 34.
    assert_eq!(asked, [Some(B), Some(C), None, Some(B), Some(C), None, Some(B), Some(C)]);
    assert_eq!(node.dropped(DropReason::Suppressed), 2);
}

#[test]
fn asf_without_a_next_hop_sends_a_nack() {
    let mut node = Forwarder::default();
    node.route_with("/a", &[A], "asf");
    assert_eq!(node.receive(A, interest("/a", 1)), ["A Nack NoRoute /a #1"]);
    assert_eq!(node.receive(B, interest("/a", 2).hop_limit(1)), NOTHING);
    assert_eq!((node.dropped(DropReason::NoRoute), node.dropped(DropReason::HopLimitZero)), (1, 1));
    assert_eq!(node.pit_len(), 0);
}

/// The j-th of n is probed with the probability (n + 1 − j) / (n (n + 1) / 2).
#[test]
fn asf_probes_the_better_ones_more_often() {
    let mut asking = Asking::new("asf/v=5/probing-interval~1000", &[B, C, D, H]);
    let rtt_ms = BTreeMap::from([(B, 2), (C, 4), (D, 8), (H, 16)]);
    let mut probes: BTreeMap<FaceId, u32> = BTreeMap::new();
    for second in 0..3100 {
        let sent = asking.ask(second * 1000);
        assert!(sent.len() <= 2);
        if let (true, Some(&probed)) = (second >= 100, sent.get(1)) {
            assert_eq!(sent[0], B, "the fastest");
            *probes.entry(probed).or_default() += 1;
        }
        let mut answers: Vec<(u64, FaceId)> = sent.iter().map(|face| (rtt_ms[face], *face)).collect();
        answers.sort();
        answers.into_iter().for_each(|(rtt, face)| asking.answer(second * 1000 + rtt, face));
    }
    let shares: Vec<f64> = [C, D, H].map(|face| f64::from(probes[&face]) / 3000.0).to_vec();
    for (share, expected) in shares.iter().zip([3.0 / 6.0, 2.0 / 6.0, 1.0 / 6.0]) {
        // Four standard deviations of a binomial share of 3000.
        assert!((share - expected).abs() < 4.0 * (expected * (1.0 - expected) / 3000.0_f64).sqrt(), "{shares:?}");
    }
}

#[test]
fn asf_forgets_after_its_lifetime_and_at_its_capacity() {
    let mut asking = Asking::new("asf/v=5/probing-interval~1000/measurements-lifetime~2000", &[B, C]);
    asking.ask(0);
    asking.answer(5, B);
    asking.node.at(1900).run_timers();
    assert_eq!(asking.node.engine().measurements_len(), 1);
    asking.node.at(2300).run_timers();
    assert_eq!(asking.node.engine().measurements_len(), 0);
    assert_eq!(asking.node.engine().next_deadline(), None, "an idle node sleeps");

    let mut node = Forwarder::new(EngineConfig { measurement_capacity: 8, ..EngineConfig::default() });
    for prefix in 0..20 {
        node.route_with(&format!("/{prefix}"), &[B, C], "asf");
        node.receive(A, interest(&format!("/{prefix}/x"), prefix));
    }
    assert_eq!(node.engine().measurements_len(), 8);
    assert_eq!(node.counters().met(LimitMet::MeasurementEvicted), 12);
}

#[test]
fn access_asks_the_next_hop_that_answered_last_and_all_when_that_fails() {
    let mut asking = Asking::new("access", &[B, C, D]);
    assert_eq!(asking.ask(0), [B, C, D], "nothing is known: to all");
    asking.answer(20, C);
    assert_eq!(asking.ask(100), [C], "C answered last under /a");
    // C does not answer. The RTO is 20 ms and four variations of 10 ms, and a timer tick is 4 ms.
    let name = asking.name();
    assert_eq!(asking.node.at(155).run_timers(), NOTHING);
    let to_others = [format!("B Interest {name} #2"), format!("D Interest {name} #2")];
    assert_eq!(asking.node.at(164).run_timers(), [to_others[0].as_str(), to_others[1].as_str()]);
    assert_eq!(asking.node.at(400).run_timers(), NOTHING, "once");
    asking.answer(410, D);
    assert_eq!(asking.ask(500), [D], "and now D");
    let name = asking.name();
    // A retransmission goes to all, when suppression allows it.
    assert_eq!(asking.node.at(505).receive(A, interest(&name, 0x77)), NOTHING);
    let faces: Vec<FaceId> =
        asking.node.at(511).receive(A, interest(&name, 0x78)).iter().map(|sent| sent.face).collect();
    assert_eq!(faces, [B, C, D]);
    asking.answer(520, B);
    asking.node.at(9000).run_timers();
    assert_eq!(asking.node.engine().measurements_len(), 0, "8 s are over");
    assert_eq!(asking.ask(9001), [B, C, D]);
}

#[test]
fn access_does_not_use_a_next_hop_that_is_gone_or_asks_itself() {
    let mut asking = Asking::new("access", &[B, C]);
    asking.ask(0);
    asking.answer(5, B);
    assert_eq!(asking.node.at(10).receive(B, interest("/a/x", 0x50)), ["C Interest /a/x #50"]);
    asking.node.remove_face(B);
    assert_eq!(asking.ask(20), [C]);
    let mut node = Forwarder::default();
    node.route_with("/a", &[A], "access");
    assert_eq!(node.receive(A, interest("/a", 1)), NOTHING, "no Nack");
    assert_eq!((node.pit_len(), node.dropped(DropReason::NoRoute)), (0, 1));
}

#[test]
fn random_uses_all_next_hops_equally() {
    let mut asking = Asking::new("random", &[B, C, D]);
    let mut chosen: BTreeMap<FaceId, u32> = BTreeMap::new();
    for n in 0..3000 {
        let sent = asking.ask(n);
        assert_eq!(sent.len(), 1);
        *chosen.entry(sent[0]).or_default() += 1;
        asking.answer(n, sent[0]);
    }
    // 1000 each; four standard deviations are 103.
    assert!(chosen.len() == 3 && chosen.values().all(|&times| times.abs_diff(1000) < 104), "{chosen:?}");
    asking.node.route_with("/a", &[A], "random");
    assert_eq!(asking.node.at(4000).receive(A, interest("/a/z", 1)), ["A Nack NoRoute /a/z #1"]);
}

/// Interests of a self-learning node, and its requests to the control side.
fn self_learning(next_hops: &[FaceId]) -> Forwarder {
    let mut node = Forwarder::default();
    node.route_with("/", next_hops, "self-learning");
    node
}

fn non_discovery(mut packet: Packet) -> Packet {
    packet.headers.non_discovery = true;
    packet
}

#[test]
fn discovery_goes_to_all_neighbours_and_learns_from_the_answer() {
    let mut node = self_learning(&[]);
    node.faces.remove(X);
    let sent = node.receive(A, interest("/p/1", 1));
    let mut faces: Vec<FaceId> = sent.iter().map(|sent| sent.face).collect();
    faces.sort();
    assert_eq!(faces, [B, C, D, H], "neighbours but the one that asked, and no application");
    assert!(sent.iter().all(|sent| !sent.headers.non_discovery));
    let announcement = announcement("/p");
    let sent = node.receive(C, data("/p/1").announcing("/p"));
    assert_eq!(sent.len(), 1);
    assert_eq!((sent[0].face, sent[0].headers.lead_bytes), (A, announcement.len() as u16));
    assert!(sent[0].wire.starts_with(&announcement), "A learns too");
    let [(RouteRequest::Learn { face, .. }, bytes)] = &node.route_requests[..] else { panic!() };
    assert_eq!((*face, bytes), (C, &announcement));
}

#[test]
fn applications_get_bare_data() {
    let mut node = self_learning(&[]);
    node.receive(L, interest("/p/1", 1));
    let sent = node.receive(C, data("/p/1").announcing("/p"));
    assert_eq!((sent.clone(), sent[0].headers.lead_bytes), (vec![sent[0].clone()], 0));
    assert_eq!(sent, ["L Data /p/1"]);
    assert_eq!(node.route_requests.len(), 1);
}

#[test]
fn a_known_route_is_asked_without_discovery_and_the_announcement_attached() {
    let mut node = self_learning(&[B]);
    let announcement = announcement("/p");
    node.know_announcement("/p");
    for (asks, is_attached) in [(interest("/p/1", 1), true), (non_discovery(interest("/p/2", 2)), false)] {
        let name = if is_attached { "/p/1" } else { "/p/2" };
        let sent = node.receive(A, asks);
        assert_eq!((sent.len(), sent[0].face, sent[0].headers.non_discovery), (1, B, true));
        let sent = node.receive(B, data(name));
        assert_eq!(sent.len(), 1);
        let bytes = usize::from(sent[0].headers.lead_bytes);
        assert_eq!(bytes, if is_attached { announcement.len() } else { 0 });
        assert_eq!((&sent[0].wire[..bytes], &sent[0].wire[bytes..]), (&announcement[..bytes], &data(name).wire[..]));
        assert_eq!(node.route_requests.len(), 0, "there was nothing to learn");
    }
}

#[test]
fn without_a_route_a_non_discovery_interest_is_refused_and_the_refusal_ends_routes() {
    let mut node = self_learning(&[]);
    let sent = node.receive(A, non_discovery(interest("/p/1", 1)));
    assert_eq!(sent, ["A Nack NoRoute /p/1 #1"]);
    let mut node = self_learning(&[B, C]);
    node.receive(A, interest("/p/1", 1));
    assert_eq!(node.receive(B, nack(NackReason::NoRoute, "/p/1", 1)), NOTHING, "C may still answer");
    let [(RouteRequest::Forget { face: B, .. }, name)] = &node.route_requests[..] else { panic!() };
    assert_eq!(name, uri("/p/1").value());
    assert_eq!(node.receive(C, nack(NackReason::NoRoute, "/p/1", 1)), ["A Nack NoRoute /p/1 #1"]);
    assert!(matches!(node.route_requests[..], [(RouteRequest::Forget { face: C, .. }, _)]));
    node.receive(A, interest("/p/2", 2));
    node.receive(B, nack(NackReason::Congestion, "/p/2", 2));
    assert_eq!(node.route_requests.len(), 0, "only NoRoute says that there is no route");
}

#[test]
fn floods_are_suppressed() {
    let mut node = self_learning(&[]);
    let forwarded: Vec<u64> = [0, 5, 12, 30, 60, 120, 240, 300, 500, 760, 1100]
        .into_iter()
        .zip(1..)
        .filter(|&(ms, nonce)| !node.at(ms).receive(A, interest("/p", nonce)).is_empty())
        .map(|(ms, _)| ms)
        .collect();
    assert_eq!(forwarded, [0, 12, 60, 120, 240, 500, 760, 1100]);
}

/// A node with another strategy passes an announcement on, as NFD does, but does not store it.
#[test]
fn other_strategies_forward_announcements() {
    let mut node = Forwarder::routing("/", &[B]);
    let announcement = announcement("/p");
    node.receive(A, interest("/p/1", 1));
    node.receive(L, interest("/p/1", 2));
    let sent = node.receive(B, data("/p/1").announcing("/p"));
    let bytes: Vec<u16> = sent.iter().map(|sent| sent.headers.lead_bytes).collect();
    assert_eq!(bytes, [announcement.len() as u16, 0]);
    assert_eq!(node.receive(C, interest("/p/1", 3)), ["C Data /p/1 cached"]);
    assert_eq!(node.route_requests.len(), 0);
    let sent = node.receive(A, non_discovery(interest("/p/2", 4)));
    assert!(sent[0].headers.non_discovery, "the mark goes on");
}
