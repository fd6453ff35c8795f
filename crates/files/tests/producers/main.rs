//! Producers of files and streams, and their consumers, on a real router.

mod files;
mod node;
mod streams;

use namewire_client::{Client, FetchError, FetchOptions, FetchProgress, NameBuf, SegmentFetch};
use std::time::Duration;

fn name(uri: &str) -> NameBuf {
    uri.parse().unwrap()
}

async fn fetch(client: &Client, uri: &str) -> Result<(Vec<u8>, FetchProgress), FetchError> {
    let mut content = Vec::new();
    let progress = SegmentFetch::new(client, name(uri), FetchOptions::default()).run(&mut content, |_| ()).await?;
    Ok((content, progress))
}

/// Fetches until the content is this. A router asks another producer within seconds; the limit is for a busy machine.
async fn fetch_until(client: &Client, uri: &str, expected: &[u8]) {
    let mut last = None;
    for _ in 0..1000 {
        match fetch(client, uri).await {
            Ok((content, _)) if content == expected => return,
            other => last = Some(other.map(|(content, _)| String::from_utf8_lossy(&content).into_owned())),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{uri} is not {}, but {last:?}", String::from_utf8_lossy(expected));
}
