//! `namewire traceroute` and `ping --forwarders` through four routers over UDP:
//!
//! ```text
//!   /r1 ── /r2 ── /r3 ── /r4 ── an application for /site/film
//!            └───────────┘
//! ```

use crate::router_process::{NAMEWIRE, Router, eventually, free_port, text};
use serde_json::Value;
use std::{
    io::Write,
    path::Path,
    process::{Child, Command, Output, Stdio},
};
use tempfile::TempDir;

/// Answers come at once; on a busy machine they may take long.
const TIMEOUT: &str = "20s";

struct Network {
    directory: TempDir,
    ports: Vec<u16>,
    routers: Vec<Router>,
}

impl Network {
    /// Routers in a row, each with a route for `/site` to the next; the settings of each are added.
    fn of(count: usize, settings: impl Fn(usize) -> Vec<String>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let ports: Vec<u16> = (0..count).map(|_| free_port()).collect();
        let start = |number: usize| {
            let mut sets = vec![
                format!("router.name=/r{}", number + 1),
                "faces.tcp.enabled=false".to_owned(),
                format!("faces.udp.listen=[\"127.0.0.1:{}\"]", ports[number]),
            ];
            sets.extend(settings(number));
            let socket = directory.path().join(format!("{number}.sock"));
            let mut command = Command::new(NAMEWIRE);
            command.arg("run").arg("--socket").arg(&socket);
            sets.iter().for_each(|set| {
                command.args(["--set", set]);
            });
            Router::start(&socket, &mut command)
        };
        let routers: Vec<Router> = (0..count).map(start).collect();
        let network = Network { directory, ports, routers };
        (1..count).for_each(|number| network.route(number, number + 1, "/site", 0));
        network
    }

    fn router(&self, number: usize) -> &Router {
        &self.routers[number - 1]
    }

    /// A route from one router to another, which count from 1.
    fn route(&self, from: usize, to: usize, prefix: &str, cost: u64) {
        let uri = format!("udp4://127.0.0.1:{}", self.ports[to - 1]);
        self.router(from).ask(&["route", "add", prefix, &uri, "--cost", &cost.to_string()]);
    }

    /// A producer of a file at a router.
    fn put(&self, number: usize, name: &str) -> Child {
        let file = self.directory.path().join("film");
        std::fs::write(&file, b"frames").unwrap();
        let mut command = self.router(number).command();
        let put = command.arg("put").arg(&file).arg(name).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        eventually("the route of the application", || self.router(number).ask(&["route", "list"]).contains(name));
        put
    }

    fn traceroute(&self, arguments: &[&str]) -> (Output, Value) {
        let mut command = self.router(1).command();
        let output = command.args(["traceroute", "--json", "--timeout", TIMEOUT]).args(arguments).output().unwrap();
        let found = serde_json::from_slice(&output.stdout);
        let found = found.unwrap_or_else(|error| panic!("{error}: {output:?}"));
        (output, found)
    }
}

/// The names of the routers on a way; `*` for one that does not answer.
fn routers(route: &Value) -> Vec<&str> {
    route["hops"].as_array().unwrap().iter().map(|hop| hop["answer"]["router"].as_str().unwrap_or("*")).collect()
}

fn ending(found: &Value) -> (&str, Option<&str>) {
    (found["ending"]["kind"].as_str().unwrap(), found["ending"]["router"].as_str())
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn each_hop_says_what_it_does_and_branches_are_followed() {
    let network = Network::of(4, |_| Vec::new());
    network.route(2, 4, "/site", 10);
    let put = network.put(4, "/site/film");
    let (output, found) = network.traceroute(&["/site/film/7"]);
    assert!(output.status.success(), "{output:?}");
    let routes = found["routes"].as_array().unwrap();
    assert_eq!(routes.len(), 2, "{found}");
    assert_eq!(routers(&routes[0]), ["/r1", "/r2", "/r3", "/r4"]);
    assert_eq!((routers(&routes[1]), &routes[1]["branch"]["router"]), (vec!["/r4"], &Value::from("/r2")));
    assert_eq!(ending(&found), ("application", Some("/r4")));
    let second = &routes[0]["hops"][1]["answer"];
    assert_eq!((&second["prefix"], &second["strategy"]), (&Value::from("/site"), &Value::from("best-route")));
    assert_eq!(second["next_hops"].as_array().unwrap().len(), 2);
    assert_eq!(second["next_hops"][0]["remote_uri"], Value::Null, "another host learns no addresses");
    let first = &routes[0]["hops"][0]["answer"];
    assert!(first["next_hops"][0]["remote_uri"].as_str().unwrap().starts_with("udp4://127.0.0.1:"));
    assert!(first["clock_ahead_ms"].as_i64().unwrap().abs() < 100_000, "it is the same clock");
    let takes_large: Vec<&Value> =
        routes[0]["hops"].as_array().unwrap().iter().map(|hop| &hop["takes_large"]).collect();
    assert_eq!(takes_large, [&Value::from(true); 4]);
    // For people.
    let shown = network.router(1).ask(&["traceroute", "/site/film", "--one-path", "--timeout", TIMEOUT]);
    assert!(shown.contains("an application at /r4 serves /site/film\n"), "{shown}");
    assert_eq!(shown.lines().count(), 5, "{shown}");
    end(put);
}

#[test]
fn the_end_of_the_way_is_named() {
    let network = Network::of(4, |_| Vec::new());
    let (output, found) = network.traceroute(&["/site/film"]);
    assert_eq!((ending(&found), output.status.code()), (("no-route", Some("/r4")), Some(3)));
    let (_, found) = network.traceroute(&["/r1"]);
    assert_eq!(ending(&found), ("forwarder", Some("/r1")));
    let (_, found) = network.traceroute(&["/elsewhere"]);
    assert_eq!((ending(&found), routers(&found["routes"][0])), (("no-route", Some("/r1")), vec!["/r1"]));

    // A circle.
    [(1, 2), (2, 3), (3, 1)].iter().for_each(|&(from, to)| network.route(from, to, "/round", 0));
    let (output, found) = network.traceroute(&["/round/1"]);
    assert_eq!((ending(&found), output.status.code()), (("loop", Some("/r1")), Some(1)));
    assert_eq!(routers(&found["routes"][0]), ["/r1", "/r2", "/r3", "/r1"]);

    // Stored Data: a ping gets there as well.
    let mut poke = network.router(4).command();
    let mut poke = poke.args(["poke", "/site/news", "--freshness", "3600000"]).stdin(Stdio::piped()).spawn().unwrap();
    poke.stdin.take().unwrap().write_all(b"news").unwrap();
    eventually("the route of the application", || network.router(4).ask(&["route", "list"]).contains("/site/news"));
    network.router(2).ask(&["peek", "/site/news", "-p"]);
    poke.wait().unwrap();
    let (_, found) = network.traceroute(&["/site/news"]);
    assert_eq!(ending(&found), ("stored", Some("/r2")));
    let ping = network.router(1).ask(&["ping", "--forwarders", "/site/news", "-c", "1", "--timeout", TIMEOUT]);
    assert!(ping.contains("answer from /r2") && ping.contains("in its Content Store"), "{ping}");
}

#[test]
fn a_ping_is_answered_by_the_forwarder_of_an_application_and_by_its_own_name() {
    let network = Network::of(3, |_| Vec::new());
    let put = network.put(3, "/site/film");
    let ping = |target: &str| network.router(1).ask(&["ping", "--forwarders", target, "-c", "1", "--timeout", TIMEOUT]);
    assert!(ping("/site/film/9").contains("answer from /r3: seq=0"), "the application is not asked");
    assert!(ping("/r1").contains("it is the target"));
    network.route(1, 2, "/r2", 0);
    assert!(ping("/r2").contains("answer from /r2"));
    let output = network.router(1).tool(&["ping", "--forwarders", "/nowhere", "-c", "1"]);
    assert_eq!(output.status.code(), Some(6), "{output:?}");
    end(put);
}

/// NFD and ndnd do not answer either.
#[test]
fn forwarders_that_do_not_answer_are_gaps() {
    let refuses = |number: usize| match number {
        1 => vec!["probes.answer=nobody".to_owned()],
        2 => vec!["probes.refuse=[\"127.0.0.0/8\"]".to_owned()],
        _ => Vec::new(),
    };
    let network = Network::of(4, refuses);
    let put = network.put(4, "/site/film");
    // Here a hop is silent only after its whole time-out.
    let output = network.router(1).tool(&["traceroute", "/site/film", "--json", "--timeout", "3s"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (ending(&found), routers(&found["routes"][0])),
        (("application", Some("/r4")), vec!["/r1", "*", "*", "/r4"])
    );
    let refused = network.router(3).ask(&["status"]);
    assert!(refused.contains("router.probe-refused"), "{refused}");
    end(put);
}

#[test]
fn who_asks_too_often_gets_no_answers() {
    let network = Network::of(2, |_| vec!["probes.rate=1".to_owned()]);
    let ping = network.router(1).tool(&["ping", "--forwarders", "/r1", "-c", "8", "-i", "1ms", "--timeout", "500ms"]);
    let shown = text(&ping.stdout);
    assert!(shown.contains("timeout for /r1") && shown.contains("answer from /r1"), "{shown}");
    assert!(network.router(1).ask(&["status"]).contains("router.probe-too-many"));
}

#[test]
fn a_router_without_a_name_has_that_of_its_host() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let output = router.tool(&["traceroute", "/a", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let name = text(&Command::new("uname").arg("-n").output().unwrap().stdout);
    assert_eq!(routers(&found["routes"][0]), [format!("/{}", name.trim())]);
    assert!(Path::new(&router.socket).exists());
}
