//! Holders of faces share the PIT: no holder can lock others out, whatever it sends.

use namewire_engine::{DropReason, EngineConfig, FaceAttributes, FaceId, FaceScope};
use namewire_packet::NackReason;
use namewire_shares::HolderId;
use namewire_testbed::*;

const HOUR_MS: u64 = 3_600_000;

fn remote(number: usize) -> HolderId {
    HolderId::from_index(300 + number).unwrap()
}

/// A forwarder with a PIT of 160 entries: 130 for all, 20 more for local faces, 10 more for management.
fn node() -> Forwarder {
    node_with(EngineConfig { pit_capacity_entries: 160, ..EngineConfig::default() })
}

fn node_with(config: EngineConfig) -> Forwarder {
    let mut node = Forwarder::new(config);
    node.route("/a", &[B]);
    node
}

fn add_face(node: &mut Forwarder, face: u64, holder: HolderId, scope: FaceScope) -> FaceId {
    node.faces.insert(FaceId(face), FaceAttributes { holder, ..FaceAttributes::new(scope, 0, false) });
    FaceId(face)
}

/// What a holder has of a pool, by the report that users see.
fn held(node: &Forwarder, pool: &str, holder: HolderId) -> u64 {
    let pools = node.engine().pools();
    pools.iter().find(|reader| reader.config().name == pool).unwrap().held(holder)
}

/// Forty ports of one host, each with Interests that live for an hour. Returns how many are pending.
fn flood(node: &mut Forwarder) -> u64 {
    for n in 0..2_000 {
        let port = add_face(node, 1_000 + u64::from(n % 40), remote(0), FaceScope::NonLocal);
        node.receive(port, interest(&format!("/a/flood/{n}"), n).lifetime_ms(HOUR_MS));
    }
    held(node, "pit", remote(0))
}

#[test]
fn a_host_with_many_ports_has_the_share_of_one_holder() {
    let mut node = node();
    assert_eq!(flood(&mut node), 104, "four fifths of what remote holders may use");
    assert_eq!(node.dropped(DropReason::PitShareUsed), 2_000 - 104);
    assert_eq!(node.counters().faces_cut.iter().count(), 0, "no port was beyond its own share");
    let honest = add_face(&mut node, 2_000, remote(1), FaceScope::NonLocal);
    for n in 0..500 {
        let name = format!("/a/honest/{n}");
        assert_eq!(node.receive(honest, interest(&name, 10_000 + n)).len(), 1, "{n}");
        assert_eq!(node.receive(B, data(&name)).len(), 1);
    }
    assert_eq!(node.counters().satisfied, 500);
}

/// A neighbour with one face reaches the limit of a face before that of its holder. It then displaced no entry.
#[test]
fn one_face_displaces_the_heaviest_too() {
    let mut node = node();
    flood(&mut node);
    let face = add_face(&mut node, 2_000, remote(1), FaceScope::NonLocal);
    for n in 0..40 {
        let sent = node.receive(face, interest(&format!("/a/light/{n}"), 20_000 + n));
        assert_eq!(sent.len(), 1, "{n}");
    }
}

/// A neighbour forwarded an attack with Interests of an hour. They filled its share, and its honest Interests got no
/// entry until they ended.
#[test]
fn short_interests_take_the_place_of_long_ones_of_their_face() {
    let mut node = node();
    let neighbour = add_face(&mut node, 1_000, remote(0), FaceScope::NonLocal);
    for n in 0..2_000 {
        node.receive(neighbour, interest(&format!("/a/attack/{n}"), n).lifetime_ms(HOUR_MS));
    }
    let pending = node.pit_len();
    assert_eq!(node.receive(neighbour, interest("/a/attack/x", 5_000).lifetime_ms(HOUR_MS)), NOTHING);
    let answered = (0..500).filter(|n| {
        let name = format!("/a/honest/{n}");
        let is_sent = node.receive(neighbour, interest(&name, 10_000 + n)).len() == 1;
        node.receive(B, data(&name));
        is_sent
    });
    // Four of the PIT's slots are looked at for each; rarely, all of them are free.
    assert!(answered.count() >= 490);
    assert!(node.pit_len() <= pending);
    // A long one must not push out another long one.
    let longs = |node: &Forwarder| held(node, "pit", remote(0));
    let before = longs(&node);
    for n in 0..100 {
        node.receive(neighbour, interest(&format!("/a/long/{n}"), 30_000 + n).lifetime_ms(HOUR_MS / 2 + 60_000));
    }
    assert!(longs(&node) >= before);
}

/// The entries of an hour were taken while there was room; they do not keep others out for an hour.
#[test]
fn entries_of_the_heaviest_holder_go_first() {
    let mut node = node();
    flood(&mut node);
    let pending = node.pit_len();
    // Others that together want far more than what is left, each less than half of what the flood has.
    for other in 0..6 {
        let face = add_face(&mut node, 2_000 + other, remote(1 + other as usize), FaceScope::NonLocal);
        for n in 0..15 {
            let sent = node.receive(face, interest(&format!("/a/{other}/{n}"), 20_000 + n));
            assert_eq!(sent.len(), 1, "{n} of holder {other}");
        }
    }
    let displaced: u64 = node.engine().pools().iter().map(|pool| pool.displaced()).sum();
    assert!(node.pit_len() >= pending && displaced > 0, "{displaced}");
    assert_eq!(held(&node, "pit", remote(0)), 104 - displaced);
    assert_eq!(node.counters().unsatisfied, displaced);
    assert!(node.counters().drops[DropReason::PitFull as usize] == 0);
    // A flood cannot displace holders that have less.
    flood(&mut node);
    for other in 0..6 {
        assert_eq!(held(&node, "pit", remote(1 + other)), 15);
    }
}

#[test]
fn reserves_are_for_local_applications_and_for_management() {
    let mut node = node();
    // Enough holders to use up all that remote holders may have.
    for holder in 0..65 {
        let face = add_face(&mut node, 1_000 + holder, remote(holder as usize), FaceScope::NonLocal);
        for n in 0..2 {
            let nonce = holder as u32 * 10 + n;
            node.receive(face, interest(&format!("/a/{holder}/{n}"), nonce).lifetime_ms(HOUR_MS));
        }
    }
    assert_eq!(node.pit_len(), 130);
    let late = add_face(&mut node, 3_000, remote(100), FaceScope::NonLocal);
    node.receive(late, interest("/a/late", 5_000));
    assert_eq!(node.dropped(DropReason::PitFull), 0, "it has nothing, and others have two");
    for n in 0..3 {
        node.receive(late, interest(&format!("/a/late/{n}"), 5_001 + n));
    }
    assert!(node.dropped(DropReason::PitFull) >= 2, "its equals are not displaced");
    // 16 of the 20 that are kept for local ones, then those of remote holders as long as they have twice as much.
    let sent: usize = (0..16).map(|n| node.receive(L, interest(&format!("/a/local/{n}"), 6_000 + n)).len()).sum();
    assert_eq!(sent, 16);
    let management = add_face(&mut node, 4_000, HolderId::MANAGEMENT, FaceScope::Local);
    let sent: usize =
        (0..8).map(|n| node.receive(management, interest(&format!("/a/management/{n}"), 7_000 + n)).len()).sum();
    assert_eq!(sent, 8);
}

/// Who joins an entry and waits longer keeps it, so it is charged for it. Or else anybody could use up another's share.
#[test]
fn the_downstream_that_waits_longest_is_charged() {
    let mut node = node();
    let [short, long] = [1, 2].map(|n| add_face(&mut node, 1_000 + n, remote(n as usize), FaceScope::NonLocal));
    node.receive(short, interest("/a/1", 1).lifetime_ms(1_000));
    assert_eq!(held(&node, "pit", remote(1)), 1);
    node.receive(long, interest("/a/1", 2).lifetime_ms(HOUR_MS));
    assert_eq!([1, 2].map(|n| held(&node, "pit", remote(n))), [0, 1]);
    assert_eq!([1, 2].map(|n| held(&node, "in-records", remote(n))), [0, 1], "one beyond the first");
    node.remove_face(long);
    assert_eq!([1, 2].map(|n| held(&node, "pit", remote(n))), [1, 0]);
    assert_eq!([1, 2].map(|n| held(&node, "in-records", remote(n))), [0, 0]);
    node.at(1_004).run_timers();
    assert_eq!((held(&node, "pit", remote(1)), node.pit_len()), (0, 0));
}

/// 2,048 Interests of 8 kB kept every signed command out.
#[test]
fn bytes_of_long_interests_are_shared() {
    let mut node = node_with(EngineConfig { interest_overflow_bytes: 160_000, ..EngineConfig::default() });
    let [flood, other] = [1, 2].map(|n| add_face(&mut node, 1_000 + n, remote(n as usize), FaceScope::NonLocal));
    let large = |name: &str, nonce| interest(name, nonce).parameters(&[0; 8_000]).lifetime_ms(HOUR_MS);
    (0..100).for_each(|n| drop(node.receive(flood, large(&format!("/a/{n}"), n))));
    assert!(node.dropped(DropReason::PitOverflowFull) > 80);
    assert_eq!(node.receive(other, large("/a/other", 1_000)).len(), 1);
    assert_eq!(node.receive(L, large("/a/local", 1_001)).len(), 1);
    let management = add_face(&mut node, 4_000, HolderId::MANAGEMENT, FaceScope::Local);
    assert_eq!(node.receive(management, large("/a/management", 1_002)).len(), 1);
    node.remove_face(flood);
    assert_eq!(held(&node, "long-interests", remote(1)), 0);
}

/// 300 ports that ask for 500 names each left the second consumer of anything with nothing.
#[test]
fn further_downstreams_are_shared() {
    let mut node = node_with(EngineConfig { record_capacity: 160, ..EngineConfig::default() });
    for n in 0..300 {
        let port = add_face(&mut node, 1_000 + u64::from(n), remote(0), FaceScope::NonLocal);
        node.receive(port, interest("/a/joined", n).lifetime_ms(HOUR_MS));
    }
    assert_eq!((held(&node, "in-records", remote(0)), node.dropped(DropReason::InRecordsFull)), (104, 195));
    let [first, second] = [1, 2].map(|n| add_face(&mut node, 3_000 + n, remote(n as usize), FaceScope::NonLocal));
    node.receive(first, interest("/a/other", 1_000));
    node.receive(second, interest("/a/other", 1_001));
    assert_eq!(node.receive(B, data("/a/other")).len(), 2);
    assert_eq!(node.receive(B, data("/a/joined")).len(), 105);
    assert_eq!(held(&node, "in-records", remote(0)), 0);
}

/// Further upstreams are charged to who asks, and given back however an entry ends.
#[test]
fn further_upstreams_are_shared() {
    let mut node = node_with(EngineConfig { record_capacity: 16, ..EngineConfig::default() });
    node.route_with("/m", &[B, C, D], "multicast");
    let asker = add_face(&mut node, 1_000, remote(0), FaceScope::NonLocal);
    (0..20).for_each(|n| drop(node.receive(asker, interest(&format!("/m/{n}"), n).lifetime_ms(1_000))));
    assert_eq!(held(&node, "out-records", remote(0)), 11, "13 for remote holders, and one holder may have four fifths");
    let other = add_face(&mut node, 1_001, remote(1), FaceScope::NonLocal);
    assert_eq!(node.receive(other, interest("/m/other", 100).lifetime_ms(1_000)).len(), 3);
    node.receive(B, data("/m/0"));
    node.receive(C, nack(NackReason::NoRoute, "/m/1", 1));
    node.remove_face(D);
    node.at(1_004).run_timers();
    assert_eq!((held(&node, "out-records", remote(0)), node.pit_len()), (0, 0));
}

/// Two holders charged each other for the entries that both asked for, so that neither met a share.
#[test]
fn joining_takes_no_more_than_a_share() {
    let mut node = node_with(EngineConfig { interest_overflow_bytes: 1_600_000, ..EngineConfig::default() });
    let [first, second] = [1, 2].map(|n| add_face(&mut node, 1_000 + n, remote(n as usize), FaceScope::NonLocal));
    let large = |name: &str, nonce, ms| interest(name, nonce).parameters(&[0; 8_000]).lifetime_ms(ms);
    for n in 0..400 {
        let name = format!("/a/{n}");
        node.receive(first, large(&name, n, 1_000));
        node.receive(second, large(&name, 1_000 + n, HOUR_MS));
    }
    let held = |n| held(&node, "long-interests", remote(n));
    let usable = 1_600_000 * 13 / 16;
    assert!(held(2) <= usable * 4 / 5 + 12_288 && held(1) + held(2) < usable, "{} and {}", held(1), held(2));
    let other = add_face(&mut node, 3_000, remote(3), FaceScope::NonLocal);
    assert_eq!(node.receive(other, large("/a/other", 2_000, 1_000)).len(), 1);
    // What a holder joins beyond its share ends with the others' Interests.
    node.at(1_004).run_timers();
    let left = node.pit_len();
    assert!(left <= usable as usize * 4 / 5 / 8_000 + 1, "{left}");
}

/// An Interest that a flood has joined to make it look like its own is not lost with the flood's.
#[test]
fn an_entry_that_others_wait_for_outlives_the_heavy_holder() {
    let mut node = node();
    let honest = add_face(&mut node, 2_000, remote(1), FaceScope::NonLocal);
    for n in 0..10 {
        node.receive(honest, interest(&format!("/a/honest/{n}"), 30_000 + n).lifetime_ms(60_000));
        let port = add_face(&mut node, 1_000, remote(0), FaceScope::NonLocal);
        node.receive(port, interest(&format!("/a/honest/{n}"), 31_000 + n).lifetime_ms(HOUR_MS));
    }
    flood(&mut node);
    let asker = add_face(&mut node, 4_000, remote(2), FaceScope::NonLocal);
    for n in 0..25 {
        node.receive(asker, interest(&format!("/a/asker/{n}"), 40_000 + n));
    }
    assert!(node.engine().pools().iter().any(|pool| pool.displaced() > 0));
    for n in 0..10 {
        let sent = node.receive(B, data(&format!("/a/honest/{n}")));
        assert!(sent.iter().any(|sent| sent.face == honest), "{n}");
    }
}

/// 1,024 ports of one host at one name shut everybody else out of it.
#[test]
fn the_last_downstreams_of_an_entry_are_for_others() {
    let mut node = Forwarder::routing("/a", &[B]);
    for n in 0..1_100 {
        let port = add_face(&mut node, 1_000 + u64::from(n), remote(0), FaceScope::NonLocal);
        node.receive(port, interest("/a/popular", n).lifetime_ms(HOUR_MS));
    }
    assert_eq!(node.dropped(DropReason::InRecordsFull), 1_100 - 896);
    node.receive(L, interest("/a/popular", 5_000));
    assert_eq!(node.receive(B, data("/a/popular")).len(), 897);
}

/// The networks of one site have one share, and do not displace others as if each were light.
#[test]
fn a_site_displaces_nobody_who_has_less() {
    use namewire_shares::{Holder, HolderTable};
    let table = HolderTable::default();
    let mut node =
        Forwarder::sharing(EngineConfig { pit_capacity_entries: 1_600, ..EngineConfig::default() }, table.groups());
    node.route("/a", &[B]);
    let honest = add_face(&mut node, 2_000, table.enter(&Holder::Ipv4([192, 0, 2, 1].into())), FaceScope::NonLocal);
    for n in 0..200 {
        node.receive(honest, interest(&format!("/a/honest/{n}"), n).lifetime_ms(HOUR_MS));
    }
    for n in 0..20_000_u32 {
        let network = 0x2001_0db8_0000_0000 + u64::from(n % 64);
        let holder = table.enter(&Holder::Ipv6Network(network));
        let face = add_face(&mut node, 3_000 + u64::from(n % 64), holder, FaceScope::NonLocal);
        node.receive(face, interest(&format!("/a/site/{n}"), 1_000 + n).lifetime_ms(HOUR_MS));
    }
    let of_honest = table.enter(&Holder::Ipv4([192, 0, 2, 1].into()));
    assert_eq!(held(&node, "pit", of_honest), 200);
    assert!(node.pit_len() < 1_300, "{}", node.pit_len());
}

/// An Interest whose long part has no room ended an entry of another holder, and got none itself.
#[test]
fn an_interest_without_room_for_its_long_part_displaces_nobody() {
    let mut node = node_with(EngineConfig {
        pit_capacity_entries: 160,
        interest_overflow_bytes: 20_000,
        ..EngineConfig::default()
    });
    flood(&mut node);
    let asker = add_face(&mut node, 2_000, remote(1), FaceScope::NonLocal);
    (0..30).for_each(|n| drop(node.receive(asker, interest(&format!("/a/asker/{n}"), 20_000 + n))));
    let displaced = |node: &Forwarder| -> u64 { node.engine().pools().iter().map(|pool| pool.displaced()).sum() };
    let large = |n: u32| interest(&format!("/a/large/{n}"), 30_000 + n).parameters(&[0; 8_000]);
    assert_eq!(node.receive(asker, large(0)).len(), 1);
    let before = displaced(&node);
    assert!(before > 0, "there is pressure");
    (1..20).for_each(|n| assert_eq!(node.receive(asker, large(n)), NOTHING));
    assert_eq!((displaced(&node), node.dropped(DropReason::PitOverflowFull)), (before, 19));
}

/// A face that joined everything others asked for looked light, for its holder is charged for nothing.
#[test]
fn a_face_that_waits_for_too_much_displaces_no_other_holder() {
    let mut node = node();
    let names: Vec<String> = (0..123).map(|n| format!("/a/{n}")).collect();
    for (name, n) in names.iter().zip(0..) {
        let face = add_face(&mut node, 2_000 + u64::from(n / 2), remote(1 + n as usize / 2), FaceScope::NonLocal);
        node.receive(face, interest(name, n).lifetime_ms(HOUR_MS));
    }
    let joins = add_face(&mut node, 1_000, remote(0), FaceScope::NonLocal);
    names.iter().zip(1_000..).for_each(|(name, n)| drop(node.receive(joins, interest(name, n))));
    assert_eq!(node.receive(joins, interest("/a/new", 5_000)), NOTHING);
    assert_eq!((node.dropped(DropReason::FaceShareUsed), node.pit_len()), (1, 123));
    assert!(node.engine().pools().iter().all(|pool| pool.displaced() == 0));
}
