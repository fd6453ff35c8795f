//! Patricia tries over domain names: how deep are they without fingerprints, how deep and how fast with them?
//!
//! Source: Yuan15 Fig. 4.4 (mean depth of the leaves by fingerprint length), Fig. 4.5 (look-ups of the first 1,024,
//! 2,048, … names of the set), §4.2 (bytes), §4.3.7 (prefetching is ours: the paper has it for hash tables only). Names
//! are the hosts of the set, one component each, as in the paper. A second set has them in TLD order without those
//! below another; there a fingerprint of the first component alone does not help.
//!
//! Every name is looked up in every trie, both ways, before the timed part.

use std::collections::BTreeMap;

use anyhow::ensure;
use namewire_designs::fib::string_differentiation::differentiator::{Differentiator, Leads, RootMatch};
use namewire_designs::fib::string_differentiation::patricia_trie::LeafDepths;
use namewire_designs::fib::string_differentiation::{Fingerprints, PatriciaController, PatriciaOptions, PatriciaTable};
use namewire_tables::fib::DESIGN_BATCH_NAMES;
use serde::Deserialize;

use crate::experiment::{Context, Outcome, Samples};
use crate::name_arena::{NameArena, port};
use crate::name_sets::{NameConversion, NameSet, one_name_set};
use crate::papers;
use crate::root_rules::{Rules, root_rules};

/// Fingerprint lengths (Fig. 4.4).
const FINGERPRINT_BITS: [u32; 9] = [0, 4, 8, 12, 16, 20, 24, 28, 32];
/// Fingerprint length of the headline.
const HEADLINE_BITS: u32 = 24;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    invented: usize,
    repetitions: usize,
}

/// The steps that [`tries`] takes.
pub(super) const STEPS: usize = FINGERPRINT_BITS.len() + 1 + 3;

#[derive(Deserialize)]
struct Depths {
    sbpt_mean_depth_alexa: f64,
    sbpt_mean_depth_dmoz: f64,
    fpt_mean_depth_dmoz_20_bits: f64,
}

/// A trie of all names.
struct Trie {
    title: String,
    batched: PatriciaTable,
    one_by_one: PatriciaTable,
    depths: LeafDepths,
    insert_ns: f64,
}

impl Trie {
    fn fill(context: &Context, title: String, rules: &Rules, fingerprints: Fingerprints) -> anyhow::Result<Self> {
        let names = &rules.names;
        let bytes_max = names.iter().map(<[u8]>::len).max().unwrap_or(0);
        let options = PatriciaOptions { fingerprints, rule_bytes_max: bytes_max, ..PatriciaOptions::fpt(names.len()) };
        let mut controller = PatriciaController::new(options, false)?;
        let mut batched = PatriciaTable::new(options)?;
        let mut one_by_one = PatriciaTable::new(PatriciaOptions { is_batched: false, ..options })?;
        let mut took_ns = 0;
        let mut instructions = Vec::new();
        for first in (0..names.len()).step_by(1024) {
            let started_ns = context.clock.now_ns();
            for number in first..names.len().min(first + 1024) {
                controller.insert_rule(rules, number as u32, Some(Leads::to_number(port(number))));
                instructions.extend(controller.take_instructions());
                instructions.iter().for_each(|instruction| batched.apply(instruction));
                instructions.drain(..).for_each(|instruction| one_by_one.apply(&instruction));
            }
            took_ns += context.clock.now_ns() - started_ns;
            context.check_interrupt()?;
        }
        let depths = batched.trie().leaf_depths();
        ensure!(depths.leaves == names.len() as u64, "{} leaves for {} names", depths.leaves, names.len());
        let insert_ns = context.clock.resolve(took_ns)? as f64 / names.len() as f64;
        let trie = Self { title, batched, one_by_one, depths, insert_ns };
        trie.check(names)?;
        Ok(trie)
    }

    fn check(&self, names: &NameArena) -> anyhow::Result<()> {
        for first in (0..names.len()).step_by(DESIGN_BATCH_NAMES) {
            let numbers = first..names.len().min(first + DESIGN_BATCH_NAMES);
            let slices: Vec<&[u8]> = numbers.clone().map(|number| names.get(number)).collect();
            for table in [&self.batched, &self.one_by_one] {
                let mut found = [None; DESIGN_BATCH_NAMES];
                table.find_root_rules(&slices, &[], &mut found);
                for (number, found) in numbers.clone().zip(found) {
                    let prefix_bytes = names.get(number).len() as u16;
                    let expected = RootMatch { leads: Leads::to_number(port(number)), prefix_bytes };
                    ensure!(found == Some(expected), "{}: name {number} was confused with another", self.title);
                }
            }
        }
        Ok(())
    }

    fn nodes_bytes_per_name(&self) -> f64 {
        let trie = self.batched.trie();
        trie.layout().node_bytes(self.depths.leaves as usize) as f64 / self.depths.leaves as f64
    }

    /// Nanoseconds per look-up of the first `count` names, one after the other in batches.
    fn look_up(&self, context: &Context, names: &NameArena, count: usize, is_batched: bool) -> anyhow::Result<f64> {
        let table = if is_batched { &self.batched } else { &self.one_by_one };
        let started_ns = context.clock.now_ns();
        let mut found = [None; DESIGN_BATCH_NAMES];
        for first in (0..count).step_by(DESIGN_BATCH_NAMES) {
            let mut slices: [&[u8]; DESIGN_BATCH_NAMES] = [b""; DESIGN_BATCH_NAMES];
            let batch = (count - first).min(DESIGN_BATCH_NAMES);
            for (place, slice) in slices[..batch].iter_mut().enumerate() {
                *slice = names.get(first + place);
            }
            table.find_root_rules(&slices[..batch], &[], &mut found);
            std::hint::black_box(&found);
        }
        let took_ns = context.clock.resolve(context.clock.now_ns() - started_ns)?;
        Ok(took_ns as f64 / count as f64)
    }
}

/// Fig. 4.4 and 4.5, over the user's names or invented ones.
pub(super) fn tries(size: &Size, context: &Context, outcome: &mut Outcome) -> anyhow::Result<()> {
    let set = one_name_set(context.names.as_deref(), size.invented, NameConversion::Host, context.seed)?;
    let rules = root_rules(&set, Some(1), context.seed);
    let case = format!("{}, {} hosts of one component", set.title, rules.names.len());
    let mut tries = Vec::new();
    for bits in FINGERPRINT_BITS {
        let title = if bits == 0 { "sBPT".to_owned() } else { format!("FPT, {bits} bits") };
        context.begin_step(&title)?;
        tries.push(Trie::fill(context, title, &rules, Fingerprints { bits, components: 1 })?);
    }
    tries.iter().for_each(|trie| rows_of_shape(trie, &case, outcome));
    look_ups(context, &tries, &rules.names, &case, size.repetitions, outcome)?;
    headline(&tries, rules.names.len(), outcome);
    drop(tries);

    let set: NameSet = one_name_set(context.names.as_deref(), size.invented, NameConversion::Tld, context.seed)?;
    let rules = root_rules(&set, None, context.seed);
    let case = format!("{}, {} names in TLD order", set.title, rules.names.len());
    for (title, bits, components) in [
        ("sBPT".to_owned(), 0, 1),
        (format!("FPT, {HEADLINE_BITS} bits of the first component"), HEADLINE_BITS, 1),
        (format!("FPT, {HEADLINE_BITS} bits of each of four"), HEADLINE_BITS, 4),
    ] {
        context.begin_step(&format!("{title}, TLD"))?;
        let trie = Trie::fill(context, title, &rules, Fingerprints { bits, components })?;
        rows_of_shape(&trie, &case, outcome);
        if bits == 0 {
            outcome.headline.insert("sbpt_tld_mean_depth".to_owned(), trie.depths.mean);
        } else {
            outcome.headline.insert(format!("fpt_tld_mean_depth_{components}_fingerprinted"), trie.depths.mean);
        }
    }
    let sbpt_alexa_mib: f64 = papers::figures(papers::YUAN_15, "/section_4_2/sbpt_alexa_mib")?;
    let Depths { sbpt_mean_depth_alexa, sbpt_mean_depth_dmoz, fpt_mean_depth_dmoz_20_bits } =
        papers::figures(papers::YUAN_15, "/section_4_3_3")?;
    outcome.notes.push(format!(
        "Yuan15 Fig. 4.4: mean depth of the sBPT {sbpt_mean_depth_alexa} (Alexa, 990,821 names) and {sbpt_mean_depth_dmoz} \
         (Dmoz, 2,887,847), of the FPT of 20 bits {fpt_mean_depth_dmoz_20_bits} (Dmoz); §4.2: {sbpt_alexa_mib} MiB for the sBPT of Alexa. \
         Depths here are internal nodes above a leaf."
    ));
    Ok(())
}

fn rows_of_shape(trie: &Trie, case: &str, outcome: &mut Outcome) {
    let leaves = trie.depths.leaves as f64;
    let log2 = format!("log₂ of the names: {:.1}", leaves.log2());
    let in_use = trie.batched.bytes() as f64 / leaves;
    let mut row = |metric: &str, unit: &str, value: f64, remark: Option<String>| {
        outcome.rows.push(Samples::one(value).row(case, &trie.title, metric, unit, remark));
    };
    row("mean depth", "levels", trie.depths.mean, Some(log2));
    row("deepest leaf", "levels", trie.depths.max as f64, None);
    row("nodes", "nodes", trie.depths.nodes as f64, None);
    if trie.depths.wide_leaves == 0 {
        row("nodes of a name", "bytes", trie.nodes_bytes_per_name(), None);
    }
    row("forwarding memory per name", "bytes", in_use, Some("as allocated, free pairs included".to_owned()));
    row("insert", "ns", trie.insert_ns, Some("controller and two tables".to_owned()));
}

/// Fig. 4.5: the first names of the set, doubled each time; tries and variants take turns.
fn look_ups(
    context: &Context,
    tries: &[Trie],
    names: &NameArena,
    case: &str,
    repetitions: usize,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    context.begin_step("look-ups")?;
    let counts: Vec<usize> =
        (10..21).step_by(2).map(|exponent| 1 << exponent).filter(|&count| count <= names.len()).collect();
    for (place, &count) in counts.iter().enumerate() {
        let mut samples = vec![[const { Vec::new() }; 2]; tries.len()];
        for _ in 0..repetitions {
            for (trie, samples) in tries.iter().zip(&mut samples) {
                for (is_batched, samples) in [false, true].into_iter().zip(samples) {
                    samples.push(trie.look_up(context, names, count, is_batched)?);
                }
            }
            context.check_interrupt()?;
        }
        for (trie, samples) in tries.iter().zip(samples) {
            for (way, mut samples) in ["one by one", "batch"].into_iter().zip(samples) {
                samples.sort_by(f64::total_cmp);
                let median_ns = samples[samples.len() / 2];
                let metric = format!("look-up of the first {count}, {way}");
                outcome.add_value(case, &trie.title, (&metric, "ns"), median_ns);
                let key = match trie.title.as_str() {
                    "sBPT" => "sbpt",
                    title if title == format!("FPT, {HEADLINE_BITS} bits") => "fpt",
                    _ => continue,
                };
                if place + 1 == counts.len() {
                    let way = if way == "batch" { "" } else { "_one_by_one" };
                    outcome.headline.insert(format!("{key}_lookup{way}_ns"), median_ns);
                }
            }
        }
    }
    Ok(())
}

fn headline(tries: &[Trie], names: usize, outcome: &mut Outcome) {
    let sbpt = &tries[0];
    let of_bits = |bits: u32| FINGERPRINT_BITS.iter().position(|&of| of == bits).map(|place| &tries[place]);
    let Some((fpt, fpt_20)) = of_bits(HEADLINE_BITS).zip(of_bits(20)) else { return };
    let log2 = (names as f64).log2();
    let values: BTreeMap<&str, f64> = BTreeMap::from([
        ("patricia_names", names as f64),
        ("sbpt_mean_depth", sbpt.depths.mean),
        ("fpt_mean_depth", fpt.depths.mean),
        ("fpt_20_bits_mean_depth", fpt_20.depths.mean),
        ("fpt_mean_depth_over_log2", fpt.depths.mean / log2),
        ("sbpt_over_fpt_depth", sbpt.depths.mean / fpt.depths.mean),
        ("fpt_node_bytes_per_name", fpt.nodes_bytes_per_name()),
        ("fpt_insert_ns", fpt.insert_ns),
    ]);
    outcome.headline.extend(values.into_iter().map(|(key, value)| (key.to_owned(), value)));
}
