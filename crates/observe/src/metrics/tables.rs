//! Metrics of the PIT, the Content Store, the FIB and the shared pools.

use super::{Metric, ROWS_MAX, Samples, View};
use crate::snapshot::{ContentPrefix, Pool};

const PREFIX: &[&str] = &["prefix"];
const POOL: &[&str] = &["pool"];

pub(super) const METRICS: &[Metric] = &[
    Metric::gauge("namewire_pit_entries", "Pending Interests.", |view, samples| {
        samples.only(view.snapshot.pit.entries);
    })
    .unit("entries"),
    Metric::gauge("namewire_pit_capacity_entries", "Pending Interests that the PIT can hold.", |view, samples| {
        samples.only(view.snapshot.pit.capacity_entries);
    })
    .unit("entries"),
    Metric::info("namewire_cs", &["policy", "admission"], "The policies of the Content Store.", |view, samples| {
        samples.add([&view.snapshot.cs.policy, &view.snapshot.cs.admission], 1u64);
    }),
    Metric::gauge("namewire_cs_entries", "Data packets in the Content Store.", |view, samples| {
        samples.only(view.snapshot.cs.entries);
    })
    .unit("entries"),
    Metric::gauge("namewire_cs_bytes", "Bytes that the Content Store uses.", |view, samples| {
        samples.only(view.snapshot.cs.bytes);
    })
    .unit("bytes"),
    Metric::gauge("namewire_cs_capacity_bytes", "Bytes that the Content Store may use.", |view, samples| {
        samples.only(view.snapshot.cs.capacity_bytes);
    })
    .unit("bytes"),
    Metric::counter("namewire_cs_hits", "Interests that the Content Store answered.", |view, samples| {
        samples.only(view.snapshot.cs.hits);
    }),
    Metric::counter("namewire_cs_misses", "Interests that it could not answer.", |view, samples| {
        samples.only(view.snapshot.cs.misses);
    }),
    Metric::counter("namewire_cs_prefix_hits", "Interests under the prefix that it answered.", |view, samples| {
        each_prefix(view, samples, |prefix| prefix.hits);
    })
    .labels(PREFIX),
    Metric::counter("namewire_cs_prefix_misses", "Interests under the prefix not answered.", |view, samples| {
        each_prefix(view, samples, |prefix| prefix.misses);
    })
    .labels(PREFIX),
    Metric::counter("namewire_cs_prefix_insertions", "Data packets stored under the prefix.", |view, samples| {
        each_prefix(view, samples, |prefix| prefix.insertions);
    })
    .labels(PREFIX),
    Metric::info("namewire_fib", &["design"], "Which FIB design runs.", |view, samples| {
        samples.add([&view.snapshot.fib.design], 1u64);
    }),
    Metric::gauge("namewire_fib_entries", "Prefixes in the FIB.", |view, samples| {
        samples.only(view.snapshot.fib.entries);
    })
    .unit("entries"),
    Metric::gauge("namewire_fib_bytes", "Bytes that the FIB uses.", |view, samples| {
        samples.only(view.snapshot.fib.bytes);
    })
    .unit("bytes"),
    Metric::gauge("namewire_fib_capacity_entries", "Prefixes that the FIB can hold.", |view, samples| {
        samples.only(view.snapshot.fib.capacity_entries);
    })
    .unit("entries"),
    Metric::gauge("namewire_pool_used", "How much of the pool is in use.", |view, samples| {
        each_pool(view, samples, |pool| pool.used);
    })
    .labels(POOL),
    Metric::gauge("namewire_pool_capacity", "How much the pool has.", |view, samples| {
        each_pool(view, samples, |pool| pool.capacity);
    })
    .labels(POOL),
    Metric::gauge("namewire_pool_holders", "How many holders have some of the pool.", |view, samples| {
        each_pool(view, samples, |pool| pool.holders);
    })
    .labels(POOL),
    Metric::counter("namewire_pool_refused", "How often a holder was refused more.", |view, samples| {
        each_pool(view, samples, |pool| pool.refused);
    })
    .labels(POOL),
];

fn each_prefix(view: &View, samples: &mut Samples, value: fn(&ContentPrefix) -> u64) {
    for prefix in view.snapshot.cs.prefixes.iter().take(ROWS_MAX) {
        samples.add([&prefix.prefix], value(prefix));
    }
}

fn each_pool(view: &View, samples: &mut Samples, value: fn(&Pool) -> u64) {
    for pool in view.snapshot.pools.iter().take(ROWS_MAX) {
        samples.add([&pool.name], value(pool));
    }
}
