//! A validator of Data: does a trust schema accept this Data?
//!
//! No socket and no clock: the caller fetches the certificates that the validator asks for, and passes the time.

use super::{
    certificates::Certificates,
    denial::Denial,
    judge::{Failure, Signatory, judge},
    revocation::{Lookup, Lookups, Revocations, chain},
    rules::{AnchorCertificate, PacketKind, RulesOrAny},
    signed_packet::SignedPacket,
};
use crate::Certificate;
use namewire_packet::{Data, KeyLocator, Name, NameBuf};
use std::path::PathBuf;

/// Why Data is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAccepted {
    /// The rules refuse it.
    #[error("{0}")]
    Denied(Denial),
    /// This certificate, or one of this key, is needed first ([`DataValidator::add_certificate`]).
    #[error("the certificate {0} is needed")]
    CertificateMissing(NameBuf),
}

/// Rules, their trust anchors, and the certificates fetched for them.
#[derive(Debug)]
pub struct DataValidator {
    rules: RulesOrAny,
    certificates: Certificates,
    lookups: Lookups,
}

impl DataValidator {
    /// Rules whose anchors in files are not there yet.
    pub fn new(rules: RulesOrAny) -> Self {
        DataValidator { rules, certificates: Certificates::default(), lookups: Lookups::default() }
    }

    /// From now on, each rule for Data also accepts certificates that were valid when the Data was signed
    /// ([`super::Rule::at_signing_time`]).
    pub fn accept_at_signing_time(&mut self) {
        match &mut self.rules {
            RulesOrAny::Any => {}
            RulesOrAny::Rules(config) => {
                config.rules.iter_mut().for_each(|rule| rule.at_signing_time |= rule.packet == PacketKind::Data);
            }
            RulesOrAny::Schema(config) => config.at_signing_time = true,
        }
    }

    /// The look-ups of revocation records that are due for the certificates behind the signature of `data`. `now_ns` is
    /// of a clock that is never set.
    pub fn due_lookups(&mut self, data: &Data<'_>, now_unix_ms: u64, now_ns: u64) -> Vec<Lookup> {
        let Some(KeyLocator::Name(signer)) = data.signature_info().key_locator() else { return Vec::new() };
        if matches!(self.rules, RulesOrAny::Any) {
            return Vec::new();
        }
        let chain = chain(signer, self.rules.anchors(), &self.certificates, None, now_unix_ms);
        self.lookups.due(&chain, now_ns)
    }

    /// Keeps the revocation record in `wire`, which answers `lookup`. False if it is not genuine.
    pub fn add_revocation(&mut self, lookup: &Lookup, wire: &[u8]) -> bool {
        lookup.answer(wire, self.certificates.revocations_mut())
    }

    /// The revocation records at hand, to set those from files.
    pub const fn revocations_mut(&mut self) -> &mut Revocations {
        self.certificates.revocations_mut()
    }

    /// Replaces the anchors of one file or directory.
    pub fn set_anchors(&mut self, path: PathBuf, anchors: Vec<AnchorCertificate>) {
        self.certificates.set_file(path, anchors);
    }

    /// Keeps a certificate from the network, and returns its name. The rules decide whether it counts. At most 256 are
    /// kept.
    ///
    /// # Errors
    /// If the bytes are no certificate.
    pub fn add_certificate(&mut self, wire: &[u8]) -> Result<NameBuf, Denial> {
        let certificate = Certificate::parse(wire).map_err(|error| Denial::UnknownSigner(error.to_string()))?;
        let name = certificate.name().to_buf();
        self.certificates.add_fetched(certificate, None);
        Ok(name)
    }

    /// Drops the certificates with these names: they did not hold, and a later fetch may bring others.
    pub fn forget(&mut self, certificates: &[NameBuf]) {
        self.certificates.forget(certificates);
    }

    /// Drops the first expired certificate that the signature of `data` leads to, if a KeyLocator names it by its key:
    /// its owner may have renewed it. Returns whether it did.
    pub fn forget_expired(&mut self, data: &Data<'_>, now_unix_ms: u64) -> bool {
        match data.signature_info().key_locator() {
            Some(KeyLocator::Name(signer)) => self.certificates.forget_expired(signer, now_unix_ms),
            _ => false,
        }
    }

    /// Drops the fetched certificates behind the signature of `data`: one of them is revoked, and a later fetch may
    /// bring another of that key.
    pub fn forget_chain(&mut self, data: &Data<'_>) {
        if let Some(KeyLocator::Name(signer)) = data.signature_info().key_locator() {
            self.certificates.forget_chain(signer, None);
        }
    }

    /// Judges Data by the rules for Data. Returns the key that signed it; `None` if the signature proves no signer.
    ///
    /// # Errors
    /// See [`NotAccepted`].
    pub fn judge(&self, data: &Data<'_>, now_unix_ms: u64) -> Result<Option<NameBuf>, NotAccepted> {
        self.judge_packet(PacketKind::Data, &SignedPacket::of_data(data), now_unix_ms)
    }

    /// Judges Data that is a command, by the rules for commands (`Interest`), as if its name were `name`. So rules can
    /// say which keys may command what.
    ///
    /// # Errors
    /// See [`NotAccepted`].
    pub fn judge_command(
        &self,
        data: &Data<'_>,
        name: Name<'_>,
        now_unix_ms: u64,
    ) -> Result<Option<NameBuf>, NotAccepted> {
        let packet = SignedPacket::of_data(data).with_name(name);
        self.judge_packet(PacketKind::Interest, &packet, now_unix_ms)
    }

    fn judge_packet(
        &self,
        kind: PacketKind,
        packet: &SignedPacket<'_>,
        now_unix_ms: u64,
    ) -> Result<Option<NameBuf>, NotAccepted> {
        match judge(&self.rules, kind, packet, &self.certificates, now_unix_ms) {
            Ok(Signatory::Key(key)) => Ok(Some(key)),
            Ok(Signatory::Anyone) => Ok(None),
            Err(Failure::Denied(denial)) => Err(NotAccepted::Denied(denial)),
            Err(Failure::CertificateMissing(name)) => Err(NotAccepted::CertificateMissing(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        HmacKey, PrivateKey, Signer, ValidityPeriod, issue_certificate,
        trust::rules::{Checker, NameFilter, NameRelation, Rule, TrustAnchor, ValidatorConfig},
    };
    use namewire_packet::{Component, DataBuilder, signature::signature_type};

    const NOW_MS: u64 = 1_700_000_000_000;

    fn name(uri: &str) -> NameBuf {
        uri.parse().unwrap()
    }

    /// A key of this identity with a self-signed certificate.
    fn identity(uri: &str) -> (Signer, Certificate) {
        let (key, key_name) = (PrivateKey::generate_ed25519().unwrap(), name(&format!("{uri}/KEY/k1")));
        let spki = key.public_key().spki().to_vec();
        let signer = Signer::private_key(key, key_name.clone());
        let validity = ValidityPeriod { not_before_ms: 0, not_after_ms: 2 * NOW_MS };
        let issuer = Component::generic(b"self");
        (signer.clone(), issue_certificate(&signer, key_name.as_name(), &spki, issuer, 1, validity).unwrap())
    }

    /// Commands `/repo/insert/NAME` need a key whose identity is `/alice`; Data needs one above its name.
    fn rules(anchors: Vec<TrustAnchor>) -> RulesOrAny {
        let rule = |id: &str, packet, filter, checker| Rule {
            id: id.to_owned(),
            packet,
            filters: vec![NameFilter::Relation(NameRelation::IsPrefixOf, name(filter))],
            checkers: vec![checker],
            at_signing_time: false,
        };
        let alice = Checker {
            signature_type: signature_type::ED25519,
            key_locator: crate::trust::rules::KeyLocatorRule::Relation(NameRelation::Equal, name("/alice")),
        };
        let above = Checker::hierarchical(signature_type::ED25519);
        let rules = vec![
            rule("alice", PacketKind::Interest, "/repo/insert/alice", alice),
            rule("above", PacketKind::Data, "/", above),
        ];
        RulesOrAny::Rules(ValidatorConfig { rules, anchors })
    }

    #[test]
    fn a_command_is_judged_by_its_verb_and_object() {
        let (alice, certificate) = identity("/alice");
        let anchor = AnchorCertificate::parse(certificate.wire().to_vec()).unwrap();
        let validator = DataValidator::new(rules(vec![TrustAnchor::Certificate(anchor)]));
        let wire = alice.sign_data(&DataBuilder::new(name("/alice/msg/1")).content(b"insert")).unwrap();
        let data = Data::parse(&wire).unwrap();
        let judge = |uri: &str| validator.judge_command(&data, name(uri).as_name(), NOW_MS);
        assert_eq!(judge("/repo/insert/alice/photos"), Ok(Some(name("/alice/KEY/k1"))));
        assert!(matches!(judge("/repo/insert/bob"), Err(NotAccepted::Denied(Denial::NotAllowed(_)))));
        assert_eq!(validator.judge(&data, NOW_MS), Ok(Some(name("/alice/KEY/k1"))));

        let digest = DataBuilder::new(name("/alice/msg/1")).content(b"insert").sign_digest();
        let unsigned = validator.judge_command(
            &Data::parse(&digest).unwrap(),
            name("/repo/insert/alice/photos").as_name(),
            NOW_MS,
        );
        assert!(matches!(unsigned, Err(NotAccepted::Denied(Denial::NotAllowed(_)))), "{unsigned:?}");

        let mut forged = wire;
        let content = forged.windows(6).position(|window| window == b"insert").unwrap();
        forged[content] = b'I';
        let forged = validator.judge(&Data::parse(&forged).unwrap(), NOW_MS);
        assert!(matches!(forged, Err(NotAccepted::Denied(Denial::BadSignature(_)))), "{forged:?}");
    }

    /// A shared secret is for those who share it. With a public certificate as the secret, anybody could sign.
    #[test]
    fn an_hmac_is_no_signature_for_rules() {
        let (_, certificate) = identity("/alice");
        let anchor = AnchorCertificate::parse(certificate.wire().to_vec()).unwrap();
        for secret in [b"a shared secret", &certificate.public_key().unwrap().spki()[..15]] {
            let hmac = Signer::hmac(HmacKey::new(secret).unwrap(), certificate.name().to_buf());
            let wire = hmac.sign_data(&DataBuilder::new(name("/alice/msg/1"))).unwrap();
            for schema in [
                RulesOrAny::Rules(ValidatorConfig::hierarchical([anchor.clone()])),
                rules(vec![TrustAnchor::Certificate(anchor.clone())]),
            ] {
                let judged = DataValidator::new(schema).judge(&Data::parse(&wire).unwrap(), NOW_MS);
                assert!(matches!(judged, Err(NotAccepted::Denied(Denial::NotAllowed(_)))), "{judged:?}");
            }
        }
        assert_eq!(Checker::signature_type_named("hmac-sha256"), None);
    }

    #[test]
    fn a_missing_certificate_is_asked_for() {
        let (alice, certificate) = identity("/alice");
        let mut validator = DataValidator::new(rules(Vec::new()));
        let wire = alice.sign_data(&DataBuilder::new(name("/alice/msg/1"))).unwrap();
        let judged = validator.judge(&Data::parse(&wire).unwrap(), NOW_MS);
        assert_eq!(judged, Err(NotAccepted::CertificateMissing(name("/alice/KEY/k1"))));
        validator.add_certificate(certificate.wire()).unwrap();
        // It signs itself, and no rule makes it an anchor.
        let judged = validator.judge(&Data::parse(&wire).unwrap(), NOW_MS);
        assert!(matches!(judged, Err(NotAccepted::Denied(_))), "{judged:?}");
        assert!(validator.add_certificate(&wire).is_err(), "this is no certificate");
    }
}
