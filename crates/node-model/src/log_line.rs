//! The forms of a line.
//!
//! ```text
//!   text:     20:43:06.123Z info  faces: face up face=259 remote=udp4://192.0.2.1:6363
//!   journal:  <6>faces: face up face=259 remote=udp4://192.0.2.1:6363
//!   JSON:     {"time":"2026-01-02T20:43:06.123Z","level":"info","area":"faces","message":"face up","face":"259"}
//! ```
//!
//! Source: sd-daemon(3) for the priorities of the journal. Times are UTC: a process with several threads cannot ask for
//! the local time zone safely.

use namewire_packet::nfd::LogRecord;
use serde_json::{Map, Value};
use std::{
    fmt::Write,
    time::{Duration, UNIX_EPOCH},
};

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineForm {
    /// For people who read it as it comes.
    Text,
    /// For people who read it later.
    DatedText,
    /// For the journal, which adds the time and knows the priority from `<6>`.
    Journal,
    /// One object for each line.
    Json,
}

impl LineForm {
    /// The line, with its end.
    pub fn line(self, record: &LogRecord) -> String {
        let mut line = match self {
            LineForm::Text => text(&time(record.unix_ms)["2026-01-02T".len()..], record),
            LineForm::DatedText => text(&time(record.unix_ms), record),
            LineForm::Journal => format!("<{}>{}", priority(&record.level), what(record)),
            LineForm::Json => json(record),
        };
        line.push('\n');
        line
    }
}

fn text(time: &str, record: &LogRecord) -> String {
    format!("{time} {:<5} {}", record.level, what(record))
}

fn what(record: &LogRecord) -> String {
    let mut line = format!("{}: {}", record.area, record.message);
    for field in &record.fields {
        let is_word = !field.value.contains([' ', '"', '=']);
        let _ = if is_word {
            write!(line, " {}={}", field.name, field.value) // writing to a String does not fail
        } else {
            write!(line, " {}=\"{}\"", field.name, field.value.replace('"', "'"))
        };
    }
    line
}

/// The journal's priority: syslog's numbers.
fn priority(level: &str) -> u8 {
    match level {
        "error" => 3,
        "warn" => 4,
        "info" => 6,
        _ => 7,
    }
}

fn json(record: &LogRecord) -> String {
    let mut object = Map::new();
    for (name, value) in [
        ("time", &time(record.unix_ms)),
        ("level", &record.level),
        ("area", &record.area),
        ("message", &record.message),
    ] {
        object.insert(name.to_owned(), Value::String(value.clone()));
    }
    for field in &record.fields {
        object.insert(field.name.clone(), Value::String(field.value.clone()));
    }
    Value::Object(object).to_string()
}

/// The last millisecond of the year 9999, the last that RFC 3339 can write.
const LAST_UNIX_MS: u64 = 253_402_300_799_999;

/// RFC 3339 with milliseconds, in UTC.
fn time(unix_ms: u64) -> String {
    // A clock beyond the year 9999 shows the beginning.
    let unix_ms = if unix_ms <= LAST_UNIX_MS { unix_ms } else { 0 };
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(unix_ms)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::nfd::LogField;

    fn record() -> LogRecord {
        let field = |name: &str, value: &str| LogField { name: name.into(), value: value.into() };
        LogRecord {
            number: 1,
            unix_ms: 1_709_164_799_007, // `date -u -d @1709164799`: Wed Feb 28 23:59:59 UTC 2024
            level: "warn".into(),
            area: "trust".into(),
            message: "command refused".into(),
            fields: vec![field("face", "259"), field("why", "not \"signed\" at all")],
        }
    }

    #[test]
    fn the_forms_of_a_line() {
        let what = "trust: command refused face=259 why=\"not 'signed' at all\"\n";
        assert_eq!(LineForm::Text.line(&record()), format!("23:59:59.007Z warn  {what}"));
        assert_eq!(LineForm::DatedText.line(&record()), format!("2024-02-28T23:59:59.007Z warn  {what}"));
        assert_eq!(LineForm::Journal.line(&record()), format!("<4>{what}"));
        let json: Value = serde_json::from_str(&LineForm::Json.line(&record())).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "time": "2024-02-28T23:59:59.007Z", "level": "warn", "area": "trust", "message": "command refused",
                "face": "259", "why": "not \"signed\" at all",
            })
        );
    }

    /// Expected values by `date -u -d @SECONDS +%FT%T`.
    #[test]
    fn times() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000Z"),
            (1_709_251_200, "2024-03-01T00:00:00.000Z"),
            (1_767_225_599, "2025-12-31T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(time(seconds * 1000), expected);
        }
    }
}
