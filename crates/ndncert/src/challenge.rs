//! Challenges, as the requester sees them: what does each ask for, and what is the answer?
//!
//! | id | the requester sends first | then |
//! | --- | --- | --- |
//! | `pin` | nothing | `code`, which the authority's operator tells |
//! | `email` | `email`, an address | `code`, which comes by mail |
//! | `possession` | `issued-cert`, a certificate of its own | `proof`, the signature of `nonce` by its key |
//! | `dns` | `domain` | `confirmation`, when the TXT record `record-name` has the value `expected-value` |
//! | another | parameters of the user | `code`, or the same again |
//!
//! Source: NDNCERT Protocol 0.3 Challenges; for `dns`, what NDNts's requester does.

use crate::{Parameters, requester::Question};
use namewire_security::{Certificate, SignError, Signer};

/// The names of challenges, of parameters and of statuses.
pub mod words {
    #![expect(missing_docs, reason = "the names are those of the specification")]
    pub const PIN: &str = "pin";
    pub const EMAIL: &str = "email";
    pub const POSSESSION: &str = "possession";
    pub const DNS: &str = "dns";
    pub const CODE: &str = "code";
    pub const ISSUED_CERT: &str = "issued-cert";
    pub const NONCE: &str = "nonce";
    pub const PROOF: &str = "proof";
    pub const DOMAIN: &str = "domain";
    pub const CONFIRMATION: &str = "confirmation";
    pub const READY: &str = "ready";
    pub const RECORD_NAME: &str = "record-name";
    pub const EXPECTED_VALUE: &str = "expected-value";
    pub const NEED_CODE: &str = "need-code";
    pub const WRONG_CODE: &str = "wrong-code";
    pub const NEED_PROOF: &str = "need-proof";
    pub const INVALID_CREDENTIAL: &str = "invalid-credential";
}

/// Bytes of a nonce. A longer one could be a packet that the authority wants signed.
const NONCE_BYTES: usize = 16;

/// How a requester proves that it may have the name.
#[derive(Clone, Debug)]
pub enum Challenge {
    /// A code from the operator of the authority.
    Pin,
    /// A code that is sent to this address.
    Email(String),
    /// A certificate that it has, and its key.
    Possession(Box<Certificate>, Signer),
    /// A TXT record under this domain.
    Dns(String),
    /// A challenge of the authority's own, with what it wants to know.
    Other(String, Parameters),
}

/// What the next step needs from the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// A code.
    Code,
    /// That this TXT record (its name, its value) exists.
    Record(String, String),
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChallengeError {
    /// The authority asked for something that this challenge does not have.
    #[error("the authority asks {0:?}, which does not belong to the challenge {1}")]
    Unexpected(String, String),
    /// The signature failed.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// There is no code.
    #[error("a code is needed")]
    NoCode,
}

impl Challenge {
    /// Its name.
    pub fn id(&self) -> &str {
        match self {
            Challenge::Pin => words::PIN,
            Challenge::Email(_) => words::EMAIL,
            Challenge::Possession(..) => words::POSSESSION,
            Challenge::Dns(_) => words::DNS,
            Challenge::Other(id, _) => id,
        }
    }

    /// What the requester sends first.
    pub fn first(&self) -> Parameters {
        let none = Parameters::default();
        match self {
            Challenge::Pin => none,
            Challenge::Email(address) => none.with(words::EMAIL, address.as_str()),
            Challenge::Possession(certificate, _) => none.with(words::ISSUED_CERT, certificate.wire()),
            Challenge::Dns(domain) => none.with(words::DOMAIN, domain.as_str()),
            Challenge::Other(_, parameters) => parameters.clone(),
        }
    }

    /// What an answer to this question needs from the user.
    pub fn need(&self, question: &Question) -> Need {
        match self {
            Challenge::Possession(..) => Need::Nothing,
            Challenge::Dns(_) => {
                let said = |key| question.parameters.text(key).unwrap_or_default().to_owned();
                Need::Record(said(words::RECORD_NAME), said(words::EXPECTED_VALUE))
            }
            Challenge::Pin | Challenge::Email(_) | Challenge::Other(..) => Need::Code,
        }
    }

    /// The answer to a question.
    ///
    /// # Errors
    /// If the question does not belong to this challenge; if the signature fails; if a code is needed.
    pub fn answer(&self, question: &Question, code: Option<&str>) -> Result<Parameters, ChallengeError> {
        let none = Parameters::default();
        match self {
            Challenge::Possession(_, signer) => {
                let Some(nonce) = question.parameters.get(words::NONCE).filter(|nonce| nonce.len() == NONCE_BYTES)
                else {
                    return Err(ChallengeError::Unexpected(question.status.clone(), self.id().to_owned()));
                };
                Ok(none.with(words::PROOF, signer.sign(&[nonce])?))
            }
            Challenge::Dns(_) => Ok(none.with(words::CONFIRMATION, words::READY)),
            Challenge::Pin | Challenge::Email(_) | Challenge::Other(..) => {
                Ok(none.with(words::CODE, code.ok_or(ChallengeError::NoCode)?))
            }
        }
    }
}
