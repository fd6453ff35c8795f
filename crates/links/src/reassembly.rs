//! Reassembles fragmented network packets (NDNLPv2 §2).
//!
//! Fragments with the same Sequence − FragIndex, the message id, belong together. They may arrive in any order and more
//! than once. The packet gets the headers of fragment 0; headers on other fragments are ignored. On a link with several
//! peers, the sender is part of the id, so that their fragments are never mixed.
//!
//! Cost: each fragment is copied into its message. Only if fragments arrived out of order, the whole message is copied
//! once more. Memory grows with the bytes received, never with a number that the peer announces.
//!
//! Limits: a message has at most [`MAX_FRAGMENTS`] fragments and 8800 bytes. A face has at most [`MAX_MESSAGES`]
//! unfinished messages, and a limited number of bytes in them. Beyond these limits, the message that has waited longest
//! is discarded. The memory of all faces together is shared among hosts by the driver ([`LinkDrop::ReassemblyShare`]).
//! A message waits [`TIMEOUT_NS`] after its last fragment. With reliability all [`MAX_MESSAGES`] may have full size and
//! wait for [`RELIABLE_TIMEOUT_NS`].

use namewire_packet::MAX_PACKET_BYTES;
use namewire_packet::lp::LpHeaders;

use crate::{LinkCounters, LinkDrop};

/// Most fragments of one network packet (NFD `lp-reassembler.hpp`).
pub const MAX_FRAGMENTS: u64 = 400;

/// Most network packets in progress on one face.
pub const MAX_MESSAGES: usize = 64;

/// Most buffers of finished messages kept, for messages that arrive at the same time.
const MAX_SPARE: usize = 16;

/// Default limit of bytes in progress on one face.
pub const DEFAULT_REASSEMBLY_BYTES: usize = 64 * 1024;

/// How long a message waits after its last fragment, in nanoseconds: 500 ms.
pub const TIMEOUT_NS: u64 = 500_000_000;

/// The same where lost fragments are retransmitted, in nanoseconds: 4 s. Three retransmissions at the peer's initial
/// RTO take 3 s, and an acknowledged fragment does not come again.
pub const RELIABLE_TIMEOUT_NS: u64 = 4_000_000_000;

/// One received fragment with its link fields.
pub(crate) struct FragmentIn<'a> {
    /// Its sender; 0 on a link with one peer.
    pub(crate) sender: u64,
    pub(crate) sequence: Option<u64>,
    pub(crate) frag_index: u64,
    pub(crate) frag_count: u64,
    /// Used only if this is fragment 0.
    pub(crate) envelope: Envelope,
    pub(crate) payload: &'a [u8],
}

/// The headers of a network packet that legality and processing need.
#[derive(Clone, Copy, Default)]
pub(crate) struct Envelope {
    pub(crate) headers: LpHeaders,
    pub(crate) has_prefix_announcement: bool,
}

/// The messages in progress of one face.
pub(crate) struct Reassembler {
    messages: Vec<Message>,
    limit_bytes: usize,
    is_reliable: bool,
    held_bytes: usize,
    /// Memory of everything below and above, in bytes.
    memory_bytes: usize,
    /// The last packet completed; valid until the next one.
    assembled: Vec<u8>,
    /// Buffers of finished messages, so that a busy link allocates nothing.
    spare: Vec<Message>,
}

struct Message {
    id: MessageId,
    frag_count: u64,
    last_fragment_ns: u64,
    envelope: Envelope,
    seen: [u64; (MAX_FRAGMENTS as usize).div_ceil(64)],
    pieces: Vec<Piece>,
    bytes: Vec<u8>,
}

impl Message {
    fn memory_bytes(&self) -> usize {
        size_of::<Message>() + self.bytes.capacity() + self.pieces.capacity() * size_of::<Piece>()
    }
}

/// Sender, and Sequence − FragIndex.
type MessageId = (u64, u64);

/// Position of a fragment in `bytes`, which is in order of arrival.
#[derive(Clone, Copy)]
struct Piece {
    frag_index: u16,
    start: u16,
    len: u16,
}

impl Reassembler {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Reassembler {
            messages: Vec::new(),
            limit_bytes: limit_bytes.max(MAX_PACKET_BYTES),
            is_reliable: false,
            held_bytes: 0,
            memory_bytes: 0,
            assembled: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Sets whether lost fragments come again.
    pub(crate) fn set_reliable(&mut self, is_reliable: bool) {
        self.is_reliable = is_reliable;
    }

    fn timeout_ns(&self) -> u64 {
        if self.is_reliable { RELIABLE_TIMEOUT_NS } else { TIMEOUT_NS }
    }

    /// Accepts one fragment. `Some` when it completes its message, whose bytes are then in [`Reassembler::assembled`].
    /// Counts discarded messages.
    pub(crate) fn accept(
        &mut self,
        now_ns: u64,
        fragment: FragmentIn<'_>,
        counters: &mut LinkCounters,
    ) -> Result<Option<Envelope>, LinkDrop> {
        let sequence = fragment.sequence.ok_or(LinkDrop::MissingSequence)?;
        let id = (fragment.sender, sequence.wrapping_sub(fragment.frag_index));
        let position = match self.messages.iter().position(|m| m.id == id) {
            Some(position) => position,
            None => self.begin(id, fragment.frag_count, now_ns, counters),
        };
        let message = &mut self.messages[position];
        let memory_before = message.memory_bytes();
        if message.frag_count != fragment.frag_count {
            return Err(LinkDrop::FragCountChanged);
        }
        let (word, bit) = (fragment.frag_index as usize / 64, 1 << (fragment.frag_index % 64));
        if message.seen[word] & bit != 0 {
            return Err(LinkDrop::DuplicateFragment);
        }
        if message.bytes.len() + fragment.payload.len() > MAX_PACKET_BYTES {
            self.forget(position);
            return Err(LinkDrop::ReassemblyOversize);
        }
        message.seen[word] |= bit;
        message.last_fragment_ns = now_ns;
        if fragment.frag_index == 0 {
            message.envelope = fragment.envelope;
        }
        message.pieces.push(Piece {
            frag_index: fragment.frag_index as u16,
            start: message.bytes.len() as u16,
            len: fragment.payload.len() as u16,
        });
        message.bytes.extend_from_slice(fragment.payload);
        self.held_bytes += fragment.payload.len();
        self.memory_bytes += message.memory_bytes() - memory_before;
        if message.pieces.len() as u64 == message.frag_count {
            return Ok(Some(self.finish(position)));
        }
        let limit_bytes = if self.is_reliable { MAX_MESSAGES * MAX_PACKET_BYTES } else { self.limit_bytes };
        while self.held_bytes > limit_bytes {
            self.evict(Some(id), counters);
        }
        Ok(None)
    }

    /// The bytes of the packet that the last successful `accept` completed.
    pub(crate) fn assembled(&self) -> &[u8] {
        &self.assembled
    }

    /// When the oldest message times out.
    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        let oldest = self.messages.iter().map(|m| m.last_fragment_ns).min()?;
        Some(oldest.saturating_add(self.timeout_ns()))
    }

    /// Discards messages that have timed out; returns how many. Frees the buffers of a link without messages in
    /// progress, so that a silent face holds none.
    pub(crate) fn expire(&mut self, now_ns: u64) -> u64 {
        let mut expired = 0;
        for position in (0..self.messages.len()).rev() {
            let message = &self.messages[position];
            if message.last_fragment_ns.saturating_add(self.timeout_ns()) <= now_ns {
                self.forget(position);
                expired += 1;
            }
        }
        if self.messages.is_empty() {
            self.messages = Vec::new();
            self.spare = Vec::new();
            self.assembled = Vec::new();
            self.memory_bytes = 0;
        }
        expired
    }

    /// Memory of messages and buffers, in bytes.
    #[inline]
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Frees buffers and discards messages, the oldest first, until the memory is at most `memory_bytes`; returns how
    /// many messages were discarded. The last packet completed stays.
    pub(crate) fn shed(&mut self, memory_bytes: usize) -> u64 {
        let mut discarded = 0;
        while self.memory_bytes > memory_bytes {
            if let Some(spare) = self.spare.pop() {
                self.memory_bytes -= spare.memory_bytes();
            } else if let Some(oldest) = (0..self.messages.len()).min_by_key(|&i| self.messages[i].last_fragment_ns) {
                self.forget(oldest);
                discarded += 1;
            } else {
                break;
            }
        }
        discarded
    }

    fn begin(&mut self, id: MessageId, frag_count: u64, now_ns: u64, counters: &mut LinkCounters) -> usize {
        if self.messages.len() == MAX_MESSAGES {
            self.evict(None, counters);
        }
        let (pieces, bytes) = match self.spare.pop() {
            Some(spare) => (spare.pieces, spare.bytes),
            None => {
                self.memory_bytes += size_of::<Message>();
                (Vec::new(), Vec::new())
            }
        };
        self.messages.push(Message {
            id,
            frag_count,
            last_fragment_ns: now_ns,
            envelope: Envelope::default(),
            seen: Default::default(),
            pieces,
            bytes,
        });
        self.messages.len() - 1
    }

    /// Discards the message that has waited longest, except `keep`.
    fn evict(&mut self, keep: Option<MessageId>, counters: &mut LinkCounters) {
        let victim = (0..self.messages.len())
            .filter(|&i| Some(self.messages[i].id) != keep)
            .min_by_key(|&i| self.messages[i].last_fragment_ns);
        if let Some(victim) = victim {
            self.forget(victim);
            counters.count_drop(LinkDrop::ReassemblyEvicted);
        }
    }

    fn finish(&mut self, position: usize) -> Envelope {
        let mut message = self.messages.swap_remove(position);
        self.held_bytes -= message.bytes.len();
        if message.pieces.is_sorted_by_key(|piece| piece.frag_index) {
            std::mem::swap(&mut self.assembled, &mut message.bytes);
        } else {
            message.pieces.sort_unstable_by_key(|piece| piece.frag_index);
            let memory_before = self.assembled.capacity();
            self.assembled.clear();
            for piece in &message.pieces {
                let start = usize::from(piece.start);
                self.assembled.extend_from_slice(&message.bytes[start..start + usize::from(piece.len)]);
            }
            self.memory_bytes += self.assembled.capacity() - memory_before;
        }
        let envelope = message.envelope;
        self.recycle(message);
        envelope
    }

    fn forget(&mut self, position: usize) {
        let message = self.messages.swap_remove(position);
        self.held_bytes -= message.bytes.len();
        self.recycle(message);
    }

    fn recycle(&mut self, mut message: Message) {
        message.pieces.clear();
        message.bytes.clear();
        if self.spare.len() < MAX_SPARE {
            self.spare.push(message);
        } else {
            self.memory_bytes -= message.memory_bytes();
        }
    }
}
