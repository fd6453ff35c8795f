//! Trusted Data: judges Data by a trust schema, and fetches the certificates that are needed.
//!
//! ```no_run
//! use namewire_client::{Client, InterestBuilder, NameBuf, Validator, security::trust::AnchorCertificate};
//!
//! # async fn example(root: AnchorCertificate) -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect().await?;
//! let validator = Validator::hierarchical([root]); // /alice may sign /alice/…, and certificates of /alice/…
//! let name: NameBuf = "/alice/hello".parse()?;
//! let data = client.express_trusted(&InterestBuilder::new(name), &validator).await?;
//! # Ok(())
//! # }
//! ```
//!
//! The rules are those of [`namewire_security::trust`]. A certificate is fetched under the name in the KeyLocator, and
//! kept for the next packet.
//!
//! Limits: [`CERTIFICATES_FETCHED_MAX`] certificates are fetched for one decision;
//! [`namewire_security::trust::MAX_FETCHED`] are kept.

use crate::{
    client::{Client, ExpressError},
    data_buf::DataBuf,
};
use namewire_packet::{Data, InterestBuilder, Name, NameBuf, signature::signature_type};
use namewire_security::trust::{
    AnchorCertificate, Checker, DataValidator, Denial, NotAccepted, PacketKind, Rule, RulesOrAny, TrustAnchor,
    ValidatorConfig,
};
use std::{
    sync::{Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

/// Most certificates fetched for one decision.
pub const CERTIFICATES_FETCHED_MAX: usize = 10;
/// InterestLifetime for certificates, and how often one is asked for: one lost packet is no reason to distrust.
const CERTIFICATE_LIFETIME_MS: u64 = 2000;
const CERTIFICATE_TRIES: u32 = 2;

/// Why there is no trusted Data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// No Data came.
    #[error(transparent)]
    Express(#[from] ExpressError),
    /// Data came, and the rules do not accept it.
    #[error("the answer is not trusted: {0}")]
    NotTrusted(Denial),
}

/// A trust schema and the certificates known so far.
#[derive(Debug)]
pub struct Validator {
    rules: Mutex<DataValidator>,
}

impl From<DataValidator> for Validator {
    fn from(rules: DataValidator) -> Self {
        Validator { rules: Mutex::new(rules) }
    }
}

impl Validator {
    /// A validator of this schema.
    pub fn new(schema: ValidatorConfig) -> Self {
        DataValidator::new(RulesOrAny::Rules(schema)).into()
    }

    /// The usual schema: a key signs names under its identity, and each chain of certificates ends at one of `anchors`.
    pub fn hierarchical(anchors: impl IntoIterator<Item = AnchorCertificate>) -> Self {
        let algorithms = [signature_type::SHA256_ECDSA, signature_type::ED25519, signature_type::SHA256_RSA];
        let rule = Rule {
            id: "hierarchical".to_owned(),
            packet: PacketKind::Data,
            filters: Vec::new(),
            checkers: algorithms.map(Checker::hierarchical).to_vec(),
        };
        let anchors = anchors.into_iter().map(TrustAnchor::Certificate).collect();
        Self::new(ValidatorConfig { rules: vec![rule], anchors })
    }

    /// Judges Data. Returns the key that signed it; `None` if the rules do not ask who did.
    ///
    /// # Errors
    /// Why the rules do not accept it.
    pub async fn check(&self, client: &Client, data: &Data<'_>) -> Result<Option<NameBuf>, Denial> {
        self.judge(client, |rules| rules.judge(data, unix_ms())).await
    }

    /// Judges Data that is a command, by the rules for commands, as if its name were `name`.
    ///
    /// # Errors
    /// Why the rules do not accept it.
    pub async fn check_command(
        &self,
        client: &Client,
        data: &Data<'_>,
        name: Name<'_>,
    ) -> Result<Option<NameBuf>, Denial> {
        self.judge(client, |rules| rules.judge_command(data, name, unix_ms())).await
    }

    async fn judge(
        &self,
        client: &Client,
        judge: impl Fn(&DataValidator) -> Result<Option<NameBuf>, NotAccepted> + Send,
    ) -> Result<Option<NameBuf>, Denial> {
        let lock = || self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let mut last = None;
        for _ in 0..=CERTIFICATES_FETCHED_MAX {
            let judged = judge(&lock());
            let needed = match judged {
                Ok(key) => return Ok(key),
                Err(NotAccepted::Denied(denial)) => return Err(denial),
                Err(NotAccepted::CertificateMissing(needed)) => needed,
            };
            if last.as_ref() == Some(&needed) {
                break;
            }
            let interest = InterestBuilder::new(&needed).can_be_prefix(true).lifetime_ms(CERTIFICATE_LIFETIME_MS);
            let Some(certificate) = fetch(client, &interest).await else {
                return Err(Denial::UnknownSigner(needed.to_string()));
            };
            lock().add_certificate(certificate.wire())?;
            last = Some(needed);
        }
        Err(Denial::UnknownSigner(last.unwrap_or_default().to_string()))
    }
}

impl Client {
    /// As [`Client::express`], for Data that `validator` accepts.
    ///
    /// # Errors
    /// As [`Client::express`]; and if the rules do not accept the Data that came.
    pub async fn express_trusted(
        &self,
        interest: &InterestBuilder,
        validator: &Validator,
    ) -> Result<DataBuf, TrustError> {
        let data = self.express(interest).await?;
        validator.check(self, &data.data()).await.map_err(TrustError::NotTrusted)?;
        Ok(data)
    }
}

async fn fetch(client: &Client, interest: &InterestBuilder) -> Option<DataBuf> {
    for _ in 0..CERTIFICATE_TRIES {
        match client.express(interest).await {
            Ok(certificate) => return Some(certificate),
            Err(ExpressError::Timeout(_)) => {}
            Err(_) => return None,
        }
    }
    None
}

fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis() as u64)
}
