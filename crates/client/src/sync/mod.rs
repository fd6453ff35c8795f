//! State Vector Sync: what the producers of a group have published, and which publications we lack.
//!
//! Question: how do the members of a group learn of every publication, without a server?
//!
//! Source: the StateVectorSync specification, versions 2 and 3, as `@ndn/svs` (NDNts) and ndnd speak them.
//!
//! Each member holds a state vector: for each producer the highest sequence number that it knows. Sync Interests carry
//! the vectors. A member that receives a vector older than its own waits a random time. Then it sends its own vector,
//! unless another member did so first.
//!
//! ```no_run
//! use namewire_client::{Client, security::Signer, sync::{SyncEvent, SyncGroup}};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect().await?;
//! let (group, me) = ("/chat".parse()?, "/alice".parse()?);
//! let mut chat = SyncGroup::join(&client, &group, &me, Signer::digest()).await?;
//! chat.publish(b"hello")?;
//! while let Some(event) = chat.next().await {
//!     if let SyncEvent::Published { producer, data, .. } = event {
//!         println!("{}: {}", producer.name, String::from_utf8_lossy(data.content()));
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`SyncGroup`] | a member: publishes and fetches |
//! | [`names`] | the names of a group and of its publications |
//! | [`vector`] | the state vector, its order and its merge |
//! | [`wire`] | sync Interests of both versions, as bytes |
//! | [`group`] | one group: when to send a sync Interest, and what is news |
//! | [`backlog`] | which publications of a producer to fetch, and when |
//!
//! All but [`SyncGroup`] is sans-IO: no socket, no clock and no thread. Time and randomness are arguments.

pub mod backlog;
pub mod group;
mod member;
pub mod names;
pub mod vector;
pub mod wire;

pub use member::{FETCHES_MAX, PRODUCERS_MAX, PUBLICATIONS_KEPT, SyncCounters, SyncError, SyncEvent, SyncGroup};

/// The versions of the protocol. They do not understand each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// A producer is a name. The vector itself is the parameters of the sync Interest.
    V2,
    /// A producer is a name and the time of its start. The parameters are a signed Data that holds the vector.
    V3,
}

impl Version {
    /// The version component of a sync Interest's name.
    pub const fn number(self) -> u64 {
        match self {
            Version::V2 => 2,
            Version::V3 => 3,
        }
    }
}
