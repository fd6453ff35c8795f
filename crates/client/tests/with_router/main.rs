//! Clients of a real router: the programs of the folder examples, connections that come back, and sync groups that
//! somebody disturbs.

mod connections;
mod examples;
mod node;
mod sync_groups;
