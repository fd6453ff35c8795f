//! Which limit turned something away while the packet at hand went on?
//!
//! Beside [`DropReason`](crate::DropReason), which is for packets that ended.

use crate::drop_reason::counted;
use namewire_tables::CsRefusal;

counted! {
    /// Every such limit of the engine. Each is one counter, shown as `limit.` and
    /// [`LimitMet::name`] in `namewire status`.
    LimitMet:
    /// Data went from the Content Store because newer ones needed the room. Not a fault.
    CsEvicted = "cs-evicted",
    /// A Data is larger than the whole Content Store.
    CsDataTooLarge = "cs-data-too-large",
    /// A Data was not stored: the Content Store had no hole for it before the batch ends.
    CsNoRoomInBatch = "cs-no-room-in-batch",
    /// A Data was not stored: one batch had evicted as many as it may.
    CsTooManyEvictions = "cs-too-many-evictions",
    /// A Data was not stored: there was no room for another name.
    CsNamesFull = "cs-names-full",
    /// A stored Data is not found under the name of the Interest that it answered, only
    /// under its own: the name is that of other Data, or there is no room for it.
    CsNameRefused = "cs-name-refused",
    /// A stored Data is not found under the prefixes of its name, although all are looked up: the name is too long.
    CsNameNotOrdered = "cs-name-not-ordered",
    /// A stored Data went, because the store held as many Data of its name as it may.
    CsVersionReplaced = "cs-version-replaced",
    /// The Content Store kept its policy when it was to get another: the system gave no memory for it.
    CsPolicyNotChanged = "cs-policy-not-changed",
    /// The Content Store was to grow and kept the limits that it had: the system gave no memory for more.
    CsCapacityNotChanged = "cs-capacity-not-changed",
    /// An Interest came with a ForwardingHint of more than 8 names: the others are not looked at.
    DelegationsIgnored = "delegations-ignored",
    /// A dead nonce was forgotten before its time: a loop of that length would not be noticed.
    DeadNonceForgotten = "dead-nonce-forgotten",
    /// A strategy forgot what it had measured of a prefix before its time: newer ones needed the room.
    MeasurementEvicted = "measurement-evicted",
    /// A strategy did not measure a next hop: the prefix, or all together, have as many as they may.
    NextHopNotMeasured = "next-hop-not-measured",
    /// An Interest was kept by name in the core role: the table of fingerprints has no room for it.
    FingerprintsFull = "fingerprints-full",
    /// An Interest was kept by name in the core role: there is no room for another set of faces.
    FaceSetsFull = "face-sets-full",
    /// An Interest was kept by name in the core role: its face has no port number, since all are taken.
    PortsFull = "ports-full",
    /// What a strategy learned of a route was not handed on: one batch had learned as much as it may.
    RouteRequestsFull = "route-requests-full",
    /// Data went without the announcement it should have carried: one call had written as many
    /// octets as it may (16 MiB).
    AnnouncementNotAttached = "announcement-not-attached",
}

impl LimitMet {
    /// The limit that refused a Data; what a policy did not admit met none.
    pub(crate) fn of_content_store(refusal: CsRefusal) -> Option<Self> {
        match refusal {
            CsRefusal::NotAdmitted => None,
            CsRefusal::LargerThanCapacity => Some(Self::CsDataTooLarge),
            CsRefusal::NoRoomInBatch => Some(Self::CsNoRoomInBatch),
            CsRefusal::TooManyEvictions => Some(Self::CsTooManyEvictions),
            CsRefusal::NamesFull => Some(Self::CsNamesFull),
        }
    }
}
