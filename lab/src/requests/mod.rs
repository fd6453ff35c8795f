//! Requests: which objects are asked for, in what order?
//!
//! A request names an object by a number, from 0 without gaps, and says how many octets its Data has. Where requests
//! come from:
//! - [`web`], [`video`], [`mixed`]: the workloads of Takemasa19 §5.4.1, without end;
//! - [`trace`]: recorded requests of a file, or invented ones with [`churn`], which end.
//!
//! What could be had at best: [`bound`], by Belady's rule and by a cache without limit.
//!
//! A workload is made once (its popularity table may be large, [`popularity`]) and gives as many independent streams
//! as there are seeds. The same seed gives the same requests on every machine whose logarithms round alike.

pub mod bound;
pub mod churn;
pub mod mixed;
pub mod popularity;
pub mod trace;
pub mod video;
pub mod web;

use crate::split_mix::split_mix;

pub use mixed::Mixed;
pub use trace::Trace;
pub use video::Video;
pub use web::Web;

/// Octets of a Data packet's content where a source says no other (Takemasa19 §5.4.1: 1024 octets of payload).
pub const DATA_OCTETS: u32 = 1024;

/// Somebody asks for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The object's number.
    pub object: u32,
    /// Octets of its content: the same for every request of an object.
    pub octets: u32,
}

/// The 64-bit hash of an object, as if of its name; different objects have different ones.
pub const fn object_hash(object: u32) -> u64 {
    split_mix(object as u64)
}
