//! NFD's name tree, as in the paper's comparison, in the harness of the papers' designs.

use crate::fib_designs::{equals_the_model, survives_churn};
use namewire_designs::fib::BatchPrefetch;
use namewire_designs::fib::name_tree_hash_table::NameTreeHashTable;
use namewire_tables::PageSize;
use namewire_tables::fib::PrefixTable;

fn makers() -> impl Iterator<Item = impl Fn(usize, u64) -> Box<dyn PrefixTable>> {
    BatchPrefetch::ALL.into_iter().map(|look_ups| {
        move |capacity, _| -> Box<dyn PrefixTable> {
            Box::new(NameTreeHashTable::new(capacity, look_ups, PageSize::Base).expect("address space"))
        }
    })
}

#[test]
fn the_name_tree_equals_the_model() {
    makers().for_each(equals_the_model);
}

#[test]
fn the_name_tree_survives_churn() {
    makers().for_each(survives_churn);
}

/// Every prefix of a prefix has an entry as long as the prefix is there.
#[test]
fn entries_between_come_and_go() {
    let mut tree = NameTreeHashTable::new(10, BatchPrefetch::None, PageSize::Base).expect("address space");
    let name = |components: &[u8]| components.iter().flat_map(|&byte| [8, 1, byte]).collect::<Vec<u8>>();
    for (prefix, entries) in [(&b"abcd"[..], 5), (b"abxy", 7), (b"ab", 7), (b"", 7)] {
        tree.insert(&name(prefix), 1).expect("room");
        assert_eq!(tree.name_tree_entries(), entries);
    }
    for (prefix, entries) in [(&b"abcd"[..], 5), (b"ab", 5), (b"abxy", 1), (b"", 0)] {
        assert_eq!(tree.remove(&name(prefix)), Some(1));
        assert_eq!(tree.name_tree_entries(), entries);
    }
}
