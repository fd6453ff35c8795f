//! The paper's count: how many tables a search visits, from lengths alone.
//!
//! Source: Yuan15 §4.1. The paper counts in a simulation and does not say in which order it visits the tables, nor
//! whether it uses leaf bits (§3.3.2). So there are four readings ([`Reading`]). All assume that a marker or prefix is
//! found at every length up to that of the longest prefix and at no longer one. A search ends when no length is left,
//! or, with leaf bits, at a prefix below which there is none. With level pulling, the suffix of the C-Trie's prefix is
//! visited first. Then the ordinary order follows: longer lengths if the suffix was found, shorter ones if not.

namewire_packet::names! {
    /// A reading of §4.1.
    pub(super) enum Reading {
        /// The middle length first, no leaf bits.
        Middle = "as the paper counts",
        /// The middle length first, with leaf bits.
        MiddleLeaf = "with leaf bits",
        /// A binary search tree of least weight, where a length weighs as much as it has leaf entries (§4.1 names this
        /// as the known optimization).
        Weighted = "with tables ordered by leaf entries",
        /// The same tree, with leaf bits.
        WeightedLeaf = "with leaf bits and tables ordered by leaf entries",
    }
}

/// A name to look up, as far as the count must know it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Query {
    /// Components of the name.
    pub(super) components: usize,
    /// Components of its longest prefix.
    pub(super) matched: usize,
    /// Whether no other prefix is below that prefix.
    pub(super) is_leaf: bool,
}

/// A search over tables for lengths 1 to k.
#[derive(Clone, Debug)]
pub(super) struct PaperCount {
    /// The first length of a search among lengths `low` to `high`: element `low`, then element `high`.
    first: Vec<Vec<usize>>,
    has_leaf_bits: bool,
}

impl PaperCount {
    /// Element `length` of `leaf_entries`: prefixes of this length below which there is none. The last is for k.
    pub(super) fn new(reading: Reading, leaf_entries: &[usize]) -> Self {
        let first = match reading {
            Reading::Middle | Reading::MiddleLeaf => middles(leaf_entries.len()),
            Reading::Weighted | Reading::WeightedLeaf => least_weight(leaf_entries),
        };
        Self { first, has_leaf_bits: matches!(reading, Reading::MiddleLeaf | Reading::WeightedLeaf) }
    }

    fn longest(&self) -> usize {
        self.first.len() - 1
    }

    /// The count without level pulling.
    pub(super) fn without(&self, query: Query) -> usize {
        self.search(1, query.components, query)
    }

    /// The count if the longest prefix in the C-Trie has `c_trie` components.
    pub(super) fn with(&self, query: Query, c_trie: usize) -> usize {
        let suffix = c_trie + 1;
        if suffix > query.components || suffix > self.longest() {
            return self.without(query);
        }
        1 + if suffix > query.matched {
            self.search(1, suffix - 1, query)
        } else if self.ends_at(suffix, query) {
            0
        } else {
            self.search(suffix + 1, query.components, query)
        }
    }

    /// Counts visits to tables of lengths `least` to `most`; other lengths are known, or too long for the name.
    fn search(&self, least: usize, most: usize, query: Query) -> usize {
        let (mut low, mut high, mut asked) = (1, self.longest(), 0);
        while low <= high {
            let length = self.first[low][high];
            let is_asked = (least..=most).contains(&length);
            asked += usize::from(is_asked);
            if is_asked && self.ends_at(length, query) {
                break;
            }
            if if is_asked { length <= query.matched } else { length < least } {
                low = length + 1;
            } else {
                high = length - 1;
            }
        }
        asked
    }

    /// Whether the leaf bit of a found prefix ends the search.
    fn ends_at(&self, length: usize, query: Query) -> bool {
        self.has_leaf_bits && query.is_leaf && length == query.matched
    }
}

fn middles(lengths: usize) -> Vec<Vec<usize>> {
    (0..lengths).map(|low| (0..lengths).map(|high| low.midpoint(high)).collect()).collect()
}

/// The optimal binary search tree over lengths 1 to k: the sum of weight × depth is least.
fn least_weight(weights: &[usize]) -> Vec<Vec<usize>> {
    let longest = weights.len() - 1;
    let mut first = middles(weights.len());
    // Element `low`, then element `high`; empty ranges weigh nothing.
    let mut costs = vec![vec![0; longest + 1]; longest + 2];
    for lengths in 1..=longest {
        for low in 1..=longest + 1 - lengths {
            let high = low + lengths - 1;
            let parts = |length: usize| costs[low][length - 1] + costs[length + 1][high];
            // Of equals the one in the middle.
            let least = (low..=high).min_by_key(|&length| (parts(length), length.abs_diff(low.midpoint(high))));
            let least = least.unwrap_or(low);
            let cost = parts(least) + weights[low..=high].iter().sum::<usize>();
            first[low][high] = least;
            costs[low][high] = cost;
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn query(components: usize, matched: usize) -> Query {
        Query { components, matched, is_leaf: true }
    }

    #[test]
    fn searches_over_seven_lengths() {
        let count = PaperCount::new(Reading::Middle, &[0; 8]);
        let both = |query, c_trie| (count.without(query), count.with(query, c_trie));
        // 4, 2, 3; with /a in the C-Trie 2, then 4 and 3 above it.
        assert_eq!(both(query(5, 2), 1), (3, 3));
        // 4, 2, 1, and 3 exceeds the name; from 3 on: 3, then 4 (no 5 to 7).
        assert_eq!(both(query(7, 3), 2), (3, 2));
        // 4, 6, 7; the suffix 7 alone is enough.
        assert_eq!(both(query(10, 7), 6), (3, 1));
        // The suffix is absent: 3 fails, then 2, and no length is between.
        assert_eq!(both(query(5, 2), 2), (3, 2));
    }

    #[test]
    fn a_leaf_bit_ends_the_search() {
        let count = PaperCount::new(Reading::MiddleLeaf, &[0; 8]);
        assert_eq!((count.without(query(7, 4)), count.without(query(7, 2)), count.with(query(7, 3), 2)), (1, 2, 1));
        let inner = Query { is_leaf: false, ..query(7, 4) };
        assert_eq!(count.without(inner), PaperCount::new(Reading::Middle, &[0; 8]).without(inner));
    }

    #[test]
    fn the_heaviest_length_comes_first_and_the_tree_is_the_best() {
        // Depths in the tree by trying every tree.
        fn least(weights: &[usize]) -> usize {
            let all: usize = weights.iter().sum();
            let parts = |root: usize| least(&weights[..root]) + least(&weights[root + 1..]);
            all + (0..weights.len()).map(parts).min().unwrap_or(0)
        }
        let weights = [0, 5, 90, 3, 40, 7, 1, 0, 2];
        let count = PaperCount::new(Reading::WeightedLeaf, &weights);
        assert_eq!(count.without(query(11, 2)), 1);
        let total: usize = (1..weights.len()).map(|length| weights[length] * count.without(query(11, length))).sum();
        assert_eq!(total, least(&weights[1..]));
    }
}
