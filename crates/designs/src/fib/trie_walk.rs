//! Trie walk: how do up to 64 look-ups wait for their nodes at the same time?
//!
//! Source: NameTrie18 §I for the problem (each level of a trie is a memory access that waits for the one before);
//! Yuan15 §3.5.2 and Takemasa19 §4.3 for the solution in hash tables. The tries' papers look up one name after the
//! other; that is [`BatchPrefetch::None`].
//!
//! A walk is a small state machine. Each turn reads what the turn before began to fetch, decides where to go, begins
//! to fetch that, and gives way to the next walk. With 64 walks under way, a line has the time of 63 turns to arrive.
//! A finished walk takes no more turns.

use super::BatchPrefetch;
use arrayvec::ArrayVec;
use namewire_tables::fib::{DESIGN_BATCH_NAMES, PrefixMatch};

/// A structure that can be walked in steps.
pub(super) trait Walkable {
    /// How far one look-up has come.
    type Walk<'name>;

    fn begin<'name>(&self, name: &'name [u8]) -> Self::Walk<'name>;

    /// Goes on to the next access, having begun to fetch it; false at the end.
    fn step<const PREFETCH: bool>(&self, walk: &mut Self::Walk<'_>) -> bool;

    /// The longest prefix seen so far.
    fn longest(walk: &Self::Walk<'_>) -> Option<PrefixMatch>;
}

/// Looks every name up; see
/// [`longest_prefix_match_batch`](namewire_tables::fib::PrefixTable::longest_prefix_match_batch).
pub(super) fn walk_batch<T: Walkable>(
    trie: &T,
    prefetch: BatchPrefetch,
    names: &[&[u8]],
    out: &mut [Option<PrefixMatch>],
) {
    assert!(names.len() <= DESIGN_BATCH_NAMES && out.len() >= names.len(), "one place for each of at most 64 names");
    match prefetch {
        BatchPrefetch::None => {
            for (name, out) in names.iter().zip(out) {
                let mut walk = trie.begin(name);
                while trie.step::<false>(&mut walk) {}
                *out = T::longest(&walk);
            }
        }
        BatchPrefetch::Batch => {
            let mut walks: ArrayVec<_, DESIGN_BATCH_NAMES> = names.iter().map(|name| trie.begin(name)).collect();
            let mut under_way: ArrayVec<u8, DESIGN_BATCH_NAMES> = (0..names.len() as u8).collect();
            while !under_way.is_empty() {
                under_way.retain(|walk| trie.step::<true>(&mut walks[usize::from(*walk)]));
            }
            for (walk, out) in walks.iter().zip(out) {
                *out = T::longest(walk);
            }
        }
    }
}
