//! Packet counters by kind and direction. Faces, workers and the whole forwarder have the same ones.

use super::element::element;

element! {
    fields:
    /// How many packets passed, by kind and direction.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct PacketCounts {
        pub in_interests: u64 = 144 => Counter: "Interests received.",
        pub in_data: u64 = 145 => Counter: "Data received.",
        pub in_nacks: u64 = 151 => Counter: "Nacks received.",
        pub out_interests: u64 = 146 => Counter: "Interests sent.",
        pub out_data: u64 = 147 => Counter: "Data sent.",
        pub out_nacks: u64 = 152 => Counter: "Nacks sent.",
    }
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
