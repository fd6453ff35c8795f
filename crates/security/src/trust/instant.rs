//! The instant for which a chain of certificates is judged: now, and for old Data the time of its signature.
//!
//! | the packet's rule | a certificate of the chain counts if it is valid |
//! | --- | --- |
//! | usual | now |
//! | `at-signing-time` | now, or at the SignatureTime of the packet |
//!
//! The SignatureTime of the packet is that of the whole chain; the certificates' own SignatureTimes do not count. It is
//! without effect if it is more than [`CLOCK_SLACK_MS`] in the future: then the usual rule applies.
//!
//! The signer chooses SignatureTime. Whoever gets hold of a key after its certificate has expired can sign today with a
//! time of last year, and a rule with `at-signing-time` accepts it, unless the key was revoked as compromised
//! ([`super::revocation`]). Therefore rules must ask for it.

use super::denial::Denial;
use crate::Certificate;
use crate::quoted_name::quoted;

/// How far a SignatureTime may be ahead of this clock.
pub const CLOCK_SLACK_MS: u64 = 120_000;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instant {
    /// Milliseconds since 1970.
    pub(crate) now_ms: u64,
    /// When the packet was signed, if its rule asks and the packet has a usable time.
    pub(crate) signed_ms: Option<u64>,
}

impl Instant {
    pub(crate) const fn now(now_ms: u64) -> Self {
        Instant { now_ms, signed_ms: None }
    }

    /// The instant of a packet with this SignatureTime.
    pub(crate) fn signed_at(self, time_ms: Option<u64>) -> Self {
        let usable = time_ms.filter(|&time_ms| time_ms <= self.now_ms.saturating_add(CLOCK_SLACK_MS));
        Instant { signed_ms: usable.map(|time_ms| time_ms.min(self.now_ms)), ..self }
    }

    /// Refuses a certificate that is valid neither now nor at the time of the signature.
    pub(crate) fn check_validity(self, certificate: &Certificate) -> Result<(), Denial> {
        match check_validity(certificate, self.now_ms) {
            Err(_) if self.signed_ms.is_some_and(|signed_ms| certificate.is_valid_at(signed_ms)) => Ok(()),
            verdict => verdict,
        }
    }
}

/// Refuses a certificate that may not be used now.
///
/// # Errors
/// If it has expired, or is not valid yet.
pub fn check_validity(certificate: &Certificate, now_unix_ms: u64) -> Result<(), Denial> {
    let period = certificate.validity();
    if now_unix_ms > period.not_after_ms {
        Err(Denial::CertificateExpired(quoted(certificate.name())))
    } else if now_unix_ms < period.not_before_ms {
        Err(Denial::CertificateNotYetValid(quoted(certificate.name())))
    } else {
        Ok(())
    }
}
