//! Segmented objects over good and bad links.

mod loopback;

use loopback::{Forwarder, Weather};
use namewire_client::{
    Client, DataBuf, Discovery, ExpressError, FetchError, FetchOptions, FetchProgress, FetchWatch, PublishOptions,
    RateLimit, Reply, SegmentFetch, SegmentPublisher, Validator, congestion_window::CongestionControl,
};
use namewire_packet::{DataBuilder, InterestBuilder, NackReason, NameBuf, content_type};
use namewire_security::{PrivateKey, Signer, ValidityPeriod, issue_certificate, trust::AnchorCertificate};
use std::{
    collections::HashMap,
    io::Write,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;

fn name(uri: &str) -> NameBuf {
    uri.parse().unwrap()
}

fn bytes(count: usize) -> Vec<u8> {
    let mut dice = fastrand::Rng::with_seed(7);
    (0..count).map(|_| dice.u8(..)).collect()
}

async fn publish(client: &Client, mut publisher: SegmentPublisher) {
    let mut stream = loop {
        if let Ok(stream) = publisher.open(client).await {
            break stream;
        }
    };
    tokio::spawn(async move { publisher.serve(&mut stream, |_| ()).await });
}

async fn fetch(client: &Client, uri: &str, options: FetchOptions) -> Result<(Vec<u8>, FetchProgress), FetchError> {
    let mut content = Vec::new();
    let progress = SegmentFetch::new(client, name(uri), options).run(&mut content, |_| ()).await?;
    Ok((content, progress))
}

/// What a producer does with an Interest.
enum Answer {
    Data(Vec<u8>),
    Nack(NackReason),
    Silence,
}

/// A consumer behind a perfect forwarder, and a producer that answers every Interest under `prefix` in this way.
async fn consumer_of(prefix: &str, mut answer: impl FnMut(NameBuf) -> Answer + Send + 'static) -> Client {
    let forwarder = Forwarder::new(Weather::default());
    let (consumer, server) = (forwarder.attach_memory(), forwarder.attach_memory());
    let mut stream = server.interests(&name(prefix)).await.unwrap();
    tokio::spawn(async move {
        while let Some(incoming) = stream.next().await {
            match answer(incoming.interest().name().to_buf()) {
                Answer::Data(wire) => incoming.respond(&wire).await.unwrap(),
                Answer::Nack(reason) => incoming.nack(reason).await.unwrap(),
                Answer::Silence => {}
            }
        }
        drop(server);
    });
    consumer
}

fn chunks(segment_bytes: usize) -> PublishOptions {
    PublishOptions { segment_bytes, version: Some(5), ..PublishOptions::default() }
}

#[tokio::test]
async fn a_file_arrives_whole_and_in_order() {
    let forwarder = Forwarder::new(Weather::default());
    let (consumer, server) = (forwarder.attach_unix(), forwarder.attach_unix());
    let content = bytes(3_000_001);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&content).unwrap();
    let publisher = SegmentPublisher::of_file(file.path(), &name("/file"), chunks(8000)).unwrap();
    assert_eq!((publisher.segments(), publisher.size_bytes()), (376, 3_000_001));
    publish(&server, publisher).await;
    let (got, progress) = fetch(&consumer, "/file", FetchOptions::default()).await.unwrap();
    assert!(got == content);
    assert_eq!(progress.versioned_name, name("/file/v=5"));
    assert_eq!((progress.segments, progress.segments_total), (376, Some(376)));
    assert_eq!(progress.unverified_segments, 0);
    assert_eq!(consumer.pending_interests(), 0);
    assert_eq!(forwarder.observe(|seen| seen.missing_tokens), 0);

    // By version, and by the first segment instead of metadata.
    let (got, _) = fetch(&consumer, "/file/v=5", FetchOptions::default()).await.unwrap();
    assert!(got == content);
    let options = FetchOptions { discovery: Discovery::FirstSegment, ..FetchOptions::default() };
    let (got, progress) = fetch(&consumer, "/file", options).await.unwrap();
    assert!(got == content);
    assert_eq!(progress.segments, 376);
}

/// Tools for people who study transfers ask for metadata alone, for fresh segments, and watch what happens.
#[tokio::test]
async fn a_fetch_by_metadata_alone_can_be_watched() {
    let forwarder = Forwarder::new(Weather::default());
    let (consumer, server) = (forwarder.attach_memory(), forwarder.attach_memory());
    let mut publisher = SegmentPublisher::of_bytes(&bytes(300), &name("/file"), chunks(100)).unwrap();
    let mut stream = publisher.open(&server).await.unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Some(incoming) = stream.next().await {
            let (interest, reply) = (incoming.interest(), publisher.answer(&incoming.interest()));
            let flags = (interest.can_be_prefix(), interest.must_be_fresh());
            seen.lock().unwrap().push((interest.name().len(), flags));
            let Reply::Data(wire) = reply else { panic!("{}", interest.name()) };
            incoming.respond(&wire).await.unwrap();
        }
        drop(server);
    });
    let events = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&events);
    let watch = FetchWatch::new(move |event| noted.lock().unwrap().push(format!("{event:?}")));
    let options = FetchOptions {
        discovery: Discovery::Metadata,
        must_be_fresh: true,
        window_initial: 1,
        window_max: 1,
        watch: Some(watch),
        ..FetchOptions::default()
    };
    assert!(fetch(&consumer, "/file", options).await.unwrap().0 == bytes(300));
    let fresh_segment = (3, (false, true));
    assert_eq!(*asked.lock().unwrap(), [(2, (true, true)), fresh_segment, fresh_segment, fresh_segment]);
    let events = events.lock().unwrap();
    let kinds: Vec<&str> = events.iter().map(|event| event.split(['(', ' ']).next().unwrap()).collect();
    let of_segment = ["Requested", "Received", "Window"];
    assert_eq!(kinds, [&["Metadata"][..], &of_segment, &of_segment, &of_segment].concat(), "{events:?}");
    assert!(events[5].contains("segment: 1"), "{}", events[5]);
}

/// A repository fetches packets, not content: a part of them, without a version, in any order.
#[tokio::test]
async fn a_part_of_an_object_arrives_as_packets() {
    let forwarder = Forwarder::new(Weather { jitter: Duration::from_millis(2), ..Weather::default() });
    let (consumer, server) = (forwarder.attach_unix(), forwarder.attach_unix());
    let options = PublishOptions { is_versioned: false, ..chunks(100) };
    let publisher = SegmentPublisher::of_bytes(&bytes(10_000), &name("/object"), options).unwrap();
    assert_eq!((publisher.versioned_name(), publisher.segments()), (&name("/object"), 100));
    publish(&server, publisher).await;
    for (first, last, expected) in
        [(0, None, 0..100_u64), (90, None, 90..100), (3, Some(7), 3..8), (95, Some(200), 95..100)]
    {
        let options = FetchOptions {
            discovery: Discovery::None,
            first_segment: first,
            last_segment: last,
            ..FetchOptions::default()
        };
        let mut stream = SegmentFetch::new(&consumer, name("/object"), options).stream().await.unwrap();
        let mut packets = Vec::new();
        while stream.next(&mut packets).await.unwrap() {}
        let number = |data: &DataBuf| data.data().name().last().unwrap().segment().unwrap();
        let mut got: Vec<u64> = packets.iter().map(number).collect();
        got.sort_unstable();
        assert_eq!(got, expected.collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn empty_and_exact_sizes() {
    let forwarder = Forwarder::new(Weather::default());
    let (consumer, server) = (forwarder.attach_unix(), forwarder.attach_unix());
    for (uri, size, segments) in [("/empty", 0, 1), ("/one", 100, 1), ("/two", 101, 2)] {
        let content = bytes(size);
        let publisher = SegmentPublisher::of_bytes(&content, &name(uri), chunks(100)).unwrap();
        assert_eq!(publisher.segments(), segments);
        publish(&server, publisher).await;
        let (got, progress) = fetch(&consumer, uri, FetchOptions::default()).await.unwrap();
        assert_eq!((got, progress.segments), (content, segments));
    }
}

/// A version that nobody had was waited for: 16 attempts, 45 seconds.
#[tokio::test]
async fn what_a_publisher_does_not_have_gets_an_application_nack_at_once() {
    let forwarder = Forwarder::new(Weather::default());
    let (consumer, server) = (forwarder.attach_unix(), forwarder.attach_unix());
    let publisher = SegmentPublisher::of_bytes(&bytes(250), &name("/file"), chunks(100)).unwrap();
    publish(&server, publisher).await;
    let ask = async |uri: &str| {
        let interest = InterestBuilder::new(name(uri)).lifetime_ms(60_000);
        let data = consumer.express(&interest).await.unwrap();
        let last = data.data().final_block_id().and_then(|last| last.segment());
        (data.data().content_type() == content_type::NACK, data.data().freshness_ms(), last)
    };
    assert_eq!(ask("/file/v=5/seg=2").await, (false, 10_000, Some(2)));
    assert_eq!(ask("/file/v=5/seg=3").await, (true, 1, Some(2)), "beyond the end");
    assert_eq!(ask("/file/v=6/seg=0").await, (true, 1, None), "another version");
    assert_eq!(ask("/file/poem").await, (true, 1, None), "no segment");
    for uri in ["/file/v=6", "/file/v=4"] {
        let error = fetch(&consumer, uri, FetchOptions::default()).await.unwrap_err();
        assert!(matches!(error, FetchError::ApplicationNack(_)), "{error}");
    }
    let (got, _) = fetch(&consumer, "/file", FetchOptions::default()).await.unwrap();
    assert_eq!(got, bytes(250));
}

/// A file that was written to while it was served gave a mixture of the old and the new content.
#[tokio::test]
async fn a_file_that_changes_ends_a_fetch_of_what_it_was() {
    let forwarder = Forwarder::new(Weather::default());
    let (consumer, server) = (forwarder.attach_unix(), forwarder.attach_unix());
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&bytes(1000)).unwrap();
    let long_ago = std::time::SystemTime::UNIX_EPOCH + Duration::from_micros(1_234_567_890);
    file.as_file().set_modified(long_ago).unwrap();
    let options = PublishOptions { segment_bytes: 100, ..PublishOptions::default() };
    let publisher = SegmentPublisher::of_file(file.path(), &name("/file"), options).unwrap();
    assert_eq!(publisher.versioned_name(), &name("/file/v=1234567890"), "microseconds since 1970");
    publish(&server, publisher).await;
    let segment = async |number| {
        let interest = InterestBuilder::new(name(&format!("/file/v=1234567890/seg={number}"))).lifetime_ms(60_000);
        consumer.express(&interest).await.unwrap().data().content_type()
    };
    assert_eq!(segment(0).await, 0);
    file.write_all(b"more").unwrap();
    assert_eq!(segment(1).await, content_type::NACK);
    assert_eq!(segment(0).await, 0, "it is kept");
    file.as_file().set_len(1000).unwrap();
    assert_eq!(segment(2).await, content_type::NACK, "it stays another file");
}

/// Paused time: the clock jumps whenever all tasks wait, so seconds of RTO cost nothing.
async fn through_bad_weather(control: CongestionControl, weather: Weather) -> (FetchProgress, u64) {
    let forwarder = Forwarder::new(weather);
    let (consumer, server) = (forwarder.attach_memory(), forwarder.attach_memory());
    let content = bytes(400_000);
    let publisher = SegmentPublisher::of_bytes(&content, &name("/file"), chunks(500)).unwrap();
    publish(&server, publisher).await;
    let options = FetchOptions { congestion_control: control, ..FetchOptions::default() };
    let (got, progress) = fetch(&consumer, "/file", options).await.unwrap();
    assert!(got == content, "content differs");
    assert_eq!(progress.segments, 800);
    assert_eq!(consumer.pending_interests(), 0);
    (progress, forwarder.observe(|seen| seen.lost))
}

#[tokio::test(start_paused = true)]
async fn ten_percent_loss_and_reordering() {
    for (control, seed) in [(CongestionControl::Cubic, 1), (CongestionControl::Aimd, 2), (CongestionControl::Fixed, 3)]
    {
        let weather = Weather { loss: 0.1, jitter: Duration::from_millis(30), seed, ..Weather::default() };
        let (progress, lost) = through_bad_weather(control, weather).await;
        assert!(lost > 100, "{lost}");
        assert!(progress.retransmissions > 50 && progress.retransmissions <= lost, "{progress:?} {lost}");
        assert_eq!(progress.window_decreases > 0, control != CongestionControl::Fixed);
    }
}

/// A lost segment waited for its time-out of 200 ms and more: 10 MB at 2 % of loss took 5 s where ndn-tools took 1 s.
#[tokio::test(start_paused = true)]
async fn later_arrivals_show_losses_long_before_their_time_out() {
    let weather = Weather { loss: 0.02, jitter: Duration::from_millis(1), seed: 6, ..Weather::default() };
    let (progress, lost) = through_bad_weather(CongestionControl::Cubic, weather).await;
    assert!(lost > 10 && progress.losses > 10, "{lost} {progress:?}");
    assert_eq!(progress.timeouts, 0, "{progress:?}");
    assert!(progress.elapsed < Duration::from_millis(400), "{progress:?}");
}

/// The last segment has no later one.
#[tokio::test(start_paused = true)]
async fn a_lost_tail_is_found_by_a_probe() {
    let mut asked = 0;
    let consumer = consumer_of("/tail", move |name| {
        let segment = name.as_name().last().and_then(|last| last.segment());
        asked += u64::from(segment == Some(9));
        match segment {
            Some(9) if asked == 1 => Answer::Silence,
            _ => Answer::Data(DataBuilder::new(name).final_segment(9).content(b"x").sign_digest()),
        }
    })
    .await;
    let (got, progress) = fetch(&consumer, "/tail/v=1", FetchOptions::default()).await.unwrap();
    assert_eq!((got.len(), progress.timeouts, progress.retransmissions), (10, 0, 1));
    assert!(progress.elapsed < Duration::from_millis(100), "{progress:?}");
}

/// A stream has no FinalBlockId before its end. It may be silent for longer than sixteen attempts take, while its
/// producer answers for its metadata.
#[tokio::test(start_paused = true)]
async fn a_silent_stream_is_waited_for_while_its_producer_lives() {
    const SILENCE: Duration = Duration::from_secs(300);
    let produce = |metadata: bool| {
        let began = Instant::now();
        move |mut asked: NameBuf| {
            if asked.as_name().last().unwrap().value == b"metadata" {
                let mut content = Vec::new();
                name("/stream/v=1").as_name().write_tlv(&mut content);
                asked.push_version(1).push_segment(0);
                let data = DataBuilder::new(asked).freshness_ms(1).final_segment(0).content(&content);
                return if metadata { Answer::Data(data.sign_digest()) } else { Answer::Silence };
            }
            match asked.as_name().last().unwrap().segment() {
                Some(0) => Answer::Data(DataBuilder::new(asked).content(b"first").sign_digest()),
                Some(1) if began.elapsed() > SILENCE => {
                    Answer::Data(DataBuilder::new(asked).final_segment(1).content(b"last").sign_digest())
                }
                _ => Answer::Silence,
            }
        }
    };
    let consumer = consumer_of("/stream", produce(true)).await;
    let (got, progress) = fetch(&consumer, "/stream/v=1", FetchOptions::default()).await.unwrap();
    assert_eq!(got, b"firstlast");
    assert!(progress.retransmissions < 1000, "{progress:?}");
    let consumer = consumer_of("/stream", produce(false)).await;
    let error = fetch(&consumer, "/stream/v=1", FetchOptions::default()).await.unwrap_err();
    assert!(matches!(error, FetchError::SegmentTimeout { .. }), "{error}");
}

/// A fresh segment of an old version in a cache answered before the producer's metadata, or the other way round.
#[tokio::test(start_paused = true)]
async fn the_newer_of_two_answers_wins() {
    for (of_metadata, of_segment) in [(5, 7), (7, 5), (6, 6)] {
        let consumer = consumer_of("/film", move |mut asked| {
            let versioned = |version: u64| {
                let mut versioned = name("/film");
                versioned.push_version(version);
                versioned
            };
            let last = asked.as_name().last().unwrap();
            let data = if last.value == b"metadata" {
                let mut content = Vec::new();
                versioned(of_metadata).as_name().write_tlv(&mut content);
                asked.push_version(1).push_segment(0);
                DataBuilder::new(asked).freshness_ms(1).final_segment(0).content(&content).sign_digest()
            } else {
                if last.segment().is_none() {
                    asked = versioned(of_segment);
                    asked.push_segment(0);
                }
                DataBuilder::new(asked).freshness_ms(1000).final_segment(0).content(b"x").sign_digest()
            };
            Answer::Data(data)
        })
        .await;
        let (_, progress) = fetch(&consumer, "/film", FetchOptions::default()).await.unwrap();
        assert_eq!(progress.versioned_name, name(&format!("/film/v={}", of_metadata.max(of_segment))));
        assert_eq!(progress.segments, 1);
    }
}

/// What nobody has was asked for sixteen times, for 45 s.
#[tokio::test(start_paused = true)]
async fn a_version_that_nobody_has_is_soon_given_up() {
    let consumer = consumer_of("/film", |_| Answer::Silence).await;
    let began = Instant::now();
    let options = FetchOptions { patience: Duration::from_millis(3500), ..FetchOptions::default() };
    for uri in ["/film/v=9", "/film"] {
        let error = fetch(&consumer, uri, options.clone()).await.unwrap_err();
        assert!(matches!(&error, FetchError::NotFound { cause: ExpressError::Timeout(3500..4100), .. }), "{error}");
    }
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

/// Any packet below the name answers a prefix Interest: a Nack for a version that somebody made up, a manifest, another
/// object. None of them hides the object.
#[tokio::test(start_paused = true)]
async fn other_packets_below_the_name_are_not_taken_for_the_object() {
    for (other, content_type) in [
        ("/film/v=9999/seg=0", content_type::NACK),
        ("/film/v=1/32=manifest/seg=0", content_type::MANIFEST),
        ("/film/extras/v=9/seg=0", 0),
    ] {
        let consumer = consumer_of("/film", move |mut asked| {
            let last = asked.as_name().last().unwrap();
            if last.value == b"metadata" {
                let mut content = Vec::new();
                name("/film/v=5").as_name().write_tlv(&mut content);
                asked.push_version(1).push_segment(0);
                let data = DataBuilder::new(asked).freshness_ms(1).final_segment(0).content(&content);
                return Answer::Data(data.sign_digest());
            }
            let (asked, content_type) = if asked == name("/film") { (name(other), content_type) } else { (asked, 0) };
            let data = DataBuilder::new(asked).content_type(content_type).freshness_ms(1000).final_segment(0);
            Answer::Data(data.content(b"x").sign_digest())
        })
        .await;
        let (_, progress) = fetch(&consumer, "/film", FetchOptions::default()).await.unwrap();
        assert_eq!(progress.versioned_name, name("/film/v=5"), "{other}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rate_is_kept() {
    let consumer = consumer_of("/film", |asked| {
        Answer::Data(DataBuilder::new(asked).final_segment(99).content(&[7; 1000]).sign_digest())
    })
    .await;
    let options = FetchOptions { rate_limit: Some(Arc::new(RateLimit::new(50_000))), ..FetchOptions::default() };
    let (got, progress) = fetch(&consumer, "/film/v=1", options).await.unwrap();
    assert_eq!((got.len(), progress.retransmissions), (100_000, 0));
    let rate = 100_000.0 / progress.elapsed.as_secs_f64();
    assert!((40_000.0..=52_000.0).contains(&rate), "{rate} bytes/s");
}

/// Eight fetches at a time. The rate was that of each.
#[tokio::test(start_paused = true)]
async fn fetches_that_share_a_rate_keep_it_together() {
    let consumer = consumer_of("/film", |asked| {
        Answer::Data(DataBuilder::new(asked).final_segment(9).content(&[7; 1000]).sign_digest())
    })
    .await;
    let options = FetchOptions {
        discovery: Discovery::None,
        rate_limit: Some(Arc::new(RateLimit::new(50_000))),
        // As the metadata of a file tell: the first turn is not that of a large segment.
        size_bytes_max: 10_000,
        last_segment: Some(9),
        ..FetchOptions::default()
    };
    let start = Instant::now();
    let mut fetches = tokio::task::JoinSet::new();
    for film in 0..8 {
        let (consumer, options) = (consumer.clone(), options.clone());
        fetches.spawn(async move { fetch(&consumer, &format!("/film/{film}"), options).await.unwrap().0.len() });
    }
    assert_eq!(fetches.join_all().await, [10_000; 8]);
    let rate = 80_000.0 / start.elapsed().as_secs_f64();
    assert!((45_000.0..=52_000.0).contains(&rate), "{rate} bytes/s");
}

/// An application Nack of the time before the object existed was in a cache.
#[tokio::test]
async fn an_old_application_nack_of_a_cache_is_asked_about_once_more() {
    let mut asked_twice = std::collections::HashSet::new();
    let consumer = consumer_of("/film", move |asked| {
        let is_new = asked_twice.insert(asked.clone());
        let content_type = if is_new { content_type::NACK } else { 0 };
        Answer::Data(DataBuilder::new(asked).content_type(content_type).final_segment(3).content(b"four").sign_digest())
    })
    .await;
    let (got, _) = fetch(&consumer, "/film/v=1", FetchOptions::default()).await.unwrap();
    assert_eq!(got, b"fourfourfourfour");
}

#[tokio::test(start_paused = true)]
async fn reordering_alone_causes_hardly_a_retransmission() {
    let weather = Weather { jitter: Duration::from_millis(40), seed: 4, ..Weather::default() };
    let (progress, _) = through_bad_weather(CongestionControl::Cubic, weather).await;
    assert!(progress.retransmissions < 8, "1 % of the segments: {progress:?}");
    assert_eq!(progress.timeouts, 0);
}

#[tokio::test(start_paused = true)]
async fn marks_shrink_the_window_once_per_round_trip() {
    let weather = Weather { mark_every: 1, jitter: Duration::from_millis(20), seed: 5, ..Weather::default() };
    let forwarder = Forwarder::new(weather);
    let (consumer, server) = (forwarder.attach_memory(), forwarder.attach_memory());
    let publisher = SegmentPublisher::of_bytes(&bytes(50_000), &name("/file"), chunks(500)).unwrap();
    publish(&server, publisher).await;
    // All hundred segments leave at once, so all marks belong to one round trip.
    let options = FetchOptions { window_initial: 100, ..FetchOptions::default() };
    let (_, progress) = fetch(&consumer, "/file", options).await.unwrap();
    assert_eq!((progress.congestion_marks, progress.window_decreases, progress.window), (100, 1, 70));
    assert_eq!(progress.retransmissions, 0);
}

#[tokio::test(start_paused = true)]
async fn missing_segment_fails_after_the_last_retry() {
    let consumer = consumer_of("/hole", |asked| match asked.as_name().last().and_then(|last| last.segment()) {
        Some(3) => Answer::Silence,
        _ => Answer::Data(DataBuilder::new(asked).final_segment(9).content(b"x").sign_digest()),
    })
    .await;
    let options = FetchOptions { retries_max: 4, ..FetchOptions::default() };
    let error = fetch(&consumer, "/hole/v=1", options).await.unwrap_err();
    assert!(matches!(error, FetchError::SegmentTimeout { segment: 3, attempts: 5 }), "{error}");
    assert_eq!(consumer.pending_interests(), 0);
}

#[tokio::test(start_paused = true)]
async fn congestion_nacks_are_waited_out_and_others_are_final() {
    let mut count = 0;
    let consumer = consumer_of("/busy", move |asked| {
        count += 1;
        match count % 8 {
            0 => Answer::Nack(NackReason::Congestion),
            4 => Answer::Nack(NackReason::Duplicate),
            _ => Answer::Data(DataBuilder::new(asked).final_segment(49).content(b"xy").sign_digest()),
        }
    })
    .await;
    let (got, progress) = fetch(&consumer, "/busy/v=1", FetchOptions::default()).await.unwrap();
    assert_eq!(got.len(), 100);
    assert!(progress.nacks >= 12 && progress.timeouts == 0, "{progress:?}");

    let error = fetch(&consumer, "/nowhere/v=1", FetchOptions::default()).await.unwrap_err();
    assert!(matches!(error, FetchError::SegmentNack { segment: 0, reason: NackReason::NoRoute }), "{error}");
    let error = fetch(&consumer, "/nowhere", FetchOptions::default()).await.unwrap_err();
    assert!(matches!(&error, FetchError::NotFound { cause: ExpressError::Nack(NackReason::NoRoute), .. }), "{error}");
}

/// A link failed in the middle of a fetch, and finding another route took seconds: the fetch ended after three Nacks.
/// And once its time-out had grown to the lifetime of its Interests, forwarders treated none of them as a
/// retransmission, so none was sent another way.
#[tokio::test(start_paused = true)]
async fn a_fetch_survives_ten_seconds_of_silence_or_of_nacks() {
    for nack in [None, Some(NackReason::NoRoute)] {
        let forwarder = Forwarder::new(Weather::default());
        let (consumer, server) = (forwarder.attach_memory(), forwarder.attach_memory());
        let mut stream = server.interests(&name("/cut")).await.unwrap();
        let producer = tokio::spawn(async move {
            let (mut answered, mut cut_at) = (0, None);
            let mut asked_at: HashMap<NameBuf, Vec<Instant>> = HashMap::new();
            while let Some(incoming) = stream.next().await {
                let name = incoming.interest().name().to_buf();
                let is_cut = answered >= 30 && cut_at.get_or_insert_with(Instant::now).elapsed() < SILENCE;
                if !is_cut {
                    answered += 1;
                    let data = DataBuilder::new(name).final_segment(99).content(b"xy").sign_digest();
                    incoming.respond(&data).await.unwrap();
                } else {
                    asked_at.entry(name).or_default().push(Instant::now());
                    if let Some(reason) = nack {
                        incoming.nack(reason).await.unwrap();
                    }
                }
                if answered == 100 {
                    break;
                }
            }
            asked_at
        });
        const SILENCE: Duration = Duration::from_secs(10);
        let (got, _) = fetch(&consumer, "/cut/v=1", FetchOptions::default()).await.unwrap();
        assert_eq!(got.len(), 200);
        let asked_at = producer.await.unwrap();
        let retried = asked_at.values().filter(|times| times.len() > 4).count();
        assert!(retried > 0, "{asked_at:?}");
        for times in asked_at.values() {
            for pair in times.windows(2) {
                let pause = pair[1] - pair[0];
                assert!(pause < Duration::from_millis(4000), "{pause:?}: the Interest before is pending no longer");
            }
        }
    }
}

/// A failing link may lose the first Interests of a fetch.
#[tokio::test(start_paused = true)]
async fn the_search_for_a_version_survives_ten_seconds_of_silence() {
    let began = Instant::now();
    let consumer = consumer_of("/late", move |_| match began.elapsed() > Duration::from_secs(10) {
        true => Answer::Data(DataBuilder::new(name("/late/v=1/seg=0")).final_segment(0).content(b"xy").sign_digest()),
        false => Answer::Silence,
    })
    .await;
    let (got, _) = fetch(&consumer, "/late", FetchOptions::default()).await.unwrap();
    assert_eq!(got, b"xy");
}

#[tokio::test]
async fn forged_content_and_oversized_objects_are_refused() {
    let consumer = consumer_of("/forged", |asked| {
        let mut wire = DataBuilder::new(asked).final_segment(0).content(b"true").sign_digest();
        *wire.last_mut().unwrap() ^= 1;
        Answer::Data(wire)
    })
    .await;
    let error = fetch(&consumer, "/forged/v=1", FetchOptions::default()).await.unwrap_err();
    assert!(matches!(error, FetchError::BadDigest(_)), "{error}");

    let forwarder = Forwarder::new(Weather::default());
    let (consumer, server) = (forwarder.attach_unix(), forwarder.attach_unix());
    let publisher = SegmentPublisher::of_bytes(&bytes(10_000), &name("/big"), chunks(1000)).unwrap();
    publish(&server, publisher).await;
    let options = FetchOptions { size_bytes_max: 9_999, ..FetchOptions::default() };
    let error = fetch(&consumer, "/big", options).await.unwrap_err();
    assert!(matches!(error, FetchError::TooLarge(9_999)), "{error}");
}

/// `namewire get` wrote the text of an application Nack (Data of ContentType 3) into the file and exited with 0.
#[tokio::test]
async fn an_application_nack_or_a_link_is_no_content() {
    let consumer = consumer_of("/app", |mut asked| {
        let object = asked.as_name().get(1).unwrap().value.to_vec();
        let is_metadata = asked.as_name().get(2).is_some_and(|component| component.value == b"metadata");
        let segment = asked.as_name().last().and_then(|last| last.segment());
        if segment.is_none() && !is_metadata {
            asked.push_version(1).push_segment(0);
        }
        let content_type = match (&object[..], segment) {
            _ if is_metadata => content_type::NACK,
            (b"gone", _) | (b"torn", Some(2)) => content_type::NACK,
            (b"moved", _) => content_type::LINK,
            (b"key", _) => 2,
            _ => 0,
        };
        let data = DataBuilder::new(asked).content_type(content_type).final_segment(3).content(b"four");
        Answer::Data(data.sign_digest())
    })
    .await;
    for uri in ["/app/gone", "/app/gone/v=1", "/app/torn", "/app/torn/v=1"] {
        let error = fetch(&consumer, uri, FetchOptions::default()).await.unwrap_err();
        let of = name(if uri.contains("gone") { "/app/gone/v=1/seg=0" } else { "/app/torn/v=1/seg=2" });
        assert!(matches!(&error, FetchError::ApplicationNack(name) if *name == of), "{uri}: {error:?}");
    }
    let error = fetch(&consumer, "/app/moved/v=1", FetchOptions::default()).await.unwrap_err();
    assert!(matches!(&error, FetchError::Link(_)), "{error:?}");
    // The Nack under the metadata name does not hide the object, and a certificate is content.
    for uri in ["/app/whole", "/app/key"] {
        let (got, progress) = fetch(&consumer, uri, FetchOptions::default()).await.unwrap();
        assert_eq!((&got[..], progress.segments), (&b"fourfourfourfour"[..], 4));
    }
}

#[tokio::test]
async fn single_packet_without_segments() {
    let consumer = consumer_of("/note", |asked| match asked == name("/note") {
        true => Answer::Data(DataBuilder::new(name("/note/today")).content(b"hello").sign_digest()),
        false => Answer::Nack(NackReason::NoRoute),
    })
    .await;
    let (got, progress) = fetch(&consumer, "/note", FetchOptions::default()).await.unwrap();
    assert_eq!(got, b"hello");
    assert_eq!(progress.versioned_name, name("/note/today"));
}

#[test]
fn publisher_answers_only_what_exists() {
    let mut publisher = SegmentPublisher::of_bytes(&bytes(250), &name("/a/file"), chunks(100)).unwrap();
    let mut ask = |uri: &str, prefix: bool| {
        let wire = InterestBuilder::new(name(uri)).can_be_prefix(prefix).build();
        let name_of = |wire: &[u8]| namewire_packet::Data::parse(wire).unwrap().name().to_string();
        match publisher.answer(&namewire_packet::Interest::parse(&wire).unwrap()) {
            Reply::Data(wire) => name_of(&wire),
            Reply::UncachedData(wire) => format!("Nack {}", name_of(&wire)),
            other => format!("{other:?}"),
        }
    };
    assert_eq!(ask("/a/file/v=5/seg=2", false), "/a/file/v=5/seg=2");
    assert_eq!(ask("/a/file/v=5/seg=3", false), "Nack /a/file/v=5/seg=3");
    assert_eq!(ask("/a/file/v=4/seg=0", false), "Nack /a/file/v=4/seg=0");
    assert_eq!(ask("/a/file", true), "/a/file/v=5/seg=0");
    assert_eq!(ask("/a/file/v=5", true), "/a/file/v=5/seg=0");
    assert_eq!(ask("/a/file", false), "Nothing");
    assert_eq!(ask("/a", true), "Nothing");
    assert_eq!(ask("/a/file/32=metadata", false), "Nothing");
    assert!(ask("/a/file/32=metadata", true).starts_with("/a/file/32=metadata/v="));
    let counters = publisher.counters();
    assert_eq!((counters.interests, counters.segments, counters.metadata, counters.not_found), (9, 3, 1, 5));
    assert_eq!((counters.bytes, counters.application_nacks), (50 + 100 + 100, 2));
}

#[test]
fn publisher_refuses_what_cannot_be_sent() {
    use namewire_client::PublishError;
    let publish = |name: &NameBuf, size| SegmentPublisher::of_bytes(b"", name, chunks(size)).map(drop);
    assert!(matches!(publish(&name("/a"), 0), Err(PublishError::BadSegmentSize(0))));
    assert!(matches!(publish(&name("/a"), 8193), Err(PublishError::BadSegmentSize(8193))));
    let mut long = NameBuf::new();
    long.push_generic(&[b'x'; 700]);
    assert!(matches!(publish(&long, 8192), Err(PublishError::PacketTooLarge { .. })));
    publish(&long, 8000).unwrap();
    let missing = SegmentPublisher::of_file(std::path::Path::new("/no/such/file"), &long, chunks(10));
    assert!(matches!(missing, Err(PublishError::File { .. })));
}

/// The first segment, of a cache, told another end than the next one: what lay between was never asked for.
#[tokio::test(start_paused = true)]
async fn an_end_that_moves_is_followed() {
    let consumer = consumer_of("/moved", |asked| {
        let segment = asked.as_name().last().and_then(|last| last.segment()).unwrap();
        let last = if segment == 0 { 3 } else { 100 };
        Answer::Data(DataBuilder::new(asked).final_segment(last).content(b"x").sign_digest())
    })
    .await;
    let options = FetchOptions { window_initial: 50, ..FetchOptions::default() };
    let (got, _) = fetch(&consumer, "/moved/v=1", options).await.unwrap();
    assert_eq!(got.len(), 101);
}

/// The Nack for a segment beyond the end may come before the first segment, which is late or lost.
#[tokio::test]
async fn a_nack_beyond_the_end_tells_where_the_end_is() {
    let consumer = consumer_of("/short", |asked| {
        let segment = asked.as_name().last().and_then(|last| last.segment()).unwrap();
        let (content_type, content) = if segment > 2 { (content_type::NACK, &b""[..]) } else { (0, &b"x"[..]) };
        // Only the Nacks tell the end.
        let data = DataBuilder::new(asked).content_type(content_type).content(content);
        Answer::Data(if segment > 2 { data.final_segment(2).sign_digest() } else { data.sign_digest() })
    })
    .await;
    let options = FetchOptions { window_initial: 8, ..FetchOptions::default() };
    let (got, progress) = fetch(&consumer, "/short/v=1", options).await.unwrap();
    assert_eq!((got, progress.segments), (b"xxx".to_vec(), 3));
}

/// One signature for all segments, checked while they come.
#[tokio::test]
async fn a_manifest_makes_segments_trusted_and_finds_forged_ones() {
    let (key, key_name) = (PrivateKey::generate_ecdsa().unwrap(), name("/alice/KEY/1"));
    let spki = key.public_key().spki().to_vec();
    let signer = Signer::private_key(key, key_name.clone());
    let always = ValidityPeriod { not_before_ms: 0, not_after_ms: 4_000_000_000_000 };
    let issuer = namewire_client::Component::generic(b"self");
    let certificate = issue_certificate(&signer, key_name.as_name(), &spki, issuer, 1, always).unwrap();
    let anchor = AnchorCertificate::parse(certificate.wire().to_vec()).unwrap();
    let options = FetchOptions {
        validator: Some(Arc::new(Validator::hierarchical([anchor]))),
        patience: Duration::from_secs(5),
        ..FetchOptions::default()
    };
    let content = bytes(500 * 1000);
    let published = |has_manifest, signer: Signer| {
        let options = PublishOptions { signer, has_manifest, ..chunks(1000) };
        SegmentPublisher::of_bytes(&content, &name("/alice/film"), options).unwrap()
    };
    let forwarder = Forwarder::new(Weather::default());
    let (consumer, server) = (forwarder.attach_unix(), forwarder.attach_unix());
    publish(&server, published(true, signer.clone())).await;
    for uri in ["/alice/film", "/alice/film/v=5"] {
        let (got, progress) = fetch(&consumer, uri, options.clone()).await.unwrap();
        assert!(got == content);
        assert_eq!((progress.segments, progress.unverified_segments), (500, 0));
    }
    // A segment in the middle is another one, with a right digest.
    let mut publisher = published(true, signer);
    let forger = consumer_of("/alice", move |asked| {
        if asked.as_name().last().and_then(|last| last.segment()) == Some(300) && asked.as_name().len() == 4 {
            return Answer::Data(DataBuilder::new(asked).final_segment(499).content(b"forged").sign_digest());
        }
        let interest = InterestBuilder::new(asked).can_be_prefix(true).build();
        match publisher.answer(&namewire_packet::Interest::parse(&interest).unwrap()) {
            namewire_client::Reply::Data(wire) | namewire_client::Reply::UncachedData(wire) => {
                Answer::Data(wire.to_vec())
            }
            _ => Answer::Silence,
        }
    })
    .await;
    let error = fetch(&forger, "/alice/film", options.clone()).await.unwrap_err();
    assert!(matches!(&error, FetchError::NotInManifest(of) if *of == name("/alice/film/v=5/seg=300")), "{error}");
    // Nobody signed anything.
    let (consumer, server) = (forwarder.attach_unix(), forwarder.attach_unix());
    let unsigned = PublishOptions { version: Some(6), ..chunks(1000) };
    publish(&server, SegmentPublisher::of_bytes(&content, &name("/bob/film"), unsigned).unwrap()).await;
    let error = fetch(&consumer, "/bob/film/v=6", options).await.unwrap_err();
    assert!(matches!(error, FetchError::NotTrusted { .. }), "{error}");
}

#[tokio::test]
async fn segments_and_metadata_are_signed_by_the_key_that_is_given() {
    let forwarder = Forwarder::new(Weather::default());
    let (consumer, server) = (forwarder.attach_unix(), forwarder.attach_unix());
    let content = bytes(20_000);
    for (prefix, key) in [("/ec", PrivateKey::generate_ecdsa()), ("/ed", PrivateKey::generate_ed25519())] {
        let key = key.unwrap();
        let public = key.public_key().clone();
        let locator = name("/publisher/KEY/1");
        let options = PublishOptions { signer: Signer::private_key(key, locator), ..chunks(8000) };
        publish(&server, SegmentPublisher::of_bytes(&content[..], &name(prefix), options).unwrap()).await;
        let (fetched, progress) = fetch(&consumer, prefix, FetchOptions::default()).await.unwrap();
        assert_eq!(fetched, content);
        assert_eq!(progress.unverified_segments, 3, "the fetch has no key to verify by");
        for (uri, prefix) in [(format!("{prefix}/v=5/seg=2"), false), (format!("{prefix}/32=metadata"), true)] {
            let data = consumer.express(&InterestBuilder::new(name(&uri)).can_be_prefix(prefix)).await.unwrap();
            let data = data.data();
            let signed_type = data.signature_info().signature_type();
            assert_eq!(public.verify(signed_type, &[data.signed_portion()], data.signature_value()), Ok(()), "{uri}");
        }
    }
    // A segment must fit whatever the length of its signature.
    let key = PrivateKey::generate_ecdsa().unwrap();
    let signer = Signer::private_key(key, name(&format!("/{}", "k".repeat(600))));
    let options = PublishOptions { signer, ..chunks(8192) };
    assert!(SegmentPublisher::of_bytes(&content[..], &name("/too/large"), options).is_err());
}
