//! The dataset `status/holders`: who holds how much of each pool, over all workers.
//!
//! Limit: the [`SHOWN`] heaviest holders of each pool.

use crate::Shared;
use crate::drop_report::DropReport;
use namewire_packet::nfd::PoolHolding;
use namewire_shares::{HolderId, HolderTable, PoolReader, Refusal};
use std::collections::BTreeMap;

/// Holders shown of each pool.
const SHOWN: usize = 64;

/// The pools by name.
pub struct PoolReport<'a> {
    holders: &'a HolderTable,
    pools: BTreeMap<&'static str, PoolSum>,
    refusals: BTreeMap<&'static str, [u64; Refusal::COUNT]>,
}

/// A pool of all workers.
#[derive(Default)]
struct PoolSum {
    capacity: u64,
    displaced: u64,
    by_holder: BTreeMap<HolderId, Held>,
}

#[derive(Clone, Copy, Default)]
struct Held {
    held: u64,
    refused: u64,
}

impl<'a> PoolReport<'a> {
    /// The pools as they are now.
    pub fn of(shared: &'a Shared) -> Self {
        Self::sum(&shared.holders, &shared.pools())
    }

    fn sum(holders: &'a HolderTable, readers: &[PoolReader]) -> Self {
        let mut report = PoolReport { holders, pools: BTreeMap::new(), refusals: BTreeMap::new() };
        for reader in readers {
            let name = reader.config().name;
            let pool = report.pools.entry(name).or_default();
            pool.capacity += reader.config().capacity;
            pool.displaced += reader.displaced();
            for holding in reader.holdings() {
                let sum = pool.by_holder.entry(holding.holder).or_default();
                *sum = Held { held: sum.held + holding.held, refused: sum.refused + holding.refused };
            }
            let refusals = report.refusals.entry(name).or_default();
            refusals.iter_mut().zip(reader.refused()).for_each(|(sum, count)| *sum += count);
        }
        report
    }

    /// The entries of the dataset: for each pool, all holders together, and then the heaviest.
    pub fn holdings(&self) -> Vec<PoolHolding> {
        let mut holdings = Vec::new();
        for (name, pool) in &self.pools {
            let holding = |holder: Option<String>, Held { held, refused }: Held| {
                let pool_name = (*name).to_owned();
                PoolHolding { pool: pool_name, holder, capacity: pool.capacity, held, refused }
            };
            let add = |sum: Held, of: &Held| Held { held: sum.held + of.held, refused: sum.refused + of.refused };
            holdings.push(holding(None, pool.by_holder.values().fold(Held::default(), add)));
            let mut by_weight: Vec<(HolderId, Held)> = pool.by_holder.iter().map(|(id, held)| (*id, *held)).collect();
            by_weight.sort_by_key(|(id, Held { held, refused })| (std::cmp::Reverse((*held, *refused)), *id));
            let heaviest = by_weight.into_iter().take(SHOWN);
            holdings.extend(heaviest.map(|(id, held)| holding(Some(self.holders.describe(id)), held)));
        }
        holdings
    }

    /// The counters of refusals, by pool.
    pub fn add_refusals(&self, report: &mut DropReport) {
        for (pool, counts) in &self.refusals {
            for (refusal, count) in Refusal::named(counts) {
                report.add(&format!("{refusal}.{pool}"), count);
            }
        }
        for (name, pool) in &self.pools {
            // What holders of the pool lost to others.
            report.add(&format!("displaced.{name}"), pool.displaced);
        }
        // Holders that share a number, and so a share, because there are more than the router can number.
        report.add("limit.holders-sharing", self.holders.sharing());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_shares::{Holder, Pool, PoolConfig};

    #[test]
    fn pools_of_workers_are_summed_and_the_heaviest_holders_come_first() {
        let holders = HolderTable::default();
        let config =
            PoolConfig { name: "faces", capacity: 10, share_percent: 80, management_reserve: 0, local_reserve: 0 };
        let mut pools = [Pool::new(config, holders.groups()), Pool::new(config, holders.groups())];
        let [light, heavy] = [1, 2].map(|number| holders.enter(&Holder::Ipv4(number.into())));
        for pool in &mut pools {
            pool.take(light, 1);
            pool.take(heavy, 4);
        }
        assert!(pools[0].try_take(heavy, 9).is_err());
        let readers = pools.each_ref().map(Pool::reader);
        let report = PoolReport::sum(&holders, &readers);
        let shown: Vec<_> = report.holdings().into_iter().map(|h| (h.holder, h.capacity, h.held, h.refused)).collect();
        let named = |name: &str| Some(name.to_owned());
        assert_eq!(shown, [(None, 20, 10, 1), (named("0.0.0.2"), 20, 8, 1), (named("0.0.0.1"), 20, 2, 0)]);
        let mut drops = DropReport::default();
        report.add_refusals(&mut drops);
        let drops: Vec<_> = drops.into_counters().into_iter().map(|drop| (drop.reason, drop.count)).collect();
        assert_eq!(drops, [("pool-full.faces".to_owned(), 1)]);
    }
}
