//! Revocation of certificates by keys of this key chain.

use super::{KeyChain, KeyChainError, KeyFileError};
use crate::{
    Certificate,
    certificate::key_name_in,
    trust::{
        RevocationRecord,
        revocation::{Reason, RevokeError},
    },
};
use namewire_packet::KeyLocator;

impl KeyChain {
    /// Makes a record that revokes `certificate` as of now: signed by its issuer's key if that is here, or else by its
    /// own.
    ///
    /// # Errors
    /// [`KeyChainError::Revoke`] with [`RevokeError::NotEntitled`] if neither private key is here; otherwise if it
    /// cannot be read or used.
    pub fn revoke(
        &self,
        certificate: &Certificate,
        reason: Reason,
        now_ms: u64,
    ) -> Result<RevocationRecord, KeyChainError> {
        let issuer = match certificate.key_locator() {
            Some(KeyLocator::Name(locator)) => key_name_in(locator),
            _ => None,
        };
        for key_name in issuer.into_iter().chain([certificate.key_name()]) {
            let key = match self.private_key_of(key_name) {
                Ok(key) => key,
                Err(KeyChainError::NotFound(_) | KeyChainError::KeyFile(KeyFileError::Missing(_))) => continue,
                Err(error) => return Err(error),
            };
            // Another key of the same name would make a record that does not count.
            let is_issuer = Some(key_name) == issuer && certificate.verify(key.public_key()).is_ok();
            if is_issuer || key.public_key().spki() == certificate.spki() {
                let signer = self.lasting_signer(key_name)?;
                return Ok(RevocationRecord::make(&signer, certificate, reason, now_ms)?);
            }
        }
        Err(RevokeError::NotEntitled.into())
    }
}
