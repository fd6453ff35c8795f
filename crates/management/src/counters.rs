//! What management counts.
//!
//! What was not answered, or not kept, is shown in `status/drops` beside the workers' drops; commands answered by
//! another code than 200 are not, because the sender knows, but for those that the whole node is short of memory for.

use namewire_packet::nfd::DropCounter;

/// What happened to requests, one counter per end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ManagementCounters {
    /// Commands answered 200.
    pub commands_ok: u64,
    /// Commands and requests answered with another code.
    pub refused: u64,
    /// Dataset segments sent.
    pub segments: u64,
    /// Face event notifications sent.
    pub events: u64,
    /// Not answered: not an Interest.
    pub not_an_interest: u64,
    /// Not answered: not under `/localhost/nfd`.
    pub foreign_prefix: u64,
    /// Not answered: names a snapshot or event that is not kept, or not any more.
    pub not_kept: u64,
    /// Not answered: commands of faces that were gone before their turn came.
    pub orphaned: u64,
    /// Not answered: the answer would be larger than a packet.
    pub reply_too_large: u64,
    /// Routes, strategy choices and next hops refused because the system has no memory to spare.
    pub no_memory: u64,
    /// Routes that expired.
    pub routes_expired: u64,
    /// Commands to the routing daemon that it answered 200.
    pub readvertised: u64,
    /// Commands to the routing daemon that failed, or were not answered.
    pub readvertise_failed: u64,
    /// Prefixes not told to the routing daemon: too many.
    pub readvertise_full: u64,
    /// Data and Nacks for no Interest of this node.
    pub unsolicited_answers: u64,
    /// Routes that announcements from the network made or renewed.
    pub routes_learned: u64,
    /// Announcements from the network that made none: malformed, not valid, or of somebody who may not.
    pub announcements_refused: u64,
    /// Announcements that made a route but are not handed on: too large, or too many.
    pub announcements_not_kept: u64,
    /// Announced routes that ended because the next hop had no route itself.
    pub routes_forgotten: u64,
}

impl ManagementCounters {
    /// What `status/drops` shows; what never occurred is left out.
    pub(crate) fn drop_counters(&self) -> impl Iterator<Item = DropCounter> {
        let drops = [
            ("not-an-interest", self.not_an_interest),
            ("foreign-prefix", self.foreign_prefix),
            ("not-kept", self.not_kept),
            ("command-of-closed-face", self.orphaned),
            ("reply-too-large", self.reply_too_large),
            ("unsolicited-answer", self.unsolicited_answers),
            ("no-memory", self.no_memory),
            ("readvertise-failed", self.readvertise_failed),
            ("readvertise-full", self.readvertise_full),
            ("announcement-refused", self.announcements_refused),
            ("announcement-not-kept", self.announcements_not_kept),
        ];
        let occurred = drops.into_iter().filter(|(_, count)| *count > 0);
        occurred.map(|(name, count)| DropCounter { reason: format!("management.{name}"), count })
    }
}
