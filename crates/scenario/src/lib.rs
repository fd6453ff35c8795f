//! Networks of real forwarding engines, described by a file: the program `namewire-sim`.
//!
//! ```text
//!   scenario.toml ─ file ─ check ─┐
//!   links, movements, changes ────┴─ world ─ run ─ results ─ csv_files, page
//!                                                            └─ comparison of variants and seeds
//! ```
//!
//! | question | module |
//! | --- | --- |
//! | what may a scenario say? | [`file`], `check` |
//! | which files does it read? | [`topology`], [`movement`], [`changes`] |
//! | what does a consumer ask for, and when? | `wishes` |
//! | how do nodes get routes? | `routes`, `shortest_paths` |
//! | how does a network come from it, and what happens in it? | `world`, `agenda`, [`run`] |
//! | what is found, and how is it written? | [`results`], `csv_files`, `page`, `frames_kept` |
//! | how do variants compare, over several seeds? | `comparison` |
//! | where do constellations and other large networks come from? | [`generate`] |
//! | what can be typed? | [`command_line`] |
//!
//! A strategy of another crate runs in a scenario as one of ours does: a program with its own `main` gives it to
//! [`command_line::main`] by [`OwnStrategies::with`].

#![expect(missing_docs, reason = "the fields of a scenario are documented where users read: docs/simulator.md")]

mod agenda;
pub mod bit_rate;
pub mod changes;
mod check;
pub mod command_line;
mod comparison;
mod csv_files;
pub mod file;
mod frames_kept;
pub mod generate;
pub mod movement;
mod page;
pub mod results;
mod routes;
pub mod run;
mod shortest_paths;
mod sync_member;
pub mod topology;
mod wishes;
mod world;

pub use file::Scenario;
pub use world::{OwnStrategies, default_node};
