//! The reason for a revocation, by its number in the record ([`super::revocation`]).

use std::fmt;

/// Why a certificate is revoked, by the number in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason(pub u64);

impl Reason {
    /// None is given.
    pub const UNSPECIFIED: Self = Reason(0);
    /// Another person has the private key, or may have it.
    pub const KEY_COMPROMISE: Self = Reason(1);
    /// Another person has the issuer's private key, or may have it.
    pub const CA_COMPROMISE: Self = Reason(2);
    /// Another certificate replaces this one.
    pub const SUPERSEDED: Self = Reason(4);

    /// True if signatures prove nothing, whatever their time.
    pub const fn is_compromise(self) -> bool {
        matches!(self, Reason::KEY_COMPROMISE | Reason::CA_COMPROMISE)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Reason::UNSPECIFIED => f.write_str("unspecified"),
            Reason::KEY_COMPROMISE => f.write_str("key compromise"),
            Reason::CA_COMPROMISE => f.write_str("CA compromise"),
            Reason::SUPERSEDED => f.write_str("superseded"),
            Reason(number) => write!(f, "reason {number}"),
        }
    }
}
