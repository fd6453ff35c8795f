//! Settings of one engine.

use crate::{PitRole, Schedule, pit_state::MAX_LIFETIME_MS};
use namewire_packet::NameBuf;
use namewire_tables::{CsPolicy, PageSize, PrefixLookup};

/// What becomes of Data that nobody asked for (forwarding §1, "Data unsolicited").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnsolicitedPolicy {
    /// Drop it.
    #[default]
    DropAll,
    /// Keep what local faces send.
    AdmitLocal,
    /// Keep what the network sends.
    AdmitNetwork,
    /// Keep all.
    AdmitAll,
}

/// Settings of one engine. Capacities are per engine: a router with several
/// workers divides its own by their number.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Most pending Interests. Default 65,536 (about 420 octets each when used).
    pub pit_capacity_entries: u32,
    /// Whether pending Interests are kept by name, or by fingerprint where that is enough. Default by name.
    pub pit_role: PitRole,
    /// Longest time an Interest stays pending, in milliseconds, whatever its lifetime says.
    /// Default 10 days, as NFD; then 65,536 Interests that nobody answers can fill the PIT
    /// for so long, as long as the face they came from is there.
    pub max_lifetime_ms: u64,
    /// How much of the PIT one face may hold if no other does, in percent; the more hold much of it, the less each
    /// may (`face_share.rs` has the rule). 100 is no limit. Default 80.
    pub face_share_percent: u32,
    /// Most downstreams, and most upstreams, of all pending Interests beyond the first of
    /// each. Default 65,536 (64 and 48 octets each when used).
    pub record_capacity: u32,
    /// Most octets of Interests and names too large to stand inline. Default 16 MiB.
    pub interest_overflow_bytes: u64,
    /// Most octets of the Content Store, names and bookkeeping included. Default 64 MiB.
    pub cs_capacity_bytes: u64,
    /// Most packets of the Content Store. Default 65,536, as NFD.
    pub cs_capacity_packets: u64,
    /// Which Data comes into the Content Store, and which goes when it is full. Default: the catalogue's.
    pub cs_policy: CsPolicy,
    /// Under which prefixes of its name stored Data is found: those that fetched it, or all. Default those that fetched
    /// it. With several workers the dispatcher must know too
    /// ([`Dispatcher::with_prefix_rounds`](crate::dispatch::Dispatcher::with_prefix_rounds)).
    pub cs_prefix_lookup: PrefixLookup,
    /// Prefixes whose look-ups and insertions are counted, at most
    /// [`MAX_COUNTED_PREFIXES`](crate::MAX_COUNTED_PREFIXES); what is beyond is not. Default none.
    pub cs_counted_prefixes: Vec<NameBuf>,
    /// Store what arrives. Default yes.
    pub cs_admit: bool,
    /// Answer from the store. Default yes.
    pub cs_serve: bool,
    /// Most entries of the dead nonce list. Default 131,072 (about 24 octets each when used).
    pub dead_nonce_capacity: usize,
    /// Most prefixes that strategies measure. Default 16,384 (about 180 octets each when used).
    pub measurement_capacity: u32,
    /// What becomes of unsolicited Data.
    pub unsolicited: UnsolicitedPolicy,
    /// A ForwardingHint that names a prefix of one of these is removed here.
    pub region_names: Vec<NameBuf>,
    /// Order of the stages of a batch; changes speed, never a verdict. Default vector.
    pub schedule: Schedule,
    /// The pages that the tables lie on. Default transparent huge ones.
    pub pages: PageSize,
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
            unsolicited: UnsolicitedPolicy::DropAll,
            region_names: Vec::new(),
            schedule: Schedule::default(),
            pages: PageSize::default(),
        }
    }
}
