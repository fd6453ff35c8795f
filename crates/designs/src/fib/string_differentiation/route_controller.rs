//! Route controller: which instructions keep the forwarding tables correct when a route is inserted or removed?
//!
//! Source: Yuan15 §4.3.6: the controller keeps the RIB in full. From every update it makes a sequence of instructions
//! for the lossy tables of the forwarding engines, which cannot update their routes otherwise. §4.2 has the longest
//! prefixes.
//!
//! A rule without a rule above it is a *root rule* and goes to the differentiator. All rules below it form its group,
//! and are kept in the group in full except for the root rule's bytes. So a new rule above others takes their groups
//! into its own. When a root rule is removed, the rules directly below it become root rules again. Every other update
//! changes one thing.
//!
//! Root prefix: see [`DefaultRoute`].
//!
//! Cost: an update walks down the RIB; inserting or removing a rule above n others makes n moves.
//! Bytes: those of the RIB and of the differentiator, and 4 per node. Writers: the owner.

use super::differentiator::{DifferentiatorController, InstructionOf, Leads};
use super::forwarding_table::Instruction;
use super::rib::{NodeId, ROOT, Rib};
use super::suffixes::Suffix;
use namewire_tables::fib::FibRefusal;
use namewire_tables::name_hash::NameHashes;

/// What a rule for the root prefix is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DefaultRoute {
    /// A rule like others: every name lies under it, so that every other rule is below it and kept in full.
    /// Right about all names, at the price of an exact table.
    #[default]
    Exact,
    /// What is answered if no root rule is found. A name that lies under no other rule may be taken for a name that
    /// lies under one, as in core routers without a default route.
    Speculative,
    /// As [`DefaultRoute::Speculative`], with a default table (§4.3.5): the root prefix leads to this number, whether
    /// there is a rule for it or not. All rules that lead to this number are the default table: not stored, only never
    /// taken for others.
    Table(u32),
    /// As [`DefaultRoute::Table`], with the number that the root prefix leads to at the time. When this number changes,
    /// rules that lead to the old or the new number change sides. This takes time in proportion to all rules.
    Followed,
}

impl DefaultRoute {
    /// The name in configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Speculative => "speculative",
            Self::Followed => "distributed",
            Self::Table(_) => "table",
        }
    }
}

/// The controller. Its instructions are for tables made for the same rules and key.
pub struct RouteController<C: DifferentiatorController> {
    rib: Rib,
    differentiator: C,
    capacity: usize,
    default_route: DefaultRoute,
    /// What the root prefix leads to, if it is not a rule like others.
    default: Option<u32>,
    /// By node: the group of a root rule, or [`NO_GROUP`].
    groups: Vec<u32>,
    /// By group: how many rules are below the root rule.
    group_rules: Vec<u32>,
    vacant_groups: Vec<u32>,
    prefix: Vec<u8>,
    /// Empty between calls.
    instructions: Vec<InstructionOf<C>>,
}

const NO_GROUP: u32 = u32::MAX;

type Out<C> = Vec<Instruction<InstructionOf<C>>>;

impl<C: DifferentiatorController> RouteController<C> {
    /// One for at most this many rules.
    pub fn new(capacity: usize, rib: Rib, differentiator: C, default_route: DefaultRoute) -> Self {
        Self {
            rib,
            differentiator,
            capacity,
            default_route,
            default: None,
            groups: Vec::new(),
            group_rules: Vec::new(),
            vacant_groups: Vec::new(),
            prefix: Vec::new(),
            instructions: Vec::new(),
        }
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.rib.rules() + usize::from(self.default.is_some())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rules.
    pub fn rib(&self) -> &Rib {
        &self.rib
    }

    /// What decides about root rules.
    pub fn differentiator(&self) -> &C {
        &self.differentiator
    }

    /// Bytes of memory, as allocated.
    pub fn bytes(&self) -> usize {
        let words = self.groups.capacity() + self.group_rules.capacity() + self.vacant_groups.capacity();
        self.rib.bytes()
            + self.differentiator.bytes()
            + words * 4
            + self.instructions.capacity() * size_of::<InstructionOf<C>>()
            + self.prefix.capacity()
            + size_of::<Self>()
    }

    /// What tables must be told at their beginning.
    pub fn start(&self, out: &mut Out<C>) {
        if let DefaultRoute::Table(number) = self.default_route {
            out.push(Instruction::SetDefault { number: Some(number) });
        }
    }

    /// Adds the rule, or lets it lead elsewhere; gives the number that it led to before, and appends the instructions
    /// for this change.
    ///
    /// # Errors
    /// [`FibRefusal`]; then nothing changed and there are no instructions.
    pub fn insert(&mut self, prefix: &[u8], number: u32, out: &mut Out<C>) -> Result<Option<u32>, FibRefusal> {
        let mut hashes = NameHashes::default();
        if prefix.len() > self.differentiator.rule_bytes_max() || hashes.compute(self.rib.key(), prefix).is_err() {
            return Err(FibRefusal::PrefixTooLong);
        }
        if prefix.is_empty() && self.default_route != DefaultRoute::Exact {
            if self.default.is_none() && self.len() >= self.capacity {
                return Err(FibRefusal::Full);
            }
            return Ok(self.set_default(Some(number), out));
        }
        let walk = self.rib.walk(&hashes, prefix);
        let missing = hashes.components() - self.rib.components(walk.deepest);
        if missing == 0
            && let Some(before) = self.rib.number(walk.deepest)
        {
            self.change_number(walk.deepest, walk.shortest_rule_above, number, out);
            return Ok(Some(before));
        }
        if self.len() >= self.capacity || !self.rib.has_room(missing) {
            return Err(FibRefusal::Full);
        }
        let mut node = walk.deepest;
        for left in (0..missing).rev() {
            node = self.rib.push_below(node, &hashes, prefix);
            if left > 0 || walk.shortest_rule_above.is_some() {
                self.tell(out, |differentiator, rib, out| differentiator.appeared(rib, node, out));
            }
        }
        self.rib.set_rule(node, number);
        match walk.shortest_rule_above {
            Some(root) => self.insert_below(root, node, out),
            None => {
                self.gather_below(node, out);
                self.insert_root(node, out);
            }
        }
        Ok(None)
    }

    /// If there is such a rule, removes it, gives the number that it led to, and appends the instructions.
    pub fn remove(&mut self, prefix: &[u8], out: &mut Out<C>) -> Option<u32> {
        let mut hashes = NameHashes::default();
        hashes.compute(self.rib.key(), prefix).ok()?;
        if prefix.is_empty() && self.default_route != DefaultRoute::Exact {
            return self.set_default(None, out);
        }
        let walk = self.rib.walk(&hashes, prefix);
        let node = walk.deepest;
        let number = self.rib.number(node).filter(|_| self.rib.components(node) == hashes.components())?;
        match walk.shortest_rule_above {
            Some(root) => self.remove_below(root, node, out),
            None => {
                let stays = node == ROOT || self.rib.has_below(node);
                self.tell(out, |differentiator, rib, out| differentiator.remove(rib, node, stays, out));
                self.scatter_below(node, out);
            }
        }
        let mut at = node;
        while let Some((parent, hash)) = self.rib.prune(at) {
            self.tell(out, |differentiator, rib, out| differentiator.disappeared(rib, hash, out));
            at = parent;
        }
        Some(number)
    }

    /// How many rules change their place if this one is inserted, at most.
    pub fn moved_by_insertion(&self, prefix: &[u8]) -> usize {
        self.moved_if(prefix, |is_rule| !is_rule)
    }

    /// How many rules change their place if this one is removed, at most.
    pub fn moved_by_removal(&self, prefix: &[u8]) -> usize {
        self.moved_if(prefix, |is_rule| is_rule)
    }

    fn moved_if(&self, prefix: &[u8], moves: impl FnOnce(bool) -> bool) -> usize {
        let mut hashes = NameHashes::default();
        if hashes.compute(self.rib.key(), prefix).is_err() {
            return 0;
        }
        if prefix.is_empty() && self.default_route != DefaultRoute::Exact {
            return if self.default_route == DefaultRoute::Followed { self.len() } else { 0 };
        }
        let walk = self.rib.walk(&hashes, prefix);
        let node = walk.deepest;
        let is_node = self.rib.components(node) == hashes.components();
        let has_below = is_node && walk.shortest_rule_above.is_none() && self.rib.has_below(node);
        if has_below && moves(self.rib.number(node).is_some()) { self.count_below(node) } else { 0 }
    }

    /// Whether there is exactly this rule.
    pub fn contains(&self, prefix: &[u8]) -> bool {
        let mut hashes = NameHashes::default();
        if hashes.compute(self.rib.key(), prefix).is_err() {
            return false;
        }
        if prefix.is_empty() && self.default_route != DefaultRoute::Exact {
            return self.default.is_some();
        }
        let deepest = self.rib.walk(&hashes, prefix).deepest;
        self.rib.components(deepest) == hashes.components() && self.rib.number(deepest).is_some()
    }

    fn set_default(&mut self, number: Option<u32>, out: &mut Out<C>) -> Option<u32> {
        let before = std::mem::replace(&mut self.default, number);
        if matches!(self.default_route, DefaultRoute::Speculative | DefaultRoute::Followed) {
            out.push(Instruction::SetDefault { number });
        }
        if self.default_route == DefaultRoute::Followed && before != number {
            let led_there = |rule: Option<u32>| rule.is_some() && (rule == before || rule == number);
            let mut rules = self.rules_below(ROOT);
            rules.retain(|&rule| led_there(self.rib.number(rule)) && self.is_ungrouped_root(rule));
            rules.into_iter().for_each(|rule| self.change_root(rule, out));
        }
        before
    }

    /// Whether the rule is a root rule that leads to its number itself.
    fn is_ungrouped_root(&self, rule: NodeId) -> bool {
        self.group(rule).is_none() && self.rib.shortest_rule_above(rule).is_none()
    }

    /// Where the rules of the default table lead.
    fn default_table(&self) -> Option<u32> {
        match self.default_route {
            DefaultRoute::Exact | DefaultRoute::Speculative => None,
            DefaultRoute::Table(number) => Some(number),
            DefaultRoute::Followed => self.default,
        }
    }

    fn change_number(&mut self, rule: NodeId, root: Option<NodeId>, number: u32, out: &mut Out<C>) {
        self.rib.set_rule(rule, number);
        match (root, self.group(rule)) {
            (Some(root), _) => {
                let suffix = self.suffix(root, rule);
                out.push(Instruction::InsertSuffix { suffix, number });
            }
            (None, Some(group)) => out.push(Instruction::SetGroup { group, number }),
            (None, None) => self.change_root(rule, out),
        }
    }

    /// A new rule below a root rule, which leads to a group from then on.
    fn insert_below(&mut self, root: NodeId, rule: NodeId, out: &mut Out<C>) {
        let had_group = self.group(root).is_some();
        self.join_group(root, rule, out);
        if !had_group {
            self.change_root(root, out);
        }
    }

    fn remove_below(&mut self, root: NodeId, rule: NodeId, out: &mut Out<C>) {
        self.leave_group(root, rule, out);
        self.rib.unset_rule(rule);
        if self.group(root).is_none() {
            self.change_root(root, out);
        }
    }

    /// The node is about to be a root rule: every rule below the node goes into its group.
    fn gather_below(&mut self, node: NodeId, out: &mut Out<C>) {
        for rule in self.rules_below(node) {
            // The topmost rule below the node was the root rule of this rule.
            let (mut root, mut at) = (rule, rule);
            while let Some(parent) = self.rib.parent(at).filter(|&parent| parent != node) {
                root = if self.rib.number(parent).is_some() { parent } else { root };
                at = parent;
            }
            if root == rule {
                self.tell(out, |differentiator, rib, out| differentiator.remove(rib, rule, true, out));
            } else {
                self.leave_group(root, rule, out);
            }
            self.join_group(node, rule, out);
        }
    }

    /// The node is no root rule any more: every rule below it becomes a root rule, or goes into the group of a root
    /// rule.
    fn scatter_below(&mut self, node: NodeId, out: &mut Out<C>) {
        let rules = self.rules_below(node);
        for &rule in &rules {
            self.leave_group(node, rule, out);
        }
        self.rib.unset_rule(node);
        let mut roots = Vec::new();
        for rule in rules {
            match self.rib.shortest_rule_above(rule) {
                Some(root) => self.join_group(root, rule, out),
                None => roots.push(rule),
            }
        }
        for root in roots {
            self.insert_root(root, out);
        }
    }

    fn rules_below(&self, node: NodeId) -> Vec<NodeId> {
        self.walk_rules_below(node).collect()
    }

    fn count_below(&self, node: NodeId) -> usize {
        self.walk_rules_below(node).count()
    }

    fn walk_rules_below(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let nodes = std::iter::successors(self.rib.next_below(node, node), move |&at| self.rib.next_below(node, at));
        nodes.filter(|&at| self.rib.number(at).is_some())
    }

    fn join_group(&mut self, root: NodeId, rule: NodeId, out: &mut Out<C>) {
        let group = self.group(root).unwrap_or_else(|| {
            let group = self.vacant_groups.pop().unwrap_or_else(|| {
                self.group_rules.push(0);
                self.group_rules.len() as u32 - 1
            });
            if self.groups.len() <= root as usize {
                self.groups.resize(root as usize + 1, NO_GROUP);
            }
            self.groups[root as usize] = group;
            let number = self.rib.number(root).unwrap_or_default();
            out.push(Instruction::SetGroup { group, number });
            group
        });
        self.group_rules[group as usize] += 1;
        let (suffix, number) = (self.suffix(root, rule), self.rib.number(rule).unwrap_or_default());
        out.push(Instruction::InsertSuffix { suffix, number });
    }

    fn leave_group(&mut self, root: NodeId, rule: NodeId, out: &mut Out<C>) {
        let Some(group) = self.group(root) else { return };
        let suffix = self.suffix(root, rule);
        out.push(Instruction::RemoveSuffix { suffix });
        self.group_rules[group as usize] -= 1;
        if self.group_rules[group as usize] == 0 {
            self.groups[root as usize] = NO_GROUP;
            self.vacant_groups.push(group);
        }
    }

    fn group(&self, root: NodeId) -> Option<u32> {
        self.groups.get(root as usize).copied().filter(|&group| group != NO_GROUP)
    }

    /// Where the root rule leads; `None` = it is one of the default table.
    fn leads(&self, root: NodeId) -> Option<Leads> {
        match (self.group(root), self.rib.number(root).unwrap_or_default()) {
            (Some(group), _) => Some(Leads::to_group(group)),
            (None, number) if self.default_table() == Some(number) => None,
            (None, number) => Some(Leads::to_number(number)),
        }
    }

    fn insert_root(&mut self, root: NodeId, out: &mut Out<C>) {
        let leads = self.leads(root);
        self.tell(out, |differentiator, rib, out| differentiator.insert(rib, root, leads, out));
    }

    fn change_root(&mut self, root: NodeId, out: &mut Out<C>) {
        let leads = self.leads(root);
        self.tell(out, |differentiator, rib, out| differentiator.change(rib, root, leads, out));
    }

    fn suffix(&mut self, root: NodeId, rule: NodeId) -> Suffix {
        self.rib.write_prefix(rule, &mut self.prefix);
        Suffix {
            group: self.groups[root as usize],
            hash: self.rib.hash(rule),
            components: self.rib.components(rule) as u16,
            bytes: self.prefix[self.rib.prefix_bytes(root)..].into(),
        }
    }

    fn tell(&mut self, out: &mut Out<C>, what: impl FnOnce(&mut C, &Rib, &mut Vec<InstructionOf<C>>)) {
        what(&mut self.differentiator, &self.rib, &mut self.instructions);
        out.extend(self.instructions.drain(..).map(Instruction::RootRule));
    }
}
