//! Four routers, each in a separate namespace, joined by Ethernet cables:
//!
//! ```text
//!          ┌── b ──┐       cost 1 by b
//!   get ── a       d ── put
//!          └── c ──┘       cost 10 by c
//! ```
//!
//! Applications run outside the namespaces and reach their routers over Unix sockets. Making namespaces needs root; if
//! they cannot be made, a test prints this and passes.

use crate::router_process::{PATIENCE, eventually};
use namewire_packet::nfd::FacePersistency;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::{
    cell::{Cell, RefCell},
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::fd::AsFd,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio, id},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

const FILE_BYTES: usize = 50_000_000;
/// Small, so that a fetch takes long enough to be cut in the middle.
const SEGMENT_BYTES: u64 = 1200;

/// Both ends of a cable: the interfaces have its name, the first host has address 1.
const CABLES: [(&str, char, char, u8); 4] =
    [("ab", 'a', 'b', 1), ("ac", 'a', 'c', 2), ("bd", 'b', 'd', 3), ("cd", 'c', 'd', 4)];

/// From router, to router, address, cost.
const ROUTES: [(char, &str, u32); 4] = [
    ('a', "udp4://10.91.1.2:6363", 1),
    ('a', "udp4://10.91.2.2:6363", 10),
    ('b', "udp4://10.91.3.2:6363", 1),
    ('c', "udp4://10.91.4.2:6363", 1),
];

/// Where each router is observed, in its namespace.
const OBSERVER: &str = "127.0.0.1:9695";

/// A process that ends with the test.
pub(crate) struct Process(RefCell<Child>);

impl Drop for Process {
    fn drop(&mut self) {
        let child = self.0.get_mut();
        let _ = child.kill(); // also one that was stopped
        let _ = child.wait();
    }
}

/// A router process.
pub(crate) struct Router {
    process: Process,
    socket: PathBuf,
}

pub(crate) struct Diamond {
    number: u32,
    directory: tempfile::TempDir,
    routers: Vec<(char, Router)>,
    producer: Option<Process>,
    content: Vec<u8>,
    fetches: Cell<u32>,
}

fn binary() -> PathBuf {
    std::env::var_os("NAMEWIRE_UNDER_TEST").map_or_else(|| env!("CARGO_BIN_EXE_namewire").into(), PathBuf::from)
}

fn shell(command: &str) -> Output {
    Command::new("sh").args(["-c", command]).output().expect("a shell")
}

fn must(command: &str) {
    let output = shell(command);
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Diamond {
    /// Four routers whose faces to the producer have this persistency, and a file that is served.
    pub(crate) fn new(persistency: FacePersistency) -> Option<Diamond> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mut diamond = Diamond {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            directory: tempfile::tempdir().unwrap(),
            routers: Vec::new(),
            producer: None,
            content: (0..FILE_BYTES).map(|i| (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()[0]).collect(),
            fetches: Cell::new(0),
        };
        for host in ['a', 'b', 'c', 'd'] {
            let command = format!("ip netns add {0} && ip -n {0} link set lo up", diamond.namespace(host));
            let output = shell(&command);
            if !output.status.success() {
                println!("skipped: {command}: {}", String::from_utf8_lossy(&output.stderr).trim());
                return None;
            }
        }
        for (cable, left, right, subnet) in CABLES {
            let (left, right) = (diamond.namespace(left), diamond.namespace(right));
            must(&format!("ip -n {left} link add {cable} type veth peer name {cable} netns {right}"));
            for (end, host) in [(left, 1), (right, 2)] {
                must(&format!("ip -n {end} addr add 10.91.{subnet}.{host}/24 dev {cable}"));
                must(&format!("ip -n {end} link set {cable} up"));
            }
        }
        for host in ['a', 'b', 'c', 'd'] {
            let router = diamond.start(host);
            diamond.routers.push((host, router));
        }
        for (host, remote, cost) in ROUTES {
            diamond.router(host).ask(&["face", "create", remote, "--persistency", persistency.word()]);
            diamond.router(host).ask(&["route", "add", "/file", remote, "--cost", &cost.to_string()]);
        }
        diamond.serve();
        Some(diamond)
    }

    fn namespace(&self, host: char) -> String {
        format!("nwf{}-{}-{host}", id(), self.number)
    }

    fn start(&self, host: char) -> Router {
        let socket = self.directory.path().join(format!("{host}.sock"));
        let mut process = Command::new("ip")
            .args(["netns", "exec", &self.namespace(host)])
            .arg(binary())
            // Without stores, so that nothing of an earlier fetch answers.
            .args(["run", "--no-tcp", "--set", "cs.packets=1", "--observe", OBSERVER, "--socket"])
            .arg(&socket)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        read_line(&mut process);
        Router { process: Process(RefCell::new(process)), socket }
    }

    fn serve(&mut self) {
        let file = self.directory.path().join("content");
        fs::write(&file, &self.content).unwrap();
        let mut process = self.router('d').tool();
        process.arg("put").arg(file).args(["/file", "--version", "1", "--chunk-size", &SEGMENT_BYTES.to_string()]);
        let mut process = process.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        read_line(&mut process);
        self.producer = Some(Process(RefCell::new(process)));
    }

    pub(crate) fn router(&self, host: char) -> &Router {
        &self.routers.iter().find(|(name, _)| *name == host).expect("a router of each host").1
    }

    /// Where router a's cheap way leads.
    pub(crate) fn cheap(&self) -> &'static str {
        ROUTES[0].1
    }

    pub(crate) fn segments(&self) -> u64 {
        self.content.len() as u64 / SEGMENT_BYTES
    }

    pub(crate) fn ip(&self, host: char, arguments: &str) {
        must(&format!("ip -n {} {arguments}", self.namespace(host)));
    }

    /// The beginning of what a router's observer answers: the whole answer, or the first event of a stream.
    pub(crate) fn observe(&self, host: char, path: &str) -> String {
        let namespace = fs::File::open(format!("/var/run/netns/{}", self.namespace(host))).unwrap();
        let is_stream = path == "/events"; // an event ends with an empty line
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        // A thread of its own, which stays in the namespace until it ends.
        let fetch = move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            let mut stream = TcpStream::connect(OBSERVER).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let (mut answer, mut chunk) = (Vec::new(), [0; 65_536]);
            loop {
                let bytes = stream.read(&mut chunk).unwrap();
                answer.extend_from_slice(&chunk[..bytes]);
                let text = String::from_utf8_lossy(&answer);
                if bytes == 0 || is_stream && text.contains("\n\n") {
                    return text.into_owned();
                }
            }
        };
        std::thread::spawn(fetch).join().unwrap()
    }

    pub(crate) fn signal(&self, host: char, signal: &str) {
        let pid = self.router(host).process.0.borrow().id();
        must(&format!("kill {signal} {pid}"));
    }

    /// Begins to fetch the file.
    pub(crate) fn fetch(&self) -> Fetch<'_> {
        let number = self.fetches.replace(self.fetches.get() + 1);
        let path = self.directory.path().join(format!("got-{number}"));
        let mut tool = self.router('a').tool();
        tool.args(["get", "/file/v=1", "--quiet", "--output"]).arg(&path);
        let process = Process(RefCell::new(tool.spawn().unwrap()));
        Fetch { diamond: self, process, path, began: Instant::now() }
    }
}

fn read_line(process: &mut Child) {
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(!line.is_empty(), "the process said nothing");
}

impl Drop for Diamond {
    fn drop(&mut self) {
        self.producer = None;
        self.routers.clear();
        for host in ['a', 'b', 'c', 'd'] {
            shell(&format!("ip netns delete {}", self.namespace(host)));
        }
    }
}

impl Router {
    fn tool(&self) -> Command {
        let mut command = Command::new(binary());
        command.args(["--transport", &format!("unix://{}", self.socket.display())]);
        command
    }

    pub(crate) fn ask(&self, arguments: &[&str]) -> String {
        let output = self.tool().args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn faces(&self) -> serde_json::Value {
        serde_json::from_str(&self.ask(&["face", "list", "--json"])).unwrap()
    }

    /// Whether the face that leads there is listed as down.
    pub(crate) fn has_face_down(&self, remote: &str) -> bool {
        self.faces().as_array().unwrap().iter().any(|face| face["remote_uri"] == remote && face["state"] == "down")
    }

    pub(crate) fn has_face(&self, remote: &str) -> bool {
        self.faces().as_array().unwrap().iter().any(|face| face["remote_uri"] == remote)
    }

    pub(crate) fn interests_sent_to(&self, remote: &str) -> u64 {
        let faces = self.faces();
        let face = faces.as_array().unwrap().iter().find(|face| face["remote_uri"] == remote).expect("the face");
        face["out_interests"].as_u64().unwrap()
    }
}

/// A `namewire get` under way.
pub(crate) struct Fetch<'a> {
    diamond: &'a Diamond,
    process: Process,
    path: PathBuf,
    began: Instant,
}

impl Fetch<'_> {
    /// How much of the file is there.
    pub(crate) fn share(&self) -> f64 {
        let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
        let mut part = self.path.clone().into_os_string();
        part.push(".part");
        size(part.as_ref()).max(size(&self.path)) as f64 / self.diamond.content.len() as f64
    }

    pub(crate) fn wait_for_share(&self, share: f64) {
        let end = Instant::now() + PATIENCE;
        while self.share() < share {
            assert!(Instant::now() < end, "no more than {:.0} % came", 100.0 * self.share());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until the whole file is there; how long it took.
    pub(crate) fn wait(self) -> Duration {
        eventually("the fetch ends", || self.process.0.borrow_mut().try_wait().unwrap().is_some());
        let took = self.began.elapsed();
        let status = self.process.0.borrow_mut().wait().unwrap();
        assert!(status.success(), "{status}");
        assert!(fs::read(&self.path).unwrap() == self.diamond.content, "the content differs");
        fs::remove_file(&self.path).unwrap();
        took
    }
}
