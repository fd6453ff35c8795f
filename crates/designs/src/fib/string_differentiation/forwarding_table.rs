//! Forwarding table: what does a forwarding engine need to know of the FIB?
//!
//! Source: Yuan15 §4.3.6: forwarding engines get the table from the route controller, as a sequence of update
//! instructions, and forward; they cannot update a lossy table themselves. Tables that began equal and applied the same
//! instructions in the same order are equal: a router keeps two.
//!
//! A look-up asks the lossy differentiator for the root rule. If longer rules are below that rule, it finds the
//! longest of them exactly ([`Suffixes`]). If there is no root rule, the answer is the default.
//!
//! Cost, bytes, limits: those of the parts. Writers: the owner, while there are no readers.

use super::differentiator::{Differentiator, Target};
use super::suffixes::{Suffix, Suffixes};
use namewire_tables::fib::{DESIGN_BATCH_NAMES, PrefixMatch};
use namewire_tables::name_hash::{HashKey, MAX_NAME_COMPONENTS, NameHashes};
use namewire_tables::pages::PageSize;
use std::io;

/// One change of a [`ForwardingTable`] whose differentiator takes changes `I`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instruction<I> {
    /// One of the differentiator.
    RootRule(I),
    /// What names without a root rule lead to.
    SetDefault {
        /// `None`: nowhere.
        number: Option<u32>,
    },
    /// What the root rule of a group leads to, now that it has one.
    SetGroup {
        /// Which group: an unused one, or the rule's own.
        group: u32,
        /// What the rule itself leads to.
        number: u32,
    },
    /// A rule below a root rule, or what it leads to now.
    InsertSuffix {
        /// The rule.
        suffix: Suffix,
        /// What it leads to.
        number: u32,
    },
    /// Takes a rule below a root rule out.
    RemoveSuffix {
        /// The rule.
        suffix: Suffix,
    },
}

/// The table.
pub struct ForwardingTable<D> {
    key: HashKey,
    differentiator: D,
    suffixes: Suffixes,
    default: Option<u32>,
}

impl<D: Differentiator> ForwardingTable<D> {
    /// An empty one. The key is that of the controller's RIB; suffixes are on these pages.
    ///
    /// # Errors
    /// If the kernel does not map the first pages.
    pub fn new(key: HashKey, differentiator: D, pages: PageSize) -> io::Result<Self> {
        Ok(Self { key, differentiator, suffixes: Suffixes::new(pages)?, default: None })
    }

    /// What tells the root rules apart.
    pub fn differentiator(&self) -> &D {
        &self.differentiator
    }

    /// The same, to set its options.
    pub fn differentiator_mut(&mut self) -> &mut D {
        &mut self.differentiator
    }

    /// The longer rules below root rules.
    pub fn suffixes(&self) -> &Suffixes {
        &self.suffixes
    }

    /// Does it.
    pub fn apply(&mut self, instruction: &Instruction<D::Instruction>) {
        match instruction {
            Instruction::RootRule(instruction) => self.differentiator.apply(instruction),
            &Instruction::SetDefault { number } => self.default = number,
            &Instruction::SetGroup { group, number } => self.suffixes.set_root(group, number),
            Instruction::InsertSuffix { suffix, number } => self.suffixes.insert(suffix, *number),
            Instruction::RemoveSuffix { suffix } => self.suffixes.remove(suffix),
        }
    }

    /// The longest prefix of every name that has one; anything for others.
    ///
    /// # Panics
    /// If `out` is shorter than `names`, or there are more than [`DESIGN_BATCH_NAMES`].
    pub fn longest_prefix_match_batch(&self, names: &[&[u8]], out: &mut [Option<PrefixMatch>]) {
        assert!(names.len() <= DESIGN_BATCH_NAMES && out.len() >= names.len(), "a batch and room for its answers");
        let mut hashes: [NameHashes; DESIGN_BATCH_NAMES] = std::array::from_fn(|_| NameHashes::default());
        if D::READS_HASHES {
            for (hashes, name) in hashes.iter_mut().zip(names) {
                compute_prefixes(&self.key, name, hashes);
            }
        }
        let mut roots = [None; DESIGN_BATCH_NAMES];
        self.differentiator.find_root_rules(names, &hashes, &mut roots);
        if !self.suffixes.is_empty() {
            for root in roots[..names.len()].iter().flatten() {
                if let Target::Group(group) = root.leads.target() {
                    self.suffixes.prefetch(group);
                }
            }
        }
        for (place, name) in names.iter().enumerate() {
            let Some(root) = roots[place] else {
                out[place] = self.default.map(|number| PrefixMatch { number, prefix_bytes: 0 });
                continue;
            };
            out[place] = match root.leads.target() {
                Target::Number(number) => Some(PrefixMatch { number, prefix_bytes: root.prefix_bytes }),
                Target::Group(group) => {
                    if !D::READS_HASHES {
                        compute_prefixes(&self.key, name, &mut hashes[place]);
                    }
                    self.suffixes.longest(group, root.prefix_bytes, name, &hashes[place])
                }
            };
        }
    }

    /// Bytes of memory, as allocated.
    pub fn bytes(&self) -> usize {
        self.differentiator.bytes() + self.suffixes.bytes() + size_of::<Self>()
    }
}

/// The hashes of all prefixes that a rule can have.
fn compute_prefixes(key: &HashKey, name: &[u8], hashes: &mut NameHashes) {
    if hashes.compute(key, name).is_err() {
        let first = first_components(name);
        // A prefix of as many components as there may be is not refused.
        let _ = hashes.compute(key, first);
    }
}

/// The first [`MAX_NAME_COMPONENTS`] components of a name of more.
#[cold]
fn first_components(name: &[u8]) -> &[u8] {
    let mut end = 0;
    for _ in 0..MAX_NAME_COMPONENTS {
        let Some((_, after_type)) = var_number(name, end) else { break };
        let Some((length, value_start)) = var_number(name, after_type) else { break };
        end = value_start.saturating_add(length).min(name.len());
    }
    &name[..end]
}

/// The TLV number at `start` and the offset after it (NDN packet format 0.3, §1.1).
fn var_number(bytes: &[u8], start: usize) -> Option<(usize, usize)> {
    let size = match *bytes.get(start)? {
        first @ 0..=252 => return Some((first.into(), start + 1)),
        253 => 2,
        254 => 4,
        255 => 8,
    };
    let number = bytes.get(start + 1..start + 1 + size)?;
    Some((number.iter().fold(0, |n, &byte| n << 8 | usize::from(byte)), start + 1 + size))
}
