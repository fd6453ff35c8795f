//! Interests that management itself expresses, from the internal face: to a routing daemon,
//! or for whatever else this node has to ask.
//!
//! Each ends in exactly one of: Data that matches, a Nack, the end of its lifetime. What it is
//! for ([`Purpose`]) says who hears of that; a new use is a new purpose.
//!
//! Limit: [`MAX_PENDING`] at a time. Cost: a look-up per component of the Data's name.

use crate::{
    dispatcher::Management,
    effect::Effect,
    environment::{Environment, Times},
};
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
    /// This Data came, whose signature nobody has checked.
    Data(Data<'a>),
    /// A Nack came.
    Nack,
    /// Nothing came in time.
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
    /// How many there have been: no two have the same nonce.
    expressed: u64,
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
}

impl Management {
    /// Expresses an Interest with a signed command: `name` has the parameters already.
    /// False if too many wait.
    pub(crate) fn express_command(
        &mut self,
        now: Times,
        name: NameBuf,
        lifetime_ms: u64,
        purpose: Purpose,
        out: &mut Vec<Effect>,
    ) -> bool {
        if !self.own_interests.has_room() {
            return false;
        }
        let own = &mut self.own_interests;
        own.expressed += 1;
        // Not secret, only never the same twice, also after a restart.
        let unique = sha256(&[&now.unix_ms.to_be_bytes(), &own.expressed.to_be_bytes()]);
        let nonce = Nonce::from_u32(u32::from_be_bytes([unique[0], unique[1], unique[2], unique[3]]));
        // Each later than the one before, or the second of a millisecond is a replay.
        self.last_command_ms = now.unix_ms.max(self.last_command_ms + 1);
        let fields =
            SignedInterestFields { nonce: unique[8..16].to_vec(), time_ms: Some(self.last_command_ms), seq_num: None };
        let packet = InterestBuilder::new(name).nonce(nonce).lifetime_ms(lifetime_ms).sign_digest(&fields);
        let Ok(interest) = Interest::parse(&packet) else { return false };
        let name = interest.name().to_buf();
        let deadline_ns = now.mono_ns.saturating_add(lifetime_ms.saturating_mul(1_000_000));
        self.own_interests.by_deadline.insert((deadline_ns, name.clone()));
        self.own_interests.pending.insert(name, Pending { packet: packet.clone(), deadline_ns, purpose });
        out.push(Effect::Express { packet });
        true
    }

    /// Takes Data, or a Nack with the Interest it refuses, that reached the internal face.
    pub fn on_answer(
        &mut self,
        now: Times,
        packet: &[u8],
        nack: Option<NackReason>,
        environment: &mut dyn Environment,
        out: &mut Vec<Effect>,
    ) {
        if let (None, Ok(data)) = (nack, Data::parse(packet))
            && self.on_certificate(now, &data, environment, out)
        {
            return;
        }
        let answer = match nack {
            Some(_) => Interest::parse(packet).ok().map(|interest| (interest.name().to_buf(), Answer::Nack)),
            None => Data::parse(packet)
                .ok()
                .and_then(|data| self.own_interests.answered_by(&data).map(|name| (name, Answer::Data(data)))),
        };
        let taken = answer.and_then(|(name, answer)| self.own_interests.take(&name).map(|purpose| (purpose, answer)));
        match taken {
            Some((purpose, answer)) => self.on_ended(now, purpose, &answer, out),
            None => self.counters.unsolicited_answers += 1,
        }
    }

    /// Ends the Interests whose time is over.
    pub(crate) fn time_out_own_interests(&mut self, now: Times, out: &mut Vec<Effect>) {
        while let Some((_, name)) = self.own_interests.by_deadline.first().filter(|(at_ns, _)| *at_ns <= now.mono_ns) {
            let name = name.clone();
            if let Some(purpose) = self.own_interests.take(&name) {
                self.on_ended(now, purpose, &Answer::TimedOut, out);
            }
        }
    }

    fn on_ended(&mut self, now: Times, purpose: Purpose, answer: &Answer<'_>, out: &mut Vec<Effect>) {
        match purpose {
            Purpose::Readvertise(prefix) => self.on_readvertise_answer(now, prefix.as_name(), answer, out),
        }
    }
}
