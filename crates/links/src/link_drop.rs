//! Why a face dropped a frame or a packet.
//!
//! Every refusal of this crate is one of these reasons, and each face has a counter for each reason
//! ([`crate::FaceCounters::drops`]). Each comment names the probable cause.

namewire_packet::reasons! {
    /// A named reason for dropping a frame on its way in or a packet on its way out.
    pub enum LinkDrop {
        /// The bytes are not one TLV element in shortest form. Peer's fault.
        MalformedElement = "malformed-element",
        /// The frame ends before its element does. Peer's fault, or a cut datagram.
        TruncatedElement = "truncated-element",
        /// Bytes follow the element in its datagram. Peer's fault.
        TrailingBytes = "trailing-bytes",
        /// The element or datagram exceeds 8800 bytes. Peer's fault.
        OversizeElement = "oversize-element",
        /// The element is neither Interest, Data nor LpPacket. Peer's fault.
        UnknownType = "unknown-type",
        /// A header field is malformed, repeated, misplaced or unknown (NDNLPv2 §1). Peer's fault.
        MalformedLpHeader = "malformed-lp-header",
        /// An LpPacket inside an LpPacket. Peer's fault.
        NestedLpPacket = "nested-lp-packet",
        /// The Fragment is not exactly one Interest or Data. Peer's fault.
        FragmentNotPacket = "fragment-not-packet",
        /// A Nack header on something other than an Interest. Peer's fault.
        NackWithoutInterest = "nack-without-interest",
        /// NextHopFaceId on a face whose local fields are off. The application forgot to turn them on.
        LocalFieldsOff = "local-fields-off",
        /// NextHopFaceId on a Data or Nack. Peer's fault.
        MisplacedNextHopFaceId = "misplaced-next-hop-face-id",
        /// CachePolicy on an Interest or Nack. Peer's fault.
        MisplacedCachePolicy = "misplaced-cache-policy",
        /// NonDiscovery on a Data or Nack. Peer's fault.
        MisplacedNonDiscovery = "misplaced-non-discovery",
        /// PrefixAnnouncement on an Interest or Nack. Peer's fault.
        MisplacedPrefixAnnouncement = "misplaced-prefix-announcement",
        /// FragIndex or FragCount on a face that does not fragment. Configurations differ.
        FragmentationOff = "fragmentation-off",
        /// FragIndex is not below FragCount. Peer's fault.
        FragIndexOutOfRange = "frag-index-out-of-range",
        /// FragCount is above [`crate::reassembly::MAX_FRAGMENTS`]. Peer's fault.
        TooManyFragments = "too-many-fragments",
        /// A fragment without Sequence. Peer's fault.
        MissingSequence = "missing-sequence",
        /// FragCount changed within one message. Peer's fault, or a restarted peer.
        FragCountChanged = "frag-count-changed",
        /// This fragment was received before. The network duplicated it; harmless.
        DuplicateFragment = "duplicate-fragment",
        /// The fragments of a message exceed 8800 bytes. Peer's fault.
        ReassemblyOversize = "reassembly-oversize",
        /// A message was discarded because newer ones needed its place. Loss, or a flood.
        ReassemblyEvicted = "reassembly-evicted",
        /// A message was discarded because its host has its share of the memory for reassembly. That host's fault.
        ReassemblyShare = "reassembly-share",
        /// A message was discarded 500 ms after its last fragment. Loss on the link.
        ReassemblyTimeout = "reassembly-timeout",
        /// A datagram on a connected socket from another remote, while no listener has its port. Or an Ethernet frame
        /// from a station, or to a group, without a face.
        ForeignRemote = "foreign-remote",
        /// A frame in shared memory that is shorter than its Ethernet header, or whose description cannot be. The
        /// device's fault, or that of the process that shares the memory.
        MalformedFrame = "malformed-frame",
        /// A frame that is not NDN, on a port that gets all frames: IP, ARP, a VLAN's. Harmless.
        ForeignFrame = "foreign-frame",
        /// No face was made for an unknown remote: the face table is full. Flood, or a low limit.
        FaceLimit = "face-limit",
        /// No face was made for an unknown remote: its host has its share of the faces. That host's fault.
        HolderShare = "holder-share",
        /// The listener overflows, and this remote's host brought more datagrams than its part. That host's fault.
        TurnShare = "turn-share",
        /// No face was made for an unknown remote: its Interest or Data is malformed. That host's fault, or a scan.
        MalformedPacket = "malformed-packet",
        /// No face was made for an unknown remote: its LpPacket has no Fragment. A restarted router's peer, or a scan.
        NothingCarried = "nothing-carried",
        /// A LaneHello that makes no sense: its length, its number of lanes, or a port. Peer's fault.
        LaneHelloRefused = "lane-hello-refused",
        /// More than ten LaneHellos a second. Peer's fault, or somebody who forges its address.
        LaneHelloTooOften = "lane-hello-too-often",
        /// The packet does not fit the face's MTU. The sending application, or the configuration.
        PacketTooLarge = "packet-too-large",
        /// The face's send queue is full: the peer or the network is slower than we are.
        QueueFull = "queue-full",
        /// All send queues together are full: many slow peers.
        QueuesFull = "queues-full",
        /// The peer does not read, and its host or user has its share of all send queues.
        QueueShare = "queue-share",
        /// A packet that waited for a peer that does not read made room for one of another host or user, whose packets
        /// there are fewer. The fault of the one who sent it.
        QueueDisplaced = "queue-displaced",
        /// The face exists but its connection is down (a permanent face between connections).
        FaceDown = "face-down",
        /// No such face. A race with its removal.
        NoSuchFace = "no-such-face",
        /// The kernel refused the datagram (unreachable, not permitted). Network or configuration.
        SendFailed = "send-failed",
        /// The datagram exceeds what the path takes. Configuration: the face's MTU is too large.
        DatagramTooLarge = "datagram-too-large",
        /// This frame was received before; it is acknowledged again. The Ack was lost, or late.
        DuplicateSequence = "duplicate-sequence",
        /// A packet was given up: one of its frames was sent four times without an Ack. Loss, or a peer without
        /// reliability.
        RetransmissionsExhausted = "retransmissions-exhausted",
        /// A packet already sent lost its protection to newer ones: more is unacknowledged than may be kept.
        UnacknowledgedEvicted = "unacknowledged-evicted",
        /// A frame was passed on but not acknowledged: too many Acks wait. Flood.
        AcksFull = "acks-full",
    }
}

impl std::fmt::Display for LinkDrop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::error::Error for LinkDrop {}
