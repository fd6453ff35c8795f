//! Management: from a request to what must be done.
//!
//! Source: management.md §1, §4, §6.1. Where NFD is silent (unknown verb, malformed
//! parameters), this forwarder answers with a code and a text: a client that waits
//! for a time-out learns nothing.
//!
//! Every request ends in exactly one of: a reply now; a reply when a face command is
//! done or a face event happens; a counter of [`ManagementCounters`] saying why not.

use crate::{
    announcements::Announcements,
    authorization::{
        Authorizer, Denial, Module, Prefix,
        gate::{Admission, Arrival},
    },
    command::{COMMAND_NAME_LEN, Refusal, Verb, malformed, read_parameters, refusal},
    counters::ManagementCounters,
    cs_erasure::CsErasure,
    dataset_store::{DatasetLimits, DatasetStore, FRESHNESS_MS},
    datasets::Dataset,
    effect::{Effect, Ticket},
    environment::{Environment, Times},
    face_commands::FaceCommand,
    face_events::FaceEvents,
    face_registry::{FaceProperties, FaceRegistry},
    fib_computation::{FibChange, FibComputation, NextHop},
    manual_next_hops::ManualNextHops,
    own_interests::OwnInterests,
    readvertise::{Readvertise, ReadvertiseConfig},
    rib::{Rib, RibLimits},
    strategy_choice::{DEFAULT_CHOICES, StrategyChoices, StrategyError, StrategyRegistry},
    trust_config::TrustConfig,
};
use hashbrown::HashMap;
use namewire_packet::{
    Component, DataBuilder, FaceId, Interest, MAX_PACKET_BYTES, Name, NameBuf,
    lp::PitToken,
    nfd::{ControlParameters, ControlResponse, FaceEventKind, FaceScope},
    tlv::types,
};

/// Longest name of a command in octets: the answer repeats it, and may repeat the
/// parameters, within one packet.
const MAX_COMMAND_NAME_BYTES: usize = 4096;

/// Most octets of a client's component that an answer's text repeats.
const MAX_QUOTED_BYTES: usize = 64;

/// Limits and start-up choices.
#[derive(Clone, Debug, Default)]
pub struct ManagementConfig {
    /// Size of the RIB.
    pub rib: RibLimits,
    /// Size of the dataset store.
    pub datasets: DatasetLimits,
    /// What the routing daemon is told.
    pub readvertise: ReadvertiseConfig,
    /// Strategy choices to start with: (prefix, strategy). Empty means
    /// [`DEFAULT_CHOICES`]; otherwise `/` without a choice gets the default one.
    pub strategies: Vec<(NameBuf, NameBuf)>,
    /// Who may command.
    pub trust: TrustConfig,
    /// The user whose peers may command as the router itself, if there is one.
    pub router_uid: Option<u32>,
}

/// Where an answer goes.
#[derive(Clone, Debug)]
pub(crate) struct ReplyTo {
    pub(crate) name: NameBuf,
    pub(crate) pit_token: Option<PitToken>,
}

/// The management of one node.
pub struct Management {
    pub(crate) prefix: NameBuf,
    /// `/localhop/nfd`, served if the configuration has rules for it.
    pub(crate) localhop_prefix: NameBuf,
    pub(crate) authorizer: Authorizer,
    pub(crate) rib: Rib,
    pub(crate) announcements: Announcements,
    pub(crate) manual: ManualNextHops,
    pub(crate) strategies: StrategyChoices,
    /// Strategies that were chosen once, and may still be in the FIB.
    pub(crate) former_strategies: Vec<u32>,
    pub(crate) fib: FibComputation,
    pub(crate) faces: FaceRegistry,
    pub(crate) face_commands: HashMap<Ticket, FaceCommand>,
    pub(crate) cs_erasures: HashMap<Ticket, CsErasure>,
    pub(crate) last_ticket: u64,
    pub(crate) readvertise: Readvertise,
    pub(crate) own_interests: OwnInterests,
    pub(crate) last_command_ms: u64,
    pub(crate) events: FaceEvents,
    pub(crate) store: DatasetStore,
    pub(crate) counters: ManagementCounters,
}

impl Management {
    /// A node without faces and routes; the first FIB goes to `out`.
    ///
    /// # Errors
    /// If a configured strategy, or `/`'s default one, cannot be had.
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
        let prefix = fixed_name("/localhost/nfd");
        let mut manual = ManualNextHops::default();
        manual.insert(prefix.as_name(), NextHop { face: FaceId::INTERNAL, cost: 0 });
        let localhop_prefix = fixed_name("/localhop/nfd");
        if config.trust.localhop_rib.is_some() {
            manual.insert(localhop_prefix.as_name(), NextHop { face: FaceId::INTERNAL, cost: 0 });
        }
        let mut management = Management {
            prefix,
            localhop_prefix,
            authorizer: Authorizer::new(config.trust, config.router_uid),
            rib: Rib::new(config.rib),
            announcements: Announcements::default(),
            manual,
            strategies,
            former_strategies: Vec::new(),
            fib: FibComputation::new(),
            faces: FaceRegistry::default(),
            face_commands: HashMap::new(),
            cs_erasures: HashMap::new(),
            last_ticket: 0,
            readvertise: Readvertise::new(config.readvertise),
            own_interests: OwnInterests::default(),
            last_command_ms: 0,
            events: FaceEvents::default(),
            store: DatasetStore::new(config.datasets),
            counters: ManagementCounters::default(),
        };
        management.update_fib(vec![NameBuf::new()], out);
        Ok(management)
    }

    /// What happened to requests so far.
    pub const fn counters(&self) -> &ManagementCounters {
        &self.counters
    }

    /// Properties of a face that was reported.
    pub fn face(&self, face: FaceId) -> Option<&FaceProperties> {
        self.faces.get(face)
    }

    /// The strategy choices.
    pub const fn strategies(&self) -> &StrategyChoices {
        &self.strategies
    }

    /// A number that grows whenever faces, routes, next hops or choices change.
    pub const fn revision(&self) -> u64 {
        self.store.changes()
    }

    /// Refuses what makes tables longer from now on, or no longer: the system has no memory to spare.
    pub const fn set_short_of_memory(&mut self, is_short: bool) {
        self.rib.set_short_of_memory(is_short);
    }

    /// The registered routes.
    pub const fn rib(&self) -> &Rib {
        &self.rib
    }

    /// What the FIB has to have under exactly this name; see [`FibComputation::insertion`].
    pub fn fib_insertion(&self, name: Name<'_>) -> Option<FibChange> {
        self.fib.insertion(name)
    }

    /// True if this request's answer shows counters, so that a router should gather
    /// them before [`Management::on_interest`].
    pub fn needs_counters(interest: &[u8]) -> bool {
        let Ok(interest) = Interest::parse(interest) else { return false };
        let name = interest.name();
        let dataset = name.get(2).zip(name.get(3)).and_then(|(module, verb)| Dataset::find(module.value, verb.value));
        dataset.is_some_and(Dataset::shows_counters)
    }

    /// Handles one Interest that reached the internal face.
    ///
    /// `incoming` is the face it came from, `pit_token` the token to send back with
    /// the answer. Answers to face commands and event requests come later.
    pub fn on_interest(
        &mut self,
        now: Times,
        incoming: FaceId,
        interest: &[u8],
        pit_token: Option<PitToken>,
        environment: &mut dyn Environment,
        out: &mut Vec<Effect>,
    ) {
        match Interest::parse(interest) {
            Ok(interest) => self.on_request(now, incoming, &interest, pit_token, 0, environment, out),
            Err(_) => self.counters.not_an_interest += 1,
        }
    }

    /// Handles one Interest, for which `fetches` certificates were fetched so far.
    #[allow(clippy::too_many_arguments)] // those of `on_interest`
    pub(crate) fn on_request(
        &mut self,
        now: Times,
        incoming: FaceId,
        interest: &Interest<'_>,
        pit_token: Option<PitToken>,
        fetches: usize,
        environment: &mut dyn Environment,
        out: &mut Vec<Effect>,
    ) {
        let name = interest.name();
        let prefix = if self.prefix.as_name().is_prefix_of(&name) {
            Prefix::Localhost
        } else if self.authorizer.config().localhop_rib.is_some() && self.localhop_prefix.as_name().is_prefix_of(&name)
        {
            Prefix::Localhop
        } else {
            self.counters.foreign_prefix += 1;
            return;
        };
        let reply_to = ReplyTo { name: name.to_buf(), pit_token };
        let is_foreign = self.faces.get(incoming).is_some_and(|face| face.scope == FaceScope::NonLocal);
        if prefix == Prefix::Localhost && is_foreign {
            let denial = Denial::NotAllowed(format!("face {incoming} is not local"));
            let refusal = self.denied(&denial);
            return self.refuse(&reply_to, &refusal, out);
        }
        // Of another type it is another name, which rules for `rib` do not catch.
        let text = |at| name.get(at).filter(|one| one.type_number == types::GENERIC_COMPONENT).map(|one| one.value);
        let (module, verb) = (text(2).unwrap_or_default(), text(3).unwrap_or_default());
        let found = Verb::find(module, verb);
        if (module, verb) == (b"rib", b"announce") {
            self.on_announce(now, incoming, prefix, interest, fetches, &reply_to, out);
        } else if prefix == Prefix::Localhop {
            match found.filter(|verb| verb.module() == Module::Rib) {
                Some(verb) => {
                    self.on_command(now, incoming, prefix, verb, interest, fetches, &reply_to, environment, out);
                }
                None => self.refuse(&reply_to, &refusal(501, "Only rib commands are served under /localhop/nfd"), out),
            }
        } else if let Some(dataset) = Dataset::find(module, verb) {
            self.on_dataset_request(now, dataset, interest, &reply_to, environment, out);
        } else if (module, verb) == (b"faces", b"events") {
            self.on_event_request(now, interest, &reply_to, out);
        } else if let Some(verb) = found {
            self.on_command(now, incoming, prefix, verb, interest, fetches, &reply_to, environment, out);
        } else {
            self.refuse(&reply_to, &unknown(name), out);
        }
    }

    #[allow(clippy::too_many_arguments)] // the request, taken apart once
    fn on_command(
        &mut self,
        now: Times,
        incoming: FaceId,
        prefix: Prefix,
        verb: Verb,
        interest: &Interest<'_>,
        fetches: usize,
        reply_to: &ReplyTo,
        environment: &mut dyn Environment,
        out: &mut Vec<Effect>,
    ) {
        if interest.name().value().len() > MAX_COMMAND_NAME_BYTES {
            let text = format!("Command name cannot exceed {MAX_COMMAND_NAME_BYTES} octets");
            return self.refuse(reply_to, &refusal(414, text), out);
        }
        let mut parameters = match read_parameters(interest) {
            Ok(parameters) => parameters,
            Err(refusal) => return self.refuse(reply_to, &refusal, out),
        };
        let arrival = Arrival {
            prefix,
            module: verb.module(),
            incoming,
            names_face: parameters.face_id,
            interest,
            parameter_components: 1,
            pit_token: reply_to.pit_token,
            fetches,
        };
        match self.admit(now, &arrival, out) {
            Ok(Admission::Now) => {}
            Ok(Admission::Later | Admission::Orphaned) => return,
            Err(refusal) => return self.refuse(reply_to, &refusal, out),
        }
        if let Err(refusal) = verb.check_fields(&parameters) {
            return self.refuse(reply_to, &refusal, out);
        }
        // FaceId 0 or none is the face that the command came from (§5).
        let takes_self = !matches!(verb, Verb::FacesCreate | Verb::FacesDestroy | Verb::CsErase);
        if takes_self && parameters.face_id.is_none_or(|face| face == FaceId::INVALID) {
            parameters.face_id = Some(incoming);
        }
        let result = match verb {
            Verb::FacesCreate => self.create_face(parameters, reply_to, out),
            Verb::FacesUpdate => self.update_face(parameters, reply_to, out),
            Verb::FacesDestroy => self.destroy_face(parameters, reply_to, out),
            Verb::FibAddNextHop => self.add_next_hop(parameters, out).map(Some),
            Verb::FibRemoveNextHop => self.remove_next_hop(parameters, out).map(Some),
            Verb::CsConfig => self.configure_cs(parameters, environment, out).map(Some),
            Verb::CsErase => self.erase_cs(parameters, reply_to, out),
            Verb::StrategyChoiceSet => self.set_strategy(parameters, environment, out).map(Some),
            Verb::StrategyChoiceUnset => self.unset_strategy(parameters, environment, out).map(Some),
            Verb::RibRegister => self.register(now, parameters, out).map(Some),
            Verb::RibUnregister => self.unregister(parameters, out).map(Some),
        };
        match result {
            Ok(Some(body)) => {
                self.succeed(reply_to, body, out);
                self.keep_answer(now, prefix, incoming, reply_to, out);
            }
            Ok(None) => {} // the answer comes when the face command is done
            Err(refusal) => self.refuse(reply_to, &refusal, out),
        }
    }

    /// Takes note of a face, made by command or by a peer. Reporting a known face
    /// again replaces its properties.
    pub fn on_face_created(&mut self, now: Times, face: FaceProperties, out: &mut Vec<Effect>) {
        let is_new = self.faces.insert(face.clone()).is_none();
        self.store.note_change();
        if is_new {
            self.announce(now, FaceEventKind::Created, &face, out);
        }
    }

    /// Tells watchers that the connection of a permanent face failed. Its routes stay.
    pub fn on_face_down(&mut self, now: Times, face: FaceId, out: &mut Vec<Effect>) {
        if let Some(properties) = self.faces.get(face).cloned() {
            self.announce(now, FaceEventKind::Down, &properties, out);
        }
    }

    /// Takes note that a permanent face has a connection again, and tells watchers.
    pub fn on_face_up(&mut self, now: Times, face: FaceProperties, out: &mut Vec<Effect>) {
        self.on_face_created(now, face.clone(), out);
        self.announce(now, FaceEventKind::Up, &face, out);
    }

    /// Removes routes whose time has come, goes on with changes that were too large for one call, a slice of each,
    /// and refuses commands that wait in vain.
    pub fn run_timers(&mut self, now: Times, out: &mut Vec<Effect>) {
        self.expire_pending(now, out);
        self.run_route_changes(now, out);
        self.time_out_own_interests(now, out);
        self.run_readvertise(now, out);
    }

    /// Monotonic instant at which [`Management::run_timers`] has something to do.
    pub fn next_deadline(&self) -> Option<u64> {
        let deadlines = [
            self.has_route_changes().then_some(0),
            self.rib.next_deadline_ns(),
            self.own_interests.next_deadline_ns(),
            self.next_readvertise_ns(),
            self.authorizer.pending.next_deadline_ns(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// A number for something that is answered later.
    pub(crate) const fn next_ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }

    pub(crate) fn succeed(&mut self, to: &ReplyTo, body: ControlParameters, out: &mut Vec<Effect>) {
        self.counters.commands_ok += 1;
        self.store.note_change();
        self.respond(to, &ControlResponse::ok(body), FRESHNESS_MS, out);
    }

    /// Keeps the answer just given, if it went to another host and may be lost on its way.
    pub(crate) fn keep_answer(&mut self, now: Times, prefix: Prefix, face: FaceId, to: &ReplyTo, out: &[Effect]) {
        if let (Prefix::Localhop, Some(Effect::Reply { packet, .. })) = (prefix, out.last()) {
            self.authorizer.recent_answers.add(to.name.as_name(), face, packet.clone(), now.mono_ns);
        }
    }

    pub(crate) fn refuse(&mut self, to: &ReplyTo, refusal: &ControlResponse, out: &mut Vec<Effect>) {
        self.counters.refused += 1;
        // A command's name is used once, another name's next request may succeed.
        let is_command = to.name.len() > COMMAND_NAME_LEN;
        self.respond(to, refusal, if is_command { FRESHNESS_MS } else { 0 }, out);
    }

    fn respond(&mut self, to: &ReplyTo, response: &ControlResponse, freshness_ms: u64, out: &mut Vec<Effect>) {
        let packet = DataBuilder::new(&to.name).freshness_ms(freshness_ms).content(&response.to_wire()).sign_digest();
        self.send(packet, to.pit_token, out);
    }

    /// Emits a reply, if it fits a packet. True if it did.
    pub(crate) fn send(&mut self, packet: Vec<u8>, pit_token: Option<PitToken>, out: &mut Vec<Effect>) -> bool {
        let fits = packet.len() <= MAX_PACKET_BYTES;
        if fits {
            out.push(Effect::Reply { packet, pit_token });
        } else {
            self.counters.reply_too_large += 1;
        }
        fits
    }
}

/// A name that stands in this crate's source.
pub(crate) fn fixed_name(uri: &str) -> NameBuf {
    uri.parse().expect("names in the source are well-formed")
}

/// The answer to a request that no module handles.
fn unknown(name: Name<'_>) -> Refusal {
    match (name.get(2), name.get(3)) {
        (Some(module), Some(verb)) if module.type_number == types::GENERIC_COMPONENT => {
            refusal(501, format!("Unknown command or dataset {}/{}", quoted(module), quoted(verb)))
        }
        (None, _) => malformed("no module and verb after /localhost/nfd"),
        _ => malformed("no verb after the module"),
    }
}

fn quoted(component: Component<'_>) -> String {
    if component.value.len() <= MAX_QUOTED_BYTES {
        component.to_string()
    } else {
        format!("({} octets)", component.value.len())
    }
}
