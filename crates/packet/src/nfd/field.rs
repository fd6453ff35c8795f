//! Reads and writes one field of a management element.
//!
//! Cost: a look-up of a field scans the element's fields. Real elements have fewer than twenty fields; a packet can
//! hold 4,400.

use crate::{
    FaceId, NameBuf,
    name::{Name, NameError},
    tag::{TagList, TagPacketError, Tags},
    tlv::{self, Reader, TlvError, types::NAME},
};

/// Why some bytes are not the expected management element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NfdError {
    /// The TLV structure is broken.
    #[error("malformed TLV: {0}")]
    Tlv(#[from] TlvError),
    /// A name breaks the rules for names.
    #[error("malformed name: {0}")]
    Name(#[from] NameError),
    /// The outermost element is of another type.
    #[error("expected element type {expected}, found {found}")]
    WrongType {
        /// Type number asked for.
        expected: u32,
        /// Type number found.
        found: u32,
    },
    /// Bytes follow the element.
    #[error("bytes follow the element")]
    TrailingBytes,
    /// A required field is absent.
    #[error("field {0} is absent")]
    Missing(u32),
    /// A text field is not UTF-8.
    #[error("a text field is not UTF-8")]
    NotText,
    /// A field has a size that it cannot have.
    #[error("field {0} has a wrong size")]
    BadSize(u32),
    /// A field holds no list of tags.
    #[error("the tags are malformed: {0}")]
    Tags(#[from] TagPacketError),
    /// A field holds a number without a meaning.
    #[error("field {field} has the meaningless value {value}")]
    BadValue {
        /// Type number of the field.
        field: u32,
        /// The number found.
        value: u64,
    },
}

/// What a field can hold.
pub(super) trait Field: Sized {
    fn write(&self, out: &mut Vec<u8>, type_number: u32);
    fn read(type_number: u32, value: &[u8]) -> Result<Self, NfdError>;
}

impl Field for u64 {
    fn write(&self, out: &mut Vec<u8>, type_number: u32) {
        tlv::write_nni(out, type_number, *self);
    }
    fn read(_: u32, value: &[u8]) -> Result<Self, NfdError> {
        Ok(tlv::read_nni(value)?)
    }
}

/// Written as 1 if true. Any number except 0 reads as true.
impl Field for bool {
    fn write(&self, out: &mut Vec<u8>, type_number: u32) {
        u64::from(*self).write(out, type_number);
    }
    fn read(type_number: u32, value: &[u8]) -> Result<Self, NfdError> {
        u64::read(type_number, value).map(|number| number != 0)
    }
}

impl Field for FaceId {
    fn write(&self, out: &mut Vec<u8>, type_number: u32) {
        self.0.write(out, type_number);
    }
    fn read(type_number: u32, value: &[u8]) -> Result<Self, NfdError> {
        u64::read(type_number, value).map(FaceId)
    }
}

impl Field for String {
    fn write(&self, out: &mut Vec<u8>, type_number: u32) {
        tlv::write_tlv(out, type_number, self.as_bytes());
    }
    fn read(_: u32, value: &[u8]) -> Result<Self, NfdError> {
        std::str::from_utf8(value).map(str::to_owned).map_err(|_| NfdError::NotText)
    }
}

/// Bytes of any number.
impl Field for Box<[u8]> {
    fn write(&self, out: &mut Vec<u8>, type_number: u32) {
        tlv::write_tlv(out, type_number, self);
    }
    fn read(_: u32, value: &[u8]) -> Result<Self, NfdError> {
        Ok(value.into())
    }
}

impl<const N: usize> Field for [u8; N] {
    fn write(&self, out: &mut Vec<u8>, type_number: u32) {
        tlv::write_tlv(out, type_number, self);
    }
    fn read(type_number: u32, value: &[u8]) -> Result<Self, NfdError> {
        value.try_into().map_err(|_| NfdError::BadSize(type_number))
    }
}

impl Field for TagList {
    fn write(&self, out: &mut Vec<u8>, type_number: u32) {
        tlv::write_nested(out, type_number, |out| self.write_value(out));
    }
    fn read(_: u32, value: &[u8]) -> Result<Self, NfdError> {
        Ok(Tags::parse(value)?.into())
    }
}

/// A Name field's own type is 7; in any other field (Strategy) the Name is nested.
impl Field for NameBuf {
    fn write(&self, out: &mut Vec<u8>, type_number: u32) {
        if type_number == NAME {
            self.as_name().write_tlv(out);
        } else {
            tlv::write_nested(out, type_number, |out| self.as_name().write_tlv(out));
        }
    }
    fn read(type_number: u32, value: &[u8]) -> Result<Self, NfdError> {
        let name = if type_number == NAME { Name::parse_value(value)? } else { Name::parse_tlv(value)? };
        Ok(name.to_buf())
    }
}

/// The fields of one element, in the order found.
pub(super) struct Fields<'a>(Vec<(u32, &'a [u8])>);

impl<'a> Fields<'a> {
    /// Splits a TLV-VALUE into its fields.
    pub(super) fn of_value(value: &'a [u8]) -> Result<Self, NfdError> {
        let mut reader = Reader::new(value);
        let mut fields = Vec::new();
        while let Some(element) = reader.next_element()? {
            fields.push((element.type_number, element.value));
        }
        Ok(Fields(fields))
    }

    /// Splits one whole element, which must be of type `expected` and fill `wire`.
    pub(super) fn of_element(wire: &'a [u8], expected: u32) -> Result<Self, NfdError> {
        let element = tlv::read_element(wire)?;
        if element.type_number != expected {
            return Err(NfdError::WrongType { expected, found: element.type_number });
        }
        if element.wire.len() != wire.len() {
            return Err(NfdError::TrailingBytes);
        }
        Fields::of_value(element.value)
    }

    pub(super) fn optional<T: Field>(&self, type_number: u32) -> Result<Option<T>, NfdError> {
        let found = self.0.iter().find(|(found, _)| *found == type_number);
        found.map(|(_, value)| T::read(type_number, value)).transpose()
    }

    pub(super) fn required<T: Field>(&self, type_number: u32) -> Result<T, NfdError> {
        self.optional(type_number)?.ok_or(NfdError::Missing(type_number))
    }

    pub(super) fn all<T: Field>(&self, type_number: u32) -> Result<Vec<T>, NfdError> {
        let found = self.0.iter().filter(|(found, _)| *found == type_number);
        found.map(|(_, value)| T::read(type_number, value)).collect()
    }
}

/// Two digits for each byte.
#[cfg(feature = "serde")]
pub(super) fn as_hex<S: serde::Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    serializer.serialize_str(&digits)
}
