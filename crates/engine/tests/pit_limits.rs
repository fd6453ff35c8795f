//! What happens when the PIT or one of its entries is full, and when names are as long as they may be.

use namewire_engine::{DropReason, EngineConfig, FaceAttributes, FaceId, FaceScope};
use namewire_packet::{InterestBuilder, NackReason, Nonce};
use namewire_shares::HolderId;
use namewire_testbed::*;

/// A face of one of two hundred users.
fn add_face_of_its_own(node: &mut Forwarder, face: u64) {
    let holder = HolderId::from_index(1 + face as usize % 200).unwrap();
    node.faces.insert(FaceId(face), FaceAttributes { holder, ..FaceAttributes::new(FaceScope::Local, 0, false) });
}

#[test]
fn pit_full() {
    let mut node = Forwarder::new(EngineConfig { pit_capacity_entries: 2, ..EngineConfig::default() });
    node.route("/a", &[B]);
    for n in 1..=2 {
        assert_eq!(node.receive(A, interest(&format!("/a/{n}"), n)).len(), 1);
    }
    assert_eq!(node.receive(A, interest("/a/3", 3)), NOTHING);
    assert_eq!(node.dropped(DropReason::PitFull), 1);
    // Pending Interests continue.
    assert_eq!(node.receive(C, interest("/a/1", 4)), NOTHING);
    assert_eq!((node.counters().aggregated, node.dropped(DropReason::PitFull)), (1, 1));
    node.receive(B, data("/a/1"));
    assert_eq!(node.receive(A, interest("/a/3", 5)).len(), 1);
}

/// Ten Interests of ten days, from a face that had closed again, held a PIT of ten for ten days.
#[test]
fn a_face_that_goes_takes_its_pending_interests_along() {
    const DAY_MS: u64 = 24 * 3600 * 1000;
    // Of eleven, one is kept for local applications.
    let config = EngineConfig { pit_capacity_entries: 11, face_share_percent: 100, ..EngineConfig::default() };
    let mut node = Forwarder::new(config);
    node.route("/a", &[B]);
    (0..10).for_each(|n| drop(node.receive(A, interest(&format!("/a/{n}"), n).lifetime_ms(10 * DAY_MS))));
    node.receive(C, interest("/a/0", 100).lifetime_ms(1000)); // it is pending here as well
    node.remove_face(A);
    assert_eq!((node.pit_len(), node.counters().unsatisfied), (1, 9));
    assert_eq!(node.receive(C, interest("/a/x", 101).lifetime_ms(500)).len(), 1);
    // A copy that is still circulating is a loop.
    assert_eq!(node.receive(D, interest("/a/5", 5)), ["D Nack Duplicate /a/5 #5"]);
    // C alone now decides how long the remaining entry stays.
    node.at(1004).run_timers();
    assert_eq!((node.pit_len(), node.engine().next_deadline()), (0, None));
}

#[test]
fn lifetimes_are_capped_as_configured() {
    let mut node = Forwarder::new(EngineConfig { max_lifetime_ms: 1000, ..EngineConfig::default() });
    node.route("/a", &[B]);
    node.receive(A, interest("/a/1", 1).lifetime_ms(u64::MAX));
    node.receive(A, interest("/a/2", 2).lifetime_ms(500));
    node.at(504).run_timers();
    assert_eq!(node.pit_len(), 1);
    node.at(1004).run_timers();
    assert_eq!(node.pit_len(), 0);
}

#[test]
fn room_for_large_interests_full() {
    let mut node = Forwarder::new(EngineConfig { interest_overflow_bytes: 3000, ..EngineConfig::default() });
    node.route("/a", &[B]);
    assert_eq!(node.receive(A, interest("/a/1", 1).parameters(&[0; 2000])).len(), 1);
    assert_eq!(node.receive(A, interest("/a/2", 2).parameters(&[0; 2000])), NOTHING);
    assert_eq!(node.dropped(DropReason::PitOverflowFull), 1);
    assert_eq!(node.receive(A, interest("/a/3", 3)).len(), 1, "a small one needs no such room");
    node.at(5000).run_timers();
    assert_eq!(node.receive(A, interest("/a/2", 4).parameters(&[0; 2000])).len(), 1);
}

#[test]
fn in_records_are_limited() {
    let mut node = Forwarder::routing("/a", &[B]);
    for face in 0..1025 {
        add_face_of_its_own(&mut node, 1000 + face);
        node.receive(FaceId(1000 + face), interest("/a", face as u32));
    }
    assert_eq!(node.dropped(DropReason::InRecordsFull), 1);
    assert_eq!(node.receive(B, data("/a")).len(), 1024);
}

/// A multicast Interest that left through one face was counted as dropped for each of the others.
#[test]
fn upstreams_are_limited_and_an_interest_that_left_is_no_drop() {
    let mut node = Forwarder::new(EngineConfig { record_capacity: 0, ..EngineConfig::default() });
    node.route_with("/m", &[B, C, D], "multicast");
    node.route("/a", &[B, C]);
    assert_eq!(node.receive(A, interest("/m", 1)).len(), 1);
    assert_eq!(node.dropped(DropReason::OutRecordsFull), 0);
    // A retransmission that no face takes is one drop.
    node.receive(A, interest("/a", 2));
    assert_eq!(node.at(100).receive(A, interest("/a", 3)), NOTHING);
    assert_eq!((node.dropped(DropReason::OutRecordsFull), node.counters().dropped_total()), (1, 1));
    // A chosen face is refused in the same way.
    assert_eq!(node.at(200).receive(L, interest("/m", 4).next_hop(C)), NOTHING);
    assert_eq!(node.dropped(DropReason::InRecordsFull), 1);
}

/// 64 Nacks, each for an entry with 1,024 downstreams, made one call write 577 MB.
#[test]
fn nacks_of_one_batch_are_limited_in_bytes() {
    const DOWNSTREAMS: u32 = 1024;
    let mut node = Forwarder::routing("/a", &[B]);
    let large = |name: &str, nonce| interest(name, nonce).parameters(&[0; 8600]);
    let names = ["/a/1", "/a/2"];
    for face in 0..DOWNSTREAMS {
        add_face_of_its_own(&mut node, 1000 + u64::from(face));
        names.iter().for_each(|name| drop(node.receive(FaceId(1000 + u64::from(face)), large(name, face))));
    }
    let nacks = names.map(|name| (B, large(name, 0).nacked(NackReason::NoRoute)));
    let sent = node.receive_batch(&nacks);
    let bytes: usize = sent.iter().map(|sent| sent.wire.len()).sum();
    assert!((16 << 20..(16 << 20) + 8800).contains(&bytes), "{bytes} bytes of {} Nacks", sent.len());
    assert_eq!(sent.len() as u64 + node.dropped(DropReason::RewrittenFull), u64::from(2 * DOWNSTREAMS));
    assert_eq!((node.counters().out_nacks, node.pit_len()), (sent.len() as u64, 0));
}

/// `Engine::new` promises an error if it gets no memory; the records once ended the process.
#[test]
fn any_record_capacity_makes_an_engine_or_an_error() {
    for record_capacity in [0, 1 << 25, u32::MAX] {
        let config = EngineConfig { record_capacity, ..EngineConfig::default() };
        let key = namewire_tables::HashKey::from_seed(1);
        let dispatcher = std::sync::Arc::new(namewire_engine::dispatch::Dispatcher::new(1, key));
        let _ = namewire_engine::Engine::new(config, 0, dispatcher, key, 1, &Default::default());
    }
}

/// A pool of three further downstreams holds three, not as many as an allocator had spare room for.
#[test]
fn further_downstreams_are_limited_over_all_entries() {
    let mut node = Forwarder::new(EngineConfig { record_capacity: 3, ..EngineConfig::default() });
    node.route("/a", &[B]);
    for name in ["/a/1", "/a/2"] {
        [A, C, D, L].into_iter().zip(0..).for_each(|(face, nonce)| drop(node.receive(face, interest(name, nonce))));
    }
    assert_eq!((node.pit_len(), node.counters().aggregated, node.dropped(DropReason::InRecordsFull)), (2, 3, 3));
}

#[test]
fn names_of_up_to_256_components() {
    let mut node = Forwarder::routing("/n", &[B]);
    for components in [1, 255, 256] {
        for can_be_prefix in [false, true] {
            let build = |n: u32| {
                let builder = InterestBuilder::new(long_name(components)).can_be_prefix(can_be_prefix);
                Packet::raw(builder.nonce(Nonce::from_u32(n)).build())
            };
            assert_eq!(node.receive(A, build(components as u32)).len(), 1, "{components}");
            let answer = namewire_packet::DataBuilder::new(long_name(components)).sign_digest();
            assert_eq!(node.receive(B, Packet::raw(answer).no_cache()).len(), 1, "{components}");
        }
    }
    let too_long = InterestBuilder::new(long_name(257)).nonce(Nonce::from_u32(1)).can_be_prefix(true).build();
    assert_eq!(node.receive(A, Packet::raw(too_long)), NOTHING);
    let answer = namewire_packet::DataBuilder::new(long_name(257)).sign_digest();
    assert_eq!(node.receive(B, Packet::raw(answer)), NOTHING);
    assert_eq!(node.dropped(DropReason::NameTooLong), 2);
    assert_eq!(node.pit_len(), 0);
}
