//! DroppedPacket: one of the last packets that the router dropped (dataset `status/dropped`).
//!
//! This dataset is ours; NFD has no such dataset.

use super::{element::element, face_attributes::protocol_enum, numbers::types::FACE_ID};
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
    dataset "status/dropped":
    /// One entry of `status/dropped`.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct DroppedPacket {
        /// Where and why, as in `status/drops`: `engine.no-route`.
        pub reason: String = 128,
        /// When, in milliseconds since 1970. 0: links count drops and do not note the time.
        #[cfg_attr(feature = "serde", serde(skip_serializing_if = "is_zero"))]
        pub time_ms: u64 = 129,
        /// What was dropped. JSON has [`DroppedPacket::what`].
        #[cfg_attr(feature = "serde", serde(skip))]
        pub kind: PacketKind = 130,
        /// The face that it came from; for a drop of a link, the face of the link.
        #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
        pub face: Option<FaceId> = FACE_ID as "face_id",
        /// Its name, if it has one.
        #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
        pub name: Option<NameBuf> = NAME,
        /// True if the name has more components.
        #[cfg_attr(feature = "serde", serde(skip_serializing_if = "std::ops::Not::not"))]
        pub is_name_cut: bool = 131 as "name_is_cut",
        /// 1 for a packet; for a link, the frames dropped so far.
        pub count: u64 = 132,
    }
}

impl DroppedPacket {
    /// A link dropped it: frames, without a time.
    pub const fn is_of_link(&self) -> bool {
        is_zero(&self.time_ms)
    }

    /// What was dropped, in a word.
    pub const fn what(&self) -> &'static str {
        if self.is_of_link() { "frame" } else { self.kind.word() }
    }
}

const fn is_zero(number: &u64) -> bool {
    *number == 0
}
