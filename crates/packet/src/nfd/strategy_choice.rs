//! StrategyChoice: a prefix and its strategy (dataset `strategy-choice/list`).

use super::{element::element, numbers::types::STRATEGY};
use crate::{NameBuf, tlv::types::NAME};

element! {
    dataset "strategy-choice/list":
    /// One entry of `strategy-choice/list` (management.md §6.2).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct StrategyChoice {
        /// The prefix.
        pub name: NameBuf = NAME as "prefix",
        /// Full instance name of the strategy, with version and parameters.
        pub strategy: NameBuf = STRATEGY,
    }
}
