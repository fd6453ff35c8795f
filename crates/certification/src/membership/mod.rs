//! A host in a network: what keeps it there?
//!
//! ```text
//!   this router ──── permanent face ────► router of the network
//!        │  routes: / (and others)             ▲ /localhop/nfd/rib/register /site/bob, signed by the host's key,
//!        │                                     │ every minute, for five
//!        └─ serves the host's certificate ─────┘ and renews it
//! ```
//!
//! | question | file |
//! | --- | --- |
//! | which networks has the host joined? | [`list`] |
//! | what is done once, and in what order? | [`steps`] |
//! | what is done again and again? | [`keeper`] |
//! | which router is near? | [`discover`] |
//!
//! Joining is the work of `namewire join`, because it may need its user. Staying is the work of the router
//! ([`keeper::keep_all`]), which reads the list: so a network stays joined over restarts, and nobody need be logged in.

pub mod discover;
pub mod keeper;
pub mod list;
pub mod steps;
