//! Question: does a store in Redis do what the store in memory does, in one server and in a cluster? And what does it
//! do when its servers are gone?

mod servers;

use self::servers::{RedisServer, start_cluster, wait_for, wait_for_cluster};
use super::{compare_with_memory, got, listed, name, notes, record};
use namewire_repo::store::index::Index;
use namewire_repo::store::memory::MemoryStore;
use namewire_repo::store::redis::{RedisOptions, RedisStore};
use namewire_repo::store::{Change, Store, StoreError, StoreSettings};

const INDEXES: [Index; 3] = [Index::Stored, Index::Memory, Index::None];

fn options(servers: &[RedisServer], prefix: &str, index: Index) -> RedisOptions {
    let urls = servers.iter().map(|server| server.url.clone()).collect();
    RedisOptions { urls, is_cluster: servers.len() > 1, prefix: prefix.to_owned(), index }
}

/// Compares stores with each index, and opens them again.
fn compare_all(servers: &[RedisServer]) {
    // Prefixes that a careless pattern would take for one another.
    for (index, prefix) in INDEXES.into_iter().zip(["a", "a*", "*"]) {
        let open = || RedisStore::open(options(servers, prefix, index)).unwrap();
        let store = open();
        compare_with_memory(&store, index as u64);
        let all = |store: &RedisStore| {
            (store.is_ordered().then(|| listed(store, &[], None, 99)), store.usage().unwrap(), notes(store))
        };
        let before = all(&store);
        drop(store);
        assert_eq!(all(&open()), before);
    }
}

/// Puts a record for each name. True if all are stored then.
fn put_all(store: &dyn Store, names: &[Vec<u8>], record: &[u8]) -> bool {
    let changes: Vec<Change<'_>> = names.iter().map(|name| Change::Put { name, record }).collect();
    match store.write(&changes) {
        Ok(_) => true,
        Err(StoreError::Unavailable(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn redis_does_what_the_store_in_memory_does() {
    let folder = tempfile::tempdir().unwrap();
    compare_all(&[RedisServer::start(folder.path(), &[])]);
}

#[test]
fn a_batch_may_be_longer_than_a_command_in_a_script() {
    let folder = tempfile::tempdir().unwrap();
    let servers = [RedisServer::start(folder.path(), &[])];
    let names: Vec<Vec<u8>> = (0..4_100_u32).map(|number| name(&[&number.to_be_bytes()])).collect();
    for (index, prefix) in [(Index::Stored, "a"), (Index::None, "b")] {
        let store = RedisStore::open(options(&servers, prefix, index)).unwrap();
        let reference = MemoryStore::new(u64::MAX);
        // The second batch is new but for one name, which stops only a part of it from being stored at once.
        for (count, wire) in [(1, &b"one"[..]), (4_100, b"another"), (4_100, b"the last")] {
            let record = record(1, wire);
            let put = |name| Change::Put { name, record: &record };
            let changes: Vec<Change<'_>> = names[names.len() - count..].iter().map(|name| put(name)).collect();
            assert_eq!(store.write(&changes).unwrap(), reference.write(&changes).unwrap());
            assert_eq!(store.usage().unwrap(), reference.usage().unwrap());
        }
        if store.is_ordered() {
            assert_eq!(listed(&store, &[], None, 9_999), listed(&reference, &[], None, 9_999));
        }
    }
}

#[test]
fn redis_is_opened_only_with_the_settings_that_made_it() {
    let folder = tempfile::tempdir().unwrap();
    let servers = [RedisServer::start(folder.path(), &[])];
    let open = |prefix, index| RedisStore::open(options(&servers, prefix, index)).map(drop);
    open("repo:", Index::Stored).unwrap();
    let refused = open("repo:", Index::None).unwrap_err().to_string();
    assert!(refused.contains("made as \"1 index=stored shards=1\""), "{refused}");
    // A later version of this program made it.
    redis::cmd("SET").arg("repo:{0}v").arg("2 other").exec(&mut servers[0].connection().unwrap()).unwrap();
    let refused = open("repo:", Index::Stored).unwrap_err().to_string();
    assert!(refused.contains("format 2"), "{refused}");
    assert!(open("{}", Index::Stored).is_err());
}

#[test]
fn repositories_share_their_data_in_redis() {
    let folder = tempfile::tempdir().unwrap();
    let servers = [RedisServer::start(folder.path(), &[])];
    let settings = StoreSettings::Redis(options(&servers, "", Index::Stored));
    let [one, other] = [(); 2].map(|()| namewire_repo::store::open(&settings).unwrap());
    let (name, record) = (name(&[b"a"]), record(1, b"one"));
    one.write(&[Change::Put { name: &name, record: &record }]).unwrap();
    assert_eq!(got(&*other, &[&name]), [Some(record)]);
    assert_eq!(other.write(&[Change::Delete { name: &name }]).unwrap().deleted, 1);
    assert_eq!(one.usage().unwrap().records, 0);
}

#[test]
fn without_redis_commands_fail_until_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let keep = ["--appendonly", "yes", "--appendfsync", "always"];
    let mut servers = [RedisServer::start(folder.path(), &keep)];
    let store = RedisStore::open(options(&servers, "", Index::Memory)).unwrap();
    let (names, one) = ([name(&[b"a"]), name(&[b"b"])], record(1, b"one"));
    assert!(put_all(&store, &names[..1], &one));
    servers[0].kill();
    let unavailable = store.get(&[&names[0]], &mut |_, _| ());
    assert!(matches!(unavailable, Err(StoreError::Unavailable(_))), "{unavailable:?}");
    assert!(!put_all(&store, &names[1..], &one));
    assert!(store.usage().is_err());
    assert!(RedisStore::open(options(&servers, "", Index::Memory)).is_err());
    servers[0].start_again();
    wait_for("the store writes again", || put_all(&store, &names[1..], &one).then_some(()));
    assert_eq!(got(&store, &[&names[0], &names[1]]), [Some(one.clone()), Some(one.clone())]);
    assert_eq!(listed(&store, &[], None, 9).len(), 2);
}

#[test]
fn a_silent_server_does_not_hang_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let _silent = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let urls = vec![format!("unix://{}", socket.display())];
    let opened = RedisStore::open(RedisOptions { urls, is_cluster: false, prefix: String::new(), index: Index::None });
    assert!(matches!(opened.err(), Some(StoreError::Unavailable(_))));
}

#[test]
fn a_full_redis_refuses_answers_and_has_room_after_deletions() {
    let folder = tempfile::tempdir().unwrap();
    let servers = [RedisServer::start(folder.path(), &["--maxmemory", "4mb"])];
    let store = RedisStore::open(options(&servers, "", Index::Stored)).unwrap();
    let big = record(0, &[0; 4000]);
    let names: Vec<Vec<u8>> = (0..2000_u32).map(|number| name(&[&number.to_be_bytes()])).collect();
    let put = |name: &Vec<u8>| store.write(&[Change::Put { name, record: &big }]);
    let (stored, refused) = names.iter().enumerate().find_map(|(count, name)| Some((count, put(name).err()?))).unwrap();
    assert!(matches!(refused, StoreError::Full(_)), "{refused:?}");
    assert_eq!(store.usage().unwrap().records, stored as u64);
    assert_eq!(got(&store, &[&names[0], &names[stored]]), [Some(big.clone()), None]);
    let deletions: Vec<Change<'_>> = names[..stored].iter().map(|name| Change::Delete { name }).collect();
    assert_eq!(store.write(&deletions).unwrap().deleted, stored as u64);
    put(&names[0]).unwrap();
}

#[test]
fn a_cluster_does_what_the_store_in_memory_does() {
    let folder = tempfile::tempdir().unwrap();
    compare_all(&start_cluster(folder.path()));
}

#[test]
fn a_store_finds_slots_that_moved() {
    let folder = tempfile::tempdir().unwrap();
    let servers = start_cluster(folder.path());
    // It knows one server; the others are found by it.
    let mut options = options(&servers, "", Index::Stored);
    options.urls.truncate(1);
    let store = RedisStore::open(options).unwrap();
    // The slots of all shards go to the last server, which is allowed while they are empty.
    let mut connections: Vec<_> = servers.iter().map(|server| server.connection().unwrap()).collect();
    let owner: String = redis::cmd("CLUSTER").arg("MYID").query(&mut connections[2]).unwrap();
    // With the greatest epoch, its claim wins over what the others say of the same slots meanwhile.
    let _: String = redis::cmd("CLUSTER").arg("BUMPEPOCH").query(&mut connections[2]).unwrap();
    redis::cmd("DEL").arg("{0}v").exec(&mut connections[slot_owner(&servers, "{0}")]).unwrap();
    for shard in 0..64 {
        let key = format!("{{{shard}}}");
        let slot: u16 = redis::cmd("CLUSTER").arg("KEYSLOT").arg(&key).query(&mut connections[2]).unwrap();
        for connection in connections.iter_mut().rev() {
            redis::cmd("CLUSTER").arg("SETSLOT").arg(slot).arg("NODE").arg(&owner).exec(connection).unwrap();
        }
    }
    let (names, one) = (many_names(), record(1, b"one"));
    wait_for("the store found them", || put_all(&store, &names, &one).then_some(()));
    let asked: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    assert_eq!(got(&store, &asked), vec![Some(one); names.len()]);
}

#[test]
fn without_a_master_the_other_shards_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut servers = start_cluster(folder.path());
    let store = RedisStore::open(options(&servers, "", Index::Stored)).unwrap();
    let (names, one) = (many_names(), record(1, b"one"));
    assert!(put_all(&store, &names, &one));
    servers[1].kill();
    let asked: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    let mut found = 0;
    let outcome = store.get(&asked, &mut |_, _| found += 1);
    assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{outcome:?}");
    assert!((names.len() / 4..names.len()).contains(&found), "{found} of {}", names.len());
    assert!(!put_all(&store, &names, &one));
    let still_there = names.iter().filter(|name| store.get(&[&name[..]], &mut |_, _| ()).is_ok()).count();
    assert_eq!(still_there, found);
    servers[1].start_again();
    servers.iter().for_each(wait_for_cluster);
    wait_for("all shards are written", || put_all(&store, &names, &one).then_some(()));
    assert_eq!(got(&store, &asked), vec![Some(one); names.len()]);
    assert_eq!(listed(&store, &[], None, 999).len(), names.len());
}

/// Names of all shards.
fn many_names() -> Vec<Vec<u8>> {
    (0..600_u32).map(|number| name(&[b"data", &number.to_be_bytes()])).collect()
}

/// Which server has the slot of a key.
fn slot_owner(servers: &[RedisServer], key: &str) -> usize {
    let is_owner = |server: &RedisServer| redis::cmd("EXISTS").arg(key).exec(&mut server.connection().unwrap()).is_ok();
    servers.iter().position(is_owner).expect("an owner")
}
