//! A folder for a repository: which Data are all of it, and who answers while the repository fetches them?
//!
//! A repository keeps Data and makes none. So the folder is taken as it is now: the metadata of each file and folder
//! become packets that stay as they are, and the contents and listings are objects of segments, as
//! [`crate::folder_server`] serves them. Whoever has all of them can answer `get -r`, except that metadata in a
//! repository are not fresh any more ([`crate::folder_fetch::FolderFetchOptions::accepts_stale`]).
//!
//! A file that changes before the repository has fetched it is refused: its version is gone.
//!
//! Limits: [`ENTRIES_MAX`] files and folders. Memory: for each of them its metadata and two names, some 600 bytes.

use crate::{
    entry_name::EntryPath,
    folder_server::{FolderOptions, FolderServer, Survey, answer_all},
    listing::Listing,
};
use namewire_client::{Client, InterestStream, NameBuf, Reply, RespondError, ServeError};
use namewire_packet::Interest;
use std::{collections::HashMap, io, path::Path, sync::Arc};

/// Files and folders of one folder, at most.
pub const ENTRIES_MAX: usize = 1_000_000;

/// Data to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredObject {
    /// The name of the packet, or of the segments without their numbers.
    pub name: NameBuf,
    /// The number of the last segment; `None`: it is one packet.
    pub last_segment: Option<u64>,
}

impl StoredObject {
    /// Packets of the object.
    pub fn packets(&self) -> u64 {
        self.last_segment.map_or(1, |last| last + 1)
    }
}

/// A folder that is being stored.
pub struct StoredFolder {
    server: FolderServer,
    objects: Vec<StoredObject>,
    /// By name.
    metadata: HashMap<Box<[u8]>, Arc<[u8]>>,
    survey: Survey,
}

impl StoredFolder {
    /// Looks at all that is in the folder at `path`, which gets the name `name`.
    ///
    /// # Errors
    /// If something in it cannot be read, or has a name too long for a packet, or there are more than [`ENTRIES_MAX`]
    /// files and folders.
    pub fn open(path: &Path, name: &NameBuf, options: FolderOptions) -> io::Result<Self> {
        let mut server = FolderServer::open(path, name, options)?;
        let survey = server.survey()?;
        let (mut objects, mut metadata) = (Vec::new(), HashMap::new());
        let mut waiting = vec![EntryPath::default()];
        while let Some(entry) = waiting.pop() {
            let snapshot = server.snapshot(&entry)?;
            if let Some(listing) = snapshot.listing {
                let listing = Listing::parse(&listing, ENTRIES_MAX);
                waiting.extend(listing.entries.into_iter().map(|listed| entry.join(listed.name)));
            }
            if objects.len() / 2 + waiting.len() >= ENTRIES_MAX {
                return Err(io::Error::other(format!("it has more than {ENTRIES_MAX} files and folders")));
            }
            metadata.insert(snapshot.metadata_name.value().into(), snapshot.metadata);
            objects.push(StoredObject { name: snapshot.metadata_name, last_segment: None });
            objects.push(StoredObject { name: snapshot.versioned_name, last_segment: Some(snapshot.last_segment) });
        }
        // Metadata that are stored lead to what is stored, and folders to what is in them.
        objects.reverse();
        Ok(StoredFolder { server, objects, metadata, survey })
    }

    /// What is to be stored.
    pub fn objects(&self) -> &[StoredObject] {
        &self.objects
    }

    /// Files and their bytes.
    pub fn survey(&self) -> Survey {
        self.survey
    }

    /// Registers the folder's name, and opens the stream of its Interests.
    ///
    /// # Errors
    /// If the client serves this name already, or the forwarder refuses the route.
    pub async fn register(&self, client: &Client) -> Result<InterestStream, ServeError> {
        self.server.register(client).await
    }

    /// Answers Interests until the stream ends.
    ///
    /// # Errors
    /// If an answer cannot be sent.
    pub async fn serve(&mut self, interests: &mut InterestStream) -> Result<(), RespondError> {
        let StoredFolder { server, metadata, .. } = self;
        answer_all(interests, |interest| answer(metadata, server, interest)).await
    }
}

fn answer(metadata: &HashMap<Box<[u8]>, Arc<[u8]>>, server: &mut FolderServer, interest: &Interest<'_>) -> Reply {
    match metadata.get(interest.name().value()) {
        Some(wire) => Reply::Data(Arc::clone(wire)),
        None => server.answer(interest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::{Data, InterestBuilder};
    use std::{collections::BTreeSet, fs};

    #[test]
    fn a_folder_is_all_of_its_metadata_and_contents_and_answers_for_each() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(folder.path().join("a"), vec![7; 20_000]).unwrap();
        fs::write(folder.path().join("sub/empty"), b"").unwrap();
        let name: NameBuf = "/f".parse().unwrap();
        let mut stored = StoredFolder::open(folder.path(), &name, FolderOptions::default()).unwrap();
        let objects = stored.objects().to_vec();
        let (contents, metadata): (Vec<_>, Vec<_>) = objects.iter().partition(|object| object.last_segment.is_some());
        let text = |object: &&StoredObject| object.name.to_string();
        let paths = |objects: &[&StoredObject], ending: &str| {
            let path = |object: &&StoredObject| text(object).split(ending).next().unwrap().to_owned();
            objects.iter().map(path).collect::<BTreeSet<_>>()
        };
        let expected = ["/f", "/f/a", "/f/sub", "/f/sub/empty"].map(str::to_owned);
        assert_eq!(paths(&metadata, "/32=metadata"), expected.clone().into());
        let listings = ["/f/32=ls", "/f/a", "/f/sub/32=ls", "/f/sub/empty"].map(str::to_owned);
        assert_eq!(paths(&contents, "/v="), listings.into());
        let packets: u64 = objects.iter().map(StoredObject::packets).sum();
        assert_eq!(packets, 4 + 3 + 3, "four metadata, three segments of a, and one of each other");
        for object in &objects {
            let mut asked = object.name.clone();
            if let Some(last) = object.last_segment {
                asked.push_segment(last);
            }
            let wire = InterestBuilder::new(asked.clone()).build();
            let interest = Interest::parse(&wire).unwrap();
            let Reply::Data(data) = answer(&stored.metadata, &mut stored.server, &interest) else { panic!("{asked}") };
            assert_eq!(Data::parse(&data).unwrap().name().to_buf(), asked);
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let name: NameBuf = "/f".parse().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        assert!(StoredFolder::open(&folder.path().join("none"), &name, FolderOptions::default()).is_err());
    }
}
