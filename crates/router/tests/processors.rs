//! Where workers run, and how long they look for packets before they sleep. This is a separate file, because other
//! tests would use processor time too.

mod application;
mod threads;

use application::{Application, PATIENCE, eventually, name, start, start_with};
use namewire_configuration::{Configuration, Settings, settings::BusyPoll, units::Span};
use namewire_packet::nfd::WorkerLoad;
use namewire_router::{Router, StartError};
use std::{
    fs,
    path::Path,
    sync::Mutex,
    time::{Duration, Instant},
};
use threads::{Work, tasks};

/// Names of worker threads begin with this.
const WORKERS: &str = "nw-worker";

/// Held by one test at a time, because all look at the threads of this process.
static ALONE: Mutex<()> = Mutex::new(());

/// True if the workers sleep, and have slept for a moment. A worker that waits for a processor does not sleep.
fn are_asleep() -> bool {
    let before = Work::of(WORKERS);
    std::thread::sleep(Duration::from_millis(50));
    let sleeps = |stat: String| stat.rsplit(") ").next().is_some_and(|fields| fields.starts_with('S'));
    tasks(WORKERS).iter().all(|task| sleeps(fs::read_to_string(task.join("stat")).unwrap()))
        && Work::of(WORKERS) == before
}

fn allowed(task: &Path) -> String {
    let status = fs::read_to_string(task.join("status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.expect("Cpus_allowed_list").trim().to_owned()
}

/// The lowest processor that this process may use.
fn a_processor() -> usize {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    (0..rustix::thread::CpuSet::MAX_CPU).find(|&processor| allowed.is_set(processor)).unwrap()
}

#[test]
fn workers_run_where_they_are_told_to() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let processor = a_processor();
    let config = |pin: Vec<usize>| {
        let mut settings = Settings::listening_nowhere();
        (settings.router.workers, settings.router.pin) = (2, pin);
        Configuration::from(settings)
    };
    let router = Router::start(&config(vec![processor; 2])).unwrap();
    let pinned = tasks(WORKERS);
    assert_eq!(pinned.len(), 2);
    assert!(pinned.iter().all(|task| allowed(task) == processor.to_string()));
    router.stop();

    let too_few = Router::start(&config(vec![processor])).err();
    assert!(matches!(too_few, Some(StartError::Processors { given: 1, workers: 2 })));
    // I/O threads come after the workers.
    let mut settings = Settings::listening_nowhere();
    (settings.router.workers, settings.router.io_threads, settings.router.pin) = (1, 1, vec![processor; 2]);
    let router = Router::start(&Configuration::from(settings)).unwrap();
    assert_eq!((tasks(WORKERS).len(), tasks("nw-io-1").len()), (1, 1));
    assert_eq!(allowed(&tasks("nw-io-1")[0]), processor.to_string());
    router.stop();
    // The first worker is running by then.
    for absent in [rustix::thread::CpuSet::MAX_CPU - 1, usize::MAX] {
        let error = Router::start(&config(vec![processor, absent])).err();
        let Some(StartError::Pin { processor: refused, usable, .. }) = error else { panic!("{error:?}") };
        assert_eq!(refused, absent);
        assert!(usable.starts_with(|first: char| first.is_ascii_digit()), "{usable}");
        assert!(tasks(WORKERS).is_empty(), "a worker stayed");
    }
}

#[test]
fn a_busy_worker_polls_for_its_time_and_then_sleeps() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let busy_poll = Duration::from_secs(1);
    let (router, _directory) =
        start_with(1, |config| config.settings.router.busy_poll = BusyPoll::For(Span(busy_poll)));
    let mut application = Application::connect(&router);
    application.register("/producer");
    let mut consumer = Application::connect(&router);
    eventually("the worker sleeps", are_asleep);

    let before = Work::of(WORKERS);
    let interest = consumer.interest(name("/producer/1")).lifetime_ms(100).build();
    let sent_at = Instant::now();
    consumer.send(&interest);
    assert_eq!(application.receive().expect("an Interest").interest().name(), name("/producer/1").as_name());
    eventually("the worker sleeps again", are_asleep);
    let (awake, polled) = (sent_at.elapsed(), Work::of(WORKERS).since(before));
    assert!(awake >= busy_poll, "asleep after {awake:?}");
    // Polling lasts this long by the clock. On a loaded machine a worker gets only a part of that time. Without polling
    // it would be less than a millisecond.
    assert!(polled.time > busy_poll / 50, "{polled:?} of {awake:?}");
    assert!(polled.time < busy_poll + busy_poll / 10, "{polled:?} of {awake:?}");

    let before = Work::of(WORKERS);
    std::thread::sleep(Duration::from_secs(1));
    let rested = Work::of(WORKERS).since(before);
    assert!(rested.wake_ups < 5 && rested.time < busy_poll / 50, "{rested:?} in 1 s of rest");
    router.stop();
}

/// What the only worker has counted.
fn load(application: &mut Application) -> WorkerLoad {
    application.dataset("/status/workers")[0]
}

/// One exchange, whose Data takes at least `pause`, as does whatever follows it.
fn exchange(consumer: &mut Application, producer: &mut Application, number: u32, pause: Duration) {
    let interest = consumer.interest(name(&format!("/producer/{number}"))).lifetime_ms(60_000).build();
    consumer.send(&interest);
    let interest = producer.receive().expect("an Interest");
    std::thread::sleep(pause);
    producer.answer(&interest, b"");
    consumer.receive().expect("Data");
    std::thread::sleep(pause);
}

#[test]
fn by_default_a_worker_looks_for_packets_where_that_pays_and_only_there() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let (router, _directory) = start(1);
    let mut producer = Application::connect(&router);
    producer.register("/producer");
    let mut consumer = Application::connect(&router);
    let mut number = 0;
    let mut next = |pause| {
        number += 1;
        exchange(&mut consumer, &mut producer, number, pause);
    };
    let mut control = Application::connect(&router);
    if router.sleeps_at_once().is_some() {
        (0..500).for_each(|_| next(Duration::ZERO));
        let load = load(&mut control);
        assert_eq!((load.polls, load.poll_window_ns), (0, 0), "{load:?}");
        assert!(load.sleeps > 0, "{load:?}");
        return;
    }
    // On a loaded machine, few packets come soon. But some do.
    eventually("it has looked", || {
        (0..500).for_each(|_| next(Duration::ZERO));
        load(&mut control).polls > 0
    });

    // Now none do, except those with which this test asks.
    next(Duration::from_millis(20));
    let before = load(&mut control);
    (0..25).for_each(|_| next(Duration::from_millis(20)));
    std::thread::sleep(Duration::from_secs(1));
    let after = load(&mut control);
    assert!(after.sleeps >= before.sleeps + 10, "{before:?} {after:?}");
    assert!(after.polls <= before.polls + 16, "{before:?} {after:?}");
}

#[test]
fn a_polling_worker_looks_at_what_other_workers_send_it() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    // Longer than a test waits: a packet found only at the end of the poll comes too late.
    let busy_poll = 10 * PATIENCE;
    let (router, _directory) =
        start_with(2, |config| config.settings.router.busy_poll = BusyPoll::For(Span(busy_poll)));
    let mut producer = Application::connect(&router);
    producer.register("/producer");
    let mut consumer = Application::connect(&router);
    // Each worker owns some of these names. So some packets go over the rings, to a worker that has polled since the
    // exchange before. No thread wakes it; only its own look ends the poll early.
    for number in 0..16 {
        let interest = consumer.interest(name(&format!("/producer/{number}"))).lifetime_ms(60_000).build();
        consumer.send(&interest);
        producer.serve(1, b"");
        consumer.receive().expect("Data");
    }
}
