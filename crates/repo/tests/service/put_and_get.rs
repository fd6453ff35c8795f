//! Data that a client put can be fetched, also after a restart, and no longer after a deletion.

use crate::router::{Network, ask, bytes, memory, name, object, produce, settings};
use namewire_client::{Discovery, FetchOptions, SegmentFetch};
use namewire_packet::NameBuf;
use namewire_repo::{
    RemoteError, RepoSettings,
    command::{Command, ObjectParam, status},
    retention::Rule,
    store::{
        Store,
        embedded::{EmbeddedOptions, EmbeddedStore},
    },
};
use std::{sync::Arc, time::Duration};

async fn get(network: &Network, uri: &str) -> Vec<u8> {
    let options = FetchOptions { discovery: Discovery::None, ..FetchOptions::default() };
    let mut content = Vec::new();
    SegmentFetch::new(&network.client().await, name(uri), options).run(&mut content, |_| ()).await.unwrap();
    content
}

#[tokio::test]
async fn an_object_is_put_read_after_a_restart_and_deleted() {
    let network = Network::start();
    let folder = network.directory.path().join("store");
    let open = || -> Arc<dyn Store> { Arc::new(EmbeddedStore::open(&folder, EmbeddedOptions::default()).unwrap()) };
    let repo = network.repo(settings(), open()).await;
    assert_eq!(repo.warnings(), Vec::<String>::new());
    let content = bytes(300_500);
    let mut seen = Vec::new();
    // No configured prefix covers it, so the repository registers it.
    let remote = network.remote().await;
    let result = remote.put(object("/elsewhere/song", &content), |progress| seen.push(progress)).await.unwrap();
    assert_eq!((result.objects[0].code, result.objects[0].inserted), (status::DONE, Some(301)));
    assert_eq!((seen.last().unwrap().stored, seen.last().unwrap().total), (301, 301));
    assert_eq!(get(&network, "/elsewhere/song").await, content);
    assert_eq!(repo.statistics().writes, 301);
    repo.stop().await;

    let repo = network.repo(settings(), open()).await;
    assert_eq!(get(&network, "/elsewhere/song").await, content);
    let object = ObjectParam {
        name: name("/elsewhere/song"),
        start: Some(0),
        register_prefix: Some(name("/elsewhere/song")),
        ..ObjectParam::default()
    };
    let result = remote.delete(vec![object.clone()]).await.unwrap();
    assert_eq!(result.objects[0].deleted, Some(301));
    // Nothing is left, which is no failure.
    let result = remote.delete(vec![object]).await.unwrap();
    assert_eq!((result.code, result.objects[0].deleted), (status::DONE, Some(0)));
    let error = ask(&network.client().await, "/elsewhere/song/seg=0").await.unwrap_err();
    assert_eq!(error.to_string(), "Nack: NoRoute");
    repo.stop().await;
}

#[tokio::test]
async fn the_rules_for_segments() {
    let network = Network::start();
    let repo = network.repo(settings(), memory()).await;
    let producer = network.client().await;
    let mut publisher = object("/data/obj", &bytes(9_500));
    let mut interests = publisher.open(&producer).await.unwrap();
    tokio::spawn(async move { publisher.serve(&mut interests, |_| ()).await });
    produce(&producer, &name("/data/single")).await;
    let remote = network.remote().await;
    let object = |uri: &str, start, end| ObjectParam { name: name(uri), start, end, ..ObjectParam::default() };
    // (object, code, packets)
    let cases = [
        (object("/data/single/1", None, None), status::DONE, 1),
        (object("/data/obj", Some(2), Some(4)), status::DONE, 3),
        (object("/data/obj", None, Some(1)), status::DONE, 2),
        (object("/data/obj", Some(7), None), status::DONE, 3),
        (object("/data/obj", Some(5), Some(4)), status::REFUSED, 0),
        (object("/repo/x", None, None), status::REFUSED, 0),
        (object("/", None, None), status::REFUSED, 0),
        (object("/unserved/x", None, None), status::FAILED, 0),
    ];
    for (object, code, packets) in &cases {
        let command = Command { objects: vec![object.clone()], groups: Vec::new() };
        let result = match remote.command("insert", &command, |_| ()).await {
            Ok(result) => result,
            Err(RemoteError::Refused(result)) => result,
            Err(error) => panic!("{object:?}: {error}"),
        };
        let total = if *code == status::DONE { status::DONE } else { status::FAILED };
        assert_eq!((result.code, result.objects[0].code), (total, *code), "{object:?}");
        assert_eq!(result.objects[0].inserted, Some(*packets), "{object:?}");
    }
    // One object that fails does not keep the others from being stored.
    let command = Command { objects: cases.iter().map(|(object, ..)| object.clone()).collect(), groups: Vec::new() };
    let error = remote.command("insert", &command, |_| ()).await.unwrap_err();
    let RemoteError::Refused(result) = error else { panic!("{error}") };
    let codes: Vec<u64> = result.objects.iter().map(|object| object.code).collect();
    assert_eq!(codes, cases.each_ref().map(|(_, code, _)| *code));
    repo.stop().await;
}

#[tokio::test]
async fn names_are_listed_in_order_and_statistics_are_answered() {
    let network = Network::start();
    let repo = network.repo(settings(), memory()).await;
    let remote = network.remote().await;
    remote.put(object("/data/a", &bytes(700_000)), |_| ()).await.unwrap();
    remote.put(object("/data/b", &bytes(10)), |_| ()).await.unwrap();
    let mut listed: Vec<NameBuf> = Vec::new();
    loop {
        let page = remote.list(name("/data/a").as_name(), listed.last().map(NameBuf::as_name)).await.unwrap();
        if page.is_empty() {
            break;
        }
        listed.extend(page);
    }
    let expected = |segment| {
        let mut expected = name("/data/a");
        expected.push_segment(segment);
        expected
    };
    assert_eq!(listed, (0..700).map(expected).collect::<Vec<_>>());
    let statistics = remote.statistics().await.unwrap();
    assert_eq!((&statistics["writes"], &statistics["store"]["kind"]), (&701.into(), &"memory".into()));
    assert_eq!((&statistics["version"], &statistics["commands"]), (&1.into(), &2.into()));
    repo.stop().await;
}

#[tokio::test]
async fn deletion_of_a_prefix_leaves_data_of_other_prefixes() {
    let network = Network::start();
    let repo = network.repo(settings(), memory()).await;
    let remote = network.remote().await;
    for (uri, size) in [("/data/a", 1_500_000), ("/data/a/b", 10), ("/data/ab", 10)] {
        remote.put(object(uri, &bytes(size)), |_| ()).await.unwrap();
    }
    assert_eq!(remote.delete_prefix(name("/data/a"), |_| ()).await.unwrap(), 1_501);
    let listed = remote.list(name("/").as_name(), None).await.unwrap();
    assert_eq!(listed.iter().map(ToString::to_string).collect::<Vec<_>>(), ["/data/ab/seg=0"]);
    assert_eq!(remote.delete_prefix(name("/data/a"), |_| ()).await.unwrap(), 0, "again");
    repo.stop().await;
}

#[tokio::test]
async fn data_that_is_too_old_is_forgotten() {
    let network = Network::start();
    let rule = Rule { prefix: name("/data/news").value().to_vec(), age_ms_max: Some(0), ..Rule::default() };
    let retention_interval = Duration::from_millis(10);
    let repo = network.repo(RepoSettings { retention: vec![rule], retention_interval, ..settings() }, memory()).await;
    let remote = network.remote().await;
    remote.put(object("/data/kept", &bytes(10)), |_| ()).await.unwrap();
    remote.put(object("/data/news", &bytes(5_000)), |_| ()).await.unwrap();
    while repo.statistics().deletes < 5 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let listed = remote.list(name("/data").as_name(), None).await.unwrap();
    assert_eq!(listed.iter().map(ToString::to_string).collect::<Vec<_>>(), ["/data/kept/seg=0"]);
    repo.stop().await;
}

/// Two commands of the same bytes are two commands; what is not stored gets a Nack if so configured.
#[tokio::test]
async fn a_command_can_be_repeated_and_missing_data_nacked() {
    let network = Network::start();
    let repo = network.repo(RepoSettings { nacks_missing: true, ..settings() }, memory()).await;
    let remote = network.remote().await;
    for _ in 0..2 {
        let result = remote.put(object("/data/twice", &bytes(2_000)), |_| ()).await.unwrap();
        assert_eq!(result.objects[0].inserted, Some(2));
    }
    let error = ask(&network.client().await, "/data/none").await.unwrap_err();
    assert_eq!(error.to_string(), "Nack: NoRoute");
    assert_eq!(repo.statistics().writes, 4);
    repo.stop().await;
}

#[tokio::test]
async fn the_example_archives_an_object() {
    let network = Network::start();
    let repo = network.repo(settings(), memory()).await;
    let program = std::env::current_exe().unwrap().parent().unwrap().join("../examples/archive");
    assert!(program.exists(), "{} is not there: cargo build -p namewire-repo --examples", program.display());
    let mut command = std::process::Command::new(program);
    command.args(["/repo", "/data/note", "some words"]);
    command.env("NDN_CLIENT_TRANSPORT", format!("unix://{}", network.router.socket().unwrap().display()));
    let ended = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let listed = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success() && listed.starts_with("/data/note/v="), "{listed} {:?}", ended.stderr);
    repo.stop().await;
}
