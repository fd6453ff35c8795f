//! The requester: what does it send next, and what did the authority say?
//!
//! ```text
//!   Requester::begin ──► NEW ──► on_new ──► challenges
//!   answer(challenge, parameters) ──► CHALLENGE ──► on_challenge ──► Step::Asked, again
//!                                                               └──► Step::Issued ──► fetch ──► accept
//! ```
//!
//! Nothing that the authority sends is believed before the key of its profile has verified it; and a certificate counts
//! only if that key signed it, for the requester's own key and name.

use crate::{
    CaProfile, Parameters,
    challenge::ChallengeError,
    fields::FieldError,
    messages::{ChallengeRequest, ChallengeResponse, NewRequest, NewResponse, Refusal},
    profile::ProfileError,
    service_name,
    session::{EcdhKey, SessionError, SessionKey},
    verbs,
};
use namewire_packet::{Component, Data, InterestBuilder, Name, NameBuf, Nonce, SignedInterestFields, tlv::types};
use namewire_security::{
    Certificate, CertificateError, IssueError, SignError, Signer, ValidityPeriod, VerifyError,
    certificate::is_certificate_name, issue_certificate,
};

/// How much shorter than the longest time a certificate is asked for.
const CLOCK_SLACK_MS: u64 = 60_000;

/// Why there is no certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequesterError {
    /// The authority refused.
    #[error("the authority refused: {0}")]
    Refused(Refusal),
    /// The authority gave up the request without a reason.
    #[error("the authority ended the request")]
    Failed,
    /// An answer is malformed.
    #[error("the answer of the authority is malformed: {0}")]
    Malformed(#[from] FieldError),
    /// An answer is not the authority's.
    #[error("the answer is not the authority's: {0}")]
    NotItsAnswer(#[from] ProfileError),
    /// An answer cannot be decrypted.
    #[error("{0}")]
    Session(#[from] SessionError),
    /// A question of the authority has no answer.
    #[error("{0}")]
    Challenge(#[from] ChallengeError),
    /// The request cannot be signed.
    #[error("{0}")]
    Sign(#[from] SignError),
    /// No self-signed certificate could be made.
    #[error("{0}")]
    Issue(#[from] IssueError),
    /// The key's identity is not under the authority's prefix.
    #[error("the authority of {0} gives no certificate for {1}")]
    NotUnder(NameBuf, NameBuf),
    /// The authority's certificate has expired.
    #[error("the certificate of the authority is not valid now")]
    AuthorityExpired,
    /// A step was taken before the one before it.
    #[error("the request has not begun")]
    NotBegun,
    /// The certificate that came is another one.
    #[error("the certificate that came is not the one that was asked for: {0}")]
    OtherCertificate(String),
    /// What came is no certificate.
    #[error("what came is no certificate: {0}")]
    NoCertificate(#[from] CertificateError),
    /// The authority did not sign the certificate that came.
    #[error("the certificate that came is forged: {0}")]
    Forged(VerifyError),
}

/// A question of the authority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// In the words of the challenge, for example `need-code`.
    pub status: String,
    /// How many answers it still takes.
    pub remaining_tries: u64,
    /// How long it still waits, in milliseconds.
    pub remaining_ms: u64,
    /// What belongs to it.
    pub parameters: Parameters,
}

/// What the authority said to an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It asks.
    Asked(Question),
    /// There is a certificate, to be fetched by this name.
    Issued {
        /// Its name, usually with its digest.
        name: NameBuf,
        /// Where it is, if its name does not lead there.
        forwarding_hint: Option<NameBuf>,
    },
}

/// What makes an Interest unique; the caller has clock and randomness.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// Of the Interest.
    pub nonce: Nonce,
    /// Of its signature.
    pub fields: SignedInterestFields,
}

/// A request under way.
#[derive(Debug)]
pub struct Requester {
    profile: CaProfile,
    signer: Signer,
    key_name: NameBuf,
    spki: Vec<u8>,
    ecdh: Option<EcdhKey>,
    session: Option<SessionKey>,
}

/// The key that is to be certified.
#[derive(Clone, Debug)]
pub struct RequestedKey {
    /// `/<identity>/KEY/<key id>`.
    pub name: NameBuf,
    /// Its SubjectPublicKeyInfo.
    pub spki: Vec<u8>,
    /// It signs the request; its KeyLocator names the key.
    pub signer: Signer,
}

impl Requester {
    /// Begins a request for `key`, valid for `period_ms` from `now_ms` (milliseconds since 1970), or as long as the
    /// authority allows. Returns the Interest to send; its answer goes to [`Requester::on_new`].
    ///
    /// # Errors
    /// If the key's name is not under the authority's prefix; if the authority's certificate is not valid; if no
    /// certificate can be signed.
    pub fn begin(
        profile: CaProfile,
        key: RequestedKey,
        period_ms: Option<u64>,
        now_ms: u64,
        stamp: &Stamp,
    ) -> Result<(Self, Vec<u8>), RequesterError> {
        let RequestedKey { name: key_name, spki, signer } = key;
        if !profile.prefix.as_name().is_prefix_of(&key_name.as_name()) {
            return Err(RequesterError::NotUnder(profile.prefix, key_name));
        }
        let of_authority = profile.certificate.validity();
        if !of_authority.contains(now_ms) {
            return Err(RequesterError::AuthorityExpired);
        }
        // Our clock may be ahead of the authority's, and some refuse a certificate that would hold too long.
        let slack_ms = if profile.max_validity_ms > 10 * CLOCK_SLACK_MS { CLOCK_SLACK_MS } else { 0 };
        let longest_ms = profile.max_validity_ms - slack_ms;
        let period_ms = period_ms.unwrap_or(longest_ms).min(longest_ms);
        let validity = ValidityPeriod {
            not_before_ms: now_ms.max(of_authority.not_before_ms),
            not_after_ms: now_ms.saturating_add(period_ms).min(of_authority.not_after_ms),
        };
        let id = Component::generic(b"cert-request");
        let request = issue_certificate(&signer, key_name.as_name(), &spki, id, now_ms, validity)?;
        let ecdh = EcdhKey::generate()?;
        let parameters = NewRequest { ecdh_pub: *ecdh.public(), certificate_wire: request.wire() }.parameters();
        let name = service_name(profile.prefix.as_name(), verbs::NEW);
        let wire = sign(&signer, InterestBuilder::new(name), parameters, stamp)?;
        Ok((Requester { profile, signer, key_name, spki, ecdh: Some(ecdh), session: None }, wire))
    }

    /// The authority.
    pub const fn profile(&self) -> &CaProfile {
        &self.profile
    }

    /// The answer to NEW. Returns the challenges of which one may be chosen.
    ///
    /// # Errors
    /// If the authority refuses, or the answer is not its own.
    pub fn on_new(&mut self, data: &Data<'_>) -> Result<Vec<String>, RequesterError> {
        self.verify(data)?;
        let ecdh = self.ecdh.take().ok_or(RequesterError::NotBegun)?;
        let NewResponse { ecdh_pub, salt, request_id, challenges } = NewResponse::read(data.content())?;
        self.session = Some(ecdh.agree(&ecdh_pub, &salt, request_id)?);
        Ok(challenges)
    }

    /// The Interest that chooses a challenge, or answers its question. Its answer goes to [`Requester::on_challenge`].
    ///
    /// # Errors
    /// If NEW was not answered, or if the Interest cannot be encrypted or signed.
    pub fn answer(
        &mut self,
        challenge: &str,
        parameters: Parameters,
        stamp: &Stamp,
    ) -> Result<Vec<u8>, RequesterError> {
        let session = self.session.as_mut().ok_or(RequesterError::NotBegun)?;
        let message = ChallengeRequest { challenge: Some(challenge.to_owned()), parameters }.message();
        let encrypted = session.encrypt(&message)?;
        let mut name = service_name(self.profile.prefix.as_name(), verbs::CHALLENGE);
        name.push_generic(&session.id().0);
        sign(&self.signer, InterestBuilder::new(name), encrypted, stamp)
    }

    /// The answer to CHALLENGE.
    ///
    /// # Errors
    /// If the authority refuses, or the answer is not its own.
    pub fn on_challenge(&mut self, data: &Data<'_>) -> Result<Step, RequesterError> {
        self.verify(data)?;
        let session = self.session.as_mut().ok_or(RequesterError::NotBegun)?;
        match ChallengeResponse::read(&session.decrypt(data.content())?)? {
            ChallengeResponse::Question { challenge_status: status, remaining_tries, remaining_ms, parameters } => {
                Ok(Step::Asked(Question { status, remaining_tries, remaining_ms, parameters }))
            }
            ChallengeResponse::Issued { name, forwarding_hint } => {
                if is_certificate_name(without_digest(name.as_name())) {
                    Ok(Step::Issued { name, forwarding_hint })
                } else {
                    Err(RequesterError::OtherCertificate(format!("{name} names no certificate")))
                }
            }
            ChallengeResponse::Failed => Err(RequesterError::Failed),
        }
    }

    /// Checks the certificate that came for the name in [`Step::Issued`], at `now_ms` (milliseconds since 1970).
    ///
    /// # Errors
    /// If it is not a certificate of the requester's key, by the authority; if it is not valid.
    pub fn accept(&self, wire: &[u8], issued: Name<'_>, now_ms: u64) -> Result<Certificate, RequesterError> {
        let certificate = Certificate::parse(wire)?;
        let other = |what: &str| Err(RequesterError::OtherCertificate(format!("{} {what}", certificate.name())));
        if certificate.name() != without_digest(issued) {
            return other("has another name");
        }
        if certificate.key_name() != self.key_name.as_name() || certificate.spki() != self.spki {
            return other("is for another key");
        }
        // The clock of the authority may be ahead.
        if !certificate.is_valid_at(now_ms) && !certificate.is_valid_at(now_ms + CLOCK_SLACK_MS) {
            return other("is not valid now");
        }
        let authority = self.profile.certificate.public_key().map_err(ProfileError::from)?;
        certificate.verify(&authority).map_err(RequesterError::Forged)?;
        Ok(certificate)
    }

    fn verify(&self, data: &Data<'_>) -> Result<(), RequesterError> {
        self.profile.verify(data)?;
        match Refusal::read(data.content()) {
            Some(refusal) => Err(RequesterError::Refused(refusal)),
            None => Ok(()),
        }
    }
}

/// The name without an implicit digest at its end.
pub fn without_digest(name: Name<'_>) -> Name<'_> {
    let is_digest = name.last().is_some_and(|last| last.type_number == types::IMPLICIT_SHA256_DIGEST);
    if is_digest { name.parent() } else { name }
}

fn sign(
    signer: &Signer,
    interest: InterestBuilder,
    parameters: Vec<u8>,
    stamp: &Stamp,
) -> Result<Vec<u8>, RequesterError> {
    let interest = interest.must_be_fresh(true).nonce(stamp.nonce).application_parameters(parameters);
    Ok(signer.sign_interest(&interest, &stamp.fields)?)
}
