//! The harm that one client can do to the others.

use crate::application::{Application, PATIENCE, eventually, name, start, start_with};
use namewire_packet::{
    DataBuilder, NackReason,
    nfd::{ControlParameters, DropCounter},
};
use namewire_router::RouterHandle;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Starts four applications that send management Interests as fast as the router takes them, until told to stop.
fn start_floods(router: &RouterHandle, stop: &Arc<AtomicBool>) -> Vec<JoinHandle<u64>> {
    (0..4).map(|number| flood(Application::connect(router), number, Arc::clone(stop))).collect()
}

/// No flood asks for another's names: then the Content Store would answer, and management would have time for all.
fn flood(mut client: Application, number: usize, stop: Arc<AtomicBool>) -> JoinHandle<u64> {
    let mut reader = client.split();
    std::thread::spawn(move || while reader.receive_within(Duration::from_secs(1)).is_some() {});
    std::thread::spawn(move || {
        let mut sent = 0;
        while !stop.load(Ordering::Relaxed) {
            let mut wire = Vec::new();
            for _ in 0..100 {
                let uri = format!("/localhost/nfd/status/nothing/{number}/{sent}");
                wire.extend(client.interest(name(&uri)).lifetime_ms(50).build());
                sent += 1;
            }
            if !client.try_send(&wire) {
                break;
            }
        }
        sent
    })
}

#[test]
fn routes_expire_and_others_are_served_while_management_is_flooded() {
    let (router, _directory) = start(4);
    let mut operator = Application::connect(&router);
    let mut producer = Application::connect(&router);
    let expiration_period_ms = Some(1000);
    let parameters = ControlParameters { name: Some(name("/brief")), expiration_period_ms, ..Default::default() };
    producer.succeed("/rib/register", parameters);
    let stop = Arc::new(AtomicBool::new(false));
    let floods = start_floods(&router, &stop);
    // The data plane shows it, because commands may be refused now.
    let (mut rounds, mut expired) = (0, false);
    while !expired && rounds < 100 {
        let interest = operator.interest(name(&format!("/brief/{rounds}"))).lifetime_ms(50).build();
        operator.send(&interest);
        let reply = operator.receive_within(Duration::from_millis(50));
        expired = reply.is_some_and(|reply| reply.headers.nack == Some(NackReason::NoRoute));
        rounds += 1;
    }
    stop.store(true, Ordering::Relaxed);
    let sent: u64 = floods.into_iter().map(|flood| flood.join().unwrap()).sum();
    println!("{sent} requests in {rounds} rounds");
    assert!(expired, "the route outlived its time by {rounds} rounds");
    assert!(sent > 10_000, "{sent} requests are no flood");
    eventually("requests are answered again", || {
        let mut late = Application::connect(&router);
        let interest = late.interest(name("/localhost/nfd/faces/list")).can_be_prefix(true).must_be_fresh(true);
        late.send(&interest.build());
        late.receive_within(Duration::from_millis(300)).is_some()
    });
}

/// The story: the flood's requests filled the one queue for all, and other senders of commands got no answer.
#[test]
fn commands_are_answered_the_first_time_while_others_flood_and_the_floods_are_named() {
    const PATIENTLY: Duration = Duration::from_secs(60);
    // One worker, because the rings between several lose packets where there are fewer processors.
    let (router, _directory) = start(1);
    let mut honest = Application::connect(&router);
    let mut operator = Application::connect(&router);
    let stop = Arc::new(AtomicBool::new(false));
    let floods = start_floods(&router, &stop);
    let mut is_cut = false;
    let mut unanswered = None;
    let began = Instant::now();
    let mut commands = 0;
    // A few dozen commands, while the floods find no place.
    while unanswered.is_none() && (commands < 40 || !is_cut && began.elapsed() < PATIENTLY) {
        let prefix = format!("/honest/{commands}");
        let command = honest
            .command_packet("/rib/register", &ControlParameters { name: Some(name(&prefix)), ..Default::default() });
        honest.send(&command);
        if honest.receive_within(Duration::from_secs(20)).is_none() {
            unanswered = Some(commands);
        }
        commands += 1;
        is_cut = is_cut || commands % 10 == 0 && operator.drops("router.management-queue-full") > 0;
    }
    stop.store(true, Ordering::Relaxed);
    let sent: u64 = floods.into_iter().map(|flood| flood.join().unwrap()).sum();
    let named: Vec<DropCounter> = operator.dataset("/status/drops");
    let named: Vec<_> = named.into_iter().filter(|drop| drop.reason.starts_with("management-cut.face-")).collect();
    println!("{sent} requests beside {commands} commands; {named:?}");
    assert_eq!(unanswered, None, "of {commands}");
    assert!(is_cut, "no flood");
    assert!(!named.is_empty() && named.len() <= 4, "{named:?}");
}

#[test]
fn a_burst_of_management_interests_is_answered_or_counted() {
    const BURST: u64 = 20_000;
    let (router, _directory) = start(4);
    let mut client = Application::connect(&router);
    let mut wire = Vec::new();
    for index in 0..BURST {
        wire.extend(client.interest(name(&format!("/localhost/nfd/status/nothing/{index}"))).lifetime_ms(3000).build());
    }
    let mut writer = client.split();
    let writing = std::thread::spawn(move || writer.send(&wire));
    let mut answered = 0;
    while client.receive_within(Duration::from_millis(500)).is_some() {
        answered += 1;
    }
    writing.join().unwrap();
    let mut operator = Application::connect(&router);
    let mut lost = 0;
    for reason in ["router.management-queue-full", "router.ring-full", "link.queue-full", "link.queues-full"] {
        lost += operator.drops(reason);
    }
    println!("{answered} answered, {lost} lost");
    assert!(answered > 0);
    assert_eq!(answered + lost, BURST, "some vanished uncounted");
}

/// A client that sends Interests without an answer is cut at its share of every worker's PIT, and is named. Other
/// clients exchange as before.
#[test]
fn who_floods_with_interests_is_cut_and_named_and_others_are_served() {
    let (router, _directory) = start_with(4, |config| config.settings.tables.pit_capacity = 1000);
    let [mut operator, mut silent, mut producer, mut consumer, mut flooder] =
        [(); 5].map(|()| Application::connect(&router));
    silent.register("/nobody");
    producer.register("/somebody");
    let flooding = flooder.register("/flooder");
    std::thread::spawn(move || while silent.receive_within(Duration::from_secs(1)).is_some() {});
    for number in 0..20_000 {
        let interest = flooder.interest(name(&format!("/nobody/{number}"))).lifetime_ms(60_000).build();
        flooder.send(&interest);
    }
    let cut = format!("cut.face-{}", flooding.0);
    eventually("most of the flood is cut", || operator.drops(&cut) > 10_000);
    for number in 0..200 {
        let interest = consumer.interest(name(&format!("/somebody/{number}"))).build();
        consumer.send(&interest);
        producer.serve(1, b"content");
        assert!(consumer.receive().is_some(), "no Data {number}");
    }
    let pending = operator.status().n_pit_entries;
    assert!((700..=900).contains(&pending), "{pending} pending");
    assert_eq!((operator.drops("engine.pit-full"), operator.drops("engine.face-share-used") > 10_000), (0, true));
}

#[test]
fn connections_beyond_the_limit_are_closed_and_counted() {
    // One user may have four fifths of the places: four at each worker.
    let (router, _directory) = start_with(2, |config| config.settings.faces.max_per_worker = 5);
    let mut kept: Vec<_> = (0..8).map(|_| Application::connect(&router)).collect();
    eventually("all have a face", || kept[0].faces().len() == 8);
    for _ in 0..5 {
        // Idle ones would make room.
        kept.iter_mut().for_each(|application| assert_eq!(application.faces().len(), 8));
        let mut refused = Application::connect(&router);
        let began = Instant::now();
        assert!(refused.receive().is_none() && began.elapsed() < PATIENCE, "not closed");
    }
    eventually("all are counted", || kept[0].drops("router.connection-refused") == 5);
    drop(kept.pop());
    eventually("a place is free", || kept[0].faces().len() == 7);
    Application::connect(&router).faces();
}

/// A limit that turns something away without dropping a packet is shown beside the drops.
#[test]
fn an_evicting_store_says_so() {
    let (router, _directory) = start_with(1, |config| config.settings.cs.packets = Some(1));
    let [mut operator, mut producer, mut consumer] = [(); 3].map(|()| Application::connect(&router));
    producer.register("/a");
    for number in 0..5 {
        let asked = name(&format!("/a/{number}"));
        let interest = consumer.interest(asked.clone()).build();
        consumer.send(&interest);
        producer.receive().expect("an Interest");
        producer.send(&DataBuilder::new(asked).sign_digest());
        consumer.receive().expect("Data");
    }
    eventually("counted", || operator.drops("limit.cs-evicted") == 4);
}

#[test]
fn an_event_for_one_worker_is_no_unsolicited_data_at_another() {
    // With each seed, a different worker keeps the request and a different worker owns the event.
    let routers: Vec<_> = (0..6).map(|seed| start_with(4, |config| config.settings.router.seed = Some(seed))).collect();
    let mut watchers: Vec<_> = routers.iter().map(|(router, _)| Application::connect(router)).collect();
    std::thread::sleep(Duration::from_millis(1100)); // until the event of the watcher's face is stale
    for ((router, _), watcher) in routers.iter().zip(&mut watchers) {
        let interest = watcher.interest(name("/localhost/nfd/faces/events")).can_be_prefix(true).must_be_fresh(true);
        watcher.send(&interest.build());
        std::thread::sleep(Duration::from_millis(20));
        let mut newcomer = Application::connect(router);
        assert!(watcher.receive().is_some(), "no event");
        assert_eq!(newcomer.drops("engine.unsolicited-data"), 0);
    }
}

/// The longest time that an application waits for an answer while another one's routes leave. The result is for
/// reading: `ROUTES=990000 cargo test --release … -- --ignored --nocapture longest_silence`.
#[test]
#[ignore = "a measurement"]
fn longest_silence_while_many_routes_leave() {
    const IN_FLIGHT: usize = 500;
    let routes: usize = std::env::var("ROUTES").ok().and_then(|routes| routes.parse().ok()).unwrap_or(100_000);
    let (router, _directory) = start(1);
    let mut operator = Application::connect(&router);
    let mut daemon = Application::connect(&router);
    let (mut sent, mut answered) = (0, 0);
    while answered < routes {
        while sent < routes && sent - answered < IN_FLIGHT {
            let prefix = Some(name(&format!("/net/{sent}")));
            let parameters = ControlParameters { name: prefix, ..Default::default() };
            let command = daemon.command_packet("/rib/register", &parameters);
            daemon.send(&command);
            sent += 1;
        }
        daemon.receive_within(Duration::from_secs(60)).expect("an answer");
        answered += 1;
    }
    drop(daemon);
    let (began, mut longest, mut answers) = (Instant::now(), Duration::ZERO, 0);
    while operator.status().n_fib_entries > 10 {
        let asked = Instant::now();
        operator.register("/own");
        longest = longest.max(asked.elapsed());
        answers += 1;
    }
    println!("{routes} routes left in {:?}: {answers} commands answered, the slowest in {longest:?}", began.elapsed());
}
