//! A million routes that are removed at once.
//!
//! The story: a routing daemon's face with 990,000 routes closed, and management was silent for 4.9 s, because one call
//! removed, recomputed and wrote all of them. The same happened when they expired together, and when a route of `/` was
//! removed that all other prefixes inherited. Now each call does one slice of that work, and the router handles other
//! requests between two slices.

use namewire_management::{FaceProperties, FibChange, NextHop};
use namewire_packet::{
    FaceId, NameBuf,
    nfd::{ControlParameters, FibEntry, RibEntry, decode_dataset},
};
use namewire_testbed::{
    management::{Bench, LOCAL_FACE, UDP_FACE, for_prefix, signed_command, udp_face},
    uri,
};
use std::{collections::BTreeMap, time::Duration};

const ROUTES: usize = 20_000;

/// Most FIB changes of one call. Before the repair there were as many as routes.
const CHANGES_AT_ONCE: usize = 2500;

/// The face whose routes leave.
const LEAVING: FaceId = FaceId(400);

/// The forwarder's FIB, built from the changes that it was told.
#[derive(Default)]
struct Mirror(BTreeMap<NameBuf, Vec<NextHop>>);

impl Mirror {
    /// Applies the changes of the last call, which must be few.
    fn follow(&mut self, bench: &Bench) {
        let changes = bench.fib_changes();
        assert!(changes.len() <= CHANGES_AT_ONCE, "{} changes at once", changes.len());
        self.apply(changes);
    }

    fn apply(&mut self, changes: Vec<FibChange>) {
        for change in changes {
            match change {
                FibChange::Insert { name, next_hops, hidden: false, .. } => _ = self.0.insert(name, next_hops),
                FibChange::Insert { .. } => {}
                FibChange::Remove { name } => _ = self.0.remove(&name),
            }
        }
    }

    fn faces(&self, prefix: &str) -> Option<Vec<FaceId>> {
        self.0.get(&uri(prefix)).map(|hops| hops.iter().map(|hop| hop.face).collect())
    }

    fn leads_to(&self, face: FaceId) -> usize {
        self.0.values().filter(|hops| hops.iter().any(|hop| hop.face == face)).count()
    }
}

fn prefix(number: usize) -> String {
    format!("/net/{number}")
}

/// A node with `routes` routes to [`LEAVING`], and its FIB.
fn node(routes: usize, expiration_period_ms: Option<u64>) -> (Bench, Mirror) {
    let (mut bench, mut mirror) = (Bench::new(), Mirror::default());
    bench.add_face(FaceProperties { face: LEAVING, remote: "udp4://192.0.2.9:6363".parse().unwrap(), ..udp_face() });
    mirror.apply(bench.fib_changes());
    for number in 0..routes {
        assert_eq!(register_for(&mut bench, LEAVING, &prefix(number), expiration_period_ms), 200);
        mirror.follow(&bench);
    }
    assert_eq!(mirror.leads_to(LEAVING), routes);
    (bench, mirror)
}

/// Registers a route as the router's own process does, without a time and nonce. Returns the answer's code.
fn register_for(bench: &mut Bench, face: FaceId, prefix: &str, expiration_period_ms: Option<u64>) -> u64 {
    let parameters = ControlParameters { face_id: Some(face), expiration_period_ms, ..for_prefix(prefix) };
    bench.send_from(FaceId::INTERNAL, &signed_command("rib/register", &parameters));
    bench.answer().code
}

fn is_due(bench: &Bench) -> bool {
    bench.management.next_deadline().is_some_and(|at_ns| at_ns <= bench.now.mono_ns)
}

/// Lets management finish, and does something between its calls. Returns the number of calls.
fn finish(bench: &mut Bench, mirror: &mut Mirror, mut between: impl FnMut(&mut Bench, &mut Mirror, usize)) -> usize {
    let mut slices = 0;
    while is_due(bench) {
        bench.timers();
        mirror.follow(bench);
        between(bench, mirror, slices);
        slices += 1;
    }
    slices
}

fn register(bench: &mut Bench, mirror: &mut Mirror, prefix: &str) {
    assert_eq!(bench.command("rib/register", &for_prefix(prefix)).code, 200);
    mirror.follow(bench);
}

fn rib(bench: &mut Bench) -> Vec<RibEntry> {
    decode_dataset(&bench.fetch("/localhost/nfd/rib/list")).expect("a dataset")
}

fn fib(bench: &mut Bench) -> Vec<FibEntry> {
    decode_dataset(&bench.fetch("/localhost/nfd/fib/list")).expect("a dataset")
}

#[test]
fn no_further_slice_is_computed_while_the_forwarder_is_behind() {
    let (mut bench, mut mirror) = node(3000, None);
    bench.close(LEAVING);
    mirror.follow(&bench);
    let left = mirror.leads_to(LEAVING);
    assert!(left > 2000 && is_due(&bench));
    bench.management.hold_changes(true);
    bench.timers();
    assert!(bench.fib_changes().is_empty() && !is_due(&bench));
    register(&mut bench, &mut mirror, "/mine");
    assert_eq!(
        (mirror.faces("/mine"), mirror.leads_to(LEAVING)),
        (Some(vec![LOCAL_FACE]), left),
        "a command is not held"
    );
    bench.management.hold_changes(false);
    finish(&mut bench, &mut mirror, |_, _, _| ());
    assert_eq!(mirror.leads_to(LEAVING), 0);
}

#[test]
fn routes_of_a_face_that_closes_go_in_slices_and_commands_are_answered_in_between() {
    let (mut bench, mut mirror) = node(ROUTES, None);
    bench.close(LEAVING);
    mirror.follow(&bench);
    let slices = finish(&mut bench, &mut mirror, |bench, mirror, slice| {
        let own = format!("/app/{slice}");
        register(bench, mirror, &own);
        assert_eq!(mirror.faces(&own), Some(vec![LOCAL_FACE]), "at once, whatever waits");
    });
    assert!(slices >= ROUTES / CHANGES_AT_ONCE, "{slices} slices");
    assert_eq!((mirror.leads_to(LEAVING), mirror.leads_to(LOCAL_FACE)), (0, slices));
    assert_eq!(bench.management.rib().len(), slices);
}

#[test]
fn nothing_shows_or_uses_routes_of_a_face_that_is_gone_while_they_are_removed() {
    let (mut bench, mut mirror) = node(ROUTES, None);
    register(&mut bench, &mut mirror, &prefix(7));
    register(&mut bench, &mut mirror, "/net/8/below");
    bench.close(LEAVING);
    mirror.follow(&bench);
    assert!(is_due(&bench) && mirror.leads_to(LEAVING) > ROUTES / 2, "most of them are still there");
    let faces = |entry: &RibEntry| entry.routes.iter().map(|route| route.face_id).collect::<Vec<_>>();
    let shown: Vec<_> = rib(&mut bench).iter().map(|entry| (entry.name.clone(), faces(entry))).collect();
    assert_eq!(shown, [(uri("/net/7"), vec![LOCAL_FACE]), (uri("/net/8/below"), vec![LOCAL_FACE])]);
    let to_leaving = |entry: &FibEntry| entry.next_hops.iter().any(|hop| hop.face_id == LEAVING);
    let shown = fib(&mut bench);
    assert!(!shown.iter().any(to_leaving) && shown.iter().all(|entry| !entry.next_hops.is_empty()), "{}", shown.len());
    // A face that registers now gets its final entries, on every prefix and below it.
    for number in (0..ROUTES).step_by(100) {
        register(&mut bench, &mut mirror, &prefix(number));
        assert_eq!(mirror.faces(&prefix(number)), Some(vec![LOCAL_FACE]), "{number}");
        let below = format!("{}/below", prefix(number + 1));
        register(&mut bench, &mut mirror, &below);
        assert_eq!(mirror.faces(&below), Some(vec![LOCAL_FACE]), "{below} inherits nothing from a face that is gone");
    }
    // And it gets no new routes.
    assert_eq!(register_for(&mut bench, LEAVING, "/late", None), 410);
    finish(&mut bench, &mut mirror, |_, _, _| ());
    assert_eq!((mirror.leads_to(LEAVING), mirror.leads_to(LOCAL_FACE)), (0, 2 * ROUTES / 100 + 2));
}

#[test]
fn a_face_with_few_routes_has_lost_them_at_once_while_one_with_many_leaves() {
    let (mut bench, mut mirror) = node(ROUTES, None);
    register_for(&mut bench, UDP_FACE, "/few", None);
    mirror.follow(&bench);
    bench.close(LEAVING);
    mirror.follow(&bench);
    bench.close(UDP_FACE);
    mirror.follow(&bench);
    assert_eq!(mirror.faces("/few"), None, "a client that has the answer to faces/destroy finds them gone");
    assert!(is_due(&bench));
}

#[test]
fn routes_that_expire_together_go_in_slices() {
    let (mut bench, mut mirror) = node(ROUTES, Some(60_000));
    register(&mut bench, &mut mirror, "/stays");
    bench.pass_ms(120_000);
    assert_eq!(rib(&mut bench).len(), 1, "what has expired is shown no longer, removed or not");
    let slices = finish(&mut bench, &mut mirror, |bench, mirror, slice| {
        register(bench, mirror, &format!("/app/{slice}"));
    });
    assert!(slices >= ROUTES / CHANGES_AT_ONCE, "{slices} slices");
    assert_eq!((mirror.leads_to(LEAVING), mirror.leads_to(LOCAL_FACE)), (0, slices + 1));
    assert_eq!(bench.management.counters().routes_expired, ROUTES as u64);
}

/// One command changes what all entries inherit. Its own prefix has changed when the answer comes; the prefixes below
/// follow.
#[test]
fn what_all_prefixes_inherit_changes_in_slices() {
    let (mut bench, mut mirror) = node(ROUTES, None);
    for (verb, faces) in [("rib/register", vec![LOCAL_FACE, LEAVING]), ("rib/unregister", vec![LEAVING])] {
        assert_eq!(bench.command(verb, &for_prefix("/net")).code, 200);
        mirror.follow(&bench);
        assert_eq!(mirror.faces("/net").is_some(), verb == "rib/register");
        let slices = finish(&mut bench, &mut mirror, |bench, mirror, slice| {
            register(bench, mirror, &format!("/app/{slice}"));
        });
        assert!(slices >= ROUTES / CHANGES_AT_ONCE, "{slices} slices");
        for number in 0..ROUTES {
            let mut found = mirror.faces(&prefix(number)).expect("an entry");
            found.sort();
            assert_eq!(found, faces, "{number}");
        }
    }
}

/// Commands that change all entries again and again do not starve the rest.
#[test]
fn changes_that_never_end_reach_every_prefix() {
    let (mut bench, mut mirror) = node(ROUTES, None);
    let mut reached = 0;
    for round in 0..100 {
        let cost = Some(round % 2);
        let parameters = ControlParameters { cost, ..for_prefix("/net") };
        assert_eq!(bench.command("rib/register", &parameters).code, 200);
        mirror.follow(&bench);
        bench.timers();
        mirror.follow(&bench);
        reached = mirror.leads_to(LOCAL_FACE);
        if reached > ROUTES {
            break;
        }
    }
    assert_eq!(reached, ROUTES + 1);
}

/// A full table that empties accepts new routes: leaving routes make room first.
#[test]
fn a_rib_full_of_routes_that_leave_takes_new_ones() {
    let limits = namewire_management::RibLimits { routes: ROUTES, share_percent: 100, ..Default::default() };
    let config = namewire_management::ManagementConfig { rib: limits, ..Default::default() };
    let mut bench = Bench::with_config(config);
    bench.add_face(FaceProperties { face: LEAVING, remote: "udp4://192.0.2.9:6363".parse().unwrap(), ..udp_face() });
    for number in 0..ROUTES {
        assert_eq!(register_for(&mut bench, LEAVING, &prefix(number), None), 200);
    }
    assert_eq!(register_for(&mut bench, LOCAL_FACE, "/new", None), 507);
    bench.close(LEAVING);
    for number in 0..ROUTES {
        assert_eq!(register_for(&mut bench, LOCAL_FACE, &format!("/new/{number}"), None), 200, "{number}");
    }
}

/// The longest silence at 990,000 routes, for reading: `cargo test … -- --ignored --nocapture longest_silence`. It is
/// measured in processor time, so other programs on this machine do not matter.
#[test]
#[ignore = "a measurement"]
fn longest_silence() {
    const MANY: usize = 990_000;
    let (mut bench, mut mirror) = node(MANY, None);
    let (mut longest, mut all, mut slices) = (Duration::ZERO, Duration::ZERO, 0);
    let mut time = |call: &mut dyn FnMut()| {
        let began = time_of_processor();
        call();
        let took = time_of_processor() - began;
        (longest, all, slices) = (longest.max(took), all + took, slices + 1);
    };
    time(&mut || bench.close(LEAVING));
    mirror.apply(bench.fib_changes());
    while is_due(&bench) {
        time(&mut || bench.timers());
        mirror.apply(bench.fib_changes());
    }
    println!("{MANY} routes: {slices} slices, the longest {longest:?}, all {all:?}");
    assert_eq!(mirror.leads_to(LEAVING), 0);
}

/// The processor time that this thread has used.
fn time_of_processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    Duration::from_nanos(text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds"))
}
