//! Why a signature was not accepted.

use crate::KeyAlgorithm;

/// Why a signature was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The packet names a signature type that this key cannot have made.
    #[error("signature type {signature_type} cannot come from a key of {algorithm}")]
    WrongSignatureType {
        /// SignatureType of the packet.
        signature_type: u64,
        /// What the key is for.
        algorithm: KeyAlgorithm,
    },
    /// The signature type is not the one that this function checks.
    #[error("signature type {0} is not what was to be checked")]
    OtherSignatureType(u64),
    /// The signature is empty or longer than any key's.
    #[error("a signature of {0} octets is of no known key")]
    BadSignatureLength(usize),
    /// The signature does not belong to these octets and this key.
    #[error("the signature does not match")]
    Mismatch,
}
