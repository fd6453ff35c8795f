//! The state of a served folder that its manifest covers (file `folder_manifest.rs`): what is in it, in which version,
//! and which digests lead to it?
//!
//! A snapshot has all files and folders. It is made by a walk, in which the content of a file is read if the file has
//! changed since the last walk, and of no other file. A folder has another version when anything below it has changed:
//! its manifest lists other digests then. The version is the latest time of change of all that is in it, or one more
//! than the last, so it grows over restarts too. (The time of the inode counts, because permissions are listed.)
//!
//! The producer walks again when the metadata of a folder is asked for, but not before ten times as long has passed as
//! the last walk took: a walk holds up the answers. In between, the folder is served as it was.
//!
//! Cost: a walk makes some ten system calls for each entry. Memory: some 300 bytes for each entry.
//! Limits: [`ENTRIES_MAX`] entries, [`DEPTH_MAX`] folders in each other. An entry that cannot be read, or that changes
//! while it is read, is in no manifest until the next walk.

use crate::{
    entry_name::EntryPath,
    folder_manifest::state_digest,
    listing::Listing,
    request::{LISTING, name_of},
    segment_form::SegmentForm,
    served_object::{Object, Refusal, Source},
    served_tree::{Content, DEPTH_MAX, Facts, ServedTree, list},
};
use namewire_client::manifest::Digest;
use namewire_packet::NameBuf;
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

/// Most entries of all folders together.
pub(crate) const ENTRIES_MAX: usize = 1_000_000;
/// A walk is not repeated before this many times its duration.
const REST_FACTOR: u32 = 10;

/// A file or folder at the last walk.
pub(crate) struct Node {
    pub(crate) facts: Facts,
    pub(crate) version: u64,
    /// What the manifest of the folder around it says of its content.
    content: Digest,
    /// Latest change of anything in it.
    changed_ns: u64,
    folder: Option<FolderNode>,
}

/// What a folder has besides.
struct FolderNode {
    listing: Arc<[u8]>,
    /// State and content of each entry, in the order of the listing.
    entries: Arc<[Digest]>,
}

impl Node {
    /// Its content. A file is opened, and must be as it was.
    pub(crate) fn source(&self, tree: &ServedTree, path: &EntryPath) -> Result<Source, Refusal> {
        if let Some(folder) = &self.folder {
            return Ok(Source::Listing(Arc::clone(&folder.listing)));
        }
        match tree.look(path)? {
            (Content::File(file), now) if now.identity == self.facts.identity => {
                Ok(Source::File(Arc::new(file), now.identity))
            }
            _ => Err(Refusal::Gone),
        }
    }

    /// Digests of its entries, for the manifest; none of a file.
    pub(crate) fn entries(&self) -> &[Digest] {
        self.folder.as_ref().map_or(&[], |folder| &folder.entries)
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.folder.is_some()
    }
}

/// A served folder with digests of all that is in it.
pub(crate) struct SignedTree {
    nodes: HashMap<EntryPath, Node>,
    walked_at: Instant,
    walk_took: Duration,
}

impl SignedTree {
    /// Reads all of the folder `name`.
    ///
    /// # Errors
    /// If the folder itself cannot be read, or has more than [`ENTRIES_MAX`] entries.
    pub(crate) fn read(tree: &ServedTree, name: &NameBuf, form: &SegmentForm) -> Result<Self, Refusal> {
        let mut signed = SignedTree { nodes: HashMap::new(), walked_at: Instant::now(), walk_took: Duration::ZERO };
        signed.walk(tree, name, form)?;
        Ok(signed)
    }

    /// Walks again if the last walk is old enough. If that fails, the folder is served as it was.
    pub(crate) fn refresh(&mut self, tree: &ServedTree, name: &NameBuf, form: &SegmentForm) {
        if self.walked_at.elapsed() >= self.walk_took * REST_FACTOR {
            // The next walk may find what this one did not.
            let _ = self.walk(tree, name, form);
        }
    }

    pub(crate) fn get(&self, path: &EntryPath) -> Option<&Node> {
        self.nodes.get(path)
    }

    fn walk(&mut self, tree: &ServedTree, name: &NameBuf, form: &SegmentForm) -> Result<(), Refusal> {
        let start = Instant::now();
        let mut walk = Walk { tree, name, form, last: &self.nodes, nodes: HashMap::with_capacity(self.nodes.len()) };
        let walked = walk.visit(&EntryPath::default());
        let nodes = walk.nodes;
        (self.walked_at, self.walk_took) = (Instant::now(), start.elapsed());
        walked?;
        self.nodes = nodes;
        Ok(())
    }
}

/// A walk in progress.
struct Walk<'a> {
    tree: &'a ServedTree,
    name: &'a NameBuf,
    form: &'a SegmentForm,
    last: &'a HashMap<EntryPath, Node>,
    nodes: HashMap<EntryPath, Node>,
}

impl Walk<'_> {
    /// Takes the file or folder at `path`, and returns its digests.
    fn visit(&mut self, path: &EntryPath) -> Result<[Digest; 2], Refusal> {
        if path.depth() > DEPTH_MAX || self.nodes.len() >= ENTRIES_MAX {
            return Err(Refusal::FolderTooLarge);
        }
        let (content, mut facts) = self.tree.look(path)?;
        let (object, node) = match content {
            Content::File(file) => self.file(path, facts, Source::File(Arc::new(file), facts.identity))?,
            Content::Folder(folder) => {
                let listing = list(&folder, &mut facts)?;
                self.folder(path, facts, &listing)?
            }
        };
        let digests = [state_digest(&object.metadata(&facts)), node.content];
        self.nodes.insert(path.clone(), node);
        Ok(digests)
    }

    fn file(&self, path: &EntryPath, facts: Facts, source: Source) -> Result<(Object, Node), Refusal> {
        let last = self.last.get(path).filter(|last| !last.is_folder());
        let version = next_version(last, facts.identity.mtime_ns, |last| last.facts.identity == facts.identity);
        let mut versioned_name = name_of(self.name, path);
        versioned_name.push_version(version);
        let object = self.object(source, versioned_name, facts.identity.size_bytes)?;
        let content = match last {
            Some(last) if last.version == version => last.content,
            _ => self.form.content_of_file(&object)?,
        };
        let changed_ns = version.max(facts.ctime_ns);
        Ok((object, Node { facts, version, content, changed_ns, folder: None }))
    }

    fn folder(&mut self, path: &EntryPath, facts: Facts, listing: &[u8]) -> Result<(Object, Node), Refusal> {
        let mut entries = Vec::new();
        let mut changed_ns = facts.identity.mtime_ns.max(facts.ctime_ns);
        for entry in Listing::parse(listing, ENTRIES_MAX).entries {
            let path = path.join(entry.name);
            match self.visit(&path) {
                Ok(digests) => entries.extend(digests),
                Err(Refusal::FolderTooLarge) if self.nodes.len() >= ENTRIES_MAX => return Err(Refusal::FolderTooLarge),
                Err(_) => {} // the others can be served
            }
            changed_ns = changed_ns.max(self.nodes.get(&path).map_or(0, |node| node.changed_ns));
        }
        let is_same = |last: &Node| {
            last.folder.as_ref().is_some_and(|last| *last.listing == *listing && *last.entries == *entries)
        };
        let version = next_version(self.last.get(path), changed_ns, is_same);
        let mut versioned_name = name_of(self.name, path);
        versioned_name.push(LISTING).push_version(version);
        let listing: Arc<[u8]> = listing.into();
        let object = self.object(Source::Listing(Arc::clone(&listing)), versioned_name, listing.len() as u64)?;
        let content = self.form.content_of_folder(&object, &entries)?;
        let folder = Some(FolderNode { listing, entries: entries.into() });
        Ok((object, Node { facts, version, content, changed_ns, folder }))
    }

    fn object(&self, source: Source, versioned_name: NameBuf, size_bytes: u64) -> Result<Object, Refusal> {
        let segment_bytes = self.form.segment_bytes(&versioned_name)?;
        Ok(Object { source, versioned_name, size_bytes, segment_bytes })
    }
}

/// The version of what was `last` at the last walk, and has changed at `changed_ns`.
fn next_version(last: Option<&Node>, changed_ns: u64, is_same: impl FnOnce(&Node) -> bool) -> u64 {
    match last {
        Some(last) if is_same(last) => last.version,
        Some(last) => changed_ns.max(last.version.saturating_add(1)),
        None => changed_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry_name::EntryName;
    use namewire_client::security::Signer;
    use std::{fs, path::Path};

    fn path(text: &str) -> EntryPath {
        text.split('/').map(|one| EntryName::new(one.as_bytes()).unwrap()).collect()
    }

    /// A folder `a` with files `a/large` and `a/small`, and what is read of them.
    struct Example {
        directory: tempfile::TempDir,
        name: NameBuf,
        form: SegmentForm,
    }

    impl Example {
        fn new() -> Example {
            let directory = tempfile::tempdir().unwrap();
            fs::create_dir(directory.path().join("a")).unwrap();
            fs::write(directory.path().join("a/large"), [1; 5000]).unwrap();
            fs::write(directory.path().join("a/small"), [2; 50]).unwrap();
            let form = SegmentForm::new(1000, 1000, Signer::digest()).unwrap();
            Example { directory, name: "/p".parse().unwrap(), form }
        }

        fn root(&self) -> &Path {
            self.directory.path()
        }

        fn read(&self) -> SignedTree {
            SignedTree::read(&ServedTree::new(self.root()), &self.name, &self.form).unwrap()
        }

        fn walk(&self, signed: &mut SignedTree) {
            signed.walk(&ServedTree::new(self.root()), &self.name, &self.form).unwrap();
        }
    }

    fn state(signed: &SignedTree, place: &str) -> (u64, Digest) {
        let node = signed.get(&if place.is_empty() { EntryPath::default() } else { path(place) }).unwrap();
        (node.version, node.content)
    }

    #[test]
    fn a_file_that_has_not_changed_is_not_read_again() {
        let example = Example::new();
        let mut signed = example.read();
        let before = ["", "a", "a/large", "a/small"].map(|place| state(&signed, place));
        example.walk(&mut signed);
        assert_eq!(["", "a", "a/large", "a/small"].map(|place| state(&signed, place)), before);
        // Nothing but its content shows that this one has changed.
        let small = example.root().join("a/small");
        let time = fs::metadata(&small).unwrap().modified().unwrap();
        fs::write(&small, [3; 50]).unwrap();
        fs::File::options().write(true).open(&small).unwrap().set_modified(time).unwrap();
        fs::write(example.root().join("a/large"), [1; 5001]).unwrap();
        example.walk(&mut signed);
        assert_eq!(state(&signed, "a/small"), before[3]);
        for (place, before) in ["", "a", "a/large"].into_iter().zip(before) {
            let now = state(&signed, place);
            assert!(now.0 > before.0 && now.1 != before.1, "{place}");
        }
    }

    /// The story: after a restart, the version of a folder was the time of its last new entry, so caches had another
    /// manifest of the same name.
    #[test]
    fn versions_of_folders_grow_over_a_restart() {
        let example = Example::new();
        let first = state(&example.read(), "");
        let later = std::time::SystemTime::now() + Duration::from_secs(5);
        let large = fs::File::options().write(true).open(example.root().join("a/large")).unwrap();
        large.set_modified(later).unwrap();
        let second = state(&example.read(), "");
        assert!(second.0 > first.0 && second.1 != first.1);
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        let example = Example::new();
        let mut deep = example.root().join("a");
        (0..=DEPTH_MAX).for_each(|_| deep.push("d"));
        fs::create_dir_all(&deep).unwrap();
        let signed = example.read();
        assert_eq!(
            signed.nodes.len(),
            4 + DEPTH_MAX - 1,
            "a file, a file, two folders and those that are not too deep"
        );
        assert_eq!(signed.get(&path("a")).unwrap().entries().len(), 6);
    }
}
