//! What a client does after its router has restarted.

use crate::node::Node;
use namewire_client::{
    Client, DataBuilder, ExpressError, InterestBuilder, InterestOptions, NameBuf,
    tag::{PullOptions, TagClient, TagServes, TagSet},
};
use std::time::Duration;
use tokio::time::sleep;

/// Of a fifth of a second each: longer than anything takes here, also on a busy machine.
const ATTEMPTS: u32 = 500;

async fn restart(node: &mut Node, client: &Client) {
    node.stop_router();
    node.start_router();
    while client.close_reason().is_none() {
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn the_next_interest_opens_a_connection() {
    let mut node = Node::start();
    let client = node.client().await;
    let before = client.forwarder_status().await.unwrap();
    restart(&mut node, &client).await;
    assert!(client.forwarder_status().await.is_ok(), "{before:?}");
    assert_eq!(client.close_reason(), None);
}

#[tokio::test]
async fn without_a_router_it_fails_at_once() {
    let mut node = Node::start();
    let client = node.client().await;
    node.stop_router();
    while client.close_reason().is_none() {
        sleep(Duration::from_millis(1)).await;
    }
    let interest = InterestBuilder::new("/x".parse::<NameBuf>().unwrap()).lifetime_ms(3_600_000);
    assert!(matches!(client.express(&interest).await, Err(ExpressError::Closed(_))));
}

/// The story: a stream that was opened while the connection was lost waited on the old face, and its route led to the
/// new one.
#[tokio::test]
async fn a_stream_opened_after_a_loss_is_served_by_the_new_connection() {
    let mut node = Node::start();
    let (producer, consumer) = (node.client().await, node.client().await);
    restart(&mut node, &producer).await;
    let name: NameBuf = "/late/1".parse().unwrap();
    let mut interests = producer.interests(&"/late".parse().unwrap()).await.unwrap();
    let interest = InterestBuilder::new(&name).lifetime_ms(60_000);
    let answer = async {
        let incoming = interests.next().await.unwrap();
        incoming.respond(&DataBuilder::new(&name).content(b"here").sign_digest()).await.unwrap();
    };
    let (data, ()) = tokio::join!(consumer.express(&interest), answer);
    assert_eq!(data.unwrap().content(), b"here");
}

#[tokio::test]
async fn a_stream_without_a_route_ends_with_its_connection() {
    let mut node = Node::start();
    let client = node.client().await;
    let options = InterestOptions { route: None, ..InterestOptions::default() };
    let mut before = client.interests_with(&"/before".parse().unwrap(), options).await.unwrap();
    restart(&mut node, &client).await;
    let mut after = client.interests_with(&"/after".parse().unwrap(), options).await.unwrap();
    assert!(before.next().await.is_none() && after.next().await.is_none());
}

/// The story: the router forgets an application with its connection, and a receiver ended then. So nobody found the
/// application any more.
#[tokio::test]
async fn advertisements_are_repeated_after_a_restart() {
    let set = |tags: &str| tags.parse::<TagSet>().unwrap();
    let mut node = Node::start();
    let hall = TagClient::new(&node.client().await);
    let mut receiver = hall.receive().unwrap();
    hall.advertise(&set("classical,concert"), TagServes::Both, None).await.unwrap();
    hall.advertise(&set("classical,ended"), TagServes::Both, None).await.unwrap();
    hall.withdraw(&set("classical,ended")).await.unwrap();
    hall.join().await.unwrap();
    restart(&mut node, hall.client()).await;
    tokio::spawn(async move {
        while let Some(pull) = receiver.next().await {
            let _ = pull.reply(b"Symphony no. 9").await;
        }
    });

    let other = TagClient::new(&node.client().await);
    let mut pushes = other.receive().unwrap();
    other.advertise(&set("news"), TagServes::Push, None).await.unwrap();
    let brief = PullOptions { replies_max: 1, timeout: Duration::from_millis(200) };
    // The restart takes a moment, and so do the router's tables.
    let mut attempts = 0..ATTEMPTS;
    let reply = loop {
        assert!(attempts.next().is_some(), "nobody answers");
        let mut replies = other.pull(&set("Beethoven,classical,concert"), b"", brief).await.unwrap();
        if let Some(reply) = replies.next().await.unwrap() {
            break reply;
        }
    };
    assert_eq!(reply.payload(), b"Symphony no. 9");
    let routes = other.routes().await.unwrap();
    assert_eq!(routes.len(), 2, "what was withdrawn stays away: {routes:?}");
    loop {
        assert!(attempts.next().is_some(), "no push comes");
        hall.push(&set("concert,news"), b"encore").await.unwrap();
        if let Ok(push) = tokio::time::timeout(Duration::from_millis(200), pushes.next()).await {
            break assert_eq!(push.unwrap().payload(), b"encore");
        }
    }
}
