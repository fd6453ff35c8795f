//! A concert over TagNet: a hall that answers, a listener who asks and follows up, and news for everyone.
//!
//! `cargo run -p namewire-client --example tag_concert` connects three times to the router that runs here. Its
//! configuration must turn TagNet on (`[tagnet]`).

use namewire_client::{
    Client,
    tag::{PullOptions, TagClient, TagReceiver, TagServes, TagSet},
};
use std::{error::Error, time::Duration};

/// Answers "programme" with what is played, and the name of a piece with its length.
async fn play(mut receiver: TagReceiver) {
    while let Some(incoming) = receiver.next().await {
        let answer: &[u8] = match incoming.payload() {
            b"programme" => b"Symphony no. 9",
            b"Symphony no. 9" => b"70 minutes",
            _ => b"?",
        };
        if let Err(error) = incoming.reply(answer).await {
            eprintln!("hall: {error}");
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let hall = TagClient::new(&Client::connect().await?);
    let receiver = hall.receive()?;
    hall.advertise(&"classical,concert".parse()?, TagServes::Pull, None).await?;
    tokio::spawn(play(receiver));

    // The pull finds the hall, because all tags of the hall are among its own.
    let listener = TagClient::new(&Client::connect().await?);
    let wanted: TagSet = "Beethoven,classical,concert".parse()?;
    let mut replies = listener.pull(&wanted, b"programme", PullOptions::default()).await?;
    let reply = replies.next().await?.ok_or("no concert tonight")?;
    println!("tonight: {}", String::from_utf8_lossy(reply.payload()));

    // The follow-up goes to that hall by its place, however many halls there are.
    let place = reply.place().ok_or("the reply does not say where it is from")?;
    let length = listener.follow_up(&place, reply.payload(), Duration::from_secs(4)).await?;
    println!("at {place}: {}", String::from_utf8_lossy(length.payload()));

    // A push goes to all who want it.
    let mut news = listener.receive()?;
    listener.advertise(&"concert".parse()?, TagServes::Push, None).await?;
    let press = TagClient::new(&Client::connect().await?);
    press.join().await?;
    press.push(&"concert,news".parse()?, b"the tenor is ill").await?;
    let push = tokio::time::timeout(Duration::from_secs(4), news.next()).await?.ok_or("the router is gone")?;
    println!("news: {}", String::from_utf8_lossy(push.payload()));
    Ok(())
}
