//! RibEntry: a prefix and its routes (dataset `rib/list`).

use super::{
    DatasetEntry,
    field::{Field, Fields, NfdError, write_optional},
    numbers::types::{COST, DATASET_ENTRY, EXPIRATION_PERIOD, FACE_ID, FLAGS, NESTED_RECORD, ORIGIN},
};
use crate::{
    FaceId, NameBuf,
    tlv::{self, types::NAME},
};

/// One route of a RIB entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Next hop.
    pub face_id: FaceId,
    /// Who registered it ([`super::origin`]).
    pub origin: u64,
    /// Cost; lower is better.
    pub cost: u64,
    /// [`super::route_flags`].
    pub flags: u64,
    /// Milliseconds left; `None` = never expires.
    pub expiration_period_ms: Option<u64>,
}

/// One entry of `rib/list` (management.md §6.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RibEntry {
    /// The prefix.
    pub name: NameBuf,
    /// Its routes.
    pub routes: Vec<Route>,
}

impl Field for Route {
    fn write(&self, out: &mut Vec<u8>, type_number: u32) {
        tlv::write_nested(out, type_number, |out| {
            self.face_id.write(out, FACE_ID);
            self.origin.write(out, ORIGIN);
            self.cost.write(out, COST);
            self.flags.write(out, FLAGS);
            write_optional(out, EXPIRATION_PERIOD, &self.expiration_period_ms);
        });
    }
    fn read(_: u32, value: &[u8]) -> Result<Self, NfdError> {
        let fields = Fields::of_value(value)?;
        Ok(Route {
            face_id: fields.required(FACE_ID)?,
            origin: fields.required(ORIGIN)?,
            cost: fields.required(COST)?,
            flags: fields.required(FLAGS)?,
            expiration_period_ms: fields.optional(EXPIRATION_PERIOD)?,
        })
    }
}

impl DatasetEntry for RibEntry {
    fn encode(&self, out: &mut Vec<u8>) {
        tlv::write_nested(out, DATASET_ENTRY, |out| {
            self.name.write(out, NAME);
            for route in &self.routes {
                route.write(out, NESTED_RECORD);
            }
        });
    }

    fn decode(wire: &[u8]) -> Result<Self, NfdError> {
        let fields = Fields::of_element(wire, DATASET_ENTRY)?;
        Ok(RibEntry { name: fields.required(NAME)?, routes: fields.all(NESTED_RECORD)? })
    }
}
