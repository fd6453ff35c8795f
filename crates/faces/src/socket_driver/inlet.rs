//! The input that streams keep for later batches, and the last messages of datagram sockets.

use namewire_shares::{HolderId, Pool, PoolReader, Refusal};

use crate::DriverConfig;
use crate::crowd::Tally;
use crate::stream::InputRoom;
use crate::sys::ReceivedBatch;

pub(super) struct Inlet {
    pub(super) messages: ReceivedBatch,
    pub(super) tally: Tally,
    kept: Pool,
    short_reads: u64,
}

impl Inlet {
    pub(super) fn new(config: &DriverConfig) -> Self {
        let kept = config.pool("kept-input", config.kept_input_bytes);
        Inlet { messages: ReceivedBatch::new(), tally: Tally::default(), kept, short_reads: 0 }
    }

    /// How much more input the streams of a holder may keep.
    pub(super) fn room(&self, holder: HolderId) -> InputRoom {
        if self.kept.used() == 0 {
            return InputRoom::Plenty;
        }
        match self.kept.room(holder) {
            0 => InputRoom::None,
            room if room < self.kept.held(holder) => InputRoom::Little,
            _ => InputRoom::Plenty,
        }
    }

    /// Notes that a stream of a holder had its turn and now keeps another number of bytes.
    pub(super) fn note_turn(&mut self, holder: HolderId, kept_before: usize, kept_now: usize) {
        if kept_before != kept_now {
            self.kept.give_back(holder, kept_before as u64);
            self.kept.take(holder, kept_now as u64);
        }
    }

    /// The pool, for reports.
    pub(super) fn kept(&self) -> PoolReader {
        self.kept.reader()
    }

    /// Counts a turn that was cut short for lack of room.
    pub(super) fn count_short_read(&mut self, holder: HolderId) {
        self.kept.count_refusal(holder, Refusal::ShareUsed);
        self.short_reads += 1;
    }

    pub(super) fn kept_bytes(&self) -> usize {
        self.kept.used() as usize
    }

    pub(super) fn short_reads(&self) -> u64 {
        self.short_reads
    }
}
