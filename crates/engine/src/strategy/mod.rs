//! Forwarding strategies: which next hop, when, and what then (forwarding §4).
//!
//! A strategy decides about one PIT entry at a time through a
//! [`StrategyContext`], which is all it can see and do. It is shared by all
//! workers and keeps no state of its own: what it must remember stands in the PIT
//! entry. Adding one is one file and one line in [`registry`].

mod best_route;
mod context;
mod multicast;
mod nack_processing;
pub mod registry;
mod retx_suppression;

pub use best_route::BestRoute;
pub use context::{StrategyContext, Trigger};
pub use multicast::Multicast;
pub use registry::{StrategyError, StrategyId, StrategyTable};

use namewire_packet::{FaceId, NackReason};

/// Decides where Interests go. The default bodies do nothing.
pub trait Strategy: Send + Sync + std::fmt::Debug {
    /// An Interest arrived that is neither a loop nor answered by the Content Store.
    fn after_receive_interest(&self, context: &mut StrategyContext<'_, '_, '_>);

    /// An upstream returned a Nack; it is already in its out-record.
    fn after_receive_nack(&self, _context: &mut StrategyContext<'_, '_, '_>, _reason: NackReason) {}

    /// The FIB entry that covers a pending Interest has gained a next hop.
    fn after_new_next_hop(&self, _context: &mut StrategyContext<'_, '_, '_>, _face: FaceId) {}

    /// The deadline that the strategy set for this entry has passed.
    fn after_timer(&self, _context: &mut StrategyContext<'_, '_, '_>) {}

    /// Whether a looping Interest is answered by a Nack.
    fn nacks_loops(&self) -> bool {
        true
    }
}
