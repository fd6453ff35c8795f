//! SHA-256, the only digest of the packet format.

use sha2::{Digest, Sha256};

/// SHA-256 over the concatenation of `parts`. Cost: one pass, with the processor's SHA
/// extensions where it has them.
pub fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}
