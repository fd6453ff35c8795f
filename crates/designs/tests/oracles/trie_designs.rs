//! The tries with which NameTrie18 compares.

use crate::fib_designs::{equals_the_model, survives_churn};
use namewire_designs::fib::{BatchPrefetch, bit_trie, character_trie, component_trie, nce, npt};
use namewire_tables::PageSize;
use namewire_tables::fib::PrefixTable;

macro_rules! equals_and_survives {
    ($name:ident, $design:ty) => {
        mod $name {
            use super::*;

            fn make(prefetch: BatchPrefetch) -> impl Fn(usize, u64) -> Box<dyn PrefixTable> {
                move |capacity, _| {
                    Box::new(<$design>::new(capacity, prefetch, PageSize::Base).expect("memory for a small trie"))
                }
            }

            #[test]
            fn equals_the_list() {
                for prefetch in BatchPrefetch::ALL {
                    equals_the_model(make(prefetch));
                }
            }

            #[test]
            fn survives_coming_and_going() {
                survives_churn(make(BatchPrefetch::default()));
            }
        }
    };
}

equals_and_survives!(component, component_trie::ComponentTrie);
equals_and_survives!(name_prefix, npt::NamePrefixTrie);
equals_and_survives!(character, character_trie::CharacterTrie);
equals_and_survives!(bit, bit_trie::BitTrie);
equals_and_survives!(name_component_encoding, nce::NameComponentEncoding);
