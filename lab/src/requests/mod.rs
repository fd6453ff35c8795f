//! Requests: which objects are requested, in which order.
//!
//! A request names an object by a number, from 0 without gaps, and states the bytes of its Data. Sources of requests:
//! - [`web`], [`video`], [`mixed`]: the workloads of Takemasa19 §5.4.1, without end;
//! - [`trace`]: recorded requests of a file, or invented ones with [`churn`], which end.
//!
//! The best possible hit rates: [`bound`], by Belady's rule and by a cache without limit.
//!
//! A workload is built once (its popularity table may be large, [`popularity`]) and gives one independent stream of
//! requests per seed. The same seed gives the same requests on all machines with the same rounding of logarithms.

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

/// Content bytes of a Data packet where a source does not say (Takemasa19 §5.4.1: 1024 bytes of payload).
pub const DATA_BYTES: u32 = 1024;

/// A request for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The object's number.
    pub object: u32,
    /// Bytes of its content; constant for an object.
    pub bytes: u32,
}

/// A 64-bit hash of an object, like a hash of its name; different objects have different hashes.
pub const fn object_hash(object: u32) -> u64 {
    split_mix(object as u64)
}
