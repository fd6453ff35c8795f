//! Base64 in lines of 64 characters: the form of private keys, certificates and safe bags in files, as ndn-cxx's tools
//! write and read it. Memory that held a text or its bytes is wiped, because they may be secret.

use base64::{DecodeError, Engine, prelude::BASE64_STANDARD};
use zeroize::Zeroizing;

const LINE_CHARACTERS: usize = 64;

/// The text of `bytes`; every line has an end.
pub fn encode(bytes: &[u8]) -> Zeroizing<String> {
    let encoded = Zeroizing::new(BASE64_STANDARD.encode(bytes));
    let mut text = Zeroizing::new(String::with_capacity(encoded.len() + encoded.len() / LINE_CHARACTERS + 1));
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE_CHARACTERS));
        text.push_str(line);
        text.push('\n');
        rest = after;
    }
    text
}

/// The bytes of a text; white space may be anywhere in it.
///
/// # Errors
/// If anything else is in the text, or if its padding is missing.
pub fn decode(text: &[u8]) -> Result<Zeroizing<Vec<u8>>, DecodeError> {
    let mut characters = Zeroizing::new(Vec::with_capacity(text.len()));
    characters.extend(text.iter().filter(|byte| !byte.is_ascii_whitespace()));
    BASE64_STANDARD.decode(&*characters).map(Zeroizing::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_64_characters_and_read_back() {
        for length in [0, 1, 47, 48, 49, 96, 1000] {
            let bytes: Vec<u8> = (0..length).map(|index| index as u8).collect();
            let text = encode(&bytes);
            assert_eq!(text.lines().count(), bytes.len().div_ceil(48));
            assert!(text.is_empty() || text.ends_with('\n'));
            assert!(text.lines().rev().skip(1).all(|line| line.len() == LINE_CHARACTERS));
            assert_eq!(*decode(text.as_bytes()).unwrap(), bytes);
        }
        assert_eq!(*decode(b" A\tA\r\n==").unwrap(), [0]);
        assert!(decode(b"AA").is_err() && decode(b"A*==").is_err());
    }
}
