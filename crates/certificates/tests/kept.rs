//! Certificates of keys on disk, which are renewed in time, or of which a program is warned.

use namewire_certificates::{CertificateEvent, keep_certificate};
use namewire_client::{
    Component, NameBuf,
    security::{
        Certificate, PrivateKey, ValidityPeriod, issue_certificate,
        key_chain::{KeyChain, KeyChainLocation},
    },
};
use std::{
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::sync::mpsc::unbounded_channel;

const DAY_MS: u64 = 24 * 3600 * 1000;

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

fn name(uri: &str) -> NameBuf {
    uri.parse().unwrap()
}

fn open(home: &Path) -> KeyChain {
    KeyChain::open_or_create(&KeyChainLocation::new(None, None, home).unwrap(), home).unwrap()
}

/// A key of `/site/bob` in `chain` with a certificate by `/site` of `issuer`; it holds from and to these days from
/// now.
fn issue(chain: &KeyChain, issuer: &KeyChain, from_day: i64, to_day: i64) -> Certificate {
    let add = |chain: &KeyChain, identity: &str| {
        chain.add_identity_key(name(identity).as_name(), PrivateKey::generate_ecdsa().unwrap(), now_ms()).unwrap()
    };
    let site = add(issuer, "/site");
    let bob = add(chain, "/site/bob");
    let at = |day: i64| now_ms().saturating_add_signed(day * DAY_MS as i64);
    let validity = ValidityPeriod { not_before_ms: at(from_day), not_after_ms: at(to_day) };
    let (signer, id) = (issuer.signer(site.name()).unwrap(), Component::generic(b"site"));
    let issued = issue_certificate(&signer, bob.key_name(), bob.spki(), id, 1, validity).unwrap();
    chain.import_certificate(&issued).unwrap();
    chain.set_default(issued.name()).unwrap();
    issued
}

/// The first event about the certificate of this key.
async fn first_event(home: &Path, key_name: NameBuf) -> CertificateEvent {
    let (sender, mut events) = unbounded_channel();
    let keeping = tokio::spawn(keep_certificate(open(home), key_name, move |event| {
        sender.send(event).unwrap();
    }));
    let event = events.recv().await.unwrap();
    keeping.abort();
    event
}

#[tokio::test]
async fn a_due_certificate_is_renewed_if_the_issuers_key_is_available() {
    let home = tempfile::tempdir().unwrap();
    let chain = open(home.path());
    let due = issue(&chain, &chain, -80, 10);
    let CertificateEvent::Renewed(renewed) = first_event(home.path(), due.key_name().to_buf()).await else {
        panic!("not renewed")
    };
    assert_eq!(renewed.key_name(), due.key_name());
    assert!(renewed.is_valid_at(now_ms() + 89 * DAY_MS));
    let default = chain.certificate_of(name("/site/bob").as_name()).unwrap().unwrap();
    assert_eq!(default.name.as_name(), renewed.name());
}

#[tokio::test]
async fn without_the_issuers_key_a_program_is_warned_before_and_after_expiry() {
    for (from_day, to_day) in [(-80, 10), (-90, -1)] {
        let (home, issuer) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let present = issue(&open(home.path()), &open(issuer.path()), from_day, to_day);
        let event = first_event(home.path(), present.key_name().to_buf()).await;
        let said = event.to_string();
        assert!(said.contains("namewire key issue"), "{said}");
        match event {
            CertificateEvent::Due { certificate, left, .. } if to_day > 0 => {
                assert_eq!(certificate.as_name(), present.name());
                assert!(left.as_secs() / 3600 / 24 == 9 && said.contains("expires in 9 days"), "{said}");
            }
            CertificateEvent::Expired { certificate, .. } if to_day < 0 => {
                assert_eq!(certificate.as_name(), present.name());
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_missing_key_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let event = first_event(home.path(), name("/site/bob/KEY/1")).await;
    assert_eq!(event, CertificateEvent::Failed("/site/bob/KEY/1 is not in the key chain".to_owned()));
}
