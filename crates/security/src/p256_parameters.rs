//! Recognizes parameters that name the curve P-256, or that write it out in full.
//!
//! Certificates made by ndn-cxx up to 2018, among them testbed certificates still in use, have the curve's numbers (RFC
//! 3279 §2.3.5, ECParameters) instead of its name. Every number is compared, including the base point: with another
//! base point an attacker could forge signatures (CVE-2020-0601).

use der::{
    Reader, SliceReader,
    asn1::{AnyRef, BitStringRef, ObjectIdentifier, OctetStringRef, UintRef},
};

const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const PRIME_FIELD: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.1.1");

// SEC 2 §2.4.2, secp256r1.
const P: [u8; 32] = hex("ffffffff00000001000000000000000000000000ffffffffffffffffffffffff");
const A: [u8; 32] = hex("ffffffff00000001000000000000000000000000fffffffffffffffffffffffc");
const B: [u8; 32] = hex("5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b");
const G_X: [u8; 32] = hex("6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296");
const G_Y: [u8; 32] = hex("4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5");
const N: [u8; 32] = hex("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551");

/// True if `parameters` are the name of P-256, or an ECParameters with exactly its numbers.
pub(crate) fn are_p256(parameters: AnyRef<'_>) -> bool {
    parameters.decode_as::<ObjectIdentifier>() == Ok(P256)
        || parameters.sequence(|reader| read(reader)).unwrap_or(false)
}

fn read(reader: &mut SliceReader<'_>) -> Result<bool, der::Error> {
    let version = reader.decode::<u8>()?;
    let (field_type, prime) = reader
        .sequence(|field| Ok::<_, der::Error>((field.decode::<ObjectIdentifier>()?, field.decode::<UintRef<'_>>()?)))?;
    let (a, b) = reader.sequence(|curve| {
        let coefficients = (curve.decode::<&OctetStringRef>()?, curve.decode::<&OctetStringRef>()?);
        curve.decode::<Option<BitStringRef<'_>>>()?; // the seed of b has no effect
        Ok::<_, der::Error>(coefficients)
    })?;
    let base = reader.decode::<&OctetStringRef>()?;
    let order = reader.decode::<UintRef<'_>>()?;
    let cofactor = reader.decode::<Option<UintRef<'_>>>()?;
    Ok(version == 1
        && field_type == PRIME_FIELD
        && prime.as_bytes() == P
        && a.as_bytes() == A
        && b.as_bytes() == B
        && is_base_point(base.as_bytes())
        && order.as_bytes() == N
        && cofactor.is_none_or(|cofactor| cofactor.as_bytes() == [1]))
}

/// Uncompressed, or compressed with the sign of an odd y (SEC 1 §2.3.3).
fn is_base_point(bytes: &[u8]) -> bool {
    match bytes {
        [4, point @ ..] => point.len() == 64 && point[..32] == G_X && point[32..] == G_Y,
        [3, x @ ..] => x == G_X,
        _ => false,
    }
}

const fn hex(digits: &str) -> [u8; 32] {
    const fn nibble(digit: u8) -> u8 {
        if digit <= b'9' { digit - b'0' } else { digit - b'a' + 10 }
    }
    let digits = digits.as_bytes();
    let mut out = [0; 32];
    let mut at = 0;
    while at < 32 {
        out[at] = nibble(digits[2 * at]) << 4 | nibble(digits[2 * at + 1]);
        at += 1;
    }
    out
}
