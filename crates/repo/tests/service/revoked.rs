//! Data of revoked certificates are not stored from the moment that a file has the record.

use crate::router::{Network, memory, name, settings};
use namewire_client::{PublishOptions, SegmentPublisher};
use namewire_packet::Component;
use namewire_repo::{RepoSettings, access::AccessSettings};
use namewire_security::{
    PrivateKey, Signer, ValidityPeriod, issue_certificate,
    trust::{AnchorCertificate, RevocationRecord, RulesOrAny, ValidatorConfig, revocation::Reason},
};
use tokio::sync::watch;

#[tokio::test]
async fn data_of_a_revoked_certificate_are_not_stored() {
    let key_name = name("/data/KEY/1");
    let key = PrivateKey::generate_ed25519().unwrap();
    let spki = key.public_key().spki().to_vec();
    let signer = Signer::private_key(key, key_name.clone());
    let validity = ValidityPeriod { not_before_ms: 0, not_after_ms: u64::MAX };
    let issuer = Component::generic(b"self");
    let certificate = issue_certificate(&signer, key_name.as_name(), &spki, issuer, 1, validity).unwrap();
    let anchor = AnchorCertificate::parse(certificate.wire().to_vec()).unwrap();
    let record = RevocationRecord::make(&signer, &certificate, Reason::UNSPECIFIED, 1).unwrap();

    let (sender, receiver) = watch::channel(Vec::new());
    let data = Some(RulesOrAny::Rules(ValidatorConfig::hierarchical([anchor])));
    let access = AccessSettings { data, revocations: Some(receiver), ..AccessSettings::default() };
    let network = Network::start();
    let repo = network.repo(RepoSettings { access, ..settings() }, memory()).await;
    let remote = network.remote().await;
    let put = async |uri: &str| {
        let options = PublishOptions { is_versioned: false, signer: signer.clone(), ..PublishOptions::default() };
        remote.put(SegmentPublisher::of_bytes(b"content", &name(uri), options).unwrap(), |_| ()).await
    };
    assert!(put("/data/before").await.is_ok());
    sender.send(vec![("revoked".into(), vec![record])]).unwrap();
    assert!(put("/data/after").await.is_err());
    let json = remote.statistics().await.unwrap();
    assert_eq!(json["refusals"]["denied.certificate-revoked"], 1, "{json}");
    repo.stop().await;
}
