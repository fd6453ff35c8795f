//! Crowd: do the senders of a listener send more than the worker reads, and which of them send too much?
//!
//! The kernel keeps the datagrams of all senders in one buffer, and drops whatever comes while it is full. So a sender
//! that never stops would get the whole buffer and all turns of the listener. A worker reads datagrams several times as
//! fast as it can forward them. So a *crowded* listener takes at most [`PART`] datagrams of one sender in a read. It
//! drops the others of this sender, unparsed ([`crate::LinkDrop::TurnShare`]). So the buffer empties, and other senders
//! find room in it.
//!
//! A listener becomes crowded when the worker has read [`UNBROKEN`] datagrams in a row without emptying the kernel's
//! buffer, and the buffer is more than half full. It remains crowded until a read empties the buffer. So the listener
//! never cuts an application's window that fits half of the buffer, nor a sender that is alone.
//!
//! Cost: nothing for a datagram while the listener is not crowded and no other socket waits for its turn.

use hashbrown::HashMap;
use namewire_shares::HolderId;

/// Datagrams of one sender that a crowded listener passes on of each read: a quarter of it.
const PART: u32 = 16;

/// Datagrams read in a row before anybody looks at the kernel's buffer: four full reads.
const UNBROKEN: usize = 256;

/// Reads after which a sender counts as alone if no other one sent.
const SHARED_READS: u32 = 64;

/// The state of one listener.
#[derive(Default)]
pub(crate) struct Crowd {
    /// Datagrams read since the listener was last empty, or since the kernel's buffer was looked at.
    unbroken: usize,
    is_crowded: bool,
    /// A sender of the last read that was counted.
    last: Option<HolderId>,
    /// Reads that are left until the listener counts as used by one sender alone.
    shared_reads: u32,
}

impl Crowd {
    /// Notes a read that brought this number of messages. `is_full`: the read was full, so there may be more.
    /// `is_half_full` asks the kernel whether its buffer is more than half full.
    #[inline]
    pub(crate) fn note_read(&mut self, messages: usize, is_full: bool, is_half_full: impl FnOnce() -> bool) {
        if !is_full {
            (self.unbroken, self.is_crowded) = (0, false);
            return;
        }
        self.unbroken += messages;
        if self.unbroken >= UNBROKEN {
            (self.unbroken, self.is_crowded) = (0, is_half_full());
        }
    }

    /// Notes whose datagrams a read brought.
    pub(crate) fn note_senders(&mut self, brought: &Brought) {
        let is_shared = brought.senders > 1 || self.last.is_some_and(|last| last != brought.one);
        self.shared_reads = if is_shared { SHARED_READS } else { self.shared_reads.saturating_sub(1) };
        self.last = Some(brought.one);
    }
}

/// What a read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Brought {
    pub(crate) senders: usize,
    /// One of them.
    pub(crate) one: HolderId,
    /// Datagrams that were dropped.
    pub(crate) refused: u32,
}

/// What each sender brought in one read. One tally serves all listeners.
#[derive(Default)]
pub(crate) struct Tally {
    brought: HashMap<HolderId, u32>,
    /// Datagrams of one sender that are passed on.
    part: u32,
    refused: u32,
    /// Datagrams for which those who asked pay (`prepaid.rs`).
    paid: u32,
    is_on: bool,
}

impl Tally {
    /// Begins a read. Nothing is counted unless the listener is crowded or `others_wait` for their turns.
    pub(crate) fn begin(&mut self, crowd: &Crowd, others_wait: bool) {
        self.is_on = crowd.is_crowded || others_wait;
        if self.is_on {
            self.brought.clear();
            self.part = if crowd.is_crowded && crowd.shared_reads > 0 { PART } else { u32::MAX };
            (self.refused, self.paid) = (0, 0);
        }
    }

    /// Counts a datagram. False: the sender has had its part. `is_paid`: whether somebody else pays for it.
    #[inline(always)]
    pub(crate) fn admit(&mut self, sender: HolderId, is_paid: impl FnOnce() -> bool) -> bool {
        !self.is_on || self.count(sender, is_paid())
    }

    fn count(&mut self, sender: HolderId, is_paid: bool) -> bool {
        if is_paid {
            self.paid += 1;
            return true;
        }
        let brought = self.brought.entry(sender).or_default();
        *brought += 1;
        let is_admitted = *brought <= self.part;
        self.refused += u32::from(!is_admitted);
        is_admitted
    }

    /// Datagrams of this read that others pay for.
    pub(crate) fn paid(&self) -> u32 {
        if self.is_on { self.paid } else { 0 }
    }

    /// Ends the read; says whose datagrams it brought, if that was counted.
    pub(crate) fn end(&mut self) -> Option<Brought> {
        let is_on = std::mem::take(&mut self.is_on);
        let one = *self.brought.keys().next().filter(|_| is_on)?;
        Some(Brought { senders: self.brought.len(), one, refused: self.refused })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tally: &mut Tally, crowd: &Crowd, datagrams: &[(HolderId, u32)]) -> Vec<u32> {
        tally.begin(crowd, false);
        datagrams
            .iter()
            .map(|&(sender, count)| (0..count).filter(|_| tally.admit(sender, || false)).count() as u32)
            .collect()
    }

    #[test]
    fn a_listener_is_crowded_while_it_overflows_and_several_send() {
        let (mut crowd, mut tally) = (Crowd::default(), Tally::default());
        let (greedy, modest) = (HolderId::ANY_REMOTE, HolderId::ANY_LOCAL);
        for _ in 0..3 {
            crowd.note_read(64, true, || panic!("too early to look"));
        }
        assert_eq!(read(&mut tally, &crowd, &[(greedy, 63), (modest, 1)]), [63, 1], "it may be a burst");
        crowd.note_read(64, true, || false);
        assert!(!crowd.is_crowded, "a window that the buffer holds");
        (0..4).for_each(|_| crowd.note_read(64, true, || true));
        assert!(crowd.is_crowded);
        assert_eq!(read(&mut tally, &crowd, &[(greedy, 64)]), [64], "the only sender so far");
        crowd.note_senders(&tally.end().unwrap());
        assert_eq!(crowd.shared_reads, 0);
        assert_eq!(read(&mut tally, &crowd, &[(modest, 1)]), [1]);
        crowd.note_senders(&tally.end().unwrap());
        assert_eq!(read(&mut tally, &crowd, &[(greedy, 60), (modest, 4)]), [PART, 4]);
        let brought = tally.end().unwrap();
        assert_eq!((brought.senders, brought.refused), (2, 60 - PART));
        for _ in 0..SHARED_READS {
            assert_eq!(read(&mut tally, &crowd, &[(greedy, 64)]), [PART], "the other may come again");
            crowd.note_senders(&tally.end().unwrap());
            crowd.last = Some(greedy);
        }
        crowd.note_read(10, false, || panic!("it is empty"));
        assert_eq!(read(&mut tally, &crowd, &[(greedy, 64)]), [64]);
        assert_eq!(tally.end(), None);
    }
}
