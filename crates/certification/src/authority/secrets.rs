//! Codes: made, and compared in constant time.

use subtle::ConstantTimeEq;

const CODE_DIGITS: usize = 6;
/// Why a secret could not be made.
pub(super) const NO_RANDOMNESS: &str = "the authority has no random numbers";

/// True if two secrets are equal; takes the same time wherever they differ.
pub(super) fn same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

/// A code of six digits.
///
/// # Errors
/// [`NO_RANDOMNESS`].
pub(super) fn random_code() -> Result<String, String> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|_| NO_RANDOMNESS)?;
    let number = u64::from_le_bytes(random) % 10_u64.pow(CODE_DIGITS as u32);
    Ok(format!("{number:0CODE_DIGITS$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_six_digits() {
        let codes: Vec<String> = (0..100).map(|_| random_code().unwrap()).collect();
        assert!(codes.iter().all(|code| code.len() == 6 && code.bytes().all(|b| b.is_ascii_digit())));
        assert!(codes.iter().any(|code| *code != codes[0]));
    }
}
