//! Upgrades at full load: a router hands over to another program again and again, while a load generator keeps its
//! workers busy and files are fetched from neighbours over UDP and TCP.
//!
//! No FaceId and no route changes, no connection closes, and all fetches complete. The test prints how long nothing was
//! forwarded, as the router says, and the longest gap between two answers that an application saw.
//!
//! `NAMEWIRE_UPGRADES=20 cargo test --release -p namewire-cli --test soak upgrades -- --nocapture` makes 20 of them
//! with each number of workers, and expects that none takes longer than [`STALL_MS_MAX`]. Without the variable there
//! are two, and no time is expected.

use crate::{
    program,
    router_process::{Router, eventually, free_port},
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Instant,
};

/// What nobody should have to wait longer for.
const STALL_MS_MAX: f64 = 300.0;

/// Faces with fewer packets belong to tools that come and go.
const USED_PACKETS: u64 = 50;

/// A tool that runs until the test ends it.
struct Tool(Child);

impl Tool {
    fn start(words: &[&str]) -> Tool {
        let mut command = Command::new(program());
        command.env("HOME", "/nonexistent").args(words);
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Tool(quiet.spawn().unwrap())
    }

    fn is_running(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An application that pings all the time, and the longest gap between two answers.
struct Pings {
    tool: Child,
    gap_us: Arc<AtomicU64>,
    answers: Arc<AtomicU64>,
}

impl Pings {
    fn start(transport: &str, name: &str) -> Pings {
        let mut command = Command::new(program());
        command.env("HOME", "/nonexistent").args(["--transport", transport, "ping", name, "-i", "5"]);
        let mut tool = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (gap_us, answers) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let (lines, gap, count) = (tool.stdout.take().unwrap(), Arc::clone(&gap_us), Arc::clone(&answers));
        std::thread::spawn(move || {
            let mut last: Option<Instant> = None;
            for line in BufReader::new(lines).lines().map_while(Result::ok) {
                if line.starts_with("content from") {
                    let now = Instant::now();
                    let since = last.replace(now).map_or(0, |last| now.duration_since(last).as_micros() as u64);
                    gap.fetch_max(since, Ordering::Relaxed);
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Pings { tool, gap_us, answers }
    }

    fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    /// The longest gap since the last call.
    fn take_gap_ms(&self) -> f64 {
        self.gap_us.swap(0, Ordering::Relaxed) as f64 / 1000.0
    }
}

impl Drop for Pings {
    fn drop(&mut self) {
        let _ = self.tool.kill();
        let _ = self.tool.wait();
    }
}

/// Fetches a file again and again; each time it must be whole.
struct Fetches {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
}

impl Fetches {
    fn start(transport: String, name: &'static str, directory: &Path, content: Arc<Vec<u8>>) -> Fetches {
        let stop = Arc::<AtomicBool>::default();
        let (stops, copy) = (Arc::clone(&stop), directory.join(name.replace('/', "-")));
        let fetch = move || {
            let mut fetched = 0;
            while !stops.load(Ordering::Relaxed) {
                let mut command = Command::new(program());
                command.env("HOME", "/nonexistent").args(["--transport", &transport, "get", name, "-o"]).arg(&copy);
                let output = command.output().unwrap();
                assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
                assert!(fs::read(&copy).unwrap() == *content, "{name} is not whole");
                fetched += 1;
            }
            fetched
        };
        Fetches { stop, thread: Some(std::thread::spawn(fetch)) }
    }

    /// How many were fetched.
    fn stop(&mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

fn json(router: &Router, words: &[&str]) -> Value {
    serde_json::from_str(&router.ask(words)).unwrap()
}

/// The faces that carry the load, with both ends.
fn used_faces(router: &Router) -> BTreeMap<u64, (String, String)> {
    let list = json(router, &["face", "list", "--json"]);
    let is_used = |face: &&Value| {
        let packets = ["in_interests", "in_data"].map(|name| face[name].as_u64().unwrap_or_default());
        face["face_id"].as_u64() > Some(255) && packets.into_iter().max() > Some(USED_PACKETS)
    };
    let ends = |face: &Value| (face["remote_uri"].to_string(), face["local_uri"].to_string());
    list.as_array()
        .unwrap()
        .iter()
        .filter(is_used)
        .map(|face| (face["face_id"].as_u64().unwrap(), ends(face)))
        .collect()
}

/// Those that no fetch has opened.
fn lasting(faces: &BTreeMap<u64, (String, String)>, first: &BTreeMap<u64, (String, String)>) -> usize {
    first.iter().filter(|(face, ends)| faces.get(face) == Some(ends)).count()
}

/// A router between two neighbours that serve, under load from two generators, with three applications that ping.
struct Site {
    router: Router,
    /// Where applications connect, over Unix, TCP and UDP.
    over: [String; 3],
    pings: Vec<Pings>,
    /// Servers and generators.
    tools: Vec<Tool>,
    _neighbours: [Router; 2],
}

fn run(directory: &Path, name: &str, arguments: &[&str]) -> Router {
    let place = directory.join(name);
    fs::create_dir(&place).unwrap();
    let socket = place.join("nfd.sock");
    let mut command = Command::new(program());
    Router::start(&socket, command.args(["run", "--socket"]).arg(&socket).args(arguments))
}

impl Site {
    fn start(workers: &str, directory: &Path, film: &str) -> Site {
        let [udp, tcp, own] = [free_port(), free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
        let by_udp = run(directory, "by-udp", &["--no-tcp", "--listen-udp", &udp]);
        let by_tcp = run(directory, "by-tcp", &["--no-udp", "--listen-tcp", &tcp]);
        let (at_udp, at_tcp) = (by_udp.uri(), by_tcp.uri());
        let mut tools = vec![
            Tool::start(&["--transport", &at_udp, "put", film, "/by-udp/film", "--version", "1"]),
            Tool::start(&["--transport", &at_tcp, "put", film, "/by-tcp/film", "--version", "1"]),
            Tool::start(&["--transport", &at_udp, "pingserver", "/by-udp"]),
            Tool::start(&["--transport", &at_tcp, "pingserver", "/by-tcp"]),
        ];
        let routes = [format!("/by-udp=udp4://{udp}"), format!("/by-tcp=tcp4://{tcp}")];
        let listens = ["--workers", workers, "--listen-udp", &own, "--listen-tcp", &own];
        let declares = ["--route", &routes[0], "--route", &routes[1]];
        let router = run(directory, "router", &[&listens[..], &declares].concat());
        let over = [router.uri(), format!("tcp://{own}"), format!("udp://{own}")];
        for name in ["/by-udp", "/by-tcp"] {
            eventually("the neighbours answer", || router.tool(&["ping", name, "-c", "1"]).status.success());
        }
        tools.push(Tool::start(&["--transport", &over[0], "traffic", "serve", "/load"]));
        eventually("the load is answered", || router.ask(&["route", "list"]).contains("/load"));
        for over in [&over[0], &over[2]] {
            let load = ["traffic", "send", "/load", "--window", "64", "--lifetime", "500", "--duration", "100000"];
            tools.push(Tool::start(&[&["--transport", over][..], &load].concat()));
        }
        let names = ["/by-udp", "/by-tcp", "/by-tcp"];
        let pings: Vec<Pings> = over.iter().zip(names).map(|(over, name)| Pings::start(over, name)).collect();
        eventually("all ask", || pings.iter().all(|pings| pings.answers() > USED_PACKETS));
        Site { router, over, pings, tools, _neighbours: [by_udp, by_tcp] }
    }

    /// Upgrades; how long nothing was forwarded, and the longest gap of an application, in milliseconds.
    fn upgrade(&self, number: u32) -> (f64, f64) {
        self.pings.iter().for_each(|pings| _ = pings.take_gap_ms());
        let before: Vec<u64> = self.pings.iter().map(Pings::answers).collect();
        let outcome = json(&self.router, &["upgrade", "--json", "--timeout", "300"]);
        assert_eq!((outcome["number"].as_u64(), &outcome["state"]), (Some(number.into()), &"done".into()), "{outcome}");
        eventually("all are answered again", || {
            self.pings.iter().zip(&before).all(|(pings, before)| pings.answers() > before + USED_PACKETS)
        });
        let gap_ms = self.pings.iter().map(Pings::take_gap_ms).fold(0.0, f64::max);
        (outcome["upgraded"]["stall_ms"].as_f64().unwrap(), gap_ms)
    }

    fn tables(&self) -> String {
        self.router.ask(&["route", "list", "--json"]) + &self.router.ask(&["strategy", "list", "--json"])
    }
}

fn upgrades(workers: &str, count: u32, expects_time: bool) {
    let directory = tempfile::tempdir().unwrap();
    let content: Arc<Vec<u8>> = Arc::new((0..2_000_000_u32).map(|at| (at.wrapping_mul(at) >> 8) as u8).collect());
    let film = directory.path().join("film");
    fs::write(&film, &*content).unwrap();
    let mut site = Site::start(workers, directory.path(), film.to_str().unwrap());
    let (first, tables) = (used_faces(&site.router), site.tables());
    assert!(first.len() >= 7, "two neighbours, three pings, load and its server: {first:?}");
    let mut fetches = [("/by-udp/film", 0), ("/by-tcp/film", 1)]
        .map(|(name, over)| Fetches::start(site.over[over].clone(), name, directory.path(), Arc::clone(&content)));

    let (mut stalls, mut gaps) = (Vec::new(), Vec::new());
    for number in 1..=count {
        let (stall_ms, gap_ms) = site.upgrade(number);
        stalls.push(stall_ms);
        gaps.push(gap_ms);
        let faces = used_faces(&site.router);
        assert_eq!(lasting(&faces, &first), first.len(), "{faces:?} and {first:?} at first");
        assert_eq!(site.tables(), tables);
    }
    let fetched = fetches.each_mut().map(Fetches::stop);
    assert!(fetched.iter().all(|fetched| *fetched > 0), "{fetched:?}");
    assert!(site.tools.iter_mut().all(Tool::is_running), "load and servers go on");
    let satisfied = &json(&site.router, &["status", "--json"])["satisfied_interests"];
    println!(
        "{workers} workers: {count} upgrades, {fetched:?} files fetched, {satisfied} Interests since the last one"
    );
    println!("  nothing forwarded (ms): {}", quantiles(&mut stalls));
    println!("  longest gap of an application (ms): {}", quantiles(&mut gaps));
    assert!(!expects_time || stalls.iter().all(|stall| *stall <= STALL_MS_MAX), "{stalls:?}");
    let Site { mut router, pings, tools, .. } = site;
    drop((pings, tools));
    router.terminate();
    assert!(!router.socket.exists());
}

fn quantiles(of: &mut [f64]) -> String {
    of.sort_by(f64::total_cmp);
    format!("min {:.1}, median {:.1}, max {:.1}", of[0], of[of.len() / 2], of[of.len() - 1])
}

#[test]
fn upgrades_at_full_load_leave_everything_as_it_was() {
    let count = std::env::var("NAMEWIRE_UPGRADES").map(|text| text.parse().expect("a number"));
    for workers in ["1", "2"] {
        upgrades(workers, count.as_ref().map_or(2, |count| *count), count.is_ok());
    }
}
