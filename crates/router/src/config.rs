//! Settings of a router, and why it may fail to start.

use crate::{
    cs_settings::share_of_policy,
    link_config::{EthernetConfig, UdpMulticastConfig, WebSocketConfig},
    trust_anchors::AnchorFileError,
};
use namewire_engine::{EngineConfig, PitRole, dispatch::MAX_WORKERS};
use namewire_management::{ReadvertiseConfig, TrustConfig};
use namewire_tables::fib::designs::catalogue::{FibDesign, FibDesignError, FibDesignOptions};
use namewire_tables::{PageSize, head_room::RESERVE_BYTES};
use std::{io, net::SocketAddr, path::PathBuf, time::Duration};

/// UDP and TCP port of NDN.
pub const DEFAULT_PORT: u16 = 6363;

/// Settings of a router. Capacities are for the whole router and divided among its workers.
#[derive(Clone, Debug)]
pub struct RouterConfig {
    /// Unix socket for applications; `None` listens on none.
    pub socket: Option<PathBuf>,
    /// TCP listeners.
    pub tcp: Vec<SocketAddr>,
    /// UDP listeners.
    pub udp: Vec<SocketAddr>,
    /// Management may make TCP faces. Default true.
    pub outgoing_tcp: bool,
    /// Management may make UDP faces. Default true.
    pub outgoing_udp: bool,
    /// WebSocket listeners and connections.
    pub websocket: WebSocketConfig,
    /// UDP multicast faces.
    pub udp_multicast: UdpMulticastConfig,
    /// Ethernet faces.
    pub ethernet: EthernetConfig,
    /// Worker threads, 1 to 64. Default 1.
    pub workers: usize,
    /// How long a worker that has run out of packets looks for more before it sleeps.
    /// Default 0: a router without packets uses no processor. With one Interest in flight waking
    /// is most of its way, which this saves.
    pub busy_poll: Duration,
    /// The processors that workers run on, one each. Default none: the kernel chooses.
    pub pin: Vec<usize>,
    /// Tables and policies. The FIB lies on the same pages as the tables of the workers.
    pub engine: EngineConfig,
    /// Most FIB entries. Default 1,200,000: a full RIB (1,000,000), next hops added by hand
    /// and strategy choices. Memory grows with use.
    pub fib_capacity_entries: usize,
    /// The design that holds the FIB. Default: the house's own table.
    pub fib_design: FibDesign,
    /// Its options.
    pub fib_options: FibDesignOptions,
    /// What a routing daemon on this node is told. Default: nothing.
    pub readvertise: ReadvertiseConfig,
    /// Most faces per worker. Default 16,384.
    pub max_faces: usize,
    /// On-demand UDP faces close after so long without a packet. Default 600 s.
    pub udp_idle_timeout: Duration,
    /// UDP segmentation offload where the kernel has it. Default true.
    pub udp_offload: bool,
    /// Who may command. Default: applications register routes to themselves; the rest is for
    /// the router's own user and root, known by the credentials of their Unix sockets.
    pub trust: TrustConfig,
    /// Unix, TCP and UDP faces mark packets while their send queues are long, unless a command says
    /// otherwise. Default true, as NFD's.
    pub congestion_marking: bool,
    /// Fixes hashes, nonces and shards, for tests; `None` takes a secret from the system.
    pub seed: Option<u64>,
}

impl Default for RouterConfig {
    fn default() -> Self {
        RouterConfig {
            socket: None,
            tcp: Vec::new(),
            udp: Vec::new(),
            outgoing_tcp: true,
            outgoing_udp: true,
            websocket: WebSocketConfig::default(),
            udp_multicast: UdpMulticastConfig::default(),
            ethernet: EthernetConfig::default(),
            workers: 1,
            busy_poll: Duration::ZERO,
            pin: Vec::new(),
            engine: EngineConfig::default(),
            fib_capacity_entries: 1_200_000,
            fib_design: FibDesign::default(),
            fib_options: FibDesignOptions::default(),
            readvertise: ReadvertiseConfig::default(),
            max_faces: 16_384,
            udp_idle_timeout: Duration::from_secs(600),
            udp_offload: true,
            trust: TrustConfig::default(),
            congestion_marking: true,
            seed: None,
        }
    }
}

impl RouterConfig {
    /// Refuses settings that cannot work.
    pub(crate) fn check(&self) -> Result<(), StartError> {
        if !(1..=MAX_WORKERS).contains(&self.workers) {
            return Err(StartError::Workers(self.workers));
        }
        if !self.pin.is_empty() && self.pin.len() != self.workers {
            return Err(StartError::Processors { given: self.pin.len(), workers: self.workers });
        }
        Ok(())
    }

    /// The kernel did not map a table.
    pub(crate) fn unmapped(&self, source: io::Error) -> StartError {
        match self.engine.pages {
            pages @ (PageSize::Huge2MiB | PageSize::Huge1GiB) => StartError::HugePages { pages, source },
            PageSize::Base | PageSize::Transparent => StartError::Tables(source),
        }
    }

    /// The design of the FIB could not be made.
    pub(crate) fn no_fib(&self, error: FibDesignError) -> StartError {
        match error {
            FibDesignError::NoMemory(source) => self.unmapped(source),
            error => StartError::FibDesign(error),
        }
    }

    /// The share of one worker.
    pub(crate) fn engine_per_worker(&self) -> EngineConfig {
        let workers = self.workers as u64;
        let share = |total: u64| total.div_ceil(workers);
        let engine = &self.engine;
        EngineConfig {
            pit_capacity_entries: engine.pit_capacity_entries.div_ceil(self.workers as u32),
            pit_role: match &engine.pit_role {
                PitRole::Edge => PitRole::Edge,
                PitRole::Core(core) => PitRole::Core(core.share_of(self.workers as u32)),
            },
            record_capacity: engine.record_capacity.div_ceil(self.workers as u32),
            interest_overflow_bytes: share(engine.interest_overflow_bytes),
            cs_capacity_bytes: share(engine.cs_capacity_bytes),
            cs_capacity_packets: share(engine.cs_capacity_packets),
            cs_policy: share_of_policy(engine.cs_policy, workers),
            measurement_capacity: engine.measurement_capacity.div_ceil(self.workers as u32),
            dead_nonce_capacity: engine.dead_nonce_capacity.div_ceil(self.workers),
            ..engine.clone()
        }
    }
}

/// Where an administrator says how many huge pages of a size there are to be.
fn reserve_file(pages: PageSize) -> String {
    format!("/sys/kernel/mm/hugepages/hugepages-{}kB/nr_hugepages", pages.bytes() >> 10)
}

/// Why a router did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A number of workers outside 1 to 64.
    #[error("{0} workers: choose 1 to {MAX_WORKERS}")]
    Workers(usize),
    /// Not one processor for each worker.
    #[error("{given} processors for {workers} workers: name one for each")]
    Processors {
        /// Processors named.
        given: usize,
        /// Worker threads asked for.
        workers: usize,
    },
    /// The design of the FIB knows no such option.
    #[error(transparent)]
    FibDesign(FibDesignError),
    /// A worker may not run on the processor it was given.
    #[error("cannot run a worker on processor {processor}: {source}; this process may use {usable}")]
    Pin {
        /// Its number.
        processor: usize,
        /// Those that there are for this process, as `0-3,8`.
        usable: String,
        /// What the system said.
        source: io::Error,
    },
    /// A listener could not be opened.
    #[error("cannot listen on {what}: {source}")]
    Listen {
        /// The FaceUri.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// Threads, descriptors or randomness are not to be had.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
    /// There is less memory than what is needed and the reserve of [`namewire_tables::head_room`].
    #[error(
        "too little memory: the start needs {} MiB of address space more, {} of them as a reserve (ulimit -v)",
        bytes.saturating_add(RESERVE_BYTES) >> 20, RESERVE_BYTES >> 20
    )]
    Memory {
        /// What is needed beside the reserve.
        bytes: usize,
    },
    /// The system starts no more threads.
    #[error("cannot start a thread: {0}; memory or the number of threads is limited (ulimit -v, -u)")]
    Thread(#[source] io::Error),
    /// The kernel does not map the memory that the tables may need.
    #[error("cannot map the tables; choose smaller capacities: {0}")]
    Tables(#[source] io::Error),
    /// Too few of the huge pages that were asked for are reserved.
    #[error(
        "cannot map the tables on pages of {}: {source}; reserve more of them (write their number to {}), or choose \
         smaller capacities or other pages",
        .pages.name(), reserve_file(*.pages)
    )]
    HugePages {
        /// The pages asked for.
        pages: PageSize,
        /// What the system said.
        source: io::Error,
    },
    /// A certificate that is to be trusted cannot be read.
    #[error(transparent)]
    Anchor(#[from] AnchorFileError),
    /// The strategies of the configuration cannot be had.
    #[error("cannot start: {0}")]
    Strategy(#[from] namewire_management::StrategyError),
}
