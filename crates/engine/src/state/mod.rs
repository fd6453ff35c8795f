//! What the engine remembers of pending Interests and of next hops.

pub mod face_share;
pub mod measurements;
pub mod name_state;
pub(crate) mod pit_shares;
pub mod pit_state;
pub mod record_chain;
pub(crate) mod scratch;
pub(crate) mod tables;
pub mod upstream_times;
