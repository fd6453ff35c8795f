//! FibEntry: a prefix and its next hops (dataset `fib/list`).

use super::{
    DatasetEntry,
    field::{Field, Fields, NfdError},
    numbers::types::{COST, DATASET_ENTRY, FACE_ID, NESTED_RECORD},
};
use crate::{
    FaceId, NameBuf,
    tlv::{self, types::NAME},
};

/// One next hop of a FIB entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHopRecord {
    /// Face to send to.
    pub face_id: FaceId,
    /// Cost; lower is better.
    pub cost: u64,
}

/// One entry of `fib/list` (management.md §6.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FibEntry {
    /// The prefix.
    pub name: NameBuf,
    /// Next hops by cost.
    pub next_hops: Vec<NextHopRecord>,
}

impl Field for NextHopRecord {
    fn write(&self, out: &mut Vec<u8>, type_number: u32) {
        tlv::write_nested(out, type_number, |out| {
            self.face_id.write(out, FACE_ID);
            self.cost.write(out, COST);
        });
    }
    fn read(_: u32, value: &[u8]) -> Result<Self, NfdError> {
        let fields = Fields::of_value(value)?;
        Ok(NextHopRecord { face_id: fields.required(FACE_ID)?, cost: fields.required(COST)? })
    }
}

impl DatasetEntry for FibEntry {
    fn encode(&self, out: &mut Vec<u8>) {
        tlv::write_nested(out, DATASET_ENTRY, |out| {
            self.name.write(out, NAME);
            for next_hop in &self.next_hops {
                next_hop.write(out, NESTED_RECORD);
            }
        });
    }

    fn decode(wire: &[u8]) -> Result<Self, NfdError> {
        let fields = Fields::of_element(wire, DATASET_ENTRY)?;
        Ok(FibEntry { name: fields.required(NAME)?, next_hops: fields.all(NESTED_RECORD)? })
    }
}
