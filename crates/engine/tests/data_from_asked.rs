//! Data only from faces that were asked: forged answers are neither sent nor stored; honest ones of every kind
//! pass.

use namewire_engine::{DataFrom, DropReason, EngineConfig, FaceAttributes, FaceId, FaceScope};
use namewire_shares::HolderId;
use namewire_testbed::*;

fn node(workers: usize) -> Forwarder {
    let mut node = Forwarder::with_workers(EngineConfig::default(), workers);
    node.route("/a", &[B]);
    node
}

/// A face of another machine, of the holder with this number.
fn add_remote(node: &mut Forwarder, face: FaceId, holder: usize) {
    let holder = HolderId::from_index(holder).expect("there is such a holder");
    node.faces.insert(face, FaceAttributes { holder, ..FaceAttributes::new(FaceScope::NonLocal, 0, false) });
}

#[test]
fn data_of_a_face_that_was_not_asked_is_neither_sent_nor_stored() {
    for workers in [1, 4] {
        for forger in [C, L, X, H, A] {
            let mut node = node(workers);
            node.receive(A, interest("/a/1", 1));
            node.receive(D, interest("/a", 2).can_be_prefix());
            assert_eq!(node.receive(forger, data("/a/1")), NOTHING, "{forger}");
            assert_eq!((node.dropped(DropReason::DataNotAsked), node.counters().dropped_total()), (1, 1), "{forger}");
            assert_eq!(node.engines.iter().map(|engine| engine.cs_len()).sum::<usize>(), 0, "{forger}");
            let answered: Vec<FaceId> = node.receive(B, data("/a/1")).iter().map(|sent| sent.face).collect();
            assert_eq!((answered.len(), answered.contains(&A) && answered.contains(&D)), (2, true), "{forger}");
            assert_eq!((node.pit_len(), node.counters().dropped_total()), (0, 1));
        }
    }
}

#[test]
fn data_answers_the_interests_that_its_face_was_asked_and_no_others() {
    let mut node = node(1);
    node.route("/a/1", &[C]);
    node.receive(A, interest("/a/1/2", 1));
    node.receive(D, interest("/a", 2).can_be_prefix());
    assert_eq!(node.receive(B, data("/a/1/2")), ["D Data /a/1/2"]);
    assert_eq!(node.pit_len(), 1);
    assert_eq!(node.dropped(DropReason::DataNotAsked), 0, "it was of use");
    assert_eq!(node.receive(C, data("/a/1/2")), ["A Data /a/1/2"]);
}

#[test]
fn a_face_that_was_asked_may_answer_late() {
    let mut node = Forwarder::routing("/a", &[B, C]);
    node.receive(A, interest("/a/1", 1));
    node.at(1000);
    assert_eq!(node.receive(A, interest("/a/1", 2)), ["C Interest /a/1 #2"]);
    assert_eq!(node.receive(B, data("/a/1")), ["A Data /a/1"]);
    // A link that is down was asked, too.
    node.receive(A, interest("/a/2", 3));
    node.set_up(B, false);
    node.face_down(B);
    assert_eq!(node.receive(B, data("/a/2")), ["A Data /a/2"]);
    // All next hops of multicast were.
    node.route_with("/m", &[B, C, X], "multicast");
    for (number, face) in [(1, B), (2, C), (3, X)] {
        node.set_up(face, true);
        let name = format!("/m/{number}");
        node.receive(A, interest(&name, 4));
        assert_eq!(node.receive(face, data(&name)), [format!("A Data {name}").as_str()]);
    }
    assert_eq!(node.counters().dropped_total(), 0);
}

#[test]
fn a_peer_that_reconnects_may_answer_earlier_interests() {
    let (asked, again, other) = (FaceId(400), FaceId(401), FaceId(402));
    let mut node = Forwarder::default();
    add_remote(&mut node, asked, 300);
    add_remote(&mut node, again, 300);
    add_remote(&mut node, other, 301);
    node.route("/a", &[asked]);
    node.receive(A, interest("/a/1", 1));
    assert_eq!(node.receive(again, data("/a/1")), NOTHING, "its face exists");
    node.faces.remove(asked);
    node.remove_face(asked);
    assert_eq!(node.receive(other, data("/a/1")), NOTHING, "another host");
    assert_eq!(node.receive(again, data("/a/1")), ["A Data /a/1"]);
    assert_eq!(node.dropped(DropReason::DataNotAsked), 2);
}

#[test]
fn only_management_answers_for_management() {
    for data_from in [DataFrom::Asked, DataFrom::Any] {
        let mut node = Forwarder::new(EngineConfig { data_from, ..EngineConfig::default() });
        node.route("/localhost/nfd", &[FaceId::INTERNAL]);
        // Even where a route leads to an application, the router does not believe it.
        node.route("/localhost/nfd/status", &[M]);
        for name in ["/localhost/nfd/status/general", "/localhost/nfd/faces/list", "/localhost/nfd"] {
            node.receive(L, interest(name, 1));
            assert_eq!(node.receive(M, data(name)), NOTHING);
        }
        assert_eq!(node.dropped(DropReason::ForgedManagement), 3);
        assert_eq!(node.engine().cs_len(), 0);
        let name = "/localhost/nfd/faces/list";
        assert_eq!(node.receive(FaceId::INTERNAL, data(name)), [format!("L Data {name}").as_str()]);
        node.route("/localhost/nfdx", &[M]);
        node.receive(L, interest("/localhost/nfdx", 1));
        assert_eq!(node.receive(M, data("/localhost/nfdx")), ["L Data /localhost/nfdx"]);
    }
}

#[test]
fn data_of_any_face_can_be_accepted_as_in_nfd() {
    let mut node = Forwarder::new(EngineConfig { data_from: DataFrom::Any, ..EngineConfig::default() });
    node.route("/a", &[B]);
    node.receive(A, interest("/a/1", 1));
    assert_eq!(node.receive(C, data("/a/1")), ["A Data /a/1"]);
    assert_eq!(node.engine().cs_len(), 1);
}
