//! Folders that one signature covers.

use crate::network::{Network, fetch, name, preserving};
use namewire_client::{
    Client, Component, Data, DataBuilder, FetchOptions, NameBuf, SegmentFetch, Validator,
    security::{PrivateKey, Signer, ValidityPeriod, issue_certificate, trust::AnchorCertificate},
};
use namewire_files::{folder_fetch::FolderFetchOptions, folder_server::FolderOptions, metadata::FileMetadata};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

/// A key of `/folder`, and what trusts it.
fn key() -> (Signer, Arc<Validator>) {
    let (key, key_name) = (PrivateKey::generate_ecdsa().unwrap(), name("/folder/KEY/1"));
    let spki = key.public_key().spki().to_vec();
    let signer = Signer::private_key(key, key_name.clone());
    let always = ValidityPeriod { not_before_ms: 0, not_after_ms: 4_000_000_000_000 };
    let issuer = Component::generic(b"self");
    let certificate = issue_certificate(&signer, key_name.as_name(), &spki, issuer, 1, always).unwrap();
    let anchor = AnchorCertificate::parse(certificate.wire().to_vec()).unwrap();
    (signer, Arc::new(Validator::hierarchical([anchor])))
}

struct Place {
    network: Network,
    source: PathBuf,
    copy: PathBuf,
    validator: Arc<Validator>,
    options: FolderOptions,
}

impl Place {
    /// Files of no, one and several segments, more entries than a packet of a manifest lists, and folders.
    fn new() -> Place {
        let network = Network::start();
        let (source, copy) = (network.directory.path().join("source"), network.directory.path().join("copy"));
        fs::create_dir_all(source.join("inner/empty")).unwrap();
        fs::create_dir(source.join("many")).unwrap();
        (0..300).for_each(|number| fs::write(source.join(format!("many/{number}")), [number as u8; 3]).unwrap());
        for (place, size) in [("nothing", 0), ("small", 700), ("inner/small", 900), ("inner/large", 300_000)] {
            fs::write(source.join(place), vec![size as u8; size]).unwrap();
        }
        let (signer, validator) = key();
        let options = FolderOptions { segment_bytes: 1000, signer, has_manifest: true, ..FolderOptions::default() };
        Place { network, source, copy, validator, options }
    }

    fn checked(&self) -> FolderFetchOptions {
        let fetch = FetchOptions { validator: Some(Arc::clone(&self.validator)), ..FetchOptions::default() };
        FolderFetchOptions { fetch, ..preserving() }
    }

    fn assert_same(&self, copy: &Path) {
        let compared = Command::new("diff").arg("-r").arg(&self.source).arg(copy).output().unwrap();
        assert!(compared.status.success(), "{compared:?}");
    }

    /// What a fetch refuses from a producer whose packets `change` has changed.
    async fn refused(self, change: impl FnMut(NameBuf, Vec<u8>) -> Vec<u8> + Send + 'static) -> Vec<(String, String)> {
        let served = self.network.serve_changed(&self.source, self.options.clone(), change).await;
        let fetched = fetch(&self.network.client().await, "/folder", &self.copy, self.checked()).await;
        served.stop().await;
        match fetched.result {
            Ok(_) => fetched.refused,
            Err(error) => vec![(".".to_owned(), error.to_string())],
        }
    }
}

/// The packet `wire` with other content, signed as anybody can.
fn forged(wire: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let data = Data::parse(wire).unwrap();
    let mut content = data.content().to_vec();
    change(&mut content);
    let mut forged = DataBuilder::new(data.name().to_buf())
        .content_type(data.content_type())
        .freshness_ms(data.freshness_ms())
        .content(&content);
    if let Some(last) = data.final_block_id().and_then(|last| last.segment()) {
        forged = forged.final_segment(last);
    }
    forged.sign_digest()
}

fn flip(content: &mut [u8]) {
    content[2] ^= 1;
}

#[tokio::test]
async fn one_signature_covers_a_folder() {
    let place = Place::new();
    let served = place.network.serve(&place.source, place.options.clone(), |_| ()).await;
    let client = place.network.client().await;
    let progress = fetch(&client, "/folder", &place.copy, place.checked()).await.whole();
    assert_eq!((progress.files_written, progress.folders, progress.unverified_segments), (304, 4, 0));
    place.assert_same(&place.copy);
    let again = fetch(&client, "/folder", &place.copy, place.checked()).await.whole();
    assert_eq!((again.files_written, again.files_present), (0, 304));
    // Without an anchor, as clients that know no manifests.
    let plain = place.network.directory.path().join("plain");
    fetch(&client, "/folder", &plain, FolderFetchOptions::default()).await.whole();
    place.assert_same(&plain);
    // An inner folder, and a file, are objects like others.
    let inner = place.network.directory.path().join("inner");
    assert_eq!(fetch(&client, "/folder/inner", &inner, place.checked()).await.whole().files_written, 2);
    for (file, size) in [("/folder/inner/large", 300_000), ("/folder/small", 700)] {
        assert_eq!(get(&client, file, &place.checked()).await.len(), size);
    }
    let other = FetchOptions { validator: Some(key().1), ..FetchOptions::default() };
    let refused = fetch(&client, "/folder", &inner, FolderFetchOptions { fetch: other, ..preserving() }).await;
    assert!(refused.result.unwrap_err().to_string().contains("not trusted"));
    assert_eq!(served.stop().await.gone, 0);
}

async fn get(client: &Client, uri: &str, options: &FolderFetchOptions) -> Vec<u8> {
    let mut content = Vec::new();
    SegmentFetch::new(client, name(uri), options.fetch.clone()).run(&mut content, |_| ()).await.unwrap();
    content
}

/// Each case is a packet that anybody could have made on the way. It has a router without the others in its cache.
#[tokio::test]
async fn what_was_forged_is_refused_with_the_reason() {
    const LISTED: &str = "what the signed manifest lists";
    const STATE: &str = "the signed manifest of its folder does not list it as it is";
    let is_segment = |name: &NameBuf, of: &str, number: u64| {
        let name = name.to_string();
        name.starts_with(of) && name.ends_with(&format!("/seg={number}")) && !name.contains("32=")
    };
    for (file, number) in [("small", 0), ("inner/large", 0), ("inner/large", 200)] {
        let of = format!("/folder/{file}/");
        let change = move |name: NameBuf, wire: Vec<u8>| match is_segment(&name, &of, number) {
            true => forged(&wire, |content| flip(content)),
            false => wire,
        };
        let refused = Place::new().refused(change).await;
        assert!(refused.len() == 1 && refused[0].0 == file && refused[0].1.contains(LISTED), "{refused:?}");
    }
    for (part, entry, why) in [
        ("/folder/inner/large/32=metadata/", "inner/large", STATE),
        ("/folder/inner/32=metadata/", "inner", STATE),
        ("/folder/inner/32=ls/v=", "inner", LISTED),
        ("/folder/32=ls/v=", ".", LISTED),
        ("/folder/32=metadata/", ".", "not trusted"),
    ] {
        let change = move |name: NameBuf, wire: Vec<u8>| {
            let name = name.to_string();
            if !name.starts_with(part) || name.contains("32=manifest") {
                return wire;
            }
            forged(&wire, |content| match FileMetadata::parse(content) {
                Ok(metadata) => {
                    *content = FileMetadata { mode: metadata.mode | 0o111, mtime_ns: 7, ..metadata }.encode()
                }
                Err(_) => flip(content),
            })
        };
        let refused = Place::new().refused(change).await;
        assert!(refused.len() == 1 && refused[0].0 == entry && refused[0].1.contains(why), "{part}: {refused:?}");
    }
    for (part, entry, why) in [
        ("/folder/32=ls/", ".", "not trusted"),
        ("/folder/many/32=ls/", "many", LISTED),
        ("/folder/inner/large/", "inner/large", LISTED),
    ] {
        let change = move |name: NameBuf, wire: Vec<u8>| {
            let name = name.to_string();
            match name.starts_with(part) && name.contains("32=manifest") {
                true => forged(&wire, |content| flip(content)),
                false => wire,
            }
        };
        let refused = Place::new().refused(change).await;
        assert!(refused.len() == 1 && refused[0].0 == entry && refused[0].1.contains(why), "{part}: {refused:?}");
    }
}

/// The names leave room for fewer digests in a packet.
#[tokio::test]
async fn long_paths_have_manifests() {
    let place = Place::new();
    let mut deep = place.source.clone();
    (0..12).for_each(|_| deep.push("d".repeat(255)));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("file"), vec![5; 500_000]).unwrap();
    let served = place.network.serve(&place.source, place.options.clone(), |_| ()).await;
    fetch(&place.network.client().await, "/folder", &place.copy, place.checked()).await.whole();
    place.assert_same(&place.copy);
    served.stop().await;
}

/// The root's version and manifest follow a change three folders below, which changes no listing.
#[tokio::test]
async fn a_change_deep_inside_is_a_new_version_of_all_folders_around_it() {
    let place = Place::new();
    let served = place.network.serve(&place.source, place.options.clone(), |_| ()).await;
    let client = place.network.client().await;
    fetch(&client, "/folder", &place.copy, place.checked()).await.whole();
    fs::write(place.source.join("inner/large"), vec![9; 200_000]).unwrap();
    // The walk is made when the metadata is asked for, and is not repeated at once.
    let mut attempts = 0;
    loop {
        let fetched = fetch(&client, "/folder", &place.copy, place.checked()).await;
        if fs::read(place.copy.join("inner/large")).unwrap().len() == 200_000 {
            break place.assert_same(&place.copy);
        }
        attempts += 1;
        assert!(attempts < 1000, "{:?}", fetched.refused);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    served.stop().await;
}
