//! The parts of an engine, each with its own owner.
//!
//! A pipeline gets all parts. The functions that it calls get only the part that they need.

use crate::{
    EngineConfig,
    counters::cs_counts::CsCounting,
    ground::drop_notes::Counting,
    state::{core_role::CoreRole, measurements::Measurements, scratch::Scratch, tables::Tables},
};
use namewire_packet::FaceId;
use namewire_shares::HolderId;
use namewire_tables::fib::FlowCache;

/// See the module.
pub(crate) struct Parts {
    pub(crate) config: EngineConfig,
    pub(crate) tables: Tables,
    /// What the FIB answered for the parents of recent names.
    pub(crate) flows: FlowCache,
    /// Only in the core role.
    pub(crate) core: Option<Box<CoreRole>>,
    /// What strategies remember beyond one PIT entry.
    pub(crate) measurements: Measurements,
    pub(crate) counters: Counting,
    pub(crate) cs_counting: CsCounting,
    pub(crate) random: fastrand::Rng,
    pub(crate) scratch: Scratch,
}

impl Parts {
    /// Whether Data that comes now needs the hashes of its name's prefixes, or the prefetches of the core role.
    pub(crate) fn wants_prefixes_of_data(&self) -> bool {
        self.tables.has_pending_prefixes(None) || self.cs_counting.counts_prefixes() || self.core.is_some()
    }

    /// Whether the face may have another PIT entry, without taking one from others.
    pub(crate) fn may_ask(&self, face: FaceId, holder: HolderId) -> bool {
        self.tables.records.shares.may_have_entry(face, holder).is_ok()
    }
}
