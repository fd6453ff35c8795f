//! DropCounter: how many packets were dropped for one reason, or how often a limit was met
//! (dataset `status/drops`).
//!
//! This dataset is ours; NFD has none like it. It follows the protocol's rules, so
//! that any management client can fetch it.

use super::{
    DatasetEntry,
    field::{Field, Fields, NfdError},
    numbers::types::{DATASET_ENTRY, DROP_COUNT, DROP_REASON},
};
use crate::tlv;

/// One entry of `status/drops`: 128 { 128 reason text, 132 count }.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropCounter {
    /// Where and why, for example `engine.no-route` or `link.queue-full`.
    pub reason: String,
    /// Packets (or faces, for `face-closed.*`) since the start.
    pub count: u64,
}

impl DatasetEntry for DropCounter {
    fn encode(&self, out: &mut Vec<u8>) {
        tlv::write_nested(out, DATASET_ENTRY, |out| {
            self.reason.write(out, DROP_REASON);
            self.count.write(out, DROP_COUNT);
        });
    }

    fn decode(wire: &[u8]) -> Result<Self, NfdError> {
        let fields = Fields::of_element(wire, DATASET_ENTRY)?;
        Ok(DropCounter { reason: fields.required(DROP_REASON)?, count: fields.required(DROP_COUNT)? })
    }
}
