//! Interests that management itself expresses from the internal face: to a routing daemon, or for anything else that
//! this node must ask.
//!
//! Each Interest ends by matching Data, by a Nack, or at the end of its lifetime. Its [`Purpose`] decides which part of
//! management gets the outcome; a new use needs a new purpose.
//!
//! Limit: [`MAX_PENDING`] at a time. Cost: a Data takes a look-up per component of its name.

use crate::{effect::Effect, environment::Times};
use hashbrown::HashMap;
use namewire_packet::{
    Data, Interest, InterestBuilder, NackReason, NameBuf, Nonce, SignedInterestFields, digest::sha256,
};
use std::collections::BTreeSet;

/// Most own Interests that wait for an answer.
pub(crate) const MAX_PENDING: usize = 256;

/// What an Interest is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A command to the routing daemon about this prefix.
    Readvertise(NameBuf),
}

/// How an Interest ended.
#[derive(Debug)]
pub(crate) enum Answer<'a> {
    /// This Data came; its signature is not verified.
    Data(Data<'a>),
    /// A Nack came.
    Nack,
    /// No answer came in time.
    TimedOut,
}

/// An own Interest that waits.
#[derive(Debug)]
struct Pending {
    packet: Vec<u8>,
    deadline_ns: u64,
    purpose: Purpose,
}

/// The own Interests that wait, by name.
#[derive(Debug, Default)]
pub(crate) struct OwnInterests {
    pending: HashMap<NameBuf, Pending>,
    by_deadline: BTreeSet<(u64, NameBuf)>,
    /// The number of Interests so far, so that no two have the same nonce.
    expressed: u64,
    /// Time of the last signed command.
    last_command_ms: u64,
}

impl OwnInterests {
    pub(crate) fn has_room(&self) -> bool {
        self.pending.len() < MAX_PENDING
    }

    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        self.by_deadline.first().map(|(deadline_ns, _)| *deadline_ns)
    }

    fn take(&mut self, name: &NameBuf) -> Option<Purpose> {
        let Pending { deadline_ns, purpose, .. } = self.pending.remove(name)?;
        self.by_deadline.remove(&(deadline_ns, name.clone()));
        Some(purpose)
    }

    /// The Interest that `data` answers, the one with the longest name.
    fn answered_by(&self, data: &Data<'_>) -> Option<NameBuf> {
        let name = data.name();
        (0..=name.len()).rev().map(|length| name.prefix(length).to_buf()).find(|prefix| {
            let interest = self.pending.get(prefix).and_then(|pending| Interest::parse(&pending.packet).ok());
            interest.is_some_and(|interest| interest.matches(data))
        })
    }

    /// Expresses an Interest with a signed command; `name` already has the parameters. False if too many wait.
    pub(crate) fn express_command(
        &mut self,
        now: Times,
        name: NameBuf,
        lifetime_ms: u64,
        purpose: Purpose,
        out: &mut Vec<Effect>,
    ) -> bool {
        if !self.has_room() {
            return false;
        }
        self.expressed += 1;
        // The value need not be secret, only unique, also after a restart.
        let unique = sha256(&[&now.unix_ms.to_be_bytes(), &self.expressed.to_be_bytes()]);
        let nonce = Nonce::from_u32(u32::from_be_bytes([unique[0], unique[1], unique[2], unique[3]]));
        // Each timestamp is later than the one before, or the second command of a millisecond would be a replay.
        self.last_command_ms = now.unix_ms.max(self.last_command_ms + 1);
        let fields =
            SignedInterestFields { nonce: unique[8..16].to_vec(), time_ms: Some(self.last_command_ms), seq_num: None };
        let packet = InterestBuilder::new(name).nonce(nonce).lifetime_ms(lifetime_ms).sign_digest(&fields);
        let Ok(interest) = Interest::parse(&packet) else { return false };
        let name = interest.name().to_buf();
        let deadline_ns = now.mono_ns.saturating_add(lifetime_ms.saturating_mul(1_000_000));
        self.by_deadline.insert((deadline_ns, name.clone()));
        self.pending.insert(name, Pending { packet: packet.clone(), deadline_ns, purpose });
        out.push(Effect::Express { packet, to: None });
        true
    }

    /// The purpose of the Interest that this answer ends. The answer is Data, or a Nack with the refused Interest.
    pub(crate) fn take_answered<'a>(
        &mut self,
        packet: &'a [u8],
        nack: Option<NackReason>,
    ) -> Option<(Purpose, Answer<'a>)> {
        let (name, answer) = match nack {
            Some(_) => (Interest::parse(packet).ok()?.name().to_buf(), Answer::Nack),
            None => {
                let data = Data::parse(packet).ok()?;
                (self.answered_by(&data)?, Answer::Data(data))
            }
        };
        self.take(&name).map(|purpose| (purpose, answer))
    }

    /// The purpose of an Interest whose lifetime is over.
    pub(crate) fn take_timed_out(&mut self, now_ns: u64) -> Option<Purpose> {
        let (_, name) = self.by_deadline.first().filter(|(at_ns, _)| *at_ns <= now_ns)?;
        let name = name.clone();
        self.take(&name)
    }
}
