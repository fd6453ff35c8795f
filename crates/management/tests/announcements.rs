//! Announced routes: `rib/announce`, announcements that self-learning finds, and announcements that are passed on.

use namewire_management::{Effect, ManagementConfig, RibLimits, trust_config::TrustConfig};
use namewire_packet::{
    DataBuilder, FaceId, InterestBuilder, Name, NameBuf, SignedInterestFields,
    nfd::{
        ControlParameters, ControlResponse, DropCounter, RibEntry, decode_dataset,
        prefix_announcement::announce_with_digest,
    },
};
use namewire_security::trust::RulesOrAny;
use namewire_testbed::{
    management::{Bench, LOCAL_FACE, UDP_FACE, for_prefix, fresh_fields},
    uri,
};

fn announcing(prefix: &str, expiration_ms: u64) -> Vec<u8> {
    announce_with_digest(uri(prefix).as_name(), 1, expiration_ms)
}

/// Settings that believe every announcement.
fn believing() -> TrustConfig {
    TrustConfig { prefix_announcement: Some(RulesOrAny::Any), ..TrustConfig::default() }
}

fn anybody() -> Bench {
    Bench::with_config(ManagementConfig { trust: believing(), ..Default::default() })
}

fn announce(bench: &mut Bench, parameters: Vec<u8>) -> ControlResponse {
    bench.pass_ms(1); // its time makes it another command
    let fields = SignedInterestFields { nonce: vec![1; 8], time_ms: Some(bench.now.unix_ms), seq_num: None };
    let command = InterestBuilder::new(uri("/localhost/nfd/rib/announce")).application_parameters(parameters);
    bench.send(&command.sign_digest(&fields));
    bench.answer()
}

/// The announcements that Data may carry from now on, if the last call set them.
fn published(bench: &Bench) -> Option<Vec<(NameBuf, Vec<u8>)>> {
    let last = bench.effects.iter().rev().find_map(|effect| match effect {
        Effect::Announcements(announcements) => Some(announcements),
        _ => None,
    })?;
    Some(last.iter().map(|(prefix, bytes)| (prefix.clone(), bytes.to_vec())).collect())
}

fn learn(bench: &mut Bench, face: FaceId, announcement: &[u8]) {
    bench.effects.clear();
    bench.management.learn_route(bench.now, face, announcement, &mut bench.effects);
}

fn forget(bench: &mut Bench, face: FaceId, of: &str) {
    bench.effects.clear();
    bench.management.forget_route(face, uri(of).as_name(), &mut bench.effects);
}

/// Time left of the announced routes of a prefix, by face.
fn routes(bench: &Bench, prefix: &str) -> Vec<(FaceId, u64, u64, u64)> {
    let ms = |at_ns: u64| (at_ns - bench.now.mono_ns) / 1_000_000;
    let routes = bench.management.rib().routes(uri(prefix).as_name());
    routes.iter().map(|route| (route.face, route.origin, route.cost, ms(route.expires_at_ns.unwrap().get()))).collect()
}

#[test]
fn an_application_announces_a_route_to_itself() {
    let mut bench = Bench::new();
    let bytes = announcing("/a", 60_000);
    let answer = announce(&mut bench, bytes.clone());
    let expected = ControlParameters {
        face_id: Some(LOCAL_FACE),
        origin: Some(129),
        cost: Some(2048),
        flags: Some(1),
        expiration_period_ms: Some(60_000),
        ..for_prefix("/a")
    };
    assert_eq!((answer.code, answer.body), (200, Some(expected)));
    assert_eq!(routes(&bench, "/a"), [(LOCAL_FACE, 129, 2048, 60_000)]);
    assert_eq!(published(&bench), Some(vec![(uri("/a"), bytes.clone())]));
    assert_eq!(bench.fib_changes().len(), 1);
    // The same announcement again: it lasts longer, and does not change the FIB.
    let later = announcing("/a", 90_000);
    assert_eq!(announce(&mut bench, later.clone()).code, 200);
    assert_eq!((bench.fib_changes(), published(&bench)), (vec![], Some(vec![(uri("/a"), later)])));
    let entries: Vec<RibEntry> = decode_dataset(&bench.fetch("/localhost/nfd/rib/list")).unwrap();
    assert_eq!(entries[0].routes[0].expiration_period_ms, Some(90_000));
    // When the route ends, the announcement goes with it.
    bench.pass_ms(90_001);
    bench.timers();
    assert_eq!((routes(&bench, "/a"), published(&bench)), (vec![], Some(vec![])));
    bench.pass_ms(1);
    bench.timers();
    assert_eq!(published(&bench), None);
}

#[test]
fn an_announcement_without_an_end_makes_a_route_without_one() {
    let mut bench = Bench::new();
    let answer = announce(&mut bench, announcing("/a", i64::MAX as u64));
    assert_eq!((answer.code, answer.body.map(|body| body.expiration_period_ms)), (200, Some(None)));
    assert_eq!(bench.management.next_deadline(), None);
    let entries: Vec<RibEntry> = decode_dataset(&bench.fetch("/localhost/nfd/rib/list")).unwrap();
    assert_eq!(entries[0].routes[0].expiration_period_ms, None);
    // Announcements from the network end all the same.
    let mut bench = anybody();
    learn(&mut bench, UDP_FACE, &announcing("/b", i64::MAX as u64));
    assert_eq!(routes(&bench, "/b"), [(UDP_FACE, 129, 2048, 600_000)]);
}

/// Requests share a snapshot less than a second old only while it is true.
#[test]
fn datasets_show_at_once_what_was_learned_and_forgotten() {
    let mut bench = anybody();
    let shown = |bench: &mut Bench| {
        let entries: Vec<RibEntry> = decode_dataset(&bench.fetch("/localhost/nfd/rib/list")).unwrap();
        entries.into_iter().map(|entry| entry.name).collect::<Vec<_>>()
    };
    assert_eq!(shown(&mut bench), []);
    learn(&mut bench, UDP_FACE, &announcing("/a", 60_000));
    assert_eq!(shown(&mut bench), [uri("/a")]);
    forget(&mut bench, UDP_FACE, "/a/1");
    assert_eq!(shown(&mut bench), []);
}

#[test]
fn drops_show_refused_announcements() {
    let mut bench = Bench::new();
    let management_drops = |bench: &mut Bench| {
        let drops: Vec<DropCounter> = decode_dataset(&bench.fetch("/localhost/nfd/status/drops")).unwrap();
        let own = drops.into_iter().filter(|drop| drop.reason.starts_with("management."));
        own.map(|drop| (drop.reason, drop.count)).collect::<Vec<_>>()
    };
    assert_eq!(management_drops(&mut bench), []);
    learn(&mut bench, UDP_FACE, &announcing("/a", 60_000));
    learn(&mut bench, UDP_FACE, b"no Data");
    bench.pass_ms(10_000); // another snapshot
    assert_eq!(management_drops(&mut bench), [("management.announcement-refused".to_owned(), 2)]);
}

/// NFD is silent; here every request gets an answer (management.md §4). If the answer is lost on the link, the
/// neighbour sends the Interest again.
#[test]
fn a_neighbour_that_lost_the_answer_to_an_announcement_gets_it_again() {
    let trust = TrustConfig { localhop_rib: Some(RulesOrAny::Any), ..believing() };
    let mut bench = Bench::with_trust(trust);
    let command = InterestBuilder::new(uri("/localhop/nfd/rib/announce"))
        .application_parameters(announce_with_digest(uri("/a").as_name(), 1, 60_000))
        .sign_digest(&fresh_fields());
    let answers = [(); 2].map(|()| {
        bench.send_from(UDP_FACE, &command);
        bench.answer()
    });
    assert_eq!((answers[0].code, &answers[0]), (200, &answers[1]));
    assert_eq!(bench.management.counters().commands_ok, 1, "it was answered twice, carried out once");
}

#[test]
fn malformed_announcements_are_answered() {
    let mut bench = Bench::new();
    let plain = |name: &str| DataBuilder::new(uri(name)).content(b"x").sign_digest();
    let late = {
        let content = [
            &[0x6D, 1, 60, 0xFD, 0, 0xFD, 38, 0xFD, 0, 0xFE, 15][..],
            b"20200229T120000",
            &[0xFD, 0, 0xFF, 15],
            b"20200301T000000",
        ];
        DataBuilder::new(uri("/a/32=PA/v=1/seg=0")).content_type(5).content(&content.concat()).sign_digest()
    };
    for (parameters, code, text) in [
        (vec![], 400, "no announcing Data"),
        (vec![6, 1, 0], 400, "no announcing Data"),
        (plain("/a"), 400, "the name does not end"),
        (plain("/a/32=PA/v=1/seg=0"), 400, "ContentType"),
        (late, 403, "not valid now"),
        (announcing("/a", 0), 403, "not valid now"),
        (announcing(&"/x".repeat(33), 1000), 414, "32 components"),
        (announcing("/localhost/nfd/rib", 1000), 403, "belongs to the forwarder"),
    ] {
        let answer = announce(&mut bench, parameters);
        assert_eq!(answer.code, code, "{answer:?}");
        assert!(answer.text.contains(text), "{answer:?}");
    }
    let name_only = InterestBuilder::new(uri("/localhost/nfd/rib/announce"));
    for (interest, code, text) in [
        (name_only.clone().build(), 400, "parameters digest"),
        (name_only.clone().application_parameters(announcing("/a", 1000)).build(), 403, "not signed"),
        (InterestBuilder::new(uri("/localhost/nfd/rib/announce/x/y")).build(), 400, "nothing else"),
    ] {
        bench.send(&interest);
        let answer = bench.answer();
        assert!(answer.code == code && answer.text.contains(text), "{answer:?}");
    }
    assert!(bench.management.rib().is_empty());
    assert_eq!(published(&bench), None);
}

#[test]
fn the_network_is_believed_only_if_the_configuration_says_so() {
    let mut bench = Bench::new();
    learn(&mut bench, UDP_FACE, &announcing("/p", 60_000));
    assert!(bench.effects.is_empty() && bench.management.rib().is_empty());
    assert_eq!(bench.management.counters().announcements_refused, 1);

    let mut bench = anybody();
    learn(&mut bench, UDP_FACE, &announcing("/p", 3_600_000));
    assert_eq!(routes(&bench, "/p"), [(UDP_FACE, 129, 2048, 600_000)], "10 minutes at most");
    learn(&mut bench, UDP_FACE, &announcing("/p", 5000));
    assert_eq!(routes(&bench, "/p"), [(UDP_FACE, 129, 2048, 5000)]);
    learn(&mut bench, FaceId(9999), &announcing("/q", 5000));
    learn(&mut bench, UDP_FACE, b"\x06\x00");
    let counters = bench.management.counters();
    assert_eq!((counters.routes_learned, counters.announcements_refused), (2, 2));
    assert_eq!(bench.management.rib().len(), 1);
}

#[test]
fn a_next_hop_without_a_route_loses_the_longest_announced_one_and_no_other() {
    let mut bench = anybody();
    learn(&mut bench, UDP_FACE, &announcing("/p", 60_000));
    learn(&mut bench, UDP_FACE, &announcing("/p/q", 60_000));
    learn(&mut bench, LOCAL_FACE, &announcing("/p/q", 60_000));
    let manual = ControlParameters { face_id: Some(UDP_FACE), ..for_prefix("/p/q/r") };
    assert_eq!(bench.command("rib/register", &manual).code, 200);
    forget(&mut bench, UDP_FACE, "/p/q/r/s");
    assert_eq!(routes(&bench, "/p/q"), [(LOCAL_FACE, 129, 2048, 60_000)]);
    assert_eq!((routes(&bench, "/p").len(), bench.management.rib().len()), (1, 3), "what was registered stays");
    let [(q, of_local), _] = &published(&bench).unwrap()[..] else { panic!("two are left") };
    assert_eq!((q, of_local), (&uri("/p"), &announcing("/p", 60_000)));
    forget(&mut bench, UDP_FACE, "/p/q/r/s");
    assert!(routes(&bench, "/p").is_empty());
    forget(&mut bench, UDP_FACE, "/p/q/r/s");
    assert!(bench.effects.is_empty());
    assert_eq!(bench.management.counters().routes_forgotten, 2);
}

#[test]
fn announcements_go_with_their_face_and_stay_within_their_limits() {
    let mut bench = anybody();
    learn(&mut bench, UDP_FACE, &announcing("/p", 60_000));
    bench.close(UDP_FACE);
    assert_eq!(published(&bench), Some(vec![]));

    let limits = RibLimits { routes: 2000, ..RibLimits::default() };
    let mut bench = Bench::with_config(ManagementConfig { rib: limits, trust: believing(), ..Default::default() });
    let mut last_published = 0;
    for n in 0..1030 {
        learn(&mut bench, LOCAL_FACE, &announcing(&format!("/{n}"), 60_000));
        last_published = published(&bench).map_or(last_published, |announcements| announcements.len());
    }
    assert_eq!((bench.management.rib().len(), last_published), (1030, 1024));
    assert_eq!(bench.management.counters().announcements_not_kept, 6);
    assert_eq!(announce(&mut bench, announce_with_digest(Name::ROOT, 1, 1000)).code, 200, "the route is made");
}
