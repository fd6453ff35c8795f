//! The load generator: consumer and producer in one process and one thread, on two faces of the router. They exchange
//! as many Interests and Data as the router allows.
//!
//! Questions answered: how many exchanges a second, at what latency, for how much CPU time of the router, and was every
//! Data the right one? The generator runs as a process of its own (`namewire-lab load`, `namewire-lab relay`), so that
//! the router's CPU account contains only the router's work.
//!
//! * `exchange_packets`: what is sent, and the check of what comes back.
//! * `load_face`, `message_batch`, `frame_port`: sockets, many packets a system call.
//! * `connection`: connects consumer and producer to the router, or to a relay.
//! * `engine_alone`: the same exchange without any input or output.
//! * `exchange`: the loop: window, pace, latencies, losses.
//! * `relay`: the lower bound: a process that only copies packets.

mod connection;
mod engine_alone;
mod exchange;
mod exchange_packets;
mod frame_port;
mod load_face;
mod message_batch;
pub mod relay;

pub(crate) use connection::wait_readable;
pub(crate) use engine_alone::EngineAlone;
pub(crate) use frame_port::{MEMIF_PEER, MEMIF_ROUTER};
pub(crate) use load_face::LoadFace;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use namewire_packet::nfd::MacAddress;
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
                "the run label takes 1 to {} bytes and a Data at most {} bytes of content",
                exchange_packets::RUN_BYTES,
                exchange_packets::CONTENT_BYTES_MAX
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
    /// Ethernet frames by AF_XDP, the consumer on one interface and the producer on another.
    Ethernet,
    /// Ethernet frames in memory that is shared with the router (memif).
    Memif,
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
    /// The peer is a relay: over UDP its producer's side is at --relay-producer, over Unix sockets it takes the second
    /// connection for the producer
    #[arg(long)]
    pub relay: bool,
    /// UDP address of the relay's producer's side
    #[arg(long)]
    pub relay_producer: Option<SocketAddr>,
    /// Address of the UDP sockets of consumer and producer
    #[arg(long, default_value = "127.0.0.1")]
    pub bind: IpAddr,
    /// Interfaces of consumer and producer for Ethernet
    #[arg(long, value_delimiter = ',')]
    pub interfaces: Vec<String>,
    /// Sockets of memif for consumer and producer
    #[arg(long, value_delimiter = ',')]
    pub memif: Vec<PathBuf>,
    /// Ethernet addresses of the router, or of the relay, at the other ends of the two cables
    #[arg(long, value_delimiter = ',')]
    pub stations: Vec<MacAddress>,
    /// Ethernet address of the producer, and the router's interface towards it; not for memif to the router's own
    /// listener
    #[arg(long, value_delimiter = ',')]
    pub producer: Vec<String>,
    /// Number of measured Interests
    #[arg(long)]
    pub count: u32,
    /// Number of Interests sent before them, under other names
    #[arg(long, default_value_t = 0)]
    pub warmup: u32,
    /// Different names among the measured Interests [default: all different]
    #[arg(long)]
    pub names: Option<u32>,
    /// Fetch every name once first, then expect every Data from the Content Store
    #[arg(long)]
    pub from_store: bool,
    /// Most Interests in flight
    #[arg(long, default_value_t = 64)]
    pub window: u32,
    /// Interests per second; latency counts from the instant each was due [default: as the window allows]
    #[arg(long)]
    pub rate: Option<u32>,
    /// Bytes of content per Data
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
    /// Measure the CPU time of the process with this id during the measured part
    #[arg(long)]
    pub watch: Option<u32>,
}

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
    /// Data that were damaged, or did not answer their Interest.
    pub wrong: u64,
    /// Data that answered no outstanding Interest: duplicates, or later than the lifetime.
    pub unexpected: u64,
    /// Interests that reached the producer in the measured part.
    pub producer_interests: u64,
    /// How many of these carried a PIT token.
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

/// Runs the load in this process.
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
        content_bytes: plan.content,
        can_be_prefix: plan.can_be_prefix,
        lifetime_ms: plan.lifetime_ms,
        freshness_ms: FRESHNESS_MS,
        seed,
    };
    let packets = exchange_packets::ExchangePackets::new(&shape)?;
    connection::Connection::open(plan, packets)?.exchange(plan)
}

/// FreshnessPeriod of every Data: longer than any run.
const FRESHNESS_MS: u64 = 3_600_000;
