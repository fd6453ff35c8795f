//! DroppedPacket: one of the last packets that the router dropped (dataset `status/dropped`).
//!
//! This dataset is ours; NFD has no such dataset.

use super::{
    element::element,
    face_attributes::protocol_enum,
    numbers::types::{DATASET_ENTRY, DROP_COUNT, DROP_NAME_CUT, DROP_REASON, DROP_TIME, FACE_ID, PACKET_KIND},
};
use crate::{FaceId, NameBuf, tlv::types::NAME};

protocol_enum! {
    /// What a packet was.
    PacketKind {
        /// An Interest.
        Interest = 0 "Interest",
        /// Data.
        Data = 1 "Data",
        /// An Interest that came back as a Nack.
        Nack = 2 "Nack",
        /// Bytes that are no packet, or a packet that is no longer at hand.
        Unknown = 3 "packet"
    }
}

element! {
    element DATASET_ENTRY:
    /// One entry of `status/dropped`: 128 { 128 reason text, 129 time ?, 130 kind, 105 face ?, 7 name ?, 131 cut?,
    /// 132 count }.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct DroppedPacket {
        /// Where and why, as in `status/drops`: `engine.no-route`.
        pub reason: String = DROP_REASON,
        /// When, in milliseconds since 1970. 0: links count drops and do not note the time.
        pub time_ms: u64 = DROP_TIME,
        /// What was dropped.
        pub kind: PacketKind = PACKET_KIND,
        /// The face that it came from; for a drop of a link, the face of the link.
        pub face: Option<FaceId> = FACE_ID,
        /// Its name, if it has one.
        pub name: Option<NameBuf> = NAME,
        /// True if the name has more components.
        pub is_name_cut: bool = DROP_NAME_CUT,
        /// 1 for a packet; for a link, the frames dropped so far.
        pub count: u64 = DROP_COUNT,
    }
}
