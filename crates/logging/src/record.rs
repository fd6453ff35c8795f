//! The text of an event: its message and its fields.
//!
//! Values may come from other hosts (names, addresses, the texts of refusals). So long values are cut, and control
//! characters become escapes: a value can neither forge a line nor control a terminal.

use namewire_packet::nfd::{LogField, LogRecord};
use std::{
    fmt::{self, Write},
    time::{SystemTime, UNIX_EPOCH},
};
use tracing::field::{Field, Visit};

/// Most bytes of one value.
pub(crate) const MAX_VALUE_BYTES: usize = 512;

/// Most fields of a record.
const MAX_FIELDS: usize = 16;

/// The message and fields, as they are visited.
#[derive(Default)]
pub(crate) struct Fields {
    message: String,
    fields: Vec<LogField>,
}

impl Fields {
    pub(crate) fn into_parts(self) -> (String, Vec<LogField>) {
        (self.message, self.fields)
    }

    fn add(&mut self, field: &Field, value: String) {
        if field.name() == "message" {
            self.message = value;
        } else if self.fields.len() < MAX_FIELDS && !value.is_empty() {
            self.fields.push(LogField { name: field.name().to_owned(), value });
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, clean(format_args!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, clean(format_args!("{value}")));
    }
}

/// The time of a line: milliseconds since 1970, by the system's clock.
pub(crate) fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// The line that stands for `count` more like `record`.
pub(crate) fn more_like_this(record: &LogRecord, count: u64) -> LogRecord {
    LogRecord {
        message: format!("{count} more like this: {}", record.message),
        fields: Vec::new(),
        unix_ms: unix_ms(),
        ..record.clone()
    }
}

fn clean(value: fmt::Arguments<'_>) -> String {
    let mut text = Clean(String::new());
    let _ = text.write_fmt(value); // it is cut where it fails
    text.0
}

/// Takes text until it is long enough.
struct Clean(String);

impl Write for Clean {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            if self.0.len() >= MAX_VALUE_BYTES {
                self.0.push('…');
                return Err(fmt::Error);
            }
            if is_plain(character) {
                self.0.push(character);
            } else {
                self.0.extend(character.escape_default());
            }
        }
        Ok(())
    }
}

/// True unless the character is a control character, or turns the direction of a line.
fn is_plain(character: char) -> bool {
    !character.is_control() && !matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_forge_a_line() {
        assert_eq!(clean(format_args!("a\nb\u{1b}[31m\u{202e}é")), "a\\nb\\u{1b}[31m\\u{202e}é");
        let long = clean(format_args!("{}", "x".repeat(10_000)));
        assert_eq!((long.len(), long.chars().last()), (MAX_VALUE_BYTES + '…'.len_utf8(), Some('…')));
    }
}
