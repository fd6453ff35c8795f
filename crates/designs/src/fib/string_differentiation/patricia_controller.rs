//! Patricia controller: the route controller's side of a Patricia table.
//!
//! Source: Yuan15 §4.3.5 (distributed forwarding), §4.3.6 (the controller has the full names and sends instructions).
//! The controller has a trie of the same shape whose leaves are the rules' ids. In this trie, the controller finds the
//! rule whose leaf a new name comes to. A comparison with that rule's name gives the bit at which the two names differ.
//! Both tries are split at that bit. The instructions are what changes the controller's copy of the forwarding trie.
//!
//! ```text
//! names by id (RIB) ◀── owners: trie whose leaves are ids
//!                       forwarding: as the line cards have it ──▶ instructions
//! at each leaf: owner ──▶ default rule ──▶ default rule ──▶ …   (`next_default`, by id)
//! ```
//!
//! Rules of the default table (they lead nowhere here) are not in the tries. They are in a list at the leaf that they
//! come to, and the leaf's fingerprint distinguishes the owner from them (see [`super::local_fingerprint`]). When a
//! leaf is split, so is its list; when a leaf is removed, its list goes to other leaves. Rules that a fingerprint
//! cannot distinguish from the owner get separate leaves, which lead nowhere. A rule that ends before a bit that is
//! examined on its way gets such a leaf too, since names below the rule may come to any leaf.
//!
//! Cost: an update takes three walks down a trie. It reads the name of the leaf's owner, and the names in the leaf's
//! list if the list must be examined. Bytes: the copy, 4 bytes of id more per rule and as many nodes again; with a
//! default table also 4 per id. Limits: those of [`PatriciaOptions`]. Writers: the owner.

use super::differentiator::{DifferentiatorController, InstructionOf, Leads};
use super::key_bits::KeyBits;
use super::local_fingerprint::{bits_to_tell, least_local_fingerprint, local_hashes, owner_span};
use super::patricia_leaf::{LocalFingerprint, PatriciaLeaf};
use super::patricia_node::{NodeLayout, NodeType};
use super::patricia_table::{PatriciaOptions, PatriciaTable};
use super::patricia_trie::{Node, PatriciaInstruction, PatriciaTrie};
use super::patricia_updates::PatriciaEditor;
use super::rib::{NodeId, Rib};
use namewire_tables::name_hash::components_of;
use std::io;

/// The end of a list.
const NIL: u32 = u32::MAX;

/// What an update leaves to do.
enum ToDo {
    /// The list of this leaf's owner has changed.
    RenewFingerprint(u32),
    /// This default rule is in no list.
    PlaceDefault(u32),
}

/// Rules and their names in full; ids as the caller has them.
pub trait RuleNames {
    /// Replaces `out` by the bytes of the rule's TLV-VALUE.
    fn write_name(&self, rule: u32, out: &mut Vec<u8>);
}

impl RuleNames for Rib {
    fn write_name(&self, rule: NodeId, out: &mut Vec<u8>) {
        self.write_prefix(rule, out);
    }
}

/// The controller's side.
pub struct PatriciaController {
    options: PatriciaOptions,
    may_use_second_hash: bool,
    owners: PatriciaEditor,
    forwarding: PatriciaEditor,
    /// By id: the first default rule at a leaf's owner, the next one at a default rule.
    next_default: Vec<u32>,
    /// Default rules while there is no leaf.
    first_homeless: u32,
    name: Vec<u8>,
    other: Vec<u8>,
}

impl PatriciaController {
    /// For tables of these options. If `may_use_second_hash`, local fingerprints are of the better one
    /// of two hashes.
    ///
    /// # Errors
    /// If the kernel maps no memory.
    pub fn new(options: PatriciaOptions, may_use_second_hash: bool) -> io::Result<Self> {
        let key_bytes_max = options.rule_bytes_max + options.fingerprints.bytes_max();
        let owners = NodeLayout::new(options.capacity_rules, key_bytes_max, u32::BITS);
        Ok(Self {
            options,
            may_use_second_hash,
            owners: PatriciaEditor::new(owners, options.capacity_rules, options.pages, false)?,
            forwarding: PatriciaEditor::new(options.node_layout(), options.capacity_rules, options.pages, true)?,
            next_default: Vec::new(),
            first_homeless: NIL,
            name: Vec::new(),
            other: Vec::new(),
        })
    }

    /// The forwarding trie, as every copy that followed the instructions is.
    pub const fn trie(&self) -> &PatriciaTrie {
        self.forwarding.trie()
    }

    /// The instructions since the last call.
    pub fn take_instructions(&mut self) -> impl Iterator<Item = PatriciaInstruction> + '_ {
        self.forwarding.take_instructions()
    }

    /// The rule whose leaf a name comes to.
    pub fn owner(&self, name: &[u8]) -> Option<u32> {
        self.owner_of(&self.options.fingerprints.key(name))
    }

    /// What the leaf says that a name comes to.
    pub fn leaf(&self, name: &[u8]) -> Option<PatriciaLeaf> {
        self.leaf_of(&self.options.fingerprints.key(name))
    }

    /// Adds a rule; `None` if it is one of the default table.
    pub fn insert_rule(&mut self, names: &impl RuleNames, rule: u32, leads: Option<Leads>) {
        let mut to_do = Vec::new();
        match leads {
            Some(_) => self.insert_leaf(names, rule, leads, &mut to_do),
            None => to_do.push(ToDo::PlaceDefault(rule)),
        }
        self.settle(names, to_do);
    }

    /// Lets a rule lead elsewhere.
    pub fn change_rule(&mut self, names: &impl RuleNames, rule: u32, leads: Option<Leads>) {
        let name = self.take_name(names, rule);
        let key = self.options.fingerprints.key(&name);
        let is_owner = self.owner_of(&key) == Some(rule);
        let leaf = self.leaf_of(&key).filter(|leaf| is_owner && leaf.leads.is_some());
        match (leaf, leads) {
            (Some(leaf), Some(_)) => {
                self.forwarding.change(&key, self.options.leaves.pack(PatriciaLeaf { leads, ..leaf }))
            }
            (None, None) => {}
            _ => {
                self.remove_rule(names, rule);
                self.insert_rule(names, rule, leads);
            }
        }
        self.name = name;
    }

    /// Removes a rule.
    pub fn remove_rule(&mut self, names: &impl RuleNames, rule: u32) {
        let name = self.take_name(names, rule);
        let key = self.options.fingerprints.key(&name);
        match self.owner_of(&key) {
            Some(owner) if owner == rule => {
                self.owners.remove(&key);
                self.forwarding.remove(&key);
                self.name = name;
                let homeless = self.take_defaults(rule);
                self.settle(names, homeless.into_iter().map(ToDo::PlaceDefault).collect());
                return;
            }
            owner => self.unlink_default(owner, rule),
        }
        self.name = name;
    }

    /// Writes all nodes anew; see [`PatriciaEditor::write_anew`].
    pub fn write_anew(&mut self) {
        self.owners.write_anew();
        self.forwarding.write_anew();
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let buffers = self.name.capacity() + self.other.capacity();
        self.owners.bytes() + self.forwarding.bytes() + self.next_default.capacity() * size_of::<u32>() + buffers
    }

    /// Gives a rule a leaf of its own.
    fn insert_leaf(&mut self, names: &impl RuleNames, rule: u32, leads: Option<Leads>, to_do: &mut Vec<ToDo>) {
        let name = self.take_name(names, rule);
        let key = self.options.fingerprints.key(&name);
        let mut position = 0;
        match self.owner_of(&key) {
            None => {
                let homeless = std::mem::replace(&mut self.first_homeless, NIL);
                self.set_next(rule, homeless);
                to_do.push(ToDo::RenewFingerprint(rule));
            }
            Some(owner) => {
                names.write_name(owner, &mut self.other);
                let Some(differing) = key.first_difference(&self.options.fingerprints.key(&self.other)) else {
                    debug_assert!(false, "a rule is a prefix of another");
                    return;
                };
                position = differing;
                self.set_next(rule, NIL);
                if !self.next_default.is_empty() {
                    self.draw_defaults(names, rule, &key, position, to_do);
                }
            }
        }
        let components = component_count(&name);
        let leaf = PatriciaLeaf { leads, components, local: LocalFingerprint::default() };
        self.owners.insert(&key, position, Node { node_type: NodeType::Leaf, word: rule.into() });
        self.forwarding.insert(&key, position, self.options.leaves.pack(leaf));
        self.name = name;
    }

    /// Puts a default rule, which is in no list, into that of the leaf to which it and all names below
    /// it come; if they may come to different ones, it gets a leaf.
    fn place_default(&mut self, names: &impl RuleNames, rule: u32, to_do: &mut Vec<ToDo>) {
        let name = self.take_name(names, rule);
        let key = self.options.fingerprints.key(&name);
        let is_found_within = self.owners.trie().is_found_within(&key);
        match (self.owner_of(&key), self.leaf_of(&key)) {
            (Some(owner), Some(leaf)) if is_found_within => {
                let first = self.next(owner);
                self.set_next(rule, first);
                self.set_next(owner, rule);
                if !tells_apart(leaf, &name) {
                    to_do.push(ToDo::RenewFingerprint(owner));
                }
                self.name = name;
            }
            (None, _) => {
                self.set_next(rule, self.first_homeless);
                self.first_homeless = rule;
                self.name = name;
            }
            _ => {
                self.name = name;
                self.insert_leaf(names, rule, None, to_do);
            }
        }
    }

    /// Does what is to do, and what follows from that: leaves get the fingerprints that their lists ask
    /// for, and default rules for which none is long enough get leaves of their own.
    fn settle(&mut self, names: &impl RuleNames, mut to_do: Vec<ToDo>) {
        while let Some(next) = to_do.pop() {
            let owner = match next {
                ToDo::PlaceDefault(rule) => {
                    self.place_default(names, rule, &mut to_do);
                    continue;
                }
                ToDo::RenewFingerprint(owner) => owner,
            };
            let untold = self.renew_fingerprint(names, owner);
            untold.iter().for_each(|&rule| self.unlink_default(Some(owner), rule));
            for rule in untold {
                names.write_name(rule, &mut self.other);
                // The leaf that one of them was given may be where the next one comes to.
                if self.owner(&self.other) == Some(owner) {
                    self.insert_leaf(names, rule, None, &mut to_do);
                } else {
                    self.place_default(names, rule, &mut to_do);
                }
            }
        }
    }

    /// The default rules in the owner's list that the leaf's new fingerprint does not tell from the owner.
    fn renew_fingerprint(&mut self, names: &impl RuleNames, owner: u32) -> Vec<u32> {
        let name = self.take_name(names, owner);
        let key = self.options.fingerprints.key(&name);
        let mut untold = Vec::new();
        if let Some(leaf) = self.leaf_of(&key).filter(|leaf| leaf.leads.is_some()) {
            let (mut others, mut ids) = (Vec::new(), Vec::new());
            let mut rule = self.next(owner);
            while rule != NIL {
                names.write_name(rule, &mut self.other);
                let span = owner_span(&self.other, leaf.components);
                if component_count(span) < leaf.components {
                    untold.push(rule);
                } else {
                    others.push(local_hashes(span));
                    ids.push(rule);
                }
                rule = self.next(rule);
            }
            let hashes = local_hashes(&name);
            let bits_max = self.options.leaves.local_bits_max;
            let local = least_local_fingerprint(hashes, &others, bits_max, self.may_use_second_hash);
            let hash = usize::from(local.is_second_hash);
            let is_told = |other: &[u64; 2]| bits_to_tell(hashes[hash], other[hash]) <= local.bits;
            untold.extend(ids.into_iter().zip(&others).filter(|(_, other)| !is_told(other)).map(|(rule, _)| rule));
            if local != leaf.local {
                self.forwarding.change(&key, self.options.leaves.pack(PatriciaLeaf { local, ..leaf }));
            }
        }
        self.name = name;
        untold
    }

    /// Moves to the list of `rule`, which is going to have a leaf, the default rules that will come to it;
    /// those that may come to either side are to be placed anew.
    fn draw_defaults(
        &mut self,
        names: &impl RuleNames,
        rule: u32,
        key: &KeyBits<'_>,
        position: usize,
        to_do: &mut Vec<ToDo>,
    ) {
        to_do.push(ToDo::RenewFingerprint(rule));
        for leaf in self.owners.leaves_below(key, position) {
            let owner = leaf.word as u32;
            let (mut before, mut default) = (owner, self.next(owner));
            let mut has_changed = false;
            while default != NIL {
                let after = self.next(default);
                names.write_name(default, &mut self.other);
                let default_key = self.options.fingerprints.key(&self.other);
                let is_within = position < default_key.bits();
                if is_within && default_key.bit(position) != key.bit(position) {
                    (before, default) = (default, after);
                    continue;
                }
                has_changed = true;
                self.set_next(before, after);
                if is_within {
                    let first = self.next(rule);
                    self.set_next(default, first);
                    self.set_next(rule, default);
                } else {
                    self.set_next(default, NIL);
                    to_do.push(ToDo::PlaceDefault(default));
                }
                default = after;
            }
            if has_changed {
                to_do.push(ToDo::RenewFingerprint(owner));
            }
        }
    }

    /// All default rules in the owner's list, which is empty then.
    fn take_defaults(&mut self, owner: u32) -> Vec<u32> {
        let mut defaults = Vec::new();
        let mut rule = self.next(owner);
        while rule != NIL {
            defaults.push(rule);
            rule = self.next(rule);
        }
        if !defaults.is_empty() {
            self.set_next(owner, NIL);
        }
        defaults
    }

    /// Takes a default rule out of the owner's list, or out of the list of the homeless.
    fn unlink_default(&mut self, owner: Option<u32>, rule: u32) {
        let after = self.next(rule);
        self.set_next(rule, NIL);
        let mut before = match owner {
            Some(owner) => owner,
            None if self.first_homeless == rule => {
                self.first_homeless = after;
                return;
            }
            None => self.first_homeless,
        };
        while before != NIL {
            let next = self.next(before);
            if next == rule {
                self.set_next(before, after);
                return;
            }
            before = next;
        }
    }

    fn next(&self, rule: u32) -> u32 {
        self.next_default.get(rule as usize).copied().unwrap_or(NIL)
    }

    fn set_next(&mut self, rule: u32, next: u32) {
        if self.next(rule) != next {
            let length = self.next_default.len().max(rule as usize + 1);
            self.next_default.resize(length, NIL);
            self.next_default[rule as usize] = next;
        }
    }

    fn owner_of(&self, key: &KeyBits<'_>) -> Option<u32> {
        self.owners.trie().find(key).map(|leaf| leaf.word as u32)
    }

    fn leaf_of(&self, key: &KeyBits<'_>) -> Option<PatriciaLeaf> {
        self.forwarding.trie().find(key).map(|leaf| self.options.leaves.unpack(leaf))
    }

    /// The rule's name in a buffer that is given back by putting it into `self.name`.
    fn take_name(&mut self, names: &impl RuleNames, rule: u32) -> Vec<u8> {
        let mut name = std::mem::take(&mut self.name);
        names.write_name(rule, &mut name);
        name
    }
}

/// Whether the leaf's fingerprint, if it has one, tells its owner from this name.
fn tells_apart(leaf: PatriciaLeaf, name: &[u8]) -> bool {
    let LocalFingerprint { is_second_hash, bits, .. } = leaf.local;
    let span = owner_span(name, leaf.components);
    leaf.leads.is_none()
        || component_count(span) == leaf.components
            && LocalFingerprint::of(local_hashes(span), is_second_hash, bits) != leaf.local
}

fn component_count(name: &[u8]) -> usize {
    components_of(name).count()
}

impl DifferentiatorController for PatriciaController {
    type Table = PatriciaTable;

    fn rule_bytes_max(&self) -> usize {
        self.options.rule_bytes_max
    }

    fn insert(&mut self, rib: &Rib, rule: NodeId, leads: Option<Leads>, out: &mut Vec<InstructionOf<Self>>) {
        self.insert_rule(rib, rule, leads);
        out.extend(self.forwarding.take_instructions());
    }

    fn change(&mut self, rib: &Rib, rule: NodeId, leads: Option<Leads>, out: &mut Vec<InstructionOf<Self>>) {
        self.change_rule(rib, rule, leads);
        out.extend(self.forwarding.take_instructions());
    }

    fn remove(&mut self, rib: &Rib, rule: NodeId, _: bool, out: &mut Vec<InstructionOf<Self>>) {
        self.remove_rule(rib, rule);
        out.extend(self.forwarding.take_instructions());
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::differentiator::{Differentiator, RootMatch};
    use super::super::key_bits::Fingerprints;
    use super::super::patricia_leaf::LeafLayout;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    impl RuleNames for Vec<Vec<u8>> {
        fn write_name(&self, rule: u32, out: &mut Vec<u8>) {
            out.clone_from(&self[rule as usize]);
        }
    }

    /// Names of one to four components, none a prefix of another: the last component says that it is the last.
    fn names() -> impl Strategy<Value = Vec<Vec<u8>>> {
        prop::collection::btree_set(prop::collection::vec(0_u8..4, 0..4), 2..40).prop_map(|names| {
            let name = |letters: Vec<u8>| {
                let mut name: Vec<u8> = letters.iter().flat_map(|&letter| [8, 1, letter]).collect();
                name.extend([8, 2, 200, letters.len() as u8]);
                name
            };
            names.into_iter().map(name).collect()
        })
    }

    fn leads() -> impl Strategy<Value = Option<Leads>> {
        prop_oneof![
            3 => (0_u32..400).prop_map(|number| Some(Leads::to_number(number))),
            1 => (0_u32..4).prop_map(|group| Some(Leads::to_group(group))),
            4 => Just(None),
        ]
    }

    fn check(table: &PatriciaTable, names: &[Vec<u8>], model: &BTreeMap<u32, Option<Leads>>) {
        for below in [&b""[..], b"\x08\x01x\x08\x00"] {
            for rules in model.iter().collect::<Vec<_>>().chunks(64) {
                let queries: Vec<Vec<u8>> =
                    rules.iter().map(|(rule, _)| [&names[**rule as usize], below].concat()).collect();
                let slices: Vec<&[u8]> = queries.iter().map(|query| &query[..]).collect();
                let mut found = vec![None; rules.len()];
                table.find_root_rules(&slices, &[], &mut found);
                for (&(&rule, leads), found) in rules.iter().zip(found) {
                    let prefix_bytes = names[rule as usize].len() as u16;
                    assert_eq!(found, leads.map(|leads| RootMatch { leads, prefix_bytes }));
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Stored rules lead where they should, default rules nowhere, whatever happened before.
        #[test]
        fn stored_and_default_rules_are_distinguished(
            names in names(),
            operations in prop::collection::vec((any::<prop::sample::Index>(), leads(), 0..3_u8), 1..100),
            bits in prop::sample::select(vec![0_u32, 2, 24]),
            local_bits_max in prop::sample::select(vec![0_u32, 1, 4, 15]),
            may_use_second_hash in any::<bool>(),
            is_batched in any::<bool>(),
        ) {
            let options = PatriciaOptions {
                fingerprints: Fingerprints { bits, components: 2 },
                leaves: LeafLayout { number_bits: 8, components: 2, local_bits_max },
                rule_bytes_max: 20,
                is_batched,
                ..PatriciaOptions::fpt(40)
            };
            let mut controller = PatriciaController::new(options, may_use_second_hash).expect("a few KiB");
            let mut table = PatriciaTable::new(options).expect("a few KiB");
            let mut model = BTreeMap::new();
            for (which, leads, what) in operations {
                let rule = which.index(names.len()) as u32;
                match (model.contains_key(&rule), what) {
                    (true, 0) => {
                        model.remove(&rule);
                        controller.remove_rule(&names, rule);
                    }
                    (is_there, _) => {
                        model.insert(rule, leads);
                        if is_there { controller.change_rule(&names, rule, leads) } else { controller.insert_rule(&names, rule, leads) }
                    }
                }
                controller.take_instructions().for_each(|instruction| table.apply(&instruction));
                check(&table, &names, &model);
            }
            while let Some((rule, _)) = model.pop_first() {
                controller.remove_rule(&names, rule);
            }
            prop_assert_eq!(controller.trie().root(), None);
            prop_assert!(controller.next_default.iter().all(|&next| next == NIL) && controller.first_homeless == NIL);
        }
    }

    #[test]
    fn local_fingerprints_keep_default_names_out_of_the_trie() {
        let names: Vec<Vec<u8>> =
            (0..4000_u32).map(|n| [&[8, 4][..], &n.wrapping_mul(2_654_435_761).to_be_bytes()].concat()).collect();
        let options = PatriciaOptions {
            leaves: LeafLayout { number_bits: 8, components: 1, local_bits_max: 6 },
            ..PatriciaOptions::fpt(names.len())
        };
        let mut controller = PatriciaController::new(options, true).expect("a few hundred KiB");
        for rule in 0..names.len() as u32 {
            controller.insert_rule(&names, rule, (rule % 8 == 0).then_some(Leads::to_number(rule % 200)));
        }
        let leaves = controller.trie().leaf_depths().leaves;
        // 7 others at each leaf; the better of two 6-bit fingerprints misses few of them.
        assert!((500..700).contains(&leaves), "{leaves} leaves for 500 stored rules");
    }
}
