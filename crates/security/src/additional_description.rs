//! What an issuer says about the owner of a certificate (NDN Certificate Format version 2, AdditionalDescription in
//! SignatureInfo): texts by key, such as `email` or `affiliation`. Each key occurs once, and keys are sorted.

use namewire_packet::tlv::{self, Reader, TlvError};
use std::collections::BTreeMap;

const ADDITIONAL_DESCRIPTION: u32 = 258;
const ENTRY: u32 = 512;
const KEY: u32 = 513;
const VALUE: u32 = 514;

/// Why bytes are not an AdditionalDescription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdditionalDescriptionError {
    /// The TLV structure is broken.
    #[error("{0}")]
    Tlv(#[from] TlvError),
    /// An entry without exactly one key followed by one value, both UTF-8; or an unknown element that must be known.
    #[error("the additional description has an entry that is not one key and one value in UTF-8")]
    BadEntry,
}

/// Texts by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdditionalDescription(pub BTreeMap<String, String>);

impl AdditionalDescription {
    /// Reads the first AdditionalDescription in the TLV-VALUE of a SignatureInfo; it is empty if there is none.
    ///
    /// # Errors
    /// If the structure is broken, or an entry is not one key and one value.
    pub fn in_signature_info(value: &[u8]) -> Result<Self, AdditionalDescriptionError> {
        let mut reader = Reader::new(value);
        while let Some(element) = reader.next_element()? {
            if element.type_number == ADDITIONAL_DESCRIPTION {
                return Self::parse_value(element.value);
            }
        }
        Ok(Self::default())
    }

    fn parse_value(value: &[u8]) -> Result<Self, AdditionalDescriptionError> {
        let mut description = Self::default();
        let mut reader = Reader::new(value);
        while let Some(entry) = reader.next_element()? {
            if entry.type_number == ENTRY {
                let mut inner = Reader::new(entry.value);
                let (key, text) = (text_of(&mut inner, KEY)?, text_of(&mut inner, VALUE)?);
                if !inner.remaining().is_empty() {
                    return Err(AdditionalDescriptionError::BadEntry);
                }
                description.0.insert(key, text);
            } else if entry.type_number <= 31 || entry.type_number % 2 == 1 {
                return Err(AdditionalDescriptionError::BadEntry); // of a critical type (packet-format §1.3)
            }
        }
        Ok(description)
    }

    /// The whole element; nothing if there is no text.
    pub fn to_tlv(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.0.is_empty() {
            return out;
        }
        tlv::write_nested(&mut out, ADDITIONAL_DESCRIPTION, |out| {
            for (key, text) in &self.0 {
                tlv::write_nested(out, ENTRY, |out| {
                    tlv::write_tlv(out, KEY, key.as_bytes());
                    tlv::write_tlv(out, VALUE, text.as_bytes());
                });
            }
        });
        out
    }
}

fn text_of(reader: &mut Reader<'_>, type_number: u32) -> Result<String, AdditionalDescriptionError> {
    let element = reader.next_element()?.filter(|element| element.type_number == type_number);
    let value = element.ok_or(AdditionalDescriptionError::BadEntry)?.value;
    str::from_utf8(value).map(str::to_owned).map_err(|_| AdditionalDescriptionError::BadEntry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(texts: &[(&str, &str)]) -> AdditionalDescription {
        AdditionalDescription(texts.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect())
    }

    #[test]
    fn a_description_is_read_back_among_other_elements() {
        let written = description(&[("email", "a@example.net"), ("affiliation", "UCLA")]);
        let mut info = vec![0x1B, 1, 3];
        info.extend(written.to_tlv());
        assert_eq!(AdditionalDescription::in_signature_info(&info), Ok(written));
        assert_eq!(AdditionalDescription::in_signature_info(&info[..3]), Ok(AdditionalDescription::default()));
        assert!(description(&[]).to_tlv().is_empty());
    }

    #[test]
    fn an_entry_is_one_key_and_one_value() {
        let with = |fill: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            tlv::write_nested(&mut out, ADDITIONAL_DESCRIPTION, |out| fill(out));
            AdditionalDescription::in_signature_info(&out)
        };
        let entry = |parts: &[(u32, &[u8])]| {
            with(&|out| {
                tlv::write_nested(out, ENTRY, |out| {
                    parts.iter().for_each(|(kind, text)| tlv::write_tlv(out, *kind, text))
                });
            })
        };
        assert_eq!(entry(&[(KEY, b"a"), (VALUE, b"b")]), Ok(description(&[("a", "b")])));
        let parts: [&[(u32, &[u8])]; 4] = [
            &[(KEY, b"a")],
            &[(VALUE, b"b"), (KEY, b"a")],
            &[(KEY, b"a"), (VALUE, b"b"), (VALUE, b"c")],
            &[(KEY, b"a"), (VALUE, &[0xFF])],
        ];
        for parts in parts {
            assert_eq!(entry(parts), Err(AdditionalDescriptionError::BadEntry), "{parts:?}");
        }
        assert_eq!(with(&|out| tlv::write_tlv(out, 515, b"")), Err(AdditionalDescriptionError::BadEntry));
        assert_eq!(with(&|out| tlv::write_tlv(out, 516, b"")), Ok(description(&[])));
    }
}
