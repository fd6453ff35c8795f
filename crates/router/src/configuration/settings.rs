//! All settings of a node, typed, with their defaults: what a configuration file says.
//!
//! One type per table of the file. The text that people see of it is `default.toml`
//! beside this file; tests hold the two together.

mod cs;
mod entries;
mod faces;
mod fib;
mod pit;
mod ranges;

use super::{
    text::{Origin, Prefix},
    units::{Octets, Span},
};
pub use cs::{CsSection, Unsolicited};
pub use entries::{FaceEntry, Persistency, RouteEntry, StrategyEntry};
pub use faces::{
    DEFAULT_LISTENERS, EthernetSection, FacesSection, MulticastSection, TcpSection, UdpSection, UnixSection,
    WebSocketSection,
};
pub use fib::{Choice, FibSection, Named};
pub use pit::{FaceListChoice, PitRoleChoice, PitSection};
use ranges::{
    busy_poll, dead_nonces, fib_capacity, max_lifetime, measurement_capacity, pit_capacity, pit_face_share, workers,
};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Settings of a node. What a file leaves out has its default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The process.
    pub router: RouterSection,
    /// Tables but the Content Store.
    pub tables: TablesSection,
    /// How pending Interests are kept.
    pub pit: PitSection,
    /// The FIB's design.
    pub fib: FibSection,
    /// The Content Store.
    pub cs: CsSection,
    /// Where faces come from.
    pub faces: FacesSection,
    /// Routes.
    pub rib: RibSection,
    /// Who may command.
    pub trust: TrustSection,
    /// What survives a restart.
    pub state: StateSection,
    /// Faces to have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub face: Vec<FaceEntry>,
    /// Routes to have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub route: Vec<RouteEntry>,
    /// Strategies to have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub strategy: Vec<StrategyEntry>,
}

/// `[router]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RouterSection {
    /// Worker threads.
    #[serde(deserialize_with = "workers")]
    pub workers: u16,
    /// The processors that workers run on, one each; none: the kernel chooses.
    pub pin: Vec<usize>,
    /// How long an idle worker looks for packets before it sleeps.
    #[serde(deserialize_with = "busy_poll")]
    pub busy_poll: Span,
    /// Print nothing but errors and warnings.
    pub quiet: bool,
    /// Seed of everything random, for tests. An option may give one that no file can hold.
    #[serde(skip_serializing_if = "is_no_number_of_a_file")]
    pub seed: Option<u64>,
}

/// `[tables]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TablesSection {
    /// Memory pages.
    pub pages: Pages,
    /// Most pending Interests.
    #[serde(deserialize_with = "pit_capacity")]
    pub pit_capacity: u32,
    /// How much of the PIT one face may hold if no other does, in percent; 100 is no limit.
    #[serde(deserialize_with = "pit_face_share")]
    pub pit_face_share: u32,
    /// Longest time an Interest stays pending.
    #[serde(deserialize_with = "max_lifetime")]
    pub max_lifetime: Span,
    /// Most octets of Interests and names too large to stand inline.
    pub interest_overflow: Octets,
    /// Most FIB entries.
    #[serde(deserialize_with = "fib_capacity")]
    pub fib_capacity: u32,
    /// Most entries of the dead nonce list.
    #[serde(deserialize_with = "dead_nonces")]
    pub dead_nonces: u32,
    /// Most prefixes that strategies measure.
    #[serde(deserialize_with = "measurement_capacity")]
    pub measurement_capacity: u32,
    /// A ForwardingHint that names a prefix of one of these is removed here.
    pub regions: Vec<Prefix>,
}

/// `[rib]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RibSection {
    /// Tell a routing daemon (NLSR) of routes that applications register.
    pub readvertise_nlsr: bool,
    /// Of which origins.
    pub readvertise_origins: Vec<Origin>,
}

/// `[trust]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrustSection {
    /// The router's own user and root may do everything over the Unix socket.
    pub peer_credentials: bool,
    /// Groups whose members may as well, by number.
    pub groups: Vec<u32>,
    /// Who may use `/localhost/nfd/rib`: `any`, or a file of rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub localhost_rib: Option<String>,
    /// Who may use `/localhop/nfd/rib`: `any`, or a file of rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub localhop_rib: Option<String>,
    /// Who may announce prefixes: `any`, or a file of rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix_announcement: Option<String>,
    /// Whose signatures allow what.
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
}

/// `[state]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StateSection {
    /// Keeps what management commands made; without it, nothing is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// When a command that changed something is answered.
    pub sync: StateSync,
}

/// When a command is answered whose change the state file keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StateSync {
    /// Once the change is on disk.
    #[serde(rename = "always")]
    Always,
    /// At once; the change is on disk about a second later.
    #[default]
    #[serde(rename = "1s")]
    OneSecond,
}

/// Memory pages of the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pages {
    /// Base pages that the kernel joins as it sees fit.
    #[default]
    Transparent,
    /// Base pages.
    Base,
    /// Huge pages of 2 MiB, reserved beforehand.
    #[serde(rename = "2MiB")]
    Huge2MiB,
    /// Huge pages of 1 GiB, reserved beforehand.
    #[serde(rename = "1GiB")]
    Huge1GiB,
}

impl Default for RouterSection {
    fn default() -> Self {
        RouterSection { workers: 1, pin: Vec::new(), busy_poll: Span::default(), quiet: false, seed: None }
    }
}

impl Default for TablesSection {
    fn default() -> Self {
        TablesSection {
            pages: Pages::default(),
            pit_capacity: 65_536,
            pit_face_share: 80,
            max_lifetime: Span::from_secs(864_000),
            interest_overflow: Octets(16 << 20),
            fib_capacity: 1_200_000,
            dead_nonces: 131_072,
            measurement_capacity: 16_384,
            regions: Vec::new(),
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
            localhost_rib: None,
            localhop_rib: None,
            prefix_announcement: None,
            authorize: Vec::new(),
        }
    }
}

fn is_no_number_of_a_file(number: &Option<u64>) -> bool {
    number.is_none_or(|number| i64::try_from(number).is_err())
}
