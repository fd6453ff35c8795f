//! A router that stores a part of the FIB: what does it cost to recognise the names that it does not store?
//!
//! Source: Yuan15 §4.3.5. The default-free table of m rules is split. The router *stores* n of them; the others are the
//! *default* table, whose names it must recognise and send to the default port. Fig. 4.10: bits of local fingerprint
//! that distinguish a leaf's owner from the m/n − 1 other names that reach the leaf, mean and maximum, with one and
//! with two hashes. Beyond the figure: the cost in the trie of the threshold log₂(m/n) + k, and the same trie in the
//! FIB of a router. Table 4.5: memory of a fingerprint hash table that stores 6.25 to 50 % of the names.
//!
//! Every name, stored or not, is looked up in every table: a stored name must never give the default port, a default
//! name never a stored port. Names for the trie: hosts of the user's set or invented ones. Names for the hash table:
//! numbered names, because a billion of them take no memory.
//!
//! Limits: in both cases the route controller must know all m names.

mod hash_table;
mod local_bits;

use crate::experiment::{Context, Experiment, Input, Outcome, Scale};

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "distributed-fib",
    source: "Yuan15 Fig. 4.10, Table 4.5",
    question: "What does it cost a router to recognise the names of the FIB that it does not store?",
    needs: "quick: 3 min, 1 GiB; full: 1 h, 8 GiB (a billion names)",
    takes: Some(Input::Names),
    run,
    sources: &["lab/src/experiments/distributed_fib", "crates/tables/src/fib", "crates/designs/src/fib"],
};

/// Sizes of a run.
struct Size {
    /// Invented hosts, if the user gave no names.
    invented: usize,
    /// Slots that all names of Table 4.5 would fill to 93 %.
    slots: u64,
}

const fn size(scale: Scale) -> Size {
    match scale {
        Scale::Smoke => Size { invented: 8_000, slots: 1 << 17 },
        Scale::Quick => Size { invented: 400_000, slots: 1 << 23 },
        Scale::Full => Size { invented: 4_000_000, slots: 1 << 30 },
    }
}

fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size = size(context.scale);
    context.plan_steps(local_bits::STEPS + hash_table::STEPS);
    let mut outcome = Outcome::default();
    local_bits::leaves(context, size.invented, &mut outcome)?;
    local_bits::in_router(context, size.invented, &mut outcome)?;
    hash_table::shares(context, size.slots, &mut outcome)?;
    Ok(outcome)
}
