//! The messages of the program when something is not as the user expected, and the forms of quantities: the real
//! binary.

use crate::router_process::{NAMEWIRE, Router, eventually, free_port, http_get, run_command, text, text_of_failure};
use serde_json::Value;
use std::{net::TcpListener, process::Command};

fn failure(router: &Router, arguments: &[&str]) -> (Option<i32>, String) {
    let output = router.tool(arguments);
    (output.status.code(), text_of_failure(&output))
}

fn json(router: &Router, arguments: &[&str]) -> Value {
    serde_json::from_str(&router.ask(&[arguments, &["--json"]].concat())).unwrap()
}

#[test]
fn an_unknown_scheme_is_answered_with_those_that_exist() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let (code, message) = failure(&router, &["face", "create", "http://x"]);
    assert!(code == Some(2) && message.contains("there are udp, tcp, ws, wss, ether"), "{message}");
    let (_, message) = failure(&router, &["face", "create", "unix:///a"]);
    assert!(message.contains("no face of scheme unix; new faces have udp, tcp"), "{message}");
}

#[test]
fn a_misspelt_strategy_is_answered_with_the_one_that_was_meant() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let (code, message) = failure(&router, &["strategy", "set", "/", "asff"]);
    assert!(code == Some(1) && message.trim_end().ends_with("; did you mean asf?"), "{message}");
}

/// The story: the message blamed the user's own forwarder.
#[test]
fn a_neighbour_that_refuses_the_connection_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let uri = format!("tcp4://127.0.0.1:{}", free_port());
    for command in [&["route", "add", "/", &uri][..], &["face", "create", &uri]] {
        let (code, message) = failure(&router, command);
        assert_eq!(code, Some(1));
        assert!(message.contains(&format!("{uri} refused the connection of the forwarder")), "{message}");
    }
}

#[test]
fn times_are_typed_with_their_unit_or_as_before() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &["--set", "router.busy_poll=0", "--set", "tables.max_lifetime=1h"]);
    router.ask(&["face", "create", "udp4://127.0.0.1:9"]);
    for (prefix, expires) in [("/a", "1h"), ("/b", "3600000")] {
        router.ask(&["route", "add", prefix, "udp4://127.0.0.1:9", "--expires", expires]);
        let routes = json(&router, &["route", "list", "--under", prefix]);
        let left_ms = routes[0]["expires_ms"].as_u64().unwrap();
        assert!((3_000_000..=3_600_000).contains(&left_ms), "{expires}: {left_ms}");
    }
    let (code, message) = failure(&router, &["peek", "/a", "--lifetime", "5 parsecs"]);
    assert!(code == Some(2) && message.contains("is not a time span"), "{message}");
}

/// The story: a capacity was bytes for `run` and in the configuration, and packets for `cs config`.
#[test]
fn the_capacity_of_the_content_store_is_bytes_everywhere() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &["--set", "cs.packets=1000"]);
    let info = |router: &Router| {
        let info = json(router, &["cs", "info"]);
        (info["usage"]["capacity_bytes"].as_u64().unwrap(), info["capacity_packets"].as_u64().unwrap())
    };
    assert_eq!(info(&router), (64 << 20, 1000));
    let done = router.ask(&["cs", "config", "--capacity", "8 MiB", "--packets", "500"]);
    assert!(done.contains("capacity 8.0 MiB, at most 500 packets"), "{done}");
    router.ask(&["cs", "config", "--packets", "400"]);
    eventually("the packets change", || info(&router) == (8 << 20, 400));
    let done = router.ask(&["cs", "config", "--capacity", "4MiB"]);
    assert!(done.contains("capacity 4.0 MiB, any number of packets"), "{done}");
    eventually("the bytes change", || info(&router).0 == 4 << 20);
    let (code, message) = failure(&router, &["cs", "config", "--capacity", "1000"]);
    assert!(code == Some(2) && message.contains("--packets takes a number of packets"), "{message}");
}

#[test]
fn a_command_over_udp_says_that_commands_are_taken_on_the_machine_itself_only() {
    let directory = tempfile::tempdir().unwrap();
    let port = free_port();
    let socket = directory.path().join("nfd.sock");
    let listen = format!("127.0.0.1:{port}");
    let mut command = Command::new(NAMEWIRE);
    command.args(["run", "--no-tcp", "--listen-udp", &listen, "--socket"]).arg(&socket);
    let _router = Router::start(&socket, &mut command);
    let over_udp = format!("udp://127.0.0.1:{port}");
    let output = Command::new(NAMEWIRE).args(["--transport", &over_udp, "strategy", "unset", "/a"]).output().unwrap();
    let message = text_of_failure(&output);
    assert!(output.status.code() == Some(5) && message.contains("on its own machine only"), "{message}");
}

#[test]
fn an_observer_for_other_machines_warns_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &["--observe", "0.0.0.0:0"]);
    router.wait_for(&["warn", "0.0.0.0:0", "no login"]);
    let file = directory.path().join("namewire.toml");
    std::fs::write(&file, "[observe]\nlisten = [\"[::]:9695\"]\n").unwrap();
    let checked = crate::router_process::namewire(&["config", "check", file.to_str().unwrap()]);
    assert!(
        text(&checked.stderr).contains("no login") && text(&checked.stdout).contains("with 1 warning"),
        "{checked:?}"
    );
}

/// The story: another forwarder had port 6363, and only the log said that this one did not listen there.
#[test]
fn a_default_listener_that_is_taken_is_told_where_the_router_starts() {
    let directory = tempfile::tempdir().unwrap();
    // If this fails, another program has the port, which is as good.
    let _taken = TcpListener::bind("0.0.0.0:6363");
    let socket = directory.path().join("nfd.sock");
    let mut command = Command::new(NAMEWIRE);
    command.args(["run", "--no-udp", "--log", "off", "--socket"]).arg(&socket);
    let mut process = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(process.stdout.take().unwrap()));
    let told = lines.by_ref().map_while(Result::ok).find(|line| line.starts_with("not listening on"));
    process.kill().unwrap();
    process.wait().unwrap();
    let told = told.expect("a line");
    assert!(told.contains("tcp4://0.0.0.0:6363: another program"), "{told}");
}

/// The value and the origin of a setting of the running router.
fn in_force(router: &Router, key: &str) -> (String, String) {
    value_and_origin(&json(router, &["config", "show", "--running"]), key)
}

fn value_and_origin(settings: &Value, key: &str) -> (String, String) {
    let setting = settings.as_array().unwrap().iter().find(|setting| setting["key"] == key);
    let Some(setting) = setting else { return Default::default() };
    let word = |name: &str| setting[name].as_str().unwrap_or_default().to_owned();
    (word("value"), format!("{} {}", word("source"), word("place")).trim_end().to_owned())
}

#[test]
fn the_settings_in_force_are_shown_with_where_they_came_from() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("namewire.toml");
    let text = "[router]\nworkers = 2\n[cs]\npolicy = \"lru\"\n[log]\nlevel = \"error\"\n[[strategy]]\nprefix = \"/a\"\n\
                strategy = \"asf\"\n";
    std::fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    let router = Router::run(directory.path(), &["--config", path, "--set", "tables.pit_capacity=1000"]);
    let is = |key: &str, value: &str, origin: &str| {
        let found = in_force(&router, key);
        assert_eq!((found.0.as_str(), found.1.as_str()), (value, origin), "{key}");
    };
    is("router.workers", "2", &format!("file {path}:2"));
    is("cs.policy", "\"lru\"", &format!("file {path}:4"));
    is("tables.pit_capacity", "1000", "option --set");
    is("cs.capacity", "\"64 MiB\"", "default");
    is("faces.udp.enabled", "false", "option --no-udp");
    is("log.areas.faces", "\"error\"", &format!("file {path}:6"));
    is("strategy./a", "\"/localhost/nfd/strategy/asf/v=5\"", &format!("file {path}:7"));
    is("strategy./", "\"/localhost/nfd/strategy/best-route/v=5\"", "default");
    router.ask(&["cs", "config", "--policy", "fifo", "--capacity", "1MiB", "--packets", "77"]);
    router.ask(&["log", "set", "error,faces=warn"]);
    router.ask(&["strategy", "set", "/a", "multicast"]);
    is("cs.policy", "\"fifo\"", "command");
    is("cs.capacity", "\"1 MiB\"", "command");
    is("cs.packets", "77", "command");
    is("log.areas.faces", "\"warn\"", "command");
    is("log.areas.trust", "\"error\"", &format!("file {path}:6"));
    is("strategy./a", "\"/localhost/nfd/strategy/multicast/v=5\"", "command");
    // A reload takes over what it can; the number of workers stays.
    std::fs::write(&file, "[router]\n# one more\nworkers = 3\n[cs]\nadmit = false\npolicy = \"lru\"\n").unwrap();
    router.signal("-HUP");
    eventually("the file is read again", || in_force(&router, "cs.admit").0 == "false");
    is("cs.admit", "false", &format!("file {path}:5"));
    is("router.workers", "2", &format!("file {path}:2"));
    is("cs.policy", "\"fifo\"", "command");
    let shown = router.ask(&["config", "show", "--running"]);
    let line = shown.lines().find(|line| line.starts_with("router.workers ")).unwrap();
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["router.workers", "2", &format!("{path}:2")]);
}

/// What the page shows is what the command prints, also after a command and a reload.
#[test]
fn the_page_shows_the_settings_in_force() {
    let (directory, observer) = (tempfile::tempdir().unwrap(), format!("127.0.0.1:{}", free_port()));
    let file = directory.path().join("namewire.toml");
    let text = "[cs]\npolicy = \"lru\"\n[repo]\nredis = [\"redis://me:secret@127.0.0.1:6379\"]\n";
    std::fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    let router = Router::run(
        directory.path(),
        &[
            "--config",
            path,
            "--observe",
            &observer,
            "--set",
            "tables.pit_capacity=1000",
            "--set",
            "router.seed=20260731",
        ],
    );
    let shown = || serde_json::from_str::<Value>(&http_get(&observer, "/settings.json")).unwrap();
    let is = |key: &str, value: &str, origin: &str| {
        let found = value_and_origin(&shown()["settings"], key);
        (found.0.as_str(), found.1.as_str()) == (value, origin)
    };
    assert!(is("cs.policy", "\"lru\"", &format!("file {path}:2")), "{}", shown());
    assert!(is("tables.pit_capacity", "1000", "option --set"), "{}", shown());
    assert!(is("cs.capacity", "\"64 MiB\"", "default"), "{}", shown());
    assert!(is("repo.redis", "[\"redis://127.0.0.1:6379\"]", &format!("file {path}:4")), "{}", shown());
    assert!(is("router.seed", "\"hidden\"", "option --set"), "{}", shown());
    router.ask(&["cs", "config", "--policy", "fifo"]);
    router.ask(&["strategy", "set", "/a", "multicast"]);
    eventually("the page follows a command", || is("cs.policy", "\"fifo\"", "command"));
    let multicast = "\"/localhost/nfd/strategy/multicast/v=5\"";
    eventually("and a strategy", || is("strategy./a", multicast, "command"));
    std::fs::write(&file, "[cs]\n\nadmit = false\npolicy = \"lru\"\n").unwrap();
    router.signal("-HUP");
    eventually("the page follows a reload", || is("cs.admit", "false", &format!("file {path}:3")));
    eventually("it is what the command prints", || {
        shown() == serde_json::json!({"settings": json(&router, &["config", "show", "--running"]), "left_out": 0})
    });
    assert!(!shown().to_string().contains("secret"), "{}", shown());
}

#[test]
fn only_a_router_shows_what_runs() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("none.sock");
    let uri = format!("unix://{}", socket.display());
    let output = crate::router_process::namewire(&["--transport", &uri, "config", "show", "--running"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(run_command(&socket).args(["--running"]).output().unwrap().status.code() == Some(2));
}
