//! How many packets of 256 bytes does a forwarder forward with each FIB design?
//!
//! Source: Yuan15 §3.4.4 (Table 3.2): a forwarding engine on DPDK that did only longest prefix match, with rules of up
//! to seven components, four workers and two I/O threads on 10 Gb/s links. It ran with CityA and SipE, and prefetched
//! no hash bucket, the first one or all of them. Here the whole engine forwards, in memory: every Interest passes the
//! PIT and a strategy; every Data matches it, is stored and is sent back. Both have 257 bytes and count as 256.
//! Designs take turns with the default (default, design, design, default), some milliseconds each. Each pair of turns
//! gives one ratio.
//!
//! There are two throughputs. By the clock on the wall a worker also writes the packets into memory, as a network card
//! would, and checks every verdict. That is the smaller one. The engine alone is what `prefetch` gives as
//! `vector_mpps`; there, packets are smaller and the FIB is larger.
//!
//! Gb/s are those of Ethernet, with 20 bytes of preamble and gap per packet, as in the table (4.4 Mpps of the table
//! are 9.7 Gb/s).
//!
//! Limits: there is no network card and no socket (`router-sockets`), the machine differs, the tables are smaller than
//! the paper's billion rules, and a look-up is only a part of the work.

use super::prefetch::forwarder::{Cycles, Finding, Forwarder, PRODUCER, Setup};
use super::prefetch::traffic::Traffic;
use super::prefetch::{CYCLES, one_pass, per_packet, thread_counts};
use crate::disturbance::{Disturbances, Spins};
use crate::experiment::{Context, Outcome};
use crate::fib_measurement::{FibLookup, FibLookups};
use crate::sample_table::SampleTable;
use crate::synthetic_names::SyntheticNames;
use anyhow::{Context as _, ensure};
use namewire_designs::fib::FibPrefetch;
use namewire_designs::fib::catalogue::{FibDesign, FibDesignOptions};
use namewire_designs::fib::hash_tables::{PrefixHash, StringMatching};
use namewire_designs::policies::catalogue::EvictionName;
use namewire_engine::Schedule;
use namewire_tables::{Fib, FibConfig, HashKey, NextHop};
use serde::Deserialize;

pub(super) const FILE: &str = include_str!("fib_forwarding.toml");

/// Bytes of every packet: the smallest size above the paper's 256 that is possible. No Interest or Data has 256 bytes,
/// because beyond 254 the outer TLV-LENGTH takes three bytes.
const PACKET_BYTES: usize = 257;
/// Bytes of a packet in the results.
const PAPER_PACKET_BYTES: usize = 256;
/// Preamble and gap between frames.
const ETHERNET_BYTES: usize = 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    prefixes: u64,
    outstanding: u64,
    store_bytes: u64,
    repetitions: usize,
    /// Slices of names with checked answers.
    checked_slices: usize,
}

/// One line of the comparison.
struct Subject {
    name: &'static str,
    design: FibDesign,
    options: FibDesignOptions,
}

const DEFAULT: &str = "one-bucket (default)";
const INTEREST: &str = "Interest, 1 worker";
const OVER_DEFAULT: &str = "cycles over the default's";
/// The engine alone: without the writing of packets into memory, and the check of every verdict.
const ENGINE: &str = "1 worker, the engine alone";

/// Pairs of the default and a design in a repetition; batches in a turn, a millisecond or two.
const PAIRS_PER_REPETITION: usize = 8;
const TURN_BATCHES: usize = 32;

/// The cells of Table 3.2, and other designs with their fastest options.
fn subjects() -> Vec<Subject> {
    let binary = |name, hash, matching, prefetch| {
        let (hash, matching, prefetch) = (Some(hash), Some(matching), Some(prefetch));
        let options = FibDesignOptions { hash, matching, prefetch, ..FibDesignOptions::default() };
        Subject { name, design: FibDesign::Binary, options }
    };
    let fastest = |design: FibDesign| Subject { name: design.name(), design, options: FibDesignOptions::default() };
    let (city_a, sip_e) = ((PrefixHash::City, StringMatching::Always), (PrefixHash::Sip, StringMatching::AtEnd));
    vec![
        binary("CityA, prefetch none", city_a.0, city_a.1, FibPrefetch::None),
        binary("CityA, prefetch first", city_a.0, city_a.1, FibPrefetch::First),
        binary("CityA, prefetch all", city_a.0, city_a.1, FibPrefetch::All),
        binary("SipE, prefetch none", sip_e.0, sip_e.1, FibPrefetch::None),
        binary("SipE, prefetch first", sip_e.0, sip_e.1, FibPrefetch::First),
        binary("SipE, prefetch all", sip_e.0, sip_e.1, FibPrefetch::All),
        fastest(FibDesign::Binary),
        fastest(FibDesign::LongestFirst),
        fastest(FibDesign::NameTrie),
        fastest(FibDesign::Npt),
        fastest(FibDesign::Fpt),
        fastest(FibDesign::Fht),
        fastest(FibDesign::Compact),
    ]
}

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let (size, subjects, threads) = (context.size::<Size>(FILE)?, subjects(), thread_counts(context));
    let tsc_hz = context.clock.tsc_hz().context("this processor has no time stamp counter that we can read")?;
    context.plan_steps(1 + subjects.len());
    context.begin_step("outstanding Interests, full store")?;
    let names = SyntheticNames::new(context.seed, size.prefixes);
    let key = HashKey::from_seed(context.seed);
    let default = Subject { name: DEFAULT, design: FibDesign::default(), options: FibDesignOptions::default() };
    let default_fib = populate(context, &default, names, key)?;
    check_answers(context, &default_fib, names, &size)?;
    let mut forwarders = make_forwarders(&size, names, key, threads.iter().copied().max().unwrap_or(1))?;
    for forwarder in &mut forwarders {
        forwarder.fill(&default_fib, &|| Ok(crate::interrupt::check()?))?;
    }
    let mut table = SampleTable::default();
    let mut disturbances = Disturbances::new(subjects.len() * size.repetitions * PAIRS_PER_REPETITION);
    for subject in &subjects {
        context.begin_step(subject.name)?;
        let fib = populate(context, subject, names, key)?;
        check_answers(context, &fib, names, &size)?;
        let mut of_default = SampleTable::default();
        for repetition in 0..size.repetitions {
            for _ in 0..PAIRS_PER_REPETITION {
                let pair = loop {
                    let mut spins = Spins::default();
                    let pair = take_turns(&mut forwarders[0], [&default_fib, &fib], &mut spins)?;
                    if disturbances.accepts(&spins) {
                        break pair;
                    }
                };
                add_pair(subject.name, pair, tsc_hz, &mut of_default, &mut table);
            }
            for &count in &threads {
                let case = format!("{count} worker{}", if count == 1 { "" } else { "s" });
                let forwarders = &mut forwarders[..count];
                let mut fibs = [(&default_fib, 0), (&fib, 1)];
                if repetition % 2 == 1 {
                    fibs.reverse();
                }
                let mut mpps = [0.0; 2];
                for (fib, place) in fibs {
                    mpps[place] = one_pass(forwarders, fib, Schedule::default())?;
                }
                let [by_default, mpps] = mpps;
                for (table, name, mpps) in [(&mut of_default, DEFAULT, by_default), (&mut table, subject.name, mpps)] {
                    table.add(&case, name, "throughput", "Mpps", mpps);
                    table.add(&case, name, "throughput on Ethernet", "Gb/s", gbps(mpps));
                }
                table.add(&case, subject.name, "throughput over the default's", "ratio", mpps / by_default);
                context.check_interrupt()?;
            }
        }
        table.add_medians(of_default);
    }
    forwarders.iter().try_for_each(Forwarder::check)?;
    let mut outcome = outcome(&table, &threads, &size);
    outcome.notes.extend(disturbances.note());
    Ok(outcome)
}

/// What both FIBs cost within some milliseconds: the default's first, then the other's.
type Pair = [Exchange; 2];

/// Cycles per packet of the median batches.
#[derive(Clone, Copy)]
struct Exchange {
    interest: f64,
    data: f64,
}

/// Four turns: default, design, design, default.
fn take_turns(forwarder: &mut Forwarder, fibs: [&Fib; 2], spins: &mut Spins) -> anyhow::Result<Pair> {
    let mut taken: [Cycles; 2] = Default::default();
    let batches = forwarder.batches_at_once().min(TURN_BATCHES);
    for place in [0, 1, 1, 0] {
        taken[place].append(forwarder.exchange(fibs[place], Schedule::default(), batches, Finding::Name)?);
        spins.spin();
    }
    Ok(taken.map(|taken| Exchange { interest: per_packet(&taken.interests), data: per_packet(&taken.data) }))
}

fn add_pair(name: &str, pair: Pair, tsc_hz: f64, of_default: &mut SampleTable, table: &mut SampleTable) {
    let [by_default, of_design] = pair;
    for (table, name, exchange) in [(of_default, DEFAULT, by_default), (&mut *table, name, of_design)] {
        table.add(INTEREST, name, "cycles", CYCLES, exchange.interest);
        let mpps = tsc_hz / f64::midpoint(exchange.interest, exchange.data) / 1e6;
        table.add(ENGINE, name, "throughput", "Mpps", mpps);
    }
    table.add(INTEREST, name, OVER_DEFAULT, "ratio", of_design.interest / by_default.interest);
}

fn gbps(mpps: f64) -> f64 {
    mpps * ((PAPER_PACKET_BYTES + ETHERNET_BYTES) * 8) as f64 / 1e3
}

/// Every prefix leads to the producer, by four next-hop sets.
fn populate(context: &Context, subject: &Subject, names: SyntheticNames, key: HashKey) -> anyhow::Result<Fib> {
    let config = FibConfig::new(names.prefixes() as usize);
    let mut fib = subject.design.fib(&subject.options, config, key)?;
    let mut prefix = Vec::new();
    for number in 0..names.prefixes() {
        names.write_prefix(number, &mut prefix);
        fib.insert(&prefix, &[NextHop { face: PRODUCER.0, cost: number % 4 }], 0, false)
            .with_context(|| format!("{}: prefix {number}", subject.name))?;
        if number % 65_536 == 0 {
            context.check_interrupt()?;
        }
    }
    ensure!(fib.len() as u64 == names.prefixes(), "{}: two prefixes are the same", subject.name);
    Ok(fib)
}

/// All prefixes lead to one face, so this checks that look-ups find the right prefix.
fn check_answers(context: &Context, fib: &Fib, names: SyntheticNames, size: &Size) -> anyhow::Result<()> {
    let mut lookups = FibLookups::new(names, 1 << 44);
    (0..size.checked_slices).try_for_each(|_| lookups.slice(fib.view(), FibLookup::Batch, &context.clock).map(drop))
}

/// Forwarders whose Interests and Data all have [`PACKET_BYTES`].
fn make_forwarders(size: &Size, names: SyntheticNames, key: HashKey, count: usize) -> anyhow::Result<Vec<Forwarder>> {
    let setup = |payload_bytes, thread: usize| Setup {
        names,
        payload_bytes,
        outstanding: size.outstanding,
        store_bytes: size.store_bytes,
        policy: EvictionName::Fifo.into(),
        key,
        first_name: (thread as u64) << 37,
    };
    let is_fitting = |&payload: &usize| Traffic::new(names, payload).packet_bytes().1 == PACKET_BYTES;
    let payload_bytes = (0..PACKET_BYTES).find(is_fitting).context("no payload makes such Data")?;
    (0..count)
        .map(|thread| {
            let mut forwarder = Forwarder::new(setup(payload_bytes, thread))?;
            forwarder.pad_interests(PACKET_BYTES);
            let bytes = forwarder.packet_bytes();
            ensure!(bytes == (PACKET_BYTES, PACKET_BYTES), "packets of {bytes:?} bytes");
            Ok(forwarder)
        })
        .collect()
}

fn outcome(table: &SampleTable, threads: &[usize], size: &Size) -> Outcome {
    let mut outcome = Outcome {
        rows: table.rows(),
        notes: vec![
            format!("{} prefixes of 2 to 6 components, names of 7 that never repeat", size.prefixes),
            "a packet is an Interest or a Data; half of them are looked up in the FIB".to_owned(),
            "the default takes turns with each design; a sample of it is the median of its repetitions beside one design"
                .to_owned(),
        ],
        ..Outcome::default()
    };
    let most = threads.iter().copied().max().unwrap_or(1);
    let workers = |count: usize| format!("{count} worker{}", if count == 1 { "" } else { "s" });
    let of = |case: &str, subject: &str, metric: &str| table.find(case, subject, metric).cloned().unwrap_or_default();
    let over_default = |subject: &str| of(INTEREST, subject, OVER_DEFAULT);
    let all_over_none = |hash: &str| {
        let [none, all] = ["none", "all"].map(|prefetch| over_default(&format!("{hash}, prefetch {prefetch}")));
        none.over(&all)
    };
    for (key, samples) in [
        ("forwarding_default_mpps", of(&workers(1), DEFAULT, "throughput")),
        ("forwarding_default_engine_mpps", of(ENGINE, DEFAULT, "throughput")),
        ("forwarding_default_gbps_all_workers", of(&workers(most), DEFAULT, "throughput on Ethernet")),
    ] {
        outcome.add_steady(key, &samples);
    }
    for (key, ratios) in [
        ("forwarding_city_a_all_over_none", all_over_none("CityA")),
        ("forwarding_sip_e_all_over_none", all_over_none("SipE")),
        ("forwarding_default_over_sip_e_all", over_default("SipE, prefetch all")),
        ("forwarding_default_over_name_trie", over_default("name-trie")),
    ] {
        outcome.add_ratio(key, &ratios);
    }
    outcome
}
