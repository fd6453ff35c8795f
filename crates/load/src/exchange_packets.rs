//! The packets of the load: pre-built Interests, the Data that answer them, and the check that a Data is the right one.
//!
//! Names are `/bench/<run>/<stream>/<sequence>`. Every component has a fixed size, so an Interest is a copy of a
//! template with 12 bytes patched:
//!
//! ```text
//! 05 len | 07 len | 08 05 bench | 08 08 <run> | 08 04 <stream> | 08 08 <sequence, hex>
//!        | [21 00] | 0A 04 <nonce> | 0C 02 <lifetime>
//! ```
//!
//! The content of a Data is a slice of one pseudo-random pattern; its start depends on the sequence number. So the
//! check finds Data with a wrong name, cut Data, and Data with the bytes of another.

use namewire_packet::tlv::{Reader, read_element, types, write_nested, write_tlv};

use crate::packet_parts::{self, NUMBER_BYTES as SEQUENCE_DIGITS, digits};

/// Largest content of a Data, in bytes.
pub const CONTENT_BYTES_MAX: usize = 8_000;
/// Bytes of the `<run>` component.
pub const RUN_BYTES: usize = 8;

const STREAM_DIGITS: usize = 4;
const NONCE_BYTES: usize = 4;
const PATTERN_STARTS: usize = 4_096;
const PATTERN_BYTES: usize = CONTENT_BYTES_MAX + PATTERN_STARTS;
/// The last component of a Data's name where the Interest has CanBePrefix.
const SUFFIX: &[u8] = b"data";

/// A run label or a content that is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run label takes 1 to {RUN_BYTES} bytes and a Data at most {CONTENT_BYTES_MAX} bytes of content")]
pub struct ShapeError;

/// What all packets of one run have in common.
#[derive(Debug)]
pub struct ExchangePackets {
    interest: Vec<u8>,
    sequence_at: usize,
    nonce_at: usize,
    /// Name TLV-VALUE up to the sequence number's digits.
    name_start: Vec<u8>,
    content_bytes: usize,
    can_be_prefix: bool,
    freshness_ms: u64,
    pattern: Box<[u8]>,
    nonce_state: u64,
}

/// The kinds of received packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// An Interest of this run for this sequence number.
    Interest(u32),
    /// The Data of this run with this sequence number, every byte correct.
    Data(u32),
    /// A Nack for this run's Interest with this sequence number.
    Nack(u32),
    /// A damaged packet of this run, or a Data that does not answer the Interest.
    Wrong,
    /// A packet of another run.
    Foreign,
}

/// How to build the packets of a run.
#[derive(Clone, Copy, Debug)]
pub struct ExchangeShape<'a> {
    /// Second name component, at most [`RUN_BYTES`] bytes.
    pub run: &'a str,
    /// Third name component.
    pub stream: u16,
    /// Bytes of content in each Data.
    pub content_bytes: usize,
    /// Ask with CanBePrefix and answer with a name one component longer.
    pub can_be_prefix: bool,
    /// InterestLifetime.
    pub lifetime_ms: u16,
    /// FreshnessPeriod of the Data.
    pub freshness_ms: u64,
    /// Seed of the nonces.
    pub seed: u64,
}

impl ExchangePackets {
    /// Builds the templates.
    ///
    /// # Errors
    /// If the run label or the content is too long.
    pub fn new(shape: &ExchangeShape<'_>) -> Result<Self, ShapeError> {
        if shape.run.is_empty() || shape.run.len() > RUN_BYTES || shape.content_bytes > CONTENT_BYTES_MAX {
            return Err(ShapeError);
        }
        let mut name_start = prefix_value(shape.run, shape.stream);
        name_start.extend_from_slice(&[types::GENERIC_COMPONENT as u8, SEQUENCE_DIGITS as u8]);
        let mut interest = Vec::new();
        write_nested(&mut interest, types::INTEREST, |out| {
            write_nested(out, types::NAME, |name| {
                name.extend_from_slice(&name_start);
                name.extend_from_slice(&[b'0'; SEQUENCE_DIGITS]);
            });
            if shape.can_be_prefix {
                write_tlv(out, types::CAN_BE_PREFIX, &[]);
            }
            write_tlv(out, types::NONCE, &[0; NONCE_BYTES]);
            write_tlv(out, types::INTEREST_LIFETIME, &shape.lifetime_ms.to_be_bytes());
        });
        // Lifetime (2 + 2 bytes) is last, the nonce's value right before it.
        let nonce_at = interest.len() - 4 - NONCE_BYTES;
        // Interest and Name headers take 2 bytes each: both are far below 253 bytes.
        let sequence_at = 4 + name_start.len();
        Ok(Self {
            interest,
            sequence_at,
            nonce_at,
            name_start,
            content_bytes: shape.content_bytes,
            can_be_prefix: shape.can_be_prefix,
            freshness_ms: shape.freshness_ms,
            pattern: pattern(),
            nonce_state: shape.seed | 1,
        })
    }

    /// TLV-VALUE of the name prefix that the producer registers: `/bench/<run>/<stream>`.
    pub fn prefix_value(&self) -> &[u8] {
        &self.name_start[..self.name_start.len() - 2]
    }

    /// Appends Interest number `sequence`, with a nonce that this run has not used before.
    pub fn write_interest(&mut self, sequence: u32, out: &mut Vec<u8>) {
        // A full-period generator: 2^64 steps pass before a state repeats.
        self.nonce_state =
            self.nonce_state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let start = out.len();
        out.extend_from_slice(&self.interest);
        let sequence_at = start + self.sequence_at;
        out[sequence_at..sequence_at + SEQUENCE_DIGITS].copy_from_slice(&digits(sequence));
        let nonce = ((self.nonce_state >> 32) as u32).to_be_bytes();
        out[start + self.nonce_at..start + self.nonce_at + NONCE_BYTES].copy_from_slice(&nonce);
    }

    /// Appends the Data for Interest number `sequence`, in an LpPacket if `token` is given.
    pub fn write_data(&self, sequence: u32, token: Option<&[u8]>, out: &mut Vec<u8>) {
        packet_parts::write_data(out, token, self.freshness_ms, self.content(sequence), |name| {
            name.extend_from_slice(&self.name_start);
            name.extend_from_slice(&digits(sequence));
            if self.can_be_prefix {
                write_tlv(name, types::GENERIC_COMPONENT, SUFFIX);
            }
        });
    }

    /// Classifies `wire`; the second value is its PIT token.
    pub fn classify<'a>(&self, wire: &'a [u8]) -> (Received, Option<&'a [u8]>) {
        let Ok(element) = read_element(wire) else { return (Received::Wrong, None) };
        if element.wire.len() != wire.len() {
            return (Received::Wrong, None);
        }
        if element.type_number != types::LP_PACKET {
            return (self.classify_packet(element.type_number, element.value), None);
        }
        let (mut token, mut nack, mut fields) = (None, false, Reader::new(element.value));
        while let Ok(Some(field)) = fields.next_element() {
            match field.type_number {
                types::LP_PIT_TOKEN => token = Some(field.value),
                types::LP_NACK => nack = true,
                types::LP_FRAG_COUNT if field.value != [1] => return (Received::Wrong, token),
                types::LP_FRAGMENT => {
                    let Ok(packet) = read_element(field.value) else { return (Received::Wrong, token) };
                    let received = self.classify_packet(packet.type_number, packet.value);
                    return match received {
                        Received::Interest(sequence) if nack => (Received::Nack(sequence), token),
                        other => (other, token),
                    };
                }
                _ => {}
            }
        }
        (Received::Foreign, token)
    }

    fn classify_packet(&self, type_number: u32, value: &[u8]) -> Received {
        let mut elements = Reader::new(value);
        let Ok(Some(name)) = elements.next_element() else { return Received::Wrong };
        if name.type_number != types::NAME {
            return Received::Wrong;
        }
        let Some((sequence, suffix)) = self.sequence_of(name.value) else { return Received::Foreign };
        match type_number {
            types::INTEREST if suffix.is_empty() => Received::Interest(sequence),
            types::DATA if self.suffix_is_right(suffix) && self.content_is_right(sequence, elements) => {
                Received::Data(sequence)
            }
            _ => Received::Wrong,
        }
    }

    /// Sequence number in the name, and what follows it, if the name is of this run.
    fn sequence_of<'a>(&self, name_value: &'a [u8]) -> Option<(u32, &'a [u8])> {
        let rest = name_value.strip_prefix(self.name_start.as_slice())?;
        let (digits, suffix) = rest.split_at_checked(SEQUENCE_DIGITS)?;
        let sequence = digits.iter().try_fold(0u32, |sum, digit| Some(sum << 4 | char::from(*digit).to_digit(16)?))?;
        Some((sequence, suffix))
    }

    fn suffix_is_right(&self, suffix: &[u8]) -> bool {
        if !self.can_be_prefix {
            return suffix.is_empty();
        }
        suffix.len() == SUFFIX.len() + 2 && suffix.ends_with(SUFFIX)
    }

    fn content_is_right(&self, sequence: u32, mut elements: Reader<'_>) -> bool {
        while let Ok(Some(element)) = elements.next_element() {
            if element.type_number == types::CONTENT {
                return element.value == self.content(sequence);
            }
        }
        false
    }

    fn content(&self, sequence: u32) -> &[u8] {
        let start = sequence.wrapping_mul(61) as usize % PATTERN_STARTS;
        &self.pattern[start..start + self.content_bytes]
    }
}

fn prefix_value(run: &str, stream: u16) -> Vec<u8> {
    let mut value = Vec::new();
    write_tlv(&mut value, types::GENERIC_COMPONENT, b"bench");
    write_tlv(&mut value, types::GENERIC_COMPONENT, run.as_bytes());
    let stream = format!("{stream:0width$x}", width = STREAM_DIGITS);
    write_tlv(&mut value, types::GENERIC_COMPONENT, stream.as_bytes());
    value
}

/// The same bytes in every run: xorshift from a fixed seed.
fn pattern() -> Box<[u8]> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    (0..PATTERN_BYTES)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 56) as u8
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::tlv::write_nni;
    use namewire_packet::{Data, Interest};

    fn shape(can_be_prefix: bool) -> ExchangeShape<'static> {
        ExchangeShape {
            run: "r1",
            stream: 10,
            content_bytes: 100,
            can_be_prefix,
            lifetime_ms: 4_000,
            freshness_ms: 10_000,
            seed: 7,
        }
    }

    #[test]
    fn the_packets_are_what_the_packet_crate_calls_packets() {
        for can_be_prefix in [false, true] {
            let mut packets = ExchangePackets::new(&shape(can_be_prefix)).expect("a legal shape");
            let (mut first, mut second, mut data) = (Vec::new(), Vec::new(), Vec::new());
            packets.write_interest(0xAB, &mut first);
            packets.write_interest(0xAB, &mut second);
            packets.write_data(0xAB, None, &mut data);
            let interest = Interest::parse(&first).expect("an Interest");
            assert_eq!(interest.name().to_string(), "/bench/r1/000a/000000ab");
            assert_eq!(interest.can_be_prefix(), can_be_prefix);
            assert_eq!(interest.lifetime_ms(), 4_000);
            assert_ne!(interest.nonce(), Interest::parse(&second).expect("an Interest").nonce());
            let view = Data::parse(&data).expect("a Data");
            assert!(interest.matches(&view));
            assert_eq!((view.content().len(), view.freshness_ms()), (100, 10_000));
            assert_eq!(packets.classify(&first), (Received::Interest(0xAB), None));
            assert_eq!(packets.classify(&data), (Received::Data(0xAB), None));
        }
    }

    #[test]
    fn a_token_wraps_and_is_found_again() {
        let packets = ExchangePackets::new(&shape(false)).expect("a legal shape");
        let mut data = Vec::new();
        packets.write_data(3, Some(&[1, 2, 3]), &mut data);
        assert_eq!(packets.classify(&data), (Received::Data(3), Some([1, 2, 3].as_slice())));
    }

    #[test]
    fn every_damaged_byte_is_noticed() {
        let packets = ExchangePackets::new(&shape(false)).expect("a legal shape");
        let mut data = Vec::new();
        packets.write_data(5, None, &mut data);
        // MetaInfo and the signature are not checked; name, content and all lengths are.
        let signature_at = data.len() - 7;
        let content_at = signature_at - 100;
        for at in (0..content_at - 8).chain(content_at..signature_at) {
            let mut damaged = data.clone();
            damaged[at] ^= 1;
            assert_ne!(packets.classify(&damaged).0, Received::Data(5), "byte {at}");
        }
        assert_eq!(packets.classify(&data[..data.len() - 1]).0, Received::Wrong);
        assert_eq!(packets.classify(&[]).0, Received::Wrong);
    }

    #[test]
    fn nacks_and_foreign_packets_are_distinguished() {
        let mut packets = ExchangePackets::new(&shape(false)).expect("a legal shape");
        let mut interest = Vec::new();
        packets.write_interest(9, &mut interest);
        let mut nack = Vec::new();
        write_nested(&mut nack, types::LP_PACKET, |out| {
            write_nested(out, types::LP_NACK, |out| write_nni(out, types::LP_NACK_REASON, 150));
            write_tlv(out, types::LP_FRAGMENT, &interest);
        });
        assert_eq!(packets.classify(&nack).0, Received::Nack(9));
        let other = ExchangePackets::new(&ExchangeShape { run: "r2", ..shape(false) }).expect("a legal shape");
        assert_eq!(other.classify(&interest).0, Received::Foreign);
        assert_eq!(other.classify(&[0x64, 0]).0, Received::Foreign);
    }

    #[test]
    fn shapes_beyond_the_limits_are_refused() {
        for bad in [
            ExchangeShape { run: "", ..shape(false) },
            ExchangeShape { run: "123456789", ..shape(false) },
            ExchangeShape { content_bytes: CONTENT_BYTES_MAX + 1, ..shape(false) },
        ] {
            assert!(ExchangePackets::new(&bad).is_err());
        }
    }
}
