//! Reassembles the fragments of one link into whole packets (NDNLPv2 §2).
//!
//! Sequence − FragIndex identifies a message. Fragments may arrive in any order; duplicates are ignored. If a message
//! is not complete 500 ms after the last fragment that arrived, it is dropped, as in NFD.
//!
//! Limits: [`MESSAGES_MAX`] unfinished messages; a new one replaces the one that has waited longest. A message has at
//! most [`FRAGMENTS_MAX`] fragments and [`MAX_PACKET_BYTES`] bytes.

use namewire_packet::{
    MAX_PACKET_BYTES,
    lp::{LpHeaders, LpPacket},
};
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

const MESSAGES_MAX: usize = 64;
/// NFD's limit.
const FRAGMENTS_MAX: u64 = 400;
const TIMEOUT: Duration = Duration::from_millis(500);

struct Message {
    headers: LpHeaders,
    fragments: Vec<Option<Box<[u8]>>>,
    missing: usize,
    size_bytes: usize,
    last_arrival: Instant,
}

/// The unfinished messages of one link.
#[derive(Default)]
pub(crate) struct Reassembly {
    messages: HashMap<u64, Message>,
    dropped_fragments: u64,
}

impl Reassembly {
    /// Fragments dropped so far, for any reason.
    pub(crate) fn dropped_fragments(&self) -> u64 {
        self.dropped_fragments
    }

    /// Accepts one fragment; returns the packet and the headers of fragment 0 once the packet is whole.
    pub(crate) fn receive(
        &mut self,
        packet: &LpPacket<'_>,
        fragment: &[u8],
        now: Instant,
    ) -> Option<(LpHeaders, Vec<u8>)> {
        let (index, count) = (packet.frag_index, packet.frag_count);
        let Some(sequence) = packet.sequence.filter(|_| index < count && count <= FRAGMENTS_MAX) else {
            self.dropped_fragments += 1;
            return None;
        };
        self.expire(now);
        let id = sequence.wrapping_sub(index);
        if !self.messages.contains_key(&id) && self.messages.len() >= MESSAGES_MAX {
            let stalest = self.messages.iter().min_by_key(|(_, m)| m.last_arrival).map(|(id, _)| *id);
            stalest.into_iter().for_each(|id| self.drop_message(id));
        }
        let message = self.messages.entry(id).or_insert_with(|| Message {
            headers: LpHeaders::default(),
            fragments: vec![None; count as usize],
            missing: count as usize,
            size_bytes: 0,
            last_arrival: now,
        });
        if message.fragments.len() as u64 != count || message.size_bytes + fragment.len() > MAX_PACKET_BYTES {
            self.dropped_fragments += 1;
            self.drop_message(id);
            return None;
        }
        let slot = &mut message.fragments[index as usize];
        if slot.is_some() {
            return None;
        }
        *slot = Some(fragment.into());
        message.missing -= 1;
        message.size_bytes += fragment.len();
        message.last_arrival = now;
        if index == 0 {
            message.headers = packet.headers;
        }
        if message.missing > 0 {
            return None;
        }
        let message = self.messages.remove(&id)?;
        let bytes = message.fragments.into_iter().flatten().flat_map(Vec::from).collect();
        Some((message.headers, bytes))
    }

    fn expire(&mut self, now: Instant) {
        let is_late = |m: &Message| now.duration_since(m.last_arrival) > TIMEOUT;
        let late: Vec<u64> = self.messages.iter().filter(|(_, m)| is_late(m)).map(|(id, _)| *id).collect();
        late.into_iter().for_each(|id| self.drop_message(id));
    }

    fn drop_message(&mut self, id: u64) {
        if let Some(message) = self.messages.remove(&id) {
            self.dropped_fragments += (message.fragments.len() - message.missing) as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::lp::PitToken;

    fn fragment(sequence: u64, index: u64, count: u64) -> LpPacket<'static> {
        let pit_token = (index == 0).then(|| PitToken::new(b"t").unwrap());
        let mut packet = LpPacket::default();
        packet.headers = LpHeaders { pit_token, ..LpHeaders::default() };
        (packet.sequence, packet.frag_index, packet.frag_count) = (Some(sequence), index, count);
        packet
    }

    #[test]
    fn any_order_and_duplicates_and_wrapping_numbers() {
        let now = Instant::now();
        let mut reassembly = Reassembly::default();
        let base = u64::MAX; // fragment 0 has the last number, then it wraps
        assert!(reassembly.receive(&fragment(base.wrapping_add(2), 2, 3), b"cc", now).is_none());
        assert!(reassembly.receive(&fragment(base, 0, 3), b"aa", now).is_none());
        assert!(reassembly.receive(&fragment(base, 0, 3), b"aa", now).is_none());
        let (headers, bytes) = reassembly.receive(&fragment(base.wrapping_add(1), 1, 3), b"b", now).unwrap();
        assert_eq!(bytes, b"aabcc");
        assert_eq!(headers.pit_token, PitToken::new(b"t"));
        assert_eq!((reassembly.dropped_fragments(), reassembly.messages.len()), (0, 0));
    }

    #[test]
    fn limits_and_time_out_are_counted() {
        let now = Instant::now();
        let mut reassembly = Reassembly::default();
        assert!(reassembly.receive(&fragment(0, 0, 1 << 63), b"x", now).is_none());
        assert!(reassembly.receive(&fragment(5, 3, 3), b"x", now).is_none());
        assert_eq!(reassembly.dropped_fragments(), 2);

        reassembly.receive(&fragment(10, 0, 2), b"x", now);
        let late = now + TIMEOUT + Duration::from_millis(1);
        assert!(reassembly.receive(&fragment(11, 1, 2), b"x", late).is_none());
        assert_eq!(reassembly.dropped_fragments(), 3);

        for message in 0..200 {
            reassembly.receive(&fragment(message * 10, 0, 2), b"x", late);
        }
        assert_eq!(reassembly.messages.len(), MESSAGES_MAX);

        let big = vec![0; MAX_PACKET_BYTES];
        let dropped = reassembly.dropped_fragments();
        reassembly.receive(&fragment(9000, 0, 2), &big, late);
        assert!(reassembly.receive(&fragment(9001, 1, 2), b"x", late).is_none());
        assert!(reassembly.dropped_fragments() > dropped);
    }
}
