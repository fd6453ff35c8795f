//! Private keys of other tools are read and written back; the public half verifies what the private half signs.

use namewire_packet::{
    Component, Data, DataBuilder, Interest, InterestBuilder, KeyLocator, NameBuf, SignedInterestFields,
};
use namewire_security::{
    HmacKey, IssueError, PrivateKey, PrivateKeyError, PublicKey, Signer, ValidityPeriod, issue_certificate,
    verify_digest_sha256,
};
use serde_json::Value;

fn vectors() -> Value {
    serde_json::from_str(include_str!("vectors.json")).unwrap()
}

fn bytes(value: &Value) -> Vec<u8> {
    let digits = value.as_str().unwrap();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

fn name(uri: &str) -> NameBuf {
    uri.parse().unwrap()
}

/// The keys of OpenSSL and two generated ones.
fn keys() -> Vec<PrivateKey> {
    let vectors = vectors();
    let read = vectors["keys"].as_array().unwrap().iter().map(|v| PrivateKey::from_der(&bytes(&v["pkcs8"])).unwrap());
    read.chain([PrivateKey::generate_ecdsa().unwrap(), PrivateKey::generate_ed25519().unwrap()]).collect()
}

#[test]
fn keys_of_openssl_are_read_and_written_back_unchanged() {
    for vector in vectors()["keys"].as_array().unwrap() {
        let spki = bytes(&vector["spki"]);
        let (pkcs8, traditional) = (bytes(&vector["pkcs8"]), bytes(&vector["traditional"]));
        let key = PrivateKey::from_der(&pkcs8).unwrap();
        assert_eq!(key.public_key().spki(), spki, "{}", vector["id"]);
        let forms = if traditional.is_empty() { vec![&pkcs8] } else { vec![&pkcs8, &traditional] };
        for der in &forms {
            assert_eq!(PrivateKey::from_der(der).unwrap().public_key(), key.public_key());
        }
        assert_eq!(*key.to_traditional_der(), **forms.last().unwrap(), "{}", vector["id"]);
        assert_eq!(PrivateKey::from_der(&key.to_pkcs8()).unwrap().public_key().spki(), spki);
        for der in forms {
            for end in 0..der.len() {
                assert!(PrivateKey::from_der(&der[..end]).is_err(), "{} cut at {end}", vector["id"]);
            }
        }
    }
}

#[test]
fn keys_that_cannot_be_used_are_refused_by_name() {
    let vectors = vectors();
    let sec1 = bytes(&vectors["keys"][0]["traditional"]);
    let mut other_secret = sec1.clone();
    other_secret[20] ^= 1;
    assert_eq!(PrivateKey::from_der(&other_secret).unwrap_err(), PrivateKeyError::Inconsistent);
    let mut other_curve = sec1.clone();
    other_curve[48] ^= 1; // in the object identifier
    assert_eq!(PrivateKey::from_der(&other_curve).unwrap_err(), PrivateKeyError::UnsupportedCurve);
    let lonely = [&[0x30, 0x31], &sec1[2..51]].concat();
    assert_eq!(PrivateKey::from_der(&lonely).unwrap_err(), PrivateKeyError::NoPublicKey);
    assert_eq!(PrivateKey::from_der(&[0; 8193]).unwrap_err(), PrivateKeyError::TooLong(8193));
    assert_eq!(PrivateKey::from_der(b"nonsense").unwrap_err(), PrivateKeyError::UnknownForm);
    let mut x25519 = bytes(&vectors["keys"][2]["pkcs8"]);
    x25519[11] = 0x6E;
    assert!(matches!(PrivateKey::from_der(&x25519), Err(PrivateKeyError::UnknownAlgorithm(_))));
}

#[test]
fn a_secret_is_not_printed() {
    for key in keys() {
        assert_eq!(format!("{key:?}"), format!("PrivateKey({})", key.algorithm()));
    }
}

#[test]
fn signed_data_is_verified_by_the_other_half() {
    let locator = name("/id/KEY/1/self/v=1");
    for key in keys() {
        let public = PublicKey::from_spki(key.public_key().spki()).unwrap();
        let wire =
            Signer::private_key(key, locator.clone()).sign_data(&DataBuilder::new(name("/a")).content(b"x")).unwrap();
        let data = Data::parse(&wire).unwrap();
        let info = data.signature_info();
        assert_eq!(info.key_locator(), Some(KeyLocator::Name(locator.as_name())));
        assert_eq!(public.verify(info.signature_type(), &[data.signed_portion()], data.signature_value()), Ok(()));
    }
}

#[test]
fn commands_carry_a_nonce_and_a_time() {
    let fields = SignedInterestFields { nonce: vec![1, 2, 3, 4], time_ms: Some(1_700_000_000_000), seq_num: None };
    let command = InterestBuilder::new(name("/localhost/nfd/rib/register")).application_parameters(vec![7]);
    for key in keys() {
        let public = key.public_key().clone();
        let wire = Signer::private_key(key, name("/id/KEY/1")).sign_interest(&command, &fields).unwrap();
        let interest = Interest::parse(&wire).unwrap();
        assert!(interest.parameters_digest_is_valid());
        let info = interest.signature_info().unwrap();
        assert_eq!((info.nonce(), info.time_ms()), (Some(&[1, 2, 3, 4][..]), Some(1_700_000_000_000)));
        let (front, back) = interest.signed_portion().unwrap();
        assert_eq!(public.verify(info.signature_type(), &[front, back], interest.signature_value().unwrap()), Ok(()));
    }
    let digest = Signer::digest().sign_interest(&command, &fields).unwrap();
    assert_eq!(digest, command.sign_digest(&fields));
    let secret = HmacKey::new(b"secret").unwrap();
    let wire = Signer::hmac(secret.clone(), name("/shared")).sign_interest(&command, &fields).unwrap();
    let interest = Interest::parse(&wire).unwrap();
    let (front, back) = interest.signed_portion().unwrap();
    assert_eq!(secret.verify(4, &[front, back], interest.signature_value().unwrap()), Ok(()));
    assert!(verify_digest_sha256(0, &[front, back], interest.signature_value().unwrap()).is_err());
}

#[test]
fn a_key_certifies_itself_and_another() {
    let (parent, child) = (PrivateKey::generate_ed25519().unwrap(), PrivateKey::generate_ecdsa().unwrap());
    let (parent_public, child_public) = (parent.public_key().clone(), child.public_key().clone());
    let validity = ValidityPeriod { not_before_ms: 1_000, not_after_ms: 2_000 };
    let parent_name = name("/p/KEY/1");
    let signer = Signer::private_key(parent, parent_name.clone());
    let issuer = Component::generic(b"self");
    let own = issue_certificate(&signer, parent_name.as_name(), parent_public.spki(), issuer, 1, validity).unwrap();
    assert_eq!(own.name().to_string(), "/p/KEY/1/self/v=1");
    assert!(own.names_itself_as_issuer() && own.verify(&parent_public).is_ok() && own.is_valid_at(1_500));
    let child_name = name("/p/c/KEY/2");
    let issuer = Component::generic(b"parent");
    let other = issue_certificate(&signer, child_name.as_name(), child_public.spki(), issuer, 2, validity).unwrap();
    assert_eq!(other.public_key().unwrap(), child_public);
    assert!(!other.names_itself_as_issuer() && other.verify(&parent_public).is_ok());
    assert!(other.verify(&child_public).is_err());
    let nameless = issue_certificate(&signer, name("/p/1").as_name(), child_public.spki(), issuer, 1, validity);
    assert!(matches!(nameless, Err(IssueError::Certificate(_))));
}
