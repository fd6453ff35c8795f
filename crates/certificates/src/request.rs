//! How does a key get a certificate of an authority over the network (NDNCERT 0.3)? A request, and a renewal.
//!
//! ```no_run
//! use namewire_certificates::request::{CaTrust, Challenge, RequestedKey, Terms, ca_profile, request_certificate};
//! use namewire_client::{Client, security::Certificate};
//!
//! # async fn example(key: RequestedKey, site: Certificate) -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect().await?;
//! let profile = ca_profile(&client, &"/site".parse()?, CaTrust::Certificate(&site)).await?;
//! let code = async |_, _| Ok(Some("123456".to_owned())); // as the operator told it
//! let certificate = request_certificate(&client, profile, key, &Challenge::Pin, Terms::now(), code).await?;
//! println!("{}", certificate.name());
//! # Ok(())
//! # }
//! ```
//!
//! The protocol is in `namewire_ndncert`; this file sends its Interests. A packet that gets no answer is asked for
//! [`TRIES`] times, with the same bytes but for its Nonce: the authority answers an Interest that it has answered with
//! the same again.
//!
//! Whoever answers under the name of an authority can only be believed if the requester knows its certificate
//! ([`CaTrust`]). A renewal needs nothing: the key that signed the present certificate is the authority's.

use namewire_client::{Client, DataBuf, ExpressError, Validator, next_signature_time_ms, object_protocol};
use namewire_ndncert::{
    Requester, Step, challenge, messages, profile, requester,
    requester::{RequesterError, Stamp},
    service_name, verbs,
};
use namewire_packet::{
    Interest, InterestBuilder, KeyLocator, NackReason, NameBuf, Nonce, SignedInterestFields, interest::write_with_nonce,
};
use namewire_security::{Certificate, Signer, certificate::identity_of, trust::Denial};
use std::time::Duration;
use tokio::time::{Instant, sleep};

pub use challenge::{Challenge, Need};
pub use namewire_ndncert::{CaProfile, Parameters};
pub use requester::{Question, RequestedKey};

/// How often a packet is asked for.
pub const TRIES: u32 = 4;
/// How often an answer to a challenge is asked for: the authority's operator may let a program decide, for a minute.
pub const CHALLENGE_TRIES: u32 = 16;
const LIFETIME_MS: u64 = 4000;
/// After a Nack: the authority is busy, or the way to it is not there yet.
const NACK_PAUSE: Duration = Duration::from_secs(1);
/// Bytes of a SignatureNonce.
const NONCE_BYTES: usize = 8;
/// Most questions of one challenge. Authorities allow fewer tries.
const QUESTIONS_MAX: u32 = 32;

/// How a requester knows that it talks to the right authority.
#[derive(Clone, Copy, Debug)]
pub enum CaTrust<'a> {
    /// By its certificate, or another one of the same key.
    Certificate(&'a Certificate),
    /// By the SHA-256 digest of its certificate's packet.
    Digest([u8; 32]),
    /// Somebody whom this schema trusts vouches for it.
    Schema(&'a Validator),
    /// By a certificate that it has issued.
    IssuerOf(&'a Certificate),
    /// Not at all: the caller shows the digest to somebody, or throws the answer away.
    Nothing,
}

/// When a certificate is asked for, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The time, in milliseconds since 1970.
    pub now_ms: u64,
    /// How long the certificate is to hold, in milliseconds; `None`: as long as the authority allows.
    pub period_ms: Option<u64>,
}

impl Terms {
    /// From now on, for as long as the authority allows.
    pub fn now() -> Self {
        Terms { now_ms: next_signature_time_ms(), period_ms: None }
    }
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificationError {
    /// The authority does not answer.
    #[error("the authority of {0} does not answer: {1}")]
    NoAnswer(NameBuf, ExpressError),
    /// Who answers is not an authority.
    #[error(transparent)]
    NoProfile(#[from] profile::ProfileError),
    /// Who answers is not the authority that is trusted.
    #[error("who answers for {0} is not the authority that you trust: {1}")]
    NotTrusted(NameBuf, String),
    /// The request failed.
    #[error(transparent)]
    Request(#[from] RequesterError),
    /// The authority offers other challenges.
    #[error("the authority of {0} does not take {1}; it takes: {2}")]
    OtherChallenges(NameBuf, String, String),
    /// The user gave no answer.
    #[error("{0}")]
    NoInput(String),
    /// The authority has no name for this requester.
    #[error("the authority refused: {0}")]
    Refused(messages::Refusal),
    /// The present certificate does not say who issued it.
    #[error("{0} does not name its issuer")]
    NoIssuer(NameBuf),
}

/// Asks who the authority of `prefix` is.
///
/// # Errors
/// If nobody answers, or nobody who is trusted.
pub async fn ca_profile(
    client: &Client,
    prefix: &NameBuf,
    trust: CaTrust<'_>,
) -> Result<CaProfile, CertificationError> {
    let object = service_name(prefix.as_name(), verbs::INFO);
    let no_answer = |error| CertificationError::NoAnswer(prefix.clone(), error);
    let ask = InterestBuilder::new(object_protocol::metadata_name(&object)).can_be_prefix(true).must_be_fresh(true);
    let metadata = express_again(client, &ask.build()).await.map_err(no_answer)?;
    let other = |what: String| CertificationError::NotTrusted(prefix.clone(), what);
    let versioned = object_protocol::name_in_metadata(metadata.data().content())
        .filter(|name| object.as_name().is_prefix_of(&name.as_name()))
        .ok_or_else(|| other("its answer names no profile".to_owned()))?;
    let segment = InterestBuilder::new(versioned.clone().push_segment(0).clone());
    let packet = express_again(client, &segment.build()).await.map_err(no_answer)?;
    let profile = CaProfile::of_data(&packet.data())?;
    if profile.prefix != *prefix {
        return Err(other(format!("it certifies {}", profile.prefix)));
    }
    let certificate = &profile.certificate;
    match trust {
        CaTrust::Nothing => {}
        CaTrust::Certificate(known) if known.spki() == certificate.spki() => {}
        CaTrust::Certificate(known) => return Err(other(format!("its key is not that of {}", known.name()))),
        CaTrust::Digest(digest) if digest == certificate.data().implicit_digest() => {}
        CaTrust::Digest(_) => return Err(other("its certificate has another digest".to_owned())),
        CaTrust::Schema(validator) => {
            let checked = validator.check(client, &certificate.data()).await;
            checked.map_err(|denial: Denial| other(denial.to_string()))?;
        }
        CaTrust::IssuerOf(held) => {
            let key = certificate.public_key().map_err(profile::ProfileError::from)?;
            let is_issuer = held.verify(&key);
            is_issuer.map_err(|_| other(format!("its key did not sign {}", held.name())))?;
        }
    }
    Ok(profile)
}

/// Asks which names a requester may have who says this about itself. Each comes with the components that may follow.
///
/// # Errors
/// If the authority refuses or does not answer.
pub async fn probe_names(
    client: &Client,
    profile: &CaProfile,
    parameters: &Parameters,
) -> Result<Vec<(NameBuf, Option<u64>)>, CertificationError> {
    let mut value = Vec::new();
    parameters.write(&mut value);
    let name = service_name(profile.prefix.as_name(), verbs::PROBE);
    let interest = InterestBuilder::new(name).must_be_fresh(true).application_parameters(value).build();
    let answer = express_again(client, &interest).await;
    let answer = answer.map_err(|error| CertificationError::NoAnswer(profile.prefix.clone(), error))?;
    let data = answer.data();
    profile.verify(&data)?;
    if let Some(refusal) = messages::Refusal::read(data.content()) {
        return Err(CertificationError::Refused(refusal));
    }
    Ok(messages::ProbeResponse::read(data.content()).map_err(RequesterError::from)?.names)
}

/// Gets a certificate for `key`. `ask` gets from the user what a question needs; it is not called for a challenge that
/// needs nobody.
///
/// # Errors
/// If the authority refuses or does not answer, or if `ask` has no answer.
pub async fn request_certificate(
    client: &Client,
    profile: CaProfile,
    key: RequestedKey,
    challenge: &Challenge,
    terms: Terms,
    mut ask: impl AsyncFnMut(Need, Question) -> Result<Option<String>, String>,
) -> Result<Certificate, CertificationError> {
    let prefix = profile.prefix.clone();
    let no_answer = |error| CertificationError::NoAnswer(prefix.clone(), error);
    let Terms { now_ms, period_ms } = terms;
    let began = Instant::now();
    let mut last_ms = now_ms;
    let (mut requester, new) = Requester::begin(profile, key, period_ms, now_ms, &stamp(now_ms))?;
    let offered = requester.on_new(&express_again(client, &new).await.map_err(no_answer)?.data())?;
    if !offered.iter().any(|one| one == challenge.id()) {
        let (wanted, offered) = (challenge.id().to_owned(), offered.join(", "));
        return Err(CertificationError::OtherChallenges(prefix, wanted, offered));
    }
    let mut parameters = challenge.first();
    for _ in 0..QUESTIONS_MAX {
        // A user may have thought for long.
        last_ms = (last_ms + 1).max(now_ms + began.elapsed().as_millis() as u64);
        let interest = requester.answer(challenge.id(), parameters, &stamp(last_ms))?;
        let answer = express_times(client, &interest, CHALLENGE_TRIES).await.map_err(no_answer)?;
        match requester.on_challenge(&answer.data())? {
            Step::Issued { name, forwarding_hint } => {
                let packet = fetch_issued(client, &name, forwarding_hint).await.map_err(no_answer)?;
                return Ok(requester.accept(packet.wire(), name.as_name(), last_ms)?);
            }
            Step::Asked(question) => {
                let need = challenge.need(&question);
                let code = match need {
                    Need::Nothing => None,
                    need => ask(need, question.clone()).await.map_err(CertificationError::NoInput)?,
                };
                parameters = challenge.answer(&question, code.as_deref()).map_err(RequesterError::from)?;
            }
        }
    }
    Err(CertificationError::NoInput("the authority asks without end".to_owned()))
}

/// Replaces a certificate by one of the same key, by the authority that issued it: the present one is the proof.
/// `signer` has the key.
///
/// # Errors
/// As [`request_certificate`]; [`CertificationError::NotTrusted`] if the authority has another key than the one that
/// signed the present certificate, and `or_by` does not vouch for it.
pub async fn renew_certificate(
    client: &Client,
    present: &Certificate,
    signer: &Signer,
    terms: Terms,
    or_by: Option<&Validator>,
) -> Result<Certificate, CertificationError> {
    let issuer = match present.key_locator() {
        Some(KeyLocator::Name(locator)) => identity_of(locator).map(|identity| identity.to_buf()),
        _ => None,
    };
    let prefix = issuer.ok_or_else(|| CertificationError::NoIssuer(present.name().to_buf()))?;
    let profile = match (ca_profile(client, &prefix, CaTrust::IssuerOf(present)).await, or_by) {
        (Err(CertificationError::NotTrusted(..)), Some(schema)) => {
            ca_profile(client, &prefix, CaTrust::Schema(schema)).await
        }
        (profile, _) => profile,
    }?;
    let challenge = Challenge::Possession(Box::new(present.clone()), signer.clone());
    let name = present.key_name().to_buf();
    let key = RequestedKey { name, spki: present.spki().to_vec(), signer: signer.clone() };
    let nobody = async |_, _| Ok(None);
    request_certificate(client, profile, key, &challenge, terms, nobody).await
}

/// Fetches the certificate, where the authority says it is, or by its name alone.
async fn fetch_issued(client: &Client, name: &NameBuf, hint: Option<NameBuf>) -> Result<DataBuf, ExpressError> {
    let by_name = InterestBuilder::new(name);
    if let Some(hint) = hint
        && let Ok(packet) = express_again(client, &by_name.clone().forwarding_hint(&[hint]).build()).await
    {
        return Ok(packet);
    }
    express_again(client, &by_name.build()).await
}

/// Sends an Interest with a new Nonce each time, until there is Data.
async fn express_again(client: &Client, wire: &[u8]) -> Result<DataBuf, ExpressError> {
    express_times(client, wire, TRIES).await
}

async fn express_times(client: &Client, wire: &[u8], tries: u32) -> Result<DataBuf, ExpressError> {
    let interest = Interest::parse(wire).map_err(ExpressError::Malformed)?;
    let mut last = ExpressError::Timeout(LIFETIME_MS);
    for _ in 0..tries {
        let mut again = Vec::with_capacity(wire.len() + 8);
        write_with_nonce(&interest, fresh_nonce(), &mut again);
        match client.express_wire(&again).await {
            Err(error @ ExpressError::Nack(reason)) => {
                last = error;
                if reason != NackReason::Duplicate {
                    sleep(NACK_PAUSE).await;
                }
            }
            Err(error @ ExpressError::Timeout(_)) => last = error,
            other => return other,
        }
    }
    Err(last)
}

/// Authorities may ask for times that grow with each Interest of a request.
fn stamp(time_ms: u64) -> Stamp {
    let mut nonce = vec![0; NONCE_BYTES];
    if getrandom::fill(&mut nonce).is_err() {
        // It must differ between requests; it need not be secret.
        nonce = fastrand::u64(..).to_ne_bytes().to_vec();
    }
    let fields = SignedInterestFields { nonce, time_ms: Some(time_ms), ..Default::default() };
    Stamp { nonce: fresh_nonce(), fields }
}

fn fresh_nonce() -> Nonce {
    Nonce(fastrand::u32(..).to_be_bytes())
}
