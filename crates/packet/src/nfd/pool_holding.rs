//! PoolHolding: how much of a pool a holder has (dataset `status/holders`).
//!
//! This dataset is ours; NFD has no such dataset. A pool is a resource that the router has in a limited amount. A
//! holder is a remote host, a user of this machine, or another party that has one share of the pool.

use super::element::element;

element! {
    dataset "status/holders":
    /// One entry of `status/holders`.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct PoolHolding {
        /// The pool, for example `faces`.
        pub pool: String = 128,
        /// The holder, for example an address. `None`: all holders together.
        pub holder: Option<String> = 129,
        /// What the pool has, over all workers.
        pub capacity: u64 = 130,
        /// What the holder has of it.
        pub held: u64 = 131,
        /// How often the holder was refused more.
        pub refused: u64 = 132,
    }
}
