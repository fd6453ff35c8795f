//! A face that floods is limited before it holds the whole PIT, and the counters name this face.

use namewire_engine::{DropReason, EngineConfig, FaceCut, FaceScope};
use namewire_packet::NackReason;
use namewire_testbed::*;

fn node(pit_capacity_entries: u32) -> Forwarder {
    let mut node = Forwarder::new(EngineConfig { pit_capacity_entries, ..EngineConfig::default() });
    node.route("/a", &[B]);
    node
}

#[test]
fn a_flood_holds_its_share_and_others_are_served() {
    let mut node = node(100);
    for n in 0..500 {
        node.receive(A, interest(&format!("/a/flood/{n}"), n).lifetime_ms(60_000));
    }
    assert_eq!((node.pit_len(), node.dropped(DropReason::FaceShareUsed)), (63, 437));
    let cuts: Vec<FaceCut> = node.counters().faces_cut.iter().collect();
    assert_eq!(cuts, [FaceCut { face: A, interests: 437 }]);
    for n in 500..600 {
        let name = format!("/a/honest/{n}");
        assert_eq!(node.receive(C, interest(&name, n)).len(), 1);
        assert_eq!(node.receive(B, data(&name)).len(), 1);
    }
    assert_eq!(node.dropped(DropReason::PitFull), 0);
    // The flooding face may retransmit its pending Interests, and join those of others.
    node.receive(A, interest("/a/flood/1", 700));
    node.receive(C, interest("/a/both", 701));
    node.receive(A, interest("/a/both", 702));
    let counters = node.counters();
    assert_eq!((counters.retransmitted, counters.aggregated, node.dropped(DropReason::FaceShareUsed)), (1, 1, 437));
}

/// However an in-record ends, its face may ask for as much as before.
#[test]
fn what_a_face_waits_for_is_counted_down_by_every_end() {
    let mut node = node(100);
    let fill = |node: &mut Forwarder, round: u32, all: usize| {
        let before = node.pit_len();
        for n in 0..200 {
            let nonce = round * 1_000 + n;
            node.receive(A, interest(&format!("/a/{round}/{n}"), nonce).lifetime_ms(1000));
        }
        assert_eq!(node.pit_len() - before, all, "round {round}");
    };
    fill(&mut node, 0, 63);
    (0..63).for_each(|n| drop(node.receive(B, data(&format!("/a/0/{n}")))));
    fill(&mut node, 1, 63);
    (0..63).for_each(|n| drop(node.receive(B, nack(NackReason::NoRoute, &format!("/a/1/{n}"), 1_000 + n))));
    node.at(1).run_timers();
    assert_eq!(node.pit_len(), 0);
    fill(&mut node, 2, 63);
    node.at(2_000).run_timers();
    assert_eq!(node.pit_len(), 0);
    fill(&mut node, 3, 63);
    node.remove_face(A);
    assert_eq!(node.pit_len(), 0);
    node.add_face(A, FaceScope::NonLocal);
    for n in 0..4 {
        node.receive(C, interest(&format!("/a/4/{n}"), 4_000 + n).lifetime_ms(10_000));
    }
    fill(&mut node, 4, 59);
}
