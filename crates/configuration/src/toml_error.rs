//! Turns the errors of the TOML reader into sentences for users: which key, on which line, and which values it accepts.

use crate::likeness::nearest;
use std::{fmt, ops::Range};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// Longest value that an error repeats, in bytes.
const VALUE_BYTES_MAX: usize = 100;

/// An error in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    /// The line, from 1; `None` if no single line is to blame.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
}

impl SettingsError {
    pub(crate) fn new(line: Option<usize>, message: impl Into<String>) -> Self {
        SettingsError { line, message: message.into() }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for SettingsError {}

/// The error of the TOML reader, about `text`, in words of ours.
pub(super) fn in_words(text: &str, error: &toml::de::Error) -> SettingsError {
    let Some(span) = error.span() else { return SettingsError::new(None, error.message()) };
    let line = line_of(text, span.start);
    // A text that is not TOML at all has no keys.
    let place = DeTable::parse(text).ok().and_then(|table| Place::find(table.get_ref(), &span));
    SettingsError::new(Some(line), message(text, error.message(), place.as_ref()))
}

/// The line, from 1, of the byte at `offset`.
fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
}

/// Where an error is.
#[derive(Debug, Default)]
struct Place {
    /// The key with its sections, joined by dots.
    key: String,
    /// Whether the error is about an entry of the list that is the key's value.
    is_entry: bool,
    /// Whether the value is a table.
    is_table: bool,
    /// Where the text has the value.
    value: Range<usize>,
}

impl Place {
    /// The innermost key whose value has the error at `span`.
    fn find(table: &DeTable<'_>, span: &Range<usize>) -> Option<Place> {
        table.iter().find_map(|(key, value)| {
            let mut place = Place::in_value(value, span)?;
            place.key = if place.key.is_empty() {
                key.get_ref().to_string()
            } else {
                format!("{}.{}", key.get_ref(), place.key)
            };
            Some(place)
        })
    }

    fn in_value(value: &Spanned<DeValue<'_>>, span: &Range<usize>) -> Option<Place> {
        let deeper = match value.get_ref() {
            DeValue::Table(table) => Place::find(table, span),
            DeValue::Array(entries) => entries.iter().find_map(|entry| {
                let place = Place::in_value(entry, span)?;
                Some(Place { is_entry: place.is_entry || place.key.is_empty(), ..place })
            }),
            _ => None,
        };
        let is_here = value.span().start <= span.start && span.end <= value.span().end;
        let here = || Place { value: value.span(), is_table: value.get_ref().is_table(), ..Place::default() };
        deeper.or_else(|| is_here.then(here))
    }

    /// The value as the file has it, if it is short and no table.
    fn value<'a>(&self, text: &'a str) -> Option<&'a str> {
        let value = text.get(self.value.clone()).filter(|_| !self.is_table)?;
        (value.len() <= VALUE_BYTES_MAX && !value.contains('\n')).then_some(value)
    }

    /// How users write the header of the section.
    fn header(&self) -> String {
        if self.is_entry { format!("[[{}]]", self.key) } else { format!("[{}]", self.key) }
    }
}

fn message(text: &str, message: &str, place: Option<&Place>) -> String {
    if let Some(unknown) = message.strip_prefix("unknown field ") {
        return with_suggestion("key", unknown);
    }
    let Some(place) = place else { return message.to_owned() };
    if let Some(missing) = message.strip_prefix("missing field ") {
        return format!("{} needs the key \"{}\"", place.header(), missing.trim_matches('`'));
    }
    let subject = if place.is_entry { format!("an entry of {}", place.key) } else { place.key.clone() };
    if let Some(unknown) = message.strip_prefix("unknown variant ") {
        return format!("{subject}: {}", with_suggestion("value", unknown));
    }
    let is_of_wrong_type = message.starts_with("invalid type: ") || message.starts_with("invalid value: ");
    match message.rsplit_once(", expected ").filter(|_| is_of_wrong_type) {
        Some((_, expected)) => format!("{subject} is {}", what_it_takes(text, expected, place)),
        None => format!("{subject}: {message}"),
    }
}

/// What belongs where the file has the value of `place`: serde's `expected` in words, and the value as it is meant, if
/// that can be guessed.
fn what_it_takes(text: &str, expected: &str, place: &Place) -> String {
    let value = place.value(text);
    // What a text in quotes says.
    let quoted = value.and_then(|value| value.strip_prefix('"')?.strip_suffix('"'));
    let unquoted_number = || quoted.filter(|quoted| quoted.parse::<i64>().is_ok());
    let (kind, meant) = match expected {
        "a sequence" if place.is_table => ("a list".to_owned(), Some(format!("[[{}]]", place.key))),
        "a sequence" => ("a list".to_owned(), value.map(|value| format!("[{value}]"))),
        "a string" | "path string" | "string or table" => (
            "a text in quotes".to_owned(),
            value.filter(|value| !value.contains('"')).map(|value| format!("\"{value}\"")),
        ),
        "a boolean" => {
            let word = quoted.map(str::to_ascii_lowercase).filter(|word| matches!(&word[..], "true" | "false"));
            ("true or false".to_owned(), word)
        }
        "socket address" | "IPv4 socket address" | "IPv6 socket address" => {
            let example = if expected.contains('6') { "\"[::1]:6363\"" } else { "\"127.0.0.1:6363\"" };
            ("an address with a port, in quotes".to_owned(), Some(example.to_owned()))
        }
        "a map" => ("a section".to_owned(), Some(place.header())),
        _ if expected.starts_with("struct ") => ("a section".to_owned(), Some(place.header())),
        _ => match whole_number(expected) {
            Some(kind) => (kind, unquoted_number().map(str::to_owned)),
            None => (expected.to_owned(), None),
        },
    };
    match (meant, value) {
        (Some(meant), _) => format!("{kind}: {meant}"),
        (None, Some(value)) => format!("{kind}, not {value}"),
        (None, None) => kind,
    }
}

/// The type of a whole number in words.
fn whole_number(rust_type: &str) -> Option<String> {
    let (least, rust_type) = rust_type.strip_prefix("a nonzero ").map_or((0, rust_type), |rust_type| (1, rust_type));
    let largest = match rust_type {
        "u8" => u64::from(u8::MAX),
        "u16" => u64::from(u16::MAX),
        "u32" => u64::from(u32::MAX),
        // TOML has no larger number.
        "u64" | "usize" => i64::MAX as u64,
        _ => return None,
    };
    Some(format!("a whole number from {least} to {largest}"))
}

/// serde names an unknown word and all known ones; users want the one that they meant.
fn with_suggestion(kind: &str, words: &str) -> String {
    let mut quoted = words.split('`').skip(1).step_by(2);
    let unknown = quoted.next().unwrap_or_default();
    let known: Vec<&str> = quoted.collect();
    match nearest(unknown, known.iter().copied()) {
        Some(nearest) => format!("unknown {kind} \"{unknown}\"; did you mean \"{nearest}\"?"),
        None => format!("unknown {kind} \"{unknown}\"; known here are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use crate::from_toml;

    fn error(text: &str) -> String {
        from_toml(text).expect_err(text).to_string()
    }

    /// `listen = "127.0.0.1:9695"` was `invalid type: string "127.0.0.1:9695", expected a sequence`, without the key.
    #[test]
    fn an_error_of_type_names_the_key_the_line_and_what_the_key_takes() {
        for (text, words) in [
            ("[observe]\n\nlisten = \"127.0.0.1:9695\"", "line 3: observe.listen is a list: [\"127.0.0.1:9695\"]"),
            ("observe = { listen = \"a\" }", "line 1: observe.listen is a list: [\"a\"]"),
            (
                "[faces.udp]\nlisten = [\n6363,\n7001]",
                "line 3: an entry of faces.udp.listen is an address with a port, in quotes: \"127.0.0.1:6363\"",
            ),
            ("[router]\nworkers = \"2\"", "line 2: router.workers is a whole number from 0 to 65535: 2"),
            ("[router]\nworkers = \"all\"", "line 2: router.workers is a whole number from 0 to 65535, not \"all\""),
            ("[router]\nworkers = 70000", "line 2: router.workers is a whole number from 0 to 65535, not 70000"),
            ("[router]\nquiet = \"True\"", "line 2: router.quiet is true or false: true"),
            ("[router]\nquiet = 1", "line 2: router.quiet is true or false, not 1"),
            ("[router]\nuser = 1000", "line 2: router.user is a text in quotes: \"1000\""),
            ("router = 7", "line 1: router is a section: [router]"),
            ("[faces]\ntcp = false", "line 2: faces.tcp is a section: [faces.tcp]"),
            ("[log]\nareas = \"info\"", "line 2: log.areas is a section: [log.areas]"),
            ("[face]\nuri = \"udp://a\"", "line 1: face is a list: [[face]]"),
            ("[[face]]\nmtu = 100", "line 1: [[face]] needs the key \"uri\""),
            ("[[face]]\nuri = \"udp://a\"\n[[face]]\nuri = 7", "line 4: face.uri is a text in quotes: \"7\""),
            ("[cs]\npolicy = 1", "line 2: cs.policy is a text in quotes: \"1\""),
            (
                "[[trust.authorize]]\ncertificate = \"any\"\nprivileges = [\"face\"]",
                "line 3: an entry of trust.authorize.privileges: unknown value \"face\"; did you mean \"faces\"?",
            ),
            ("[state]\nfile = 3", "line 2: state.file is a text in quotes: \"3\""),
        ] {
            assert_eq!(error(text), words);
        }
        let span = error("[faces.udp]\nidle_timeout = 600");
        assert_eq!(
            span,
            "line 2: faces.udp.idle_timeout is a time span with its unit in quotes, for example \"600 s\", not 600"
        );
    }

    /// Every key of the printed defaults, with a value of each type that TOML has: an error says the key, and nothing
    /// of the Rust types behind it.
    #[test]
    fn every_key_is_named_for_every_wrong_type() {
        let mut section = String::new();
        let mut refused = 0;
        for line in crate::DEFAULT_TOML.lines().map(|line| line.strip_prefix("# ").unwrap_or(line)) {
            if line.starts_with('[') && line.ends_with(']') {
                section = line.to_owned();
            }
            let Some((key, _)) = line.split_once(" = ").filter(|(key, _)| !key.contains(' ')) else { continue };
            let whole = format!("{}.{key}", section.trim_matches(['[', ']']));
            for value in ["\"\\u0000\"", "-1", "1.5", "true", "[[]]", "{ x = 1 }", "2020-01-01"] {
                let text = format!("{section}\n{key} = {value}");
                let Err(error) = crate::toml_file::parse::<crate::Settings>(&text) else { continue };
                let message = error.to_string();
                // An error about another key: one that is missing, or the key that the value brings.
                if message.contains("needs the key") || message.contains("unknown key \"x\"") {
                    continue;
                }
                refused += 1;
                assert!(message.starts_with("line 2: ") && message.contains(&whole), "{whole} = {value}: {message}");
                let of_rust = ["invalid type", "invalid value", ", expected a ", "struct", "u16", "u32", "a sequence"];
                assert!(!of_rust.iter().any(|word| message.contains(word)), "{whole} = {value}: {message}");
            }
        }
        assert!(refused > 400, "{refused}");
    }
}
