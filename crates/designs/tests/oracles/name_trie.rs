//! NameTrie, each way to look up and to code, in the harness of the papers' designs.

use crate::fib_designs::{equals_the_model, survives_churn};
use namewire_designs::fib::BatchPrefetch;
use namewire_designs::fib::min_ascii::{FrequentGroups, MinAscii, NameCodes};
use namewire_designs::fib::name_trie::{NameTrie, NameTrieOptions};
use namewire_tables::fib::PrefixTable;

fn makers() -> impl Iterator<Item = impl Fn(usize, u64) -> Box<dyn PrefixTable>> {
    let groups = FrequentGroups::new([&b"ab"[..], b"site", b"te", b"..."]);
    let codings = NameCodes::ALL.map(NameCodes::coding).into_iter().chain([MinAscii::with_groups(&groups)]);
    BatchPrefetch::ALL.into_iter().cycle().zip(codings).map(|(look_ups, coding)| {
        move |capacity, seed| -> Box<dyn PrefixTable> {
            let options = NameTrieOptions { coding: coding.clone(), look_ups, ..NameTrieOptions::default() };
            Box::new(NameTrie::new(capacity, seed, options).expect("address space"))
        }
    })
}

#[test]
fn name_trie_equals_the_model() {
    makers().for_each(equals_the_model);
}

#[test]
fn name_trie_survives_churn() {
    makers().for_each(survives_churn);
}
