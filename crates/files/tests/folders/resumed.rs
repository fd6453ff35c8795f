//! A fetch that was cut short goes on within its large files.

use crate::network::{Network, fetch, step_by_step};
use namewire_client::IncomingInterest;
use namewire_files::{folder_fetch::FolderFetchOptions, folder_server::FolderOptions};
use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::Notify;

const SEGMENTS: u64 = 800;

fn content(seed: u64) -> Vec<u8> {
    let mut dice = fastrand::Rng::with_seed(seed);
    (0..SEGMENTS as usize * 8000).map(|_| dice.u8(..)).collect()
}

/// A folder with a large file `film`, and where it is fetched to.
struct Place {
    network: Network,
    source: PathBuf,
    copy: PathBuf,
}

fn segment_of_film(incoming: &IncomingInterest) -> Option<u64> {
    let interest = incoming.interest();
    let is_film = interest.name().get(1).is_some_and(|file| file.value == b"film");
    interest.name().last().filter(|_| is_film).and_then(|last| last.segment())
}

impl Place {
    fn new() -> Place {
        let network = Network::start();
        let (source, copy) = (network.directory.path().join("source"), network.directory.path().join("copy"));
        fs::create_dir(&source).unwrap();
        fs::write(source.join("film"), content(1)).unwrap();
        Place { network, source, copy }
    }

    /// Fetches until segment `stop_at` of the film is asked for.
    async fn cut_short(&self, stop_at: u64) {
        let stop = Arc::new(Notify::new());
        let stopper = Arc::clone(&stop);
        let watch = move |incoming: &IncomingInterest| {
            if segment_of_film(incoming) == Some(stop_at) {
                stopper.notify_one();
            }
        };
        let served = self.network.serve(&self.source, FolderOptions::default(), watch).await;
        let client = self.network.client().await;
        tokio::select! {
            fetched = fetch(&client, "/folder", &self.copy, step_by_step()) => panic!("{:?}", fetched.result),
            () = stop.notified() => {}
        }
        served.stop().await;
    }

    /// Fetches the rest. Returns the bytes that were there already, and how many segments the producer was asked for.
    async fn go_on(&self, options: FolderFetchOptions) -> (u64, u64) {
        let asked = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&asked);
        let count = move |incoming: &IncomingInterest| {
            counter.fetch_add(u64::from(segment_of_film(incoming).is_some()), Ordering::Relaxed);
        };
        let served = self.network.serve(&self.source, FolderOptions::default(), count).await;
        let resumed = fetch(&self.network.client().await, "/folder", &self.copy, options).await.whole().bytes_resumed;
        served.stop().await;
        (resumed, asked.load(Ordering::Relaxed))
    }

    fn files(&self) -> Vec<String> {
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<_> = fs::read_dir(&self.copy).unwrap().map(name).collect();
        names.sort();
        names
    }

    fn assert_whole(&self, name: &str) {
        assert!(fs::read(self.copy.join(name)).unwrap() == fs::read(self.source.join(name)).unwrap(), "{name}");
    }
}

/// The story: Ctrl-C in the middle of a large file threw away what had come of it.
#[tokio::test]
async fn a_large_file_goes_on_where_it_was_cut_short() {
    let place = Place::new();
    place.cut_short(500).await;
    assert_eq!(place.files(), ["film.part", "film.part.index"]);
    let (resumed, asked) = place.go_on(step_by_step()).await;
    // The last segment that is there comes once more; a router may have it.
    assert_eq!(resumed, 499 * 8000);
    assert!(asked <= SEGMENTS - 499, "{asked}");
    assert_eq!(place.files(), ["film"]);
    place.assert_whole("film");
}

#[tokio::test]
async fn a_damaged_copy_begins_anew() {
    let place = Place::new();
    place.cut_short(500).await;
    let part = place.copy.join("film.part");
    let mut bytes = fs::read(&part).unwrap();
    bytes[7] ^= 1;
    fs::write(&part, bytes).unwrap();
    assert_eq!(place.go_on(step_by_step()).await.0, 0);
    place.assert_whole("film");
}

#[tokio::test]
async fn another_version_begins_anew() {
    let place = Place::new();
    place.cut_short(500).await;
    fs::write(place.source.join("film"), content(2)).unwrap();
    assert_eq!(place.go_on(step_by_step()).await, (0, SEGMENTS));
    assert_eq!(place.files(), ["film"]);
    place.assert_whole("film");
}

/// What the first fetch checked against one anchor is not what the second asks for.
#[tokio::test]
async fn a_copy_that_was_checked_by_something_else_counts_for_nothing() {
    let place = Place::new();
    place.cut_short(500).await;
    let options = FolderFetchOptions { checked_by: "an anchor".to_owned(), ..step_by_step() };
    assert_eq!(place.go_on(options).await.0, 0);
    place.assert_whole("film");
}

/// An unfinished copy is believed as far as its index goes, so no producer may bring one, in this fetch or an earlier.
#[tokio::test]
async fn an_entry_takes_the_place_of_an_unfinished_copy_with_its_index() {
    let place = Place::new();
    place.cut_short(500).await;
    let (part, index) = (place.copy.join("film.part"), place.copy.join("film.part.index"));
    let mut forged = fs::read(&part).unwrap();
    forged.push(7);
    fs::write(place.source.join("film.part"), &forged).unwrap();
    fs::write(place.source.join("film.part.index"), fs::read(&index).unwrap()).unwrap();
    let served = place.network.serve(&place.source, FolderOptions::default(), |_| ()).await;
    let client = place.network.client().await;
    let fetched = fetch(&client, "/folder", &place.copy, step_by_step()).await;
    assert_eq!(fetched.refused.len(), 1, "{:?}", fetched.refused);
    assert!(fetched.refused[0].1.contains("the index of an unfinished file"), "{:?}", fetched.refused);
    assert_eq!(place.files(), ["film", "film.part"]);
    place.assert_whole("film");
    place.assert_whole("film.part");
    served.stop().await;
}

/// The story of small files: an index and its checksums would cost each of them three system calls more.
#[tokio::test]
async fn a_small_file_leaves_nothing() {
    let place = Place::new();
    fs::write(place.source.join("film"), &content(1)[..4_000_000]).unwrap();
    place.cut_short(100).await;
    assert_eq!(place.files(), [] as [&str; 0]);
}
