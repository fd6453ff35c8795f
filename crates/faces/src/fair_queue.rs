//! Fair queue: the frames that wait for a peer that does not read, queued by the holder that caused them.
//!
//! Interests of many consumers wait for one producer. If all waited in one line, a flooding consumer would fill it: the
//! Interests of others would wait behind its own, or be dropped. So each holder has a separate line, and the lines take
//! turns ([`namewire_shares::turns`], in bytes):
//!
//! ```text
//!   Interests of 192.0.2.1  ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓ ─┐
//!   Interests of user 1000  ▓▓                   ─┼─ turns ─► output (FIFO) ─► kernel
//!   Data that it asked for  ▓▓▓▓                 ─┘
//! ```
//!
//! Data and Nacks belong to the peer's own holder, which asked for them. The driver makes a fair queue when an Interest
//! meets a blocked stream, and frees it when nothing waits. A stream that takes everything at once has none.
//!
//! Where the queue has no room, the newest frames of the holder with the most bytes make room for others
//! ([`crate::LinkDrop::QueueDisplaced`]). Further frames of that holder are refused, as if it were alone.
//!
//! Limits: those of the send queue (`socket_driver/outlet.rs`). Cost: a frame is copied twice, into its line and into
//! the output; a search of all lines each time the heaviest holder has lost half of its bytes.

use std::collections::{HashMap, VecDeque};

use namewire_packet::MAX_PACKET_BYTES;
use namewire_shares::{Groups, HolderId, Payer, Turns};

/// Bytes of one holder in a round of turns: one frame of any size.
const QUANTUM_BYTES: u32 = MAX_PACKET_BYTES as u32;

/// See the module documentation.
pub(crate) struct FairQueue {
    /// No line is empty.
    lines: HashMap<HolderId, Line>,
    turns: Turns<HolderId>,
    bytes: usize,
    /// A holder that has at least half of what the heaviest has, and what it had when it was chosen or grew last.
    heaviest: HolderId,
    peak: usize,
}

/// The frames of one holder, oldest first.
#[derive(Default)]
struct Line {
    frames: VecDeque<Box<[u8]>>,
    bytes: usize,
}

impl FairQueue {
    pub(crate) fn new(groups: &Groups) -> Self {
        let (lines, turns) = (HashMap::new(), Turns::new(QUANTUM_BYTES, groups));
        FairQueue { lines, turns, bytes: 0, heaviest: HolderId::MANAGEMENT, peak: 0 }
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends a frame to the line of the holder that caused it.
    pub(crate) fn push(&mut self, holder: HolderId, header: &[u8], slice: &[u8]) {
        let line = self.lines.entry(holder).or_insert_with(|| {
            self.turns.push(Payer::Holder(holder), holder);
            Line::default()
        });
        let frame: Box<[u8]> = [header, slice].concat().into();
        line.bytes += frame.len();
        self.bytes += frame.len();
        line.frames.push_back(frame);
        if line.bytes > self.peak {
            (self.heaviest, self.peak) = (holder, line.bytes);
        }
    }

    /// Moves frames to `out`, in turns, until these are at least `bytes` or nothing waits.
    pub(crate) fn take(&mut self, bytes: usize, out: &mut Vec<u8>) {
        let enough = out.len() + bytes;
        while out.len() < enough
            && let Some(holder) = self.turns.begin()
        {
            let Some(line) = self.lines.get_mut(&holder) else {
                self.turns.end(0, false);
                continue;
            };
            let frame = line.frames.pop_front().unwrap_or_default();
            out.extend_from_slice(&frame);
            line.bytes -= frame.len();
            self.bytes -= frame.len();
            let has_more = !line.frames.is_empty();
            if !has_more {
                self.lines.remove(&holder);
            }
            self.turns.end(frame.len() as u32, has_more);
        }
    }

    /// Drops the newest frame of the heaviest holder to make room for one of `holder`; returns how many bytes that
    /// were. `None`: no other holder is heavier.
    pub(crate) fn displace(&mut self, holder: HolderId) -> Option<usize> {
        let bytes_of = |lines: &HashMap<HolderId, Line>, holder| lines.get(&holder).map_or(0, |line: &Line| line.bytes);
        if bytes_of(&self.lines, self.heaviest) * 2 < self.peak {
            let heaviest = self.lines.iter().max_by_key(|(_, line)| line.bytes);
            (self.heaviest, self.peak) = heaviest.map_or((holder, 0), |(&holder, line)| (holder, line.bytes));
        }
        let own = bytes_of(&self.lines, holder);
        let line = self.lines.get_mut(&self.heaviest)?;
        // The line keeps its last frame, so that it keeps its turn.
        if line.bytes <= own || line.frames.len() < 2 {
            return None;
        }
        let bytes = line.frames.pop_back()?.len();
        line.bytes -= bytes;
        self.bytes -= bytes;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(number: usize) -> HolderId {
        HolderId::from_index(300 + number).unwrap()
    }

    /// A frame that tells its holder and its number.
    fn frame(holder: u8, number: u8) -> [u8; 100] {
        let mut frame = [0; 100];
        (frame[0], frame[1]) = (holder, number);
        frame
    }

    fn taken(queue: &mut FairQueue, bytes: usize) -> Vec<(u8, u8)> {
        let mut out = Vec::new();
        queue.take(bytes, &mut out);
        out.chunks(100).map(|frame| (frame[0], frame[1])).collect()
    }

    #[test]
    fn lines_take_turns_and_each_is_in_order() {
        let mut queue = FairQueue::new(&Groups::default());
        for number in 0..250 {
            queue.push(holder(0), &frame(0, number)[..7], &frame(0, number)[7..]);
        }
        (0..3).for_each(|number| queue.push(holder(1), &[], &frame(1, number)));
        assert_eq!(queue.bytes(), 25_300);
        let all = taken(&mut queue, usize::MAX / 2);
        let of = |who: u8| all.iter().filter(move |(holder, _)| *holder == who).map(|(_, number)| *number);
        assert!(of(0).eq(0..250) && of(1).eq(0..3));
        let last = all.iter().rposition(|(holder, _)| *holder == 1).unwrap();
        assert!(last <= MAX_PACKET_BYTES / 100 + 4, "it waited for {last} frames");
        assert_eq!(queue.bytes(), 0);
    }

    #[test]
    fn the_heaviest_makes_room_with_its_newest() {
        let mut queue = FairQueue::new(&Groups::default());
        assert_eq!(queue.displace(holder(1)), None, "it is empty");
        (0..100).for_each(|number| queue.push(holder(0), &[], &frame(0, number)));
        assert_eq!(queue.displace(holder(0)), None, "it is its own queue");
        (0..60).for_each(|number| {
            assert_eq!(queue.displace(holder(1)), (number < 50).then_some(100), "{number}");
            queue.push(holder(1), &[], &frame(1, number));
        });
        let all = taken(&mut queue, usize::MAX / 2);
        let left: Vec<u8> = all.iter().filter(|(holder, _)| *holder == 0).map(|(_, number)| *number).collect();
        assert_eq!(left, (0..50).collect::<Vec<_>>());
        assert_eq!(all.len(), 110);
    }
}
