//! What a client does after its router has started again.

use crate::node::Node;
use namewire_client::{Client, DataBuilder, ExpressError, InterestBuilder, InterestOptions, NameBuf};
use std::time::Duration;
use tokio::time::sleep;

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
