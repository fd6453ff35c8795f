//! Two hosts with NDN routers, and two IP routers between them, each in a separate namespace:
//!
//! ```text
//!   a ──1500── r ──1200── s ──1500── c
//! ```
//!
//! Making namespaces needs root; if they cannot be made, a test prints this and passes. No packet leaves them.

use crate::router_process::{NAMEWIRE, Router, eventually};
use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio, id},
    sync::atomic::{AtomicU32, Ordering},
};

const HOSTS: [char; 4] = ['a', 'r', 's', 'c'];

/// Both ends of a cable, and its subnet: the interfaces have its name, the first host has address 1.
const CABLES: [(&str, char, char, u8); 3] = [("ar", 'a', 'r', 1), ("rs", 'r', 's', 2), ("sc", 's', 'c', 3)];

/// The ways to subnets that are not the host's own.
const ROUTES: [(char, &str); 4] = [
    ('a', "default via 10.93.1.2"),
    ('r', "10.93.3.0/24 via 10.93.2.2"),
    ('s', "10.93.1.0/24 via 10.93.2.1"),
    ('c', "default via 10.93.3.1"),
];

pub(crate) struct Network {
    number: u32,
    pub(crate) directory: tempfile::TempDir,
}

fn shell(command: &str) -> Output {
    Command::new("sh").args(["-c", command]).output().expect("a shell")
}

fn must(command: &str) {
    let output = shell(command);
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Network {
    pub(crate) fn new() -> Option<Network> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let network = Network { number: NEXT.fetch_add(1, Ordering::Relaxed), directory: tempfile::tempdir().unwrap() };
        for host in HOSTS {
            let command = format!(
                "ip netns add {0} && ip -n {0} link set lo up && \
                 ip netns exec {0} sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'",
                network.namespace(host)
            );
            let output = shell(&command);
            if !output.status.success() {
                println!("skipped: {command}: {}", String::from_utf8_lossy(&output.stderr).trim());
                return None;
            }
        }
        for (cable, left, right, subnet) in CABLES {
            let (left, right) = (network.namespace(left), network.namespace(right));
            must(&format!("ip -n {left} link add {cable} type veth peer name {cable} netns {right}"));
            for (end, host) in [(left, 1), (right, 2)] {
                must(&format!("ip -n {end} addr add 10.93.{subnet}.{host}/24 dev {cable}"));
                must(&format!("ip -n {end} link set {cable} up"));
            }
        }
        for (host, route) in ROUTES {
            network.ip(host, &format!("route add {route}"));
        }
        network.set_middle_mtu(1200);
        Some(network)
    }

    fn namespace(&self, host: char) -> String {
        format!("nwp{}-{}-{host}", id(), self.number)
    }

    pub(crate) fn ip(&self, host: char, arguments: &str) {
        must(&format!("ip -n {} {arguments}", self.namespace(host)));
    }

    pub(crate) fn set_middle_mtu(&self, bytes: usize) {
        for host in ['r', 's'] {
            self.ip(host, &format!("link set rs mtu {bytes}"));
        }
    }

    /// How many pieces IP has made of datagrams, on all hosts.
    pub(crate) fn ip_fragments(&self) -> u64 {
        let of_host = |host| {
            let table = shell(&format!("ip netns exec {} grep ^Ip: /proc/net/snmp", self.namespace(host)));
            let table = String::from_utf8(table.stdout).unwrap();
            let (names, values) = table.split_once('\n').expect("names and values");
            let column = names.split(' ').position(|name| name == "FragCreates").expect("the counter");
            values.trim().split(' ').nth(column).unwrap().parse::<u64>().unwrap()
        };
        HOSTS.into_iter().map(of_host).sum()
    }

    /// Where the host names are that routers of this network see.
    pub(crate) fn hosts_file(&self) -> PathBuf {
        self.directory.path().join("hosts")
    }

    /// Names this address `peer.test`, and nothing else.
    pub(crate) fn name_peer(&self, address: &str) {
        fs::write(self.hosts_file(), format!("{address} peer.test\n")).unwrap();
    }

    /// Starts a router on a host. It stores no Data, so that nothing of an earlier fetch answers.
    pub(crate) fn start(&self, host: char, arguments: &[&str]) -> Router {
        let socket = self.directory.path().join(format!("{host}.sock"));
        if !self.hosts_file().exists() {
            self.name_peer("192.0.2.1");
        }
        let mut command = Command::new("ip");
        // The mount is of the process alone: `ip netns exec` gives it a table of mounts of its own.
        command.args(["netns", "exec", &self.namespace(host), "sh", "-c"]);
        command.arg("mount --bind \"$0\" /etc/hosts && exec \"$@\"").arg(self.hosts_file());
        command.arg(NAMEWIRE).args(["run", "--no-tcp", "--set", "cs.packets=1", "--socket"]).arg(&socket);
        Router::start(&socket, command.args(arguments))
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for host in HOSTS {
            shell(&format!("ip netns delete {}", self.namespace(host)));
        }
    }
}

/// A file that a router's application serves as `/file/v=1`, until it is dropped.
pub(crate) struct Served {
    producer: Child,
    content: Vec<u8>,
}

impl Served {
    /// In segments of 8000 bytes.
    pub(crate) fn by(router: &Router, directory: &Path) -> Served {
        let content: Vec<u8> =
            (0..200_000u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()[0]).collect();
        let file = directory.join("content");
        fs::write(&file, &content).unwrap();
        let mut command = router.command();
        command.arg("put").arg(file).args(["/file", "--version", "1", "--chunk-size", "8000"]);
        let mut producer = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(producer.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "the producer said nothing");
        Served { producer, content }
    }

    /// True if the whole file came through `router`.
    pub(crate) fn arrives_at(&self, router: &Router, directory: &Path) -> bool {
        let path = directory.join("got");
        let _ = fs::remove_file(&path); // of an earlier fetch
        let mut command = router.command();
        let output = command.args(["get", "/file/v=1", "--quiet", "--output"]).arg(&path).output().unwrap();
        output.status.success() && fs::read(&path).unwrap() == self.content
    }

    pub(crate) fn must_arrive_at(&self, router: &Router, directory: &Path) {
        eventually("the file arrives", || self.arrives_at(router, directory));
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.producer.kill();
        let _ = self.producer.wait();
    }
}
