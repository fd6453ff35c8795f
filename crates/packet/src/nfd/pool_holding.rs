//! PoolHolding: how much of a pool a holder has (dataset `status/holders`).
//!
//! This dataset is ours; NFD has no such dataset. A pool is a resource that the router has in a limited amount. A
//! holder is a remote host, a user of this machine, or another party that has one share of the pool.

use super::{
    element::element,
    numbers::types::{DATASET_ENTRY, POOL_CAPACITY, POOL_HELD, POOL_HOLDER, POOL_NAME, POOL_REFUSED},
};

element! {
    element DATASET_ENTRY:
    /// One entry of `status/holders`: 128 { 128 pool text, 129 holder text ?, 130 capacity, 131 held, 132 refused }.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize))]
    pub struct PoolHolding {
        /// The pool, for example `faces`.
        pub pool: String = POOL_NAME,
        /// The holder, for example an address. `None`: all holders together.
        pub holder: Option<String> = POOL_HOLDER,
        /// What the pool has, over all workers.
        pub capacity: u64 = POOL_CAPACITY,
        /// What the holder has of it.
        pub held: u64 = POOL_HELD,
        /// How often the holder was refused more.
        pub refused: u64 = POOL_REFUSED,
    }
}
