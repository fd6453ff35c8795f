//! Who signed this, and signing: NDN signatures, certificates and key chains. No socket, no clock: packets,
//! keys and the time are handed in; only the key chain touches files.
//!
//! Source: packet-format §4.2, §5.1 and §5.2 (signatures and certificates v2), drop-in §3 (where keys are kept).
//!
//! The mathematics is `ring`'s. Looked for: RSA PKCS#1 v1.5, ECDSA P-256, Ed25519 and HMAC from one place; a build
//! with nothing but a C compiler, also for small routers' processors; speed (a P-256 signature is checked with the
//! assembly of BoringSSL). RustCrypto's `rsa` has an open timing advisory (RUSTSEC-2023-0071) and its P-256 is three
//! times slower; aws-lc-rs would also do, but compiles for minutes where ring takes seconds. The price: ring makes no
//! new RSA keys, it only signs and verifies with those that exist. ASN.1 is read by RustCrypto's `der`.

pub mod certificate;
mod hmac_key;
#[cfg(feature = "key-chain")]
pub mod key_chain;
mod p256_parameters;
mod private_key;
mod public_key;
#[cfg(feature = "safe-bag")]
mod safe_bag;
mod signer;
mod validity_period;
mod verify_error;

pub use certificate::{Certificate, CertificateError};
pub use hmac_key::{HMAC_KEY_BYTES_MAX, HmacKey};
pub use private_key::{PRIVATE_KEY_BYTES_MAX, PrivateKey, PrivateKeyError, SignError};
pub use public_key::{KeyAlgorithm, PublicKey, PublicKeyError, SPKI_BYTES_MAX, verify_digest_sha256};
#[cfg(feature = "safe-bag")]
pub use safe_bag::{ROUNDS_MAX, SAFE_BAG_BYTES_MAX, SafeBag, SafeBagError};
pub use signer::{IssueError, Signer, issue_certificate};
pub use validity_period::{ValidityPeriod, ValidityPeriodError};
pub use verify_error::VerifyError;
