//! Sync groups with members that send forged vectors or Data.

use crate::node::Node;
use namewire_client::{
    Client, Component, InterestBuilder, NameBuf, Validator,
    packet::nfd::ControlParameters,
    security::{PrivateKey, Signer, ValidityPeriod, issue_certificate, trust::AnchorCertificate},
    sync::{
        SyncEvent, SyncGroup, Version,
        names::SyncNames,
        vector::{Producer, StateVector},
        wire::write_vector,
    },
};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

const GROUP: &str = "/chat";

fn name(uri: &str) -> NameBuf {
    uri.parse().unwrap()
}

/// A client whose router sends sync Interests to all members.
async fn member(node: &Node) -> Client {
    let client = node.client().await;
    let strategy = Some(name("/localhost/nfd/strategy/multicast"));
    let multicast = ControlParameters { name: Some(name(GROUP)), strategy, ..ControlParameters::default() };
    client.control("strategy-choice", "set", &multicast).await.unwrap();
    client
}

async fn join(node: &Node, me: &str, signer: Signer) -> SyncGroup {
    SyncGroup::join(&member(node).await, &name(GROUP), &name(me), signer).await.unwrap()
}

/// A key, and its certificate as an anchor.
fn identity(key_name: &str) -> (Signer, AnchorCertificate) {
    let (key, key_name) = (PrivateKey::generate_ed25519().unwrap(), name(key_name));
    let spki = key.public_key().spki().to_vec();
    let signer = Signer::private_key(key, key_name.clone());
    let always = ValidityPeriod { not_before_ms: 0, not_after_ms: 4_000_000_000_000 };
    let certificate = issue_certificate(&signer, key_name.as_name(), &spki, Component::generic(b"self"), 1, always);
    (signer, AnchorCertificate::parse(certificate.unwrap().wire().to_vec()).unwrap())
}

/// Runs a member in the background; it publishes `said` first.
fn speak(mut group: SyncGroup, said: &'static [u8]) {
    tokio::spawn(async move {
        group.publish(said).unwrap();
        while group.next().await.is_some() {}
    });
}

/// Vectors that announce 2⁶³ publications of many producers neither fill memory nor keep others waiting.
#[tokio::test]
async fn forged_vectors_do_not_keep_a_member_waiting() {
    let node = Node::start();
    let mut bob = join(&node, "/bob", Signer::digest()).await;
    let forger = member(&node).await;
    let mut forged = StateVector::default();
    for number in 0..200 {
        forged.raise(&Producer { name: name(&format!("/forged/{number}")), bootstrap_s: 0 }, 1 << 63);
    }
    let mut vector = Vec::new();
    write_vector(Version::V2, &forged, &mut vector);
    let interest = InterestBuilder::new(SyncNames::of(&name(GROUP)).sync).can_be_prefix(true).must_be_fresh(true);
    let interest = interest.lifetime_ms(10).application_parameters(vector);
    let heard = async {
        loop {
            if let Some(SyncEvent::Published { producer, data, .. }) = bob.next().await {
                return (producer.name, data.content().to_vec());
            }
        }
    };
    let forge_and_speak = async {
        assert!(forger.express(&interest).await.is_err(), "a sync Interest gets no Data");
        speak(join(&node, "/alice", Signer::digest()).await, b"hello");
    };
    let (heard, ()) = tokio::join!(heard, forge_and_speak);
    assert_eq!(heard, (name("/alice"), b"hello".to_vec()));
    assert_eq!(bob.vector().len(), 201);
}

#[tokio::test]
async fn only_trusted_publications_are_taken() {
    let node = Node::start();
    let (alice, anchor) = identity("/alice/KEY/1");
    let (mallory, _) = identity("/mallory/KEY/1");
    let bob = join(&node, "/bob", Signer::digest()).await;
    let mut bob = bob.trust_only(Arc::new(Validator::hierarchical([anchor])));
    speak(join(&node, "/mallory", mallory).await, b"I am Alice");
    speak(join(&node, "/alice", alice).await, b"hello");
    let mut heard = Vec::new();
    while heard.is_empty() || bob.counters().refused_untrusted == 0 {
        if let Ok(Some(SyncEvent::Published { data, .. })) = timeout(Duration::from_millis(50), bob.next()).await {
            heard.push(data.content().to_vec());
        }
    }
    assert_eq!(heard, [b"hello"]);
}
