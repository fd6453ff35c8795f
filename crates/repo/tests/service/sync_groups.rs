//! Sync groups: the repository stores what members publish, also what they published while it was down.

use crate::router::{Network, memory, name, settings};
use namewire_client::{
    Client,
    sync::{
        Version,
        vector::{Producer, StateVector},
        wire::write_vector,
    },
};
use namewire_packet::{DataBuilder, InterestBuilder, NameBuf, nfd::ControlParameters, tlv::types};
use namewire_repo::{RemoteError, Repo, RepoSettings, command::SyncParam, statistics::Refusal, store::Store};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

/// A member that publishes: it answers for every publication, and notes which numbers it was asked for.
struct Publisher {
    client: Client,
    asked: Arc<Mutex<BTreeSet<u64>>>,
}

impl Publisher {
    /// Publication 2 has segments, the others are single Data.
    async fn start(network: &Network, prefix: &str) -> Publisher {
        let client = network.client().await;
        let strategy = ControlParameters {
            name: Some(name("/chat")),
            strategy: Some(name("/localhost/nfd/strategy/multicast")),
            ..ControlParameters::default()
        };
        client.control("strategy-choice", "set", &strategy).await.unwrap();
        let prefix = name(prefix);
        let mut interests = client.interests(&prefix).await.unwrap();
        let asked = Arc::new(Mutex::new(BTreeSet::new()));
        let noted = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Some(incoming) = interests.next().await {
                let asked = incoming.interest().name().to_buf();
                let number =
                    asked.as_name().get(prefix.len()).filter(|one| one.type_number == types::SEQUENCE_NUM_COMPONENT);
                // Other conventions of names are not answered.
                let Some(number) = number.and_then(|one| one.as_nni()) else { continue };
                noted.lock().unwrap().insert(number);
                let (mut name, last) = (asked.as_name().prefix(prefix.len() + 1).to_buf(), 2);
                let mut data = if number == 2 {
                    let segment = asked.as_name().last().and_then(|last| last.segment()).unwrap_or(0);
                    name.push_version(0).push_segment(segment);
                    DataBuilder::new(name)
                } else {
                    DataBuilder::new(name)
                };
                if number == 2 {
                    let mut end = NameBuf::new();
                    end.push_segment(last);
                    data = data.final_block_id(end.as_name().last().unwrap());
                }
                incoming.respond(&data.content(b"said").sign_digest()).await.unwrap();
            }
        });
        Publisher { client, asked }
    }

    fn asked(&self) -> Vec<u64> {
        std::mem::take(&mut *self.asked.lock().unwrap()).into_iter().collect()
    }

    /// Tells the group, again and again, until something is so.
    async fn tell_until(&self, version: Version, vector: &StateVector, mut is_so: impl FnMut() -> bool) {
        let (mut parameters, mut sync) = (Vec::new(), name("/chat"));
        write_vector(version, vector, &mut parameters);
        if version == Version::V3 {
            parameters = DataBuilder::new(name("/alice/sync")).content(&parameters).sign_digest();
        }
        sync.push_version(version.number());
        let interest = InterestBuilder::new(sync).lifetime_ms(10).application_parameters(parameters);
        while !is_so() {
            self.client.express(&interest).await.unwrap_err();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Producers that began at this time, with their numbers.
fn vector(bootstrap_s: u64, entries: &[(&str, u64)]) -> StateVector {
    let mut vector = StateVector::default();
    for &(uri, number) in entries {
        vector.raise(&Producer { name: name(uri), bootstrap_s }, number);
    }
    vector
}

fn group(sync_prefix: &str) -> SyncParam {
    SyncParam { sync_prefix: name(sync_prefix), ..SyncParam::default() }
}

fn publications(repo: &Repo) -> u64 {
    repo.statistics().publications
}

fn notes(store: &dyn Store) -> usize {
    let mut notes = 0;
    store.notes(&mut |_, _| notes += 1).unwrap();
    notes
}

#[tokio::test]
async fn publications_are_stored_and_what_came_before_is_not_fetched_again() {
    let network = Network::start();
    let alice = Publisher::start(&network, "/alice/chat").await;
    let store = memory();
    let repo = network.repo(settings(), Arc::clone(&store)).await;
    let remote = network.remote().await;
    for _ in 0..2 {
        remote.join(group("/chat")).await.unwrap(); // the second time nothing changes
    }
    alice.tell_until(Version::V2, &vector(0, &[("/alice", 3)]), || publications(&repo) == 3).await;
    let listed = remote.list(name("/alice").as_name(), None).await.unwrap();
    let segment = |number| format!("/alice/chat/seq=2/v=0/seg={number}");
    let expected = ["/alice/chat/seq=1".to_owned(), segment(0), segment(1), segment(2), "/alice/chat/seq=3".to_owned()];
    assert_eq!(listed.iter().map(ToString::to_string).collect::<BTreeSet<_>>(), expected.into_iter().collect());
    repo.stop().await;

    alice.asked();
    let repo = network.repo(settings(), Arc::clone(&store)).await;
    let forged = vector(0, &[("/alice", 5), ("/mallory", 1 << 63)]);
    alice.tell_until(Version::V2, &forged, || publications(&repo) == 2).await;
    assert_eq!(alice.asked(), [4, 5], "the repository remembers 3");
    let nonsense = InterestBuilder::new(name("/chat/v=2")).lifetime_ms(10).application_parameters(b"\x01".to_vec());
    while repo.statistics().refused(Refusal::SyncMalformed) == 0 {
        alice.client.express(&nonsense.clone()).await.unwrap_err();
    }

    network.remote().await.leave(group("/chat")).await.unwrap();
    assert_eq!(notes(&*store), 0, "nothing is remembered of the group");
    let error = network.remote().await.leave(group("/chat")).await.unwrap_err();
    assert!(matches!(&error, RemoteError::Refused(_)), "{error}");
    assert_eq!(error.to_string(), "the repository answers: failed (/chat: not known to the repository)");
    repo.stop().await;
}

#[tokio::test]
async fn version_3_has_other_names_and_groups_can_be_configured() {
    let network = Network::start();
    let alice = Publisher::start(&network, "/chat/alice/t=7").await;
    let groups = vec![name("/chat/v=3")];
    let repo = network.repo(RepoSettings { groups, ..settings() }, memory()).await;
    alice.tell_until(Version::V3, &vector(7, &[("/alice", 2)]), || publications(&repo) == 2).await;
    let listed = network.remote().await.list(name("/chat").as_name(), None).await.unwrap();
    assert_eq!(listed.len(), 4, "{listed:?}");
    repo.stop().await;
}

#[tokio::test]
async fn a_face_that_announces_many_producers_leaves_places_for_others() {
    let network = Network::start();
    let alice = Publisher::start(&network, "/alice/chat").await;
    let mallory = Publisher::start(&network, "/mallory/chat").await;
    let repo = network.repo(RepoSettings { groups: vec![name("/chat")], ..settings() }, memory()).await;
    for hundred in 0..10 {
        let names: Vec<String> = (0..100).map(|number| format!("/m/{hundred}/{number}")).collect();
        let forged: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 1)).collect();
        let refused = || repo.statistics().refused(Refusal::SyncTooManyProducers);
        let before = refused();
        let mut told = 0;
        let heard = || {
            told += 1;
            told > 3 || refused() > before
        };
        mallory.tell_until(Version::V2, &vector(0, &forged), heard).await;
    }
    assert!(repo.statistics().refused(Refusal::SyncTooManyProducers) >= 500, "a face gets half of the places");
    alice.tell_until(Version::V2, &vector(0, &[("/alice", 3)]), || publications(&repo) == 3).await;
    repo.stop().await;
}
