//! Tag comparison: which of the ten tags of a bucket equal this one, or one of these four?
//!
//! Source: SwissTable compares a whole group with one instruction. Here tags have 16 bits.
//! Cost: a comparison does not access memory. How much this saves over comparing words was not measured
//! separately. Four tags at once take 50 instructions; four comparisons take 80.
#![allow(unsafe_code, reason = "leaf: vector instructions have no safe wrapper in core")]

/// Returns one bit per tag, in order. Each of the first two words holds four tags, the lower half of the
/// third holds two; its upper half holds something else.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn equal_tags(words: [u64; 3], tag: u16) -> u32 {
    use core::arch::x86_64::{
        _mm_cmpeq_epi16, _mm_cvtsi64_si128, _mm_movemask_epi8, _mm_packs_epi16, _mm_set_epi64x, _mm_set1_epi16,
    };
    let [first, second, third] = words.map(u64::cast_signed);
    // SAFETY: SSE2, which has these instructions, is part of every x86-64 processor; they
    // work on registers only.
    let equal = unsafe {
        let tag = _mm_set1_epi16(tag.cast_signed());
        let eight = _mm_cmpeq_epi16(_mm_set_epi64x(second, first), tag);
        let two = _mm_cmpeq_epi16(_mm_cvtsi64_si128(third), tag); // and more, masked out below
        _mm_movemask_epi8(_mm_packs_epi16(eight, two))
    };
    equal.cast_unsigned() & 0x3ff
}

/// Returns one bit per tag, in order. Each of the first two words holds four tags, the lower half of the
/// third holds two; its upper half holds something else.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn equal_tags(words: [u64; 3], tag: u16) -> u32 {
    equal_tags_scalar(words, tag)
}

/// Returns 16 bits for each of four tags, in order: one bit for each tag of the bucket that equals it. Tag
/// `i` is the upper 16 bits of `hashes[i]` with `lowest[i]` in place of the lowest two, and at least 1. The
/// words are as in [`equal_tags`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn equal_tags_of_four(words: [u64; 3], hashes: &[u64; 4], lowest: &[u32; 4]) -> u64 {
    use core::arch::x86_64::{
        _mm_and_si128, _mm_castps_si128, _mm_castsi128_ps, _mm_cmpeq_epi16, _mm_cmpeq_epi32, _mm_cvtsi32_si128,
        _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_packs_epi16, _mm_set_epi64x, _mm_set1_epi32,
        _mm_setzero_si128, _mm_shuffle_epi32, _mm_shuffle_ps, _mm_slli_epi32, _mm_srli_epi32, _mm_sub_epi32,
    };
    const UPPER_HALVES: i32 = 0b11_01_11_01;
    let [first, second, third] = words.map(u64::cast_signed);
    // SAFETY:
    // - SSE2, which has these instructions, is part of every x86-64 processor.
    // - The loads read 16 bytes each, at any alignment: the halves of `hashes`, and `lowest`.
    unsafe {
        let (halves, lowest) = (hashes.as_ptr().cast(), _mm_loadu_si128(lowest.as_ptr().cast()));
        let [low, high] = [_mm_loadu_si128(halves), _mm_loadu_si128(halves.add(1))].map(|two| _mm_castsi128_ps(two));
        let upper = _mm_srli_epi32::<16>(_mm_castps_si128(_mm_shuffle_ps::<UPPER_HALVES>(low, high)));
        let tags = _mm_or_si128(_mm_and_si128(upper, _mm_set1_epi32(0xfffc)), lowest);
        let tags = _mm_sub_epi32(tags, _mm_cmpeq_epi32(tags, _mm_setzero_si128())); // 0 becomes 1
        let tags = _mm_or_si128(tags, _mm_slli_epi32::<16>(tags));
        let (eight, two) = (_mm_set_epi64x(second, first), _mm_cvtsi32_si128(third as i32));
        // The tags after the two are 0, which no tag equals.
        let equal = |tag| _mm_movemask_epi8(_mm_packs_epi16(_mm_cmpeq_epi16(eight, tag), _mm_cmpeq_epi16(two, tag)));
        let [first, second, third, fourth] = [
            equal(_mm_shuffle_epi32::<0b00_00_00_00>(tags)),
            equal(_mm_shuffle_epi32::<0b01_01_01_01>(tags)),
            equal(_mm_shuffle_epi32::<0b10_10_10_10>(tags)),
            equal(_mm_shuffle_epi32::<0b11_11_11_11>(tags)),
        ]
        .map(|mask| u64::from(mask.cast_unsigned()));
        (first | second << 16) | (third | fourth << 16) << 32
    }
}

/// As on x86-64.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn equal_tags_of_four(words: [u64; 3], hashes: &[u64; 4], lowest: &[u32; 4]) -> u64 {
    equal_tags_of_four_scalar(words, hashes, lowest)
}

/// The scalar twin.
#[cfg(any(all(test, not(loom)), not(target_arch = "x86_64")))]
fn equal_tags_of_four_scalar(words: [u64; 3], hashes: &[u64; 4], lowest: &[u32; 4]) -> u64 {
    let tag = |place: usize| ((hashes[place] >> 48) as u16 & !3 | lowest[place] as u16).max(1);
    (0..4).map(|place| u64::from(equal_tags_scalar(words, tag(place))) << (16 * place)).sum()
}

/// The scalar twin.
#[cfg(any(all(test, not(loom)), not(target_arch = "x86_64")))]
fn equal_tags_scalar(words: [u64; 3], tag: u16) -> u32 {
    let is_equal = |slot: &u32| (words[*slot as usize / 4] >> (16 * (slot % 4))) as u16 == tag;
    (0..10).filter(is_equal).map(|slot| 1 << slot).sum()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Words in which a small tag is likely.
    fn word() -> impl Strategy<Value = u64> {
        prop_oneof![any::<u64>(), (0_u64..4, 0_u64..4).prop_map(|(one, other)| one << 16 | other << 48)]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn both_find_exactly_the_equal_tags(words in [word(), word(), word()], tag in prop_oneof![0_u16..4, any::<u16>()],
                                            slot in 0_u32..10) {
            prop_assert_eq!(equal_tags(words, tag), equal_tags_scalar(words, tag));
            let own = (words[slot as usize / 4] >> (16 * (slot % 4))) as u16;
            prop_assert!(equal_tags(words, own) & 1 << slot != 0);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn four_at_once_are_found_as_one_by_one(words in [word(), word(), word()],
                                                 tags in prop::array::uniform4(prop_oneof![0_u64..8, any::<u64>()]),
                                                 lowest in prop::array::uniform4(0_u32..4),
                                                 slot in 0_u32..10, place in 0_usize..4) {
            let mut hashes = tags.map(|tag| tag << 48 | 0xabcd);
            prop_assert_eq!(
                equal_tags_of_four(words, &hashes, &lowest),
                equal_tags_of_four_scalar(words, &hashes, &lowest)
            );
            let own = words[slot as usize / 4] >> (16 * (slot % 4)) & 0xffff;
            hashes[place] = own << 48;
            let mut lowest = lowest;
            lowest[place] = own as u32 & 3;
            let found = equal_tags_of_four(words, &hashes, &lowest);
            prop_assert_eq!(found >> (16 * place as u32 + slot) & 1 != 0, own != 0, "0 is no tag");
            prop_assert_eq!(found, equal_tags_of_four_scalar(words, &hashes, &lowest));
        }
    }

    #[test]
    fn the_upper_half_of_the_third_word_holds_no_tags() {
        assert_eq!(equal_tags([0, 0, 0xabcd_abcd_abcd_0000], 0xabcd), 1 << 9);
        assert_eq!(equal_tags([0x8000_0000_7fff_ffff, 0, 0], 0xffff), 1);
    }
}
