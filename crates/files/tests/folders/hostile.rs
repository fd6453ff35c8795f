//! Producers that want to write outside the target, and lie in other ways.

use crate::network::{Network, fetch, name};
use namewire_client::{Client, Component, DataBuilder, FetchOptions, Interest, NameBuf};
use namewire_files::{folder_fetch::FolderFetchOptions, metadata::FileMetadata};
use namewire_packet::{signature::signature_type, tlv::types::KEYWORD_COMPONENT};
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

const LISTING: Component<'static> = Component { type_number: KEYWORD_COMPONENT, value: b"ls" };
const METADATA: Component<'static> = Component { type_number: KEYWORD_COMPONENT, value: b"metadata" };

/// What the producer serves as `/evil`: everything is a file with the content `evil`, but for these.
fn listing_of(path: &[Vec<u8>]) -> Option<Vec<u8>> {
    match path.iter().map(|one| &one[..]).collect::<Vec<_>>()[..] {
        [] => {
            let long = [b'n'; 256];
            let names: [&[u8]; 27] = [
                b"good",
                b"../x",
                b"..",
                b".",
                b"/abs",
                b"a/b",
                b"a/../../x",
                b"",
                b"/",
                &long,
                b"good/",
                b"out/",
                b"link",
                b"pipe",
                b"folder",
                b"part",
                b"liar",
                b"elsewhere",
                b"kind",
                b"deep/",
                b"book",
                b"book.part",
                b"song.part.index",
                b"tale",
                b"tale.part",
                b".d7a13d148eb05ea057024bef468d20e3.part",
                b"../y/",
            ];
            Some(names.join(&0))
        }
        [b"out"] => Some(b"x\0".to_vec()),
        [b"deep", ..] => Some(b"deep/\0".to_vec()),
        _ => None,
    }
}

fn answer(interest: &Interest<'_>) -> Vec<u8> {
    let asked = interest.name();
    let path: Vec<Vec<u8>> =
        asked.components().skip(1).take_while(|one| one.type_number == 8).map(|one| one.value.to_vec()).collect();
    let listing = listing_of(&path);
    let content = listing.as_deref().unwrap_or(b"evil");
    let null = |builder: &DataBuilder<'_>| builder.sign_with(signature_type::NULL, None, |_| Vec::new());
    if asked.last() != Some(METADATA) {
        return null(&DataBuilder::new(asked).final_segment(0).content(content));
    }
    let last = path.last().map(|name| &name[..]);
    let mut versioned_name = if last == Some(b"elsewhere") { name("/evil/good") } else { asked.parent().to_buf() };
    if listing.is_some() {
        versioned_name.push(LISTING);
    }
    versioned_name.push_version(1);
    let mode = match (&listing, last) {
        (_, Some(b"kind")) => 0o020_666,
        (Some(_), _) => 0o047_777,
        _ => 0o107_777,
    };
    let size_bytes = Some(if last == Some(b"liar") { 5 } else { content.len() as u64 });
    let (last_segment, segment_bytes, mtime_ns) = (Some(0), Some(8000), 1);
    let (atime_ns, btime_ns, ctime_ns) = (None, None, None);
    let metadata = FileMetadata {
        versioned_name,
        last_segment,
        segment_bytes,
        size_bytes,
        mode,
        atime_ns,
        btime_ns,
        ctime_ns,
        mtime_ns,
    };
    let mut name: NameBuf = asked.to_buf();
    name.push_version(1).push_segment(0);
    null(&DataBuilder::new(name).freshness_ms(1).final_segment(0).content(&metadata.encode()))
}

async fn produce(client: &Client) {
    let mut interests = client.interests(&name("/evil")).await.unwrap();
    tokio::spawn(async move {
        while let Some(incoming) = interests.next().await {
            let wire = answer(&incoming.interest());
            incoming.respond(&wire).await.unwrap();
        }
    });
}

/// All paths below a folder, links not followed.
fn everything_in(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(path) = waiting.pop() {
        if fs::symlink_metadata(&path).unwrap().is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        all.push(path.strip_prefix(folder).unwrap().to_owned());
    }
    all.sort();
    all
}

/// What is said of each entry that is refused.
fn reasons(target: &Path) -> Vec<(String, String)> {
    let place = |name: &str| target.join(name).display().to_string();
    let taken = |name: &str, what: &str| format!("{} is {what}, which is not replaced", place(name));
    let slash = "the name has a slash; it is not fetched".to_owned();
    let dots = "the name leads to another folder; it is not fetched".to_owned();
    let empty = "the name is empty; it is not fetched".to_owned();
    let mut said = vec![
        ("../x".to_owned(), slash.clone()),
        ("..".to_owned(), dots.clone()),
        (".".to_owned(), dots),
        ("/abs".to_owned(), slash.clone()),
        ("a/b".to_owned(), slash.clone()),
        ("a/../../x".to_owned(), slash.clone()),
        (String::new(), empty.clone()),
        ("/".to_owned(), empty),
        ("n".repeat(256), "the name has 256 bytes, more than 255; it is not fetched".to_owned()),
        ("good".to_owned(), "the name is twice in the listing; it is not fetched".to_owned()),
        ("out".to_owned(), taken("out", "a symbolic link")),
        ("link".to_owned(), taken("link", "a symbolic link")),
        ("pipe".to_owned(), taken("pipe", "a FIFO")),
        ("folder".to_owned(), taken("folder", "a folder")),
        ("part".to_owned(), taken("part.part", "a symbolic link")),
        ("liar".to_owned(), "4 bytes came, and the metadata announce 5".to_owned()),
        ("elsewhere".to_owned(), "the metadata names something else than a version of what was asked for".to_owned()),
        ("kind".to_owned(), "it is neither a file nor a folder (mode 20666)".to_owned()),
        ("deep/deep/deep".to_owned(), "it is in more than 2 folders".to_owned()),
        (
            "song.part.index".to_owned(),
            "its name is that of the index of an unfinished file; it is not fetched".to_owned(),
        ),
        (
            "tale".to_owned(),
            "other entries have the names that its unfinished file could have; it is not fetched".to_owned(),
        ),
        ("../y/".to_owned(), "the listing ends within the name; it is not fetched".to_owned()),
    ];
    said.sort();
    said
}

/// A producer of `/stream`: a folder with a good file, a file and a folder whose segments do not say which is the last,
/// and a file without size that never ends.
fn answer_with_streams(interest: &Interest<'_>) -> Option<Vec<u8>> {
    let asked = interest.name();
    let path: Vec<&[u8]> =
        asked.components().skip(1).take_while(|one| one.type_number == 8).map(|one| one.value).collect();
    let last = path.last().copied().unwrap_or_default();
    let segment = asked.last().and_then(|last| last.segment());
    let content: &[u8] = if path.is_empty() { b"good\0cut\0growing\0open/\0" } else { b"data" };
    if let Some(segment) = segment {
        let data = DataBuilder::new(asked).content(content);
        return match last {
            b"cut" | b"open" if segment > 0 => None,
            b"cut" | b"open" | b"growing" => Some(data.sign_digest()),
            _ => Some(data.final_segment(0).sign_digest()),
        };
    }
    let is_folder = path.is_empty() || last == b"open";
    let mut versioned_name = asked.parent().to_buf();
    if is_folder {
        versioned_name.push(LISTING);
    }
    versioned_name.push_version(1);
    let metadata = FileMetadata {
        versioned_name,
        last_segment: None,
        segment_bytes: None,
        size_bytes: (!is_folder && last != b"growing").then_some(if last == b"good" { 4 } else { 1000 }),
        mode: if is_folder { 0o040_755 } else { 0o100_644 },
        atime_ns: None,
        btime_ns: None,
        ctime_ns: None,
        mtime_ns: 1,
    };
    let mut name: NameBuf = asked.to_buf();
    name.push_version(1).push_segment(0);
    Some(DataBuilder::new(name).freshness_ms(1).final_segment(0).content(&metadata.encode()).sign_digest())
}

/// The story: such an entry was taken for a stream that a producer still writes, and waited for as long as it lived.
#[tokio::test]
async fn what_has_no_end_is_refused_and_does_not_hold_up_the_fetch() {
    let network = Network::start();
    let producer = network.client().await;
    let mut interests = producer.interests(&name("/stream")).await.unwrap();
    tokio::spawn(async move {
        while let Some(incoming) = interests.next().await {
            if let Some(wire) = answer_with_streams(&incoming.interest()) {
                incoming.respond(&wire).await.unwrap();
            }
        }
    });
    let copy = network.directory.path().join("copy");
    let fetch_options = FetchOptions { retries_max: 1, ..FetchOptions::default() };
    let options = FolderFetchOptions { fetch: fetch_options, ..FolderFetchOptions::default() };
    let fetched = fetch(&network.client().await, "/stream", &copy, options).await;
    let why = "it has no end: none of its segments says which is the last";
    let refused = ["cut", "growing", "open"].map(|entry| (entry.to_owned(), why.to_owned()));
    assert_eq!(fetched.refused, refused);
    assert_eq!(fetched.result.unwrap().files_written, 1);
    assert_eq!(everything_in(&copy), ["", "good", "open"].map(PathBuf::from));
}

#[tokio::test]
async fn nothing_is_written_outside_the_target_and_each_attempt_is_said() {
    let network = Network::start();
    let world = network.directory.path().join("world");
    let (target, outside) = (world.join("target"), world.join("outside"));
    fs::create_dir_all(target.join("folder")).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), b"precious").unwrap();
    symlink("../outside", target.join("out")).unwrap();
    symlink("../outside/file", target.join("link")).unwrap();
    symlink("../outside/new", target.join("part.part")).unwrap();
    let fifo = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR);
    rustix::fs::mknodat(rustix::fs::CWD, target.join("pipe"), fifo.0, fifo.1, 0).unwrap();
    let before = everything_in(&world);
    let producer = network.client().await;
    produce(&producer).await;
    let options = FolderFetchOptions { depth_max: 2, is_preserving: true, ..FolderFetchOptions::default() };
    let fetched = fetch(&network.client().await, "/evil", &target, options).await;

    let progress = fetched.result.unwrap();
    assert_eq!((progress.files_written, progress.refused), (5, fetched.refused.len() as u64));
    assert!(progress.unverified_segments > 0, "Null signatures are taken, and counted");
    let mut expected = before;
    let tale_part = "target/.d7a13d148eb05ea057024bef468d20e3.part";
    let folders = ["target/deep", "target/deep/deep", "target/deep/deep/deep"];
    expected.extend(folders.map(PathBuf::from));
    expected
        .extend(["target/good", "target/book", "target/book.part", "target/tale.part", tale_part].map(PathBuf::from));
    expected.sort();
    assert_eq!(everything_in(&world), expected);
    assert_eq!(fs::read(target.join("good")).unwrap(), b"evil");
    assert_eq!(fs::read(outside.join("file")).unwrap(), b"precious");
    let mode = |place: &str| {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(target.join(place)).unwrap().mode() & 0o7777
    };
    assert_eq!((mode("good"), mode("deep")), (0o777, 0o777));

    assert_eq!(fetched.refused, reasons(&target));
}
