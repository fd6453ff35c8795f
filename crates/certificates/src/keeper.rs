//! Watches the certificate of a key on disk, and renews it in time: by the issuer's key, if that is in the same key
//! chain; otherwise by the issuer's authority, if there is a network ([`crate::request`]). If neither works, it warns
//! in time.
//!
//! ```no_run
//! use namewire_certificates::{CertificateEvent, keep_certificate};
//! use namewire_client::{NameBuf, discovery::Environment, security::key_chain::KeyChain};
//!
//! # fn publish(_: &namewire_client::security::Certificate) {}
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let (location, home) = Environment::of_process().key_chain_location()?;
//! let chain = KeyChain::open_or_create(&location, &home)?;
//! let alice: NameBuf = "/alice".parse()?;
//! let key_name = chain.key_of(alice.as_name())?.name;
//! let _signer = chain.lasting_signer(key_name.as_name())?; // names the key: it stays right after a renewal
//! tokio::spawn(keep_certificate(chain, key_name, |event| match event {
//!     CertificateEvent::Renewed(certificate) => publish(&certificate),
//!     warning => eprintln!("{warning}"),
//! }));
//! # Ok(())
//! # }
//! ```
//!
//! [`namewire_security::key_chain::Expiry`] defines when a certificate is due. If another program gives the key a new
//! default certificate, the watch continues with that one.
//!
//! With a network, [`CertificateKeeper::over`]: `CertificateKeeper::new(chain, key_name).over(client).run(on_event)`. A
//! renewal that fails is tried again while the certificate still holds, each [`PAUSE_MIN`] to [`LOOK_EVERY`].
//!
//! Cost: one look into the key chain each [`LOOK_EVERY`], or earlier if the certificate becomes due earlier; the file
//! is read on a thread for blocking work. A warning is repeated each [`TELL_EVERY`].
//!
//! Limits: at most one renewal in [`PAUSE_MIN`], however short the validity of the certificates is.

use crate::request::{Terms, renew_certificate};
use namewire_client::{Client, Validator};
use namewire_packet::NameBuf;
use namewire_security::{
    Certificate, Signer, ValidityPeriod,
    key_chain::{Expiry, KeyChain, KeyChainError},
};
use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::{Instant, sleep};

const LOOK_EVERY: Duration = Duration::from_secs(3600);
const TELL_EVERY: Duration = Duration::from_secs(24 * 3600);
const PAUSE_MIN: Duration = Duration::from_secs(60);

/// What happened to a certificate that [`keep_certificate`] looks after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateEvent {
    /// This is the certificate of the key from now on, made here or by another program. The program publishes it where
    /// consumers look for it.
    Renewed(Certificate),
    /// It expires soon, and was not renewed.
    Due {
        /// Its name.
        certificate: NameBuf,
        /// How long it still holds.
        left: Duration,
        /// Why it was not renewed, and who can do it.
        why: String,
    },
    /// It has expired: validators refuse what the key signs.
    Expired {
        /// Its name.
        certificate: NameBuf,
        /// Why it was not renewed, and who can do it.
        why: String,
    },
    /// The key chain has no such certificate, or cannot be read.
    Failed(String),
}

impl CertificateEvent {
    /// True if it says nothing new; it is later now, however.
    fn repeats(&self, before: &Self) -> bool {
        match (self, before) {
            (
                CertificateEvent::Due { certificate, why, .. },
                CertificateEvent::Due { certificate: of, why: because, .. },
            ) => (certificate, why) == (of, because),
            _ => self == before,
        }
    }
}

impl fmt::Display for CertificateEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CertificateEvent::Renewed(certificate) => write!(f, "renewed: {}", certificate.name()),
            CertificateEvent::Due { certificate, left, why } => {
                let hours = left.as_secs() / 3600;
                write!(f, "{certificate} expires in {} days and {} hours: {why}", hours / 24, hours % 24)
            }
            CertificateEvent::Expired { certificate, why } => write!(f, "{certificate} has expired: {why}"),
            CertificateEvent::Failed(why) => f.write_str(why),
        }
    }
}

/// As [`CertificateKeeper::run`], without a network.
pub async fn keep_certificate(chain: KeyChain, key_name: NameBuf, on_event: impl FnMut(CertificateEvent) + Send) {
    CertificateKeeper::new(chain, key_name).run(on_event).await;
}

/// Looks after the certificate of a key.
pub struct CertificateKeeper {
    chain: KeyChain,
    key_name: NameBuf,
    network: Option<Client>,
    authorities: Option<Validator>,
    clock: Box<dyn Fn() -> u64 + Send>,
}

impl CertificateKeeper {
    /// For this key.
    pub fn new(chain: KeyChain, key_name: NameBuf) -> Self {
        CertificateKeeper { chain, key_name, network: None, authorities: None, clock: Box::new(unix_ms) }
    }

    /// The authority that issued the certificate can be asked over this connection.
    #[must_use]
    pub fn over(mut self, network: Client) -> Self {
        self.network = Some(network);
        self
    }

    /// Another key of the authority counts if this schema accepts it. Without it, only the key that issued the present
    /// certificate does.
    #[must_use]
    pub fn trusting(mut self, authorities: Validator) -> Self {
        self.authorities = Some(authorities);
        self
    }

    /// Another clock than the system's: milliseconds since 1970.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> u64 + Send + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// Looks after the certificate until it is dropped. `on_event` is called from the task that runs this, and must not
    /// block.
    pub async fn run(self, mut on_event: impl FnMut(CertificateEvent) + Send) {
        let CertificateKeeper { mut chain, key_name, network, authorities, clock } = self;
        let mut told: Option<(CertificateEvent, Instant)> = None;
        let mut present = None;
        loop {
            let (key, before, now_ms) = (key_name.clone(), present.clone(), clock());
            let looking = tokio::task::spawn_blocking(move || {
                let seen = look(&chain, &key, before, now_ms);
                (chain, seen)
            });
            let Ok((returned, mut seen)) = looking.await else { return }; // the runtime ends
            chain = returned;
            if let (Some(held), Some(client)) = (seen.elsewhere.take(), &network) {
                let signer = chain.lasting_signer(held.key_name()).map_err(|error| error.to_string());
                let renewed = match signer {
                    Ok(signer) => renew_over(client, &held, &signer, authorities.as_ref(), now_ms).await,
                    Err(why) => Err(why),
                };
                let adopt = |renewed| match chain.adopt_certificate(&renewed, now_ms) {
                    Ok(()) => Ok(renewed),
                    Err(error) => Err(error.to_string()),
                };
                match renewed.and_then(adopt) {
                    Ok(renewed) => seen = Seen::renewed(renewed),
                    Err(why) => seen.not_renewed(why),
                }
            }
            present = seen.certificate.or(present);
            match seen.event {
                Some(event) => {
                    let is_old =
                        |(before, at): &(CertificateEvent, Instant)| event.repeats(before) && at.elapsed() < TELL_EVERY;
                    if !told.as_ref().is_some_and(is_old) {
                        told = Some((event.clone(), Instant::now()));
                        on_event(event);
                    }
                }
                None => told = None,
            }
            sleep(seen.pause.clamp(PAUSE_MIN, LOOK_EVERY)).await;
        }
    }
}

/// Gets a new certificate from the authority that issued this one, to hold as long.
async fn renew_over(
    client: &Client,
    held: &Certificate,
    signer: &Signer,
    authorities: Option<&Validator>,
    now_ms: u64,
) -> Result<Certificate, String> {
    let ValidityPeriod { not_before_ms, not_after_ms } = held.validity();
    let terms = Terms { now_ms, period_ms: Some(not_after_ms.saturating_sub(not_before_ms)) };
    let renewed = renew_certificate(client, held, signer, terms, authorities).await;
    let renewed = renewed.map_err(|error| error.to_string())?;
    if renewed.validity().not_after_ms <= not_after_ms {
        return Err(format!("the authority gave {}, which ends no later", renewed.name()));
    }
    Ok(renewed)
}

/// What one look found.
struct Seen {
    /// The key's certificate now.
    certificate: Option<NameBuf>,
    event: Option<CertificateEvent>,
    /// The certificate, if it is due or has expired and its issuer's key is elsewhere.
    elsewhere: Option<Certificate>,
    /// Until the next look.
    pause: Duration,
}

impl Seen {
    fn renewed(renewed: Certificate) -> Self {
        let certificate = Some(renewed.name().to_buf());
        Seen { certificate, event: Some(CertificateEvent::Renewed(renewed)), elsewhere: None, pause: PAUSE_MIN }
    }

    /// The authority did not renew it either.
    fn not_renewed(&mut self, why_not: String) {
        if let Some(CertificateEvent::Due { why, .. } | CertificateEvent::Expired { why, .. }) = &mut self.event {
            *why = why_not;
        }
        // Often while little time is left, but an authority that is down is not asked without end.
        if let Some(CertificateEvent::Due { left, .. }) = &self.event {
            self.pause = *left / 50;
        }
    }
}

/// `before` is the certificate at the last look.
fn look(chain: &KeyChain, key_name: &NameBuf, before: Option<NameBuf>, now_ms: u64) -> Seen {
    let certificate = match chain.parsed_certificate_of(key_name.as_name()) {
        Ok(certificate) => certificate,
        Err(error) => {
            let event = CertificateEvent::Failed(error.to_string());
            return Seen { certificate: None, event: Some(event), elsewhere: None, pause: LOOK_EVERY };
        }
    };
    let name = certificate.name().to_buf();
    let left = match Expiry::of(certificate.validity(), now_ms) {
        Expiry::DueAt(due_ms) => {
            let is_new = before.is_some_and(|before| before != name);
            let event = is_new.then_some(CertificateEvent::Renewed(certificate));
            let pause = Duration::from_millis(due_ms - now_ms);
            return Seen { certificate: Some(name), event, elsewhere: None, pause };
        }
        Expiry::Due(left_ms) => Some(Duration::from_millis(left_ms)),
        Expiry::Expired => None,
    };
    match chain.renew(key_name.as_name(), None, now_ms) {
        Ok(renewed) => Seen::renewed(renewed),
        Err(error) => {
            let needs_others = matches!(error, KeyChainError::IssuerElsewhere(_));
            let elsewhere = needs_others.then_some(certificate);
            let (certificate, why) = (name.clone(), error.to_string());
            let event = match left {
                Some(left) => CertificateEvent::Due { certificate, left, why },
                None => CertificateEvent::Expired { certificate, why },
            };
            let pause = if needs_others { left.unwrap_or(LOOK_EVERY) } else { PAUSE_MIN };
            Seen { certificate: Some(name), event: Some(event), elsewhere, pause }
        }
    }
}

fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_security::{PrivateKey, key_chain::KeyChainLocation};

    const DAY_MS: u64 = 24 * 3600 * 1000;
    const NOW_MS: u64 = 1_795_254_446_000;

    #[test]
    fn a_new_default_certificate_of_another_program_is_reported() {
        let home = tempfile::tempdir().unwrap();
        let location = KeyChainLocation::new(None, None, home.path()).unwrap();
        let chain = KeyChain::open_or_create(&location, home.path()).unwrap();
        let key = PrivateKey::generate_ecdsa().unwrap();
        let alice: NameBuf = "/alice".parse().unwrap();
        let first = chain.add_identity_key(alice.as_name(), key, NOW_MS).unwrap();
        let key_name = first.key_name().to_buf();
        let seen = look(&chain, &key_name, None, NOW_MS);
        assert_eq!((seen.event, seen.certificate.as_ref()), (None, Some(&first.name().to_buf())));

        let second = chain.renew(key_name.as_name(), Some(90 * DAY_MS), NOW_MS + 1).unwrap();
        let seen = look(&chain, &key_name, seen.certificate, NOW_MS + 1);
        assert_eq!(seen.event, Some(CertificateEvent::Renewed(second)));
        assert_eq!(seen.pause, Duration::from_millis(60 * DAY_MS - 1), "until it is due");
        assert_eq!(look(&chain, &key_name, seen.certificate, NOW_MS + 2).event, None, "once");
    }

    #[test]
    fn a_warning_is_a_repetition_if_certificate_and_reason_are_the_same() {
        let due = |hours: u64, why: &str| CertificateEvent::Due {
            certificate: NameBuf::default(),
            left: Duration::from_secs(3600 * hours),
            why: why.to_owned(),
        };
        assert!(due(2, "locked").repeats(&due(3, "locked")));
        assert!(!due(2, "elsewhere").repeats(&due(3, "locked")));
        assert!(!due(2, "locked").repeats(&CertificateEvent::Failed("locked".to_owned())));
    }
}
