//! Consumers and producers through a forwarder that speaks real packets.

mod loopback;

use loopback::{Forwarder, Weather};
use namewire_client::{
    Client, CloseReason, ControlError, ExpressError, InterestOptions, InterestStream, ReplyBatch, RespondError,
};
use namewire_packet::{Component, DataBuilder, InterestBuilder, NackReason, NameBuf};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::{Instant, timeout},
};

fn name(uri: &str) -> NameBuf {
    uri.parse().unwrap()
}

async fn producer(client: &Client, prefix: &str) -> InterestStream {
    client.interests(&name(prefix)).await.unwrap()
}

/// Answers each Interest with its own name in reverse, plus `/more` for prefix Interests.
async fn answer_all(mut stream: InterestStream) {
    while let Some(incoming) = stream.next().await {
        let mut answer = incoming.interest().name().to_buf();
        if incoming.interest().can_be_prefix() {
            answer.push_generic(b"more");
        }
        let content: Vec<u8> = answer.to_string().bytes().rev().collect();
        incoming.respond(&DataBuilder::new(answer).content(&content).sign_digest()).await.unwrap();
    }
}

/// The story: while thousands connected to a router, the queue of its socket was full, and tools reported that no
/// forwarder answered.
#[tokio::test]
async fn a_forwarder_whose_queue_is_full_is_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nfd.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let _fills_the_queue = std::os::unix::net::UnixStream::connect(&path).unwrap();
    let connecting = tokio::spawn(Client::connect_to(format!("unix://{}", path.display()).parse().unwrap()));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!connecting.is_finished(), "it does not wait");
    listener.accept().unwrap();
    let connected = timeout(Duration::from_secs(60), connecting).await.expect("in time").unwrap();
    assert!(connected.is_ok(), "{:?}", connected.err());
}

#[tokio::test]
async fn thousands_of_concurrent_interests_find_their_data() {
    let forwarder = Forwarder::new(Weather::default());
    let (consumer, server) = (forwarder.attach_unix(), forwarder.attach_unix());
    tokio::spawn(answer_all(producer(&server, "/srv").await));
    let mut tasks = Vec::new();
    for number in 0..5000_u64 {
        let consumer = consumer.clone();
        tasks.push(tokio::spawn(async move {
            let mut wanted = name("/srv");
            wanted.push_segment(number);
            let prefix = number.is_multiple_of(3);
            let data = consumer.express(&InterestBuilder::new(wanted.clone()).can_be_prefix(prefix)).await.unwrap();
            assert!(wanted.as_name().is_prefix_of(&data.data().name()));
            assert_eq!(data.data().name().len(), wanted.len() + usize::from(prefix));
            assert!(data.data().verify_digest_sha256());
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(consumer.pending_interests(), 0);
    assert_eq!(consumer.counters().dropped_unsolicited_data, 0);
    assert_eq!(forwarder.observe(|seen| (seen.missing_tokens, seen.bad_commands)), (0, 0));
}

#[tokio::test]
async fn implicit_digest_and_wrong_digest() {
    let forwarder = Forwarder::new(Weather::default());
    let (consumer, server) = (forwarder.attach_unix(), forwarder.attach_unix());
    let wire = DataBuilder::new(name("/srv/x")).content(b"x").sign_digest();
    let digest = namewire_packet::Data::parse(&wire).unwrap().implicit_digest();
    let mut stream = producer(&server, "/srv").await;
    tokio::spawn(async move {
        while let Some(incoming) = stream.next().await {
            incoming.respond(&wire).await.unwrap();
        }
    });
    let full = |value: &[u8]| name("/srv/x").join(Component { type_number: 1, value });
    consumer.express(&InterestBuilder::new(full(&digest))).await.unwrap();
    let wrong = InterestBuilder::new(full(&[9; 32])).lifetime_ms(50);
    assert_eq!(consumer.express(&wrong).await.unwrap_err(), ExpressError::Timeout(50));
}

/// Data that claims a digest in its name is not sent; if a forwarder passes it on, it answers no Interest.
#[tokio::test]
async fn data_that_claims_a_digest_is_refused() {
    let claimed = name("/srv/x").join(Component { type_number: 1, value: &[9; 32] });
    let wire = DataBuilder::new(&claimed).content(b"poison").sign_digest();
    let forwarder = Forwarder::new(Weather::default());
    let (consumer, server) = (forwarder.attach_unix(), forwarder.attach_unix());
    let mut stream = producer(&server, "/srv").await;
    let asking = tokio::spawn({
        let (consumer, claimed) = (consumer.clone(), claimed.clone());
        async move { consumer.express(&InterestBuilder::new(claimed).lifetime_ms(60_000)).await }
    });
    let incoming = stream.next().await.unwrap();
    let refused = incoming.respond(&wire).await.unwrap_err();
    assert!(matches!(refused, RespondError::Malformed(_)), "{refused}");
    forwarder.send_to_all(&wire);
    while consumer.counters().dropped_malformed == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(consumer.pending_interests(), 1);
    asking.abort();
}

#[tokio::test]
async fn nacks_from_forwarder_and_producer() {
    let forwarder = Forwarder::new(Weather::default());
    let (consumer, server) = (forwarder.attach_unix(), forwarder.attach_unix());
    let nowhere = consumer.express(&InterestBuilder::new(name("/nowhere"))).await;
    assert_eq!(nowhere.unwrap_err(), ExpressError::Nack(NackReason::NoRoute));
    let mut stream = producer(&server, "/busy").await;
    tokio::spawn(async move {
        while let Some(incoming) = stream.next().await {
            incoming.nack(NackReason::Congestion).await.unwrap();
        }
    });
    let busy = consumer.express(&InterestBuilder::new(name("/busy/x"))).await;
    assert_eq!(busy.unwrap_err(), ExpressError::Nack(NackReason::Congestion));
    assert_eq!(consumer.pending_interests(), 0);
}

#[tokio::test(start_paused = true)]
async fn lifetime_is_the_time_out_and_late_data_is_counted() {
    let forwarder = Forwarder::new(Weather::default());
    let (consumer, server) = (forwarder.attach_memory(), forwarder.attach_memory());
    let mut stream = producer(&server, "/slow").await;
    let start = Instant::now();
    let interest = InterestBuilder::new(name("/slow/x")).lifetime_ms(700);
    assert_eq!(consumer.express(&interest).await.unwrap_err(), ExpressError::Timeout(700));
    assert_eq!(start.elapsed().as_millis(), 700);
    assert_eq!(consumer.pending_interests(), 0);
    let late = stream.next().await.unwrap();
    late.respond(&DataBuilder::new(name("/slow/x")).sign_digest()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(consumer.counters().dropped_unsolicited_data, 1);
}

#[tokio::test]
async fn dropping_the_future_forgets_the_interest() {
    let forwarder = Forwarder::new(Weather::default());
    let (consumer, server) = (forwarder.attach_unix(), forwarder.attach_unix());
    let _stream = producer(&server, "/quiet").await;
    let interest = InterestBuilder::new(name("/quiet/x"));
    assert!(timeout(Duration::from_millis(20), consumer.express(&interest)).await.is_err());
    assert_eq!(consumer.pending_interests(), 0);
}

#[tokio::test]
async fn refused_command_and_unregister() {
    let forwarder = Forwarder::new(Weather::default());
    let (consumer, server) = (forwarder.attach_unix(), forwarder.attach_unix());
    let refused = server.register_prefix(&name("/forbidden")).await;
    assert!(matches!(refused, Err(ControlError::Refused(response)) if response.code == 403));
    tokio::spawn(answer_all(producer(&server, "/srv").await));
    consumer.express(&InterestBuilder::new(name("/srv/x"))).await.unwrap();
    server.unregister_prefix(&name("/srv")).await.unwrap();
    let gone = consumer.express(&InterestBuilder::new(name("/srv/x"))).await;
    assert_eq!(gone.unwrap_err(), ExpressError::Nack(NackReason::NoRoute));
    assert_eq!(forwarder.observe(|seen| seen.bad_commands), 0);
}

#[tokio::test]
async fn longest_served_prefix_wins_and_a_prefix_is_served_once() {
    let forwarder = Forwarder::new(Weather::default());
    let (consumer, server) = (forwarder.attach_unix(), forwarder.attach_unix());
    let mut short = producer(&server, "/a").await;
    let mut long = server.interests(&name("/a/b")).await.unwrap();
    assert!(server.interests(&name("/a/b")).await.is_err());
    for uri in ["/a/b/c", "/a/c"] {
        let consumer = consumer.clone();
        tokio::spawn(async move { consumer.express(&InterestBuilder::new(name(uri))).await });
    }
    assert_eq!(long.next().await.unwrap().interest().name().to_string(), "/a/b/c");
    assert_eq!(short.next().await.unwrap().interest().name().to_string(), "/a/c");
    drop(long);
    server.interests(&name("/a/b")).await.unwrap();
}

#[tokio::test]
async fn lost_connection_ends_everything() {
    let (mut ours, theirs) = tokio::net::UnixStream::pair().unwrap();
    let client = Client::from_stream(theirs, true);
    let options = InterestOptions { route: None, ..InterestOptions::default() };
    let mut stream = client.interests_with(&name("/srv"), options).await.unwrap();
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.express(&InterestBuilder::new(name("/x"))).await }
    });
    let mut first = [0; 1];
    ours.read_exact(&mut first).await.unwrap();
    drop(ours);
    let closed = |result: Result<_, _>| matches!(result, Err(ExpressError::Closed(_)));
    assert!(closed(waiting.await.unwrap()));
    assert!(stream.next().await.is_none());
    assert!(closed(client.express(&InterestBuilder::new(name("/x"))).await));
    assert_eq!(client.pending_interests(), 0);
}

#[tokio::test]
async fn nonsense_from_the_forwarder_is_counted_or_closes() {
    let (mut ours, theirs) = tokio::net::UnixStream::pair().unwrap();
    let client = Client::from_stream(theirs, true);
    // Well-formed elements that are no packets: an Interest without a name, an unknown
    // type, a Nack around nothing; then a length that no packet has.
    ours.write_all(&[0x05, 0x00, 0x09, 0x01, 0x00, 0x64, 0x03, 0xfd, 0x03, 0x20]).await.unwrap();
    ours.write_all(&[0x05, 0xfe, 0x7f, 0xff, 0xff, 0xff]).await.unwrap();
    let mut rest = Vec::new();
    drop(timeout(Duration::from_secs(5), ours.read_to_end(&mut rest)).await);
    for _ in 0..1000 {
        if client.close_reason().is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(client.close_reason(), Some(CloseReason::NotTlv));
    assert_eq!(client.counters().dropped_malformed, 3);
}

#[tokio::test]
async fn flush_hands_over_what_was_queued_and_the_last_handle_closes() {
    let (mut ours, theirs) = tokio::net::UnixStream::pair().unwrap();
    let client = Client::from_stream(theirs, true);
    let interests: Vec<_> = (0..100_u64).map(|n| InterestBuilder::new(name("/x").join_segment(n))).collect();
    let clone = client.clone();
    let task = tokio::spawn(async move {
        for interest in &interests {
            drop(timeout(Duration::ZERO, clone.express(interest)).await);
        }
    });
    task.await.unwrap();
    client.flush().await;
    drop(client);
    let mut bytes = Vec::new();
    ours.read_to_end(&mut bytes).await.unwrap();
    let mut count = 0;
    let mut reader = namewire_packet::tlv::Reader::new(&bytes);
    while let Some(element) = reader.next_element().unwrap() {
        namewire_packet::Interest::parse(element.wire).unwrap();
        count += 1;
    }
    assert_eq!(count, 100);
}

trait JoinSegment {
    fn join_segment(&self, segment: u64) -> NameBuf;
}

impl JoinSegment for NameBuf {
    fn join_segment(&self, segment: u64) -> NameBuf {
        let mut name = self.clone();
        name.push_segment(segment);
        name
    }
}

#[tokio::test]
async fn udp_to_a_peer_that_fragments() {
    let server = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("udp://{}", server.local_addr().unwrap()).parse().unwrap();
    let client = Client::connect_to(uri).await.unwrap();
    assert!(!client.is_local());
    let content: Vec<u8> = (0..8000_u32).map(|n| n as u8).collect();
    let expected = content.clone();
    tokio::spawn(async move {
        let mut buffer = [0; 9000];
        let (_, peer) = server.recv_from(&mut buffer).await.unwrap();
        let data = DataBuilder::new(name("/big")).content(&content).sign_digest();
        let pieces: Vec<&[u8]> = data.chunks(1200).collect();
        for (index, piece) in pieces.iter().enumerate().rev() {
            let link = namewire_packet::lp::LinkFields {
                sequence: Some(1000 + index as u64),
                fragment: Some((index as u64, pieces.len() as u64)),
                ..Default::default()
            };
            let headers =
                namewire_packet::lp::LpHeaders { congestion_mark: u64::from(index == 0), ..Default::default() };
            let mut frame = Vec::new();
            namewire_packet::lp::write_headers(&mut frame, &headers, &link, piece.len());
            frame.extend_from_slice(piece);
            server.send_to(&frame, peer).await.unwrap();
        }
    });
    let data = client.express(&InterestBuilder::new(name("/big"))).await.unwrap();
    assert_eq!(data.data().content(), expected);
    assert_eq!(data.congestion_mark, 1);
}

#[tokio::test]
async fn answers_are_taken_and_sent_in_batches() {
    let forwarder = Forwarder::new(Weather::default());
    let (consumer, server) = (forwarder.attach_unix(), forwarder.attach_unix());
    let mut stream = producer(&server, "/srv").await;
    tokio::spawn(async move {
        let (mut batch, mut replies) = (Vec::new(), ReplyBatch::default());
        while stream.next_batch(&mut batch, 64).await > 0 {
            for incoming in batch.drain(..) {
                let name = incoming.interest().name().to_buf();
                match name.as_name().last().unwrap().segment().unwrap() % 2 {
                    0 => replies.push_data(&incoming, &DataBuilder::new(name).sign_digest()),
                    _ => replies.push_nack(&incoming, NackReason::NoRoute),
                }
            }
            server.send_replies(&mut replies).await.unwrap();
            assert!(replies.is_empty());
        }
    });
    let asked = (0..1000_u64).map(|number| {
        let consumer = consumer.clone();
        tokio::spawn(async move {
            let mut wanted = name("/srv");
            wanted.push_segment(number);
            (number, consumer.express(&InterestBuilder::new(wanted)).await)
        })
    });
    for answer in asked.collect::<Vec<_>>() {
        let (number, outcome) = answer.await.unwrap();
        match outcome {
            Ok(data) => assert_eq!(data.data().name().last().unwrap().segment(), Some(number)),
            Err(error) => assert_eq!((number % 2, error), (1, ExpressError::Nack(NackReason::NoRoute))),
        }
    }
    assert_eq!(forwarder.observe(|seen| seen.missing_tokens), 0);
}

#[tokio::test]
async fn a_full_queue_can_answer_with_a_nack() {
    let forwarder = Forwarder::new(Weather::default());
    let (consumer, server) = (forwarder.attach_unix(), forwarder.attach_unix());
    let options =
        InterestOptions { queue_max: 1, nack_when_full: Some(NackReason::Congestion), ..InterestOptions::default() };
    let mut stream = server.interests_with(&name("/srv"), options).await.unwrap();
    let ask = |uri: &str| {
        let (consumer, wanted) = (consumer.clone(), name(uri));
        tokio::spawn(async move { consumer.express(&InterestBuilder::new(wanted)).await })
    };
    let first = ask("/srv/1");
    while server.counters().in_frames < 2 {
        tokio::task::yield_now().await;
    }
    let second = ask("/srv/2").await.unwrap();
    assert_eq!(second.unwrap_err(), ExpressError::Nack(NackReason::Congestion));
    assert_eq!(server.counters().dropped_producer_busy, 1);
    stream.next().await.unwrap().respond(&DataBuilder::new(name("/srv/1")).sign_digest()).await.unwrap();
    assert!(first.await.unwrap().is_ok());
}
