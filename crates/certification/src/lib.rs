//! Certificates over the network: an authority for a site, requests, and what a host needs to join a network.
//!
//! | question | file |
//! | --- | --- |
//! | whom does an authority certify? | [`authority`], sans-IO |
//! | how does it serve, and what does it remember? | [`service`], [`store`] |
//! | how does the operator's command decide? | [`operator_command`] |
//! | what keeps a host in a network? | [`membership`] |
//! | which commands are there? | [`commands`] |

pub mod authority;
pub mod commands;
pub mod membership;
pub mod operator_command;
pub mod service;
pub mod store;

pub use commands::Command;
