//! Answers every Interest under /example, until it is stopped.
//!
//! `cargo run -p namewire-client --example producer`

use namewire_client::{Client, DataBuilder, IncomingInterest};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hello = async |interest: IncomingInterest| {
        DataBuilder::new(interest.interest().name()).freshness_ms(1000).content(b"hello").sign_digest()
    };
    Ok(Client::connect().await?.serve(&"/example".parse()?, hello).await?)
}
