//! Arguments: turns the words of a command line into arguments, by the command's row of the table.
//!
//! A word that is the name of an argument begins this argument, at any place; the next word is its value. Any other
//! word is the value of the first positional argument, in order, that can read it. After an argument by name, no more
//! positional arguments are accepted. If a name is given twice, the later value holds.

use crate::{
    face_uri::FaceUriText,
    grammar::{self, Argument, Command, Kind},
    value::{FaceReference, ReportFormat, Value},
};
use namewire_packet::{NameBuf, nfd::FacePersistency};
use std::collections::BTreeMap;

/// Values by argument name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments(BTreeMap<&'static str, Value>);

/// A command ready to run.
#[derive(Clone, Debug)]
pub(crate) struct Parsed {
    pub(crate) command: &'static Command,
    pub(crate) arguments: Arguments,
}

/// Reads a whole command line; the error is the message for the user.
pub(crate) fn parse(words: &[String]) -> Result<Parsed, String> {
    let word = |index: usize| words.get(index).map_or("", String::as_str);
    let (noun, verb) = (word(0), word(1));
    let command = grammar::find(noun, verb).ok_or_else(|| format!("No such command: {noun} {verb}"))?;
    let arguments = Arguments::parse(command, words.get(2..).unwrap_or_default())?;
    Ok(Parsed { command, arguments })
}

impl Arguments {
    /// Reads the words after noun and verb.
    pub(crate) fn parse(command: &'static Command, words: &[String]) -> Result<Arguments, String> {
        let mut arguments = Arguments::default();
        let mut places = command.arguments.iter().filter(|argument| argument.is_positional);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let named = command.arguments.iter().find(|argument| argument.name == word);
            let (argument, value) = match named {
                Some(argument) if argument.kind == Kind::Switch => (argument, Value::Switch),
                Some(argument) => (argument, by_name(argument, words.next())?),
                None => by_place(&mut places, word)?,
            };
            arguments.0.insert(argument.name, value);
            if named.is_some() {
                places.by_ref().for_each(drop);
            }
        }
        arguments.check_complete(command)?;
        Ok(arguments)
    }

    /// Of several that are missing the alphabetically first is named, as NFD's nfdc does.
    fn check_complete(&self, command: &Command) -> Result<(), String> {
        let required = command.arguments.iter().filter(|argument| argument.is_required);
        match required.map(|argument| argument.name).filter(|name| !self.0.contains_key(name)).min() {
            Some(name) => Err(format!("{name}: required argument is missing")),
            None => Ok(()),
        }
    }
}

fn by_name(argument: &Argument, word: Option<&String>) -> Result<Value, String> {
    let (name, placeholder) = (argument.name, argument.placeholder);
    let word = word.ok_or_else(|| format!("{name}: {placeholder} is missing"))?;
    Value::parse(argument.kind, word)
        .map_err(|reason| format!("{name}: cannot parse '{word}' as {placeholder} ({reason})"))
}

/// The first place from here on that can read the word. A required one must.
fn by_place(
    places: &mut impl Iterator<Item = &'static Argument>,
    word: &str,
) -> Result<(&'static Argument, Value), String> {
    for argument in places {
        match Value::parse(argument.kind, word) {
            Ok(value) => return Ok((argument, value)),
            Err(reason) if argument.is_required => {
                let (name, placeholder) = (argument.name, argument.placeholder);
                return Err(format!(
                    "cannot parse '{word}' as an argument name or as {placeholder} for {name} ({reason})"
                ));
            }
            Err(_) => {}
        }
    }
    Err(format!("cannot parse '{word}' as an argument name"))
}

/// Gives `Arguments` a typed accessor per kind of value.
macro_rules! accessors {
    ($($method:ident: $variant:ident -> $type:ty;)+) => {
        impl Arguments {
            $(pub(crate) fn $method(&self, name: &str) -> Option<&$type> {
                match self.0.get(name) {
                    Some(Value::$variant(value)) => Some(value),
                    _ => None,
                }
            })+
        }
    };
}

accessors! {
    boolean: Boolean -> bool;
    unsigned: Unsigned -> u64;
    text: Text -> String;
    format: Format -> ReportFormat;
    name: Name -> NameBuf;
    face_uri: FaceUri -> FaceUriText;
    face: Face -> FaceReference;
    persistency: Persistency -> FacePersistency;
    origin: Origin -> u64;
}

impl Arguments {
    /// True if the switch was given.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A name that the table requires.
    pub(crate) fn required_name(&self, name: &str) -> NameBuf {
        self.name(name).cloned().expect("the table requires it")
    }

    /// A face that the table requires.
    pub(crate) fn required_face(&self, name: &str) -> FaceReference {
        self.face(name).cloned().expect("the table requires it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn parsed(line: &str) -> Arguments {
        parse(&words(line)).unwrap_or_else(|message| panic!("{line}: {message}")).arguments
    }

    fn message(line: &str) -> String {
        parse(&words(line)).map(|parsed| parsed.arguments).unwrap_err()
    }

    #[test]
    fn by_place_and_by_name_mean_the_same() {
        assert_eq!(parsed("route add /a 300"), parsed("route add prefix /a nexthop 300"));
        assert_eq!(parsed("route add /a 300 cost 3"), parsed("route add cost 3 nexthop 300 prefix /a"));
        assert_eq!(parsed("face create udp://h permanent"), parsed("face create remote udp://h persistency permanent"));
        assert_eq!(parsed("face"), parsed("face list"));
        assert!(parsed("route add /a 300 no-inherit capture").has("capture"));
        assert_eq!(parsed("route add /a 300 cost 3 cost 4").unsigned("cost"), Some(&4));
        // A relative name is one, as for ndn-cxx.
        assert_eq!(parsed("route show a/b").required_name("prefix").to_string(), "/a/b");
    }

    #[test]
    fn messages() {
        for (line, expected) in [
            ("", "No such command:  "),
            ("face fly", "No such command: face fly"),
            ("route add", "nexthop: required argument is missing"),
            ("route add /a", "nexthop: required argument is missing"),
            ("strategy set", "prefix: required argument is missing"),
            ("route add /a 300 cost", "cost: uint is missing"),
            ("face list scheme", "scheme: scheme is missing"),
            ("route add /a 300 cost -1", "cost: cannot parse '-1' as uint (value '-1' is negative)"),
            (
                "route add /a nowhere",
                "cannot parse 'nowhere' as an argument name or as face for nexthop (Malformed URI: nowhere)",
            ),
            ("route add /a 300 400", "cannot parse '400' as an argument name"),
            ("route add prefix /a 300", "cannot parse '300' as an argument name"),
            ("status report json", "cannot parse 'json' as an argument name"),
            ("status report format json", "format: cannot parse 'json' as fmt (unrecognized ReportFormat 'json')"),
            ("cs config capacity -5", "capacity: cannot parse '-5' as uint (value '-5' is negative)"),
            ("cs erase", "prefix: required argument is missing"),
        ] {
            assert_eq!(message(line), expected, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_words_are_read_without_panic(
            noun in "face|route|cs|strategy|status|fib",
            verb in "list|show|create|add|remove|destroy|config|erase|set|report|info",
            rest in prop::collection::vec("/a|300|-1|udp://h|on|persistent|[a-z-]{1,12}|\\PC{0,6}", 0..6),
        ) {
            let mut line = vec![noun, verb];
            line.extend(rest);
            if let Ok(parsed) = parse(&line) {
                for argument in parsed.command.arguments {
                    prop_assert!(!argument.is_required || parsed.arguments.has(argument.name));
                }
            }
        }

        /// Named arguments may come in any order.
        #[test]
        fn order_of_named_arguments_does_not_matter(cost in 0u64..1000, expires in 0u64..1000, swap in any::<bool>()) {
            let (first, second) = (format!("cost {cost}"), format!("expires {expires}"));
            let (first, second) = if swap { (second, first) } else { (first, second) };
            let arguments = parsed(&format!("route add /a 300 {first} {second}"));
            prop_assert_eq!(arguments.unsigned("cost"), Some(&cost));
            prop_assert_eq!(arguments.unsigned("expires"), Some(&expires));
        }
    }
}
