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
//! kept for the next packet. If the KeyLocator names the key, and the certificate has expired meanwhile, the validator
//! asks again: its owner may have renewed it. If Data is refused, the validator drops the certificates that it fetched
//! for it. So a forged certificate does no more harm once the network returns the true one.
//!
//! Limits: [`CERTIFICATES_FETCHED_MAX`] certificates are fetched for one decision;
//! [`namewire_security::trust::MAX_FETCHED`] are kept.

use crate::{client::Client, data_buf::DataBuf, express_error::ExpressError};
use namewire_packet::{Data, InterestBuilder, Name, NameBuf};
use namewire_security::{
    certificate::is_certificate_name,
    trust::{
        AnchorCertificate, DataValidator, Denial, NotARoot, NotAccepted, RulesOrAny, SchemaConfig, ValidatorConfig,
        lvs::Schema,
    },
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

    /// The usual schema, [`ValidatorConfig::hierarchical`].
    pub fn hierarchical(anchors: impl IntoIterator<Item = AnchorCertificate>) -> Self {
        Self::new(ValidatorConfig::hierarchical(anchors))
    }

    /// A compiled LVS schema, which says which key may sign which name, and its roots of trust. It decides for commands
    /// as it does for Data. A schema that calls functions of yours is read by [`Schema::parse_with`].
    ///
    /// ```no_run
    /// # use namewire_client::{Validator, security::trust::{AnchorCertificate, lvs::Schema}};
    /// # fn example(root: AnchorCertificate) -> Result<Validator, Box<dyn std::error::Error>> {
    /// let schema = Schema::parse(&std::fs::read("blog.tlv")?)?;
    /// Ok(Validator::lvs(schema, [root])?)
    /// # }
    /// ```
    ///
    /// # Errors
    /// If an anchor is no root of trust of the schema.
    pub fn lvs(schema: Schema, anchors: impl IntoIterator<Item = AnchorCertificate>) -> Result<Self, NotARoot> {
        Ok(DataValidator::new(RulesOrAny::Schema(SchemaConfig::new(schema, anchors)?)).into())
    }

    /// Judges Data. Returns the key that signed it; `None` if the rules do not ask who did.
    ///
    /// # Errors
    /// Why the rules do not accept it.
    pub async fn check(&self, client: &Client, data: &Data<'_>) -> Result<Option<NameBuf>, Denial> {
        self.judge(client, data, |rules| rules.judge(data, unix_ms())).await
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
        self.judge(client, data, |rules| rules.judge_command(data, name, unix_ms())).await
    }

    async fn judge(
        &self,
        client: &Client,
        data: &Data<'_>,
        judge: impl Fn(&DataValidator) -> Result<Option<NameBuf>, NotAccepted> + Send,
    ) -> Result<Option<NameBuf>, Denial> {
        let lock = || self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let mut fetched = Vec::new();
        let result = self.judge_fetching(client, data, judge, &mut fetched).await;
        if result.is_err() {
            lock().forget(&fetched);
        }
        result
    }

    /// As [`Validator::judge`]; `fetched` gets the names of the certificates that came for this decision.
    async fn judge_fetching(
        &self,
        client: &Client,
        data: &Data<'_>,
        judge: impl Fn(&DataValidator) -> Result<Option<NameBuf>, NotAccepted> + Send,
        fetched: &mut Vec<NameBuf>,
    ) -> Result<Option<NameBuf>, Denial> {
        let lock = || self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        // If no newer certificate comes, the reason is still that the present one has expired.
        let mut expired = None;
        let mut last = None;
        for _ in 0..=CERTIFICATES_FETCHED_MAX {
            let judged = judge(&lock());
            let needed = match judged {
                Ok(key) => return Ok(key),
                Err(NotAccepted::Denied(denial)) => {
                    let is_over = matches!(denial, Denial::CertificateExpired(_));
                    if !is_over || !lock().forget_expired(data, unix_ms()) {
                        return Err(denial);
                    }
                    expired = Some(denial);
                    continue;
                }
                Err(NotAccepted::CertificateMissing(needed)) => needed,
            };
            let answer = if last.as_ref() == Some(&needed) { None } else { fetch(client, &needed).await };
            let Some(certificate) = answer else {
                return Err(expired.unwrap_or_else(|| Denial::UnknownSigner(needed.to_string())));
            };
            fetched.push(lock().add_certificate(certificate.wire())?);
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

async fn fetch(client: &Client, name: &NameBuf) -> Option<DataBuf> {
    // The certificate of a key may have been renewed, one certificate never changes.
    let any_of_key = !is_certificate_name(name.as_name());
    let interest = InterestBuilder::new(name).can_be_prefix(true).must_be_fresh(any_of_key);
    let interest = interest.lifetime_ms(CERTIFICATE_LIFETIME_MS);
    for _ in 0..CERTIFICATE_TRIES {
        match client.express(&interest).await {
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
