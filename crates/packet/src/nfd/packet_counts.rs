//! Packet counters by kind and direction. Faces, workers and the whole forwarder have the same ones.
//!
//! One declaration states the field, the type number on the wire and the meaning of each counter. The fields of
//! datasets, the JSON of tools and of the observer, and the metrics are derived from it.

use super::{
    element::{Member, element},
    field::{Fields, NfdError},
    numbers::types::{N_IN_DATA, N_IN_INTERESTS, N_IN_NACKS, N_OUT_DATA, N_OUT_INTERESTS, N_OUT_NACKS},
};

/// One of the counts.
pub struct PacketCount {
    /// As in JSON, and at the end of a metric's name: `in_interests`.
    pub name: &'static str,
    /// One sentence for people.
    pub help: &'static str,
    /// Reads it.
    pub of: fn(&PacketCounts) -> u64,
}

macro_rules! packet_counts {
    ($($field:ident = $number:ident, $help:literal;)+) => {
        element! {
            fields:
            /// How many packets passed, by kind and direction.
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
            pub struct PacketCounts {
                $(#[doc = $help] pub $field: u64 = $number,)+
            }
        }

        impl PacketCounts {
            /// Each of them, in the order of the wire.
            pub const ALL: &'static [PacketCount] = &[
                $(PacketCount { name: stringify!($field), help: $help, of: |counts| counts.$field },)+
            ];
        }
    };
}

packet_counts! {
    in_interests = N_IN_INTERESTS, "Interests received.";
    in_data = N_IN_DATA, "Data received.";
    in_nacks = N_IN_NACKS, "Nacks received.";
    out_interests = N_OUT_INTERESTS, "Interests sent.";
    out_data = N_OUT_DATA, "Data sent.";
    out_nacks = N_OUT_NACKS, "Nacks sent.";
}

impl PacketCounts {
    /// Interests, Data and Nacks received.
    pub const fn incoming(&self) -> [u64; 3] {
        [self.in_interests, self.in_data, self.in_nacks]
    }

    /// Interests, Data and Nacks sent.
    pub const fn outgoing(&self) -> [u64; 3] {
        [self.out_interests, self.out_data, self.out_nacks]
    }

    /// Packets received, of any kind.
    pub fn received(&self) -> u64 {
        self.incoming().into_iter().fold(0, u64::saturating_add)
    }

    /// Packets sent, of any kind.
    pub fn sent(&self) -> u64 {
        self.outgoing().into_iter().fold(0, u64::saturating_add)
    }
}

/// Its fields are among those of the element that contains it; the type number is that of its first field.
impl Member for PacketCounts {
    fn write_member(&self, out: &mut Vec<u8>, _: u32) {
        self.write_fields(out);
    }
    fn read_member(fields: &Fields<'_>, _: u32) -> Result<Self, NfdError> {
        PacketCounts::read_fields(fields)
    }
}
