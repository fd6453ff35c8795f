//! Several routers at once: three in a row, the commands that show all of them, and the peers of one's observer.
//!
//! ```text
//!   west ── mid ── east, which has a producer of /net
//! ```

use crate::{
    router_process::{NAMEWIRE, Router, eventually, free_port, http_get, text},
    terminal::Terminal,
};
use serde_json::Value;
use std::{
    path::Path,
    process::{Child, Command, Stdio},
};

/// The routers, by name. Sorted by name, they are in no order of the path.
struct Row {
    home: tempfile::TempDir,
    _west: Router,
    _mid: Router,
    east: Option<Router>,
    /// Observers of west and east. Mid has none.
    observers: [String; 2],
    udp: [u16; 3],
}

fn router(home: &Path, name: &str, port: u16, arguments: &[&str]) -> Router {
    let folder = home.join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let socket = folder.join("nfd.sock");
    let mut command = Command::new(NAMEWIRE);
    let listen = format!("127.0.0.1:{port}");
    command.args(["run", "--no-tcp", "--listen-udp", &listen, "--socket"]).arg(&socket).args(arguments);
    Router::start(&socket, &mut command)
}

fn east(home: &Path, port: u16, observer: &str) -> Router {
    router(home, "east", port, &["--observe", observer])
}

impl Row {
    fn new(peers: impl Fn(&[String; 2]) -> String) -> Row {
        let home = tempfile::tempdir().unwrap();
        let udp = [free_port(), free_port(), free_port()];
        let observers = [format!("127.0.0.1:{}", free_port()), format!("127.0.0.1:{}", free_port())];
        let to = |port: u16| format!("/net=udp4://127.0.0.1:{port}");
        let (to_mid, to_east) = (to(udp[1]), to(udp[2]));
        let peers = format!("observe.peers={}", peers(&observers));
        let row = Row {
            _west: router(
                home.path(),
                "west",
                udp[0],
                &["--observe", &observers[0], "--route", &to_mid, "--set", &peers],
            ),
            _mid: router(home.path(), "mid", udp[1], &["--route", &to_east]),
            east: Some(east(home.path(), udp[2], &observers[1])),
            home,
            observers,
            udp,
        };
        let place = |name: &str| format!("unix://{}", row.home.path().join(name).join("nfd.sock").display());
        let [of_west, of_east] = &row.observers;
        row.ask(&["router", "add", "west", &place("west"), "--observer", &format!("http://{of_west}")]);
        row.ask(&["router", "add", "mid", &place("mid")]);
        row.ask(&["router", "add", "east", &place("east"), "--observer", &format!("http://{of_east}")]);
        row
    }

    fn command(&self) -> Command {
        let mut command = Command::new(NAMEWIRE);
        command.env("HOME", self.home.path()).env_remove("NAMEWIRE_ROUTER").env_remove("XDG_CONFIG_HOME");
        command.env_remove("NAMEWIRE_ROUTERS").env_remove("NDN_CLIENT_TRANSPORT");
        command
    }

    fn ask(&self, arguments: &[&str]) -> String {
        let output = self.command().args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// A producer at east, once it is reached from west. So each router has a face for each link.
    fn producer(&self) -> Child {
        let mut server = self.command();
        server.args(["--router", "east", "pingserver", "/net"]);
        let server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        eventually("a ping arrives", || {
            let ping = ["--router", "west", "ping", "/net", "-c", "1"];
            self.command().args(ping).output().unwrap().status.success()
        });
        server
    }

    fn explain(&self) -> String {
        self.ask(&["explain", "--all", "/net/ping/film"])
    }
}

/// Asks until the routers do this. One that is slow is unknown for that long.
fn explained(row: &Row, expected: [&str; 3]) -> String {
    let mut explained = String::new();
    eventually(&format!("{expected:?}"), || {
        explained = row.explain();
        eprintln!("{explained}");
        steps(&explained) == expected
    });
    explained
}

/// For each router, what it does: `west forwards`.
fn steps(explanation: &str) -> Vec<String> {
    let lines = explanation.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let words = |line: &str| {
        let (name, rest) = line.trim().split_once(' ').unwrap();
        format!("{name} {}", rest.split(':').next().unwrap().trim())
    };
    lines.map(words).collect()
}

#[test]
fn explain_all_follows_the_path_and_names_who_drops() {
    let mut row = Row::new(|_| "[]".to_owned());
    let mut producer = row.producer();
    let text = explained(&row, ["west forwards", "mid forwards", "east to an application"]);
    assert!(text.contains("/net/ping/film\nAn application answers at east.\n"), "{text}");
    assert!(text.contains("→ mid, by face ") && text.contains("→ east, by face "), "{text}");

    producer.kill().unwrap();
    producer.wait().unwrap();
    eventually("the route of the producer is gone", || {
        !row.ask(&["--router", "east", "route", "list"]).contains("/net")
    });
    let failed = row.command().args(["--router", "west", "peek", "/net/ping/film"]).output().unwrap();
    assert!(!failed.status.success());
    let text = explained(&row, ["west forwards", "mid forwards", "east DROPS"]);
    assert!(text.contains("\nDropped at east, where mid sends it: no route covers the name"), "{text}");
    // An observer's copy of the state may be a quarter of a second old.
    eventually("the drop is shown", || row.explain().contains("dropped lately under this name: "));
    let fate: Value = serde_json::from_str(&row.ask(&["explain", "--all", "/net/ping/film", "--json"])).unwrap();
    assert_eq!(fate["steps"][2]["kind"], "dropped");
    assert_eq!(fate["steps"][2]["lately"][0]["reason"], "engine.no-route", "{fate}");

    // Mid sends it back.
    let back = format!("udp4://127.0.0.1:{}", row.udp[0]);
    row.ask(&["--router", "mid", "route", "add", "/net/ping/film", &back, "--capture"]);
    eventually("a circle", || row.explain().contains("It runs in a circle: "));

    drop(row.east.take());
    row.ask(&["--router", "mid", "route", "remove", "/net/ping/film", &back]);
    explained(&row, ["west forwards", "mid leaves the list", "east unknown"]);
}

#[test]
fn top_all_shows_each_router_and_its_worst_finding() {
    let mut row = Row::new(|_| "[]".to_owned());
    let mut producer = row.producer();
    let mut terminal = Terminal::of_width(150, row.command().args(["top", "--all", "--interval", "200"]));
    let of = |lines: &[String], name: &str| {
        let line = lines.iter().find(|line| line.get(2..).is_some_and(|rest| rest.starts_with(name)))?;
        Some(line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    };
    terminal.wait_for("three routers that are well", |lines| {
        let is_well = |name| of(lines, name).is_some_and(|cells| cells.iter().any(|cell| cell == "well"));
        lines[0] == "3 routers: 3 well" && ["west", "mid", "east"].into_iter().all(is_well)
    });
    assert!(terminal.has_alternate_screen());

    let mut load = row.command();
    load.args(["--router", "west", "traffic", "send", "/nowhere", "--rate", "200", "--duration", "600"]);
    let mut load = load.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    terminal.wait_for("what west drops, and that it is the first", |lines| {
        lines[2].contains("west") && lines[2].contains("warning") && lines[2].contains("packets/s: engine.no-route")
    });
    load.kill().unwrap();
    load.wait().unwrap();
    drop(row.east.take());
    terminal.wait_for("that east is away, before what is less bad", |lines| {
        lines[2].contains("east") && lines[2].contains("unknown") && lines[2].contains("cannot be reached")
    });

    // More of one: by the keys, whatever is selected.
    terminal.press("s");
    terminal.wait_for("the order by name", |lines| lines.last().is_some_and(|line| line.contains("sort: name")));
    terminal.press("\u{1b}[F\r");
    let lines = terminal.wait_for("west", |lines| lines[0].starts_with("west: "));
    assert!(lines[0].ends_with(&row.observers[0]), "{lines:#?}");
    terminal.wait_for("the face to mid", |lines| {
        lines.iter().any(|line| line.contains(&format!("udp4://127.0.0.1:{}", row.udp[1])) && line.contains(" mid "))
    });
    terminal.press("\u{1b}");
    terminal.wait_for("the list", |lines| lines[0].starts_with("3 routers"));
    terminal.press("q");
    assert_eq!(terminal.wait_for_end().code(), Some(0));
    assert!(terminal.is_restored());
    producer.kill().unwrap();
    producer.wait().unwrap();
}

#[test]
fn an_observer_shows_the_peers_that_its_operator_names_and_no_others() {
    let mut row = Row::new(|observers| format!(r#"["east=http://{}"]"#, observers[1]));
    let mut producer = row.producer();
    let west = row.observers[0].clone();
    let network = || -> Value { serde_json::from_str(&http_get(&west, "/network.json")).unwrap() };
    let shown = network();
    let names: Vec<&str> = shown["routers"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["this router", "east"], "{shown}");
    assert_eq!(shown["links"], serde_json::json!([]), "mid is between them, and was not named");
    let fate: Value = serde_json::from_str(&http_get(&west, "/network/explain?name=/net/ping/film")).unwrap();
    assert_eq!((&fate["steps"][0]["kind"], &fate["steps"][1]["kind"]), (&"leaves".into(), &"application".into()));
    let metrics = http_get(&west, "/metrics");
    assert!(metrics.contains("namewire_peer_requests_total{peer=\"east\",outcome=\"answered\"}"), "{metrics}");

    drop(row.east.take());
    eventually("its absence is said", || network()["routers"][1]["problem"]["reason"] == "unreachable");
    // It comes back at the same place, and is seen again.
    row.east = Some(east(row.home.path(), row.udp[2], &row.observers[1]));
    eventually("it is back", || network()["routers"][1]["problem"].is_null());
    producer.kill().unwrap();
    producer.wait().unwrap();
    let settings = row.ask(&["--router", "west", "config", "show", "--running"]);
    assert!(settings.contains("observe.peers") && settings.contains("east=http://"), "{settings}");
}

#[test]
fn peers_that_make_no_sense_are_refused() {
    for (peers, word) in [
        (r#"["https://a:1"]"#, "TLS"),
        (r#"["http://a:1/status.json"]"#, "http://HOST:PORT"),
        (r#"["a=http://a:1", "a=http://b:1"]"#, "two entries"),
        (r#"["a=http://a:1", "b=http://a:1"]"#, "two entries"),
    ] {
        let output = Command::new(NAMEWIRE).args(["run", "--set", &format!("observe.peers={peers}")]).output().unwrap();
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(word), "{peers}: {said}");
    }
    let none = tempfile::tempdir().unwrap();
    let all = Command::new(NAMEWIRE).env("HOME", none.path()).args(["explain", "--all", "/a"]).output().unwrap();
    assert_eq!(all.status.code(), Some(2), "{all:?}");
    assert!(text(&all.stderr).contains("namewire router add"), "{all:?}");
}
