//! Clients of a real router: the programs of the folder examples, connections that come back, certificates that end,
//! and sync groups that somebody disturbs.

mod certificates;
mod connections;
mod examples;
mod node;
mod sync_groups;
