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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Packets of which every frame was acknowledged without being sent again (reliability only).
    pub acknowledged: u64,
    /// Packets of which some frame was sent again before every one was acknowledged.
    pub retransmitted: u64,
    /// Frames sent again.
    pub frames_retransmitted: u64,
    /// Packets on which this link put a CongestionMark.
    pub congestion_marked: u64,
    /// Drops by reason, indexed by `LinkDrop as usize`.
    pub drops: [u64; LinkDrop::COUNT],
}

// By hand: arrays of more than 32 elements have no `Default`.
impl Default for LinkCounters {
    fn default() -> Self {
        LinkCounters {
            in_interests: 0,
            in_data: 0,
            in_nacks: 0,
            in_octets: 0,
            out_interests: 0,
            out_data: 0,
            out_nacks: 0,
            out_octets: 0,
            acknowledged: 0,
            retransmitted: 0,
            frames_retransmitted: 0,
            congestion_marked: 0,
            drops: [0; LinkDrop::COUNT],
        }
    }
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

    /// Adds what another link counted.
    pub fn merge(&mut self, other: &LinkCounters) {
        let LinkCounters {
            in_interests,
            in_data,
            in_nacks,
            in_octets,
            out_interests,
            out_data,
            out_nacks,
            out_octets,
            acknowledged,
            retransmitted,
            frames_retransmitted,
            congestion_marked,
            drops,
        } = other;
        let pairs = [
            (&mut self.in_interests, in_interests),
            (&mut self.in_data, in_data),
            (&mut self.in_nacks, in_nacks),
            (&mut self.in_octets, in_octets),
            (&mut self.out_interests, out_interests),
            (&mut self.out_data, out_data),
            (&mut self.out_nacks, out_nacks),
            (&mut self.out_octets, out_octets),
            (&mut self.acknowledged, acknowledged),
            (&mut self.retransmitted, retransmitted),
            (&mut self.frames_retransmitted, frames_retransmitted),
            (&mut self.congestion_marked, congestion_marked),
        ];
        for (sum, count) in pairs.into_iter().chain(self.drops.iter_mut().zip(drops)) {
            *sum += count;
        }
    }
}

/// The published copy of [`LinkCounters`], readable from any thread.
#[derive(Debug)]
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
    /// Packets acknowledged without being sent again.
    pub acknowledged: AtomicU64,
    /// Packets acknowledged after some frame was sent again.
    pub retransmitted: AtomicU64,
    /// Frames sent again.
    pub frames_retransmitted: AtomicU64,
    /// Packets on which this link put a CongestionMark.
    pub congestion_marked: AtomicU64,
    /// When something was last received, in the time of the owner's clock. 0: not published yet.
    pub last_received_ns: AtomicU64,
    /// The sum of `drops`.
    drops_total: AtomicU64,
    /// Drops by reason, indexed by `LinkDrop as usize`.
    pub drops: [AtomicU64; LinkDrop::COUNT],
}

impl Default for FaceCounters {
    fn default() -> Self {
        let zero = AtomicU64::default;
        FaceCounters {
            in_interests: zero(),
            in_data: zero(),
            in_nacks: zero(),
            in_octets: zero(),
            out_interests: zero(),
            out_data: zero(),
            out_nacks: zero(),
            out_octets: zero(),
            acknowledged: zero(),
            retransmitted: zero(),
            frames_retransmitted: zero(),
            congestion_marked: zero(),
            last_received_ns: zero(),
            drops_total: zero(),
            drops: std::array::from_fn(|_| zero()),
        }
    }
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
            acknowledged,
            retransmitted,
            frames_retransmitted,
            congestion_marked,
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
            (&self.acknowledged, acknowledged),
            (&self.retransmitted, retransmitted),
            (&self.frames_retransmitted, frames_retransmitted),
            (&self.congestion_marked, congestion_marked),
        ];
        for (shared, plain) in pairs {
            shared.store(*plain, Ordering::Relaxed);
        }
        // Drops are rare, only grow, and are many: the sum says whether there was one.
        let total = drops.iter().sum();
        if self.drops_total.load(Ordering::Relaxed) != total {
            self.drops_total.store(total, Ordering::Relaxed);
            for (shared, plain) in self.drops.iter().zip(drops) {
                shared.store(*plain, Ordering::Relaxed);
            }
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
            acknowledged: read(&self.acknowledged),
            retransmitted: read(&self.retransmitted),
            frames_retransmitted: read(&self.frames_retransmitted),
            congestion_marked: read(&self.congestion_marked),
            drops: std::array::from_fn(|i| read(&self.drops[i])),
        }
    }

    /// Drops for `reason`.
    pub fn dropped(&self, reason: LinkDrop) -> u64 {
        self.drops[reason as usize].load(Ordering::Relaxed)
    }
}
