//! Strategies by name: `/localhost/nfd/strategy/<name>/v=<version>[/<key>~<value>…]`
//! (forwarding §4).

use crate::{
    ground::announcement_table::AnnouncementTable,
    strategies::{
        access::Access,
        asf::Asf,
        best_route::BestRoute,
        multicast::Multicast,
        parameters::{InvalidParameter, Parameters},
        random::Random,
        self_learning::SelfLearning,
    },
    verdict::strategy::{FirstNextHop, Strategy},
};
use namewire_packet::{Component, Name, NameBuf, tlv::types};
use std::sync::Arc;

/// Index of a strategy instance in a [`StrategyTable`].
pub type StrategyId = u32;

/// Most instances (name, version and parameters) of one router.
pub const MAX_INSTANCES: usize = 4096;

/// Why a strategy name cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StrategyError {
    /// There is no such strategy, or not in that version or later (status code 404).
    #[error("Unknown strategy; known are {}", known_strategies())]
    Unknown,
    /// A parameter is refused (status code 409).
    #[error("{0}")]
    Invalid(String),
    /// The table is full.
    #[error("more than {MAX_INSTANCES} strategy instances")]
    TooMany,
}

/// One line per strategy: name, version, constructor.
const STRATEGIES: &[(&str, u64, Constructor)] = &[
    ("access", 1, Access::create),
    ("asf", 5, Asf::create),
    ("best-route", 5, BestRoute::create),
    ("multicast", 5, Multicast::create),
    ("random", 1, Random::create),
    ("self-learning", 1, SelfLearning::create),
];

/// The last two components of every strategy's name, for messages.
pub fn known_strategies() -> String {
    STRATEGIES.iter().map(|(name, version, _)| format!("{name}/v={version}")).collect::<Vec<_>>().join(", ")
}

/// The short names of all strategies.
pub fn strategy_names() -> impl Iterator<Item = &'static str> {
    STRATEGIES.iter().map(|(name, _, _)| *name)
}

type Constructor = fn(&Parameters) -> Result<Arc<dyn Strategy>, InvalidParameter>;

impl From<InvalidParameter> for StrategyError {
    fn from(InvalidParameter(why): InvalidParameter) -> Self {
        StrategyError::Invalid(why)
    }
}

/// All strategy instances of a router. Ids stay valid for the router's life.
#[derive(Clone, Debug)]
pub struct StrategyTable {
    instances: Vec<Instance>,
    announcements: Arc<AnnouncementTable>,
}

/// A strategy with its parameters.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    name: NameBuf,
    strategy: Arc<dyn Strategy>,
    pub(crate) first_next_hop: FirstNextHop,
}

impl Instance {
    #[inline(always)]
    pub(crate) fn strategy(&self) -> &dyn Strategy {
        &*self.strategy
    }
}

impl Default for StrategyTable {
    /// Holds best-route with its defaults as id 0.
    fn default() -> Self {
        let mut table = StrategyTable { instances: Vec::new(), announcements: Arc::default() };
        let best_route = instance_name("best-route", 5);
        if let Err(error) = table.resolve(&best_route) {
            unreachable!("best-route is in the table above: {error}");
        }
        table
    }
}

/// `/localhost/nfd/strategy/<name>/v=<version>`.
pub fn instance_name(name: &str, version: u64) -> NameBuf {
    let mut instance = NameBuf::new();
    for part in ["localhost", "nfd", "strategy", name] {
        instance.push_generic(part.as_bytes());
    }
    instance.push_version(version);
    instance
}

impl StrategyTable {
    /// The instance with this id; the default strategy for an unknown id.
    pub fn get(&self, id: StrategyId) -> &dyn Strategy {
        self.instance(id).strategy()
    }

    #[inline(always)]
    pub(crate) fn instance(&self, id: StrategyId) -> &Instance {
        self.instances.get(id as usize).unwrap_or(&self.instances[0])
    }

    /// The announcements that strategies may attach to Data.
    pub fn announcements(&self) -> &AnnouncementTable {
        &self.announcements
    }

    /// Replaces the announcements that strategies may attach to Data.
    pub fn set_announcements(&mut self, announcements: Arc<AnnouncementTable>) {
        self.announcements = announcements;
    }

    /// Adds an instance of a strategy from outside this crate, under a name of its own.
    ///
    /// # Errors
    /// [`StrategyError::TooMany`] if the table holds [`MAX_INSTANCES`] instances.
    pub fn add(&mut self, name: NameBuf, strategy: Arc<dyn Strategy>) -> Result<StrategyId, StrategyError> {
        if self.instances.len() >= MAX_INSTANCES {
            return Err(StrategyError::TooMany);
        }
        let first_next_hop = strategy.first_next_hop();
        self.instances.push(Instance { name, strategy, first_next_hop });
        Ok(self.instances.len() as StrategyId - 1)
    }

    /// The full name of an instance, version included.
    pub fn name(&self, id: StrategyId) -> Option<&NameBuf> {
        self.instances.get(id as usize).map(|instance| &instance.name)
    }

    /// Finds or creates the instance that `requested` names. Without a version it is the highest one. An older version
    /// means the present one (NFD is stricter, but its users' scripts still name `asf/v=4`); a newer one is unknown.
    ///
    /// # Errors
    /// [`StrategyError::Unknown`] for another strategy or a newer version; [`StrategyError::Invalid`] for a malformed
    /// or refused parameter; [`StrategyError::TooMany`] if the table holds [`MAX_INSTANCES`] instances.
    pub fn resolve(&mut self, requested: &NameBuf) -> Result<(StrategyId, NameBuf), StrategyError> {
        let (name, version, create, parameters) = parse(requested.as_name())?;
        let mut instance = instance_name(name, version);
        parameters.iter().for_each(|&parameter| {
            instance.push(parameter);
        });
        if let Some(id) = self.instances.iter().position(|known| known.name == instance) {
            return Ok((id as StrategyId, instance));
        }
        let strategy = create(&Parameters::parse(parameters.into_iter())?)?;
        Ok((self.add(instance.clone(), strategy)?, instance))
    }
}

fn parse(requested: Name<'_>) -> Result<(&'static str, u64, Constructor, Vec<Component<'_>>), StrategyError> {
    let mut components = requested.components();
    for expected in ["localhost", "nfd", "strategy"] {
        if components.next() != Some(Component::generic(expected.as_bytes())) {
            return Err(StrategyError::Unknown);
        }
    }
    let name = components.next().filter(|c| c.type_number == types::GENERIC_COMPONENT).ok_or(StrategyError::Unknown)?;
    let &(name, version, create) =
        STRATEGIES.iter().find(|(known, _, _)| known.as_bytes() == name.value).ok_or(StrategyError::Unknown)?;
    let mut rest: Vec<Component<'_>> = components.collect();
    if let Some(asked) = rest.first().and_then(version_of) {
        rest.remove(0);
        if asked > version {
            return Err(StrategyError::Unknown);
        }
    }
    Ok((name, version, create, rest))
}

/// A version in either form: the typed component, or the marker `%FD%05` of old names.
fn version_of(component: &Component<'_>) -> Option<u64> {
    match component.value {
        [0xFD, number @ ..] if component.type_number == types::GENERIC_COMPONENT => {
            namewire_packet::tlv::read_nni(number).ok()
        }
        _ => component.version(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(uri: &str) -> Result<String, StrategyError> {
        StrategyTable::default().resolve(&uri.parse().unwrap()).map(|(_, name)| name.to_string())
    }

    #[test]
    fn versions_and_parameters() {
        let best_route = "/localhost/nfd/strategy/best-route/v=5";
        assert_eq!(resolve("/localhost/nfd/strategy/best-route").unwrap(), best_route);
        assert_eq!(resolve("/localhost/nfd/strategy/best-route/%FD%05").unwrap(), best_route);
        assert_eq!(resolve("/localhost/nfd/strategy/best-route/v=4").unwrap(), best_route);
        assert_eq!(resolve("/localhost/nfd/strategy/best-route/v=6"), Err(StrategyError::Unknown));
        assert_eq!(resolve("/localhost/nfd/strategy/no-such"), Err(StrategyError::Unknown));
        assert_eq!(resolve("/best-route"), Err(StrategyError::Unknown));
        let with = "/localhost/nfd/strategy/multicast/v=5/retx-suppression-initial~20/unknown~x";
        assert_eq!(resolve(with).unwrap(), with);
        for bad in ["retx-suppression-initial~x", "retx-suppression-max~1", "retx-suppression-multiplier~0.5", "word"] {
            let uri = format!("/localhost/nfd/strategy/multicast/v=5/{bad}");
            assert!(matches!(resolve(&uri), Err(StrategyError::Invalid(_))), "{bad}");
        }
    }

    #[test]
    fn every_strategy_has_the_version_of_nfd_and_takes_older_ones() {
        let versions =
            [("access", 1), ("asf", 5), ("best-route", 5), ("multicast", 5), ("random", 1), ("self-learning", 1)];
        for (name, version) in versions {
            let full = format!("/localhost/nfd/strategy/{name}/v={version}");
            assert_eq!(resolve(&format!("/localhost/nfd/strategy/{name}")).unwrap(), full);
            for older in 0..version {
                assert_eq!(resolve(&format!("/localhost/nfd/strategy/{name}/v={older}")).unwrap(), full);
                assert_eq!(resolve(&format!("/localhost/nfd/strategy/{name}/%FD%0{older}")).unwrap(), full);
            }
            let newer = resolve(&format!("/localhost/nfd/strategy/{name}/v={}", version + 1));
            assert_eq!(newer, Err(StrategyError::Unknown));
            assert!(StrategyError::Unknown.to_string().contains(&format!("{name}/v={version}")));
        }
    }

    #[test]
    fn parameters_of_asf() {
        let asf = |parameters: &str| resolve(&format!("/localhost/nfd/strategy/asf/v=5/{parameters}"));
        assert!(asf("probing-interval~1000/max-timeouts~1/measurements-lifetime~1001").is_ok());
        let bad = [
            "probing-interval~999",
            "probing-interval~-1",
            "max-timeouts~0",
            "max-timeouts~x",
            "measurements-lifetime~60000",
            "probing-interval~400000",
            "retx-suppression-initial~0",
        ];
        for parameters in bad {
            assert!(matches!(asf(parameters), Err(StrategyError::Invalid(_))), "{parameters}");
        }
    }

    #[test]
    fn strategies_without_parameters_refuse_them() {
        for name in ["access", "random", "self-learning"] {
            let refused = resolve(&format!("/localhost/nfd/strategy/{name}/v=1/x~1"));
            assert!(matches!(refused, Err(StrategyError::Invalid(why)) if why.contains(name)));
        }
    }

    #[test]
    fn the_same_name_is_the_same_instance() {
        let mut table = StrategyTable::default();
        let name = "/localhost/nfd/strategy/multicast".parse().unwrap();
        let first = table.resolve(&name).unwrap();
        assert_eq!(table.resolve(&name).unwrap(), first);
        assert_eq!(table.name(first.0), Some(&first.1));
    }
}
