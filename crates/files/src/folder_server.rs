//! Serves a folder: which Data answers this Interest?
//!
//! The protocol is that of the file servers of NDN-DPDK and ndn6-tools; `request.rs` lists the names,
//! [`crate::metadata`] and [`crate::listing`] the contents. Regular files and folders are served. Everything else is
//! answered at once with an application Nack (Data of ContentType 3 under the Interest's name, FreshnessPeriod
//! [`NACK_FRESHNESS_MS`]) whose content says why in a few words.
//!
//! **Versions.** Each metadata request looks at the disk, so metadata always describes what is there. The version is
//! the time of the last change, in nanoseconds. If a file or listing differs from its last known state and has no later
//! time, the version is one more than the last. (File systems count time in ticks, and copies may keep an old time.)
//!
//! A folder is listed again when its time has changed. If it was listed within [`SETTLED`] of a change, it is listed
//! again in any case, because another change may have the same time.
//!
//! **Changes while a version is fetched.** A replaced file (a rename) is read on from its open descriptor. A file that
//! is changed in place ends its version: size and time are compared after each read, and the answer is an application
//! Nack. Segments that were built before go on from memory.
//!
//! Segments are built on their first request and kept. Files are read in place, a segment at a time: the page cache
//! answers in microseconds, faster than another thread could.
//!
//! **With a manifest** (file `folder_manifest.rs`) the folder is served as it was at the last walk over all of it (file
//! `signed_tree.rs`).
//!
//! Limits: [`FolderOptions`] bounds open files, bytes of listings and bytes of segments; [`VERSIONS_KEPT`] last
//! versions are known.

pub use crate::served_tree::Survey;
use crate::{
    bounded::Bounded,
    entry_name::EntryPath,
    request::{LISTING, METADATA, Part, Request, name_of},
    segment_form::SegmentForm,
    served_object::{Object, Refusal, Source},
    served_tree::{Content, Facts, Identity, ServedTree, list},
    signed_tree::{Node, SignedTree},
};
use namewire_client::{
    Client, InterestStream, Reply, ReplyBatch, RespondError, ServeError,
    object_protocol::{METADATA_FRESHNESS_MS, NACK_FRESHNESS_MS},
    security::Signer,
    segment_publish::SEGMENT_BYTES_DEFAULT,
};
use namewire_packet::{DataBuilder, Interest, MAX_PACKET_BYTES, NameBuf, content_type};
use std::{
    io,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Paths whose last version is known.
pub const VERSIONS_KEPT: usize = 65_536;
/// What a listing weighs besides its bytes: name, version and places in the memory of listings.
const LISTING_WEIGHT: usize = 512;
/// The clock of a file system has moved on after this time.
const SETTLED: Duration = Duration::from_millis(100);
/// Interests that are answered with one call.
const SERVED_TOGETHER_MAX: usize = 64;

/// How a folder is served.
#[derive(Clone, Debug)]
pub struct FolderOptions {
    /// Bytes of content in each segment, at most; see [`namewire_client::segment_publish::SEGMENT_BYTES_MAX`].
    pub segment_bytes: usize,
    /// FreshnessPeriod of segments, in milliseconds.
    pub freshness_ms: u64,
    /// Bytes of built segments to keep.
    pub segments_bytes_max: usize,
    /// Bytes of listings to keep; each counts for 512 more.
    pub listings_bytes_max: usize,
    /// Files to keep open.
    pub open_files_max: usize,
    /// Signs all Data; with a manifest, all but segments.
    pub signer: Signer,
    /// All of the folder is read at the start, and has a manifest that covers it with one signature.
    pub has_manifest: bool,
    /// Bytes of built manifests to keep; the last one stays even if it has more.
    pub manifests_bytes_max: usize,
}

impl Default for FolderOptions {
    fn default() -> Self {
        FolderOptions {
            segment_bytes: SEGMENT_BYTES_DEFAULT,
            freshness_ms: 10_000,
            segments_bytes_max: 16 * 1024 * 1024,
            listings_bytes_max: 32 * 1024 * 1024,
            open_files_max: 256,
            signer: Signer::digest(),
            has_manifest: false,
            manifests_bytes_max: 64 * 1024 * 1024,
        }
    }
}

/// Counters of a served folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FolderCounters {
    /// Interests received.
    pub interests: u64,
    /// Segments sent, of files and of listings.
    pub segments: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// Metadata packets sent.
    pub metadata: u64,
    /// Interests for what does not exist.
    pub not_found: u64,
    /// Interests for a version that was overwritten, or is no longer known.
    pub gone: u64,
    /// Interests for symbolic links, devices, FIFOs and sockets.
    pub not_served: u64,
    /// Interests for files and folders that cannot be read, or not be put into packets.
    pub unreadable: u64,
    /// Packets that could not be signed; their Interests got no answer.
    pub sign_errors: u64,
}

/// The packets of a manifest.
type Packets = Arc<[Arc<[u8]>]>;

/// The last known state of a file or folder.
#[derive(Clone, Copy)]
struct Known {
    identity: Identity,
    version: u64,
    /// Every later change has another time.
    is_settled: bool,
}

/// A file or folder at one moment.
pub(crate) struct Snapshot {
    pub(crate) metadata_name: NameBuf,
    pub(crate) metadata: Arc<[u8]>,
    /// Of the file, or of the folder's listing.
    pub(crate) versioned_name: NameBuf,
    pub(crate) last_segment: u64,
    /// Of a folder.
    pub(crate) listing: Option<Arc<[u8]>>,
}

/// A folder ready to be served. Keys of all maps are the bytes of names.
pub struct FolderServer {
    tree: ServedTree,
    name: NameBuf,
    options: FolderOptions,
    form: SegmentForm,
    /// With a manifest: the folder as it was at the last walk.
    signed: Option<SignedTree>,
    manifests: Bounded<Box<[u8]>, Packets>,
    files: Bounded<Box<[u8]>, Object>,
    listings: Bounded<Box<[u8]>, Object>,
    segments: Bounded<Box<[u8]>, Arc<[u8]>>,
    /// By the name without version.
    versions: Bounded<Box<[u8]>, Known>,
    counters: FolderCounters,
}

/// Answers Interests until the stream ends.
///
/// # Errors
/// If an answer cannot be sent.
pub(crate) async fn answer_all(
    interests: &mut InterestStream,
    mut answer: impl FnMut(&Interest<'_>) -> Reply,
) -> Result<(), RespondError> {
    let (mut batch, mut replies) = (Vec::new(), ReplyBatch::default());
    while interests.next_batch(&mut batch, SERVED_TOGETHER_MAX).await > 0 {
        for incoming in batch.drain(..) {
            replies.push(&incoming, &answer(&incoming.interest()));
        }
        match interests.client().send_replies(&mut replies).await {
            // The stream comes back with other Interests, or ends.
            Ok(()) | Err(RespondError::Closed(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl FolderServer {
    /// Prepares to serve the folder at `path` under `name`.
    ///
    /// # Errors
    /// If there is no folder that can be read, or the key cannot sign, or the folder is too large for a manifest.
    pub fn open(path: &Path, name: &NameBuf, options: FolderOptions) -> io::Result<Self> {
        std::fs::read_dir(path)?;
        let tree = ServedTree::new(path);
        let signer = if options.has_manifest { Signer::digest() } else { options.signer.clone() };
        let form = SegmentForm::new(options.segment_bytes, options.freshness_ms, signer).map_err(io::Error::other)?;
        let signed = options.has_manifest.then(|| SignedTree::read(&tree, name, &form)).transpose();
        Ok(FolderServer {
            signed: signed.map_err(|refusal| io::Error::other(refusal.words()))?,
            tree,
            name: name.clone(),
            form,
            manifests: Bounded::new(options.manifests_bytes_max),
            files: Bounded::new(options.open_files_max),
            listings: Bounded::new(options.listings_bytes_max),
            segments: Bounded::new(options.segments_bytes_max),
            versions: Bounded::new(VERSIONS_KEPT),
            counters: FolderCounters::default(),
            options,
        })
    }

    /// Counts what the folder holds now. Cost: a walk over all of it.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn survey(&self) -> io::Result<Survey> {
        self.tree.survey()
    }

    /// The name of the folder.
    pub fn name(&self) -> &NameBuf {
        &self.name
    }

    /// The counters since the start.
    pub fn counters(&self) -> FolderCounters {
        self.counters
    }

    /// Registers the name, and opens the stream of its Interests.
    ///
    /// # Errors
    /// If the client serves this name already, or the forwarder refuses the route.
    pub async fn register(&self, client: &Client) -> Result<InterestStream, ServeError> {
        client.interests(&self.name).await
    }

    /// Answers Interests until the stream ends.
    ///
    /// # Errors
    /// If an answer cannot be sent.
    pub async fn serve(&mut self, interests: &mut InterestStream) -> Result<(), RespondError> {
        answer_all(interests, |interest| self.answer(interest)).await
    }

    /// A file or folder as it is now.
    ///
    /// # Errors
    /// If it cannot be read, or its name is too long for a packet.
    pub(crate) fn snapshot(&mut self, path: &EntryPath) -> io::Result<Snapshot> {
        let request = Request { path: path.clone(), is_listing: false, part: Part::Metadata };
        let cannot = |refusal: Refusal| io::Error::other(format!("{path}: {}", refusal.words()));
        let (metadata_name, metadata, object) = self.described(&request).map_err(cannot)?;
        let last_segment = object.last_segment();
        let listing = match object.source {
            Source::Listing(listing) => Some(listing),
            Source::File(..) => None,
        };
        Ok(Snapshot { metadata_name, metadata, versioned_name: object.versioned_name, last_segment, listing })
    }

    /// The answer to `interest`; nothing if it cannot be signed, or no name of a Data would match.
    pub fn answer(&mut self, interest: &Interest<'_>) -> Reply {
        self.counters.interests += 1;
        let name = interest.name();
        if let Some(wire) = self.segments.get(name.value()) {
            let wire = Arc::clone(wire);
            self.count_segment(&wire);
            return Reply::Data(wire);
        }
        let request = self.name.as_name().is_prefix_of(&name).then(|| Request::read(interest, self.name.len()));
        let answer = request.flatten().ok_or(Refusal::NotFound).and_then(|request| self.answer_request(&request));
        match answer {
            Ok(wire) => Reply::Data(wire),
            Err(refusal) => self.refuse(interest, refusal),
        }
    }

    fn answer_request(&mut self, request: &Request) -> Result<Arc<[u8]>, Refusal> {
        match request.part {
            Part::Metadata => self.metadata(request),
            Part::Beginning(None) => {
                let (_, object) = self.look(request)?;
                self.segment(&object, 0)
            }
            Part::Beginning(Some(version)) => {
                let object = self.version(request, version)?;
                self.segment(&object, 0)
            }
            Part::Segment { version, segment } => {
                let object = self.version(request, version)?;
                self.segment(&object, segment)
            }
            Part::Manifest { version, packet } => self.manifest(request, version, packet),
        }
    }

    /// The newest version, as it is on the disk or was at the last walk.
    fn look(&mut self, request: &Request) -> Result<(Facts, Object), Refusal> {
        if self.signed.is_none() {
            return self.look_at_disk(request);
        }
        match self.look_at_walk(request) {
            Err(Refusal::Gone) => {
                self.walk();
                self.look_at_walk(request)
            }
            found => found,
        }
    }

    fn walk(&mut self) {
        if let Some(signed) = &mut self.signed {
            signed.refresh(&self.tree, &self.name, &self.form);
        }
    }

    fn look_at_walk(&mut self, request: &Request) -> Result<(Facts, Object), Refusal> {
        let node = self.signed.as_ref().and_then(|signed| signed.get(&request.path)).ok_or(Refusal::NotFound)?;
        let mut versioned_name = name_of(&self.name, &request.path);
        let objects = match (node.is_folder(), request.is_listing) {
            (false, true) => return Err(Refusal::NotFound),
            (false, false) => &mut self.files,
            (true, _) => {
                versioned_name.push(LISTING);
                &mut self.listings
            }
        };
        versioned_name.push_version(node.version);
        if let Some(object) = objects.get(versioned_name.value()) {
            return Ok((node.facts, object.clone()));
        }
        let source = node.source(&self.tree, &request.path)?;
        let size_bytes = node.facts.identity.size_bytes;
        let segment_bytes = self.form.segment_bytes(&versioned_name)?;
        let weight = if node.is_folder() { LISTING_WEIGHT + size_bytes as usize } else { 1 };
        let object = Object { source, versioned_name, size_bytes, segment_bytes };
        objects.insert(object.versioned_name.value().into(), object.clone(), weight);
        Ok((node.facts, object))
    }

    fn look_at_disk(&mut self, request: &Request) -> Result<(Facts, Object), Refusal> {
        let looked_at = SystemTime::now();
        let (content, mut facts) = self.tree.look(&request.path)?;
        let source = match content {
            Content::File(_) if request.is_listing => return Err(Refusal::NotFound),
            Content::File(file) => Source::File(Arc::new(file), facts.identity),
            Content::Folder(folder) => match self.listed_before(&request.path, &mut facts) {
                Some(object) => return Ok((facts, object)),
                None => Source::Listing(list(&folder, &mut facts)?.into()),
            },
        };
        let is_folder = matches!(source, Source::Listing(_));
        let versioned_name = self.versioned_name(&request.path, is_folder, &facts.identity, looked_at);
        let segment_bytes = self.form.segment_bytes(&versioned_name)?;
        let (objects, weight) = match &source {
            Source::File(..) => (&mut self.files, 1),
            Source::Listing(listing) => (&mut self.listings, LISTING_WEIGHT + listing.len()),
        };
        if let Some(object) = objects.get(versioned_name.value()) {
            return Ok((facts, object.clone()));
        }
        let object = Object { source, versioned_name, size_bytes: facts.identity.size_bytes, segment_bytes };
        objects.insert(object.versioned_name.value().into(), object.clone(), weight);
        Ok((facts, object))
    }

    /// The listing of a folder that has not changed since it was listed. Completes its identity.
    fn listed_before(&mut self, path: &EntryPath, facts: &mut Facts) -> Option<Object> {
        let mut name = name_of(&self.name, path);
        let known = *self.versions.get(name.value())?;
        if !known.is_settled || !known.identity.is_same_folder(&facts.identity) {
            return None;
        }
        name.push(LISTING).push_version(known.version);
        let object = self.listings.get(name.value())?.clone();
        facts.identity = known.identity;
        Some(object)
    }

    fn versioned_name(
        &mut self,
        path: &EntryPath,
        is_folder: bool,
        identity: &Identity,
        looked_at: SystemTime,
    ) -> NameBuf {
        let mut name = name_of(&self.name, path);
        let version = match self.versions.get(name.value()) {
            Some(last) if last.identity == *identity => last.version,
            Some(last) => identity.mtime_ns.max(last.version.saturating_add(1)),
            None => identity.mtime_ns,
        };
        let looked_at = looked_at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let is_settled = looked_at.saturating_sub(SETTLED) > Duration::from_nanos(identity.mtime_ns);
        self.versions.insert(name.value().into(), Known { identity: *identity, version, is_settled }, 1);
        if is_folder {
            name.push(LISTING);
        }
        name.push_version(version);
        name
    }

    /// This version, if it is known or still on the disk.
    fn version(&mut self, request: &Request, version: u64) -> Result<Object, Refusal> {
        let mut name = name_of(&self.name, &request.path);
        let objects = match request.is_listing {
            true => &mut self.listings,
            false => &mut self.files,
        };
        if request.is_listing {
            name.push(LISTING);
        }
        name.push_version(version);
        if let Some(object) = objects.get(name.value()) {
            return Ok(object.clone());
        }
        let (_, object) = self.look(request)?;
        if object.versioned_name == name { Ok(object) } else { Err(Refusal::Gone) }
    }

    fn segment(&mut self, object: &Object, segment: u64) -> Result<Arc<[u8]>, Refusal> {
        if segment > object.last_segment() {
            return Err(Refusal::NotFound);
        }
        let mut name = object.versioned_name.clone();
        name.push_segment(segment);
        let wire = match self.segments.get(name.value()) {
            Some(wire) => Arc::clone(wire),
            None => {
                let built = self.form.segment(object, segment);
                let wire: Arc<[u8]> = self.forget_if_gone(object, built)?.into();
                self.segments.insert(name.value().into(), Arc::clone(&wire), wire.len());
                wire
            }
        };
        self.count_segment(&wire);
        Ok(wire)
    }

    fn forget_if_gone<T>(&mut self, object: &Object, result: Result<T, Refusal>) -> Result<T, Refusal> {
        if matches!(result, Err(Refusal::Gone)) {
            self.files.remove(object.versioned_name.value());
        }
        result
    }

    /// A packet of the manifest of this version.
    fn manifest(&mut self, request: &Request, version: u64, packet: u64) -> Result<Arc<[u8]>, Refusal> {
        if self.signed.is_none() {
            return Err(Refusal::NotFound);
        }
        let object = self.version(request, version)?;
        let key = object.versioned_name.value();
        if self.manifests.get(key).is_none() {
            let node = self.signed.as_ref().and_then(|signed| signed.get(&request.path));
            let node = node.filter(|node| node.version == version).ok_or(Refusal::Gone)?;
            let built = self.form.manifest(&object, node.entries(), &self.options.signer);
            let packets = self.forget_if_gone(&object, built)?;
            let weight = packets.iter().map(Vec::len).sum();
            self.manifests.insert(key.into(), packets.into_iter().map(Arc::from).collect(), weight);
        }
        let packets = self.manifests.get(key).ok_or(Refusal::NotFound)?;
        let wire = usize::try_from(packet).ok().and_then(|packet| packets.get(packet)).map(Arc::clone);
        let wire = wire.ok_or(Refusal::NotFound)?;
        self.count_segment(&wire);
        Ok(wire)
    }

    fn metadata(&mut self, request: &Request) -> Result<Arc<[u8]>, Refusal> {
        let (_, wire, _) = self.described(request)?;
        self.counters.metadata += 1;
        Ok(wire)
    }

    /// Metadata under a name with the present time, and what they tell of.
    fn described(&mut self, request: &Request) -> Result<(NameBuf, Arc<[u8]>, Object), Refusal> {
        let is_folder = |signed: &SignedTree| signed.get(&request.path).is_none_or(Node::is_folder);
        if self.signed.as_ref().is_some_and(is_folder) {
            self.walk();
        }
        let (facts, object) = self.look(request)?;
        let mut name = name_of(&self.name, &request.path);
        if request.is_listing {
            name.push(LISTING);
        }
        let now_us = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_micros() as u64);
        name.push(METADATA).push_version(now_us).push_segment(0);
        let content = object.metadata(&facts).encode();
        let data = DataBuilder::new(&name).freshness_ms(METADATA_FRESHNESS_MS).final_segment(0).content(&content);
        let wire = self.options.signer.sign_data(&data)?;
        if wire.len() > MAX_PACKET_BYTES {
            return Err(Refusal::NameTooLong);
        }
        Ok((name, wire.into(), object))
    }

    /// The application Nack, which routers of this machine do not store.
    fn refuse(&mut self, interest: &Interest<'_>, refusal: Refusal) -> Reply {
        let counters = &mut self.counters;
        let counter = match refusal {
            Refusal::NotFound => &mut counters.not_found,
            Refusal::Gone => &mut counters.gone,
            Refusal::NotServed => &mut counters.not_served,
            Refusal::Unreadable | Refusal::NameTooLong | Refusal::FolderTooLarge => &mut counters.unreadable,
            Refusal::Sign(_) => &mut counters.sign_errors,
        };
        *counter += 1;
        // No Data of this name exists but the one with this digest.
        if matches!(refusal, Refusal::Sign(_)) || interest.implicit_digest().is_some() {
            return Reply::Nothing;
        }
        let data = DataBuilder::new(interest.name())
            .content_type(content_type::NACK)
            .freshness_ms(NACK_FRESHNESS_MS)
            .content(refusal.words().as_bytes());
        match self.options.signer.sign_data(&data) {
            Ok(wire) if wire.len() <= MAX_PACKET_BYTES => Reply::UncachedData(wire.into()),
            Ok(_) => Reply::Nothing,
            Err(_) => {
                self.counters.sign_errors += 1;
                Reply::Nothing
            }
        }
    }

    fn count_segment(&mut self, wire: &[u8]) {
        self.counters.segments += 1;
        self.counters.bytes += wire.len() as u64;
    }
}
