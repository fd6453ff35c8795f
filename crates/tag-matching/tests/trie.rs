//! Question: does the trie find what the linear scan finds, after any sequence of insertions and
//! removals?

use namewire_packet::descriptor::Descriptor;
use namewire_tag_matching::{Entry, SubsetTable, linear::LinearTable, trie::Trie};
use proptest::prelude::*;
use std::ops::ControlFlow;

#[derive(Clone, Debug)]
enum Operation {
    Insert(Descriptor, u32),
    Remove(Descriptor),
    Find(Descriptor),
}

/// Descriptors of few bits from few positions, so that subsets are frequent; and the extremes.
fn descriptor() -> impl Strategy<Value = Descriptor> {
    let positions = proptest::sample::select(&[0_u8, 1, 2, 63, 64, 65, 127, 128, 190, 191][..]);
    let few = proptest::collection::vec(positions, 0..6).prop_map(|positions| positions.into_iter().collect());
    prop_oneof![20 => few, 1 => Just(Descriptor([u64::MAX; 3])), 1 => any::<[u64; 3]>().prop_map(Descriptor)]
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => (descriptor(), 0..1000_u32).prop_map(|(descriptor, value)| Operation::Insert(descriptor, value)),
        2 => descriptor().prop_map(Operation::Remove),
        3 => descriptor().prop_map(Operation::Find),
    ]
}

fn all(table: &impl SubsetTable, query: &Descriptor) -> Vec<u32> {
    let mut values = Vec::new();
    table.find_all(query, |value| {
        values.push(value);
        ControlFlow::Continue(())
    });
    values.sort_unstable();
    values
}

proptest! {
    #[test]
    fn the_trie_equals_the_linear_scan(operations in proptest::collection::vec(operation(), 1..80)) {
        let (mut trie, mut linear) = (Trie::default(), LinearTable::default());
        for operation in operations {
            match operation {
                Operation::Insert(descriptor, value) => {
                    trie.insert(Entry { descriptor, value });
                    linear.insert(Entry { descriptor, value });
                    prop_assert_eq!(trie.get(&descriptor), Some(value));
                }
                Operation::Remove(descriptor) => {
                    prop_assert_eq!(trie.remove(&descriptor), linear.remove(&descriptor));
                    prop_assert_eq!(trie.get(&descriptor), None);
                }
                Operation::Find(query) => {
                    prop_assert_eq!(all(&trie, &query), all(&linear, &query));
                    prop_assert_eq!(trie.find_largest(&query), linear.find_largest(&query));
                    let is_odd = |value: u32| value % 2 == 1;
                    prop_assert_eq!(trie.find_largest_of(&query, is_odd), linear.find_largest_of(&query, is_odd));
                    let mut visits = 0;
                    trie.find_all(&query, |_| { visits += 1; ControlFlow::Break(()) });
                    prop_assert_eq!(visits, all(&linear, &query).len().min(1));
                }
            }
            prop_assert_eq!(trie.len(), linear.len());
        }
        for entry in linear.entries() {
            prop_assert!(trie.remove(&entry.descriptor));
        }
        prop_assert!(trie.is_empty() && all(&trie, &Descriptor([u64::MAX; 3])).is_empty());
    }
}
