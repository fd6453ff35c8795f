//! Why the engine dropped a packet.

namewire_packet::reasons! {
    /// Every way the engine can drop a packet. Each is one counter, shown under
    /// [`DropReason::name`] in `namewire status`.
    pub enum DropReason {
        /// The bytes are not a well-formed Interest or Data. Fault of the peer.
        Malformed = "malformed",
        /// The name has more components than the hash supports (256). Fault of the peer.
        NameTooLong = "name-too-long",
        /// The Interest had no Nonce, and with one it would be larger than a packet may be.
        TooLargeWithNonce = "too-large-with-nonce",
        /// The face is not in the table: it was closed before the packet was processed.
        UnknownFace = "unknown-face",
        /// HopLimit was 0 on arrival. Fault of the peer, or the end of a loop.
        HopLimitZero = "hop-limit-zero",
        /// `/localhost` across a non-local face. Fault of the peer.
        ScopeViolation = "scope-violation",
        /// Name and nonce were seen before: the network has a loop, or the consumer reused a nonce.
        DuplicateNonce = "duplicate-nonce",
        /// The PIT is at its capacity.
        PitFull = "pit-full",
        /// The face has as many pending Interests as it may at the PIT's present fill: it floods.
        FaceShareUsed = "face-share-used",
        /// The holder of the face has its share of the PIT, and no other holder has over twice as much.
        PitShareUsed = "pit-share-used",
        /// The memory for large Interests is used up.
        PitOverflowFull = "pit-overflow-full",
        /// The PIT entry, or all entries together, have as many downstreams as they may.
        InRecordsFull = "in-records-full",
        /// The PIT entry, or all entries together, have as many upstreams as they may, and the
        /// Interest was not sent anywhere.
        OutRecordsFull = "out-records-full",
        /// NextHopFaceId names a face that does not exist.
        NextHopFaceMissing = "next-hop-face-missing",
        /// The PathLabel of a probe names no next hop to which it may go. A Nack said so.
        PathLabelVoid = "path-label-void",
        /// No FIB entry gives an eligible next hop, and a Nack said so or the strategy sends no Nack.
        NoRoute = "no-route",
        /// The links of all next hops are down. The Interest waits for one of them.
        NextHopDown = "next-hop-down",
        /// An Interest that is already pending was not sent again so soon. Not a fault.
        Suppressed = "suppressed",
        /// A pending Interest was not offered to a new next hop, because one scan of the PIT had sent as many as it
        /// may. A retransmission will use the next hop.
        NextHopScanFull = "next-hop-scan-full",
        /// A Nack, or a pending Interest for another next hop, was not sent, because one call had already written as
        /// many bytes of these as it may (16 MiB).
        RewrittenFull = "rewritten-full",
        /// Data that no Interest asked for, or that came too late, and that was not stored either.
        UnsolicitedData = "unsolicited-data",
        /// Data for a pending Interest that was not sent to this face. It goes nowhere and is not stored.
        DataNotAsked = "data-not-asked",
        /// Data under `/localhost/nfd` from an application: only the router's management produces it.
        ForgedManagement = "forged-management",
        /// A Nack on a link with several peers, where it must be ignored.
        NackOnMultiAccess = "nack-on-multi-access",
        /// A Nack that fits no pending Interest: wrong name, nonce or face.
        UnmatchedNack = "unmatched-nack",
        /// Core role: a Nack was not passed on. Other upstreams may still answer, or no face that asked for the
        /// fingerprint exists and takes Nacks.
        NackNotPassedOn = "nack-not-passed-on",
        /// Core role: the Data was already sent to the faces that asked for its fingerprint, and no Interest asked
        /// since.
        DataSentAlready = "data-sent-already",
    }
}
