//! Commands that change tables: `rib`, `fib`, `strategy-choice` and `cs`.
//!
//! Source: management.md §4 (codes), §5 (fields, defaults, answers). Each answer holds exactly the fields that §5
//! lists, because `nfdc` rejects a 200 with any other.

use crate::{
    command::{CommandResult, Refusal, invalid_parameters, refusal},
    effect::Effect,
    environment::Environment,
    management::Management,
    manual_next_hops::MAX_MANUAL_NEXT_HOPS,
    next_hop_sets::NextHop,
    request::Request,
    rib::{MAX_PREFIX_BYTES, MAX_PREFIX_COMPONENTS, RibFull, Route, deadline_ns},
    strategy_choice::{MAX_STRATEGY_CHOICES, StrategyError},
};
use namewire_packet::{
    FaceId, Name, NameBuf,
    nfd::{ControlParameters, NodeState, Part, cs_flags, origin, route_flags},
};

impl Management {
    /// `rib/register`. Refused for a face that does not exist (410, as ndnd does), and for names of this forwarder's
    /// own management. The route uses the share of the holder whose face the command came from, even if it leads
    /// elsewhere.
    pub(crate) fn register(
        &mut self,
        request: &Request<'_>,
        parameters: ControlParameters,
        out: &mut Vec<Effect>,
    ) -> CommandResult {
        let prefix = required_name(&parameters)?;
        self.check_prefix_length(prefix.as_name(), "Route prefix cannot exceed 32 components")?;
        self.check_not_own(prefix.as_name())?;
        let face = self.existing_face(&parameters)?;
        let expires_at_ns = parameters.expiration_period_ms.and_then(|ms| deadline_ns(request.now.mono_ns, ms));
        let route = Route {
            face,
            origin: parameters.origin.unwrap_or(origin::APP),
            cost: parameters.cost.unwrap_or(0),
            flags: parameters.flags.unwrap_or(route_flags::CHILD_INHERIT),
            expires_at_ns,
            holder: self.faces.holder(request.incoming()),
        };
        let inserted = self.routes.insert(request.now, prefix.as_name(), route, &mut self.replies, out);
        let fib_depends = inserted.map_err(|full| self.rib_full(&full))?;
        if fib_depends {
            self.update_fib(vec![prefix.clone()], out);
        }
        Ok(ControlParameters {
            name: Some(prefix),
            face_id: Some(face),
            origin: Some(route.origin),
            cost: Some(route.cost),
            flags: Some(route.flags),
            expiration_period_ms: parameters.expiration_period_ms,
            ..Default::default()
        })
    }

    /// `rib/unregister`: 200 even if there is no such route.
    pub(crate) fn unregister(&mut self, parameters: ControlParameters, out: &mut Vec<Effect>) -> CommandResult {
        let prefix = required_name(&parameters)?;
        let face = parameters.face_id.unwrap_or(FaceId::INVALID);
        let origin = parameters.origin.unwrap_or(origin::APP);
        if self.routes.rib.remove(prefix.as_name(), face, origin) {
            self.update_fib(vec![prefix.clone()], out);
        }
        Ok(ControlParameters { name: Some(prefix), face_id: Some(face), origin: Some(origin), ..Default::default() })
    }

    /// `fib/add-nexthop`. Repeating it sets a new cost.
    pub(crate) fn add_next_hop(&mut self, parameters: ControlParameters, out: &mut Vec<Effect>) -> CommandResult {
        let prefix = required_name(&parameters)?;
        self.check_prefix_length(prefix.as_name(), "FIB entry prefix cannot exceed 32 components")?;
        self.check_not_own(prefix.as_name())?;
        let face = self.existing_face(&parameters)?;
        self.check_room(prefix.as_name())?;
        let cost = parameters.cost.unwrap_or(0);
        match self.routes.manual.insert(prefix.as_name(), NextHop { face, cost }) {
            Some(true) => self.update_fib(vec![prefix.clone()], out),
            Some(false) => {}
            None => {
                let text = format!("FIB is full (limit is {MAX_MANUAL_NEXT_HOPS} next hops added by command)");
                return Err(refusal(507, text));
            }
        }
        Ok(ControlParameters { name: Some(prefix), face_id: Some(face), cost: Some(cost), ..Default::default() })
    }

    /// `fib/remove-nexthop`: 200 even if there is no such next hop.
    pub(crate) fn remove_next_hop(&mut self, parameters: ControlParameters, out: &mut Vec<Effect>) -> CommandResult {
        let prefix = required_name(&parameters)?;
        self.check_not_own(prefix.as_name())?;
        let face = parameters.face_id.unwrap_or(FaceId::INVALID);
        if self.routes.manual.remove(prefix.as_name(), face) {
            self.update_fib(vec![prefix.clone()], out);
        }
        Ok(ControlParameters { name: Some(prefix), face_id: Some(face), ..Default::default() })
    }

    /// `strategy-choice/set`: the answer holds the full instance name.
    pub(crate) fn set_strategy(
        &mut self,
        parameters: ControlParameters,
        environment: &mut dyn Environment,
        out: &mut Vec<Effect>,
    ) -> CommandResult {
        let prefix = required_name(&parameters)?;
        let requested = parameters.strategy.ok_or_else(|| invalid_parameters("Strategy is required"))?;
        self.check_prefix_length(prefix.as_name(), "Prefix has too many components (limit is 32)")?;
        self.check_room(prefix.as_name())?;
        if !self.routes.strategies.has_room_for(prefix.as_name()) {
            let text = format!("Too many strategy choices (limit is {MAX_STRATEGY_CHOICES})");
            return Err(refusal(507, text));
        }
        let strategy = environment.resolve(&requested).map_err(|error| {
            let code = match error {
                StrategyError::Unknown(_) => 404,
                StrategyError::Invalid(_) => 409,
                StrategyError::Full | StrategyError::Fib(_) => 507,
            };
            refusal(code, error.to_string())
        })?;
        let instance = strategy.instance.clone();
        let old = self.routes.strategies.set(prefix.as_name(), strategy);
        self.update_fib(vec![prefix.clone()], out);
        self.routes.release_strategies(old.map(|old| old.id), environment);
        Ok(ControlParameters { name: Some(prefix), strategy: Some(instance), ..Default::default() })
    }

    /// `strategy-choice/unset`: 200 even if not set; never for `/`.
    pub(crate) fn unset_strategy(
        &mut self,
        parameters: ControlParameters,
        environment: &mut dyn Environment,
        out: &mut Vec<Effect>,
    ) -> CommandResult {
        let prefix = required_name(&parameters)?;
        if prefix.is_empty() {
            return Err(invalid_parameters("the strategy of / can be changed but not unset"));
        }
        if let Some(old) = self.routes.strategies.unset(prefix.as_name()) {
            self.update_fib(vec![prefix.clone()], out);
            self.routes.release_strategies(Some(old.id), environment);
        }
        Ok(ControlParameters { name: Some(prefix), ..Default::default() })
    }

    /// `cs/config`: the answer holds the settings after the change. The policy and the bytes are our additions;
    /// the answer has them only if the command names them.
    pub(crate) fn configure_cs(
        &mut self,
        parameters: ControlParameters,
        environment: &mut dyn Environment,
        out: &mut Vec<Effect>,
    ) -> CommandResult {
        let (flags, mask) = (parameters.flags.unwrap_or(0), parameters.mask.unwrap_or(0));
        let policy = parameters.cs_policy.map(|text| environment.resolve_cs_policy(&text)).transpose();
        let policy = policy.map_err(|reason| invalid_parameters(&reason))?;
        let mut state = NodeState::default();
        environment.fill(Part::Cs, &mut state);
        let info = state.cs.unwrap_or_default();
        let bit = |bit: u64| (mask & bit != 0).then_some(flags & bit != 0);
        let effect = Effect::ConfigureCs {
            capacity_packets: parameters.capacity,
            capacity_bytes: parameters.cs_capacity_bytes,
            policy: policy.clone(),
            admit: bit(cs_flags::ADMIT),
            serve: bit(cs_flags::SERVE),
        };
        let known = cs_flags::ADMIT | cs_flags::SERVE;
        let names_capacity = parameters.capacity.is_some() || parameters.cs_capacity_bytes.is_some();
        if names_capacity || policy.is_some() || mask & known != 0 {
            out.push(effect);
        }
        Ok(ControlParameters {
            capacity: Some(parameters.capacity.unwrap_or(info.capacity)),
            flags: Some((info.flags & !(mask & known)) | (flags & mask & known)),
            cs_policy: policy,
            cs_capacity_bytes: parameters.cs_capacity_bytes,
            ..Default::default()
        })
    }

    /// The answer when there is no room for a route.
    pub(crate) fn rib_full(&mut self, full: &RibFull) -> Refusal {
        self.replies.counters.no_memory += u64::from(*full == RibFull::NoMemory);
        refusal(507, full.to_string())
    }

    /// 507 while the system has no memory to spare, or if the FIB has no room for the prefix.
    fn check_room(&mut self, prefix: Name<'_>) -> Result<(), Refusal> {
        if self.routes.rib.is_short_of_memory() {
            self.replies.counters.no_memory += 1;
            return Err(refusal(507, "the system has no memory for it"));
        }
        self.routes.room_in_fib(prefix).map_err(|full| refusal(507, full.to_string()))
    }

    /// 414 for a prefix that the tables refuse, with NFD's words for too many components.
    pub(crate) fn check_prefix_length(&self, prefix: Name<'_>, too_many_components: &str) -> Result<(), Refusal> {
        const { assert!(MAX_PREFIX_COMPONENTS == 32, "the texts say 32") };
        if prefix.len() > MAX_PREFIX_COMPONENTS {
            return Err(refusal(414, too_many_components));
        }
        let bytes_max = MAX_PREFIX_BYTES.min(self.routes.fib_limits.longest_prefix_bytes);
        if prefix.value().len() > bytes_max {
            return Err(refusal(414, format!("Prefix cannot exceed {bytes_max} bytes")));
        }
        Ok(())
    }

    /// The face that the command means, if it exists.
    fn existing_face(&self, parameters: &ControlParameters) -> Result<FaceId, Refusal> {
        let face = parameters.face_id.unwrap_or(FaceId::INVALID);
        match self.faces.get(face) {
            Some(_) => Ok(face),
            None => Err(refusal(410, "Face not found")),
        }
    }

    /// Refuses prefixes of management itself: commands must keep reaching it, whatever an application registers.
    pub(crate) fn check_not_own(&self, prefix: Name<'_>) -> Result<(), Refusal> {
        if self.prefix.as_name().is_prefix_of(&prefix) {
            return Err(refusal(403, "Prefix /localhost/nfd belongs to the forwarder"));
        }
        // `/localhop/nfd` itself may lead to a hub (ndn-autoconfig). Our own management is nearer.
        let is_served = self.authorizer.config().localhop_rib.is_some();
        if is_served && self.localhop_prefix.as_name().is_prefix_of(&prefix) && self.localhop_prefix.as_name() != prefix
        {
            return Err(refusal(403, "Prefixes under /localhop/nfd belong to the forwarder"));
        }
        Ok(())
    }
}

fn required_name(parameters: &ControlParameters) -> Result<NameBuf, Refusal> {
    parameters.name.clone().ok_or_else(|| invalid_parameters("Name is required"))
}
