//! Limit met: which limit took effect, although the packet was not dropped?
//!
//! [`DropReason`](crate::DropReason) is for packets that were dropped.

use namewire_tables::CsRefusal;

namewire_packet::reasons! {
    /// Every such limit of the engine. Each is one counter, shown as `limit.` and
    /// [`LimitMet::name`] in `namewire status`.
    pub enum LimitMet {
        /// Data was evicted from the Content Store because newer Data needed the room. Not a fault.
        CsEvicted = "cs-evicted",
        /// A Data is larger than the whole Content Store.
        CsDataTooLarge = "cs-data-too-large",
        /// A Data was not stored: the Content Store could not free enough contiguous room before the end of the batch.
        CsNoRoomInBatch = "cs-no-room-in-batch",
        /// A Data was not stored: one batch had evicted as many Data as it may.
        CsTooManyEvictions = "cs-too-many-evictions",
        /// A Data was not stored: there was no room for another name.
        CsNamesFull = "cs-names-full",
        /// A stored Data is found under its own name only, not under the name of the Interest that it answered: that
        /// name belongs to other Data, or there is no room for it.
        CsNameRefused = "cs-name-refused",
        /// A stored Data is not found under the prefixes of its name, although `all` are looked up: the name is too
        /// long.
        CsNameNotOrdered = "cs-name-not-ordered",
        /// A stored Data was replaced, because the store held as many Data of its name as it may.
        CsVersionReplaced = "cs-version-replaced",
        /// The Content Store kept its policy instead of the new one: the system gave no memory for it.
        CsPolicyNotChanged = "cs-policy-not-changed",
        /// The Content Store kept its limits instead of growing: the system gave no memory for more.
        CsCapacityNotChanged = "cs-capacity-not-changed",
        /// An Interest had a ForwardingHint of more than 8 names: the others were ignored.
        DelegationsIgnored = "delegations-ignored",
        /// A dead nonce was forgotten before its time: a loop of that length would not be noticed.
        DeadNonceForgotten = "dead-nonce-forgotten",
        /// A strategy forgot a prefix's measurements early: newer ones needed the room.
        MeasurementEvicted = "measurement-evicted",
        /// A strategy did not measure a next hop: the prefix, or all prefixes together, have as many as they may.
        NextHopNotMeasured = "next-hop-not-measured",
        /// An Interest was kept by name in the core role: the table of fingerprints has no room for it.
        FingerprintsFull = "fingerprints-full",
        /// An Interest was kept by name in the core role: there is no room for another set of faces.
        FaceSetsFull = "face-sets-full",
        /// An Interest was kept by name in the core role: its face has no port number, since all are taken.
        PortsFull = "ports-full",
        /// A route that a strategy learned was not handed on: one batch had learned as many as it may.
        RouteRequestsFull = "route-requests-full",
        /// Data was sent without the announcement it should have carried: one call had written as many bytes as it may
        /// (16 MiB).
        AnnouncementNotAttached = "announcement-not-attached",
        /// The answers of a face are not timed: as many faces are as may be.
        UpstreamNotTimed = "upstream-not-timed",
    }
}

impl LimitMet {
    /// The limit that refused a Data. A policy that does not admit Data is no limit.
    #[inline]
    pub fn of_content_store(refusal: CsRefusal) -> Option<Self> {
        match refusal {
            CsRefusal::NotAdmitted => None,
            CsRefusal::LargerThanCapacity => Some(Self::CsDataTooLarge),
            CsRefusal::NoRoomInBatch => Some(Self::CsNoRoomInBatch),
            CsRefusal::TooManyEvictions => Some(Self::CsTooManyEvictions),
            CsRefusal::NamesFull => Some(Self::CsNamesFull),
        }
    }
}
