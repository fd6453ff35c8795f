//! What management asks of the router while it handles one request.

use crate::strategy_choice::StrategyRegistry;
use namewire_packet::{
    FaceId,
    nfd::{CsInfo, CsUsage, DropCounter, FaceCounters, FaceUri, FibUsage, ForwarderStatus},
};

/// The two clocks, read once per call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Monotonic nanoseconds: deadlines.
    pub mono_ns: u64,
    /// Milliseconds since 1970: dataset versions and timestamps.
    pub unix_ms: u64,
}

/// A snapshot of the router. Workers keep the counters, so a router gathers them
/// before it hands in a request that needs them ([`crate::Management::needs_counters`]).
pub trait Environment: StrategyRegistry {
    /// Counters of a face; zeros if it is unknown.
    fn face_counters(&self, face: FaceId) -> FaceCounters;

    /// Milliseconds until an idle on-demand face closes; `None` if it does not.
    fn face_expiration_ms(&self, face: FaceId) -> Option<u64>;

    /// The node in numbers. `n_fib_entries` and `current_timestamp_ms` are filled in
    /// by management.
    fn forwarder_status(&self) -> ForwarderStatus;

    /// Packets dropped, by reason, and limits met: what this node adds to the protocol, as `status/drops`.
    fn drop_counters(&self) -> Vec<DropCounter>;

    /// Content Store settings and counters, over all workers.
    fn cs_info(&self) -> CsInfo;

    /// Octets and policy of the Content Store, over all workers: ours, as `cs/usage`.
    fn cs_usage(&self) -> CsUsage;

    /// The Content Store policy that a text names, in full: admission and eviction, of which
    /// one that is left out is as it is now.
    ///
    /// # Errors
    /// Why there is none.
    fn resolve_cs_policy(&self, text: &str) -> Result<String, String>;

    /// Which design holds the FIB, and what it takes.
    fn fib_usage(&self) -> FibUsage;

    /// Local FaceUris that make or take faces, for `faces/channels`.
    fn channels(&self) -> Vec<FaceUri>;
}
