//! Packet tables of the Incoming Data pipeline: in → verdict → out.

use namewire_engine::{DataFrom, DropReason, EngineConfig, FaceId, UnsolicitedPolicy};
use namewire_packet::{DataBuilder, Interest};
use namewire_testbed::*;

/// Data may come from any face.
fn trusting() -> Forwarder {
    let mut node = Forwarder::new(EngineConfig { data_from: DataFrom::Any, ..EngineConfig::default() });
    node.route("/a", &[B]);
    node
}

#[test]
fn goes_to_everyone_but_where_it_came_from() {
    let mut node = trusting();
    for (face, nonce) in [(A, 1), (C, 2), (X, 3), (L, 4)] {
        node.receive(face, interest("/a", nonce));
    }
    // C answers although only B was asked; C's own Interest gets nothing back.
    assert_eq!(node.receive(C, data("/a")), ["A Data /a", "X Data /a", "L Data /a"]);
    assert_eq!(node.pit_len(), 0);
    assert_eq!(node.receive(B, data("/a")), NOTHING);
    assert_eq!(node.dropped(DropReason::UnsolicitedData), 1);
}

#[test]
fn goes_back_only_on_an_ad_hoc_link() {
    for (face, back) in [(A, 0), (X, 0), (H, 1)] {
        let mut node = trusting();
        node.receive(face, interest("/a", 1));
        assert_eq!(node.receive(face, data("/a")).len(), back, "{face}");
        assert_eq!(node.pit_len(), 0);
    }
}

#[test]
fn bytes_and_headers() {
    let mut node = Forwarder::routing("/a", &[B]);
    node.receive(A, interest("/a", 1));
    let packet = fresh_data("/a", 10).token(b"theirs").mark(1);
    let sent = node.receive(B, packet.clone());
    assert_eq!(sent, ["A Data /a mark=1"]);
    assert_eq!(sent[0].wire, packet.wire);
    assert_eq!(sent[0].headers.incoming_face_id, Some(B));
}

#[test]
fn prefix_match() {
    // Interest, CanBePrefix, Data, satisfied?
    let table = [
        ("/a", false, "/a", true),
        ("/a", true, "/a", true),
        ("/a", false, "/a/b", false),
        ("/a", true, "/a/b", true),
        ("/a", true, "/a/b/c/d", true),
        ("/a/b", true, "/a", false),
        ("/a", true, "/ab", false),
        ("/a", true, "/", false),
    ];
    for (asked, can_be_prefix, name, satisfied) in table {
        let mut node = Forwarder::routing("/", &[B]);
        let packet = interest(asked, 1);
        node.receive(A, if can_be_prefix { packet.can_be_prefix() } else { packet });
        let sent = node.receive(B, data(name));
        assert_eq!(sent.len(), usize::from(satisfied), "{asked} {can_be_prefix} {name}");
        assert_eq!(node.pit_len(), usize::from(!satisfied));
    }
}

#[test]
fn one_copy_per_face_and_token_over_all_entries() {
    let mut node = Forwarder::routing("/", &[B]);
    node.receive(A, interest("/a/b", 1));
    node.receive(A, interest("/a/b", 2).must_be_fresh());
    node.receive(A, interest("/a", 3).can_be_prefix());
    node.receive(A, interest("/a/b", 4).can_be_prefix().token(b"t"));
    node.receive(A, interest("/a/b", 5).can_be_prefix().must_be_fresh().token(b"t"));
    node.receive(C, interest("/a", 6).can_be_prefix().token(b"t"));
    node.receive(C, interest("/other", 7));
    assert_eq!(node.pit_len(), 6);
    let mut sent: Vec<String> = node.receive(B, data("/a/b")).into_iter().map(|sent| sent.line()).collect();
    sent.sort();
    assert_eq!(sent, ["A Data /a/b", "A Data /a/b token=74", "C Data /a/b token=74"]);
    assert_eq!((node.pit_len(), node.counters().satisfied), (1, 5));
    // The next Data that satisfies several entries starts with an empty list.
    node.receive(A, interest("/a/c", 8));
    node.receive(A, interest("/a", 9).can_be_prefix().must_be_fresh());
    assert_eq!(node.receive(B, data("/a/c")), ["A Data /a/c"]);
}

#[test]
fn expired_downstreams_of_several_entries_get_nothing() {
    let mut node = Forwarder::routing("/", &[B]);
    node.receive(A, interest("/a/b", 1).lifetime_ms(100));
    node.receive(C, interest("/a", 2).can_be_prefix());
    assert_eq!(node.at(100).receive(B, data("/a/b")), ["C Data /a/b"]);
}

// ---- Implicit digest ----

#[test]
fn digest_interest_is_satisfied_by_the_right_data_only() {
    let (right, wrong) = (fresh_data("/a", 1), fresh_data("/a", 2));
    let mut node = Forwarder::routing("/", &[B]);
    node.receive(A, interest(&full_name(&right), 1));
    assert_eq!(node.receive(B, wrong), NOTHING);
    assert_eq!((node.pit_len(), node.dropped(DropReason::UnsolicitedData)), (1, 1));
    assert_eq!(node.receive(B, right), ["A Data /a"]);
    assert_eq!(node.pit_len(), 0);
}

#[test]
fn digest_and_plain_interest_for_one_data() {
    let answer = data("/a/b");
    let mut node = Forwarder::routing("/", &[B]);
    node.receive(A, interest(&full_name(&answer), 1));
    node.receive(C, interest("/a/b", 2));
    node.receive(D, interest("/a", 3).can_be_prefix());
    let faces: Vec<FaceId> = node.receive(B, answer).iter().map(|sent| sent.face).collect();
    assert_eq!(faces.len(), 3);
    assert!([A, C, D].iter().all(|face| faces.contains(face)));
    assert_eq!(node.pit_len(), 0);
}

#[test]
fn data_without_a_name() {
    let answer = Packet::raw(DataBuilder::new(uri("/")).content(b"x").sign_digest());
    let mut node = Forwarder::routing("/", &[B]);
    assert_eq!(node.receive(B, answer.clone()), NOTHING);
    assert_eq!(node.dropped(DropReason::UnsolicitedData), 1);
    node.receive(A, interest(&full_name(&answer), 1));
    assert_eq!(node.receive(B, answer.clone()), ["A Data /"]);
    assert_eq!(node.receive(C, interest(&full_name(&answer), 2)), ["C Data / cached"]);
}

// ---- Scope ----

#[test]
fn localhost_data_from_outside_is_dropped() {
    let mut node = Forwarder::routing("/", &[M]);
    node.receive(L, interest("/localhost/x", 1));
    assert_eq!(node.receive(A, data("/localhost/x")), NOTHING);
    assert_eq!(node.dropped(DropReason::ScopeViolation), 1);
    assert_eq!(node.receive(M, data("/localhost/x")), ["L Data /localhost/x"]);
}

#[test]
fn localhop_data_is_not_limited() {
    let mut node = Forwarder::routing("/", &[L]);
    node.receive(A, interest("/localhop/x", 1));
    assert_eq!(node.receive(L, data("/localhop/x")), ["A Data /localhop/x"]);
}

// ---- Unsolicited ----

#[test]
fn unsolicited_policies() {
    use UnsolicitedPolicy::{AdmitAll, AdmitLocal, AdmitNetwork, DropAll};
    // policy, admitted from the network, from an application
    let table = [(DropAll, 0, 0), (AdmitLocal, 0, 1), (AdmitNetwork, 1, 0), (AdmitAll, 1, 1)];
    for (unsolicited, network, local) in table {
        for (face, admitted) in [(A, network), (L, local)] {
            let mut node = Forwarder::new(EngineConfig { unsolicited, ..EngineConfig::default() });
            assert_eq!(node.receive(face, data("/a")), NOTHING);
            assert_eq!(node.engine().cs_len(), admitted, "{unsolicited:?} {face}");
            assert_eq!(node.dropped(DropReason::UnsolicitedData), 1 - admitted as u64);
            assert_eq!(
                node.receive(B, interest("/a", 1)).iter().any(|sent| *sent == "B Data /a cached"),
                admitted == 1
            );
        }
    }
}

/// Data that the policy admits, but not its header or the store, vanished uncounted.
#[test]
fn unsolicited_data_that_is_admitted_but_not_stored_is_counted() {
    let admitting = || EngineConfig { unsolicited: UnsolicitedPolicy::AdmitAll, ..EngineConfig::default() };
    for (config, packet) in [
        (EngineConfig { cs_admit: false, ..admitting() }, data("/a")),
        (EngineConfig { cs_capacity_bytes: 100, ..admitting() }, data("/a")),
        (admitting(), data("/a").no_cache()),
    ] {
        let mut node = Forwarder::new(config);
        assert_eq!(node.receive(A, packet), NOTHING);
        assert_eq!((node.dropped(DropReason::UnsolicitedData), node.engine().cs_len()), (1, 0));
    }
}

#[test]
fn unknown_face_is_dropped() {
    let mut node = Forwarder::routing("/a", &[B]);
    node.receive(A, interest("/a", 1));
    assert_eq!(node.receive(FaceId(999), data("/a")), NOTHING);
    assert_eq!((node.dropped(DropReason::UnknownFace), node.pit_len()), (1, 1));
}

/// A regression: NDNLPv2 §2 has the receiver drop Data with a Nack header; it was taken for Data.
#[test]
fn data_with_a_nack_header_is_refused() {
    let mut node = Forwarder::routing("/a", &[B]);
    node.receive(A, interest("/a", 1));
    assert_eq!(node.receive(B, data("/a").nacked(namewire_packet::NackReason::NoRoute)), NOTHING);
    assert_eq!((node.dropped(DropReason::Malformed), node.pit_len()), (1, 1));
}

// ---- Faces that close ----

#[test]
fn removed_face_neither_waits_nor_answers() {
    let mut node = Forwarder::routing("/a", &[B]);
    node.receive(A, interest("/a", 1));
    node.receive(C, interest("/a", 2));
    node.remove_face(A);
    assert_eq!(node.receive(B, data("/a")), ["C Data /a"]);

    // The only downstream closes, and the entry ends: the answer is unsolicited.
    node.receive(C, interest("/a/2", 3));
    node.remove_face(C);
    assert_eq!((node.pit_len(), node.counters().unsatisfied), (0, 1));
    assert_eq!(node.receive(B, data("/a/2")), NOTHING);

    // The only upstream closes: a new Interest finds no live out-record and is sent elsewhere.
    node.route("/b", &[B]);
    node.receive(L, interest("/b", 4));
    assert_eq!(node.remove_face(B), NOTHING);
    node.route("/b", &[B, D]);
    assert_eq!(node.receive(L, interest("/b", 5)), ["D Interest /b #5"]);
}

/// The token group's variants, and a token that fits another name.
#[test]
fn tokens_are_hints_and_the_name_decides() {
    let mut node = Forwarder::routing("/", &[B]);
    node.send_tokens(B);
    let of_a = node.receive(A, interest("/a", 1))[0].headers.pit_token.unwrap();
    let of_b = node.receive(A, interest("/b", 2))[0].headers.pit_token.unwrap();
    assert_ne!(of_a, of_b);
    // Wrong but live token, stale token, foreign tokens: by name.
    assert_eq!(node.receive(B, data("/a").token(of_b.as_bytes())), ["A Data /a"]);
    assert_eq!(node.receive(B, data("/b").token(of_a.as_bytes())), ["A Data /b"]);
    for token in [&[0][..], &[255; 6], &[0; 6], &[7; 32], of_a.as_bytes()] {
        node.receive(A, interest("/c", 9).must_be_fresh());
        assert_eq!(node.receive(B, data("/c").no_cache().token(token)), ["A Data /c"], "{token:?}");
        node.at(node.now.0 / 1_000_000 + 7_000);
    }
    // With a valid token, a shorter CanBePrefix entry is satisfied too.
    node.receive(C, interest("/d", 10).can_be_prefix());
    let of_d = node.receive(A, interest("/d/e", 11))[0].headers.pit_token.unwrap();
    assert_eq!(node.receive(B, data("/d/e").token(of_d.as_bytes())).len(), 2);
    assert_eq!((node.counters().redispatched, node.pit_len()), (0, 0));
}

#[test]
fn same_name_twice_in_one_batch() {
    let mut node = Forwarder::routing("/a", &[B]);
    // The second Interest joins the first, the Data answers both, and the third finds the copy.
    let sent = node.receive_batch(&[
        (A, interest("/a", 1)),
        (C, interest("/a", 2)),
        (B, data("/a")),
        (D, interest("/a", 3)),
        (B, data("/a")),
    ]);
    assert_eq!(sent, ["B Interest /a #1", "A Data /a", "C Data /a", "D Data /a cached"]);
    assert_eq!((node.counters().aggregated, node.dropped(DropReason::UnsolicitedData)), (1, 1));
}

#[test]
fn cached_data_evicted_in_the_batch_that_sends_it() {
    let mut node = Forwarder::new(EngineConfig { cs_capacity_packets: 1, ..EngineConfig::default() });
    node.route("/", &[B]);
    node.receive(A, interest("/a", 1));
    node.receive(A, interest("/b", 2));
    node.receive(B, data("/a"));
    let sent = node.receive_batch(&[(C, interest("/a", 3)), (B, data("/b")), (C, interest("/a", 4))]);
    assert_eq!(sent, ["C Data /a cached", "A Data /b", "B Interest /a #4"]);
    assert_eq!(sent[0].wire, data("/a").wire);
    assert!(Interest::parse(&sent[2].wire).is_ok());
}
