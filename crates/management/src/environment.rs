//! What management asks of the router while it handles one request.

use crate::{
    capture_plane::CapturePlane, log_plane::LogPlane, process_plane::ProcessPlane, strategy_choice::StrategyRegistry,
    tag_plane::TagPlane,
};
use namewire_packet::nfd::{NodeState, Part};

/// The two clocks, read once per call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Monotonic nanoseconds: deadlines.
    pub mono_ns: u64,
    /// Milliseconds since 1970: dataset versions and timestamps.
    pub unix_ms: u64,
}

/// The router. Workers keep the counters, so the router gathers them on request.
pub trait Environment: StrategyRegistry {
    /// Fills in a part of what the node says of itself. [`crate::Management::state`] knows the faces and the strategies
    /// in force, and has put them into the state where they are needed: of the faces, the counters, the time until they
    /// close, the port and the path's MTU are missing, and settings name the strategies. It adds what management
    /// counts.
    fn fill(&self, part: Part, state: &mut NodeState);

    /// The full Content Store policy that a text names: admission and eviction. A part that the text omits stays as it
    /// is now.
    ///
    /// # Errors
    /// Why the text names no policy.
    fn resolve_cs_policy(&self, text: &str) -> Result<String, String>;

    /// TagNet's tables; `None` while TagNet is off.
    fn tag_plane(&mut self) -> Option<&mut dyn TagPlane>;

    /// Captures of frames; `None` if there are no frames.
    fn capture_plane(&mut self) -> Option<&mut dyn CapturePlane> {
        None
    }

    /// The process in which the forwarder runs; `None` if it takes no commands.
    fn process_plane(&mut self) -> Option<&mut dyn ProcessPlane> {
        None
    }

    /// The log; `None` if there is none.
    fn log_plane(&mut self) -> Option<&mut dyn LogPlane> {
        None
    }
}
