//! Several routers together: which links are between them, how are they, and where is a name dropped?
//!
//! ```text
//!   observers ── reading ──► summary ──► rates ─┬─► health ──► network ──► the page, `top --all`
//!                        └─► explained ─────────┴─► links  ──► fate ─────► the page, `explain --all`
//! ```
//!
//! | question | file |
//! | --- | --- |
//! | how is an observer read, and what is refused? | [`reading`] |
//! | what does a router say of itself in short? | [`summary`] |
//! | how much per second, also of a router that only counts? | [`rates`] |
//! | what is wrong with a router? | [`health`] |
//! | which faces are the two ends of one link? | [`links`] |
//! | what is shown of all routers? | [`network`] |
//! | what does each router do with an Interest for a name, in the order of its path? | [`fate`] |
//!
//! All but [`reading`] is pure: no socket and no clock. The router's observer and the command line use the same code,
//! so both show the same.

pub mod fate;
pub mod health;
pub mod links;
pub mod network;
pub mod rates;
pub mod reading;
pub mod summary;

/// The most routers in a view.
pub const ROUTERS_MAX: usize = 64;
