//! Repo: an application that stores Data for a long time, and answers Interests with the stored Data.
//!
//! Question: how does a machine serve as much content as its disk holds, as fast as the disk, and never lose what it
//! acknowledged?
//!
//! Source: Yuan15 §6.2; repo-protocol (the protocols of ndn-python-repo, NDNts and repo-ng).
//!
//! ```text
//!   router ◄──► face ──► Interests under our prefixes ──► readers ──┐
//!                    └─► commands ──► jobs ──► fetches ──┐          ├─► store
//!   TCP ──► bulk insertion ──────────────────────────────┴► writer ─┘
//! ```
//!
//! A reader takes a batch of waiting Interests, and asks the store for all of them at once. One writer takes a batch of
//! waiting Data, and acknowledges it when the store has it: one commit serves many.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`repo`] | a running repository |
//! | [`reads`] | Interests for Data |
//! | [`commands`] | Interests under the repository's name |
//! | [`command`] | the messages of clients |
//! | `jobs`, `statuses` | what a command does, and how far it is |
//! | `shares` | places for commands, divided among faces |
//! | `groups`, `group_member` | membership of sync groups |
//! | [`access`] | who may command, and what may be stored |
//! | [`remote`] | the client of a repository |
//! | `registrations` | prefixes at the router |
//! | [`bulk`] | bulk insertion over TCP |
//! | `writer` | the one thread that stores |
//! | [`statistics`] | counters |
//! | [`store`] | what every store can do, and the stores |
//! | [`check`] | reads a whole store |
//! | [`archive`] | Data in a file |
//! | [`retention`] | what may be forgotten, and when |

pub mod access;
pub mod archive;
pub mod bulk;
pub mod check;
pub mod command;
pub mod commands;
mod group_member;
mod groups;
mod jobs;
mod log_lines;
pub mod reads;
mod registrations;
pub mod remote;
pub mod repo;
pub mod retention;
mod shares;
pub mod statistics;
mod statuses;
pub mod store;
mod writer;

pub use remote::{PutProgress, RemoteError, RemoteRepo};
pub use repo::{Repo, RepoError, RepoSettings};
