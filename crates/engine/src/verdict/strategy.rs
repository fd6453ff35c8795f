//! Forwarding strategies: which next hop, when, and what to do afterwards (forwarding §4).
//!
//! A strategy decides about one PIT entry at a time. It sees and does everything through a [`StrategyContext`]. All
//! workers share a strategy, so a strategy itself has no state. It stores what it must remember in the PIT entry, or in
//! the worker's [`crate::state::measurements`]. [`crate::strategies`] has the strategies themselves.

use crate::verdict::{
    answer::Answer,
    context::StrategyContext,
    foresight::{Foresight, Prospect},
};
use namewire_packet::{FaceId, NackReason};

/// Which eligible next hops get an Interest that has no PIT entry: the same ones every time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithoutEntry {
    /// The cheapest.
    Cheapest,
    /// All; a Nack from one of them has no effect.
    All,
    /// One, all equally likely.
    AnyOne,
}

/// How the next hop of an Interest that begins a PIT entry is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstNextHop {
    /// By [`Strategy::after_receive_interest`].
    ByStrategy,
    /// The cheapest, without a call. If there are several, the entry's expiry is watched
    /// ([`StrategyContext::watch_expiry`]). The strategy is called if the cheapest is not eligible, or if there are
    /// several and some next hop is suspected of being silent.
    Cheapest,
}

/// Decides where Interests go. The default methods do nothing, except [`Strategy::after_upstream_lost`].
pub trait Strategy: Send + Sync + std::fmt::Debug {
    /// An Interest arrived that is neither a loop nor answered by the Content Store.
    fn after_receive_interest(&self, context: &mut StrategyContext<'_, '_, '_>);

    /// How the next hop of an Interest that begins a PIT entry is chosen. A strategy that says
    /// [`FirstNextHop::Cheapest`] does the same in [`Strategy::after_receive_interest`].
    fn first_next_hop(&self) -> FirstNextHop {
        FirstNextHop::ByStrategy
    }

    /// An upstream returned a Nack; it is already in its out-record.
    fn after_receive_nack(&self, _context: &mut StrategyContext<'_, '_, '_>, _reason: NackReason) {}

    /// Data is about to satisfy an entry that the strategy watches ([`StrategyContext::watch`]). The ingress is the
    /// Data's face. No downstream has got the Data yet.
    fn before_satisfy(&self, _context: &mut StrategyContext<'_, '_, '_>, _answer: &mut Answer<'_>) {}

    /// The FIB entry that covers a pending Interest has gained a next hop.
    fn after_new_next_hop(&self, _context: &mut StrategyContext<'_, '_, '_>, _face: FaceId) {}

    /// The links of all upstreams that might have answered are down. The Interest at hand is a copy with a nonce of its
    /// own. Its ingress is a downstream that has an unused eligible next hop ([`StrategyContext::is_unused`]), if there
    /// is one. The default sends it to the cheapest of these.
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

    /// Where to send an Interest without a PIT entry, if the strategy can tell. A router in the core role calls it
    /// ([`crate::state::core_role`]); with `None` such an Interest gets an entry.
    fn without_entry(&self) -> Option<WithoutEntry> {
        None
    }

    /// Where a new Interest would go now, for operators. The default follows [`Strategy::without_entry`].
    fn foresee(&self, prospect: &Prospect<'_>) -> Foresight {
        let most = match self.without_entry() {
            Some(WithoutEntry::Cheapest) => 1,
            Some(WithoutEntry::All) => usize::MAX,
            // One of several: which, is not known before.
            Some(WithoutEntry::AnyOne) | None => 0,
        };
        prospect.cheapest(most)
    }

    /// Whether a looping Interest gets a Nack.
    fn nacks_loops(&self) -> bool {
        true
    }
}
