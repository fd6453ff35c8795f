//! The load generator: consumer and producer in one process and one thread, on two
//! faces of the router, exchanging as many Interests and Data as the router allows.
//!
//! Questions answered: how many exchanges a second, at what latency, at what CPU
//! time of the router, and was every Data the one that was asked for? Runs as a
//! process of its own (`namewire-lab load`, `namewire-lab relay`), so that the
//! router's account holds the router's work alone.
//!
//! * `exchange_packets`: what is sent, and the check of what comes back.
//! * `load_face`, `message_batch`: sockets, many packets a system call.
//! * `connection`: joining consumer and producer to the router, or to a relay.
//! * `exchange`: the loop: window, pace, latencies, losses.
//! * `relay`: the floor: a process that only copies packets.

mod connection;
mod exchange;
mod exchange_packets;
mod load_face;
mod message_batch;
pub mod relay;

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Why a load could not be made.
#[derive(Debug)]
pub enum LoadError {
    /// The run label or the content is too long.
    Shape,
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Shape => write!(
                f,
                "the run label takes 1 to {} octets and a Data at most {} octets of content",
                exchange_packets::RUN_OCTETS,
                exchange_packets::CONTENT_OCTETS_MAX
            ),
        }
    }
}

impl std::error::Error for LoadError {}

/// The sockets that the load uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Unix stream sockets.
    Unix,
    /// UDP over the loopback interface.
    Udp,
}

/// What load to make; also the options of `namewire-lab load`.
#[derive(Clone, Debug, clap::Args)]
pub struct LoadPlan {
    /// Sockets to use for Interests and Data
    #[arg(long, value_enum)]
    pub transport: Transport,
    /// Unix socket of the router (commands go there too), or of the relay
    #[arg(long)]
    pub socket: PathBuf,
    /// UDP address of the router, or the consumer's side of the relay
    #[arg(long)]
    pub udp: Option<SocketAddr>,
    /// The peer is a relay whose producer's side is at this UDP address, or (Unix)
    /// takes the second connection for the producer
    #[arg(long)]
    pub relay: bool,
    /// UDP address of the relay's producer's side
    #[arg(long)]
    pub relay_producer: Option<SocketAddr>,
    /// Interests that are measured
    #[arg(long)]
    pub count: u32,
    /// Interests sent before them, under names of their own
    #[arg(long, default_value_t = 0)]
    pub warmup: u32,
    /// Different names among the measured Interests [default: all different]
    #[arg(long)]
    pub names: Option<u32>,
    /// Fetch every name once before, then expect every Data from the Content Store
    #[arg(long)]
    pub from_store: bool,
    /// Interests in flight at most
    #[arg(long, default_value_t = 64)]
    pub window: u32,
    /// Interests per second; latency counts from the instant each was due [default: as the window allows]
    #[arg(long)]
    pub rate: Option<u32>,
    /// Octets of content per Data
    #[arg(long, default_value_t = 100)]
    pub content: usize,
    /// Ask with CanBePrefix; the Data's name is one component longer
    #[arg(long)]
    pub can_be_prefix: bool,
    /// Answer with the PIT token of the Interest, as a router does
    #[arg(long)]
    pub echo_tokens: bool,
    /// Second name component
    #[arg(long, default_value = "run")]
    pub run: String,
    /// Third name component
    #[arg(long, default_value_t = 0)]
    pub stream: u16,
    /// InterestLifetime; an Interest is lost when it passes without a Data
    #[arg(long, default_value_t = 4_000)]
    pub lifetime_ms: u16,
    /// Stop after this many lost Interests
    #[arg(long, default_value_t = 1_000)]
    pub give_up: u32,
    /// Seed of the nonces [default: from the clock]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Take the CPU time of this process over the measured part
    #[arg(long)]
    pub watch: Option<u32>,
}

/// What the load saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadReport {
    /// Interests sent in the measured part.
    pub sent: u64,
    /// Interests answered by the right Data.
    pub satisfied: u64,
    /// Interests whose lifetime passed, or that were never sent because the run gave up.
    pub unsatisfied: u64,
    /// Nacks received (counted in `unsatisfied` too).
    pub nacks: u64,
    /// Data that were damaged or not what was asked for.
    pub wrong: u64,
    /// Data that answered nothing outstanding: duplicates, or later than the lifetime.
    pub unexpected: u64,
    /// Interests that reached the producer in the measured part.
    pub producer_interests: u64,
    /// Of these, Interests that carried a PIT token.
    pub producer_tokens: u64,
    /// Duration of the measured part.
    pub elapsed_ns: u64,
    /// CPU time of the watched process over the measured part.
    pub watched_cpu_ns: Option<u64>,
    /// Resident memory of the watched process at the end, in KiB.
    pub watched_resident_kib: Option<u64>,
    /// CPU time of the load generator itself over the measured part.
    pub generator_cpu_ns: Option<u64>,
    /// Median latency.
    pub latency_ns_p50: u32,
    /// 99th percentile of the latency.
    pub latency_ns_p99: u32,
    /// Largest latency.
    pub latency_ns_max: u32,
}

impl LoadReport {
    /// True if every Interest was sent and answered by exactly its Data.
    pub const fn is_clean(&self) -> bool {
        self.unsatisfied == 0 && self.wrong == 0 && self.nacks == 0 && self.satisfied == self.sent && self.sent > 0
    }
}

/// Makes the load in this process.
///
/// # Errors
/// If the router cannot be reached, refuses the route, or breaks a connection.
pub fn run(plan: &LoadPlan) -> anyhow::Result<LoadReport> {
    let seed = plan.seed.unwrap_or_else(|| {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64)
    });
    let shape = exchange_packets::ExchangeShape {
        run: &plan.run,
        stream: plan.stream,
        content_octets: plan.content,
        can_be_prefix: plan.can_be_prefix,
        lifetime_ms: plan.lifetime_ms,
        freshness_ms: FRESHNESS_MS,
        seed,
    };
    let packets = exchange_packets::ExchangePackets::new(&shape)?;
    connection::Connection::open(plan, packets)?.exchange(plan)
}

/// FreshnessPeriod of every Data: no run lasts that long.
const FRESHNESS_MS: u64 = 3_600_000;
