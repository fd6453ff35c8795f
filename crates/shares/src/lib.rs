//! Fair shares: who holds how much of a pool, and may it take more?
//!
//! The router has many pools: PIT entries, bytes of send queues, faces, descriptors. A neighbour that takes a whole
//! pool locks all others out. So each pool counts what each *holder* has, and refuses more to a holder that has its
//! share.
//!
//! | question | file |
//! | --- | --- |
//! | who counts as one holder? | [`holder`] |
//! | which small number does a holder get, and what is the group of a number? | [`holder_table`] |
//! | may a holder take more of a pool, and who holds most? | [`pool`] |
//! | the same for a pool that several threads use | [`shared_pool`] |
//! | the same for connections: a holder has its number as long as it holds something | [`holder_pool`] |
//! | how often may a holder ask for something? | [`rates`] |
//! | which waiting input is served next? | [`turns`] |
//!
//! ```text
//!   face made ──► Holder::of_address … ──► HolderTable::enter ──► HolderId, which the face carries
//!   packet    ──► Pool::try_take(holder, amount) ──► counted, or Refusal
//! ```
//!
//! The crate does no input or output and reads no clock.

pub mod holder;
pub mod holder_pool;
pub mod holder_table;
pub mod pool;
pub mod rates;
pub mod shared_pool;
pub mod turns;

pub use holder::{Class, Holder};
pub use holder_pool::{Held, HolderPool, Refused};
pub use holder_table::{Groups, HolderId, HolderTable};
pub use pool::{Holding, Pool, PoolConfig, PoolReader, Refusal};
pub use rates::Rates;
pub use shared_pool::{SharedPool, Taken};
pub use turns::{Payer, Turns};
