//! Files that change while they are fetched.

use crate::network::{Network, fetch, name, step_by_step};
use namewire_client::{IncomingInterest, InterestBuilder, Reply};
use namewire_files::{
    folder_fetch::FolderFetchOptions,
    folder_server::{FolderOptions, FolderServer},
    metadata::FileMetadata,
};
use namewire_packet::{Data, Interest, content_type};
use std::{fs, path::Path, sync::Arc};

const OLD: [u8; 10_000] = [1; 10_000];
const NEW: [u8; 12_000] = [2; 12_000];

fn small_segments() -> FolderOptions {
    FolderOptions { segment_bytes: 1000, ..FolderOptions::default() }
}

/// Calls `change` before the Interest for the fifth segment of the file is answered, once.
fn at_fifth_segment(change: impl FnOnce() + Send + 'static) -> impl FnMut(&IncomingInterest) + Send + 'static {
    let mut change = Some(change);
    move |incoming| {
        let interest = incoming.interest();
        let is_fifth = interest.name().last().and_then(|last| last.segment()) == Some(4);
        if is_fifth && let Some(change) = change.take() {
            change();
        }
    }
}

#[tokio::test]
async fn a_file_replaced_while_it_is_fetched_arrives_as_it_was() {
    let network = Network::start();
    let directory = network.directory.path();
    let (source, copy) = (directory.join("source"), directory.join("copy"));
    fs::create_dir(&source).unwrap();
    fs::write(source.join("file"), OLD).unwrap();
    fs::write(directory.join("new"), NEW).unwrap();
    let (new, place) = (directory.join("new"), source.join("file"));
    let replace = at_fifth_segment(move || fs::rename(&new, &place).unwrap());
    let served = network.serve(&source, small_segments(), replace).await;
    let client = network.client().await;
    fetch(&client, "/folder", &copy, step_by_step()).await.whole();
    assert_eq!(fs::read(copy.join("file")).unwrap(), OLD);
    tokio::time::sleep(std::time::Duration::from_millis(20)).await; // metadata in caches are fresh for 10 ms
    fetch(&client, "/folder", &copy, FolderFetchOptions::default()).await.whole();
    assert_eq!(fs::read(copy.join("file")).unwrap(), NEW);
    assert_eq!(served.stop().await.gone, 0);
}

#[tokio::test]
async fn a_file_changed_in_place_while_it_is_fetched_arrives_as_it_is_now() {
    let network = Network::start();
    let directory = network.directory.path();
    let (source, copy) = (directory.join("source"), directory.join("copy"));
    fs::create_dir(&source).unwrap();
    fs::write(source.join("file"), OLD).unwrap();
    let place = source.join("file");
    let change = at_fifth_segment(move || fs::write(&place, NEW).unwrap());
    let served = network.serve(&source, small_segments(), change).await;
    fetch(&network.client().await, "/folder", &copy, step_by_step()).await.whole();
    assert_eq!(fs::read(copy.join("file")).unwrap(), NEW);
    // An Interest that a slow machine makes the fetch send again is refused again.
    assert!(served.stop().await.gone >= 1);
}

/// A server that is asked without a router.
struct Asked(FolderServer);

impl Asked {
    fn serving(path: &Path) -> Asked {
        Asked(FolderServer::open(path, &name("/folder"), small_segments()).unwrap())
    }

    fn ask(&mut self, interest: InterestBuilder) -> Option<Arc<[u8]>> {
        let wire = interest.build();
        match self.0.answer(&Interest::parse(&wire).unwrap()) {
            Reply::Data(wire) | Reply::UncachedData(wire) => Some(wire),
            _ => None,
        }
    }

    fn metadata(&mut self, uri: &str) -> FileMetadata {
        let asked = name(&format!("{uri}/32=metadata"));
        let wire = self.ask(InterestBuilder::new(&asked).can_be_prefix(true).must_be_fresh(true)).unwrap();
        let data = Data::parse(&wire).unwrap();
        assert!(asked.as_name().is_prefix_of(&data.name()) && data.name().len() == asked.len() + 2);
        assert!(data.name().get(asked.len()).unwrap().version().is_some());
        assert_eq!(data.final_block_id().unwrap().segment(), Some(0));
        assert!((1..=10).contains(&data.freshness_ms()));
        FileMetadata::parse(data.content()).unwrap()
    }

    /// The content of a segment, or the words of the application Nack.
    fn segment(&mut self, uri: &str) -> Result<(Vec<u8>, u64), String> {
        let wire = self.ask(InterestBuilder::new(name(uri))).expect("an answer");
        let data = Data::parse(&wire).unwrap();
        assert_eq!(data.name().to_buf(), name(uri));
        if data.content_type() == content_type::NACK {
            assert_eq!(data.freshness_ms(), 1);
            return Err(String::from_utf8(data.content().to_vec()).unwrap());
        }
        Ok((data.content().to_vec(), data.final_block_id().unwrap().segment().unwrap()))
    }
}

#[test]
fn names_that_are_served_and_do_not_exist_get_an_application_nack() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), [7; 2000]).unwrap();
    fs::write(directory.path().join("empty"), b"").unwrap();
    let mut asked = Asked::serving(directory.path());
    let file = asked.metadata("/folder/file");
    assert_eq!((file.last_segment, file.segment_bytes, file.size_bytes), (Some(1), Some(1000), Some(2000)));
    let version = &file.versioned_name;
    assert_eq!(asked.segment(&format!("{version}/seg=1")), Ok((vec![7; 1000], 1)));
    assert_eq!(asked.segment(&format!("{version}/seg=2")), Err("not found".to_owned()));
    assert_eq!(asked.segment("/folder/file/v=5/seg=0"), Err("this version is gone".to_owned()));
    assert_eq!(asked.segment("/folder/absent/v=5/seg=0"), Err("not found".to_owned()));
    assert_eq!(asked.segment("/folder/file/32=ls/v=5/seg=0"), Err("not found".to_owned()));
    assert_eq!(asked.segment("/folder/file/nonsense/32=x"), Err("not found".to_owned()));
    let empty = asked.metadata("/folder/empty");
    assert_eq!((empty.last_segment, empty.size_bytes), (Some(0), Some(0)));
    assert_eq!(asked.segment(&format!("{}/seg=0", empty.versioned_name)), Ok((Vec::new(), 0)));
    // Consumers that know no metadata get the newest version by prefix.
    let first = asked.ask(InterestBuilder::new(name("/folder/file")).can_be_prefix(true)).unwrap();
    assert_eq!(Data::parse(&first).unwrap().name().parent().to_buf(), *version);
    let digest = "00".repeat(32);
    let with_digest = InterestBuilder::new(name(&format!("{version}/seg=9/sha256digest={digest}")));
    assert!(asked.ask(with_digest).is_none(), "no Data has this name");
    let counters = asked.0.counters();
    assert_eq!((counters.not_found, counters.gone, counters.segments), (5, 1, 3));
}

/// The story: an empty listing had no weight, so a producer kept as many of them as there were folders.
#[test]
fn empty_listings_are_forgotten_like_others() {
    let directory = tempfile::tempdir().unwrap();
    let folder = |number: usize| directory.path().join(format!("{number}"));
    (0..5).for_each(|number| fs::create_dir(folder(number)).unwrap());
    let options = FolderOptions { listings_bytes_max: 3 * 512, segments_bytes_max: 0, ..small_segments() };
    let mut asked = Asked(FolderServer::open(directory.path(), &name("/folder"), options).unwrap());
    let listings: Vec<_> = (0..5).map(|number| asked.metadata(&format!("/folder/{number}")).versioned_name).collect();
    // What is kept is served even when the folder has gone.
    (0..5).for_each(|number| fs::remove_dir(folder(number)).unwrap());
    let served: Vec<_> = listings.iter().map(|listing| asked.segment(&format!("{listing}/seg=0")).is_ok()).collect();
    assert_eq!(served, [false, false, true, true, true]);
}

/// The story: each question for its metadata listed the whole folder.
#[test]
fn a_folder_that_rests_is_not_listed_again() {
    let directory = tempfile::tempdir().unwrap();
    let rests_since = |age_s: u64| {
        let time = std::time::SystemTime::now() - std::time::Duration::from_secs(age_s);
        fs::File::open(directory.path()).unwrap().set_modified(time).unwrap();
        time
    };
    let mut asked = Asked::serving(directory.path());
    fs::write(directory.path().join("first"), b"").unwrap();
    let time = rests_since(1000);
    let first = asked.metadata("/folder").versioned_name;
    fs::write(directory.path().join("second"), b"").unwrap();
    // Nothing but its listing shows that it has changed.
    fs::File::open(directory.path()).unwrap().set_modified(time).unwrap();
    assert_eq!(asked.metadata("/folder").versioned_name, first);
    rests_since(999);
    let second = asked.metadata("/folder").versioned_name;
    assert_eq!(asked.segment(&format!("{second}/seg=0")), Ok((b"first\0second\0".to_vec(), 0)));
}

#[test]
fn each_state_of_a_folder_and_a_file_has_its_version() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("file");
    let mut asked = Asked::serving(directory.path());
    let mut listings = vec![asked.metadata("/folder").versioned_name];
    // Faster than the clock of the file system.
    for number in 0..50 {
        fs::write(directory.path().join(format!("{number}")), b"").unwrap();
        let folder = asked.metadata("/folder");
        assert_eq!(folder, FileMetadata { atime_ns: folder.atime_ns, ..asked.metadata("/folder/32=ls") });
        listings.push(folder.versioned_name);
    }
    let mut different = listings.clone();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), 51);
    assert_eq!(listings, different, "newer versions have larger numbers");
    assert_eq!(asked.segment(&format!("{}/seg=0", listings[1])), Ok((b"0\0".to_vec(), 0)), "a snapshot");
    // An older file in the place of a newer one.
    fs::write(&place, b"new").unwrap();
    let new = asked.metadata("/folder/file").versioned_name;
    let old_time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1000);
    let old = directory.path().join("old");
    fs::write(&old, b"old").unwrap();
    fs::File::options().write(true).open(&old).unwrap().set_modified(old_time).unwrap();
    fs::rename(&old, &place).unwrap();
    let replaced = asked.metadata("/folder/file");
    assert!(replaced.versioned_name > new && replaced.mtime_ns == 1_000_000_000_000);
    assert_eq!(asked.segment(&format!("{}/seg=0", replaced.versioned_name)), Ok((b"old".to_vec(), 0)));
    assert_eq!(asked.segment(&format!("{new}/seg=0")), Ok((b"new".to_vec(), 0)), "from its open descriptor");
}
