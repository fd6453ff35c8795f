//! Counters of a face, kept twice: plain integers that the link service increments per packet, and atomics that any
//! thread may read.
//!
//! Only the owner thread writes. It publishes the plain counters once per batch with relaxed stores. So a packet costs
//! no atomic read-modify-write, and a reader lags by at most one batch.

use std::sync::atomic::{AtomicU64, Ordering};

use namewire_packet::{
    counters::Count,
    nfd::{self, LinkCounts, PacketCounts},
};

use crate::LinkDrop;

/// Declares the counters of a link, and the published copy of them.
macro_rules! link_counters {
    ($($(#[$doc:meta])* $field:ident $(= $name:literal)?,)+) => {
        namewire_packet::counters! {
            /// Plain counters of one link service. Packets are network packets; bytes are
            /// those of frames, link headers included.
            pub struct LinkCounters {
                $($(#[$doc])* pub $field: u64 $(= $name)?,)+
                /// Drops by reason, indexed by `LinkDrop as usize`.
                pub drops: [u64; LinkDrop::COUNT],
            }
        }

        impl LinkCounters {
            /// All counters that are not zero, by name: for a program of another version.
            pub fn all_named(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                let fields = [$((stringify!($field), self.$field),)+];
                fields.into_iter().chain(LinkDrop::named(&self.drops)).filter(|(_, count)| *count > 0)
            }

            /// Counters by their names in [`LinkCounters::all_named`]; names that are not known here are left out.
            pub fn of_named(count: impl Fn(&str) -> Option<u64>) -> Self {
                let mut counters = LinkCounters {
                    $($field: count(stringify!($field)).unwrap_or_default(),)+
                    ..LinkCounters::default()
                };
                for ((name, _), drops) in LinkDrop::named(&counters.drops).zip(&mut counters.drops) {
                    *drops = count(name).unwrap_or_default();
                }
                counters
            }
        }

        /// The published copy of [`LinkCounters`], readable from any thread.
        #[derive(Debug)]
        pub struct FaceCounters {
            $($(#[$doc])* pub $field: AtomicU64,)+
            /// When something was last received, by the owner's clock. 0: not published yet.
            pub last_received_ns: AtomicU64,
            /// Largest frame that the path takes, in bytes. `u64::MAX` if that is not known; 0: not published yet.
            pub path_mtu: AtomicU64,
            /// The sum of `drops`.
            drops_total: AtomicU64,
            /// Drops by reason, indexed by `LinkDrop as usize`.
            pub drops: [AtomicU64; LinkDrop::COUNT],
        }

        impl Default for FaceCounters {
            fn default() -> Self {
                FaceCounters {
                    $($field: AtomicU64::default(),)+
                    last_received_ns: AtomicU64::default(),
                    path_mtu: AtomicU64::default(),
                    drops_total: AtomicU64::default(),
                    drops: std::array::from_fn(|_| AtomicU64::default()),
                }
            }
        }

        impl FaceCounters {
            /// Overwrites the published values. Only the owner thread may call this.
            pub fn publish(&self, counters: &LinkCounters) {
                $(self.$field.store(counters.$field, Ordering::Relaxed);)+
                self.publish_drops(&counters.drops);
            }

            /// A copy of the published values, not a consistent cut across fields.
            pub fn snapshot(&self) -> LinkCounters {
                LinkCounters {
                    $($field: self.$field.load(Ordering::Relaxed),)+
                    drops: std::array::from_fn(|reason| self.drops[reason].load(Ordering::Relaxed)),
                }
            }
        }
    };
}

link_counters! {
    /// Interests received, Nacks not included.
    in_interests,
    /// Data received.
    in_data,
    /// Nacks received.
    in_nacks,
    /// Frame bytes received, dropped frames included.
    in_bytes,
    /// Interests sent, Nacks not included.
    out_interests,
    /// Data sent.
    out_data,
    /// Nacks sent.
    out_nacks,
    /// Frame bytes handed to the transport.
    out_bytes,
    /// Packets of TagNet received.
    in_tag_packets = "link.in-tag-packets",
    /// Packets of TagNet sent.
    out_tag_packets = "link.out-tag-packets",
    /// Packets whose frames were all acknowledged without being sent again (reliability only).
    acknowledged = "reliability.acknowledged",
    /// Packets that were acknowledged after some frame was sent again.
    retransmitted = "reliability.retransmitted",
    /// Frames sent again.
    frames_retransmitted = "reliability.frames-retransmitted",
    /// Packets on which this link put a CongestionMark.
    congestion_marked = "congestion.marked",
    /// Times that a UDP face made its frames smaller, because its path takes less than before.
    path_mtu_lowered = "path-mtu.lowered",
    /// Times that a UDP face made its frames larger again.
    path_mtu_raised = "path-mtu.raised",
    /// Times that a UDP face with reliability made its frames smaller, because larger ones vanished on the path.
    path_mtu_black_holes = "path-mtu.black-holes",
}

impl LinkCounters {
    /// What passed, as datasets have it.
    pub fn passed(&self) -> nfd::FaceCounters {
        let LinkCounters { in_interests, in_data, in_nacks, out_interests, out_data, out_nacks, .. } = *self;
        let packets = PacketCounts { in_interests, in_data, in_nacks, out_interests, out_data, out_nacks };
        nfd::FaceCounters { packets, in_bytes: self.in_bytes, out_bytes: self.out_bytes }
    }

    /// What the link did, as datasets have it.
    pub fn link(&self) -> LinkCounts {
        LinkCounts {
            frames_retransmitted: Some(self.frames_retransmitted),
            congestion_marked: Some(self.congestion_marked),
        }
    }

    /// Counts one drop.
    pub fn count_drop(&mut self, reason: LinkDrop) {
        self.count_drops(reason, 1);
    }

    /// Counts several drops.
    pub fn count_drops(&mut self, reason: LinkDrop, count: u64) {
        self.drops[reason as usize] += count;
    }

    /// Drops for `reason`.
    pub fn dropped(&self, reason: LinkDrop) -> u64 {
        self.drops[reason as usize]
    }

    /// Adds what another link counted.
    pub fn merge(&mut self, other: &LinkCounters) {
        Count::merge(self, other);
    }
}

impl FaceCounters {
    /// There are many drop counters, which rarely change and only grow: their sum shows whether one did.
    fn publish_drops(&self, drops: &[u64; LinkDrop::COUNT]) {
        let total = drops.iter().sum();
        if self.drops_total.load(Ordering::Relaxed) != total {
            self.drops_total.store(total, Ordering::Relaxed);
            for (shared, plain) in self.drops.iter().zip(drops) {
                shared.store(*plain, Ordering::Relaxed);
            }
        }
    }

    /// Drops for `reason`.
    pub fn dropped(&self, reason: LinkDrop) -> u64 {
        self.drops[reason as usize].load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_pass_by_name() {
        let mut counters = LinkCounters::default();
        let mut number = 0;
        counters.visit(&mut |count| {
            number += 1;
            *count = number;
        });
        let named: std::collections::BTreeMap<&str, u64> = counters.all_named().collect();
        assert_eq!(named.len() as u64, number, "two have the same name");
        assert_eq!(LinkCounters::of_named(|name| named.get(name).copied()), counters);
        let one = LinkCounters::of_named(|name| (name == "in_data").then_some(7));
        assert_eq!(one.all_named().collect::<Vec<_>>(), [("in_data", 7)]);
    }
}
