//! Commands that wait for a certificate to be fetched.
//!
//! A command whose chain lacks a certificate asks for it twice: in the network, and at the face that sent the command,
//! because the only holder may be the commanding host itself (NFD, `rib-manager.cpp`, direct fetch). When a certificate
//! arrives, the command is checked again from the start, and may then lack the next certificate.
//!
//! The effect of an answer depends on its sender:
//!
//! | the answer comes from | it counts for | if a command fails with it |
//! | --- | --- | --- |
//! | the host that sent a waiting command | that host's commands | they are refused |
//! | any other face, or the Content Store | all | they go on to wait for their own host alone |
//!
//! So a host that answers for another host's key can only make that host wait longer. An answer ends the Interest for
//! all commands that wait for that name, so the router asks again for the others ([`MAX_REPEATS`] times).
//!
//! Limits: at most [`MAX_PENDING`] commands wait. They are a pool ([`namewire_shares::Pool`]), so no holder locks out
//! the others. A command waits [`FETCH_LIFETIME_MS`] for each certificate, and for as many certificates as a chain may
//! have. The router sends a face at most one Interest for each of its commands and certificates, and the repeats.

use crate::effect::Effect;
use namewire_packet::{FaceId, InterestBuilder, Name, NameBuf, lp::PitToken};
use namewire_security::trust::{Denial, MAX_CHAIN};
use namewire_shares::{Groups, HolderId, Pool, PoolConfig, PoolReader};

/// Most commands that wait.
pub(crate) const MAX_PENDING: usize = 64;

/// Longest wait for a certificate.
pub(crate) const FETCH_LIFETIME_MS: u64 = 2000;

/// How often a command asks again because another host answered in place of its own.
pub(crate) const MAX_REPEATS: usize = 8;

/// A waiting command.
#[derive(Clone, Debug)]
pub(crate) struct PendingCommand {
    pub(crate) interest: Vec<u8>,
    pub(crate) incoming: FaceId,
    pub(crate) holder: HolderId,
    pub(crate) pit_token: Option<PitToken>,
    pub(crate) fetching: Fetching,
    pub(crate) deadline_ns: u64,
}

/// What was fetched for a command so far, and what it waits for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fetching {
    /// The KeyLocators whose certificates were asked for, the latest last.
    pub(crate) asked: Vec<NameBuf>,
    /// Where the latest answer came from.
    pub(crate) source: Option<Source>,
    /// Why the certificates of the network do not let it pass. It waits for its own host alone.
    pub(crate) denial: Option<Denial>,
    /// The revocation records that it waits for, by the prefix of their names. Then it waits for no certificate.
    pub(crate) records: Vec<NameBuf>,
    /// It has waited for them, and need not wait again.
    pub(crate) has_waited_for_records: bool,
    repeats: usize,
}

/// Where a certificate came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The host that sent the command.
    Host,
    /// Any other place.
    Network,
}

impl Fetching {
    /// The fetch of one more certificate. If the certificates of the network lead nowhere, the fetch begins again.
    pub(crate) fn with(&self, certificate: NameBuf) -> Self {
        if self.asked.len() >= MAX_CHAIN && self.denial.is_none() {
            return self.at_its_host(Denial::unknown_signer(certificate.as_name()));
        }
        let mut more = self.clone();
        more.asked.push(certificate);
        more
    }

    /// The fetch from the beginning, at the commanding host alone.
    pub(crate) fn at_its_host(&self, denial: Denial) -> Self {
        Fetching { asked: self.asked[..1].to_vec(), denial: Some(denial), ..self.clone() }
    }

    /// The wait for these revocation records.
    pub(crate) fn for_records(&self, records: Vec<NameBuf>) -> Self {
        Fetching { records, ..self.clone() }
    }

    /// The end of that wait.
    pub(crate) fn without_records(self) -> Self {
        Fetching { records: Vec::new(), has_waited_for_records: true, ..self }
    }

    /// The same, after an answer from there.
    pub(crate) fn answered_by(self, source: Source) -> Self {
        Fetching { source: Some(source), ..self }
    }

    /// True if it waits for this certificate.
    fn waits_for(&self, certificate: Name<'_>) -> bool {
        self.records.is_empty() && self.asked.last().is_some_and(|last| last.as_name().is_prefix_of(&certificate))
    }

    fn asked_for(&self, certificate: Name<'_>) -> bool {
        self.records.is_empty() && self.asked.iter().any(|one| one.as_name().is_prefix_of(&certificate))
    }
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

    /// Lets a command wait, and asks for its certificate unless others that wait have asked in the same way. False if
    /// it cannot wait.
    pub(crate) fn add(&mut self, command: PendingCommand, out: &mut Vec<Effect>) -> bool {
        let Some(certificate) = command.fetching.asked.last() else { return false };
        if command.fetching.asked.len() > MAX_CHAIN || self.pool.try_take(command.holder, 1).is_err() {
            return false;
        }
        let alike = || {
            let waiting = self.commands.iter().filter(|other| other.fetching.records.is_empty());
            waiting.filter(|other| other.fetching.asked.last() == Some(certificate))
        };
        let asks_network = command.fetching.denial.is_none();
        if asks_network && !alike().any(|other| other.fetching.denial.is_none()) {
            out.push(ask(certificate, None));
        }
        if !alike().any(|other| other.incoming == command.incoming) {
            out.push(ask(certificate, Some(command.incoming)));
        }
        self.commands.push(command);
        true
    }

    /// Lets a command wait for the revocation records in its [`Fetching`], which have been asked for. False if it
    /// cannot wait.
    pub(crate) fn add_for_records(&mut self, command: PendingCommand) -> bool {
        let has_room = self.pool.try_take(command.holder, 1).is_ok();
        if has_room {
            self.commands.push(command);
        }
        has_room
    }

    /// Takes the commands that wait for no other record than the one of this name.
    pub(crate) fn take_with_record(&mut self, record: Name<'_>) -> Vec<PendingCommand> {
        let mut ended = Vec::new();
        for (at, command) in self.commands.iter_mut().enumerate() {
            let records = &mut command.fetching.records;
            let before = records.len();
            records.retain(|prefix| !prefix.as_name().is_prefix_of(&record));
            if records.is_empty() && before > 0 {
                ended.push(at);
            }
        }
        let mut at = 0..;
        self.take(|_| at.next().is_some_and(|at| ended.contains(&at)))
    }

    /// Lets a command wait on for its own host alone: the network's answer was no certificate.
    pub(crate) fn add_at_its_host(&mut self, command: &PendingCommand, out: &mut Vec<Effect>) -> bool {
        let Some(last) = command.fetching.asked.last() else { return false };
        let fetching = command.fetching.at_its_host(Denial::unknown_signer(last.as_name()));
        self.add(PendingCommand { fetching, ..command.clone() }, out)
    }

    /// Takes the commands that a certificate of this name lets continue, and where it came from. `from` is the holder
    /// of the face that brought it.
    pub(crate) fn take_waiting_for(
        &mut self,
        certificate: Name<'_>,
        from: Option<HolderId>,
    ) -> (Source, Vec<PendingCommand>) {
        let of_host = self.take(|one| Some(one.holder) == from && one.fetching.asked_for(certificate));
        if !of_host.is_empty() {
            return (Source::Host, of_host);
        }
        let all = self.take(|one| one.fetching.denial.is_none() && one.fetching.waits_for(certificate));
        (Source::Network, all)
    }

    /// Asks again for those who still wait for a certificate of this name: an answer has ended their Interest.
    pub(crate) fn ask_again(&mut self, certificate: Name<'_>, out: &mut Vec<Effect>) {
        let start = out.len();
        for command in &mut self.commands {
            let fetching = &mut command.fetching;
            if !fetching.waits_for(certificate) || fetching.repeats >= MAX_REPEATS {
                continue;
            }
            fetching.repeats += 1;
            let Some(name) = fetching.asked.last() else { continue };
            let network = fetching.denial.is_none().then(|| ask(name, None));
            for effect in network.into_iter().chain([ask(name, Some(command.incoming))]) {
                if !out[start..].contains(&effect) {
                    out.push(effect);
                }
            }
        }
    }

    /// True if a command waits for a certificate of this name.
    pub(crate) fn is_waited_for(&self, certificate: Name<'_>) -> bool {
        self.commands.iter().any(|command| command.fetching.asked_for(certificate))
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

/// The Interest for a certificate, or for revocation records with this prefix.
pub(super) fn ask(certificate: &NameBuf, to: Option<FaceId>) -> Effect {
    let interest = InterestBuilder::new(certificate).can_be_prefix(true).must_be_fresh(true);
    Effect::Express { packet: interest.lifetime_ms(FETCH_LIFETIME_MS).build(), to }
}
