//! The packets of a forwarder in memory: Interests for distinct names, and their Data, in buffers that represent the
//! receive ring of a driver.

use crate::synthetic_names::SyntheticNames;
use namewire_engine::dispatch::Visits;
use namewire_engine::{FaceId, Frame};
use namewire_packet::lp::LpHeaders;
use namewire_packet::{DataBuilder, Interest, InterestBuilder, Name, Nonce, tlv};

/// Bytes of a Data's Content (Takemasa19 §3.2.2).
pub(in crate::experiments) const PAYLOAD_BYTES: usize = 128;
/// Long enough that no Interest expires while 2^20 are outstanding.
const LIFETIME_MS: u64 = 60_000;

/// Consecutive packets in one buffer, as if a driver had received them.
#[derive(Default)]
pub(in crate::experiments) struct Packets {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    headers: Vec<LpHeaders>,
}

impl Packets {
    pub(in crate::experiments) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.headers.clear();
    }

    fn push(&mut self, wire: &[u8], headers: LpHeaders) {
        self.bytes.extend_from_slice(wire);
        self.ends.push(self.bytes.len());
        self.headers.push(headers);
    }

    /// The packets as frames from `face`, lent for one pass.
    pub(in crate::experiments) fn frames(&mut self, face: FaceId) -> Vec<Frame<'_>> {
        let mut rest = self.bytes.as_mut_slice();
        let mut start = 0;
        let mut frames = Vec::with_capacity(self.ends.len());
        for (&end, headers) in self.ends.iter().zip(&self.headers) {
            let (packet, after) = rest.split_at_mut(end - start);
            frames.push(Frame { face, headers: *headers, packet, visits: Visits::default() });
            (rest, start) = (after, end);
        }
        frames
    }
}

/// One Interest and one Data that serve as patterns for names of one length: only name and nonce differ. All Data have
/// the pattern's signature, because a forwarder does not check signatures.
pub(in crate::experiments) struct Pattern {
    name_bytes: usize,
    interest: Vec<u8>,
    interest_name_start: usize,
    nonce_start: usize,
    data: Vec<u8>,
    data_name_start: usize,
}

impl Pattern {
    /// For names as long as this one, a Name TLV-VALUE.
    pub(in crate::experiments) fn new(name: &[u8], payload_bytes: usize) -> Self {
        let name_buf = Name::parse_value(name).expect("a synthetic name is a name").to_buf();
        let interest = InterestBuilder::new(&name_buf).nonce(Nonce::from_u32(0)).lifetime_ms(LIFETIME_MS).build();
        let data = DataBuilder::new(&name_buf).content(&vec![0x5a; payload_bytes]).sign_digest();
        Self {
            name_bytes: name.len(),
            interest_name_start: start_in(&interest, name),
            nonce_start: nonce_start(&interest),
            data_name_start: start_in(&data, name),
            interest,
            data,
        }
    }

    pub(in crate::experiments) fn data_bytes(&self) -> usize {
        self.data.len()
    }

    /// Adds an Interest.
    pub(in crate::experiments) fn push_interest(&mut self, name: &[u8], nonce: u32, packets: &mut Packets) {
        self.interest[self.interest_name_start..][..self.name_bytes].copy_from_slice(name);
        self.interest[self.nonce_start..][..4].copy_from_slice(&nonce.to_be_bytes());
        packets.push(&self.interest, LpHeaders::default());
    }

    /// Adds a Data.
    pub(in crate::experiments) fn push_data(&mut self, name: &[u8], headers: LpHeaders, packets: &mut Packets) {
        self.data[self.data_name_start..][..self.name_bytes].copy_from_slice(name);
        packets.push(&self.data, headers);
    }
}

fn start_in(wire: &[u8], name: &[u8]) -> usize {
    wire.windows(name.len()).position(|bytes| bytes == name).expect("the name is inside")
}

fn nonce_start(interest: &[u8]) -> usize {
    let parsed = Interest::parse(interest).ok().and_then(|interest| interest.nonce_offset());
    parsed.expect("the Interest has a nonce")
}

/// Makes packets by number; each number has one name. All names have the same length.
pub(in crate::experiments) struct Traffic {
    names: SyntheticNames,
    name: Vec<u8>,
    pattern: Pattern,
}

impl Traffic {
    pub(in crate::experiments) fn new(names: SyntheticNames, payload_bytes: usize) -> Self {
        let mut name = Vec::new();
        names.write_name(0, &mut name);
        Self { names, pattern: Pattern::new(&name, payload_bytes), name }
    }

    /// Pads every Interest to `bytes` bytes, with an unknown element that receivers may ignore (NDN packet format 0.3,
    /// §1.3).
    ///
    /// # Panics
    /// If it has more bytes already.
    pub(in crate::experiments) fn pad_interests(&mut self, bytes: usize) {
        const FILLER: u32 = 240;
        let pattern = &mut self.pattern;
        let name = pattern.interest[pattern.interest_name_start..][..pattern.name_bytes].to_vec();
        let value = tlv::read_element(&pattern.interest).expect("an Interest").value.to_vec();
        let padded = |filler_bytes: usize| {
            let mut wire = Vec::new();
            tlv::write_nested(&mut wire, tlv::types::INTEREST, |out| {
                out.extend_from_slice(&value);
                tlv::write_tlv(out, FILLER, &vec![0; filler_bytes]);
            });
            wire
        };
        pattern.interest = (0..bytes).map(padded).find(|wire| wire.len() == bytes).expect("a smaller Interest");
        pattern.nonce_start = nonce_start(&pattern.interest);
        pattern.interest_name_start = start_in(&pattern.interest, &name);
    }

    /// Bytes of an Interest and of a Data.
    pub(in crate::experiments) fn packet_bytes(&self) -> (usize, usize) {
        (self.pattern.interest.len(), self.pattern.data_bytes())
    }

    pub(in crate::experiments) fn push_interest(&mut self, number: u64, packets: &mut Packets) {
        self.push_interest_with(number, number as u32, packets);
    }

    /// Adds an Interest with its own nonce, for names that are requested again.
    pub(in crate::experiments) fn push_interest_with(&mut self, number: u64, nonce: u32, packets: &mut Packets) {
        self.names.write_name(number, &mut self.name);
        self.pattern.push_interest(&self.name, nonce, packets);
    }

    pub(in crate::experiments) fn push_data(&mut self, number: u64, headers: LpHeaders, packets: &mut Packets) {
        self.names.write_name(number, &mut self.name);
        self.pattern.push_data(&self.name, headers, packets);
    }
}
