//! Commands as clients encode them, verb by verb: answers, effects and refusals.

use namewire_management::{
    Effect, FaceCommandError, FaceProperties, FibChange, HolderId, ManagementConfig, NextHop, RibLimits,
};
use namewire_packet::{
    Data, FaceId, Interest, InterestBuilder, NameBuf, Nonce, SignedInterestFields,
    digest::sha256,
    lp::{LpPacket, PitToken},
    nfd::{ControlParameters, ControlResponse, FacePersistency, RibEntry, decode_dataset},
    tag::TagList,
    tlv,
};
use namewire_testbed::{
    management::{
        Bench, LOCAL_FACE, REMOTE, UDP_FACE, answer_in, command_name, for_prefix, fresh_fields, local_face,
        signed_command, udp_face,
    },
    uri,
};
use proptest::prelude::*;

const OTHER_REMOTE: &str = "udp4://192.0.2.9:6363";

fn for_uri(uri: &str) -> ControlParameters {
    ControlParameters { uri: Some(uri.to_owned()), ..Default::default() }
}

fn for_face(face: u64) -> ControlParameters {
    ControlParameters { face_id: Some(FaceId(face)), ..Default::default() }
}

fn insert(prefix: &str, hops: &[(FaceId, u64)], strategy: u32) -> FibChange {
    FibChange::Insert {
        name: uri(prefix),
        next_hops: hops.iter().map(|(face, cost)| NextHop { face: *face, cost: *cost }).collect(),
        strategy,
        chooses: false,
        hidden: false,
    }
}

/// The entry of a strategy choice without routes.
fn hidden(prefix: &str, strategy: u32) -> FibChange {
    FibChange::Insert { name: uri(prefix), next_hops: vec![], strategy, chooses: true, hidden: true }
}

#[track_caller]
fn assert_refused(response: &ControlResponse, code: u64, text: &str) {
    assert_eq!(response.code, code, "{response:?}");
    assert!(response.text.contains(text), "{response:?} does not say {text:?}");
}

// ---- the first FIB ----

#[test]
fn a_new_node_knows_its_own_management_and_the_default_strategies() {
    let bench = Bench::new();
    let FibChange::Insert { name: root, strategy: best_route, hidden: true, .. } = &bench.fib_changes()[0] else {
        panic!("no hidden root")
    };
    assert_eq!((root, *best_route), (&NameBuf::new(), 0));
    let expected = [
        hidden("/", 0),
        hidden("/ndn/broadcast", 1),
        hidden("/localhost", 1),
        FibChange::Insert {
            name: uri("/localhost/nfd"),
            next_hops: vec![NextHop { face: FaceId::INTERNAL, cost: 0 }],
            strategy: 0,
            chooses: true,
            hidden: false,
        },
    ];
    assert_eq!(bench.fib_changes(), expected);
    assert!(bench.effects.contains(&Effect::NewNextHops(vec![(uri("/localhost/nfd"), FaceId::INTERNAL)])));
}

// ---- rib ----

#[test]
fn register_answers_after_the_fib_changed_with_the_defaults() {
    let mut bench = Bench::new();
    let response = bench.command("rib/register", &for_prefix("/example/A"));
    let body = ControlParameters {
        name: Some(uri("/example/A")),
        face_id: Some(LOCAL_FACE),
        origin: Some(0),
        cost: Some(0),
        flags: Some(1),
        ..Default::default()
    };
    assert_eq!(response, ControlResponse::ok(body));
    let prefix = uri("/example/A");
    let [Effect::Fib(changes), Effect::NewNextHops(new), Effect::Reply { packet, .. }] = &bench.effects[..] else {
        panic!("{:?}", bench.effects)
    };
    assert_eq!(*changes, [insert("/example/A", &[(LOCAL_FACE, 0)], 0)]);
    assert_eq!(*new, [(prefix.clone(), LOCAL_FACE)]);
    let data = Data::parse(packet).expect("Data");
    let sent = command_name("rib/register", &for_prefix("/example/A"));
    assert_eq!((data.name().parent(), data.freshness_ms()), (sent.as_name(), 1000));
    // The same command again changes nothing, and gets the same answer.
    assert_eq!(bench.command("rib/register", &for_prefix("/example/A")), response);
    assert_eq!(bench.effects.len(), 1);
}

#[test]
fn register_takes_every_field_and_unregister_undoes_it() {
    let mut bench = Bench::new();
    let parameters = ControlParameters {
        face_id: Some(UDP_FACE),
        origin: Some(255),
        cost: Some(10),
        flags: Some(2),
        expiration_period_ms: Some(60_000),
        ..for_prefix("/example")
    };
    assert_eq!(bench.command("rib/register", &parameters), ControlResponse::ok(parameters.clone()));
    assert_eq!(bench.fib_changes(), [insert("/example", &[(UDP_FACE, 10)], 0)]);
    // Another origin is another route.
    let other = ControlParameters { face_id: Some(UDP_FACE), ..for_prefix("/example") };
    let response = bench.command("rib/unregister", &other);
    assert_eq!(response, ControlResponse::ok(ControlParameters { origin: Some(0), ..other }));
    assert_eq!(bench.fib_changes(), []);
    let same = ControlParameters { face_id: Some(UDP_FACE), origin: Some(255), ..for_prefix("/example") };
    assert_eq!(bench.command("rib/unregister", &same), ControlResponse::ok(same));
    assert_eq!(bench.fib_changes(), [FibChange::Remove { name: uri("/example") }]);
}

/// NLSR registers for 2^63 − 1 ms, which no dataset may show as a time left.
#[test]
fn a_period_that_the_clock_does_not_reach_is_never() {
    let mut bench = Bench::new();
    for (prefix, ms) in [("/a", i64::MAX as u64), ("/b", i64::MAX as u64 - 1000), ("/c", u64::MAX), ("/d", 1 << 60)] {
        let parameters = ControlParameters { expiration_period_ms: Some(ms), ..for_prefix(prefix) };
        let answer = bench.command("rib/register", &parameters);
        assert_eq!((answer.code, answer.body.and_then(|body| body.expiration_period_ms)), (200, Some(ms)));
    }
    assert_eq!(bench.management.next_deadline(), None);
    let shown: Vec<RibEntry> = decode_dataset(&bench.fetch("/localhost/nfd/rib/list")).unwrap();
    assert_eq!(shown.len(), 4);
    assert!(shown.iter().all(|entry| entry.routes[0].expiration_period_ms.is_none()));
    // A route that would have ended does not end any more.
    let short = ControlParameters { expiration_period_ms: Some(500), ..for_prefix("/a") };
    bench.command("rib/register", &short);
    assert!(bench.management.next_deadline().is_some());
    bench.command("rib/register", &ControlParameters { expiration_period_ms: Some(i64::MAX as u64), ..short });
    assert_eq!(bench.management.next_deadline(), None);
}

#[test]
fn routes_expire_and_go_with_their_face() {
    let mut bench = Bench::new();
    let short = ControlParameters { expiration_period_ms: Some(500), ..for_prefix("/short") };
    bench.command("rib/register", &short);
    bench.command("rib/register", &for_prefix("/long"));
    bench.command("rib/register", &ControlParameters { face_id: Some(UDP_FACE), cost: Some(9), ..for_prefix("/long") });
    assert_eq!(bench.management.next_deadline(), Some(bench.now.mono_ns + 500_000_000));
    bench.pass_ms(499);
    bench.timers();
    assert_eq!(bench.effects, []);
    bench.pass_ms(1);
    bench.timers();
    assert_eq!(bench.effects, [Effect::Fib(vec![FibChange::Remove { name: uri("/short") }])]);
    assert_eq!((bench.management.next_deadline(), bench.management.counters().routes_expired), (None, 1));
    bench.close(LOCAL_FACE);
    assert_eq!(bench.fib_changes(), [insert("/long", &[(UDP_FACE, 9)], 0)]);
    bench.close(UDP_FACE);
    assert_eq!(bench.fib_changes(), [FibChange::Remove { name: uri("/long") }]);
    assert!(bench.management.rib().is_empty());
}

#[test]
fn rib_refusals() {
    let limits = RibLimits { routes: 1, ..Default::default() };
    let mut bench = Bench::with_config(ManagementConfig { rib: limits, ..Default::default() });
    let missing = ControlParameters { face_id: Some(FaceId(999)), ..for_prefix("/a") };
    assert_refused(&bench.command("rib/register", &missing), 410, "Face not found");
    let deep = "/x".repeat(33);
    assert_refused(&bench.command("rib/register", &for_prefix(&deep)), 414, "Route prefix cannot exceed 32 components");
    assert_refused(&bench.command("fib/add-nexthop", &for_prefix(&deep)), 414, "FIB entry prefix cannot exceed 32");
    let long = format!("/{}", "x".repeat(2048));
    assert_refused(&bench.command("rib/register", &for_prefix(&long)), 414, "2048 bytes");
    let huge = format!("/{}", "x".repeat(5000));
    assert_refused(&bench.command("rib/register", &for_prefix(&huge)), 414, "4096 bytes");
    let own = bench.command("rib/register", &for_prefix("/localhost/nfd/rib"));
    assert_refused(&own, 403, "belongs to the forwarder");
    assert_eq!(bench.command("rib/register", &for_prefix("/a")).code, 200);
    assert_refused(&bench.command("rib/register", &for_prefix("/b")), 507, "limit is 1 routes");
    assert_eq!(bench.management.counters().refused, 7);
}

/// The story: an application of one user registered until the RIB was full, and nobody else could register.
#[test]
fn a_user_that_registers_without_end_leaves_room_for_others() {
    let limits = RibLimits { routes: 1000, ..Default::default() };
    let mut bench = Bench::with_config(ManagementConfig { rib: limits, ..Default::default() });
    let other = FaceProperties { face: FaceId(400), holder: HolderId::from_index(2).expect("local"), ..local_face() };
    bench.add_face(other);
    let answers: Vec<ControlResponse> =
        (0..1000).map(|number| bench.command("rib/register", &for_prefix(&format!("/a/{number}")))).collect();
    assert_eq!(answers.iter().filter(|answer| answer.code == 200).count(), 891, "nine tenths of what is for users");
    assert_refused(&answers[999], 507, "you have your share of the RIB (of 1000 routes)");
    bench.send_from(FaceId(400), &signed_command("rib/register", &for_prefix("/b")));
    assert_eq!(bench.answer().code, 200);
    // The operator adds routes to this application's face; they are not the application's.
    let operators = ControlParameters { face_id: Some(LOCAL_FACE), ..for_prefix("/c") };
    bench.send_from(FaceId::INTERNAL, &signed_command("rib/register", &operators));
    assert_eq!(bench.answer().code, 200);
    // What an application gives back is free for it again.
    bench.command("rib/unregister", &for_prefix("/a/7"));
    assert_eq!(bench.command("rib/register", &for_prefix("/a/1000")).code, 200);
}

/// Under multicast, the default there, both are asked, and the first answer counts: users must know that they are two.
#[test]
fn two_users_of_one_local_prefix_are_reported() {
    let mut bench = Bench::new();
    let user = |face, number| FaceProperties {
        face: FaceId(face),
        holder: HolderId::from_index(number).expect("local"),
        ..local_face()
    };
    bench.add_face(user(400, 2));
    bench.add_face(user(401, 2));
    bench.command("rib/register", &for_prefix("/localhost/app"));
    bench.command("rib/register", &for_prefix("/app"));
    for (face, prefix) in
        [(400, "/localhost/app/x"), (400, "/app"), (400, "/localhost/other"), (401, "/localhost/other")]
    {
        bench.send_from(FaceId(face), &signed_command("rib/register", &for_prefix(prefix)));
        assert_eq!(bench.answer().code, 200);
    }
    let entries: Vec<RibEntry> = decode_dataset(&bench.fetch("/localhost/nfd/rib/list")).expect("decodes");
    let contested = entries.iter().filter(|entry| entry.routes.iter().any(|route| route.is_contested == Some(true)));
    assert_eq!(contested.map(|entry| entry.name.to_string()).collect::<Vec<_>>(), ["/localhost/app/x"]);
    bench.send_from(FaceId(401), &signed_command("rib/register", &for_prefix("/localhost/app")));
    let entries: Vec<RibEntry> = decode_dataset(&bench.fetch("/localhost/nfd/rib/list")).expect("decodes");
    let of_both = entries.iter().find(|entry| entry.name == uri("/localhost/app")).expect("the entry");
    assert!(
        of_both.routes.len() == 2 && of_both.routes.iter().all(|route| route.is_contested == Some(true)),
        "{of_both:?}"
    );
}

#[test]
fn a_command_from_another_host_is_refused() {
    let mut bench = Bench::new();
    let interest = signed_command("rib/register", &for_prefix("/a"));
    bench.effects.clear();
    let (now, router, out) = (bench.now, &mut bench.router, &mut bench.effects);
    bench.management.on_interest(now, UDP_FACE, &interest, None, router, out);
    assert_refused(&bench.answer(), 403, "is not local");
}

#[test]
fn the_pit_token_comes_back() {
    let mut bench = Bench::new();
    bench.effects.clear();
    let token = PitToken::new(&[9; 32]);
    let interest = signed_command("faces/create", &for_uri(OTHER_REMOTE));
    bench.management.on_interest(bench.now, LOCAL_FACE, &interest, token, &mut bench.router, &mut bench.effects);
    bench.done(Ok(FaceProperties { face: FaceId(400), remote: OTHER_REMOTE.parse().expect("URI"), ..udp_face() }));
    let [Effect::Reply { pit_token, .. }] = &bench.effects[..] else { panic!("{:?}", bench.effects) };
    assert_eq!(*pit_token, token);
}

// ---- fib ----

#[test]
fn manual_next_hops() {
    let mut bench = Bench::new();
    let add = ControlParameters { face_id: Some(UDP_FACE), cost: Some(5), ..for_prefix("/m") };
    assert_eq!(bench.command("fib/add-nexthop", &add), ControlResponse::ok(add));
    assert_eq!(bench.fib_changes(), [insert("/m", &[(UDP_FACE, 5)], 0)]);
    let response = bench.command("fib/add-nexthop", &for_prefix("/m"));
    let own = ControlParameters { face_id: Some(LOCAL_FACE), cost: Some(0), ..for_prefix("/m") };
    assert_eq!(response, ControlResponse::ok(own));
    assert_eq!(bench.fib_changes(), [insert("/m", &[(LOCAL_FACE, 0), (UDP_FACE, 5)], 0)]);
    let remove = ControlParameters { face_id: Some(UDP_FACE), ..for_prefix("/m") };
    assert_eq!(bench.command("fib/remove-nexthop", &remove), ControlResponse::ok(remove.clone()));
    assert_eq!(bench.fib_changes(), [insert("/m", &[(LOCAL_FACE, 0)], 0)]);
    assert_eq!(bench.command("fib/remove-nexthop", &remove).code, 200, "200 always");
    let missing = ControlParameters { face_id: Some(FaceId(999)), ..for_prefix("/m") };
    assert_refused(&bench.command("fib/add-nexthop", &missing), 410, "Face not found");
    let own = ControlParameters { face_id: Some(FaceId::INTERNAL), ..for_prefix("/localhost/nfd") };
    assert_refused(&bench.command("fib/remove-nexthop", &own), 403, "belongs to the forwarder");
    bench.close(LOCAL_FACE);
    assert_eq!(bench.fib_changes(), [FibChange::Remove { name: uri("/m") }]);
}

// ---- strategy-choice ----

fn set(prefix: &str, strategy: &str) -> ControlParameters {
    ControlParameters { strategy: Some(uri(strategy)), ..for_prefix(prefix) }
}

#[test]
fn strategies_are_stored_with_their_version() {
    let mut bench = Bench::new();
    let response = bench.command("strategy-choice/set", &set("/a", "/localhost/nfd/strategy/asf"));
    assert_eq!(response, ControlResponse::ok(set("/a", "/localhost/nfd/strategy/asf/54=%05")));
    assert_eq!(bench.fib_changes(), [hidden("/a", 2)]);
    // The route below has the strategy. Unset brings the parent's strategy back and releases the instance.
    bench.command("rib/register", &for_prefix("/a/b"));
    assert_eq!(bench.fib_changes(), [insert("/a/b", &[(LOCAL_FACE, 0)], 2)]);
    assert_eq!(bench.command("strategy-choice/unset", &for_prefix("/a")), ControlResponse::ok(for_prefix("/a")));
    let back = insert("/a/b", &[(LOCAL_FACE, 0)], 0);
    assert_eq!(bench.fib_changes(), [FibChange::Remove { name: uri("/a") }, back]);
    assert_eq!(bench.router.released, [2]);
    assert_eq!(bench.command("strategy-choice/unset", &for_prefix("/a")).code, 200, "200 also if not set");
    let response = bench.command("strategy-choice/set", &set("/", "/localhost/nfd/strategy/multicast"));
    assert_eq!(response.code, 200);
    assert!(!bench.fib_changes().is_empty() && bench.router.released == [2], "best-route is still in use");
}

#[test]
fn strategy_refusals() {
    let mut bench = Bench::new();
    for (strategy, code, text) in [
        ("/localhost/nfd/strategy/ncc", 404, "Unknown strategy"),
        ("/elsewhere/asf", 404, "Unknown strategy"),
        ("/localhost/nfd/strategy/asf/54=%06", 404, "Unknown strategy"),
        ("/localhost/nfd/strategy/asf/54=%05/x", 409, "Error instantiating strategy: Parameter x is not of the form"),
    ] {
        assert_refused(&bench.command("strategy-choice/set", &set("/a", strategy)), code, text);
    }
    let response = bench.command("strategy-choice/unset", &for_prefix("/"));
    assert_refused(&response, 400, "failed in validating parameters");
    let deep = bench.command("strategy-choice/set", &set(&"/x".repeat(33), "/localhost/nfd/strategy/asf"));
    assert_refused(&deep, 414, "Prefix has too many components (limit is 32)");
}

// ---- cs ----

fn configure_cs(capacity_packets: Option<u64>, policy: Option<&str>, admit: Option<bool>) -> Effect {
    let policy = policy.map(str::to_owned);
    Effect::ConfigureCs { capacity_packets, capacity_bytes: None, policy, admit, serve: None }
}

/// The field is our addition, and in the answer only if the command has it: nfdc refuses an answer with more.
#[test]
fn cs_config_changes_the_bytes() {
    let mut bench = Bench::new();
    let bytes = ControlParameters { cs_capacity_bytes: Some(1 << 20), ..Default::default() };
    let after = ControlParameters { capacity: Some(65536), flags: Some(3), ..bytes.clone() };
    assert_eq!(bench.command("cs/config", &bytes), ControlResponse::ok(after));
    let Effect::ConfigureCs { capacity_packets: None, capacity_bytes: Some(1_048_576), .. } = bench.effects[0] else {
        panic!("{:?}", bench.effects)
    };
    assert_eq!(ControlParameters::decode(&bytes.to_wire()), Ok(bytes));
}

/// The field is our addition. Only a command that has it gets it in the answer; other commands ignore it.
#[test]
fn cs_config_changes_the_policy() {
    let mut bench = Bench::new();
    let named = |text: &str| ControlParameters { cs_policy: Some(text.to_owned()), ..Default::default() };
    let done = bench.command("cs/config", &named("fifo"));
    let after = ControlParameters { capacity: Some(65536), flags: Some(3), ..named("all/fifo") };
    assert_eq!(done, ControlResponse::ok(after));
    assert_eq!(bench.effects[0], configure_cs(None, Some("all/fifo"), None));
    let unknown = bench.command("cs/config", &named("best"));
    assert_eq!((unknown.code, bench.effects.len()), (400, 1));
    assert!(unknown.text.contains("no policy is called"), "{}", unknown.text);
    let other = ControlParameters { name: Some(uri("/p")), ..named("fifo") };
    assert_eq!(bench.command("rib/register", &other).code, 200);
    let parameters = ControlParameters { capacity: Some(7), ..named("s/t") };
    assert_eq!(ControlParameters::decode(&parameters.to_wire()), Ok(parameters));
}

#[test]
fn cs_config_changes_what_is_given() {
    let mut bench = Bench::new();
    let capacity = ControlParameters { capacity: Some(100), ..Default::default() };
    let both = ControlParameters { flags: Some(3), ..capacity.clone() };
    assert_eq!(bench.command("cs/config", &capacity), ControlResponse::ok(both));
    let effect = configure_cs(Some(100), None, None);
    assert_eq!(bench.effects[0], effect);
    let flags = ControlParameters { flags: Some(2), mask: Some(1), ..Default::default() };
    let after = ControlParameters { capacity: Some(65536), flags: Some(2), ..Default::default() };
    assert_eq!(bench.command("cs/config", &flags), ControlResponse::ok(after));
    let effect = configure_cs(None, None, Some(false));
    assert_eq!(bench.effects[0], effect);
    let nothing = bench.command("cs/config", &ControlParameters::default());
    assert_eq!(nothing.body.expect("body").capacity, Some(65536));
    assert_eq!(bench.effects.len(), 1, "nothing to do");
}

#[test]
fn cs_erase_is_answered_when_the_workers_are_done() {
    let mut bench = Bench::new();
    let prefix = ControlParameters { name: Some(uri("/a")), ..Default::default() };
    let erase = |bench: &mut Bench, count, limit, erased| {
        bench.send(&signed_command("cs/erase", &ControlParameters { count, ..prefix.clone() }));
        let [Effect::EraseCs { ticket, prefix: asked, limit: at_most }] = &bench.effects[..] else {
            panic!("not an erasure alone: {:?}", bench.effects)
        };
        assert_eq!((asked, *at_most), (&uri("/a"), limit));
        let ticket = *ticket;
        bench.effects.clear();
        bench.management.on_cs_erased(ticket, erased, &mut bench.effects);
        let answer = bench.answer();
        bench.effects.clear();
        bench.management.on_cs_erased(ticket, erased, &mut bench.effects);
        assert_eq!(bench.effects, [], "a ticket is good for one answer");
        answer
    };
    let erased = |count| ControlParameters { count: Some(count), ..prefix.clone() };
    assert_eq!(erase(&mut bench, Some(7), 7, 7), ControlResponse::ok(erased(7)));
    assert_eq!(erase(&mut bench, None, 256, 255), ControlResponse::ok(erased(255)));
    assert_eq!(erase(&mut bench, Some(256), 256, 256), ControlResponse::ok(erased(256)));
    let more = ControlParameters { capacity: Some(256), ..erased(256) };
    for count in [None, Some(257)] {
        assert_eq!(erase(&mut bench, count, 256, 256), ControlResponse::ok(more.clone()), "{count:?}");
    }
    for (parameters, reason) in [(erased(0), "Count must not be 0"), (ControlParameters::default(), "Name is required")]
    {
        let refused = bench.command("cs/erase", &parameters);
        assert_eq!((refused.code, refused.text.contains(reason)), (400, true), "{}", refused.text);
    }
    for _ in 0..64 {
        bench.send(&signed_command("cs/erase", &prefix));
        assert!(matches!(bench.effects[..], [Effect::EraseCs { .. }]));
    }
    assert_eq!(bench.command("cs/erase", &prefix).code, 503, "as many as may be in progress");
}

// ---- faces ----

#[test]
fn a_face_is_created_and_then_exists() {
    let mut bench = Bench::new();
    let parameters = ControlParameters {
        face_persistency: Some(2),
        flags: Some(0b110),
        mask: Some(0b010),
        mtu: Some(1400),
        ..for_uri(OTHER_REMOTE)
    };
    bench.send(&signed_command("faces/create", &parameters));
    let create = bench.create_effect();
    assert_eq!((create.persistency, create.flags, create.mask), (FacePersistency::Permanent, 0b010, 0b010));
    assert_eq!((create.remote.to_string().as_str(), create.mtu), (OTHER_REMOTE, Some(1400)));
    let made = FaceProperties {
        face: FaceId(400),
        remote: OTHER_REMOTE.parse().expect("URI"),
        persistency: FacePersistency::Permanent,
        ..udp_face()
    };
    bench.done(Ok(made));
    let body = ControlParameters {
        face_id: Some(FaceId(400)),
        local_uri: Some("udp4://192.0.2.2:6363".into()),
        flags: Some(4),
        face_persistency: Some(2),
        base_congestion_marking_interval_ns: Some(100_000_000),
        default_congestion_threshold_bytes: Some(65536),
        mtu: Some(8800),
        ..for_uri(OTHER_REMOTE)
    };
    assert_eq!(bench.answer(), ControlResponse::ok(body.clone()));
    // The same command again: 409, with everything that the client needs to continue.
    let again = bench.command("faces/create", &for_uri(OTHER_REMOTE));
    assert_eq!(again, ControlResponse::new(409, "Face with remote URI already exists").with_body(body));
    assert!(bench.management.face(FaceId(400)).is_some());
}

#[test]
fn two_requests_for_the_same_face_make_one() {
    let mut bench = Bench::new();
    bench.send(&signed_command("faces/create", &for_uri(OTHER_REMOTE)));
    let first = bench.effects.clone();
    bench.send(&signed_command("faces/create", &ControlParameters { mtu: Some(1400), ..for_uri(OTHER_REMOTE) }));
    assert_eq!(bench.effects, [], "the second waits for the first");
    bench.effects = first;
    bench.done(Ok(FaceProperties { face: FaceId(400), remote: OTHER_REMOTE.parse().expect("URI"), ..udp_face() }));
    let codes: Vec<u64> = bench
        .effects
        .iter()
        .map(|effect| match effect {
            Effect::Reply { packet, .. } => answer_in(packet).code,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(codes, [200, 409]);
}

#[test]
fn a_failed_face_command_is_answered_with_its_error() {
    let mut bench = Bench::new();
    bench.send(&signed_command("faces/create", &for_uri("tcp4://192.0.2.9:6363")));
    bench.done(Err(FaceCommandError { code: 504, text: "Connection timed out".into(), body: None }));
    assert_refused(&bench.answer(), 504, "Connection timed out");
    // Nothing is left over: the same command can be tried again.
    bench.send(&signed_command("faces/create", &for_uri("tcp4://192.0.2.9:6363")));
    bench.create_effect();
}

#[test]
fn face_creation_refusals() {
    let mut bench = Bench::new();
    let with_local =
        |remote: &str, local: &str| ControlParameters { local_uri: Some(local.to_owned()), ..for_uri(remote) };
    let persistency = |remote: &str, code| ControlParameters { face_persistency: Some(code), ..for_uri(remote) };
    let local_fields = |remote: &str| ControlParameters { flags: Some(1), mask: Some(1), ..for_uri(remote) };
    let mtu = |remote: &str, mtu| ControlParameters { mtu: Some(mtu), ..for_uri(remote) };
    let ether = "ether://[08:00:27:01:01:01]";
    let cases = [
        (ControlParameters::default(), 400, "failed in validating parameters: Uri is required"),
        (for_face(5), 400, "failed in validating parameters: "),
        (ControlParameters { cost: Some(1), ..for_uri(OTHER_REMOTE) }, 400, "Cost is forbidden"),
        (ControlParameters { flags: Some(1), ..for_uri(OTHER_REMOTE) }, 400, "Flags and Mask"),
        (ControlParameters { mask: Some(1), ..for_uri(OTHER_REMOTE) }, 400, "Flags and Mask"),
        (for_uri("no URI"), 400, "Malformed command"),
        (for_uri("udp4://192.0.2.1:99999"), 400, "Malformed command"),
        (for_uri("udp://192.0.2.1:6363"), 400, "Non-canonical remote URI"),
        (for_uri("udp4://router.example.net:6363"), 400, "Non-canonical remote URI"),
        (for_uri("udp4://192.0.2.9"), 400, "Non-canonical remote URI"),
        (for_uri("quic://192.0.2.9:1"), 400, "Non-canonical remote URI"),
        (for_uri("fd://3"), 400, "Non-canonical remote URI"),
        (for_uri("unix:///run/nfd/nfd.sock"), 400, "Non-canonical remote URI"),
        (with_local(ether, "fd://1"), 400, "Non-canonical local URI"),
        (for_uri("dev://eth0"), 406, "Unsupported protocol"),
        (for_uri("udp4+dev://eth0:6363"), 406, "Unsupported protocol"),
        (for_uri("udp4://224.0.23.170:56363"), 406, "Cannot create multicast UDP faces"),
        (for_uri("udp4://0.0.0.0:6363"), 406, "Cannot create UDP faces to an unspecified address"),
        (for_uri("udp6://[::]:6363"), 406, "Cannot create UDP faces to an unspecified address"),
        (for_uri("udp6://[::ffff:0.0.0.0]:6363"), 406, "Cannot create UDP faces to an unspecified address"),
        (for_uri("tcp4://0.0.0.0:6363"), 406, "Cannot create TCP faces to an unspecified address"),
        (for_uri("tcp6://[::]:6363"), 406, "Cannot create TCP faces to an unspecified address"),
        (for_uri("ws://0.0.0.0:9696"), 406, "Cannot create WebSocket faces to an unspecified address"),
        (for_uri("wss://[::]:443/path"), 406, "Cannot create WebSocket faces to an unspecified address"),
        (for_uri("udp4://192.0.2.9:0"), 406, "Cannot create UDP faces to port 0"),
        (for_uri("udp6://[2001:db8::9]:0"), 406, "Cannot create UDP faces to port 0"),
        (for_uri("tcp4://192.0.2.9:0"), 406, "Cannot create TCP faces to port 0"),
        (for_uri("tcp6://[2001:db8::9]:0"), 406, "Cannot create TCP faces to port 0"),
        (for_uri("ws://router.example:0/"), 406, "Cannot create WebSocket faces to port 0"),
        (for_uri("udp4://255.255.255.255:6363"), 406, "Cannot create broadcast UDP faces"),
        (for_uri("tcp4://255.255.255.255:6363"), 406, "Cannot create broadcast TCP faces"),
        (for_uri("udp6://[ff02::1234%eth0]:56363"), 406, "Cannot create multicast UDP faces"),
        (for_uri("udp6://[::ffff:224.0.23.170]:56363"), 406, "Cannot create multicast UDP faces"),
        (for_uri("ws://224.0.23.170:9696"), 406, "Cannot create multicast WebSocket faces"),
        (persistency(OTHER_REMOTE, 1), 406, "Outgoing UDP faces do not support on-demand persistency"),
        (persistency("tcp4://192.0.2.9:6363", 1), 406, "Outgoing TCP faces do not support on-demand persistency"),
        (persistency(OTHER_REMOTE, 7), 400, "FacePersistency 7"),
        (with_local(OTHER_REMOTE, "udp4://192.0.2.2:6363"), 406, "Unicast UDP faces cannot be created with a LocalUri"),
        (with_local("tcp4://192.0.2.9:6363", "tcp4://192.0.2.2:6363"), 406, "cannot be created with a LocalUri"),
        (mtu(OTHER_REMOTE, 63), 406, "Override MTU cannot be less than 64"),
        (mtu("tcp4://192.0.2.9:6363", 1400), 406, "TCP faces do not support MTU overrides"),
        (local_fields(OTHER_REMOTE), 406, "Local fields can only be enabled on faces with local scope"),
        (local_fields("tcp4://192.0.2.9:6363"), 406, "Local fields can only be enabled on faces with local scope"),
        (for_uri(ether), 406, "requires a LocalUri with dev:// scheme"),
        (with_local("ether://[01:00:5e:00:17:aa]", "dev://eth0"), 406, "Cannot create multicast Ethernet faces"),
        (for_uri("wsclient://127.0.0.1:9"), 400, "Non-canonical remote URI"),
        (persistency("ws://192.0.2.9:9696", 1), 406, "Outgoing WebSocket faces do not support on-demand persistency"),
        (with_local("wss://a.example:443", "dev://eth0"), 406, "WebSocket faces cannot be created with a LocalUri"),
        (mtu("ws://192.0.2.9:9696", 1400), 406, "WebSocket faces do not support MTU overrides"),
    ];
    for (parameters, code, text) in cases {
        let response = bench.command("faces/create", &parameters);
        assert_refused(&response, code, text);
        assert_eq!(response.body, None, "{text}");
        assert_eq!(bench.effects.len(), 1, "{text}");
    }
    bench.send(&signed_command("faces/create", &local_fields("tcp4://127.0.0.1:6363")));
    assert_eq!(bench.create_effect().flags, 1, "TCP within this host may be local");
    bench.send(&signed_command("faces/create", &with_local(ether, "dev://eth0")));
    bench.create_effect();
}

#[test]
fn faces_are_updated_and_nothing_changes_if_one_property_is_refused() {
    let mut bench = Bench::new();
    let of_udp = |parameters: ControlParameters| ControlParameters { face_id: Some(UDP_FACE), ..parameters };
    let properties = ControlParameters {
        face_id: Some(UDP_FACE),
        flags: Some(4),
        face_persistency: Some(0),
        base_congestion_marking_interval_ns: Some(100_000_000),
        default_congestion_threshold_bytes: Some(65536),
        mtu: Some(8800),
        ..Default::default()
    };
    let shown = bench.command("faces/update", &for_face(UDP_FACE.0));
    assert_eq!(shown, ControlResponse::ok(properties.clone()), "with no field: the properties");
    let bare = bench.command("faces/update", &ControlParameters::default());
    let own = ControlParameters {
        face_id: Some(LOCAL_FACE),
        flags: Some(0),
        face_persistency: Some(1),
        ..Default::default()
    };
    assert_eq!(bare, ControlResponse::ok(own), "FaceId 0 or none is the own face");

    let change = ControlParameters { face_persistency: Some(2), flags: Some(0), mask: Some(4), ..Default::default() };
    bench.send(&signed_command("faces/update", &of_udp(change)));
    let [Effect::UpdateFace(update)] = &bench.effects[..] else { panic!("{:?}", bench.effects) };
    assert_eq!((update.face, update.persistency), (UDP_FACE, Some(FacePersistency::Permanent)));
    assert_eq!((update.flags, update.mask, update.mtu), (0, 4, None));
    bench.done(Ok(FaceProperties { persistency: FacePersistency::Permanent, flags: 0, ..udp_face() }));
    let changed = ControlParameters { face_persistency: Some(2), flags: Some(0), ..properties };
    assert_eq!(bench.answer(), ControlResponse::ok(changed));
    assert_eq!(bench.management.face(UDP_FACE).expect("face").flags, 0);

    let fields = ControlParameters { flags: Some(1), mask: Some(1), ..Default::default() };
    let several = ControlParameters { face_persistency: Some(7), mtu: Some(1400), ..fields.clone() };
    let refused = ControlParameters { face_persistency: Some(7), ..fields.clone() };
    let invalid = |body| ControlResponse::new(409, "Invalid properties specified").with_body(body);
    assert_eq!(bench.command("faces/update", &of_udp(several)), invalid(refused), "only the refused ones");
    for parameters in [
        ControlParameters { face_persistency: Some(2), ..Default::default() },
        ControlParameters { mtu: Some(1400), ..Default::default() },
    ] {
        // A Unix face stays on-demand and has no MTU.
        assert_eq!(bench.command("faces/update", &parameters), invalid(parameters.clone()));
    }
    assert_refused(&bench.command("faces/update", &for_face(999)), 404, "Specified face does not exist");
    let no_mask = ControlParameters { flags: Some(1), ..Default::default() };
    assert_refused(&bench.command("faces/update", &no_mask), 400, "Flags and Mask");
    bench.send(&signed_command("faces/update", &fields));
    let [Effect::UpdateFace(update)] = &bench.effects[..] else { panic!("{:?}", bench.effects) };
    assert_eq!((update.face, update.flags), (LOCAL_FACE, 1), "local fields on a local face");
}

#[test]
fn faces_are_destroyed() {
    let mut bench = Bench::new();
    bench.command("rib/register", &ControlParameters { face_id: Some(UDP_FACE), ..for_prefix("/far") });
    bench.send(&signed_command("faces/destroy", &for_face(UDP_FACE.0)));
    assert!(matches!(bench.effects[..], [Effect::DestroyFace { face: UDP_FACE, .. }]));
    let ticket_effects = bench.effects.clone();
    bench.close(UDP_FACE);
    assert_eq!(bench.fib_changes(), [FibChange::Remove { name: uri("/far") }]);
    bench.effects = ticket_effects;
    bench.done(Ok(udp_face()));
    assert_eq!(bench.answer(), ControlResponse::ok(for_face(UDP_FACE.0)));
    assert_eq!(bench.command("faces/destroy", &for_face(UDP_FACE.0)).code, 200, "200 also if it does not exist");
    assert_refused(&bench.command("faces/destroy", &for_face(0)), 400, "FaceId must not be 0");
    for own in [1, 254, 255] {
        assert_refused(&bench.command("faces/destroy", &for_face(own)), 403, "belongs to the forwarder");
        let update = ControlParameters { face_persistency: Some(0), ..for_face(own) };
        assert_refused(&bench.command("faces/update", &update), 403, "belongs to the forwarder");
        let route = ControlParameters { face_id: Some(FaceId(own)), ..for_prefix("/a") };
        assert_refused(&bench.command("rib/register", &route), 410, "Face not found");
    }
    assert!(matches!(bench.effects[..], [Effect::Reply { .. }]), "nothing was done to them");
    assert_refused(&bench.command("faces/destroy", &ControlParameters::default()), 400, "FaceId is required");
}

// ---- formats and signatures ----

/// The old format: four components after the parameters.
fn old_command(command: &str, parameters: &ControlParameters, signature_type: u8, spoil: bool) -> Vec<u8> {
    let mut signed = command_name(command, parameters);
    let fresh = fresh_fields();
    signed.push_generic(&fresh.time_ms.expect("a time").to_be_bytes()).push_generic(&fresh.nonce);
    signed.push_generic(&[22, 3, 27, 1, signature_type]);
    let mut value = Vec::new();
    let mut digest = sha256(&[signed.value()]);
    digest[0] ^= u8::from(spoil);
    tlv::write_tlv(&mut value, 23, &digest);
    signed.push_generic(&value);
    InterestBuilder::new(signed).nonce(Nonce([1, 2, 3, 4])).build()
}

#[test]
fn both_formats_are_understood_and_their_digests_checked() {
    let mut bench = Bench::new();
    // A route of another face, because the digest is not checked for a route to the sender itself.
    let parameters = ControlParameters { face_id: Some(UDP_FACE), ..for_prefix("/a") };
    bench.send(&old_command("rib/register", &parameters, 0, false));
    assert_eq!(bench.answer().code, 200);
    bench.send(&old_command("rib/register", &parameters, 0, true));
    assert_refused(
        &bench.answer(),
        403,
        "authorization rejected: bad signature: the DigestSha256 signature does not match",
    );
    bench.send(&old_command("rib/register", &for_prefix("/a"), 3, true));
    assert_eq!(bench.answer().code, 200, "an unknown key cannot be checked, and the route is its own");

    let mut spoiled = signed_command("rib/register", &parameters);
    *spoiled.last_mut().expect("signature") ^= 1;
    bench.send(&spoiled);
    assert_refused(&bench.answer(), 403, "parameters digest in the name is wrong");
    // A right parameters digest over a wrong signature.
    let wrong = InterestBuilder::new(command_name("rib/register", &parameters));
    let fields = SignedInterestFields { nonce: vec![1; 8], time_ms: Some(1), seq_num: None };
    bench.send(&wrong.sign_with(0, None, &fields, |_| vec![0; 32]));
    assert_refused(&bench.answer(), 403, "the DigestSha256 signature does not match");
}

#[test]
fn unsigned_commands_of_the_router_s_user_pass_except_to_rib() {
    let mut bench = Bench::new();
    let unsigned = |command: &str, parameters: &ControlParameters| {
        InterestBuilder::new(command_name(command, parameters)).nonce(Nonce([1, 2, 3, 4])).build()
    };
    bench.send(&unsigned("rib/register", &for_prefix("/a")));
    assert_refused(&bench.answer(), 403, "authorization rejected: not signed");
    bench.send(&unsigned("strategy-choice/unset", &for_prefix("/a")));
    assert_eq!(bench.answer().code, 200);
    let name = command_name("rib/register", &for_prefix("/a"));
    bench.send(&InterestBuilder::new(name).application_parameters(vec![1]).build());
    assert_refused(&bench.answer(), 403, "authorization rejected: not signed");
}

#[test]
fn malformed_and_unknown_requests_are_answered() {
    let mut bench = Bench::new();
    let plain = |name: &str| InterestBuilder::new(uri(name)).nonce(Nonce([1, 2, 3, 4])).build();
    // `h%00` is ControlParameters without any field.
    for (uri, code, text) in [
        ("/localhost/nfd", 400, "no module and verb"),
        ("/localhost/nfd/rib", 400, "no verb"),
        ("/localhost/nfd/rib/announce", 400, "must be followed by a parameters digest"),
        ("/localhost/nfd/weather/list", 501, "Unknown command or dataset weather/list"),
        ("/localhost/nfd/cs/erase/x", 400, "Malformed command"),
        ("/localhost/nfd", 400, "no module and verb"),
        ("/localhost/nfd/rib/register", 400, "Malformed command: no ControlParameters"),
        ("/localhost/nfd/rib/register/x", 400, "Malformed command: malformed TLV"),
        ("/localhost/nfd/rib/register/54=%01", 400, "Malformed command: no ControlParameters"),
        ("/localhost/nfd/rib/register/h%00", 403, "authorization rejected: not signed"),
        ("/localhost/nfd/rib/register/h%00/a/b", 400, "unexpected name components"),
        ("/localhost/nfd/rib/register/h%00/a/b/c/d", 400, "signature in the name cannot be read"),
        ("/localhost/nfd/rib/register/h%03%69%01", 400, "Malformed command"),
        ("/localhost/nfd/rib/list", 400, "needs CanBePrefix"),
        ("/localhost/nfd/faces/events", 400, "needs CanBePrefix"),
        ("/localhost/nfd/log/recent", 400, "needs CanBePrefix"),
    ] {
        bench.send(&plain(uri));
        assert_refused(&bench.answer(), code, text);
    }
    let long = format!("/localhost/nfd/rib/{}", "x".repeat(8000));
    bench.send(&plain(&long));
    assert_refused(&bench.answer(), 501, "rib/(8000 bytes)");
    bench.send(&plain("/localhop/nfd/rib/list"));
    assert_eq!(bench.effects, []);
    bench.send(b"no Interest");
    assert_eq!(bench.effects, []);
    let counters = bench.management.counters();
    assert_eq!((counters.foreign_prefix, counters.not_an_interest), (1, 1));
}

#[test]
fn fields_that_a_verb_does_not_take_are_refused() {
    let mut bench = Bench::new();
    let all = ControlParameters {
        name: Some(uri("/a")),
        face_id: Some(LOCAL_FACE),
        uri: Some(REMOTE.into()),
        local_uri: Some(REMOTE.into()),
        origin: Some(0),
        cost: Some(0),
        capacity: Some(1),
        count: Some(1),
        flags: Some(0),
        mask: Some(0),
        strategy: Some(uri("/localhost/nfd/strategy/asf")),
        expiration_period_ms: Some(1),
        face_persistency: Some(0),
        base_congestion_marking_interval_ns: Some(1),
        default_congestion_threshold_bytes: Some(1),
        mtu: Some(1400),
        cs_policy: None,
        cs_capacity_bytes: None,
        tags: Some(TagList::new(["a"]).expect("tags")),
        log_levels: None,
        report: None,
    };
    for (verb, required) in [
        ("faces/create", "Uri"),
        ("faces/update", ""),
        ("faces/destroy", "FaceId"),
        ("fib/add-nexthop", "Name"),
        ("fib/remove-nexthop", "Name"),
        ("cs/config", ""),
        ("strategy-choice/set", "Name"),
        ("strategy-choice/unset", "Name"),
        ("rib/register", "Name"),
        ("rib/unregister", "Name"),
        ("tags/advertise", "Flags"),
        ("tags/withdraw", "Tags"),
        ("tags/join", ""),
        ("log/set", "LogLevels"),
    ] {
        assert_refused(&bench.command(verb, &all), 400, "is forbidden");
        if !required.is_empty() {
            let response = bench.command(verb, &ControlParameters::default());
            assert_refused(&response, 400, &format!("failed in validating parameters: {required} is required"));
        }
    }
    let no_strategy = bench.command("strategy-choice/set", &for_prefix("/a"));
    assert_refused(&no_strategy, 400, "Strategy is required");
    let cost = ControlParameters { cost: Some(1), ..for_prefix("/a") };
    assert_refused(&bench.command("rib/unregister", &cost), 400, "Cost is forbidden");
    let mask = ControlParameters { flags: Some(1), mask: Some(1), ..for_prefix("/a") };
    assert_refused(&bench.command("rib/register", &mask), 400, "Mask is forbidden");
}

// ---- what real clients sent ----

/// The time when a command was signed, in either format.
fn signed_at_ms(wire: &[u8]) -> Option<u64> {
    let interest = Interest::parse(wire).expect("Interest");
    match interest.signature_info() {
        Some(info) => info.time_ms(),
        None => interest.name().get(5).and_then(|timestamp| timestamp.value.try_into().ok()).map(u64::from_be_bytes),
    }
}

#[test]
fn captured_commands_are_understood() {
    let vectors: serde_json::Value =
        serde_json::from_str(include_str!("../../packet/tests/test-vectors.json")).expect("JSON");
    let mut bench = Bench::new();
    // ndnd's route-add names face 300, the application face of this bench.
    let mut codes = Vec::new();
    for entry in vectors["captured_commands"].as_array().expect("array") {
        let (id, hex) = (entry["id"].as_str().expect("id"), entry["hex"].as_str().expect("hex"));
        let mut wire: Vec<u8> =
            (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hex")).collect();
        if wire[0] == 100 {
            wire = LpPacket::parse(&wire).expect("LpPacket").fragment.expect("fragment").to_vec();
        }
        bench.now.unix_ms = signed_at_ms(&wire).unwrap_or(bench.now.unix_ms);
        bench.send(&wire);
        match &bench.effects[..] {
            [Effect::CreateFace(create)] => {
                assert_eq!(create.persistency, FacePersistency::Persistent);
                codes.push((id.to_owned(), 0));
            }
            effects if id == "C-nfdc-dataset" => {
                assert!(matches!(effects, [Effect::Reply { .. }]));
                codes.push((id.to_owned(), 0));
            }
            _ => codes.push((id.to_owned(), bench.answer().code)),
        }
    }
    assert_eq!(codes.len(), 10);
    for (id, code) in &codes {
        let expected = match id.as_str() {
            "C-nfdc-dataset" | "C-nfdc-face-create" => 0,
            _ => 200,
        };
        assert_eq!(*code, expected, "{id}");
    }
    let routes: Vec<String> = ["/pyprefix", "/r1", "/putp", "/ntsprefix"]
        .iter()
        .map(|prefix| format!("{:?}", bench.management.rib().routes(uri(prefix).as_name())))
        .collect();
    assert!(routes[0].contains("origin: 0"), "{routes:?}");
    assert!(routes[1].contains("origin: 255"), "{routes:?}");
    assert!(routes[2].contains("origin: 65"), "{routes:?}");
    assert_eq!(routes[3], "[]", "NDNts registered and unregistered");
}

// ---- whatever else comes ----

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut bench = Bench::new();
        bench.send(&bytes);
    }

    #[test]
    fn random_components_are_answered_within_a_packet(
        module in prop::sample::select(vec!["rib", "fib", "cs", "faces", "strategy-choice", "status", "x"]),
        verb in prop::sample::select(vec![
            "register", "unregister", "add-nexthop", "create", "update", "destroy", "set", "unset", "config",
            "list", "query", "general", "info", "events", "channels",
        ]),
        components in prop::collection::vec((prop::sample::select(vec![8u32, 54, 50, 58, 32]),
                                             prop::collection::vec(any::<u8>(), 0..60)), 0..6),
        can_be_prefix: bool,
    ) {
        let mut bench = Bench::new();
        let mut name = uri(&format!("/localhost/nfd/{module}/{verb}"));
        for (type_number, value) in &components {
            name.push(namewire_packet::Component { type_number: *type_number, value });
        }
        bench.send(&InterestBuilder::new(name).can_be_prefix(can_be_prefix).build());
        for effect in &bench.effects {
            if let Effect::Reply { packet, .. } = effect {
                prop_assert!(packet.len() <= 8800 && Data::parse(packet).is_ok());
            }
        }
    }

    #[test]
    fn spoiled_commands_never_panic_and_register_at_most_the_sender(position: prop::sample::Index, flip in 1u8..) {
        let mut bench = Bench::new();
        let of_other = ControlParameters { face_id: Some(UDP_FACE), ..for_prefix("/example/prefix") };
        let original = signed_command("rib/register", &of_other);
        let mut interest = original.clone();
        let position = position.index(interest.len());
        interest[position] ^= flip;
        bench.send(&interest);
        // The digests cover everything but the Interest's own Nonce element. A changed FaceId may turn this into a
        // route to the sender itself; then the signature is not checked.
        let nonce_at = Interest::parse(&original).expect("Interest").nonce_offset().expect("nonce");
        let is_nonce = (nonce_at - 2..nonce_at + 4).contains(&position);
        let mut routes = bench.management.rib().dataset(0).flat_map(|entry| entry.routes);
        prop_assert!(is_nonce || routes.all(|route| route.face_id == LOCAL_FACE));
    }
}
