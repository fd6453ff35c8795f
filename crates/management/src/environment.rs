//! What management asks of the router while it handles one request.

use crate::{
    capture_plane::CapturePlane,
    log_plane::LogPlane,
    strategy_choice::{StrategyChoices, StrategyRegistry},
    tag_plane::TagPlane,
};
use namewire_packet::{
    FaceId,
    nfd::{
        CsInfo, CsUsage, DropCounter, DroppedPacket, FaceCounters, FaceHealth, FaceUri, FibUsage, ForwarderStatus,
        PoolHolding, ProcessPrivileges, SettingInForce,
    },
};

/// The two clocks, read once per call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Monotonic nanoseconds: deadlines.
    pub mono_ns: u64,
    /// Milliseconds since 1970: dataset versions and timestamps.
    pub unix_ms: u64,
}

/// A snapshot of the router. Workers keep the counters, so the router gathers them on request.
pub trait Environment: StrategyRegistry {
    /// Counters of a face; zeros if it is unknown.
    fn face_counters(&self, face: FaceId) -> FaceCounters;

    /// How faces answer, and since when they are up or down: `faces/health`, our addition.
    fn face_health(&self) -> Vec<FaceHealth>;

    /// Milliseconds until an idle on-demand face closes; `None` if it does not.
    fn face_expiration_ms(&self, face: FaceId) -> Option<u64>;

    /// Largest frame that the path of a face takes, in bytes, if that is known.
    fn face_path_mtu(&self, face: FaceId) -> Option<u64>;

    /// The status of the node in numbers. Management fills in `n_fib_entries` and `current_timestamp_ms`.
    fn forwarder_status(&self) -> ForwarderStatus;

    /// Packets dropped, by reason, and limits that were reached: `status/drops`, our addition to the protocol.
    fn drop_counters(&self) -> Vec<DropCounter>;

    /// The last packets dropped, and the frames that each link dropped: `status/dropped`, our addition.
    fn dropped_packets(&self) -> Vec<DroppedPacket>;

    /// Who holds how much of each pool: `status/holders`, our addition. A pool begins with the entry for all holders.
    fn pool_holdings(&self) -> Vec<PoolHolding>;

    /// What the process may do: `status/privileges`, our addition.
    fn process_privileges(&self) -> ProcessPrivileges;

    /// The settings in force, their values, and where these came from: `status/settings`, our addition. The strategies
    /// in force are `strategies`. Empty if this forwarder does not know.
    fn settings_in_force(&self, strategies: &StrategyChoices) -> Vec<SettingInForce> {
        let _ = strategies;
        Vec::new()
    }

    /// Content Store settings and counters, over all workers.
    fn cs_info(&self) -> CsInfo;

    /// Bytes and policy of the Content Store over all workers: `cs/usage`, our addition.
    fn cs_usage(&self) -> CsUsage;

    /// The full Content Store policy that a text names: admission and eviction. A part that the text omits stays as it
    /// is now.
    ///
    /// # Errors
    /// Why the text names no policy.
    fn resolve_cs_policy(&self, text: &str) -> Result<String, String>;

    /// The design that holds the FIB, and its memory.
    fn fib_usage(&self) -> FibUsage;

    /// In words, how frames get to the router from the interface that is the local end of a face; `None` for others.
    fn port_of(&self, local: &FaceUri) -> Option<String>;

    /// Local FaceUris that make or accept faces, for `faces/channels`.
    fn channels(&self) -> Vec<FaceUri>;

    /// TagNet's tables; `None` while TagNet is off.
    fn tag_plane(&mut self) -> Option<&mut dyn TagPlane>;

    /// Captures of frames; `None` if there are no frames.
    fn capture_plane(&mut self) -> Option<&mut dyn CapturePlane> {
        None
    }

    /// The log; `None` if there is none.
    fn log_plane(&mut self) -> Option<&mut dyn LogPlane> {
        None
    }
}
