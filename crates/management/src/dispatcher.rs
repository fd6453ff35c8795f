//! The dispatcher: from a request to the effects that it causes.
//!
//! Source: management.md §1, §4, §6.1. Where NFD is silent (unknown verb, malformed parameters), this forwarder answers
//! with a code and a text, because a client learns nothing from a time-out.
//!
//! Every request ends in exactly one way: it gets a reply now; it gets a reply when a face command is done or a face
//! event happens; or a counter of [`ManagementCounters`] says why it gets none.

use crate::{
    authorization::{
        Module, Prefix,
        gate::{Admission, Arrival},
        pending::Fetching,
    },
    capture_commands::{add_to_capture, start_capture, stop_capture},
    command::{Refusal, Verb, malformed, read_parameters, refusal},
    datasets::Dataset,
    effect::Effect,
    environment::{Environment, Times},
    log_commands::set_log_levels,
    log_lines,
    management::Management,
    replies::ReplyTo,
    rib::Route,
    tag_commands::{advertise_tags, join_tags, withdraw_tags},
};
use namewire_packet::{
    Component, Data, FaceId, Interest, NackReason, Name,
    lp::PitToken,
    nfd::{ControlParameters, FaceScope, origin},
    tlv::types,
};
use namewire_security::trust::Denial;

/// Longest name of a command in bytes. The answer repeats the name, and may repeat the parameters, within one packet.
const MAX_COMMAND_NAME_BYTES: usize = 4096;

/// Most bytes of a client's component that the text of an answer repeats.
const MAX_QUOTED_BYTES: usize = 64;

impl Management {
    /// Handles one Interest that reached the internal face.
    ///
    /// `incoming` is the face it came from, `pit_token` the token to send back with the answer. Face commands and event
    /// requests are answered later.
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
            Ok(interest) => {
                self.on_request(now, incoming, &interest, pit_token, &Fetching::default(), environment, out)
            }
            Err(_) => self.replies.counters.not_an_interest += 1,
        }
    }

    /// Handles one Interest, for which some certificates may have been fetched.
    #[allow(clippy::too_many_arguments)] // the parameters of `on_interest`
    pub(crate) fn on_request(
        &mut self,
        now: Times,
        incoming: FaceId,
        interest: &Interest<'_>,
        pit_token: Option<PitToken>,
        fetching: &Fetching,
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
            self.replies.counters.foreign_prefix += 1;
            return;
        };
        let reply_to = ReplyTo { from: incoming, name: name.to_buf(), pit_token };
        let is_foreign = self.faces.get(incoming).is_some_and(|face| face.scope == FaceScope::NonLocal);
        if prefix == Prefix::Localhost && is_foreign {
            let denial = Denial::NotAllowed(format!("face {incoming} is not local"));
            let refusal = self.denied(&denial);
            return self.replies.refuse(&reply_to, &refusal, out);
        }
        // A component of another type makes another name, which rules for `rib` do not catch.
        let text = |at| name.get(at).filter(|one| one.type_number == types::GENERIC_COMPONENT).map(|one| one.value);
        let (module, verb) = (text(2).unwrap_or_default(), text(3).unwrap_or_default());
        let found = Verb::find(module, verb);
        if (module, verb) == (b"rib", b"announce") {
            self.on_announce(now, incoming, prefix, interest, fetching, &reply_to, out);
        } else if prefix == Prefix::Localhop {
            let dataset = Dataset::find(module, verb).filter(|dataset| dataset.is_for_other_hosts());
            match found.filter(|verb| verb.module() == Module::Rib) {
                Some(verb) => {
                    self.on_command(now, incoming, prefix, verb, interest, fetching, &reply_to, environment, out);
                }
                None => match dataset {
                    Some(dataset) => self.on_dataset_request(now, dataset, interest, &reply_to, environment, out),
                    None => {
                        let refusal = refusal(501, "Only rib commands and rib/list are served under /localhop/nfd");
                        self.replies.refuse(&reply_to, &refusal, out);
                    }
                },
            }
        } else if let Some(dataset) = Dataset::find(module, verb) {
            self.on_dataset_request(now, dataset, interest, &reply_to, environment, out);
        } else if (module, verb) == (b"status", b"name") {
            self.on_name_request(now, interest, &reply_to, out);
        } else if (module, verb) == (b"faces", b"events") {
            self.events.on_request(now, interest, &reply_to, &mut self.replies, out);
        } else if (module, verb) == (b"capture", b"piece") {
            self.on_piece_request(now, incoming, interest, environment);
        } else if let Some(verb) = found {
            self.on_command(now, incoming, prefix, verb, interest, fetching, &reply_to, environment, out);
        } else {
            self.replies.refuse(&reply_to, &unknown(name), out);
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
        fetching: &Fetching,
        reply_to: &ReplyTo,
        environment: &mut dyn Environment,
        out: &mut Vec<Effect>,
    ) {
        if interest.name().value().len() > MAX_COMMAND_NAME_BYTES {
            let text = format!("Command name cannot exceed {MAX_COMMAND_NAME_BYTES} bytes");
            return self.replies.refuse(reply_to, &refusal(414, text), out);
        }
        let mut parameters = match read_parameters(interest) {
            Ok(parameters) => parameters,
            Err(refusal) => return self.replies.refuse(reply_to, &refusal, out),
        };
        let arrival = Arrival {
            prefix,
            module: verb.module(),
            incoming,
            names_face: parameters.face_id,
            interest,
            parameter_components: 1,
            pit_token: reply_to.pit_token,
            fetching,
        };
        match self.admit(now, &arrival, out) {
            Ok(Admission::Now) => {}
            Ok(Admission::Later | Admission::Orphaned) => return,
            Err(refusal) => return self.replies.refuse(reply_to, &refusal, out),
        }
        if let Err(refusal) = verb.check_fields(&parameters) {
            return self.replies.refuse(reply_to, &refusal, out);
        }
        if verb.takes_self() && parameters.face_id.is_none_or(|face| face == FaceId::INVALID) {
            parameters.face_id = Some(incoming);
        }
        let before = self.route_of(verb, &parameters);
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
            Verb::RibRegister => self.register(now, incoming, parameters, out).map(Some),
            Verb::RibUnregister => self.unregister(parameters, out).map(Some),
            Verb::TagsAdvertise => advertise_tags(now, incoming, parameters, environment).map(Some),
            Verb::TagsWithdraw => withdraw_tags(incoming, parameters, environment).map(Some),
            Verb::TagsJoin => join_tags(incoming, &parameters, environment).map(Some),
            Verb::CaptureStart => start_capture(now, incoming, parameters, environment).map(Some),
            Verb::CaptureAdd => add_to_capture(incoming, parameters, environment).map(Some),
            Verb::CaptureStop => stop_capture(incoming, parameters, environment).map(Some),
            Verb::LogSet => set_log_levels(&parameters, environment).map(Some),
        };
        match result {
            Ok(Some(body)) => {
                self.log_done(verb, &body, before.as_ref(), incoming, interest);
                self.replies.succeed(reply_to, body, out);
                self.keep_answer(now, prefix, incoming, reply_to, out);
            }
            Ok(None) => {} // the answer comes when the face command is done
            Err(refusal) => self.replies.refuse(reply_to, &refusal, out),
        }
    }

    /// Logs what a command did, and whether two users have a prefix of `/localhost` since.
    fn log_done(
        &self,
        verb: Verb,
        done: &ControlParameters,
        before: Option<&Route>,
        incoming: FaceId,
        interest: &Interest<'_>,
    ) {
        let by = log_lines::Sender { faces: &self.faces, incoming, interest };
        log_lines::command_done(verb, done, before, &by);
        let new_prefix = done.name.as_ref().filter(|_| verb == Verb::RibRegister && before.is_none());
        let contested = new_prefix.and_then(|prefix| {
            let other = self.routes.rib.held_by_another(prefix.as_name(), self.faces.holder(incoming))?;
            Some((prefix, other.face))
        });
        if let Some((prefix, other)) = contested {
            log_lines::prefix_contested(prefix, &self.faces, incoming, other);
        }
    }

    /// The route that a command of `rib` names, if there is one.
    fn route_of(&self, verb: Verb, parameters: &ControlParameters) -> Option<Route> {
        let prefix = parameters.name.as_ref().filter(|_| verb.module() == Module::Rib)?;
        let (face, origin) = (parameters.face_id?, parameters.origin.unwrap_or(origin::APP));
        let mut routes = self.routes.rib.routes(prefix.as_name()).iter();
        routes.find(|route| (route.face, route.origin) == (face, origin)).copied()
    }

    /// Takes Data, or a Nack with the Interest it refuses, that reached the internal face. `from` is the face that
    /// brought Data; `None`, if it is unknown.
    pub fn on_answer(
        &mut self,
        now: Times,
        from: Option<FaceId>,
        packet: &[u8],
        nack: Option<NackReason>,
        environment: &mut dyn Environment,
        out: &mut Vec<Effect>,
    ) {
        if let (None, Ok(data)) = (nack, Data::parse(packet))
            && self.on_certificate(now, from, &data, environment, out)
        {
            return;
        }
        match self.own_interests.take_answered(packet, nack) {
            Some((purpose, answer)) => self.on_ended(now, purpose, &answer, out),
            None => self.replies.counters.unsolicited_answers += 1,
        }
    }

    /// Keeps the answer just given if it went to another host, because it may be lost on its way.
    pub(crate) fn keep_answer(&mut self, now: Times, prefix: Prefix, face: FaceId, to: &ReplyTo, out: &[Effect]) {
        if let (Prefix::Localhop, Some(Effect::Reply { packet, .. })) = (prefix, out.last()) {
            self.authorizer.recent_answers.add(to.name.as_name(), face, packet.clone(), now.mono_ns);
        }
    }
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
        format!("({} bytes)", component.value.len())
    }
}
