//! Commands that wait for a certificate to be fetched.
//!
//! Each command asks once for the certificate that its chain lacks. When the certificate arrives, the command is
//! checked again from the start, and may then lack the next certificate.
//!
//! Limits: at most [`MAX_PENDING`] commands wait. At most [`MAX_PENDING_OF_FACE`] of them are from one face, so that no
//! neighbour excludes the others. A command waits [`FETCH_LIFETIME_MS`] for each certificate, and for as many
//! certificates as a chain may have.

use super::validator::MAX_CHAIN;
use namewire_packet::{FaceId, InterestBuilder, Name, NameBuf, lp::PitToken};

/// Most commands that wait.
pub(crate) const MAX_PENDING: usize = 64;

/// Most waiting commands from one face.
pub(crate) const MAX_PENDING_OF_FACE: usize = 16;

/// Longest wait for a certificate.
pub(crate) const FETCH_LIFETIME_MS: u64 = 2000;

/// A waiting command.
#[derive(Clone, Debug)]
pub(crate) struct PendingCommand {
    pub(crate) interest: Vec<u8>,
    pub(crate) incoming: FaceId,
    pub(crate) pit_token: Option<PitToken>,
    /// The KeyLocator whose certificate is being fetched.
    pub(crate) certificate: NameBuf,
    /// Certificates fetched for it, including this one.
    pub(crate) fetches: usize,
    pub(crate) deadline_ns: u64,
}

#[derive(Debug, Default)]
pub(crate) struct PendingCommands {
    commands: Vec<PendingCommand>,
}

impl PendingCommands {
    /// Lets a command wait. `Some` is an Interest to express for it. A command that cannot wait is returned as an
    /// error.
    pub(crate) fn add(&mut self, command: PendingCommand) -> Result<Option<Vec<u8>>, PendingCommand> {
        let of_face = self.commands.iter().filter(|other| other.incoming == command.incoming).count();
        if self.commands.len() >= MAX_PENDING || of_face >= MAX_PENDING_OF_FACE || command.fetches > MAX_CHAIN {
            return Err(command);
        }
        let is_asked_for = self.commands.iter().any(|other| other.certificate == command.certificate);
        let interest = (!is_asked_for).then(|| {
            let interest = InterestBuilder::new(&command.certificate).can_be_prefix(true).must_be_fresh(true);
            interest.lifetime_ms(FETCH_LIFETIME_MS).build()
        });
        self.commands.push(command);
        Ok(interest)
    }

    /// Takes the commands that a certificate of this name lets continue.
    pub(crate) fn take_waiting_for(&mut self, certificate: Name<'_>) -> Vec<PendingCommand> {
        self.commands.extract_if(.., |command| command.certificate.as_name().is_prefix_of(&certificate)).collect()
    }

    /// Takes the commands whose certificate did not come in time.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Vec<PendingCommand> {
        self.commands.extract_if(.., |command| command.deadline_ns <= now_ns).collect()
    }

    /// When [`PendingCommands::take_due`] has commands.
    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        self.commands.iter().map(|command| command.deadline_ns).min()
    }
}
