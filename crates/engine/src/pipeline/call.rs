//! What a pipeline gets: the tables of this call, room for verdicts, and the packet.

use crate::{
    FaceAttributes, LinkType, StrategyTable,
    dispatch::visits::Visits,
    ground::{
        measured::PartClock,
        output::{Outbound, PacketRef},
    },
    pipeline::frame::Frame,
    verdict::scope::NameScope,
};
use namewire_packet::{Data, FaceId, Interest, Nonce, lp::LpHeaders};
use namewire_tables::{FibHint, FibView, GroupId, NameHashes, PitId, Probed, Variant};

/// One call of the engine.
pub(crate) struct Call<'v, 'o, C: PartClock> {
    pub(crate) fib: FibView<'v>,
    pub(crate) strategies: &'v StrategyTable,
    pub(crate) outbound: Outbound<'v, 'o>,
    /// Receives the end of each part of a packet's work.
    pub(crate) clock: C,
}

/// The packet at hand, a view of type `P`.
pub(crate) struct Received<'a, 'v, P> {
    /// Its frame, by index.
    pub(crate) frame: u16,
    /// The same frame.
    pub(crate) carrier: &'a Frame<'a>,
    pub(crate) packet: &'a P,
    pub(crate) hashes: &'a NameHashes,
    pub(crate) hints: &'a Hints<'v>,
}

impl<'a, P> Received<'a, '_, P> {
    #[inline(always)]
    pub(crate) fn face(&self) -> FaceId {
        self.carrier.face
    }

    #[inline(always)]
    pub(crate) fn headers(&self) -> &'a LpHeaders {
        &self.carrier.headers
    }

    /// The bytes that carried it: see [`LpHeaders::packet`].
    pub(crate) fn carried(&self) -> &'a [u8] {
        self.carrier.packet
    }

    #[inline(always)]
    pub(crate) fn visits(&self) -> &'a Visits {
        &self.carrier.visits
    }
}

/// Hints from the prefetching stages; the pipelines verify them.
#[derive(Clone, Copy, Default)]
pub(crate) struct Hints<'v> {
    /// The name group whose tag fits, or that the PIT token tells.
    pub(crate) group: Probed,
    /// The name group of the packet's own name: not a hint, for it was compared just before the pipeline.
    pub(crate) own_name: Option<GroupId>,
    /// The FIB entry of the longest prefix whose tag fits.
    pub(crate) fib: Option<FibHint<'v>>,
}

/// An Interest that passed the checks, and what the PIT knows of its name.
///
/// N.B. Only functions that are inlined get it: passed to others, it was written to memory for every Interest, with 30
/// instructions.
pub(crate) struct InterestAtHand<'a, 'v> {
    pub(crate) received: &'a Received<'a, 'v, Interest<'a>>,
    pub(crate) scope: NameScope,
    pub(crate) onward: OutgoingInterest,
    pub(crate) group: Option<GroupId>,
    pub(crate) variant: Variant,
    pub(crate) entry: Option<PitId>,
}

/// An Interest as it is forwarded: with a nonce, HopLimit decremented, and a hint that led here removed.
#[derive(Clone, Copy)]
pub(crate) struct OutgoingInterest {
    pub(crate) packet: PacketRef,
    pub(crate) nonce: Nonce,
    pub(crate) hop_limit: Option<u8>,
    pub(crate) hint_removed: bool,
}

/// Data, and the pending Interests that it answers here.
#[derive(Clone, Copy)]
pub(crate) struct DataAtHand<'a, 'v> {
    pub(crate) received: &'a Received<'a, 'v, Data<'a>>,
    pub(crate) ingress: &'v FaceAttributes,
    /// The visits that remain after this worker.
    pub(crate) visits: Visits,
    /// The name group of its own name.
    pub(crate) own_name: Option<GroupId>,
    pub(crate) matches: &'a [PitId],
}

impl DataAtHand<'_, '_> {
    /// Whether it came from `face` and must not be sent back there.
    #[inline(always)]
    pub(crate) fn goes_back_to(&self, face: FaceId) -> bool {
        face == self.received.face() && self.ingress.link_type != LinkType::AdHoc
    }
}
