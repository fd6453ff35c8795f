//! Strategy choice: the strategy that forwards under each prefix.
//!
//! Source: forwarding.md §4, drop-in.md §11. The longest prefix decides; `/` always has a strategy and cannot be unset.
//! Choices are stored and reported by the full instance name (with version) that the registry resolved.
//!
//! Limit: [`MAX_STRATEGY_CHOICES`]. Cost: an operation takes O(log n).

use crate::{
    fib_full::FibFull,
    name_key::{NameKey, subtree},
};
use namewire_packet::{Name, NameBuf, nfd::StrategyChoice};
use std::collections::BTreeMap;

/// Most prefixes with a strategy of their own; each is a FIB entry.
pub const MAX_STRATEGY_CHOICES: usize = 10_000;

/// The strategies of an unconfigured node (`nfd.conf.sample`).
pub const DEFAULT_CHOICES: [(&str, &str); 4] = [
    ("/", "/localhost/nfd/strategy/best-route"),
    ("/localhost", "/localhost/nfd/strategy/multicast"),
    ("/localhost/nfd", "/localhost/nfd/strategy/best-route"),
    ("/ndn/broadcast", "/localhost/nfd/strategy/multicast"),
];

/// A strategy that is ready to forward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedStrategy {
    /// Its number in the forwarder's strategy table.
    pub id: u32,
    /// Its full name, with version and parameters.
    pub instance: NameBuf,
}

/// Why a strategy is unavailable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StrategyError {
    /// No strategy has this name, or none has it in that version or later. The text lists the known ones (answer 404).
    #[error("Unknown strategy; known are {0}")]
    Unknown(String),
    /// The strategy refuses its version or parameters, for this reason (answer 409).
    #[error("Error instantiating strategy: {0}")]
    Invalid(String),
    /// The strategy table is full (answer 507).
    #[error("Strategy table is full")]
    Full,
    /// The forwarder's FIB has no room for the entries of the configured choices.
    #[error(transparent)]
    Fib(#[from] FibFull),
}

/// The forwarder's strategy table, as management uses it.
pub trait StrategyRegistry {
    /// Finds or makes the instance that `requested` names; without a version, the newest. The same request gives the
    /// same id as long as the instance is in use.
    ///
    /// # Errors
    /// If there is no such strategy, or it refuses version or parameters.
    fn resolve(&mut self, requested: &NameBuf) -> Result<ResolvedStrategy, StrategyError>;

    /// Tells the registry that no prefix uses the instance any more.
    fn release(&mut self, id: u32) {
        let _ = id;
    }
}

/// All strategy choices of this node.
#[derive(Debug)]
pub struct StrategyChoices {
    choices: BTreeMap<NameKey, ResolvedStrategy>,
    root_id: u32,
}

impl StrategyChoices {
    /// Choices with `root` for everything.
    pub fn new(root: ResolvedStrategy) -> Self {
        let root_id = root.id;
        StrategyChoices { choices: BTreeMap::from([(NameKey::new(Name::ROOT), root)]), root_id }
    }

    /// Strategy of exactly this prefix.
    pub fn get(&self, prefix: Name<'_>) -> Option<&ResolvedStrategy> {
        self.choices.get(prefix.value())
    }

    /// Strategy of `/`.
    pub const fn root_id(&self) -> u32 {
        self.root_id
    }

    /// True if [`StrategyChoices::set`] would take a choice for this prefix.
    pub fn has_room_for(&self, prefix: Name<'_>) -> bool {
        self.choices.len() < MAX_STRATEGY_CHOICES || self.choices.contains_key(prefix.value())
    }

    /// Sets the strategy of a prefix and returns the former one, if any. Call [`StrategyChoices::has_room_for`] first.
    pub fn set(&mut self, prefix: Name<'_>, strategy: ResolvedStrategy) -> Option<ResolvedStrategy> {
        if prefix.is_empty() {
            self.root_id = strategy.id;
        }
        self.choices.insert(NameKey::new(prefix), strategy)
    }

    /// Unsets the strategy of a prefix other than `/` and returns it.
    pub fn unset(&mut self, prefix: Name<'_>) -> Option<ResolvedStrategy> {
        if prefix.is_empty() {
            return None;
        }
        self.choices.remove(prefix.value())
    }

    /// Number of prefixes with a choice.
    pub fn len(&self) -> usize {
        self.choices.len()
    }

    /// Never: `/` has a choice.
    pub fn is_empty(&self) -> bool {
        self.choices.is_empty()
    }

    /// True if any prefix uses the instance. Cost: a scan.
    pub fn uses(&self, id: u32) -> bool {
        self.choices.values().any(|choice| choice.id == id)
    }

    /// The dataset `strategy-choice/list`.
    pub fn dataset(&self) -> impl Iterator<Item = StrategyChoice> {
        self.choices
            .iter()
            .map(|(key, choice)| StrategyChoice { name: key.to_buf(), strategy: choice.instance.clone() })
    }

    pub(crate) fn keys_under<'t>(
        &'t self,
        prefix: Name<'t>,
        after: Option<&'t NameKey>,
    ) -> impl Iterator<Item = &'t NameKey> {
        subtree(&self.choices, prefix, after).map(|(key, _)| key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strategy(id: u32) -> ResolvedStrategy {
        ResolvedStrategy { id, instance: format!("/strategy/{id}").parse().expect("name") }
    }

    #[test]
    fn the_root_always_has_a_strategy() {
        let mut choices = StrategyChoices::new(strategy(1));
        assert_eq!(choices.unset(Name::ROOT), None);
        assert_eq!(choices.set(Name::ROOT, strategy(2)), Some(strategy(1)));
        assert_eq!((choices.root_id(), choices.uses(1), choices.uses(2)), (2, false, true));
    }

    #[test]
    fn a_full_table_takes_changes_but_no_new_prefix() {
        let mut choices = StrategyChoices::new(strategy(1));
        for i in 1..MAX_STRATEGY_CHOICES {
            let prefix: NameBuf = format!("/{i}").parse().expect("name");
            assert!(choices.has_room_for(prefix.as_name()));
            choices.set(prefix.as_name(), strategy(1));
        }
        let (known, new): (NameBuf, NameBuf) = ("/1".parse().expect("name"), "/new".parse().expect("name"));
        assert!(choices.has_room_for(known.as_name()));
        assert!(!choices.has_room_for(new.as_name()));
        assert_eq!(choices.dataset().count(), MAX_STRATEGY_CHOICES);
    }
}
