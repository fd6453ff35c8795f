//! Why a packet ended here without being answered or passed on.

/// An enum of things that are counted, one counter each.
macro_rules! counted {
    ($(#[doc = $about:literal])+ $counted:ident: $($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $counted {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl $counted {
            /// All of them, in the order of their counters.
            pub const ALL: &'static [$counted] = &[$($counted::$variant),+];
            /// How many there are.
            pub const COUNT: usize = $counted::ALL.len();

            /// Stable name for counters and logs.
            pub const fn name(self) -> &'static str {
                match self {
                    $($counted::$variant => $name,)+
                }
            }
        }
    };
}
pub(crate) use counted;

counted! {
    /// Every way the engine can drop a packet. Each is one counter, shown under
    /// [`DropReason::name`] in `namewire status`.
    DropReason:
    /// The octets are not a well-formed Interest or Data. Fault of the peer.
    Malformed = "malformed",
    /// The name has more components than the hash supports (256). Fault of the peer.
    NameTooLong = "name-too-long",
    /// The Interest had no Nonce, and with one it would be larger than a packet may be.
    TooLargeWithNonce = "too-large-with-nonce",
    /// The face is not in the table: it was closed while the packet waited.
    UnknownFace = "unknown-face",
    /// HopLimit was 0 on arrival. Fault of the peer, or a loop it ended.
    HopLimitZero = "hop-limit-zero",
    /// `/localhost` across a non-local face. Fault of the peer.
    ScopeViolation = "scope-violation",
    /// Name and nonce were seen before: the network has a loop, or the consumer reused a nonce.
    DuplicateNonce = "duplicate-nonce",
    /// The PIT is at its capacity.
    PitFull = "pit-full",
    /// The face waits for as many answers as it may while the PIT has so little room left
    /// ([`EngineConfig::face_share_percent`](crate::EngineConfig::face_share_percent)): it floods.
    FaceShareUsed = "face-share-used",
    /// The memory for large Interests is used up.
    PitOverflowFull = "pit-overflow-full",
    /// The PIT entry, or all entries together, have as many downstreams as they may.
    InRecordsFull = "in-records-full",
    /// The PIT entry, or all entries together, have as many upstreams as they may, and the
    /// Interest was not sent anywhere.
    OutRecordsFull = "out-records-full",
    /// NextHopFaceId names a face that does not exist.
    NextHopFaceMissing = "next-hop-face-missing",
    /// No FIB entry gives an eligible next hop, and a Nack said so or the strategy sends none.
    NoRoute = "no-route",
    /// The links of all next hops are down. The Interest waits for one of them.
    NextHopDown = "next-hop-down",
    /// An Interest that is already pending was not sent again so soon. Not a fault.
    Suppressed = "suppressed",
    /// A pending Interest that was not shown to a new next hop, because one scan of
    /// the PIT had already sent as many as it may. A retransmission will use the next hop.
    NextHopScanFull = "next-hop-scan-full",
    /// A Nack, or a pending Interest on its way to a further next hop, that was not sent because
    /// one call had already written as many octets of such as it may (16 MiB).
    RewrittenFull = "rewritten-full",
    /// Data that nobody asked for, or that came too late, and that was not stored either.
    UnsolicitedData = "unsolicited-data",
    /// A Nack on a link with several peers, where it must be ignored.
    NackOnMultiAccess = "nack-on-multi-access",
    /// A Nack that fits no pending Interest: wrong name, nonce or face.
    UnmatchedNack = "unmatched-nack",
    /// Core role: a Nack that nobody is told of, since others were asked too and may still answer, or since no face
    /// that asked for the fingerprint is there and takes Nacks.
    NackNotPassedOn = "nack-not-passed-on",
    /// Core role: Data that went already to whoever asked for its fingerprint, and no Interest asked for it since.
    DataSentAlready = "data-sent-already",
}
