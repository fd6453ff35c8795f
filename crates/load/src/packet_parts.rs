//! The common parts of the packets of every load: a number of eight letters in each name, and Data without a signature.
//!
//! Data carry SignatureType 200 (null, with an empty value): a forwarder never verifies, and hashing 8,000 bytes per
//! Data would measure the generator.

use namewire_packet::signature::signature_type;
use namewire_packet::tlv::{types, write_nested, write_nni, write_tlv};

/// Letters of a number, so that all names are of one length.
pub(crate) const NUMBER_BYTES: usize = 8;

/// A number as hexadecimal digits.
#[inline]
pub(crate) fn digits(number: u32) -> [u8; NUMBER_BYTES] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    std::array::from_fn(|i| HEX[(number >> (28 - 4 * i)) as usize & 15])
}

/// Appends a Data, in an LpPacket if it is to carry a PIT token; `name` appends the value of its name.
pub(crate) fn write_data(
    out: &mut Vec<u8>,
    token: Option<&[u8]>,
    freshness_ms: u64,
    content: &[u8],
    name: impl FnOnce(&mut Vec<u8>),
) {
    let Some(token) = token else { return write_bare_data(out, freshness_ms, content, name) };
    write_nested(out, types::LP_PACKET, |out| {
        write_tlv(out, types::LP_PIT_TOKEN, token);
        write_nested(out, types::LP_FRAGMENT, |out| write_bare_data(out, freshness_ms, content, name));
    });
}

fn write_bare_data(out: &mut Vec<u8>, freshness_ms: u64, content: &[u8], name: impl FnOnce(&mut Vec<u8>)) {
    write_nested(out, types::DATA, |out| {
        write_nested(out, types::NAME, name);
        write_nested(out, types::META_INFO, |out| write_nni(out, types::FRESHNESS_PERIOD, freshness_ms));
        write_tlv(out, types::CONTENT, content);
        write_nested(out, types::SIGNATURE_INFO, |out| write_nni(out, types::SIGNATURE_TYPE, signature_type::NULL));
        write_tlv(out, types::SIGNATURE_VALUE, &[]);
    });
}
