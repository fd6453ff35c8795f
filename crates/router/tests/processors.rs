//! Where workers run, and how long they look for packets before they sleep. A file of its
//! own: other tests would use processor time too.

mod application;

use application::{Application, name, start_with};
use namewire_router::{Router, RouterConfig, StartError};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
    time::{Duration, Instant},
};

/// All tests look at the threads of this process.
static ALONE: Mutex<()> = Mutex::new(());

/// The `/proc` directories of worker threads.
fn worker_tasks() -> Vec<PathBuf> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let is_worker =
        |task: &PathBuf| fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.starts_with("nw-worker"));
    tasks.filter(is_worker).collect()
}

/// Processor time of the workers, in nanoseconds.
fn workers_time_ns() -> u64 {
    let time_ns = |task: &PathBuf| {
        let stat = fs::read_to_string(task.join("schedstat")).unwrap();
        stat.split(' ').next().and_then(|field| field.parse::<u64>().ok()).expect("schedstat")
    };
    worker_tasks().iter().map(time_ns).sum()
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
    let config = |pin: Vec<usize>| RouterConfig { workers: 2, pin, ..RouterConfig::default() };
    let router = Router::start(config(vec![processor; 2])).unwrap();
    let pinned = worker_tasks();
    assert_eq!(pinned.len(), 2);
    assert!(pinned.iter().all(|task| allowed(task) == processor.to_string()));
    router.stop();

    let too_few = Router::start(config(vec![processor])).err();
    assert!(matches!(too_few, Some(StartError::Processors { given: 1, workers: 2 })));
    // The first worker runs by then.
    for absent in [rustix::thread::CpuSet::MAX_CPU - 1, usize::MAX] {
        let error = Router::start(config(vec![processor, absent])).err();
        let Some(StartError::Pin { processor: refused, usable, .. }) = error else { panic!("{error:?}") };
        assert_eq!(refused, absent);
        assert!(usable.starts_with(|first: char| first.is_ascii_digit()), "{usable}");
        assert!(worker_tasks().is_empty(), "a worker stayed");
    }
}

#[test]
fn a_busy_worker_polls_for_its_time_and_then_sleeps() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let busy_poll = Duration::from_millis(300);
    let (router, _directory) = start_with(1, |config| config.busy_poll = busy_poll);
    let mut application = Application::connect(&router);
    application.register("/producer");
    let mut consumer = Application::connect(&router);
    std::thread::sleep(busy_poll + Duration::from_millis(200));

    let before_ns = workers_time_ns();
    let interest = consumer.interest(name("/producer/1")).lifetime_ms(100).build();
    consumer.send(&interest);
    assert_eq!(application.receive().expect("an Interest").interest().name(), name("/producer/1").as_name());
    std::thread::sleep(busy_poll + Duration::from_millis(200));
    let polled = Duration::from_nanos(workers_time_ns() - before_ns);
    // Polling lasts as long by the clock; a loaded machine grants it only a part of that.
    assert!(polled > busy_poll / 10, "{polled:?} of processor time");
    assert!(polled < busy_poll + Duration::from_millis(50), "{polled:?} of processor time");

    let before_ns = workers_time_ns();
    std::thread::sleep(Duration::from_secs(1));
    let rested = Duration::from_nanos(workers_time_ns() - before_ns);
    assert!(rested < Duration::from_millis(1), "{rested:?} of processor time in 1 s of rest");
    router.stop();
}

#[test]
fn a_polling_worker_looks_at_what_other_workers_send_it() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let busy_poll = Duration::from_secs(1);
    let (router, _directory) = start_with(2, |config| config.busy_poll = busy_poll);
    let mut producer = Application::connect(&router);
    producer.register("/producer");
    let mut consumer = Application::connect(&router);
    // Names of either worker: one of them goes over the rings, to a worker that polls since
    // the exchange before. Nobody wakes it; only its own look ends the poll early.
    for number in 0..16 {
        let asked = Instant::now();
        let interest = consumer.interest(name(&format!("/producer/{number}"))).build();
        consumer.send(&interest);
        producer.serve(1, b"");
        consumer.receive().expect("Data");
        assert!(asked.elapsed() < busy_poll / 4, "{:?} for exchange {number}", asked.elapsed());
    }
}
