//! What went through a face, counted twice: plain integers that the link service
//! bumps per packet, and atomics that anybody may read.
//!
//! The owner thread alone writes. It publishes the plain counters once per batch
//! with relaxed stores, so a packet costs no atomic read-modify-write, and a
//! reader lags by one batch at most.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::LinkDrop;

/// Plain counters of one link service. Packets are network packets; octets are
/// those of frames, link headers included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Interests received, Nacks not included.
    pub in_interests: u64,
    /// Data received.
    pub in_data: u64,
    /// Nacks received.
    pub in_nacks: u64,
    /// Frame octets received, dropped frames included.
    pub in_octets: u64,
    /// Interests sent, Nacks not included.
    pub out_interests: u64,
    /// Data sent.
    pub out_data: u64,
    /// Nacks sent.
    pub out_nacks: u64,
    /// Frame octets handed to the transport.
    pub out_octets: u64,
    /// Drops by reason, indexed by `LinkDrop as usize`.
    pub drops: [u64; LinkDrop::COUNT],
}

impl LinkCounters {
    /// Counts one drop.
    pub fn count_drop(&mut self, reason: LinkDrop) {
        self.drops[reason as usize] += 1;
    }

    /// Drops for `reason`.
    pub fn dropped(&self, reason: LinkDrop) -> u64 {
        self.drops[reason as usize]
    }
}

/// The published copy of [`LinkCounters`], readable from any thread.
#[derive(Debug, Default)]
pub struct FaceCounters {
    /// Interests received, Nacks not included.
    pub in_interests: AtomicU64,
    /// Data received.
    pub in_data: AtomicU64,
    /// Nacks received.
    pub in_nacks: AtomicU64,
    /// Frame octets received.
    pub in_octets: AtomicU64,
    /// Interests sent, Nacks not included.
    pub out_interests: AtomicU64,
    /// Data sent.
    pub out_data: AtomicU64,
    /// Nacks sent.
    pub out_nacks: AtomicU64,
    /// Frame octets sent or queued.
    pub out_octets: AtomicU64,
    /// Drops by reason, indexed by `LinkDrop as usize`.
    pub drops: [AtomicU64; LinkDrop::COUNT],
}

impl FaceCounters {
    /// Overwrites the published values. Only the owner thread may call this.
    pub fn publish(&self, counters: &LinkCounters) {
        let LinkCounters {
            in_interests,
            in_data,
            in_nacks,
            in_octets,
            out_interests,
            out_data,
            out_nacks,
            out_octets,
            drops,
        } = counters;
        let pairs = [
            (&self.in_interests, in_interests),
            (&self.in_data, in_data),
            (&self.in_nacks, in_nacks),
            (&self.in_octets, in_octets),
            (&self.out_interests, out_interests),
            (&self.out_data, out_data),
            (&self.out_nacks, out_nacks),
            (&self.out_octets, out_octets),
        ];
        for (shared, plain) in pairs.into_iter().chain(self.drops.iter().zip(drops)) {
            shared.store(*plain, Ordering::Relaxed);
        }
    }

    /// A copy of the published values, not a consistent cut across fields.
    pub fn snapshot(&self) -> LinkCounters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LinkCounters {
            in_interests: read(&self.in_interests),
            in_data: read(&self.in_data),
            in_nacks: read(&self.in_nacks),
            in_octets: read(&self.in_octets),
            out_interests: read(&self.out_interests),
            out_data: read(&self.out_data),
            out_nacks: read(&self.out_nacks),
            out_octets: read(&self.out_octets),
            drops: std::array::from_fn(|i| read(&self.drops[i])),
        }
    }

    /// Drops for `reason`.
    pub fn dropped(&self, reason: LinkDrop) -> u64 {
        self.drops[reason as usize].load(Ordering::Relaxed)
    }
}
