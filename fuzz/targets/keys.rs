//! Question: can any bytes make a reader of certificates, keys or safe bags panic, and does a readable element survive
//! being written and read again?
//!
//! Input: a certificate, a public key, a private key or a safe bag; every reader gets it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use namewire_packet::tlv::{read_element, types};
use namewire_security::{Certificate, PrivateKey, PublicKey, SafeBag, ValidityPeriod};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(certificate) = Certificate::parse(bytes) {
        check_certificate(&certificate, bytes);
    }
    if let Ok(key) = PublicKey::from_spki(bytes) {
        assert_eq!(PublicKey::from_spki(key.spki()).as_ref(), Ok(&key));
        assert!(key.verify(key.algorithm().signature_type(), &[b"never signed"], bytes).is_err());
    }
    if let Ok(key) = PrivateKey::from_der(bytes) {
        for der in [key.to_traditional_der(), key.to_pkcs8()] {
            let again = PrivateKey::from_der(&der).expect("what we write, we read");
            assert_eq!(again.public_key(), key.public_key());
        }
    }
    if let Ok(bag) = SafeBag::parse(bytes) {
        assert_eq!(SafeBag::parse(&bag.to_wire()).as_ref(), Ok(&bag));
        check_certificate(bag.certificate(), bag.certificate().wire());
    }
});

fn check_certificate(certificate: &Certificate, wire: &[u8]) {
    assert_eq!(certificate.wire(), wire);
    assert!(certificate.identity().is_prefix_of(&certificate.key_name()));
    assert!(certificate.key_name().is_prefix_of(&certificate.name()));
    assert_eq!(certificate.name().len(), certificate.identity().len() + 4);
    assert!(!certificate.signed_portion().is_empty());
    let validity = certificate.validity().to_tlv();
    let element = read_element(&validity).expect("what we write, we read");
    assert_eq!(element.type_number, types::VALIDITY_PERIOD);
    assert_eq!(ValidityPeriod::parse_value(element.value), Ok(certificate.validity()));
    let _ = (certificate.issuer_id(), certificate.key_locator(), certificate.names_itself_as_issuer());
    if let Ok(key) = certificate.public_key() {
        let _ = certificate.verify(&key);
    }
}
