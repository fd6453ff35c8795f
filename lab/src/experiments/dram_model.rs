//! How many memory accesses does a look-up wait for, and what limits the packet rate?
//!
//! Source: Takemasa17 §6.3 and Takemasa19 §4.1 (binary Patricia trie against hash table), Takemasa19 §3.2.3 (limits
//! NF/C and B/M). Nothing is measured: the run computes the models again from the papers' parameters and describes our
//! table in the same terms.
//!
//! * A vertex at depth d of a Patricia trie is visited every 2^d look-ups; meanwhile r·2^d bytes pass through the
//!   cache. If they exceed the cache, the vertex must be fetched again. A look-up visits one vertex for each whole
//!   level of the mean depth log2(n) + 0.3327, the root (depth 0) first.
//! * The longest-first hash table can fetch the buckets of all lengths in parallel, but an entry only after its bucket.
//!   So it has 2 dependent accesses; in total it reads one bucket per probe, and the entry.
//! * Packets per second: at most N·F/C (cores, cycles per second, cycles per packet) and at most B/M (bytes per second
//!   and per packet), Eq. 3.1. C and M follow from Table 3.1 and 30 % hits, in one of two ways: there is a Data for
//!   each Interest (926 and 803), or for each that misses (990 and 800). The thesis prints 925.4 and 800.7, which no
//!   single reading gives: C of the first, M of the second.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use namewire_power::case_study::{PerPacket, Table31};
use serde::Deserialize;

use crate::experiment::{Context, Outcome, Samples};
use crate::papers;
use crate::synthetic_names::{PAPER_PREFIXES, SyntheticNames};

pub(super) const FILE: &str = include_str!("dram_model.toml");

#[derive(Deserialize)]
struct FibParameters {
    fib_entries: u64,
    table_lookups_per_longest_prefix_match: f64,
    dram_bytes_per_data_packet: f64,
    l3_cache_bytes: f64,
    patricia_mean_depth: f64,
    patricia_dram_accesses: f64,
    hash_table_dram_accesses: f64,
}

#[derive(Deserialize)]
struct DependentAccesses {
    dependent_accesses_longest_first: f64,
    dependent_accesses_two_stage: f64,
    dependent_accesses_patricia: f64,
}

#[derive(Deserialize)]
struct PacketLimits {
    cycles_per_packet: f64,
    dram_bytes_per_packet: f64,
    dram_bandwidth_bytes_per_s: f64,
    dram_limit_packets_per_s: f64,
    computers: Vec<Computer>,
    hit: f64,
    table_3_1: Table31,
}

#[derive(Deserialize)]
struct Computer {
    name: String,
    cores: f64,
    hz: f64,
    cpu_limit_packets_per_s: f64,
}

/// Lines of our index that a look-up reads: one for all lengths, and another with a probability of 0.18 (counted over
/// 13.5 million prefixes: the first bucket was full, or seemed to match a longer prefix).
const INDEX_LINES: f64 = 1.18;
/// Bytes of a line.
const LINE_BYTES: f64 = 64.0;
/// Bytes before the name in our entries, and the alignment of entries.
const ENTRY_HEADER_BYTES: f64 = 8.0;
const ENTRY_ALIGNMENT_BYTES: f64 = 4.0;
/// Prefixes sampled for means of the population.
const SAMPLED_PREFIXES: u64 = 100_000;
/// The papers round their results; our recomputed ones must agree this well.
const AGREEMENT: f64 = 0.01;

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let mut rows = Vec::new();
    let mut put = |case: &str, subject: &str, metric: &str, unit: &str, value: f64| {
        rows.push(Samples::one(value).row(case, subject, metric, unit, None));
    };

    let fib: FibParameters = papers::figures(papers::TAKEMASA_17, "/section_6_3")?;
    ensure!(fib.fib_entries == PAPER_PREFIXES, "the lab's population is not the paper's");
    let depth = patricia_mean_depth(fib.fib_entries);
    let patricia = patricia_dram_accesses(depth, fib.dram_bytes_per_data_packet, fib.l3_cache_bytes);
    let hash_table = fib.table_lookups_per_longest_prefix_match + 1.0;
    agrees("mean depth", depth, fib.patricia_mean_depth)?;
    agrees("Patricia accesses", patricia, fib.patricia_dram_accesses)?;
    agrees("hash table accesses", hash_table, fib.hash_table_dram_accesses)?;
    put("Patricia trie", "computed", "mean depth", "vertices", depth);
    put("Patricia trie", "Takemasa17", "mean depth", "vertices", fib.patricia_mean_depth);
    put("Patricia trie", "computed", "DRAM accesses", "per look-up", patricia);
    put("Patricia trie", "Takemasa17", "DRAM accesses", "per look-up", fib.patricia_dram_accesses);
    put("hash table", "computed", "DRAM accesses", "per look-up", hash_table);
    put("hash table", "Takemasa17", "DRAM accesses", "per look-up", fib.hash_table_dram_accesses);

    let ours = OurFib::of(SyntheticNames::new(context.seed, PAPER_PREFIXES));
    put("our FIB", "computed", "index lines", "per look-up", ours.index_lines);
    put("our FIB", "computed", "entry lines", "per look-up", ours.entry_lines);
    put("our FIB", "computed", "DRAM accesses", "per look-up", ours.index_lines + ours.entry_lines);

    let dependent: DependentAccesses = papers::figures(papers::TAKEMASA_19, "/section_4_1")?;
    agrees("dependent accesses of the trie", patricia, dependent.dependent_accesses_patricia)?;
    put("Patricia trie", "Takemasa19", "dependent accesses", "per look-up", dependent.dependent_accesses_patricia);
    put("2-stage", "Takemasa19", "dependent accesses", "per look-up", dependent.dependent_accesses_two_stage);
    put("longest first", "Takemasa19", "dependent accesses", "per look-up", dependent.dependent_accesses_longest_first);
    put("our FIB", "one bucket for all lengths", "dependent accesses", "per look-up", ours.index_lines + 1.0);

    let limits: PacketLimits = papers::figures(papers::TAKEMASA_19, "/section_3_2_3")?;
    let Table31 { cycles, memory_bytes, .. } = &limits.table_3_1;
    cycles_and_bytes(&limits, &mut put)?;
    let dram_limit = limits.dram_bandwidth_bytes_per_s / limits.dram_bytes_per_packet;
    agrees("B/M", dram_limit, limits.dram_limit_packets_per_s)?;
    put("B/M", "computed", "limit", "Mpps", dram_limit / 1e6);
    put("B/M", "Takemasa19", "limit", "Mpps", limits.dram_limit_packets_per_s / 1e6);
    let mut headline = BTreeMap::new();
    for computer in &limits.computers {
        let cpu_limit = computer.cores * computer.hz / limits.cycles_per_packet;
        headline.insert(format!("limit_{}_cores_mpps", computer.cores), cpu_limit / 1e6);
        agrees("NF/C", cpu_limit, computer.cpu_limit_packets_per_s)?;
        let case = format!("NF/C, {}", computer.name);
        put(&case, "computed", "limit", "Mpps", cpu_limit / 1e6);
        put(&case, "Takemasa19", "limit", "Mpps", computer.cpu_limit_packets_per_s / 1e6);
    }
    headline.extend([
        ("patricia_depth".to_owned(), depth),
        ("patricia_dram_accesses".to_owned(), patricia),
        ("hash_table_dram_accesses".to_owned(), hash_table),
        ("our_dram_accesses".to_owned(), ours.index_lines + ours.entry_lines),
        ("cycles_per_packet".to_owned(), per_packet(cycles, limits.hit, true)),
        ("memory_bytes_per_packet".to_owned(), per_packet(memory_bytes, limits.hit, true)),
        ("limit_memory_mpps".to_owned(), dram_limit / 1e6),
    ]);
    let mut outcome = Outcome { rows, headline, ..Outcome::default() };
    outcome.add_notes(FILE)?;
    Ok(outcome)
}

/// C and M of Eq. 3.1, in both readings.
fn cycles_and_bytes(limits: &PacketLimits, put: &mut impl FnMut(&str, &str, &str, &str, f64)) -> anyhow::Result<()> {
    let Table31 { cycles, memory_bytes, .. } = &limits.table_3_1;
    for (subject, data_on_hits) in [("a Data per Interest", true), ("a Data per miss", false)] {
        let of = |costs: &PerPacket| per_packet(costs, limits.hit, data_on_hits);
        put("C and M of Eq. 3.1", subject, "cycles", "per packet", of(cycles));
        put("C and M of Eq. 3.1", subject, "memory", "bytes per packet", of(memory_bytes));
    }
    put("C and M of Eq. 3.1", "Takemasa19", "cycles", "per packet", limits.cycles_per_packet);
    put("C and M of Eq. 3.1", "Takemasa19", "memory", "bytes per packet", limits.dram_bytes_per_packet);
    agrees("C", per_packet(cycles, limits.hit, true), limits.cycles_per_packet)?;
    agrees("M", per_packet(memory_bytes, limits.hit, false), limits.dram_bytes_per_packet)?;
    Ok(())
}

fn agrees(what: &str, computed: f64, printed: f64) -> anyhow::Result<()> {
    let far = (computed - printed).abs() / printed;
    (far <= AGREEMENT).then_some(()).with_context(|| format!("{what}: computed {computed}, in the paper {printed}"))
}

/// The mean cost of a packet, Interests and Data counted. With `data_on_hits` a Data follows each Interest, otherwise
/// each that misses.
fn per_packet(costs: &PerPacket, hit: f64, data_on_hits: bool) -> f64 {
    let data = if data_on_hits { 1.0 } else { 1.0 - hit };
    let exchange = (1.0 - hit) * costs.interest_miss + hit * costs.interest_hit + data * costs.data;
    exchange / (1.0 + data)
}

fn patricia_mean_depth(entries: u64) -> f64 {
    (entries as f64).log2() + 0.3327
}

fn patricia_dram_accesses(mean_depth: f64, bytes_per_packet: f64, cache_bytes: f64) -> f64 {
    let is_fetched = |depth: &i32| bytes_per_packet * f64::from(*depth).exp2() > cache_bytes;
    (0..mean_depth.floor() as i32).filter(is_fetched).count() as f64
}

/// Lines that a look-up of our FIB reads, averaged over the population.
struct OurFib {
    index_lines: f64,
    entry_lines: f64,
}

impl OurFib {
    fn of(names: SyntheticNames) -> Self {
        let mut prefix = Vec::new();
        let mut entry_lines = 0.0;
        for number in 0..SAMPLED_PREFIXES {
            names.write_prefix(number, &mut prefix);
            // An entry begins at any multiple of four in a line.
            let bytes = ENTRY_HEADER_BYTES + prefix.len() as f64;
            entry_lines += 1.0 + (bytes - ENTRY_ALIGNMENT_BYTES) / LINE_BYTES;
        }
        let sampled = SAMPLED_PREFIXES as f64;
        Self { index_lines: INDEX_LINES, entry_lines: entry_lines / sampled }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_readings_of_table_3_1() {
        let cycles = PerPacket { interest_miss: 1470.0, interest_hit: 860.0, data: 565.0 };
        let bytes = PerPacket { interest_miss: 909.0, interest_hit: 511.0, data: 816.0 };
        let computed = |data_on_hits| [&cycles, &bytes].map(|costs| per_packet(costs, 0.3, data_on_hits).round());
        assert_eq!((computed(true), computed(false)), ([926.0, 803.0], [990.0, 800.0]));
    }

    #[test]
    fn the_cache_decides_how_much_of_the_trie_is_fetched() {
        assert_eq!(patricia_dram_accesses(24.02, 511.0, 55e6), 7.0);
        assert_eq!(patricia_dram_accesses(24.02, 511.0, 0.0), 24.0);
        assert_eq!(patricia_dram_accesses(24.02, 511.0, 1e12), 0.0);
        assert!((patricia_mean_depth(1 << 20) - 20.3327).abs() < 1e-9);
        assert!(agrees("x", 4.9, 4.87).is_ok() && agrees("x", 5.0, 4.87).is_err());
    }
}
