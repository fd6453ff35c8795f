//! FHT, controller's side: which slot does a rule get, and which rules are put into the collision table?
//!
//! Source: Yuan15 §4.3.6 (the controller keeps a similar hash table with the whole names of occupied slots, and makes
//! instructions that set a slot or an entry of the collision table) and §4.3.4 (a rule whose fingerprint is taken, or
//! that finds no room, is put into the collision table with its whole name).
//!
//! The dissertation's names have one component, and only rules are looked up. Here names continue below rules, and
//! prefixes of rules are looked up before the rules are. So *what is known* is every node of the RIB. The controller
//! keeps this invariant:
//!
//! > Besides the rule in a slot, only root rules in the collision table may have the slot's hash.
//!
//! (Hashes are compared as the table reduces them.) Then no prefix of a name with a route, up to its rule, finds
//! the slot of another rule: the prefix is a node, or it is the rule itself. A rule in a slot moves to the collision
//! table when a node with the same hash appears. When the last such node is removed, one rule moves back. (Another way
//! is an entry "not this one" for the node; that costs as many entries and a slot more.)
//!
//! Rules of the default table (§4.3.5) are nodes without a slot. Names below them find nothing, and so take the
//! default, if all rules have as many components. Where there are longer rules, a name below a rule of the default
//! table is also looked up at the length of the longer rules. Its prefix of that length is no node, and may have the
//! hash of one of these rules. So a router does not offer this with fingerprint hash tables (with tries it does).
//!
//! Cost: an update reads 4 buckets, the nodes with the same hash (the index of [`Rib`]), and one word each per slot and
//! node.
//! Bytes: a copy of the slots, 4 more per slot, and 8 per node. Writers: the route controller.

use super::differentiator::{DifferentiatorController, Leads};
use super::fht_forwarding::{FhtInstruction, FhtOptions, FhtTable};
use super::fingerprint_hash_table::FingerprintHashTable;
use super::rib::{NodeId, Rib};
use namewire_tables::name_hash::MAX_NAME_COMPONENTS;
use namewire_tables::pages::PageArray;
use std::io;

/// Where a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Nowhere: it is no root rule, or one of the default table.
    Known,
    InSlot,
    InCollisionTable,
}

/// Decides for one or more [`FhtTable`]s of the same size.
pub struct FhtController {
    /// The slots as the tables have them, without ports.
    slots: FingerprintHashTable,
    /// The rule of each occupied slot.
    rules: PageArray<NodeId>,
    /// By node: [`Leads`] in the lower bits, [`Standing`] above.
    nodes: Vec<u64>,
    /// Element n: how many rules of n components are in slots or the collision table.
    lengths: Box<[u32; MAX_NAME_COMPONENTS + 1]>,
    prefix: Vec<u8>,
}

impl FhtController {
    /// One for tables made with the same arguments.
    ///
    /// # Errors
    /// See [`FingerprintHashTable::for_names`].
    pub fn new(rules: usize, options: FhtOptions) -> io::Result<Self> {
        let slots = FingerprintHashTable::for_names(rules, options.format, options.pages)?;
        Ok(Self {
            rules: PageArray::zeroed(slots.slots(), options.pages)?,
            slots,
            nodes: Vec::new(),
            lengths: Box::new([0; MAX_NAME_COMPONENTS + 1]),
            prefix: Vec::new(),
        })
    }

    /// How many hashes the tables tell apart: what the index of the RIB has to be over.
    pub fn hashes(&self) -> u64 {
        self.slots.hashes()
    }

    fn standing(&self, node: NodeId) -> (Standing, Leads) {
        let word = self.nodes.get(node as usize).copied().unwrap_or(0);
        let standing = match word >> Leads::BITS {
            0 => Standing::Known,
            1 => Standing::InSlot,
            _ => Standing::InCollisionTable,
        };
        (standing, Leads::from_bits(word))
    }

    fn set_standing(&mut self, node: NodeId, standing: Standing, leads: Leads) {
        if self.nodes.len() <= node as usize {
            self.nodes.resize(node as usize + 1, 0);
        }
        self.nodes[node as usize] = (standing as u64) << Leads::BITS | leads.bits();
    }

    /// A slot for the rule, unless another has its hash or there is none.
    fn slot_for(&self, rib: &Rib, rule: NodeId) -> Option<u32> {
        let hash = rib.hash(rule);
        let is_in_the_way = |node| node != rule && self.standing(node).0 != Standing::InCollisionTable;
        if self.slots.find(hash).is_some() || rib.nodes_like(hash).any(is_in_the_way) {
            return None;
        }
        self.slots.vacant_slot(hash)
    }

    fn put_into_slot(&mut self, rib: &Rib, rule: NodeId, slot: u32, leads: Leads, out: &mut Vec<FhtInstruction>) {
        let fingerprint = self.slots.fingerprint(rib.hash(rule));
        self.slots.set(slot, fingerprint, 0);
        self.rules[slot as usize] = rule;
        self.set_standing(rule, Standing::InSlot, leads);
        out.push(FhtInstruction::SetSlot { slot, fingerprint, leads });
    }

    fn put_into_collision_table(&mut self, rib: &Rib, rule: NodeId, leads: Leads, out: &mut Vec<FhtInstruction>) {
        self.set_standing(rule, Standing::InCollisionTable, leads);
        let (hash, prefix) = self.hash_and_prefix(rib, rule);
        out.push(FhtInstruction::InsertCollision { hash, prefix, leads });
    }

    fn hash_and_prefix(&mut self, rib: &Rib, rule: NodeId) -> (u64, Box<[u8]>) {
        rib.write_prefix(rule, &mut self.prefix);
        (rib.hash(rule), self.prefix.as_slice().into())
    }

    fn clear_slot(&mut self, slot: u32, out: &mut Vec<FhtInstruction>) {
        self.slots.clear(slot);
        out.push(FhtInstruction::ClearSlot { slot });
    }

    /// Moves the rule in a slot of this hash to the collision table.
    fn make_way(&mut self, rib: &Rib, hash: u64, out: &mut Vec<FhtInstruction>) {
        if let Some((slot, _)) = self.slots.find(hash) {
            let rule = self.rules[slot as usize];
            self.clear_slot(slot, out);
            let (_, leads) = self.standing(rule);
            self.put_into_collision_table(rib, rule, leads, out);
        }
    }

    fn count_length(&mut self, rib: &Rib, rule: NodeId, by: i32, out: &mut Vec<FhtInstruction>) {
        let components = rib.components(rule);
        let rules = &mut self.lengths[components];
        let before = *rules;
        *rules = rules.saturating_add_signed(by);
        let components = components as u16;
        match (before, *rules) {
            (0, 1..) => out.push(FhtInstruction::AddLength { components }),
            (1.., 0) => out.push(FhtInstruction::RemoveLength { components }),
            _ => {}
        }
    }
}

impl DifferentiatorController for FhtController {
    type Table = FhtTable;

    fn insert(&mut self, rib: &Rib, rule: NodeId, leads: Option<Leads>, out: &mut Vec<FhtInstruction>) {
        let Some(leads) = leads else { return self.appeared(rib, rule, out) };
        self.count_length(rib, rule, 1, out);
        match self.slot_for(rib, rule) {
            Some(slot) => self.put_into_slot(rib, rule, slot, leads, out),
            None => self.put_into_collision_table(rib, rule, leads, out),
        }
    }

    fn change(&mut self, rib: &Rib, rule: NodeId, leads: Option<Leads>, out: &mut Vec<FhtInstruction>) {
        match (self.standing(rule).0, leads, self.slots.find(rib.hash(rule))) {
            (Standing::Known, leads, _) => self.insert(rib, rule, leads, out),
            (_, None, _) => self.remove(rib, rule, true, out),
            (Standing::InSlot, Some(leads), Some((slot, _))) => self.put_into_slot(rib, rule, slot, leads, out),
            (_, Some(leads), _) => self.put_into_collision_table(rib, rule, leads, out),
        }
    }

    fn remove(&mut self, rib: &Rib, rule: NodeId, stays: bool, out: &mut Vec<FhtInstruction>) {
        match (self.standing(rule).0, self.slots.find(rib.hash(rule))) {
            (Standing::Known, _) => return,
            (Standing::InSlot, found) => found.into_iter().for_each(|(slot, _)| self.clear_slot(slot, out)),
            (Standing::InCollisionTable, _) => {
                let (hash, prefix) = self.hash_and_prefix(rib, rule);
                out.push(FhtInstruction::RemoveCollision { hash, prefix });
                if stays {
                    self.make_way(rib, hash, out);
                }
            }
        }
        self.count_length(rib, rule, -1, out);
        self.set_standing(rule, Standing::Known, Leads::to_number(0));
    }

    fn appeared(&mut self, rib: &Rib, node: NodeId, out: &mut Vec<FhtInstruction>) {
        self.make_way(rib, rib.hash(node), out);
    }

    fn disappeared(&mut self, rib: &Rib, hash: u64, out: &mut Vec<FhtInstruction>) {
        let Some(rule) = rib.nodes_like(hash).find(|&node| self.standing(node).0 == Standing::InCollisionTable) else {
            return;
        };
        if let Some(slot) = self.slot_for(rib, rule) {
            let (_, leads) = self.standing(rule);
            let (hash, prefix) = self.hash_and_prefix(rib, rule);
            out.push(FhtInstruction::RemoveCollision { hash, prefix });
            self.put_into_slot(rib, rule, slot, leads, out);
        }
    }

    fn bytes(&self) -> usize {
        self.slots.bytes()
            + self.rules.mapped_bytes()
            + self.nodes.capacity() * size_of::<u64>()
            + size_of_val(&*self.lengths)
            + self.prefix.capacity()
    }
}
