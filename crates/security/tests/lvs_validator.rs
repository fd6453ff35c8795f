//! Data judged by an LVS schema: names, signatures, chains of certificates, anchors.

use namewire_packet::{Component, Data, DataBuilder, NameBuf, signature::signature_type};
use namewire_security::{
    Certificate, HmacKey, PrivateKey, Signer, ValidityPeriod, issue_certificate,
    trust::{
        AnchorCertificate, DataValidator, Denial, NotAccepted, RulesOrAny, SchemaConfig, TrustAnchor, lvs::Schema,
    },
};
use std::sync::Arc;

const NOW_MS: u64 = 1_700_000_000_000;
const ANNOUNCED: &str = "/site/r1/32=PA/v=1/seg=0";

fn name(uri: &str) -> NameBuf {
    uri.parse().unwrap()
}

fn schema() -> Schema {
    Schema::parse(include_bytes!("lvs/site.tlv")).unwrap()
}

/// A key, and the signer that names its certificate.
struct Holder {
    key: Arc<PrivateKey>,
    key_name: NameBuf,
    spki: Vec<u8>,
    /// KeyLocators name the key.
    by_key: Signer,
    /// KeyLocators name the certificate; before there is one, the key.
    by_certificate: Signer,
}

fn holder(identity: &str) -> Holder {
    let (key, key_name) = (Arc::new(PrivateKey::generate_ecdsa().unwrap()), name(&format!("{identity}/KEY/1")));
    let spki = key.public_key().spki().to_vec();
    let by_key = Signer::private_key(key.clone(), key_name.clone());
    Holder { key, key_name, spki, by_certificate: by_key.clone(), by_key }
}

fn always() -> ValidityPeriod {
    ValidityPeriod { not_before_ms: 0, not_after_ms: 2 * NOW_MS }
}

fn issued(by: &Signer, holder: &mut Holder, issuer: &str, validity: ValidityPeriod) -> Certificate {
    let issuer = Component::generic(issuer.as_bytes());
    let certificate = issue_certificate(by, holder.key_name.as_name(), &holder.spki, issuer, 1, validity).unwrap();
    holder.by_certificate = Signer::private_key(holder.key.clone(), certificate.name().to_buf());
    certificate
}

fn anchor(certificate: &Certificate) -> AnchorCertificate {
    AnchorCertificate::parse(certificate.wire().to_vec()).unwrap()
}

/// Root, operator and router of a site, each certified by the one before.
struct Site {
    root: Certificate,
    operator: Certificate,
    router: Certificate,
    operator_holder: Holder,
    router_holder: Holder,
}

fn site(operator_validity: ValidityPeriod) -> Site {
    let (mut root, mut operator, mut router) = (holder("/site"), holder("/site/op/ann"), holder("/site/router/r1"));
    let root_certificate = issued(&root.by_key.clone(), &mut root, "self", always());
    let operator_certificate = issued(&root.by_certificate, &mut operator, "root", operator_validity);
    let router_certificate = issued(&operator.by_certificate, &mut router, "op", always());
    Site {
        root: root_certificate,
        operator: operator_certificate,
        router: router_certificate,
        operator_holder: operator,
        router_holder: router,
    }
}

impl Site {
    fn validator(&self, certificates: &[&Certificate]) -> DataValidator {
        let config = SchemaConfig::new(schema(), [anchor(&self.root)]).unwrap();
        let mut validator = DataValidator::new(RulesOrAny::Schema(config));
        certificates.iter().for_each(|one| drop(validator.add_certificate(one.wire()).unwrap()));
        validator
    }
}

fn judge(validator: &DataValidator, signer: &Signer, uri: &str) -> Result<Option<NameBuf>, NotAccepted> {
    let wire = signer.sign_data(&DataBuilder::new(name(uri)).content(b"x")).unwrap();
    validator.judge(&Data::parse(&wire).unwrap(), NOW_MS)
}

fn denied(result: Result<Option<NameBuf>, NotAccepted>) -> Denial {
    match result {
        Err(NotAccepted::Denied(denial)) => denial,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_chain_that_the_schema_allows_is_accepted_up_to_the_anchor() {
    let site = site(always());
    let signer = &site.router_holder.by_certificate;
    let missing = |certificate: &Certificate| Err(NotAccepted::CertificateMissing(certificate.name().to_buf()));
    assert_eq!(judge(&site.validator(&[]), signer, ANNOUNCED), missing(&site.router));
    assert_eq!(judge(&site.validator(&[&site.router]), signer, ANNOUNCED), missing(&site.operator));
    let validator = site.validator(&[&site.router, &site.operator]);
    assert_eq!(judge(&validator, signer, ANNOUNCED), Ok(Some(site.router_holder.key_name.clone())));
    let other = denied(judge(&validator, signer, "/site/r2/32=PA/v=1/seg=0"));
    assert!(other.to_string().contains("#announced1 of the schema does not let"), "{other}");
    let none = denied(judge(&validator, signer, "/site/r1/32=PA"));
    assert!(none.to_string().contains("no rule of the schema says who may sign"), "{none}");
}

#[test]
fn a_key_locator_that_names_the_key_is_judged_by_the_certificate() {
    let site = site(always());
    let signer = &site.router_holder.by_key;
    let missing = judge(&site.validator(&[]), signer, ANNOUNCED);
    assert_eq!(missing, Err(NotAccepted::CertificateMissing(site.router_holder.key_name.clone())));
    let validator = site.validator(&[&site.router, &site.operator]);
    assert!(judge(&validator, signer, ANNOUNCED).is_ok());
    denied(judge(&validator, signer, "/site/r2/32=PA/v=1/seg=0"));
    // A name that the schema has no rule for needs no certificate to be refused.
    denied(judge(&site.validator(&[]), signer, "/elsewhere"));
}

#[test]
fn each_certificate_of_the_chain_needs_a_rule_a_signature_and_its_time() {
    for (validity, expected) in [
        (ValidityPeriod { not_before_ms: 0, not_after_ms: NOW_MS - 1000 }, "has expired"),
        (ValidityPeriod { not_before_ms: NOW_MS + 1000, not_after_ms: 2 * NOW_MS }, "is not yet valid"),
    ] {
        let site = site(validity);
        let validator = site.validator(&[&site.router, &site.operator]);
        let denial = denied(judge(&validator, &site.router_holder.by_certificate, ANNOUNCED));
        assert!(denial.to_string().contains(expected), "{denial}");
    }
    // A router's certificate that another router signed, and an operator's that signs itself.
    let mut site = site(always());
    let mut second = holder("/site/router/r2");
    let by_router = issued(&site.router_holder.by_certificate, &mut second, "r1", always());
    let validator = site.validator(&[&site.router, &site.operator, &by_router]);
    let denial = denied(judge(&validator, &second.by_certificate, "/site/r2/32=PA/v=1/seg=0"));
    assert!(denial.to_string().contains("#router of the schema does not let"), "{denial}");
    let by_itself = issued(&site.operator_holder.by_key.clone(), &mut site.operator_holder, "self", always());
    let validator = site.validator(&[&by_itself]);
    let denial = denied(judge(&validator, &site.operator_holder.by_certificate, "/site/router/x/KEY/1/op/v=1"));
    assert!(denial.to_string().contains("#operator of the schema does not let"), "{denial}");
}

#[test]
fn a_forged_certificate_or_signature_is_refused() {
    let site = site(always());
    let mut forger = holder("/site/router/r1");
    let forged = issued(&forger.by_key.clone(), &mut forger, "op", always());
    let in_the_name_of_the_operator = Signer::private_key(forger.key.clone(), site.operator.name().to_buf());
    let forged_by_name = issued(&in_the_name_of_the_operator, &mut forger, "op", always());
    for certificate in [forged, forged_by_name] {
        let validator = site.validator(&[&certificate, &site.operator]);
        denied(judge(&validator, &forger.by_certificate, ANNOUNCED));
    }
    let validator = site.validator(&[&site.router, &site.operator]);
    let denial = denied(judge(&validator, &forger.by_certificate, ANNOUNCED));
    assert!(matches!(denial, Denial::BadSignature(_)), "{denial}");
}

#[test]
fn neither_a_digest_nor_an_hmac_is_a_signature_of_a_schema() {
    let site = site(always());
    let validator = site.validator(&[&site.router, &site.operator]);
    let wire = DataBuilder::new(name(ANNOUNCED)).sign_digest();
    denied(validator.judge(&Data::parse(&wire).unwrap(), NOW_MS));
    let hmac = Signer::hmac(HmacKey::new(b"shared").unwrap(), site.router.name().to_buf());
    let wire = hmac.sign_data(&DataBuilder::new(name(ANNOUNCED))).unwrap();
    let data = Data::parse(&wire).unwrap();
    assert_eq!(data.signature_info().signature_type(), signature_type::HMAC_SHA256);
    denied(validator.judge(&data, NOW_MS));
}

#[test]
fn an_anchor_must_be_a_root_of_trust_of_the_schema() {
    let site = site(always());
    let refused = SchemaConfig::new(schema(), [anchor(&site.operator)]).unwrap_err().to_string();
    assert!(refused.contains("/site/op/ann/KEY/1/root/v=1 is no root of trust of the schema (#root)"), "{refused}");
    let anchors = vec![TrustAnchor::Certificate(anchor(&site.operator))];
    let config = SchemaConfig { schema: schema().into(), anchors, at_signing_time: false };
    let mut validator = DataValidator::new(RulesOrAny::Schema(config));
    validator.add_certificate(site.router.wire()).unwrap();
    let denial = denied(judge(&validator, &site.router_holder.by_certificate, ANNOUNCED));
    assert!(denial.to_string().contains("no root of trust"), "{denial}");
}

#[test]
fn the_schema_suggests_a_certificate_that_may_sign() {
    let site = site(always());
    let schema = schema();
    let suggest = |uri: &str| {
        let given = [&site.root, &site.operator, &site.router];
        schema.suggest(name(uri).as_name(), given).map(|certificate| certificate.name().to_buf())
    };
    assert_eq!(suggest(ANNOUNCED), Some(site.router.name().to_buf()));
    assert_eq!(suggest("/localhop/nfd/rib/register/p"), Some(site.operator.name().to_buf()));
    assert_eq!(suggest("/site/op/bob/KEY/1/root/v=1"), None); // python-ndn leaves out self-signed certificates, too
}
