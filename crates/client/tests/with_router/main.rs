//! Clients of a real router: the programs of the folder examples; connections that come back; certificates that expire;
//! sync groups in which a member forges.

mod certificates;
mod connections;
mod examples;
mod node;
mod sync_groups;
