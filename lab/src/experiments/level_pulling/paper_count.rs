//! Paper's count: how many tables does a binary search ask, by lengths alone?
//!
//! Source: Yuan15 §4.1, which counts in a simulation and names neither leaf bits nor what is done if
//! the suffix is not there. Here: a marker or prefix is found at every length up to that of the
//! longest prefix and nowhere above it; a search ends when no length is left (no leaf bit).
//! With level pulling the suffix of the C-Trie's prefix comes first; then the ordinary order,
//! longer lengths only if the suffix was found, else shorter ones only.

/// A binary search over tables for 1 to `longest` components.
#[derive(Clone, Copy, Debug)]
pub(super) struct PaperCount {
    /// k.
    pub(super) longest: usize,
}

impl PaperCount {
    /// For a name of `components`, of which the first `matched` are its longest prefix.
    pub(super) fn without(self, components: usize, matched: usize) -> usize {
        self.search(1, components, matched)
    }

    /// The same if the longest prefix in the C-Trie has `c_trie` components.
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

    /// Tables asked for lengths of `least` to `most`; the others are known or too long for the name.
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
        // 4, 2, 1 and 3 is longer than the name; from 3 on: 3, then 4 (no 5 to 7).
        assert_eq!((count.without(7, 3), count.with(7, 3, 2)), (3, 2));
        // 4, 6, 7; the suffix 7 is all.
        assert_eq!((count.without(10, 7), count.with(10, 7, 6)), (3, 1));
        // The suffix is not there: 3 in vain, then 2, and nothing is between.
        assert_eq!((count.without(5, 2), count.with(5, 2, 2)), (3, 2));
    }
}
