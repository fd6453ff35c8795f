//! Streams: what a consumer gets while the bytes come.

use crate::{fetch, name, node::Node};
use namewire_client::{Client, DataBuf, Discovery, FetchOptions, InterestBuilder, PublishOptions, SegmentFetch};
use namewire_files::{
    standing::{Look, Registration},
    stream_input::{StreamInput, StreamSource},
    stream_server::{StreamError, StreamEvent, StreamOptions, StreamServer, Until},
};
use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, duplex},
    sync::mpsc,
    task::JoinHandle,
};

const MIB: usize = 1024 * 1024;

fn fifo(folder: &Path) -> PathBuf {
    let path = folder.join("fifo");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    path
}

fn bytes(count: usize) -> Vec<u8> {
    let mut dice = fastrand::Rng::with_seed(11);
    std::iter::repeat_with(|| dice.u8(..)).take(count).collect()
}

/// Serves what comes out of the FIFO as `/s/v=1`; the names of the events come out of the channel.
async fn serve(
    client: Client,
    source: StreamSource,
    keep_bytes: usize,
    until: Until,
) -> (JoinHandle<Result<(), StreamError>>, mpsc::UnboundedReceiver<String>) {
    let publish = PublishOptions { version: Some(1), ..PublishOptions::default() };
    let mut server = StreamServer::new(&name("/s"), StreamOptions { publish, keep_bytes, file: None }).unwrap();
    let mut registration = Registration::new(&client, &name("/s"), 1, Look::Alone).await.unwrap();
    let mut input = StreamInput::open(source).unwrap();
    let (sender, events) = mpsc::unbounded_channel();
    let serving = tokio::spawn(async move {
        let tell = |_: &StreamServer, event: StreamEvent| drop(sender.send(format!("{event:?}")));
        let served = server.serve(&mut registration, &mut input, until, tell).await;
        client.flush().await;
        served
    });
    (serving, events)
}

#[tokio::test]
async fn a_stream_larger_than_its_memory_arrives_whole() {
    let node = Node::start();
    let (content, path) = (bytes(24 * MIB + 17), fifo(node.folder.path()));
    let (serving, mut events) =
        serve(node.client().await, StreamSource::Path(path.clone()), MIB, Until::Delivered).await;
    let (sent, consumer) = (content.clone(), node.client().await);
    let writer = tokio::task::spawn_blocking(move || File::options().write(true).open(path).unwrap().write_all(&sent));
    let (got, progress) = fetch(&consumer, "/s").await.unwrap();
    assert!(got == content, "{} bytes", got.len());
    assert_eq!((progress.versioned_name, progress.unverified_segments), (name("/s/v=1"), 0));
    writer.await.unwrap().unwrap();
    assert_eq!(events.recv().await.unwrap(), "InputEnded");
    assert_eq!(events.recv().await.unwrap(), "AllSent");
    // Nothing is asked for any more, so it ends by itself.
    serving.await.unwrap().unwrap();
}

/// Each line arrives while the stream goes on.
#[tokio::test]
async fn lines_arrive_as_they_are_written() {
    let node = Node::start();
    let path = fifo(node.folder.path());
    let _serving = serve(node.client().await, StreamSource::Path(path.clone()), MIB, Until::Stopped).await;
    let consumer = node.client().await;
    let (mut reader, mut writer) = duplex(MIB);
    let fetching = tokio::spawn(async move {
        SegmentFetch::new(&consumer, name("/s"), FetchOptions::default()).run(&mut writer, |_| ()).await
    });
    let mut pipe = tokio::task::spawn_blocking(|| File::options().write(true).open(path).unwrap()).await.unwrap();
    for line in ["one\n", "two\n", "three\n"] {
        pipe.write_all(line.as_bytes()).unwrap();
        let mut got = vec![0; line.len()];
        reader.read_exact(&mut got).await.unwrap();
        assert_eq!(got, line.as_bytes());
    }
    drop(pipe);
    let progress = fetching.await.unwrap().unwrap();
    assert!(progress.segments >= 3 && progress.bytes == 14, "{progress:?}");
}

/// A program that writes faster than its stream is asked for waits; what it wrote is complete for a late consumer.
#[tokio::test]
async fn a_writer_waits_for_consumers() {
    let node = Node::start();
    let (content, path) = (bytes(30 * MIB), fifo(node.folder.path()));
    let (_serving, mut events) =
        serve(node.client().await, StreamSource::Path(path.clone()), 64 * MIB, Until::Stopped).await;
    let sent = content.clone();
    let writer = tokio::task::spawn_blocking(move || File::options().write(true).open(path).unwrap().write_all(&sent));
    let consumer = node.client().await;
    let options =
        |last| FetchOptions { discovery: Discovery::None, last_segment: Some(last), ..FetchOptions::default() };
    let mut some = SegmentFetch::new(&consumer, name("/s/v=1"), options(9)).stream().await.unwrap();
    let mut packets: Vec<DataBuf> = Vec::new();
    while some.next(&mut packets).await.unwrap() {}
    assert_eq!(packets.len(), 10);
    assert!(!writer.is_finished(), "30 MiB are more than 8 MiB and what pipes hold");
    assert!(fetch(&consumer, "/s").await.unwrap().0 == content);
    writer.await.unwrap().unwrap();
    assert_eq!(events.recv().await.unwrap(), "InputEnded");
    // It is kept, so another consumer gets it, too.
    assert!(fetch(&node.client().await, "/s").await.unwrap().0 == content);
}

#[tokio::test]
async fn an_empty_stream_is_an_empty_object() {
    let node = Node::start();
    let _serving = serve(node.client().await, StreamSource::Path("/dev/null".into()), MIB, Until::Stopped).await;
    let (got, progress) = fetch(&node.client().await, "/s").await.unwrap();
    assert_eq!((got, progress.segments), (Vec::new(), 1));
}

#[tokio::test]
async fn an_input_that_cannot_be_read_ends_the_stream_with_nacks() {
    let node = Node::start();
    let source = StreamSource::Path("/nonexistent/fifo".into());
    let (serving, _) = serve(node.client().await, source, MIB, Until::Stopped).await;
    let error = serving.await.unwrap().unwrap_err();
    assert!(matches!(error, StreamError::Input(_)), "{error}");
}

/// Who follows a log learns its end when its producer is stopped.
#[tokio::test]
async fn a_growing_file_ends_when_it_is_finished() {
    let node = Node::start();
    let path = node.folder.path().join("log");
    std::fs::write(&path, "one\n").unwrap();
    let (file, client) = (Arc::new(File::open(&path).unwrap()), node.client().await);
    let publish = PublishOptions { version: Some(1), ..PublishOptions::default() };
    let options = StreamOptions { publish, keep_bytes: MIB, file: Some(Arc::clone(&file)) };
    let mut server = StreamServer::new(&name("/s"), options).unwrap();
    let mut registration = Registration::new(&client, &name("/s"), 1, Look::Alone).await.unwrap();
    let mut input = StreamInput::open(StreamSource::Growing(file)).unwrap();
    let consumer = node.client().await;
    let segment = async |number| {
        let interest = InterestBuilder::new(name(&format!("/s/v=1/seg={number}"))).lifetime_ms(100_000);
        let data = consumer.express(&interest).await.unwrap();
        let last = data.data().final_block_id().and_then(|last| last.segment());
        (String::from_utf8(data.content().to_vec()).unwrap(), last)
    };
    let follow = async {
        assert_eq!(segment(0).await, ("one\n".to_owned(), None));
        File::options().append(true).open(&path).unwrap().write_all(b"two\n").unwrap();
        assert_eq!(segment(1).await, ("two\n".to_owned(), None));
    };
    tokio::select! {
        served = server.serve(&mut registration, &mut input, Until::Stopped, |_, _| ()) => panic!("{served:?}"),
        () = follow => {}
    }
    let mut last = std::pin::pin!(segment(2));
    let before = server.counters().held;
    while server.counters().held == before {
        tokio::select! {
            served = server.serve(&mut registration, &mut input, Until::Stopped, |_, _| ()) => panic!("{served:?}"),
            got = &mut last => panic!("{got:?}"),
            () = tokio::time::sleep(Duration::from_millis(20)) => {}
        }
    }
    server.finish(&client).await.unwrap();
    assert_eq!(last.await, (String::new(), Some(2)));
}
