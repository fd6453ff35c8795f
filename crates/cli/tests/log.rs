//! The router's log, of a real process: its lines on standard error and in `namewire events`, and changes of levels.

use crate::router_process::{NAMEWIRE, Router, eventually, namewire_of, run_command, text, text_of_failure};
use std::{
    fs,
    net::{Ipv4Addr, TcpListener, UdpSocket},
    process::{Command, Stdio},
};

/// The lines of `namewire events` with these options.
fn events(router: &Router, options: &[&str]) -> Vec<String> {
    let options: Vec<&str> = ["events"].iter().chain(options).copied().collect();
    router.ask(&options).lines().map(str::to_owned).collect()
}

/// Waits for a line of `namewire events` with all these words.
fn wait_for_event(router: &Router, words: &[&str]) {
    eventually(&format!("an event with {words:?}"), || {
        events(router, &[]).iter().any(|line| words.iter().all(|word| line.contains(word)))
    });
}

#[test]
fn what_an_operator_asks_about_has_a_line() {
    let directory = tempfile::tempdir().unwrap();
    let mut router = Router::run(directory.path(), &[]);
    router.wait_for(&["info  management: router started", "version="]);
    let socket = format!("unix={}", router.socket.display());
    router.wait_for(&["info  faces: listening", &socket]);

    let peer = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let uri = format!("udp4://{}", peer.local_addr().unwrap());
    router.ask(&["route", "add", "/a/b", &uri, "--cost", "7"]);
    let face = format!("face={}", router.face(&uri).unwrap());
    let remote = format!("remote={uri}");
    router.wait_for(&["info  faces: face up", &face, &remote, "persistency=permanent"]);
    let uid = format!("uid {}", rustix::process::getuid().as_raw());
    router.wait_for(&["info  routes: route added", "prefix=/a/b", &face, "origin=static", "cost=7", &uid]);
    router.ask(&["route", "remove", "/a/b", &uri]);
    router.wait_for(&["info  routes: route removed", "prefix=/a/b", &face, &uid]);
    router.ask(&["route", "add", "/short", &uri, "--expires", "1"]);
    router.wait_for(&["info  routes: route expired", "prefix=/short"]);
    router.ask(&["strategy", "set", "/a", "multicast"]);
    router.wait_for(&["info  strategy: strategy set", "prefix=/a", "/localhost/nfd/strategy/multicast/"]);
    router.ask(&["strategy", "unset", "/a"]);
    router.wait_for(&["info  strategy: strategy unset", "prefix=/a"]);
    text_of_failure(&router.tool(&["strategy", "set", "/a", "teleport"]));
    let refused = ["info  management: command refused", "command=strategy-choice/set", "about=/a", "code=404"];
    router.wait_for(&refused);
    router.ask(&["face", "destroy", &uri]);
    router.wait_for(&["info  faces: face closed", &face, &remote, "why=\"by command\""]);

    text_of_failure(&router.tool(&["peek", "/no/route", "--timeout", "1000"]));
    router.wait_for(&["info  drops: dropped or refused", "reason=engine.no-route", "count=1", "total=1"]);

    // The same lines, without the journal. They have dates, and the lines of standard error the time.
    let all = events(&router, &[]);
    for words in ["route added prefix=/a/b", "strategy set prefix=/a", "why=\"by command\"", "reason=engine.no-route"] {
        assert!(all.iter().any(|line| line.contains(words)), "{words}: {all:#?}");
    }
    let of_area = events(&router, &["--area", "routes,drops", "-n", "2"]);
    let is_of_area = |line: &String| line.contains("Z info  routes: ") || line.contains("Z info  drops: ");
    assert!(of_area.len() == 2 && of_area.iter().all(is_of_area), "{of_area:?}");
    router.terminate();
    router.wait_for(&["info  management: router stops"]);
}

/// A connection that the other end closes takes the face down; when it listens again, the face comes up.
#[test]
fn a_permanent_face_goes_down_and_comes_up() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let uri = format!("tcp4://{}", listener.local_addr().unwrap());
    router.ask(&["face", "create", &uri, "--persistency", "permanent"]);
    let remote = format!("remote={uri}");
    router.wait_for(&["face up", &remote]);
    let (connection, _) = listener.accept().unwrap();
    drop(connection);
    router.wait_for(&["warn  faces: face down", &remote, "why=\"closed by the peer\""]);
    let (_connection, _) = listener.accept().unwrap(); // the router tries again
    router.wait_for(&["info  faces: face up again", &remote]);
}

#[test]
fn a_command_without_permission_is_told_with_its_reason() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("namewire.toml");
    fs::write(&file, "[trust]\npeer_credentials = false\n").unwrap();
    let router = Router::run(directory.path(), &["-c", file.to_str().unwrap()]);
    for command in [&["face", "create", "udp4://127.0.0.1:9"][..], &["log", "set", "trace"]] {
        let why = text_of_failure(&router.tool(command));
        assert!(why.contains("peer credentials do not count here"), "{why}");
    }
    router.wait_for(&[
        "warn  trust: command refused",
        "command=faces/create",
        "about=udp4://127.0.0.1:9",
        "code=403",
        "peer credentials do not count here",
    ]);
    router.wait_for(&["warn  trust: command refused", "command=log/set", "code=403"]);
    assert!(router.ask(&["log", "show"]).lines().skip(1).all(|line| line.ends_with("info")));
}

#[test]
fn a_mark_is_a_line_of_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    assert_eq!(router.ask(&["log", "mark", "/run/3"]), "marked /run/3\n");
    router.wait_for(&["info  management: mark", "mark=/run/3", "by=\"face "]);
    assert!(events(&router, &["--area", "management"]).iter().any(|line| line.contains("mark=/run/3")));
}

#[test]
fn levels_change_by_command_and_by_sighup() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("namewire.toml");
    let write = |log: &str| fs::write(&file, format!("[log]\n{log}\n")).unwrap();
    write("level = \"warn\"\nareas = { management = \"info\" }");
    let router = Router::run(directory.path(), &["-c", file.to_str().unwrap(), "--log", "strategy=debug"]);
    let levels = |router: &Router| -> Vec<String> {
        let lines = router.ask(&["log", "show"]);
        lines.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>().join("=")).collect()
    };
    let wanted = |special: &[&str], others: &str| -> Vec<String> {
        let areas = ["faces", "routes", "strategy", "management", "trust", "repo", "tag", "drops"];
        let special_of = |area: &str| special.iter().find(|one| one.starts_with(&format!("{area}=")));
        areas.map(|area| special_of(area).map_or(format!("{area}={others}"), |one| (*one).to_owned())).to_vec()
    };
    assert_eq!(levels(&router), wanted(&["strategy=debug", "management=info"], "warn"));
    assert!(events(&router, &["--area", "faces"]).is_empty(), "faces are up, but that is only information");

    let said = router.ask(&["log", "set", "error,faces=debug,management=info"]);
    assert_eq!(said, "levels of the log are error,faces=debug,management=info\n");
    wait_for_event(&router, &["faces: face up"]);
    router.wait_for(&["levels of the log set", "levels=\"error,faces=debug,management=info\""]);
    let refused = text_of_failure(&router.tool(&["log", "set", "doors=debug"]));
    assert!(refused.contains("there is no area \"doors\""), "{refused}");

    write("level = \"error\"\nareas = { routes = \"trace\", management = \"info\" }\nformat = \"json\"");
    let said = router.hang_up();
    assert!(said.contains("not before the next start: log.format"), "{said}");
    assert!(said.contains("changed=\"log.areas.routes, log.format, log.level\""), "{said}");
    let now = ["routes=trace", "strategy=debug", "management=info"];
    assert_eq!(levels(&router), wanted(&now, "error"), "the file says, and the option still overrides it");
}

#[test]
fn json_lines_are_read_as_json_and_followed() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("nfd.sock");
    let mut router = Router::start(&socket, run_command(&socket).args(["--set", "log.format=json"]));
    let mut follower = router.command();
    follower.args(["--json", "events", "--follow", "--area", "strategy"]).stdout(Stdio::piped());
    let mut follower = follower.spawn().unwrap();
    router.ask(&["strategy", "set", "/j", "random"]);
    let said = router.wait_for(&["strategy set"]);
    let objects: Vec<serde_json::Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = objects.last().unwrap();
    assert_eq!((&last["level"], &last["area"], &last["prefix"]), (&"info".into(), &"strategy".into(), &"/j".into()));
    let time = last["time"].as_str().unwrap();
    let pattern = regex_lite::Regex::new(r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$").unwrap();
    assert!(pattern.is_match(time), "{time}");
    // Whoever follows is told the same.
    let mut line = String::new();
    let mut lines = std::io::BufReader::new(follower.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut lines, &mut line).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap(), *last);
    follower.kill().unwrap();
    follower.wait().unwrap();
    router.terminate();
}

/// For the journal, lines have its priorities and no time. The variable is inherited by other files than the journal.
#[test]
fn the_journal_gets_priorities() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    let journal = fs::File::create(&path).unwrap();
    let stat = rustix::fs::fstat(&journal).unwrap();
    for (stream, beginning) in [
        (format!("{}:{}", stat.st_dev, stat.st_ino), "<6>management: router started "),
        (format!("{}:{}", stat.st_dev, stat.st_ino + 1), ""),
    ] {
        fs::write(&path, "").unwrap();
        let socket = directory.path().join("nfd.sock");
        let mut command = run_command(&socket);
        command
            .env("JOURNAL_STREAM", &stream)
            .stdout(Stdio::null())
            .stderr(fs::File::options().append(true).open(&path).unwrap());
        let process = command.spawn().unwrap();
        let router = Router { process, line: String::new(), messages: std::sync::mpsc::channel().1, socket };
        eventually("it answers", || router.tool(&["status"]).status.success());
        eventually("a line", || fs::read_to_string(&path).unwrap().contains("router started"));
        let said = fs::read_to_string(&path).unwrap();
        assert!(said.lines().any(|line| line.starts_with(beginning)), "{said}"); // a tool may have come before it
        assert_eq!(said.starts_with("<6>"), !beginning.is_empty(), "{said}");
    }
}

/// Two thousand routes at once: fifty lines a second, and the number of the others.
#[test]
fn a_flood_is_counted_and_does_not_hide_other_lines() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("namewire.toml");
    let routes: String =
        (0..2000).map(|n| format!("[[route]]\nprefix = \"/r/{n}\"\nface = \"udp4://127.0.0.1:9\"\n")).collect();
    fs::write(&file, routes).unwrap();
    let router = Router::run(directory.path(), &["-c", file.to_str().unwrap()]);
    router.ask(&["strategy", "set", "/after", "multicast"]);
    let said = router.wait_for(&["strategy set", "/after"]);
    let mut lines = said.lines().filter(|line| line.contains("routes: ")).map(str::to_owned).collect::<Vec<_>>();
    let counted = |lines: &[String]| -> usize {
        let count = |line: &String| match line.split("routes: ").nth(1)?.split_once(" more like this: route added") {
            Some((count, _)) => count.parse().ok(),
            None => line.contains("route added").then_some(1),
        };
        lines.iter().filter_map(count).sum()
    };
    while counted(&lines) < 2000 {
        let said = router.wait_for(&["more like this: route added"]);
        lines.extend(said.lines().map(str::to_owned));
    }
    assert_eq!(counted(&lines), 2000, "every route is written or counted");
    assert!(lines.len() < 2000, "{} lines", lines.len());
}

/// The reader of standard error takes nothing: the router serves all the same, counts what it does not write, and ends.
#[test]
fn a_stuck_reader_of_the_log_holds_nothing_up() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("nfd.sock");
    let mut command = run_command(&socket);
    let process = command.args(["--log", "trace"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut router = Router { process, line: String::new(), messages: std::sync::mpsc::channel().1, socket };
    eventually("it answers", || router.tool(&["status"]).status.success());
    // A pipe takes 64 KiB and the queue 512 lines. Each verb makes 50 lines a second.
    let batch = directory.path().join("batch");
    let commands = "strategy set /x /localhost/nfd/strategy/multicast\nstrategy unset /x\nroute add /x udp4://127.0.0.1:9\n\
                    route remove /x udp4://127.0.0.1:9\n";
    fs::write(&batch, commands.repeat(50)).unwrap();
    eventually("lines are lost", || {
        router.ask(&["nfdc", "-f", batch.to_str().unwrap()]);
        let drops: serde_json::Value = serde_json::from_str(&router.ask(&["status", "--json"])).unwrap();
        drops.to_string().contains("log.lines-lost")
    });
    router.terminate();
}

#[test]
fn nfd_conf_says_what_is_logged() {
    let directory = tempfile::tempdir().unwrap();
    let port = crate::router_process::free_port();
    let conf = crate::router_process::nfd_conf(directory.path(), port);
    let modules = namewire_of(directory.path()).args(["nfd", "--modules"]).output().unwrap();
    assert!(text(&modules.stdout).lines().any(|module| module == "Forwarder"));
    let sample = fs::read_to_string(&conf).unwrap();
    fs::write(&conf, sample.replace("default_level INFO", "default_level WARN\n  StrategyChoice INFO")).unwrap();
    let socket = directory.path().join("nfd.sock");
    let mut command = Command::new(NAMEWIRE);
    let router = Router::start(&socket, command.args(["run", "--nfd-conf"]).arg(&conf));
    let shown = router.ask(&["log", "show"]);
    for (area, level) in [("faces", "warn"), ("strategy", "info"), ("drops", "debug")] {
        assert!(shown.lines().any(|line| line.split_whitespace().eq([area, level])), "{area}={level}: {shown}");
    }
}
