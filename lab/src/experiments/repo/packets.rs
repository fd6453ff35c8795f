//! The packets of the workload: segments of one object for each client, all made before the measurement.
//!
//! Source: Yuan15 §6.2.1: the prefix `ndn:example/data/1/hello` and a segment number; contents of 100 random bytes.
//! Here the third component is the client's number, and a DigestSha256 signs each Data, as `ndnputfile` could.
//!
//! ```text
//!   wires   Data 0 │ Data 1 │ …                ends   where each ends
//!   an Interest: 05 len │ 07 len │ prefix │ 32 len segment number │ 0A 04 nonce │ 0C 02 lifetime
//! ```
//!
//! Memory: about 190 bytes for each Data.

use namewire_packet::tlv::{Reader, read_element, types, write_nested, write_nni, write_tlv};
use namewire_packet::{Data, DataBuilder, NameBuf};

/// Bytes of content in each Data.
const CONTENT_BYTES: usize = 100;
/// FreshnessPeriod: longer than any run.
const FRESHNESS_MS: u64 = 3_600_000;
/// InterestLifetime of reads.
const LIFETIME_MS: u16 = 4_000;
/// What every name of the workload begins with.
pub(super) const COMMON_PREFIX: &str = "/example/data";

/// An object of one client.
pub(super) struct ObjectPackets {
    /// The name without the segment number.
    pub(super) name: NameBuf,
    wires: Vec<u8>,
    ends: Vec<usize>,
}

/// What a consumer or producer received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// An Interest for this segment.
    Interest(usize),
    /// This segment, every byte as it was made.
    Data(usize),
    /// A Nack, or anything that is not of this object.
    Wrong,
}

impl ObjectPackets {
    /// Makes `count` segments for client number `client`.
    pub(super) fn new(client: usize, count: usize, seed: u64) -> Self {
        let name: NameBuf = format!("{COMMON_PREFIX}/{client}/hello").parse().expect("a name");
        let mut random = fastrand::Rng::with_seed(seed ^ client as u64);
        let (mut wires, mut ends) = (Vec::new(), Vec::with_capacity(count));
        for segment in 0..count {
            let mut segment_name = name.clone();
            segment_name.push_segment(segment as u64);
            let mut content = [0; CONTENT_BYTES];
            random.fill(&mut content);
            wires.extend(DataBuilder::new(segment_name).freshness_ms(FRESHNESS_MS).content(&content).sign_digest());
            ends.push(wires.len());
        }
        Self { name, wires, ends }
    }

    pub(super) fn count(&self) -> usize {
        self.ends.len()
    }

    /// All packets, back to back.
    pub(super) fn wires(&self) -> &[u8] {
        &self.wires
    }

    /// A packet.
    #[inline]
    pub(super) fn wire(&self, segment: usize) -> &[u8] {
        let start = segment.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.wires[start..self.ends[segment]]
    }

    /// A packet, parsed.
    pub(super) fn data(&self, segment: usize) -> Data<'_> {
        Data::parse(self.wire(segment)).expect("a packet of ours")
    }

    /// Appends an Interest for a segment.
    pub(super) fn write_interest(&self, segment: usize, nonce: u32, out: &mut Vec<u8>) {
        write_nested(out, types::INTEREST, |out| {
            write_nested(out, types::NAME, |name| {
                name.extend_from_slice(self.name.value());
                write_nni(name, types::SEGMENT_COMPONENT, segment as u64);
            });
            write_tlv(out, types::NONCE, &nonce.to_be_bytes());
            write_tlv(out, types::INTEREST_LIFETIME, &LIFETIME_MS.to_be_bytes());
        });
    }

    /// What `wire` is.
    pub(super) fn classify(&self, wire: &[u8]) -> Received {
        let Ok(outer) = read_element(wire) else { return Received::Wrong };
        if outer.type_number != types::LP_PACKET {
            return self.classify_packet(wire);
        }
        let mut fields = Reader::new(outer.value);
        while let Ok(Some(field)) = fields.next_element() {
            match field.type_number {
                types::LP_NACK => return Received::Wrong,
                types::LP_FRAGMENT => return self.classify_packet(field.value),
                _ => {}
            }
        }
        Received::Wrong
    }

    fn classify_packet(&self, wire: &[u8]) -> Received {
        let Ok(packet) = read_element(wire) else { return Received::Wrong };
        match (packet.type_number, self.segment_of(packet.value)) {
            (types::INTEREST, Some(segment)) => Received::Interest(segment),
            (types::DATA, Some(segment)) if self.wire(segment) == wire => Received::Data(segment),
            _ => Received::Wrong,
        }
    }

    /// The segment number in the name that a packet's value begins with.
    fn segment_of(&self, value: &[u8]) -> Option<usize> {
        let name = Reader::new(value).next_element().ok()??;
        let component = read_element(name.value.strip_prefix(self.name.value())?).ok()?;
        let is_last = component.type_number == types::SEGMENT_COMPONENT && component.value.len() <= 8;
        let number = component.value.iter().fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
        (is_last && number < self.count()).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::Interest;

    #[test]
    fn packets_are_what_they_say_and_nothing_else() {
        let object = ObjectPackets::new(1, 300, 7);
        for segment in [0, 1, 255, 299] {
            let mut interest = Vec::new();
            object.write_interest(segment, 9, &mut interest);
            let data = object.data(segment);
            assert!(Interest::parse(&interest).expect("an Interest").matches(&data));
            assert_eq!(data.content().len(), CONTENT_BYTES);
            assert_eq!(object.classify(&interest), Received::Interest(segment));
            assert_eq!(object.classify(object.wire(segment)), Received::Data(segment));
            let mut damaged = object.wire(segment).to_vec();
            *damaged.last_mut().expect("not empty") ^= 1;
            assert_eq!(object.classify(&damaged), Received::Wrong);
        }
        let mut nack = Vec::new();
        write_nested(&mut nack, types::LP_PACKET, |out| {
            write_tlv(out, types::LP_NACK, &[]);
            write_nested(out, types::LP_FRAGMENT, |out| object.write_interest(1, 9, out));
        });
        assert_eq!(object.classify(&nack), Received::Wrong);
        assert_eq!(ObjectPackets::new(2, 1, 7).classify(object.wire(0)), Received::Wrong);
    }
}
