//! All settings of a node, typed, with their defaults: the contents of a configuration file.
//!
//! There is one type per table of the file. `default.toml`, in the same folder, is the text that users see; tests keep
//! the two consistent.

mod busy_poll;
mod choice;
mod cs;
mod engine;
mod entries;
mod ethernet_io;
mod faces;
mod fib;
mod log;
mod pit;
mod privileges;
mod probes;
mod ranges;
mod repo;
mod tagnet;

use crate::{
    text::{Origin, Prefix},
    units::{Bytes, Span},
};
pub use busy_poll::BusyPoll;
pub use choice::{Choice, Named};
pub use cs::CsSection;
pub use engine::EngineSection;
pub use entries::{FaceEntry, RouteEntry, StrategyEntry};
pub use ethernet_io::EthernetIo;
pub use faces::{
    DpdkSection, EthernetSection, FacesSection, MemifSection, MulticastSection, TcpSection, UdpSection, UnixSection,
    WebSocketSection,
};
pub use fib::FibSection;
pub use log::LogSection;
use namewire_engine::{DataFrom, EngineConfig};
use namewire_management::ReadvertiseConfig;
use namewire_node_model::observer_address::ObservedPeer;
use namewire_tables::PageSize;
pub use pit::{FaceListChoice, PitSection, Role};
pub use privileges::Privileges;
pub use probes::ProbesSection;
use ranges::{
    dead_nonces, fib_capacity, flow_cache, io_threads, max_lifetime, measurement_capacity, pit_capacity,
    pit_face_share, workers,
};
pub use repo::{RepoIndex, RepoSection, RepoStore, RepoSync, RetentionEntry};
use serde::{Deserialize, Serialize};
use std::{collections::HashSet, net::SocketAddr, path::PathBuf, time::Duration};
pub use tagnet::{TagNeighbours, TagTable, TagnetSection};

/// Settings of a node. What a file omits has its default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The process.
    pub router: RouterSection,
    /// What the router says of single events.
    pub log: LogSection,
    /// Metrics, and the live page.
    pub observe: ObserveSection,
    /// Whom the router answers when they ping it or trace a route.
    pub probes: ProbesSection,
    /// How workers go through a batch.
    pub engine: EngineSection,
    /// All tables but the Content Store.
    pub tables: TablesSection,
    /// How pending Interests are kept.
    pub pit: PitSection,
    /// The FIB's design.
    pub fib: FibSection,
    /// The Content Store and its policy.
    pub cs: CsSection,
    /// Where faces come from.
    pub faces: FacesSection,
    /// Routes.
    pub rib: RibSection,
    /// Forwarding by sets of tags.
    pub tagnet: TagnetSection,
    /// Long-term storage of Data.
    pub repo: RepoSection,
    /// The rules of who may command.
    pub trust: TrustSection,
    /// What survives a restart.
    pub state: StateSection,
    /// The declared faces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub face: Vec<FaceEntry>,
    /// The declared routes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub route: Vec<RouteEntry>,
    /// The declared strategies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub strategy: Vec<StrategyEntry>,
}

impl Settings {
    /// Defaults for a router that another program starts inside its own process: it listens nowhere.
    pub fn listening_nowhere() -> Self {
        let mut settings = Settings::default();
        settings.faces.unix.enabled = false;
        settings.faces.tcp.enabled = false;
        settings.faces.udp.enabled = false;
        settings
    }
}

/// `[observe]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ObserveSection {
    /// Addresses of metrics and page. None: there are none.
    pub listen: Vec<SocketAddr>,
    /// Show the page, not only metrics.
    pub page: bool,
    /// Let the page show packets under a name as they are decided, to everyone who reaches the address.
    pub trace: bool,
    /// Observers of other routers, which the page's view Network reads.
    pub peers: Vec<ObservedPeer>,
}

impl ObserveSection {
    /// The most peers.
    pub const PEERS_MAX: usize = 64;

    /// Refuses peers that cannot be told apart, or are too many.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.peers.len() > Self::PEERS_MAX {
            return Err(format!("observe.peers has {} entries; it takes {}", self.peers.len(), Self::PEERS_MAX));
        }
        let mut seen = HashSet::new();
        let twice =
            self.peers.iter().find(|peer| !seen.insert(peer.label()) || !seen.insert(peer.address().to_string()));
        twice.map_or(Ok(()), |peer| Err(format!("observe.peers has two entries for \"{peer}\", by name or by address")))
    }
}

impl Default for ObserveSection {
    fn default() -> Self {
        ObserveSection { listen: Vec::new(), page: true, trace: false, peers: Vec::new() }
    }
}

/// `[router]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RouterSection {
    /// The router's own name, in answers to probes. Without it, the host's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Prefix>,
    /// Worker threads.
    #[serde(deserialize_with = "workers")]
    pub workers: u16,
    /// Threads that own the ports of AF_XDP and DPDK and forward nothing.
    #[serde(deserialize_with = "io_threads")]
    pub io_threads: u16,
    /// The processors of the workers and then of the I/O threads, one each. If empty, the kernel chooses.
    pub pin: Vec<usize>,
    /// How long an idle worker looks for packets before it sleeps.
    pub busy_poll: BusyPoll,
    /// Print nothing but errors and warnings.
    pub quiet: bool,
    /// Serve the certificates of the user's key chain and of all trust anchors.
    pub serve_certificates: bool,
    /// Keep this host in the networks that `namewire join` has joined.
    pub keep_networks: bool,
    /// The user, by name or number, that the router becomes once it has read its files. Without it, the user that
    /// starts it.
    pub user: Option<String>,
    /// The group. Without it, the user's own group.
    pub group: Option<String>,
    /// What happens to privileges that the router does not need.
    pub privileges: Choice<Privileges>,
    /// Seed of all random choices, for tests. An option may give one that no file can hold.
    #[serde(skip_serializing_if = "is_no_number_of_a_file")]
    pub seed: Option<u64>,
}

/// `[tables]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TablesSection {
    /// Memory pages.
    pub pages: Choice<PageSize>,
    /// Most pending Interests.
    #[serde(deserialize_with = "pit_capacity")]
    pub pit_capacity: u32,
    /// The share of the PIT that one face may hold if no other face holds any, in percent; 100 is no limit.
    #[serde(deserialize_with = "pit_face_share")]
    pub pit_face_share: u32,
    /// Longest time an Interest stays pending.
    #[serde(deserialize_with = "max_lifetime")]
    pub max_lifetime: Span,
    /// Most bytes of Interests and names that are too large for the entry itself.
    pub interest_overflow: Bytes,
    /// Most FIB entries.
    #[serde(deserialize_with = "fib_capacity")]
    pub fib_capacity: u32,
    /// Most entries of the dead nonce list.
    #[serde(deserialize_with = "dead_nonces")]
    pub dead_nonces: u32,
    /// Most prefixes that strategies measure.
    #[serde(deserialize_with = "measurement_capacity")]
    pub measurement_capacity: u32,
    /// Parents of names whose next hops each worker remembers.
    #[serde(deserialize_with = "flow_cache")]
    pub flow_cache: u32,
    /// A ForwardingHint that names a prefix of one of these is removed here.
    pub regions: Vec<Prefix>,
    /// From which faces Data is accepted.
    pub data_from: Choice<DataFrom>,
}

/// `[rib]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RibSection {
    /// Tell a routing daemon (NLSR) about routes that applications register.
    pub readvertise_nlsr: bool,
    /// The origins of these routes.
    pub readvertise_origins: Vec<Origin>,
}

/// `[trust]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrustSection {
    /// The router's own user and root may do everything over the Unix socket.
    pub peer_credentials: bool,
    /// Groups, by number, whose members may do the same.
    pub groups: Vec<u32>,
    /// A compiled LVS schema, for the settings that say `schema`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<PathBuf>,
    /// Certificates that are the schema's roots of trust: files and folders.
    pub anchors: Vec<PathBuf>,
    /// Who may use `/localhost/nfd/rib`: `any`, `schema`, or a file of rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub localhost_rib: Option<String>,
    /// Who may use `/localhost/nfd/tags`: `any`, `schema`, or a file of rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub localhost_tags: Option<String>,
    /// Who may use `/localhop/nfd/rib`: `any`, `schema`, or a file of rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub localhop_rib: Option<String>,
    /// Who may announce prefixes: `any`, `schema`, or a file of rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix_announcement: Option<String>,
    /// Files and directories of revocation records.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub revocations: Vec<PathBuf>,
    /// Ask the network for revocation records of the certificates behind commands.
    pub look_up_revocations: bool,
    /// The signers and what they may do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub authorize: Vec<AuthorizeEntry>,
}

/// `[[trust.authorize]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthorizeEntry {
    /// File of the signer's certificate, or `any`.
    pub certificate: String,
    /// Modules that the signer may command.
    pub privileges: Vec<Privilege>,
}

/// A module of management.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Privilege {
    /// `faces`.
    Faces,
    /// `fib`.
    Fib,
    /// `cs`.
    Cs,
    /// `strategy-choice`.
    StrategyChoice,
    /// `rib`.
    Rib,
    /// `tags`.
    Tags,
    /// `capture`.
    Capture,
    /// `log`.
    Log,
}

/// `[state]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StateSection {
    /// File for what management commands made; without it, nothing is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// When a command that changed something is answered.
    pub sync: Choice<StateSync>,
}

namewire_packet::names! {
    /// When to answer a command whose change the state file keeps.
    #[derive(Default)]
    pub enum StateSync {
        /// Once the change is on disk.
        Always = "always",
        /// At once; the change is on disk about a second later.
        #[default]
        OneSecond = "1s",
    }
}

choice::named! {
    StateSync: &Self::ALL;
}

impl RouterSection {
    /// Workers and I/O threads.
    pub fn threads(&self) -> usize {
        usize::from(self.workers) + usize::from(self.io_threads)
    }

    /// How many threads there are of each kind, in words.
    pub fn threads_text(&self) -> String {
        match self.io_threads {
            0 => format!("{} workers", self.workers),
            io => format!("{} workers and {io} I/O threads", self.workers),
        }
    }
}

impl Default for RouterSection {
    fn default() -> Self {
        RouterSection {
            name: None,
            workers: 1,
            io_threads: 0,
            pin: Vec::new(),
            busy_poll: BusyPoll::default(),
            quiet: false,
            serve_certificates: false,
            keep_networks: true,
            user: None,
            group: None,
            privileges: Choice::default(),
            seed: None,
        }
    }
}

impl Default for TablesSection {
    fn default() -> Self {
        let engine = EngineConfig::default();
        TablesSection {
            pages: Choice(engine.pages),
            pit_capacity: engine.pit_capacity_entries,
            pit_face_share: engine.face_share_percent,
            max_lifetime: Span(Duration::from_millis(engine.max_lifetime_ms)),
            interest_overflow: Bytes(engine.interest_overflow_bytes),
            // A full RIB (1,000,000 routes), next hops added by hand, and strategy choices.
            fib_capacity: 1_200_000,
            dead_nonces: engine.dead_nonce_capacity as u32,
            measurement_capacity: engine.measurement_capacity,
            flow_cache: engine.flow_cache,
            regions: engine.region_names.into_iter().map(Prefix).collect(),
            data_from: Choice(engine.data_from),
        }
    }
}

impl RibSection {
    /// What a routing daemon on this node is told.
    pub fn readvertise(&self) -> ReadvertiseConfig {
        ReadvertiseConfig {
            nlsr: self.readvertise_nlsr,
            origins: self.readvertise_origins.iter().map(|origin| origin.0).collect(),
        }
    }
}

impl Default for RibSection {
    fn default() -> Self {
        RibSection { readvertise_nlsr: false, readvertise_origins: vec![Origin(namewire_packet::nfd::origin::CLIENT)] }
    }
}

impl Default for TrustSection {
    fn default() -> Self {
        TrustSection {
            peer_credentials: true,
            groups: Vec::new(),
            schema: None,
            anchors: Vec::new(),
            localhost_rib: None,
            localhost_tags: None,
            localhop_rib: None,
            prefix_announcement: None,
            revocations: Vec::new(),
            look_up_revocations: true,
            authorize: Vec::new(),
        }
    }
}

fn is_no_number_of_a_file(number: &Option<u64>) -> bool {
    number.is_none_or(|number| i64::try_from(number).is_err())
}
