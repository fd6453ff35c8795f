//! The key chain on disk: what is written can be read again, in the layout shared with other NDN software.
#![cfg(feature = "key-chain")]

use namewire_packet::{Component, NameBuf};
use namewire_security::{
    AdditionalDescription, Certificate, KeyAlgorithm, PrivateKey, PublicKey, SafeBag, SafeBagError, Signer,
    ValidityPeriod, issue_certificate, issue_described_certificate,
    key_chain::{EXPIRED_KEPT, Entry, KeyChain, KeyChainError, KeyChainLocation, KeyFileError, PibError},
};
use serde_json::Value;
use std::{fs, os::unix::fs::PermissionsExt, path::Path};

const NOW_MS: u64 = 1_795_254_446_000;
const MESSAGE: &[u8] = b"message";

fn name(uri: &str) -> NameBuf {
    uri.parse().unwrap()
}

fn location(home: &Path) -> KeyChainLocation {
    KeyChainLocation::new(None, None, home).unwrap()
}

fn create(home: &Path) -> KeyChain {
    KeyChain::open_or_create(&location(home), home).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn an_identity_is_kept_and_signs_after_reopening() {
    let home = tempfile::tempdir().unwrap();
    let identity = name("/alice");
    let certificate = create(home.path())
        .add_identity_key(identity.as_name(), PrivateKey::generate_ecdsa().unwrap(), NOW_MS)
        .unwrap();
    assert_eq!(certificate.identity(), identity.as_name());
    assert_eq!(certificate.issuer_id().value, b"self");
    assert!(certificate.names_itself_as_issuer() && certificate.verify(&certificate.public_key().unwrap()).is_ok());
    assert!(certificate.is_valid_at(NOW_MS) && !certificate.is_valid_at(NOW_MS - 2000));

    // The paths that other software expects.
    let ndn = home.path().join(".ndn");
    assert_eq!([mode(&ndn), mode(&ndn.join("pib.db")), mode(&ndn.join("ndnsec-key-file"))], [0o700, 0o600, 0o700]);
    let chain = KeyChain::open(&location(home.path()), home.path()).unwrap();
    let file = chain.key_files().path(certificate.key_name());
    assert!(file.starts_with(ndn.join("ndnsec-key-file")));
    assert_eq!(mode(&file), 0o400);
    assert!(fs::read_to_string(&file).unwrap().lines().all(|line| line.len() <= 64));
    assert_eq!(chain.pib().tpm_locator().unwrap().as_deref(), Some("tpm-file:"));

    let public = certificate.public_key().unwrap();
    for by in [identity.as_name(), certificate.key_name(), certificate.name()] {
        let signer = chain.signer(by).unwrap();
        assert_eq!(signer.key_locator().unwrap().as_name(), certificate.name());
        let signature = signer.sign(&[MESSAGE]).unwrap();
        assert_eq!(public.verify(signer.signature_type(), &[MESSAGE], &signature), Ok(()));
    }
}

#[test]
fn the_first_is_the_default_until_another_is_chosen() {
    let home = tempfile::tempdir().unwrap();
    let chain = create(home.path());
    let make = |identity: &str| {
        let key = PrivateKey::generate_ed25519().unwrap();
        chain.add_identity_key(name(identity).as_name(), key, NOW_MS).unwrap()
    };
    let (first, second, other) = (make("/a"), make("/a"), make("/b"));
    let default_identity = || {
        let found: Vec<_> = chain.pib().identities().unwrap().into_iter().filter(|entry| entry.is_default).collect();
        assert_eq!(found.len(), 1);
        found[0].name.to_string()
    };
    assert_eq!(default_identity(), "/a");
    chain.set_default(name("/b").as_name()).unwrap();
    assert_eq!(default_identity(), "/b");
    let default_key = |identity: &str| chain.key_of(name(identity).as_name()).unwrap().name;
    assert_eq!(default_key("/a").as_name(), first.key_name());
    chain.set_default(second.key_name()).unwrap();
    assert_eq!(default_key("/a").as_name(), second.key_name());
    assert_eq!(default_key("/b").as_name(), other.key_name());
    assert!(matches!(chain.set_default(name("/c").as_name()), Err(KeyChainError::NotFound(_))));
}

#[test]
fn removal_includes_what_belongs_to_the_removed_entry() {
    let home = tempfile::tempdir().unwrap();
    let chain = create(home.path());
    let make = || {
        let key = PrivateKey::generate_ecdsa().unwrap();
        chain.add_identity_key(name("/a").as_name(), key, NOW_MS).unwrap()
    };
    let (first, second) = (make(), make());
    chain.remove(first.name()).unwrap();
    assert_eq!(chain.certificate_of(first.key_name()).unwrap(), None);
    assert_eq!(chain.signer(first.key_name()).unwrap().key_locator().unwrap().as_name(), first.key_name());
    chain.remove(first.key_name()).unwrap();
    assert!(!chain.key_files().has(first.key_name()) && chain.key_files().has(second.key_name()));
    assert!(matches!(chain.signer(name("/a").as_name()), Err(KeyChainError::NoKey(_))), "no default is left");
    chain.remove(name("/a").as_name()).unwrap();
    assert!(!chain.key_files().has(second.key_name()));
    assert_eq!(chain.pib().identities().unwrap(), []);
    assert_eq!(chain.pib().certificates(second.key_name()).unwrap(), []);
    assert!(matches!(chain.remove(name("/a").as_name()), Err(KeyChainError::NotFound(_))));
}

#[test]
fn a_missing_damaged_or_wrong_key_file_is_named() {
    let home = tempfile::tempdir().unwrap();
    let chain = create(home.path());
    let identity = name("/a");
    let key = || PrivateKey::generate_ecdsa().unwrap();
    let certificate = chain.add_identity_key(identity.as_name(), key(), NOW_MS).unwrap();
    let again = chain.key_files().save(certificate.key_name(), &key());
    assert!(matches!(again, Err(KeyFileError::Exists(_))));
    chain.key_files().remove(certificate.key_name()).unwrap();
    let failure = || chain.signer(identity.as_name()).unwrap_err();
    assert!(matches!(failure(), KeyChainError::KeyFile(KeyFileError::Missing(_))));
    chain.key_files().save(certificate.key_name(), &key()).unwrap();
    assert!(matches!(failure(), KeyChainError::OtherKey(_)));
    let path = chain.key_files().path(certificate.key_name());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&path, "not Base64!").unwrap();
    assert!(matches!(failure(), KeyChainError::KeyFile(KeyFileError::NotBase64(_))));
    fs::write(&path, "QUJD\n").unwrap();
    assert!(matches!(failure(), KeyChainError::KeyFile(KeyFileError::BadKey { .. })));
    fs::write(&path, "A".repeat(20_000)).unwrap();
    assert!(matches!(failure(), KeyChainError::KeyFile(KeyFileError::NotBase64(_))));
}

#[test]
fn reading_creates_no_files() {
    let home = tempfile::tempdir().unwrap();
    let missing = KeyChain::open(&location(home.path()), home.path()).unwrap_err();
    assert!(matches!(missing, KeyChainError::Pib(PibError::Missing(_))));
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

/// The story: without a key chain, python-ndn fails with `no such table: tpmInfo` and leaves an empty file behind. On
/// that file `namewire key list` failed with the same message. The file is no key chain; the first key creates one in
/// it.
#[test]
fn an_empty_file_is_no_key_chain_and_becomes_one() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join(".ndn")).unwrap();
    let file = home.path().join(".ndn/pib.db");
    fs::write(&file, "").unwrap();
    let missing = KeyChain::open(&location(home.path()), home.path()).unwrap_err();
    assert!(matches!(missing, KeyChainError::Pib(PibError::Missing(path)) if path == file));
    assert_eq!(fs::metadata(&file).unwrap().len(), 0, "reading makes nothing");
    create(home.path());
    // python-ndn first selects one row.
    let raw = rusqlite::Connection::open(&file).unwrap();
    let locator: String = raw.query_row("SELECT CAST(tpm_locator AS TEXT) FROM tpmInfo", [], |row| row.get(0)).unwrap();
    assert!(locator.starts_with("tpm-file:"), "{locator}");
    assert!(KeyChain::open(&location(home.path()), home.path()).is_ok());
}

/// python-ndn writes the directory of the keys, and stores the locator as a blob.
#[test]
fn the_pib_gives_the_location_of_the_keys() {
    let home = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let place = elsewhere.path().join("ndnsec-key-file");
    drop(create(home.path()));
    let raw = rusqlite::Connection::open(home.path().join(".ndn/pib.db")).unwrap();
    let locator = format!("tpm-file:{}", place.display());
    raw.execute("UPDATE tpmInfo SET tpm_locator = ?1", [locator.as_bytes()]).unwrap();
    let chain = create(home.path());
    let certificate =
        chain.add_identity_key(name("/a").as_name(), PrivateKey::generate_ecdsa().unwrap(), NOW_MS).unwrap();
    assert!(chain.key_files().path(certificate.key_name()).starts_with(&place));
    assert_eq!(chain.pib().tpm_locator().unwrap(), Some(locator));

    let explicit = |tpm: &str| {
        let location = KeyChainLocation::new(None, Some(tpm), home.path()).unwrap();
        KeyChain::open(&location, home.path())
    };
    assert!(
        explicit(&format!("tpm-file:{}", elsewhere.path().display())).is_ok(),
        "the same place, as ndn-cxx names it"
    );
    assert!(matches!(explicit("tpm-file:/other"), Err(KeyChainError::OtherTpm { .. })));
    raw.execute("UPDATE tpmInfo SET tpm_locator = 'tpm-osxkeychain:'", []).unwrap();
    assert!(matches!(KeyChain::open(&location(home.path()), home.path()), Err(KeyChainError::Locator(_))));
}

#[test]
fn damaged_rows_are_named() {
    let home = tempfile::tempdir().unwrap();
    let chain = create(home.path());
    let raw = rusqlite::Connection::open(home.path().join(".ndn/pib.db")).unwrap();
    raw.execute("INSERT INTO identities (identity) VALUES (x'0801')", []).unwrap();
    assert!(matches!(chain.pib().identities(), Err(PibError::Damaged("identities"))));
    fs::write(home.path().join(".ndn/pib.db"), b"not a database, but longer than nothing").unwrap();
    assert!(matches!(KeyChain::open(&location(home.path()), home.path()), Err(KeyChainError::Pib(PibError::Sql(_)))));
}

#[test]
fn a_safe_bag_carries_a_key_to_another_key_chain() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (here, there) = (create(here.path()), create(there.path()));
    let identity = name("/alice");
    let certificate =
        here.add_identity_key(identity.as_name(), PrivateKey::generate_ed25519().unwrap(), NOW_MS).unwrap();
    let bag = here.export_safe_bag(identity.as_name(), b"pass").unwrap();
    let bag = SafeBag::parse(&bag.to_wire()).unwrap();
    let wrong = there.import_safe_bag(&bag, b"word").unwrap_err();
    assert!(matches!(wrong, KeyChainError::SafeBag(SafeBagError::WrongPassphrase)), "{wrong}");
    there.import_safe_bag(&bag, b"pass").unwrap();
    assert!(matches!(there.import_safe_bag(&bag, b"pass"), Err(KeyChainError::Exists(_))));
    let signer = there.signer(identity.as_name()).unwrap();
    assert_eq!(signer.key_locator().unwrap().as_name(), certificate.name());
    let signature = signer.sign(&[MESSAGE]).unwrap();
    assert_eq!(certificate.public_key().unwrap().verify(5, &[MESSAGE], &signature), Ok(()));
}

/// Bags like those of ndn-cxx: OpenSSL encrypts a PKCS#8 key.
#[test]
fn bags_locked_by_openssl_are_opened() {
    let vectors: Value = serde_json::from_str(include_str!("vectors.json")).unwrap();
    let bytes = |value: &Value| -> Vec<u8> {
        let digits = value.as_str().unwrap();
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
    };
    let passphrase = vectors["password"].as_str().unwrap().as_bytes();
    let mut opened = 0;
    for vector in vectors["certificates"].as_array().unwrap() {
        let certificate = bytes(&vector["wire"]);
        for key in vectors["keys"].as_array().unwrap() {
            let mut inner = certificate.clone();
            namewire_packet::tlv::write_tlv(&mut inner, 129, &bytes(&key["encrypted_pkcs8"]));
            let mut wire = Vec::new();
            namewire_packet::tlv::write_tlv(&mut wire, 128, &inner);
            let bag = SafeBag::parse(&wire).unwrap();
            assert_eq!(bag.to_wire(), wire);
            match bag.open(passphrase) {
                Ok(private) => {
                    assert_eq!(key["id"], vector["key"]);
                    assert_eq!(bag.certificate().public_key().as_ref(), Ok(private.public_key()));
                    opened += 1;
                }
                Err(error) => {
                    assert_ne!(key["id"], vector["key"], "{error}");
                    assert_eq!(error, SafeBagError::OtherKey);
                }
            }
            assert_eq!(bag.open(b"wrong").unwrap_err(), SafeBagError::WrongPassphrase);
        }
    }
    assert_eq!(opened, 4);
}

#[test]
fn certificates_from_an_issuer_need_their_key() {
    let home = tempfile::tempdir().unwrap();
    let chain = create(home.path());
    let own = chain.add_identity_key(name("/a").as_name(), PrivateKey::generate_ecdsa().unwrap(), NOW_MS).unwrap();
    let issue = |spki: &[u8], version| -> Certificate {
        let signer = chain.signer(name("/a").as_name()).unwrap();
        let issuer = namewire_packet::Component::generic(b"root");
        let validity = own.validity();
        namewire_security::issue_certificate(&signer, own.key_name(), spki, issuer, version, validity).unwrap()
    };
    let issued = issue(own.spki(), 7);
    chain.import_certificate(&issued).unwrap();
    chain.set_default(issued.name()).unwrap();
    assert_eq!(chain.signer(name("/a").as_name()).unwrap().key_locator().unwrap().as_name(), issued.name());
    let foreign = PrivateKey::generate_ecdsa().unwrap();
    let misled = issue(foreign.public_key().spki(), 8);
    assert!(matches!(chain.import_certificate(&misled), Err(KeyChainError::OtherKey(_))));
    chain.remove(name("/a").as_name()).unwrap();
    assert!(matches!(chain.import_certificate(&issued), Err(KeyChainError::NotFound(_))));
    assert_eq!(PublicKey::from_spki(issued.spki()).unwrap().algorithm(), KeyAlgorithm::EcdsaP256);
}

const DAY_MS: u64 = 24 * 3600 * 1000;

#[test]
fn a_renewed_certificate_is_of_the_same_key_and_becomes_the_default() {
    let home = tempfile::tempdir().unwrap();
    let chain = create(home.path());
    let alice = name("/alice");
    let first = chain.add_identity_key(alice.as_name(), PrivateKey::generate_ecdsa().unwrap(), NOW_MS).unwrap();
    let lasting = chain.lasting_signer(alice.as_name()).unwrap();
    assert_eq!(lasting.key_locator().unwrap().as_name(), first.key_name());

    let later_ms = NOW_MS + DAY_MS;
    let second = chain.renew(alice.as_name(), None, later_ms).unwrap();
    assert_eq!((second.key_name(), second.spki()), (first.key_name(), first.spki()));
    assert!(second.names_itself_as_issuer() && second.verify(&second.public_key().unwrap()).is_ok());
    let length = |certificate: &Certificate| certificate.validity().not_after_ms - certificate.validity().not_before_ms;
    assert!(length(&second).abs_diff(length(&first)) <= 2000, "{second:?}");
    assert_eq!(chain.certificate_of(alice.as_name()).unwrap().unwrap().name.as_name(), second.name());
    assert_eq!(chain.pib().certificates(first.key_name()).unwrap().len(), 2);

    let third = chain.renew(first.name(), Some(7 * DAY_MS), later_ms + 1).unwrap();
    assert!(third.is_valid_at(later_ms + 6 * DAY_MS) && !third.is_valid_at(later_ms + 8 * DAY_MS));
    let signature = lasting.sign(&[MESSAGE]).unwrap();
    let key = third.public_key().unwrap();
    assert_eq!(key.verify(lasting.signature_type(), &[MESSAGE], &signature), Ok(()), "a lasting signer lasts");
}

/// A certificate for a new key of `chain`, issued by `/site` of `issuer` for nine days.
fn issued(issuer: &KeyChain, chain: &KeyChain, identity: &str) -> Certificate {
    let own = chain.add_identity_key(name(identity).as_name(), PrivateKey::generate_ecdsa().unwrap(), NOW_MS).unwrap();
    let validity = ValidityPeriod { not_before_ms: NOW_MS, not_after_ms: NOW_MS + 9 * DAY_MS };
    let signer = issuer.signer(name("/site").as_name()).unwrap();
    let id = Component::generic(b"site");
    let issued = issue_certificate(&signer, own.key_name(), own.spki(), id, NOW_MS, validity).unwrap();
    chain.import_certificate(&issued).unwrap();
    chain.set_default(issued.name()).unwrap();
    issued
}

#[test]
fn a_certificate_of_another_issuer_is_renewed_only_with_the_issuers_key() {
    let (home, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (chain, other) = (create(home.path()), create(elsewhere.path()));
    let site = chain.add_identity_key(name("/site").as_name(), PrivateKey::generate_ecdsa().unwrap(), NOW_MS).unwrap();
    let (here, there) = (issued(&chain, &chain, "/site/here"), issued(&chain, &other, "/site/there"));

    let renewed = chain.renew(name("/site/here").as_name(), None, NOW_MS + 8 * DAY_MS).unwrap();
    assert_eq!(renewed.verify(&site.public_key().unwrap()), Ok(()));
    assert_eq!((renewed.issuer_id(), renewed.key_locator()), (here.issuer_id(), here.key_locator()));
    assert!(renewed.is_valid_at(NOW_MS + 16 * DAY_MS));

    let before = other.pib().certificates(there.key_name()).unwrap();
    let renewed = other.renew(name("/site/there").as_name(), None, NOW_MS);
    assert!(matches!(renewed, Err(KeyChainError::IssuerElsewhere(of)) if of.as_name() == there.name()));
    assert_eq!(other.pib().certificates(there.key_name()).unwrap(), before);
    chain.key_files().remove(site.key_name()).unwrap();
    let without_file = chain.renew(name("/site/here").as_name(), None, NOW_MS);
    assert!(matches!(without_file, Err(KeyChainError::IssuerElsewhere { .. })), "{without_file:?}");
}

#[test]
fn no_renewal_makes_a_forged_certificate_genuine() {
    let (home, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (chain, forger) = (create(home.path()), create(elsewhere.path()));
    let site = chain.add_identity_key(name("/site").as_name(), PrivateKey::generate_ecdsa().unwrap(), NOW_MS).unwrap();
    let own =
        chain.add_identity_key(name("/site/admin").as_name(), PrivateKey::generate_ecdsa().unwrap(), NOW_MS).unwrap();
    forger.add_identity_key(name("/x").as_name(), PrivateKey::generate_ecdsa().unwrap(), NOW_MS).unwrap();
    let forged = Signer::private_key(forger.private_key_of(name("/x").as_name()).unwrap(), site.name().to_buf());
    let validity = ValidityPeriod { not_before_ms: NOW_MS, not_after_ms: NOW_MS + DAY_MS };
    let id = Component::generic(b"site");
    let forged = issue_certificate(&forged, own.key_name(), own.spki(), id, NOW_MS, validity).unwrap();
    chain.import_certificate(&forged).unwrap();
    assert!(matches!(chain.renew(forged.name(), None, NOW_MS), Err(KeyChainError::Forged(_))));
}

#[test]
fn a_renewed_certificate_is_valid_no_longer_than_its_issuers() {
    let home = tempfile::tempdir().unwrap();
    let chain = create(home.path());
    chain.add_identity_key(name("/site").as_name(), PrivateKey::generate_ecdsa().unwrap(), NOW_MS).unwrap();
    let site = chain.renew(name("/site").as_name(), Some(20 * DAY_MS), NOW_MS).unwrap();
    let car = issued(&chain, &chain, "/site/car");
    let renewed = chain.renew(car.key_name(), Some(90 * DAY_MS), NOW_MS + DAY_MS).unwrap();
    assert_eq!(renewed.validity().not_after_ms, site.validity().not_after_ms);
    // Another would end at the same time: the owner must hear of it while there is time.
    for day in [2, 30] {
        let again = chain.renew(car.key_name(), None, NOW_MS + day * DAY_MS);
        assert!(matches!(again, Err(KeyChainError::IssuerEndsFirst(_))), "{again:?}");
    }
}

#[test]
fn expired_certificates_do_not_pile_up() {
    let home = tempfile::tempdir().unwrap();
    let chain = create(home.path());
    let first = chain.add_identity_key(name("/a").as_name(), PrivateKey::generate_ecdsa().unwrap(), NOW_MS).unwrap();
    for day in 1..=EXPIRED_KEPT as u64 + 5 {
        chain.renew(first.key_name(), Some(DAY_MS), NOW_MS + 2 * day * DAY_MS).unwrap();
    }
    let left = chain.pib().certificates(first.key_name()).unwrap();
    assert_eq!(left.len(), 2 + EXPIRED_KEPT, "the first, of twenty years, the last, and those that ended last");
    let end = |entry: &Entry| Certificate::parse(&entry.bytes).unwrap().validity().not_after_ms;
    assert!(left.iter().map(end).min().unwrap() > NOW_MS + 8 * DAY_MS);
}

#[test]
fn a_key_without_a_certificate_cannot_be_renewed() {
    let home = tempfile::tempdir().unwrap();
    let chain = create(home.path());
    let only = chain.add_identity_key(name("/a").as_name(), PrivateKey::generate_ecdsa().unwrap(), NOW_MS).unwrap();
    chain.remove(only.name()).unwrap();
    assert!(matches!(chain.renew(name("/a").as_name(), None, NOW_MS), Err(KeyChainError::NoCertificate(_))));
    assert!(matches!(chain.renew(name("/b").as_name(), None, NOW_MS), Err(KeyChainError::NotFound(_))));
}

#[test]
fn a_key_id_may_be_chosen_once() {
    let home = tempfile::tempdir().unwrap();
    let (chain, alice) = (create(home.path()), name("/alice"));
    let add = || {
        let key = PrivateKey::generate_ecdsa().unwrap();
        chain.add_named_key(alice.as_name(), Component::generic(b"first"), key, NOW_MS)
    };
    assert_eq!(add().unwrap().key_name(), name("/alice/KEY/first").as_name());
    assert!(matches!(add(), Err(KeyChainError::KeyFile(KeyFileError::Exists(_)))));
}

/// An identity may be called `/alice/KEY/first`, like the key of another.
#[test]
fn identity_and_key_of_one_name_are_removed_by_kind() {
    let home = tempfile::tempdir().unwrap();
    let (chain, key_name) = (create(home.path()), name("/alice/KEY/first"));
    let add = |identity: &NameBuf| {
        let key = PrivateKey::generate_ecdsa().unwrap();
        chain.add_named_key(identity.as_name(), Component::generic(b"first"), key, NOW_MS).unwrap()
    };
    let (of_alice, of_key) = (add(&name("/alice")), add(&key_name));
    chain.remove_identity(key_name.as_name()).unwrap();
    assert!(chain.key_files().has(of_alice.key_name()) && !chain.key_files().has(of_key.key_name()));
    assert!(matches!(chain.remove_identity(key_name.as_name()), Err(KeyChainError::NotFound(_))));
    chain.remove_key(key_name.as_name()).unwrap();
    assert!(!chain.key_files().has(of_alice.key_name()));
    assert!(matches!(chain.remove_key(key_name.as_name()), Err(KeyChainError::NotFound(_))));
}

#[test]
fn a_certificate_says_what_its_issuer_says_about_the_owner() {
    let key = PrivateKey::generate_ecdsa().unwrap();
    let (spki, key_name) = (key.public_key().spki().to_vec(), name("/alice/KEY/1"));
    let signer = Signer::private_key(key, key_name.clone());
    let description = AdditionalDescription([("email".to_owned(), "a@example.net".to_owned())].into());
    let validity = ValidityPeriod { not_before_ms: 0, not_after_ms: NOW_MS };
    let issuer_id = Component::generic(b"ca");
    let issued =
        issue_described_certificate(&signer, key_name.as_name(), &spki, issuer_id, 1, validity, &description).unwrap();
    let read = AdditionalDescription::in_signature_info(issued.data().signature_info_value());
    assert_eq!(
        (read, issued.validity()),
        (Ok(description), ValidityPeriod { not_after_ms: NOW_MS / 1000 * 1000, ..validity })
    );
    assert!(issued.verify(&issued.public_key().unwrap()).is_ok());
}
