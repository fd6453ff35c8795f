//! Replay protection: has this signed command been seen before?
//!
//! Source: management.md §8, which gives NFD's rules and their defects: one key for all DigestSha256 clients, and a
//! timestamp that must grow with every command. Here each signer has a record. A digest names no signer, so all
//! commands of a face that are signed with a digest share the face's record. A burst within one millisecond passes as
//! long as the nonces differ.
//!
//! A command passes if all of these hold:
//!
//! - Its timestamp is at most [`GRACE_MS`] from the clock, or at most [`STEP_MS`] after the signer's latest (but never
//!   more than [`MAX_AHEAD_MS`] ahead). In a burst, clients of NFD step their timestamps faster than the clock runs.
//! - Its (timestamp, nonce) is not in the record.
//! - If a key signed it, its timestamp is later than the watermark of the key's record.
//!
//! Users may set clocks back, those of routers and those of clients. So timestamps need not grow, and no command is
//! forgotten because its timestamp is old. A command is forgotten only when there is no room for more.
//!
//! Invariant: every command that a key's record has forgotten is at or before its watermark, so no forgotten command
//! passes again. A watermark holds for [`WATERMARK_LIFETIME_NS`] of the monotonic clock. If the clock was not set back,
//! every timestamp before the watermark is more than [`GRACE_MS`] old by then. If the clock was set back, a busy signer
//! is refused for this time at most.
//!
//! A face has no watermark, because its commands are signed with a digest, or by a key that no rule verified. An
//! application that can repeat such a command through the face could also sign a new one. The face's record only
//! recognises a command that a client repeats.
//!
//! A restart forgets the records, unless the router keeps the commands of keys ([`ReplayGuard::take_passed`]) and gives
//! them back ([`ReplayGuard::remember`]). If some of these commands may be missing, commands that a key signed before
//! the start are refused for [`GRACE_MS`]; after that they are too old in any case. In this case a signer whose clock
//! is behind is refused for as long as it is behind, and a command of a signer whose clock was ahead may pass again. If
//! the router kept all commands, clocks do not matter.
//!
//! Cost: a check takes O(log n) for a record of n commands. Limits: [`MAX_NONCES`] per record and [`MAX_NONCES_TOTAL`]
//! in all records; [`MAX_RECORDS`] keys and as many faces. A key's record may be dropped [`RECORD_LIFETIME_NS`] after
//! its last use.

use crate::environment::Times;
use hashbrown::HashMap;
use namewire_packet::{FaceId, NameBuf, digest::sha256};
use namewire_security::trust::Denial;
use std::{collections::BTreeSet, hash::Hash};

/// How far a timestamp may be from the clock.
pub(crate) const GRACE_MS: u64 = 120_000;
/// How far a timestamp may be after the latest one of its signer, whatever the clock says.
pub(crate) const STEP_MS: u64 = 1000;
/// How far a burst may run ahead of the clock. When a key is forgotten, commands up to its last timestamp are refused
/// from all keys without a record. Without this limit, one key could lock out all of them for good.
pub(crate) const MAX_AHEAD_MS: u64 = 3_600_000;
/// Commands remembered per signer.
pub(crate) const MAX_NONCES: usize = 4096;
/// Commands remembered over all signers.
pub(crate) const MAX_NONCES_TOTAL: usize = 262_144;
/// Keys remembered, and faces remembered.
pub(crate) const MAX_RECORDS: usize = 1000;
/// How long a watermark holds after it last rose.
pub(crate) const WATERMARK_LIFETIME_NS: u64 = (MAX_AHEAD_MS + GRACE_MS) * 1_000_000;
/// How long after its last use a record is kept.
pub(crate) const RECORD_LIFETIME_NS: u64 = 3_600_000_000_000;

/// The sender against whose record a command is checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Sender {
    /// The unknown sender behind this face.
    Face(FaceId),
    /// The holder of this key; only for signatures that were verified.
    Key(NameBuf),
}

/// A nonce in a fixed size: up to 16 bytes as they are, otherwise half its SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NonceId([u8; 16], u8);

/// A command that a key signed and that passed, as the router keeps it for the next start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedCommand {
    /// The key.
    pub key: NameBuf,
    /// When it was signed, in milliseconds since 1970.
    pub time_ms: u64,
    /// Identifies it among the commands of that time.
    pub nonce: [u8; PASSED_NONCE_BYTES],
}

/// Bytes of [`PassedCommand::nonce`].
pub const PASSED_NONCE_BYTES: usize = 17;

impl PassedCommand {
    fn new(key: &NameBuf, (time_ms, NonceId(bytes, length)): (u64, NonceId)) -> Self {
        let mut nonce = [length; PASSED_NONCE_BYTES];
        nonce[..bytes.len()].copy_from_slice(&bytes);
        PassedCommand { key: key.clone(), time_ms, nonce }
    }

    fn entry(&self) -> (u64, NonceId) {
        let [bytes @ .., length] = self.nonce;
        (self.time_ms, NonceId(bytes, length))
    }
}

/// Until a moment, commands that a key signed before the start are refused.
#[derive(Clone, Copy, Debug)]
struct Start {
    unix_ms: u64,
    until_ns: u64,
}

impl NonceId {
    fn new(nonce: &[u8]) -> Self {
        let mut bytes = [0; 16];
        match bytes.get_mut(..nonce.len()) {
            Some(start) => start.copy_from_slice(nonce),
            None => bytes.copy_from_slice(&sha256(&[nonce])[..16]),
        }
        NonceId(bytes, nonce.len().min(17) as u8)
    }
}

/// For a while, timestamps up to this one are refused.
#[derive(Clone, Copy, Debug, Default)]
struct Watermark {
    time_ms: Option<u64>,
    ends_ns: u64,
}

impl Watermark {
    fn rise(&mut self, now: Times, time_ms: u64) {
        self.time_ms = self.at(now).max(Some(time_ms));
        self.ends_ns = now.mono_ns.saturating_add(WATERMARK_LIFETIME_NS);
    }

    fn at(&self, now: Times) -> Option<u64> {
        self.time_ms.filter(|_| now.mono_ns < self.ends_ns)
    }
}

#[derive(Debug, Default)]
struct Record {
    seen: BTreeSet<(u64, NonceId)>,
    watermark: Watermark,
    /// The latest timestamp that passed.
    latest_ms: u64,
    last_used_ns: u64,
}

impl Record {
    /// Forgets the oldest command, for good.
    fn forget_oldest(&mut self, now: Times) -> bool {
        let Some((time_ms, _)) = self.seen.pop_first() else { return false };
        self.watermark.rise(now, time_ms);
        true
    }
}

/// What the limits of this module have turned away or made the guard forget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReplayLimitsMet {
    /// Commands forgotten before their time.
    pub(crate) nonces: u64,
    /// Signers forgotten before their time.
    pub(crate) records: u64,
}

/// The records.
#[derive(Debug, Default)]
pub(crate) struct ReplayGuard {
    records: HashMap<Sender, Record>,
    faces: usize,
    nonces: usize,
    /// The watermark for keys without a record, because they may have had one.
    forgotten_keys: Watermark,
    /// Set if commands of keys that passed before the start may be unknown.
    start: Option<Start>,
    /// Commands of keys that have passed since they were taken; `None` if nobody keeps them.
    passed: Option<Vec<PassedCommand>>,
    pub(crate) limits_met: ReplayLimitsMet,
}

impl ReplayGuard {
    /// Records a command that is authorized otherwise. With `needs_nonce`, refuses it if it has no nonce.
    ///
    /// # Errors
    /// Why it must not be carried out; then nothing is recorded.
    pub(crate) fn check(
        &mut self,
        now: Times,
        sender: &Sender,
        time_ms: Option<u64>,
        nonce: Option<&[u8]>,
        needs_nonce: bool,
    ) -> Result<(), Denial> {
        let time_ms = time_ms.ok_or(Denial::NoTimestamp)?;
        if needs_nonce && nonce.is_none() {
            return Err(Denial::NoNonce);
        }
        let age_ms = now.unix_ms.saturating_sub(time_ms);
        if age_ms > GRACE_MS {
            return Err(Denial::Expired { age_ms, age_ms_max: GRACE_MS });
        }
        if let (Sender::Key(_), Some(start)) = (sender, self.start)
            && now.mono_ns < start.until_ns
            && time_ms < start.unix_ms
        {
            return Err(Denial::Replayed(
                "signed before this router started, so it may have been carried out then; sign it again",
            ));
        }
        let known = self.records.get(sender);
        let in_burst = known.map_or(0, |known| known.latest_ms + STEP_MS).min(now.unix_ms.saturating_add(MAX_AHEAD_MS));
        let latest_allowed = now.unix_ms.saturating_add(GRACE_MS).max(in_burst);
        if time_ms > latest_allowed {
            let ahead_ms = time_ms - now.unix_ms;
            return Err(Denial::FromTheFuture { ahead_ms, ahead_ms_max: GRACE_MS });
        }
        let watermark = match (known, sender) {
            (Some(known), Sender::Key(_)) => known.watermark,
            (None, Sender::Key(_)) => self.forgotten_keys,
            (_, Sender::Face(_)) => Watermark::default(),
        };
        if watermark.at(now).is_some_and(|watermark_ms| time_ms <= watermark_ms) {
            return Err(Denial::Replayed("signed before the oldest command that is remembered of this signer"));
        }
        let entry = (time_ms, NonceId::new(nonce.unwrap_or_default()));
        if let Some(known) = known {
            if nonce.is_none() && known.seen.contains(&entry) {
                return Err(Denial::Replayed("without a nonce, each command needs a time of its own"));
            }
            if known.seen.contains(&entry) {
                return Err(Denial::Replayed("the same command was here before"));
            }
        } else {
            self.make_room(now, sender);
        }
        self.note(now, sender, entry);
        if let (Some(passed), Sender::Key(key)) = (&mut self.passed, sender) {
            passed.push(PassedCommand::new(key, entry));
        }
        Ok(())
    }

    /// Commands of keys that passed before the router started at `start_unix_ms`. If these are not all of them,
    /// commands signed before the start are refused.
    pub(crate) fn remember(&mut self, now: Times, before: &[PassedCommand], are_all: bool, start_unix_ms: u64) {
        for command in before {
            let (sender, entry) = (Sender::Key(command.key.clone()), command.entry());
            match self.records.get(&sender) {
                Some(record) if record.seen.contains(&entry) => continue, // the file may have it twice
                Some(_) => {}
                None => self.make_room(now, &sender),
            }
            self.note(now, &sender, entry);
        }
        let until_ns = now.mono_ns.saturating_add(GRACE_MS * 1_000_000);
        self.start = (!are_all).then_some(Start { unix_ms: start_unix_ms, until_ns });
    }

    /// From now on, holds the commands of keys that pass until they are taken, or no longer does.
    pub(crate) fn keep_passed(&mut self, is_on: bool) {
        self.passed = is_on.then(Vec::new);
    }

    /// The commands of keys that have passed since the last call.
    pub(crate) fn take_passed(&mut self) -> Vec<PassedCommand> {
        self.passed.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// All commands of keys that are remembered.
    pub(crate) fn all_passed(&self) -> impl Iterator<Item = PassedCommand> + '_ {
        let of_keys = self.records.iter().filter_map(|(sender, record)| match sender {
            Sender::Key(key) => Some((key, record)),
            Sender::Face(_) => None,
        });
        of_keys.flat_map(|(key, record)| record.seen.iter().map(|entry| PassedCommand::new(key, *entry)))
    }

    fn note(&mut self, now: Times, sender: &Sender, entry: (u64, NonceId)) {
        let is_full = self.nonces >= MAX_NONCES_TOTAL;
        if !self.records.contains_key(sender) {
            self.faces += usize::from(matches!(sender, Sender::Face(_)));
            self.records.insert(sender.clone(), Record { watermark: self.forgotten_keys, ..Record::default() });
        }
        let Some(record) = self.records.get_mut(sender) else { return };
        if (is_full || record.seen.len() >= MAX_NONCES) && record.forget_oldest(now) {
            self.nonces -= 1;
            self.limits_met.nonces += 1;
        }
        record.seen.insert(entry);
        self.nonces += 1;
        record.latest_ms = record.latest_ms.max(entry.0);
        record.last_used_ns = now.mono_ns;
        if self.nonces > MAX_NONCES_TOTAL {
            self.evict_oldest(now, |other| other != sender);
        }
    }

    /// Makes room for one more record of this kind.
    fn make_room(&mut self, now: Times, sender: &Sender) {
        let is_face = |sender: &Sender| matches!(sender, Sender::Face(_));
        let used = |guard: &Self| if is_face(sender) { guard.faces } else { guard.records.len() - guard.faces };
        if used(self) < MAX_RECORDS {
            return;
        }
        let is_over = |record: &Record| {
            now.mono_ns.saturating_sub(record.last_used_ns) > RECORD_LIFETIME_NS
                && record.latest_ms.saturating_add(GRACE_MS) < now.unix_ms
        };
        let over: Vec<Sender> =
            self.records.iter().filter(|(_, record)| is_over(record)).map(|(sender, _)| sender.clone()).collect();
        over.iter().for_each(|sender| self.forget(now, sender));
        if used(self) >= MAX_RECORDS {
            let kind = is_face(sender);
            self.evict_oldest(now, |other| is_face(other) == kind);
        }
    }

    /// Forgets the record that was not used for the longest time.
    fn evict_oldest(&mut self, now: Times, may_go: impl Fn(&Sender) -> bool) {
        let candidates = self.records.iter().filter(|(sender, _)| may_go(sender));
        let oldest = candidates.min_by_key(|(_, record)| record.last_used_ns).map(|(sender, _)| sender.clone());
        let Some(oldest) = oldest else { return };
        self.forget(now, &oldest);
        self.limits_met.records += 1;
    }

    /// Forgets a record. Commands that its key has signed do not pass again.
    fn forget(&mut self, now: Times, sender: &Sender) {
        if let (Sender::Key(_), Some(record)) = (sender, self.records.get(sender)) {
            self.forgotten_keys.rise(now, record.latest_ms);
        }
        self.remove(sender);
    }

    /// A face is gone; its number is never used again.
    pub(crate) fn forget_face(&mut self, face: FaceId) {
        self.remove(&Sender::Face(face));
    }

    fn remove(&mut self, sender: &Sender) {
        if let Some(record) = self.records.remove(sender) {
            self.nonces -= record.seen.len();
            self.faces -= usize::from(matches!(sender, Sender::Face(_)));
        }
    }
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
