//! Command lines as ndn-tools reads them: Boost's rules and Boost's words.
//!
//! `clap` reads them. This file says its errors in the words that scripts know, and prints the options in the layout
//! that they know: `-c [ --count ] arg (=1)  what it is for`.

use clap::{
    Arg, Command,
    error::{ContextKind, ContextValue, ErrorKind},
};
use std::fmt::Write;

/// Options that every program has.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Common {
    /// print this help and exit
    #[arg(short, long)]
    pub(crate) help: bool,
    /// print the version and exit
    #[arg(short = 'V', long)]
    pub(crate) version: bool,
}

/// Reads the words after the program's name. The error is for standard error, behind `ERROR: `.
pub(crate) fn parse<T: clap::Args>(words: &[String]) -> Result<T, String> {
    let command = command::<T>();
    let matches = command.clone().try_get_matches_from(words).map_err(|error| in_words(&command, &error, words))?;
    T::from_arg_matches(&matches).map_err(|error| in_words(&command, &error, words))
}

fn command<T: clap::Args>() -> Command {
    let command = Command::new("ndn-tools")
        .no_binary_name(true)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .infer_long_args(true);
    let takes_negative = |arg: Arg| {
        let takes_values = arg.get_action().takes_values();
        if takes_values { arg.allow_negative_numbers(true) } else { arg }
    };
    T::augment_args(command).mut_args(takes_negative)
}

/// The options under their headings.
pub(crate) fn options<T: clap::Args>() -> String {
    let command = command::<T>();
    let options: Vec<&Arg> = command.get_arguments().filter(|arg| arg.get_long().is_some()).collect();
    let width = options.iter().map(|arg| form(arg).len()).max().unwrap_or_default();
    let mut text = String::new();
    let mut heading = None;
    for arg in options {
        let its = arg.get_help_heading().unwrap_or("Options");
        if heading != Some(its) {
            let gap = if heading.is_some() { "\n" } else { "" };
            put(&mut text, format_args!("{gap}{its}:\n"));
            heading = Some(its);
        }
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        put(&mut text, format_args!("  {:<width$} {help}\n", form(arg)));
    }
    text
}

fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    let written = text.write_fmt(line);
    debug_assert!(written.is_ok(), "a String takes everything");
}

/// `-c [ --count ] arg (=1)`.
fn form(arg: &Arg) -> String {
    let long = arg.get_long().unwrap_or_default();
    let name = match arg.get_short() {
        Some(short) => format!("-{short} [ --{long} ]"),
        None => format!("--{long}"),
    };
    let default = arg.get_default_values().first().map(|value| value.to_string_lossy().into_owned());
    match default {
        _ if !arg.get_action().takes_values() => name,
        Some(value) => format!("{name} arg (={value})"),
        None => format!("{name} arg"),
    }
}

fn in_words(command: &Command, error: &clap::Error, words: &[String]) -> String {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.first().cloned().unwrap_or_default(),
        _ => String::new(),
    };
    let argument = text(ContextKind::InvalidArg);
    let option = || format!("option '{}'", long_of(command, &argument));
    match error.kind() {
        ErrorKind::UnknownArgument if argument.starts_with("--") => unknown_long(command, &argument),
        ErrorKind::UnknownArgument if argument.starts_with('-') => {
            // Boost names the whole word: -vz.
            let letter = argument.trim_start_matches('-');
            let holds = |word: &&String| word.starts_with('-') && !word.starts_with("--") && word.contains(letter);
            format!("unrecognised option '{}'", words.iter().find(holds).unwrap_or(&argument))
        }
        // A second name.
        ErrorKind::UnknownArgument => {
            let name = command.get_positionals().next().map(|arg| arg.get_id().to_string());
            format!("option '--{}' cannot be specified more than once", name.unwrap_or_default())
        }
        ErrorKind::ArgumentConflict => format!("{} cannot be specified more than once", option()),
        ErrorKind::TooManyValues => format!("{} does not take any arguments", option()),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => match text(ContextKind::InvalidValue).as_str() {
            "" => format!("the required argument for {} is missing", option()),
            value => format!("the argument ('{value}') for {} is invalid", option()),
        },
        _ => error.kind().to_string(),
    }
}

/// `--count` for `--count <COUNT>`, `-c <COUNT>` and the like.
fn long_of(command: &Command, argument: &str) -> String {
    let word = argument.split([' ', '=']).next().unwrap_or_default();
    let has_this_letter = |arg: &&Arg| arg.get_short().is_some_and(|short| word == format!("-{short}"));
    let long = command.get_arguments().find(has_this_letter).and_then(Arg::get_long);
    long.map_or_else(|| word.to_owned(), |long| format!("--{long}"))
}

/// Unknown, or the beginning of several.
fn unknown_long(command: &Command, argument: &str) -> String {
    let begun = argument.split('=').next().unwrap_or_default().trim_start_matches("--");
    let longs = command.get_arguments().filter_map(Arg::get_long);
    let mut matching: Vec<String> =
        longs.filter(|long| long.starts_with(begun)).map(|long| format!("'--{long}'")).collect();
    matching.sort_unstable();
    match matching.pop() {
        Some(last) if !matching.is_empty() && !begun.is_empty() => {
            format!("option '--{begun}' is ambiguous and matches {}, and {last}", matching.join(", "))
        }
        _ => format!("unrecognised option '{argument}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Args)]
    struct Sample {
        #[command(flatten)]
        common: Common,
        /// how many
        #[arg(short, long, default_value_t = 1)]
        count: i64,
        /// say more
        #[arg(short, long)]
        verbose: bool,
        name: Option<String>,
    }

    fn parsed(line: &str) -> Result<Sample, String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn lines_are_read_by_boosts_rules() {
        let sample = parsed("/a -c5 -v").unwrap();
        assert_eq!((sample.name.as_deref(), sample.count, sample.verbose), (Some("/a"), 5, true));
        assert_eq!(parsed("--cou -5 /a").unwrap().count, -5, "a number may be negative, and an option short");
        assert!(parsed("-hV").is_ok_and(|sample| sample.common.help && sample.common.version));
    }

    #[test]
    fn errors_have_boosts_words() {
        let error = |line| parsed(line).unwrap_err();
        assert_eq!(error("--foo"), "unrecognised option '--foo'");
        assert_eq!(error("-vz"), "unrecognised option '-vz'");
        assert_eq!(error("-c"), "the required argument for option '--count' is missing");
        assert_eq!(error("-c x"), "the argument ('x') for option '--count' is invalid");
        assert_eq!(error("-c1 -c2"), "option '--count' cannot be specified more than once");
        assert_eq!(error("-vv"), "option '--verbose' cannot be specified more than once");
        assert_eq!(error("/a /b"), "option '--name' cannot be specified more than once");
        assert_eq!(error("--verbose=3"), "option '--verbose' does not take any arguments");
        assert_eq!(error("--ver"), "option '--ver' is ambiguous and matches '--verbose', and '--version'");
    }

    #[test]
    fn options_have_boosts_layout() {
        let text = options::<Sample>();
        assert!(text.starts_with("Options:\n  -h [ --help ]           print this help and exit\n"), "{text}");
        assert!(text.contains("\n  -c [ --count ] arg (=1) how many\n"), "{text}");
    }
}
