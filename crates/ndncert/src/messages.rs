//! The messages of a request, without their packets: what goes into ApplicationParameters or Content.

use crate::{
    fields::{self, FieldError, Fields, Parameters, types},
    session::{ECDH_PUB_BYTES, RequestId, SALT_BYTES},
};
use namewire_packet::{NameBuf, tlv};
use std::fmt;

/// Most challenges in an answer.
pub const CHALLENGES_MAX: usize = 32;
/// Most names in an answer to PROBE.
pub const NAMES_MAX: usize = 32;
/// ForwardingHint of the packet format, which an answer uses as a field.
const FORWARDING_HINT: u32 = tlv::types::FORWARDING_HINT;

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// No challenge is chosen.
    BeforeChallenge,
    /// The authority waits for an answer.
    Challenge,
    /// The authority works on it.
    Pending,
    /// There is a certificate.
    Success,
    /// There will be none.
    Failure,
}

impl Status {
    const ALL: [Status; 5] =
        [Status::BeforeChallenge, Status::Challenge, Status::Pending, Status::Success, Status::Failure];

    fn of_number(number: u64) -> Option<Self> {
        Status::ALL.get(usize::try_from(number).ok()?).copied()
    }
}

/// Why an authority refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum ErrorCode {
    /// The Interest is malformed.
    BadInterestFormat = 1,
    /// Its parameters are malformed.
    BadParameterFormat = 2,
    /// Its signature, or that of the certificate in it, is wrong.
    BadSignature = 3,
    /// A parameter is wrong.
    InvalidParameters = 4,
    /// This name is not certified.
    NameNotAllowed = 5,
    /// The certificate would not be valid.
    BadValidityPeriod = 6,
    /// Too many wrong answers.
    OutOfTries = 7,
    /// Too late.
    OutOfTime = 8,
    /// PROBE: there is no name for this requester.
    NoAvailableName = 9,
}

/// A refusal, as the requester reads it; the code may be of a later version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// One of [`ErrorCode`].
    pub code: u64,
    /// In words.
    pub info: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let printable = |c: char| if c.is_control() { ' ' } else { c };
        let info: String = self.info.chars().take(200).map(printable).collect();
        write!(f, "{info} (code {})", self.code)
    }
}

impl Refusal {
    /// The content of a refusal.
    pub fn content(code: ErrorCode, info: &str) -> Vec<u8> {
        let mut out = Vec::new();
        tlv::write_nni(&mut out, types::ERROR_CODE, code as u64);
        tlv::write_tlv(&mut out, types::ERROR_INFO, info.as_bytes());
        out
    }

    /// Reads a refusal; `None` if the content is another message.
    pub fn read(content: &[u8]) -> Option<Self> {
        let fields = Fields::parse(content, &[types::ERROR_CODE, types::ERROR_INFO]).ok()?;
        let code = fields.number(types::ERROR_CODE).ok()?;
        Some(Refusal { code, info: fields.optional_text(types::ERROR_INFO).ok()??.to_owned() })
    }
}

/// NEW: the parameters of the Interest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRequest<'a> {
    /// The requester's part of the key agreement.
    pub ecdh_pub: [u8; ECDH_PUB_BYTES],
    /// The self-signed certificate of the key that is to be certified.
    pub certificate_wire: &'a [u8],
}

impl<'a> NewRequest<'a> {
    /// Reads it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(parameters: &'a [u8]) -> Result<Self, FieldError> {
        let fields = Fields::parse(parameters, &[types::ECDH_PUB, types::CERT_REQUEST])?;
        let certificate_wire = fields.required(types::CERT_REQUEST)?;
        Ok(NewRequest { ecdh_pub: fields.bytes(types::ECDH_PUB)?, certificate_wire })
    }

    /// Writes it.
    pub fn parameters(&self) -> Vec<u8> {
        let mut out = Vec::new();
        tlv::write_tlv(&mut out, types::ECDH_PUB, &self.ecdh_pub);
        tlv::write_tlv(&mut out, types::CERT_REQUEST, self.certificate_wire);
        out
    }
}

/// NEW: the content of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewResponse {
    /// The authority's part of the key agreement.
    pub ecdh_pub: [u8; ECDH_PUB_BYTES],
    /// Random bytes for the key.
    pub salt: [u8; SALT_BYTES],
    /// The number of the request.
    pub request_id: RequestId,
    /// The challenges, of which the requester chooses one.
    pub challenges: Vec<String>,
}

impl NewResponse {
    /// Reads it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(content: &[u8]) -> Result<Self, FieldError> {
        const KNOWN: [u32; 4] = [types::ECDH_PUB, types::SALT, types::REQUEST_ID, types::CHALLENGE];
        let fields = Fields::parse(content, &KNOWN)?;
        let challenges = fields.all(types::CHALLENGE).take(CHALLENGES_MAX);
        let challenges: Result<Vec<String>, FieldError> =
            challenges.map(|value| Ok(fields::text(types::CHALLENGE, value)?.to_owned())).collect();
        Ok(NewResponse {
            ecdh_pub: fields.bytes(types::ECDH_PUB)?,
            salt: fields.bytes(types::SALT)?,
            request_id: RequestId(fields.bytes(types::REQUEST_ID)?),
            challenges: challenges?,
        })
    }

    /// Writes it.
    pub fn content(&self) -> Vec<u8> {
        let mut out = Vec::new();
        tlv::write_tlv(&mut out, types::ECDH_PUB, &self.ecdh_pub);
        tlv::write_tlv(&mut out, types::SALT, &self.salt);
        tlv::write_tlv(&mut out, types::REQUEST_ID, &self.request_id.0);
        for challenge in &self.challenges {
            tlv::write_tlv(&mut out, types::CHALLENGE, challenge.as_bytes());
        }
        out
    }
}

/// CHALLENGE: what the requester encrypts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChallengeRequest {
    /// The challenge that it has chosen; the C++ requester leaves it out in the second answer of `possession`.
    pub challenge: Option<String>,
    /// Its answer.
    pub parameters: Parameters,
}

impl ChallengeRequest {
    /// Reads it, decrypted.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(message: &[u8]) -> Result<Self, FieldError> {
        const KNOWN: [u32; 3] = [types::SELECTED_CHALLENGE, types::PARAMETER_KEY, types::PARAMETER_VALUE];
        let fields = Fields::parse(message, &KNOWN)?;
        let challenge = fields.optional_text(types::SELECTED_CHALLENGE)?.map(str::to_owned);
        Ok(ChallengeRequest { challenge, parameters: Parameters::read(message)? })
    }

    /// Writes it, to be encrypted.
    pub fn message(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(challenge) = &self.challenge {
            tlv::write_tlv(&mut out, types::SELECTED_CHALLENGE, challenge.as_bytes());
        }
        self.parameters.write(&mut out);
        out
    }
}

/// CHALLENGE: what the authority encrypts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChallengeResponse {
    /// It asks.
    Question {
        /// In the words of the challenge.
        challenge_status: String,
        /// How many answers it still takes.
        remaining_tries: u64,
        /// How long it still waits, in milliseconds.
        remaining_ms: u64,
        /// What belongs to the question.
        parameters: Parameters,
    },
    /// There is a certificate.
    Issued {
        /// Its name, usually with its digest.
        name: NameBuf,
        /// Where it is, if its name does not lead there.
        forwarding_hint: Option<NameBuf>,
    },
    /// There will be none.
    Failed,
}

impl ChallengeResponse {
    /// Reads it, decrypted.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(message: &[u8]) -> Result<Self, FieldError> {
        const KNOWN: [u32; 8] = [
            types::STATUS,
            types::CHALLENGE_STATUS,
            types::REMAINING_TRIES,
            types::REMAINING_TIME,
            types::PARAMETER_KEY,
            types::PARAMETER_VALUE,
            types::ISSUED_CERT_NAME,
            FORWARDING_HINT,
        ];
        let fields = Fields::parse(message, &KNOWN)?;
        let status = Status::of_number(fields.number(types::STATUS)?).ok_or(FieldError::BadValue(types::STATUS))?;
        match status {
            Status::Failure => Ok(ChallengeResponse::Failed),
            Status::Success => {
                let name = fields::name(types::ISSUED_CERT_NAME, fields.required(types::ISSUED_CERT_NAME)?)?;
                let hint = fields.optional(FORWARDING_HINT)?.filter(|value| !value.is_empty());
                let hint = hint.map(|value| fields::name(FORWARDING_HINT, value)).transpose()?;
                Ok(ChallengeResponse::Issued { name, forwarding_hint: hint.filter(|hint| !hint.is_empty()) })
            }
            Status::BeforeChallenge | Status::Challenge | Status::Pending => Ok(ChallengeResponse::Question {
                challenge_status: fields.optional_text(types::CHALLENGE_STATUS)?.unwrap_or_default().to_owned(),
                remaining_tries: fields.optional_number(types::REMAINING_TRIES)?.unwrap_or_default(),
                remaining_ms: fields.optional_number(types::REMAINING_TIME)?.unwrap_or_default().saturating_mul(1000),
                parameters: Parameters::read(message)?,
            }),
        }
    }

    /// Writes it, to be encrypted.
    pub fn message(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            ChallengeResponse::Question { challenge_status, remaining_tries, remaining_ms, parameters } => {
                tlv::write_nni(&mut out, types::STATUS, Status::Challenge as u64);
                tlv::write_tlv(&mut out, types::CHALLENGE_STATUS, challenge_status.as_bytes());
                tlv::write_nni(&mut out, types::REMAINING_TRIES, *remaining_tries);
                tlv::write_nni(&mut out, types::REMAINING_TIME, remaining_ms.div_ceil(1000));
                parameters.write(&mut out);
            }
            ChallengeResponse::Issued { name, forwarding_hint } => {
                tlv::write_nni(&mut out, types::STATUS, Status::Success as u64);
                tlv::write_nested(&mut out, types::ISSUED_CERT_NAME, |out| name.as_name().write_tlv(out));
                if let Some(hint) = forwarding_hint {
                    tlv::write_nested(&mut out, FORWARDING_HINT, |out| hint.as_name().write_tlv(out));
                }
            }
            ChallengeResponse::Failed => tlv::write_nni(&mut out, types::STATUS, Status::Failure as u64),
        }
        out
    }
}

/// PROBE: the content of the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeResponse {
    /// Names that the requester may have, each with the most components that may follow; `None`: any number.
    pub names: Vec<(NameBuf, Option<u64>)>,
    /// The certificates (full names) of authorities to ask instead.
    pub redirects: Vec<NameBuf>,
}

impl ProbeResponse {
    /// Reads it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(content: &[u8]) -> Result<Self, FieldError> {
        const KNOWN: [u32; 3] = [types::PROBE_RESPONSE, types::PROBE_REDIRECT, types::MAX_SUFFIX_LENGTH];
        const NAME: u32 = tlv::types::NAME;
        let fields = Fields::parse(content, &KNOWN)?;
        let mut response = ProbeResponse::default();
        for entry in fields.all(types::PROBE_RESPONSE).take(NAMES_MAX) {
            let entry = Fields::parse(entry, &[NAME, types::MAX_SUFFIX_LENGTH])?;
            let mut wire = Vec::new();
            tlv::write_tlv(&mut wire, NAME, entry.required(NAME)?);
            response.names.push((fields::name(NAME, &wire)?, entry.optional_number(types::MAX_SUFFIX_LENGTH)?));
        }
        for redirect in fields.all(types::PROBE_REDIRECT).take(NAMES_MAX) {
            response.redirects.push(fields::name(types::PROBE_REDIRECT, redirect)?);
        }
        Ok(response)
    }

    /// Writes it.
    pub fn content(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (name, max_suffix) in &self.names {
            tlv::write_nested(&mut out, types::PROBE_RESPONSE, |out| {
                name.as_name().write_tlv(out);
                if let Some(most) = max_suffix {
                    tlv::write_nni(out, types::MAX_SUFFIX_LENGTH, *most);
                }
            });
        }
        for redirect in &self.redirects {
            tlv::write_nested(&mut out, types::PROBE_REDIRECT, |out| redirect.as_name().write_tlv(out));
        }
        out
    }
}
