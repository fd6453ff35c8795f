//! `router.busy_poll`: for how long an idle worker looks for packets before it sleeps.

use crate::units::Span;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::{fmt, time::Duration};

/// The longest time. For a worker, a second is for ever.
const LONGEST: Span = Span::from_secs(1);

/// The word for [`BusyPoll::Auto`] in files and options.
const AUTO: &str = "auto";

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BusyPoll {
    /// As long as it pays.
    #[default]
    Auto,
    /// Always for this time.
    For(Span),
}

impl BusyPoll {
    /// The fixed time, if there is one.
    pub fn fixed(self) -> Option<Duration> {
        match self {
            BusyPoll::Auto => None,
            BusyPoll::For(span) => Some(span.0),
        }
    }
}

impl fmt::Display for BusyPoll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BusyPoll::Auto => f.write_str(AUTO),
            BusyPoll::For(span) => span.fmt(f),
        }
    }
}

impl Serialize for BusyPoll {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BusyPoll {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Its own error would call a number an invalid string.
        let value = toml::Value::deserialize(deserializer)?;
        match value.as_str() {
            Some(AUTO) => Ok(BusyPoll::Auto),
            Some(text) => match text.parse::<Span>() {
                Ok(span) if span <= LONGEST => Ok(BusyPoll::For(span)),
                Ok(span) => Err(D::Error::custom(format!("{span} is not from 0 s to {LONGEST}"))),
                Err(error) => Err(D::Error::custom(format!("{error}, or \"{AUTO}\""))),
            },
            None => Err(D::Error::custom(format!(
                "{value} is no time span in quotes, for example \"50 us\", nor \"{AUTO}\""
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::Settings;

    fn parse(value: &str) -> Result<String, String> {
        let settings: Result<Settings, _> = toml::from_str(&format!("router.busy_poll = {value}"));
        settings.map(|settings| settings.router.busy_poll.to_string()).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn a_word_or_a_span_is_taken_and_nothing_else() {
        assert_eq!(Settings::default().router.busy_poll.to_string(), "auto");
        for (value, text) in
            [("\"auto\"", "auto"), ("\"0\"", "0 s"), ("\"0 s\"", "0 s"), ("\"50us\"", "50 us"), ("\"1 s\"", "1 s")]
        {
            assert_eq!(parse(value), Ok(text.to_owned()));
        }
        for (value, error) in [
            ("\"1001 ms\"", "1001 ms is not from 0 s to 1 s"),
            ("\"soon\"", "\"soon\" is not a time span"),
            ("\"Auto\"", "or \"auto\""),
            ("50", "50 is no time span in quotes"),
        ] {
            let refusal = parse(value).expect_err(value);
            assert!(refusal.contains(error), "{refusal}");
        }
    }
}
