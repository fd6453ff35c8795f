//! Data for an entry that its strategy watches ([`crate::StrategyContext::watch`]): what the strategy is told, what it
//! can ask for, and how an entry that was answered waits for further answers (forwarding §4.5).
//!
//! An entry that nobody watches costs one look at a flag.

use crate::{
    Engine, Instant,
    batch::{Arrival, PacketRef, Pass, Transmit},
    strategy::measurement_key,
};
use namewire_packet::{Data, FaceId, Name};
use namewire_tables::{NameHashes, PitId};

/// What came of telling a strategy.
#[derive(Clone, Copy)]
pub(crate) struct Told {
    /// The Data with an announcement before it, and the octets of that.
    pub(crate) announced: Option<(PacketRef, u16)>,
    /// The entry stays so long for further answers.
    pub(crate) waits_until: Option<Instant>,
}

impl Told {
    /// Nothing was told and nothing asked for: the ordinary case.
    pub(crate) const NOTHING: Told = Told { announced: None, waits_until: None };

    /// The Data with its announcement, if there is one.
    #[cold]
    pub(crate) fn with_announcement(&self, mut transmit: Transmit) -> Transmit {
        if let Some((packet, announcement_bytes)) = self.announced {
            (transmit.packet, transmit.headers.announcement_bytes) = (packet, announcement_bytes);
        }
        transmit
    }
}

/// Data as a strategy sees it that watches the entry.
pub struct Answer<'a> {
    now: Instant,
    data: Data<'a>,
    announcement: Option<&'a [u8]>,
    parent_hash: u64,
    told: Told,
}

impl<'a> Answer<'a> {
    /// Name of the Data.
    pub fn name(&self) -> Name<'a> {
        self.data.name()
    }

    /// The whole Data.
    pub fn wire(&self) -> &'a [u8] {
        self.data.wire()
    }

    /// The announcing Data that came with it, unchecked.
    pub fn announcement(&self) -> Option<&'a [u8]> {
        self.announcement
    }

    /// Key of the measurements that strategies of this `kind` keep of the Data's name without its last component.
    pub fn parent_key(&self, kind: u64) -> u64 {
        measurement_key(self.parent_hash, kind)
    }

    /// Keeps the entry for `ms` milliseconds if other upstreams may still answer. Whoever asked is served
    /// at once all the same; their answers come to [`crate::Strategy::before_satisfy`] too.
    pub fn wait_for_others(&mut self, ms: u64) {
        self.told.waits_until = Some(self.now.plus_ms(ms));
    }

    /// The Data goes with an announcement to those who discovered their way here.
    pub(crate) fn attach(&mut self, packet: PacketRef, announcement_bytes: u16) {
        self.told.announced = Some((packet, announcement_bytes));
    }
}

impl Engine {
    /// Tells the strategy of Data, if it watches the entry.
    #[cold]
    #[inline(never)]
    pub(crate) fn tell(
        &mut self,
        pass: &mut Pass<'_, '_>,
        arrival: &Arrival<'_>,
        data: &Data<'_>,
        hashes: &NameHashes,
        entry: PitId,
    ) -> Told {
        let lead = arrival.headers.announcement_bytes;
        let announced = (lead > 0).then_some((PacketRef::AnnouncedFrame(arrival.index), lead));
        if !self.tables.pit(entry).state.watched {
            return Told { announced, waits_until: None };
        }
        let parent_hash = hashes.prefix_hash(hashes.components().saturating_sub(1));
        let mut answer = Answer {
            now: pass.now,
            data: *data,
            announcement: arrival.headers.announcement(arrival.carried),
            parent_hash,
            told: Told { announced, waits_until: None },
        };
        self.with_strategy(pass, entry, Some(arrival.face), |strategy, context| {
            strategy.before_satisfy(context, &mut answer);
        });
        answer.told
    }

    /// Everybody has been served; the entry stays for answers that are still under way.
    pub(crate) fn wait_for_others(&mut self, pass: &Pass<'_, '_>, from: FaceId, entry: PitId, until: Instant) {
        let state = &mut self.tables.pit_mut(entry).state;
        if let Some(record) = self.records.upstream(state, from) {
            self.dead_nonces.insert(state.name_hash, record.nonce.to_u32(), pass.now.0);
        }
        self.records.forget_downstreams(state, |_| true);
        self.records.forget_upstreams(state, |face| *face == from);
        state.satisfied = true;
        (state.expires, state.strategy_deadline) = (until, None);
        self.arm(entry);
    }
}
