//! Every FIB design in a running router: packets find the longest prefix while routes are added and removed.

use super::lossy_fib::look;
use crate::application::{Application, PATIENCE, eventually, name, start_with};
use namewire_configuration::settings::Choice;
use namewire_designs::fib::{
    catalogue::{FibDesign, FibDesignOptions},
    hash_tables::MarkerMaintenance,
    min_ascii::NameCodes,
    name_trie::LEARNED_FROM_BYTES,
    string_differentiation::DefaultRoute,
};
use namewire_packet::FaceId;
use namewire_packet::nfd::{ControlParameters, ControlResponse, FibEntry, FibUsage};
use namewire_router::RouterHandle;
use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

/// Components of the longest of the nested prefixes; the shortest is the root.
const DEEPEST: usize = 8;
/// Prefixes that come and go in one round, besides the nested ones.
const CHURN: usize = 1_000;
/// Fewest rounds of them during which look-ups go on.
const ROUNDS: usize = 3;
/// Interests under way at once.
const WINDOW: usize = 50;

/// `/a/a/…` with `depth` components.
fn nested(depth: usize) -> String {
    if depth == 0 { "/".to_owned() } else { "/a".repeat(depth) }
}

/// A prefix that comes and goes. It lies under a nested prefix, and no look-up uses it.
fn churned(number: usize) -> String {
    format!("{}/churn/{number}{}", "/a".repeat(number % (DEEPEST + 1)), "/below".repeat(number / 7 % 3))
}

#[test]
fn every_design_forwards_by_the_longest_prefix_while_routes_come_and_go() {
    for design in FibDesign::ALL {
        println!("{}", design.name());
        forwards(design, &FibDesignOptions::default());
    }
}

/// The churned prefixes are more than codes are learned from: the table is built anew while packets pass.
#[test]
fn a_name_trie_forwards_while_it_learns_its_codes() {
    let bytes: usize = (0..CHURN).map(|number| name(&churned(number)).value().len()).sum();
    assert!(bytes > LEARNED_FROM_BYTES);
    let name_codes = Some(NameCodes::Learned);
    forwards(FibDesign::NameTrie, &FibDesignOptions { name_codes, ..FibDesignOptions::default() });
}

/// Some lossy designs do not keep the root prefix exactly. Then not all rules are below one, and the design guesses.
#[test]
fn a_lossy_design_forwards_beside_a_default_route() {
    for design in FibDesign::ALL.into_iter().filter(|design| !design.is_lossless()) {
        // A fingerprint hash table has a default table only for rules of one length, in the lab.
        let followed = (design != FibDesign::Fht).then_some(DefaultRoute::Followed);
        for default_route in [DefaultRoute::Speculative].into_iter().chain(followed) {
            println!("{}, {}", design.name(), default_route.name());
            let default_route = Some(default_route);
            forwards(design, &FibDesignOptions { default_route, ..FibDesignOptions::default() });
        }
    }
}

fn forwards(design: FibDesign, options: &FibDesignOptions) {
    // Then a name under no prefix but the root may go astray.
    let shallowest = usize::from(options.default_route.is_some());
    let (router, _directory) = start_with(2, |config| {
        config.settings.fib.design.0 = design;
        config.settings.fib.default_route = options.default_route.map(Choice);
        config.settings.fib.name_codes = options.name_codes.map(Choice);
        config.settings.tables.fib_capacity = 4 * CHURN as u32;
    });
    let mut operator = Application::connect(&router);
    let usage: Vec<FibUsage> = operator.dataset("/fib/usage");
    assert_eq!((usage.len(), usage[0].design.as_str(), usage[0].is_lossy), (1, design.name(), !design.is_lossless()));
    assert!(usage[0].bytes > 0);
    let producers: Vec<Application> = (0..=DEEPEST)
        .map(|depth| {
            let mut producer = Application::connect(&router);
            // Longer prefixes inherit the next hops of shorter ones, and prefer their own.
            let (name, cost) = (Some(name(&nested(depth))), Some(100 - depth as u64));
            producer.succeed("/rib/register", ControlParameters { name, cost, ..Default::default() });
            producer
        })
        .collect();
    let (stop, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for (depth, mut producer) in producers.into_iter().enumerate() {
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    producer.serve_for(Duration::from_millis(50), &[depth as u8]);
                }
            });
        }
        // Stops the other threads also when an assertion fails.
        let _stop = StopAtEnd(&stop);
        let (mut churner, stop, rounds) = (Application::connect(&router), &stop, &rounds);
        let churning = scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) && rounds.load(Ordering::Relaxed) < 10 * ROUNDS {
                command_all(&mut churner, "/rib/register");
                command_all(&mut churner, "/rib/unregister");
                rounds.fetch_add(1, Ordering::Relaxed);
            }
        });
        look_up(&router, rounds, shallowest);
        changes_take_effect(&router, shallowest);
        assert!(!churning.is_finished() || rounds.load(Ordering::Relaxed) == 10 * ROUNDS, "routes no longer change");
    });
    assert_eq!(operator.drops("router.fib-full"), 0);
    // The producers' routes still leave, one by one, while their closed faces are noticed.
    eventually("the status counts the entries that the list shows", || {
        operator.status().n_fib_entries as usize == operator.dataset::<FibEntry>("/fib/list").len()
    });
}

/// The story: with markers that are kept right by enumeration, each change looks at all longer entries. A route of the
/// root changed every entry before any other command was answered.
#[test]
fn a_large_change_of_a_slow_design_ends_and_commands_are_answered_meanwhile() {
    let (router, _directory) = start_with(2, |config| {
        config.settings.fib.design.0 = FibDesign::Binary;
        config.settings.fib.marker_maintenance = Some(Choice(MarkerMaintenance::Enumerate));
        config.settings.tables.fib_capacity = 4 * CHURN as u32;
    });
    let [mut sites, mut uplink, mut other] = [(); 3].map(|()| Application::connect(&router));
    command_all(&mut sites, "/rib/register");
    let root = uplink.register("/");
    for number in 0..20 {
        // The prefix of a command is in the FIB with the answer, whatever waits.
        let prefix = format!("/other/{number}");
        let own = other.register(&prefix);
        let interest = uplink.interest(name(&format!("{prefix}/x"))).build();
        uplink.send(&interest);
        other.serve(1, b"here");
        assert_eq!(uplink.receive().expect("Data").data().content(), b"here");
        assert_ne!(own, root);
    }
    let mut operator = Application::connect(&router);
    eventually("every entry has the next hop of the root", || {
        let is_changed = |number| next_hops_of(&mut operator, &churned(number)).contains(&root);
        (0..CHURN).step_by(37).all(is_changed)
    });
    assert_eq!(operator.drops("router.fib-readers-behind"), 0);
}

/// The next hops that workers find for the name.
fn next_hops_of(operator: &mut Application, uri: &str) -> Vec<FaceId> {
    let found = look(operator, uri);
    found.next_hops.iter().map(|hop| hop.face_id).collect()
}

struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Gives the command for every churned prefix, a window of them at a time.
fn command_all(application: &mut Application, verb: &str) {
    for first in (0..CHURN).step_by(WINDOW) {
        for number in first..CHURN.min(first + WINDOW) {
            let parameters = ControlParameters { name: Some(name(&churned(number))), ..Default::default() };
            let command = application.command_packet(verb, &parameters);
            application.send(&command);
        }
        for _ in first..CHURN.min(first + WINDOW) {
            let reply = application.receive_within(4 * PATIENCE).expect("a reply");
            assert_eq!(ControlResponse::decode(reply.data().content()).map(|response| response.code), Ok(200));
        }
    }
}

/// Looks up names below every nested prefix. Each is answered by the application of that prefix.
fn look_up(router: &RouterHandle, rounds: &AtomicUsize, shallowest: usize) {
    let mut consumer = Application::connect(router);
    let mut asked = 0;
    while rounds.load(Ordering::Relaxed) < ROUNDS || asked < 40 * WINDOW {
        for number in asked..asked + WINDOW {
            let depth = number % (DEEPEST + 1 - shallowest) + shallowest;
            let uri = format!("{}/z{number}{}", "/a".repeat(depth), "/a".repeat(number % 3));
            let interest = consumer.interest(name(&uri)).lifetime_ms(10_000).build();
            consumer.send(&interest);
        }
        for received in 0..WINDOW {
            let packet = consumer.receive().unwrap_or_else(|| panic!("{} of {WINDOW} were lost", WINDOW - received));
            assert_eq!(packet.headers.nack, None, "a name with a route");
            let data = packet.data();
            let depth = data.name().components().take_while(|component| component.value == b"a").count();
            assert_eq!(data.content(), [depth as u8], "answered by another prefix: {}", data.name());
        }
        asked += WINDOW;
    }
}

/// A route leads to its face as soon as it is registered. It leads to another face as soon as that one is cheaper, and
/// nowhere once it is removed.
fn changes_take_effect(router: &RouterHandle, shallowest: usize) {
    let [mut first, mut second, mut consumer] = [(); 3].map(|()| Application::connect(router));
    for number in 0..20 {
        let depth = number % (DEEPEST + 1 - shallowest) + shallowest;
        let prefix = format!("{}/here/{number}", "/a".repeat(depth));
        let above = [depth as u8];
        let mut answered = |by: Option<&mut Application>, content: &[u8]| {
            let interest = consumer.interest(name(&format!("{prefix}/{}", fastrand::u64(..)))).lifetime_ms(5_000);
            consumer.send(&interest.build());
            if let Some(producer) = by {
                producer.serve(1, content);
            }
            assert_eq!(consumer.receive().expect("Data").data().content(), content, "under {prefix}");
        };
        let with = |cost| ControlParameters { name: Some(name(&prefix)), cost, ..Default::default() };
        first.succeed("/rib/register", with(Some(10)));
        answered(Some(&mut first), b"first");
        second.succeed("/rib/register", with(Some(5)));
        answered(Some(&mut second), b"second");
        second.succeed("/rib/unregister", with(None));
        answered(Some(&mut first), b"first again");
        first.succeed("/rib/unregister", with(None));
        answered(None, &above);
    }
}
