//! Readvertise: which commands a routing daemon gets and when, and what follows if it does not answer.

use namewire_management::{Effect, ManagementConfig, ReadvertiseConfig};
use namewire_packet::{
    DataBuilder, FaceId, Interest, NackReason, NameBuf,
    nfd::{ControlParameters, ControlResponse},
};
use namewire_testbed::{
    management::{Bench, UDP_FACE},
    uri,
};

const SECOND_MS: u64 = 1000;
const CLIENT: u64 = 65;

fn bench() -> Bench {
    let readvertise = ReadvertiseConfig { nlsr: true, ..ReadvertiseConfig::default() };
    Bench::with_config(ManagementConfig { readvertise, ..ManagementConfig::default() })
}

fn register(bench: &mut Bench, prefix: &str, origin: u64) {
    let parameters = ControlParameters { name: Some(uri(prefix)), origin: Some(origin), ..Default::default() };
    assert_eq!(bench.command("rib/register", &parameters).code, 200);
}

fn unregister(bench: &mut Bench, prefix: &str, origin: u64) {
    let parameters = ControlParameters { name: Some(uri(prefix)), origin: Some(origin), ..Default::default() };
    assert_eq!(bench.command("rib/unregister", &parameters).code, 200);
}

/// The commands that timers send: verb and prefix, with the packets.
fn sent(bench: &mut Bench) -> Vec<(String, Vec<u8>)> {
    bench.timers();
    commands(bench)
}

/// The commands of the last call.
fn commands(bench: &Bench) -> Vec<(String, Vec<u8>)> {
    let mut commands = Vec::new();
    for effect in &bench.effects {
        let Effect::Express { packet, .. } = effect else { continue };
        let interest = Interest::parse(packet).expect("an Interest");
        assert!(interest.parameters_digest_is_valid() && interest.signature_info().is_some());
        let asked = interest.name();
        assert!(uri("/localhost/nlsr/rib").as_name().is_prefix_of(&asked));
        let verb = String::from_utf8(asked.get(3).expect("a verb").value.to_vec()).expect("text");
        let parameters = ControlParameters::decode(asked.get(4).expect("parameters").value).expect("parameters");
        let prefix = parameters.name.clone().expect("a Name");
        let cost = parameters.cost;
        assert_eq!(parameters, ControlParameters { name: Some(prefix.clone()), cost, ..Default::default() });
        assert_eq!(cost.is_some(), verb == "register");
        commands.push((format!("{verb} {prefix}"), packet.clone()));
    }
    commands
}

fn verbs(commands: &[(String, Vec<u8>)]) -> Vec<&str> {
    commands.iter().map(|(verb, _)| verb.as_str()).collect()
}

fn answer(bench: &mut Bench, command: &[u8], code: u64) {
    let asked: NameBuf = Interest::parse(command).expect("an Interest").name().to_buf();
    let data = DataBuilder::new(asked).content(&ControlResponse::new(code, "said").to_wire()).sign_digest();
    bench.effects.clear();
    bench.management.on_answer(bench.now, None, &data, None, &mut bench.router, &mut bench.effects);
}

#[test]
fn client_routes_are_announced_refreshed_and_withdrawn() {
    let mut bench = bench();
    register(&mut bench, "/client/a", CLIENT);
    register(&mut bench, "/app", 0);
    assert_eq!(verbs(&sent(&mut bench)), [""; 0], "no daemon listens yet");
    register(&mut bench, "/localhost/nlsr", 0);
    let commands = sent(&mut bench);
    assert_eq!(verbs(&commands), ["register /client/a"], "and not the application's");
    assert_eq!(sent(&mut bench), [], "once");
    answer(&mut bench, &commands[0].1, 200);
    assert_eq!(bench.management.counters().readvertised, 1);

    bench.pass_ms(3600 * SECOND_MS - 1);
    assert_eq!(sent(&mut bench), []);
    bench.pass_ms(180 * SECOND_MS + 1);
    let commands = sent(&mut bench);
    assert_eq!(verbs(&commands), ["register /client/a"], "refreshed after an hour and at most a twentieth");
    answer(&mut bench, &commands[0].1, 200);

    unregister(&mut bench, "/client/a", CLIENT);
    let commands = sent(&mut bench);
    assert_eq!(verbs(&commands), ["unregister /client/a"]);
    answer(&mut bench, &commands[0].1, 200);
    bench.pass_ms(10_000 * SECOND_MS);
    assert_eq!(sent(&mut bench), []);
    assert_eq!(bench.management.next_deadline(), None, "forgotten");
}

#[test]
fn a_prefix_is_withdrawn_with_its_last_client_route_only() {
    let mut bench = bench();
    register(&mut bench, "/localhost/nlsr", 0);
    register(&mut bench, "/client", CLIENT);
    let commands = sent(&mut bench);
    answer(&mut bench, &commands[0].1, 200);
    let through = |face| ControlParameters {
        name: Some(uri("/client")),
        face_id: Some(face),
        origin: Some(CLIENT),
        ..Default::default()
    };
    assert_eq!(bench.command("rib/register", &through(UDP_FACE)).code, 200);
    unregister(&mut bench, "/client", CLIENT);
    assert_eq!(sent(&mut bench), [], "another one is left");
    bench.close(UDP_FACE);
    assert_eq!(verbs(&sent(&mut bench)), ["unregister /client"]);
}

#[test]
fn no_answer_a_nack_and_a_refusal_lead_to_longer_and_longer_pauses() {
    let mut bench = bench();
    register(&mut bench, "/localhost/nlsr", 0);
    register(&mut bench, "/client", CLIENT);
    let mut pauses = Vec::new();
    let mut commands = sent(&mut bench);
    for attempt in 0..9 {
        match attempt % 3 {
            0 => {
                bench.pass_ms(10 * SECOND_MS);
                assert_eq!(sent(&mut bench), [], "the time-out begins the pause");
            }
            1 => {
                let (now, nack) = (bench.now, Some(NackReason::NoRoute));
                bench.management.on_answer(now, None, &commands[0].1, nack, &mut bench.router, &mut bench.effects);
            }
            _ => answer(&mut bench, &commands[0].1, 403),
        }
        let before = commands[0].1.clone();
        let due_ns = bench.management.next_deadline().expect("a retry");
        let pause_ms = (due_ns - bench.now.mono_ns) / 1_000_000;
        pauses.push(pause_ms / SECOND_MS);
        bench.pass_ms(pause_ms + 1);
        commands = sent(&mut bench);
        assert_eq!(verbs(&commands), ["register /client"]);
        assert_ne!(commands[0].1, before, "another nonce and time");
    }
    let expected = [50, 100, 200, 400, 800, 1600, 3200, 3600, 3600];
    for (pause, expected) in pauses.iter().zip(expected) {
        assert!((expected..=expected + expected / 20).contains(pause), "{pauses:?}");
    }
    assert_eq!(bench.management.counters().readvertise_failed, 9);
}

/// NLSR bb59d40 answers 205 to every `register`, and 204 to the withdrawal of a prefix that it does not have. The
/// router took only 200 for a success. So it counted each announcement as a failure, and sent it again after 50 s,
/// 100 s and so on; and it went on withdrawing a prefix for ever.
#[test]
fn every_answer_below_400_is_a_success() {
    for code in [204, 205, 399] {
        let mut bench = bench();
        register(&mut bench, "/localhost/nlsr", 0);
        register(&mut bench, "/client", CLIENT);
        for _ in 0..3 {
            let commands = sent(&mut bench);
            assert_eq!(verbs(&commands), ["register /client"]);
            answer(&mut bench, &commands[0].1, code);
            bench.pass_ms(3600 * SECOND_MS - 1);
            assert_eq!(sent(&mut bench), [], "{code}");
            bench.pass_ms(180 * SECOND_MS + 1);
        }
        unregister(&mut bench, "/client", CLIENT);
        let commands = sent(&mut bench);
        assert_eq!(verbs(&commands), ["unregister /client"]);
        answer(&mut bench, &commands[0].1, code);
        assert_eq!(bench.management.next_deadline(), None, "forgotten after {code}");
        let counters = bench.management.counters();
        assert_eq!((counters.readvertised, counters.readvertise_failed), (4, 0), "{code}");
    }
}

#[test]
fn a_daemon_that_comes_back_gets_all_announcements_again() {
    let mut bench = bench();
    register(&mut bench, "/localhost/nlsr", 0);
    for number in 0..100 {
        register(&mut bench, &format!("/client/{number}"), CLIENT);
    }
    let first = sent(&mut bench);
    assert_eq!(first.len(), 64, "not all at once");
    answer(&mut bench, &first[0].1, 200);
    assert_eq!(bench.effects.len(), 1, "an answer makes room for the next");
    unregister(&mut bench, "/client/5", CLIENT);
    unregister(&mut bench, "/localhost/nlsr", 0);
    assert_eq!(sent(&mut bench), []);
    register(&mut bench, "/localhost/nlsr", 0);
    // A command under way still waits for its answer; none comes.
    assert_eq!(sent(&mut bench).len(), 0);
    bench.pass_ms(10 * SECOND_MS);
    let mut waiting = sent(&mut bench);
    let mut told = std::collections::BTreeSet::new();
    while let Some((verb, packet)) = waiting.pop() {
        assert!(told.insert(verb.clone()), "{verb} twice");
        answer(&mut bench, &packet, 200);
        waiting.extend(commands(&bench));
    }
    let expected = (0..100).filter(|number| *number != 5).map(|number| format!("register /client/{number}"));
    // The prefix without a route was being registered when the daemon went.
    assert_eq!(told, expected.chain(["unregister /client/5".to_owned()]).collect());
}

#[test]
fn other_origins_can_be_chosen_and_by_default_nothing_is_announced() {
    let mut silent = Bench::new();
    register(&mut silent, "/localhost/nlsr", 0);
    register(&mut silent, "/client", CLIENT);
    assert_eq!(sent(&mut silent), []);

    let readvertise = ReadvertiseConfig { nlsr: true, origins: vec![0, 64] };
    let mut bench = Bench::with_config(ManagementConfig { readvertise, ..ManagementConfig::default() });
    register(&mut bench, "/localhost/nlsr", 255);
    for (prefix, origin) in [("/app", 0), ("/auto", 64), ("/client", CLIENT)] {
        register(&mut bench, prefix, origin);
    }
    assert_eq!(verbs(&sent(&mut bench)), ["register /app", "register /auto"]);
}

#[test]
fn the_daemon_gets_the_lowest_cost_and_its_changes() {
    let mut bench = bench();
    register(&mut bench, "/localhost/nlsr", 255);
    let mut told = |verb: &str, face: Option<FaceId>, cost: Option<u64>| {
        let (name, origin) = (Some(uri("/client")), Some(CLIENT));
        let parameters = ControlParameters { name, origin, cost, face_id: face, ..Default::default() };
        assert_eq!(bench.command(verb, &parameters).code, 200);
        let commands = sent(&mut bench);
        commands.iter().for_each(|(_, command)| answer(&mut bench, command, 200));
        let cost_in = |packet: &[u8]| {
            let interest = Interest::parse(packet).expect("an Interest");
            let parameters = interest.name().get(4).expect("parameters").value;
            ControlParameters::decode(parameters).expect("parameters").cost
        };
        commands.iter().map(|(_, packet)| cost_in(packet)).collect::<Vec<_>>()
    };
    assert_eq!(told("rib/register", None, Some(42)), [Some(42)]);
    assert_eq!(told("rib/register", Some(UDP_FACE), Some(50)), [], "not the cheapest");
    assert_eq!(told("rib/register", None, Some(60)), [Some(50)]);
    assert_eq!(told("rib/unregister", Some(UDP_FACE), None), [Some(60)]);
    assert_eq!(told("rib/unregister", None, None), [None]);
}

#[test]
fn unsolicited_answers_are_counted_and_ignored() {
    let mut bench = bench();
    let data = DataBuilder::new(uri("/localhost/nlsr/rib/register/x")).sign_digest();
    bench.effects.clear();
    for (packet, nack) in [(&data[..], None), (b"\x06\x01", None), (b"", Some(NackReason::NoRoute))] {
        bench.management.on_answer(bench.now, None, packet, nack, &mut bench.router, &mut bench.effects);
    }
    assert_eq!((bench.effects.len(), bench.management.counters().unsolicited_answers), (0, 3));
}
