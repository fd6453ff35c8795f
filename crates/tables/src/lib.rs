//! Name tables of an NDN router: keyed prefix hash, FIB, PIT, Content Store,
//! dead nonce list, timers.
//!
//! Callers pass a name as the bytes of a *validated* Name TLV-VALUE: component TLVs back to back. Faces are
//! integers. Nothing here reads a packet, a clock or a random source; time is an argument, in nanoseconds
//! of a monotonic clock.
//!
//! | question | module |
//! | --- | --- |
//! | what is the hash of every prefix of this name? | [`name_hash`] |
//! | which next hops does the longest prefix of this name have? | [`fib`] |
//! | when can readers no longer hold what was unlinked? | [`quiescence`] |
//! | is this Interest pending, is this Data stored? (one probe) | [`pit_cs`], made of [`name_group`], [`pit`], [`content_store`] |
//! | which Data is stored in the Content Store, and which is evicted? | [`cs_policy`] |
//! | which stored name is the first under a prefix? | [`name_order`] |
//! | which ports asked for a name of this fingerprint? | [`fingerprint_pit`] |
//! | was this (name, Nonce) forwarded by a PIT entry that is gone? | [`dead_nonce_list`] |
//! | which entries are due? | [`timer_wheel`] |
//! | is there memory for allocations that would otherwise end the process? | [`head_room`] |
//!
//! Every table has a capacity. PIT, Content Store, dead nonce list and timers map their memory at the
//! start, and touch it only when they use it. Their operations allocate nothing.

pub mod arena;
pub mod content_store;
pub mod cs_policy;
pub mod dead_nonce_list;
pub mod eviction_queue;
pub mod fib;
pub mod fingerprint_pit;
pub mod hash_key;
pub mod head_room;
pub mod name_group;
pub mod name_hash;
pub mod name_order;
pub mod pages;
pub mod pit;
pub mod pit_cs;
pub mod prefetch;
pub mod quiescence;
mod short_copy;
pub mod sip_hash;
pub mod slab;
mod tag_compare;
pub mod tag_index;
pub mod timer_wheel;

pub use content_store::policy::{CsPolicy, PolicyName};
pub use content_store::{
    CsArrival, CsEntry, CsHit, CsId, CsInsert, CsRefusal, CsWanted, IndirectRefusal, PrefixLookup,
};
pub use dead_nonce_list::DeadNonceList;
pub use fib::{
    BatchLookUp, Fib, FibConfig, FibEntry, FibHint, FibMatch, FibPin, FibReader, FibRefusal, FibSearch, FibView,
    Inserted, NameStorage, NextHop,
};
pub use fingerprint_pit::{FingerprintPit, FingerprintPitConfig, FingerprintPitRefusal};
pub use name_group::{GroupHint, GroupId, GroupToken, Probed};
pub use name_hash::{HashKey, MAX_NAME_COMPONENTS, NameHashes, TooManyComponents, hash_name};
pub use pages::{PageArray, PageSize, PageVec};
pub use pit::{PitEntry, PitId, PitRefusal, Recycle, Variant};
pub use pit_cs::{PitCs, PitCsConfig};
pub use timer_wheel::TimerWheel;
