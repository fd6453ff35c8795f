//! ProcessPrivileges: the rights of the forwarder's process beyond those of an ordinary user (dataset
//! `status/privileges`).
//!
//! This dataset is ours; NFD has no such dataset.

use super::{
    element::element,
    numbers::types::{DATASET_ENTRY, PROCESS_CAPABILITIES, PROCESS_NO_NEW_PRIVILEGES, PROCESS_USER},
};

element! {
    element DATASET_ENTRY:
    /// The entry of `status/privileges`: 128 { 128 user, 129 capabilities text, 130 1 if none can be gained }.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct ProcessPrivileges {
        /// The number of the process's user.
        pub user: u64 = PROCESS_USER,
        /// Its capabilities, as capabilities(7) names them, in small letters: `net-raw net-admin`. Empty: none.
        pub capabilities: String = PROCESS_CAPABILITIES,
        /// The process cannot gain privileges by executing a program (`no_new_privs`).
        pub no_new_privileges: bool = PROCESS_NO_NEW_PRIVILEGES,
    }
}
