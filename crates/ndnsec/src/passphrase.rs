//! Asks for a pass phrase: at the terminal, which does not show it, or else on standard input.

use crate::stop::Stop;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
};
use zeroize::Zeroizing;

const TRIES: usize = 3;

/// Whether the user types it twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confirmation {
    Asked,
    NotAsked,
}

/// A pass phrase that is not empty.
pub(crate) fn passphrase(confirmation: Confirmation) -> Result<Zeroizing<String>, Stop> {
    for _ in 0..TRIES {
        let typed = ask("Passphrase for the private key: ")?;
        let is_same = || Ok::<_, io::Error>(confirmation == Confirmation::NotAsked || ask("Confirm: ")? == typed);
        if !typed.is_empty() && is_same()? {
            return Ok(typed);
        }
    }
    Err(Stop::failed("invalid password"))
}

fn ask(prompt: &str) -> io::Result<Zeroizing<String>> {
    match OpenOptions::new().read(true).write(true).open("/dev/tty") {
        Ok(terminal) => ask_at(&terminal, prompt),
        Err(_) => {
            eprint!("{prompt}");
            line_of(io::stdin().lock())
        }
    }
}

fn ask_at(mut terminal: &File, prompt: &str) -> io::Result<Zeroizing<String>> {
    let _quiet = Quiet::new(terminal)?;
    terminal.write_all(prompt.as_bytes())?;
    let typed = line_of(BufReader::new(terminal))?;
    terminal.write_all(b"\n")?;
    Ok(typed)
}

fn line_of(mut source: impl BufRead) -> io::Result<Zeroizing<String>> {
    let mut line = Zeroizing::new(String::new());
    source.read_line(&mut line)?;
    let length = line.trim_end_matches(['\r', '\n']).len();
    line.truncate(length);
    Ok(line)
}

/// A terminal that does not show what is typed, until this is dropped.
struct Quiet<'a> {
    terminal: &'a File,
    attributes: Termios,
}

impl<'a> Quiet<'a> {
    fn new(terminal: &'a File) -> io::Result<Self> {
        let attributes = tcgetattr(terminal)?;
        let mut quiet = attributes.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(terminal, OptionalActions::Flush, &quiet)?;
        Ok(Quiet { terminal, attributes })
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        // A terminal that is gone shows nothing.
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.attributes);
    }
}
