//! Reasons of a network Nack (NDNLPv2 §1.3).

use std::fmt;

/// Why an upstream could not answer. Ordered by severity, least severe first: the order in which a forwarder merges
/// Nacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NackReason {
    /// 50: the link or the producer is overloaded.
    Congestion,
    /// 100: this name and nonce were seen before.
    Duplicate,
    /// 150: no next hop.
    NoRoute,
    /// Absent, 0 or any number not listed.
    #[default]
    None,
}

impl NackReason {
    /// The number on the wire; 0 means [`NackReason::None`].
    pub const fn code(self) -> u64 {
        match self {
            NackReason::Congestion => 50,
            NackReason::Duplicate => 100,
            NackReason::NoRoute => 150,
            NackReason::None => 0,
        }
    }

    /// Reads a number from the wire. Unknown numbers mean [`NackReason::None`].
    pub const fn from_code(code: u64) -> Self {
        match code {
            50 => NackReason::Congestion,
            100 => NackReason::Duplicate,
            150 => NackReason::NoRoute,
            _ => NackReason::None,
        }
    }
}

impl fmt::Display for NackReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NackReason::Congestion => "Congestion",
            NackReason::Duplicate => "Duplicate",
            NackReason::NoRoute => "NoRoute",
            NackReason::None => "None",
        })
    }
}
