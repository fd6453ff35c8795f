//! Session: announcements to one neighbour, and from it, each once and in order.
//!
//! Links lose, repeat and reorder packets, and neighbours start again without notice. So the entries of a session are
//! numbered from 0. The neighbour's hello contains the number of the entry that it waits for. Entries that it does not
//! confirm in time are sent again. If the neighbour no longer knows a session that it had confirmed, it has restarted:
//! the sender begins another session and announces everything again.
//!
//! ```text
//!   confirmed │ base ......... sent ......... base + waiting.len()
//!             │  on their way   │  not yet sent
//! ```
//!
//! Cost: an entry takes 32 bytes until it is confirmed. Limits: [`WINDOW_ENTRIES`] on their way. The owner bounds the
//! entries that wait: at the bound it begins another session.

use super::wire::{AnnouncedEntry, MAX_ENTRIES, Progress, RoutingPacket};
use std::collections::VecDeque;

/// Most entries on their way to a neighbour.
const WINDOW_ENTRIES: u64 = 16 * MAX_ENTRIES as u64;
/// Entries are sent again when the neighbour has confirmed nothing for that long. It doubles up to the longest, which
/// need not be long: a neighbour that is gone is noticed after some seconds.
const RESEND_MS: u64 = 300;
const RESEND_LONGEST_MS: u64 = 1_200;

/// What a neighbour's hello says about this router's session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The neighbour follows it, or has not heard of it yet.
    Followed,
    /// The neighbour has forgotten it.
    Forgotten,
}

/// Both directions of a link in a tree.
#[derive(Debug)]
pub(super) struct Session {
    session: u64,
    /// The number of the first entry that waits for confirmation.
    base: u64,
    /// The number of the first entry that was not sent since the last time-out.
    sent: u64,
    waiting: VecDeque<AnnouncedEntry>,
    is_confirmed: bool,
    resend_ms: u64,
    resend_after_ms: u64,
    /// The neighbour's session, and the entry of it that this router waits for.
    heard: u64,
    next: u64,
    /// This router owes the neighbour a hello that confirms entries.
    pub(super) owes_hello: bool,
    /// A limit refused some of the neighbour's entries.
    pub(super) has_refused: bool,
}

impl Session {
    /// A session with this number, which is not 0.
    pub(super) const fn new(session: u64) -> Self {
        Session {
            session,
            base: 0,
            sent: 0,
            waiting: VecDeque::new(),
            is_confirmed: false,
            resend_ms: 0,
            resend_after_ms: RESEND_MS,
            heard: 0,
            next: 0,
            owes_hello: true,
            has_refused: false,
        }
    }

    /// Begins again with another number. What is heard stays.
    pub(super) fn begin_again(&mut self, session: u64) {
        *self = Session { heard: self.heard, next: self.next, has_refused: self.has_refused, ..Session::new(session) };
    }

    /// Forgets what was heard: the neighbour will tell everything again.
    pub(super) const fn forget_heard(&mut self) {
        (self.heard, self.next, self.has_refused, self.owes_hello) = (0, 0, false, true);
    }

    /// Entries that wait for confirmation.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn push(&mut self, entry: AnnouncedEntry) {
        self.waiting.push_back(entry);
    }

    pub(super) const fn progress(&self) -> Progress {
        Progress { session: self.session, heard: self.heard, next: self.next }
    }

    /// Takes what the neighbour's hello says about this router's session.
    pub(super) fn confirmed(&mut self, heard: u64, next: u64, now_ms: u64) -> Standing {
        if heard != self.session {
            return if self.is_confirmed { Standing::Forgotten } else { Standing::Followed };
        }
        self.is_confirmed = true;
        // Hellos that were overtaken do not come here. So the neighbour forgot the session and heard of it again.
        let Some(confirmed) = next.checked_sub(self.base) else { return Standing::Forgotten };
        let confirmed = confirmed.min(self.waiting.len() as u64);
        if confirmed > 0 {
            self.waiting.drain(..confirmed as usize);
            self.base += confirmed;
            self.sent = self.sent.max(self.base);
            self.resend_after_ms = RESEND_MS;
            self.resend_ms = now_ms + RESEND_MS;
        }
        Standing::Followed
    }

    /// True if a session with this number is another than the one that was heard last.
    pub(super) const fn is_new(&self, session: u64) -> bool {
        session != self.heard
    }

    /// Follows the neighbour's new session from its beginning.
    pub(super) const fn follow(&mut self, session: u64) {
        (self.heard, self.next, self.has_refused, self.owes_hello) = (session, 0, false, true);
    }

    /// The entries that were not received before; none if one before them is missing.
    pub(super) fn received<'e>(&mut self, first: u64, entries: &'e [AnnouncedEntry]) -> &'e [AnnouncedEntry] {
        self.owes_hello = true;
        let Some(known) = self.next.checked_sub(first) else { return &[] };
        let new = entries.get(known as usize..).unwrap_or_default();
        self.next += new.len() as u64;
        new
    }

    /// When entries are due, if any wait.
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        let may_send = self.sent < self.base + (self.waiting.len() as u64).min(WINDOW_ENTRIES);
        match (self.owes_hello || may_send, self.waiting.is_empty()) {
            (true, _) => Some(0),
            (false, false) => Some(self.resend_ms),
            (false, true) => None,
        }
    }

    /// The packets that are due.
    pub(super) fn take_due(&mut self, tree: u16, now_ms: u64, mut send: impl FnMut(&RoutingPacket)) {
        let is_on_the_way = self.sent > self.base;
        if is_on_the_way && now_ms >= self.resend_ms {
            self.sent = self.base;
            self.resend_after_ms = (self.resend_after_ms * 2).min(RESEND_LONGEST_MS);
        }
        let end = self.base + (self.waiting.len() as u64).min(WINDOW_ENTRIES);
        if self.sent < end && self.sent == self.base {
            self.resend_ms = now_ms + self.resend_after_ms;
        }
        while self.sent < end {
            let from = (self.sent - self.base) as usize;
            let count = (end - self.sent).min(MAX_ENTRIES as u64) as usize;
            let entries = self.waiting.range(from..from + count).copied().collect();
            send(&RoutingPacket::Announcements { tree, session: self.session, first: self.sent, entries });
            self.sent += count as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Descriptor, forwarder::Serves};
    use proptest::prelude::*;

    fn entry(number: u64) -> AnnouncedEntry {
        AnnouncedEntry { descriptor: Descriptor([number, 0, 0]), serves: Some(Serves::PULL) }
    }

    /// Everything arrives once and in order, over a link that loses half of all packets.
    fn all_arrive(count: u64, seed: u64) {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut sender, mut receiver) = (Session::new(5), Session::new(6));
        (0..count).for_each(|number| sender.push(entry(number)));
        receiver.follow(5);
        let mut received = Vec::new();
        let mut now_ms = 0;
        while sender.waiting() > 0 {
            now_ms += 100;
            assert!(now_ms < 10_000_000, "{} still wait", sender.waiting());
            let mut packets = Vec::new();
            sender.take_due(1, now_ms, |packet| packets.push(packet.clone()));
            random.shuffle(&mut packets);
            for packet in packets.iter().filter(|_| random.bool()) {
                let RoutingPacket::Announcements { first, entries, .. } = packet else { panic!("{packet:?}") };
                received.extend_from_slice(receiver.received(*first, entries));
            }
            let Progress { heard, next, .. } = receiver.progress();
            if random.bool() {
                assert_eq!(sender.confirmed(heard, next, now_ms), Standing::Followed);
            }
        }
        assert_eq!(received, (0..count).map(entry).collect::<Vec<_>>());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn entries_arrive_once_and_in_order(count in 0..3_000_u64, seed: u64) {
            all_arrive(count, seed);
        }
    }

    #[test]
    fn a_neighbour_that_waits_for_a_confirmed_entry_has_forgotten_it() {
        let mut sender = Session::new(5);
        sender.push(entry(1));
        assert_eq!(sender.confirmed(5, 1, 0), Standing::Followed);
        assert_eq!(sender.confirmed(5, 0, 0), Standing::Forgotten);
    }

    #[test]
    fn a_neighbour_that_restarted_is_recognized() {
        let mut sender = Session::new(5);
        sender.push(entry(1));
        assert_eq!(sender.confirmed(0, 0, 0), Standing::Followed, "it has not heard yet");
        assert_eq!(sender.confirmed(5, 1, 0), Standing::Followed);
        assert_eq!(sender.waiting(), 0);
        assert_eq!(sender.confirmed(0, 0, 0), Standing::Forgotten);
        sender.begin_again(7);
        assert_eq!(sender.confirmed(5, 1, 0), Standing::Followed, "an old hello is no news");
    }
}
