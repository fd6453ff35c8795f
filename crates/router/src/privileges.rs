//! The privileges of the process, as the kernel reports them.
//!
//! Source: capabilities(7), prctl(2). All threads of a router have the same capabilities: the process gives up unneeded
//! ones before it makes threads. So the capabilities of the control thread are those of the process.

use namewire_packet::nfd::ProcessPrivileges;
use rustix::{
    process::geteuid,
    thread::{CapabilitySet, capabilities, no_new_privs},
};

/// Asks the kernel: three system calls.
pub(crate) fn of_process() -> ProcessPrivileges {
    let effective = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    let names = effective.iter_names().map(|(name, _)| name.to_lowercase().replace('_', "-"));
    ProcessPrivileges {
        user: geteuid().as_raw().into(),
        capabilities: names.collect::<Vec<_>>().join(" "),
        no_new_privileges: no_new_privs().unwrap_or(false),
    }
}
