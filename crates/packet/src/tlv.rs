//! Type-Length-Value: the grammar under every NDN packet (packet-format §1).
//!
//! A reader refuses what the specification forbids: numbers that are not in their shortest form, types of 0 or above
//! 2³²−1, lengths that exceed the input. It never allocates, however large a length field is.

/// Type numbers (packet-format §2, NDNLPv2 §1.1).
pub mod types {
    #![allow(missing_docs)] // the names are the specification's
    pub const IMPLICIT_SHA256_DIGEST: u32 = 1;
    pub const PARAMETERS_SHA256_DIGEST: u32 = 2;
    pub const INTEREST: u32 = 5;
    pub const DATA: u32 = 6;
    pub const NAME: u32 = 7;
    pub const GENERIC_COMPONENT: u32 = 8;
    pub const NONCE: u32 = 10;
    pub const INTEREST_LIFETIME: u32 = 12;
    pub const MUST_BE_FRESH: u32 = 18;
    pub const META_INFO: u32 = 20;
    pub const CONTENT: u32 = 21;
    pub const SIGNATURE_INFO: u32 = 22;
    pub const SIGNATURE_VALUE: u32 = 23;
    pub const CONTENT_TYPE: u32 = 24;
    pub const FRESHNESS_PERIOD: u32 = 25;
    pub const FINAL_BLOCK_ID: u32 = 26;
    pub const SIGNATURE_TYPE: u32 = 27;
    pub const KEY_LOCATOR: u32 = 28;
    pub const KEY_DIGEST: u32 = 29;
    pub const FORWARDING_HINT: u32 = 30;
    pub const DELEGATION: u32 = 31;
    pub const KEYWORD_COMPONENT: u32 = 32;
    pub const CAN_BE_PREFIX: u32 = 33;
    pub const HOP_LIMIT: u32 = 34;
    pub const APPLICATION_PARAMETERS: u32 = 36;
    pub const SIGNATURE_NONCE: u32 = 38;
    pub const SIGNATURE_TIME: u32 = 40;
    pub const SIGNATURE_SEQ_NUM: u32 = 42;
    pub const INTEREST_SIGNATURE_INFO: u32 = 44;
    pub const INTEREST_SIGNATURE_VALUE: u32 = 46;
    pub const SEGMENT_COMPONENT: u32 = 50;
    pub const BYTE_OFFSET_COMPONENT: u32 = 52;
    pub const VERSION_COMPONENT: u32 = 54;
    pub const TIMESTAMP_COMPONENT: u32 = 56;
    pub const SEQUENCE_NUM_COMPONENT: u32 = 58;
    pub const LP_FRAGMENT: u32 = 80;
    pub const LP_SEQUENCE: u32 = 81;
    pub const LP_FRAG_INDEX: u32 = 82;
    pub const LP_FRAG_COUNT: u32 = 83;
    pub const LP_PIT_TOKEN: u32 = 98;
    pub const LP_PACKET: u32 = 100;
    pub const VALIDITY_PERIOD: u32 = 253;
    pub const LP_NACK: u32 = 800;
    pub const LP_NACK_REASON: u32 = 801;
    pub const LP_INCOMING_FACE_ID: u32 = 812;
    pub const LP_NEXT_HOP_FACE_ID: u32 = 816;
    pub const LP_CACHE_POLICY: u32 = 820;
    pub const LP_CACHE_POLICY_TYPE: u32 = 821;
    pub const LP_CONGESTION_MARK: u32 = 832;
    pub const LP_ACK: u32 = 836;
    pub const LP_TX_SEQUENCE: u32 = 840;
    pub const LP_NON_DISCOVERY: u32 = 844;
    pub const LP_PREFIX_ANNOUNCEMENT: u32 = 848;
    /// Only Namewire uses it; its number is in the range that other forwarders ignore (§1.2).
    pub const LP_LANE_HELLO: u32 = 944;
    /// Only Namewire uses it; its number is in the range that other forwarders ignore (§1.2).
    pub const LP_PATH_LABEL: u32 = 952;
    /// In PathLabel.
    pub const PATH_LABEL_FLAGS: u32 = 11;
    pub const PATH_LABEL_BITMAP: u32 = 13;
    pub const PATH_LABEL_HOP_COUNT: u32 = 15;
    /// Only core routers of Namewire use it; its number is in the range that other forwarders ignore (§1.2).
    pub const LP_COLLIDED: u32 = 956;
}

/// Why bytes are not a TLV element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlvError {
    /// The input ends inside an element.
    #[error("the input ends inside an element")]
    Truncated,
    /// A type or length number is not in its shortest form.
    #[error("a number is not in its shortest form")]
    NotShortest,
    /// A type number is 0 or above 2^32-1.
    #[error("a type number is 0 or above 2^32-1")]
    BadType,
    /// A NonNegativeInteger is not of 1, 2, 4 or 8 bytes.
    #[error("a NonNegativeInteger is not of 1, 2, 4 or 8 bytes")]
    BadInteger,
}

/// Reads one type or length number from the start of `input`: the number, and the bytes that it takes.
///
/// # Errors
/// [`TlvError::Truncated`] if `input` ends inside the number; [`TlvError::NotShortest`] if it has a shorter form.
#[inline]
pub fn read_var_number(input: &[u8]) -> Result<(u64, usize), TlvError> {
    let (&first, rest) = input.split_first().ok_or(TlvError::Truncated)?;
    let (number, size, least) = match first {
        0..=252 => return Ok((u64::from(first), 1)),
        253 => (u64::from(u16::from_be_bytes(leading(rest)?)), 3, 253),
        254 => (u64::from(u32::from_be_bytes(leading(rest)?)), 5, 0x1_0000),
        255 => (u64::from_be_bytes(leading(rest)?), 9, 0x1_0000_0000),
    };
    if number < least {
        return Err(TlvError::NotShortest);
    }
    Ok((number, size))
}

fn leading<const N: usize>(input: &[u8]) -> Result<[u8; N], TlvError> {
    input.first_chunk::<N>().copied().ok_or(TlvError::Truncated)
}

/// One element: its type, its value, and the whole of it on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// TLV-TYPE, 1 to 2³²−1.
    pub type_number: u32,
    /// TLV-VALUE.
    pub value: &'a [u8],
    /// Type, length and value.
    pub wire: &'a [u8],
}

/// Type and length of an element.
struct Header {
    type_number: u32,
    /// Where the value begins.
    start: usize,
    /// Bytes of the value.
    length: u64,
}

impl Header {
    /// Where the value ends; the largest number if that is beyond any memory.
    fn end(&self) -> usize {
        usize::try_from(self.length).map_or(usize::MAX, |length| length.saturating_add(self.start))
    }
}

/// Reads type and length from the start of `input`. The value itself need not be there yet.
#[inline]
fn read_header(input: &[u8]) -> Result<Header, TlvError> {
    let (type_number, type_size) = read_var_number(input)?;
    let type_number = u32::try_from(type_number).map_err(|_| TlvError::BadType)?;
    if type_number == 0 {
        return Err(TlvError::BadType);
    }
    let (length, length_size) = read_var_number(&input[type_size..])?;
    Ok(Header { type_number, start: type_size + length_size, length })
}

/// Reads the first element of `input`, and ignores the bytes after it.
///
/// # Errors
/// [`TlvError::Truncated`] if `input` ends inside the element; [`TlvError::NotShortest`] or [`TlvError::BadType`] if
/// its type or length is malformed.
#[inline]
pub fn read_element(input: &[u8]) -> Result<Element<'_>, TlvError> {
    split_element(input).map(|(element, _)| element)
}

/// The first element of `input`, and the bytes after it.
#[inline(always)]
fn split_element(input: &[u8]) -> Result<(Element<'_>, &[u8]), TlvError> {
    let (type_number, start, end) = match *input {
        // Nearly every element has a type of one byte and a length of one or of three.
        [type_number @ 1..=252, length @ 0..=252, ..] => (u32::from(type_number), 2, 2 + usize::from(length)),
        [type_number @ 1..=252, 253, high @ 1..=255, low, ..] => {
            (u32::from(type_number), 4, 4 + usize::from(u16::from_be_bytes([high, low])))
        }
        _ => {
            let header = read_long_header(input)?;
            (header.type_number, header.start, header.end())
        }
    };
    let (wire, rest) = input.split_at_checked(end).ok_or(TlvError::Truncated)?;
    Ok((Element { type_number, value: &wire[start..], wire }, rest))
}

/// The header of an element whose type or length is long. Kept out of the common path.
#[inline(never)]
fn read_long_header(input: &[u8]) -> Result<Header, TlvError> {
    read_header(input)
}

/// Reads the size of the first element of a stream, in bytes, with type and length; `None` while these are incomplete.
/// The size may exceed any packet: the caller must compare it with its limit before it waits.
///
/// # Errors
/// [`TlvError::NotShortest`] or [`TlvError::BadType`] if type or length is malformed: no further bytes can mend that.
pub fn element_size(input: &[u8]) -> Result<Option<usize>, TlvError> {
    match read_header(input) {
        Ok(header) => Ok(Some(header.end())),
        Err(TlvError::Truncated) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The TLV-VALUE of the element that fills `wire`, if its type is `type_number` and its length takes one byte or three.
/// `None` does not mean that there is an error.
#[inline(always)]
pub(crate) fn usual_value(wire: &[u8], type_number: u8) -> Option<&[u8]> {
    let (value, length) = match wire {
        [first, length @ 0..=252, value @ ..] if *first == type_number => (value, usize::from(*length)),
        [first, 253, high @ 1..=255, low, value @ ..] if *first == type_number => {
            (value, usize::from(u16::from_be_bytes([*high, *low])))
        }
        _ => return None,
    };
    (value.len() == length).then_some(value)
}

/// The bytes after the first element of `input`, if that element has the type `type_number` and a length of one byte or
/// of three. `None` does not mean that there is an error.
#[inline(always)]
pub(crate) fn after_usual(input: &[u8], type_number: u8) -> Option<&[u8]> {
    match input {
        [first, length @ 0..=252, value @ ..] if *first == type_number => value.get(usize::from(*length)..),
        [first, 253, high @ 1..=255, low, value @ ..] if *first == type_number => {
            value.get(usize::from(u16::from_be_bytes([*high, *low]))..)
        }
        _ => None,
    }
}

/// Where `part` begins in `whole`. It must be a part of `whole`, which must have less than 4 GiB.
#[inline]
pub(crate) fn offset_in(whole: &[u8], part: &[u8]) -> u32 {
    (part.as_ptr().addr() - whole.as_ptr().addr()) as u32
}

/// Walks the elements of a TLV-VALUE in order.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    total: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte of `value`.
    pub const fn new(value: &'a [u8]) -> Self {
        Reader { rest: value, total: value.len() }
    }

    /// Reads the next element; `None` at the end.
    ///
    /// # Errors
    /// Those of [`read_element`]; then the reader stays before the malformed element.
    #[inline(always)]
    pub fn next_element(&mut self) -> Result<Option<Element<'a>>, TlvError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (element, rest) = split_element(self.rest)?;
        self.rest = rest;
        Ok(Some(element))
    }

    /// Bytes not read yet.
    pub const fn remaining(&self) -> &'a [u8] {
        self.rest
    }

    /// Bytes read so far.
    pub const fn offset(&self) -> usize {
        self.total - self.rest.len()
    }
}

/// Reads a NonNegativeInteger that fills `value`: any of the four sizes, shortest or not (§1).
///
/// # Errors
/// [`TlvError::BadInteger`] if `value` has not 1, 2, 4 or 8 bytes.
#[inline]
pub fn read_nni(value: &[u8]) -> Result<u64, TlvError> {
    Ok(match value.len() {
        1 => u64::from(value[0]),
        2 => u64::from(u16::from_be_bytes(leading(value)?)),
        4 => u64::from(u32::from_be_bytes(leading(value)?)),
        8 => u64::from_be_bytes(leading(value)?),
        _ => return Err(TlvError::BadInteger),
    })
}

/// Bytes that a type or length number takes.
pub const fn var_number_size(number: u64) -> usize {
    match number {
        0..=252 => 1,
        253..=0xFFFF => 3,
        0x1_0000..=0xFFFF_FFFF => 5,
        _ => 9,
    }
}

/// Appends a type or length number in its shortest form.
pub fn write_var_number(out: &mut Vec<u8>, number: u64) {
    match var_number_size(number) {
        1 => out.push(number as u8),
        3 => {
            out.push(253);
            out.extend_from_slice(&(number as u16).to_be_bytes());
        }
        5 => {
            out.push(254);
            out.extend_from_slice(&(number as u32).to_be_bytes());
        }
        _ => {
            out.push(255);
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
}

/// Bytes of the whole element with a value of `value_size` bytes.
pub const fn element_wire_size(type_number: u32, value_size: usize) -> usize {
    var_number_size(type_number as u64) + var_number_size(value_size as u64) + value_size
}

/// Appends one element.
pub fn write_tlv(out: &mut Vec<u8>, type_number: u32, value: &[u8]) {
    write_var_number(out, u64::from(type_number));
    write_var_number(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Bytes of the shortest NonNegativeInteger for `number`.
pub const fn nni_size(number: u64) -> usize {
    match number {
        0..=0xFF => 1,
        0x100..=0xFFFF => 2,
        0x1_0000..=0xFFFF_FFFF => 4,
        _ => 8,
    }
}

/// Appends an element whose value is a NonNegativeInteger in its shortest size.
pub fn write_nni(out: &mut Vec<u8>, type_number: u32, number: u64) {
    let size = nni_size(number);
    write_var_number(out, u64::from(type_number));
    out.push(size as u8);
    out.extend_from_slice(&number.to_be_bytes()[8 - size..]);
}

/// Appends an element whose value `fill` writes. The value is moved if its length needs more than one byte. Only `out`
/// may allocate.
pub fn write_nested(out: &mut Vec<u8>, type_number: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    write_var_number(out, u64::from(type_number));
    let length_at = out.len();
    out.push(0);
    fill(out);
    let length = (out.len() - length_at - 1) as u64;
    if length <= 252 {
        out[length_at] = length as u8;
    } else {
        out.remove(length_at);
        let end = out.len();
        write_var_number(out, length);
        let bytes = out.len() - end;
        out[length_at..].rotate_right(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stream_size_waits_for_the_header_and_reports_hopeless_input() {
        assert_eq!(element_size(&[]), Ok(None));
        assert_eq!(element_size(&[6]), Ok(None));
        assert_eq!(element_size(&[6, 253, 1]), Ok(None));
        assert_eq!(element_size(&[6, 253, 1, 0]), Ok(Some(260)));
        assert_eq!(element_size(&[0, 1]), Err(TlvError::BadType));
        assert_eq!(element_size(&[253, 0, 6]), Err(TlvError::NotShortest));
        let huge = [5, 255, 255, 255, 255, 255, 255, 255, 255, 255];
        assert_eq!(element_size(&huge), Ok(Some(usize::MAX)));
    }

    #[test]
    fn nested_lengths_are_shortest() {
        for size in [0usize, 1, 252, 253, 65535, 65536] {
            let mut nested = Vec::new();
            write_nested(&mut nested, 800, |out| out.resize(out.len() + size, 7));
            let mut flat = Vec::new();
            write_tlv(&mut flat, 800, &vec![7; size]);
            assert_eq!(nested, flat);
            assert_eq!(flat.len(), element_wire_size(800, size));
        }
    }

    proptest! {
        #[test]
        fn numbers_survive_and_are_shortest(number: u64) {
            let mut out = Vec::new();
            write_var_number(&mut out, number);
            prop_assert_eq!(out.len(), var_number_size(number));
            prop_assert_eq!(read_var_number(&out), Ok((number, out.len())));
        }

        #[test]
        fn integers_survive(number: u64) {
            let mut out = Vec::new();
            write_nni(&mut out, 12, number);
            let element = read_element(&out).unwrap();
            prop_assert_eq!(element.value.len(), nni_size(number));
            prop_assert_eq!(read_nni(element.value), Ok(number));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            let mut reader = Reader::new(&bytes);
            while let Ok(Some(element)) = reader.next_element() {
                prop_assert!(!element.wire.is_empty());
            }
        }
    }
}
