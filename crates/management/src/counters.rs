//! What management counts.
//!
//! `status/drops` shows requests without an answer, and data that was not kept, beside the workers' drops. It does not
//! show commands that got a code other than 200, because the sender knows of them. It does show refusals because the
//! node is short of memory.

use namewire_packet::nfd::DropCounter;

namewire_packet::counters! {
    /// The outcomes of requests, one counter for each.
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
        pub not_an_interest: u64 = "management.not-an-interest",
        /// Not answered: not under `/localhost/nfd`.
        pub foreign_prefix: u64 = "management.foreign-prefix",
        /// Not answered: the request names a snapshot or event that is not kept (any longer).
        pub not_kept: u64 = "management.not-kept",
        /// Not answered: the command's face was gone before its turn came.
        pub orphaned: u64 = "management.command-of-closed-face",
        /// Not answered: the answer would be larger than a packet.
        pub reply_too_large: u64 = "management.reply-too-large",
        /// Data and Nacks for no Interest of this node.
        pub unsolicited_answers: u64 = "management.unsolicited-answer",
        /// Routes, strategy choices and next hops refused because the system has no memory to spare.
        pub no_memory: u64 = "management.no-memory",
        /// Routes that expired.
        pub routes_expired: u64,
        /// Commands to the routing daemon that it answered with a code below 400.
        pub readvertised: u64,
        /// Commands to the routing daemon that failed, or were not answered.
        pub readvertise_failed: u64 = "management.readvertise-failed",
        /// Prefixes not sent to the routing daemon, because there are too many.
        pub readvertise_full: u64 = "management.readvertise-full",
        /// Routes that announcements from the network made or renewed.
        pub routes_learned: u64,
        /// Announcements from the network that made no route: malformed, not valid, or without permission.
        pub announcements_refused: u64 = "management.announcement-refused",
        /// Announcements that made a route but are not passed on: too large, or too many.
        pub announcements_not_kept: u64 = "management.announcement-not-kept",
        /// Announced routes that ended because the next hop had no route itself.
        pub routes_forgotten: u64,
    }
}

impl ManagementCounters {
    /// The counters that `status/drops` shows. Those at zero are left out.
    pub(crate) fn drop_counters(&self) -> impl Iterator<Item = DropCounter> {
        let occurred = self.named().into_iter().filter(|(_, count)| *count > 0);
        occurred.map(|(name, count)| DropCounter { reason: name.to_owned(), count })
    }
}
