//! A notification stream through a forwarder that speaks real packets. The test is the publisher, so it sees each
//! Interest of the subscriber.

mod loopback;

use loopback::{Forwarder, Weather};
use namewire_client::{Client, ExpressError, IncomingInterest, InterestStream, NotificationStream};
use namewire_packet::{DataBuilder, NackReason, NameBuf, tlv::types::SEQUENCE_NUM_COMPONENT};
use tokio::task::JoinHandle;

const STREAM: &str = "/node/events";

fn name(sequence: u64) -> NameBuf {
    let mut name: NameBuf = STREAM.parse().unwrap();
    name.push_typed_nni(SEQUENCE_NUM_COMPONENT, sequence);
    name
}

/// A publisher, and what a subscriber gets when it asks for so many notifications.
async fn subscribe(
    forwarder: &Forwarder,
    count: usize,
) -> (Client, InterestStream, JoinHandle<Result<Vec<(u64, u64, Vec<u8>)>, ExpressError>>) {
    let publisher = forwarder.attach_memory();
    let stream: NameBuf = STREAM.parse().unwrap();
    let interests = publisher.interests(&stream).await.unwrap();
    let subscriber = forwarder.attach_memory();
    let told = tokio::spawn(async move {
        let mut notifications = NotificationStream::new(&subscriber, stream);
        let mut told = Vec::new();
        while told.len() < count {
            let notification = notifications.next().await?;
            told.push((notification.sequence, notification.missed, notification.content));
        }
        Ok(told)
    });
    (publisher, interests, told)
}

/// The next Interest, checked to be for the latest notification.
async fn latest(interests: &mut InterestStream) -> IncomingInterest {
    let incoming = interests.next().await.unwrap();
    let interest = incoming.interest();
    assert_eq!(interest.name().to_string(), STREAM);
    assert!(interest.can_be_prefix() && interest.must_be_fresh());
    incoming
}

/// The next Interest, checked to be for this notification.
async fn numbered(interests: &mut InterestStream, sequence: u64) -> IncomingInterest {
    let incoming = interests.next().await.unwrap();
    assert_eq!(incoming.interest().name().to_buf(), name(sequence));
    assert!(!incoming.interest().can_be_prefix());
    incoming
}

async fn announce(incoming: IncomingInterest, sequence: u64, content: &[u8]) {
    let data = DataBuilder::new(name(sequence)).freshness_ms(1000).content(content);
    incoming.respond(&data.sign_digest()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_latest_comes_first_and_then_each_by_its_number() {
    let (_publisher, mut interests, told) = subscribe(&Forwarder::new(Weather::default()), 3).await;
    announce(latest(&mut interests).await, 7, b"first").await;
    announce(numbered(&mut interests, 8).await, 8, b"second").await;
    // A Nack is no end.
    numbered(&mut interests, 9).await.nack(NackReason::Congestion).await.unwrap();
    announce(numbered(&mut interests, 9).await, 9, b"third").await;
    let expected = [(7, 0, b"first".to_vec()), (8, 0, b"second".to_vec()), (9, 0, b"third".to_vec())];
    assert_eq!(told.await.unwrap().unwrap(), expected);
}

/// After a time-out, the next notification may be one that the forwarder keeps no longer. What was missed is counted,
/// and what was told already is not told again.
#[tokio::test(start_paused = true)]
async fn after_a_time_out_it_asks_for_the_latest_again() {
    let (_publisher, mut interests, told) = subscribe(&Forwarder::new(Weather::default()), 2).await;
    announce(latest(&mut interests).await, 7, b"told").await;
    let _unanswered = numbered(&mut interests, 8).await;
    announce(latest(&mut interests).await, 7, b"told").await;
    let _unanswered = numbered(&mut interests, 8).await;
    announce(latest(&mut interests).await, 12, b"later").await;
    let expected = [(7, 0, b"told".to_vec()), (12, 4, b"later".to_vec())];
    assert_eq!(told.await.unwrap().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn data_that_is_no_notification_is_skipped() {
    let (_publisher, mut interests, told) = subscribe(&Forwarder::new(Weather::default()), 1).await;
    let odd: NameBuf = format!("{STREAM}/other").parse().unwrap();
    let data = DataBuilder::new(odd).freshness_ms(1000).content(b"odd").sign_digest();
    latest(&mut interests).await.respond(&data).await.unwrap();
    announce(latest(&mut interests).await, 3, b"event").await;
    assert_eq!(told.await.unwrap().unwrap(), [(3, 0, b"event".to_vec())]);
}
