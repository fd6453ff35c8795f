//! StrategyChoice: a prefix and its strategy (dataset `strategy-choice/list`).

use super::{
    DatasetEntry,
    field::{Field, Fields, NfdError},
    numbers::types::{DATASET_ENTRY, STRATEGY},
};
use crate::{
    NameBuf,
    tlv::{self, types::NAME},
};

/// One entry of `strategy-choice/list` (management.md §6.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrategyChoice {
    /// The prefix.
    pub name: NameBuf,
    /// Full instance name of the strategy, with version and parameters.
    pub strategy: NameBuf,
}

impl DatasetEntry for StrategyChoice {
    fn encode(&self, out: &mut Vec<u8>) {
        tlv::write_nested(out, DATASET_ENTRY, |out| {
            self.name.write(out, NAME);
            self.strategy.write(out, STRATEGY);
        });
    }

    fn decode(wire: &[u8]) -> Result<Self, NfdError> {
        let fields = Fields::of_element(wire, DATASET_ENTRY)?;
        Ok(StrategyChoice { name: fields.required(NAME)?, strategy: fields.required(STRATEGY)? })
    }
}
