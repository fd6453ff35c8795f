//! Values of arguments: what a word on the command line means.
//!
//! Reasons for refusal have the words of NFD's `nfdc`, because our messages must equal its messages.

use crate::{face_uri::FaceUriText, grammar::Kind};
use namewire_packet::{
    NameBuf,
    nfd::{FacePersistency, origin},
};
use std::fmt;

/// How a status report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportFormat {
    Text,
    Xml,
}

/// A face as the user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FaceReference {
    Id(u64),
    Uri(FaceUriText),
}

/// Value of one argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Switch,
    Boolean(bool),
    Unsigned(u64),
    Text(String),
    Format(ReportFormat),
    Name(NameBuf),
    FaceUri(FaceUriText),
    Face(FaceReference),
    Persistency(FacePersistency),
    Origin(u64),
}

/// Largest number that stands for an origin; nfdc has a word for it, which is in no route.
const ORIGIN_NONE: u64 = 65535;
const ORIGIN_NONE_WORD: &str = "none";

const NOT_A_NUMBER: &str = "bad lexical cast: source type value could not be interpreted as target";

impl Value {
    /// Reads `word` as a value of `kind`; the error is the reason.
    pub(crate) fn parse(kind: Kind, word: &str) -> Result<Value, String> {
        match kind {
            // Has no value; whoever asks has made a mistake in the table.
            Kind::Switch => Err("takes no value".to_owned()),
            Kind::Boolean => parse_boolean(word).map(Value::Boolean),
            Kind::Unsigned => parse_unsigned(word).map(Value::Unsigned),
            Kind::Text => Ok(Value::Text(word.to_owned())),
            Kind::Format => match word {
                "xml" => Ok(Value::Format(ReportFormat::Xml)),
                "text" => Ok(Value::Format(ReportFormat::Text)),
                _ => Err(format!("unrecognized ReportFormat '{word}'")),
            },
            Kind::Name => word.parse().map(Value::Name).map_err(|error| format!("{error}")),
            Kind::FaceUri => parse_face_uri(word).map(Value::FaceUri),
            Kind::Face => match parse_face_number(word) {
                Some(id) => Ok(Value::Face(FaceReference::Id(id))),
                None => parse_face_uri(word).map(|uri| Value::Face(FaceReference::Uri(uri))),
            },
            Kind::Persistency => match word.parse() {
                Ok(persistency) if FacePersistency::LASTING.contains(&persistency) => {
                    Ok(Value::Persistency(persistency))
                }
                _ => Err(format!("unrecognized FacePersistency '{word}'")),
            },
            Kind::Origin => parse_origin(word).map(Value::Origin),
        }
    }
}

fn parse_boolean(word: &str) -> Result<bool, String> {
    match word {
        "on" | "true" | "enabled" | "yes" | "1" => Ok(true),
        "off" | "false" | "disabled" | "no" | "0" => Ok(false),
        _ => Err(format!("unrecognized boolean value '{word}'")),
    }
}

/// An integer that fits a signed 64-bit one and is not negative.
pub(crate) fn parse_unsigned(word: &str) -> Result<u64, String> {
    let number: i64 = word.parse().map_err(|_| NOT_A_NUMBER.to_owned())?;
    u64::try_from(number).map_err(|_| format!("value '{word}' is negative"))
}

/// A face number. A negative one is some huge number that no face has.
fn parse_face_number(word: &str) -> Option<u64> {
    match word.strip_prefix('-') {
        Some(digits) if !digits.starts_with('+') => digits.parse::<u64>().ok().map(u64::wrapping_neg),
        Some(_) => None,
        None => word.parse().ok(),
    }
}

fn parse_face_uri(word: &str) -> Result<FaceUriText, String> {
    FaceUriText::parse(word).ok_or_else(|| format!("Malformed URI: {word}"))
}

fn parse_origin(word: &str) -> Result<u64, String> {
    let mut words = origin::NAMES.into_iter().chain([(ORIGIN_NONE_WORD, ORIGIN_NONE)]);
    if let Some((_, number)) = words.find(|(known, _)| known.eq_ignore_ascii_case(word)) {
        return Ok(number);
    }
    let number = word.parse::<i64>().ok().and_then(|number| u64::try_from(number).ok());
    number.filter(|number| *number <= ORIGIN_NONE).ok_or_else(|| NOT_A_NUMBER.to_owned())
}

/// An origin as a word, or as a number if it has none.
pub(crate) struct OriginText(pub(crate) u64);

impl fmt::Display for OriginText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match origin::name(self.0) {
            Some(word) => f.write_str(word),
            None if self.0 == ORIGIN_NONE => f.write_str(ORIGIN_NONE_WORD),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refusal(kind: Kind, word: &str) -> String {
        Value::parse(kind, word).unwrap_err()
    }

    #[test]
    fn words_and_their_values() {
        for (kind, word, value) in [
            (Kind::Boolean, "enabled", Value::Boolean(true)),
            (Kind::Boolean, "0", Value::Boolean(false)),
            (Kind::Unsigned, "9223372036854775807", Value::Unsigned(i64::MAX as u64)),
            (Kind::Format, "xml", Value::Format(ReportFormat::Xml)),
            (Kind::Name, "ndn:/a", Value::Name("/a".parse().unwrap())),
            (Kind::Face, "300", Value::Face(FaceReference::Id(300))),
            (Kind::Face, "-1", Value::Face(FaceReference::Id(u64::MAX))),
            (Kind::Persistency, "permanent", Value::Persistency(FacePersistency::Permanent)),
            (Kind::Origin, "NLSR", Value::Origin(128)),
            (Kind::Origin, "17591", Value::Origin(17591)),
            (Kind::Origin, "none", Value::Origin(65535)),
        ] {
            assert_eq!(Value::parse(kind, word), Ok(value), "{word}");
        }
    }

    #[test]
    fn refusals_say_why() {
        assert_eq!(refusal(Kind::Boolean, "maybe"), "unrecognized boolean value 'maybe'");
        assert_eq!(refusal(Kind::Unsigned, "-1"), "value '-1' is negative");
        assert_eq!(refusal(Kind::Unsigned, "9223372036854775808"), NOT_A_NUMBER);
        assert_eq!(refusal(Kind::Unsigned, ""), NOT_A_NUMBER);
        assert_eq!(refusal(Kind::Format, "json"), "unrecognized ReportFormat 'json'");
        assert_eq!(refusal(Kind::Persistency, "on-demand"), "unrecognized FacePersistency 'on-demand'");
        assert_eq!(refusal(Kind::FaceUri, "host"), "Malformed URI: host");
        assert_eq!(refusal(Kind::Face, "--1"), "Malformed URI: --1");
        assert_eq!(refusal(Kind::Origin, "65536"), NOT_A_NUMBER);
        assert_eq!(refusal(Kind::Origin, "-1"), NOT_A_NUMBER);
        assert!(Value::parse(Kind::Name, "/a/..").is_err());
    }

    proptest! {
        #[test]
        fn origins_read_back_what_they_print(number in 0..=ORIGIN_NONE) {
            prop_assert_eq!(Value::parse(Kind::Origin, &OriginText(number).to_string()), Ok(Value::Origin(number)));
        }

        #[test]
        fn numbers_read_back(number in 0..=i64::MAX as u64) {
            prop_assert_eq!(Value::parse(Kind::Unsigned, &number.to_string()), Ok(Value::Unsigned(number)));
        }
    }
}
