//! Patricia tries of up to a billion names: how fast are look-ups in them, and how large are they?
//!
//! Source: Yuan15 Fig. 4.13 (FPT, 4 KiB and 2 MiB pages), §4.2 (7.32 GiB for the sBPT of 10⁹ synthetic names). A bulk
//! load fills the tries (see `patricia_bulk`), as no controller could keep the names. For that the numbers of the
//! names are sorted by their keys: the first 34 bits that differ among keys and a number of 30 bits in one word, 8
//! bytes for each name in addition to the trie; names with the same 34 bits are sorted in full.
//!
//! Each answer is compared with the port of the name's number. Limit: the time of a bulk load is not that of an
//! insertion into a RIB (Fig. 4.12); `controllers` measures those.

use anyhow::ensure;
use namewire_designs::fib::string_differentiation::differentiator::{Differentiator, Leads, RootMatch};
use namewire_designs::fib::string_differentiation::patricia_leaf::{LocalFingerprint, PatriciaLeaf};
use namewire_designs::fib::string_differentiation::{Fingerprints, PatriciaBulkLoad, PatriciaOptions, PatriciaTable};
use namewire_tables::PageSize;
use namewire_tables::fib::DESIGN_BATCH_NAMES;

use super::fht_load::SLICE_NAMES;
use crate::experiment::{Context, Outcome, Samples};
use crate::numbered_names::{NUMBERED_NAME_BYTES, NumberedNames, names_at_paper_load};

/// Bits of a name's number in a sorted word.
const NUMBER_BITS: u32 = 30;
/// The component's header, the same for all names, and its characters with their five random bits.
const HEADER_BYTES: usize = 2;
const CHARACTER_BITS: u32 = 5;

/// Tries of each size, and the pages that they are measured on.
const VARIANTS: [(&str, Fingerprints, &[PageSize]); 2] = [
    ("sBPT", Fingerprints::NONE, &[PageSize::Transparent]),
    (
        "FPT, 24 bits",
        Fingerprints { bits: PatriciaOptions::FINGERPRINT_BITS, components: 1 },
        &[PageSize::Base, PageSize::Transparent],
    ),
];

/// The steps of each size.
pub(super) const STEPS_OF_SIZE: usize = 3;

/// Fills tries of all sizes and looks random names up; the largest is the headline's.
pub(super) fn sizes(context: &Context, slots: &[u64], slices: usize, outcome: &mut Outcome) -> anyhow::Result<()> {
    for &slots in slots {
        let count = names_at_paper_load(slots);
        for (title, fingerprints, pages) in VARIANTS {
            let sorted = SortedNumbers::new(context, count, fingerprints)?;
            for &pages in pages {
                context.begin_step(&format!("{title} of {count} names on {} pages", pages.name()))?;
                let started_ns = context.clock.now_ns();
                let table = sorted.load(context, pages)?;
                let load_ns = context.clock.resolve(context.clock.now_ns() - started_ns)? as f64 / count as f64;
                measure(context, (title, pages), (count, load_ns), table, slices, outcome)?;
            }
        }
    }
    Ok(())
}

fn measure(
    context: &Context,
    (title, pages): (&str, PageSize),
    (count, load_ns): (u64, f64),
    mut table: PatriciaTable,
    slices: usize,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    let (case, on) = (format!("{count} names"), format!("{} pages", pages.name()));
    let names = NumberedNames::new(context.seed);
    let key = title.split([' ', ',']).next().unwrap_or(title).to_lowercase();
    outcome.add_value(&case, title, (&format!("bulk load, {on}"), "ns"), load_ns);
    for (way, is_batched) in [("one by one", false), ("batch", true)] {
        table.set_batched(is_batched);
        let slices_ns = look_ups(context, &table, names, count, slices)?;
        let ns = context.clock.median_ns(slices_ns, SLICE_NAMES)?;
        let cycles = context.clock.cycles(ns as u64).map(|cycles| format!("{cycles:.0} TSC cycles"));
        outcome.rows.push(Samples::one(ns).row(&case, title, &format!("look-up, {way}, {on}"), "ns", cycles));
        if pages == PageSize::Transparent {
            let way = if is_batched { "" } else { "_one_by_one" };
            outcome.headline.insert(format!("{key}_loaded_lookup{way}_ns"), ns);
        }
    }
    if pages == PageSize::Transparent {
        let depths = table.trie().leaf_depths();
        let bytes = table.trie().layout().node_bytes(count as usize) as f64 + depths.wide_leaves as f64 * 7.0;
        outcome.add_value(&case, title, ("mean depth", "levels"), depths.mean);
        outcome.add_value(&case, title, ("nodes", "GiB"), bytes / f64::from(1 << 30));
        outcome.headline.insert(format!("{key}_loaded_names"), count as f64);
        outcome.headline.insert(format!("{key}_loaded_gib"), bytes / f64::from(1 << 30));
    }
    Ok(())
}

/// Nanoseconds of each slice of random names.
fn look_ups(
    context: &Context,
    table: &PatriciaTable,
    names: NumberedNames,
    count: u64,
    slices: usize,
) -> anyhow::Result<Vec<u64>> {
    let mut made = [[0; NUMBERED_NAME_BYTES]; SLICE_NAMES];
    let mut slices_ns = Vec::with_capacity(slices);
    for slice in 0..slices {
        let first = (slice * SLICE_NAMES) as u64;
        let numbers: Vec<u64> = (first..).take(SLICE_NAMES).map(|place| names.at_random(place, count)).collect();
        numbers.iter().zip(&mut made).for_each(|(&number, name)| names.write(number, name));
        let slices_of_names: Vec<&[u8]> = made.iter().map(|name| &name[..]).collect();
        let mut found = [None; SLICE_NAMES];
        let started_ns = context.clock.now_ns();
        for (names, found) in slices_of_names.chunks(DESIGN_BATCH_NAMES).zip(found.chunks_mut(DESIGN_BATCH_NAMES)) {
            table.find_root_rules(names, &[], found);
        }
        slices_ns.push(context.clock.now_ns() - started_ns);
        for (&number, found) in numbers.iter().zip(&found) {
            let expected = RootMatch { leads: port_of(names, number), prefix_bytes: NUMBERED_NAME_BYTES as u16 };
            ensure!(*found == Some(expected), "name {number} was confused with another");
        }
        context.check_interrupt()?;
    }
    Ok(slices_ns)
}

fn port_of(names: NumberedNames, number: u64) -> Leads {
    Leads::to_number(names.port(number))
}

/// The numbers of the names in the order of their keys.
struct SortedNumbers {
    /// The first 34 bits that differ among keys, then the number.
    words: Vec<u64>,
    fingerprints: Fingerprints,
    names: NumberedNames,
}

impl SortedNumbers {
    fn new(context: &Context, count: u64, fingerprints: Fingerprints) -> anyhow::Result<Self> {
        ensure!(count <= 1 << NUMBER_BITS, "at most 2³⁰ names");
        let names = NumberedNames::new(context.seed);
        let mut words = Vec::with_capacity(count as usize);
        let mut name = [0; NUMBERED_NAME_BYTES];
        for number in 0..count {
            names.write(number, &mut name);
            words.push(order_of(&name, fingerprints) << NUMBER_BITS | number);
            if number % (1 << 20) == 0 {
                context.check_interrupt()?;
            }
        }
        words.sort_unstable();
        let mut sorted = Self { words, fingerprints, names };
        sorted.sort_alike();
        Ok(sorted)
    }

    /// Sorts names that are alike in the bits of their words.
    fn sort_alike(&mut self) {
        let Self { words, fingerprints, names } = self;
        for alike in words.chunk_by_mut(|one, other| one >> NUMBER_BITS == other >> NUMBER_BITS) {
            if alike.len() > 1 {
                // The words' bits hold the fingerprint whole, so that the name decides.
                debug_assert!(fingerprints.bits <= u64::BITS - NUMBER_BITS);
                alike.sort_by_cached_key(|word| written(*names, *word));
            }
        }
    }

    fn load(&self, context: &Context, pages: PageSize) -> anyhow::Result<PatriciaTable> {
        let options = PatriciaOptions {
            fingerprints: self.fingerprints,
            rule_bytes_max: NUMBERED_NAME_BYTES,
            pages,
            ..PatriciaOptions::fpt(self.words.len())
        };
        let mut load = PatriciaBulkLoad::new(options)?;
        let mut before = [0; NUMBERED_NAME_BYTES];
        for (place, &word) in self.words.iter().enumerate() {
            let name = written(self.names, word);
            let differs_at = self.fingerprints.key(&before).first_difference(&self.fingerprints.key(&name));
            let leads = Some(port_of(self.names, number_of(word)));
            let leaf = PatriciaLeaf { leads, components: 1, local: LocalFingerprint::default() };
            load.push(differs_at.unwrap_or(0), leaf);
            before = name;
            if place % (1 << 20) == 0 {
                context.check_interrupt()?;
            }
        }
        Ok(load.finish())
    }
}

const fn number_of(word: u64) -> u64 {
    word & ((1 << NUMBER_BITS) - 1)
}

fn written(names: NumberedNames, word: u64) -> [u8; NUMBERED_NAME_BYTES] {
    let mut name = [0; NUMBERED_NAME_BYTES];
    names.write(number_of(word), &mut name);
    name
}

/// The first 34 bits in which keys differ: those of the fingerprint, then the low five of each character.
fn order_of(name: &[u8; NUMBERED_NAME_BYTES], fingerprints: Fingerprints) -> u64 {
    let key = fingerprints.key(name);
    let mut order = (0..fingerprints.bits as usize).fold(0, |order, position| order << 1 | key.bit(position) as u64);
    let mut bits = fingerprints.bits;
    for character in &name[HEADER_BYTES..] {
        if bits >= u64::BITS - NUMBER_BITS {
            break;
        }
        order = order << CHARACTER_BITS | u64::from(character & 0x1f);
        bits += CHARACTER_BITS;
    }
    order >> (bits - (u64::BITS - NUMBER_BITS))
}
