//! Answer: Data for an entry that its strategy watches ([`crate::StrategyContext::watch`]). This file has what the
//! strategy sees of the Data, and what it can ask for (forwarding §4.5).

use crate::{
    Instant,
    ground::output::{PacketRef, Transmit},
    state::measurements::measurement_key,
};
use namewire_packet::{Data, Name};

/// What to do besides serving the downstreams.
#[derive(Clone, Copy)]
pub(crate) struct AnswerVerdict {
    /// The Data preceded by an announcement, and the announcement's length in bytes.
    pub(crate) announced: Option<(PacketRef, u16)>,
    /// The Data preceded by a PathLabel, and the label's length in bytes.
    pub(crate) labelled: Option<(PacketRef, u16)>,
    /// The entry stays until then for further answers.
    pub(crate) waits_until: Option<Instant>,
}

impl AnswerVerdict {
    /// The strategy was not called: the usual case.
    pub(crate) const NOTHING: AnswerVerdict = AnswerVerdict { announced: None, labelled: None, waits_until: None };

    /// The Data with its announcement, if there is one and the downstream `wants_announcements`; else with its
    /// PathLabel, if there is one.
    #[inline]
    pub(crate) fn led(&self, mut transmit: Transmit, wants_announcements: impl FnOnce() -> bool) -> Transmit {
        let announced = self.announced.filter(|_| wants_announcements());
        if let Some((packet, lead_bytes)) = announced.or(self.labelled) {
            (transmit.packet, transmit.headers.lead_bytes) = (packet, lead_bytes);
        }
        transmit
    }
}

/// Data as seen by a strategy that watches the entry.
pub struct Answer<'a> {
    pub(crate) now: Instant,
    pub(crate) data: Data<'a>,
    pub(crate) announcement: Option<&'a [u8]>,
    pub(crate) parent_hash: u64,
    pub(crate) verdict: AnswerVerdict,
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

    /// Key of the measurements that strategies of this `kind` keep for the Data's name without its last component.
    pub fn parent_key(&self, kind: u64) -> u64 {
        measurement_key(self.parent_hash, kind)
    }

    /// Keeps the entry for `ms` milliseconds if other upstreams may still answer. The downstreams are served at once
    /// nevertheless. Further answers also come to [`crate::Strategy::before_satisfy`].
    pub fn wait_for_others(&mut self, ms: u64) {
        self.verdict.waits_until = Some(self.now.plus_ms(ms));
    }

    /// Sends the Data with an announcement to the downstreams that asked by discovery.
    pub(crate) fn attach(&mut self, packet: PacketRef, lead_bytes: u16) {
        self.verdict.announced = Some((packet, lead_bytes));
    }
}
