//! A router with too little memory: it refuses with a named reason and continues, or it does not start and prints the
//! reason. The limit is the router's own `ulimit -v`.

use crate::router_process::{NAMEWIRE, Router};
use namewire_client::{Client, ControlError};
use namewire_configuration::FibDesign;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

/// The memory that a router leaves to what cannot refuse.
const RESERVE_KIB: u64 = 160 << 10;
/// What is left for routes beside it: some thousands.
const FOR_ROUTES_KIB: u64 = 8 << 10;
/// More routes than fit.
const MANY: u64 = 100_000;
/// Commands on their way at once.
const WINDOW: usize = 32;

fn command(directory: &Path, program: &mut Command, design: &str) {
    let config = directory.join("namewire.toml");
    let tables =
        "[tables]\nfib_capacity = 200000\npit_capacity = 1024\ndead_nonces = 1024\n[cs]\ncapacity = \"1 MiB\"\n";
    fs::write(&config, format!("{tables}[fib]\ndesign = \"{design}\"\n")).unwrap();
    program.args(["run", "--no-udp", "--no-tcp", "-c"]).arg(config).arg("--socket").arg(directory.join("nfd.sock"));
    program.stdout(Stdio::piped());
}

fn start(directory: &Path, design: &str) -> Router {
    let mut program = Command::new(NAMEWIRE);
    command(directory, &mut program, design);
    let router = Router::start(&directory.join("nfd.sock"), &mut program);
    assert!(router.line.contains("is running"), "{design}: {}", router.line);
    router
}

/// From now on the process has no more address space than this.
fn limit(router: &Router, kib: u64) {
    let pid = Pid::from_raw(router.process.id().try_into().unwrap()).unwrap();
    let Rlimit { maximum, .. } = getrlimit(Resource::As);
    prlimit(Some(pid), Resource::As, Rlimit { current: Some(kib << 10), maximum }).unwrap();
}

/// Registers routes until one is refused; how many were taken, and why the first was not.
async fn register_until_refused(router: &Router) -> (u64, String) {
    let client = Client::connect_to(router.uri().parse().unwrap()).await.unwrap();
    for first in (0..MANY).step_by(WINDOW) {
        let mut answers = Vec::new();
        for number in first..first + WINDOW as u64 {
            let prefix = format!("/site-{}/of-the-{number}th/application", number % 97).parse().unwrap();
            let client = client.clone();
            answers.push(tokio::task::spawn_local(async move { client.register_prefix(&prefix).await }));
        }
        let mut taken = first;
        for answer in answers {
            match answer.await.unwrap() {
                Ok(_) => taken += 1,
                Err(ControlError::Refused(response)) => return (taken, format!("{} {}", response.code, response.text)),
                Err(error) => panic!("after {taken} routes: {error}"),
            }
        }
    }
    panic!("{MANY} routes were taken");
}

/// The designs sbpt, fpt and fht ended the process when a table could not grow, and every design when the
/// RIB could not.
#[test]
fn a_router_of_every_fib_design_refuses_routes_and_lives_on() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for design in FibDesign::ALL.map(FibDesign::name) {
        let directory = tempfile::tempdir().unwrap();
        let mut router = start(directory.path(), design);
        let mut server = router.command().args(["pingserver", "-q", "/before"]).stdout(Stdio::piped()).spawn().unwrap();
        // It has registered its prefix when it answers.
        let ping = || router.tool(&["ping", "-q", "-c", "3", "-i", "10", "--timeout", "20000", "/before"]);
        let is_answered = (0..100).any(|_| ping().status.success());
        limit(&router, router.status_kib("VmSize") + RESERVE_KIB + FOR_ROUTES_KIB);
        let local = tokio::task::LocalSet::new();
        let (taken, why) = local.block_on(&runtime, register_until_refused(&router));
        eprintln!("{design}: {taken} routes, then {why}");
        assert!(taken > 1000, "{design}: {taken}");
        assert_eq!(why, "507 the system has no memory for more routes", "{design}");
        let status = router.tool(&["status", "--json"]);
        let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
        assert!(status["drops"]["management.no-memory"].as_u64() > Some(0), "{design}: {}", status["drops"]);
        let after = ping();
        assert!(is_answered && after.status.success(), "{design}: forwarding goes on: {after:?}");
        let list = router.tool(&["route", "list"]);
        assert!(list.status.success(), "{design}: {list:?}");
        server.kill().unwrap();
        server.wait().unwrap();
        router.terminate();
    }
}

/// The program with so much address space.
fn limited(limit_kib: u32) -> Command {
    let mut program = Command::new("sh");
    program.args(["-c", "ulimit -v $0 && exec \"$@\"", &limit_kib.to_string(), NAMEWIRE]);
    program
}

/// With too little memory a start ended in a backtrace or a signal, depending on how little.
#[test]
fn a_start_without_memory_is_one_line_and_exit_code_1() {
    let directory = tempfile::tempdir().unwrap();
    let (mut failures, mut starts) = (0, 0);
    for (design, more) in [("one-bucket", &["--workers", "4"][..]), ("fht", &[]), ("npt", &[])] {
        for limit_kib in (1..).map(|step| (16 << 10) + step * (24 << 10)).take_while(|&kib| kib < 2 << 20) {
            // No room for the program itself: the system ends it before it has begun, in one way or another.
            if !limited(limit_kib).arg("--version").output().unwrap().status.success() {
                continue;
            }
            let mut program = limited(limit_kib);
            command(directory.path(), &mut program, design);
            let mut process = program.args(more).stderr(Stdio::piped()).spawn().unwrap();
            let mut line = String::new();
            BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
            if line.contains("is running") {
                starts += 1;
                let pid = process.id().to_string();
                assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
                assert_eq!(process.wait().unwrap().code(), Some(0), "{design} with {limit_kib} KiB");
                break;
            }
            let output = process.wait_with_output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            failures += 1;
            let is_one_line = said.lines().count() == 1 && said.starts_with("namewire: ");
            assert!(is_one_line && output.status.code() == Some(1), "{design} with {limit_kib} KiB: {said}");
            assert!(said.contains("memory") || said.contains("map the tables"), "{said}");
        }
    }
    assert!(failures > 10 && starts == 3, "{failures} failures, {starts} starts");
}
