//! Codes: made, and compared in constant time.
//!
//! A code has 12 characters, of 32 that people do not confuse: 60 bits. So nobody guesses one, however many requests
//! are begun for a name. People see it in groups of four, and may type it as they like.

use subtle::ConstantTimeEq;

const ALPHABET: &[u8; 32] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZ";
const CHARACTERS: usize = 12;
const GROUP: usize = 4;
/// Why a secret could not be made.
pub(super) const NO_RANDOMNESS: &str = "the authority has no random numbers";

/// A code, as it is kept: in capital letters, without dashes.
///
/// # Errors
/// [`NO_RANDOMNESS`].
pub(super) fn random_code() -> Result<String, String> {
    let mut random = [0; CHARACTERS];
    getrandom::fill(&mut random).map_err(|_| NO_RANDOMNESS)?;
    Ok(random.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect())
}

/// A code as people read it: in groups.
pub(super) fn readable(code: &str) -> String {
    let groups: Vec<&str> = code.as_bytes().chunks(GROUP).filter_map(|part| std::str::from_utf8(part).ok()).collect();
    groups.join("-")
}

/// What somebody typed, as codes are kept.
pub(super) fn typed(code: &str) -> String {
    code.chars().filter(|c| !matches!(c, '-' | ' ')).map(|c| c.to_ascii_uppercase()).collect()
}

/// True if two secrets are equal; takes the same time wherever they differ.
pub(super) fn same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_may_be_typed_in_any_way() {
        let code = random_code().unwrap();
        let shown = readable(&code);
        assert_eq!((code.len(), shown.len()), (12, 14));
        for answer in [&shown, &code, &shown.to_lowercase(), &shown.replace('-', " ")] {
            assert!(same(&typed(answer), &code), "{answer}");
        }
        assert!(!same(&typed(&shown[1..]), &code) && random_code().unwrap() != code);
    }
}
