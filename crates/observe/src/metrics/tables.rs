//! Metrics of the PIT, the Content Store, the FIB and the shared pools.

use super::{Metric, ROWS_MAX, Samples, View, of_facts};
use crate::snapshot::Pool;
use namewire_packet::nfd::{CsInfo, CsPrefixUsage, CsUsage, FibUsage};

const PREFIX: &[&str] = &["prefix"];
const POOL: &[&str] = &["pool"];

pub(super) const METRICS: &[Metric] = &[
    Metric::gauge("namewire_pit_entries", "Pending Interests.", |view, samples| {
        samples.only(view.snapshot.pit.entries);
    }),
    Metric::gauge("namewire_pit_capacity_entries", "Pending Interests that the PIT can hold.", |view, samples| {
        samples.only(view.snapshot.pit.capacity_entries);
    }),
    Metric::info("namewire_cs", &["policy", "admission"], "The policies of the Content Store.", |view, samples| {
        samples.add(&[&view.snapshot.cs.usage.policy, &view.snapshot.cs.usage.admission], 1u64);
    }),
    Metric::info("namewire_fib", &["design"], "Which FIB design runs.", |view, samples| {
        samples.add(&[&view.snapshot.fib.usage.design], 1u64);
    }),
    Metric::gauge("namewire_fib_entries", "Prefixes in the FIB.", |view, samples| {
        samples.only(view.snapshot.fib.entries);
    }),
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

pub(super) fn derived() -> Vec<Metric> {
    let packets = of_facts("namewire_cs_", &[], CsInfo::FACTS, |view, visit| visit(&[], &view.snapshot.cs.info));
    let bytes = of_facts("namewire_cs_", &[], CsUsage::FACTS, |view, visit| visit(&[], &view.snapshot.cs.usage));
    let prefixes = of_facts("namewire_cs_prefix_", PREFIX, CsPrefixUsage::FACTS, |view, visit| {
        for usage in view.snapshot.cs.usage.prefixes.iter().take(ROWS_MAX) {
            visit(&[&usage.prefix.to_string()], usage);
        }
    });
    let fib = of_facts("namewire_fib_", &[], FibUsage::FACTS, |view, visit| visit(&[], &view.snapshot.fib.usage));
    packets.chain(bytes).chain(prefixes).chain(fib).collect()
}

fn each_pool(view: &View, samples: &mut Samples, value: fn(&Pool) -> u64) {
    for pool in view.snapshot.pools.iter().take(ROWS_MAX) {
        samples.add(&[&pool.name], value(pool));
    }
}
