//! Time spans and sizes as people write them: `600 s`, `64 MiB`.
//!
//! A span needs its unit (only `0` needs none), because plain numbers in the files of other programs mean milliseconds
//! in some places and seconds in others. A size without a unit is in bytes. Both may have a decimal point. A value is
//! printed in the largest unit that gives a whole number, so that reading the text gives the same value.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{fmt, str::FromStr, time::Duration};

/// Units of time in nanoseconds, largest first.
const SPAN_UNITS: [(&str, u128); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1000),
    ("ns", 1),
];

/// Units of size in bytes. The binary ones are used for printing, largest first.
const SIZE_UNITS: [(&str, u128); 8] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1000),
];

/// Digits after the decimal point that count.
const FRACTION_DIGITS_MAX: usize = 9;

/// A time span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl Span {
    /// A span of this many seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Span(Duration::from_secs(seconds))
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let example = "write a number and a unit (ns, us, ms, s, min, h, d), for example 600 s";
        let (number, unit) = split(text);
        let scale = match unit {
            // Zero is the same in every unit.
            "" if number.trim_matches(['0', '.']).is_empty() && number.contains('0') => 1,
            "µs" => 1000,
            _ => scale_of(&SPAN_UNITS, unit).ok_or_else(|| format!("\"{text}\" is not a time span; {example}"))?,
        };
        let nanoseconds = scaled(number, scale).ok_or_else(|| format!("\"{text}\" is not a time span; {example}"))?;
        let nanoseconds = u64::try_from(nanoseconds).map_err(|_| format!("\"{text}\" is too long"))?;
        Ok(Span(Duration::from_nanos(nanoseconds)))
    }
}

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = split(text);
        let scale = match unit {
            "" => 1,
            _ => scale_of(&SIZE_UNITS, unit)
                .ok_or_else(|| format!("unknown unit \"{unit}\"; write for example 64 MiB"))?,
        };
        let bytes =
            scaled(number, scale).ok_or_else(|| format!("\"{text}\" is not a size; write for example 64 MiB"))?;
        // TOML's largest number, and more than any memory has.
        let bytes = i64::try_from(bytes).map_err(|_| format!("\"{text}\" is too large"))?;
        Ok(Bytes(bytes as u64))
    }
}

/// Digits and decimal point, then the unit.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

fn scale_of(units: &[(&str, u128)], unit: &str) -> Option<u128> {
    units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).map(|(_, scale)| *scale)
}

/// `number` times `scale`, rounded down; `None` if it is not a decimal number, or too large for any use.
fn scaled(number: &str, scale: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || number.ends_with('.') || fraction.len() > FRACTION_DIGITS_MAX || fraction.contains('.') {
        return None;
    }
    let whole = u128::from(whole.parse::<u64>().ok()?).checked_mul(scale)?;
    let fraction_value: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    Some(whole + fraction_value * scale / 10u128.pow(fraction.len() as u32))
}

fn write_in(f: &mut fmt::Formatter<'_>, value: u128, units: &[(&str, u128)]) -> fmt::Result {
    let (unit, scale) = units.iter().find(|(_, scale)| value.is_multiple_of(*scale)).unwrap_or(&("", 1));
    write!(f, "{} {unit}", value / scale)
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_nanos() {
            0 => f.write_str("0 s"),
            nanoseconds => write_in(f, nanoseconds, &SPAN_UNITS),
        }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0 B"),
            bytes => write_in(f, bytes.into(), &SIZE_UNITS[..4]),
        }
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl de::Visitor<'_> for Reader {
            type Value = Span;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time span with its unit in quotes, for example \"600 s\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl de::Visitor<'_> for Reader {
            type Value = Bytes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size, for example \"64 MiB\", or a number of bytes")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Bytes, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<Bytes, E> {
                u64::try_from(bytes).map(Bytes).map_err(|_| E::custom("a size is not negative"))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_as_people_write_them() {
        for (text, bytes) in
            [("64 MiB", 64 << 20), ("1.5gb", 1_500_000_000), ("0", 0), (" 7 B ", 7), ("0.5 KiB", 512), ("2kB", 2000)]
        {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for bad in ["", "MiB", "1 parsec", "-1", "1.2.3", "99999999999999 GiB", ".5 MiB", "1. B", "1.0000000001 B"] {
            assert!(bad.parse::<Bytes>().is_err(), "{bad}");
        }
    }

    #[test]
    fn spans_need_their_unit() {
        for (text, ns) in [("600 s", 600_000_000_000), ("1.5ms", 1_500_000), ("0", 0), ("0 s", 0), ("7 µs", 7000)] {
            assert_eq!(text.parse(), Ok(Span(Duration::from_nanos(ns))), "{text}");
        }
        for bad in ["600", "s", "", "1 month", "-1 s", "99999999 d", "."] {
            assert!(bad.parse::<Span>().is_err(), "{bad}");
        }
        assert_eq!(Span::from_secs(864_000).to_string(), "10 d");
        assert_eq!(Bytes(1500).to_string(), "1500 B");
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_again(value in 0..=i64::MAX as u64) {
            prop_assert_eq!(Bytes(value).to_string().parse(), Ok(Bytes(value)));
            let span = Span(Duration::from_nanos(value));
            prop_assert_eq!(span.to_string().parse(), Ok(span));
        }

        #[test]
        fn no_text_is_too_strange(text in ".{0,40}") {
            let _ = (text.parse::<Bytes>(), text.parse::<Span>());
        }
    }
}
