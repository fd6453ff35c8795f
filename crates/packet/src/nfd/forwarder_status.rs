//! ForwarderStatus: the whole node in numbers (dataset `status/general`).

use super::{
    PacketCounts,
    element::element,
    field::{Fields, NfdError},
    numbers::types::{
        CURRENT_TIMESTAMP, N_CS_ENTRIES, N_FIB_ENTRIES, N_IN_INTERESTS, N_MEASUREMENTS_ENTRIES, N_NAME_TREE_ENTRIES,
        N_PIT_ENTRIES, N_SATISFIED_INTERESTS, N_UNSATISFIED_INTERESTS, NFD_VERSION, START_TIMESTAMP,
    },
};

element! {
    fields:
    /// Content of `status/general`: the fields themselves, without an outer element (management.md §6.2).
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    #[allow(missing_docs)] // the field names are the protocol's
    pub struct ForwarderStatus {
        /// Version of the forwarder software.
        pub nfd_version: String = NFD_VERSION,
        /// Milliseconds since 1970.
        pub start_timestamp_ms: u64 = START_TIMESTAMP,
        /// Milliseconds since 1970.
        pub current_timestamp_ms: u64 = CURRENT_TIMESTAMP,
        pub n_name_tree_entries: u64 = N_NAME_TREE_ENTRIES,
        pub n_fib_entries: u64 = N_FIB_ENTRIES,
        pub n_pit_entries: u64 = N_PIT_ENTRIES,
        pub n_measurements_entries: u64 = N_MEASUREMENTS_ENTRIES,
        pub n_cs_entries: u64 = N_CS_ENTRIES,
        /// Packets.
        pub packets: PacketCounts = N_IN_INTERESTS,
        pub n_satisfied_interests: u64 = N_SATISFIED_INTERESTS,
        pub n_unsatisfied_interests: u64 = N_UNSATISFIED_INTERESTS,
    }
}

impl ForwarderStatus {
    /// Appends the fields.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.write_fields(out);
    }

    /// Reads a Content.
    ///
    /// # Errors
    /// If the fields are malformed or one is absent.
    pub fn decode(content: &[u8]) -> Result<Self, NfdError> {
        ForwarderStatus::read_fields(&Fields::of_value(content)?)
    }
}
