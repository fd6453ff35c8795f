//! Names as people write them: `ndn:/A/%00/seg=3` (packet-format §3.3).
//!
//! The rules are those of ndn-cxx, with one exception: a malformed percent escape is an error; ndn-cxx
//! takes it literally.

use crate::{
    name::{Component, Name, NameBuf},
    tlv::types,
};
use std::{fmt, str::FromStr};

/// Longest URI accepted, in bytes: a name of [`crate::MAX_PACKET_BYTES`] with
/// every byte escaped.
pub const MAX_URI_BYTES: usize = 3 * crate::MAX_PACKET_BYTES;

/// Why some text is not a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    /// The text is longer than [`MAX_URI_BYTES`].
    #[error("the name is longer than {MAX_URI_BYTES} bytes")]
    TooLong,
    /// Two slashes without a component between them.
    #[error("an empty component is written \"...\", not \"//\"")]
    EmptyComponent,
    /// `.` and `..`, which have no meaning in NDN.
    #[error("\".\" and \"..\" are not components (n periods are written as n+3)")]
    DotComponent,
    /// A `%` that is not followed by two hexadecimal digits.
    #[error("component {0:?} has a malformed percent escape")]
    BadEscape(String),
    /// The part before `=` is not a component type.
    #[error("component {0:?} has an unknown type (write a literal \"=\" as %3D)")]
    BadType(String),
    /// The part after `=` is not a number or digest as its type needs.
    #[error("component {0:?} has a value that its type does not allow")]
    BadValue(String),
}

/// Types that have a word in the alternate URI form and a number as value.
const NUMBER_TYPES: [(&str, u32); 5] = [
    ("seg", types::SEGMENT_COMPONENT),
    ("off", types::BYTE_OFFSET_COMPONENT),
    ("v", types::VERSION_COMPONENT),
    ("t", types::TIMESTAMP_COMPONENT),
    ("seq", types::SEQUENCE_NUM_COMPONENT),
];

/// Types with a digest as value.
const DIGEST_TYPES: [(&str, u32); 2] =
    [("sha256digest", types::IMPLICIT_SHA256_DIGEST), ("params-sha256", types::PARAMETERS_SHA256_DIGEST)];

impl FromStr for NameBuf {
    type Err = UriError;

    fn from_str(uri: &str) -> Result<Self, UriError> {
        if uri.len() > MAX_URI_BYTES {
            return Err(UriError::TooLong);
        }
        let mut path = uri.strip_prefix("ndn:").unwrap_or(uri);
        if let Some(after) = path.strip_prefix("//") {
            path = after.find('/').map_or("", |slash| &after[slash..]); // authority: ignored
        }
        let path = path.strip_prefix('/').unwrap_or(path);
        let path = path.strip_suffix('/').unwrap_or(path);
        let mut name = NameBuf::new();
        if !path.is_empty() {
            for part in path.split('/') {
                push_component(&mut name, part)?;
            }
        }
        Ok(name)
    }
}

fn push_component(name: &mut NameBuf, part: &str) -> Result<(), UriError> {
    let Some((label, text)) = part.split_once('=') else {
        return push_escaped(name, types::GENERIC_COMPONENT, part, part);
    };
    let bad_value = || UriError::BadValue(part.to_owned());
    if let Some(&(_, type_number)) = NUMBER_TYPES.iter().find(|(known, _)| *known == label) {
        let number = parse_decimal(text).ok_or_else(bad_value)?;
        name.push_typed_nni(type_number, number);
        return Ok(());
    }
    if let Some(&(_, type_number)) = DIGEST_TYPES.iter().find(|(known, _)| *known == label) {
        let value = parse_hex_digest(text).ok_or_else(bad_value)?;
        name.push(Component { type_number, value: &value });
        return Ok(());
    }
    let type_number = parse_decimal(label)
        .and_then(|n| u32::try_from(n).ok())
        .filter(|n| (1..=0xFFFF).contains(n))
        .ok_or_else(|| UriError::BadType(part.to_owned()))?;
    push_escaped(name, type_number, text, part)
}

/// Decimal without leading zeros.
fn parse_decimal(text: &str) -> Option<u64> {
    let canonical = text == "0" || (!text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit()));
    canonical.then(|| text.parse().ok()).flatten()
}

fn parse_hex_digest(text: &str) -> Option<[u8; 32]> {
    let bytes = text.as_bytes();
    if bytes.len() != 64 {
        return None;
    }
    let mut digest = [0; 32];
    for (byte, pair) in digest.iter_mut().zip(bytes.chunks_exact(2)) {
        *byte = hex_pair(pair[0], pair[1])?;
    }
    Some(digest)
}

fn hex_pair(high: u8, low: u8) -> Option<u8> {
    let digit = |c: u8| char::from(c).to_digit(16).map(|d| d as u8);
    Some(digit(high)? << 4 | digit(low)?)
}

fn push_escaped(name: &mut NameBuf, type_number: u32, text: &str, part: &str) -> Result<(), UriError> {
    let value = unescape(text).ok_or_else(|| UriError::BadEscape(part.to_owned()))?;
    let only_periods = !text.contains('%') && value.iter().all(|&b| b == b'.');
    let value = match (only_periods, value.len()) {
        (true, 0) if text.len() == part.len() => return Err(UriError::EmptyComponent),
        (true, 0..=2) => return Err(UriError::DotComponent),
        (true, length) => &value[..length - 3],
        (false, _) => &value[..],
    };
    let is_digest = DIGEST_TYPES.iter().any(|(_, t)| *t == type_number);
    if is_digest && value.len() != 32 {
        return Err(UriError::BadValue(part.to_owned()));
    }
    name.push(Component { type_number, value });
    Ok(())
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut value = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        value.push(if byte == b'%' { hex_pair(bytes.next()?, bytes.next()?)? } else { byte });
    }
    Some(value)
}

impl fmt::Display for NameBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_name().fmt(f)
    }
}

/// As its URI.
#[cfg(feature = "serde")]
impl serde::Serialize for NameBuf {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Name<'_> {
    /// The alternate URI form, without the scheme: `/A/seg=3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("/");
        }
        self.components().try_for_each(|component| write!(f, "/{component}"))
    }
}

impl Name<'_> {
    /// The canonical URI form: every component with its type number, `/8=A/50=%03`.
    pub fn canonical_uri(&self) -> String {
        if self.is_empty() {
            return "/".to_owned();
        }
        self.components().map(|c| format!("/{}={}", c.type_number, Escaped(c.value))).collect()
    }
}

impl fmt::Display for Component<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((label, _)) = NUMBER_TYPES.iter().find(|(_, t)| *t == self.type_number)
            && let Some(number) = self.as_nni()
        {
            return write!(f, "{label}={number}");
        }
        if let Some((label, _)) = DIGEST_TYPES.iter().find(|(_, t)| *t == self.type_number) {
            write!(f, "{label}=")?;
            return self.value.iter().try_for_each(|byte| write!(f, "{byte:02x}"));
        }
        if self.type_number != types::GENERIC_COMPONENT {
            write!(f, "{}=", self.type_number)?;
        }
        Escaped(self.value).fmt(f)
    }
}

/// A component value with every byte escaped that is not unreserved in a URI.
struct Escaped<'a>(&'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.iter().all(|&byte| byte == b'.') {
            f.write_str("...")?; // n periods are written as n+3
        }
        self.0.iter().try_for_each(|&byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                fmt::Write::write_char(f, char::from(byte))
            }
            _ => write!(f, "%{byte:02X}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn refuses_what_ndn_cxx_refuses() {
        for uri in [
            "/A//B",
            "/A/../B",
            "/A/./B",
            "/sha256digest=abcd",
            "/a=b",
            "/0=x",
            "/65536=x",
            "/v=007",
            "/08=x",
            "/%zz",
            "/=",
            "/8=",
            "/8=.",
            "/1=abc",
            "/%",
            "/%1",
        ] {
            assert!(uri.parse::<NameBuf>().is_err(), "{uri}");
        }
    }

    #[test]
    fn number_that_is_not_shortest_keeps_its_bytes_in_the_canonical_form_only() {
        let mut name = NameBuf::new();
        name.push(Component { type_number: types::SEGMENT_COMPONENT, value: &[0, 1] });
        assert_eq!(name.to_string(), "/seg=1");
        assert_eq!(name.as_name().canonical_uri(), "/50=%00%01");
    }

    proptest! {
        #[test]
        fn every_name_survives_its_uri(parts in proptest::collection::vec((1u32..=0xFFFF, proptest::collection::vec(any::<u8>(), 0..20)), 0..8)) {
            let mut name = NameBuf::new();
            for (type_number, value) in &parts {
                let value = if *type_number <= 2 { vec![7; 32] } else { value.clone() };
                name.push(Component { type_number: *type_number, value: &value });
            }
            prop_assert_eq!(name.as_name().canonical_uri().parse::<NameBuf>().unwrap(), name.clone());
            let numbers_are_shortest = name.as_name().components().all(|c| {
                !NUMBER_TYPES.iter().any(|(_, t)| *t == c.type_number)
                    || c.as_nni().is_none_or(|n| c.value.len() == crate::tlv::nni_size(n))
            });
            if numbers_are_shortest {
                prop_assert_eq!(name.to_string().parse::<NameBuf>().unwrap(), name);
            }
        }

        #[test]
        fn any_text_is_read_without_panic(text in ".{0,60}") {
            let _ = text.parse::<NameBuf>();
        }
    }
}
