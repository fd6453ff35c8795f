//! Packet tables of the Incoming Interest pipeline: in → verdict → out.

use namewire_engine::{DropReason, EngineConfig, FaceId, LimitMet};
use namewire_packet::{Interest, InterestBuilder, NackReason};
use namewire_testbed::*;

#[test]
fn goes_to_the_next_hop_as_it_came() {
    let mut node = Forwarder::routing("/a", &[B]);
    let packet = interest("/a/b", 1).lifetime_ms(700).parameters(b"p");
    let sent = node.receive(A, packet.clone());
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].face, B);
    assert_eq!(sent[0].wire, packet.wire);
    assert_eq!(sent[0].headers.incoming_face_id, Some(A));
    assert_eq!(sent[0].headers.pit_token, None, "a bare link gets no token of ours");
    assert_eq!(node.counters().out_interests, 1);
}

#[test]
fn second_face_is_aggregated_and_both_get_the_data() {
    let mut node = Forwarder::routing("/a", &[B]);
    assert_eq!(node.receive(A, interest("/a", 1)), ["B Interest /a #1"]);
    assert_eq!(node.at(5).receive(C, interest("/a", 2)), NOTHING);
    assert_eq!(node.counters().aggregated, 1);
    assert_eq!(node.pit_len(), 1);
    assert_eq!(node.at(9).receive(B, data("/a")), ["A Data /a", "C Data /a"]);
    assert_eq!((node.pit_len(), node.counters().satisfied), (0, 1));
}

#[test]
fn selectors_are_part_of_the_key_and_the_hint_is_not() {
    let mut node = Forwarder::routing("/", &[B]);
    assert_eq!(node.receive(A, interest("/a", 1)).len(), 1);
    assert_eq!(node.receive(A, interest("/a", 2).can_be_prefix()).len(), 1);
    assert_eq!(node.receive(A, interest("/a", 3).must_be_fresh()).len(), 1);
    assert_eq!(node.receive(A, interest("/a", 4).can_be_prefix().must_be_fresh()).len(), 1);
    assert_eq!(node.receive(C, interest("/a", 5).hint(&["/r"])), NOTHING);
    assert_eq!((node.pit_len(), node.engine().name_groups()), (4, 1));
    assert_eq!(node.counters().aggregated, 1);
}

#[test]
fn unknown_face_is_dropped() {
    let mut node = Forwarder::routing("/", &[B]);
    assert_eq!(node.receive(FaceId(999), interest("/a", 1)), NOTHING);
    assert_eq!(node.dropped(DropReason::UnknownFace), 1);
}

#[test]
fn a_stream_follows_every_change_of_its_routes() {
    let mut node = Forwarder::routing("/a", &[B]);
    let mut segment = 0;
    let mut ask = |node: &mut Forwarder, face: FaceId| {
        for _ in 0..5 {
            let names: Vec<String> = (segment..segment + 8).map(|segment| format!("/a/b/c/v/{segment}")).collect();
            let batch: Vec<_> = names.iter().map(|name| (A, interest(name, segment))).collect();
            let sent = node.receive_batch(&batch);
            assert_eq!(sent.len(), 8);
            for (sent, name) in sent.iter().zip(&names) {
                // One route is for one segment only.
                let expected = if name == "/a/b/c/v/100" { D } else { face };
                assert_eq!((sent.face, sent.headers.nack), (expected, None), "{name}");
            }
            segment += 8;
        }
    };
    ask(&mut node, B);
    node.route("/a/b", &[C]);
    ask(&mut node, C);
    node.route("/a/b/c/v/100", &[D]);
    ask(&mut node, C);
    node.fib.remove(uri("/a/b").value()).unwrap();
    ask(&mut node, B);
    node.route("/a", &[C]);
    ask(&mut node, C);
    node.fib.remove(uri("/a").value()).unwrap();
    let sent = node.receive(A, interest("/a/b/c/v/999", 9));
    assert_eq!((sent[0].face, sent[0].headers.nack), (A, Some(NackReason::NoRoute)));
}

// ---- Nonce, HopLimit ----

#[test]
fn missing_nonce_is_added_and_nothing_else_changes() {
    let cases = [
        bare_interest("/a/b"),
        bare_interest("/a/b").can_be_prefix().must_be_fresh().lifetime_ms(77),
        bare_interest("/a/b").hint(&["/a", "/r"]),
        bare_interest("/a/b").parameters(b"xyz").lifetime_ms(9),
        bare_interest("/a/b").hop_limit(9).parameters(b""),
    ];
    for packet in cases {
        let mut node = Forwarder::routing("/a", &[B]);
        let sent = node.receive(A, packet.clone());
        assert_eq!(sent.len(), 1, "{packet:?}");
        let (before, after) = (Interest::parse(&packet.wire).unwrap(), Interest::parse(&sent[0].wire).unwrap());
        let nonce = after.nonce().expect("has one now");
        let mut expected = Vec::new();
        namewire_packet::interest::write_with_nonce(&before, nonce, &mut expected);
        if let Some(at) = Interest::parse(&expected).unwrap().hop_limit_offset() {
            expected[at] -= 1;
        }
        assert_eq!(sent[0].wire, expected);
        assert_eq!(after.lifetime_ms(), before.lifetime_ms());
        assert_eq!(after.application_parameters(), before.application_parameters());
        assert!(after.parameters_digest_is_valid());
        // The records have this nonce, too.
        assert_eq!(node.receive(C, Packet::raw(sent[0].wire.clone()))[0].headers.nack, Some(NackReason::Duplicate));
    }
}

#[test]
fn two_interests_without_nonce_get_different_ones() {
    let mut node = Forwarder::routing("/a", &[B]);
    let first = node.receive(A, bare_interest("/a/1"));
    let second = node.receive(A, bare_interest("/a/2"));
    let nonce = |sent: &[Sent]| Interest::parse(&sent[0].wire).unwrap().nonce();
    assert_ne!(nonce(&first), nonce(&second));
}

/// A regression: an Interest of nearly the largest size has no room for a nonce. It was sent larger than any peer
/// accepts.
#[test]
fn no_room_for_the_missing_nonce() {
    let mut node = Forwarder::routing("/", &[B]);
    let of_size = |size: usize| {
        let build = |n: usize| InterestBuilder::new(uri("/a")).application_parameters(vec![7; n]).build();
        let overhead = build(8000).len() - 8000;
        Packet::raw(build(size - overhead))
    };
    assert_eq!(node.receive(A, of_size(8794)).len(), 1);
    assert_eq!(node.receive(A, of_size(8795)), NOTHING);
    assert_eq!(node.dropped(DropReason::TooLargeWithNonce), 1);
}

/// HopLimit in → what a remote and a local next hop get.
#[test]
fn hop_limit() {
    let table: [(u8, Option<&str>, Option<&str>); 4] = [
        (0, None, None),
        (1, None, Some("L Interest /l #1 hop=0")),
        (2, Some("B Interest /r #1 hop=1"), Some("L Interest /l #1 hop=1")),
        (255, Some("B Interest /r #1 hop=254"), Some("L Interest /l #1 hop=254")),
    ];
    for (limit, remote, local) in table {
        let mut node = Forwarder::routing("/r", &[B]);
        node.route("/l", &[L]);
        for (name, expected) in [("/r", remote), ("/l", local)] {
            let sent = node.receive(A, interest(name, 1).hop_limit(limit));
            assert_eq!(sent.first().map(Sent::line).as_deref(), expected, "{name} with HopLimit {limit}");
            assert!(sent.len() <= 1);
        }
        let dropped = u64::from(remote.is_none()) + u64::from(local.is_none());
        assert_eq!(node.dropped(DropReason::HopLimitZero), dropped, "HopLimit {limit}");
    }
}

#[test]
fn last_hop_limit_prefers_a_local_next_hop() {
    let mut node = Forwarder::routing("/a", &[B, L]);
    assert_eq!(node.receive(A, interest("/a", 1).hop_limit(1)), ["L Interest /a #1 hop=0"]);
}

/// A regression: with HopLimit 1 and no next hop at all, the drop was attributed to HopLimit and no Nack was sent.
#[test]
fn hop_limit_one_without_a_route_is_nacked_no_route() {
    let mut node = Forwarder::default();
    assert_eq!(node.receive(A, interest("/a", 1).hop_limit(1)), ["A Nack NoRoute /a #1 hop=0"]);
    assert_eq!((node.dropped(DropReason::NoRoute), node.dropped(DropReason::HopLimitZero)), (1, 0));
}

#[test]
fn content_store_answers_with_hop_limit_one() {
    let mut node = Forwarder::routing("/a", &[B]);
    node.receive(A, interest("/a", 1));
    node.receive(B, data("/a"));
    assert_eq!(node.receive(C, interest("/a", 2).hop_limit(1)), ["C Data /a cached"]);
    assert_eq!(node.receive(C, interest("/a", 3).hop_limit(0)), NOTHING);
}

// ---- Scope ----

#[test]
fn localhost_and_localhop() {
    // name, from, next hop, leaves?
    let table = [
        ("/localhost/x", A, L, false),
        ("/localhost", A, L, false),
        ("/localhost/x", L, B, false),
        ("/localhost/x", L, M, true),
        ("/localhop/x", A, B, false),
        ("/localhop/x", A, L, true),
        ("/localhop/x", L, B, true),
        ("/localhost2", A, B, true),
        ("/x/localhost", A, B, true),
    ];
    for (name, from, next_hop, leaves) in table {
        let mut node = Forwarder::routing("/", &[next_hop]);
        let sent = node.receive(from, interest(name, 1));
        assert_eq!(sent.iter().any(|sent| sent.headers.nack.is_none()), leaves, "{name} {from} → {next_hop}");
        let violation = name.starts_with("/localhost") && name != "/localhost2" && from == A;
        assert_eq!(node.dropped(DropReason::ScopeViolation), u64::from(violation), "{name} {from}");
        assert_eq!(node.dropped(DropReason::NoRoute), u64::from(!leaves && !violation), "{name} {from}");
    }
}

// ---- ForwardingHint ----

#[test]
fn hint_leads_and_stays_on_the_wire() {
    let mut node = Forwarder::default();
    node.route("/a", &[C]);
    node.route("/r2", &[B]);
    // The first delegation with next hops decides; the route of the Interest's own name does not count.
    let sent = node.receive(A, interest("/a", 1).hint(&["/r1", "/r2/x", "/a"]));
    assert_eq!(sent, ["B Interest /a #1 hint=/r1 hint=/r2/x hint=/a"]);
    assert_eq!(node.receive(A, interest("/a/2", 1).hint(&["/r1"])), ["A Nack NoRoute /a/2 #1 hint=/r1"]);
}

#[test]
fn default_route_counts_for_the_first_delegation() {
    let mut node = Forwarder::default();
    node.route("/", &[C]);
    node.route("/r2", &[B]);
    assert_eq!(node.receive(A, interest("/a", 1).hint(&["/r1", "/r2"]))[0].face, C);
}

#[test]
fn entry_without_next_hops_does_not_count_for_a_delegation() {
    let mut node = Forwarder::default();
    node.route("/r1", &[]);
    node.route("/r2", &[B]);
    assert_eq!(node.receive(A, interest("/a", 1).hint(&["/r1", "/r2"]))[0].face, B);
}

/// Every delegation is a look-up: an Interest with 1,200 of them once took as long as 200 others.
#[test]
fn delegations_after_the_eighth_are_not_looked_at() {
    let region_names = vec![uri("/region/site")];
    let mut node = Forwarder::new(EngineConfig { region_names, ..EngineConfig::default() });
    node.route("/r", &[B]);
    let unknown = ["/none"; 7];
    for (last, sent_on) in [("/r", true), ("/region", false)] {
        let eight = [&unknown[..], &[last]].concat();
        let nine = [&unknown[..], &["/none"], &[last]].concat();
        let name = format!("/a{last}");
        let counted = node.counters().met(LimitMet::DelegationsIgnored);
        let sent = node.receive(A, interest(&name, 1).hint(&eight));
        assert_eq!((sent.len(), sent[0].face == B), (1, sent_on));
        assert_eq!(sent[0].line().contains("hint="), sent_on, "removed in the region");
        assert_eq!(node.counters().met(LimitMet::DelegationsIgnored), counted);
        let sent = node.receive(A, interest(&format!("{name}/2"), 2).hint(&nine));
        assert!(
            sent[0].line().starts_with("A Nack NoRoute") && sent[0].line().contains(&format!("hint={last}")),
            "{sent:?}"
        );
        assert_eq!(node.counters().met(LimitMet::DelegationsIgnored), counted + 1);
    }
}

#[test]
fn strategy_is_chosen_by_name_not_by_hint() {
    let mut node = Forwarder::default();
    node.route_with("/a", &[], "multicast");
    node.route("/r", &[B, C]);
    let sent = node.receive(A, interest("/a", 1).hint(&["/r"]));
    assert_eq!(sent.iter().map(|sent| sent.face).collect::<Vec<_>>(), [B, C]);
}

#[test]
fn own_region_removes_the_hint_from_the_wire() {
    let regions = vec![uri("/region/site")];
    let mut node = Forwarder::new(EngineConfig { region_names: regions, ..EngineConfig::default() });
    node.route("/a", &[C]);
    node.route("/region", &[B]);
    node.route("/other", &[D]);
    // A delegation that is a prefix of the region name: not the other way round.
    assert_eq!(node.receive(A, interest("/a/1", 1).hint(&["/other", "/region"])), ["C Interest /a/1 #1"]);
    assert_eq!(node.receive(A, interest("/a/2", 2).hint(&["/region/site"]).hop_limit(5)), ["C Interest /a/2 #2 hop=4"]);
    let longer = interest("/a/3", 3).hint(&["/region/site/host"]);
    assert_eq!(node.receive(A, longer), ["B Interest /a/3 #3 hint=/region/site/host"]);
    // … also when the nonce must be added.
    let sent = node.receive(A, bare_interest("/a/4").hint(&["/region"]).hop_limit(5).parameters(b"x"));
    let onward = Interest::parse(&sent[0].wire).unwrap();
    assert!(!onward.has_forwarding_hint() && onward.nonce().is_some() && onward.hop_limit() == Some(4));
    // The Nack quotes what went upstream.
    assert_eq!(node.receive(C, nack(NackReason::NoRoute, "/a/1", 1)), ["A Nack NoRoute /a/1 #1"]);
}

/// A regression: a ForwardingHint element that holds no name made the Interest unroutable.
#[test]
fn hint_without_a_name_is_no_hint() {
    let mut node = Forwarder::routing("/a", &[B]);
    // ForwardingHint { an ignorable element }
    let wire = vec![5, 15, 7, 3, 8, 1, b'a', 30, 2, 40, 0, 10, 4, 0, 0, 0, 1];
    let sent = node.receive(A, Packet::raw(wire));
    assert_eq!(sent.iter().map(|sent| sent.face).collect::<Vec<_>>(), [B]);
}

// ---- Tokens, marks, local fields ----

#[test]
fn newest_token_comes_back_on_data() {
    for (first, second) in [(&b"1"[..], &[9_u8; 32][..]), (&[9; 32], b"1")] {
        let mut node = Forwarder::routing("/a", &[B]);
        node.receive(A, interest("/a", 1).token(first));
        node.receive(A, interest("/a", 2).token(second));
        let sent = node.receive(B, data("/a"));
        assert_eq!(sent.len(), 1);
        assert_eq!(sent[0].headers.pit_token.unwrap().as_bytes(), second);
    }
    let mut node = Forwarder::routing("/a", &[B]);
    node.receive(A, interest("/a", 1).token(b"1"));
    node.receive(A, interest("/a", 2));
    assert_eq!(node.receive(B, data("/a")), ["A Data /a"], "the newest had none");
}

#[test]
fn token_comes_back_on_nack_and_cache_hit() {
    let mut node = Forwarder::routing("/a", &[B]);
    assert_eq!(node.receive(A, interest("/n", 1).token(b"x")), ["A Nack NoRoute /n #1 token=78"]);
    node.receive(A, interest("/a", 2).token(b"old"));
    node.receive(A, interest("/a", 3).token(b"x"));
    assert_eq!(node.receive(B, nack(NackReason::Congestion, "/a", 2)), ["A Nack Congestion /a #3 token=78"]);
    node.receive(A, interest("/a", 4));
    node.receive(B, data("/a"));
    assert_eq!(node.receive(C, interest("/a", 5).token(b"z")), ["C Data /a cached token=7a"]);
}

#[test]
fn next_hop_face_id() {
    let mut node = Forwarder::routing("/a", &[B]);
    assert_eq!(node.receive(L, interest("/a/1", 1).next_hop(C)), ["C Interest /a/1 #1"]);
    assert_eq!(node.receive(L, interest("/x", 1).next_hop(C)), ["C Interest /x #1"], "no route is needed");
    assert_eq!(node.receive(L, interest("/a/2", 1).next_hop(L)), ["L Interest /a/2 #1"], "its own choice");
    assert_eq!(node.receive(L, interest("/localhop/x", 1).next_hop(C)).len(), 1, "no scope check");
    assert_eq!(node.dropped(DropReason::NextHopFaceMissing), 0);
    assert_eq!(node.receive(L, interest("/a/3", 1).next_hop(FaceId(999))), NOTHING);
    assert_eq!(node.dropped(DropReason::NextHopFaceMissing), 1);
    assert_eq!(node.pit_len(), 5, "the Interest is pending nevertheless");
    // HopLimit also binds the chosen face.
    assert_eq!(node.receive(L, interest("/a/4", 1).hop_limit(1).next_hop(C)), NOTHING);
    assert_eq!(node.dropped(DropReason::HopLimitZero), 1);
}

#[test]
fn congestion_mark_goes_upstream() {
    let mut node = Forwarder::routing("/a", &[B]);
    assert_eq!(node.receive(A, interest("/a", 1).mark(1)), ["B Interest /a #1 mark=1"]);
}

#[test]
fn our_token_goes_only_to_links_that_want_it() {
    let mut node = Forwarder::routing("/a", &[B]);
    node.send_tokens(B);
    let sent = node.receive(A, interest("/a", 1).token(b"theirs"));
    let ours = sent[0].headers.pit_token.expect("our token");
    assert_eq!(ours.as_bytes().len(), 6);
    // All variants of one name share the token, and one answer with it satisfies them all.
    let other = node.receive(C, interest("/a", 2).can_be_prefix().must_be_fresh());
    assert_eq!(other[0].headers.pit_token, Some(ours));
    let sent = node.receive(B, data("/a").token(ours.as_bytes()));
    assert_eq!(sent, ["A Data /a token=746865697273", "C Data /a"]);
}
