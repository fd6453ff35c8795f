//! Tag comparison: which of the ten tags of a bucket equal this one?
//!
//! Source: SwissTable compares a whole group with one instruction. Here tags have 16 bits.
//! Cost: a comparison does not access memory. How much this saves over comparing words was not measured
//! separately.
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

    #[test]
    fn the_upper_half_of_the_third_word_holds_no_tags() {
        assert_eq!(equal_tags([0, 0, 0xabcd_abcd_abcd_0000], 0xabcd), 1 << 9);
        assert_eq!(equal_tags([0x8000_0000_7fff_ffff, 0, 0], 0xffff), 1);
    }
}
