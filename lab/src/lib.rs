//! The lab: every result that a document of this project quotes, by one command.
//!
//! * `experiments`: what can be run, one file per experiment and one line in a table.
//! * `record`, `machine`, `statistics`, `clock`, `tsc`: how a result is taken and kept.
//! * `report`: one page of records, the figures of others beside ours.
//! * `load`, `router_process`, `router_control`, `process`: a router as it really
//!   runs, in a process of its own, under a load made by another process.

mod bar_chart;
pub mod cache_models;
pub mod clock;
pub mod design_measurement;
pub mod experiment;
pub mod experiments;
pub mod fib_measurement;
pub mod instruction_count;
pub mod interrupt;
pub mod load;
pub mod machine;
pub mod name_arena;
pub mod name_sets;
pub mod numbered_names;
pub mod peers;
pub mod process;
pub mod record;
pub mod report;
pub mod requests;
pub mod root_rules;
pub mod route_load;
pub mod router_control;
pub mod router_process;
pub mod split_mix;
pub mod statistics;
pub mod synthetic_names;
pub mod text_lines;
pub mod tsc;
