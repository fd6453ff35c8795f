//! A repository at a router in this process: commands, reads, bulk insertion.

mod bad_input;
mod bulk;
mod put_and_get;
mod revoked;
mod router;
mod sync_groups;
