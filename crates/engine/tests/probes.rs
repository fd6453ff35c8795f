//! Probes: which pings and traceroutes go to management, and where path labels lead them.

use namewire_engine::{AnswersProbes, DropReason, EngineConfig, FaceId};
use namewire_packet::path_label::{PathLabel, PathMode, label_of};
use namewire_testbed::*;

fn node(answers_probes: AnswersProbes) -> Forwarder {
    let mut node = Forwarder::new(EngineConfig { answers_probes, ..EngineConfig::default() });
    node.route("/a", &[B]);
    node.route("/app", &[L]);
    node
}

fn answering() -> Forwarder {
    node(AnswersProbes::Everybody)
}

fn traceroute(target: &str, nonce: u32) -> Packet {
    interest(&format!("{target}/{nonce}/32=traceroute"), nonce).must_be_fresh()
}

fn ping(target: &str, nonce: u32) -> Packet {
    interest(&format!("{target}/{nonce}/32=ping"), nonce).must_be_fresh()
}

/// The labels in front of a packet.
fn labels(sent: &Sent) -> Option<Vec<u16>> {
    let label = sent.headers.path_label(&sent.wire)?;
    Some(PathLabel::parse_tlv(label).expect("we write good labels").labels().collect())
}

#[test]
fn a_traceroute_goes_to_management_where_its_hop_limit_ends() {
    let mut node = answering();
    assert_eq!(
        node.receive(A, traceroute("/a", 1).hop_limit(2)),
        ["B Interest /a/1/32=traceroute #1 MustBeFresh hop=1"]
    );
    let before = node.pit_len();
    let sent = node.receive(A, traceroute("/a", 2).hop_limit(1).token(&[7]));
    assert_eq!((sent.len(), sent[0].face, sent[0].headers.incoming_face_id), (1, FaceId::INTERNAL, Some(A)));
    assert!(sent[0].line().ends_with("hop=0 token=07"), "{}", sent[0].line());
    assert_eq!(node.pit_len(), before, "it leaves nothing in the PIT");
    // Also without a route, and without a nonce.
    let sent = node.receive(A, bare_interest("/none/3/32=traceroute").must_be_fresh().hop_limit(1));
    assert_eq!((sent.len(), sent[0].face), (1, FaceId::INTERNAL));
    assert_eq!(node.counters().dropped_total(), 0);
}

/// A probe that comes back to a router is pending there. Still, the router must answer it, or the loop stays hidden.
#[test]
fn a_traceroute_that_runs_in_a_circle_is_answered() {
    let mut node = answering();
    node.receive(A, traceroute("/a", 1).hop_limit(4));
    let sent = node.receive(C, traceroute("/a", 1).hop_limit(1));
    assert_eq!((sent.len(), sent[0].face, sent[0].headers.incoming_face_id), (1, FaceId::INTERNAL, Some(C)));
    assert_eq!(
        node.receive(C, traceroute("/a", 1).hop_limit(2)),
        ["C Nack Duplicate /a/1/32=traceroute #1 MustBeFresh hop=1"]
    );
}

#[test]
fn interests_that_only_look_like_probes_are_ordinary() {
    let mut node = answering();
    // HopLimit 0 may still go to applications, and to no other node.
    let not_fresh = interest("/a/1/32=traceroute", 1).hop_limit(1);
    assert_eq!(node.receive(A, not_fresh), NOTHING);
    assert_eq!(node.receive(A, interest("/a/traceroute", 2).must_be_fresh().hop_limit(1)), NOTHING);
    assert_eq!(node.receive(A, traceroute("/localhost/x", 3).hop_limit(1)), NOTHING);
    assert_eq!(node.dropped(DropReason::ScopeViolation), 1);
    assert_eq!(node.receive(A, ping("/a", 4)), ["B Interest /a/4/32=ping #4 MustBeFresh"]);
}

#[test]
fn a_ping_is_answered_for_applications_and_for_stored_data() {
    let mut node = answering();
    let sent = node.receive(A, ping("/app/film", 1));
    assert_eq!((sent.len(), sent[0].face), (1, FaceId::INTERNAL));
    let answer = node.receive(FaceId::INTERNAL, data("/app/film/1/32=ping"));
    assert_eq!(answer, ["A Data /app/film/1/32=ping"], "management's answer returns by the PIT");

    node.receive(A, interest("/a/film", 2));
    node.receive(B, fresh_data("/a/film", 1000));
    assert_eq!(node.receive(A, ping("/a/film", 3))[0].face, FaceId::INTERNAL);
    assert_eq!(node.receive(A, ping("/a/other", 4))[0].face, B, "nothing is stored");
    assert_eq!(node.receive(A, ping("/a", 5))[0].face, B, "stored is what is under it");
}

#[test]
fn an_application_does_not_see_a_traceroute() {
    let mut node = answering();
    let sent = node.receive(A, traceroute("/app", 1).hop_limit(9));
    assert_eq!((sent.len(), sent[0].face, node.pit_len()), (1, FaceId::INTERNAL, 1));
    assert_eq!(node.receive(FaceId::INTERNAL, data("/app/1/32=traceroute")), ["A Data /app/1/32=traceroute"]);
}

/// Or whoever asks by prefix would get it in place of the producer's Data.
#[test]
fn answers_are_not_stored() {
    let mut node = answering();
    for name in ["/a/1/32=traceroute", "/a/2/32=ping"] {
        node.receive(A, interest(name, 1).must_be_fresh());
        node.receive(B, fresh_data(name, 1));
    }
    node.receive(A, interest("/a/3", 3));
    node.receive(B, fresh_data("/a/3", 1));
    assert_eq!(node.engine().cs_len(), 1, "only what is no answer to a probe");
}

#[test]
fn who_may_not_ask_gets_no_special_treatment() {
    for (answers, remote, local) in [
        (AnswersProbes::Nobody, false, false),
        (AnswersProbes::Local, false, true),
        (AnswersProbes::Everybody, true, true),
    ] {
        let mut node = node(answers);
        node.route("/app", &[FaceId(1000)]); // no such face
        node.add_face(FaceId(1000), namewire_engine::FaceScope::Local);
        for (face, is_answered) in [(A, remote), (L, local)] {
            let sent = node.receive(face, traceroute("/a", 1).hop_limit(1));
            assert_eq!(sent.first().map(|sent| sent.face), is_answered.then_some(FaceId::INTERNAL), "{answers:?}");
            let to = if is_answered { FaceId::INTERNAL } else { FaceId(1000) };
            assert_eq!(node.receive(face, ping("/app", face.0 as u32))[0].face, to, "{answers:?}");
        }
    }
}

#[test]
fn data_gathers_a_label_at_each_hop() {
    let mut node = answering();
    node.receive(A, traceroute("/a", 1));
    let null = data("/a/1/32=traceroute").labelled(&PathLabel::empty(PathMode::Strict));
    let sent = node.receive(B, null);
    assert_eq!(sent, ["A Data /a/1/32=traceroute"]);
    assert_eq!(labels(&sent[0]), Some(vec![label_of(B)]));

    node.receive(L, traceroute("/a", 2));
    let sent = node.receive(B, data("/a/2/32=traceroute").labelled(&PathLabel::of(PathMode::Strict, &[9])));
    assert_eq!(labels(&sent[0]), Some(vec![9, label_of(B)]), "applications want it, too");

    // Management begins a path; an answer without a label gets none; other Data loses its label.
    node.receive(A, ping("/app", 3));
    let null = data("/app/3/32=ping").labelled(&PathLabel::empty(PathMode::Strict));
    assert_eq!(labels(&node.receive(FaceId::INTERNAL, null)[0]), Some(vec![]));
    node.receive(A, traceroute("/a", 4));
    assert_eq!(labels(&node.receive(B, data("/a/4/32=traceroute"))[0]), None);
    node.receive(A, interest("/a/5", 5));
    let sent = node.receive(B, data("/a/5").labelled(&PathLabel::of(PathMode::Strict, &[9])));
    assert_eq!((sent.len(), labels(&sent[0])), (1, None));
    // A path that is full goes on without its label.
    node.receive(A, traceroute("/a", 6));
    let full = PathLabel::of(PathMode::Strict, &[1; namewire_packet::path_label::MAX_HOPS]);
    assert_eq!(labels(&node.receive(B, data("/a/6/32=traceroute").labelled(&full))[0]), None);
}

#[test]
fn a_probe_goes_where_its_last_label_says() {
    let mut node = answering();
    node.route("/s", &[B, C, D]);
    let path = PathLabel::of(PathMode::Strict, &[77, label_of(D)]);
    let sent = node.receive(A, traceroute("/s", 1).hop_limit(9).labelled(&path));
    assert_eq!(sent, ["D Interest /s/1/32=traceroute #1 MustBeFresh hop=8"]);
    assert_eq!(labels(&sent[0]), Some(vec![77]));
    // The last label is used up here.
    let sent = node.receive(A, traceroute("/s", 2).labelled(&PathLabel::of(PathMode::Fallback, &[label_of(C)])));
    assert_eq!((sent[0].line().as_str(), labels(&sent[0])), ("C Interest /s/2/32=traceroute #2 MustBeFresh", None));
    // It comes back as any Interest does.
    assert_eq!(node.receive(C, data("/s/2/32=traceroute")), ["A Data /s/2/32=traceroute"]);
    let sent = node.receive(A, bare_interest("/s/3/32=ping").must_be_fresh().labelled(&path));
    assert_eq!((sent[0].face, labels(&sent[0])), (D, Some(vec![77])), "it got a nonce on the way");
}

#[test]
fn a_forged_label_leads_nowhere() {
    let mut node = answering();
    node.route("/s", &[B, C]);
    let strict =
        |hops: &[FaceId]| PathLabel::of(PathMode::Strict, &hops.iter().map(|&face| label_of(face)).collect::<Vec<_>>());
    // A face that is no next hop; the face where it came from; a next hop that is down.
    node.set_up(B, false);
    for (nonce, face) in [(1, D), (2, A), (3, B), (4, FaceId::INTERNAL)] {
        let sent = node.receive(A, traceroute("/s", nonce).labelled(&strict(&[face])));
        assert!(sent[0].line().starts_with("A Nack NoRoute"), "{face}: {sent:?}");
        assert_eq!(node.dropped(DropReason::PathLabelVoid), u64::from(nonce));
    }
    assert_eq!(node.pit_len(), 0);
    // Fallback, a path without labels, discovery, and an Interest that is no probe: as without a label.
    let fallback = PathLabel::of(PathMode::Fallback, &[label_of(D)]);
    assert_eq!(node.receive(A, traceroute("/s", 5).labelled(&fallback))[0].face, C);
    assert_eq!(node.receive(A, traceroute("/s", 6).labelled(&PathLabel::empty(PathMode::Strict)))[0].face, C);
    let discovery = PathLabel::of(PathMode::Discovery, &[label_of(D)]);
    assert_eq!(node.receive(A, traceroute("/s", 7).labelled(&discovery))[0].face, C);
    let sent = node.receive(A, interest("/s/8", 8).labelled(&strict(&[D])));
    assert_eq!((sent[0].face, labels(&sent[0])), (C, None));
    // An application that names the number without a label.
    assert_eq!(node.receive(L, interest("/s/9", 9).next_hop(FaceId::BY_PATH_LABEL))[0].face, C);
    assert_eq!(node.dropped(DropReason::PathLabelVoid), 4);
}
