//! Settings of one engine.

use crate::{BATCH_PACKETS, PitRole, Schedule, state::pit_state::MAX_LIFETIME_MS};
use namewire_packet::NameBuf;
use namewire_tables::{CsPolicy, PageSize, PrefixLookup};

namewire_packet::names! {
    /// What happens to Data that no Interest asked for (forwarding §1, "Data unsolicited").
    #[derive(Default)]
    pub enum UnsolicitedPolicy {
        /// Drop it.
        #[default]
        DropAll = "drop-all",
        /// Keep Data from local faces.
        AdmitLocal = "admit-local",
        /// Keep Data from the network.
        AdmitNetwork = "admit-network",
        /// Keep all.
        AdmitAll = "admit-all",
    }
}

namewire_packet::names! {
    /// From which faces Data is accepted for a pending Interest. A face that was not asked could forge what another
    /// produces, and the Content Store would keep the forgery.
    #[derive(Default)]
    pub enum DataFrom {
        /// From those that the Interest was sent to.
        #[default]
        Asked = "asked",
        /// From all, as NFD does. For networks in which answers come back by other links than Interests went.
        Any = "any",
    }
}

namewire_packet::names! {
    /// From which faces probes (RFC 9507 and 9508) are answered; others are forwarded like any Interest.
    #[derive(Default)]
    pub enum AnswersProbes {
        /// From none.
        Nobody = "nobody",
        /// From those of applications.
        Local = "local",
        /// From all.
        #[default]
        Everybody = "everybody",
    }
}

/// Settings of one engine. Capacities are per engine: a router with several workers divides its totals by the number of
/// workers.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Most pending Interests. Default 65,536 (about 420 bytes each when used).
    pub pit_capacity_entries: u32,
    /// Whether pending Interests are kept by name, or by fingerprint where that is enough. Default by name.
    pub pit_role: PitRole,
    /// Longest time an Interest stays pending, in milliseconds, whatever its lifetime says. Default 10 days, as in NFD.
    /// With the default, 65,536 unanswered Interests can fill the PIT for that long while their face exists.
    pub max_lifetime_ms: u64,
    /// How much of the PIT one holder of faces may have if no other has any, and how much of that one of its faces, in
    /// percent. The more holders have much of it, the less each may have (`pit_shares.rs` has the rule). 100 means no
    /// limit. Default 80.
    pub face_share_percent: u32,
    /// Most downstreams, and most upstreams, of all pending Interests beyond the first of
    /// each. Default 65,536 (64 and 48 bytes each when used).
    pub record_capacity: u32,
    /// Most bytes of Interests and names that are too large to be stored inline. Default 16 MiB.
    pub interest_overflow_bytes: u64,
    /// Most bytes of the Content Store, names and bookkeeping included. Default 64 MiB.
    pub cs_capacity_bytes: u64,
    /// Most packets of the Content Store. Default 65,536, as NFD.
    pub cs_capacity_packets: u64,
    /// Which Data the Content Store admits, and which it evicts when full. Default: the catalogue's.
    pub cs_policy: CsPolicy,
    /// Under which prefixes of its name stored Data is found: those of the Interests that fetched it (the default), or
    /// all. With several workers the dispatcher needs the same setting
    /// ([`Dispatcher::with_prefix_visits`](crate::dispatch::Dispatcher::with_prefix_visits)).
    pub cs_prefix_lookup: PrefixLookup,
    /// Prefixes whose look-ups and insertions are counted; those beyond the first
    /// [`MAX_COUNTED_PREFIXES`](crate::MAX_COUNTED_PREFIXES) are not counted. Default none.
    pub cs_counted_prefixes: Vec<NameBuf>,
    /// Store what arrives. Default yes.
    pub cs_admit: bool,
    /// Answer from the store. Default yes.
    pub cs_serve: bool,
    /// Most entries of the dead nonce list. Default 131,072 (about 24 bytes each when used).
    pub dead_nonce_capacity: usize,
    /// Most prefixes that strategies measure. Default 16,384 (about 180 bytes each when used).
    pub measurement_capacity: u32,
    /// Most parents of names whose next hops are remembered, rounded up to a power of two; 0: none. Default 16,384 (130
    /// bytes each when used).
    pub flow_cache: u32,
    /// What happens to unsolicited Data.
    pub unsolicited: UnsolicitedPolicy,
    /// From which faces Data is accepted.
    pub data_from: DataFrom,
    /// From which faces probes go to management. Default from all.
    pub answers_probes: AnswersProbes,
    /// This router removes a ForwardingHint that names a prefix of one of these.
    pub region_names: Vec<NameBuf>,
    /// Most packets of a batch, 1 to [`BATCH_PACKETS`](crate::BATCH_PACKETS), which is the default. Each has a buffer
    /// of some 5 KiB.
    pub batch_packets: usize,
    /// Order of the stages of a batch; changes speed, never a verdict. Default vector.
    pub schedule: Schedule,
    /// The pages that the tables lie on. Default transparent huge ones.
    pub pages: PageSize,
}

impl EngineConfig {
    /// The same for a thread at which no name is at home: it counts what is malformed, and keeps nothing.
    pub fn without_names(self) -> Self {
        EngineConfig {
            pit_capacity_entries: 1,
            pit_role: PitRole::Edge,
            record_capacity: 1,
            interest_overflow_bytes: 0,
            cs_capacity_bytes: 0,
            cs_capacity_packets: 0,
            cs_policy: CsPolicy::default(),
            cs_counted_prefixes: Vec::new(),
            cs_admit: false,
            cs_serve: false,
            measurement_capacity: 1,
            dead_nonce_capacity: 1,
            flow_cache: 0,
            ..self
        }
    }
}

impl Default for EngineConfig {
    fn default() -> Self {
        EngineConfig {
            pit_capacity_entries: 65_536,
            pit_role: PitRole::Edge,
            max_lifetime_ms: MAX_LIFETIME_MS,
            face_share_percent: 80,
            record_capacity: 65_536,
            interest_overflow_bytes: 16 << 20,
            cs_capacity_bytes: 64 << 20,
            cs_capacity_packets: 65_536,
            cs_policy: CsPolicy::default(),
            cs_prefix_lookup: PrefixLookup::default(),
            cs_counted_prefixes: Vec::new(),
            cs_admit: true,
            cs_serve: true,
            dead_nonce_capacity: 131_072,
            measurement_capacity: 16_384,
            flow_cache: 16_384,
            unsolicited: UnsolicitedPolicy::DropAll,
            data_from: DataFrom::Asked,
            answers_probes: AnswersProbes::default(),
            region_names: Vec::new(),
            batch_packets: BATCH_PACKETS,
            schedule: Schedule::default(),
            pages: PageSize::default(),
        }
    }
}
