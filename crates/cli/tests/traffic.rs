//! The traffic generator as a user meets it: through a router, and between two generators.

use crate::router_process::{NAMEWIRE, Router, free_port, text};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader},
    net::UdpSocket,
    path::Path,
    process::{Child, ChildStderr, Command, Output, Stdio},
};

/// A generator that answers, ended with the test.
struct Server {
    process: Child,
    stderr: BufReader<ChildStderr>,
}

impl Server {
    fn start(mut command: Command, arguments: &[&str]) -> Server {
        command.args(["traffic", "serve"]).args(arguments);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(process.stderr.take().unwrap());
        Server { process, stderr }
    }

    fn wait_for(mut self, line: &str) -> Self {
        let mut said = String::new();
        while self.stderr.read_line(&mut said).unwrap() > 0 {
            if said.ends_with(&format!("{line}\n")) {
                return self;
            }
        }
        panic!("not {line}, but {said}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn send(mut command: Command, arguments: &[&str]) -> Output {
    command.args(["--json", "traffic", "send"]).args(arguments).output().unwrap()
}

fn report(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn tool(transport: &str) -> Command {
    let mut command = Command::new(NAMEWIRE);
    command.args(["--transport", transport]);
    command
}

#[test]
fn every_interest_through_a_router_is_answered() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let _server = Server::start(router.command(), &["/t", "--size", "100", "--size-max", "2000", "--flows", "2"])
        .wait_for("serving");
    // Names that repeat come from the Content Store.
    let window = report(&send(router.command(), &["/t", "--count", "20001", "--flows", "2", "--order", "zipf"]));
    assert_eq!([&window["sent"], &window["received"], &window["lost"]], [20_001, 20_001, 0], "{window}");
    assert!(window["time_us"]["p99"].as_f64().unwrap() >= window["time_us"]["p50"].as_f64().unwrap());
    assert!(window["data_bits_per_s"].as_f64().unwrap() > 0.0);
    // By a schedule, all that was due is sent, however slow this machine is.
    let schedule = report(&send(router.command(), &["/t", "--rate", "2000", "--poisson", "--count", "1000"]));
    assert_eq!([&schedule["sent"], &schedule["received"]], [1000, 1000], "{schedule}");
    assert!(schedule["elapsed_s"].as_f64().unwrap() > 0.3, "{schedule}");

    let refused = send(router.command(), &["/no/route", "--count", "10"]);
    assert_eq!((refused.status.code(), report_of_failure(&refused)["nacked"].as_u64()), (Some(6), Some(10)));
    let list = directory.path().join("names");
    std::fs::write(&list, "/t/one\n\n/t/two\n").unwrap();
    let listed = report(&send(router.command(), &["--names-file", list.to_str().unwrap(), "--count", "10"]));
    assert_eq!(listed["received"], 10);
}

fn report_of_failure(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn two_generators_need_no_router() {
    let directory = tempfile::tempdir().unwrap();
    let socket = format!("unix://{}", directory.path().join("pair.sock").display());
    for uri in [socket, format!("tcp://127.0.0.1:{}", free_port()), format!("udp://127.0.0.1:{}", free_port())] {
        let _server = Server::start(Command::new(NAMEWIRE), &["--listen", &uri]).wait_for("waiting for a generator");
        let listens = || !uri.starts_with("unix") || Path::new(uri.trim_start_matches("unix://")).exists();
        crate::router_process::eventually("it listens", listens);
        // Over UDP nothing waits for anything: a window of 16 fits the kernel's queues.
        let arguments = ["/t", "--count", "5000", "--window", "16", "--must-be-fresh", "--lifetime", "60000"];
        let mut output = send(tool(&uri), &arguments);
        while output.status.code() == Some(4) {
            output = send(tool(&uri), &arguments); // it does not listen yet
        }
        let counts = report(&output);
        assert_eq!([&counts["received"], &counts["lost"]], [5000, 0], "{uri}: {counts}");
    }
}

/// The same seed gives the same names; what makes two Interests for a name differ is their nonces.
#[test]
fn consumers_of_the_same_names_are_no_loop() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let _server = Server::start(router.command(), &["/t"]);
    let _server = _server.wait_for("serving");
    for consumer in 0..3 {
        let counts =
            report(&send(router.command(), &["/t", "--count", "50", "--must-be-fresh", "--lifetime", "60000"]));
        assert_eq!([&counts["received"], &counts["nacked"]], [50, 0], "{consumer}: {counts}");
    }
}

#[test]
fn silence_is_a_loss() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let uri = format!("udp://{}", silent.local_addr().unwrap());
    let output = send(tool(&uri), &["/t", "--count", "30", "--lifetime", "100", "--rate", "1000"]);
    let counts = report_of_failure(&output);
    assert_eq!((output.status.code(), counts["lost"].as_u64()), (Some(5), Some(30)), "{counts}");
    assert_eq!(counts["lost_share"], 1.0);
    for wrong in [&["/t", "--rate", "0"][..], &["/t", "--poisson"], &[], &["/t", "--names-file", "/nonexistent"]] {
        assert_eq!(send(tool(&uri), wrong).status.code(), Some(2), "{wrong:?}");
    }
    assert_eq!(send(tool(&uri), &["--names-file", "/nonexistent"]).status.code(), Some(2));
}

#[test]
fn generators_speak_over_shared_memory_and_websocket_too() {
    let directory = tempfile::tempdir().unwrap();
    let (memif, websocket) = (directory.path().join("memif.sock"), format!("127.0.0.1:{}", free_port()));
    let router = Router::run(directory.path(), &["--memif", memif.to_str().unwrap(), "--listen-ws", &websocket]);
    let links = [format!("memif://{}", memif.display()), format!("ws://{websocket}/")];
    for (number, link) in links.iter().enumerate() {
        let prefix = format!("/t{number}");
        let _server = Server::start(router.command(), &[&prefix, "--over", link, "--size-max", "2000"]);
        let _server = _server.wait_for("serving");
        for consumer in &links {
            let arguments = [&*prefix, "--over", consumer, "--count", "5000", "--must-be-fresh", "--lifetime", "60000"];
            let counts = report(&send(router.command(), &arguments));
            assert_eq!([&counts["received"], &counts["lost"]], [5000, 0], "{consumer} to {link}: {counts}");
        }
    }
    for wrong in ["memif://x", "ether://[02:00:00:00:00:01]", "http://h"] {
        assert_eq!(send(router.command(), &["/t", "--over", wrong]).status.code(), Some(2), "{wrong}");
    }
    let unconnected = send(router.command(), &["/t", "--over", "memif:///nonexistent.sock"]);
    assert_eq!(unconnected.status.code(), Some(4), "{}", text(&unconnected.stderr));
}

/// A cable between two network namespaces, one for the router and one for the generators.
struct Cable {
    namespaces: [String; 2],
}

impl Cable {
    /// `None`, with a line that says so, where namespaces cannot be made.
    fn new() -> Option<Cable> {
        let namespaces = ["a", "b"].map(|side| format!("nwt{}-{side}", std::process::id()));
        let cable = Cable { namespaces };
        let [a, b] = &cable.namespaces;
        if !ip(&format!("netns add {a}")) {
            println!("skipped: namespaces cannot be made");
            return None;
        }
        assert!(ip(&format!("netns add {b}")));
        assert!(ip(&format!("-n {a} link add eth0 address 02:00:00:00:00:0a type veth peer name eth0 netns {b}")));
        assert!(
            ip(&format!("-n {a} link set eth0 up"))
                && ip(&format!("-n {b} link set eth0 address 02:00:00:00:00:0b up"))
        );
        Some(cable)
    }

    /// A command on one side.
    fn on(&self, side: usize, mut command: Command) -> Command {
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &self.namespaces[side]]).arg(command.get_program()).args(command.get_args());
        command.get_envs().for_each(|(key, value)| {
            inside.env(key, value.unwrap_or_default());
        });
        std::mem::swap(&mut command, &mut inside);
        command
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for namespace in &self.namespaces {
            ip(&format!("netns delete {namespace}"));
        }
    }
}

fn ip(arguments: &str) -> bool {
    let status = Command::new("ip").args(arguments.split(' ')).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[test]
fn generators_speak_over_ethernet() {
    let Some(cable) = Cable::new() else { return };
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("nfd.sock");
    let mut run = crate::router_process::run_command(&socket);
    run.args(["--ethernet", "--interface", "eth0"]);
    let router = Router::start(&socket, &mut cable.on(0, run));
    let _server = Server::start(router.command(), &["/t", "--size", "500"]).wait_for("serving");
    let over = ["/t", "--over", "ether://[02:00:00:00:00:0a%eth0]", "--count", "5000", "--window", "16"];
    let mut command = Command::new(NAMEWIRE);
    command.args(["--json", "traffic", "send"]).args(over).args(["--lifetime", "60000"]);
    let counts = report(&cable.on(1, command).output().unwrap());
    assert_eq!([&counts["received"], &counts["lost"]], [5000, 0], "{counts}");
}
