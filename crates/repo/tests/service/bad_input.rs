//! Commands that are malformed, replayed, unsigned or never finished; stores that are full.

use crate::router::{Network, ask, bytes, memory, name, object, produce, settings};
use namewire_client::{Client, ExpressError};
use namewire_packet::{DataBuilder, InterestBuilder, NackReason, NameBuf};
use namewire_repo::{
    RemoteError, RepoSettings,
    access::{AccessSettings, CommandAccess},
    command::{Command, CommandResult, Notification, ObjectParam, encode_query, status},
    commands::CommandLimits,
    statistics::Refusal,
    store::memory::MemoryStore,
};
use namewire_security::trust::{RulesOrAny, ValidatorConfig};
use std::sync::Arc;

fn notify(nonce: &[u8]) -> InterestBuilder {
    let publisher = name("/client");
    let notification = Notification { publisher, nonce: nonce.to_vec(), forwarding_hint: Vec::new() };
    InterestBuilder::new(name("/repo/insert/notify")).lifetime_ms(2000).application_parameters(notification.encode())
}

/// A client that sends these bytes as its command, whatever it is asked for.
async fn sends(client: &Client, content: &'static [u8]) {
    let mut interests = client.interests(&name("/client/msg")).await.unwrap();
    tokio::spawn(async move {
        while let Some(incoming) = interests.next().await {
            let data = DataBuilder::new(incoming.interest().name()).content(content).sign_digest();
            incoming.respond(&data).await.unwrap();
        }
    });
}

async fn check(client: &Client, verb: &str, parameters: Vec<u8>) -> Vec<u8> {
    let mut name = name("/repo");
    name.push_generic(format!("{verb} check").as_bytes());
    let check = InterestBuilder::new(name).must_be_fresh(true).application_parameters(parameters);
    client.express(&check).await.unwrap().data().content().to_vec()
}

#[tokio::test]
async fn malformed_commands_have_a_status_and_replayed_ones_get_no_answer() {
    let network = Network::start();
    let repo = network.repo(settings(), memory()).await;
    let client = network.client().await;
    sends(&client, b"\x01nonsense").await;
    assert!(client.express(&notify(b"1")).await.unwrap().data().content().is_empty());
    let number = Command::request_no(b"\x01nonsense");
    assert_eq!(check(&client, "insert", encode_query(&number)).await, [0xD0, 2, 1, 0x93]);
    assert_eq!(check(&client, "delete", encode_query(&number)).await, [0xD0, 2, 1, 0x94], "another verb");
    assert_eq!(check(&client, "insert", b"\xCE\x01\x00".to_vec()).await, [0xD0, 2, 1, 0x93]);
    // Another Interest with the same nonce of the notification.
    let again = client.express(&notify(b"1").lifetime_ms(300)).await;
    assert_eq!(again.unwrap_err(), ExpressError::Timeout(300));
    let garbage = InterestBuilder::new(name("/repo/insert/notify")).lifetime_ms(300);
    assert!(client.express(&garbage.clone().application_parameters(b"\x07\x01".to_vec())).await.is_err());
    assert!(client.express(&garbage).await.is_err());
    let statistics = repo.statistics();
    assert_eq!(statistics.refused(Refusal::CommandReplayed), 1);
    assert_eq!(statistics.refused(Refusal::CommandMalformed), 4);
    repo.stop().await;
}

#[tokio::test]
async fn denied_commands_have_a_status_and_a_counter() {
    let network = Network::start();
    let rules = CommandAccess { local: false, rules: Some(RulesOrAny::Rules(ValidatorConfig::default())) };
    let access = AccessSettings { commands: rules, ..AccessSettings::default() };
    let repo = network.repo(RepoSettings { access, ..settings() }, memory()).await;
    let remote = network.remote().await;
    let error = remote.put(object("/data/a", b"a"), |_| ()).await.unwrap_err();
    let RemoteError::Refused(CommandResult { code, objects, .. }) = &error else { panic!("{error}") };
    assert_eq!((*code, objects[0].code, objects[0].inserted), (status::REFUSED, status::REFUSED, Some(0)));
    assert!(error.to_string().contains("denied or malformed"), "{error}");
    let json = remote.statistics().await.unwrap();
    assert_eq!((&json["refusals"]["command-denied"], &json["refusals"]["denied.not-allowed"]), (&1.into(), &1.into()));
    assert_eq!(repo.statistics().writes, 0);
    repo.stop().await;

    // Data that no rule accepts is not stored, and the command fails.
    let data = Some(RulesOrAny::Rules(ValidatorConfig::default()));
    let access = AccessSettings { data, ..AccessSettings::default() };
    let repo = network.repo(RepoSettings { access, ..settings() }, memory()).await;
    let error = remote.put(object("/data/b", b"b"), |_| ()).await.unwrap_err();
    let RemoteError::Refused(CommandResult { code, .. }) = &error else { panic!("{error}") };
    assert_eq!((*code, repo.statistics().refused(Refusal::DataNotTrusted)), (status::FAILED, 1));
    repo.stop().await;
}

#[tokio::test]
async fn names_of_8_kb_work() {
    let network = Network::start();
    let repo = network.repo(settings(), memory()).await;
    let producer = network.client().await;
    produce(&producer, &name("/data")).await;
    let mut long = name("/data");
    long.push_generic(&bytes(8_000));
    let object = ObjectParam { name: long.clone(), ..ObjectParam::default() };
    let (remote, command) = (network.remote().await, Command { objects: vec![object], groups: Vec::new() });
    let result = remote.command("insert", &command, |_| ()).await.unwrap();
    assert_eq!(result.objects[0].inserted, Some(1));
    drop(producer);
    let data = network.client().await.express(&InterestBuilder::new(&long)).await.unwrap();
    assert_eq!(data.data().content(), b"packet");
    let listed = network.remote().await.list(name("/data").as_name(), None).await.unwrap();
    assert_eq!(listed, [long]);
    repo.stop().await;
}

#[tokio::test]
async fn a_full_store_fails_the_command_and_reads_go_on() {
    let network = Network::start();
    let repo = network.repo(settings(), Arc::new(MemoryStore::new(20_000))).await;
    let remote = network.remote().await;
    remote.put(object("/data/small", &bytes(5_000)), |_| ()).await.unwrap();
    let error = remote.put(object("/data/big", &bytes(100_000)), |_| ()).await.unwrap_err();
    let RemoteError::Refused(result) = &error else { panic!("{error}") };
    assert_eq!((result.code, result.objects[0].code), (status::FAILED, status::FULL));
    assert!(repo.statistics().refused(Refusal::StoreFull) > 0);
    assert!(ask(&network.client().await, "/data/small/seg=4").await.is_ok());
    let deleted = ObjectParam { name: name("/data/small"), start: Some(0), ..ObjectParam::default() };
    assert_eq!(remote.delete(vec![deleted]).await.unwrap().objects[0].deleted, Some(5));
    repo.stop().await;
}

#[tokio::test]
async fn a_client_that_stops_in_the_middle_leaves_what_came() {
    let network = Network::start();
    let repo = network.repo(settings(), memory()).await;
    let producer = network.client().await;
    let mut interests = producer.interests(&name("/data/half")).await.unwrap();
    let remote = network.remote().await;
    let object = ObjectParam { name: name("/data/half"), start: Some(0), end: Some(99), ..ObjectParam::default() };
    let inserting = tokio::spawn(async move {
        remote.command("insert", &Command { objects: vec![object], groups: Vec::new() }, |_| ()).await
    });
    for _ in 0..10 {
        let incoming = interests.next().await.unwrap();
        let data = DataBuilder::new(incoming.interest().name()).content(b"half").sign_digest();
        incoming.respond(&data).await.unwrap();
    }
    while repo.statistics().writes < 10 {
        tokio::task::yield_now().await;
    }
    drop((interests, producer));
    let error = inserting.await.unwrap().unwrap_err();
    let RemoteError::Refused(result) = &error else { panic!("{error}") };
    assert_eq!((result.code, result.objects[0].inserted), (status::FAILED, Some(10)));
    assert_eq!(repo.statistics().refused(Refusal::ObjectNotFetched), 1);
    repo.stop().await;
}

/// The commands never come, or their objects never do: a bounded number of them is known, and the others are refused
/// at once. The repository still answers.
#[tokio::test]
async fn half_done_insertions_are_bounded() {
    const HALF_DONE: u32 = 10_000;
    let network = Network::start();
    let command_limits = CommandLimits { commands_max: 500, running_max: 50 };
    let repo = network.repo(RepoSettings { command_limits, ..settings() }, memory()).await;
    let client = network.client().await;
    sends(&client, b"\xFD\x01\x2D\x0E\x07\x09\x08\x04data\x08\x01h\xCC\x01\x00").await;
    // The object's producer is silent.
    let _silent = client.interests(&name("/data/h")).await.unwrap();
    let mut asked = tokio::task::JoinSet::new();
    for number in 0..HALF_DONE {
        let client = client.clone();
        asked.spawn(async move { client.express(&notify(&number.to_le_bytes()).lifetime_ms(60_000)).await });
    }
    let (mut accepted, mut refused) = (0, 0);
    while let Some(outcome) = asked.join_next().await {
        match outcome.unwrap() {
            Ok(_) => accepted += 1,
            Err(ExpressError::Nack(NackReason::Congestion)) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!((accepted, refused), (250, HALF_DONE - 250), "half of the places are the others'");
    assert_eq!(repo.statistics().refused(Refusal::CommandOverload), u64::from(refused));
    // Another client is not held up by them.
    network.remote().await.put(object("/data/other", &bytes(5_000)), |_| ()).await.unwrap();
    repo.stop().await;
}

/// Places were one share for all clients where local applications may not command.
#[tokio::test]
async fn places_are_shared_whoever_may_command() {
    let network = Network::start();
    let access = AccessSettings {
        commands: CommandAccess { local: false, rules: Some(RulesOrAny::Any) },
        ..AccessSettings::default()
    };
    let command_limits = CommandLimits { commands_max: 8, running_max: 8 };
    let repo = network.repo(RepoSettings { command_limits, access, ..settings() }, memory()).await;
    let client = network.client().await;
    // It registers the prefix of commands and answers none.
    let _silent = client.interests(&name("/client/msg")).await.unwrap();
    let mut asked = tokio::task::JoinSet::new();
    for number in 0..20_u8 {
        let client = client.clone();
        asked.spawn(async move { client.express(&notify(&[number]).lifetime_ms(60_000)).await });
    }
    while repo.statistics().refused(Refusal::CommandOverload) < 16 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    network.remote().await.put(object("/data/other", &bytes(10)), |_| ()).await.unwrap();
    repo.stop().await;
}

/// What a client asks for under the repository's name, and is nothing, gets no answer.
#[tokio::test]
async fn unknown_topics_are_counted() {
    let network = Network::start();
    let repo = network.repo(settings(), memory()).await;
    let client = network.client().await;
    for uri in ["/repo/insert", "/repo/insert/other", "/repo/nonsense", "/repo/list"] {
        let wanted: NameBuf = name(uri);
        assert!(client.express(&InterestBuilder::new(wanted).lifetime_ms(50)).await.is_err(), "{uri}");
    }
    assert_eq!(repo.statistics().refused(Refusal::CommandMalformed), 4);
    repo.stop().await;
}
