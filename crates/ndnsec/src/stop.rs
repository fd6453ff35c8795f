//! Why a command ends early, and with which exit code.

use namewire_security::key_chain::{KeyChainError, PibError};
use std::io;

/// Exit code of a command that failed.
pub(crate) const FAILED: u8 = 1;
/// Exit code of a command line that makes no sense.
pub(crate) const USAGE: u8 = 2;

/// The end of a command.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It failed.
    Failed(String),
    /// The key chain does not have what the command names.
    Missing(String),
    /// Its options do not fit together.
    Usage(String),
    /// Its options ask for nothing. The original says nothing either.
    Silent,
    /// The text explains it without the word ERROR.
    Explained(String),
}

impl Stop {
    /// Prints the reason; gives the exit code.
    pub(crate) fn report(self) -> u8 {
        let (message, code) = match self {
            Stop::Failed(message) | Stop::Missing(message) => (format!("ERROR: {message}"), FAILED),
            Stop::Usage(message) => (format!("ERROR: {message}"), USAGE),
            Stop::Explained(message) => (message, USAGE),
            Stop::Silent => return USAGE,
        };
        eprintln!("{message}");
        code
    }

    pub(crate) fn failed(message: impl Into<String>) -> Stop {
        Stop::Failed(message.into())
    }

    pub(crate) fn usage(message: impl Into<String>) -> Stop {
        Stop::Usage(message.into())
    }
}

impl From<KeyChainError> for Stop {
    fn from(error: KeyChainError) -> Self {
        Stop::Failed(error.to_string())
    }
}

impl From<PibError> for Stop {
    fn from(error: PibError) -> Self {
        Stop::Failed(error.to_string())
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Stop::Failed(error.to_string())
    }
}
