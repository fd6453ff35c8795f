//! Asks for one packet and prints its content.
//!
//! `cargo run -p namewire-client --example consumer`

use namewire_client::{Client, InterestBuilder, NameBuf};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name: NameBuf = "/example/hello".parse()?;
    let data = Client::connect().await?.express(&InterestBuilder::new(name).must_be_fresh(true)).await?;
    println!("{}", String::from_utf8_lossy(data.content()));
    Ok(())
}
