//! Reads a command line by the table of commands.
//!
//! The rules are those of Boost.Program_options, which ndnsec uses: `--long VALUE`, `--long=VALUE`, `-s VALUE`,
//! `-sVALUE`, several switches in one word (`-kc`), a long name cut short as long as it is unambiguous, `--` before
//! words that are no options. The messages are the same, because scripts' authors search for them.

use crate::{
    chain::name_of,
    grammar::{Choice, Command, Kind},
    stop::Stop,
};
use namewire_packet::NameBuf;

/// The options of a command line, checked.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    given: Vec<(&'static str, String)>,
    names: Vec<(&'static str, NameBuf)>,
}

/// An option as it stands in the line, and its value (empty if it takes none).
type Given = (&'static Choice, String);

impl Arguments {
    /// # Errors
    /// The message for people.
    pub(crate) fn parse(command: &'static Command, words: &[String]) -> Result<Self, String> {
        let mut arguments = Arguments::default();
        for (choice, value) in read(command, words)? {
            arguments.add(choice, value)?;
        }
        Ok(arguments)
    }

    fn add(&mut self, choice: &'static Choice, value: String) -> Result<(), String> {
        let long = choice.long;
        if !matches!(choice.kind, Kind::Count | Kind::Texts) && self.is_set(long) {
            return Err(format!("option '--{long}' cannot be specified more than once"));
        }
        let invalid = || match value.as_str() {
            "" => format!("the argument for option '--{long}' is invalid"),
            text => format!("the argument ('{text}') for option '--{long}' is invalid"),
        };
        match choice.kind {
            Kind::Letter if value.chars().count() != 1 => return Err(invalid()),
            Kind::Name if value.is_empty() || value.contains(char::is_whitespace) => return Err(invalid()),
            Kind::Name => self.names.push((long, name_of(&value)?)),
            _ => {}
        }
        self.given.push((long, value));
        Ok(())
    }

    /// True if the option is there.
    pub(crate) fn is_set(&self, long: &str) -> bool {
        self.count(long) > 0
    }

    /// How often the option is there.
    pub(crate) fn count(&self, long: &str) -> usize {
        self.texts(long).count()
    }

    /// The option's value.
    pub(crate) fn text(&self, long: &str) -> Option<&str> {
        self.given.iter().find(|(given, _)| *given == long).map(|(_, value)| value.as_str())
    }

    /// The values of an option that may be repeated.
    pub(crate) fn texts<'a>(&'a self, long: &'a str) -> impl Iterator<Item = &'a str> + 'a {
        self.given.iter().filter(move |(given, _)| *given == long).map(|(_, value)| value.as_str())
    }

    /// The option's value, a name.
    pub(crate) fn name(&self, long: &str) -> Option<&NameBuf> {
        self.names.iter().find(|(given, _)| *given == long).map(|(_, name)| name)
    }

    /// The same, of an option that must be there.
    pub(crate) fn needed_name(&self, long: &str, what: &str) -> Result<&NameBuf, Stop> {
        self.name(long).ok_or_else(|| Stop::Usage(format!("you must specify {what}")))
    }
}

/// The options in the line's order; a word that is none is the operand.
fn read(command: &'static Command, words: &[String]) -> Result<Vec<Given>, String> {
    let mut given = Vec::new();
    let mut operands = Vec::new();
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if word == "--" {
            operands.extend(words.by_ref());
        } else if let Some(long) = word.strip_prefix("--") {
            given.push(read_long(command, long, &mut words)?);
        } else if word.len() > 1 && word.starts_with('-') {
            read_short(command, word, &mut words, &mut given)?;
        } else {
            operands.push(word);
        }
    }
    let Some((long, _)) = command.operand else { return Ok(given) };
    if operands.len() > 1 {
        return Err("too many positional options have been specified on the command line".to_owned());
    }
    let choice = command.options.iter().find(|choice| choice.long == long);
    given.extend(choice.into_iter().zip(operands).map(|(choice, word)| (choice, word.to_owned())));
    Ok(given)
}

fn read_long<'a>(
    command: &'static Command,
    word: &str,
    rest: &mut impl Iterator<Item = &'a str>,
) -> Result<Given, String> {
    let (long, value) = word.split_once('=').map_or((word, None), |(long, value)| (long, Some(value)));
    let choice = find_long(command, long)?.ok_or_else(|| format!("unrecognised option '--{word}'"))?;
    let value = match (choice.kind.takes_value(), value) {
        (false, None) => String::new(),
        (false, Some(_)) => return Err(format!("option '--{}' does not take any arguments", choice.long)),
        (true, Some("")) => {
            return Err(format!(
                "the argument for option '--{}' should follow immediately after the equal sign",
                choice.long
            ));
        }
        (true, Some(value)) => value.to_owned(),
        (true, None) => next_value(command, choice, rest)?,
    };
    Ok((choice, value))
}

/// An exact name, or the beginning of one.
fn find_long(command: &'static Command, long: &str) -> Result<Option<&'static Choice>, String> {
    if let Some(choice) = command.options.iter().find(|choice| choice.long == long) {
        return Ok(Some(choice));
    }
    let mut found: Vec<_> = command.options.iter().filter(|choice| choice.long.starts_with(long)).collect();
    found.sort_by_key(|choice| choice.long);
    match found[..] {
        [] => Ok(None),
        [choice] => Ok(Some(choice)),
        [ref some @ .., last] => {
            let some: String = some.iter().map(|choice| format!("'--{}', ", choice.long)).collect();
            Err(format!("option '--{long}' is ambiguous and matches {some}and '--{}'", last.long))
        }
    }
}

/// One word with one or more short options; the last may have its value in the same word.
fn read_short<'a>(
    command: &'static Command,
    word: &str,
    rest: &mut impl Iterator<Item = &'a str>,
    given: &mut Vec<Given>,
) -> Result<(), String> {
    let mut letters = word[1..].chars();
    while let Some(letter) = letters.next() {
        let choice = find_short(command, letter).ok_or_else(|| format!("unrecognised option '{word}'"))?;
        if !choice.kind.takes_value() {
            given.push((choice, String::new()));
            continue;
        }
        let value = match letters.as_str() {
            "" => next_value(command, choice, rest)?,
            value => value.to_owned(),
        };
        given.push((choice, value));
        break;
    }
    Ok(())
}

fn find_short(command: &'static Command, letter: char) -> Option<&'static Choice> {
    command.options.iter().find(|choice| choice.short == Some(letter))
}

/// The next word, unless it is a short option of this command.
fn next_value<'a>(
    command: &'static Command,
    choice: &Choice,
    rest: &mut impl Iterator<Item = &'a str>,
) -> Result<String, String> {
    let is_option = |word: &str| {
        let mut letters = word.strip_prefix('-').unwrap_or_default().chars();
        letters.next().is_some_and(|letter| letters.as_str().is_empty() && find_short(command, letter).is_some())
    };
    match rest.next() {
        Some(word) if !is_option(word) => Ok(word.to_owned()),
        _ => Err(format!("the required argument for option '--{}' is missing", choice.long)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::find;

    fn parse(line: &str) -> Result<Arguments, String> {
        let words: Vec<String> = line.split(' ').map(|word| word.replace('_', " ")).collect();
        Arguments::parse(find(&words[0]).unwrap(), &words[1..])
    }

    #[test]
    fn values_may_stand_in_the_word_or_after_it() {
        for line in ["export -P pw /a", "export -Ppw /a", "export --password=pw /a", "export --pass pw -- /a"] {
            let arguments = parse(line).unwrap();
            assert_eq!(arguments.text("password"), Some("pw"), "{line}");
            assert_eq!(arguments.name("name").unwrap().to_string(), "/a", "{line}");
        }
        let arguments = parse("get-default -kqi a").unwrap();
        assert!(["default-key", "quiet"].iter().all(|long| arguments.is_set(long)));
        assert_eq!(arguments.name("identity").unwrap().to_string(), "/a");
        assert_eq!(parse("list -vv --verbose").unwrap().count("verbose"), 3);
        assert_eq!(parse("cert-gen -I a_b -I c_d").unwrap().texts("info").collect::<Vec<_>>(), ["a b", "c d"]);
        assert_eq!(parse("cert-install -").unwrap().text("cert-file"), Some("-"));
    }

    #[test]
    fn lines_that_make_no_sense() {
        for (line, message) in [
            ("list -kx", "unrecognised option '-kx'"),
            ("list --all=1", "unrecognised option '--all=1'"),
            ("list -cc", "option '--cert' cannot be specified more than once"),
            ("key-gen /a -i /b", "option '--identity' cannot be specified more than once"),
            ("key-gen -t xx", "the argument ('xx') for option '--type' is invalid"),
            ("get-default -i -k", "the required argument for option '--identity' is missing"),
            ("delete a b", "too many positional options have been specified on the command line"),
            ("key-gen --key 1", "option '--key' is ambiguous and matches '--keyid', and '--keyid-type'"),
        ] {
            assert_eq!(parse(line).unwrap_err(), message, "{line}");
        }
    }
}
