//! Soak: a router survives churn, and returns to its former state whenever the churn stops.
//!
//! A router with two workers. Applications come, exchange, and go; other clients send from new ports, leave unanswered
//! Interests behind, close connections in the middle of packets, and send endless fragments and bytes that are no
//! packets. An operator makes and destroys faces and routes and reads the file again. From time to time all of them
//! stop, and then:
//!
//! - every Interest that entered the PIT counts as satisfied, unsatisfied or refused, and none is pending,
//! - no pool counts anything as held, except by the connection that asks,
//! - the numbers of faces and file descriptors are those of the first rest,
//! - memory is flat: after the first quarter of the time (two rests at least) it grows by at most [`GROWTH_KIB`].
//!
//! `NAMEWIRE_SOAK_SECONDS=7200 cargo test --release -p namewire-cli --test soak -- --nocapture` runs it for two hours;
//! without the variable it takes some seconds. `NAMEWIRE_UNDER_TEST` names another binary.

mod churn;
#[path = "../router_process/mod.rs"]
mod router_process;
mod upgrades;

use churn::Churn;
use router_process::{NAMEWIRE, PATIENCE, Router, free_port};
use serde_json::Value;
use std::{
    ffi::OsString,
    fs,
    process::Command,
    time::{Duration, Instant},
};

/// What allocators may keep beyond their first quarter of the time: heaps of threads, rounded up to pages and
/// transparent huge pages.
const GROWTH_KIB: u64 = 4_096;

/// Rests of one run, if it is long.
const RESTS: u32 = 60;

const CONFIGURATION: &str = "
[tables]
pit_capacity = 4096

[cs]
capacity = \"2 MiB\"
packets = 512

[faces.udp]
idle_timeout = \"1 s\"

[faces.tcp]
first_packet_timeout = \"1 s\"
";

/// A router at rest.
#[derive(Debug, PartialEq, Eq)]
struct Rest {
    descriptors: usize,
    faces: usize,
    routes: usize,
}

/// The binary that is tested.
fn program() -> OsString {
    std::env::var_os("NAMEWIRE_UNDER_TEST").unwrap_or(NAMEWIRE.into())
}

fn parsed(router: &Router, arguments: &[&str]) -> Value {
    serde_json::from_str(&router.ask(arguments)).unwrap()
}

fn sum(values: &Value, of: impl Fn(&Value) -> &Value) -> u64 {
    values.as_array().into_iter().flatten().filter_map(|value| of(value).as_u64()).sum()
}

/// Interests that missed the store, and those of which the status says how they ended. The one that asks is pending.
fn entered_and_ended(status: &Value) -> (u64, u64) {
    const NOT_ENTERED: [&str; 4] =
        ["engine.pit-full", "engine.pit-share-used", "engine.face-share-used", "engine.pit-overflow-full"];
    let count = |name: &str| status[name].as_u64().unwrap_or_default();
    let refused = NOT_ENTERED.iter().filter_map(|&name| status["drops"][name].as_u64()).sum::<u64>();
    let entered = sum(&status["store"]["policies"], |policy| &policy["misses"]);
    (entered, count("satisfied_interests") + count("unsatisfied_interests") + refused)
}

/// Why the router is not at rest, or how it rests.
fn look(router: &Router) -> Result<Rest, String> {
    let status = parsed(router, &["status", "--json"]);
    let (entered, ended) = entered_and_ended(&status);
    // The workers publish their counters at different times, and the asking is counted too.
    if entered.abs_diff(ended) > 8 || status["pit_entries"].as_u64() > Some(1) {
        return Err(format!("{entered} Interests entered, {ended} ended, {} are pending", status["pit_entries"]));
    }
    let holders = parsed(router, &["status", "--holders", "--json"]);
    let may_be_held = ["descriptors", "faces", "routes"];
    for pool in holders.as_array().unwrap().iter().filter(|pool| pool["holder"].is_null()) {
        let (name, held) = (pool["pool"].as_str().unwrap(), pool["held"].as_u64());
        if held > Some(1) && !may_be_held.contains(&name) {
            return Err(format!("{name}: {held:?} held"));
        }
    }
    let faces = parsed(router, &["face", "list", "--json"]).as_array().unwrap().len();
    let routes = parsed(router, &["route", "list", "--json"]).as_array().unwrap().len();
    let descriptors = fs::read_dir(format!("/proc/{}/fd", router.process.id())).unwrap().count();
    Ok(Rest { descriptors, faces, routes })
}

/// Waits for a rest like the first one, if there was one.
fn rest(router: &Router, first: Option<&Rest>) -> Rest {
    let end = Instant::now() + PATIENCE;
    loop {
        let found = look(router);
        match found {
            Ok(rest) if first.is_none_or(|first| *first == rest) => return rest,
            _ => assert!(Instant::now() < end, "it does not come to rest: {found:?}, and {first:?} at first"),
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_router_is_as_before_whenever_the_churn_stops() {
    let seconds = std::env::var("NAMEWIRE_SOAK_SECONDS").map_or(8, |text| text.parse().expect("seconds"));
    let rests = (seconds / 2).clamp(4, RESTS);
    let directory = tempfile::tempdir().unwrap();
    let (file, socket, port) = (directory.path().join("soak.toml"), directory.path().join("nfd.sock"), free_port());
    fs::write(&file, CONFIGURATION).unwrap();
    let mut command = Command::new(program());
    let listens = format!("127.0.0.1:{port}");
    command.args(["run", "--workers", "2", "--listen-udp", &listens, "--listen-tcp", &listens, "--config"]);
    let mut router = Router::start(&socket, command.arg(&file).arg("--socket").arg(&socket));

    let first = rest(&router, None);
    let mut memory_kib = Vec::new();
    for number in 0..rests {
        let churn = Churn::start(&router, port, u64::from(number));
        std::thread::sleep(Duration::from_millis(u64::from(seconds) * 1_000 / u64::from(rests)));
        let tally = churn.stop();
        rest(&router, Some(&first));
        memory_kib.push(router.status_kib("RssAnon"));
        println!("rest {number}: {first:?}, {} KiB, {tally:?}", memory_kib[memory_kib.len() - 1]);
        assert!(tally.answered > 0 && tally.silent > 0 && tally.commands > 0, "it was no churn: {tally:?}");
    }
    let (early, late) = memory_kib.split_at(memory_kib.len().div_ceil(4).max(2));
    let most = |kib: &[u64]| kib.iter().copied().max().unwrap_or_default();
    assert!(most(late) <= most(early) + GROWTH_KIB, "memory grows: {memory_kib:?}");
    router.terminate();
}
