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

use serde::Deserialize;

use crate::experiment::{Context, Outcome};

pub(super) const FILE: &str = include_str!("experiment.toml");

/// Sizes of a run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    /// Invented hosts, if the user gave no names.
    invented: usize,
    /// Slots that all names of Table 4.5 would fill to 93 %.
    slots: u64,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size: Size = context.size(FILE)?;
    context.plan_steps(local_bits::STEPS + hash_table::STEPS);
    let mut outcome = Outcome::default();
    local_bits::leaves(context, size.invented, &mut outcome)?;
    local_bits::in_router(context, size.invented, &mut outcome)?;
    hash_table::shares(context, size.slots, &mut outcome)?;
    Ok(outcome)
}
