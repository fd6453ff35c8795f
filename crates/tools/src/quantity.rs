//! Quantities as people write them: `64 MiB`, `5 s`. `namewire_printing` prints them.

use namewire_configuration::units::{Bytes, Span};
pub(crate) use namewire_printing::quantity::{bit_rate, bits_per_second, bytes, ms, scaled, time_of_day};
use std::{ops::RangeInclusive, time::Duration};

/// Reads a number of bytes, perhaps with a unit: `64 MiB`.
///
/// # Errors
/// In words, for the command line.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    text.parse::<Bytes>().map(|bytes| bytes.0)
}

/// Reads a time as configurations have it, `5 s`, or a number alone, as a whole number of milliseconds in `range`.
///
/// # Errors
/// In words, for the command line.
pub fn ms_in(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    let span = |count| Span(Duration::from_millis(count));
    move |text| {
        let count = match text.trim().parse() {
            Ok(count) => count,
            Err(_) => {
                let time_ns = text.parse::<Span>()?.0.as_nanos();
                if !time_ns.is_multiple_of(1_000_000) {
                    return Err(format!("{text} is no whole number of ms"));
                }
                u64::try_from(time_ns / 1_000_000).unwrap_or(u64::MAX)
            }
        };
        if range.contains(&count) {
            return Ok(count);
        }
        let (least, most) = (span(*range.start()), span(*range.end()));
        match *range.end() {
            u64::MAX => Err(format!("{} is less than {least}", span(count))),
            _ => Err(format!("{} is not from {least} to {most}", span(count))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_and_out() {
        assert_eq!(parse_bytes("64 MiB"), Ok(64 << 20));
    }

    /// `route add --expires 5s` was "invalid digit found in string".
    #[test]
    fn times_have_a_unit_or_are_numbers_of_the_old_one() {
        let ms = ms_in(1..=3_600_000);
        let expected =
            [("5s", 5000), ("5 s", 5000), ("5000", 5000), ("1.5 s", 1500), ("1 h", 3_600_000), ("1000us", 1)];
        for (text, count) in expected {
            assert_eq!(ms(text), Ok(count), "{text}");
        }
        assert_eq!(ms("0").unwrap_err(), "0 s is not from 1 ms to 1 h");
        assert_eq!(ms("61 min").unwrap_err(), "61 min is not from 1 ms to 1 h");
        assert_eq!(ms("1 us").unwrap_err(), "1 us is no whole number of ms");
        assert!(ms("soon").unwrap_err().contains("for example 600 s"));
        assert!(ms("5 x").is_err() && ms("-5 s").is_err() && ms("").is_err());
        assert_eq!(ms_in(1..=u64::MAX)("0").unwrap_err(), "0 s is less than 1 ms");
    }
}
