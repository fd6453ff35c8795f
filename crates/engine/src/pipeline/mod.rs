//! What happens to a packet: one file per pipeline, with the names of NFD's developer guide (§4). The files `core_…`
//! have those of a router in the core role ([`crate::state::core_role`]).

pub(crate) mod call;
mod content_store;
mod core_data;
mod core_interest;
pub(crate) mod data;
pub(crate) mod first_upstream;
pub(crate) mod frame;
pub(crate) mod interest;
pub(crate) mod nack;
mod prefix_lookup;
mod probe;
mod steered;
pub(crate) mod watched;
