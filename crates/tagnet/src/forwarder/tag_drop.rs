//! Why the forwarder dropped a tag packet.

namewire_packet::reasons! {
    /// Every way a tag packet can go nowhere. Each is one counter, shown as `tag.` and [`TagDrop::name`].
    pub enum TagDrop {
        /// This router is in no tree of that number.
        UnknownTree = "unknown-tree",
        /// The packet's labels are of another epoch: the tree has changed.
        StaleEpoch = "stale-epoch",
        /// The neighbour is not a neighbour in that tree. Fault of the peer, or the tree has changed.
        NotOnTree = "not-on-tree",
        /// The hop limit was used up before a link. The tree has a loop, or the sender chose a low limit.
        HopLimitZero = "hop-limit-zero",
        /// No advertised descriptor beyond other faces is a subset.
        NoMatch = "no-match",
        /// A descriptor of an application here is a subset, but its tags are not: the Bloom filter was wrong.
        FalsePositive = "false-positive",
        /// The descriptor has more 1-bits than sixteen tags have. Fault of the peer.
        DescriptorTooHeavy = "descriptor-too-heavy",
        /// An application sent a descriptor that does not belong to its tags.
        DescriptorMismatch = "descriptor-mismatch",
        /// A reply names no locator. Fault of the peer.
        ReplyByDescriptor = "reply-by-descriptor",
        /// A fan-out of 0. Fault of the peer.
        NoFanOut = "no-fan-out",
        /// The label is malformed, or names an interface that no router has. Forged, or of another tree.
        BadLabel = "bad-label",
        /// The locator leads back to the face by which the packet came. Forged, or the tree has changed.
        BackToSender = "back-to-sender",
        /// The application of the locator is gone, or never sent a tag packet.
        NoEndpoint = "no-endpoint",
        /// An application pushed that has no right to: it has not joined.
        PushNotAllowed = "push-not-allowed",
        /// The packet's search takes long, and its holder has its share of the packets whose searches wait. The holder
        /// sends more than the worker has time for.
        SearchesWaiting = "searches-waiting",
        /// An application's packet would be larger than a packet may be, with its place for replies.
        TooLarge = "too-large",
        /// The packet is malformed. Fault of the peer.
        Malformed = "malformed",
    }
}
