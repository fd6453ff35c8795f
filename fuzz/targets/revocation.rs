//! Question: can any bytes make the reader of revocation records panic, does a record survive being read again, and
//! does a record that no key here signed ever refuse a certificate?
//!
//! Input: a file of records, or the content of one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use namewire_packet::{Component, DataBuilder, NameBuf, digest::sha256};
use namewire_security::{
    Certificate, PrivateKey, Signer, ValidityPeriod, issue_certificate,
    trust::{
        RevocationRecord, Revocations,
        revocation::{MAX_IN_FILES, RECORD_BYTES_MAX, record_prefix, records_in},
    },
};
use std::sync::LazyLock;

static CERTIFICATE: LazyLock<(Signer, Certificate)> = LazyLock::new(|| {
    let key = PrivateKey::generate_ed25519().expect("random bytes");
    let spki = key.public_key().spki().to_vec();
    let name: NameBuf = "/a/KEY/1".parse().expect("a name");
    let signer = Signer::private_key(key, name.clone());
    let validity = ValidityPeriod { not_before_ms: 0, not_after_ms: u64::MAX };
    let issuer = Component::generic(b"self");
    let certificate = issue_certificate(&signer, name.as_name(), &spki, issuer, 1, validity).expect("a certificate");
    (signer, certificate)
});

fuzz_target!(|bytes: &[u8]| {
    let (signer, certificate) = &*CERTIFICATE;
    if let Ok(records) = records_in(bytes.to_vec()) {
        assert!(records.len() <= MAX_IN_FILES);
        records.iter().for_each(|record| check(record, certificate));
    }
    // Few inputs have the digest of this key.
    let hash = [&[202, 32][..], &sha256(&[certificate.spki()])].concat();
    for content in [bytes.to_vec(), [bytes, &hash].concat()] {
        check_content(&content, signer, certificate);
    }
});

fn check_content(content: &[u8], signer: &Signer, certificate: &Certificate) {
    let name = record_prefix(certificate.name()).join(Component::generic(b"self"));
    let builder = DataBuilder::new(name).content(content);
    if let Ok(record) = RevocationRecord::parse(&builder.sign_digest()) {
        check(&record, certificate);
    }
    let Ok(record) = RevocationRecord::parse(&signer.sign_data(&builder).expect("Ed25519 signs")) else { return };
    assert_eq!(record.certificate(), certificate.name());
    let mut revocations = Revocations::default();
    let is_genuine = revocations.add_fetched(record.clone(), certificate, None);
    let refuses = revocations.check_anchor(certificate, u64::MAX).is_err();
    assert_eq!((is_genuine, refuses), (record.is_about(certificate), record.is_about(certificate)));
}

/// A record of the input: no key here signed it.
fn check(record: &RevocationRecord, certificate: &Certificate) {
    assert!(record.wire().len() <= RECORD_BYTES_MAX);
    assert_eq!(RevocationRecord::parse(record.wire()).as_ref(), Ok(record));
    assert!(record_prefix(record.certificate()).as_name().is_prefix_of(&record.name()));
    let mut revocations = Revocations::default();
    assert!(!revocations.add_fetched(record.clone(), certificate, Some(certificate)));
    revocations.set_file("file".into(), vec![record.clone()]);
    assert!(revocations.check_anchor(certificate, u64::MAX).is_ok());
}
