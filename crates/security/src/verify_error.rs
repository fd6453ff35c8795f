use crate::KeyAlgorithm;

/// Why a signature was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The key cannot make signatures of the packet's type.
    #[error("signature type {signature_type} cannot come from a key of {algorithm}")]
    WrongSignatureType {
        /// SignatureType of the packet.
        signature_type: u64,
        /// The key's algorithm.
        algorithm: KeyAlgorithm,
    },
    /// The signature has another type than the function checks.
    #[error("signature type {0} is not the expected one")]
    OtherSignatureType(u64),
    /// The signature is empty, or longer than those of any supported key.
    #[error("no supported key makes a signature of {0} bytes")]
    BadSignatureLength(usize),
    /// The signature does not match the bytes and the key.
    #[error("the signature does not match")]
    Mismatch,
}
