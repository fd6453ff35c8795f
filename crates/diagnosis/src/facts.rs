//! Facts: all that the checks look at. Gathering fills it, checks only read it, so each check is tested without a
//! router.
//!
//! A fact that could not be learned is `None` or empty, and the check says so.

use namewire_certification::membership::keeper::NetworkState;
use namewire_packet::{
    FaceId, NameBuf,
    nfd::{DropCounter, FaceHealth, FaceScope, FaceState, FaceStatus, FibEntry, LogRecord, NodeState, RibEntry},
};
use std::collections::BTreeMap;

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Milliseconds since 1970 on this machine.
    pub now_ms: u64,
    /// The user who asks.
    pub user: UserFacts,
    /// How a forwarder was looked for.
    pub approach: ApproachFacts,
    /// The forwarder that answers.
    pub forwarder: Option<ForwarderFacts>,
    /// Its settings, or those of a file if none runs.
    pub settings: SettingsFacts,
    /// The configuration file.
    pub configuration: Option<ConfigurationFacts>,
    /// The forwarder's process.
    pub process: Option<ProcessFacts>,
    /// The machine.
    pub host: HostFacts,
    /// Who has the ports that a router wants.
    pub ports: Vec<PortFacts>,
    /// What neighbours answered.
    pub probes: Vec<ProbeFacts>,
    /// Why no neighbour was probed.
    pub no_probes: Option<String>,
    /// The key chain of this user.
    pub keys: KeyFacts,
    /// Files of certificates that the configuration names, and why they cannot be read.
    pub unreadable_anchors: Vec<String>,
    /// Folders in which the router writes.
    pub folders: Vec<FolderFacts>,
}

/// A user.
#[derive(Clone, Debug, Default)]
pub struct UserFacts {
    /// Its number.
    pub uid: u32,
    /// Its name, if it has one.
    pub name: Option<String>,
}

/// Who chose the forwarder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ChosenBy {
    /// `--transport`.
    Option,
    /// `NDN_CLIENT_TRANSPORT`.
    Environment,
    /// This client.conf.
    ClientConf(String),
    /// Nobody: the usual places.
    #[default]
    Default,
}

/// How a forwarder was looked for.
#[derive(Clone, Debug, Default)]
pub struct ApproachFacts {
    /// Who chose.
    pub chosen_by: ChosenBy,
    /// Environment or client.conf are malformed.
    pub malformed: Option<String>,
    /// The forwarder is reached from another machine, or as if.
    pub is_remote: bool,
    /// Each place that was tried, and why it does not answer.
    pub tried: Vec<(String, String)>,
    /// Unix sockets in the usual places and the one that was chosen.
    pub sockets: Vec<SocketFacts>,
}

/// A Unix socket, or the place for one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketFacts {
    /// Its path.
    pub path: String,
    /// What is there.
    pub file: Option<FileFacts>,
    /// Whether it is a socket.
    pub is_socket: bool,
    /// Why a connection fails; `None` if it succeeds, or if there is no socket.
    pub refusal: Option<Refusal>,
    /// This user could make it: the folder is there and is writable.
    pub can_be_made: bool,
}

impl SocketFacts {
    /// Somebody listens.
    pub fn answers(&self) -> bool {
        self.is_socket && self.refusal.is_none()
    }
}

/// Why a connection to a socket fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Nobody listens: a dead router left the file.
    NobodyListens,
    /// The user may not connect.
    NotPermitted,
    /// Something else.
    Other(String),
}

/// Owner and mode of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileFacts {
    /// The owner.
    pub uid: u32,
    /// Permission bits, 0 to 0o7777.
    pub mode: u32,
}

/// What the forwarder says of itself.
#[derive(Clone, Debug, Default)]
pub struct ForwarderFacts {
    /// How it was reached.
    pub transport: String,
    /// It takes this program for one of its own machine.
    pub is_local: bool,
    /// It is one of ours.
    pub is_namewire: bool,
    /// Its version.
    pub version: String,
    /// The first look.
    pub before: Sample,
    /// The second one.
    pub after: Sample,
    /// Routes.
    pub rib: Vec<RibEntry>,
    /// Prefixes and next hops.
    pub fib: Vec<FibEntry>,
    /// The latest lines of its log.
    pub log: Vec<LogRecord>,
    /// The networks that it keeps the host in.
    pub networks: Vec<NetworkState>,
    /// Datasets that did not come in time.
    pub missing: Vec<String>,
}

/// The forwarder's state at a moment.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Milliseconds of a clock that never jumps.
    pub monotonic_ms: u64,
    /// Milliseconds since 1970.
    pub unix_ms: u64,
    /// What it said.
    pub state: NodeState,
}

impl ForwarderFacts {
    /// The face of this number.
    pub fn face(&self, face: FaceId) -> Option<&FaceStatus> {
        self.after.state.faces.iter().find(|status| status.face_id == face)
    }

    /// How the peer of a face answers.
    pub fn health(&self, face: FaceId) -> Option<&FaceHealth> {
        self.after.state.health_of(face)
    }

    /// True if packets can go there: it exists, and is not down.
    pub fn is_usable(&self, face: FaceId) -> bool {
        self.face(face).is_some_and(|status| status.state != Some(FaceState::Down))
    }

    /// True if the peer is an application of this machine, or the forwarder itself.
    pub fn is_local_face(&self, face: FaceId) -> bool {
        self.face(face).is_some_and(|status| status.face_scope == FaceScope::Local)
    }

    /// `face 259 (udp4://192.0.2.1:6363)`.
    pub fn describe(&self, face: FaceId) -> String {
        match self.face(face) {
            Some(status) => format!("face {face} ({})", status.uri),
            None => format!("face {face}"),
        }
    }

    /// How often it happened so far.
    pub fn count(&self, counter: &str) -> u64 {
        count_in(&self.after.state.drops, counter)
    }

    /// How often it happened between the two looks.
    pub fn growth(&self, counter: &str) -> u64 {
        self.count(counter).saturating_sub(count_in(&self.before.state.drops, counter))
    }

    /// Milliseconds between the two looks.
    pub fn watched_ms(&self) -> u64 {
        self.after.monotonic_ms.saturating_sub(self.before.monotonic_ms)
    }

    /// The FIB entry that serves a name.
    pub fn fib_entry(&self, name: &NameBuf) -> Option<&FibEntry> {
        let covers = |entry: &&FibEntry| entry.name.as_name().is_prefix_of(&name.as_name());
        self.fib.iter().filter(covers).max_by_key(|entry| entry.name.len())
    }

    /// True if a prefix in the FIB has this face as a next hop.
    pub fn is_next_hop(&self, face: FaceId) -> bool {
        self.fib.iter().any(|entry| entry.next_hops.iter().any(|hop| hop.face_id == face))
    }
}

fn count_in(counters: &[DropCounter], name: &str) -> u64 {
    counters.iter().find(|counter| counter.reason == name).map_or(0, |counter| counter.count)
}

/// Settings by key, with values as a configuration file has them.
#[derive(Clone, Debug, Default)]
pub struct SettingsFacts {
    /// Key and value.
    pub values: BTreeMap<String, String>,
    /// Where each value came from, in words.
    pub places: BTreeMap<String, String>,
}

impl SettingsFacts {
    /// True if nothing is known.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Makes paths absolute that are relative to this folder, or forgets them if it is not known.
    pub fn resolve_paths(&mut self, folder: Option<&str>) {
        for key in ["state.file", "repo.folder"] {
            let Some(path) = self.text(key).filter(|path| !path.starts_with('/')) else { continue };
            match folder {
                Some(folder) => {
                    self.values.insert(key.to_owned(), serde_json::json!(format!("{folder}/{path}")).to_string())
                }
                None => self.values.remove(key),
            };
        }
    }

    /// A text, without its quotes.
    pub fn text(&self, key: &str) -> Option<String> {
        let value = self.values.get(key)?;
        Some(serde_json::from_str(value).unwrap_or_else(|_| value.clone()))
    }

    /// A switch that is on.
    pub fn is_on(&self, key: &str) -> bool {
        self.values.get(key).is_some_and(|value| value == "true")
    }

    /// A list of texts.
    pub fn list(&self, key: &str) -> Vec<String> {
        self.values.get(key).and_then(|value| serde_json::from_str(value).ok()).unwrap_or_default()
    }

    /// A number.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.values.get(key)?.parse().ok()
    }

    /// A size in bytes.
    pub fn bytes(&self, key: &str) -> Option<u64> {
        let text = self.text(key)?;
        namewire_tools::parse_bytes(&text).ok()
    }
}

/// A configuration file, read as a router would read it now.
#[derive(Clone, Debug, Default)]
pub struct ConfigurationFacts {
    /// Its path.
    pub path: String,
    /// It is one of NFD.
    pub is_of_nfd: bool,
    /// Why a router would reject it.
    pub error: Option<String>,
    /// What a router would warn of.
    pub warnings: Vec<String>,
    /// Keys whose values differ from those in force.
    pub changed: Vec<String>,
}

/// What the kernel says of the forwarder's process.
#[derive(Clone, Debug, Default)]
pub struct ProcessFacts {
    /// Its number.
    pub pid: u32,
    /// Its user.
    pub uid: Option<u32>,
    /// Its groups.
    pub gids: Vec<u32>,
    /// Its file.
    pub program: Option<String>,
    /// Its working folder, to which relative paths of its settings belong.
    pub folder: Option<String>,
    /// When it started, in milliseconds since 1970.
    pub start_unix_ms: Option<u64>,
    /// Descriptors that it may have: now, and at most.
    pub descriptors: Option<(u64, u64)>,
    /// Descriptors that it has.
    pub open_descriptors: Option<u64>,
    /// Bytes that it may lock in memory; `u64::MAX` is no limit.
    pub locked_bytes_max: Option<u64>,
    /// Bytes of memory that it uses.
    pub resident_bytes: Option<u64>,
    /// Most bytes that its group of processes may use, if there is such a limit.
    pub group_bytes_max: Option<u64>,
    /// Bytes that the group uses.
    pub group_bytes: Option<u64>,
}

/// Huge pages of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HugePages {
    /// Size in KiB.
    pub size_kib: u64,
    /// Reserved.
    pub total: u64,
    /// Reserved and not used.
    pub free: u64,
}

/// The machine.
#[derive(Clone, Debug, Default)]
pub struct HostFacts {
    /// Its name.
    pub name: String,
    /// Name and release of the kernel, and the processor's kind.
    pub kernel: String,
    /// Name of the distribution.
    pub distribution: Option<String>,
    /// The kind of container, if this is one.
    pub container: Option<String>,
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
    /// Bytes that programs can still get.
    pub available_bytes: Option<u64>,
    /// Reserved huge pages.
    pub huge_pages: Vec<HugePages>,
    /// An interface has an IPv6 address.
    pub has_ipv6: bool,
    /// The kernel has AF_XDP; `None` if it does not say.
    pub has_af_xdp: Option<bool>,
}

/// A port of UDP or TCP that a router wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortFacts {
    /// `udp` or `tcp`.
    pub protocol: &'static str,
    /// The port.
    pub port: u16,
    /// The configuration names it; otherwise it is the usual one.
    pub is_named: bool,
    /// Who listens there.
    pub holders: Vec<PortHolder>,
}

/// Who has a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortHolder {
    /// The process, if this user may know it.
    pub pid: Option<u32>,
    /// Its name.
    pub program: Option<String>,
}

/// How a neighbour answered an Interest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// With a Nack of this reason: a forwarder without a route.
    Nack(String),
    /// With Data.
    Data,
    /// Not at all.
    Silence,
}

impl Answer {
    /// Something came back.
    pub fn is_answer(&self) -> bool {
        *self != Answer::Silence
    }
}

/// What a neighbour did with two Interests that go one hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeFacts {
    /// The face to it.
    pub face: FaceId,
    /// An Interest of a few bytes.
    pub small: Answer,
    /// An Interest of this many bytes, and its answer; for datagrams only.
    pub large: Option<(u64, Answer)>,
    /// The largest packet that the kernel knows to pass to that address, with its IP header.
    pub kernel_mtu: Option<u64>,
    /// What it says of itself, if it is a forwarder that answers traceroutes (RFC 9507).
    pub router: Option<NeighbourRouter>,
}

impl ProbeFacts {
    /// It answered something.
    pub fn is_alive(&self) -> bool {
        self.small.is_answer() || self.router.is_some()
    }
}

/// What a forwarder says of itself when it answers a traceroute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NeighbourRouter {
    /// Its name.
    pub name: String,
    /// Its program and version, if it tells.
    pub software: Option<String>,
    /// Milliseconds by which its clock is ahead of this one; less than 0 is behind.
    pub clock_ahead_ms: Option<i64>,
}

/// The key chain of the user who asks.
#[derive(Clone, Debug, Default)]
pub struct KeyFacts {
    /// Its folder.
    pub folder: String,
    /// There is one.
    pub exists: bool,
    /// Why it cannot be opened.
    pub error: Option<String>,
    /// Its identities.
    pub identities: Vec<IdentityFacts>,
    /// Files of private keys, and the folder.
    pub files: Vec<(String, FileFacts)>,
}

/// An identity.
#[derive(Clone, Debug, Default)]
pub struct IdentityFacts {
    /// Its name.
    pub name: String,
    /// The default one.
    pub is_default: bool,
    /// Its keys.
    pub keys: Vec<KeyOfIdentity>,
}

/// A key.
#[derive(Clone, Debug, Default)]
pub struct KeyOfIdentity {
    /// Its name.
    pub name: String,
    /// The identity's default key.
    pub is_default: bool,
    /// Its private half is here.
    pub has_private_key: bool,
    /// Its certificates.
    pub certificates: Vec<CertificateFacts>,
}

/// A certificate.
#[derive(Clone, Debug, Default)]
pub struct CertificateFacts {
    /// Its name.
    pub name: String,
    /// The key's default certificate.
    pub is_default: bool,
    /// First moment, in milliseconds since 1970.
    pub not_before_ms: u64,
    /// Last moment.
    pub not_after_ms: u64,
}

/// A folder in which the router writes.
#[derive(Clone, Debug, Default)]
pub struct FolderFacts {
    /// What for: `state file` or `repository`.
    pub purpose: &'static str,
    /// The file or folder that the settings name.
    pub path: String,
    /// Why it cannot be looked at.
    pub error: Option<String>,
    /// The router's user may write there; `None` if that cannot be told.
    pub is_writable: Option<bool>,
    /// Bytes that are free on its disk for this user.
    pub free_bytes: Option<u64>,
    /// Bytes of that disk.
    pub disk_bytes: Option<u64>,
    /// A damaged file was put aside beside it.
    pub was_put_aside: bool,
}
