//! A router that stores a part of the FIB: what does it cost to know the names that it does not store?
//!
//! Source: Yuan15 §4.3.5. The default-free table of m rules is split: n of them are *stored*, the others are the
//! *default* table, whose names must be recognised and sent to the default port. Fig. 4.10: bits of local
//! fingerprint that tell a leaf's owner from the m/n − 1 others that come to its leaf, on average and at most,
//! with one and with two hashes; beyond the figure, what the threshold log₂(m/n) + k leaves to the
//! trie. Table 4.5: memory of a fingerprint hash table that stores 6.25 to 50 % of the names.
//!
//! Every name, stored or not, is looked up in every table: no stored name may find the default, no
//! name of the default table a stored port. Names: hosts of the user's set or invented ones for
//! the trie; numbered names, of which a billion need no memory, for the hash table.
//!
//! What the numbers do not say: the controller must know all m names in either case.

mod hash_table;
mod local_bits;

use crate::experiment::{Context, Experiment, Outcome, Scale};

/// Its line in the table.
pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "distributed-fib",
    source: "Yuan15 Fig. 4.10, Table 4.5",
    question: "What does it cost a router to recognise the names of the FIB that it does not store?",
    needs: "quick: 1 min, 1 GiB; full: 1 h, 8 GiB (a billion names)",
    takes_names: true,
    takes_trace: false,
    run,
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
    hash_table::shares(context, size.slots, &mut outcome)?;
    Ok(outcome)
}
