//! Certificates that expire soon, and new ones for the same keys.
//!
//! Question: which certificate needs attention, and who can replace it?
//!
//! A certificate is *due* in the last third of its validity, but at most [`DUE_MS_MAX`] before its end. Its renewal
//! needs the private key of the issuer. If that key is in this key chain, [`KeyChain::renew`] issues a new certificate;
//! a self-signed certificate needs its own key only. If not, the issuer must issue one, and
//! [`KeyChain::import_certificate`] takes it. The certified key stays the same. So a [`KeyChain::lasting_signer`] needs
//! no change: its KeyLocator names the key.
//!
//! [`KeyChain::renew`] refuses a certificate that its issuer did not sign. A key chain imports certificates unchecked,
//! so a renewal would turn a forged certificate into a genuine one.

use super::{CLOCK_SLACK_MS, Entry, KeyChain, KeyChainError, KeyFileError};
use crate::{
    Certificate, IssueError, Signer, ValidityPeriod,
    certificate::{is_certificate_name, key_name_in},
    issue_certificate,
};
use namewire_packet::{KeyLocator, Name, NameBuf};

/// A certificate is due at most this long before its end: 30 days.
pub const DUE_MS_MAX: u64 = 30 * 24 * 3600 * 1000;

/// Expired certificates of a key that a renewal leaves in the key chain.
pub const EXPIRED_KEPT: usize = 12;

/// How long a certificate still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// It becomes due at this time, in milliseconds since 1970.
    DueAt(u64),
    /// It is due, and still holds for this many milliseconds.
    Due(u64),
    /// It has expired.
    Expired,
}

impl Expiry {
    /// Of a certificate with this validity, at `now_ms` (milliseconds since 1970).
    pub const fn of(validity: ValidityPeriod, now_ms: u64) -> Self {
        let ValidityPeriod { not_before_ms, not_after_ms } = validity;
        if now_ms > not_after_ms {
            return Expiry::Expired;
        }
        let third_ms = not_after_ms.saturating_sub(not_before_ms) / 3;
        let due_ms = not_after_ms - if third_ms < DUE_MS_MAX { third_ms } else { DUE_MS_MAX };
        if now_ms < due_ms { Expiry::DueAt(due_ms) } else { Expiry::Due(not_after_ms - now_ms) }
    }
}

/// Who can renew a certificate.
struct Issuer {
    signer: Signer,
    /// The last moment of the issuer's own certificate, if the KeyLocator names one.
    not_after_ms: Option<u64>,
}

impl KeyChain {
    /// A signer for an identity, a key or a certificate whose KeyLocator names the key. It stays right when the
    /// certificate is renewed: validators fetch the newest certificate of the key.
    ///
    /// # Errors
    /// Those of [`KeyChain::private_key_of`].
    pub fn lasting_signer(&self, name: Name<'_>) -> Result<Signer, KeyChainError> {
        let key_name = self.key_of(name)?.name;
        Ok(Signer::private_key(self.private_key_of(name)?, key_name))
    }

    /// The certificate that an identity or a key signs with, or the one named.
    ///
    /// # Errors
    /// Those of [`KeyChain::certificate_of`]; [`KeyChainError::NoCertificate`] if the key has none;
    /// [`KeyChainError::Issue`] if the certificate in the PIB is malformed.
    pub fn parsed_certificate_of(&self, name: Name<'_>) -> Result<Certificate, KeyChainError> {
        let entry = self.certificate_of(name)?.ok_or_else(|| KeyChainError::NoCertificate(name.to_buf()))?;
        Ok(Certificate::parse(&entry.bytes).map_err(IssueError::from)?)
    }

    /// Replaces the certificate of `name` by a new one of the same key and issuer, valid from now on for `period_ms`,
    /// or as long as the present one if that is `None`; never longer than the issuer's. The new one becomes the default
    /// of its key. See [`KeyChain::adopt_certificate`] for expired ones.
    ///
    /// # Errors [`KeyChainError::IssuerElsewhere`] if the issuer's private key is not in this key chain;
    /// [`KeyChainError::Forged`] if the present certificate has another signature than the issuer's;
    /// [`KeyChainError::IssuerEndsFirst`] if the issuer's certificate holds no longer than the present one; those of
    /// [`KeyChain::parsed_certificate_of`]; otherwise if it cannot be signed, or if the PIB cannot be written.
    pub fn renew(&self, name: Name<'_>, period_ms: Option<u64>, now_ms: u64) -> Result<Certificate, KeyChainError> {
        let present = self.parsed_certificate_of(name)?;
        let issuer = self.issuer_of(&present)?;
        let ValidityPeriod { not_before_ms, not_after_ms } = present.validity();
        if issuer.not_after_ms.is_some_and(|end_ms| end_ms <= not_after_ms.max(now_ms)) {
            return Err(KeyChainError::IssuerEndsFirst(present.name().to_buf()));
        }
        let period_ms = period_ms.unwrap_or(not_after_ms.saturating_sub(not_before_ms));
        let validity = ValidityPeriod {
            not_before_ms: now_ms.saturating_sub(CLOCK_SLACK_MS),
            not_after_ms: now_ms.saturating_add(period_ms).min(issuer.not_after_ms.unwrap_or(u64::MAX)),
        };
        let (key_name, issuer_id) = (present.key_name(), present.issuer_id());
        let renewed = issue_certificate(&issuer.signer, key_name, present.spki(), issuer_id, now_ms, validity)?;
        self.adopt_certificate(&renewed, now_ms)?;
        Ok(renewed)
    }

    /// Adds a certificate of a key of this key chain, and makes it the default of its key. Of the expired certificates
    /// of the key, the [`EXPIRED_KEPT`] that ended last stay, for those who judge old Data. The signature of the new
    /// one is not checked.
    ///
    /// # Errors
    /// Those of [`KeyChain::import_certificate`].
    pub fn adopt_certificate(&self, renewed: &Certificate, now_ms: u64) -> Result<(), KeyChainError> {
        self.import_certificate(renewed)?;
        self.pib().set_default_certificate(renewed.name())?;
        let parsed = |other: Entry| Some((Certificate::parse(&other.bytes).ok()?.validity().not_after_ms, other.name));
        let others = self.pib().certificates(renewed.key_name())?.into_iter().filter_map(parsed);
        let mut expired: Vec<(u64, NameBuf)> = others.filter(|(end_ms, _)| now_ms > *end_ms).collect();
        expired.sort_unstable_by(|one, other| other.cmp(one));
        for (_, name) in expired.iter().skip(EXPIRED_KEPT).filter(|(_, name)| name.as_name() != renewed.name()) {
            self.pib().remove_certificate(name.as_name())?;
        }
        Ok(())
    }

    /// The issuer of `certificate`, if its key is here; the signer's KeyLocator is of the form in `certificate`.
    fn issuer_of(&self, certificate: &Certificate) -> Result<Issuer, KeyChainError> {
        let elsewhere = || KeyChainError::IssuerElsewhere(certificate.name().to_buf());
        let Some(KeyLocator::Name(locator)) = certificate.key_locator() else { return Err(elsewhere()) };
        let key_name = key_name_in(locator).ok_or_else(elsewhere)?;
        let key = self.private_key_of(key_name).map_err(|error| match error {
            KeyChainError::NotFound(_) | KeyChainError::KeyFile(KeyFileError::Missing(_)) => elsewhere(),
            other => other,
        })?;
        certificate.verify(key.public_key()).map_err(|_| KeyChainError::Forged(certificate.name().to_buf()))?;
        if certificate.names_itself_as_issuer() || !is_certificate_name(locator) {
            return Ok(Issuer { signer: self.lasting_signer(key_name)?, not_after_ms: None });
        }
        let own = self.parsed_certificate_of(key_name)?;
        Ok(Issuer { signer: self.signer(key_name)?, not_after_ms: Some(own.validity().not_after_ms) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: u64 = 24 * 3600 * 1000;

    #[test]
    fn a_certificate_is_due_in_its_last_third_and_at_most_thirty_days_before_its_end() {
        let of = |days: u64, at_day: u64| {
            Expiry::of(ValidityPeriod { not_before_ms: 0, not_after_ms: days * DAY_MS }, at_day * DAY_MS)
        };
        assert_eq!(of(365, 0), Expiry::DueAt(335 * DAY_MS));
        assert_eq!(of(365, 335), Expiry::Due(30 * DAY_MS));
        assert_eq!(of(9, 5), Expiry::DueAt(6 * DAY_MS));
        assert_eq!(of(9, 6), Expiry::Due(3 * DAY_MS));
        assert_eq!(of(9, 9), Expiry::Due(0), "its last moment");
        assert_eq!(of(9, 10), Expiry::Expired);
    }

    #[test]
    fn a_period_that_ends_before_it_begins_has_expired_or_ends_now() {
        let period = ValidityPeriod { not_before_ms: 10, not_after_ms: 5 };
        assert_eq!([Expiry::of(period, 5), Expiry::of(period, 6)], [Expiry::Due(0), Expiry::Expired]);
    }
}
