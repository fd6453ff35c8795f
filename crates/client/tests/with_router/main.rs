//! Clients of a real router: the programs of the folder examples; connections after a restart of the router;
//! certificates that expire or are revoked; sync groups with a forging member.

mod certificates;
mod connections;
mod examples;
mod node;
mod revocation;
mod sync_groups;
