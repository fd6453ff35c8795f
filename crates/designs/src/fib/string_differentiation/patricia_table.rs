//! Patricia table: the lossy trie as a forwarding table, sBPT or FPT.
//!
//! Source: Yuan15 §4.2 (sBPT: `fingerprints` is [`Fingerprints::NONE`]), §4.3.3 (FPT), §4.3.5 (distributed: leaves also
//! distinguish names of the default table from their owner).
//!
//! Parts: [`super::key_bits`] (what is examined), [`super::patricia_node`] (layout), [`super::patricia_trie`]
//! (look-up), [`super::patricia_leaf`] (what a leaf stores), [`super::patricia_updates`] and
//! [`super::patricia_controller`] (which change it). With suffixes and the RIB:
//! [`StringDifferentiation::with_patricia_trie`].
//!
//! Symbols: f = [`Fingerprints::bits`]; m/n, log₂(m/n) + k = `local_bits_max` of [`LeafLayout`].
//! Cost: see [`super::patricia_trie`]. For the length of an answer, the table also reads the name's components up to
//! the length of the rule.

use super::differentiator::{Differentiator, RootMatch};
use super::key_bits::{Fingerprints, KeyBits};
use super::local_fingerprint::{local_hashes, owner_span};
use super::patricia_controller::PatriciaController;
use super::patricia_leaf::{LeafLayout, LocalFingerprint};
use super::patricia_node::NodeLayout;
use super::patricia_trie::{KEYS_IN_FLIGHT, Node, PatriciaInstruction, PatriciaTrie};
use super::rib::Rib;
use super::{DefaultRoute, StringDifferentiation};
use namewire_tables::fib::DESIGN_BATCH_NAMES;
use namewire_tables::fib::MAX_PREFIX_BYTES;
use namewire_tables::name_hash::{HashKey, NameHashes};
use namewire_tables::pages::PageSize;
use std::io;

const _: () = assert!(DESIGN_BATCH_NAMES <= KEYS_IN_FLIGHT);

/// How a table is made; controller and every copy of the table must have the same.
#[derive(Clone, Copy, Debug)]
pub struct PatriciaOptions {
    /// Rules at most, those of a default table included.
    pub capacity_rules: usize,
    /// Bytes of the longest rule: the fewer, the smaller the nodes.
    pub rule_bytes_max: usize,
    /// What is put before the names: nothing (sBPT) or fingerprints (FPT).
    pub fingerprints: Fingerprints,
    /// Which rules have leaves that are not wide.
    pub leaves: LeafLayout,
    /// Whether the names of a batch are on the way together, or one follows the other.
    pub is_batched: bool,
    /// What the trie lies on.
    pub pages: PageSize,
}

/// The forwarding side.
pub struct PatriciaTable {
    options: PatriciaOptions,
    trie: PatriciaTrie,
}

impl PatriciaOptions {
    /// f of the paper's example (Yuan15 Fig. 4.4: 20 bits are enough for 2.9 · 10⁶ names), rounded up to bytes.
    pub const FINGERPRINT_BITS: u32 = 24;

    /// FPT for any rules: fingerprints of 24 bits, ports of 8 bits in one byte and other numbers in eight.
    pub const fn fpt(capacity_rules: usize) -> Self {
        Self {
            capacity_rules,
            rule_bytes_max: MAX_PREFIX_BYTES,
            fingerprints: Fingerprints { bits: Self::FINGERPRINT_BITS, components: 1 },
            leaves: LeafLayout { number_bits: 8, components: 1, local_bits_max: 0 },
            is_batched: true,
            pages: PageSize::Transparent,
        }
    }

    /// sBPT for any rules: the same without fingerprints.
    pub const fn sbpt(capacity_rules: usize) -> Self {
        Self { fingerprints: Fingerprints::NONE, ..Self::fpt(capacity_rules) }
    }

    /// The widths of the nodes.
    pub const fn node_layout(&self) -> NodeLayout {
        let key_bytes_max = self.rule_bytes_max + self.fingerprints.bytes_max();
        NodeLayout::new(self.capacity_rules, key_bytes_max, self.leaves.bits())
    }
}

impl PatriciaTable {
    /// An empty table.
    ///
    /// # Errors
    /// If the kernel maps no memory.
    pub fn new(options: PatriciaOptions) -> io::Result<Self> {
        let trie = PatriciaTrie::new(options.node_layout(), options.capacity_rules, options.pages)?;
        Ok(Self { options, trie })
    }

    /// A table around a filled trie of these options.
    pub(super) const fn of_trie(options: PatriciaOptions, trie: PatriciaTrie) -> Self {
        Self { options, trie }
    }

    /// Sets whether the names of a batch are on the way together.
    pub const fn set_batched(&mut self, is_batched: bool) {
        self.options.is_batched = is_batched;
    }

    /// The trie.
    pub const fn trie(&self) -> &PatriciaTrie {
        &self.trie
    }

    /// What a name is taken to lie under, its leaf given.
    fn root_match(&self, name: &[u8], leaf: Node) -> Option<RootMatch> {
        let leaf = self.options.leaves.unpack(leaf);
        let leads = leaf.leads?;
        let span = owner_span(name, leaf.components);
        let local = leaf.local;
        if local.bits > 0 && LocalFingerprint::of(local_hashes(span), local.is_second_hash, local.bits) != local {
            return None;
        }
        Some(RootMatch { leads, prefix_bytes: span.len() as u16 })
    }
}

impl StringDifferentiation<PatriciaController> {
    /// An empty Patricia trie, sBPT or FPT, with its controller.
    ///
    /// # Errors
    /// If the kernel maps no memory.
    pub fn with_patricia_trie(
        key: HashKey,
        options: PatriciaOptions,
        may_use_second_hash: bool,
        default_route: DefaultRoute,
    ) -> io::Result<Self> {
        let differentiator = PatriciaController::new(options, may_use_second_hash)?;
        let rib = Rib::new(key, u64::MAX)?; // found by all bits: no two nodes are to look alike
        let table = PatriciaTable::new(options)?;
        Self::from_parts(options.capacity_rules, rib, differentiator, table, options.pages, default_route)
    }
}

impl Differentiator for PatriciaTable {
    type Instruction = PatriciaInstruction;

    const READS_HASHES: bool = false;

    fn apply(&mut self, instruction: &PatriciaInstruction) {
        self.trie.apply(instruction);
    }

    fn find_root_rules(&self, names: &[&[u8]], _: &[NameHashes], out: &mut [Option<RootMatch>]) {
        let fingerprints = self.options.fingerprints;
        if !self.options.is_batched {
            for (name, out) in names.iter().zip(out) {
                let leaf = self.trie.find(&fingerprints.key(name));
                *out = leaf.and_then(|leaf| self.root_match(name, leaf));
            }
            return;
        }
        let mut keys = [KeyBits::default(); DESIGN_BATCH_NAMES];
        for (key, name) in keys.iter_mut().zip(names) {
            *key = fingerprints.key(name);
        }
        let mut leaves = [None; DESIGN_BATCH_NAMES];
        self.trie.find_batch(&keys[..names.len()], &mut leaves);
        for ((name, leaf), out) in names.iter().zip(leaves).zip(out) {
            *out = leaf.and_then(|leaf| self.root_match(name, leaf));
        }
    }

    fn bytes(&self) -> usize {
        self.trie.bytes()
    }
}
