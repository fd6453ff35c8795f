//! Several engines that share a dispatcher: the right worker decides, and together they decide as one would (the rules
//! of `dispatch`).

use namewire_engine::{Counters, DropReason, EngineConfig, FaceId, UnsolicitedPolicy, dispatch::Workers};
use namewire_packet::NackReason;
use namewire_tables::NameHashes;
use namewire_testbed::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Four workers with a default route to B, which wants our tokens.
fn four_workers() -> Forwarder {
    let mut node = Forwarder::with_workers(EngineConfig::default(), 4);
    node.route("/", &[B]);
    node.send_tokens(B);
    node
}

fn home(node: &Forwarder, name: &str) -> u8 {
    node.dispatcher.home(uri(name).as_name())
}

/// A name under `prefix` whose home is `worker`.
fn name_at(node: &Forwarder, prefix: &str, worker: u8) -> String {
    (0..).map(|n| format!("{prefix}/{n}")).find(|name| home(node, name) == worker).unwrap()
}

/// A name under `prefix` whose home is not that of `prefix`.
fn name_elsewhere(node: &Forwarder, prefix: &str) -> String {
    (0..).map(|n| format!("{prefix}/{n}")).find(|name| home(node, name) != home(node, prefix)).unwrap()
}

fn in_data(node: &Forwarder) -> Vec<u64> {
    node.engines.iter().map(|engine| engine.counters().in_data).collect()
}

#[test]
fn interest_nack_and_data_meet_at_the_home_of_the_name() {
    let mut node = four_workers();
    for worker in 0..4 {
        let name = name_at(&node, "/a", worker);
        node.receive(A, interest(&name, 1));
        assert_eq!(node.engines[usize::from(worker)].pit_len(), 1);
        assert_eq!(node.receive(B, nack(NackReason::NoRoute, &name, 1)).len(), 1);
        node.receive(A, interest(&name, 2));
        assert_eq!(node.receive(B, data(&name)).len(), 1);
        assert_eq!(node.engines[usize::from(worker)].cs_len(), 1);
    }
    assert_eq!(in_data(&node), [1, 1, 1, 1]);
}

#[test]
fn token_leads_to_its_worker() {
    let mut node = four_workers();
    for worker in 0..4 {
        let name = name_at(&node, "/a", worker);
        let token = node.receive(A, interest(&name, 1))[0].headers.pit_token.unwrap();
        assert_eq!(token.as_bytes()[0], worker);
        assert_eq!(node.receive(B, data(&name).token(token.as_bytes())).len(), 1);
    }
    assert_eq!((in_data(&node), node.counters().redispatched), (vec![1; 4], 0));
}

/// A regression: only the worker in a valid token saw the Data. A downstream that waited for it at another worker got
/// nothing, where one worker would have answered both. An upstream that sends one copy per face, with the token of one
/// of its Interests, never sends another.
#[test]
fn data_with_a_token_answers_what_waits_at_other_workers_too() {
    for asks_first in [true, false] {
        let mut node = four_workers();
        let longer = name_elsewhere(&node, "/p");
        let of_prefix = node.receive(A, interest("/p", 1).can_be_prefix())[0].headers.pit_token.unwrap();
        let of_name = node.receive(C, interest(&longer, 2))[0].headers.pit_token.unwrap();
        let token = if asks_first { of_prefix } else { of_name };
        let mut faces: Vec<FaceId> =
            node.receive(B, data(&longer).token(token.as_bytes())).iter().map(|sent| sent.face).collect();
        faces.sort();
        assert_eq!((faces, node.pit_len()), (vec![A, C], 0));
        assert_eq!((node.counters().in_data, node.counters().redispatched), (1, 0));
    }
}

#[test]
fn data_without_token_finds_a_shorter_prefix_at_another_worker() {
    let mut node = four_workers();
    let longer = name_elsewhere(&node, "/p");
    node.receive(A, interest("/p", 1).can_be_prefix());
    node.receive(C, interest(&longer, 2));
    let mut faces: Vec<FaceId> = node.receive(B, data(&longer)).iter().map(|sent| sent.face).collect();
    faces.sort();
    assert_eq!(faces, [A, C]);
    assert_eq!((node.pit_len(), node.counters().in_data), (0, 1));
    node.receive(B, data(&longer));
    assert_eq!((node.counters().in_data, node.dropped(DropReason::UnsolicitedData)), (2, 1));
}

/// A regression: when several workers saw the Data and none of them wanted it, none said so. It was neither counted as
/// unsolicited nor stored where the policy admits unsolicited Data.
#[test]
fn data_that_nobody_asked_for_is_dropped_once_however_many_workers_were_asked() {
    for policy in [UnsolicitedPolicy::DropAll, UnsolicitedPolicy::AdmitAll] {
        let mut node = Forwarder::with_workers(EngineConfig { unsolicited: policy, ..EngineConfig::default() }, 4);
        node.route("/", &[B]);
        node.receive(A, interest("/p", 1).can_be_prefix());
        // A name with a prefix that shares the counter of `/p` and belongs to another worker.
        let mut scratch = NameHashes::default();
        let mut asked = |name: &String| node.dispatcher.by_name(uri(name).as_name(), &mut scratch).left();
        let name = (0..).map(|n| format!("/q/{n}/r")).find(|name| asked(name).iter().count() == 2).unwrap();
        assert_eq!(node.receive(B, data(&name)).len(), 0);
        let is_admitted = policy == UnsolicitedPolicy::AdmitAll;
        assert_eq!((node.counters().in_data, node.pit_len()), (1, 1));
        assert_eq!(node.dropped(DropReason::UnsolicitedData), u64::from(!is_admitted));
        assert_eq!(node.engines[usize::from(home(&node, &name))].cs_len(), usize::from(is_admitted));
    }
}

#[test]
fn data_that_another_worker_had_asked_for_is_not_unsolicited() {
    let mut node = four_workers();
    let longer = name_elsewhere(&node, "/p");
    node.receive(A, interest("/p", 1).can_be_prefix());
    assert_eq!(node.receive(B, data(&longer)).len(), 1);
    assert_eq!((node.counters().in_data, node.dropped(DropReason::UnsolicitedData)), (1, 0));
}

#[test]
fn digest_interest_and_its_data_meet() {
    let mut node = four_workers();
    for worker in 0..4 {
        let answer = data(&name_at(&node, "/d", worker));
        node.receive(A, interest(&full_name(&answer), 1));
        assert_eq!(node.receive(B, answer.clone()).len(), 1);
        assert!(node.receive(C, interest(&full_name(&answer), 2))[0].line().contains("cached"));
    }
}

#[test]
fn stale_and_foreign_tokens_fall_back_to_the_name() {
    let mut node = four_workers();
    let stale = node.receive(A, interest("/stale", 1))[0].headers.pit_token.unwrap();
    node.at(5000).run_timers();
    let here = home(&node, "/stale");
    for (n, worker) in (0..4).enumerate() {
        let name = name_at(&node, "/a", worker);
        node.receive(A, interest(&name, 10 + n as u32));
        assert_eq!(node.receive(B, data(&name).token(stale.as_bytes())).len(), 1, "{worker}");
    }
    assert_eq!(node.counters().redispatched, 3, "all but the one that was at home with worker {here}");
    // Lengths that are not ours, and a worker that does not exist: dispatched by name at once.
    for (n, token) in [&[1][..], &[2; 32], &[200, 0, 0, 0, 0, 0]].into_iter().enumerate() {
        let name = format!("/b/{n}");
        node.receive(A, interest(&name, 20 + n as u32));
        assert_eq!(node.receive(B, data(&name).token(token)).len(), 1);
    }
    assert_eq!(node.counters().redispatched, 3);
}

/// A regression: the group of a token can outlive its Interests because the Content Store
/// knows the name. Data with such a token stayed there, and its home never saw it.
#[test]
fn token_of_a_group_that_waits_for_nothing_is_no_token() {
    let mut node = four_workers();
    let (first, second) = (name_elsewhere(&node, "/p"), name_elsewhere(&node, "/p/second"));
    let second = if home(&node, &second) == home(&node, "/p") { name_elsewhere(&node, "/p") + "x" } else { second };
    assert_ne!(home(&node, &second), home(&node, "/p"), "choose another name");
    let token = node.receive(A, interest("/p", 1).can_be_prefix())[0].headers.pit_token.unwrap();
    node.receive(B, data(&first).token(token.as_bytes()));
    assert_eq!(node.pit_len(), 0);
    node.receive(C, interest(&second, 2));
    assert_eq!(node.receive(B, data(&second).token(token.as_bytes())).len(), 1);
    assert_eq!(node.counters().redispatched, 1);
}

/// A regression: when the worker of a dead token was also the home of the name, the owners of shorter prefixes never
/// saw the Data. They must see it when the Interest came after the Data was dispatched.
#[test]
fn dead_token_at_home_still_reaches_the_owner_of_a_prefix() {
    let mut node = four_workers();
    let prefix = name_at(&node, "/p", 0);
    let longer = name_elsewhere(&node, &prefix);
    let dead = [home(&node, &longer), 255, 255, 255, 255, 255];
    // All three are dispatched before the first is processed.
    let sent = node.receive_batch(&[
        (A, interest(&prefix, 1).can_be_prefix()),
        (C, interest(&longer, 2)),
        (B, data(&longer).token(&dead)),
    ]);
    let mut faces: Vec<FaceId> =
        sent.iter().filter(|sent| sent.line().contains("Data")).map(|sent| sent.face).collect();
    faces.sort();
    assert_eq!(faces, [A, C]);
    assert_eq!((node.pit_len(), node.counters().redispatched, node.counters().in_data), (0, 1, 1));
}

#[test]
fn malformed_packets_stay_with_their_receiver() {
    let mut node = four_workers();
    for wire in [&[][..], &[0], &[5, 200, 1], &[6, 2, 7, 0], &[100, 0], &[5, 4, 7, 2, 8, 9]] {
        node.receive(A, Packet::raw(wire.to_vec()));
    }
    assert_eq!(node.dropped(DropReason::Malformed), 6);
}

// ---- Several workers decide as one does ----

const NAMES: [&str; 9] = ["/a", "/a/b", "/a/b/c", "/a/b/c/d", "/b", "/b/a", "/c", "/a/x", "/b/a/y"];

#[derive(Clone, Debug)]
enum Step {
    Interest { face: FaceId, name: &'static str, nonce: u32, can_be_prefix: bool, must_be_fresh: bool },
    Data { name: &'static str, dead_token: Option<u8> },
    Nack { name: &'static str, nonce: u32 },
    Wait { ms: u64 },
}

/// Tick of the timers. Steps take whole ticks: within one, an entry expires a little earlier if the entry that had its
/// place before left an earlier alarm, and which entries share a place depends on the number of workers.
const TICK_MS: u64 = 4;

fn step() -> impl Strategy<Value = Step> {
    let name = || proptest::sample::select(&NAMES[..]);
    let face = proptest::sample::select(&[A, C, D, L][..]);
    prop_oneof![
        6 => (face, name(), 0..8_u32, any::<bool>(), any::<bool>()).prop_map(
            |(face, name, nonce, can_be_prefix, must_be_fresh)| {
                Step::Interest { face, name, nonce, can_be_prefix, must_be_fresh }
            }
        ),
        4 => (name(), proptest::option::of(0..6_u8)).prop_map(|(name, dead_token)| Step::Data { name, dead_token }),
        1 => (name(), 0..8_u32).prop_map(|(name, nonce)| Step::Nack { name, nonce }),
        1 => (1..750_u64).prop_map(|ticks| Step::Wait { ms: TICK_MS * ticks }),
    ]
}

/// The packets sent in each step, as a set: workers do not know of each other's copies.
fn run(steps: &[Step], workers: usize) -> (Vec<BTreeSet<String>>, Counters) {
    // Content Stores are per worker, and a hit may be missed: this claim excludes them.
    let config = EngineConfig { cs_admit: false, ..EngineConfig::default() };
    let mut node = Forwarder::with_workers(config, workers);
    node.route("/", &[B]);
    let mut ms = 0;
    let log = steps
        .iter()
        .map(|step| {
            let sent = match *step {
                Step::Interest { face, name, nonce, can_be_prefix, must_be_fresh } => {
                    let mut packet = interest(name, nonce).lifetime_ms(2000);
                    if can_be_prefix {
                        packet = packet.can_be_prefix();
                    }
                    if must_be_fresh {
                        packet = packet.must_be_fresh();
                    }
                    node.receive(face, packet)
                }
                Step::Data { name, dead_token: None } => node.receive(B, data(name)),
                Step::Data { name, dead_token: Some(worker) } => {
                    node.receive(B, data(name).token(&[worker, 255, 255, 255, 255, 255]))
                }
                Step::Nack { name, nonce } => node.receive(B, nack(NackReason::Congestion, name, nonce)),
                Step::Wait { ms: more } => {
                    ms += more;
                    node.at(ms).run_timers()
                }
            };
            sent.into_iter().map(|sent| sent.line()).collect()
        })
        .collect();
    let counters = node.counters();
    node.at(ms + 10_000).run_timers();
    assert_eq!(node.pit_len(), 0);
    // All counters of pending prefixes were lowered again.
    let mut scratch = NameHashes::default();
    for name in NAMES {
        let name = uri(name);
        let only_home = Workers::only(node.dispatcher.home(name.as_name()));
        assert_eq!(node.dispatcher.by_name(name.as_name(), &mut scratch).left(), only_home);
    }
    (log, counters)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn any_number_of_workers_decides_as_one(steps in proptest::collection::vec(step(), 1..60)) {
        let (one, one_counters) = run(&steps, 1);
        for workers in [2, 3, 16] {
            let (several, counters) = run(&steps, workers);
            prop_assert_eq!(&one, &several);
            // A worker does not know of copies that another worker sent to the same downstream.
            prop_assert!(counters.out_data >= one_counters.out_data);
            let comparable = |counters: Counters| Counters { out_data: 0, redispatched: 0, ..counters };
            prop_assert_eq!(comparable(one_counters), comparable(counters));
        }
    }
}
