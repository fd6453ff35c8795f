//! `namewire completions`: a script that lets a shell complete commands, options and values.
//!
//! The scripts for Bash, Zsh and Fish pass the line to `namewire complete`, a hidden command, which knows commands and
//! options, and asks the running router for faces, prefixes and strategies ([`VALUES`]). For other shells there are
//! scripts that know commands and options only.
//!
//! `namewire complete` prints a candidate in each line. It always ends with 0 and says no error.

use crate::command_line;
use clap_complete::{
    Shell,
    engine::{ArgValueCompleter, CompletionCandidate, complete},
};
use namewire_overview::candidates::Candidates::{
    self, ChoicePrefixes, FaceNumbers, Faces, FibPrefixes, RoutePrefixes, Routers, Strategies,
};
use namewire_printing::output::write_out;
use namewire_tools::Failure;
use std::{ffi::OsString, sync::Arc};

#[derive(Debug, clap::Args)]
#[command(after_help = "Bash: namewire completions bash > ~/.local/share/bash-completion/completions/namewire\n\
    Zsh:  namewire completions zsh > a file _namewire in a folder of $fpath\n\
    Fish: namewire completions fish > ~/.config/fish/completions/namewire.fish")]
pub(crate) struct Args {
    /// Shell that reads the script
    shell: Shell,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CompleteArgs {
    /// Shell that asks
    #[arg(long)]
    shell: Shell,
    /// Which word is to be completed, from 0
    #[arg(long)]
    index: usize,
    /// The line
    #[arg(last = true)]
    words: Vec<OsString>,
}

/// Which values of which arguments are asked for: the commands above the argument, and its name in the code.
const VALUES: &[(&[&str], &str, Candidates)] = &[
    (&[], "router", Routers),
    (&["router", "show"], "name", Routers),
    (&["router", "remove"], "name", Routers),
    (&["router", "default"], "name", Routers),
    (&["face", "show"], "face", Faces),
    (&["face", "destroy"], "face", Faces),
    (&["face", "update"], "face", Faces),
    (&["route", "list"], "under", RoutePrefixes),
    (&["route", "list"], "face", Faces),
    (&["route", "add"], "prefix", RoutePrefixes),
    (&["route", "add"], "next_hop", Faces),
    (&["route", "remove"], "prefix", RoutePrefixes),
    (&["route", "remove"], "next_hop", Faces),
    (&["strategy", "show"], "name", FibPrefixes),
    (&["strategy", "set"], "prefix", FibPrefixes),
    (&["strategy", "set"], "strategy", Strategies),
    (&["strategy", "unset"], "prefix", ChoicePrefixes),
    (&["cs", "erase"], "prefix", FibPrefixes),
    (&["drops"], "prefix", FibPrefixes),
    (&["drops"], "face", FaceNumbers),
    (&["trace"], "prefix", FibPrefixes),
    (&["capture"], "faces", Faces),
    (&["capture"], "prefix", FibPrefixes),
    (&["explain"], "name", FibPrefixes),
    (&["explain"], "from", FaceNumbers),
    (&["peek"], "name", FibPrefixes),
    (&["get"], "name", FibPrefixes),
    (&["ping"], "prefix", FibPrefixes),
];

pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let script = match args.shell {
        Shell::Bash => include_bytes!("completions/namewire.bash").to_vec(),
        Shell::Zsh => include_bytes!("completions/namewire.zsh").to_vec(),
        Shell::Fish => include_bytes!("completions/namewire.fish").to_vec(),
        other => {
            let mut script = Vec::new();
            clap_complete::generate(other, &mut command_line(), "namewire", &mut script);
            script
        }
    };
    write_out(&script)?;
    Ok(())
}

/// Prints the candidates for a word.
pub(crate) fn candidates(CompleteArgs { shell, index, words }: CompleteArgs) {
    let mut command = with_values(command_line(), &words);
    let folder = std::env::current_dir().ok();
    let is_option = |text: &std::ffi::OsStr| text.as_encoded_bytes().starts_with(b"-");
    let wants_options = words.get(index).is_some_and(|word| is_option(word));
    let mut found = complete(&mut command, words, index, folder.as_deref()).unwrap_or_default();
    // Who has typed nothing yet wants to see values or commands. Without these, options are better than nothing.
    if !wants_options && found.iter().any(|candidate| !is_option(candidate.get_value())) {
        found.retain(|candidate| !is_option(candidate.get_value()));
    }
    let lines: String = found.iter().map(|candidate| line(shell, candidate) + "\n").collect();
    let _ = write_out(lines.as_bytes());
}

/// The command line whose arguments know their values. `words` is the line that is completed.
fn with_values(command: clap::Command, words: &[OsString]) -> clap::Command {
    let words: Arc<[OsString]> = words.into();
    VALUES.iter().fold(command, |command, (path, argument, values)| {
        let (words, values) = (Arc::clone(&words), *values);
        let completer = ArgValueCompleter::new(move |current: &std::ffi::OsStr| {
            let found = current.to_str().map(|current| values.beginning_with(current, &words)).unwrap_or_default();
            let candidate = |found: namewire_overview::candidates::Candidate| {
                CompletionCandidate::new(found.value).help((!found.help.is_empty()).then(|| found.help.into()))
            };
            found.into_iter().map(candidate).collect()
        });
        at(command, path, argument, completer)
    })
}

fn at(command: clap::Command, path: &[&str], argument: &str, completer: ArgValueCompleter) -> clap::Command {
    match path {
        // Not `mut_arg`, which puts the argument behind the others: a positional one gets another place.
        [] => command.mut_args(|found| match found.get_id() == argument {
            true => found.add(completer.clone()),
            false => found,
        }),
        [first, rest @ ..] => command.mut_subcommand(*first, |command| at(command, rest, argument, completer)),
    }
}

/// A candidate as the shell's script reads it. No control character of a router reaches the terminal.
fn line(shell: Shell, candidate: &CompletionCandidate) -> String {
    let plain = |text: &str| text.chars().filter(|letter| !letter.is_control()).collect::<String>();
    let value = plain(&candidate.get_value().to_string_lossy());
    let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
    let help = plain(help.lines().next().unwrap_or_default());
    match shell {
        Shell::Zsh => format!("{}:{help}", value.replace('\\', "\\\\").replace(':', "\\:")),
        Shell::Fish => format!("{value}\t{help}"),
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name in [`VALUES`] that is none panics.
    #[test]
    fn each_value_belongs_to_an_argument() {
        let mut command = with_values(command_line(), &[]);
        command.build();
        for (path, argument, _) in VALUES {
            let command = path.iter().fold(&command, |command, name| command.find_subcommand(name).unwrap());
            let argument = command.get_arguments().find(|found| found.get_id() == argument).unwrap();
            assert!(argument.get::<ArgValueCompleter>().is_some(), "{path:?} {argument}");
        }
    }

    #[test]
    fn each_shell_gets_lines_that_it_can_read() {
        let candidate = CompletionCandidate::new("udp4://h:1\u{1b}").help(Some("face 7\nand more".into()));
        assert_eq!(line(Shell::Bash, &candidate), "udp4://h:1");
        assert_eq!(line(Shell::Zsh, &candidate), "udp4\\://h\\:1:face 7");
        assert_eq!(line(Shell::Fish, &candidate), "udp4://h:1\tface 7");
    }
}
