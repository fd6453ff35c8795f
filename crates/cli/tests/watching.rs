//! `namewire drops`, `trace` and `explain` as a user meets them: a router, its applications, and a fetch that fails.

use crate::router_process::{NAMEWIRE, PATIENCE, Router, eventually, free_port, http_get, text_of_failure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Write},
    net::UdpSocket,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
};

/// A tool that runs beside the test, ended with it; the lines of its output and of its messages.
struct Tool {
    process: Child,
    lines: Receiver<String>,
    said: Receiver<String>,
}

impl Tool {
    fn start(router: &Router, arguments: &[&str]) -> Tool {
        let mut command = router.command();
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let lines = collect(process.stdout.take().unwrap());
        let said = collect(process.stderr.take().unwrap());
        Tool { process, lines, said }
    }

    /// Waits for a message with these words.
    fn wait_for(&self, words: &str) {
        while !self.said.recv_timeout(PATIENCE).expect(words).contains(words) {}
    }

    /// Waits for a line of output with all these parts.
    fn line(&self, parts: &[&str]) -> String {
        let mut seen = Vec::new();
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no {parts:?} in {seen:#?}"));
            if parts.iter().all(|part| line.contains(part)) {
                return line;
            }
            seen.push(line);
        }
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn collect(stream: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        BufReader::new(stream).lines().map_while(Result::ok).try_for_each(|line| sender.send(line)).ok();
    });
    lines
}

/// A neighbour that takes datagrams and answers none, and its FaceUri.
fn deaf_neighbour() -> (UdpSocket, String) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let uri = format!("udp4://{}", socket.local_addr().unwrap());
    (socket, uri)
}

/// Answers one Interest under this name.
fn answer_once(router: &Router, name: &str) -> Tool {
    let mut producer = Tool::start(router, &["poke", name, "--freshness", "60000"]);
    producer.process.stdin.take().unwrap().write_all(b"hello").unwrap();
    eventually("it has registered", || router.ask(&["route", "list"]).contains(name));
    producer
}

#[test]
fn a_trace_shows_the_way_of_each_packet() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &["--workers", "2"]);
    let _producer = answer_once(&router, "/seen/data");
    let trace = Tool::start(&router, &["trace", "/seen", "--json"]);
    trace.wait_for("tracing");
    assert_eq!(router.ask(&["peek", "/seen/data"]).trim(), "hello");
    let line = |parts: &[&str]| -> Value { serde_json::from_str(&trace.line(parts)).unwrap() };
    let interest = line(&["\"Interest\"", "\"sent\""]);
    assert_eq!((&interest["name"], interest["to"].as_array().unwrap().len()), (&"/seen/data".into(), 1));
    let data = line(&["\"Data\"", "\"sent\""]);
    assert_eq!((&data["face_id"], &data["to"][0]), (&interest["to"][0], &interest["face_id"]), "the same way back");
    assert!(data["after_us"].is_u64(), "{data}");

    router.ask(&["peek", "/seen/data"]);
    line(&["\"Interest\"", "answered from the Content Store"]);
    assert_eq!(router.tool(&["peek", "/seen/nothing"]).status.code(), Some(6));
    let refused = line(&["/seen/nothing", "refused by a Nack"]);
    assert_eq!(refused["reason"], "no-route");
    router.tool(&["peek", "/elsewhere"]);
    router.tool(&["peek", "/seen/last"]);
    assert_eq!(line(&["Interest"])["name"], "/seen/last", "other names are in no trace");
}

#[test]
fn a_trace_of_everything_leaves_its_own_requests_out_and_says_what_got_no_answer() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let trace = Tool::start(&router, &["trace", "/", "--count", "2"]);
    trace.wait_for("tracing");
    router.ask(&["face", "list"]); // a dataset, which is in no trace
    router.tool(&["peek", "/one"]);
    router.tool(&["peek", "/two"]);
    assert!(trace.line(&["Interest"]).contains("/one from face"));
    assert!(trace.line(&["Interest"]).contains("/two from face"));

    let (_deaf, uri) = deaf_neighbour();
    router.ask(&["route", "add", "/dead", &uri]);
    let trace = Tool::start(&router, &["trace", "/dead"]);
    trace.wait_for("tracing");
    assert_eq!(router.tool(&["peek", "/dead/1", "--lifetime", "200"]).status.code(), Some(5));
    assert!(trace.line(&["no answer"]).contains("/dead/1: no answer within 200 ms"));
    eventually("explain has counted it", || router.ask(&["explain", "/dead/1"]).contains("silent 1"));
}

#[test]
fn drops_are_listed_filtered_and_followed() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    assert!(router.ask(&["drops"]).contains("no such packet"));
    let follow = Tool::start(&router, &["drops", "--follow", "--reason", "no-route"]);
    let why = text_of_failure(&router.tool(&["peek", "/lost/1"]));
    assert!(why.contains(" explain /lost/1` says where an Interest goes"), "{why}");
    router.tool(&["peek", "/lost/2"]);
    follow.line(&["engine.no-route", "Interest", "/lost/1 from face"]);
    follow.line(&["engine.no-route", "Interest", "/lost/2 from face"]);
    let all = router.ask(&["drops"]);
    assert!(all.contains("/lost/1") && all.contains("namewire explain /lost/2 says"), "{all}");
    let of_one: Value = serde_json::from_str(&router.ask(&["drops", "--prefix", "/lost/1", "--json"])).unwrap();
    assert_eq!((of_one.as_array().unwrap().len(), &of_one[0]["name"]), (1, &"/lost/1".into()));
}

#[test]
fn explain_knows_what_is_pending_and_stored() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &["--workers", "2"]);
    let _producer = answer_once(&router, "/kept/data");
    router.ask(&["peek", "/kept/data"]);
    let explained: Value = serde_json::from_str(&router.ask(&["explain", "/kept/data", "--json"])).unwrap();
    assert_eq!(explained["stored"][0]["name"], "/kept/data", "{explained}");
    assert!(explained["outcome"].as_str().unwrap().starts_with("stored Data answers it; it is fresh for"));
    let under: Value = serde_json::from_str(&router.ask(&["explain", "/kept", "--json"])).unwrap();
    assert_eq!(under["stored"].as_array().map(Vec::len), Some(0), "workers look up prefixes of their own names only");

    let (_deaf, uri) = deaf_neighbour();
    router.ask(&["route", "add", "/wait", &uri]);
    let _waiting = Tool::start(&router, &["peek", "/wait/1", "--lifetime", "60000", "--timeout", "60000"]);
    let face = router.face(&uri).unwrap();
    eventually("explain shows the pending Interest", || {
        let text = router.ask(&["explain", "/wait/1"]);
        text.contains("  pending   for face") && text.contains(&format!("face {face} was asked"))
    });
}

/// Who failed: the router here, one behind it, or a neighbour that says nothing.
#[test]
fn a_nack_and_a_time_out_say_who_it_was() {
    let (directory, far_directory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let router = Router::run(directory.path(), &[]);
    let (address, socket) = (format!("127.0.0.1:{}", free_port()), far_directory.path().join("nfd.sock"));
    let mut command = Command::new(NAMEWIRE);
    command.args(["run", "--no-tcp", "--listen-udp", &address, "--socket"]).arg(&socket);
    let _far = Router::start(&socket, &mut command);
    let (_deaf, silent) = deaf_neighbour();
    router.ask(&["route", "add", "/deaf", &silent]);
    let beyond = format!("udp4://{address}");
    router.ask(&["route", "add", "/far", &beyond]);
    let said = |arguments: &[&str]| text_of_failure(&router.tool(arguments));
    let [deaf, far] = [&silent, &beyond].map(|uri| (router.face(uri).unwrap(), uri));
    let nack_of_here = said(&["peek", "/nowhere/1"]);
    assert!(nack_of_here.contains("the router here sent the Nack: it has no next hop"), "{nack_of_here}");
    for arguments in [&["peek", "/far/1"][..], &["get", "/far/file"], &["ping", "/far", "--count", "1"]] {
        let text = said(arguments);
        assert!(
            text.contains(&format!("the Nack came from behind face {} ({})", far.0, far.1)),
            "{arguments:?}: {text}"
        );
    }
    let text = said(&["peek", "/deaf/1", "--lifetime", "100"]);
    assert!(text.contains(&format!("no answer came from face {} ({})", deaf.0, deaf.1)), "{text}");
}

/// The cheapest next hop is silent, and the strategy uses another one: list, log and metrics name the first, although
/// hardly any Interest goes there.
#[test]
fn a_next_hop_that_is_avoided_is_degraded() {
    let (directory, observer) = (tempfile::tempdir().unwrap(), format!("127.0.0.1:{}", free_port()));
    let router = Router::run(directory.path(), &["--observe", &observer]);
    let (far_directory, address) = (tempfile::tempdir().unwrap(), format!("127.0.0.1:{}", free_port()));
    let (socket, mut command) = (far_directory.path().join("nfd.sock"), Command::new(NAMEWIRE));
    command.args(["run", "--no-tcp", "--listen-udp", &address, "--socket"]).arg(&socket);
    let far = Router::start(&socket, &mut command);
    let _producer = Tool::start(&far, &["pingserver", "/both"]);
    let (_deaf, silent) = deaf_neighbour();
    router.ask(&["route", "add", "/both", &silent, "--cost", "10"]);
    router.ask(&["route", "add", "/both", &format!("udp4://{address}"), "--cost", "20"]);
    let face = router.face(&silent).unwrap();
    let shown = || {
        let faces: Value = serde_json::from_str(&router.ask(&["face", "list", "--json"])).unwrap();
        faces.as_array().unwrap().iter().find(|one| one["face_id"] == face).cloned().unwrap()
    };
    eventually("the list says so", || {
        router.tool(&["ping", "/both", "--count", "20", "--interval", "20", "--timeout", "300"]);
        shown()["state"] == "degraded" && shown()["health"]["recent"]["avoided"].as_u64().unwrap_or(0) > 0
    });
    let used = router.face(&format!("udp4://{address}")).unwrap();
    let text = router.ask(&["explain", "/both/1"]);
    let told = format!("it goes to face {used}, because face {face}, the cheapest of /both, is silent (best-route)");
    assert!(text.contains(&told) && text.contains("not used: no answer to earlier Interests"), "{text}");
    let text = router.ask(&["face", "show", &face.to_string()]);
    assert!(text.contains("sent elsewhere because it is silent"), "{text}");
    eventually("the log says so", || {
        let log = router.ask(&["events", "--area", "faces"]);
        log.lines().any(|line| line.contains("face degraded") && line.contains(&format!("face={face}")))
    });
    let metrics = http_get(&observer, "/metrics");
    let is_metric =
        |line: &str| line.starts_with(&format!("namewire_face_degraded{{face=\"{face}\"")) && line.ends_with(" 1");
    assert!(metrics.lines().any(is_metric), "{metrics}");
}

/// An application that hangs: its face is degraded in the list, the log and the metrics, and recovers with it.
#[test]
fn a_face_that_answers_too_little_is_degraded() {
    let (directory, observer) = (tempfile::tempdir().unwrap(), format!("127.0.0.1:{}", free_port()));
    let router = Router::run(directory.path(), &["--observe", &observer]);
    let producer = Tool::start(&router, &["pingserver", "/hangs"]);
    eventually("it has registered", || router.ask(&["route", "list"]).contains("/hangs"));
    let signal = |signal| kill_process(Pid::from_child(&producer.process), signal).unwrap();
    let states = || {
        let faces: Value = serde_json::from_str(&router.ask(&["face", "list", "--json"])).unwrap();
        let faces = faces.as_array().unwrap().iter();
        faces.filter_map(|face| face["state"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let is_degraded = || states().iter().any(|state| state == "degraded");
    let ping = |count: &str| router.tool(&["ping", "/hangs", "--count", count, "--interval", "10", "--timeout", "150"]);
    eventually("the producer answers", || ping("30").status.success() && !is_degraded());
    signal(Signal::STOP);
    // Again and again: when `ping` ends, its last Interests go with it, and are not counted.
    eventually("the list says so", || {
        ping("20");
        is_degraded()
    });
    eventually("the log says so", || router.ask(&["events", "--area", "faces"]).contains("face degraded"));
    let metrics = http_get(&observer, "/metrics");
    let is_metric = |line: &str| line.starts_with("namewire_face_degraded{") && line.ends_with(" 1");
    assert!(metrics.lines().any(is_metric), "{metrics}");
    signal(Signal::CONT);
    eventually("it answers again", || {
        ping("100");
        !is_degraded()
    });
    eventually("the log says that, too", || router.ask(&["events", "--area", "faces"]).contains("face answers again"));
    let faces: Value = serde_json::from_str(&router.ask(&["face", "list", "--json"])).unwrap();
    let rates = |face: &Value| face["health"]["recent"]["out_packets_per_s"].as_f64().unwrap_or(0.0);
    assert!(faces.as_array().unwrap().iter().any(|face| rates(face) > 1.0), "{faces}");
    assert!(router.ask(&["face", "list"]).contains("OUT NOW"));
}
