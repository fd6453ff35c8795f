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
//! # Revoked certificates
//!
//! For each certificate that a decision uses, the validator asks the network for a revocation record
//! ([`namewire_security::trust::revocation`]), at most every 8 s. The first decision waits for the answers, at most
//! [`RECORD_WAIT`]; later answers, and those for certificates in steady use, come behind the decisions that caused
//! them. So a network that does not answer costs one Interest per certificate in 8 s, and the first packet 0.3 s. It
//! refuses nothing: absence of a record is no error. [`Validator::without_look_ups`] leaves only the records given by
//! [`Validator::set_revocations`].
//!
//! Limits: [`CERTIFICATES_FETCHED_MAX`] certificates are fetched for one decision;
//! [`namewire_security::trust::MAX_FETCHED`] are kept.

use crate::{client::Client, data_buf::DataBuf, express_error::ExpressError};
use namewire_packet::{Data, InterestBuilder, Name, NameBuf};
use namewire_security::{
    certificate::is_certificate_name,
    trust::{
        AnchorCertificate, DataValidator, Denial, NotARoot, NotAccepted, RevocationRecord, RulesOrAny, SchemaConfig,
        ValidatorConfig, lvs::Schema, revocation::Lookup,
    },
};
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tokio::time::timeout;

/// Most certificates fetched for one decision.
pub const CERTIFICATES_FETCHED_MAX: usize = 10;
/// InterestLifetime for certificates, and how often one is asked for: one lost packet is no reason to distrust.
const CERTIFICATE_LIFETIME_MS: u64 = 2000;
const CERTIFICATE_TRIES: u32 = 2;
/// How long a decision waits for revocation records.
pub const RECORD_WAIT: Duration = Duration::from_millis(300);
/// InterestLifetime for them. A late one still counts for later decisions.
const RECORD_LIFETIME_MS: u64 = 2000;

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
    rules: Arc<Mutex<DataValidator>>,
    looks_up: bool,
    start: Instant,
}

impl From<DataValidator> for Validator {
    fn from(rules: DataValidator) -> Self {
        Validator { rules: Arc::new(Mutex::new(rules)), looks_up: true, start: Instant::now() }
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

    /// The same, for old Data: certificates also count that were valid at the SignatureTime of the Data, although they
    /// have expired since. The thief of a key that has expired can choose that time.
    pub fn at_signing_time(self) -> Self {
        self.lock().accept_at_signing_time();
        self
    }

    /// The same, and it asks the network for no revocation records.
    pub fn without_look_ups(self) -> Self {
        Validator { looks_up: false, ..self }
    }

    /// Sets the revocation records that come from this file or directory.
    pub fn set_revocations(&self, path: PathBuf, records: Vec<RevocationRecord>) {
        self.lock().revocations_mut().set_file(path, records);
    }

    fn lock(&self) -> MutexGuard<'_, DataValidator> {
        lock(&self.rules)
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
        judge: impl Fn(&DataValidator) -> Result<Option<NameBuf>, NotAccepted> + Send + Sync,
    ) -> Result<Option<NameBuf>, Denial> {
        let mut fetched = Vec::new();
        let mut result = self.judge_fetching(client, data, &judge, &mut fetched).await;
        if let Ok(Some(_)) = result
            && self.look_up(client, data).await
            && let Err(NotAccepted::Denied(denial)) = judge(&self.lock())
        {
            result = Err(denial);
        }
        if result.is_err() {
            self.lock().forget(&fetched);
        }
        if let Err(Denial::CertificateRevoked { .. }) = result {
            self.lock().forget_chain(data); // the next decision may find a newer certificate of this key
        }
        result
    }

    /// Asks for the revocation records that are due, and waits for urgent ones. True if one came.
    async fn look_up(&self, client: &Client, data: &Data<'_>) -> bool {
        let now_ns = self.start.elapsed().as_nanos() as u64;
        let due = if self.looks_up { self.lock().due_lookups(data, unix_ms(), now_ns) } else { Vec::new() };
        let mut urgent = Vec::new();
        for lookup in due {
            let is_urgent = lookup.is_urgent;
            let task = tokio::spawn(fetch_record(client.clone(), Arc::clone(&self.rules), lookup));
            urgent.extend(is_urgent.then_some(task));
        }
        let mut came = false;
        let all = async {
            for task in urgent {
                came |= task.await.unwrap_or(false);
            }
        };
        let _ = timeout(RECORD_WAIT, all).await; // the others go on without this decision
        came
    }

    /// As [`Validator::judge`]; `fetched` gets the names of the certificates that came for this decision.
    async fn judge_fetching(
        &self,
        client: &Client,
        data: &Data<'_>,
        judge: &(impl Fn(&DataValidator) -> Result<Option<NameBuf>, NotAccepted> + Send + Sync),
        fetched: &mut Vec<NameBuf>,
    ) -> Result<Option<NameBuf>, Denial> {
        let lock = || self.lock();
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

fn lock(rules: &Mutex<DataValidator>) -> MutexGuard<'_, DataValidator> {
    rules.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks for a record once. True if a genuine one came.
async fn fetch_record(client: Client, rules: Arc<Mutex<DataValidator>>, lookup: Lookup) -> bool {
    let interest = InterestBuilder::new(&lookup.prefix).can_be_prefix(true).must_be_fresh(true);
    match client.express(&interest.lifetime_ms(RECORD_LIFETIME_MS)).await {
        Ok(data) => lock(&rules).add_revocation(&lookup, data.wire()),
        Err(_) => false,
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
