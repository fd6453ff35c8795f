//! Declares the elements of the management protocol once: their fields, and the type numbers of the fields.

use super::field::{Field, Fields, NfdError};

/// How often a field occurs on the wire: once, perhaps once, or any number of times.
pub(super) trait Member: Sized {
    fn write_member(&self, out: &mut Vec<u8>, type_number: u32);
    fn read_member(fields: &Fields<'_>, type_number: u32) -> Result<Self, NfdError>;
}

impl<T: Field> Member for T {
    fn write_member(&self, out: &mut Vec<u8>, type_number: u32) {
        self.write(out, type_number);
    }
    fn read_member(fields: &Fields<'_>, type_number: u32) -> Result<Self, NfdError> {
        fields.required(type_number)
    }
}

impl<T: Field> Member for Option<T> {
    fn write_member(&self, out: &mut Vec<u8>, type_number: u32) {
        if let Some(value) = self {
            value.write(out, type_number);
        }
    }
    fn read_member(fields: &Fields<'_>, type_number: u32) -> Result<Self, NfdError> {
        fields.optional(type_number)
    }
}

impl<T: Field> Member for Vec<T> {
    fn write_member(&self, out: &mut Vec<u8>, type_number: u32) {
        self.iter().for_each(|value| value.write(out, type_number));
    }
    fn read_member(fields: &Fields<'_>, type_number: u32) -> Result<Self, NfdError> {
        fields.all(type_number)
    }
}

/// Declares a struct whose fields are those of an element, in the order in which they are written, each with its type
/// number. `fields` makes the struct a sequence of fields without an element of its own. `element` lets another element
/// contain it. `element NUMBER` also makes it an entry of a dataset. `message NUMBER` lets it travel alone as well.
macro_rules! element {
    (
        $kind:ident $($number:ident)?:
        $(#[$about:meta])*
        pub struct $name:ident {
            $($(#[$doc:meta])* pub $field:ident: $value:ty = $field_number:ident,)+
        }
    ) => {
        $(#[$about])*
        pub struct $name {
            $($(#[$doc])* pub $field: $value,)+
        }

        impl $name {
            /// Appends the fields.
            fn write_fields(&self, out: &mut Vec<u8>) {
                $(crate::nfd::element::Member::write_member(&self.$field, out, $field_number);)+
            }

            fn read_fields(fields: &crate::nfd::field::Fields<'_>) -> Result<Self, crate::nfd::NfdError> {
                Ok($name { $($field: crate::nfd::element::Member::read_member(fields, $field_number)?,)+ })
            }
        }

        crate::nfd::element::element!(@$kind $($number)? $name);
    };
    (@fields $name:ident) => {};
    (@element $name:ident) => {
        impl crate::nfd::field::Field for $name {
            fn write(&self, out: &mut Vec<u8>, type_number: u32) {
                crate::tlv::write_nested(out, type_number, |out| self.write_fields(out));
            }
            fn read(_: u32, value: &[u8]) -> Result<Self, crate::nfd::NfdError> {
                $name::read_fields(&crate::nfd::field::Fields::of_value(value)?)
            }
        }
    };
    (@message $number:ident $name:ident) => {
        crate::nfd::element::element!(@element $name);

        impl $name {
            /// Appends the whole element.
            pub fn encode(&self, out: &mut Vec<u8>) {
                crate::tlv::write_nested(out, $number, |out| self.write_fields(out));
            }

            /// The whole element as bytes.
            pub fn to_wire(&self) -> Vec<u8> {
                let mut out = Vec::new();
                self.encode(&mut out);
                out
            }

            /// Reads one whole element.
            ///
            /// # Errors
            /// If the bytes are not exactly one such element.
            pub fn decode(wire: &[u8]) -> Result<Self, crate::nfd::NfdError> {
                $name::read_fields(&crate::nfd::field::Fields::of_element(wire, $number)?)
            }
        }
    };
    (@element $number:ident $name:ident) => {
        impl crate::nfd::dataset::DatasetEntry for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                crate::tlv::write_nested(out, $number, |out| self.write_fields(out));
            }
            fn decode(wire: &[u8]) -> Result<Self, crate::nfd::NfdError> {
                $name::read_fields(&crate::nfd::field::Fields::of_element(wire, $number)?)
            }
        }
    };
}
pub(super) use element;
