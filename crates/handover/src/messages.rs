//! What the messages hold. `bytes` are those behind the text of a message.
//!
//! Each struct is read with `#[serde(default)]`: a field that an older program did not send has its default, and a
//! field that this one does not know is skipped.

use serde::{Deserialize, Serialize};

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(pub u32);

#[allow(missing_docs, reason = "each is named for what it holds, and has its struct below")]
impl Kind {
    /// Old: [`Hello`].
    pub const HELLO: Kind = Kind(1);
    /// New: [`Ready`].
    pub const READY: Kind = Kind(2);
    /// New: [`Refused`]. It ends.
    pub const REFUSED: Kind = Kind(3);
    /// Old: [`Node`].
    pub const NODE: Kind = Kind(4);
    /// Old: [`Listener`], with one descriptor.
    pub const LISTENER: Kind = Kind(5);
    /// Old: [`Face`], with its descriptor if it has one. The bytes are unread input, then unsent output.
    pub const FACE: Kind = Kind(6);
    /// Old: `()`. The bytes are a part of the dataset `rib/list`.
    pub const ROUTES: Kind = Kind(7);
    /// Old: `()`. The bytes are next hops without a route, in the form of `fib/list`.
    pub const NEXT_HOPS: Kind = Kind(8);
    /// Old: `()`. The bytes are the dataset `strategy-choice/list`.
    pub const STRATEGIES: Kind = Kind(9);
    /// Old: `()`. All of the state was sent.
    pub const END: Kind = Kind(10);
    /// New: [`Taken`].
    pub const TAKEN: Kind = Kind(11);
    /// Old: `()`. The new program forwards from now on.
    pub const GO: Kind = Kind(12);
    /// Old: [`Stored`]. The bytes are Data, one after the other.
    pub const STORED: Kind = Kind(13);

    /// True if this program knows the kind.
    pub fn is_known(self) -> bool {
        (Kind::HELLO.0..=Kind::STORED.0).contains(&self.0)
    }
}

/// The first message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hello {
    /// [`crate::PROTOCOL`].
    pub protocol: u32,
    /// The version of the program.
    pub version: String,
    /// A parent waits that passes signals and the exit code on. The descriptor with this message tells it who goes on.
    pub has_parent: bool,
    /// The number of the task that this is, over all programs.
    pub task: u64,
    /// In words, what is not handed over.
    pub dropped: Vec<String>,
}

/// The new program has its tables and threads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ready {
    /// [`crate::PROTOCOL`].
    pub protocol: u32,
    /// The version of the program.
    pub version: String,
    /// Its worker threads.
    pub workers: u16,
}

/// Why the new program does not take over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Refused {
    /// In words.
    pub why: String,
}

/// The new program has everything and waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Taken {
    /// Faces that it has.
    pub faces: u64,
    /// Routes that it has.
    pub routes: u64,
}

/// What belongs to no face and no table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Node {
    /// The least number that no face has had.
    pub next_face: u64,
    /// The Content Store as the configuration says, and as it is.
    pub cs_configured: ContentStore,
    /// As it is.
    pub cs: ContentStore,
    /// Commands that keys signed and that have passed.
    pub commands: Vec<Command>,
    /// Multicast faces.
    pub groups: Vec<Group>,
    /// When the workers froze, in microseconds since 1970.
    pub frozen_unix_us: u64,
}

/// The settings of the Content Store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContentStore {
    /// Admission and eviction, as `all/lru`.
    pub policy: String,
    /// Most bytes.
    pub capacity_bytes: u64,
    /// Most packets.
    pub capacity_packets: u64,
    /// Whether Data is stored.
    pub admit: bool,
    /// Whether Interests are answered.
    pub serve: bool,
}

/// A signed command that has passed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Command {
    /// The key.
    pub key: String,
    /// When it was signed, in milliseconds since 1970.
    pub time_ms: u64,
    /// What tells it from others of that time.
    pub nonce: Vec<u8>,
}

/// A multicast face of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Group {
    /// Number of the interface.
    pub interface: u32,
    /// `udp4`, `udp6` or `ether`.
    pub group: String,
    /// Its number.
    pub face: u64,
}

/// The socket of a listener.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Listener {
    /// Where it listens, as a FaceUri, or `http://…` for metrics.
    pub uri: String,
    /// The worker that reads it; UDP has one socket for each.
    pub worker: u8,
    /// The file of a Unix socket was made by another process, and stays.
    pub is_inherited: bool,
}

/// A face.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Face {
    /// Its number.
    pub face: u64,
    /// The worker that had it.
    pub worker: u8,
    /// Remote FaceUri.
    pub remote: String,
    /// Local FaceUri.
    pub local: String,
    /// Of an application of this machine.
    pub is_local: bool,
    /// The number that management has for it.
    pub persistency: u64,
    /// The same.
    pub link_type: u64,
    /// Bytes.
    pub mtu: u64,
    /// The process at the other end of a Unix socket.
    pub credentials: Option<Credentials>,
    /// Its application may see and choose faces.
    pub local_fields: bool,
    /// Frames are acknowledged and sent again.
    pub reliability: bool,
    /// Packets are marked while the queue is long.
    pub congestion_marking: bool,
    /// Nanoseconds between marks at the threshold.
    pub marking_interval_ns: u64,
    /// Bytes of the queue that count as congestion.
    pub marking_threshold_bytes: u64,
    /// Our PIT tokens may leave through it.
    pub has_tokens: bool,
    /// Its peer understands link headers.
    pub speaks_lp: bool,
    /// The number of the next frame with one.
    pub next_sequence: u64,
    /// Counters by name.
    pub counters: std::collections::BTreeMap<String, u64>,
    /// Milliseconds since it received something.
    pub silent_ms: u64,
    /// Since when it is up or down, in milliseconds since 1970.
    pub since_unix_ms: u64,
    /// It is down.
    pub is_down: bool,
    /// How it gets at its packets.
    pub channel: Channel,
}

/// Who connected to a Unix socket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Credentials {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Other groups.
    pub groups: Vec<u32>,
    /// Process.
    pub pid: i32,
}

/// How a face gets at its packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Channel {
    /// The connection comes with the message; `is_tcp`, or a Unix socket. Of the bytes, the first `input` are unread.
    Stream {
        /// A TCP connection.
        is_tcp: bool,
        /// It has brought nothing yet.
        is_new: bool,
        /// The input begins with a complete element.
        has_backlog: bool,
        /// Bytes of input.
        input: u64,
    },
    /// A permanent stream face without a connection, or a face that is made anew.
    #[default]
    Down,
    /// The connected socket comes with the message. Bound to `local`.
    Udp {
        /// Our end.
        local: String,
        /// The other end.
        remote: String,
    },
    /// On demand, behind the listener at `listener`.
    UdpOfListener {
        /// The listener's address.
        listener: String,
        /// The other end.
        remote: String,
        /// Our address in what we send.
        from: Option<String>,
    },
    /// A multicast face: see [`Group`].
    Group,
    /// A station of an Ethernet link, whose interface is opened anew.
    Station,
}

/// A batch of stored Data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stored {
    /// The milliseconds for which each Data is still fresh.
    pub fresh_ms: Vec<u64>,
}
