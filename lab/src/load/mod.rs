//! The load generator: consumer and producer in one process and one thread, on two faces of the router. They exchange
//! as many Interests and Data as the router allows.
//!
//! Questions answered: how many exchanges a second, at what latency, for how much CPU time of the router, and was every
//! Data the right one? The generator runs as a separate process (`namewire-lab load`, `namewire-lab relay`), so that
//! the router's CPU account contains only the router's work.
//!
//! The loop, the packets and the links are those of `namewire-load`.
//!
//! * `connection`: connects consumer and producer to the router, or to a relay.
//! * `engine_alone`: the same exchange without any input or output.
//! * `relay`: the lower bound: a process that only copies packets.

mod connection;
mod engine_alone;
pub mod relay;

pub(crate) use engine_alone::EngineAlone;
pub use namewire_load::LoadReport;

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU64;
use std::path::PathBuf;

use namewire_load::{ExchangePackets, ExchangeShape, Phase};
use namewire_packet::nfd::MacAddress;
use serde::{Deserialize, Serialize};

use crate::process;

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
    /// Unix socket of the router of the producer, if that is another one
    #[arg(long)]
    pub producer_socket: Option<PathBuf>,
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

/// Runs the load in this process.
///
/// # Errors
/// If the router cannot be reached, refuses the route, or breaks a connection.
pub fn run(plan: &LoadPlan) -> anyhow::Result<LoadReport> {
    let seed = plan.seed.unwrap_or_else(|| {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64)
    });
    let shape = ExchangeShape {
        run: &plan.run,
        stream: plan.stream,
        content_bytes: plan.content,
        can_be_prefix: plan.can_be_prefix,
        lifetime_ms: plan.lifetime_ms,
        freshness_ms: FRESHNESS_MS,
        seed,
    };
    let connection = connection::Connection::open(plan, ExchangePackets::new(&shape)?)?;
    exchange(connection, plan)
}

/// Runs warm-up, prefetch and measured part; reports on the measured part.
fn exchange(mut connection: connection::Connection, plan: &LoadPlan) -> anyhow::Result<LoadReport> {
    // Otherwise the kernel rounds every wait up by 50 µs.
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
    let names = plan.names.unwrap_or(plan.count).clamp(1, plan.count.max(1));
    let measured = Phase {
        base: 0,
        names,
        count: plan.count,
        window: plan.window.max(1),
        interval_ns: plan.rate.map(|rate| 1_000_000_000 / u64::from(rate.max(1))),
        lost_after_ns: u64::from(plan.lifetime_ms) * 1_000_000 + LIFETIME_SLACK_NS,
        give_up: plan.give_up,
        echo_tokens: plan.echo_tokens,
    };
    let links = &mut connection.links;
    if plan.warmup > 0 {
        links.run(&Phase {
            base: WARMUP_BASE,
            names: plan.warmup,
            count: plan.warmup,
            interval_ns: None,
            ..measured
        })?;
    }
    if plan.from_store {
        links.run(&Phase { count: names, window: PREFETCH_WINDOW, interval_ns: None, ..measured })?;
    }
    let accounts = || [plan.watch, Some(std::process::id())].map(|pid| pid.and_then(process::cpu_time_ns));
    let before = accounts();
    let mut report = links.run(&measured)?;
    let after = accounts();
    let spent = |of: usize| after[of]?.checked_sub(before[of]?);
    (report.watched_cpu_ns, report.generator_cpu_ns) = (spent(0), spent(1));
    report.watched_resident_kib = plan.watch.and_then(process::resident_kib);
    connection.close()?;
    Ok(report)
}

/// A Data that arrives this long after the lifetime still counts.
const LIFETIME_SLACK_NS: u64 = 500_000_000;
/// First sequence number of the warm-up.
const WARMUP_BASE: u32 = 0x8000_0000;
/// Interests in flight while the Content Store is filled.
const PREFETCH_WINDOW: u32 = 64;
/// FreshnessPeriod of every Data: longer than any run.
const FRESHNESS_MS: u64 = 3_600_000;
