//! Puts an object into a repository, and lists what is there under its name.
//!
//! `cargo run -p namewire-repo --example archive -- /repo /me/note "some words"` (a router with a repository runs:
//! `namewire run --repo`)

use namewire_client::{Client, NameBuf, PublishOptions, SegmentPublisher};
use namewire_repo::RemoteRepo;
use std::{env, error::Error};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let [repo, name, text] = [1, 2, 3].map(|at| env::args().nth(at).ok_or("usage: archive REPO NAME TEXT"));
    let (repo, name) = (RemoteRepo::new(Client::connect().await?, repo?.parse()?), name?.parse::<NameBuf>()?);
    let object = SegmentPublisher::of_bytes(text?.as_bytes(), &name, PublishOptions::default())?;
    repo.put(object, |progress| eprintln!("{} of {} segments", progress.stored, progress.total)).await?;
    for stored in repo.list(name.as_name(), None).await? {
        println!("{stored}");
    }
    Ok(())
}
