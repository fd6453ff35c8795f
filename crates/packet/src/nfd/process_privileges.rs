//! ProcessPrivileges: the rights of the forwarder's process beyond those of an ordinary user (dataset
//! `status/privileges`).
//!
//! This dataset is ours; NFD has no such dataset.

use super::element::element;

element! {
    dataset "status/privileges":
    /// The entry of `status/privileges`.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct ProcessPrivileges {
        /// The number of the process's user.
        pub user: u64 = 128,
        /// Its capabilities, as capabilities(7) names them, in small letters: `net-raw net-admin`. Empty: none.
        #[cfg_attr(feature = "serde", serde(serialize_with = "words"))]
        pub capabilities: String = 129,
        /// The process cannot gain privileges by executing a program (`no_new_privs`).
        pub no_new_privileges: bool = 130,
    }
}

/// A list of the words in a text.
#[cfg(feature = "serde")]
fn words<S: serde::Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(text.split_whitespace())
}
