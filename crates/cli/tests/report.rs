//! `namewire report` as a user meets it: a busy router, a bundle, and nothing in it that was to stay out.

use crate::{
    router_process::{NAMEWIRE, Router, eventually, free_port, make_identity, text},
    terminal::Terminal,
    tools::Running,
};
use flate2::read::GzDecoder;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    io::Read,
    net::UdpSocket,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

/// The files of a bundle, by name.
fn unpack(path: &Path) -> BTreeMap<String, String> {
    let mut archive = tar::Archive::new(GzDecoder::new(fs::File::open(path).unwrap()));
    let files = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        let mut content = String::new();
        entry.read_to_string(&mut content).unwrap();
        (name, content)
    });
    files.collect()
}

fn json(files: &BTreeMap<String, String>, name: &str) -> Value {
    serde_json::from_str(&files[name]).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A router with neighbours, applications, keys, a state file, refusals, drops and traffic. All names are secret.
struct Scene {
    router: Router,
    home: PathBuf,
    dead: String,
    _neighbour: Router,
    _programs: Vec<Running>,
    _silent: UdpSocket,
    _directory: tempfile::TempDir,
}

/// What must not be in a bundle: components, an identity, a user, parts of paths.
const SECRETS: [&str; 12] = [
    "acmecorp",
    "salesdata",
    "quarterly",
    "ping-target",
    "wachtmeister",
    "zebrafolder",
    "operatorkey",
    "deadcorner",
    "multiprefix",
    "unrouted",
    "Gehei",
    "secretstate",
];

impl Scene {
    fn new() -> Scene {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().join("zebrafolder");
        fs::create_dir(&home).unwrap();
        make_identity(&home, "/acmecorp/operatorkey", &home.join("keys/operatorkey.ndncert"));
        let configuration = home.join("router.toml");
        let content = "[cs]\ncount = [\"/acmecorp/salesdata\"]\n[[trust.authorize]]\n\
            certificate = \"keys/operatorkey.ndncert\"\nprivileges = [\"faces\"]\n[state]\nfile = \"secretstate.toml\"\n";
        fs::write(&configuration, content).unwrap();
        let [here, there] = [free_port(), free_port()];
        let start = |socket: PathBuf, port: u16, arguments: &[&str]| {
            let mut command = Command::new(NAMEWIRE);
            command.args(["run", "--no-tcp", "--listen-udp", &format!("127.0.0.1:{port}"), "--socket"]).arg(&socket);
            Router::start(&socket, command.args(arguments))
        };
        let router = start(home.join("a.sock"), here, &["--config", configuration.to_str().unwrap()]);
        let neighbour = start(home.join("b.sock"), there, &[]);
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let dead = format!("udp4://127.0.0.1:{}", free_port());
        let uris =
            [format!("udp4://127.0.0.1:{there}"), format!("udp4://{}", silent.local_addr().unwrap()), dead.clone()];
        for (prefix, uri) in ["/acmecorp/multiprefix", "/acmecorp/quarterly", "/acmecorp/deadcorner"].iter().zip(&uris)
        {
            router.ask(&["route", "add", prefix, uri]);
        }
        router.ask(&["strategy", "set", "/acmecorp/quarterly", "multicast"]);
        router.tool(&["peek", "/acmecorp/deadcorner/x/v=7", "--lifetime", "100"]);
        router.tool(&["peek", "/acmecorp/unrouted/Geheimes%20W%C3%B6rtchen/seg=3", "--lifetime", "100"]);
        router.tool(&["face", "create", "ether://[08:00:27:aa:bb:cc]"]);
        let programs = [
            &["pingserver", "/acmecorp/ping-target"][..],
            &["traffic", "send", "/acmecorp/salesdata", "--rate", "200", "--duration", "100"],
        ];
        let programs = programs.map(|arguments| Running::start(router.command().args(arguments)));
        eventually("the application has registered", || router.ask(&["route", "list"]).contains("ping-target"));
        router.ask(&["ping", "/acmecorp/ping-target", "-c", "2", "-i", "10", "--timeout", "60000"]);
        eventually("the dead neighbour is noticed", || {
            let faces: Value = serde_json::from_str(&router.ask(&["face", "list", "--json"])).unwrap();
            faces.as_array().unwrap().iter().any(|face| face["remote_uri"] == *dead && face["state"] == "down")
        });
        let programs = Vec::from(programs);
        Scene { router, home, dead, _neighbour: neighbour, _programs: programs, _silent: silent, _directory: directory }
    }

    fn report(&self, file: &str, arguments: &[&str]) -> (BTreeMap<String, String>, String, u64) {
        let path = self.home.join(file);
        let mut command = self.router.command();
        command.env("HOME", &self.home).env("USER", "wachtmeister").arg("report").arg(&path).args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        (unpack(&path), text(&output.stdout), metadata.len())
    }
}

#[test]
fn a_bundle_of_a_busy_router_has_no_name_in_it_and_shows_the_fault() {
    let scene = Scene::new();
    let (files, said, bytes) = scene.report("bundle.tar.gz", &["--seconds", "2"]);
    assert!(bytes < 5_000_000, "{bytes}");
    assert!(said.starts_with("This bundle describes") && said.contains(&files["README.txt"]), "{said}");

    // Nothing that was to stay out is in it.
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let secrets = SECRETS.iter().map(|secret| (*secret).to_owned()).chain([host, "08:00:27".to_owned()]);
    let secrets = secrets.chain(scene.home.to_str().unwrap().split('/').map(str::to_owned));
    let is_common = |word: &str| word.len() < 3 || ["tmp", "localhost"].contains(&word);
    for secret in secrets.filter(|secret| !is_common(secret)) {
        for (name, content) in &files {
            let found = content.to_lowercase().find(&secret.to_lowercase());
            let around = found
                .map(|at| content.to_lowercase().chars().skip(at.saturating_sub(60)).take(160).collect::<String>());
            assert_eq!(around, None, "{secret} is in {name}");
        }
    }

    // It is about this router: the scene is there.
    let expected =
        ["channels.json", "counters-1.json", "doctor.json", "drops.json", "faces.json", "log.txt", "settings.json"];
    assert!(expected.iter().all(|name| files.contains_key(*name)), "{:?}", files.keys());
    let counted = |name: &str| json(&files, name)["general"]["in_interests"].as_u64().unwrap();
    assert!(counted("counters-2.json") > counted("counters-1.json"), "traffic went on");
    let times = ["counters-1.json", "counters-2.json"].map(|name| json(&files, name)["monotonic_ms"].as_u64().unwrap());
    assert!(times[1] - times[0] >= 1000, "{times:?}");
    assert!(files["log.txt"].contains("router started") && files["log.txt"].contains("route added"));
    assert!(files["drops.json"].contains("/seg=3") && files["drops.json"].contains("engine.no-route"));

    // The prepared fault is found from the bundle alone: a route whose next hop is down.
    let doctor = json(&files, "doctor.json");
    let findings = doctor["findings"].as_array().unwrap();
    let fault = findings.iter().find(|finding| finding["check"] == "route-next-hop").unwrap();
    let message = fault["message"].as_str().unwrap();
    let prefix = message.split(' ').next().unwrap();
    assert!(
        fault["severity"] == "error" && message.contains("leads nowhere") && message.contains("which is down"),
        "{fault}"
    );
    let (routes, faces) = (json(&files, "routes.json"), json(&files, "faces.json"));
    let route = routes.as_array().unwrap().iter().find(|route| route["prefix"] == prefix).unwrap();
    let face = faces.as_array().unwrap().iter().find(|face| face["face_id"] == route["face_id"]).unwrap();
    assert_eq!((&face["state"], &face["remote_uri"]), (&"down".into(), &scene.dead.clone().into()));
    assert!(files["log.txt"].contains(prefix), "the log has the same pseudonym");

    // Prefixes stay prefixes: all routes begin with the same component, and no two are the same.
    let prefixes: Vec<&str> =
        routes.as_array().unwrap().iter().map(|route| route["prefix"].as_str().unwrap()).collect();
    let corp = prefix.split('/').nth(1).unwrap();
    let under_corp = prefixes.iter().filter(|prefix| prefix.split('/').nth(1) == Some(corp)).count();
    assert!(under_corp >= 4, "{prefixes:?}");
}

#[test]
fn with_names_everything_is_there_and_another_bundle_has_other_pseudonyms() {
    let scene = Scene::new();
    let (open, said, _) = scene.report("open.tar.gz", &["--seconds", "0", "--with-names"]);
    assert!(said.contains("AS THEY ARE") && open["README.txt"].contains("AS THEY ARE"), "{said}");
    for secret in ["/acmecorp/quarterly", "/acmecorp/ping-target", "secretstate", "deadcorner"] {
        assert!(open.values().any(|content| content.contains(secret)), "{secret}");
    }
    let bundle = |file: &str| scene.report(file, &["--seconds", "0", "--no-probe"]).0["routes.json"].clone();
    assert_ne!(bundle("one.tar.gz"), bundle("two.tar.gz"));

    let again = scene.router.tool(&["report", scene.home.join("one.tar.gz").to_str().unwrap()]);
    assert_eq!(again.status.code(), Some(1), "an existing file stays");
    assert!(text(&again.stderr).contains("File exists"), "{again:?}");
    let path = scene.home.join("three.tar.gz");
    let written = scene.router.tool(&["--json", "report", path.to_str().unwrap(), "--seconds", "0"]);
    let document: Value = serde_json::from_slice(&written.stdout).unwrap();
    assert_eq!(document["bytes"], fs::metadata(&path).unwrap().len());
    assert!(text(&written.stderr).starts_with("This bundle describes"), "{written:?}");
}

#[test]
fn on_a_terminal_it_asks_first() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let path = directory.path().join("bundle.tar.gz");
    let report = |answer: &str, arguments: &[&str]| {
        let mut command = router.command();
        command.arg("report").arg(&path).args(["--seconds", "0"]).args(arguments);
        let mut terminal = Terminal::start(&mut command);
        if !answer.is_empty() {
            terminal.wait_for("the question", |lines| lines.iter().any(|line| line.contains("Write it? [y/N]")));
            assert!(!path.exists(), "it waits for the answer");
            terminal.press(answer);
        }
        let code = terminal.wait_for_end().code();
        (code, path.exists())
    };
    assert_eq!(report("n\r", &[]), (Some(1), false));
    assert_eq!(report("y\r", &[]), (Some(0), true));
    fs::remove_file(&path).unwrap();
    assert_eq!(report("", &["--yes"]), (Some(0), true));
}

#[test]
fn without_a_router_the_bundle_has_the_machine_and_the_findings() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(NAMEWIRE);
    command.env("NDN_CLIENT_TRANSPORT", "unix:///nonexistent/verborgen.sock").current_dir(directory.path());
    let output = command.args(["report", "--seconds", "0"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let path = fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap().path();
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("namewire-report-20") && name.ends_with(".tar.gz"), "{name}");
    let files = unpack(&path);
    assert_eq!(json(&files, "doctor.json")["findings"][0]["check"], "forwarder");
    assert!(!files["doctor.json"].contains("verborgen") && !files.contains_key("faces.json"));
    assert!(json(&files, "machine.json")["memory_bytes"].as_u64().is_some());
}
