//! The lab: one command for every result that a document of this project quotes.
//!
//! * `experiments`: one file or folder for each experiment, and the table of them all; `experiment_file`: the TOML file
//!   of each, with its question, its sources and its sizes.
//! * `record`, `machine`, `statistics`, `clock`, `tsc`: how results are measured and kept.
//! * `baseline`: the results of an earlier program, for comparison.
//! * `budget`: the instructions that each stage of a packet may take.
//! * `paper_results`: every table and figure of the papers, with our result.
//! * `kept_records`: which records in `lab/record` are older than the code, and how they are renewed.
//! * `terminal`: a record as text; `report`: all records as a page with plots. Both compare our figures with those of
//!   others.
//! * `power`: the power of a router by its load, for the experiment of that name and for users' own machines.
//! * `attack`: the attacks that `hostile` runs against a router, and `knock`: honest clients at the same time.
//! * `load`, `router_process`, `router_control`, `process`: a real router in a separate process, and the load that
//!   another process generates.
//!
//! Modules are private unless the program or its tests need them, so that the compiler reports unused items.
#![cfg_attr(not(feature = "complete"), allow(dead_code, unused_imports, reason = "experiments left out use the rest"))]
#![allow(missing_docs, unreachable_pub, reason = "a program: only its own tests use the library")]

pub mod attack;
pub mod baseline;
pub mod budget;
mod cache_models;
pub mod clock;
mod design_measurement;
mod disturbance;
pub mod experiment;
mod experiment_file;
pub mod experiments;
mod fib_measurement;
mod hardware_counters;
pub mod host;
mod instruction_count;
pub mod interrupt;
pub mod kept_records;
pub mod knock;
pub mod load;
pub mod machine;
mod name_arena;
mod name_sets;
mod namespaces;
mod network_graph;
mod numbered_names;
#[cfg(feature = "complete")]
pub mod paper_results;
mod papers;
mod peers;
pub mod power;
pub mod process;
pub mod record;
#[cfg(feature = "complete")]
pub mod report;
mod requests;
mod root_rules;
mod route_load;
pub mod router_control;
pub mod router_process;
mod sample_table;
mod split_mix;
pub mod statistics;
mod synthetic_names;
#[cfg(feature = "complete")]
mod tag_sets;
#[cfg(feature = "complete")]
pub mod terminal;
mod text_lines;
mod tsc;
