//! Answers Interests under the name of an identity. The identity's key signs the answers. The program also publishes
//! the certificate of that key, and renews it before it expires: by the issuer's key if that is here, else by the
//! authority that issued it. It runs until it is stopped.
//!
//! `namewire key make /alice`, then
//! `cargo run -p namewire-certificates --example kept_key -- /alice`

use namewire_certificates::{CertificateEvent, CertificateKeeper};
use namewire_client::{
    Client, DataBuilder, IncomingInterest, NameBuf, discovery::Environment, security::key_chain::KeyChain,
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

    let client = Client::connect().await?;
    let published = Arc::new(Mutex::new(certificate));
    let to_publish = published.clone();
    let keeper = CertificateKeeper::new(chain, key_name.clone()).over(client.clone());
    tokio::spawn(keeper.run(move |event| {
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
    Ok(client.serve(&identity, answer).await?)
}
