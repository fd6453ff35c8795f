//! Fetches an object of many segments into a file.
//!
//! `cargo run -p namewire-client --example fetch_file -- /me/holiday copy.mp4`

use namewire_client::{Client, FetchOptions, SegmentFetch};
use std::{env, error::Error};
use tokio::fs::File;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let [name, path] = [1, 2].map(|at| env::args().nth(at).ok_or("usage: fetch_file NAME FILE"));
    let client = Client::connect().await?;
    let mut file = File::create(path?).await?;
    let fetch = SegmentFetch::new(&client, name?.parse()?, FetchOptions::default());
    let done = fetch.run(&mut file, |progress| eprint!("\r{} bytes", progress.bytes)).await?;
    eprintln!("\r{} bytes of {}", done.bytes, done.versioned_name);
    Ok(())
}
