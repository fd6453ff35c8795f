//! TagNet for applications: advertise sets of tags, pull and push by tags, and answer.
//!
//! ```no_run
//! use namewire_client::{Client, tag::{PullOptions, TagClient, TagServes, TagSet}};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let tags = TagClient::new(&Client::connect().await?);
//! tags.advertise(&"classical,concert".parse()?, TagServes::Pull, None).await?;
//! let wanted: TagSet = "classical,concert,Beethoven".parse()?;
//! let mut replies = tags.pull(&wanted, b"GET", PullOptions::default()).await?;
//! while let Some(reply) = replies.next().await? {
//!     println!("{} bytes", reply.payload().len());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Commands go by NFD management (`/localhost/nfd/tags`), packets over the same connection. An application sends with
//! tree 0 and epoch 0, "your first tree", and without its own place: its router fills them in. Packets that arrive
//! carry tree, epoch and the sender's place. So a reply goes to the place of the request, and a follow-up to the place
//! of the reply ([`TagPlace`]), in the same tree and epoch. [`TagClient::in_tree`] chooses another tree for packets by
//! tags.
//!
//! Like an Interest, a lost packet is not sent again. A place is valid for one epoch: when the tree changes, packets to
//! old places are lost, and the application pulls by tags again.
//!
//! A router forgets an application whose connection ends. So a [`TagReceiver`] that the program reads opens a new
//! connection after a loss, and repeats the client's advertisements and its join.
//!
//! Limits: those of [`TagSet`]; a packet of [`TAG_PACKET_BYTES_MAX`]; [`TAG_REPLIES_MAX`] replies to a pull;
//! [`INCOMING_TAG_PACKETS_MAX`] packets that wait for the application.

use crate::{
    client::{Client, fresh_nonce},
    close_reason::CloseReason,
    connection::Backoff,
    management::{ControlError, DatasetError},
    tag_exchange::TagPacketBuf,
};
use namewire_packet::{
    MAX_PACKET_BYTES,
    nfd::{ControlParameters, TagRoute, TagTree},
    tag::{
        MAX_LABEL_BYTES, Place, TagAddress, TagList, TagPacket, TagPacketBuilder, TagPacketError, TagPacketKind,
        TreeEpoch,
    },
};
use std::{
    collections::BTreeMap,
    fmt,
    str::FromStr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc},
    time::{Instant, timeout_at},
};

pub use namewire_packet::descriptor::{TagSet, TagSetError};
pub use namewire_packet::nfd::TagServes;

/// Most bytes of the ReplyTo that the router adds: type (3), length (1), endpoint (4), label.
const REPLY_TO_BYTES_MAX: usize = 8 + MAX_LABEL_BYTES;
/// Most bytes of a packet that an application sends; its router adds the place for replies.
pub const TAG_PACKET_BYTES_MAX: usize = MAX_PACKET_BYTES - REPLY_TO_BYTES_MAX;
/// Most bytes of a reply's payload: a packet without those of its other elements.
pub const REPLY_BYTES_MAX: usize = TAG_PACKET_BYTES_MAX - 64;
/// Most replies that a pull can ask for.
pub const TAG_REPLIES_MAX: u32 = 4096;
/// Packets that may wait in a [`TagReceiver`]; more are dropped and counted.
pub const INCOMING_TAG_PACKETS_MAX: usize = 4096;

/// Why a packet was not sent, or not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TagError {
    /// The connection has ended.
    #[error("connection lost: {0}")]
    Closed(CloseReason),
    /// No reply came in time.
    #[error("no reply within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// The packet is larger than routers take.
    #[error("the packet has {0} bytes, more than {TAG_PACKET_BYTES_MAX}")]
    TooLarge(usize),
    /// Only a pull is answered, and this is none; or its router did not say where the reply goes.
    #[error("the packet asks for no reply")]
    NoReplyWanted,
}

/// Another receiver of this connection is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this client receives tag packets already")]
pub struct TagReceiverInUse;

/// One application, in one epoch of one tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TagPlace {
    tree: TreeEpoch,
    endpoint: u32,
    label: Box<[u8]>,
}

impl TagPlace {
    fn of_sender(packet: &TagPacket<'_>) -> Option<Self> {
        let place = packet.reply_to?;
        Some(TagPlace { tree: packet.tree, endpoint: place.endpoint, label: place.label.into() })
    }

    fn place(&self) -> Place<'_> {
        Place { endpoint: self.endpoint, label: &self.label }
    }

    /// The tree and its epoch.
    pub const fn tree(&self) -> TreeEpoch {
        self.tree
    }

    /// The number of the application at its router.
    pub const fn endpoint(&self) -> u32 {
        self.endpoint
    }

    /// The label of its router.
    pub const fn label(&self) -> &[u8] {
        &self.label
    }
}

/// As `1.70000/80.03#301`: tree, epoch, the label's bytes in hexadecimal digits, endpoint.
impl fmt::Display for TagPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}/", self.tree.tree, self.tree.epoch)?;
        self.label.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, "#{}", self.endpoint)
    }
}

/// Text that is no [`TagPlace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a place: expected TREE.EPOCH/LABEL#ENDPOINT, as in 1.70000/8003#301")]
pub struct TagPlaceError;

/// The form of [`fmt::Display`].
impl FromStr for TagPlace {
    type Err = TagPlaceError;

    fn from_str(text: &str) -> Result<Self, TagPlaceError> {
        let parts = || {
            let (tree, rest) = text.split_once('.')?;
            let (epoch, rest) = rest.split_once('/')?;
            let (label, endpoint) = rest.split_once('#')?;
            let is_hex = label.len().is_multiple_of(2) && label.bytes().all(|byte| byte.is_ascii_hexdigit());
            let bytes = (0..label.len()).step_by(2).map(|at| u8::from_str_radix(label.get(at..at + 2)?, 16).ok());
            let label: Box<[u8]> = bytes.collect::<Option<_>>().filter(|_| is_hex)?;
            let tree = TreeEpoch { tree: tree.parse().ok()?, epoch: epoch.parse().ok()? };
            let is_place = tree.tree > 0 && (1..=MAX_LABEL_BYTES).contains(&label.len());
            is_place.then_some(TagPlace { tree, endpoint: endpoint.parse().ok()?, label })
        };
        parts().ok_or(TagPlaceError)
    }
}

/// How long and for how many replies a pull waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PullOptions {
    /// Replies wanted, 1 to [`TAG_REPLIES_MAX`]; a number outside is moved to the nearest inside. With 1, the pull goes
    /// to one application of the largest matching set of tags; with k, to at most k applications.
    pub replies_max: u32,
    /// Time until the last reply.
    pub timeout: Duration,
}

impl Default for PullOptions {
    fn default() -> Self {
        PullOptions { replies_max: 1, timeout: Duration::from_secs(4) }
    }
}

/// TagNet over the connection of a [`Client`]. It is a cheap handle; clones share the connection, and what they told
/// the router.
#[derive(Clone)]
pub struct TagClient {
    client: Client,
    told: Arc<Mutex<Told>>,
    /// For packets by tags; 0 is the router's first one.
    tree: u16,
}

/// What the router knows of this application, and forgets with the connection.
#[derive(Default)]
struct Told {
    advertised: BTreeMap<TagSet, Advertised>,
    has_joined: bool,
}

#[derive(Clone, Copy)]
struct Advertised {
    serves: TagServes,
    ends: Option<Instant>,
}

impl TagClient {
    /// TagNet over this connection.
    pub fn new(client: &Client) -> Self {
        TagClient { client: client.clone(), told: Arc::default(), tree: 0 }
    }

    /// The same client, whose pulls and pushes by tags travel in this tree; 0 is the first tree of the router. The
    /// router drops packets in a tree that it has not.
    #[must_use]
    pub fn in_tree(&self, tree: u16) -> Self {
        TagClient { tree, ..self.clone() }
    }

    /// The connection.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for pulls or pushes whose tags contain all of these. Without `expiration`, this lasts until the client is
    /// dropped; the receiver renews it after a lost connection. Repeating it sets what the tags serve, and for how
    /// long, anew. Open the receiver first ([`TagClient::receive`]); without it the client drops what comes.
    ///
    /// # Errors
    /// As [`Client::control`]. The router refuses an empty set.
    pub async fn advertise(
        &self,
        tags: &TagSet,
        serves: TagServes,
        expiration: Option<Duration>,
    ) -> Result<ControlParameters, ControlError> {
        let answer = self.tell_advertised(tags, serves, expiration).await?;
        let ends = expiration.and_then(|time| Instant::now().checked_add(time));
        self.told().advertised.insert(tags.clone(), Advertised { serves, ends });
        Ok(answer)
    }

    async fn tell_advertised(
        &self,
        tags: &TagSet,
        serves: TagServes,
        expiration: Option<Duration>,
    ) -> Result<ControlParameters, ControlError> {
        let parameters = ControlParameters {
            flags: Some(serves.code()),
            expiration_period_ms: expiration.map(|time| time.as_millis() as u64),
            tags: Some(list_of(tags)),
            ..ControlParameters::default()
        };
        self.command("advertise", parameters).await
    }

    /// Tells the router of another connection what the former one knew.
    async fn tell_again(&self) -> Result<(), ControlError> {
        let (advertised, has_joined) = {
            let mut told = self.told();
            let now = Instant::now();
            told.advertised.retain(|_, advertised| advertised.ends.is_none_or(|end| end > now));
            (told.advertised.clone(), told.has_joined)
        };
        for (tags, Advertised { serves, ends }) in advertised {
            self.tell_advertised(&tags, serves, ends.map(left)).await?;
        }
        if has_joined {
            self.command("join", ControlParameters::default()).await?;
        }
        Ok(())
    }

    /// Undoes [`TagClient::advertise`].
    ///
    /// # Errors
    /// As [`Client::control`]; 404 if these tags are not advertised.
    pub async fn withdraw(&self, tags: &TagSet) -> Result<ControlParameters, ControlError> {
        self.told().advertised.remove(tags);
        let parameters = ControlParameters { tags: Some(list_of(tags)), ..ControlParameters::default() };
        self.command("withdraw", parameters).await
    }

    /// Asks for leave to push. The answer's `face_id` is this application's endpoint.
    ///
    /// # Errors
    /// As [`Client::control`].
    pub async fn join(&self) -> Result<ControlParameters, ControlError> {
        let answer = self.command("join", ControlParameters::default()).await?;
        self.told().has_joined = true;
        Ok(answer)
    }

    async fn command(&self, verb: &str, parameters: ControlParameters) -> Result<ControlParameters, ControlError> {
        Ok(self.client.control("tags", verb, &parameters).await?.body.unwrap_or(parameters))
    }

    /// The trees of the router.
    ///
    /// # Errors
    /// If the dataset cannot be fetched or decoded.
    pub async fn trees(&self) -> Result<Vec<TagTree>, DatasetError> {
        self.client.list().await
    }

    /// The descriptors that the router knows, and where they were advertised.
    ///
    /// # Errors
    /// If the dataset cannot be fetched or decoded.
    pub async fn routes(&self) -> Result<Vec<TagRoute>, DatasetError> {
        self.client.list().await
    }

    /// Asks the applications that advertised a subset of these tags. It returns once the request is on the send queue.
    ///
    /// # Errors
    /// If the packet is too large or the connection is gone.
    pub async fn pull(&self, tags: &TagSet, payload: &[u8], options: PullOptions) -> Result<TagReplies, TagError> {
        let left = options.replies_max.clamp(1, TAG_REPLIES_MAX);
        let mut builder = self.by_tags(TagPacketKind::Pull, tags).payload(payload);
        if left > 1 {
            builder = builder.fan_out(left);
        }
        self.request(builder, left, options.timeout).await
    }

    /// Asks the application at this place, for example for the next part of what it has begun to send.
    ///
    /// # Errors
    /// As [`TagClient::pull`], and if no reply comes in time.
    pub async fn follow_up(&self, place: &TagPlace, payload: &[u8], timeout: Duration) -> Result<TagReply, TagError> {
        self.pull_from(place, payload, timeout).await?.next().await?.ok_or(TagError::Timeout(timeout))
    }

    /// The same, and returns once the request is on the send queue.
    ///
    /// # Errors
    /// As [`TagClient::pull`].
    pub async fn pull_from(&self, place: &TagPlace, payload: &[u8], timeout: Duration) -> Result<TagReplies, TagError> {
        let builder = TagPacketBuilder::by_locator(TagPacketKind::Pull, place.tree, place.place()).payload(payload);
        self.request(builder, 1, timeout).await
    }

    async fn request(
        &self,
        builder: TagPacketBuilder<'_>,
        left: u32,
        timeout: Duration,
    ) -> Result<TagReplies, TagError> {
        let slot = self.client.slot().await;
        let (sender, receiver) = mpsc::unbounded_channel();
        let nonce = loop {
            let nonce = random_nonce();
            if self.client.face().lock().tags.begin(nonce, left, sender.clone()) {
                break nonce;
            }
        };
        let pending = PendingPull { client: self.client.clone(), nonce, _slot: slot };
        self.send(&builder.nonce(nonce).build()).await?;
        Ok(TagReplies { receiver, left, deadline: Instant::now() + timeout, pending })
    }

    /// Sends content to every application that wants pushes and advertised a subset of these tags. The router forwards
    /// it only after [`TagClient::join`].
    ///
    /// # Errors
    /// If the packet is too large or the connection is gone.
    pub async fn push(&self, tags: &TagSet, payload: &[u8]) -> Result<(), TagError> {
        self.send(&self.by_tags(TagPacketKind::Push, tags).nonce(random_nonce()).payload(payload).build()).await
    }

    /// Sends content to the application at this place, whatever it advertised; after [`TagClient::join`], as
    /// [`TagClient::push`].
    ///
    /// # Errors
    /// As [`TagClient::push`].
    pub async fn push_to(&self, place: &TagPlace, payload: &[u8]) -> Result<(), TagError> {
        let builder = TagPacketBuilder::by_locator(TagPacketKind::Push, place.tree, place.place());
        self.send(&builder.nonce(random_nonce()).payload(payload).build()).await
    }

    fn by_tags<'t>(&self, kind: TagPacketKind, tags: &'t TagSet) -> TagPacketBuilder<'t> {
        // The router knows the epoch.
        let tree = TreeEpoch { tree: self.tree, epoch: 0 };
        let filter = tags.descriptor().to_bytes();
        TagPacketBuilder::by_descriptor(kind, tree, filter, tags.tags().iter().map(String::as_str))
    }

    /// Opens the receiver of pulls and pushes.
    ///
    /// # Errors
    /// If this connection has one already.
    pub fn receive(&self) -> Result<TagReceiver, TagReceiverInUse> {
        let receiver = Some(self.open_receiver()?);
        Ok(TagReceiver { receiver, backoff: Backoff::default(), tags: self.clone() })
    }

    fn open_receiver(&self) -> Result<mpsc::Receiver<TagPacketBuf>, TagReceiverInUse> {
        let (sender, receiver) = mpsc::channel(INCOMING_TAG_PACKETS_MAX);
        if self.client.face().open_tag_receiver(sender) { Ok(receiver) } else { Err(TagReceiverInUse) }
    }

    async fn send(&self, wire: &[u8]) -> Result<(), TagError> {
        if wire.len() > TAG_PACKET_BYTES_MAX {
            return Err(TagError::TooLarge(wire.len()));
        }
        let sent = self.client.face().send(|out| out.extend_from_slice(wire), |_| ()).await;
        sent.map_err(TagError::Closed)
    }
}

fn list_of(tags: &TagSet) -> TagList {
    let list: Result<TagList, TagPacketError> = TagList::new(tags.tags().iter().map(String::as_str));
    list.expect("a set of tags is ascending and within the limits")
}

/// The time until then, in whole milliseconds above 0.
fn left(end: Instant) -> Duration {
    end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
}

fn random_nonce() -> u32 {
    u32::from_be_bytes(fresh_nonce().0)
}

/// A pull that waits. Dropping it forgets the pull.
struct PendingPull {
    client: Client,
    nonce: u32,
    _slot: OwnedSemaphorePermit,
}

impl Drop for PendingPull {
    fn drop(&mut self) {
        self.client.face().lock().tags.forget(self.nonce);
    }
}

/// The replies to one pull. Dropping it forgets the pull.
pub struct TagReplies {
    receiver: mpsc::UnboundedReceiver<TagPacketBuf>,
    left: u32,
    deadline: Instant,
    pending: PendingPull,
}

impl TagReplies {
    /// The next reply; `None` when all have come or the time is over.
    ///
    /// # Errors
    /// If the connection is gone before.
    pub async fn next(&mut self) -> Result<Option<TagReply>, TagError> {
        if self.left == 0 {
            return Ok(None);
        }
        match timeout_at(self.deadline, self.receiver.recv()).await {
            Ok(Some(packet)) => {
                self.left -= 1;
                Ok(Some(TagReply { packet }))
            }
            Ok(None) => Err(TagError::Closed(self.pending.client.close_reason().unwrap_or(CloseReason::Local))),
            Err(_) => Ok(None),
        }
    }
}

/// A reply.
#[derive(Debug)]
pub struct TagReply {
    packet: TagPacketBuf,
}

impl TagReply {
    /// Bytes of the application that replied.
    pub fn payload(&self) -> &[u8] {
        self.packet.packet().payload
    }

    /// Where that application is, for [`TagClient::follow_up`]; `None` if its router did not say.
    pub fn place(&self) -> Option<TagPlace> {
        TagPlace::of_sender(&self.packet.packet())
    }
}

/// The pulls and pushes for this application. Dropping it drops what comes later.
pub struct TagReceiver {
    /// `None` while the connection is lost.
    receiver: Option<mpsc::Receiver<TagPacketBuf>>,
    backoff: Backoff,
    tags: TagClient,
}

impl TagReceiver {
    /// The next packet; `None` when the connection is lost and cannot be opened again, or another receiver was opened
    /// since. Dropping the future loses no packet.
    pub async fn next(&mut self) -> Option<IncomingTagPacket> {
        loop {
            if let Some(receiver) = &mut self.receiver
                && let Some(packet) = receiver.recv().await
            {
                return Some(IncomingTagPacket { packet, tags: self.tags.clone() });
            }
            self.restore().await?;
        }
    }

    /// Connects and tells the router everything again, however long that takes; `None` if that cannot be.
    async fn restore(&mut self) -> Option<()> {
        self.receiver = None;
        let client = &self.tags.client;
        loop {
            client.come_back(&mut self.backoff).await.ok()?;
            let receiver = self.tags.open_receiver().ok()?;
            match self.tags.tell_again().await {
                Ok(()) => {
                    client.is_back(&mut self.backoff);
                    self.receiver = Some(receiver);
                    return Some(());
                }
                Err(error) => client.is_still_lost(&mut self.backoff, &error),
            }
        }
    }
}

/// A pull or a push from another application.
pub struct IncomingTagPacket {
    packet: TagPacketBuf,
    tags: TagClient,
}

impl IncomingTagPacket {
    /// True for a push, which takes no reply.
    pub fn is_push(&self) -> bool {
        self.packet.packet().kind == TagPacketKind::Push
    }

    /// The packet's tags; `None` if it was sent to this application's place, as a follow-up is.
    pub fn tags(&self) -> Option<TagSet> {
        match self.packet.packet().address {
            TagAddress::Descriptor { tags, .. } => TagSet::new(tags.iter()).ok(),
            TagAddress::Locator(_) => None,
        }
    }

    /// Bytes of the other application.
    pub fn payload(&self) -> &[u8] {
        self.packet.packet().payload
    }

    /// Where the other application is; `None` if its router did not say.
    pub fn sender(&self) -> Option<TagPlace> {
        TagPlace::of_sender(&self.packet.packet())
    }

    /// Answers a pull. Each reply counts towards the number that the other application wants.
    ///
    /// # Errors
    /// If this is no pull, the packet is too large, or the connection is gone.
    pub async fn reply(&self, payload: &[u8]) -> Result<(), TagError> {
        let request = self.packet.packet();
        let place = request.reply_to.filter(|_| request.kind == TagPacketKind::Pull).ok_or(TagError::NoReplyWanted)?;
        let builder = TagPacketBuilder::by_locator(TagPacketKind::Reply, request.tree, place);
        self.tags.send(&builder.nonce(request.nonce).payload(payload).build()).await
    }
}
