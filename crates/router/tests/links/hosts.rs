//! Hosts on one Ethernet segment: each has a namespace, and a bridge in another namespace joins them.

use crate::application::{Application, eventually, name};
use namewire_configuration::{Configuration, Settings, settings::EthernetIo};
use namewire_faces::ethernet::{self, LinkIo};
use namewire_packet::{
    FaceId,
    nfd::{ControlParameters, FaceStatus, MacAddress},
};
use namewire_router::{Router, RouterHandle};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use socket2::Socket;
use std::{
    fs::File,
    os::fd::AsFd,
    process::{Command, Output, id},
    sync::atomic::{AtomicU32, Ordering},
};

/// A bridge and the hosts plugged into it.
pub(crate) struct Segment {
    number: u32,
    hosts: usize,
    /// How the routers' Ethernet frames get to them.
    pub(crate) io: EthernetIo,
}

/// A host with its router.
pub(crate) struct Host {
    pub(crate) router: RouterHandle,
    namespace: String,
    _directory: tempfile::TempDir,
}

fn run(command: &str) -> Output {
    let words: Vec<&str> = command.split_whitespace().collect();
    Command::new(words[0]).args(&words[1..]).output().expect("the command can be started")
}

fn must(command: &str) {
    let output = run(command);
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Segment {
    /// A segment of `hosts` hosts, numbered from 0, with `eth0` at `10.77.0.(number + 1)`. Where namespaces cannot be
    /// made, it prints a line that says so and returns `None`.
    pub(crate) fn new(hosts: usize) -> Option<Segment> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let segment = Segment { number: NEXT.fetch_add(1, Ordering::Relaxed), hosts, io: EthernetIo::Socket };
        let hub = segment.namespace("hub");
        for needed in [format!("ip netns add {hub}"), format!("ip -n {hub} link add br0 type bridge")] {
            let output = Command::new("sh").args(["-c", &needed]).output().expect("a shell");
            if !output.status.success() {
                println!("skipped: {needed}: {}", String::from_utf8_lossy(&output.stderr).trim());
                return None;
            }
        }
        must(&format!("ip -n {hub} link set br0 up"));
        for host in 0..hosts {
            let namespace = segment.namespace(&host.to_string());
            must(&format!("ip netns add {namespace}"));
            must(&format!("ip -n {namespace} link set lo up"));
            must(&format!("ip -n {hub} link add port{host} type veth peer name eth0 netns {namespace}"));
            must(&format!("ip -n {hub} link set port{host} master br0 up"));
            must(&format!("ip -n {namespace} addr add 10.77.0.{}/24 dev eth0", host + 1));
            // Duplicate address detection is off, or link-local addresses would come late.
            must(&format!("ip netns exec {namespace} sysctl -qw net.ipv6.conf.eth0.accept_dad=0"));
            must(&format!("ip -n {namespace} link set eth0 address 02:00:00:00:00:0{} up", host + 1));
        }
        Some(segment)
    }

    /// A segment for each way in which Ethernet frames can get to routers; none where namespaces cannot be made.
    pub(crate) fn with_each_port(hosts: usize) -> impl Iterator<Item = Segment> {
        let ways = [EthernetIo::Socket, EthernetIo::Xdp].into_iter();
        ways.filter_map(move |io| Segment::new(hosts)?.with(io))
    }

    /// The same with another way. `None`, with a line that says so, if it does not work on this machine.
    pub(crate) fn with(mut self, io: EthernetIo) -> Option<Self> {
        self.io = io;
        if io == EthernetIo::Socket {
            return Some(self);
        }
        let opened = self.on_host(0, || {
            let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
            let index = rustix::net::netdevice::name_to_index(&socket, "eth0")?;
            ethernet::open(index, "eth0", MacAddress([2, 0, 0, 0, 0, 1]), 1500, LinkIo::Xdp).map(drop)
        });
        match opened {
            Ok(()) => Some(self),
            Err(error) => {
                println!("skipped: AF_XDP does not work on this machine: {error}");
                None
            }
        }
    }

    fn namespace(&self, part: &str) -> String {
        format!("nw{}-{}-{part}", id(), self.number)
    }

    /// Runs `ip` in a host's namespace.
    pub(crate) fn ip(&self, host: usize, arguments: &str) {
        must(&format!("ip -n {} {arguments}", self.namespace(&host.to_string())));
    }

    /// What `ip` prints in a host's namespace.
    pub(crate) fn output(&self, host: usize, arguments: &str) -> String {
        let output = run(&format!("ip -n {} {arguments}", self.namespace(&host.to_string())));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs `ip` in the namespace of the bridge, whose end of host `n`'s cable is `port<n>`.
    pub(crate) fn hub_ip(&self, arguments: &str) {
        must(&format!("ip -n {} {arguments}", self.namespace("hub")));
    }

    /// Runs `work` on a thread in a host's namespace.
    pub(crate) fn on_host<R: Send>(&self, host: usize, work: impl FnOnce() -> R + Send) -> R {
        self.inside(&host.to_string(), work)
    }

    /// A socket for whole frames at the bridge's end of a host's cable.
    pub(crate) fn socket_at_cable(&self, host: usize) -> Socket {
        self.inside("hub", || {
            let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
            let index = rustix::net::netdevice::name_to_index(&socket, &format!("port{host}")).unwrap();
            ethernet::open_whole_frames(index).unwrap()
        })
    }

    fn inside<R: Send>(&self, part: &str, work: impl FnOnce() -> R + Send) -> R {
        let namespace = File::open(format!("/run/netns/{}", self.namespace(part))).unwrap();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
                work()
            });
            thread.join().unwrap()
        })
    }

    /// Starts a host's router. It has a Unix socket only, unless `change` adds to it.
    pub(crate) fn start(&self, host: usize, change: impl FnOnce(&mut Configuration)) -> Host {
        let directory = tempfile::tempdir().unwrap();
        let mut config = Configuration::from(Settings::listening_nowhere());
        let Settings { router, faces, .. } = &mut config.settings;
        (router.workers, router.seed) = (2, Some(host as u64));
        faces.ethernet.io = self.io;
        (faces.unix.enabled, faces.unix.path) = (true, Some(directory.path().join("nfd.sock")));
        change(&mut config);
        let router = self.on_host(host, || Router::start(&config).unwrap());
        assert_eq!(router.warnings(), [] as [String; 0]);
        Host { router, namespace: self.namespace(&host.to_string()), _directory: directory }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        for part in (0..self.hosts).map(|host| host.to_string()).chain(["hub".to_owned()]) {
            run(&format!("ip netns delete {}", self.namespace(&part)));
        }
    }
}

impl Host {
    pub(crate) fn application(&self) -> Application {
        Application::connect(&self.router)
    }

    /// Waits for the face with this remote address, and returns it.
    pub(crate) fn face(&self, remote: &str) -> FaceStatus {
        let mut operator = self.application();
        let mut found = None;
        eventually(&format!("{remote} on {}", self.namespace), || {
            found = operator.faces().into_iter().find(|face| face.uri == remote);
            found.is_some()
        });
        found.unwrap()
    }

    pub(crate) fn has_face(&self, remote: &str) -> bool {
        self.application().faces().iter().any(|face| face.uri == remote)
    }

    pub(crate) fn add_route(&self, prefix: &str, face: FaceId) {
        let route = ControlParameters { name: Some(name(prefix)), face_id: Some(face), ..Default::default() };
        self.application().succeed("/rib/register", route);
    }
}
