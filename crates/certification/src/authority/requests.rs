//! The requests under way: how many, whose, and for how long?
//!
//! Limits: [`REQUESTS_MAX`] in all, [`PER_ASKER_MAX`] of one asker, those that are decided included. An asker that has
//! its share begins no more; where all places are taken, the asker with most of them loses its oldest.
//! A request waits [`UNPROVEN_MS`] for the choice of a challenge, then as long as the challenge allows.
//! After its end, its last answer stays for [`ANSWER_MS`], for Interests that come again because the answer was lost.

use super::{outcome::Reply, proofs::Proof, settings::Offer};
use namewire_ndncert::{RequestId, SessionKey};
use namewire_packet::{Name, NameBuf};
use namewire_security::{Certificate, PublicKey, ValidityPeriod};
use std::collections::HashMap;

/// Most requests under way.
pub const REQUESTS_MAX: usize = 4096;
/// Most of one asker.
pub const PER_ASKER_MAX: usize = 512;
/// How long a request waits for the choice of a challenge.
pub const UNPROVEN_MS: u64 = 60_000;
/// How long the last answer stays.
const ANSWER_MS: u64 = 120_000;

/// One request.
#[derive(Debug)]
pub struct Request {
    pub(super) session: SessionKey,
    /// The self-signed certificate of NEW.
    pub(super) certificate: Certificate,
    key: PublicKey,
    /// Of the certificate that may come of it.
    pub(super) validity: ValidityPeriod,
    asker: u64,
    begun_ms: u64,
    expires_ms: u64,
    /// The challenge that was chosen; empty before.
    pub(super) challenge: String,
    pub(super) proof: Option<Proof>,
    pub(super) tries_left: u64,
    /// The Interest for which the operator's command is at work.
    waiting_for: Option<NameBuf>,
    /// How often the operator's command has asked.
    pub(super) questions: u32,
    is_over: bool,
    /// The name of the last Interest and the answer to it.
    answered: Option<(NameBuf, Vec<u8>)>,
}

/// What is kept of a request on the disk.
#[derive(Debug)]
pub(super) struct Kept<'a> {
    pub(super) session: &'a SessionKey,
    pub(super) certificate: &'a Certificate,
    pub(super) validity: ValidityPeriod,
    pub(super) asker: u64,
    pub(super) expires_ms: u64,
    pub(super) challenge: &'a str,
    pub(super) proof: Option<&'a Proof>,
    pub(super) tries_left: u64,
}

impl Request {
    pub(super) fn new(
        session: SessionKey,
        certificate: Certificate,
        validity: ValidityPeriod,
        asker: u64,
        now_ms: u64,
    ) -> Self {
        let key = certificate.public_key().expect("the caller has verified its signature");
        Request {
            session,
            certificate,
            key,
            validity,
            asker,
            begun_ms: now_ms,
            expires_ms: now_ms.saturating_add(UNPROVEN_MS),
            challenge: String::new(),
            proof: None,
            tries_left: 0,
            waiting_for: None,
            questions: 0,
            is_over: false,
            answered: None,
        }
    }

    /// What is kept of it on the disk.
    pub(super) fn kept(&self) -> Kept<'_> {
        Kept {
            session: &self.session,
            certificate: &self.certificate,
            validity: self.validity,
            asker: self.asker,
            expires_ms: self.expires_ms,
            challenge: &self.challenge,
            proof: self.proof.as_ref(),
            tries_left: self.tries_left,
        }
    }

    /// It was kept on the disk, and goes on.
    pub(super) fn go_on(&mut self, challenge: String, proof: Option<Proof>, tries_left: u64, expires_ms: u64) {
        (self.challenge, self.proof, self.tries_left) = (challenge, proof, tries_left);
        self.expires_ms = expires_ms;
    }

    /// The key that is to be certified.
    pub(super) const fn key(&self) -> &PublicKey {
        &self.key
    }

    pub(super) fn identity(&self) -> NameBuf {
        self.certificate.identity().to_buf()
    }

    pub(super) fn key_name(&self) -> NameBuf {
        self.certificate.key_name().to_buf()
    }

    pub(super) const fn is_over(&self, now_ms: u64) -> bool {
        self.is_over || now_ms > self.expires_ms
    }

    /// True if it is decided.
    pub(super) const fn is_decided(&self) -> bool {
        self.is_over
    }

    /// The Interest for which the operator's command is at work.
    pub(super) fn waiting_for(&self) -> Option<Name<'_>> {
        self.waiting_for.as_ref().map(NameBuf::as_name)
    }

    /// The operator's command begins its work for this Interest, or has ended it.
    pub(super) fn set_waiting(&mut self, interest: Option<Name<'_>>) {
        self.waiting_for = interest.map(|name| name.to_buf());
    }

    pub(super) const fn asker(&self) -> u64 {
        self.asker
    }

    /// True if an answer may need the operator's command.
    pub(super) fn may_need_command(&self) -> bool {
        matches!(self.proof, None | Some(Proof::Command))
    }

    pub(super) const fn remaining_ms(&self, now_ms: u64) -> u64 {
        self.expires_ms.saturating_sub(now_ms)
    }

    pub(super) fn begin_proof(&mut self, proof: Proof, offer: &Offer, now_ms: u64) {
        self.challenge = offer.id().to_owned();
        self.proof = Some(proof);
        self.tries_left = offer.tries();
        self.expires_ms = now_ms.saturating_add(offer.time_ms());
    }
}

/// All requests.
#[derive(Debug, Default)]
pub struct Requests {
    all: HashMap<RequestId, Request>,
    /// By the name of the Interest that was answered last.
    answers: HashMap<NameBuf, RequestId>,
}

impl Requests {
    /// Makes room for another request of this asker. `Err`: it has its share. Where all places are taken, the asker
    /// that has most of them loses its oldest request, which is returned.
    pub(super) fn make_room(&mut self, asker: u64) -> Result<Option<RequestId>, ()> {
        let mut counts: HashMap<u64, usize> = HashMap::new();
        self.all.values().for_each(|request| *counts.entry(request.asker).or_default() += 1);
        if counts.get(&asker).is_some_and(|own| *own >= PER_ASKER_MAX) {
            return Err(());
        }
        if self.all.len() < REQUESTS_MAX {
            return Ok(None);
        }
        let (&largest, _) = counts.iter().max_by_key(|(_, count)| **count).ok_or(())?;
        let of_largest = self.all.iter().filter(|(_, one)| one.asker == largest && one.waiting_for.is_none());
        let (&oldest, _) = of_largest.min_by_key(|(_, one)| (!one.is_over, one.begun_ms)).ok_or(())?;
        self.remove(oldest);
        Ok(Some(oldest))
    }

    /// For how many requests the operator's command is at work: those of this asker, and all.
    pub(super) fn waiting(&self, asker: u64) -> (usize, usize) {
        let waiting = self.all.values().filter(|request| request.waiting_for.is_some());
        waiting.fold((0, 0), |(own, all), request| (own + usize::from(request.asker == asker), all + 1))
    }

    /// Adds a request, for example one that was kept on the disk.
    pub fn add(&mut self, request: Request) {
        self.all.insert(request.session.id(), request);
    }

    /// The request with this number.
    pub fn get(&mut self, id: RequestId) -> Option<&mut Request> {
        self.all.get_mut(&id)
    }

    /// The answer that this Interest had before.
    pub(super) fn answered(&self, interest: Name<'_>) -> Option<Vec<u8>> {
        let id = self.answers.get(&interest.to_buf())?;
        self.all.get(id)?.answered.as_ref().map(|(_, wire)| wire.clone())
    }

    pub(super) fn note_answer(&mut self, id: RequestId, interest: Name<'_>, reply: &Reply) {
        let (Some(request), Reply::Data(wire)) = (self.all.get_mut(&id), reply) else { return };
        if let Some((before, _)) = request.answered.replace((interest.to_buf(), wire.clone())) {
            self.answers.remove(&before);
        }
        self.answers.insert(interest.to_buf(), id);
    }

    /// The request is decided; its last answer stays for a while.
    pub(super) fn end(&mut self, id: RequestId, now_ms: u64) {
        if let Some(request) = self.all.get_mut(&id) {
            (request.is_over, request.proof) = (true, None);
            request.expires_ms = now_ms.saturating_add(ANSWER_MS);
        }
    }

    /// Forgets what is over; returns what was not decided.
    pub(super) fn expire(&mut self, now_ms: u64) -> Vec<RequestId> {
        let is_past = |one: &Request| now_ms > one.expires_ms && one.waiting_for.is_none();
        let past: Vec<RequestId> = self.all.iter().filter(|(_, one)| is_past(one)).map(|(id, _)| *id).collect();
        past.into_iter().filter(|id| self.remove(*id).is_some_and(|request| !request.is_over)).collect()
    }

    fn remove(&mut self, id: RequestId) -> Option<Request> {
        let request = self.all.remove(&id)?;
        if let Some((interest, _)) = &request.answered {
            self.answers.remove(interest);
        }
        Some(request)
    }

    /// How many are under way.
    pub fn len(&self) -> usize {
        self.all.values().filter(|request| !request.is_over).count()
    }

    /// True if none is under way.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
