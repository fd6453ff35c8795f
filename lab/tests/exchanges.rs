//! Many exchanges through a real `namewire run`. None may be lost: with one worker and with four, over Unix and UDP,
//! from a producer and from the Content Store. The router's own totals are the same with one, two, four and eight
//! workers.
//!
//! Needs the router: `cargo build -p namewire-cli` first (`make test` does), or
//! NAMEWIRE set to one. The load generator checks every Data byte by byte.

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use namewire_lab::load::{LoadReport, Transport};
use namewire_lab::router_process::{RouterProcess, find_program};
use namewire_packet::nfd::{ControlParameters, DropCounter, cs_flags, decode_dataset};

/// The program under `namewire-lab load`.
const LAB: &str = env!("CARGO_BIN_EXE_namewire-lab");
const DISTINCT: u64 = 100_000;
/// Names that any default Content Store holds.
const STORED: u64 = 10_000;
/// A worker publishes its counters when it becomes idle, and every 5 ms while busy.
const PUBLISHED: Duration = Duration::from_millis(50);
/// Most commands, datasets and probes of one test.
const BESIDE_MAX: u64 = 100;

/// One router at a time: concurrent tests would slow each other down.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start(workers: usize) -> RouterProcess {
    let program = find_program(Path::new(LAB)).expect("the router is built");
    RouterProcess::start(&program, workers, None).expect("the router starts")
}

fn load(router: &RouterProcess, transport: Transport, options: &str) -> LoadReport {
    let options: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
    router.load(Command::new(LAB), None, transport, &options).expect("the load runs")
}

fn distinct_interests(transport: Transport, workers: usize) {
    let _alone = alone();
    let mut router = start(workers);
    let report = load(&router, transport, &format!("--count {DISTINCT} --window 64"));
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((report.sent, report.satisfied, report.unexpected), (DISTINCT, DISTINCT, 0), "{report:?}");
    assert_eq!(report.producer_interests, DISTINCT, "each must reach the producer once: {report:?}");
    assert!(router.is_alive().expect("the process can be asked"));
}

/// 100,000 distinct names in ten parts, each fetched once and then requested again: the second time no Interest may
/// reach the producer.
fn from_the_content_store(transport: Transport, workers: usize) {
    let _alone = alone();
    let router = start(workers);
    for part in 0..DISTINCT / STORED {
        let report = load(&router, transport, &format!("--count {STORED} --window 64 --from-store --stream {part}"));
        assert!(report.is_clean(), "part {part}: {report:?}");
        assert_eq!(report.producer_interests, 0, "part {part}: {report:?}");
    }
}

fn can_be_prefix(transport: Transport, workers: usize) {
    let _alone = alone();
    let router = start(workers);
    let report = load(&router, transport, "--count 10000 --window 64 --can-be-prefix");
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.satisfied, 10_000);
    let echoed = load(&router, transport, "--count 10000 --window 64 --can-be-prefix --echo-tokens --stream 1");
    assert!(echoed.is_clean(), "with tokens echoed: {echoed:?}");
}

/// Full-size Data, which partial reads and writes cut anywhere on Unix streams.
fn large_data(transport: Transport, workers: usize, bytes: usize) {
    let _alone = alone();
    let router = start(workers);
    let report = load(&router, transport, &format!("--count 20000 --window 64 --content {bytes}"));
    assert!(report.is_clean(), "{report:?}");
}

/// The router's totals without its Content Store: exact names and CanBePrefix, with and without tokens. The router's
/// own tests compare exactly; this test sends many packets at once.
fn totals(transport: Transport, workers: usize) {
    const COUNT: u64 = 5_000;
    let _alone = alone();
    let router = start(workers);
    let mut control = router.control().expect("it accepts connections");
    let (flags, mask) = (Some(0), Some(cs_flags::ADMIT));
    let store_off = ControlParameters { flags, mask, ..ControlParameters::default() };
    assert_eq!(control.command("cs", "config", &store_off).expect("an answer").code, 200);
    let loads = ["", "--can-be-prefix", "--echo-tokens --can-be-prefix"];
    for (stream, options) in loads.iter().enumerate() {
        let report = load(&router, transport, &format!("--count {COUNT} --window 64 --stream {stream} {options}"));
        assert!(report.is_clean() && report.producer_interests == COUNT, "{workers} workers: {report:?}");
    }
    std::thread::sleep(PUBLISHED);
    let status = control.status().expect("an answer");
    // A load begins with commands, and with probes until the route works.
    let beside = status.n_satisfied_interests - COUNT * loads.len() as u64;
    assert!(beside < BESIDE_MAX, "{workers} workers: {status:?}");
    let lost = (status.n_unsatisfied_interests, status.packets.in_nacks, status.packets.out_nacks);
    assert_eq!(lost, (0, 0, 0), "{workers} workers");
    let mut drops: Vec<DropCounter> =
        decode_dataset(&control.dataset("status/drops").expect("an answer")).expect("well-formed");
    // Ignores repeated probes, and limits that dropped no packet.
    drops.retain(|drop| drop.reason != "engine.suppressed" && !drop.reason.starts_with("limit."));
    assert_eq!(drops, [], "{workers} workers");
}

#[test]
fn totals_over_unix_do_not_depend_on_the_number_of_workers() {
    for workers in [1, 2, 4, 8] {
        totals(Transport::Unix, workers);
    }
}

#[test]
fn totals_over_udp_do_not_depend_on_the_number_of_workers() {
    for workers in [1, 2, 4, 8] {
        totals(Transport::Udp, workers);
    }
}

#[test]
fn distinct_interests_over_unix_with_one_worker() {
    distinct_interests(Transport::Unix, 1);
}

#[test]
fn distinct_interests_over_unix_with_four_workers() {
    distinct_interests(Transport::Unix, 4);
}

#[test]
fn distinct_interests_over_udp_with_one_worker() {
    distinct_interests(Transport::Udp, 1);
}

#[test]
fn distinct_interests_over_udp_with_four_workers() {
    distinct_interests(Transport::Udp, 4);
}

#[test]
fn content_store_over_unix_with_one_worker() {
    from_the_content_store(Transport::Unix, 1);
}

#[test]
fn content_store_over_unix_with_four_workers() {
    from_the_content_store(Transport::Unix, 4);
}

#[test]
fn content_store_over_udp_with_one_worker() {
    from_the_content_store(Transport::Udp, 1);
}

#[test]
fn content_store_over_udp_with_four_workers() {
    from_the_content_store(Transport::Udp, 4);
}

#[test]
fn can_be_prefix_over_unix_with_one_worker() {
    can_be_prefix(Transport::Unix, 1);
}

#[test]
fn can_be_prefix_over_unix_with_four_workers() {
    can_be_prefix(Transport::Unix, 4);
}

#[test]
fn can_be_prefix_over_udp_with_one_worker() {
    can_be_prefix(Transport::Udp, 1);
}

#[test]
fn can_be_prefix_over_udp_with_four_workers() {
    can_be_prefix(Transport::Udp, 4);
}

#[test]
fn large_data_over_unix_with_one_worker() {
    large_data(Transport::Unix, 1, 8_000);
}

#[test]
fn large_data_over_unix_with_four_workers() {
    large_data(Transport::Unix, 4, 8_000);
}

#[test]
fn large_data_over_udp_with_four_workers() {
    large_data(Transport::Udp, 4, 1_200);
}
