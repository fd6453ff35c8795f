//! Whole folders arrive as they are.

use crate::network::{Network, fetch, preserving, step_by_step};
use namewire_client::{FetchError, FetchOptions, RateLimit};
use namewire_files::{
    folder_fetch::{FolderError, FolderFetchOptions},
    folder_server::FolderOptions,
};
use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt, symlink},
    },
    path::{Path, PathBuf},
    sync::Arc,
};

/// A name of 255 bytes, one of UTF-8, one that is none, and one that a terminal would obey.
const NAMES: [&[u8]; 5] = [&[b'x'; 255], "Grüße 🙂".as_bytes(), b"\xff\xfe\x80", b"a\x1b[2J\n", b"-rf * ; =%2F"];

fn bytes(count: usize) -> Vec<u8> {
    let mut state = count as u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(count).collect()
}

/// A folder with nested folders, empty ones, files around the size of a segment, and odd names.
fn make_tree(root: &Path) {
    fs::create_dir_all(root.join("a/b/c/d")).unwrap();
    fs::create_dir_all(root.join("empty/also empty")).unwrap();
    for size in [0, 1, 7_999, 8_000, 8_001, 100_000] {
        fs::write(root.join(format!("a/b/{size}")), bytes(size)).unwrap();
    }
    for (index, odd) in NAMES.iter().enumerate() {
        let folder = root.join("odd").join(OsStr::from_bytes(odd));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(OsStr::from_bytes(odd)), bytes(index)).unwrap();
    }
    // The unfinished file of the first would be the second.
    fs::write(root.join("a/file"), bytes(50_000)).unwrap();
    fs::write(root.join("a/file.part"), bytes(50_001)).unwrap();
    fs::set_permissions(root.join("a/file"), fs::Permissions::from_mode(0o4751)).unwrap();
    fs::set_permissions(root.join("a/b/c"), fs::Permissions::from_mode(0o1710)).unwrap();
    let old = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 123_456_789);
    fs::File::options().write(true).open(root.join("a/b/0")).unwrap().set_modified(old).unwrap();
}

#[derive(Debug, PartialEq, Eq)]
struct Described {
    /// None: a folder.
    content: Option<Vec<u8>>,
    permissions: u32,
    mtime: (i64, i64),
}

/// All that is in a folder, itself included.
fn describe(root: &Path) -> BTreeMap<PathBuf, Described> {
    let mut all = BTreeMap::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(path) = waiting.pop() {
        let meta = fs::symlink_metadata(root.join(&path)).unwrap();
        if meta.is_dir() {
            waiting.extend(fs::read_dir(root.join(&path)).unwrap().map(|entry| path.join(entry.unwrap().file_name())));
        }
        let content = meta.is_file().then(|| fs::read(root.join(&path)).unwrap());
        let mtime = (meta.mtime(), meta.mtime_nsec());
        all.insert(path, Described { content, permissions: meta.mode() & 0o777, mtime });
    }
    all
}

fn contents(described: BTreeMap<PathBuf, Described>) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    described.into_iter().map(|(path, one)| (path, one.content)).collect()
}

#[tokio::test]
async fn a_tree_arrives_byte_for_byte() {
    let network = Network::start();
    let (source, copy) = (network.directory.path().join("source"), network.directory.path().join("copy"));
    make_tree(&source);
    let served = network.serve(&source, FolderOptions::default(), |_| ()).await;
    let client = network.client().await;
    let progress = fetch(&client, "/folder", &copy, FolderFetchOptions::default()).await.whole();
    let (expected, found) = (describe(&source), describe(&copy));
    let is_file = |one: &&Described| one.content.is_some();
    let files = expected.values().filter(is_file).count() as u64;
    assert_eq!((progress.files_written, progress.files_present, progress.files_found), (files, 0, files));
    assert_eq!(progress.folders, expected.len() as u64 - files);
    let size: usize = expected.values().filter_map(|one| one.content.as_ref()).map(Vec::len).sum();
    assert_eq!((progress.bytes_announced, progress.bytes_received), (size as u64, size as u64));
    assert_ne!(found[Path::new("a/b/0")].mtime, expected[Path::new("a/b/0")].mtime, "times only on request");
    assert_eq!(contents(found), contents(expected));
    let counters = served.stop().await;
    assert_eq!((counters.not_found, counters.gone, counters.unreadable), (0, 0, 0), "{counters:?}");
}

#[tokio::test]
async fn modes_and_times_are_kept_on_request_and_a_second_run_fetches_what_changed() {
    let network = Network::start();
    let (source, copy) = (network.directory.path().join("source"), network.directory.path().join("copy"));
    make_tree(&source);
    let served = network.serve(&source, FolderOptions::default(), |_| ()).await;
    let client = network.client().await;
    let first = fetch(&client, "/folder", &copy, preserving()).await.whole();
    assert_eq!(describe(&copy), describe(&source));
    assert_eq!(fs::metadata(copy.join("a/file")).unwrap().mode() & 0o7777, 0o751, "no set-user-ID");
    let second = fetch(&client, "/folder", &copy, preserving()).await.whole();
    assert_eq!((second.files_written, second.files_present, second.bytes_received), (0, first.files_written, 0));
    fs::write(source.join("a/b/1"), b"longer now").unwrap();
    fs::write(source.join("empty/no more"), b"new").unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(20)).await; // metadata in caches are fresh for 10 ms
    let third = fetch(&client, "/folder", &copy, preserving()).await.whole();
    assert_eq!((third.files_written, third.files_present), (2, first.files_written - 1));
    assert_eq!(describe(&copy), describe(&source));
    served.stop().await;
}

#[tokio::test]
async fn links_and_devices_are_not_served() {
    let network = Network::start();
    let directory = network.directory.path();
    let (source, copy) = (directory.join("source"), directory.join("copy"));
    fs::create_dir_all(source.join("inner")).unwrap();
    fs::write(directory.join("secret"), b"secret").unwrap();
    fs::write(source.join("file"), b"content").unwrap();
    symlink("../secret", source.join("link")).unwrap();
    symlink("../..", source.join("inner/up")).unwrap();
    let served = network.serve(&source, FolderOptions::default(), |_| ()).await;
    let client = network.client().await;
    let progress = fetch(&client, "/folder", &copy, FolderFetchOptions::default()).await.whole();
    assert_eq!((progress.files_written, progress.folders), (1, 2));
    assert_eq!(describe(&copy).len(), 3);
    // Asked for by name, they are not there either.
    for uri in ["/folder/link", "/folder/inner/up", "/folder/inner/up/secret", "/folder/absent"] {
        let fetched = fetch(&client, uri, &directory.join("other"), FolderFetchOptions::default()).await;
        let error = fetched.result.unwrap_err();
        assert!(matches!(&error, FolderError::Fetch(FetchError::ApplicationNack(_))), "{uri}: {error}");
    }
    let file = fetch(&client, "/folder/file", &directory.join("other"), FolderFetchOptions::default()).await;
    assert!(matches!(file.result, Err(FolderError::NotAFolder)));
    let counters = served.stop().await;
    // An Interest that a slow machine makes the fetch send again is refused again.
    assert!(counters.not_served >= 2 && counters.not_found >= 2, "{counters:?}");
}

#[tokio::test]
async fn limits_leave_out_and_say_so() {
    let network = Network::start();
    let (source, copy) = (network.directory.path().join("source"), network.directory.path().join("copy"));
    fs::create_dir_all(source.join("1/2/3")).unwrap();
    (0..20).for_each(|number| fs::write(source.join(format!("file {number}")), b"x").unwrap());
    let served = network.serve(&source, FolderOptions::default(), |_| ()).await;
    let client = network.client().await;
    let fetched = fetch(&client, "/folder", &copy, FolderFetchOptions { depth_max: 1, ..step_by_step() }).await;
    assert_eq!(fetched.refused, [("1/2".to_owned(), "it is in more than 1 folders".to_owned())]);
    let fetched = fetch(&client, "/folder", &copy, FolderFetchOptions { entries_max: 5, ..step_by_step() }).await;
    assert_eq!(fetched.refused[0], (".".to_owned(), "16 of its entries are over the limit of entries".to_owned()));
    let options = FolderFetchOptions { listing_bytes_max: 10, ..FolderFetchOptions::default() };
    let error = fetch(&client, "/folder", &copy, options).await.result.unwrap_err();
    assert!(matches!(&error, FolderError::Fetch(FetchError::TooLarge(10))), "{error}");
    served.stop().await;
}

/// The story: `--limit-rate` was for single files, because each file of a folder would have had the rate for itself.
#[tokio::test]
async fn a_rate_is_that_of_all_files_together() {
    let network = Network::start();
    let (source, copy) = (network.directory.path().join("source"), network.directory.path().join("copy"));
    fs::create_dir(&source).unwrap();
    (0..20).for_each(|number| fs::write(source.join(format!("{number}")), bytes(20_000)).unwrap());
    let served = network.serve(&source, FolderOptions::default(), |_| ()).await;
    let rate_limit = Some(Arc::new(RateLimit::new(400_000)));
    let fetch_options = FetchOptions { rate_limit, ..FetchOptions::default() };
    let options = FolderFetchOptions { fetch: fetch_options, ..FolderFetchOptions::default() };
    let progress = fetch(&network.client().await, "/folder", &copy, options).await.whole();
    assert_eq!(progress.bytes_received, 400_000);
    // One file alone takes 0.05 s. The last segments end the second, and the first 20 ms are free.
    assert!(progress.elapsed.as_secs_f64() > 0.9, "{:?}", progress.elapsed);
    served.stop().await;
}

/// The names of segments leave less and less room for content, and at last none.
#[tokio::test]
async fn long_paths_get_small_segments() {
    let network = Network::start();
    let (source, copy) = (network.directory.path().join("source"), network.directory.path().join("copy"));
    let mut deep = source.clone();
    for _ in 0..12 {
        deep.push("d".repeat(255));
        fs::create_dir_all(&deep).unwrap();
    }
    fs::write(deep.join("file"), bytes(30_000)).unwrap();
    let served = network.serve(&source, FolderOptions::default(), |_| ()).await;
    let client = network.client().await;
    let progress = fetch(&client, "/folder", &copy, FolderFetchOptions::default()).await.whole();
    assert_eq!((progress.folders, progress.bytes_received), (13, 30_000));
    let copied = copy.join(deep.strip_prefix(&source).unwrap()).join("file");
    assert_eq!(fs::read(copied).unwrap(), bytes(30_000));
    served.stop().await;
}
