//! The observer over real sockets, with small limits.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::connections::Limits;
use crate::snapshot::{Face, FaceAbout, Route, Worker};
use crate::source::{Admitted, Place, SettingsInForce};
use crate::{ObserveConfig, Observer, ObserverHandle, Snapshot, Source, TraceNews, TraceReader};

const PATIENCE: Duration = Duration::from_secs(20);
const LIMITS: Limits = Limits { head_wait: Duration::from_millis(400), write_wait: Duration::from_millis(400) };
/// Places, by kind.
const CONNECTIONS: usize = 20;
const STREAMS: usize = 16;
const TRACES: usize = 2;

/// What a made-up router does.
#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Well,
    NoWorkers,
    Stopped,
    Hung,
    /// As `Well`, with so much to show that no socket buffer holds it.
    Huge,
}

/// A made-up router.
struct Router {
    mood: Mood,
    places: [Arc<Semaphore>; 3],
}

impl From<Mood> for Router {
    fn from(mood: Mood) -> Self {
        Router { mood, places: [CONNECTIONS, STREAMS, TRACES].map(|places| Arc::new(Semaphore::new(places))) }
    }
}

impl Source for Router {
    fn admit(&self, client: IpAddr, place: Place) -> Result<Admitted, String> {
        assert!(client.is_loopback());
        let taken = Arc::clone(&self.places[place as usize]).try_acquire_owned();
        Ok(Box::new(taken.map_err(|_| format!("There is no {place:?} left."))?))
    }

    async fn snapshot(&self) -> Option<Snapshot> {
        let workers = if self.mood == Mood::NoWorkers { 0 } else { 2 };
        match self.mood {
            Mood::Stopped => return None,
            Mood::Hung => std::future::pending().await,
            _ => (),
        }
        let routes = if self.mood == Mood::Huge { 200_000 } else { 1 };
        Some(Snapshot {
            version: "1.2.3".into(),
            workers: vec![Worker::default(); workers],
            faces: vec![Face { about: FaceAbout { id: 300, ..Default::default() }, ..Default::default() }],
            routes: vec![Route { prefix: "/a".repeat(50), ..Default::default() }; routes],
            ..Default::default()
        })
    }

    async fn settings(&self) -> Option<SettingsInForce> {
        let setting = json!({"key": "cs.policy", "value": "\"lru\"", "source": "command", "place": null});
        (self.mood != Mood::Stopped).then(|| SettingsInForce { settings: vec![setting], left_out: 0 })
    }

    async fn explain(&self, name: String) -> Result<Value, String> {
        if name == "/bad" { Err("no such thing".into()) } else { Ok(json!({ "name": name })) }
    }

    async fn trace(&self, prefix: String, one_in: u64) -> Result<Box<dyn TraceReader>, String> {
        if prefix == "/bad" {
            return Err("no such thing".into());
        }
        OPEN_TRACES.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(Made { prefix, one_in, looks: 0 }))
    }
}

static OPEN_TRACES: AtomicUsize = AtomicUsize::new(0);

/// A trace with one packet and one left out in each second look.
struct Made {
    prefix: String,
    one_in: u64,
    looks: u64,
}

impl TraceReader for Made {
    fn take(&mut self, _most: usize) -> TraceNews {
        self.looks += 1;
        if self.looks % 2 == 1 {
            return TraceNews::default();
        }
        let packet = json!({ "name": self.prefix, "one_in": self.one_in });
        TraceNews { packets: vec![packet], left_out: 1, is_over: self.prefix == "/short" }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        OPEN_TRACES.fetch_sub(1, Ordering::Relaxed);
    }
}

fn start(mood: Mood) -> ObserverHandle {
    let config =
        ObserveConfig { listen: vec!["127.0.0.1:0".parse().unwrap()], page: true, trace: true, peers: Vec::new() };
    Observer::bind_with(&config, LIMITS).unwrap().serve(Router::from(mood)).unwrap()
}

fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Sends bytes and returns everything until the server closes.
fn exchange(handle: &ObserverHandle, request: &[u8]) -> String {
    let mut socket = connect(handle.addresses()[0]);
    // The server may close before it has read all: then the answer still counts.
    let _ = socket.write_all(request);
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn ask(handle: &ObserverHandle, method: &str, target: &str, headers: &str) -> String {
    let head = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
    exchange(handle, head.as_bytes())
}

fn get(handle: &ObserverHandle, target: &str) -> String {
    ask(handle, "GET", target, "")
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("no status in {answer:?}"))
}

fn header<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let head = answer.split("\r\n\r\n").next()?;
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

#[test]
fn every_path_answers() {
    let handle = start(Mood::Well);
    for (target, content_type, part) in [
        ("/", "text/html; charset=utf-8", "<!doctype html>"),
        ("/metrics", "text/plain; version=0.0.4; charset=utf-8", "namewire_build_info{version=\"1.2.3\"} 1"),
        ("/status.json", "application/json", "\"version\":\"1.2.3\""),
        ("/routes.json", "application/json", "\"mark\":"),
        ("/settings.json", "application/json", "{\"settings\":[{\"key\":\"cs.policy\","),
        ("/history.json", "application/json", "\"points\":"),
        ("/healthz", "text/plain; charset=utf-8", "ok"),
        ("/readyz", "text/plain; charset=utf-8", "ready"),
        ("/explain?name=%2Fa%2Fb", "application/json", "{\"name\":\"/a/b\"}"),
        ("/summary.json", "application/json", "\"version\":\"1.2.3\""),
        ("/network.json", "application/json", "\"peer_count\":0"),
        ("/network/explain?name=%2Fa%2Fb", "application/json", "{\"name\":\"/a/b\""),
    ] {
        let answer = get(&handle, target);
        assert_eq!(status(&answer), 200, "{target}");
        assert_eq!(header(&answer, "content-type"), Some(content_type));
        assert!(body(&answer).contains(part), "{target}: {answer}");
    }
}

#[test]
fn every_answer_has_the_safe_headers() {
    let handle = start(Mood::Well);
    for target in ["/", "/metrics", "/nothing", "/events"] {
        let answer = ask(&handle, "HEAD", target, "");
        assert_eq!(header(&answer, "x-content-type-options"), Some("nosniff"), "{target}");
        assert_eq!(header(&answer, "referrer-policy"), Some("no-referrer"));
        assert_eq!(header(&answer, "cache-control"), Some("no-store"));
        let policy = header(&answer, "content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'sha256-") && !policy.contains("http"));
    }
}

#[test]
fn metrics_in_the_format_asked_for() {
    let handle = start(Mood::Well);
    let answer = ask(&handle, "GET", "/metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n");
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(header(&answer, "content-type"), Some(content_type));
    assert!(body(&answer).ends_with("# EOF\n"));
}

#[test]
fn status_has_the_snapshot_and_rates() {
    let handle = start(Mood::Well);
    let answer = get(&handle, "/status.json");
    let status: Value = serde_json::from_str(body(&answer)).unwrap();
    assert_eq!(status["faces"][0]["id"], 300);
    assert_eq!(status["rates"], json!({"window_ms": 0, "faces": []}));
    assert_eq!(status["routes"].as_array().unwrap().len(), 1);
}

#[test]
fn head_has_the_headers_of_get_and_no_body() {
    let handle = start(Mood::Well);
    let (head, get) = (ask(&handle, "HEAD", "/healthz", ""), get(&handle, "/healthz"));
    assert_eq!(header(&head, "content-length"), header(&get, "content-length"));
    assert_eq!((status(&head), body(&head), body(&get)), (200, "", "ok\n"));
}

#[test]
fn other_paths_methods_and_bodies_are_refused() {
    let handle = start(Mood::Well);
    assert_eq!(status(&get(&handle, "/nothing")), 404);
    assert_eq!(status(&get(&handle, "/../etc/passwd")), 404);
    let answer = ask(&handle, "POST", "/", "Content-Length: 3\r\n");
    assert_eq!((status(&answer), header(&answer, "allow")), (405, Some("GET, HEAD")));
    assert_eq!(status(&ask(&handle, "GET", "/", "Content-Length: 3\r\n")), 413);
    assert_eq!(status(&get(&handle, "/explain")), 400);
    assert_eq!(status(&get(&handle, "/network/explain")), 400);
    assert_eq!(status(&get(&handle, "/network/explain?name=nonsense://a")), 400);
    assert_eq!(status(&get(&handle, "/network.json/http://127.0.0.1:1")), 404);
    let answer = get(&handle, "/explain?name=/bad");
    assert_eq!((status(&answer), body(&answer)), (400, "no such thing\n"));
}

#[test]
fn a_foreign_host_is_refused_with_the_reason() {
    let handle = start(Mood::Well);
    let answer = exchange(&handle, b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    assert_eq!(status(&answer), 403);
    assert!(body(&answer).contains("DNS rebinding") && body(&answer).contains("127.0.0.1"));
}

#[test]
fn no_page_without_the_setting() {
    let config =
        ObserveConfig { listen: vec!["127.0.0.1:0".parse().unwrap()], page: false, ..ObserveConfig::default() };
    let handle = Observer::bind(&config).unwrap().serve(Router::from(Mood::Well)).unwrap();
    assert_eq!(header(&get(&handle, "/"), "content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(status(&get(&handle, "/events")), 404);
    assert_eq!(status(&get(&handle, "/metrics")), 200);
}

#[test]
fn health_follows_the_router() {
    let handle = start(Mood::NoWorkers);
    assert_eq!((status(&get(&handle, "/healthz")), status(&get(&handle, "/readyz"))), (200, 503));
    let handle = start(Mood::Stopped);
    for target in ["/healthz", "/readyz", "/metrics", "/status.json", "/settings.json"] {
        let answer = get(&handle, target);
        assert_eq!((status(&answer), body(&answer)), (503, "The router has stopped.\n"), "{target}");
    }
    let handle = start(Mood::Hung);
    let asked = Instant::now();
    assert_eq!(status(&get(&handle, "/healthz")), 503);
    assert!(asked.elapsed() < Duration::from_secs(4), "{:?}", asked.elapsed());
}

/// Reads lines of a stream until `count` of them start with `start`.
fn lines(stream: TcpStream, start: &str, count: usize) -> Vec<String> {
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.filter(|line| line.starts_with(start)).take(count).collect()
}

#[test]
fn a_stream_has_an_event_per_second() {
    let handle = start(Mood::Well);
    let mut socket = connect(handle.addresses()[0]);
    socket.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let events = lines(socket, "data: ", 3);
    let times = events.len();
    for event in events {
        let event: Value = serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!((&event["face_count"], &event["faces"][0]["id"]), (&json!(1), &json!(300)));
        assert!(event.get("routes").is_none() && event["routes_mark"].is_string());
    }
    assert_eq!(times, 3);
}

#[test]
fn a_stream_says_that_the_router_stopped() {
    let handle = start(Mood::Stopped);
    let mut socket = connect(handle.addresses()[0]);
    socket.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    assert_eq!(lines(socket, "event: trouble", 1).len(), 1);
}

#[test]
fn streams_are_limited() {
    let handle = start(Mood::Well);
    let open = || {
        let mut socket = connect(handle.addresses()[0]);
        socket.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut first = [0; 12];
        socket.read_exact(&mut first).unwrap();
        (socket, String::from_utf8_lossy(&first).into_owned())
    };
    let streams: Vec<_> = (0..STREAMS).map(|_| open()).collect();
    assert!(streams.iter().all(|(_, first)| first == "HTTP/1.1 200"));
    assert_eq!(open().1, "HTTP/1.1 503");
    drop(streams);
    let deadline = Instant::now() + PATIENCE;
    while open().1 != "HTTP/1.1 200" {
        assert!(Instant::now() < deadline, "a closed stream keeps its place");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn connections_are_limited() {
    let handle = start(Mood::Well);
    let keep = || {
        let mut socket = connect(handle.addresses()[0]);
        socket.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        socket
    };
    let mut kept: Vec<_> = (0..STREAMS).map(|_| keep()).collect();
    for socket in &mut kept {
        socket.read_exact(&mut [0; 12]).unwrap();
    }
    let silent: Vec<_> = (STREAMS..CONNECTIONS).map(|_| connect(handle.addresses()[0])).collect();
    let answer = get(&handle, "/healthz");
    assert_eq!((status(&answer), body(&answer)), (503, "There is no Connection left.\n"));
    assert_eq!((header(&answer, "retry-after"), header(&answer, "connection")), (Some("5"), Some("close")));
    drop(silent);
    let deadline = Instant::now() + PATIENCE;
    while status(&get(&handle, "/healthz")) != 200 {
        assert!(Instant::now() < deadline, "a closed connection keeps its place");
    }
}

/// The story: the socket was closed with the request unread, which resets the connection. The client saw the reset, or
/// the answer, by chance.
#[test]
fn a_refused_client_is_answered_and_never_reset() {
    let handle = start(Mood::Well);
    let _silent: Vec<_> = (0..CONNECTIONS).map(|_| connect(handle.addresses()[0])).collect();
    // They are accepted in order, so from here on there is no place, until heads are late.
    for _ in 0..20 {
        let mut socket = connect(handle.addresses()[0]);
        let request = format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(4000));
        socket.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("an end without a reset");
        assert!(status(&answer) == 503 || status(&answer) == 200, "{answer}");
    }
}

#[test]
fn large_and_slow_heads_end_their_connection() {
    let handle = start(Mood::Well);
    let answer = ask(&handle, "GET", "/healthz", &format!("X: {}\r\n", "x".repeat(9000)));
    assert_eq!(status(&answer), 431);
    let answer = get(&handle, &format!("/explain?name=/{}", "x".repeat(9000)));
    assert!(matches!(status(&answer), 414 | 431), "{answer}");
    let asked = Instant::now();
    for part in ["", "GET / HTTP/1.1\r\nHost: loc"] {
        exchange(&handle, part.as_bytes());
    }
    assert!(asked.elapsed() < PATIENCE, "both ended long before the client lost patience");
}

#[test]
fn silence_between_requests_ends_the_connection() {
    let handle = start(Mood::Well);
    let answer = exchange(&handle, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(status(&answer), 200);
}

#[test]
fn a_client_that_takes_nothing_loses_its_connection() {
    let handle = start(Mood::Huge);
    let mut socket = connect(handle.addresses()[0]);
    socket.write_all(b"GET /routes.json HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut first = [0; 12];
    socket.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    std::thread::sleep(LIMITS.write_wait * 5);
    let mut rest = Vec::new();
    let _ = socket.read_to_end(&mut rest);
    assert!(rest.len() < 20_000_000, "the whole answer came: {} bytes", rest.len());
    assert_eq!(status(&get(&handle, "/healthz")), 200);
}

#[test]
fn an_address_in_use_is_named() {
    let handle = start(Mood::Well);
    let config = ObserveConfig { listen: vec![handle.addresses()[0]], ..ObserveConfig::default() };
    let error = Observer::bind(&config).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&handle.addresses()[0].to_string()), "{error}");
}

#[test]
fn a_dropped_handle_ends_the_server_and_its_streams() {
    let handle = start(Mood::Well);
    let mut socket = connect(handle.addresses()[0]);
    socket.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    socket.read_exact(&mut [0; 12]).unwrap();
    let address = handle.addresses()[0];
    drop(handle);
    let _ = socket.read_to_end(&mut Vec::new());
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn any_bytes_leave_the_server_alive() {
    let handle = start(Mood::Well);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(150));
    let target = prop_oneof![
        "/[ -~]{0,40}",
        "[ -~]{0,40}",
        "/explain\\?name=[%a-fA-F0-9/&=+]{0,30}",
        "(/metrics|/status.json|/events)[?#/%;]{0,3}",
    ];
    let tried = runner.run(&target, |target| {
        let answer = ask(&handle, "HEAD", &target, "");
        prop_assert!(answer.starts_with("HTTP/1."), "{answer:?}");
        prop_assert!((200..=414).contains(&status(&answer)), "{answer}");
        Ok(())
    });
    tried.unwrap();
    let tried = runner.run(&proptest::collection::vec(any::<u8>(), 0..200), |bytes| {
        exchange(&handle, &[&bytes[..], b"\r\n\r\n"].concat());
        Ok(())
    });
    tried.unwrap();
    assert_eq!(status(&get(&handle, "/healthz")), 200);
}

#[test]
fn a_trace_is_a_stream_that_ends_with_its_client() {
    let handle = start(Mood::Well);
    let answer = get(&handle, "/trace?prefix=%2Fshort&sample=10");
    assert_eq!((status(&answer), header(&answer, "content-type")), (200, Some("text/event-stream")));
    let event = "data: {\"left_out\":1,\"packets\":[{\"name\":\"/short\",\"one_in\":10}]}\n\n";
    assert!(body(&answer).contains(event), "{answer}");
    let open: Vec<TcpStream> = (0..2)
        .map(|_| {
            let mut socket = connect(handle.addresses()[0]);
            socket.write_all(b"GET /trace?prefix=/a HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            let mut line = String::new();
            BufReader::new(&socket).read_line(&mut line).unwrap();
            assert!(line.contains("200"), "{line}");
            socket
        })
        .collect();
    assert_eq!((status(&get(&handle, "/trace?prefix=/a")), OPEN_TRACES.load(Ordering::Relaxed)), (503, 2));
    drop(open);
    let end = Instant::now() + PATIENCE;
    while OPEN_TRACES.load(Ordering::Relaxed) > 0 {
        assert!(Instant::now() < end, "a trace outlives its client");
        std::thread::sleep(Duration::from_millis(10));
    }
    for (target, code) in [
        ("/trace", 400),
        ("/trace?prefix=", 400),
        ("/trace?prefix=/a&sample=0", 400),
        ("/trace?prefix=/a&sample=x", 400),
        ("/trace?prefix=%ff", 400),
        ("/trace?prefix=/bad", 400),
    ] {
        assert_eq!(status(&get(&handle, target)), code, "{target}");
    }
}

#[test]
fn traces_are_refused_unless_the_administrator_allows_them() {
    let config = ObserveConfig { listen: vec!["127.0.0.1:0".parse().unwrap()], ..ObserveConfig::default() };
    let handle = Observer::bind_with(&config, LIMITS).unwrap().serve(Router::from(Mood::Well)).unwrap();
    let answer = get(&handle, "/trace?prefix=/a");
    assert_eq!(status(&answer), 403);
    assert!(body(&answer).contains("observe.trace = true"), "{answer}");
}
