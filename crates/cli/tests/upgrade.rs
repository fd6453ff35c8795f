//! `namewire reload` and `namewire upgrade` as an operator meets them: real programs, connections that go on, and
//! programs that are broken.

use crate::{
    router_process::{NAMEWIRE, PATIENCE, Router, eventually, free_port, run_command, text, text_of_failure},
    tools::Running,
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::{TcpListener, UdpSocket},
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        net::UnixDatagram,
    },
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

fn json(output: &str) -> Value {
    serde_json::from_str(output).unwrap_or_else(|error| panic!("{error}: {output}"))
}

/// The faces for which this is so: number, ends and persistency.
fn faces(router: &Router, is_kept: impl Fn(&Value) -> bool) -> BTreeMap<u64, String> {
    let faces = json(&router.ask(&["face", "list", "--json"]));
    let shown = |face: &Value| {
        let text =
            format!("{} {} {} {}", face["remote_uri"], face["local_uri"], face["persistency"], face["mtu_bytes"]);
        (face["face_id"].as_u64().unwrap(), text)
    };
    faces.as_array().unwrap().iter().filter(|face| is_kept(face)).map(shown).collect()
}

/// The process that forwards: the router itself, or its child. A program that gives way is there for a moment more.
fn forwarding(router: &Router) -> u32 {
    let own = router.process.id();
    let children = || -> Vec<u32> {
        let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
        children.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
    };
    eventually("no processes pile up", || children().len() <= 1);
    children().first().copied().unwrap_or(own)
}

fn upgrade(router: &Router) -> Value {
    let outcome = json(&router.ask(&["upgrade", "--json"]));
    assert_eq!((&outcome["state"], &outcome["task"]), (&"done".into(), &"upgrade".into()), "{outcome}");
    eventually("the old program ends", || outcome["upgraded"]["pid"] == forwarding(router));
    outcome
}

/// A router with two neighbours, over UDP and over TCP, each with a file, and with a port for others.
struct Network {
    directory: tempfile::TempDir,
    router: Router,
    port: u16,
    content: Vec<u8>,
    _neighbours: [(Router, [Running; 2]); 2],
}

impl Network {
    fn start(workers: &str) -> Network {
        let directory = tempfile::tempdir().unwrap();
        let mut dice = fastrand::Rng::with_seed(9);
        let content: Vec<u8> = (0..3_000_000).map(|_| dice.u8(..)).collect();
        fs::write(directory.path().join("film"), &content).unwrap();
        let neighbour = |name: &str, option: &str| {
            let (place, port) = (directory.path().join(name), free_port());
            fs::create_dir(&place).unwrap();
            let listens = format!("127.0.0.1:{port}");
            let mut command = Command::new(NAMEWIRE);
            let socket = place.join("nfd.sock");
            command.args(["run", option, "--socket"]).arg(&socket);
            let protocol = if option == "--no-tcp" { "--listen-udp" } else { "--listen-tcp" };
            let router = Router::start(&socket, command.args([protocol, &listens]));
            let file = directory.path().join("film");
            let prefix = format!("/{name}/film");
            let put = Running::start(router.command().arg("put").arg(file).args([&prefix, "--version", "7"]));
            put.wait_for("serving");
            let pings = format!("/{name}");
            let server = Running::start(router.command().args(["pingserver", &pings]));
            eventually("it answers", || router.tool(&["ping", &pings, "-c", "1"]).status.success());
            (router, [put, server], port)
        };
        let (one, one_puts, udp) = neighbour("udp", "--no-tcp");
        let (two, two_puts, tcp) = neighbour("tcp", "--no-udp");
        let (socket, port) = (directory.path().join("nfd.sock"), free_port());
        let listens = format!("127.0.0.1:{port}");
        let mut command = Command::new(NAMEWIRE);
        command.args(["run", "--workers", workers, "--listen-udp", &listens, "--listen-tcp", &listens, "--socket"]);
        let state = directory.path().join("state.toml");
        command.arg(&socket).args(["--route", &format!("/udp=udp4://127.0.0.1:{udp}"), "--state"]).arg(&state);
        let router = Router::start(&socket, &mut command);
        router.ask(&["route", "add", "/tcp", &format!("tcp4://127.0.0.1:{tcp}"), "--cost", "7"]);
        router.ask(&["route", "add", "/for/a/while", &format!("tcp4://127.0.0.1:{tcp}"), "--expires", "3600000"]);
        router.ask(&["strategy", "set", "/tcp", "asf"]);
        router.ask(&["cs", "config", "--capacity", "5MiB", "--serve", "on"]);
        Network { directory, router, port, content, _neighbours: [(one, one_puts), (two, two_puts)] }
    }

    /// A tool over this transport.
    fn tool(&self, transport: &str, words: &[&str]) -> Running {
        let mut command = Command::new(NAMEWIRE);
        command.current_dir(self.directory.path()).env("HOME", "/nonexistent");
        Running::start(command.args(["--transport", transport]).args(words))
    }

    /// Begins a fetch that takes some seconds.
    fn get(&self, transport: &str, name: &str, copy: &str) -> Running {
        self.tool(transport, &["get", name, "--limit-rate", "1000000", "-o", copy])
    }

    /// True if the copy is being written.
    fn has_begun(&self, copy: &str) -> bool {
        let path = self.directory.path().join(copy);
        path.exists() || path.with_extension("part").exists()
    }

    fn copy_is_whole(&self, copy: &str) -> bool {
        fs::read(self.directory.path().join(copy)).is_ok_and(|copy| copy == self.content)
    }
}

/// What of a list stays the same, whoever asks.
fn tables(router: &Router) -> [BTreeSet<String>; 2] {
    let lines = |words: &[&str]| {
        let without_time = |entry: &Value| {
            let expires = entry["expires_ms"].is_u64();
            let mut entry = entry.clone();
            entry["expires_ms"] = expires.into();
            entry.to_string()
        };
        json(&router.ask(words)).as_array().unwrap().iter().map(without_time).collect::<BTreeSet<String>>()
    };
    [lines(&["route", "list", "--json"]), lines(&["strategy", "list", "--json"])]
}

fn three_upgrades(workers: &str) {
    let mut network = Network::start(workers);
    let Network { router, port, .. } = &network;
    // Three applications, over three kinds of faces, that ask the neighbours all the time.
    let over = [router.uri(), format!("tcp://127.0.0.1:{port}"), format!("udp://127.0.0.1:{port}")];
    let names = ["/udp", "/tcp", "/udp"];
    let mut pings: Vec<Running> =
        over.iter().zip(names).map(|(over, name)| network.tool(over, &["ping", name, "-i", "20"])).collect();
    pings.iter().for_each(|ping| _ = ping.wait_for("content from"));
    let used = || faces(router, |face| face["in_data"].as_u64().max(face["out_data"].as_u64()) > Some(8));
    eventually("all faces are used", || used().len() >= 5);
    let (kept, before, pings_before) = (used(), tables(router), permanent(router, "in_data"));

    let mut pids = BTreeSet::from([forwarding(router)]);
    for number in 1..=3 {
        let copies = ["a", "b", "c"].map(|copy| format!("{copy}{number}"));
        let gets = [0, 1, 2].map(|at| network.get(&over[at], &format!("{}/film", names[at]), &copies[at]));
        gets.iter().zip(&copies).for_each(|(_, copy)| eventually("the fetch has begun", || network.has_begun(copy)));
        let outcome = upgrade(router);
        assert_eq!(outcome["number"], number, "{outcome}");
        println!("{workers} workers: stall {} ms", outcome["upgraded"]["stall_ms"]);
        pids.insert(forwarding(router));
        let now = faces(router, |_| true);
        kept.iter().for_each(|(face, ends)| assert_eq!(now.get(face), Some(ends), "face {face}: {now:?}"));
        assert_eq!(tables(router), before);
        assert!(router.ask(&["cs", "info"]).contains("5.0 MiB"), "{}", router.ask(&["cs", "info"]));
        for (mut get, copy) in gets.into_iter().zip(copies) {
            assert_eq!(get.wait(), Some(0), "{copy}");
            assert!(network.copy_is_whole(&copy), "{copy}");
        }
    }
    assert_eq!(pids.len(), 4, "each time another process");
    assert!(permanent(router, "in_data") > pings_before, "the counters of faces go on");
    for ping in &mut pings {
        assert!(ping.process.try_wait().unwrap().is_none(), "it goes on");
        while ping.next_line(Duration::ZERO).is_some() {}
        ping.wait_for("content from");
    }
    network.router.terminate();
    assert!(!network.router.socket.exists(), "the last program removes the socket");
}

/// The sum over the faces to neighbours.
fn permanent(router: &Router, name: &str) -> u64 {
    let faces = json(&router.ask(&["face", "list", "--json"]));
    let permanent = faces.as_array().unwrap().iter().filter(|face| face["persistency"] == "permanent");
    permanent.filter_map(|face| face[name].as_u64()).sum()
}

#[test]
fn three_upgrades_leave_everything_as_it_was() {
    three_upgrades("1");
}

#[test]
fn three_upgrades_with_two_workers_leave_everything_as_it_was() {
    three_upgrades("2");
}

/// A program that is none.
fn script(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn with_a_broken_program_the_old_one_goes_on_and_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("namewire.toml");
    let own = "[[route]]\nprefix = \"/own\"\nface = \"udp://127.0.0.1:9\"\n";
    fs::write(&config, own).unwrap();
    let router = Router::run(directory.path(), &["--config", config.to_str().unwrap()]);
    let server = Running::start(router.command().args(["pingserver", "/me"]));
    eventually("it answers", || router.tool(&["ping", "/me", "-c", "1"]).status.success());
    let before = (tables(&router), forwarding(&router));
    let attempt = |program: &Path| -> Output { router.tool(&["upgrade", program.to_str().unwrap(), "--timeout", "2"]) };
    // The kinds and the versions are those of crates/handover.
    let ready_of_another_version =
        r#"printf '\002\000\000\000\016\000\000\000\000\000\000\000\000\000\000\000{"protocol":9}' >&0; sleep 60"#;
    for (name, text, why) in [
        ("ends", "exit 3", "exit status: 3"),
        ("hangs", "exec sleep 1000", "not ready within 2 s"),
        ("is-another", ready_of_another_version, "speaks hand-over protocol 9, this one 1"),
        ("babbles", "echo 'this is no router at all, and says much' >&0; sleep 60", "too large"),
    ] {
        let failure = text_of_failure(&attempt(&script(directory.path(), name, text)));
        assert!(failure.contains(why), "{name}: {failure}");
        assert_eq!((tables(&router), forwarding(&router)), before, "{name}");
    }
    let failure = text_of_failure(&attempt(Path::new("/nonexistent/program")));
    assert!(failure.contains("cannot start /nonexistent/program"), "{failure}");
    // This program, and a configuration that it refuses.
    fs::write(&config, "[[route]]\nprefix = \"/own\"\nfcae = \"udp://127.0.0.1:9\"\n").unwrap();
    let failure = text_of_failure(&router.tool(&["upgrade"]));
    assert!(failure.contains("the new program refuses") && failure.contains("did you mean \"face\""), "{failure}");
    // And one that it cannot take over with.
    fs::write(&config, format!("[router]\nworkers = 2\n{own}")).unwrap();
    let failure = text_of_failure(&router.tool(&["upgrade"]));
    assert!(failure.contains("the new program has 2 workers, this one 1"), "{failure}");
    // And one that it finds out about when the old one has stopped already.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    fs::write(&config, format!("[observe]\nlisten = [\"127.0.0.1:{port}\"]\n{own}")).unwrap();
    let failure = text_of_failure(&router.tool(&["upgrade"]));
    assert!(failure.contains("the new program refuses") && failure.contains(&port.to_string()), "{failure}");
    assert_eq!((tables(&router), forwarding(&router)), before);
    assert!(router.tool(&["ping", "/me", "-c", "3"]).status.success());
    let asked = json(&router.ask(&["face", "list", "--json"]));
    assert!(asked.as_array().unwrap().len() < 8, "{asked}");

    // What management refuses ends a start, but not a program that forwards already.
    fs::write(&config, format!("[[face]]\nuri = \"udp://224.0.0.5:7001\"\n{own}")).unwrap();
    upgrade(&router);
    router.wait_for(&["224.0.0.5", "is not made"]);
    assert!(router.tool(&["ping", "/me", "-c", "3"]).status.success());
    drop(server);
}

#[test]
fn what_cannot_be_handed_over_is_named_and_dropped_by_force_only() {
    let directory = tempfile::tempdir().unwrap();
    let ports = ["--listen-ws", &format!("127.0.0.1:{}", free_port()), "--set", "tagnet.trees=[{id=1, name=\"/t\"}]"];
    let router = Router::run(directory.path(), &ports[..2]);
    upgrade(&router); // a listener alone is no hindrance
    let (host, uri) = (tempfile::tempdir().unwrap(), format!("ws://{}", ports[1]));
    let other = Router::run(host.path(), &["--face", &uri]);
    eventually("it has connected", || router.ask(&["face", "list"]).contains("wsclient://"));
    let failure = text_of_failure(&router.tool(&["upgrade"]));
    assert!(failure.contains("1 WebSocket faces; --force drops this"), "{failure}");
    let outcome = json(&router.ask(&["upgrade", "--force", "--json"]));
    assert_eq!(outcome["problems"][0], "dropped: 1 WebSocket faces", "{outcome}");
    eventually("it connects again", || router.ask(&["face", "list"]).contains("wsclient://"));
    drop(other);

    let store = tempfile::tempdir().unwrap();
    let mut with_repo = Router::run(store.path(), &["--repo", store.path().join("store").to_str().unwrap()]);
    let failure = text_of_failure(&with_repo.tool(&["upgrade", "--force"]));
    assert!(failure.contains("the router hosts a repository"), "{failure}");
    with_repo.terminate();
}

#[test]
fn the_state_file_and_stored_data_pass_to_the_new_program() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state.toml");
    let arguments = ["--state", state.to_str().unwrap()];
    let mut router = Router::run(directory.path(), &arguments);
    router.ask(&["route", "add", "/before", "udp://127.0.0.1:9"]);
    fs::write(directory.path().join("file"), "what was stored").unwrap();
    let mut put = router.command();
    put.arg("put").arg(directory.path().join("file"));
    let put = Running::start(put.args(["/kept", "--version", "1", "--freshness", "3600000"]));
    let stored = ["peek", "/kept/v=1/seg=0", "-f", "--payload"];
    let peeked = || text(&router.tool(&stored).stdout);
    eventually("it is fetched", || peeked() == "what was stored");
    drop(put);
    eventually("nobody has it any more", || !router.ask(&["route", "list"]).contains("/kept"));
    upgrade(&router);
    eventually("it is still stored, and fresh", || peeked() == "what was stored");
    let routes = fs::read_to_string(&state).unwrap();
    assert!(routes.contains("/before"), "{routes}");
    router.ask(&["route", "add", "/after", "udp://127.0.0.1:9"]);
    eventually("the new program writes the file", || {
        fs::read_to_string(&state).is_ok_and(|text| text.contains("/after"))
    });
    upgrade(&router);
    router.terminate();
    let router = Router::run(directory.path(), &arguments);
    let routes = router.ask(&["route", "list"]);
    assert!(routes.contains("/before") && routes.contains("/after"), "{routes}");
}

#[test]
fn the_process_that_was_started_first_stays_and_passes_on_what_happens() {
    let directory = tempfile::tempdir().unwrap();
    let mut router = Router::run(directory.path(), &[]);
    upgrade(&router);
    upgrade(&router);
    // If the program that forwards is killed, whoever waits hears of it.
    let pid = forwarding(&router);
    assert_ne!(pid, router.process.id());
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
    assert_eq!(router.process.wait().unwrap().code(), Some(128 + 9));

    // If the parent is killed, the program that forwards ends, too.
    let mut router = Router::start(&router.socket.clone(), &mut run_command(&router.socket));
    upgrade(&router);
    let pid = forwarding(&router);
    router.process.kill().unwrap();
    router.process.wait().unwrap();
    eventually("it ends", || !Path::new(&format!("/proc/{pid}/exe")).exists());
    assert!(!router.socket.exists());
}

#[test]
fn a_reload_says_on_the_terminal_what_has_changed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("namewire.toml");
    fs::write(&file, "").unwrap();
    let router = Router::run(directory.path(), &["--config", file.to_str().unwrap()]);
    let text = "[router]\nworkers = 2\n[cs]\npackets = 77\n[[route]]\nprefix = \"/a\"\nface = \"udp://127.0.0.1:9\"\n";
    fs::write(&file, text).unwrap();
    let said = json(&router.ask(&["reload", "--json"]));
    assert_eq!((&said["state"], &said["task"]), (&"done".into(), &"reload".into()), "{said}");
    let changed = said["changed"].to_string();
    assert!(changed.contains("cs.packets") && changed.contains("router.workers"), "{said}");
    assert_eq!(said["needs_restart"], serde_json::json!(["router.workers"]), "{said}");
    assert!(router.ask(&["route", "list"]).contains("/a") && router.ask(&["cs", "info"]).contains("77"));
    let said = router.ask(&["reload"]);
    assert!(said.contains("was read") && said.contains("  nothing"), "{said}");
    fs::write(&file, format!("{text}[[route]]\nprefix = \"/b\"\nface = \"udp://nowhere.invalid\"\n")).unwrap();
    let partly = router.tool(&["reload"]);
    let said = String::from_utf8_lossy(&partly.stdout);
    assert!(
        !partly.status.success() && said.contains("problems:") && said.contains("it will be tried again"),
        "{said}"
    );
    fs::write(&file, "[cs]\npakets = 77\n").unwrap();
    let failed = router.tool(&["reload"]);
    let why = text_of_failure(&failed);
    assert!(why.contains("stays as it was") && why.contains("did you mean \"packets\""), "{why}");
    assert!(router.ask(&["cs", "info"]).contains("77"));

    let without = tempfile::tempdir().unwrap();
    let router = Router::run(without.path(), &[]);
    let why = text_of_failure(&router.tool(&["reload"]));
    assert!(why.contains("there is no configuration file"), "{why}");
}

#[test]
fn systemd_hears_which_process_is_the_main_one() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("notify");
    let notices = UnixDatagram::bind(&place).unwrap();
    notices.set_read_timeout(Some(PATIENCE)).unwrap();
    let next = || {
        let mut buffer = [0; 256];
        let size = notices.recv(&mut buffer).unwrap();
        text(&buffer[..size]).trim().to_owned()
    };
    let socket = directory.path().join("nfd.sock");
    let mut router = Router::start(&socket, run_command(&socket).env("NOTIFY_SOCKET", &place));
    assert_eq!(next(), "READY=1");
    let outcome = json(&router.ask(&["upgrade", "--json"]));
    let pid = outcome["upgraded"]["pid"].as_u64().unwrap();
    let said = BTreeSet::from([next(), next()]);
    assert_eq!(said, BTreeSet::from([format!("MAINPID={pid}"), "READY=1".to_owned()]));
    assert_eq!(router.process.wait().unwrap().code(), Some(0), "the old process has ended");
    assert!(router.tool(&["status"]).status.success(), "the new one forwards");
    assert!(Command::new("kill").args(["-TERM", &pid.to_string()]).status().unwrap().success());
    assert_eq!(next(), "STOPPING=1");
    eventually("it ends", || !socket.exists());
}

/// A line of the status of a process.
fn status_line(pid: u32, line: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let value = status.lines().find_map(|text| text.strip_prefix(line)?.strip_prefix(':'));
    value.unwrap_or_else(|| panic!("{line} in {status}")).trim().to_owned()
}

/// A router of another user keeps a capability, and so does the program that takes over.
#[test]
fn the_new_program_has_the_user_and_the_capabilities_that_the_old_one_kept() {
    let port = (600..1024).find(|port| UdpSocket::bind(("127.0.0.1", *port)).is_ok());
    let Some(port) = port.filter(|_| fs::metadata("/proc/self").unwrap().uid() == 0) else {
        eprintln!("skipped: only root has privileges to give up");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    // The user may execute it. Another process makes the copy, so that no one has it open for writing.
    let binary = directory.path().join("namewire");
    assert!(Command::new("cp").arg(NAMEWIRE).arg(&binary).status().unwrap().success());
    let (config, sockets) = (directory.path().join("c.toml"), directory.path().join("sockets"));
    let listen = format!("127.0.0.1:{port}");
    let own =
        format!("[router]\nuser = \"nobody\"\n[faces.udp]\nlisten = [\"{listen}\"]\n[faces.tcp]\nenabled = false\n");
    fs::write(&config, own).unwrap();
    let socket = sockets.join("nfd.sock");
    let mut command = Command::new(&binary);
    command.args(["run", "--config", config.to_str().unwrap(), "--socket", socket.to_str().unwrap()]);
    let mut router = Router::start(&socket, &mut command);
    let lines = ["Uid", "Gid", "CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb", "NoNewPrivs"];
    let of = |pid: u32| lines.map(|line| status_line(pid, line));
    let kept = of(router.process.id());
    assert!(kept[0].starts_with("65534") && kept[2].ends_with("400"), "{kept:?}");
    for number in 0..3_u16 {
        upgrade(&router);
        assert_eq!(of(forwarding(&router)), kept);
        // Another UDP face needs a socket on the low port.
        router.ask(&["route", "add", &format!("/{number}"), &format!("udp://127.0.0.1:{}", 10 + number)]);
    }
    router.terminate();
    assert!(!socket.exists());
}
