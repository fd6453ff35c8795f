//! What an engine counts. Plain numbers: one thread writes, and copies them out
//! when somebody asks.

use crate::{DropReason, FacesCut, LimitMet};
use namewire_packet::FaceId;

/// Counters of one engine since it started. All are numbers of packets or entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Interests handed in.
    pub in_interests: u64,
    /// Data handed in; one that several workers see counts once.
    pub in_data: u64,
    /// Nacks handed in.
    pub in_nacks: u64,
    /// Interests to be sent.
    pub out_interests: u64,
    /// Data to be sent.
    pub out_data: u64,
    /// Nacks to be sent.
    pub out_nacks: u64,
    /// Interests that joined an entry that was there, from a face that was not (or, told a
    /// Nack, no longer) among its downstreams.
    pub aggregated: u64,
    /// Interests that a face repeated while its first was pending.
    pub retransmitted: u64,
    /// PIT entries that ended with Data.
    pub satisfied: u64,
    /// PIT entries that ended without.
    pub unsatisfied: u64,
    /// Interests answered by the Content Store.
    pub cs_hits: u64,
    /// Interests that the Content Store was asked for and could not answer; those that
    /// ended as loops are left out.
    pub cs_misses: u64,
    /// Interests that began or renewed a PIT entry, or were refused one, without a look into a Content Store that
    /// serves nothing; those that ended as loops are left out.
    pub cs_not_asked: u64,
    /// Data that the Content Store took in, new or in place of other Data of their name.
    pub cs_insertions: u64,
    /// Data that its policy did not let in.
    pub cs_not_admitted: u64,
    /// Data whose token came to nothing here while other workers may be waiting for them.
    pub redispatched: u64,
    /// Core role: Interests kept by fingerprint.
    pub by_fingerprint: u64,
    /// Of those, that found their fingerprint pending, for the same name or another.
    pub fingerprints_collided: u64,
    /// Core role: Data that found its fingerprint pending.
    pub fingerprints_satisfied: u64,
    /// Core role: Data that came with the mark *collided*.
    pub collided_marks_in: u64,
    /// Of those, from applications of this machine, whose mark is not heeded.
    pub collided_marks_ignored: u64,
    /// Core role: Data sent with it.
    pub collided_marks_out: u64,
    /// Core role: Data with a PIT token for which no name waited any more, and that left the fingerprint that it found.
    pub answers_after_their_names: u64,
    /// Core role: CanBePrefix Interests that were answered by Data of a longer name and had gone to a next hop that
    /// takes no PIT tokens: if that was not the answer to them, theirs can take away a fingerprint.
    pub prefixes_without_token: u64,
    /// The faces with most [`DropReason::FaceShareUsed`].
    pub faces_cut: FacesCut,
    /// One counter per [`DropReason`], in its order.
    pub drops: [u64; DropReason::COUNT],
    /// One counter per [`LimitMet`], in its order.
    pub limits: [u64; LimitMet::COUNT],
}

impl Counters {
    pub(crate) fn drop(&mut self, reason: DropReason) {
        self.drops[reason as usize] += 1;
    }

    pub(crate) fn cut(&mut self, face: FaceId) {
        self.drop(DropReason::FaceShareUsed);
        self.faces_cut.add(face, 1);
    }

    pub(crate) fn meet(&mut self, limit: LimitMet) {
        self.limits[limit as usize] += 1;
    }

    /// How often `limit` was met.
    pub fn met(&self, limit: LimitMet) -> u64 {
        self.limits[limit as usize]
    }

    /// What is counted in the core role alone, by name.
    pub fn core_counts(&self) -> [(&'static str, u64); 8] {
        [
            ("by-fingerprint", self.by_fingerprint),
            ("fingerprints-collided", self.fingerprints_collided),
            ("fingerprints-satisfied", self.fingerprints_satisfied),
            ("collided-marks-in", self.collided_marks_in),
            ("collided-marks-ignored", self.collided_marks_ignored),
            ("collided-marks-out", self.collided_marks_out),
            ("answers-after-their-names", self.answers_after_their_names),
            ("prefixes-without-token", self.prefixes_without_token),
        ]
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
        let pairs = [
            (&mut self.in_interests, other.in_interests),
            (&mut self.in_data, other.in_data),
            (&mut self.in_nacks, other.in_nacks),
            (&mut self.out_interests, other.out_interests),
            (&mut self.out_data, other.out_data),
            (&mut self.out_nacks, other.out_nacks),
            (&mut self.aggregated, other.aggregated),
            (&mut self.retransmitted, other.retransmitted),
            (&mut self.satisfied, other.satisfied),
            (&mut self.unsatisfied, other.unsatisfied),
            (&mut self.cs_hits, other.cs_hits),
            (&mut self.cs_misses, other.cs_misses),
            (&mut self.cs_not_asked, other.cs_not_asked),
            (&mut self.cs_insertions, other.cs_insertions),
            (&mut self.cs_not_admitted, other.cs_not_admitted),
            (&mut self.redispatched, other.redispatched),
            (&mut self.by_fingerprint, other.by_fingerprint),
            (&mut self.fingerprints_collided, other.fingerprints_collided),
            (&mut self.fingerprints_satisfied, other.fingerprints_satisfied),
            (&mut self.collided_marks_in, other.collided_marks_in),
            (&mut self.collided_marks_ignored, other.collided_marks_ignored),
            (&mut self.collided_marks_out, other.collided_marks_out),
            (&mut self.answers_after_their_names, other.answers_after_their_names),
            (&mut self.prefixes_without_token, other.prefixes_without_token),
        ];
        for (mine, theirs) in pairs {
            *mine += theirs;
        }
        self.faces_cut.merge(&other.faces_cut);
        let drops = self.drops.iter_mut().zip(other.drops);
        for (mine, theirs) in drops.chain(self.limits.iter_mut().zip(other.limits)) {
            *mine += theirs;
        }
    }
}
