//! ForwarderStatus: the whole node in numbers (dataset `status/general`).

use super::{
    Dataset, DatasetEntry, PacketCounts,
    element::element,
    field::{Fields, NfdError},
};

element! {
    fields:
    /// Content of `status/general`: the fields themselves, without an outer element (management.md §6.2).
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    #[allow(missing_docs)] // the field names are the protocol's
    pub struct ForwarderStatus {
        /// Version of the forwarder software.
        pub nfd_version: String = 128 as "version",
        /// Milliseconds since 1970.
        pub start_timestamp_ms: u64 = 129 as "start_time_ms",
        /// Milliseconds since 1970.
        #[cfg_attr(feature = "serde", serde(skip))]
        pub current_timestamp_ms: u64 = 130,
        pub n_name_tree_entries: u64 = 131 as "name_tree_entries",
        pub n_fib_entries: u64 = 132 as "fib_entries",
        pub n_pit_entries: u64 = 133 as "pit_entries",
        pub n_measurements_entries: u64 = 134 as "measurements_entries",
        pub n_cs_entries: u64 = 135 as "cs_entries",
        /// Packets.
        #[cfg_attr(feature = "serde", serde(flatten))]
        pub packets: PacketCounts = 144,
        pub n_satisfied_interests: u64 = 153 as "satisfied_interests",
        pub n_unsatisfied_interests: u64 = 154 as "unsatisfied_interests",
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

impl DatasetEntry for ForwarderStatus {
    fn encode(&self, out: &mut Vec<u8>) {
        self.encode(out);
    }
    fn decode(content: &[u8]) -> Result<Self, NfdError> {
        ForwarderStatus::decode(content)
    }
}

impl Dataset for ForwarderStatus {
    const NAME: &'static str = "status/general";

    /// The content is one entry.
    fn decode_all(content: &[u8]) -> Result<Vec<Self>, NfdError> {
        Ok(vec![ForwarderStatus::decode(content)?])
    }
}
