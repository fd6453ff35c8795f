//! Denials: the reasons why a command is refused, with their texts and numbers.
//!
//! NFD answers only `authorization rejected`; the texts here help to find the cause. Names in the texts are short
//! ([`quoted`]).

use super::reason::Reason;
use crate::{quoted_name::quoted, validity_period::iso_time};
use namewire_packet::Name;
use std::fmt;

/// Why a command, an announcement or a certificate is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denial {
    /// The packet does not say who sent it.
    NotSigned,
    /// The signature, or the parameters digest, is wrong.
    BadSignature(String),
    /// No SignatureTime (or, in the old format, no timestamp).
    NoTimestamp,
    /// No SignatureNonce.
    NoNonce,
    /// Signed too long ago.
    Expired {
        /// Its age.
        age_ms: u64,
        /// The largest age allowed.
        age_ms_max: u64,
    },
    /// Signed later than now.
    FromTheFuture {
        /// How much later.
        ahead_ms: u64,
        /// The most allowed.
        ahead_ms_max: u64,
    },
    /// This very command was seen before, or it is older than the commands that are remembered.
    Replayed(&'static str),
    /// The KeyLocator leads to no trusted certificate.
    UnknownSigner(String),
    /// A certificate on the way to the trust anchor has expired.
    CertificateExpired(String),
    /// A certificate on the way to the trust anchor is not valid yet.
    CertificateNotYetValid(String),
    /// The signer is genuine, but may not do this.
    NotAllowed(String),
    /// Too many commands wait for certificates.
    TooManyPending,
    /// A certificate on the way to the trust anchor was revoked.
    CertificateRevoked {
        /// Its name.
        certificate: String,
        /// When, in milliseconds since 1970.
        time_ms: u64,
        /// Why.
        reason: Reason,
    },
}

impl Denial {
    /// Names of the kinds, by [`Denial::index`].
    pub const NAMES: [&'static str; 13] = [
        "not-signed",
        "bad-signature",
        "no-timestamp",
        "no-nonce",
        "expired",
        "from-the-future",
        "replayed",
        "unknown-signer",
        "certificate-expired",
        "certificate-not-yet-valid",
        "not-allowed",
        "too-many-pending",
        "certificate-revoked",
    ];

    /// Number of the kind.
    pub const fn index(&self) -> usize {
        match self {
            Denial::NotSigned => 0,
            Denial::BadSignature(_) => 1,
            Denial::NoTimestamp => 2,
            Denial::NoNonce => 3,
            Denial::Expired { .. } => 4,
            Denial::FromTheFuture { .. } => 5,
            Denial::Replayed(_) => 6,
            Denial::UnknownSigner(_) => 7,
            Denial::CertificateExpired(_) => 8,
            Denial::CertificateNotYetValid(_) => 9,
            Denial::NotAllowed(_) => 10,
            Denial::TooManyPending => 11,
            Denial::CertificateRevoked { .. } => 12,
        }
    }

    /// [`Denial::NotAllowed`] for this reason.
    pub fn not_allowed(why: impl Into<String>) -> Self {
        Denial::NotAllowed(why.into())
    }

    /// [`Denial::UnknownSigner`] with this name, shortened.
    pub fn unknown_signer(name: Name<'_>) -> Self {
        Denial::UnknownSigner(quoted(name))
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Denial::NotSigned => f.write_str("not signed"),
            Denial::BadSignature(why) => write!(f, "bad signature: {why}"),
            Denial::NoTimestamp => f.write_str("the signature has no time"),
            Denial::NoNonce => f.write_str("the signature has no nonce"),
            Denial::Expired { age_ms, age_ms_max } => {
                write!(f, "expired: signed {age_ms} ms ago, {age_ms_max} ms are allowed")
            }
            Denial::FromTheFuture { ahead_ms, ahead_ms_max } => {
                write!(f, "from the future: signed {ahead_ms} ms ahead of this clock, {ahead_ms_max} ms are allowed")
            }
            Denial::Replayed(why) => write!(f, "replayed: {why}"),
            Denial::UnknownSigner(name) => write!(f, "unknown signer {name}"),
            Denial::CertificateExpired(name) => write!(f, "the certificate {name} has expired"),
            Denial::CertificateNotYetValid(name) => write!(f, "the certificate {name} is not yet valid"),
            Denial::NotAllowed(why) => write!(f, "not allowed: {why}"),
            Denial::TooManyPending => f.write_str("too many commands wait for certificates"),
            Denial::CertificateRevoked { certificate, time_ms, reason } => {
                write!(f, "the certificate {certificate} was revoked on {} ({reason})", iso_time(*time_ms))
            }
        }
    }
}
