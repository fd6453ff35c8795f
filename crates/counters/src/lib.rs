//! The counters of an engine. They are plain numbers: one thread writes them and publishes a copy.
//!
//! | question | file |
//! | --- | --- |
//! | what passed through an engine? | [`Counters`], here |
//! | why was a packet dropped? | [`drop_reason`] |
//! | which limits took effect, and let the packet go on? | [`limit_met`] |
//! | for how many answers does each face wait, and which faces exceeded their limit? | [`face_share`] |
//! | what happened in the Content Store, by policy and by prefix? | [`cs_counts`] |

pub mod cs_counts;
pub mod drop_reason;
pub mod face_share;
pub mod limit_met;

pub use cs_counts::{CsCounts, CsPolicyCounts, CsPrefixCounts, CsReport, MAX_COUNTED_PREFIXES};
pub use drop_reason::DropReason;
pub use face_share::{FaceCut, FacesCut};
pub use limit_met::LimitMet;

use namewire_packet::{counters::Count, nfd::PacketCounts};

namewire_packet::counters! {
    /// Counters of one engine since it started. All are numbers of packets or entries.
    pub struct Counters {
        /// Interests handed in.
        pub in_interests: u64,
        /// Data handed in. Data that several workers see counts once.
        pub in_data: u64,
        /// Nacks handed in.
        pub in_nacks: u64,
        /// Interests to be sent.
        pub out_interests: u64,
        /// Data to be sent.
        pub out_data: u64,
        /// Nacks to be sent.
        pub out_nacks: u64,
        /// Interests that joined a pending entry, from a face that was not among its downstreams (or no longer, after a
        /// Nack).
        pub aggregated: u64,
        /// Interests that a face repeated while its earlier one was pending.
        pub retransmitted: u64,
        /// PIT entries that ended with Data.
        pub satisfied: u64,
        /// PIT entries that ended without Data.
        pub unsatisfied: u64,
        /// Interests answered by the Content Store.
        pub cs_hits: u64,
        /// Interests that the Content Store was asked for and could not answer, without those that ended as loops.
        pub cs_misses: u64,
        /// Interests that began or renewed a PIT entry, or were refused one, where the Content Store serves nothing and
        /// was not asked. Without those that ended as loops.
        pub cs_not_asked: u64,
        /// Data that the Content Store stored, new or in place of other Data of their name.
        pub cs_insertions: u64,
        /// Data that the Content Store's policy did not admit.
        pub cs_not_admitted: u64,
        /// Data whose token matched nothing here, sent on to other workers that may be waiting for it.
        pub redispatched: u64,
        /// Core role: Interests kept by fingerprint.
        pub by_fingerprint: u64 = "core.by-fingerprint",
        /// Of `by_fingerprint`: Interests that found their fingerprint pending, for the same name or another.
        pub fingerprints_collided: u64 = "core.fingerprints-collided",
        /// Core role: Data that found its fingerprint pending.
        pub fingerprints_satisfied: u64 = "core.fingerprints-satisfied",
        /// Core role: Data that came with the mark *collided*.
        pub collided_marks_in: u64 = "core.collided-marks-in",
        /// Of `collided_marks_in`: marks from applications of this machine, which are ignored.
        pub collided_marks_ignored: u64 = "core.collided-marks-ignored",
        /// Core role: Data sent with the mark *collided*.
        pub collided_marks_out: u64 = "core.collided-marks-out",
        /// Core role: Data with a PIT token for which no name was pending any more. It left the matching fingerprint in
        /// place.
        pub answers_after_their_names: u64 = "core.answers-after-their-names",
        /// Core role: CanBePrefix Interests that Data of a longer name answered, sent to a next hop that takes no PIT
        /// tokens. If that Data was not their answer, their own answer can remove a fingerprint.
        pub prefixes_without_token: u64 = "core.prefixes-without-token",
        /// The faces with the most [`DropReason::FaceShareUsed`].
        pub faces_cut: FacesCut,
        /// One counter per [`DropReason`], in its order.
        pub drops: [u64; DropReason::COUNT],
        /// One counter per [`LimitMet`], in its order.
        pub limits: [u64; LimitMet::COUNT],
    }
}

impl Counters {
    /// The packets, as datasets have them.
    pub const fn packets(&self) -> PacketCounts {
        let Counters { in_interests, in_data, in_nacks, out_interests, out_data, out_nacks, .. } = *self;
        PacketCounts { in_interests, in_data, in_nacks, out_interests, out_data, out_nacks }
    }

    /// Counts that `limit` took effect.
    #[inline]
    pub fn meet(&mut self, limit: LimitMet) {
        self.limits[limit as usize] += 1;
    }

    /// How often `limit` took effect.
    pub fn met(&self, limit: LimitMet) -> u64 {
        self.limits[limit as usize]
    }

    /// Packets dropped for `reason`.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }

    /// Packets dropped for any reason.
    pub fn dropped_total(&self) -> u64 {
        self.drops.iter().sum()
    }

    /// Adds the counters of another worker.
    pub fn merge(&mut self, other: &Counters) {
        Count::merge(self, other);
    }
}
