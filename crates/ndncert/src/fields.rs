//! The fields of messages: their type numbers, and how they are read and written.
//!
//! A field of an unknown type is ignored if its type number is even and above 31, as everywhere in NDN; otherwise the
//! message is refused. A field that occurs twice where one is expected is refused, too.
//!
//! Limits: at most [`PARAMETERS_MAX`] parameters; a text is UTF-8.

use namewire_packet::{
    Name, NameBuf,
    tlv::{self, Reader, TlvError},
};

/// Most parameters in a message.
pub const PARAMETERS_MAX: usize = 32;

/// Type numbers (NDNCERT 0.3, TLV-TYPE assignments).
pub mod types {
    #![expect(missing_docs, reason = "the names are those of the specification")]
    pub const CA_PREFIX: u32 = 0x81;
    pub const CA_INFO: u32 = 0x83;
    pub const PARAMETER_KEY: u32 = 0x85;
    pub const PARAMETER_VALUE: u32 = 0x87;
    pub const CA_CERTIFICATE: u32 = 0x89;
    pub const MAX_VALIDITY_PERIOD: u32 = 0x8b;
    pub const PROBE_RESPONSE: u32 = 0x8d;
    pub const MAX_SUFFIX_LENGTH: u32 = 0x8f;
    pub const ECDH_PUB: u32 = 0x91;
    pub const CERT_REQUEST: u32 = 0x93;
    pub const SALT: u32 = 0x95;
    pub const REQUEST_ID: u32 = 0x97;
    pub const CHALLENGE: u32 = 0x99;
    pub const STATUS: u32 = 0x9b;
    pub const INITIALIZATION_VECTOR: u32 = 0x9d;
    pub const ENCRYPTED_PAYLOAD: u32 = 0x9f;
    pub const SELECTED_CHALLENGE: u32 = 0xa1;
    pub const CHALLENGE_STATUS: u32 = 0xa3;
    pub const REMAINING_TRIES: u32 = 0xa5;
    pub const REMAINING_TIME: u32 = 0xa7;
    pub const ISSUED_CERT_NAME: u32 = 0xa9;
    pub const ERROR_CODE: u32 = 0xab;
    pub const ERROR_INFO: u32 = 0xad;
    pub const AUTHENTICATION_TAG: u32 = 0xaf;
    pub const PROBE_REDIRECT: u32 = 0xb3;
}

/// Why a message cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// Not TLV.
    #[error("{0}")]
    Malformed(#[from] TlvError),
    /// A field is missing.
    #[error("the field {0} is missing")]
    Missing(u32),
    /// A field occurs more often than it may.
    #[error("the field {0} occurs too often")]
    Repeated(u32),
    /// An unknown field that must not be ignored.
    #[error("the field {0} is unknown")]
    Unknown(u32),
    /// A field has a value that it must not have.
    #[error("the field {0} has a wrong value")]
    BadValue(u32),
}

/// The fields of one message, in their order.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    value: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Checks that `value` is a list of fields, of which only those of `known` types are critical.
    ///
    /// # Errors
    /// If it is no list of elements, or has an unknown critical one.
    pub fn parse(value: &'a [u8], known: &[u32]) -> Result<Self, FieldError> {
        let mut reader = Reader::new(value);
        while let Some(element) = reader.next_element()? {
            let type_number = element.type_number;
            if !known.contains(&type_number) && (type_number <= 31 || type_number % 2 == 1) {
                return Err(FieldError::Unknown(type_number));
            }
        }
        Ok(Fields { value })
    }

    /// All values of this type, in their order.
    pub fn all(self, type_number: u32) -> impl Iterator<Item = &'a [u8]> {
        let mut reader = Reader::new(self.value);
        std::iter::from_fn(move || {
            loop {
                let element = reader.next_element().ok()??; // `parse` has read them all
                if element.type_number == type_number {
                    return Some(element.value);
                }
            }
        })
    }

    /// The value of a field that may be absent.
    ///
    /// # Errors
    /// [`FieldError::Repeated`].
    pub fn optional(self, type_number: u32) -> Result<Option<&'a [u8]>, FieldError> {
        let mut all = self.all(type_number);
        let first = all.next();
        if all.next().is_some() { Err(FieldError::Repeated(type_number)) } else { Ok(first) }
    }

    /// The value of a field.
    ///
    /// # Errors
    /// [`FieldError::Repeated`], [`FieldError::Missing`].
    pub fn required(self, type_number: u32) -> Result<&'a [u8], FieldError> {
        self.optional(type_number)?.ok_or(FieldError::Missing(type_number))
    }

    /// A text that may be absent.
    ///
    /// # Errors
    /// If it occurs twice or is not UTF-8.
    pub fn optional_text(self, type_number: u32) -> Result<Option<&'a str>, FieldError> {
        self.optional(type_number)?.map(|value| text(type_number, value)).transpose()
    }

    /// A number that may be absent.
    ///
    /// # Errors
    /// If it occurs twice or is no NonNegativeInteger.
    pub fn optional_number(self, type_number: u32) -> Result<Option<u64>, FieldError> {
        Ok(self.optional(type_number)?.map(tlv::read_nni).transpose()?)
    }

    /// A number.
    ///
    /// # Errors
    /// If it is absent, occurs twice or is no NonNegativeInteger.
    pub fn number(self, type_number: u32) -> Result<u64, FieldError> {
        Ok(tlv::read_nni(self.required(type_number)?)?)
    }

    /// A field of exactly `N` bytes.
    ///
    /// # Errors
    /// If it is absent, occurs twice or has another length.
    pub fn bytes<const N: usize>(self, type_number: u32) -> Result<[u8; N], FieldError> {
        self.required(type_number)?.try_into().map_err(|_| FieldError::BadValue(type_number))
    }
}

/// A text.
///
/// # Errors
/// If it is not UTF-8.
pub fn text(type_number: u32, value: &[u8]) -> Result<&str, FieldError> {
    std::str::from_utf8(value).map_err(|_| FieldError::BadValue(type_number))
}

/// The name that is the only element in the value of a field.
///
/// # Errors
/// If it is something else.
pub fn name(type_number: u32, value: &[u8]) -> Result<NameBuf, FieldError> {
    Ok(Name::parse_tlv(value).map_err(|_| FieldError::BadValue(type_number))?.to_buf())
}

/// Keys and values: what a requester says about itself, or an authority asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters(Vec<(String, Vec<u8>)>);

impl Parameters {
    /// Reads the pairs in a message; each key is followed by its value.
    ///
    /// # Errors
    /// If a key or a value is alone, if there are more than [`PARAMETERS_MAX`], or if a key is not UTF-8.
    pub fn read(message: &[u8]) -> Result<Self, FieldError> {
        let (mut reader, mut pairs, mut key) = (Reader::new(message), Vec::new(), None);
        while let Some(element) = reader.next_element()? {
            match (element.type_number, key.take()) {
                (types::PARAMETER_KEY, None) => key = Some(text(types::PARAMETER_KEY, element.value)?.to_owned()),
                (types::PARAMETER_VALUE, Some(key)) if pairs.len() < PARAMETERS_MAX => {
                    pairs.push((key, element.value.to_vec()));
                }
                (types::PARAMETER_VALUE, Some(_)) => return Err(FieldError::Repeated(types::PARAMETER_VALUE)),
                (types::PARAMETER_VALUE, None) => return Err(FieldError::Missing(types::PARAMETER_KEY)),
                (_, Some(_)) => return Err(FieldError::Missing(types::PARAMETER_VALUE)),
                (_, None) => {}
            }
        }
        if key.is_some() { Err(FieldError::Missing(types::PARAMETER_VALUE)) } else { Ok(Parameters(pairs)) }
    }

    /// Adds a pair.
    pub fn with(mut self, key: &str, value: impl Into<Vec<u8>>) -> Self {
        self.0.push((key.to_owned(), value.into()));
        self
    }

    /// The value of the first pair with this key.
    pub fn get(&self, key: &str) -> Option<&[u8]> {
        self.iter().find_map(|(other, value)| (other == key).then_some(value))
    }

    /// The same as a text.
    pub fn text(&self, key: &str) -> Option<&str> {
        std::str::from_utf8(self.get(key)?).ok()
    }

    /// The pairs, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_slice()))
    }

    /// Writes the pairs.
    pub fn write(&self, out: &mut Vec<u8>) {
        for (key, value) in &self.0 {
            tlv::write_tlv(out, types::PARAMETER_KEY, key.as_bytes());
            tlv::write_tlv(out, types::PARAMETER_VALUE, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_pairs() {
        let pairs = Parameters::default().with("email", "a@b").with("nonce", [0, 255]);
        let mut wire = Vec::new();
        pairs.write(&mut wire);
        assert_eq!(Parameters::read(&wire), Ok(pairs));

        let alone = |type_number| {
            let mut wire = Vec::new();
            tlv::write_tlv(&mut wire, type_number, b"x");
            Parameters::read(&wire)
        };
        assert_eq!(alone(types::PARAMETER_KEY), Err(FieldError::Missing(types::PARAMETER_VALUE)));
        assert_eq!(alone(types::PARAMETER_VALUE), Err(FieldError::Missing(types::PARAMETER_KEY)));

        let many = (0..=PARAMETERS_MAX).fold(Parameters::default(), |pairs, _| pairs.with("k", "v"));
        let mut wire = Vec::new();
        many.write(&mut wire);
        assert_eq!(Parameters::read(&wire), Err(FieldError::Repeated(types::PARAMETER_VALUE)));
    }

    #[test]
    fn unknown_fields_are_ignored_if_they_may_be() {
        let mut wire = Vec::new();
        tlv::write_nni(&mut wire, types::STATUS, 1);
        tlv::write_tlv(&mut wire, 0xf0, b"later");
        assert_eq!(Fields::parse(&wire, &[types::STATUS]).unwrap().number(types::STATUS), Ok(1));
        tlv::write_tlv(&mut wire, 0xf1, b"critical");
        assert_eq!(Fields::parse(&wire, &[types::STATUS]).unwrap_err(), FieldError::Unknown(0xf1));
    }
}
