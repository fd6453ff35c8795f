//! The input that streams keep for later batches, and the last messages of datagram sockets.

use crate::stream::InputRoom;
use crate::sys::ReceivedBatch;

pub(super) struct Inlet {
    pub(super) messages: ReceivedBatch,
    kept_bytes: usize,
    kept_limit_bytes: usize,
    short_reads: u64,
}

impl Inlet {
    pub(super) fn new(kept_limit_bytes: usize) -> Self {
        Inlet { messages: ReceivedBatch::new(), kept_bytes: 0, kept_limit_bytes, short_reads: 0 }
    }

    /// How much more input streams may keep.
    pub(super) fn room(&self) -> InputRoom {
        match self.kept_bytes {
            kept if kept >= self.kept_limit_bytes => InputRoom::None,
            kept if kept >= self.kept_limit_bytes / 2 => InputRoom::Little,
            _ => InputRoom::Plenty,
        }
    }

    /// Notes that a stream had its turn and now keeps another number of bytes.
    pub(super) fn note_turn(&mut self, kept_before: usize, kept_now: usize) {
        self.kept_bytes = self.kept_bytes - kept_before + kept_now;
    }

    /// Counts a turn that was cut short for lack of room.
    pub(super) fn count_short_read(&mut self) {
        self.short_reads += 1;
    }

    pub(super) fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }

    pub(super) fn short_reads(&self) -> u64 {
        self.short_reads
    }
}
