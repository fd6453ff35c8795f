//! Asks for one packet, and accepts it only if a chain of certificates connects its key to the anchor.
//!
//! `cargo run -p namewire-client --example trusting_consumer -- ANCHOR NAME`, with the file of `namewire key
//! export-cert` as ANCHOR

use namewire_client::{Client, InterestBuilder, NameBuf, Validator, security::trust::AnchorCertificate};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [anchor, name] = &arguments[..] else { return Err("usage: trusting_consumer ANCHOR NAME".into()) };
    let validator = Validator::hierarchical([AnchorCertificate::parse(std::fs::read(anchor)?)?]);
    let interest = InterestBuilder::new(name.parse::<NameBuf>()?).must_be_fresh(true);
    let data = Client::connect().await?.express_trusted(&interest, &validator).await?;
    println!("{}", String::from_utf8_lossy(data.content()));
    Ok(())
}
