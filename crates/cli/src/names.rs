//! The names that scripts type: which program does this binary replace, if it is called through a link of that name?
//!
//! Everything after the link's name belongs to that program. So the words of a program that reads its own command
//! lines (nfdc, ndnsec, ndnping) pass here as they are, `--` and all; only the words of `nfd` are read as `namewire`
//! reads them.

use crate::{Cli, Command, typed};
use namewire_ndn_tools::Program;
use namewire_tools::Global;
use std::{ffi::OsString, path::Path, process::ExitCode};

/// Makes a command of the link's name and of the words after it.
type Make = fn(&str, Vec<String>) -> Command;

/// Programs that read their own command lines. A name that ends with `-` stands for all names that begin with it.
const PROGRAMS: &[(&str, Make)] = &[
    (namewire_nfdc::LINK_NAME, |_, words| Command::Nfdc { words }),
    (namewire_ndnsec::LINK_NAME, |_, words| Command::Ndnsec { words }),
    ("ndnsec-", |name, words| Command::Ndnsec { words: ndnsec_words(name, words) }),
];

/// Programs whose command lines are those of a command of `namewire`.
const COMMANDS: &[(&str, &str)] = &[("nfd", "nfd")];

/// All names, for links.
pub(crate) fn all() -> impl Iterator<Item = String> {
    let own = PROGRAMS.iter().map(|(name, _)| *name).filter(|name| !name.ends_with('-'));
    let own = own
        .chain(COMMANDS.iter().map(|(name, _)| *name))
        .chain(Program::NAMES.iter().map(|(name, _)| *name))
        .map(str::to_owned);
    own.chain(namewire_ndnsec::commands().map(|command| format!("{}-{command}", namewire_ndnsec::LINK_NAME)))
}

/// The program of ndn-tools that is called by the first of these words. It is no command: its usage text has that word.
pub(crate) fn of_ndn_tools(words: &[OsString]) -> Option<Program> {
    Program::named(Path::new(words.first()?).file_name()?.to_str()?)
}

/// Reads a command line, whose first word is the name by which this was called.
pub(crate) fn of_link(mut words: Vec<OsString>) -> Result<Cli, clap::Error> {
    let name = words.first().and_then(|path| Path::new(path).file_name()).unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    if let Some((_, make)) =
        PROGRAMS.iter().find(|(row, _)| *row == name || (row.ends_with('-') && name.starts_with(row)))
    {
        let words = words.into_iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        return Ok(Cli { global: Global::default(), command: make(&name, words) });
    }
    if let Some((_, command)) = COMMANDS.iter().find(|(row, _)| *row == name) {
        words.insert(1, command.into());
    }
    typed(words)
}

/// `ndnsec-list -k` means `ndnsec list -k`.
fn ndnsec_words(name: &str, mut words: Vec<String>) -> Vec<String> {
    words.insert(0, name.strip_prefix("ndnsec-").unwrap_or(name).to_owned());
    words
}

/// Runs a line of ndnsec, which takes none of the general options: it talks to no router.
pub(crate) fn ndnsec(global: &Global, words: &[String]) -> ExitCode {
    match global.refuse_options_of_tools() {
        Ok(()) => namewire_ndnsec::execute(words).into(),
        Err(failure) => failure.report(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(line: &str) -> Command {
        of_link(line.split(' ').map(OsString::from).collect()).unwrap().command
    }

    #[test]
    fn a_link_passes_all_its_words() {
        assert!(matches!(command("/usr/bin/nfdc -- --json"), Command::Nfdc { words } if words == ["--", "--json"]));
        assert!(matches!(command("ndnsec --help"), Command::Ndnsec { words } if words == ["--help"]));
        assert!(matches!(command("bin/ndnsec-list -k"), Command::Ndnsec { words } if words == ["list", "-k"]));
        assert!(matches!(command("ndnsec-fly"), Command::Ndnsec { words } if words == ["fly"]));
        assert_eq!(of_ndn_tools(&["/usr/bin/ndnpeek".into(), "-p".into()]), Some(Program::Peek));
        assert_eq!(of_ndn_tools(&["namewire".into(), "ndnpeek".into()]), None);
        assert!(matches!(command("/usr/bin/nfd -V"), Command::Nfd(_)));
        assert!(matches!(command("namewire ndnsec cert-install -"), Command::Ndnsec { words } if words.len() == 2));
    }
}
