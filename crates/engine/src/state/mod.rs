//! What the engine remembers: of pending Interests, of next hops, and in the core role; and its configuration.

pub mod config;
pub(crate) mod core_expiry;
pub(crate) mod core_ports;
pub mod core_role;
pub mod measurements;
pub mod name_state;
pub(crate) mod parts;
pub(crate) mod pit_shares;
pub mod pit_state;
pub mod record_chain;
pub(crate) mod scratch;
pub(crate) mod sent_names;
pub(crate) mod tables;
pub mod upstream_times;
