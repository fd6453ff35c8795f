//! Publishes a file in segments, until it is stopped.
//!
//! `cargo run -p namewire-client --example publish_file -- holiday.mp4 /me/holiday`

use namewire_client::{Client, PublishOptions, SegmentPublisher};
use std::{env, error::Error, path::PathBuf};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let [path, name] = [1, 2].map(|at| env::args().nth(at).ok_or("usage: publish_file FILE NAME"));
    let mut publisher = SegmentPublisher::of_file(&PathBuf::from(path?), &name?.parse()?, PublishOptions::default())?;
    let client = Client::connect().await?;
    let mut interests = publisher.open(&client).await?;
    println!("serving {} in {} segments", publisher.versioned_name(), publisher.segments());
    Ok(publisher.serve(&mut interests, |_| ()).await?)
}
