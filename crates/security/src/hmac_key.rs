//! A secret shared by signer and verifier: HMAC with SHA-256 (packet-format §5.1, signature type 4).

use crate::VerifyError;
use namewire_packet::signature::signature_type;
use ring::hmac;
use std::fmt;
use zeroize::Zeroizing;

/// Longest secret, in bytes; HMAC hashes secrets longer than 64 bytes down to 32 anyway.
pub const HMAC_KEY_BYTES_MAX: usize = 1024;

/// A shared secret. Its memory is wiped when it is dropped, and its debug output hides it.
///
/// N.B. `ring` prepares a key for two hashes and does not wipe that, so it is prepared anew for each signature.
#[derive(Clone)]
pub struct HmacKey(Zeroizing<Box<[u8]>>);

impl fmt::Debug for HmacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HmacKey")
    }
}

impl HmacKey {
    /// Takes a secret of 1 to [`HMAC_KEY_BYTES_MAX`] bytes; `None` for other lengths.
    pub fn new(secret: &[u8]) -> Option<Self> {
        (1..=HMAC_KEY_BYTES_MAX).contains(&secret.len()).then(|| HmacKey(Zeroizing::new(secret.into())))
    }

    fn prepared(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.0)
    }

    /// The signature of the concatenated pieces of `signed`.
    pub fn sign(&self, signed: &[&[u8]]) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.prepared());
        signed.iter().for_each(|piece| context.update(piece));
        let mut out = [0; 32];
        out.copy_from_slice(context.sign().as_ref());
        out
    }

    /// Checks a signature over the concatenated pieces of `signed`, in constant time. Cost: one hash, and a copy of the
    /// bytes.
    ///
    /// # Errors
    /// [`VerifyError::OtherSignatureType`] if `signed_type` is not HMAC with SHA-256; [`VerifyError::Mismatch`] if the
    /// signature is wrong.
    pub fn verify(&self, signed_type: u64, signed: &[&[u8]], signature: &[u8]) -> Result<(), VerifyError> {
        if signed_type != signature_type::HMAC_SHA256 {
            return Err(VerifyError::OtherSignatureType(signed_type));
        }
        // ring compares in constant time only signatures that it computes itself, over one piece of bytes.
        hmac::verify(&self.prepared(), &signed.concat(), signature).map_err(|_| VerifyError::Mismatch)
    }
}
