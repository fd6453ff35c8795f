//! Short copy: bytes into a field of a fixed size, without a call.
//!
//! Question answered: how does a name or the rest of an Interest get into its entry? If the length is known only from
//! the packet, the copy is a call of `memcpy`. The caller must save and restore its registers around this call, and
//! `memcpy` makes the same decisions as this file. A copy of a fixed length is a few moves. So this file copies both
//! ends of the source, each of a fixed length; in the middle they overlap.
//!
//! Cost: a copy of 8 to [`MAX_BYTES`] bytes is at most 3 comparisons and 12 moves. Shorter ones are a call.

/// The most bytes of one copy.
pub(crate) const MAX_BYTES: usize = 96;

/// Copies `source` to the front of `field`; the bytes behind it stay.
///
/// # Panics
/// If `source` is longer than `field`, or than [`MAX_BYTES`].
#[inline(always)]
pub(crate) fn copy_to_front(field: &mut [u8], source: &[u8]) {
    let place = &mut field[..source.len()];
    match source.len() {
        0..8 => place.copy_from_slice(source),
        8..=16 => copy_ends::<8, 8>(place, source),
        17..=32 => copy_ends::<16, 16>(place, source),
        33..=64 => copy_ends::<32, 32>(place, source),
        65..=MAX_BYTES => copy_ends::<64, 32>(place, source),
        bytes => unreachable!("a copy of {bytes} bytes is not short"),
    }
}

/// Copies the first `FRONT` and the last `BACK` bytes; there are at least as many.
#[inline(always)]
fn copy_ends<const FRONT: usize, const BACK: usize>(place: &mut [u8], source: &[u8]) {
    if let (Some(to), Some(from)) = (place.first_chunk_mut::<FRONT>(), source.first_chunk::<FRONT>()) {
        *to = *from;
    }
    if let (Some(to), Some(from)) = (place.last_chunk_mut::<BACK>(), source.last_chunk::<BACK>()) {
        *to = *from;
    }
}

/// Whether `field` begins with `bytes`: compares their ends, which overlap; beyond 128 bytes by a call.
#[inline(always)]
pub(crate) fn begins_with(field: &[u8], bytes: &[u8]) -> bool {
    let Some(field) = field.get(..bytes.len()) else { return false };
    match bytes.len() {
        64..=128 => ends_are_equal::<64>(field, bytes),
        32..64 => ends_are_equal::<32>(field, bytes),
        16..32 => ends_are_equal::<16>(field, bytes),
        _ => field == bytes,
    }
}

#[inline(always)]
fn ends_are_equal<const BYTES: usize>(one: &[u8], other: &[u8]) -> bool {
    one.first_chunk::<BYTES>() == other.first_chunk() && one.last_chunk::<BYTES>() == other.last_chunk()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_compared() {
        let field: Vec<u8> = (1..=MAX_BYTES as u8).collect();
        for bytes in 0..=MAX_BYTES {
            let mut other = field[..bytes].to_vec();
            assert!(begins_with(&field, &other), "{bytes}");
            for place in 0..bytes {
                other[place] ^= 1;
                assert!(!begins_with(&field, &other), "{place} of {bytes}");
                other[place] ^= 1;
            }
        }
        assert!(!begins_with(&field, &[&field[..], &[0]].concat()));
    }

    #[test]
    fn every_length_is_copied_and_the_rest_stays() {
        let source: Vec<u8> = (1..=MAX_BYTES as u8).collect();
        for bytes in 0..=MAX_BYTES {
            let mut field = [0; MAX_BYTES + 8];
            copy_to_front(&mut field, &source[..bytes]);
            assert_eq!(field[..bytes], source[..bytes]);
            assert!(field[bytes..].iter().all(|&byte| byte == 0), "{bytes}");
        }
    }
}
