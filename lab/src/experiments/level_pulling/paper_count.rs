//! The paper's count: how many tables a binary search visits, from lengths alone.
//!
//! Source: Yuan15 §4.1. The paper counts in a simulation, without mentioning leaf bits or the case of an absent suffix.
//! Here, a marker or prefix is found at every length up to that of the longest prefix and at no longer one; a search
//! ends when no length is left (no leaf bits). With level pulling, the suffix of the C-Trie's prefix is visited first.
//! Then the ordinary order follows: longer lengths if the suffix was found, shorter ones if not.

/// A binary search over tables for lengths 1 to `longest`.
#[derive(Clone, Copy, Debug)]
pub(super) struct PaperCount {
    /// k.
    pub(super) longest: usize,
}

impl PaperCount {
    /// The count for a name of `components` whose longest prefix has `matched`.
    pub(super) fn without(self, components: usize, matched: usize) -> usize {
        self.search(1, components, matched)
    }

    /// The count if the longest prefix in the C-Trie has `c_trie` components.
    pub(super) fn with(self, components: usize, matched: usize, c_trie: usize) -> usize {
        let suffix = c_trie + 1;
        if suffix > components || suffix > self.longest {
            return self.without(components, matched);
        }
        1 + if suffix <= matched {
            self.search(suffix + 1, components, matched)
        } else {
            self.search(1, suffix - 1, matched)
        }
    }

    /// Counts visits to tables of lengths `least` to `most`; other lengths are known, or too long for the name.
    fn search(self, least: usize, most: usize, matched: usize) -> usize {
        let (mut low, mut high, mut asked) = (1, self.longest, 0);
        while low <= high {
            let length = low.midpoint(high);
            let is_asked = (least..=most).contains(&length);
            asked += usize::from(is_asked);
            if if is_asked { length <= matched } else { length < least } {
                low = length + 1;
            } else {
                high = length - 1;
            }
        }
        asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_over_seven_lengths() {
        let count = PaperCount { longest: 7 };
        // 4, 2, 3; with /a in the C-Trie 2, then 4 and 3 above it.
        assert_eq!((count.without(5, 2), count.with(5, 2, 1)), (3, 3));
        // 4, 2, 1, and 3 exceeds the name; from 3 on: 3, then 4 (no 5 to 7).
        assert_eq!((count.without(7, 3), count.with(7, 3, 2)), (3, 2));
        // 4, 6, 7; the suffix 7 alone is enough.
        assert_eq!((count.without(10, 7), count.with(10, 7, 6)), (3, 1));
        // The suffix is absent: 3 fails, then 2, and no length is between.
        assert_eq!((count.without(5, 2), count.with(5, 2, 2)), (3, 2));
    }
}
