//! Signs Data with a key, and accepts Data only if a chain of certificates connects its key to a trust anchor.
//!
//! Alice's key signs Bob's certificate, Bob's key signs a packet. Carol trusts Alice only; she finds Bob's certificate
//! by the name in the packet. Mallory's packets are refused. A forwarder sends no Interest back to the face from which
//! it came, so producer and consumer have separate connections.
//!
//! `cargo run -p namewire-client --example signed_data`

use namewire_client::{
    Client, Component, DataBuilder, IncomingInterest, InterestBuilder, NameBuf, Validator,
    security::{Certificate, PrivateKey, Signer, ValidityPeriod, issue_certificate, trust::AnchorCertificate},
};
use std::{
    error::Error,
    time::{SystemTime, UNIX_EPOCH},
};

type Anyhow<T> = Result<T, Box<dyn Error>>;

/// A key with this name. A real program takes one from its key chain: `security::key_chain`.
fn new_key(name: &str) -> Anyhow<(Signer, NameBuf, Vec<u8>)> {
    let (key, name) = (PrivateKey::generate_ecdsa()?, name.parse::<NameBuf>()?);
    let public = key.public_key().spki().to_vec();
    Ok((Signer::private_key(key, name.clone()), name, public))
}

fn certify(issuer: &Signer, key: &NameBuf, public: &[u8]) -> Anyhow<Certificate> {
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as u64;
    let a_day = ValidityPeriod { not_before_ms: now_ms - 60_000, not_after_ms: now_ms + 86_400_000 };
    Ok(issue_certificate(issuer, key.as_name(), public, Component::generic(b"issuer"), 1, a_day)?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Anyhow<()> {
    let (alice, alices_key, public) = new_key("/site/KEY/alice")?;
    let anchor = certify(&alice, &alices_key, &public)?;
    let (bob, bobs_key, public) = new_key("/site/bob/KEY/1")?;
    let bobs_certificate = certify(&alice, &bobs_key, &public)?;
    let (mallory, ..) = new_key("/site/mallory/KEY/1")?;

    let (producer, client) = (Client::connect().await?, Client::connect().await?);
    let answer = move |interest: IncomingInterest| {
        let name = interest.interest().name().to_buf();
        let signer = if name.to_string().ends_with("forged") { mallory.clone() } else { bob.clone() };
        let certificate = bobs_key.as_name().is_prefix_of(&name.as_name()).then(|| bobs_certificate.wire().to_vec());
        async move { certificate.or_else(|| signer.sign_data(&DataBuilder::new(&name).content(b"from Bob")).ok()) }
    };
    let interests = producer.interests(&"/site/bob".parse()?).await?; // the route is there from now on
    let serving = tokio::spawn(interests.serve(answer));

    let validator = Validator::hierarchical([AnchorCertificate::parse(anchor.wire().to_vec())?]);
    let ask = async |name: &str| -> Anyhow<_> {
        let interest = InterestBuilder::new(name.parse::<NameBuf>()?);
        Ok(client.express_trusted(&interest, &validator).await)
    };
    match ask("/site/bob/letter").await? {
        Ok(data) => println!("accepted: {}", String::from_utf8_lossy(data.content())),
        Err(error) => println!("refused: {error}"),
    }
    match ask("/site/bob/forged").await? {
        Ok(_) => println!("accepted a forgery"),
        Err(error) => println!("refused: {error}"),
    }
    serving.abort();
    Ok(())
}
