//! Revoked certificates and old Data, with records that a producer serves.

use crate::{
    certificates::{Key, anchor, name, now_ms},
    node::Node,
};
use namewire_client::{
    DataBuilder, IncomingInterest, InterestBuilder, TrustError, Validator,
    security::{
        Certificate,
        trust::{Denial, RevocationRecord, revocation::Reason},
    },
};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{sleep, timeout};

/// Longer than an interval between look-ups, on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bob serves letters, his certificate, and a record as soon as there is one.
async fn serve(node: &Node, bob: &Key, certificate: &Certificate) -> Arc<Mutex<Option<RevocationRecord>>> {
    let producer = node.client().await;
    let record = Arc::new(Mutex::new(None::<RevocationRecord>));
    let (served, certificate, signer) = (record.clone(), certificate.clone(), bob.signer.clone());
    let answer = move |interest: IncomingInterest| {
        let asked = interest.interest().name().to_buf();
        let answer = if certificate.key_name().is_prefix_of(&asked.as_name()) {
            Some(certificate.wire().to_vec())
        } else if asked.to_string().contains("/REVOKE/") {
            served.lock().unwrap().as_ref().map(|record| record.wire().to_vec())
        } else {
            signer.sign_data(&DataBuilder::new(&asked).content(b"a letter")).ok()
        };
        async move { answer }
    };
    tokio::spawn(async move { producer.serve(&name("/site/bob"), answer).await });
    record
}

/// The verdict about one letter. A letter that does not come is asked for again.
async fn judge(node: &Node, validator: &Validator, letter: u32) -> Result<(), Denial> {
    let client = node.client().await;
    loop {
        let interest = InterestBuilder::new(name(&format!("/site/bob/{letter}")));
        match client.express_trusted(&interest, validator).await {
            Ok(_) => return Ok(()),
            Err(TrustError::NotTrusted(denial)) => return Err(denial),
            Err(TrustError::Express(_)) => sleep(Duration::from_millis(5)).await,
        }
    }
}

#[tokio::test]
async fn a_record_refuses_the_first_data_and_those_of_a_certificate_in_use() {
    let (node, site, bob) = (Node::start(), Key::new("/site/KEY/1"), Key::new("/site/bob/KEY/1"));
    let root = anchor(&site.certified_by(&site, 1, -1, 1));
    let certificate = bob.certified_by(&site, 1, -1, 1);
    let served = serve(&node, &bob, &certificate).await;
    let in_use = Validator::hierarchical([root.clone()]);
    // Silence refuses nothing.
    assert_eq!(judge(&node, &in_use, 0).await, Ok(()));
    let record = RevocationRecord::make(&site.signer, &certificate, Reason::UNSPECIFIED, now_ms()).unwrap();
    *served.lock().unwrap() = Some(record.clone());
    let mut letter = 2;
    let refused = timeout(PATIENCE, async {
        loop {
            letter += 1;
            match judge(&node, &in_use, letter).await {
                Ok(()) => sleep(Duration::from_millis(200)).await,
                Err(denial) => return denial,
            }
        }
    });
    let denial = refused.await.expect("the record counts at the next look-up");
    assert!(matches!(denial, Denial::CertificateRevoked { .. }), "{denial}");

    // Records of files need no network.
    let offline = Validator::hierarchical([root]).without_look_ups();
    assert_eq!(judge(&node, &offline, 1000).await, Ok(()));
    offline.set_revocations("records".into(), vec![record]);
    assert!(matches!(judge(&node, &offline, 1001).await, Err(Denial::CertificateRevoked { .. })));
}

#[tokio::test]
async fn a_record_of_a_stranger_refuses_nothing() {
    let (node, site, bob) = (Node::start(), Key::new("/site/KEY/1"), Key::new("/site/bob/KEY/1"));
    let root = anchor(&site.certified_by(&site, 1, -1, 1));
    let certificate = bob.certified_by(&site, 1, -1, 1);
    let served = serve(&node, &bob, &certificate).await;
    let stranger = Key::new("/site/bob/KEY/1");
    let forged = RevocationRecord::make(&stranger.signer, &certificate, Reason::KEY_COMPROMISE, 1).unwrap();
    *served.lock().unwrap() = Some(forged);
    let validator = Validator::hierarchical([root]);
    for letter in 0..3 {
        assert_eq!(judge(&node, &validator, letter).await, Ok(()));
    }
}

/// Each validator meets the certificate for the first time, and the record is there already.
#[tokio::test]
async fn a_record_that_is_there_refuses_the_first_data() {
    let (node, site, bob) = (Node::start(), Key::new("/site/KEY/1"), Key::new("/site/bob/KEY/1"));
    let root = anchor(&site.certified_by(&site, 1, -1, 1));
    let certificate = bob.certified_by(&site, 1, -1, 1);
    let served = serve(&node, &bob, &certificate).await;
    let record = RevocationRecord::make(&bob.signer, &certificate, Reason::KEY_COMPROMISE, now_ms()).unwrap();
    *served.lock().unwrap() = Some(record);
    let mut letter = 0;
    // A slow machine may let the first one pass.
    let refused = timeout(PATIENCE, async {
        while judge(&node, &Validator::hierarchical([root.clone()]), letter).await.is_ok() {
            letter += 1;
        }
    });
    refused.await.expect("refused");
}

#[tokio::test]
async fn old_data_are_accepted_where_the_validator_asks_for_it() {
    let (node, site, mut bob) = (Node::start(), Key::new("/site/KEY/1"), Key::new("/site/bob/KEY/1"));
    let root = anchor(&site.certified_by(&site, 1, -9, 9));
    let certificate = bob.certified_by(&site, 1, -9, -3);
    bob.signer = bob.signer.clone().with_time(|| now_ms() - 5 * 24 * 3600 * 1000);
    let served = serve(&node, &bob, &certificate).await;
    let refused = judge(&node, &Validator::hierarchical([root.clone()]), 1).await;
    assert!(matches!(refused, Err(Denial::CertificateExpired(_))), "{refused:?}");
    let old = || Validator::hierarchical([root.clone()]).at_signing_time();
    assert_eq!(judge(&node, &old(), 2).await, Ok(()));

    // Revoked since, and a signature from before still holds; a thief could have made it, if there was one.
    let day_ms = 24 * 3600 * 1000;
    let record = |reason| RevocationRecord::make(&site.signer, &certificate, reason, now_ms() - 4 * day_ms).unwrap();
    *served.lock().unwrap() = Some(record(Reason::SUPERSEDED));
    assert_eq!(judge(&node, &old(), 3).await, Ok(()));
    let stolen = old();
    stolen.set_revocations("records".into(), vec![record(Reason::KEY_COMPROMISE)]);
    assert!(matches!(judge(&node, &stolen, 4).await, Err(Denial::CertificateRevoked { .. })));
}
