//! What happens to a packet: one file per pipeline, with the names of NFD's developer guide (§4).

pub(crate) mod asked;
pub(crate) mod call;
mod content_store;
pub(crate) mod data;
pub(crate) mod first_upstream;
pub(crate) mod interest;
pub(crate) mod nack;
pub(crate) mod next_hops;
pub(crate) mod outgoing;
mod prefix_lookup;
pub(crate) mod pressure;
pub(crate) mod scope;
pub(crate) mod watched;
