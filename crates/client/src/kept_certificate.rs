//! Watches the certificate of a key on disk. If the issuer's key is in the same key chain, it renews the certificate in
//! time; if not, it warns in time.
//!
//! ```no_run
//! use namewire_client::{
//!     CertificateEvent, NameBuf, discovery::Environment, keep_certificate, security::key_chain::KeyChain,
//! };
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
//! Cost: one look into the key chain each [`LOOK_EVERY`], or earlier if the certificate becomes due earlier; the file
//! is read on a thread for blocking work. A warning is repeated each [`TELL_EVERY`].
//!
//! Limits: at most one renewal in [`PAUSE_MIN`], however short the validity of the certificates is.

use namewire_packet::NameBuf;
use namewire_security::{
    Certificate,
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

/// Looks after the certificate of this key until it is dropped. `on_event` is called from the task that runs this, and
/// must not block.
pub async fn keep_certificate(
    mut chain: KeyChain,
    key_name: NameBuf,
    mut on_event: impl FnMut(CertificateEvent) + Send,
) {
    let mut told: Option<(CertificateEvent, Instant)> = None;
    let mut present = None;
    loop {
        let (key, before) = (key_name.clone(), present.clone());
        let look = tokio::task::spawn_blocking(move || {
            let seen = look(&chain, &key, before, unix_ms());
            (chain, seen)
        });
        let Ok((returned, seen)) = look.await else { return }; // the runtime ends
        (chain, present) = (returned, seen.certificate.or(present));
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

/// What one look found.
struct Seen {
    /// The key's certificate now.
    certificate: Option<NameBuf>,
    event: Option<CertificateEvent>,
    /// Until the next look.
    pause: Duration,
}

/// `before` is the certificate at the last look.
fn look(chain: &KeyChain, key_name: &NameBuf, before: Option<NameBuf>, now_ms: u64) -> Seen {
    let certificate = match chain.parsed_certificate_of(key_name.as_name()) {
        Ok(certificate) => certificate,
        Err(error) => {
            let event = CertificateEvent::Failed(error.to_string());
            return Seen { certificate: None, event: Some(event), pause: LOOK_EVERY };
        }
    };
    let name = certificate.name().to_buf();
    let left = match Expiry::of(certificate.validity(), now_ms) {
        Expiry::DueAt(due_ms) => {
            let is_new = before.is_some_and(|before| before != name);
            let event = is_new.then_some(CertificateEvent::Renewed(certificate));
            return Seen { certificate: Some(name), event, pause: Duration::from_millis(due_ms - now_ms) };
        }
        Expiry::Due(left_ms) => Some(Duration::from_millis(left_ms)),
        Expiry::Expired => None,
    };
    match chain.renew(key_name.as_name(), None, now_ms) {
        Ok(renewed) => Seen {
            certificate: Some(renewed.name().to_buf()),
            event: Some(CertificateEvent::Renewed(renewed)),
            pause: PAUSE_MIN,
        },
        Err(error) => {
            let needs_others = matches!(error, KeyChainError::IssuerElsewhere(_));
            let (certificate, why) = (name.clone(), error.to_string());
            let event = match left {
                Some(left) => CertificateEvent::Due { certificate, left, why },
                None => CertificateEvent::Expired { certificate, why },
            };
            let pause = if needs_others { left.unwrap_or(LOOK_EVERY) } else { PAUSE_MIN };
            Seen { certificate: Some(name), event: Some(event), pause }
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
