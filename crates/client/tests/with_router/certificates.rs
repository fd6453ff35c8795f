//! Certificates that have expired or are forged, and those that replace them.

use crate::node::Node;
use namewire_client::{
    CERTIFICATES_FETCHED_MAX, Client, Component, DataBuilder, IncomingInterest, InterestBuilder, NameBuf, TrustError,
    Validator,
    security::{
        Certificate, PrivateKey, Signer, ValidityPeriod, issue_certificate,
        trust::{AnchorCertificate, DataValidator, Denial, RulesOrAny, ValidatorConfig, lvs::Schema},
    },
};
use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::sleep;

const DAY_MS: u64 = 24 * 3600 * 1000;

pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

pub(crate) fn name(uri: &str) -> NameBuf {
    uri.parse().unwrap()
}

/// A key whose signatures name the key, and its public part.
pub(crate) struct Key {
    name: NameBuf,
    pub(crate) signer: Signer,
    spki: Vec<u8>,
}

impl Key {
    pub(crate) fn new(uri: &str) -> Self {
        let (name, key) = (name(uri), PrivateKey::generate_ecdsa().unwrap());
        let spki = key.public_key().spki().to_vec();
        Key { signer: Signer::private_key(key, name.clone()), name, spki }
    }

    /// A certificate for this key, from `from_day` to `to_day` (days from now).
    pub(crate) fn certified_by(&self, issuer: &Key, version: u64, from_day: i64, to_day: i64) -> Certificate {
        let at = |day: i64| now_ms().saturating_add_signed(day * DAY_MS as i64);
        let validity = ValidityPeriod { not_before_ms: at(from_day), not_after_ms: at(to_day) };
        let id = Component::generic(b"issuer");
        issue_certificate(&issuer.signer, self.name.as_name(), &self.spki, id, version, validity).unwrap()
    }
}

pub(crate) fn anchor(certificate: &Certificate) -> AnchorCertificate {
    AnchorCertificate::parse(certificate.wire().to_vec()).unwrap()
}

/// Bob serves letters under /site/bob, and this certificate, which may be replaced.
async fn serve(node: &Node, bob: &Key, certificate: &Certificate) -> Arc<Mutex<Certificate>> {
    let producer = node.client().await;
    let served = Arc::new(Mutex::new(certificate.clone()));
    let (key_name, signer, now) = (bob.name.clone(), bob.signer.clone(), served.clone());
    let answer = move |interest: IncomingInterest| {
        let name = interest.interest().name().to_buf();
        let answer = match key_name.as_name().is_prefix_of(&name.as_name()) {
            true => now.lock().unwrap().wire().to_vec(),
            false => signer.sign_data(&DataBuilder::new(&name).content(b"a letter")).unwrap(),
        };
        async move { answer }
    };
    tokio::spawn(async move { producer.serve(&name("/site/bob"), answer).await });
    served
}

/// Asks for a letter until the producer has registered its prefix.
async fn ask(client: &Client, validator: &Validator, letter: &str) -> Result<Vec<u8>, Denial> {
    loop {
        match client.express_trusted(&InterestBuilder::new(name(letter)), validator).await {
            Ok(data) => return Ok(data.content().to_vec()),
            Err(TrustError::NotTrusted(denial)) => return Err(denial),
            Err(TrustError::Express(_)) => sleep(Duration::from_millis(5)).await,
        }
    }
}

fn letter() -> Result<Vec<u8>, Denial> {
    Ok(b"a letter".to_vec())
}

/// Bob serves this certificate now. The router forgets the one before.
fn replace(node: &mut Node, served: &Mutex<Certificate>, certificate: Certificate) {
    *served.lock().unwrap() = certificate;
    node.stop_router();
    node.start_router();
}

#[tokio::test]
async fn a_renewed_certificate_is_fetched_after_the_expired_one() {
    let (mut node, site, bob) = (Node::start(), Key::new("/site/KEY/1"), Key::new("/site/bob/KEY/1"));
    let validator = Validator::hierarchical([anchor(&site.certified_by(&site, 1, -1, 1))]);
    let served = serve(&node, &bob, &bob.certified_by(&site, 1, -2, -1)).await;
    let client = node.client().await;

    let refused = ask(&client, &validator, "/site/bob/1").await;
    assert!(matches!(refused, Err(Denial::CertificateExpired(_))), "{refused:?}");
    replace(&mut node, &served, bob.certified_by(&site, 2, -1, 1));
    assert_eq!(ask(&client, &validator, "/site/bob/2").await, letter());
}

/// The schema `letters` lets /site/NAME sign /site/NAME/LETTER, with a certificate that /site signs.
#[tokio::test]
async fn a_schema_says_who_signs_what() {
    let (mut node, site, bob) = (Node::start(), Key::new("/site/KEY/1"), Key::new("/site/bob/KEY/1"));
    let schema = || Schema::parse(include_bytes!("../../../security/tests/lvs/letters.tlv")).unwrap();
    let root = anchor(&site.certified_by(&site, 1, -1, 1));
    assert!(Validator::lvs(schema(), [anchor(&bob.certified_by(&site, 1, -1, 1))]).is_err());
    let validator = Validator::lvs(schema(), [root.clone()]).unwrap();
    let served = serve(&node, &bob, &bob.certified_by(&site, 1, -1, 1)).await;
    let client = node.client().await;
    assert_eq!(ask(&client, &validator, "/site/bob/1").await, letter());
    let refused = ask(&client, &validator, "/site/bob/1/2").await;
    assert!(matches!(&refused, Err(Denial::NotAllowed(why)) if why.contains("no rule of the schema")), "{refused:?}");
    // A certificate that the key signed itself is refused.
    let distrusting = Validator::lvs(schema(), [root]).unwrap();
    replace(&mut node, &served, bob.certified_by(&bob, 2, -1, 1));
    let refused = ask(&client, &distrusting, "/site/bob/2").await;
    assert!(matches!(&refused, Err(Denial::NotAllowed(why)) if why.contains("#member of the schema")), "{refused:?}");
}

/// The certificate held when it was fetched, long ago. If no other comes, that is still the reason.
#[tokio::test]
async fn a_certificate_that_has_expired_since_is_fetched_again_at_once() {
    let (mut node, site, bob) = (Node::start(), Key::new("/site/KEY/1"), Key::new("/site/bob/KEY/1"));
    let rules = ValidatorConfig::hierarchical([anchor(&site.certified_by(&site, 1, -1, 1))]);
    let client = node.client().await;
    let over = bob.certified_by(&site, 1, -2, -1);
    let served = serve(&node, &bob, &over).await;
    let known = || {
        let mut known = DataValidator::new(RulesOrAny::Rules(rules.clone()));
        known.add_certificate(over.wire()).unwrap();
        Validator::from(known)
    };
    let refused = ask(&client, &known(), "/site/bob/1").await;
    assert!(matches!(refused, Err(Denial::CertificateExpired(_))), "{refused:?}");
    replace(&mut node, &served, bob.certified_by(&site, 2, -1, 1));
    assert_eq!(ask(&client, &known(), "/site/bob/1").await, letter());
}

#[tokio::test]
async fn a_forged_certificate_blocks_its_owner_only_while_it_is_served() {
    let (mut node, site, bob) = (Node::start(), Key::new("/site/KEY/1"), Key::new("/site/bob/KEY/1"));
    let validator = Validator::hierarchical([anchor(&site.certified_by(&site, 1, -1, 1))]);
    // Mallory's key under Bob's name, certified by a key that calls itself the site's.
    let (mallory, forger) = (Key::new("/site/bob/KEY/1"), Key::new("/site/KEY/1"));
    let served = serve(&node, &bob, &mallory.certified_by(&forger, 1, -1, 1)).await;
    let client = node.client().await;

    let refused = ask(&client, &validator, "/site/bob/1").await;
    assert!(matches!(refused, Err(Denial::BadSignature(_))), "{refused:?}");
    replace(&mut node, &served, bob.certified_by(&site, 2, -1, 1));
    assert_eq!(ask(&client, &validator, "/site/bob/2").await, letter());
}

/// The key of `/site/bob` with this number, the same in each test of one chain.
fn numbered(keys: &Mutex<Vec<Arc<Key>>>, number: usize) -> Arc<Key> {
    let mut keys = keys.lock().unwrap();
    while keys.len() <= number {
        let key = Key::new(&format!("/site/bob/KEY/{}", keys.len()));
        keys.push(Arc::new(key));
    }
    Arc::clone(&keys[number])
}

/// Mallory serves letters of `/site/bob`, and a certificate of each of Bob's keys, by the next one of them.
async fn serve_chain(node: &Node, next: fn(usize) -> usize) -> Arc<Mutex<usize>> {
    let producer = node.client().await;
    let (keys, asked) = (Arc::<Mutex<Vec<Arc<Key>>>>::default(), Arc::<Mutex<usize>>::default());
    let counter = Arc::clone(&asked);
    let answer = move |interest: IncomingInterest| {
        let name = interest.interest().name().to_buf();
        let number = name.as_name().get(3).filter(|_| name.as_name().get(2) == Some(Component::generic(b"KEY")));
        let number = number.and_then(|component| std::str::from_utf8(component.value).ok()?.parse().ok());
        let wire = match number {
            Some(number) => {
                *counter.lock().unwrap() += 1;
                let (key, issuer) = (numbered(&keys, number), numbered(&keys, next(number)));
                key.certified_by(&issuer, 1, -1, 1).wire().to_vec()
            }
            None => numbered(&keys, 0).signer.sign_data(&DataBuilder::new(&name).content(b"a letter")).unwrap(),
        };
        async move { wire }
    };
    tokio::spawn(async move { producer.serve(&name("/site/bob"), answer).await });
    asked
}

/// Whoever makes keys for nothing can make chains without an end. They cost as much as the longest good one.
#[tokio::test]
async fn chains_that_loop_or_never_end_are_refused_after_ten_certificates() {
    for next in [|number: usize| (number + 1) % 3, |number: usize| number + 1] {
        let (node, site) = (Node::start(), Key::new("/site/KEY/1"));
        let validator = Validator::hierarchical([anchor(&site.certified_by(&site, 1, -1, 1))]);
        let asked = serve_chain(&node, next).await;
        let refused = ask(&node.client().await, &validator, "/site/bob/1").await;
        let Err(denial) = refused else { panic!("{refused:?}") };
        assert!(denial.to_string().contains("more than 10 certificates"), "{denial}");
        assert!(*asked.lock().unwrap() <= CERTIFICATES_FETCHED_MAX, "{}", asked.lock().unwrap());
    }
}
