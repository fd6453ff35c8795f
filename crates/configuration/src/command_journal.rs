//! Command journal: a file of the accepted commands that keys signed. So the router refuses a copy of such a command
//! after a restart.
//!
//! The file (`FILE.commands`) is in the folder of the state file and has one line for each command:
//!
//! ```text
//!   namewire-commands 1 BOOT
//!   TIME NONCE KEY
//! ```
//!
//! The time is in milliseconds since 1970, the nonce in hexadecimal digits. The router writes a line when it has
//! accepted the command, before the command takes effect. It does not flush the line to the disk: written bytes survive
//! the end of the process, but not a crash of the machine. So the first line names the boot of the machine. If the file
//! is from another boot, missing or damaged, it may lack commands. Then the router refuses commands signed before its
//! start.
//!
//! If the router cannot write a line (a full disk), the file lacks a command, so the router removes it. The router
//! writes the whole file again when it accepts the next command, at most every [`RETRY_PAUSE_NS`].
//!
//! Limits: [`FILE_BYTES_MAX`]. Each write of the whole file has the commands that the router remembers. When the file
//! has more than twice as many lines, and [`LINES_LEAST`] more, the router writes the whole file again.

use crate::input_file;
use namewire_management::{PASSED_NONCE_BYTES, PassedCommand};
use std::{
    fmt::Write as _,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// Largest file that is read.
const FILE_BYTES_MAX: u64 = 64 << 20;
const LINES_LEAST: usize = 4096;
const RETRY_PAUSE_NS: u64 = 1_000_000_000;
const FORMAT: &str = "namewire-commands 1";

/// See the module documentation.
pub struct CommandJournal {
    path: PathBuf,
    file: Option<File>,
    lines: usize,
    /// Lines that call for a new file.
    lines_max: usize,
    retry_ns: u64,
    /// How often it could not be written.
    pub failures: u64,
}

/// What a file has of the time before the start.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// Those that it has.
    pub commands: Vec<PassedCommand>,
    /// No command is missing.
    pub are_all: bool,
}

impl CommandJournal {
    /// A journal that writes to this file. Nothing is written yet.
    pub fn new(path: PathBuf) -> Self {
        CommandJournal { path, file: None, lines: 0, lines_max: 0, retry_ns: 0, failures: 0 }
    }

    /// What the file has.
    pub fn read(&self) -> Before {
        match input_file::read(&self.path, FILE_BYTES_MAX).map(String::from_utf8) {
            Ok(Ok(text)) => parse(&text, &boot()),
            _ => Before::default(),
        }
    }

    /// Adds a command. False if the whole file should be written.
    pub fn add(&mut self, command: &PassedCommand) -> bool {
        let Some(file) = &mut self.file else { return false };
        if file.write_all(line(command).as_bytes()).is_err() {
            self.give_up();
            return false;
        }
        self.lines += 1;
        self.lines <= self.lines_max
    }

    /// Replaces the file by one with these commands, unless that failed less than [`RETRY_PAUSE_NS`] ago.
    pub fn write(&mut self, now_ns: u64, commands: &[PassedCommand]) {
        if now_ns < self.retry_ns {
            return;
        }
        match write_new(&self.path, commands) {
            Ok(file) => {
                (self.file, self.retry_ns) = (Some(file), 0);
                (self.lines, self.lines_max) = (commands.len(), 2 * commands.len() + LINES_LEAST);
            }
            Err(error) => {
                if self.failures == 0 {
                    let path = self.path.display();
                    tracing::warn!(
                        target: "management",
                        "cannot write {path}: {error}; after a restart, commands signed before it are refused"
                    );
                }
                self.retry_ns = now_ns + RETRY_PAUSE_NS;
                self.give_up();
            }
        }
    }

    fn give_up(&mut self) {
        self.failures += 1;
        self.file = None;
        let _ = fs::remove_file(&self.path); // it may not be there
    }
}

/// Writes a file beside the old one, and renames it.
fn write_new(path: &Path, commands: &[PassedCommand]) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let beside = PathBuf::from(name);
    // A reader of this file would learn who commands the router.
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    let mut text = format!("{FORMAT} {}\n", boot());
    commands.iter().for_each(|command| text.push_str(&line(command)));
    let written = file.write_all(text.as_bytes()).and_then(|()| fs::rename(&beside, path));
    if let Err(error) = written {
        let _ = fs::remove_file(&beside); // on a full disk it takes room that others need
        return Err(error);
    }
    Ok(file)
}

/// The number of the machine's boot; empty if the system does not say it.
fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

fn line(PassedCommand { key, time_ms, nonce }: &PassedCommand) -> String {
    let mut line = format!("{time_ms} ");
    for byte in nonce {
        let _ = write!(line, "{byte:02x}"); // a String takes all
    }
    line + &format!(" {key}\n")
}

fn parse(text: &str, boot: &str) -> Before {
    let Some((head, lines)) = text.split_once('\n') else { return Before::default() };
    let is_of_this_boot = !boot.is_empty() && head.strip_prefix(FORMAT).map(str::trim) == Some(boot);
    // A line without an end was cut.
    let is_whole = lines.is_empty() || lines.ends_with('\n');
    let commands: Vec<PassedCommand> = lines.lines().filter_map(parse_line).collect();
    let are_all = is_of_this_boot && is_whole && commands.len() == lines.lines().count();
    Before { commands, are_all }
}

fn parse_line(line: &str) -> Option<PassedCommand> {
    let mut parts = line.splitn(3, ' ');
    let (time_ms, digits, key) = (parts.next()?.parse().ok()?, parts.next()?, parts.next()?.parse().ok()?);
    let mut nonce = [0; PASSED_NONCE_BYTES];
    if digits.len() != 2 * nonce.len() || !digits.is_ascii() {
        return None;
    }
    for (byte, at) in nonce.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&digits[at..at + 2], 16).ok()?;
    }
    Some(PassedCommand { key, time_ms, nonce })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(number: u8) -> PassedCommand {
        let key = format!("/operator/KEY/{number}%20x").parse().expect("a name");
        PassedCommand { key, time_ms: 1_800_000_000_000 + u64::from(number), nonce: [number; PASSED_NONCE_BYTES] }
    }

    #[test]
    fn what_was_added_is_there_at_the_next_start() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("made/for/it/state.toml.commands");
        let mut journal = CommandJournal::new(path.clone());
        assert_eq!(journal.read(), Before::default(), "without a file, commands may be missing");
        assert!(!journal.add(&command(1)), "the file is to be written");
        journal.write(0, &[command(1)]);
        assert!(journal.add(&command(2)));
        let whole = Before { commands: vec![command(1), command(2)], are_all: true };
        assert_eq!(CommandJournal::new(path.clone()).read(), whole);
        for number in 0..LINES_LEAST {
            assert!(journal.add(&command(number as u8)), "{number}");
        }
        assert!(!journal.add(&command(3)), "it has grown");

        let text = format!("{FORMAT} {}\n{}", boot(), line(&command(1)));
        assert!(parse(&text, &boot()).are_all);
        let cut = &text[..text.len() - 3];
        for (text, boot) in [(text.as_str(), "another boot"), (text.as_str(), ""), (cut, &boot()), ("", &boot())] {
            assert!(!parse(text, boot).are_all, "{text}");
        }
        for byte in (text.len() - 50..text.len() - 1).step_by(7) {
            let mut damaged = text.clone().into_bytes();
            damaged[byte] = 0xff;
            fs::write(&path, damaged).unwrap();
            assert_eq!(journal.read(), Before::default());
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_is_removed_and_written_again_later() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.toml.commands");
        let in_the_way = directory.path().join("state.toml.commands.new");
        let mut journal = CommandJournal::new(path.clone());
        journal.write(0, &[command(1)]);
        fs::create_dir(&in_the_way).unwrap();
        journal.write(0, &[command(1), command(2)]);
        assert!(!path.exists() && journal.failures == 1 && !journal.add(&command(3)));
        fs::remove_dir(&in_the_way).unwrap();
        journal.write(RETRY_PAUSE_NS - 1, &[command(1), command(2), command(3)]);
        assert!(!path.exists(), "there are pauses");
        journal.write(RETRY_PAUSE_NS, &[command(1), command(2), command(3)]);
        assert_eq!(journal.read().commands.len(), 3);
    }
}
