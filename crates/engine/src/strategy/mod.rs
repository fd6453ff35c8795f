//! Forwarding strategies: which next hop, when, and what then (forwarding §4).
//!
//! A strategy decides about one PIT entry at a time through a
//! [`StrategyContext`], which is all it can see and do. It is shared by all
//! workers and keeps no state of its own: what it must remember stands in the PIT
//! entry, or in the worker's [`crate::measurements`]. Adding one is one file and one line in
//! [`registry`]; `docs/strategies.md` shows a complete one.

mod access;
mod asf;
mod best_route;
mod context;
mod multicast;
mod nack_processing;
mod no_route;
mod random;
pub mod registry;
mod retx_suppression;
mod rtt_estimate;
mod self_learning;
mod silence;

pub use access::Access;
pub use asf::Asf;
pub use best_route::BestRoute;
pub use context::{StrategyContext, Trigger};
pub(crate) use context::{is_eligible, measurement_key};
pub use multicast::Multicast;
pub use random::Random;
pub use registry::{StrategyError, StrategyId, StrategyTable};
pub use rtt_estimate::RttEstimate;
pub use self_learning::SelfLearning;

use crate::watched_entry::Answer;
use namewire_packet::{FaceId, NackReason};

/// Which eligible next hops an Interest goes to of which no entry is kept: the same ones every time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithoutEntry {
    /// The cheapest.
    Cheapest,
    /// All; what Nacks say of one means nothing.
    All,
    /// Any, all equally likely.
    AnyOne,
}

/// Decides where Interests go. The default bodies do nothing, but for [`Strategy::after_upstream_lost`].
pub trait Strategy: Send + Sync + std::fmt::Debug {
    /// An Interest arrived that is neither a loop nor answered by the Content Store.
    fn after_receive_interest(&self, context: &mut StrategyContext<'_, '_, '_>);

    /// An upstream returned a Nack; it is already in its out-record.
    fn after_receive_nack(&self, _context: &mut StrategyContext<'_, '_, '_>, _reason: NackReason) {}

    /// Data is about to satisfy an entry that the strategy watches ([`StrategyContext::watch`]). The ingress is the
    /// Data's face; nobody has been sent it yet.
    fn before_satisfy(&self, _context: &mut StrategyContext<'_, '_, '_>, _answer: &mut Answer<'_>) {}

    /// The FIB entry that covers a pending Interest has gained a next hop.
    fn after_new_next_hop(&self, _context: &mut StrategyContext<'_, '_, '_>, _face: FaceId) {}

    /// The links of all upstreams that might have answered are gone. The Interest at hand is a copy with a nonce of
    /// its own, on behalf of a downstream that has an unused eligible next hop
    /// ([`StrategyContext::is_unused`]), if there is one. By default the cheapest of these gets it.
    fn after_upstream_lost(&self, context: &mut StrategyContext<'_, '_, '_>) {
        let cheapest = context.eligible().find(|&face| context.is_unused(face));
        if let Some(face) = cheapest {
            context.send_interest(face);
        }
    }

    /// A pending Interest is about to expire unanswered, and the strategy watches that
    /// ([`StrategyContext::watch_expiry`]). Nothing can be sent any more.
    fn before_expiry(&self, _context: &mut StrategyContext<'_, '_, '_>) {}

    /// The deadline that the strategy set for this entry has passed.
    fn after_timer(&self, _context: &mut StrategyContext<'_, '_, '_>) {}

    /// Where an Interest goes of which no entry is kept, if the strategy can tell without one. It is
    /// asked by a router in the core role ([`crate::core_role`]); `None`: such an Interest gets an entry.
    fn without_entry(&self) -> Option<WithoutEntry> {
        None
    }

    /// Whether a looping Interest is answered by a Nack.
    fn nacks_loops(&self) -> bool {
        true
    }
}
