//! Answers Interests under the name of an identity. The identity's key signs the answers. The program also publishes
//! the certificate of that key, and renews it before it expires. It runs until it is stopped.
//!
//! `namewire key make /alice`, then
//! `cargo run -p namewire-client --features key-chain --example kept_key -- /alice`

use namewire_client::{
    CertificateEvent, Client, DataBuilder, IncomingInterest, NameBuf, discovery::Environment, keep_certificate,
    security::key_chain::KeyChain,
};
use std::{
    env,
    error::Error,
    sync::{Arc, Mutex},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let identity: NameBuf = env::args().nth(1).ok_or("usage: kept_key IDENTITY")?.parse()?;
    let (location, home) = Environment::of_process().key_chain_location()?;
    let chain = KeyChain::open_or_create(&location, &home)?;
    let certificate = chain.parsed_certificate_of(identity.as_name())?;
    let key_name = certificate.key_name().to_buf();
    let signer = chain.lasting_signer(key_name.as_name())?;

    let published = Arc::new(Mutex::new(certificate));
    let to_publish = published.clone();
    tokio::spawn(keep_certificate(chain, key_name.clone(), move |event| {
        println!("{event}");
        if let CertificateEvent::Renewed(certificate) = event {
            *to_publish.lock().expect("no thread panics with it") = certificate;
        }
    }));
    let answer = move |interest: IncomingInterest| {
        let name = interest.interest().name();
        let wire = if key_name.as_name().is_prefix_of(&name) {
            Ok(published.lock().expect("no thread panics with it").wire().to_vec())
        } else {
            signer.sign_data(&DataBuilder::new(name).freshness_ms(1000).content(b"signed by a kept key"))
        };
        async move { wire.ok() }
    };
    Ok(Client::connect().await?.serve(&identity, answer).await?)
}
