//! The authority: which certificates does it give, to whom, and what does it answer? Sans-IO.
//!
//! Source: NDNCERT 0.3 (see `namewire_ndncert`).
//!
//! ```text
//!   Interest ──► handle ──► Outcome::Reply                 an answer, a Nack, or nothing
//!                      └──► Outcome::Errand ──► finish     the operator's command decides; then an answer
//!   take_changes ──► what must be kept on disk before the answer leaves
//! ```
//!
//! | question | file |
//! | --- | --- |
//! | what has the operator decided? | `settings.rs` |
//! | what comes of an Interest? | `outcome.rs` |
//! | which requests are under way, and who has how many? | [`requests`] |
//! | what must a requester prove, and did it? | [`proofs`] |
//! | which names may be certified? | [`policy`] |
//! | which codes has the operator given out? | [`pins`] |
//! | what is kept on the disk? | [`kept`] |
//!
//! Limits: see [`requests`] and [`pins`]. An asker (a host, or a local application) begins at most [`NEW_PER_SECOND`]
//! requests a second; more get a Nack. Each costs the authority a key agreement and three signatures, so this bounds
//! its work. An Interest that comes again gets the same answer again.

pub mod kept;
mod outcome;
pub mod pins;
pub mod policy;
pub mod proofs;
pub mod requests;
mod secrets;
mod settings;

pub use outcome::{Change, CommandSaid, Errand, Outcome, Reply, Task};
pub use settings::{Offer, Settings};

use namewire_ndncert::{
    CaProfile, EcdhKey, ErrorCode, Parameters, RequestId,
    messages::{ChallengeRequest, ChallengeResponse, NewRequest, NewResponse, ProbeResponse, Refusal},
    service_name,
    session::SALT_BYTES,
    verbs,
};
use namewire_packet::{Component, Data, DataBuilder, Interest, Name, NameBuf};
use namewire_security::{
    Certificate, SignError, Signer, ValidityPeriod, issue_certificate,
    trust::{RevocationRecord, SignedPacket, check_parameters_digest},
};
use namewire_shares::Rates;
use pins::Pins;
use proofs::{Begun, Proof, Verdict};
use requests::{Request, Requests};
use std::collections::HashMap;

/// New requests of one asker in a second, in the long run.
pub const NEW_PER_SECOND: u32 = 5;
/// Requests for which the operator's command is at work; more get a Nack.
pub const ERRANDS_MAX: usize = 16;
/// Those of one asker.
pub const ERRANDS_PER_ASKER: usize = 4;
/// Certificates of one identity in a day.
pub const ISSUED_PER_DAY: u32 = 20;
/// Challenges of one asker in a second that are nobody's, or forged; more get a Nack.
pub const REFUSALS_PER_SECOND: u32 = 20;
/// How often requests are looked through for those that are over.
const SWEEP_MS: u64 = 1000;
/// The clock of a requester may be this much off.
const CLOCK_SLACK_MS: u64 = 120_000;
const DAY_MS: u64 = 24 * 3_600_000;
/// A certificate that would hold for less is not worth its signature.
const SHORTEST_MS: u64 = 60_000;
/// FreshnessPeriod of answers.
const FRESHNESS_MS: u64 = 4000;
/// FreshnessPeriod of refusals.
const REFUSAL_FRESHNESS_MS: u64 = 1;
/// FreshnessPeriod of the profile.
const PROFILE_FRESHNESS_MS: u64 = 10_000;

/// Why there is no authority.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthorityError {
    /// Its certificate is not for its prefix.
    #[error("the certificate {certificate} is not one of {prefix}")]
    OtherIdentity {
        /// The prefix.
        prefix: NameBuf,
        /// The certificate.
        certificate: NameBuf,
    },
    /// The profile cannot be signed.
    #[error(transparent)]
    Sign(#[from] SignError),
}

/// The type of the component with the digest of the parameters.
const DIGEST_TYPE: u32 = namewire_packet::tlv::types::PARAMETERS_SHA256_DIGEST;
/// Components that a signature of the old format takes after the digest.
const OLD_SIGNATURE: usize = 2;

/// The signature of an Interest, in the format of today or in the old one, which the C++ requester uses: ndn-cxx signs
/// Interests so unless it is told otherwise.
fn signature_of<'a>(interest: &Interest<'a>) -> Option<SignedPacket<'a>> {
    SignedPacket::of_interest(interest).or_else(|| SignedPacket::in_name_of_any(interest.name()))
}

/// A refusal, as code and text.
#[derive(Debug)]
struct Refused(ErrorCode, String);

impl Refused {
    fn new(code: ErrorCode, why: impl Into<String>) -> Self {
        Refused(code, why.into())
    }
}

/// How many certificates each identity has got today.
#[derive(Debug, Default)]
struct IssuedToday {
    since_ms: u64,
    by_identity: HashMap<NameBuf, u32>,
}

impl IssuedToday {
    fn take(&mut self, identity: NameBuf, now_ms: u64) -> Result<(), String> {
        if now_ms.saturating_sub(self.since_ms) > DAY_MS {
            *self = IssuedToday { since_ms: now_ms, by_identity: HashMap::new() };
        }
        let count = self.by_identity.entry(identity).or_default();
        if *count >= ISSUED_PER_DAY {
            return Err(format!("this name has had {ISSUED_PER_DAY} certificates today"));
        }
        *count += 1;
        Ok(())
    }
}

/// An authority.
#[derive(Debug)]
pub struct Authority {
    settings: Settings,
    certificate: Certificate,
    /// Its KeyLocator names the key, so that what it signed outlives the certificate.
    signer: Signer,
    profile: Vec<u8>,
    profile_name: NameBuf,
    requests: Requests,
    pins: Pins,
    mails: proofs::Mails,
    issued_today: IssuedToday,
    /// What the operator has revoked.
    revoked: Vec<RevocationRecord>,
    rates: Rates<u64>,
    refusals: Rates<u64>,
    swept_ms: u64,
    changes: Vec<Change>,
    last_version: u64,
    is_full: bool,
}

impl Authority {
    /// An authority whose key has this certificate.
    ///
    /// # Errors
    /// If the certificate is of another identity than the prefix; if the key cannot sign.
    pub fn new(
        settings: Settings,
        certificate: Certificate,
        signer: Signer,
        now_ms: u64,
    ) -> Result<Self, AuthorityError> {
        let mut authority = Authority {
            settings,
            certificate: certificate.clone(),
            signer,
            profile: Vec::new(),
            profile_name: NameBuf::new(),
            requests: Requests::default(),
            pins: Pins::default(),
            mails: proofs::Mails::default(),
            issued_today: IssuedToday::default(),
            revoked: Vec::new(),
            rates: Rates::new(NEW_PER_SECOND),
            refusals: Rates::new(REFUSALS_PER_SECOND),
            swept_ms: 0,
            changes: Vec::new(),
            last_version: 0,
            is_full: false,
        };
        authority.set_certificate(certificate, now_ms)?;
        Ok(authority)
    }

    /// The certificate was renewed: from now on the profile shows this one.
    ///
    /// # Errors
    /// As [`Authority::new`].
    pub fn set_certificate(&mut self, certificate: Certificate, now_ms: u64) -> Result<(), AuthorityError> {
        let prefix = self.settings.prefix.clone();
        if certificate.identity() != prefix.as_name() {
            return Err(AuthorityError::OtherIdentity { prefix, certificate: certificate.name().to_buf() });
        }
        let has_mail = self.settings.proofs.iter().any(|offer| matches!(offer, Offer::Email));
        let profile = CaProfile {
            prefix,
            info: self.settings.info.clone(),
            probe_keys: Vec::from_iter(has_mail.then(|| "email".to_owned())),
            max_validity_ms: self.settings.max_validity_ms,
            certificate: certificate.clone(),
        };
        let mut name = service_name(profile.prefix.as_name(), verbs::INFO);
        name.push_version(now_ms.max(self.last_version + 1));
        let content = profile.content();
        let packet = DataBuilder::new(name.clone().push_segment(0).clone())
            .freshness_ms(PROFILE_FRESHNESS_MS)
            .final_segment(0)
            .content(&content);
        self.profile = self.signer.sign_data(&packet)?;
        (self.profile_name, self.certificate) = (name, certificate);
        Ok(())
    }

    /// There is no room for more certificates: requests are refused until there is.
    pub const fn set_full(&mut self, is_full: bool) {
        self.is_full = is_full;
    }

    /// Its certificate.
    pub const fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// The profile: its name with the version, and its packet.
    pub fn profile(&self) -> (&NameBuf, &[u8]) {
        (&self.profile_name, &self.profile)
    }

    /// What the operator has decided.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The codes that the operator has given out.
    pub const fn pins(&mut self) -> &mut Pins {
        &mut self.pins
    }

    /// What the operator has revoked.
    pub fn revoked(&self) -> &[RevocationRecord] {
        &self.revoked
    }

    /// Replaces what the operator has revoked: such a certificate proves nothing.
    pub fn set_revoked(&mut self, revoked: Vec<RevocationRecord>) {
        self.revoked = revoked;
    }

    /// The requests under way.
    pub const fn requests(&mut self) -> &mut Requests {
        &mut self.requests
    }

    /// What has happened since the last call. What must be kept is to be on the disk before an answer leaves.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// An Interest for a service of the authority. `asker` is whoever sent it, as far as the router knows: its face.
    pub fn handle(&mut self, interest: &Interest<'_>, asker: u64, now_ms: u64) -> Outcome {
        if now_ms.abs_diff(self.swept_ms) >= SWEEP_MS {
            self.swept_ms = now_ms;
            self.changes.extend(self.requests.expire(now_ms).into_iter().map(Change::Forget));
        }
        let verb_at = self.settings.prefix.len() + 1;
        let under = self.settings.prefix.join(Component::generic(b"CA"));
        let verb = interest.name().get(verb_at).filter(|_| under.as_name().is_prefix_of(&interest.name()));
        let digest_at = match verb.map(|verb| verb.value) {
            Some(b"INFO") => return Outcome::Reply(self.info(interest)),
            Some(b"PROBE" | b"NEW") => verb_at + 1,
            Some(b"CHALLENGE") => verb_at + 2,
            _ => return Outcome::Reply(Reply::Nothing),
        };
        let has_digest = |name: Name<'_>| name.get(digest_at).is_some_and(|c| c.type_number == DIGEST_TYPE);
        let has_form = [digest_at + 1, digest_at + 1 + OLD_SIGNATURE].contains(&interest.name().len());
        if !has_form || !has_digest(interest.name()) || check_parameters_digest(interest).is_err() {
            return Outcome::Reply(Reply::Nothing);
        }
        if let Some(wire) = self.requests.answered(interest.name()) {
            return Outcome::Reply(Reply::Data(wire));
        }
        let now_ns = now_ms.saturating_mul(1_000_000);
        match verb.map(|verb| verb.value) {
            Some(b"CHALLENGE") => self.challenge(interest, asker, now_ms),
            _ if !self.rates.try_take(asker, now_ns) => Outcome::Reply(Reply::Busy),
            Some(b"PROBE") => {
                let content = self.probe(interest).unwrap_or_else(|refused| self.refuse(interest.name(), refused));
                Outcome::Reply(self.answer(interest.name(), &content))
            }
            _ => Outcome::Reply(self.begin(interest, asker, now_ms)),
        }
    }

    fn info(&self, interest: &Interest<'_>) -> Reply {
        let profile = Data::parse(&self.profile).expect("made here");
        if interest.matches(&profile) { Reply::Data(self.profile.clone()) } else { Reply::Nothing }
    }

    /// PROBE: which names may this requester have?
    fn probe(&self, interest: &Interest<'_>) -> Result<Vec<u8>, Refused> {
        let parameters = Parameters::read(interest.application_parameters().unwrap_or_default())
            .map_err(|error| Refused::new(ErrorCode::BadParameterFormat, error.to_string()))?;
        let names = policy::names_for(&self.settings, &parameters)
            .map_err(|why| Refused::new(ErrorCode::NoAvailableName, why))?;
        Ok(ProbeResponse { names, redirects: Vec::new() }.content())
    }

    /// NEW: begins a request.
    fn begin(&mut self, interest: &Interest<'_>, asker: u64, now_ms: u64) -> Reply {
        match self.requests.make_room(asker) {
            Ok(lost) => self.changes.extend(lost.map(Change::Forget)),
            Err(()) => return Reply::Busy,
        }
        match self.new_request(interest, asker, now_ms) {
            Ok((id, content)) => {
                let reply = self.answer(interest.name(), &content);
                self.requests.note_answer(id, interest.name(), &reply);
                self.changes.push(Change::Keep(id));
                reply
            }
            Err(refused) => {
                let content = self.refuse(interest.name(), refused);
                self.answer(interest.name(), &content)
            }
        }
    }

    fn new_request(
        &mut self,
        interest: &Interest<'_>,
        asker: u64,
        now_ms: u64,
    ) -> Result<(RequestId, Vec<u8>), Refused> {
        if self.is_full {
            return Err(Refused::new(
                ErrorCode::InvalidParameters,
                "the authority keeps as many certificates as it may",
            ));
        }
        let certificate = self.requested(interest, now_ms)?;
        let validity = self.validity(certificate.validity(), now_ms)?;
        let ecdh_pub = NewRequest::read(interest.application_parameters().unwrap_or_default())
            .map_err(|error| Refused::new(ErrorCode::BadParameterFormat, error.to_string()))?
            .ecdh_pub;
        let failed = |error: namewire_ndncert::SessionError| {
            Refused::new(ErrorCode::InvalidParameters, format!("no key could be agreed on: {error}"))
        };
        let (mut id, mut salt) = ([0; 8], [0; SALT_BYTES]);
        let random = getrandom::fill(&mut id).and_then(|()| getrandom::fill(&mut salt));
        random.map_err(|_| failed(namewire_ndncert::SessionError::NoRandomness))?;
        let id = RequestId(id);
        let ours = EcdhKey::generate().map_err(failed)?;
        let own_pub = *ours.public();
        let session = ours.agree(&ecdh_pub, &salt, id).map_err(failed)?;
        self.requests.add(Request::new(session, certificate, validity, asker, now_ms));
        let challenges = self.settings.proofs.iter().map(|offer| offer.id().to_owned()).collect();
        Ok((id, NewResponse { ecdh_pub: own_pub, salt, request_id: id, challenges }.content()))
    }

    /// The self-signed certificate in NEW, checked, with the signature of the Interest.
    fn requested(&self, interest: &Interest<'_>, now_ms: u64) -> Result<Certificate, Refused> {
        let malformed = |error: &dyn std::fmt::Display| Refused::new(ErrorCode::BadParameterFormat, error.to_string());
        let read = NewRequest::read(interest.application_parameters().unwrap_or_default());
        let read = read.map_err(|error| malformed(&error))?;
        let certificate = Certificate::parse(read.certificate_wire).map_err(|error| malformed(&error))?;
        policy::check_name(&self.settings, certificate.identity())
            .map_err(|why| Refused::new(ErrorCode::NameNotAllowed, why))?;
        let key = certificate.public_key().map_err(|error| malformed(&error))?;
        let bad = |error: &dyn std::fmt::Display| Refused::new(ErrorCode::BadSignature, error.to_string());
        certificate.verify(&key).map_err(|error| bad(&error))?;
        let signed = signature_of(interest)
            .ok_or_else(|| Refused::new(ErrorCode::BadInterestFormat, "the Interest is not signed"))?;
        signed.verify(&key).map_err(|denial| bad(&denial))?;
        match signed.time_ms {
            Some(time_ms) if time_ms.abs_diff(now_ms) > CLOCK_SLACK_MS => {
                Err(Refused::new(ErrorCode::BadSignature, "the clock of the requester is wrong"))
            }
            _ => Ok(certificate),
        }
    }

    /// What is allowed of the validity that was asked for.
    fn validity(&self, asked: ValidityPeriod, now_ms: u64) -> Result<ValidityPeriod, Refused> {
        let own = self.certificate.validity();
        let longest_ms = now_ms.saturating_add(self.settings.max_validity_ms);
        let validity = ValidityPeriod {
            not_before_ms: asked.not_before_ms.max(now_ms.saturating_sub(CLOCK_SLACK_MS)).max(own.not_before_ms),
            not_after_ms: asked.not_after_ms.min(longest_ms).min(own.not_after_ms),
        };
        if validity.not_after_ms < now_ms.max(validity.not_before_ms).saturating_add(SHORTEST_MS) {
            let why = if own.contains(now_ms) {
                "the certificate would not hold for a minute"
            } else {
                "the authority's own certificate has expired"
            };
            return Err(Refused::new(ErrorCode::BadValidityPeriod, why));
        }
        Ok(validity)
    }

    /// CHALLENGE: an answer of the requester.
    fn challenge(&mut self, interest: &Interest<'_>, asker: u64, now_ms: u64) -> Outcome {
        let refused = |refused: Refused, authority: &mut Self| {
            if !authority.refusals.try_take(asker, now_ms.saturating_mul(1_000_000)) {
                return Outcome::Reply(Reply::Busy);
            }
            let content = authority.refuse(interest.name(), refused);
            Outcome::Reply(authority.answer(interest.name(), &content))
        };
        let id = interest.name().get(self.settings.prefix.len() + 2).and_then(|id| id.value.try_into().ok());
        let request = id.map(RequestId).and_then(|id| Some((id, self.requests.get(id)?)));
        let Some((id, request)) = request.filter(|(_, request)| !request.is_decided()) else {
            return refused(
                Refused::new(ErrorCode::InvalidParameters, "there is no such request, or it is over"),
                self,
            );
        };
        if let Some(waiting) = request.waiting_for() {
            let is_repeated = waiting == interest.name();
            return if is_repeated { Outcome::Repeated } else { Outcome::Reply(Reply::Nothing) };
        }
        if request.may_need_command() {
            let (own, all) = self.requests.waiting(asker);
            if own >= ERRANDS_PER_ASKER || all >= ERRANDS_MAX {
                return Outcome::Reply(Reply::Busy);
            }
        }
        let asked = match self.asked(id, interest) {
            Ok(asked) => asked,
            Err(why) => return refused(why, self),
        };
        match self.prove(id, &asked, now_ms) {
            Ok(Verdict::Errand(task)) => {
                let request = self.requests.get(id).expect("it was there above");
                let (identity, key_name) = (request.identity(), request.key_name());
                request.set_waiting(Some(interest.name()));
                self.changes.push(Change::Keep(id));
                Outcome::Errand(Errand { request: id, interest: interest.name().to_buf(), task, identity, key_name })
            }
            other => Outcome::Reply(self.conclude(id, interest.name(), other, now_ms)),
        }
    }

    /// What the requester says, decrypted. An Interest that is not its own changes nothing.
    fn asked(&mut self, id: RequestId, interest: &Interest<'_>) -> Result<ChallengeRequest, Refused> {
        let bad = |why: String| Refused::new(ErrorCode::BadSignature, why);
        let request = self.requests.get(id).expect("the caller has looked");
        let signed = signature_of(interest).ok_or_else(|| bad("the Interest is not signed".to_owned()))?;
        signed.verify(request.key()).map_err(|denial| bad(denial.to_string()))?;
        let encrypted = interest.application_parameters().unwrap_or_default();
        let message = request.session.decrypt(encrypted).map_err(|error| bad(error.to_string()))?;
        ChallengeRequest::read(&message).map_err(|error| Refused::new(ErrorCode::BadParameterFormat, error.to_string()))
    }

    /// Judges an answer, or begins the challenge that it chooses.
    fn prove(&mut self, id: RequestId, asked: &ChallengeRequest, now_ms: u64) -> Result<Verdict, Refused> {
        let request = self.requests.get(id).expect("the caller has looked");
        if request.is_over(now_ms) {
            return Err(Refused::new(ErrorCode::OutOfTime, "too late"));
        }
        if request.proof.is_none() {
            let chosen = asked.challenge.as_deref();
            let offer = self.settings.proofs.iter().find(|offer| Some(offer.id()) == chosen);
            let offer = offer.ok_or_else(|| Refused::new(ErrorCode::InvalidParameters, "no such challenge"))?;
            let (settings, certificate, identity) = (&self.settings, &self.certificate, request.identity());
            let (identity, asker, revoked) = (identity.as_name(), request.asker(), &self.revoked);
            let authority = proofs::Authority { settings, certificate, now_ms, identity, asker, revoked };
            let begun = proofs::begin(offer, &authority, &asked.parameters, &mut self.mails);
            let Begun { proof, verdict } = begun.map_err(|why| Refused::new(ErrorCode::InvalidParameters, why))?;
            if let Proof::Pin { code } = &proof {
                let (identity, key_name) = (request.identity(), request.key_name());
                self.changes.push(Change::Code { identity, key_name, code: secrets::readable(code) });
            }
            request.begin_proof(proof, offer, now_ms);
            return Ok(verdict);
        }
        if asked.challenge.as_ref().is_some_and(|challenge| *challenge != request.challenge) {
            return Err(Refused::new(ErrorCode::InvalidParameters, "another challenge was chosen"));
        }
        let identity = request.identity();
        let proof = request.proof.as_ref().expect("a challenge has begun");
        let mut verdict = proofs::check(proof, &request.challenge, &asked.parameters, now_ms);
        let code = asked.parameters.text("code");
        if matches!(verdict, Verdict::Wrong(_))
            && request.challenge == "pin"
            && let Some(pin) = code.and_then(|code| self.pins.take(identity.as_name(), code, now_ms))
        {
            self.changes.push(Change::PinUsed(pin));
            verdict = Verdict::Proven;
        }
        Ok(verdict)
    }

    /// What the operator's command said; the answer to the Interest that waits.
    pub fn finish(&mut self, errand: &Errand, said: CommandSaid, now_ms: u64) -> Reply {
        let Some(request) = self.requests.get(errand.request).filter(|request| request.waiting_for().is_some()) else {
            return Reply::Nothing;
        };
        request.set_waiting(None);
        let verdict = match (said, &errand.task) {
            (CommandSaid::Yes, Task::Mail { .. }) => Ok(Verdict::Ask("need-code".to_owned(), Parameters::default())),
            (CommandSaid::Yes, Task::Judge { .. }) => Ok(Verdict::Proven),
            (CommandSaid::Ask(words), Task::Judge { .. }) => {
                request.questions += 1;
                // The first question is none that a wrong answer has brought.
                let is_first = request.questions == 1;
                Ok(if is_first { Verdict::Ask(words, Parameters::default()) } else { Verdict::Wrong(words) })
            }
            (CommandSaid::No(why), Task::Judge { .. }) => Err(Refused::new(ErrorCode::InvalidParameters, why)),
            (_, Task::Mail { .. }) => {
                Err(Refused::new(ErrorCode::InvalidParameters, "the mail with the code could not be sent"))
            }
        };
        self.conclude(errand.request, errand.interest.as_name(), verdict, now_ms)
    }

    /// The answer to a challenge, and what it means for the request.
    fn conclude(&mut self, id: RequestId, interest: Name<'_>, verdict: Result<Verdict, Refused>, now_ms: u64) -> Reply {
        let request = self.requests.get(id).expect("the caller has looked");
        let (remaining_ms, identity) = (request.remaining_ms(now_ms), request.identity());
        let response = match verdict {
            Ok(Verdict::Proven) => self.issue(id, now_ms),
            Ok(Verdict::Ask(challenge_status, parameters)) => {
                let remaining_tries = request.tries_left;
                Ok(ChallengeResponse::Question { challenge_status, remaining_tries, remaining_ms, parameters })
            }
            Ok(Verdict::Wrong(challenge_status)) => {
                request.tries_left -= 1;
                match request.tries_left {
                    0 => Err(Refused::new(ErrorCode::OutOfTries, "too many wrong answers")),
                    remaining_tries => Ok(ChallengeResponse::Question {
                        challenge_status,
                        remaining_tries,
                        remaining_ms,
                        parameters: Parameters::default(),
                    }),
                }
            }
            Ok(Verdict::Errand(_)) => unreachable!("an errand is handled before"),
            Err(refused) => Err(refused),
        };
        let (content, is_over) = match response {
            Ok(response) => {
                let is_over = matches!(response, ChallengeResponse::Issued { .. });
                let request = self.requests.get(id).expect("it was there above");
                match request.session.encrypt(&response.message()) {
                    Ok(content) => (content, is_over),
                    Err(_) => return Reply::Nothing,
                }
            }
            Err(refused) => (self.refuse(identity.as_name(), refused), true),
        };
        let reply = self.answer(interest, &content);
        self.requests.note_answer(id, interest, &reply);
        if is_over {
            self.requests.end(id, now_ms);
            self.changes.push(Change::Forget(id));
        } else {
            self.changes.push(Change::Keep(id));
        }
        reply
    }

    fn issue(&mut self, id: RequestId, now_ms: u64) -> Result<ChallengeResponse, Refused> {
        let request = self.requests.get(id).expect("the caller has looked");
        let (asked, validity) = (request.certificate.clone(), request.validity);
        let may_have = self.issued_today.take(request.identity(), now_ms);
        may_have.map_err(|why| Refused::new(ErrorCode::NameNotAllowed, why))?;
        self.last_version = now_ms.max(self.last_version + 1);
        let issuer_id = Component::generic(self.settings.issuer_id.as_bytes());
        let (key, version) = (asked.key_name(), self.last_version);
        let issued = issue_certificate(&self.signer, key, asked.spki(), issuer_id, version, validity);
        let issued = issued.map_err(|error| Refused::new(ErrorCode::InvalidParameters, error.to_string()))?;
        let mut name = issued.name().to_buf();
        let digest = issued.data().implicit_digest();
        name.push(Component { type_number: namewire_packet::tlv::types::IMPLICIT_SHA256_DIGEST, value: &digest });
        self.changes.push(Change::Issued(Box::new(issued)));
        let forwarding_hint = Some(self.settings.prefix.join(Component::generic(b"CA")));
        Ok(ChallengeResponse::Issued { name, forwarding_hint })
    }

    fn refuse(&mut self, who: Name<'_>, Refused(code, why): Refused) -> Vec<u8> {
        let content = Refusal::content(code, &why);
        self.changes.push(Change::Refused { who: who.to_buf(), why });
        content
    }

    fn answer(&self, name: Name<'_>, content: &[u8]) -> Reply {
        let freshness_ms = if Refusal::read(content).is_some() { REFUSAL_FRESHNESS_MS } else { FRESHNESS_MS };
        let packet = DataBuilder::new(name.to_buf()).freshness_ms(freshness_ms).content(content);
        self.signer.sign_data(&packet).map_or(Reply::Nothing, Reply::Data)
    }
}
