//! The router's own table in the harness of the papers' designs.

use crate::fib_designs::{equals_the_model, survives_churn};
use namewire_designs::fib::default_table::DefaultTable;
use namewire_tables::fib::PrefixTable;
use namewire_tables::{FibConfig, FibSearch, HashKey, NameStorage};

fn makers() -> impl Iterator<Item = impl Fn(usize, u64) -> Box<dyn PrefixTable>> {
    let kinds = FibSearch::ALL.into_iter().flat_map(|search| NameStorage::ALL.map(|names| (search, names)));
    kinds.map(|(search, names)| {
        move |capacity, seed| -> Box<dyn PrefixTable> {
            let config = FibConfig { search, names, ..FibConfig::new(capacity) };
            Box::new(DefaultTable::new(config, HashKey::from_seed(seed)).expect("address space"))
        }
    })
}

#[test]
fn the_default_table_equals_the_model() {
    makers().for_each(equals_the_model);
}

#[test]
fn the_default_table_survives_churn() {
    makers().for_each(survives_churn);
}
