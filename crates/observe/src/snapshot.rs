//! Snapshot: what a node shows, as plain values.
//!
//! Contract: a snapshot is a copy. The observer never changes a snapshot, and never asks for a part of one again. All
//! counters count since the start of the router and only grow. A missing value is `None` or empty, never a guess.
//!
//! Units are in the names. `*_unix_ms` are milliseconds since 1970, `*_ms` are durations, `*_ratio` and `loss` are
//! between 0 and 1.
//!
//! Limits: none here. The observer limits the size of its output.

use namewire_packet::nfd::{
    CsInfo, CsUsage, DropCounter, FaceCounters, FaceRecent, FibUsage, LinkCounts, ProcessPrivileges, StrategyChoice,
    WorkerLoad,
};
use serde::Serialize;

/// Everything that a node shows at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Snapshot {
    /// The version of the router, as `namewire --version` prints it.
    pub version: String,
    /// The name of the machine, for the title of the page. Empty: the page shows the address that it was asked for.
    pub host: String,
    /// When the router started.
    pub start_unix_ms: u64,
    /// When this copy was made.
    pub now_unix_ms: u64,
    /// The worker threads.
    pub workers: Vec<Worker>,
    /// The faces, in any order. Each id occurs once.
    pub faces: Vec<Face>,
    /// The routes, in any order. Each prefix occurs once.
    pub routes: Vec<Route>,
    /// Why packets were dropped, anywhere in the node. Each reason occurs once.
    pub drops: Vec<DropCounter>,
    /// What happened in normal work, by name. Each name occurs once.
    pub events: Vec<DropCounter>,
    /// The last packets that were dropped, in any order.
    pub last_drops: Vec<LastDrop>,
    /// Pools that faces, users and hosts share.
    pub pools: Vec<Pool>,
    /// The Content Store, all workers together.
    pub cs: ContentStore,
    /// The FIB.
    pub fib: Fib,
    /// The PIT, all workers together.
    pub pit: Pit,
    /// Which strategy serves which prefix.
    pub strategies: Vec<StrategyChoice>,
    /// The state of TagNet, if it runs.
    pub tags: Option<serde_json::Value>,
    /// The state of the repository, if it runs.
    pub repo: Option<serde_json::Value>,
    /// What the router's process may do besides what every user may.
    pub privileges: ProcessPrivileges,
    /// Warnings of the start, for people.
    pub notes: Vec<String>,
}

/// One worker thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Worker {
    /// The share of time in which it had work. `None`: unknown.
    pub busy_ratio: Option<f64>,
    /// The share of time in which it looked for packets instead of sleeping. `None`: unknown.
    pub poll_ratio: Option<f64>,
    /// What it holds and does.
    #[serde(flatten)]
    pub load: WorkerLoad,
}

/// One face.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Face {
    /// What the page lists of it.
    #[serde(flatten)]
    pub about: FaceAbout,
    /// What it received and sent.
    pub counters: FaceCounters,
    /// What its link did.
    #[serde(flatten)]
    pub link: LinkCounts,
    /// How long its answers took. `None`: none came.
    pub answers: Option<Answers>,
    /// The last ten seconds, for rates. `None`: there is nothing to compare with.
    #[serde(skip)]
    pub recent: Option<FaceRecent>,
}

/// What a face is, and how it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FaceAbout {
    /// Its number (FaceId).
    pub id: u64,
    /// The FaceUri of the other end.
    pub remote: String,
    /// The program at the other end and its number, of an application on this machine: `ndnsec (4711)`.
    pub process: Option<String>,
    /// The FaceUri of this end.
    pub local: String,
    /// `local` or `non-local`.
    pub scope: String,
    /// `on-demand`, `persistent` or `permanent`.
    pub persistency: String,
    /// `point-to-point`, `multi-access` or `ad-hoc`.
    pub link_type: String,
    /// The largest packet of the link, in bytes. 0: no limit known.
    pub mtu: u64,
    /// `up`, `down`, or `degraded`: its peer lately left many Interests unanswered, or was avoided for that.
    pub state: String,
    /// Since when the face has its state.
    pub since_unix_ms: Option<u64>,
    /// Why its packets were dropped: reasons that have dropped some.
    pub drops: Vec<DropCounter>,
    /// The network port or the listener that the face uses.
    pub port: Option<String>,
    /// The round-trip time last measured.
    pub rtt_ms: Option<f64>,
    /// The share of Interests sent there that expired without an answer.
    pub loss: Option<f64>,
    /// How long it has neither received nor sent anything.
    pub idle_ms: Option<u64>,
}

/// How long the answers of a face took, under load an estimate from a sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Answers {
    /// Data by the time since its Interest was sent: upper bound in seconds, and how many were no slower than it and
    /// slower than the bound before.
    pub buckets: Vec<(f64, u64)>,
    /// Data slower than all bounds.
    pub slower: u64,
    /// The sum of all times.
    pub sum_s: f64,
    /// Interests that expired without an answer.
    pub unanswered: u64,
}

/// A packet that was dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LastDrop {
    /// When.
    pub time_unix_ms: u64,
    /// Why, as in [`DropCounter`].
    pub reason: String,
    /// `Interest`, `Data`, `Nack` or `packet`.
    pub packet: String,
    /// The face that it came from.
    pub face: Option<u64>,
    /// Its name, perhaps shortened.
    pub name: Option<String>,
}

/// The next hops of one prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Route {
    /// The prefix, as a name URI.
    pub prefix: String,
    /// Its next hops, cheapest first.
    pub next_hops: Vec<NextHop>,
}

/// One next hop of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct NextHop {
    /// The face.
    pub face: u64,
    /// Its cost.
    pub cost: u64,
    /// Who added it: `app`, `static`, `nlsr` and so on.
    pub origin: String,
}

/// A pool that several holders share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pool {
    /// What is shared.
    pub name: String,
    /// How much is in use.
    pub used: u64,
    /// How much there is.
    pub capacity: u64,
    /// How many holders have some of it.
    pub holders: u64,
    /// How often a holder was refused more.
    pub refused: u64,
}

/// The Content Store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ContentStore {
    /// In packets.
    #[serde(flatten)]
    pub info: CsInfo,
    /// In bytes, by policy and by prefix.
    #[serde(flatten)]
    pub usage: CsUsage,
}

/// The FIB.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fib {
    /// Prefixes in it.
    pub entries: u64,
    /// Its design and memory.
    #[serde(flatten)]
    pub usage: FibUsage,
}

/// The PIT.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pit {
    /// Pending Interests.
    pub entries: u64,
    /// Pending Interests that it can hold.
    pub capacity_entries: u64,
}
