//! A certificate for people, as `cert-dump --pretty` and `list -vvv` print it.

use namewire_packet::{KeyLocator, signature::signature_type};
use namewire_security::{AdditionalDescription, Certificate, KeyAlgorithm, base64_lines};

/// Bytes of a key digest that are printed.
const DIGEST_BYTES_SHOWN: usize = 8;

pub(crate) fn describe(certificate: &Certificate) -> String {
    let mut text = format!("Certificate Name:\n  {}\n", certificate.name());
    match AdditionalDescription::in_signature_info(certificate.data().signature_info_value()) {
        Ok(AdditionalDescription(texts)) if texts.is_empty() => {}
        Ok(AdditionalDescription(texts)) => {
            text += "Additional Description:\n";
            text.extend(texts.iter().map(|(key, value)| format!("  {key}: {value}\n")));
        }
        Err(error) => text += &format!("Additional Description:\n  {error}\n"),
    }
    text += &format!("Public Key:\n  Key Type: {}\n", key_type(certificate));
    text.extend(base64_lines::encode(certificate.spki()).lines().map(|line| format!("  {line}\n")));
    let [not_before, not_after] = certificate.validity().iso_times();
    text += &format!(
        "Validity:\n  Not Before: {}\n  Not After: {}\n",
        not_before.trim_end_matches('Z'),
        not_after.trim_end_matches('Z')
    );
    text += &format!("Signature Information:\n  Signature Type: {}\n", signature_type_name(certificate));
    match certificate.key_locator() {
        Some(KeyLocator::Name(name)) => {
            text += &format!("  Key Locator: Name={name}\n");
            if name == certificate.key_name() {
                text += "  Self-Signed: yes\n";
            }
        }
        Some(KeyLocator::KeyDigest(digest)) => {
            let shown: String = digest.iter().take(DIGEST_BYTES_SHOWN).map(|byte| format!("{byte:02X}")).collect();
            let more = if digest.len() > DIGEST_BYTES_SHOWN { "..." } else { "" };
            text += &format!("  Key Locator: KeyDigest={shown}{more}\n");
        }
        None => {}
    }
    text
}

fn key_type(certificate: &Certificate) -> String {
    match certificate.public_key().map(|key| key.algorithm()) {
        Ok(KeyAlgorithm::EcdsaP256) => "256-bit EC".to_owned(),
        Ok(KeyAlgorithm::EcdsaP384) => "384-bit EC".to_owned(),
        Ok(KeyAlgorithm::Rsa { bits }) => format!("{bits}-bit RSA"),
        // ndn-cxx 0.9 knows no name for this one.
        Ok(KeyAlgorithm::Ed25519) => "256-bit Ed25519".to_owned(),
        Err(_) => format!("Unknown ({} bytes)", certificate.spki().len()),
    }
}

fn signature_type_name(certificate: &Certificate) -> String {
    match certificate.signature_type() {
        signature_type::DIGEST_SHA256 => "DigestSha256".to_owned(),
        signature_type::SHA256_RSA => "SignatureSha256WithRsa".to_owned(),
        signature_type::SHA256_ECDSA => "SignatureSha256WithEcdsa".to_owned(),
        signature_type::HMAC_SHA256 => "SignatureHmacWithSha256".to_owned(),
        signature_type::ED25519 => "SignatureEd25519".to_owned(),
        signature_type::NULL => "NullSignature".to_owned(),
        other => format!("Unknown({other})"),
    }
}
