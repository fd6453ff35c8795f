//! `nfdc help`: the list of commands, and the arguments of some. The text is made from the table of commands, so the
//! two cannot differ.

use crate::grammar::{Argument, COMMANDS, Command, Kind};
use std::fmt::Write;

/// Words that ask for help wherever they stand, if the command makes no sense otherwise.
const WORDS: [&str; 3] = ["help", "--help", "-h"];

/// The help asked for; `None` if none was.
pub(crate) fn of(words: &[String]) -> Option<String> {
    let is_word = |word: &String| WORDS.contains(&word.as_str());
    let place = words.iter().position(is_word)?;
    let mut rest = words.iter().enumerate().filter(|(index, _)| *index != place).map(|(_, word)| word.as_str());
    let (noun, verb) = (rest.next().unwrap_or_default(), rest.next().unwrap_or_default());
    Some(if noun.is_empty() { list() } else { usage(noun, verb) })
}

/// All commands.
pub(crate) fn list() -> String {
    let mut text = String::from(
        "usage: nfdc COMMAND [ARGUMENT]...\n       nfdc -f|--batch FILE      run the commands of a file (- is standard input)\n       \
         nfdc -V|--version\n       nfdc -h|--help|help [COMMAND]\n\nCommands (a verb in brackets may be left out):\n",
    );
    for command in COMMANDS {
        let noun_and_verb = noun_and_verb(command);
        let written = writeln!(text, "  {noun_and_verb:<18} {}", command.summary);
        debug_assert!(written.is_ok(), "a String takes everything");
    }
    text
}

fn noun_and_verb(command: &Command) -> String {
    if command.is_default {
        format!("{} [{}]", command.noun, command.verb)
    } else {
        format!("{} {}", command.noun, command.verb)
    }
}

/// The commands of a noun, or the one of a noun and a verb, with their arguments.
fn usage(noun: &str, verb: &str) -> String {
    let matching = |command: &&Command| command.noun == noun && (verb.is_empty() || command.verb == verb);
    let mut lines = COMMANDS.iter().filter(matching).peekable();
    if lines.peek().is_none() {
        return format!("There is no command {noun} {verb}\n\n{}", list());
    }
    let line = |command: &Command| {
        let arguments: String = command.arguments.iter().map(|argument| format!(" {}", one(argument))).collect();
        format!("nfdc {}{arguments}\n    {}\n", noun_and_verb(command), command.summary)
    };
    lines.map(line).collect()
}

/// `[[persistency] PERSISTENCY]`: what is in brackets may be left out.
fn one(argument: &Argument) -> String {
    let value = argument.placeholder.to_uppercase();
    let text = match argument.kind {
        Kind::Switch => argument.name.to_owned(),
        _ if argument.is_positional => format!("[{}] {value}", argument.name),
        _ => format!("{} {value}", argument.name),
    };
    if argument.is_required { text } else { format!("[{text}]") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Option<String> {
        of(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn help_is_asked_for_anywhere() {
        assert_eq!(asked("face fly"), None);
        assert_eq!(asked("help"), Some(list()));
        assert_eq!(asked("-h"), Some(list()));
        let create = asked("help face create").unwrap();
        assert_eq!(asked("face create --help").unwrap(), create);
        assert!(
            create.starts_with("nfdc face create [remote] URI [[persistency] PERSISTENCY] [local URI]"),
            "{create}"
        );
        assert!(asked("route help").unwrap().contains("nfdc route add [prefix] NAME [nexthop] FACE [origin ORIGIN]"));
        assert!(list().contains("  strategy unset     "));
    }
}
