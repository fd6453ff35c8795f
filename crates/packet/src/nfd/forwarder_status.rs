//! ForwarderStatus: the whole node in numbers (dataset `status/general`).

use super::{
    field::{Field, Fields, NfdError},
    numbers::types::{
        CURRENT_TIMESTAMP, N_CS_ENTRIES, N_FIB_ENTRIES, N_IN_DATA, N_IN_INTERESTS, N_IN_NACKS, N_MEASUREMENTS_ENTRIES,
        N_NAME_TREE_ENTRIES, N_OUT_DATA, N_OUT_INTERESTS, N_OUT_NACKS, N_PIT_ENTRIES, N_SATISFIED_INTERESTS,
        N_UNSATISFIED_INTERESTS, NFD_VERSION, START_TIMESTAMP,
    },
};

/// Content of `status/general`: its fields stand directly in the Content, without
/// an outer element (management.md §6.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the field names are the protocol's
pub struct ForwarderStatus {
    /// Version of the forwarder software.
    pub nfd_version: String,
    /// Milliseconds since 1970.
    pub start_timestamp_ms: u64,
    /// Milliseconds since 1970.
    pub current_timestamp_ms: u64,
    pub n_name_tree_entries: u64,
    pub n_fib_entries: u64,
    pub n_pit_entries: u64,
    pub n_measurements_entries: u64,
    pub n_cs_entries: u64,
    pub n_in_interests: u64,
    pub n_in_data: u64,
    pub n_in_nacks: u64,
    pub n_out_interests: u64,
    pub n_out_data: u64,
    pub n_out_nacks: u64,
    pub n_satisfied_interests: u64,
    pub n_unsatisfied_interests: u64,
}

impl ForwarderStatus {
    /// Appends the fields.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.nfd_version.write(out, NFD_VERSION);
        self.start_timestamp_ms.write(out, START_TIMESTAMP);
        self.current_timestamp_ms.write(out, CURRENT_TIMESTAMP);
        self.n_name_tree_entries.write(out, N_NAME_TREE_ENTRIES);
        self.n_fib_entries.write(out, N_FIB_ENTRIES);
        self.n_pit_entries.write(out, N_PIT_ENTRIES);
        self.n_measurements_entries.write(out, N_MEASUREMENTS_ENTRIES);
        self.n_cs_entries.write(out, N_CS_ENTRIES);
        self.n_in_interests.write(out, N_IN_INTERESTS);
        self.n_in_data.write(out, N_IN_DATA);
        self.n_in_nacks.write(out, N_IN_NACKS);
        self.n_out_interests.write(out, N_OUT_INTERESTS);
        self.n_out_data.write(out, N_OUT_DATA);
        self.n_out_nacks.write(out, N_OUT_NACKS);
        self.n_satisfied_interests.write(out, N_SATISFIED_INTERESTS);
        self.n_unsatisfied_interests.write(out, N_UNSATISFIED_INTERESTS);
    }

    /// Reads a Content.
    ///
    /// # Errors
    /// If the fields are malformed or one is absent.
    pub fn decode(content: &[u8]) -> Result<Self, NfdError> {
        let fields = Fields::of_value(content)?;
        Ok(ForwarderStatus {
            nfd_version: fields.required(NFD_VERSION)?,
            start_timestamp_ms: fields.required(START_TIMESTAMP)?,
            current_timestamp_ms: fields.required(CURRENT_TIMESTAMP)?,
            n_name_tree_entries: fields.required(N_NAME_TREE_ENTRIES)?,
            n_fib_entries: fields.required(N_FIB_ENTRIES)?,
            n_pit_entries: fields.required(N_PIT_ENTRIES)?,
            n_measurements_entries: fields.required(N_MEASUREMENTS_ENTRIES)?,
            n_cs_entries: fields.required(N_CS_ENTRIES)?,
            n_in_interests: fields.required(N_IN_INTERESTS)?,
            n_in_data: fields.required(N_IN_DATA)?,
            n_in_nacks: fields.required(N_IN_NACKS)?,
            n_out_interests: fields.required(N_OUT_INTERESTS)?,
            n_out_data: fields.required(N_OUT_DATA)?,
            n_out_nacks: fields.required(N_OUT_NACKS)?,
            n_satisfied_interests: fields.required(N_SATISFIED_INTERESTS)?,
            n_unsatisfied_interests: fields.required(N_UNSATISFIED_INTERESTS)?,
        })
    }
}
