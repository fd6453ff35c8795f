//! State Vector Sync: which producers of a group published what, and what of it we lack.
//!
//! Question: how does a repository learn of every publication of a group, without a server and although it publishes
//! nothing itself?
//!
//! Source: the StateVectorSync specification, versions 2 and 3, as `@ndn/svs` (NDNts) and ndnd speak them.
//!
//! Each member holds a state vector: for each producer the highest sequence number that it knows. Sync Interests carry
//! the vectors. A member that sees an older vector than its own waits a random time, and sends its own unless another
//! member did so first.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`vector`] | the state vector, its order and its merge |
//! | [`wire`] | sync Interests of both versions, as bytes |
//! | [`group`] | one group: when to speak, and what is news |
//! | [`backlog`] | what of one producer is to be fetched, and when |
//!
//! All of it is sans-IO: no socket, no clock and no thread. Time and randomness are arguments.

pub mod backlog;
pub mod group;
pub mod vector;
pub mod wire;

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
