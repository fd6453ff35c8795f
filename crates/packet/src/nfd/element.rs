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

/// A number of a dataset that only grows, or goes up and down: a metric, a key of JSON, a column.
pub struct Fact<T> {
    /// As at the end of a metric's name: `in_interests`.
    pub name: &'static str,
    /// What it does over time.
    pub kind: FactKind,
    /// One sentence for people.
    pub help: &'static str,
    /// Reads it; `None` if it is not known.
    pub of: fn(&T) -> Option<u64>,
}

/// What a number does over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactKind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// Declares a struct whose fields are those of an element, in the order in which they are written, each with its type
/// number. This is the only place that names a field: readers and writers of the wire, JSON, metrics and documentation
/// follow from it.
///
/// `fields` makes the struct a sequence of fields without an element of its own; another element may have them among
/// its own, under any number. `content` makes it what a Data holds, likewise without an element of its own. `element`
/// lets another element contain it. `element NUMBER` also makes it a record that stands alone in a list. `dataset
/// "module/name"` makes it the entry (type 128, or the number that follows) of that dataset. `message NUMBER` lets it
/// travel alone as well.
///
/// A field is `name: type = number`. With `as "key"`, JSON has it under this key, otherwise under the field's name.
/// With `or value`, it may be absent on the wire. With `=> Counter: "help"` or `=> Gauge: "help"` it is a [`Fact`],
/// whose help is its documentation; a word before the colon is its name there.
macro_rules! element {
    ($kind:ident: $(#[$about:meta])* pub struct $($rest:tt)+) => {
        crate::nfd::element::element! { @struct [$kind] $(#[$about])* pub struct $($rest)+ }
    };
    ($kind:ident $number:ident: $(#[$about:meta])* pub struct $($rest:tt)+) => {
        crate::nfd::element::element! { @struct [$kind $number] $(#[$about])* pub struct $($rest)+ }
    };
    ($kind:ident $($tag:literal)+: $(#[$about:meta])* pub struct $($rest:tt)+) => {
        crate::nfd::element::element! { @struct [$kind $($tag)+] $(#[$about])* pub struct $($rest)+ }
    };
    (
        @struct [$($kind:tt)+]
        $(#[$about:meta])*
        pub struct $name:ident {
            $(
                $(#[$doc:meta])*
                pub $field:ident: $value:ty = $number:tt $(as $key:literal)? $(or $default:expr)?
                    $(=> $fact:ident $($alias:ident)?: $help:literal)?,
            )+
        }
    ) => {
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        $(#[$about])*
        pub struct $name {
            $(
                $(#[$doc])*
                $(#[doc = $help])?
                $(#[cfg_attr(feature = "serde", serde(rename = $key))])?
                pub $field: $value,
            )+
        }

        impl $name {
            /// Its numbers for metrics, in the order of the wire.
            pub const FACTS: &'static [crate::nfd::Fact<Self>] = &[$($(crate::nfd::Fact {
                name: crate::nfd::element::element!(@name $field $($alias)?),
                kind: crate::nfd::FactKind::$fact,
                help: $help,
                of: |of| of.$field.into(),
            },)?)+];

            /// Appends the fields.
            fn write_fields(&self, out: &mut Vec<u8>) {
                $(crate::nfd::element::Member::write_member(&self.$field, out, $number);)+
            }

            fn read_fields(fields: &crate::nfd::field::Fields<'_>) -> Result<Self, crate::nfd::NfdError> {
                Ok($name { $($field: crate::nfd::element::element!(@read fields $number $(or $default)?),)+ })
            }
        }

        crate::nfd::element::element!(@$($kind)+ $name);
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $alias:ident) => { stringify!($alias) };
    (@read $fields:ident $number:tt) => { crate::nfd::element::Member::read_member($fields, $number)? };
    (@read $fields:ident $number:tt or $default:expr) => { $fields.optional($number)?.unwrap_or_else(|| $default) };
    (@fields $name:ident) => {
        impl crate::nfd::element::Member for $name {
            fn write_member(&self, out: &mut Vec<u8>, _: u32) {
                self.write_fields(out);
            }
            fn read_member(fields: &crate::nfd::field::Fields<'_>, _: u32) -> Result<Self, crate::nfd::NfdError> {
                $name::read_fields(fields)
            }
        }
    };
    (@content $name:ident) => {
        impl $name {
            /// The content of the Data.
            pub fn to_content(&self) -> Vec<u8> {
                let mut out = Vec::new();
                self.write_fields(&mut out);
                out
            }

            /// Reads the content of a Data.
            ///
            /// # Errors
            /// If a field is malformed, or a required one is absent.
            pub fn parse_content(content: &[u8]) -> Result<Self, crate::nfd::NfdError> {
                $name::read_fields(&crate::nfd::field::Fields::of_value(content)?)
            }
        }
    };
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
    (@message $number:tt $name:ident) => {
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
    (@element $number:tt $name:ident) => {
        impl crate::nfd::dataset::DatasetEntry for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                crate::tlv::write_nested(out, $number, |out| self.write_fields(out));
            }
            fn decode(wire: &[u8]) -> Result<Self, crate::nfd::NfdError> {
                $name::read_fields(&crate::nfd::field::Fields::of_element(wire, $number)?)
            }
        }
    };
    (@dataset $dataset:literal $name:ident) => { crate::nfd::element::element!(@dataset $dataset 128 $name); };
    (@dataset $dataset:literal $number:literal $name:ident) => {
        crate::nfd::element::element!(@element $number $name);

        impl crate::nfd::dataset::Dataset for $name {
            const NAME: &'static str = $dataset;
        }
    };
}
pub(super) use element;
