//! Fig. 4.10: bits of local fingerprint at the leaves of a fingerprint Patricia trie.

use anyhow::{Context as _, ensure};
use namewire_designs::fib::catalogue::{FibDesign, FibDesignOptions};
use namewire_designs::fib::string_differentiation::differentiator::{Differentiator, Leads, RootMatch};
use namewire_designs::fib::string_differentiation::local_fingerprint::{least_local_fingerprint, local_hashes};
use namewire_designs::fib::string_differentiation::{
    DefaultRoute, LeafLayout, PatriciaController, PatriciaOptions, PatriciaTable,
};
use namewire_tables::HashKey;
use namewire_tables::fib::{DESIGN_BATCH_NAMES, FibConfig, Split};

use crate::experiment::{Context, Outcome, Samples};
use crate::name_arena::port;
use crate::name_sets::{NameConversion, one_name_set};
use crate::root_rules::{Rules, root_rules};

/// m/n: average number of names that reach a leaf, its owner included.
const NAMES_PER_LEAF: [usize; 6] = [2, 4, 8, 16, 32, 64];
/// k of the threshold log₂(m/n) + k.
const SPARE_BITS: [u32; 3] = [1, 2, 3];
/// m/n of the headline.
const HEADLINE_NAMES_PER_LEAF: usize = 16;

/// The number that names of the default table lead to; no port of a stored name.
const DEFAULT: u32 = 255;
/// The headline that [`in_router`] compares with.
const LAB_BYTES: &str = "distributed_trie_bytes_per_stored_name";

/// The steps that [`leaves`] and [`in_router`] take.
pub(super) const STEPS: usize = NAMES_PER_LEAF.len() * (1 + SPARE_BITS.len()) + 2;

/// Bits per leaf: mean and maximum.
struct Bits {
    mean: f64,
    max: u32,
}

/// Fig. 4.10, and the effect of a threshold.
pub(super) fn leaves(context: &Context, invented: usize, outcome: &mut Outcome) -> anyhow::Result<()> {
    let set = one_name_set(context.names.as_deref(), invented, NameConversion::Host, context.seed)?;
    let rules = root_rules(&set, Some(1), context.seed);
    let names = rules.names.len();
    for names_per_leaf in NAMES_PER_LEAF {
        let stored = names / names_per_leaf;
        let case = format!("{}, {names} hosts, m/n = {names_per_leaf}", set.title);
        context.begin_step(&case)?;
        let [one, two] = bits_to_tell(context, &rules, stored)?;
        for (subject, bits) in [("one hash", &one), ("two hashes", &two)] {
            let log2 = format!("log₂(m/n): {}", names_per_leaf.ilog2());
            let and_which = (subject == "two hashes").then(|| "and a bit that says which hash".to_owned());
            let (mean, max) = (Samples::one(bits.mean), f64::from(bits.max));
            outcome.rows.push(mean.row(&case, subject, "local fingerprint, mean", "bits", Some(log2)));
            outcome.rows.push(Samples::one(max).row(&case, subject, "local fingerprint, longest", "bits", and_which));
            let key = subject.replace(' ', "_");
            outcome.headline.insert(format!("local_bits_mean_{key}_m_over_n_{names_per_leaf}"), bits.mean);
            outcome.headline.insert(format!("local_bits_max_{key}_m_over_n_{names_per_leaf}"), max);
        }
        for spare_bits in SPARE_BITS {
            let threshold = names_per_leaf.ilog2() + spare_bits;
            let subject = format!("two hashes, at most {threshold} bits");
            context.begin_step(&format!("{case}, {subject}"))?;
            with_threshold(context, &rules, stored, threshold, &case, &subject, outcome)?;
        }
    }
    outcome.add_notes(super::FILE)?;
    Ok(())
}

/// The bits needed with one and with two hashes, without limit.
fn bits_to_tell(context: &Context, rules: &Rules, stored: usize) -> anyhow::Result<[Bits; 2]> {
    let names = &rules.names;
    let mut controller = PatriciaController::new(options(rules, stored, 0), true)?;
    for number in 0..stored {
        controller.insert_rule(rules, number as u32, Some(Leads::to_number(port(number))));
        controller.take_instructions().for_each(drop);
    }
    context.check_interrupt()?;
    let mut others: Vec<(u32, usize)> = Vec::with_capacity(names.len() - stored);
    for number in stored..names.len() {
        others.extend(controller.owner(names.get(number)).map(|owner| (owner, number)));
    }
    others.sort_unstable();
    let mut sums = [(0_u64, 0_u32); 2];
    for at_leaf in others.chunk_by(|a, b| a.0 == b.0) {
        let owner = local_hashes(names.get(at_leaf[0].0 as usize));
        let hashes: Vec<[u64; 2]> = at_leaf.iter().map(|&(_, number)| local_hashes(names.get(number))).collect();
        for (may_use_second, (sum, max)) in [false, true].into_iter().zip(&mut sums) {
            let bits = least_local_fingerprint(owner, &hashes, u64::BITS, may_use_second).bits;
            *sum += u64::from(bits);
            *max = bits.max(*max);
        }
    }
    Ok(sums.map(|(sum, max)| Bits { mean: sum as f64 / stored as f64, max }))
}

/// The table as in a router: leaves have room for the threshold's bits; every name is looked up.
fn with_threshold(
    context: &Context,
    rules: &Rules,
    stored: usize,
    threshold: u32,
    case: &str,
    subject: &str,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    let names = &rules.names;
    let options = options(rules, names.len(), threshold);
    let mut controller = PatriciaController::new(options, true)?;
    let mut table = PatriciaTable::new(options)?;
    let leads = |number: usize| (number < stored).then(|| Leads::to_number(port(number)));
    for number in 0..names.len() {
        controller.insert_rule(rules, number as u32, leads(number));
        controller.take_instructions().for_each(|instruction| table.apply(&instruction));
        if number % 65_536 == 0 {
            context.check_interrupt()?;
        }
    }
    for first in (0..names.len()).step_by(DESIGN_BATCH_NAMES) {
        let numbers = first..names.len().min(first + DESIGN_BATCH_NAMES);
        let slices: Vec<&[u8]> = numbers.clone().map(|number| names.get(number)).collect();
        let mut found = [None; DESIGN_BATCH_NAMES];
        table.find_root_rules(&slices, &[], &mut found);
        for (number, found) in numbers.zip(found) {
            let prefix_bytes = names.get(number).len() as u16;
            let expected = leads(number).map(|leads| RootMatch { leads, prefix_bytes });
            ensure!(found == expected, "{case}, {subject}: name {number} was confused with another");
        }
    }
    let in_trie = table.trie().leaf_depths().leaves as usize - stored;
    let bytes = table.trie().layout().node_bytes(stored + in_trie) as f64 / stored as f64;
    let share = 100.0 * in_trie as f64 / (names.len() - stored) as f64;
    let remark = Some(format!("{in_trie} names"));
    outcome.rows.push(Samples::one(share).row(case, subject, "default names in the trie", "%", remark));
    outcome.add_value(case, subject, ("nodes of a stored name", "bytes"), bytes);
    if names.len() / stored == HEADLINE_NAMES_PER_LEAF && threshold == HEADLINE_NAMES_PER_LEAF.ilog2() + 2 {
        outcome.headline.insert("distributed_trie_default_in_trie_percent".to_owned(), share);
        outcome.headline.insert(LAB_BYTES.to_owned(), bytes);
    }
    Ok(())
}

/// The same names in the FIB of a router: the design `fpt` with `default_route = "distributed"`. The bytes are those of
/// one of its two tables; the controller, which is not on the forwarding path, has a row of its own. The same without
/// local fingerprints: then each name of the default table that comes to a stored name's leaf has a leaf of its own.
pub(super) fn in_router(context: &Context, invented: usize, outcome: &mut Outcome) -> anyhow::Result<()> {
    let set = one_name_set(context.names.as_deref(), invented, NameConversion::Host, context.seed)?;
    let rules = root_rules(&set, Some(1), context.seed);
    let all = rules.names.len();
    let stored = all / HEADLINE_NAMES_PER_LEAF;
    let case = format!("{}, {all} hosts, m/n = {HEADLINE_NAMES_PER_LEAF}", set.title);
    context.begin_step(&format!("{case}, in a router"))?;
    let bytes = router_table(context, &rules, stored, None, (&case, "in a router"), outcome)?;
    outcome.headline.insert("distributed_router_bytes".to_owned(), bytes);
    if let Some(&lab) = outcome.headline.get(LAB_BYTES) {
        outcome.headline.insert("distributed_router_over_lab".to_owned(), bytes / lab);
    }
    context.begin_step(&format!("{case}, in a router without local fingerprints"))?;
    router_table(context, &rules, stored, Some(0), (&case, "in a router, no local fingerprints"), outcome).map(drop)
}

/// Bytes of a router's table for each stored name.
fn router_table(
    context: &Context,
    rules: &Rules,
    stored: usize,
    local_bits: Option<u8>,
    (case, subject): (&str, &str),
    outcome: &mut Outcome,
) -> anyhow::Result<f64> {
    let (names, all) = (&rules.names, rules.names.len());
    let options = FibDesignOptions {
        default_route: Some(DefaultRoute::Followed),
        local_bits,
        prefix_bytes_max: Some(names.iter().map(<[u8]>::len).max().unwrap_or(1) as u16),
        ..FibDesignOptions::default()
    };
    let (size, key) = (FibConfig::new(all + 1), HashKey::from_seed(context.seed));
    let Split { mut controller, tables: [mut table, _] } =
        FibDesign::Fpt.build_split(&options, &size, key)?.context("fpt has a controller")?;
    let empty_bytes = table.bytes();
    table.apply(&*controller.insert(b"", DEFAULT)?.instructions);
    let number = |name: usize| if name < stored { port(name) } else { DEFAULT };
    for name in 0..all {
        table.apply(&*controller.insert(names.get(name), number(name))?.instructions);
        if name % 65_536 == 0 {
            context.check_interrupt()?;
        }
    }
    for first in (0..all).step_by(DESIGN_BATCH_NAMES) {
        let numbers = first..all.min(first + DESIGN_BATCH_NAMES);
        let slices: Vec<&[u8]> = numbers.clone().map(|name| names.get(name)).collect();
        let mut found = [None; DESIGN_BATCH_NAMES];
        table.longest_prefix_match_batch(&slices, &mut found[..slices.len()]);
        for (name, found) in numbers.zip(found) {
            ensure!(found.is_some_and(|found| found.number == number(name)), "name {name} was confused with another");
        }
    }
    let bytes = (table.bytes() - empty_bytes) as f64 / stored as f64;
    outcome.add_value(case, subject, ("table of a stored name", "bytes"), bytes);
    let controller_bytes = controller.bytes() as f64 / all as f64;
    outcome.add_value(case, subject, ("controller of any name", "bytes"), controller_bytes);
    Ok(bytes)
}

fn options(rules: &Rules, capacity: usize, local_bits_max: u32) -> PatriciaOptions {
    let rule_bytes_max = rules.names.iter().map(<[u8]>::len).max().unwrap_or(0);
    let leaves = LeafLayout { number_bits: 8, components: 1, local_bits_max };
    PatriciaOptions { leaves, rule_bytes_max, ..PatriciaOptions::fpt(capacity) }
}
