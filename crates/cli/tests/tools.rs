//! Tools that manage a router, as a user meets them: the real binary and a real router.

use crate::router_process::{NAMEWIRE, PATIENCE, Router, eventually, text};
use crate::terminal::Terminal;
use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
};

fn json(router: &Router, arguments: &[&str]) -> Value {
    serde_json::from_str(&router.ask(&[arguments, &["--json"]].concat())).unwrap()
}

/// A command that runs on, and the lines that it prints, of both streams.
pub(crate) struct Running {
    pub(crate) process: Child,
    lines: Receiver<String>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Running {
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let streams: [Box<dyn std::io::Read + Send>; 2] =
            [Box::new(process.stdout.take().unwrap()), Box::new(process.stderr.take().unwrap())];
        for stream in streams {
            let sender = sender.clone();
            std::thread::spawn(move || {
                BufReader::new(stream).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
            });
        }
        Running { process, lines }
    }

    pub(crate) fn wait_for(&self, words: &str) -> String {
        let mut seen = String::new();
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            if line.contains(words) {
                return line;
            }
            seen += &(line + "\n");
        }
        panic!("no line with {words:?}; there were:\n{seen}");
    }

    /// The next line of either stream, if one comes in this time.
    pub(crate) fn next_line(&self, within: std::time::Duration) -> Option<String> {
        self.lines.recv_timeout(within).ok()
    }

    /// Lets faces come and go until an event of one is printed.
    fn wait_for_event(&self, router: &Router) {
        eventually("an event of a face is printed", || {
            router.ask(&["status"]);
            self.lines.try_iter().any(|line| line.starts_with("created ") || line.starts_with("destroyed "))
        });
    }

    /// Ctrl-C; the exit code.
    pub(crate) fn interrupt(&mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        self.wait()
    }

    pub(crate) fn wait(&mut self) -> Option<i32> {
        let mut code = None;
        eventually("the command has ended", || {
            code = self.process.try_wait().unwrap();
            code.is_some()
        });
        code.unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn the_fib_and_the_channels_are_listed() {
    let directory = tempfile::tempdir().unwrap();
    let port = crate::router_process::free_port();
    let socket = directory.path().join("nfd.sock");
    let mut command = Command::new(NAMEWIRE);
    command.args(["run", "--no-udp", "--listen-tcp", &format!("127.0.0.1:{port}"), "--socket"]).arg(&socket);
    let router = Router::start(&socket, command.args(["--route", "/far=udp4://127.0.0.1:9"]));
    let face = router.face("udp4://127.0.0.1:9").unwrap();
    let line = router.ask(&["fib", "list"]);
    let line = line.lines().find(|line| line.starts_with("/far")).unwrap();
    let cells: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(cells, ["/far", &face.to_string(), "0", "udp4://127.0.0.1:9"]);
    let entries = json(&router, &["fib", "list"]);
    let entry = entries.as_array().unwrap().iter().find(|entry| entry["prefix"] == "/far").unwrap();
    assert_eq!(entry["next_hops"][0]["face_id"], face);
    let channels = json(&router, &["channel", "list"]);
    let uris: Vec<&str> = channels.as_array().unwrap().iter().map(|one| one["local_uri"].as_str().unwrap()).collect();
    assert!(uris.contains(&&router.uri()[..]) && uris.iter().any(|uri| uri.ends_with(&format!(":{port}"))), "{uris:?}");
    assert!(router.ask(&["channel", "list"]).contains(&router.uri()));
}

#[test]
fn faces_and_routes_are_filtered() {
    let directory = tempfile::tempdir().unwrap();
    let routes = ["--route", "/far=udp4://127.0.0.1:9", "--route", "/far/away=udp4://127.0.0.1:19"];
    let router = Router::run(directory.path(), &routes);
    let faces = json(&router, &["face", "list", "--scheme", "udp4"]);
    assert_eq!(faces.as_array().unwrap().len(), 2, "{faces}");
    router.ask(&["route", "add", "/far", "udp4://127.0.0.1:19", "--origin", "nlsr"]);
    let prefixes = |filter: &[&str]| {
        let routes = json(&router, &[&["route", "list"], filter].concat());
        let prefix =
            |route: &Value| format!("{} {}", route["prefix"].as_str().unwrap(), route["origin"].as_str().unwrap());
        routes.as_array().unwrap().iter().map(prefix).collect::<Vec<_>>()
    };
    let all = ["/far nlsr", "/far static", "/far/away static"];
    let mut under = prefixes(&["--under", "/far"]);
    under.sort();
    assert_eq!(under, all);
    assert_eq!(prefixes(&["--under", "/far/away"]), all[2..]);
    assert_eq!(prefixes(&["--face", "udp4://127.0.0.1:9"]), ["/far static"]);
    assert_eq!(prefixes(&["--origin", "nlsr"]), all[..1]);
    assert!(prefixes(&["--origin", "nlsr", "--under", "/far/away"]).is_empty());
    assert_eq!(router.tool(&["route", "list", "--face", "udp4://127.0.0.1:29"]).status.code(), Some(3));
}

#[test]
fn each_command_has_a_manual_page() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("man1");
    let made = crate::router_process::namewire(&["manual", folder.to_str().unwrap()]);
    assert!(made.status.success(), "{made:?}");
    let page = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert!(page("namewire.1").contains("namewire\\-run(1)"), "{}", page("namewire.1"));
    assert!(page("namewire-run.1").contains("\\-\\-cs\\-capacity"));
    assert!(page("namewire-face-list.1").starts_with(".ie"), "a page of groff");
    let refused = crate::router_process::namewire(&["manual", "/dev/null/folder"]);
    assert_eq!(refused.status.code(), Some(1));
}

#[test]
fn a_strategy_choice_is_shown_for_a_name_and_unset_once() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &["--strategy", "/far=multicast"]);
    let shown = json(&router, &["strategy", "show", "/far/away/5"]);
    assert_eq!((&shown["prefix"], &shown["name"]), (&"/far".into(), &"/far/away/5".into()));
    assert!(shown["strategy"].as_str().unwrap().contains("multicast"));
    let text_of_root = router.ask(&["strategy", "show", "/farther"]);
    assert!(text_of_root.contains("best-route") && text_of_root.ends_with("chosen for /\n"), "{text_of_root}");
    assert!(router.tool(&["strategy", "unset", "/far"]).status.success());
    let again = router.tool(&["strategy", "unset", "/far"]);
    assert_eq!(again.status.code(), Some(3));
    assert!(text(&again.stderr).contains("/far has no strategy choice of its own"), "{again:?}");
}

#[test]
fn properties_of_a_face_are_set_by_create_and_update() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let uri = "udp4://127.0.0.1:9";
    let create = ["face", "create", uri, "--reliability", "on", "--congestion-marking", "off"];
    let more = ["--congestion-threshold", "32KiB", "--congestion-interval", "7", "--mtu", "1400"];
    let created = json(&router, &[&create[..], &more].concat());
    assert_eq!(created["flags"], serde_json::json!(["lp-reliability"]), "{created}");
    let face = json(&router, &["face", "show", uri]);
    assert_eq!(face["flags"], serde_json::json!(["lp-reliability"]), "{face}");
    assert_eq!(face["default_congestion_threshold_bytes"], 32 * 1024);
    assert_eq!(face["base_congestion_marking_interval_ns"], 7_000_000);
    assert_eq!((&face["mtu_bytes"], &face["state"]), (&1400.into(), &"up".into()));

    let said = router.ask(&["face", "update", uri, "--reliability", "off", "--persistency", "permanent"]);
    assert!(said.contains("updated: udp4://127.0.0.1:9 permanent"), "{said}");
    let face = json(&router, &["face", "show", uri]);
    assert_eq!((&face["flags"], &face["persistency"]), (&serde_json::json!([]), &"permanent".into()), "{face}");
    assert_eq!(face["default_congestion_threshold_bytes"], 32 * 1024, "what is not named stays");
    // `create` changes a face that exists, too.
    router.ask(&["face", "create", uri, "--congestion-marking", "on"]);
    let face = json(&router, &["face", "show", uri]);
    assert_eq!(face["flags"], serde_json::json!(["congestion-marking"]), "{face}");

    let refused = router.tool(&["face", "update", uri, "--local-fields", "on"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("cannot take local-fields"), "{refused:?}");
    assert_eq!(router.tool(&["face", "update", "9999", "--mtu", "1400"]).status.code(), Some(3));
}

/// A permanent face whose connection fails is down, and says so; `face watch` told it as it happened.
#[test]
fn events_of_faces_are_printed_as_they_happen_and_states_are_shown() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let watch = Running::start(router.command().args(["face", "watch", "--json"]));
    let mut watch_of_text = Running::start(router.command().args(["face", "watch", "--count", "100000"]));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("tcp4://{}", listener.local_addr().unwrap());
    // Nothing else tells when the watchers wait.
    watch_of_text.wait_for_event(&router);
    eventually("the other one watches, too", || {
        router.ask(&["status"]);
        watch.lines.try_recv().is_ok()
    });
    let next = |kind: &str| loop {
        let line = watch.wait_for(&uri);
        let event: Value = serde_json::from_str(&line).unwrap();
        if event["event"] == kind {
            return event["face_id"].as_u64();
        }
    };
    router.ask(&["face", "create", &uri, "--persistency", "permanent"]);
    let face = next("created");
    assert_eq!(face, router.face(&uri));
    watch_of_text.wait_for(&format!("created    face {}  {uri}  at tcp4://127.0.0.1:", face.unwrap()));
    drop(listener.accept().unwrap());
    drop(listener);
    assert_eq!(next("down"), face);
    eventually("it is shown as down", || json(&router, &["face", "show", &uri])["state"] == "down");
    let list = router.ask(&["face", "list"]);
    let line = list.lines().find(|line| line.contains(&uri)).unwrap();
    assert_eq!(line.split_whitespace().nth(1), Some("down"), "{list}");
    router.ask(&["face", "destroy", &uri]);
    assert_eq!(next("destroyed"), face);
    assert_eq!(watch_of_text.interrupt(), Some(130), "it had not printed all");
}

#[test]
fn the_watcher_of_faces_counts_and_finds_a_new_router() {
    let directory = tempfile::tempdir().unwrap();
    let mut router = Router::run(directory.path(), &[]);
    let mut watch = Running::start(router.command().args(["face", "watch"]));
    watch.wait_for_event(&router);
    router.terminate();
    watch.wait_for("the connection to the forwarder was lost; trying again");
    let router = Router::run(directory.path(), &[]);
    watch.wait_for("connected again");
    watch.wait_for_event(&router);
    let mut one = Running::start(router.command().args(["face", "watch", "--count", "1"]));
    one.wait_for_event(&router);
    assert_eq!(one.wait(), Some(0));
    assert_eq!(watch.interrupt(), Some(0));
}

/// The story: a router was started anew for an update, and every file that was published by `put` was gone until
/// its user noticed.
#[test]
fn producers_register_again_when_their_router_starts_anew() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "what is published").unwrap();
    let mut router = Router::run(directory.path(), &[]);
    let mut put = Running::start(router.command().arg("put").arg(&file).args(["/me/file", "--version", "7"]));
    put.wait_for("serving /me/file");
    let mut server = Running::start(router.command().args(["pingserver", "/me"]));
    server.wait_for("ping server ready");
    assert_eq!(router.ask(&["get", "/me/file", "-q"]), "what is published");
    router.signal("-KILL");
    router.process.wait().unwrap();
    for producer in [&put, &server] {
        producer.wait_for("the connection to the forwarder was lost; trying again");
        producer.wait_for("no forwarder answers");
    }
    let router = Router::run(directory.path(), &[]);
    put.wait_for("connected again");
    server.wait_for("connected again");
    assert_eq!(router.ask(&["get", "/me/file", "-q"]), "what is published");
    let said = router.ask(&["ping", "/me", "-c", "2", "-i", "10", "--timeout", "60000"]);
    assert!(said.contains("seq=0 time=") && said.contains("seq=1 time="), "short numbers: {said}");
    let summary = |running: &mut Running, words: &str| {
        assert_eq!(running.interrupt(), Some(0));
        running.wait_for(words)
    };
    assert!(summary(&mut put, "Interests, ").contains(" 2 segments"), "one before and one after");
    summary(&mut server, "2 pings answered");
}

#[test]
fn what_ctrl_c_cuts_short_ends_with_130() {
    let directory = tempfile::tempdir().unwrap();
    // It receives, and never answers.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let uri = format!("udp4://{}", silent.local_addr().unwrap());
    let router = Router::run(directory.path(), &["--route", &format!("/silent={uri}")]);
    let run = |arguments: &[&str], ready: &str| {
        let mut running = Running::start(router.command().args(arguments));
        running.wait_for(ready);
        running.interrupt()
    };
    assert_eq!(run(&["pingserver", "/a", "--count", "5"], "ready"), Some(130));
    assert_eq!(run(&["pingserver", "/b"], "ready"), Some(0));
    assert_eq!(run(&["capture", "all", "--prefix", "/silent", "--count", "5"], "Ctrl-C ends it"), Some(130));
    assert_eq!(run(&["capture", "all", "--prefix", "/silent"], "Ctrl-C ends it"), Some(0));
    assert_eq!(run(&["traffic", "serve", "/c", "--count", "5"], "serving"), Some(130));
    assert_eq!(run(&["traffic", "serve", "/d"], "serving"), Some(0));

    // These print nothing before they are interrupted: what the router counts says that they have begun.
    let sent = || json(&router, &["face", "show", &uri])["out_interests"].as_u64().unwrap();
    for arguments in [
        &["get", "/silent/1", "--lifetime", "100000"][..],
        &["ping", "/silent/2", "--count", "3", "--timeout", "100000"],
        &["traffic", "send", "/silent/3", "--duration", "100000"],
    ] {
        let before = sent();
        let mut running = Running::start(router.command().args(arguments));
        eventually("its Interest was sent", || sent() > before);
        assert_eq!(running.interrupt(), Some(130), "{arguments:?}");
    }
}

#[test]
fn binary_data_stays_off_the_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let put = |name: &str, content: &[u8]| {
        let file = directory.path().join(name.trim_matches('/').replace('/', "-"));
        std::fs::write(&file, content).unwrap();
        let put = Running::start(router.command().arg("put").arg(&file).arg(name));
        put.wait_for("serving");
        put
    };
    let _servers = [put("/t/binary", b"MARK\0\x1b[2J"), put("/t/text", "MARK Grüße\n".as_bytes())];
    let get = |arguments: &[&str]| {
        let mut terminal = Terminal::start(router.command().args(["get", "-q"]).args(arguments));
        let code = terminal.wait_for_end().code();
        (code, terminal)
    };
    let (code, terminal) = get(&["/t/binary"]);
    assert_eq!(code, Some(1));
    let lines = terminal.wait_for("why", |lines| lines.join("").contains("use -o FILE, or -o -"));
    assert!(!lines.join("").contains("MARK"), "{lines:?}");
    let (code, terminal) = get(&["/t/text"]);
    assert_eq!(code, Some(0));
    terminal.wait_for("the text", |lines| lines[0] == "MARK Grüße");
    let (code, terminal) = get(&["/t/binary", "-o", "-"]);
    assert_eq!(code, Some(0));
    drop(terminal);
    assert!(!Path::new("-.part").exists() && !Path::new("-").exists());
    let piped = router.tool(&["get", "-q", "/t/binary"]);
    assert_eq!(piped.stdout, b"MARK\0\x1b[2J", "a pipe gets everything");
}

#[test]
fn peek_ends_its_line_in_a_terminal_only() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let mut poke = router.command();
    let mut poke = poke.args(["poke", "/p", "--freshness", "600000"]).stdin(Stdio::piped()).spawn().unwrap();
    poke.stdin.take().unwrap().write_all(b"content").unwrap();
    // The first one waits until the producer is there; the next ones are answered by the Content Store.
    eventually("it is published", || router.tool(&["peek", "/p", "--timeout", "1000"]).status.success());
    poke.wait().unwrap();
    assert_eq!(router.ask(&["peek", "/p"]), "content");
    let mut terminal = Terminal::start(Command::new("sh").args([
        "-c",
        "\"$0\" --transport \"$1\" peek /p; echo next",
        NAMEWIRE,
        &router.uri(),
    ]));
    assert_eq!(terminal.wait_for_end().code(), Some(0));
    let lines = terminal.wait_for("both lines", |lines| lines.iter().any(|line| line.contains("next")));
    assert_eq!(lines[..2], ["content", "next"]);
}

#[test]
fn the_list_of_faces_fits_the_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &["--route", "/far=udp4://127.0.0.1:9"]);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("tcp4://{}", listener.local_addr().unwrap());
    router.ask(&["face", "create", &uri, "--persistency", "permanent"]);
    drop(listener.accept().unwrap());
    drop(listener);
    eventually("it is down", || json(&router, &["face", "show", &uri])["state"] == "down");
    let list = |width: u16, variable: Option<&str>| {
        let mut command = router.command();
        variable.map(|name| command.env(name, "1"));
        let mut terminal = Terminal::of_width(width, command.env_remove("CLICOLOR").args(["face", "list"]));
        assert_eq!(terminal.wait_for_end().code(), Some(0));
        let lines = terminal.wait_for("the face", |lines| lines.iter().any(|line| line.contains(&uri)));
        (lines, terminal.has_colours())
    };
    let (wide, has_colours) = list(200, None);
    assert!(wide[0].contains("PERSISTENCY") && wide[0].contains("LOCAL") && has_colours, "{wide:?}");
    let (narrow, _) = list(60, None);
    let heading: Vec<&str> = narrow[0].split_whitespace().collect();
    assert_eq!(heading, ["ID", "STATE", "REMOTE", "IN", "NOW", "OUT", "NOW"], "{narrow:?}");
    assert!(narrow.iter().any(|line| line.contains(&uri) && line.contains("down")), "{narrow:?}");
    assert!(!list(200, Some("NO_COLOR")).1);
    let piped = router.ask(&["face", "list"]);
    assert!(piped.contains("PERSISTENCY") && !piped.contains('\x1b'), "{piped}");
}

/// The story: `cs info` printed the hits of the store, and below them the same number as those of its policy.
#[test]
fn hits_are_printed_once() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let count = |words: &[&str]| router.ask(words).matches("hits").count();
    assert_eq!((count(&["cs", "info"]), count(&["status"])), (1, 1));
    // With two policies, the sum is news.
    router.ask(&["cs", "config", "--policy", "lru"]);
    let info = router.ask(&["cs", "info"]);
    assert!(info.contains("Look-ups") && info.matches("hits").count() == 3, "{info}");
}

#[test]
fn a_file_of_nfd_given_as_ours_is_recognised() {
    let directory = tempfile::tempdir().unwrap();
    let file = crate::router_process::nfd_conf(directory.path(), 6363);
    let output = crate::router_process::namewire(&["config", "check", file.to_str().unwrap()]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(message.contains(&format!("`namewire config check --nfd-conf {}`", file.display())), "{message}");
    let other = directory.path().join("bad.toml");
    std::fs::write(&other, "workers = \"many\"\n").unwrap();
    let output = crate::router_process::namewire(&["config", "check", other.to_str().unwrap()]);
    assert!(!text(&output.stderr).contains("--nfd-conf"), "{output:?}");
}
