//! Bulk insertion over TCP.

use crate::router::{Network, ask, memory, name, settings};
use namewire_packet::DataBuilder;
use namewire_repo::{Repo, RepoSettings, bulk::BulkSettings, statistics::Refusal};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

fn packet(number: u32) -> Vec<u8> {
    let mut name = name("/data/bulk");
    name.push_segment(number.into());
    DataBuilder::new(name).content(&number.to_le_bytes()).sign_digest()
}

async fn repo(network: &Network, bulk: BulkSettings) -> Repo {
    let bulk = BulkSettings { address: ([127, 0, 0, 1], 0).into(), ..bulk };
    network.repo(RepoSettings { bulk: Some(bulk), ..settings() }, memory()).await
}

async fn connect(repo: &Repo) -> TcpStream {
    TcpStream::connect(repo.bulk_address().unwrap()).await.unwrap()
}

/// Sends bytes and closes this direction; true if the other end closes in order.
async fn send(repo: &Repo, bytes: &[u8]) -> bool {
    let mut stream = connect(repo).await;
    // The other end may reset the connection before it has read everything.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    matches!(stream.read(&mut [0; 1]).await, Ok(0))
}

#[tokio::test]
async fn an_orderly_end_means_that_all_is_stored() {
    let network = Network::start();
    let repo = repo(&network, BulkSettings::default()).await;
    let stream: Vec<u8> = (0..10_000).flat_map(packet).collect();
    assert!(send(&repo, &stream).await);
    assert_eq!(repo.statistics().writes, 10_000);
    let client = network.client().await;
    for number in [0, 9_999] {
        let mut wanted = name("/data/bulk");
        wanted.push_segment(number.into());
        assert_eq!(ask(&client, &wanted.to_string()).await.unwrap().wire(), packet(number));
    }
    repo.stop().await;
}

#[tokio::test]
async fn invalid_data_resets_the_connection_after_earlier_data_is_stored() {
    let network = Network::start();
    let repo = repo(&network, BulkSettings::default()).await;
    let good = packet(1);
    for (bad, stored) in [(&b"\x05\x00"[..], 1), (b"\x07\x03\x08\x01a", 2), (b"\x06\xfe\x7f\xff\xff\xff", 3)] {
        assert!(!send(&repo, &[&good, bad].concat()).await, "{bad:?}");
        assert_eq!(repo.statistics().writes, stored);
    }
    // The last packet is cut short.
    assert!(!send(&repo, &[&good[..], &good[..20]].concat()).await);
    assert_eq!(repo.statistics().refused(Refusal::BulkMalformed), 4);
    repo.stop().await;
}

#[tokio::test]
async fn connections_are_limited_and_may_not_be_idle() {
    let network = Network::start();
    let repo =
        repo(&network, BulkSettings { connections_max: 1, idle_max: Duration::from_millis(50), ..Default::default() })
            .await;
    let mut first = connect(&repo).await;
    // One too many is reset, perhaps before this end knows that it is connected.
    if let Ok(mut second) = TcpStream::connect(repo.bulk_address().unwrap()).await {
        assert!(second.read(&mut [0; 1]).await.is_err());
    }
    assert!(first.read(&mut [0; 1]).await.is_err(), "silence is reset");
    assert_eq!(repo.statistics().refused(Refusal::BulkTooMany), 1);
    assert_eq!(repo.statistics().refused(Refusal::BulkIdle), 1);
    repo.stop().await;
}
