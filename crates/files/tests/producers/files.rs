//! Files that change, and two producers of one name.

use crate::{fetch, fetch_until, name, node::Node};
use namewire_client::{Client, FetchError, PublishOptions};
use namewire_files::{
    file_server::{FileEvent, FileServer},
    standing::{Look, Registration, StandingChange, look},
};
use std::{
    fs::{self, File},
    path::Path,
    time::{Duration, SystemTime},
};
use tokio::{sync::mpsc, task::JoinHandle};

/// Longer than a look takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A producer that runs until it is dropped, and what happens to it.
struct Producer {
    version: u64,
    /// What it found before it served.
    first: Look,
    events: mpsc::UnboundedReceiver<FileEvent>,
    serving: JoinHandle<()>,
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Serves the file as `/f` with a connection of its own.
async fn serve(client: Client, path: &Path) -> Producer {
    let options = PublishOptions { segment_bytes: 4, ..PublishOptions::default() };
    let mut server = FileServer::open(path, &name("/f"), options).await.unwrap();
    let (version, first) = (server.version(), look(&client, &name("/f"), PATIENCE).await);
    let mut registration = Registration::new(&client, &name("/f"), version, first.clone()).await.unwrap();
    let (sender, events) = mpsc::unbounded_channel();
    let serving = tokio::spawn(async move {
        let tell = |_: &FileServer, event| drop(sender.send(event));
        server.serve(&mut registration, tell).await.unwrap();
        drop(client);
    });
    Producer { version, first, events, serving }
}

/// Writes a file that was changed so many seconds ago.
fn write(path: &Path, content: &str, age_s: u64) {
    fs::write(path, content).unwrap();
    let time = SystemTime::now() - Duration::from_secs(age_s);
    File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
}

async fn is_told(producer: &mut Producer, expected: impl Fn(&FileEvent) -> bool) {
    while let Some(event) = producer.events.recv().await {
        if expected(&event) {
            return;
        }
    }
    panic!("the producer has ended");
}

/// Two producers served one name: the oldest version arrived, always, without a word.
#[tokio::test]
async fn consumers_find_the_newest_of_two_producers_whoever_began() {
    for is_newest_first in [false, true] {
        let node = Node::start();
        let (old, new) = (node.folder.path().join("old"), node.folder.path().join("new"));
        write(&old, "the older one", 200);
        write(&new, "the newer one", 100);
        let (first, second) = if is_newest_first { (&new, &old) } else { (&old, &new) };
        let mut first = serve(node.client().await, first).await;
        assert_eq!(first.first, Look::Alone);
        let mut second = serve(node.client().await, second).await;
        let Look::Found(found) = &second.first else { panic!("{:?}", second.first) };
        assert_eq!((found.version, &found.key), (Some(first.version), &None));
        let consumer = node.client().await;
        fetch_until(&consumer, "/f", b"the newer one").await;
        if !is_newest_first {
            is_told(&mut first, |event| matches!(event, FileEvent::Standing(StandingChange::Superseded(_)))).await;
        }
        // From now on it is always the newest, and each version is there by its own name.
        for _ in 0..20 {
            assert_eq!(fetch(&consumer, "/f").await.unwrap().0, b"the newer one");
        }
        let (older, newer) = if is_newest_first { (&mut second, first) } else { (&mut first, second) };
        for (producer, content) in [(&*older, "the older one"), (&newer, "the newer one")] {
            let (got, _) = fetch(&node.client().await, &format!("/f/v={}", producer.version)).await.unwrap();
            assert_eq!(String::from_utf8(got).unwrap(), content);
        }
        // The newest leaves, and the other one is found again.
        drop(newer);
        if is_newest_first {
            fetch_until(&consumer, "/f", b"the older one").await;
        } else {
            is_told(older, |event| *event == FileEvent::Standing(StandingChange::Newest)).await;
            fetch_until(&consumer, "/f", b"the older one").await;
        }
    }
}

#[tokio::test]
async fn three_producers_agree_on_the_newest() {
    let node = Node::start();
    let mut producers = Vec::new();
    for (file, age_s) in [("b", 200), ("a", 300), ("c", 100)] {
        let path = node.folder.path().join(file);
        write(&path, file, age_s);
        producers.push(serve(node.client().await, &path).await);
    }
    let consumer = node.client().await;
    fetch_until(&consumer, "/f", b"c").await;
    drop(producers.pop());
    fetch_until(&consumer, "/f", b"b").await;
    drop(producers.remove(0));
    fetch_until(&consumer, "/f", b"a").await;
}

/// A file that changed while it was served broke fetches silently.
#[tokio::test]
async fn a_file_that_changes_is_announced_and_its_old_version_ends_with_a_nack() {
    let node = Node::start();
    let path = node.folder.path().join("file");
    write(&path, "what was first", 200);
    let mut producer = serve(node.client().await, &path).await;
    let (first, consumer) = (producer.version, node.client().await);
    write(&path, "what came next", 100);
    is_told(&mut producer, |event| *event == FileEvent::NewVersion).await;
    let error = fetch(&consumer, &format!("/f/v={first}")).await.unwrap_err();
    assert!(matches!(error, FetchError::ApplicationNack(_)), "{error}");
    assert_eq!(fetch(&consumer, "/f").await.unwrap().0, b"what came next");
    // A replaced file is still there.
    let (other, before) = (node.folder.path().join("other"), fetch(&consumer, "/f").await.unwrap().1.versioned_name);
    write(&other, "what is now", 50);
    fs::rename(&other, &path).unwrap();
    is_told(&mut producer, |event| *event == FileEvent::NewVersion).await;
    assert_eq!(fetch(&node.client().await, &before.to_string()).await.unwrap().0, b"what came next");
    assert_eq!(fetch(&consumer, "/f").await.unwrap().0, b"what is now");
}

/// The route of a version comes back as that of the name does.
#[tokio::test]
async fn each_version_reaches_its_producer_after_a_restart_of_the_router() {
    let mut node = Node::start();
    let (old, new) = (node.folder.path().join("old"), node.folder.path().join("new"));
    write(&old, "the older one", 200);
    write(&new, "the newer one", 100);
    let producers = [serve(node.client().await, &old).await, serve(node.client().await, &new).await];
    node.restart_router();
    for (producer, content) in producers.iter().zip([b"the older one", b"the newer one"]) {
        fetch_until(&node.client().await, &format!("/f/v={}", producer.version), content).await;
    }
    fetch_until(&node.client().await, "/f", b"the newer one").await;
}

/// `get` of a version that nobody had took 45 seconds.
#[tokio::test]
async fn a_version_that_does_not_exist_gets_an_application_nack() {
    let node = Node::start();
    let path = node.folder.path().join("file");
    write(&path, "content", 100);
    let producer = serve(node.client().await, &path).await;
    let consumer = node.client().await;
    for _ in 0..2 {
        let error = fetch(&consumer, "/f/v=1").await.unwrap_err();
        assert!(matches!(error, FetchError::ApplicationNack(_)), "{error}");
    }
    // No cache answers with the Nack once the version is there.
    drop(producer);
    let options = PublishOptions { version: Some(1), ..PublishOptions::default() };
    let client = node.client().await;
    let mut server = FileServer::open(&path, &name("/f"), options).await.unwrap();
    let mut registration = Registration::new(&client, &name("/f"), 1, Look::Alone).await.unwrap();
    tokio::spawn(async move { server.serve(&mut registration, |_, _| ()).await });
    fetch_until(&consumer, "/f/v=1", b"content").await;
}
