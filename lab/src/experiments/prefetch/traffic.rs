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

/// Makes packets by number; each number has one name.
///
/// All names have the same length, so one Interest and one Data serve as patterns: only name and nonce differ. All Data
/// have the pattern's signature, because a forwarder does not check signatures.
pub(in crate::experiments) struct Traffic {
    names: SyntheticNames,
    name: Vec<u8>,
    interest: Vec<u8>,
    interest_name_start: usize,
    nonce_start: usize,
    data: Vec<u8>,
    data_name_start: usize,
}

impl Traffic {
    pub(in crate::experiments) fn new(names: SyntheticNames, payload_bytes: usize) -> Self {
        let mut name = Vec::new();
        names.write_name(0, &mut name);
        let name_buf = Name::parse_value(&name).expect("a synthetic name is a name").to_buf();
        let interest = InterestBuilder::new(&name_buf).nonce(Nonce::from_u32(0)).lifetime_ms(LIFETIME_MS).build();
        let nonce_start = Interest::parse(&interest).ok().and_then(|interest| interest.nonce_offset());
        let data = DataBuilder::new(&name_buf).content(&vec![0x5a; payload_bytes]).sign_digest();
        let start_in = |wire: &[u8]| wire.windows(name.len()).position(|bytes| bytes == name);
        Self {
            interest_name_start: start_in(&interest).expect("the name is inside"),
            nonce_start: nonce_start.expect("the Interest has a nonce"),
            data_name_start: start_in(&data).expect("the name is inside"),
            names,
            name,
            interest,
            data,
        }
    }

    /// Pads every Interest to `bytes` bytes, with an unknown element that receivers may ignore (NDN packet format 0.3,
    /// §1.3).
    ///
    /// # Panics
    /// If it has more bytes already.
    pub(in crate::experiments) fn pad_interests(&mut self, bytes: usize) {
        const FILLER: u32 = 240;
        let value = tlv::read_element(&self.interest).expect("an Interest").value.to_vec();
        let padded = |filler_bytes: usize| {
            let mut wire = Vec::new();
            tlv::write_nested(&mut wire, tlv::types::INTEREST, |out| {
                out.extend_from_slice(&value);
                tlv::write_tlv(out, FILLER, &vec![0; filler_bytes]);
            });
            wire
        };
        self.interest = (0..bytes).map(padded).find(|wire| wire.len() == bytes).expect("a smaller Interest");
        let parsed = Interest::parse(&self.interest).ok().and_then(|interest| interest.nonce_offset());
        self.nonce_start = parsed.expect("the Interest has a nonce");
        let name_start = self.interest.windows(self.name.len()).position(|bytes| bytes == self.name);
        self.interest_name_start = name_start.expect("the name is inside");
    }

    /// Bytes of an Interest and of a Data.
    pub(in crate::experiments) fn packet_bytes(&self) -> (usize, usize) {
        (self.interest.len(), self.data.len())
    }

    pub(in crate::experiments) fn push_interest(&mut self, number: u64, packets: &mut Packets) {
        self.push_interest_with(number, number as u32, packets);
    }

    /// Adds an Interest with its own nonce, for names that are requested again.
    pub(in crate::experiments) fn push_interest_with(&mut self, number: u64, nonce: u32, packets: &mut Packets) {
        self.names.write_name(number, &mut self.name);
        self.interest[self.interest_name_start..][..self.name.len()].copy_from_slice(&self.name);
        self.interest[self.nonce_start..][..4].copy_from_slice(&nonce.to_be_bytes());
        packets.push(&self.interest, LpHeaders::default());
    }

    pub(in crate::experiments) fn push_data(&mut self, number: u64, headers: LpHeaders, packets: &mut Packets) {
        self.names.write_name(number, &mut self.name);
        self.data[self.data_name_start..][..self.name.len()].copy_from_slice(&self.name);
        packets.push(&self.data, headers);
    }
}
