//! Numbers of the NFD management protocol (management.md §3, §6; drop-in.md §7).

/// Type numbers of management elements, as in ndn-cxx `tlv-nfd.hpp`.
pub mod types {
    #![allow(missing_docs)] // the names are the protocol's
    pub const CONTROL_PARAMETERS: u32 = 104;
    pub const FACE_ID: u32 = 105;
    pub const COST: u32 = 106;
    pub const STRATEGY: u32 = 107;
    pub const FLAGS: u32 = 108;
    pub const EXPIRATION_PERIOD: u32 = 109;
    pub const ORIGIN: u32 = 111;
    pub const URI: u32 = 114;
    pub const LOCAL_URI: u32 = 129;
    pub const CAPACITY: u32 = 131;
    pub const FACE_PERSISTENCY: u32 = 133;
    pub const BASE_CONGESTION_MARKING_INTERVAL: u32 = 135;
    pub const DEFAULT_CONGESTION_THRESHOLD: u32 = 136;
    pub const MTU: u32 = 137;

    // Datasets reuse 128 to 135.
    pub const FACE_SCOPE: u32 = 132;
    pub const LINK_TYPE: u32 = 134;
    pub const CAPTURE_FACE: u32 = 128;
    pub const CAPTURE_FRAME: u32 = 129;
    pub const CAPTURE_LEFT: u32 = 130;
    pub const CAPTURE_DECISION: u32 = 131;
}

/// The kinds of registrants of a route.
pub mod origin {
    #![allow(missing_docs)] // the names are the protocol's
    pub const APP: u64 = 0;
    pub const AUTOREG: u64 = 64;
    pub const CLIENT: u64 = 65;
    pub const AUTOCONF: u64 = 66;
    pub const NLSR: u64 = 128;
    pub const PREFIX_ANNOUNCEMENT: u64 = 129;
    pub const STATIC: u64 = 255;

    /// nfdc's words for them.
    pub const NAMES: [(&str, u64); 7] = [
        ("app", APP),
        ("autoreg", AUTOREG),
        ("client", CLIENT),
        ("autoconf", AUTOCONF),
        ("nlsr", NLSR),
        ("prefixann", PREFIX_ANNOUNCEMENT),
        ("static", STATIC),
    ];

    pub fn name(code: u64) -> Option<&'static str> {
        NAMES.iter().find(|(_, known)| *known == code).map(|(name, _)| *name)
    }
}

/// Bits of a route's Flags.
pub mod route_flags {
    /// Longer prefixes in the RIB inherit this next hop; the default.
    pub const CHILD_INHERIT: u64 = 1;
    /// Longer prefixes inherit nothing from prefixes shorter than this one.
    pub const CAPTURE: u64 = 2;
}

/// Bits of a face's Flags.
pub mod face_flags {
    /// IncomingFaceId and NextHopFaceId are exchanged; local faces only.
    pub const LOCAL_FIELDS: u64 = 1;
    /// NDNLPv2 link reliability.
    pub const LP_RELIABILITY: u64 = 2;
    /// Packets are marked when the send queue is congested.
    pub const CONGESTION_MARKING: u64 = 4;
    /// All workers send and receive its packets; UDP faces only, our addition.
    pub const LANES: u64 = 256;

    /// The words for those that are set.
    pub fn words(flags: u64) -> Vec<&'static str> {
        let known = [
            (LOCAL_FIELDS, "local-fields"),
            (LP_RELIABILITY, "lp-reliability"),
            (CONGESTION_MARKING, "congestion-marking"),
            (LANES, "lanes"),
        ];
        known.into_iter().filter(|(bit, _)| flags & bit != 0).map(|(_, word)| word).collect()
    }

    /// As these words.
    #[cfg(feature = "serde")]
    pub(crate) fn serialize<S: serde::Serializer>(flags: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(words(*flags))
    }
}

/// Bits of the Content Store's Flags.
pub mod cs_flags {
    /// New Data is admitted.
    pub const ADMIT: u64 = 1;
    /// Interests are answered from the store.
    pub const SERVE: u64 = 2;
}
