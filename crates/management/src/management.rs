//! One node's management: its parts, and its inputs about faces and time.

use crate::{
    authorization::Authorizer,
    counters::ManagementCounters,
    dataset_store::{DatasetLimits, DatasetStore},
    effect::Effect,
    environment::{Environment, Times},
    face_events::FaceEvents,
    face_registry::{FaceProperties, FaceRegistry},
    fib_computation::{FibChange, FibLimits},
    fib_full::FibFull,
    log_lines,
    name_key::fixed_name,
    next_hop_sets::NextHop,
    own_interests::{Answer, OwnInterests, Purpose},
    pending_commands::PendingCommands,
    readvertise::ReadvertiseConfig,
    replies::Replies,
    rib::{Rib, RibLimits},
    routes::Routes,
    strategy_choice::{DEFAULT_CHOICES, StrategyChoices, StrategyError, StrategyRegistry},
    trust_config::TrustConfig,
};
use namewire_packet::{
    FaceId, Name, NameBuf,
    nfd::{FaceEventKind, FaceState, FaceStatus, FibEntry, RibEntry, StrategyChoice},
};
use namewire_shares::{Groups, PoolReader};
use std::collections::BTreeSet;

/// Prefixes that lead to management itself.
const OWN_PREFIXES: usize = 3;

/// Any route of an application for the router's own name is cheaper.
const OWN_NAME_COST: u64 = u32::MAX as u64;

/// FIB entries beside those that cover a name.
const NEARBY: usize = 6;

/// What the tables hold about one name ([`Management::tables_about`]).
#[derive(Clone, Debug, PartialEq)]
pub struct TablesAboutName {
    /// FIB entries.
    pub fib: Vec<FibEntry>,
    /// RIB entries.
    pub rib: Vec<RibEntry>,
    /// Strategy choices.
    pub choices: Vec<StrategyChoice>,
    /// The faces of the FIB entries' next hops, without counters.
    pub faces: Vec<FaceStatus>,
}

/// Limits and start-up choices.
#[derive(Clone, Debug, Default)]
pub struct ManagementConfig {
    /// Size of the RIB.
    pub rib: RibLimits,
    /// Size of the forwarder's FIB: what does not fit is refused.
    pub fib: FibLimits,
    /// The groups of the holders whose faces send commands.
    pub groups: Groups,
    /// Size of the dataset store.
    pub datasets: DatasetLimits,
    /// What the routing daemon is told about routes.
    pub readvertise: ReadvertiseConfig,
    /// Initial strategy choices: (prefix, strategy). Empty means [`DEFAULT_CHOICES`]; otherwise `/` gets the default
    /// strategy if it has no choice.
    pub strategies: Vec<(NameBuf, NameBuf)>,
    /// The router's own name, if it has one: Interests under it come to management, unless an application serves it.
    pub own_name: Option<NameBuf>,
    /// The rules of who may command.
    pub trust: TrustConfig,
    /// The user whose processes may command as the router itself may, if there is one.
    pub router_uid: Option<u32>,
}

/// The management of one node.
pub struct Management {
    pub(crate) prefix: NameBuf,
    /// `/localhop/nfd`, served if the configuration has rules for it.
    pub(crate) localhop_prefix: NameBuf,
    pub(crate) authorizer: Authorizer,
    pub(crate) routes: Routes,
    pub(crate) faces: FaceRegistry,
    pub(crate) events: FaceEvents,
    pub(crate) pending: PendingCommands,
    pub(crate) own_interests: OwnInterests,
    pub(crate) replies: Replies,
}

impl Management {
    /// Whether a name is under a prefix that management serves.
    pub fn serves(&self, name: Name<'_>) -> bool {
        [&self.prefix, &self.localhop_prefix].iter().any(|prefix| prefix.as_name().is_prefix_of(&name))
    }

    /// A node without faces and routes; the first FIB goes to `out`.
    ///
    /// # Errors
    /// If a configured strategy, or the default one for `/`, is unknown or refused, or the FIB has no room for all.
    pub fn new(
        config: ManagementConfig,
        registry: &mut dyn StrategyRegistry,
        out: &mut Vec<Effect>,
    ) -> Result<Self, StrategyError> {
        let mut choices = config.strategies;
        if choices.is_empty() {
            choices = DEFAULT_CHOICES.map(|(prefix, strategy)| (fixed_name(prefix), fixed_name(strategy))).to_vec();
        }
        let (_, default) = DEFAULT_CHOICES[0];
        let root = choices.iter().rev().find(|(prefix, _)| prefix.is_empty());
        let root = root.map_or_else(|| fixed_name(default), |(_, strategy)| strategy.clone());
        let mut strategies = StrategyChoices::new(registry.resolve(&root)?);
        for (prefix, strategy) in &choices {
            if !strategies.has_room_for(prefix.as_name()) {
                return Err(StrategyError::Full);
            }
            strategies.set(prefix.as_name(), registry.resolve(strategy)?);
        }
        let entries = config.fib.all.entries;
        if strategies.len() + OWN_PREFIXES > entries {
            return Err(FibFull::Entries(entries).into());
        }
        let prefix = fixed_name("/localhost/nfd");
        let rib = Rib::new(config.rib, &config.groups);
        let mut routes = Routes::new(rib, strategies, config.fib, config.readvertise);
        let internal = NextHop { face: FaceId::INTERNAL, cost: 0 };
        routes.manual.insert(prefix.as_name(), internal);
        let localhop_prefix = fixed_name("/localhop/nfd");
        if config.trust.localhop_rib.is_some() {
            routes.manual.insert(localhop_prefix.as_name(), internal);
        }
        if let Some(name) = &config.own_name {
            routes.manual.insert(name.as_name(), NextHop { cost: OWN_NAME_COST, ..internal });
        }
        let mut management = Management {
            prefix,
            localhop_prefix,
            authorizer: Authorizer::new(config.trust, config.router_uid, &config.groups),
            routes,
            faces: FaceRegistry::default(),
            events: FaceEvents::default(),
            pending: PendingCommands::default(),
            own_interests: OwnInterests::default(),
            replies: Replies::new(DatasetStore::new(config.datasets)),
        };
        management.update_fib(vec![NameBuf::new()], out);
        Ok(management)
    }

    /// Counts of what happened to requests so far.
    pub const fn counters(&self) -> &ManagementCounters {
        &self.replies.counters
    }

    /// Properties of a face that was reported.
    pub fn face(&self, face: FaceId) -> Option<&FaceProperties> {
        self.faces.get(face)
    }

    /// The strategy choices.
    pub const fn strategies(&self) -> &StrategyChoices {
        &self.routes.strategies
    }

    /// True if the FIB is what the routes make of it: no change waits for its next slice.
    pub fn is_settled(&self) -> bool {
        !self.routes.has_changes()
    }

    /// Computes no further slice of a large change from now on, because the forwarder's FIB is behind; or goes on.
    pub const fn hold_changes(&mut self, is_held: bool) {
        self.routes.is_held = is_held;
    }

    /// A number that grows whenever faces, routes, next hops or choices change.
    pub const fn revision(&self) -> u64 {
        self.replies.store.changes()
    }

    /// Starts or stops refusing commands that grow tables, because the system has no memory to spare.
    pub const fn set_short_of_memory(&mut self, is_short: bool) {
        self.routes.rib.set_short_of_memory(is_short);
    }

    /// Who holds how much of management's pools.
    pub fn pools(&self) -> Vec<PoolReader> {
        vec![self.routes.rib.pool(), self.authorizer.pending.pool()]
    }

    /// Prefixes in the FIB.
    pub fn fib_entries(&self) -> usize {
        self.routes.fib.len()
    }

    /// The registered routes.
    pub const fn rib(&self) -> &Rib {
        &self.routes.rib
    }

    /// The parts of the datasets `fib/list`, `rib/list`, `strategy-choice/list` and `faces/list` that say what happens
    /// to an Interest for `name`, and a few entries nearby.
    pub fn tables_about(&self, now: Times, name: Name<'_>) -> TablesAboutName {
        let fib = self.routes.fib.about(name, NEARBY, |face| self.faces.is_gone(face));
        let faces: BTreeSet<FaceId> =
            fib.iter().flat_map(|entry| &entry.next_hops).map(|next_hop| next_hop.face_id).collect();
        TablesAboutName {
            rib: self.routes.rib.about(now.mono_ns, name),
            choices: self
                .routes
                .strategies
                .dataset()
                .filter(|choice| choice.name.as_name().is_prefix_of(&name))
                .collect(),
            faces: self.faces.dataset().filter(|face| faces.contains(&face.face_id)).collect(),
            fib,
        }
    }

    /// What the FIB should have under exactly this name; see [`FibComputation::insertion`].
    pub fn fib_insertion(&self, name: Name<'_>) -> Option<FibChange> {
        self.routes.fib.insertion(name)
    }

    /// Records a face made by command or by a peer. Reporting a known face again replaces its properties.
    pub fn on_face_created(&mut self, now: Times, face: FaceProperties, out: &mut Vec<Effect>) {
        let is_new = self.faces.insert(face.clone()).is_none();
        self.replies.store.note_change();
        if is_new {
            log_lines::face_up(&face);
            self.events.announce(now, FaceEventKind::Created, &face, &mut self.replies, out);
        }
    }

    /// Tells watchers that the connection of a permanent face failed. Its routes stay.
    pub fn on_face_down(&mut self, now: Times, face: FaceId, out: &mut Vec<Effect>) {
        if let Some(properties) = self.faces.get(face).cloned() {
            self.faces.set_state(face, FaceState::Down);
            self.replies.store.note_change();
            self.events.announce(now, FaceEventKind::Down, &properties, &mut self.replies, out);
        }
    }

    /// Records that a permanent face has a connection again, and tells watchers.
    pub fn on_face_up(&mut self, now: Times, face: FaceProperties, out: &mut Vec<Effect>) {
        self.faces.set_state(face.face, FaceState::Up);
        self.on_face_created(now, face.clone(), out);
        log_lines::face_up_again(&face);
        self.events.announce(now, FaceEventKind::Up, &face, &mut self.replies, out);
    }

    /// Forgets a face. Its routes and next hops go with it, one slice of them now.
    pub fn on_face_closed(&mut self, now: Times, face: FaceId, out: &mut Vec<Effect>) {
        self.authorizer.forget_face(face);
        let properties = self.faces.remove(face);
        if properties.is_some() {
            self.replies.store.note_change();
        }
        self.routes.remove_face(face, &mut self.replies, out);
        if let Some(properties) = properties {
            self.events.announce(now, FaceEventKind::Destroyed, &properties, &mut self.replies, out);
        }
    }

    /// True if a face that is gone still has routes here. It may still be in the FIB.
    pub fn is_leaving(&self, face: FaceId) -> bool {
        self.routes.rib.is_gone(face)
    }

    /// Removes expired routes, continues changes that were too large for one call (a slice of each), and refuses
    /// commands that waited in vain for certificates, or carries out those that waited for revocation records.
    pub fn run_timers(&mut self, now: Times, environment: &mut dyn Environment, out: &mut Vec<Effect>) {
        self.expire_pending(now, environment, out);
        self.routes.run_changes(now, &mut self.replies, out);
        while let Some(purpose) = self.own_interests.take_timed_out(now.mono_ns) {
            self.on_ended(now, purpose, &Answer::TimedOut, out);
        }
        self.routes.readvertise.run(now, &mut self.own_interests, out);
    }

    /// Monotonic instant at which [`Management::run_timers`] has work.
    pub fn next_deadline(&self) -> Option<u64> {
        let deadlines = [
            self.routes.next_deadline_ns(),
            self.own_interests.next_deadline_ns(),
            self.routes.readvertise.next_due_ns().filter(|_| self.own_interests.has_room()),
            self.authorizer.pending.next_deadline_ns(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// An Interest of management's own has ended, with this answer.
    pub(crate) fn on_ended(&mut self, now: Times, purpose: Purpose, answer: &Answer<'_>, out: &mut Vec<Effect>) {
        match purpose {
            Purpose::Readvertise(prefix) => {
                let readvertise = &mut self.routes.readvertise;
                readvertise.on_answer(now, prefix.as_name(), answer, &mut self.replies.counters);
                readvertise.run(now, &mut self.own_interests, out);
            }
        }
    }

    /// Computes the FIB again at and under the changed prefixes, one slice of it now.
    pub(crate) fn update_fib(&mut self, changed: Vec<NameBuf>, out: &mut Vec<Effect>) {
        self.routes.update_fib(changed, &mut self.replies, out);
    }
}
