//! Search order: which lengths does a search visit, and where must a prefix leave markers?
//!
//! Source: Yuan15 §3.3.1 with Fig. 3.1 (binary search of hash tables, from Waldvogel et al. 1997), §3.4.2 (longest
//! first, shortest first), §3.2.1 (So et al. 2013, two stages). Symbols: k is `longest`, M is `first_components`; MD
//! is kept in the name prefix entries (`super::name_entries`).
//!
//! ```text
//!  k = 7        4                a prefix of 7 components has markers at 4 and 6,
//!             /   \              one of 5 at 4, one of 3 at 2; slot of a length = how many
//!            2     6             markers the prefixes of that length have: 7 → 2, 6 → 1, 4 → 0
//!           / \   / \
//!          1   3 5   7
//! ```
//!
//! The markers of a length are its longest marker and the markers of that marker's length. So the entry of a prefix
//! also serves any of its markers, slot by slot, even after the prefix is removed.
//!
//! Cost: a step reads arrays of a few bytes per length, which are always in the cache. Writers: none.

/// How a table looks for the longest prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HashSearch {
    /// Binary search over the lengths: at most log₂(k) + 1 hash look-ups. Markers inherit.
    Binary,
    /// From the longest length down to the first match. No markers.
    LongestFirst,
    /// From one component up to the first mismatch or leaf. Markers at all lengths, which inherit nothing.
    ShortestFirst,
    /// At M components first: if there is a match, from the deepest prefix below it (MD) down to
    /// M; else from M - 1 down. Markers at M, which inherit.
    TwoStage {
        /// M, the length that most prefixes have; at least 1.
        first_components: u16,
    },
}

impl HashSearch {
    /// The name in records and configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::LongestFirst => "longest-first",
            Self::ShortestFirst => "shortest-first",
            Self::TwoStage { .. } => "two-stage",
        }
    }
}

/// A search over lengths of 1 to `longest` components.
pub(super) struct SearchOrder {
    search: HashSearch,
    longest: usize,
    /// Binary search: the length in the middle of all; 0 with `left` and `right` is "none".
    middle: u16,
    left: Box<[u16]>,
    right: Box<[u16]>,
    slots: Box<[u8]>,
}

impl SearchOrder {
    pub(super) fn new(search: HashSearch, longest: usize) -> Self {
        let lengths = longest + 1;
        let (mut left, mut right) = (vec![0; lengths], vec![0; lengths]);
        let mut slots = vec![0; lengths];
        let middle = |(low, high): (usize, usize)| if low > high { 0 } else { low.midpoint(high) };
        let mut ranges = vec![(1, longest, 0_u8)];
        while let Some((low, high, markers)) = ranges.pop() {
            let node = middle((low, high));
            if node == 0 {
                continue;
            }
            let (below, above) = ((low, node - 1), (node + 1, high));
            (left[node], right[node]) = (middle(below) as u16, middle(above) as u16);
            slots[node] = match search {
                HashSearch::Binary => markers,
                HashSearch::LongestFirst => 0,
                HashSearch::ShortestFirst => (node - 1) as u8,
                HashSearch::TwoStage { first_components } => u8::from(node > first_components.into()),
            };
            ranges.push((below.0, below.1, markers));
            ranges.push((above.0, above.1, markers + 1));
        }
        let middle = middle((1, longest)) as u16;
        Self { search, longest, middle, left: left.into(), right: right.into(), slots: slots.into() }
    }

    pub(super) fn search(&self) -> HashSearch {
        self.search
    }

    /// k.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// Whether markers say what the longest prefix of themselves leads to.
    pub(super) fn markers_inherit(&self) -> bool {
        matches!(self.search, HashSearch::Binary | HashSearch::TwoStage { .. })
    }

    /// Which forwarding field of a name prefix entry belongs to its first `components` components.
    #[inline(always)]
    pub(super) fn slot(&self, components: usize) -> usize {
        self.slots[components].into()
    }

    /// The lengths at which a prefix of `components` has markers, shortest first: slots 0, 1, ….
    pub(super) fn marker_lengths(&self, components: usize) -> impl Iterator<Item = usize> + '_ {
        let mut node = match self.search {
            HashSearch::Binary => self.middle.into(),
            HashSearch::LongestFirst => components,
            HashSearch::ShortestFirst => 1,
            HashSearch::TwoStage { first_components } => components.min(first_components.into()),
        };
        std::iter::from_fn(move || {
            while node > components {
                node = self.left[node].into(); // binary search only
            }
            let marker = node;
            node = match self.search {
                HashSearch::Binary => self.right[node].into(),
                HashSearch::ShortestFirst => node + 1,
                HashSearch::LongestFirst | HashSearch::TwoStage { .. } => components,
            };
            (marker < components).then_some(marker)
        })
    }

    /// Binary search: the first length to visit of at most `limit`; 0 if there is none.
    #[inline(always)]
    pub(super) fn middle_up_to(&self, limit: usize) -> usize {
        self.up_to(self.middle.into(), limit)
    }

    /// Binary search: where it continues after a match, at most to `limit`; 0 if it ends.
    #[inline(always)]
    pub(super) fn longer(&self, node: usize, limit: usize) -> usize {
        self.up_to(self.right[node].into(), limit)
    }

    /// Binary search: where it continues without a match; 0 if it ends.
    #[inline(always)]
    pub(super) fn shorter(&self, node: usize) -> usize {
        self.left[node].into()
    }

    /// Binary search: `node`, or where it continues from there if everything up to `known` components
    /// is a match; 0 if it ends.
    #[inline(always)]
    pub(super) fn longer_than(&self, mut node: usize, known: usize, limit: usize) -> usize {
        while node <= known && node != 0 {
            node = self.longer(node, limit);
        }
        node
    }

    #[inline(always)]
    fn up_to(&self, mut node: usize, limit: usize) -> usize {
        while node > limit {
            node = self.left[node].into();
        }
        node
    }

    pub(super) fn bytes(&self) -> usize {
        self.left.len() * (2 * size_of::<u16>() + size_of::<u8>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn markers(search: HashSearch, longest: usize, components: usize) -> Vec<usize> {
        SearchOrder::new(search, longest).marker_lengths(components).collect()
    }

    #[test]
    fn the_paper_s_tree_of_seven_lengths() {
        let order = SearchOrder::new(HashSearch::Binary, 7);
        assert_eq!(order.middle_up_to(7), 4);
        assert_eq!((order.shorter(4), order.longer(4, 7)), (2, 6));
        assert_eq!((order.shorter(2), order.longer(2, 7), order.shorter(6), order.longer(6, 7)), (1, 3, 5, 7));
        assert_eq!((order.longer(7, 7), order.shorter(1)), (0, 0));
        // Of a name of five components: 6 cannot match, 5 can.
        assert_eq!(
            (order.longer(4, 5), order.longer(4, 4), order.middle_up_to(3), order.middle_up_to(0)),
            (5, 0, 2, 0)
        );
        assert_eq!(markers(HashSearch::Binary, 7, 7), [4, 6]);
        assert_eq!(markers(HashSearch::Binary, 7, 3), [2]); // /a/b/c needs /a/b
        assert_eq!(markers(HashSearch::Binary, 15, 15), [8, 12, 14]);
        assert_eq!(markers(HashSearch::Binary, 256, 7), [4, 6]); // a router's lengths cost short names nothing
    }

    #[test]
    fn markers_of_the_other_searches() {
        assert_eq!(markers(HashSearch::LongestFirst, 7, 7), []);
        assert_eq!(markers(HashSearch::ShortestFirst, 7, 4), [1, 2, 3]);
        let two_stage = HashSearch::TwoStage { first_components: 3 };
        assert_eq!((markers(two_stage, 7, 5), markers(two_stage, 7, 3)), (vec![3], vec![]));
    }

    /// What lets markers share the entry of a prefix, and outlive it there.
    #[test]
    fn slots_count_markers_and_a_marker_has_the_markers_of_its_length() {
        let two_stage = HashSearch::TwoStage { first_components: 5 };
        for search in [HashSearch::Binary, HashSearch::LongestFirst, HashSearch::ShortestFirst, two_stage] {
            for longest in [1, 7, 15, 256] {
                let order = SearchOrder::new(search, longest);
                for components in 1..=longest {
                    let markers: Vec<usize> = order.marker_lengths(components).collect();
                    assert_eq!(order.slot(components), markers.len());
                    for (slot, &marker) in markers.iter().enumerate() {
                        assert_eq!(order.slot(marker), slot);
                        assert!(order.marker_lengths(marker).eq(markers[..slot].iter().copied()));
                    }
                }
            }
        }
    }
}
