//! Keys, signatures and certificates made by OpenSSL and python-ndn (make_vectors.py), read here.

use namewire_packet::{KeyLocator, NameBuf, signature::signature_type};
use namewire_security::{
    Certificate, CertificateError, HmacKey, KeyAlgorithm, PrivateKey, PrivateKeyError, PublicKey, PublicKeyError,
    VerifyError, verify_digest_sha256,
};
use serde_json::Value;

fn vectors() -> Value {
    serde_json::from_str(include_str!("vectors.json")).unwrap()
}

fn bytes(value: &Value) -> Vec<u8> {
    let digits = value.as_str().unwrap();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn public_key(vectors: &Value, id: &Value) -> PublicKey {
    let key = list(&vectors["keys"]).iter().find(|key| key["id"] == *id).unwrap();
    PublicKey::from_spki(&bytes(&key["spki"])).unwrap()
}

#[test]
fn signatures_of_every_algorithm_are_checked() {
    let vectors = vectors();
    let message = bytes(&vectors["message"]);
    for vector in list(&vectors["keys"]) {
        let key = PublicKey::from_spki(&bytes(&vector["spki"])).unwrap();
        assert_eq!(key.algorithm().to_string(), vector["algorithm"].as_str().unwrap());
        let (signed_type, mut signature) = (vector["type"].as_u64().unwrap(), bytes(&vector["signature"]));
        assert_eq!(key.algorithm().signature_type(), signed_type);
        assert_eq!(key.verify(signed_type, &[&message], &signature), Ok(()));
        let (front, back) = message.split_at(7);
        assert_eq!(key.verify(signed_type, &[front, &[], back], &signature), Ok(()));
        assert_eq!(key.verify(signed_type, &[front], &signature), Err(VerifyError::Mismatch));
        for other in [0, 1, 3, 4, 5, 200].into_iter().filter(|&other| other != signed_type) {
            let wrong = VerifyError::WrongSignatureType { signature_type: other, algorithm: key.algorithm() };
            assert_eq!(key.verify(other, &[&message], &signature), Err(wrong));
        }
        assert_eq!(key.verify(signed_type, &[&message], &[]), Err(VerifyError::BadSignatureLength(0)));
        assert_eq!(key.verify(signed_type, &[&message], &[0; 1025]), Err(VerifyError::BadSignatureLength(1025)));
        *signature.last_mut().unwrap() ^= 1;
        assert_eq!(key.verify(signed_type, &[&message], &signature), Err(VerifyError::Mismatch));
    }
}

/// NDN's SignatureType for ECDSA says SHA-256, whatever the curve.
#[test]
fn keys_on_p384_verify_with_sha256_and_do_not_sign() {
    let vectors = vectors();
    let message = bytes(&vectors["message"]);
    let vector = &vectors["verified_only"][0];
    let key = PublicKey::from_spki(&bytes(&vector["spki"])).unwrap();
    assert_eq!(key.algorithm(), KeyAlgorithm::EcdsaP384);
    assert_eq!(key.algorithm().to_string(), vector["algorithm"].as_str().unwrap());
    let verify = |signed_type, signature: &str| key.verify(signed_type, &[&message], &bytes(&vector[signature]));
    assert_eq!(verify(signature_type::SHA256_ECDSA, "signature"), Ok(()));
    assert_eq!(verify(signature_type::SHA256_ECDSA, "signature_sha384"), Err(VerifyError::Mismatch));
    assert!(matches!(verify(signature_type::SHA256_RSA, "signature"), Err(VerifyError::WrongSignatureType { .. })));
    let of_p256 = bytes(&vectors["keys"][0]["signature"]);
    assert_eq!(key.verify(signature_type::SHA256_ECDSA, &[&message], &of_p256), Err(VerifyError::Mismatch));
    let spki = bytes(&vector["spki"]);
    assert!(PublicKey::from_spki(&spki[..spki.len() - 1]).is_err());
    let private = PrivateKey::from_der(&bytes(&vector["pkcs8"])).unwrap_err();
    assert_eq!(private, PrivateKeyError::VerifiesOnly);
}

#[test]
fn a_shared_secret_is_not_printed() {
    let key = HmacKey::new(b"a shared secret").unwrap();
    assert_eq!(format!("{key:?}"), "HmacKey");
}

#[test]
fn a_curve_written_out_in_full_is_the_same_key() {
    let vectors = vectors();
    let key = PublicKey::from_spki(&bytes(&vectors["explicit_p256_spki"])).unwrap();
    assert_eq!(key.algorithm(), KeyAlgorithm::EcdsaP256);
    let signature = bytes(&vectors["keys"][0]["signature"]);
    assert_eq!(key.verify(signature_type::SHA256_ECDSA, &[&bytes(&vectors["message"])], &signature), Ok(()));
}

#[test]
fn keys_that_cannot_be_used_are_refused_by_name() {
    for refused in list(&vectors()["refused_keys"]) {
        let error = PublicKey::from_spki(&bytes(&refused["spki"])).unwrap_err();
        let expected = match refused["why"].as_str().unwrap() {
            "RSA of 1024 bits" => PublicKeyError::RsaSize(1024),
            "curve secp256k1 in full" | "another base point" => PublicKeyError::UnsupportedCurve,
            "compressed point" => PublicKeyError::BadPoint,
            "bytes after the key" | "cut off" | "nothing" => PublicKeyError::NotSpki,
            other => panic!("{other}: {error}"),
        };
        assert_eq!(error, expected, "{}", refused["why"]);
    }
    assert_eq!(PublicKey::from_spki(&[0x30; 2049]), Err(PublicKeyError::TooLong(2049)));
}

#[test]
fn a_point_off_the_curve_verifies_nothing() {
    let vectors = vectors();
    let mut spki = bytes(&vectors["keys"][0]["spki"]);
    *spki.last_mut().unwrap() ^= 1;
    let key = PublicKey::from_spki(&spki).unwrap();
    let signature = bytes(&vectors["keys"][0]["signature"]);
    assert_eq!(key.verify(3, &[&bytes(&vectors["message"])], &signature), Err(VerifyError::Mismatch));
}

#[test]
fn digests_and_shared_secrets_are_checked() {
    let vectors = vectors();
    let message = bytes(&vectors["message"]);
    let key = HmacKey::new(&bytes(&vectors["hmac"]["secret"])).unwrap();
    let signature = bytes(&vectors["hmac"]["signature"]);
    assert_eq!(key.sign(&[&message[..3], &message[3..]])[..], signature);
    assert_eq!(key.verify(4, &[&message[..3], &message[3..]], &signature), Ok(()));
    assert_eq!(key.verify(4, &[&message[1..]], &signature), Err(VerifyError::Mismatch));
    assert_eq!(key.verify(4, &[&message], &signature[..31]), Err(VerifyError::Mismatch));
    assert_eq!(key.verify(0, &[&message], &signature), Err(VerifyError::OtherSignatureType(0)));
    assert!(HmacKey::new(&[]).is_none() && HmacKey::new(&[0; 1025]).is_none());

    let digest = namewire_packet::digest::sha256(&[&message]);
    assert_eq!(verify_digest_sha256(0, &[&message[..9], &message[9..]], &digest), Ok(()));
    assert_eq!(verify_digest_sha256(0, &[&message[..9]], &digest), Err(VerifyError::Mismatch));
    assert_eq!(verify_digest_sha256(3, &[&message], &digest), Err(VerifyError::OtherSignatureType(3)));
}

#[test]
fn certificates_of_python_ndn_are_read_and_verified() {
    let vectors = vectors();
    for vector in list(&vectors["certificates"]) {
        let wire = bytes(&vector["wire"]);
        let certificate = Certificate::parse(&wire).unwrap();
        let key_name: NameBuf = vector["key_name"].as_str().unwrap().parse().unwrap();
        assert_eq!(certificate.name().to_string(), vector["name"].as_str().unwrap());
        assert_eq!(certificate.key_name(), key_name.as_name());
        assert_eq!(certificate.identity(), key_name.as_name().prefix(key_name.len() - 2));
        assert_eq!(certificate.issuer_id().value, vector["issuer"].as_str().unwrap().as_bytes());
        let validity = certificate.validity();
        assert_eq!(Some(validity.not_before_ms), vector["not_before_ms"].as_u64());
        assert_eq!(Some(validity.not_after_ms), vector["not_after_ms"].as_u64());
        assert!(
            certificate.is_valid_at(validity.not_before_ms) && !certificate.is_valid_at(validity.not_before_ms - 1)
        );
        assert!(matches!(certificate.key_locator(), Some(KeyLocator::Name(_))));
        assert_eq!(certificate.names_itself_as_issuer(), vector["self_signed"].as_bool().unwrap());
        let subject = certificate.public_key().unwrap();
        assert_eq!(subject.algorithm(), public_key(&vectors, &vector["key"]).algorithm());
        for id in list(&vectors["keys"]).iter().map(|key| &key["id"]) {
            let issuer = public_key(&vectors, id);
            assert_eq!(certificate.verify(&issuer).is_ok(), *id == vector["signer"], "{} by {id}", vector["name"]);
        }
    }
}

#[test]
fn data_that_is_no_certificate_is_refused_by_name() {
    let vectors = vectors();
    let wire = bytes(&vectors["certificates"][0]["wire"]);
    let good = Certificate::parse(&wire).unwrap();
    let validity = good.validity().to_tlv();
    let name: NameBuf = good.name().into();
    let data = |name: &NameBuf, content_type, freshness_ms, extension: &[u8]| {
        let builder = namewire_packet::DataBuilder::new(name).content_type(content_type).freshness_ms(freshness_ms);
        Certificate::parse(&builder.content(good.spki()).signature_info_extension(extension).sign_digest())
    };
    assert!(data(&name, 2, 1, &validity).is_ok());
    assert_eq!(data(&"/a/KEY/b/c".parse().unwrap(), 2, 1, &validity), Err(CertificateError::BadName));
    assert_eq!(data(&"/a/b/KEY/c/d/e/f".parse().unwrap(), 2, 1, &validity), Err(CertificateError::BadName));
    assert_eq!(data(&name, 0, 1, &validity), Err(CertificateError::WrongContentType(0)));
    assert_eq!(data(&name, 2, 0, &validity), Err(CertificateError::NoFreshness));
    assert_eq!(data(&name, 2, 1, &[]), Err(CertificateError::NoValidityPeriod));
    assert_eq!(data(&name, 2, 1, &validity.repeat(2)), Err(CertificateError::SeveralValidityPeriods));
    assert!(matches!(data(&name, 2, 1, &[253, 0, 253, 0]), Err(CertificateError::BadValidityPeriod(_))));
    assert!(matches!(Certificate::parse(&wire[..wire.len() - 1]), Err(CertificateError::NotData(_))));
    assert_eq!(Certificate::parse(&[6; 8801]), Err(CertificateError::TooLong(8801)));
}
