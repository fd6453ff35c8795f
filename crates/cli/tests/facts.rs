//! The names that programs read from a router are stable: the keys of `--json` and of the observer's JSON, the metrics,
//! and the type numbers of datasets.
//!
//! `facts.txt` lists them all, as shown by a router that has at least one of each thing. A removed or renamed line
//! breaks programs. A new line does not. `UPDATE=1 cargo test -p namewire-cli --test commands facts` rewrites the list.

use crate::router_process::{Router, eventually, free_port, http_get};
use namewire_client::Client;
use namewire_packet::{NameBuf, tlv::Reader};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader, Write},
    net::{TcpStream, UdpSocket},
    path::Path,
    process::{Child, Stdio},
};

/// Objects whose keys are values: reasons.
const MAPS: [&str; 2] = ["drops", "events"];

/// Datasets, each with the fields that contain fields.
const DATASETS: [(&str, &[&str]); 23] = [
    ("faces/list", &["128"]),
    ("faces/channels", &["130"]),
    ("faces/health", &["128", "128.134"]),
    ("fib/list", &["128", "128.129"]),
    ("fib/usage", &["128"]),
    ("rib/list", &["128", "128.129"]),
    ("strategy-choice/list", &["128", "128.107"]),
    ("cs/info", &["128"]),
    ("cs/usage", &["128", "128.138", "128.139"]),
    ("tags/trees", &["128"]),
    ("tags/list", &["128", "128.129"]),
    ("log/levels", &["128"]),
    ("log/recent", &["128", "128.133"]),
    ("status/general", &[]),
    ("status/drops", &["128"]),
    ("status/dropped", &["128"]),
    ("status/holders", &["128"]),
    ("status/privileges", &["128"]),
    ("status/settings", &["128"]),
    ("status/workers", &["128"]),
    ("status/name/%07%06%08%04kept", &["128", "128.131", "128.143", "128.143.129"]),
    ("status/name/%07%06%08%04wait", &["128", "128.130", "128.130.138"]),
    ("faces/query/%96%06%83%04udp4", &["128"]),
];

/// In a command, the FaceUri of the silent neighbour.
const FACE: &str = "FACE";

/// Commands that change something, which the others then show.
const CHANGES: [&[&str]; 7] = [
    &["face", "create", FACE, "--reliability", "on"],
    &["face", "update", FACE, "--mtu", "1200"],
    &["route", "add", "/far", FACE],
    &["strategy", "set", "/far", "multicast"],
    &["cs", "config", "--capacity", "1MiB", "--policy", "lru"],
    &["cs", "erase", "/nothing"],
    &["log", "set", "drops=debug"],
];

const VIEWS: [&[&str]; 18] = [
    &["status"],
    &["status", "--holders"],
    &["status", "--workers"],
    &["face", "list"],
    &["face", "show", FACE],
    &["route", "list"],
    &["fib", "list"],
    &["channel", "list"],
    &["strategy", "list"],
    &["strategy", "show", "/far/away"],
    &["cs", "info"],
    &["explain", "/kept"],
    &["explain", "/wait"],
    &["drops"],
    &["tag", "routes"],
    &["tag", "locator"],
    &["log", "show"],
    &["config", "show", "--running"],
];

const ENDS: [&[&str]; 3] =
    [&["strategy", "unset", "/far"], &["route", "remove", "/far", FACE], &["face", "destroy", FACE]];

const DOCUMENTS: [&str; 7] = [
    "/status.json",
    "/summary.json",
    "/routes.json",
    "/settings.json",
    "/history.json",
    "/explain?name=/kept",
    "/network/explain?name=/kept",
];

/// Ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A router with a little of everything, and the programs that keep it so.
struct Scene {
    router: Router,
    observer: String,
    _programs: [Running; 4],
    silent: UdpSocket,
    _directory: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let configuration = directory.path().join("router.toml");
        fs::write(&configuration, "[tagnet]\ntrees = [1]\n[cs]\ncount = [\"/kept\"]\n").unwrap();
        let observer = format!("127.0.0.1:{}", free_port());
        let configuration = configuration.to_str().unwrap();
        let router = Router::run(directory.path(), &["--config", configuration, "--observe", &observer]);
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let start = |arguments: &[&str]| {
            let mut command = router.command();
            command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
            Running(command.spawn().unwrap())
        };
        let face = format!("udp4://{}", silent.local_addr().unwrap());
        let mut producer = start(&["poke", "/kept", "--freshness", "600000"]);
        producer.0.stdin.take().unwrap().write_all(b"hello").unwrap();
        let (concert, server) = (start(&["tag", "advertise", "concert"]), start(&["pingserver", "/alive"]));
        eventually("all have registered", || {
            let routes = router.ask(&["route", "list"]);
            routes.contains("/kept") && routes.contains("/alive") && router.ask(&["tag", "routes"]).contains("concert")
        });
        router.ask(&["peek", "/kept"]);
        router.ask(&["route", "add", "/wait", &face]);
        let waiting = start(&["peek", "/wait", "--lifetime", "600000", "--timeout", "600000"]);
        eventually("an Interest waits", || router.ask(&["explain", "/wait"]).contains("was asked"));
        router.tool(&["peek", "/lost"]);
        let programs = [producer, concert, server, waiting];
        Scene { router, observer, _programs: programs, silent, _directory: directory }
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let silent = format!("udp4://{}", self.silent.local_addr().unwrap());
        let arguments: Vec<&str> = arguments.iter().map(|&word| if word == FACE { &silent } else { word }).collect();
        serde_json::from_str(&self.router.ask(&[&["--json"], &arguments[..]].concat())).unwrap()
    }

    /// What programs read from a command's output.
    fn of_command(&self, arguments: &[&str], facts: &mut BTreeSet<String>) {
        keys(&format!("namewire {}", arguments[..arguments.len().min(2)].join(" ")), &self.json(arguments), facts);
    }

    /// The first message of the page's stream.
    fn event(&self) -> Value {
        let mut connection = TcpStream::connect(&self.observer).unwrap();
        write!(connection, "GET /events HTTP/1.1\r\nHost: {}\r\n\r\n", self.observer).unwrap();
        let mut lines = BufReader::new(connection).lines().map_while(Result::ok);
        let message = lines.find_map(|line| line.strip_prefix("data: ").map(str::to_owned)).expect("a message");
        serde_json::from_str(&message).unwrap()
    }

    fn of_datasets(&self, facts: &mut BTreeSet<String>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = Client::connect_to(self.router.uri().parse().unwrap()).await.unwrap();
            for (dataset, nested) in DATASETS {
                let name: NameBuf = format!("/localhost/nfd/{dataset}").parse().unwrap();
                numbers(dataset, "", nested, &client.dataset(&name).await.unwrap(), facts);
            }
        });
    }
}

/// The paths of all values of a document.
fn keys(path: &str, value: &Value, facts: &mut BTreeSet<String>) {
    match value {
        Value::Array(values) => {
            facts.insert(format!("{path}[]"));
            values.iter().for_each(|value| keys(&format!("{path}[]"), value, facts));
        }
        Value::Object(_) if MAPS.iter().any(|map| path.ends_with(&format!("status: {map}"))) => {
            facts.insert(format!("{path}.*"));
        }
        Value::Object(values) => values.iter().for_each(|(key, value)| {
            let separator = if path.contains(": ") || path.ends_with(']') { "." } else { ": " };
            keys(&format!("{path}{separator}{key}"), value, facts);
        }),
        _ => _ = facts.insert(path.to_owned()),
    }
}

/// The type numbers of all fields of a dataset.
fn numbers(dataset: &str, path: &str, nested: &[&str], content: &[u8], facts: &mut BTreeSet<String>) {
    let mut reader = Reader::new(content);
    while let Some(element) = reader.next_element().unwrap() {
        let path = format!("{path}{}{}", if path.is_empty() { "" } else { "." }, element.type_number);
        match nested.contains(&&path[..]) {
            true => numbers(dataset, &path, nested, element.value, facts),
            false => _ = facts.insert(format!("{dataset} {path}")),
        }
    }
}

#[test]
fn what_programs_read_keeps_its_name() {
    let scene = Scene::new();
    let mut facts = BTreeSet::new();
    CHANGES.iter().for_each(|change| scene.of_command(change, &mut facts));
    eventually("rates and answers of faces are known", || {
        scene.router.ask(&["ping", "/alive", "--count", "1"]);
        let faces = scene.json(&["face", "list"]);
        let faces = faces.as_array().unwrap();
        faces.iter().any(|face| face["health"]["recent"].is_object())
            && faces.iter().any(|face| face["health"]["median_us"].is_u64())
            && !scene.event()["faces"].as_array().unwrap().iter().all(|face| face["rate"].is_null())
    });
    VIEWS.iter().for_each(|view| scene.of_command(view, &mut facts));
    scene.of_datasets(&mut facts);
    for document in DOCUMENTS {
        keys(document, &serde_json::from_str(&http_get(&scene.observer, document)).unwrap(), &mut facts);
    }
    keys("/events", &scene.event(), &mut facts);
    let metrics = http_get(&scene.observer, "/metrics");
    facts.extend(
        metrics.lines().filter(|line| line.starts_with("# TYPE")).map(|line| line["# TYPE ".len()..].to_owned()),
    );
    ENDS.iter().for_each(|end| scene.of_command(end, &mut facts));
    // A face that has just come has no rate yet; the parts of a rate are listed.
    facts.remove("/events: faces[].rate");

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/facts.txt");
    let now: String = facts.iter().map(|fact| format!("{fact}\n")).collect();
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        fs::write(&path, &now).unwrap();
    }
    let listed = fs::read_to_string(&path).unwrap_or_default();
    let listed: BTreeSet<String> = listed.lines().map(str::to_owned).collect();
    let difference =
        |one: &BTreeSet<String>, other: &BTreeSet<String>| one.difference(other).cloned().collect::<Vec<_>>();
    assert_eq!((difference(&listed, &facts), difference(&facts, &listed)), (Vec::new(), Vec::new()), "gone, and new");
}
