//! Turns a network packet into its frames.

use namewire_packet::MAX_PACKET_BYTES;
use namewire_packet::lp::{self, LinkFields, LpHeaders};
use namewire_packet::tlv::types;

use super::{LinkService, RESERVED_BYTES};
use crate::LinkDrop;
use crate::reliability::FrameOut;

/// Most bytes of all link headers except a lead.
const HEADER_BYTES_MAX: usize = 128;

/// The headers of a packet to be sent, and the lead that goes with it.
type Headers<'a> = (&'a LpHeaders, Option<&'a [u8]>);

impl LinkService {
    /// Counts an Interest or Data that goes as one bare frame. False: it needs a link header, several frames or an
    /// acknowledgement, or a capture must see it; then the caller passes it to [`LinkService::encode`], which takes
    /// what this function takes, and all else.
    ///
    /// Cost: about 20 instructions, where the general way takes 200.
    #[inline]
    pub fn send_bare(&mut self, headers: &LpHeaders, packet: &[u8]) -> bool {
        let is_plain = self.taps.is_empty() && self.reliability.is_none() && !self.congestion.is_long();
        if self.sends_header(headers) || !is_plain || packet.len() > self.options.mtu {
            return false;
        }
        let counters = &mut self.counters;
        let count = match packet.first().map(|&byte| u32::from(byte)) {
            Some(types::INTEREST) => &mut counters.out_interests,
            Some(types::DATA) => &mut counters.out_data,
            _ => return false,
        };
        *count += 1;
        counters.out_bytes += packet.len() as u64;
        self.congestion.note_written(packet.len() as u64);
        true
    }

    /// Calls `emit` with each frame of one network packet, as header bytes and a slice of `packet`. A lead
    /// (announcement or path label) goes into the header bytes. A packet that needs no header is sent bare.
    /// IncomingFaceId is sent only with local fields on; NextHopFaceId and CachePolicy, which only applications set,
    /// are never sent (NDNLPv2 §4).
    ///
    /// # Errors
    /// [`LinkDrop::PacketTooLarge`] if the packet does not fit the MTU and the link does not fragment, if it has more
    /// than 8800 bytes, if it needs too many fragments, or if the MTU leaves a fragment no room. The drop is counted.
    pub fn encode(
        &mut self,
        now_ns: u64,
        headers: &LpHeaders,
        packet: &[u8],
        mut emit: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), LinkDrop> {
        if self.send_bare(headers, packet) {
            emit(&[], packet);
            return Ok(());
        }
        if !self.taps.is_empty() {
            return self.encode_tapped(now_ns, headers, packet, &mut emit);
        }
        self.encode_untapped(now_ns, headers, packet, emit)
    }

    #[inline]
    pub(super) fn encode_untapped(
        &mut self,
        now_ns: u64,
        headers: &LpHeaders,
        packet: &[u8],
        mut emit: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), LinkDrop> {
        let lead = headers.lead(packet);
        let packet = headers.packet(packet);
        // The packet matters more: it goes without the lead if both do not fit the link or a peer's limit.
        let room = if self.options.fragmentation { MAX_PACKET_BYTES } else { self.options.mtu };
        let lead = lead.filter(|bytes| bytes.len() + packet.len() + HEADER_BYTES_MAX <= room);
        let mut headers =
            LpHeaders { lead_bytes: lead.map_or(0, |bytes| bytes.len() as u16), ..self.headers_to_send(headers) };
        if self.congestion.is_long() {
            self.mark(now_ns, &mut headers, packet.len());
        }
        let mut out_bytes = 0;
        let mut count_and_emit = |header: &[u8], slice: &[u8]| {
            out_bytes += (header.len() + slice.len()) as u64;
            emit(header, slice);
        };
        let sent = if self.reliability.is_none() {
            self.encode_plain(now_ns, (&headers, lead), packet, &mut count_and_emit)
        } else {
            self.encode_reliable(now_ns, (&headers, lead), packet, &mut count_and_emit)
        };
        self.counters.out_bytes += out_bytes;
        self.congestion.note_written(out_bytes);
        match sent {
            Err(reason) => self.counters.count_drop(reason),
            Ok(()) if headers.nack.is_some() => self.counters.out_nacks += 1,
            Ok(()) if packet.first() == Some(&(types::INTEREST as u8)) => {
                self.counters.out_interests += 1;
            }
            Ok(()) if packet.first() == Some(&(types::DATA as u8)) => self.counters.out_data += 1,
            Ok(()) => self.counters.out_tag_packets += 1,
        }
        sent
    }

    /// Marks a packet that leaves while the queue is long, if a mark is due.
    #[cold]
    fn mark(&mut self, now_ns: u64, headers: &mut LpHeaders, packet_bytes: usize) {
        // A packet of the largest size is not dropped for the sake of a mark.
        let has_room = self.options.fragmentation || packet_bytes + HEADER_BYTES_MAX <= self.options.mtu;
        if has_room && self.congestion.marks(now_ns) && headers.congestion_mark == 0 {
            headers.congestion_mark = 1;
            self.counters.congestion_marked += 1;
        }
    }

    #[inline]
    fn encode_plain(
        &mut self,
        now_ns: u64,
        (headers, lead): Headers<'_>,
        packet: &[u8],
        emit: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<(), LinkDrop> {
        self.scratch.clear();
        if !headers.is_empty() {
            let link = LinkFields { lead, ..LinkFields::default() };
            lp::write_headers(&mut self.scratch, headers, &link, packet.len());
        }
        if self.scratch.len() + packet.len() <= self.options.mtu {
            emit(&self.scratch, packet);
            return Ok(());
        }
        self.encode_fragments(now_ns, (headers, lead), packet, emit)
    }

    fn encode_reliable(
        &mut self,
        now_ns: u64,
        (headers, lead): Headers<'_>,
        packet: &[u8],
        emit: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<(), LinkDrop> {
        let LinkService { options, fragmenter, reliability: Some(reliability), counters, scratch, .. } = self else {
            return self.encode_plain(now_ns, (headers, lead), packet, emit);
        };
        scratch.clear();
        let link = LinkFields { sequence: Some(0), tx_sequence: Some(0), lead, ..LinkFields::default() };
        lp::write_headers(scratch, headers, &link, packet.len());
        if scratch.len() + packet.len() > options.mtu {
            if options.fragmentation {
                return self.encode_fragments(now_ns, (headers, lead), packet, emit);
            }
            // On a stream, sending without protection is better than not sending.
            return self.encode_plain(now_ns, (headers, lead), packet, emit);
        }
        let link = LinkFields { sequence: Some(fragmenter.next_sequence()), tx_sequence: None, ..link };
        let number = reliability.begin_packet(1);
        let frame = FrameOut { headers, link, payload: packet };
        reliability.send(now_ns, number, frame, options.mtu, (scratch, counters), emit);
        Ok(())
    }

    /// Emits all fragments of a packet above the MTU, or none.
    fn encode_fragments(
        &mut self,
        now_ns: u64,
        headers: Headers<'_>,
        packet: &[u8],
        emit: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<(), LinkDrop> {
        let LinkService { options, fragmenter, reliability, counters, scratch, .. } = self;
        if !options.fragmentation || packet.len() > MAX_PACKET_BYTES {
            return Err(LinkDrop::PacketTooLarge);
        }
        let fields = usize::from(options.policy.reliability) + usize::from(options.policy.congestion_marking);
        let fragment_mtu = options.mtu.saturating_sub(fields * RESERVED_BYTES);
        let mut number = None;
        fragmenter.split(headers, packet, fragment_mtu, scratch, |count, frame, scratch| match reliability {
            Some(reliability) => {
                let number = *number.get_or_insert_with(|| reliability.begin_packet(count));
                reliability.send(now_ns, number, frame, options.mtu, (scratch, counters), emit);
            }
            None => {
                scratch.clear();
                lp::write_headers(scratch, frame.headers, &frame.link, frame.payload.len());
                emit(scratch, frame.payload);
            }
        })
    }

    /// Emits frames that are due without a packet: retransmissions of lost ones, if `may_retransmit`, and Acks. Emits
    /// nothing without reliability.
    pub fn pump(&mut self, now_ns: u64, may_retransmit: bool, mut emit: impl FnMut(&[u8], &[u8])) {
        if !self.taps.is_empty() {
            return self.pump_tapped(now_ns, may_retransmit, &mut emit);
        }
        self.pump_untapped(now_ns, may_retransmit, emit);
    }

    pub(super) fn pump_untapped(&mut self, now_ns: u64, may_retransmit: bool, mut emit: impl FnMut(&[u8], &[u8])) {
        let Some(reliability) = &mut self.reliability else { return };
        let mut out_bytes = 0;
        let mut count_and_emit = |header: &[u8], slice: &[u8]| {
            out_bytes += (header.len() + slice.len()) as u64;
            emit(header, slice);
        };
        let memory = (&mut self.scratch, &mut self.counters);
        reliability.pump(now_ns, self.options.mtu, may_retransmit, memory, &mut count_and_emit);
        self.counters.out_bytes += out_bytes;
        self.congestion.note_written(out_bytes);
    }

    /// Whether [`LinkService::headers_to_send`] leaves a header. The pattern has every field, so that a new one is not
    /// forgotten.
    #[inline]
    fn sends_header(&self, headers: &LpHeaders) -> bool {
        let &LpHeaders {
            pit_token,
            nack,
            incoming_face_id,
            next_hop_face_id: _,
            no_cache: _,
            congestion_mark,
            non_discovery,
            collided,
            lead_bytes,
        } = headers;
        let is_for_application = self.options.local_fields && incoming_face_id.is_some();
        let has_field = pit_token.is_some() || nack.is_some() || congestion_mark != 0 || lead_bytes != 0;
        has_field || non_discovery || collided || is_for_application
    }

    fn headers_to_send(&self, headers: &LpHeaders) -> LpHeaders {
        LpHeaders {
            incoming_face_id: headers.incoming_face_id.filter(|_| self.options.local_fields),
            next_hop_face_id: None,
            no_cache: false,
            ..*headers
        }
    }
}
