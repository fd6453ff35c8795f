//! The programs of ndn-tools, for scripts written for them.
//!
//! Each takes the command lines of ndn-tools 24.07, prints its texts and ends with its exit codes. It runs when
//! `namewire` is called through a link with its name, and talks to Namewire, NFD or another forwarder.
//! `docs/ndn-tools.md` lists the differences on purpose.
//!
//! | question | file |
//! | --- | --- |
//! | which programs are there? | [`Program`], here |
//! | how is a command line read, and how are options listed? | `command_line` |
//! | how does a program connect and sign? | `environment` |
//! | how do numbers and packets look? | `text` |
//! | what does a program do? | a file per program: `ping`, `ping_server`, `peek`, `poke`, `get`, `serve`, `dump` |
//!
//! The commands of `namewire` do some of the same work with other options. [`pinging`] and [`answers`] hold what both
//! share.

pub mod answers;
mod command_line;
mod dump;
mod environment;
mod get;
mod peek;
mod ping;
mod ping_server;
pub mod pinging;
mod poke;
mod serve;
mod text;

use namewire_printing::output::write_out;

/// What `-V` prints behind the program's name.
const VERSION: &str = concat!("namewire-", env!("CARGO_PKG_VERSION"));

/// Something failed after the command line was read.
const FAILED: u8 = 1;
/// The command line makes no sense.
const USAGE: u8 = 2;

/// A program of ndn-tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `ndnping`.
    Ping,
    /// `ndnpingserver`.
    PingServer,
    /// `ndnpeek`.
    Peek,
    /// `ndnpoke`.
    Poke,
    /// `ndncatchunks`, lately `ndnget`.
    Get,
    /// `ndnputchunks`, lately `ndnserve`.
    Serve,
    /// `ndndump`.
    Dump,
}

impl Program {
    /// Every program, by the name of its link.
    pub const NAMES: [(&str, Program); 9] = [
        ("ndnping", Program::Ping),
        ("ndnpingserver", Program::PingServer),
        ("ndnpeek", Program::Peek),
        ("ndnpoke", Program::Poke),
        ("ndncatchunks", Program::Get),
        ("ndnget", Program::Get),
        ("ndnputchunks", Program::Serve),
        ("ndnserve", Program::Serve),
        ("ndndump", Program::Dump),
    ];

    /// The program of this name.
    pub fn named(name: &str) -> Option<Program> {
        Program::NAMES.iter().find(|(known, _)| *known == name).map(|(_, program)| *program)
    }

    /// Runs it, and gives its exit code. `called` is the word by which it was called.
    pub async fn execute(self, called: String, words: Vec<String>) -> u8 {
        let call = Call { called, words };
        let ended = match self {
            Program::Ping => ping::run(&call).await,
            Program::PingServer => ping_server::run(&call).await,
            Program::Peek => peek::run(&call).await,
            Program::Poke => poke::run(&call).await,
            Program::Get => get::run(&call).await,
            Program::Serve => serve::run(&call).await,
            Program::Dump => dump::run(&call),
        };
        match ended {
            Ok(code) => code,
            Err(stop) => {
                eprint!("{}", stop.message);
                stop.code
            }
        }
    }
}

/// A command line.
struct Call {
    called: String,
    words: Vec<String>,
}

impl Call {
    /// The name by which it was called.
    fn program(&self) -> &str {
        self.called.rsplit('/').next().unwrap_or_default()
    }
}

/// Why a program ends early: what goes to standard error, and the exit code.
#[derive(Debug)]
struct Stop {
    code: u8,
    message: String,
}

impl Stop {
    fn error(code: u8, error: impl std::fmt::Display) -> Self {
        Stop { code, message: format!("ERROR: {error}\n") }
    }

    /// The command line makes no sense.
    fn usage(error: impl std::fmt::Display) -> Self {
        Stop::error(USAGE, error)
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Stop::error(FAILED, error)
    }
}

/// Prints the version of the program with this name.
fn print_version(name: &str) -> Result<u8, Stop> {
    write_out(format!("{name} {VERSION}\n").as_bytes())?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_names_of_programs_are_programs() {
        assert_eq!(Program::named("ndnping"), Some(Program::Ping));
        assert_eq!(Program::named("ndn"), None);
    }
}
