//! Fetches whose connection, producer or slots fail, and what they count.

mod loopback;

use loopback::{Forwarder, Weather};
use namewire_client::{
    Client, FetchError, FetchOptions, FetchProgress, PublishOptions, Reply, SegmentFetch, SegmentPublisher, Validator,
    congestion_window,
};
use namewire_packet::{DataBuilder, Interest, NackReason, NameBuf};
use namewire_security::{
    PrivateKey, Signer, ValidityPeriod, issue_certificate,
    trust::{AnchorCertificate, DataValidator, RulesOrAny},
};
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    io::copy_bidirectional,
    net::UnixListener,
    sync::Notify,
    time::{Instant, sleep, timeout},
};

/// Longer than anything here takes, in paused time.
const PATIENCE: Duration = Duration::from_secs(600);

fn name(uri: &str) -> NameBuf {
    uri.parse().unwrap()
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

/// A producer that answers every Interest under `prefix` in this way.
async fn produce(
    forwarder: &Forwarder,
    prefix: &str,
    mut answer: impl FnMut(&Interest<'_>) -> Answer + Send + 'static,
) {
    let server = forwarder.attach_memory();
    let mut stream = server.interests(&name(prefix)).await.unwrap();
    tokio::spawn(async move {
        while let Some(incoming) = stream.next().await {
            let answer = answer(&incoming.interest());
            match answer {
                Answer::Data(wire) => incoming.respond(&wire).await.unwrap(),
                Answer::Nack(reason) => incoming.nack(reason).await.unwrap(),
                Answer::Silence => {}
            }
        }
        drop(server);
    });
}

fn segment_of(interest: &Interest<'_>) -> Option<u64> {
    interest.name().last().and_then(|last| last.segment())
}

fn is_metadata(interest: &Interest<'_>) -> bool {
    interest.name().last().is_some_and(|last| last.value == b"metadata")
}

fn data(interest: &Interest<'_>, last: Option<u64>, content: &[u8]) -> Answer {
    let data = DataBuilder::new(interest.name().to_buf()).freshness_ms(1000).content(content);
    Answer::Data(last.into_iter().fold(data, |data, last| data.final_segment(last)).sign_digest())
}

/// Metadata that names `versioned`.
fn metadata(interest: &Interest<'_>, versioned: &str) -> Answer {
    let (mut asked, mut content) = (interest.name().to_buf(), Vec::new());
    name(versioned).as_name().write_tlv(&mut content);
    asked.push_version(1).push_segment(0);
    Answer::Data(DataBuilder::new(asked).freshness_ms(1).final_segment(0).content(&content).sign_digest())
}

/// How long a forwarder is away.
const AWAY: Duration = Duration::from_secs(5);

/// A socket through which a client reaches the forwarder. When its connection is cut, the socket goes, and comes back.
struct Gate {
    folder: tempfile::TempDir,
    cut: Arc<Notify>,
}

impl Gate {
    fn of(forwarder: &Forwarder) -> Gate {
        let gate = Gate { folder: tempfile::tempdir().unwrap(), cut: Arc::default() };
        let (path, cut) = (gate.path(), Arc::clone(&gate.cut));
        let mut listener = UnixListener::bind(&path).unwrap();
        let forwarder = forwarder.clone();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut inside = forwarder.attach_pipe();
                tokio::select! {
                    _ = copy_bidirectional(&mut client, &mut inside) => {}
                    () = cut.notified() => {
                        drop((client, listener));
                        std::fs::remove_file(&path).unwrap();
                        sleep(AWAY).await;
                        listener = UnixListener::bind(&path).unwrap();
                    }
                }
            }
        });
        gate
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("nfd.sock")
    }

    async fn client(&self) -> Client {
        Client::connect_to(format!("unix://{}", self.path().display()).parse().unwrap()).await.unwrap()
    }
}

/// Each later segment comes with another copy of the first.
#[tokio::test(start_paused = true)]
async fn what_comes_again_is_counted() {
    let forwarder = Forwarder::new(Weather::default());
    let all = forwarder.clone();
    let packet = |name: NameBuf| DataBuilder::new(name).final_segment(9).content(b"four").sign_digest();
    produce(&forwarder, "/film", move |interest| {
        if segment_of(interest) != Some(0) {
            all.send_to_all(&packet(name("/film/v=1/seg=0")));
            all.send_to_all(&packet(name("/film/v=2/seg=0")));
        }
        Answer::Data(packet(interest.name().to_buf()))
    })
    .await;
    let (got, progress) = fetch(&forwarder.attach_memory(), "/film/v=1", FetchOptions::default()).await.unwrap();
    assert_eq!((got.len(), progress.segments), (40, 10));
    assert_eq!((progress.repeated_segments, progress.repeated_bytes), (9, 36), "of this version");
}

/// Two fetches whose Interests all got no answer held all slots of the connection, and each waited for another slot to
/// ask again.
#[tokio::test(start_paused = true)]
async fn what_is_lost_leaves_slots_for_its_retransmissions() {
    let forwarder = Forwarder::new(Weather::default());
    let began = Instant::now();
    produce(&forwarder, "/long", move |interest| match began.elapsed() > Duration::from_secs(3) {
        true => data(interest, Some(4999), b"x"),
        false => Answer::Silence,
    })
    .await;
    let consumer = forwarder.attach_memory();
    let options = FetchOptions {
        congestion_control: congestion_window::CongestionControl::Fixed,
        window_initial: 4096,
        window_max: 4096,
        ..FetchOptions::default()
    };
    assert_eq!(namewire_client::PENDING_INTERESTS_MAX, 2 * options.window_max, "they take all slots");
    let both = async {
        tokio::join!(fetch(&consumer, "/long/v=1", options.clone()), fetch(&consumer, "/long/v=2", options.clone()))
    };
    let (one, other) = timeout(PATIENCE, both).await.expect("each waits for the other's slots");
    assert_eq!((one.unwrap().0.len(), other.unwrap().0.len()), (5000, 5000));
}

/// An object without a manifest was asked for one at each segment. A validator that accepts digests notices nothing.
#[tokio::test(start_paused = true)]
async fn a_manifest_that_is_not_there_is_asked_for_once() {
    let forwarder = Forwarder::new(Weather::default());
    let asked = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&asked);
    produce(&forwarder, "/film", move |interest| {
        match interest.name().get(2).is_some_and(|c| c.value == b"manifest") {
            true => {
                counter.fetch_add(1, Relaxed);
                Answer::Nack(NackReason::NoRoute)
            }
            false => data(interest, Some(49), b"x"),
        }
    })
    .await;
    let any = Validator::from(DataValidator::new(RulesOrAny::Any));
    let options = FetchOptions { validator: Some(Arc::new(any)), ..FetchOptions::default() };
    let (got, _) = fetch(&forwarder.attach_memory(), "/film/v=1", options).await.unwrap();
    assert_eq!(got.len(), 50);
    assert!(asked.load(Relaxed) <= 2, "{asked:?}");
}

/// A stream that is silent, whose producer answers for its metadata only to those who come by the source: the question
/// whether it lives went another way.
#[tokio::test(start_paused = true)]
async fn the_question_whether_a_stream_lives_goes_by_the_source() {
    let forwarder = Forwarder::new(Weather::default());
    let began = Instant::now();
    produce(&forwarder, "/stream", move |interest| {
        if interest.forwarding_hint().next().is_none() {
            return Answer::Silence;
        }
        match segment_of(interest) {
            _ if is_metadata(interest) => metadata(interest, "/stream/v=1"),
            Some(0) => data(interest, None, b"first"),
            Some(1) if began.elapsed() > Duration::from_secs(200) => data(interest, Some(1), b"last"),
            _ => Answer::Silence,
        }
    })
    .await;
    let options = FetchOptions { forwarding_hint: vec![name("/site")], ..FetchOptions::default() };
    let (got, _) = fetch(&forwarder.attach_memory(), "/stream/v=1", options).await.unwrap();
    assert_eq!(got, b"firstlast");
}

/// The fetch stood still for four seconds while it asked whether the producer of a stream lives, and did not see what
/// came meanwhile.
#[tokio::test(start_paused = true)]
async fn a_stream_that_goes_on_is_seen_while_its_producer_is_asked() {
    let forwarder = Forwarder::new(Weather::default());
    let mut is_asked = false;
    produce(&forwarder, "/stream", move |interest| {
        is_asked |= is_metadata(interest);
        match segment_of(interest) {
            Some(0) => data(interest, None, b"first"),
            Some(1) if is_asked => data(interest, Some(1), b"last"),
            _ => Answer::Silence,
        }
    })
    .await;
    let (got, _) = fetch(&forwarder.attach_memory(), "/stream/v=1", FetchOptions::default()).await.unwrap();
    assert_eq!(got, b"firstlast");
}

/// A router that was away when the manifest was asked for made the segments untrusted.
#[tokio::test(start_paused = true)]
async fn a_manifest_is_asked_for_again_over_the_next_connection() {
    let (key, key_name) = (PrivateKey::generate_ecdsa().unwrap(), name("/alice/KEY/1"));
    let spki = key.public_key().spki().to_vec();
    let signer = Signer::private_key(key, key_name.clone());
    let always = ValidityPeriod { not_before_ms: 0, not_after_ms: 4_000_000_000_000 };
    let issuer = namewire_client::Component::generic(b"self");
    let certificate = issue_certificate(&signer, key_name.as_name(), &spki, issuer, 1, always).unwrap();
    let anchor = AnchorCertificate::parse(certificate.wire().to_vec()).unwrap();
    let options = PublishOptions { signer, has_manifest: true, version: Some(1), ..PublishOptions::default() };
    let mut publisher = SegmentPublisher::of_bytes(&[7; 100_000], &name("/alice/film"), options).unwrap();

    let forwarder = Forwarder::new(Weather::default());
    let gate = Gate::of(&forwarder);
    let (cut, mut is_cut) = (Arc::clone(&gate.cut), false);
    produce(&forwarder, "/alice/film", move |interest| {
        let is_manifest = interest.name().get(3).is_some_and(|component| component.value == b"manifest");
        if is_manifest && !std::mem::replace(&mut is_cut, true) {
            cut.notify_one();
            return Answer::Silence;
        }
        match publisher.answer(interest) {
            Reply::Data(wire) => Answer::Data(wire.to_vec()),
            other => panic!("{other:?}"),
        }
    })
    .await;
    let options = FetchOptions {
        validator: Some(Arc::new(Validator::hierarchical([anchor]))),
        reconnect: Duration::from_secs(60),
        ..FetchOptions::default()
    };
    let (got, _) = fetch(&gate.client().await, "/alice/film/v=1", options).await.unwrap();
    assert_eq!(got, [7; 100_000]);
}

/// A router that starts again ended the fetch if that happened during one of these questions.
#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_opened_again_whatever_is_asked() {
    for uri in ["/stream/v=1", "/stream"] {
        let forwarder = Forwarder::new(Weather::default());
        let gate = Gate::of(&forwarder);
        let (cut, mut is_cut) = (Arc::clone(&gate.cut), false);
        produce(&forwarder, "/stream", move |interest| {
            // At the first question: for the version, or whether the producer lives.
            let is_question = is_metadata(interest) || interest.name() == name("/stream").as_name();
            if is_question && !std::mem::replace(&mut is_cut, true) {
                cut.notify_one();
                return Answer::Silence;
            }
            match segment_of(interest) {
                _ if is_metadata(interest) => metadata(interest, "/stream/v=1"),
                Some(0) => data(interest, None, b"first"),
                Some(1) if is_cut => data(interest, Some(1), b"last"),
                _ => Answer::Silence,
            }
        })
        .await;
        let options = FetchOptions { reconnect: Duration::from_secs(60), ..FetchOptions::default() };
        let (got, _) = fetch(&gate.client().await, uri, options).await.unwrap();
        assert_eq!(got, b"firstlast");
    }
}
