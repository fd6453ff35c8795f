//! Why a frame or packet was not passed on by a face.
//!
//! Every refusal of this crate is one of these, and each is a counter of the face
//! it happened on ([`crate::FaceCounters::drops`]). Whose fault it probably is
//! stands in each comment.

/// A named reason for dropping a frame on its way in or a packet on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LinkDrop {
    /// The octets are not one TLV element in shortest form. Peer's fault.
    MalformedElement,
    /// The frame ends before its element does. Peer's fault, or a cut datagram.
    TruncatedElement,
    /// Octets follow the element in its datagram. Peer's fault.
    TrailingOctets,
    /// The element or datagram exceeds 8800 octets. Peer's fault.
    OversizeElement,
    /// The element is neither Interest, Data nor LpPacket. Peer's fault.
    UnknownType,
    /// A header field is malformed, repeated, misplaced or unknown (NDNLPv2 §1). Peer's fault.
    MalformedLpHeader,
    /// An LpPacket inside an LpPacket. Peer's fault.
    NestedLpPacket,
    /// The Fragment is not exactly one Interest or Data. Peer's fault.
    FragmentNotPacket,
    /// A Nack header on something other than an Interest. Peer's fault.
    NackWithoutInterest,
    /// NextHopFaceId on a face whose local fields are off. The application forgot to turn them on.
    LocalFieldsOff,
    /// NextHopFaceId on a Data or Nack. Peer's fault.
    MisplacedNextHopFaceId,
    /// CachePolicy on an Interest or Nack. Peer's fault.
    MisplacedCachePolicy,
    /// NonDiscovery on a Data or Nack. Peer's fault.
    MisplacedNonDiscovery,
    /// PrefixAnnouncement on an Interest or Nack. Peer's fault.
    MisplacedPrefixAnnouncement,
    /// FragIndex or FragCount on a face that does not fragment. Configurations differ.
    FragmentationOff,
    /// FragIndex is not below FragCount. Peer's fault.
    FragIndexOutOfRange,
    /// FragCount is above [`crate::reassembly::MAX_FRAGMENTS`]. Peer's fault.
    TooManyFragments,
    /// A fragment without Sequence. Peer's fault.
    MissingSequence,
    /// FragCount changed within one message. Peer's fault, or a restarted peer.
    FragCountChanged,
    /// This fragment was received before. The network duplicated it; harmless.
    DuplicateFragment,
    /// The fragments of a message exceed 8800 octets. Peer's fault.
    ReassemblyOversize,
    /// A message was given up because newer ones needed its place. Loss, or a flood.
    ReassemblyEvicted,
    /// A message was given up 500 ms after its last fragment. Loss on the link.
    ReassemblyTimeout,
    /// A datagram on a connected socket from another remote: a race at face creation. Or an
    /// Ethernet frame from a station, or to a group, that no face leads to.
    ForeignRemote,
    /// No face was made for an unknown remote: the face table is full. Flood, or a low limit.
    FaceLimit,
    /// The packet does not fit the face's MTU. Local or configuration.
    PacketTooLarge,
    /// The face's send queue is full: the peer or the network is slower than we are.
    QueueFull,
    /// All send queues together are full: many slow peers.
    QueuesFull,
    /// The face exists but its connection is down (a permanent face between connections).
    FaceDown,
    /// No such face. A race with its removal.
    NoSuchFace,
    /// The kernel refused the datagram (unreachable, not permitted). Network or configuration.
    SendFailed,
    /// The datagram exceeds what the path takes. Configuration: the face's MTU is too large.
    DatagramTooLarge,
    /// This frame was received before; it is acknowledged again. The Ack was lost, or late.
    DuplicateSequence,
    /// A packet was given up: one of its frames was sent four times without an Ack. Loss, or a peer
    /// without reliability.
    RetransmissionsExhausted,
    /// A packet that was sent lost its protection to newer ones. More is under way than may be kept.
    UnacknowledgedEvicted,
    /// A frame was passed on without being acknowledged: too many Acks wait. Flood.
    AcksFull,
}

impl LinkDrop {
    /// Every reason, in declaration order: `ALL[r as usize] == r`.
    pub const ALL: [LinkDrop; 36] = [
        LinkDrop::MalformedElement,
        LinkDrop::TruncatedElement,
        LinkDrop::TrailingOctets,
        LinkDrop::OversizeElement,
        LinkDrop::UnknownType,
        LinkDrop::MalformedLpHeader,
        LinkDrop::NestedLpPacket,
        LinkDrop::FragmentNotPacket,
        LinkDrop::NackWithoutInterest,
        LinkDrop::LocalFieldsOff,
        LinkDrop::MisplacedNextHopFaceId,
        LinkDrop::MisplacedCachePolicy,
        LinkDrop::MisplacedNonDiscovery,
        LinkDrop::MisplacedPrefixAnnouncement,
        LinkDrop::FragmentationOff,
        LinkDrop::FragIndexOutOfRange,
        LinkDrop::TooManyFragments,
        LinkDrop::MissingSequence,
        LinkDrop::FragCountChanged,
        LinkDrop::DuplicateFragment,
        LinkDrop::ReassemblyOversize,
        LinkDrop::ReassemblyEvicted,
        LinkDrop::ReassemblyTimeout,
        LinkDrop::ForeignRemote,
        LinkDrop::FaceLimit,
        LinkDrop::PacketTooLarge,
        LinkDrop::QueueFull,
        LinkDrop::QueuesFull,
        LinkDrop::FaceDown,
        LinkDrop::NoSuchFace,
        LinkDrop::SendFailed,
        LinkDrop::DatagramTooLarge,
        LinkDrop::DuplicateSequence,
        LinkDrop::RetransmissionsExhausted,
        LinkDrop::UnacknowledgedEvicted,
        LinkDrop::AcksFull,
    ];

    /// Number of reasons.
    pub const COUNT: usize = Self::ALL.len();

    /// Stable snake-case name, as it appears in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            LinkDrop::MalformedElement => "malformed-element",
            LinkDrop::TruncatedElement => "truncated-element",
            LinkDrop::TrailingOctets => "trailing-octets",
            LinkDrop::OversizeElement => "oversize-element",
            LinkDrop::UnknownType => "unknown-type",
            LinkDrop::MalformedLpHeader => "malformed-lp-header",
            LinkDrop::NestedLpPacket => "nested-lp-packet",
            LinkDrop::FragmentNotPacket => "fragment-not-packet",
            LinkDrop::NackWithoutInterest => "nack-without-interest",
            LinkDrop::LocalFieldsOff => "local-fields-off",
            LinkDrop::MisplacedNextHopFaceId => "misplaced-next-hop-face-id",
            LinkDrop::MisplacedCachePolicy => "misplaced-cache-policy",
            LinkDrop::MisplacedNonDiscovery => "misplaced-non-discovery",
            LinkDrop::MisplacedPrefixAnnouncement => "misplaced-prefix-announcement",
            LinkDrop::FragmentationOff => "fragmentation-off",
            LinkDrop::FragIndexOutOfRange => "frag-index-out-of-range",
            LinkDrop::TooManyFragments => "too-many-fragments",
            LinkDrop::MissingSequence => "missing-sequence",
            LinkDrop::FragCountChanged => "frag-count-changed",
            LinkDrop::DuplicateFragment => "duplicate-fragment",
            LinkDrop::ReassemblyOversize => "reassembly-oversize",
            LinkDrop::ReassemblyEvicted => "reassembly-evicted",
            LinkDrop::ReassemblyTimeout => "reassembly-timeout",
            LinkDrop::ForeignRemote => "foreign-remote",
            LinkDrop::FaceLimit => "face-limit",
            LinkDrop::PacketTooLarge => "packet-too-large",
            LinkDrop::QueueFull => "queue-full",
            LinkDrop::QueuesFull => "queues-full",
            LinkDrop::FaceDown => "face-down",
            LinkDrop::NoSuchFace => "no-such-face",
            LinkDrop::SendFailed => "send-failed",
            LinkDrop::DatagramTooLarge => "datagram-too-large",
            LinkDrop::DuplicateSequence => "duplicate-sequence",
            LinkDrop::RetransmissionsExhausted => "retransmissions-exhausted",
            LinkDrop::UnacknowledgedEvicted => "unacknowledged-evicted",
            LinkDrop::AcksFull => "acks-full",
        }
    }
}

impl std::fmt::Display for LinkDrop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::error::Error for LinkDrop {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_in_declaration_order_and_names_are_distinct() {
        for (i, reason) in LinkDrop::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, i);
        }
        let names: std::collections::HashSet<_> = LinkDrop::ALL.iter().map(|r| r.name()).collect();
        assert_eq!(names.len(), LinkDrop::COUNT);
    }
}
