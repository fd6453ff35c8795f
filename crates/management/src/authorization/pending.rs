//! Commands that wait for a certificate to be fetched.
//!
//! Each command asks once for the certificate that its chain lacks. When the certificate arrives, the command is
//! checked again from the start, and may then lack the next certificate.
//!
//! Limits: at most [`MAX_PENDING`] commands wait. They are a pool ([`namewire_shares::Pool`]), so no holder keeps the
//! others out. A command waits [`FETCH_LIFETIME_MS`] for each certificate, and for as many
//! certificates as a chain may have.

use namewire_packet::{FaceId, InterestBuilder, Name, NameBuf, lp::PitToken};
use namewire_security::trust::MAX_CHAIN;
use namewire_shares::{Groups, HolderId, Pool, PoolConfig, PoolReader};

/// Most commands that wait.
pub(crate) const MAX_PENDING: usize = 64;

/// Longest wait for a certificate.
pub(crate) const FETCH_LIFETIME_MS: u64 = 2000;

/// A waiting command.
#[derive(Clone, Debug)]
pub(crate) struct PendingCommand {
    pub(crate) interest: Vec<u8>,
    pub(crate) incoming: FaceId,
    pub(crate) holder: HolderId,
    pub(crate) pit_token: Option<PitToken>,
    /// The KeyLocator whose certificate is being fetched.
    pub(crate) certificate: NameBuf,
    /// Certificates fetched for it, including this one.
    pub(crate) fetches: usize,
    pub(crate) deadline_ns: u64,
}

#[derive(Debug)]
pub(crate) struct PendingCommands {
    commands: Vec<PendingCommand>,
    pool: Pool,
}

impl PendingCommands {
    pub(crate) fn new(groups: &Groups) -> Self {
        let config = PoolConfig {
            name: "waiting-commands",
            capacity: MAX_PENDING as u64,
            share_percent: 50,
            management_reserve: 0,
            local_reserve: MAX_PENDING as u64 / 8,
        };
        PendingCommands { commands: Vec::new(), pool: Pool::new(config, groups) }
    }

    /// Whose commands wait, for other threads.
    pub(crate) fn pool(&self) -> PoolReader {
        self.pool.reader()
    }

    /// Lets a command wait. `Some` is an Interest to express for it. A command that cannot wait is returned as an
    /// error.
    pub(crate) fn add(&mut self, command: PendingCommand) -> Result<Option<Vec<u8>>, PendingCommand> {
        if command.fetches > MAX_CHAIN || self.pool.try_take(command.holder, 1).is_err() {
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
        self.take(|command| command.certificate.as_name().is_prefix_of(&certificate))
    }

    /// Takes the commands whose certificate did not come in time.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Vec<PendingCommand> {
        self.take(|command| command.deadline_ns <= now_ns)
    }

    fn take(&mut self, mut goes: impl FnMut(&PendingCommand) -> bool) -> Vec<PendingCommand> {
        let taken: Vec<PendingCommand> = self.commands.extract_if(.., |command| goes(command)).collect();
        for command in &taken {
            self.pool.give_back(command.holder, 1);
        }
        taken
    }

    /// When [`PendingCommands::take_due`] has commands.
    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        self.commands.iter().map(|command| command.deadline_ns).min()
    }
}
