//! A FIB that has no room for one more prefix: commands that need an entry are refused, others are carried out.

use namewire_management::{FibDemand, FibLimits, ManagementConfig};
use namewire_packet::{
    FaceId,
    nfd::{ControlParameters, ControlResponse},
};
use namewire_testbed::{
    management::{Bench, LOCAL_FACE, UDP_FACE, for_prefix},
    uri,
};

#[track_caller]
fn assert_refused(response: &ControlResponse, code: u64, text: &str) {
    assert_eq!(response.code, code, "{response:?}");
    assert!(response.text.contains(text), "{response:?} does not say {text:?}");
}

fn set(prefix: &str, strategy: &str) -> ControlParameters {
    ControlParameters { strategy: Some(uri(strategy)), ..for_prefix(prefix) }
}

/// The story: of 900 registrations with `tables.fib_capacity = 300`, all got 200, and 604 prefixes were in no FIB.
/// Their Interests got Nacks.
#[test]
fn what_the_fib_has_no_room_for_is_refused() {
    // Four choices are there at the start, one of them with management's own prefix.
    let all = FibDemand { entries: 4 + 3, prefix_bytes: usize::MAX };
    let fib = FibLimits { all, longest_prefix_bytes: 40 };
    let mut bench = Bench::with_config(ManagementConfig { fib, ..Default::default() });
    for prefix in ["/a/1", "/a/2"] {
        assert_eq!(bench.command("rib/register", &for_prefix(prefix)).code, 200);
    }
    assert_eq!(bench.command("fib/add-nexthop", &for_prefix("/a/3")).code, 200);
    let full = "FIB is full (limit is 7 prefixes: tables.fib_capacity)";
    assert_refused(&bench.command("rib/register", &for_prefix("/a/4")), 507, full);
    assert_refused(&bench.command("fib/add-nexthop", &for_prefix("/a/4")), 507, full);
    let multicast = "/localhost/nfd/strategy/multicast";
    assert_refused(&bench.command("strategy-choice/set", &set("/a", multicast)), 507, full);
    assert!(bench.fib_changes().is_empty() && bench.management.rib().len() == 2, "nothing changed");
    // What needs no new entry is done.
    let second = ControlParameters { face_id: Some(UDP_FACE), ..for_prefix("/a/2") };
    assert_eq!(bench.command("rib/register", &second).code, 200);
    for prefix in ["/a/1", "/", "/localhost/nfd"] {
        assert_eq!(bench.command("strategy-choice/set", &set(prefix, multicast)).code, 200, "{prefix}");
    }
    assert_eq!(bench.command("rib/register", &for_prefix("/ndn/broadcast")).code, 200, "a choice's entry has room");
    // The place of what goes is free, unless a strategy keeps it.
    bench.command("rib/unregister", &for_prefix("/a/1"));
    assert_refused(&bench.command("rib/register", &for_prefix("/a/4")), 507, full);
    bench.command("fib/remove-nexthop", &for_prefix("/a/3"));
    assert_eq!(bench.command("rib/register", &for_prefix("/a/4")).code, 200);
    let long = format!("/{}", "x".repeat(40));
    assert_refused(&bench.command("rib/register", &for_prefix(&long)), 414, "Prefix cannot exceed 40 bytes");
}

#[test]
fn routes_of_a_closed_face_make_room_in_a_full_fib() {
    let all = FibDemand { entries: usize::MAX, prefix_bytes: 43 + 700 * 8 };
    let fib = FibLimits { all, ..FibLimits::default() };
    let mut bench = Bench::with_config(ManagementConfig { fib, ..Default::default() });
    let register = |bench: &mut Bench, number: usize, face: FaceId| {
        let parameters = ControlParameters { face_id: Some(face), ..for_prefix(&format!("/{number:06}")) };
        bench.command("rib/register", &parameters)
    };
    let taken = (0..1000).take_while(|&number| register(&mut bench, number, UDP_FACE).code == 200).count();
    assert_eq!(taken, 700);
    assert_refused(&register(&mut bench, taken, LOCAL_FACE), 507, "bytes of prefixes");
    bench.close(UDP_FACE);
    for number in 0..taken {
        assert_eq!(register(&mut bench, 1000 + number, LOCAL_FACE).code, 200, "{number}");
    }
}
