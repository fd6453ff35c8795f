//! The period in which a certificate is valid (packet-format §5.2: ValidityPeriod in SignatureInfo).
//!
//! On the wire: two times of 15 ASCII characters, `YYYYMMDDThhmmss`, UTC, years 1970 to 9999.

use der::DateTime;
use namewire_packet::tlv::{self, Reader, types};
use std::{fmt, time::Duration};

const NOT_BEFORE: u32 = 254;
const NOT_AFTER: u32 = 255;

/// Why bytes are not a ValidityPeriod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValidityPeriodError {
    /// Not exactly NotBefore and NotAfter, in this order.
    #[error("the validity period has not one NotBefore and one NotAfter")]
    BadElements,
    /// A time that is not `YYYYMMDDThhmmss` from 1970 to 9999.
    #[error("a time of the validity period is not YYYYMMDDThhmmss")]
    BadTime,
}

/// First and last moment, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidityPeriod {
    /// First moment, milliseconds since 1970, whole seconds.
    pub not_before_ms: u64,
    /// Last moment, milliseconds since 1970, whole seconds.
    pub not_after_ms: u64,
}

impl ValidityPeriod {
    /// Reads the TLV-VALUE of a ValidityPeriod. A period that ends before it begins is legal and contains no moment.
    ///
    /// # Errors
    /// [`ValidityPeriodError::BadElements`] if it is not one NotBefore followed by one NotAfter;
    /// [`ValidityPeriodError::BadTime`] if one of them is no time.
    pub fn parse_value(value: &[u8]) -> Result<Self, ValidityPeriodError> {
        let mut reader = Reader::new(value);
        let mut next = |type_number| match reader.next_element() {
            Ok(Some(element)) if element.type_number == type_number => parse_time(element.value),
            _ => Err(ValidityPeriodError::BadElements),
        };
        let period = ValidityPeriod { not_before_ms: next(NOT_BEFORE)?, not_after_ms: next(NOT_AFTER)? };
        if !reader.remaining().is_empty() {
            return Err(ValidityPeriodError::BadElements);
        }
        Ok(period)
    }

    /// Reads a time as the packet has it, `YYYYMMDDThhmmss` in UTC, into milliseconds since 1970.
    ///
    /// # Errors
    /// [`ValidityPeriodError::BadTime`] if it is no time from 1970 to 9999.
    pub fn parse_time(text: &[u8]) -> Result<u64, ValidityPeriodError> {
        parse_time(text)
    }

    /// First and last moment as dates and times of ISO 8601 in UTC, `YYYY-MM-DDThh:mm:ssZ`.
    pub fn iso_times(self) -> [String; 2] {
        [self.not_before_ms, self.not_after_ms].map(iso_time)
    }

    /// True if the period contains `unix_ms`, in milliseconds since 1970.
    pub const fn contains(&self, unix_ms: u64) -> bool {
        self.not_before_ms <= unix_ms && unix_ms <= self.not_after_ms
    }

    /// The whole element. Fractions of a second are cut off; times after the year 9999 become its last second.
    pub fn to_tlv(self) -> Vec<u8> {
        let mut out = Vec::new();
        tlv::write_nested(&mut out, types::VALIDITY_PERIOD, |out| {
            tlv::write_tlv(out, NOT_BEFORE, format_time(self.not_before_ms).as_bytes());
            tlv::write_tlv(out, NOT_AFTER, format_time(self.not_after_ms).as_bytes());
        });
        out
    }
}

impl fmt::Display for ValidityPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [from, to] = self.iso_times();
        write!(f, "{from} to {to}")
    }
}

/// A moment as date and time of ISO 8601 in UTC.
pub(crate) fn iso_time(unix_ms: u64) -> String {
    date_time(unix_ms).to_string()
}

fn date_time(unix_ms: u64) -> DateTime {
    DateTime::from_unix_duration(Duration::from_millis(unix_ms)).unwrap_or(DateTime::INFINITY)
}

fn parse_time(text: &[u8]) -> Result<u64, ValidityPeriodError> {
    let bad = ValidityPeriodError::BadTime;
    if text.len() != 15 || text[8] != b'T' {
        return Err(bad);
    }
    let number = |from: usize, to: usize| {
        text[from..to]
            .iter()
            .try_fold(0_u16, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + u16::from(digit - b'0')).ok_or(bad))
    };
    let two = |from| number(from, from + 2).map(|number| number as u8);
    DateTime::new(number(0, 4)?, two(4)?, two(6)?, two(9)?, two(11)?, two(13)?)
        .map(|time| time.unix_duration().as_secs() * 1000)
        .map_err(|_| bad)
}

fn format_time(unix_ms: u64) -> String {
    let time = date_time(unix_ms);
    format!(
        "{:04}{:02}{:02}T{:02}{:02}{:02}",
        time.year(),
        time.month(),
        time.day(),
        time.hour(),
        time.minutes(),
        time.seconds()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written_as_dates() {
        for (text, unix_s) in [
            ("19700101T000000", 0),
            ("20000229T235959", 951_868_799),
            ("20261121T094726", 1_795_254_446),
            ("99991231T235959", 253_402_300_799),
        ] {
            assert_eq!(parse_time(text.as_bytes()), Ok(unix_s * 1000), "{text}");
            assert_eq!(format_time(unix_s * 1000 + 999), text);
        }
        for text in ["20260230T000000", "20261121 094726", "20261121T0947", "2026112XT094726", "19691231T235959", ""] {
            assert_eq!(parse_time(text.as_bytes()), Err(ValidityPeriodError::BadTime), "{text}");
        }
        assert_eq!(format_time(u64::MAX), "99991231T235959");
    }

    #[test]
    fn both_ends_belong_to_the_period() {
        let period = ValidityPeriod { not_before_ms: 1_000, not_after_ms: 5_000 };
        assert_eq!([999, 1_000, 5_000, 5_001].map(|ms| period.contains(ms)), [false, true, true, false]);
        assert_eq!(period.to_string(), "1970-01-01T00:00:01Z to 1970-01-01T00:00:05Z");
        let wire = period.to_tlv();
        assert_eq!(ValidityPeriod::parse_value(tlv::read_element(&wire).unwrap().value), Ok(period));
    }

    #[test]
    fn elements_must_be_two_in_order() {
        let time = |type_number| {
            let mut out = Vec::new();
            tlv::write_tlv(&mut out, type_number, b"20200101T000000");
            out
        };
        let (before, after) = (time(NOT_BEFORE), time(NOT_AFTER));
        for wrong in [vec![], before.clone(), [&after[..], &before].concat(), [&before[..], &after, &after].concat()] {
            assert_eq!(ValidityPeriod::parse_value(&wrong), Err(ValidityPeriodError::BadElements));
        }
    }
}
