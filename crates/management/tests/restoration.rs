//! Management goes on with the tables of another process: its datasets are the same, and no one is told of anything.

use namewire_management::{Effect, ManagementConfig, ProcessTask, RibLimits, UpgradeTask};
use namewire_packet::nfd::{ControlParameters, FibEntry, RibEntry, StrategyChoice, decode_dataset};
use namewire_testbed::{
    management::{Bench, LOCAL_FACE, Tasks, UDP_FACE, for_prefix, local_face, udp_face},
    uri,
};
use std::time::Duration;

/// The routes, next hops and strategies as datasets.
fn tables(bench: &mut Bench) -> (Vec<RibEntry>, Vec<FibEntry>, Vec<StrategyChoice>) {
    let rib = decode_dataset(&bench.fetch("/localhost/nfd/rib/list")).unwrap();
    let fib = decode_dataset(&bench.fetch("/localhost/nfd/fib/list")).unwrap();
    (rib, fib, decode_dataset(&bench.fetch("/localhost/nfd/strategy-choice/list")).unwrap())
}

/// A node with a little of everything.
fn old() -> Bench {
    let mut bench = Bench::new();
    let accepted = |bench: &mut Bench, command: &str, parameters: ControlParameters| {
        let answer = bench.command(command, &parameters);
        assert_eq!(answer.code, 200, "{command}: {answer:?}");
    };
    accepted(&mut bench, "rib/register", for_prefix("/app"));
    let far = ControlParameters { face_id: Some(UDP_FACE), origin: Some(255), cost: Some(7), ..for_prefix("/far") };
    accepted(&mut bench, "rib/register", far.clone());
    let short = ControlParameters { expiration_period_ms: Some(60_000), ..for_prefix("/short") };
    accepted(&mut bench, "rib/register", short);
    accepted(&mut bench, "fib/add-nexthop", ControlParameters { name: Some(uri("/by/hand")), origin: None, ..far });
    let asf = ControlParameters { strategy: Some(uri("/localhost/nfd/strategy/asf")), ..for_prefix("/far") };
    accepted(&mut bench, "strategy-choice/set", asf);
    accepted(&mut bench, "strategy-choice/unset", for_prefix("/ndn/broadcast"));
    bench
}

#[test]
fn tables_of_another_process_are_the_same_here() {
    let mut old = old();
    let before = tables(&mut old);
    let (strategies, next_hops) = (old.management.strategies().dataset().collect(), old.management.manual_next_hops());
    assert_eq!(next_hops.len(), 1, "management's own next hops stay behind: {next_hops:?}");
    let routes: Vec<RibEntry> = old.management.rib().dataset(old.now.mono_ns).collect();

    let mut new = Bench::without_faces(ManagementConfig::default());
    new.now.mono_ns += 5_000_000_000; // another clock
    let (now, out) = (new.now, &mut new.effects);
    new.management.restore_face(local_face(), false);
    new.management.restore_face(udp_face(), true);
    new.management.restore_strategies(strategies, &mut new.router, out);
    new.management.restore_next_hops(next_hops, out);
    assert_eq!(new.management.restore_routes(now, routes, out), 0, "all have room");
    assert!(new.effects.iter().all(|effect| matches!(effect, Effect::Fib(_) | Effect::NewNextHops(_))));
    assert_eq!(tables(&mut new), before);
    // The time goes on.
    new.pass_ms(60_001);
    new.timers();
    assert!(!tables(&mut new).0.iter().any(|entry| entry.name == uri("/short")));
    // The route of an application is its own.
    new.close(LOCAL_FACE);
    assert!(!tables(&mut new).0.iter().any(|entry| entry.name == uri("/app")));
}

#[test]
fn what_has_no_room_or_no_face_is_left_out() {
    let old = old();
    let routes = |bench: &Bench| bench.management.rib().dataset(bench.now.mono_ns).collect::<Vec<RibEntry>>();
    let rib = RibLimits { routes: 2, share_percent: 100, ..RibLimits::default() };
    let mut new = Bench::without_faces(ManagementConfig { rib, ..ManagementConfig::default() });
    new.management.restore_face(local_face(), false);
    let refused = new.management.restore_routes(new.now, routes(&old), &mut new.effects);
    assert_eq!((routes(&new).len() as u64 + refused, new.management.rib().prefixes_of(UDP_FACE)), (2, 0));
}

#[test]
fn commands_of_the_process_are_left_to_those_who_may_signal_it() {
    let mut bench = Bench::new();
    bench.router.process = Some(Tasks::default());
    let program = ControlParameters {
        uri: Some("/opt/namewire".to_owned()),
        flags: Some(1),
        mask: Some(1),
        expiration_period_ms: Some(5_000),
        ..ControlParameters::default()
    };
    let answer = bench.command("process/upgrade", &program);
    assert_eq!((answer.code, answer.body.unwrap().report.as_deref()), (200, Some("{\"number\":1}")));
    assert_eq!(bench.command("process/reload", &ControlParameters::default()).code, 200);
    let upgrade =
        UpgradeTask { program: Some("/opt/namewire".to_owned()), is_forced: true, timeout: Duration::from_secs(5) };
    assert_eq!(bench.router.process, Some(Tasks(vec![ProcessTask::Upgrade(upgrade), ProcessTask::Reload])));

    // A member of a group that may do everything else may not.
    let mut face = local_face();
    let credentials = face.credentials.as_mut().unwrap();
    (credentials.uid, credentials.gid) = (4711, 4712);
    let trust = namewire_management::TrustConfig { allowed_gids: vec![4712], ..Default::default() };
    let mut bench = Bench::without_faces(ManagementConfig { trust, ..ManagementConfig::default() });
    bench.add_face(face);
    bench.router.process = Some(Tasks::default());
    assert_eq!(bench.command("fib/add-nexthop", &for_prefix("/a")).code, 200);
    for verb in ["process/upgrade", "process/reload", "process/outcome"] {
        assert_eq!(bench.command(verb, &ControlParameters::default()).code, 403, "{verb}");
    }
    assert_eq!(bench.router.process, Some(Tasks::default()));
    // A node that is no process says so.
    let mut bench = Bench::new();
    assert_eq!(bench.command("process/reload", &ControlParameters::default()).code, 503);
}
