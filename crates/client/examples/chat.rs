//! A chat in a sync group: every member receives all messages. The program publishes each line of its standard input,
//! and continues to listen after the last line.
//!
//! `cargo run -p namewire-client --example chat -- /chat/v=3 /alice`

use namewire_client::{
    Client,
    packet::nfd::ControlParameters,
    security::Signer,
    sync::{SyncEvent, SyncGroup},
};
use std::{env, error::Error};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let [group, me] = [1, 2].map(|at| env::args().nth(at).ok_or("usage: chat GROUP NAME"));
    let (group, me) = (group?.parse()?, me?.parse()?);
    let client = Client::connect().await?;
    // Sync Interests must reach all members.
    let multicast = ControlParameters {
        name: Some(group),
        strategy: Some("/localhost/nfd/strategy/multicast".parse()?),
        ..ControlParameters::default()
    };
    client.control("strategy-choice", "set", &multicast).await?;
    let group = multicast.name.unwrap_or_default();
    let mut chat = SyncGroup::join(&client, &group, &me, Signer::digest()).await?;
    let mut lines = BufReader::new(stdin()).lines();
    let mut is_open = true;
    loop {
        tokio::select! {
            event = chat.next() => match event.ok_or("the forwarder is gone")? {
                SyncEvent::Published { producer, data, .. } => {
                    println!("{}: {}", producer.name, String::from_utf8_lossy(data.content()));
                }
                SyncEvent::Lost { producer, count } => println!("{}: {count} lines are lost", producer.name),
            },
            line = lines.next_line(), if is_open => match line? {
                Some(line) => drop(chat.publish(line.as_bytes())?),
                None => is_open = false,
            },
        }
    }
}
