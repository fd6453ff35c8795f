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
    command::{Refusal, malformed, read_parameters, refusal},
    effect::Effect,
    environment::{Environment, Times},
    log_lines::Done,
    management::Management,
    replies::ReplyTo,
    request::Request,
    rib::Route,
    verbs::{self, Command, Kind, Row},
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
        let Ok(interest) = Interest::parse(interest) else {
            self.replies.counters.not_an_interest += 1;
            return;
        };
        match self.read_request(now, incoming, &interest, pit_token, &Fetching::default()) {
            Some(request) => self.on_request(&request, environment, out),
            None => self.replies.counters.foreign_prefix += 1,
        }
    }

    /// The request in an Interest, for which some certificates may have been fetched. `None`: management does not serve
    /// its prefix.
    pub(crate) fn read_request<'a>(
        &self,
        now: Times,
        incoming: FaceId,
        interest: &'a Interest<'a>,
        pit_token: Option<PitToken>,
        fetching: &'a Fetching,
    ) -> Option<Request<'a>> {
        let name = interest.name();
        let prefix = if self.prefix.as_name().is_prefix_of(&name) {
            Prefix::Localhost
        } else if self.authorizer.config().localhop_rib.is_some() && self.localhop_prefix.as_name().is_prefix_of(&name)
        {
            Prefix::Localhop
        } else {
            return None;
        };
        let reply_to = ReplyTo { from: incoming, name: name.to_buf(), pit_token };
        Some(Request { now, prefix, interest, reply_to, fetching })
    }

    /// Handles one request.
    pub(crate) fn on_request(
        &mut self,
        request: &Request<'_>,
        environment: &mut dyn Environment,
        out: &mut Vec<Effect>,
    ) {
        let incoming = request.incoming();
        let is_foreign = self.faces.get(incoming).is_some_and(|face| face.scope == FaceScope::NonLocal);
        if request.prefix == Prefix::Localhost && is_foreign {
            let denial = Denial::NotAllowed(format!("face {incoming} is not local"));
            let refusal = self.denied(&denial);
            return self.replies.refuse(&request.reply_to, &refusal, out);
        }
        match row_of(request) {
            Ok(Row { kind: Kind::Command(command), .. }) => self.on_command(request, command, environment, out),
            Ok(Row { kind: Kind::Dataset(dataset), .. }) => self.on_dataset_request(request, dataset, environment, out),
            Ok(Row { kind: Kind::Other(serve), .. }) => serve(self, request, environment, out),
            Err(refusal) => self.replies.refuse(&request.reply_to, &refusal, out),
        }
    }

    fn on_command(
        &mut self,
        request: &Request<'_>,
        command: &Command,
        environment: &mut dyn Environment,
        out: &mut Vec<Effect>,
    ) {
        match self.carry_out(request, command, environment, out) {
            Ok(Some(body)) => {
                self.replies.succeed(&request.reply_to, body, out);
                self.keep_answer(request, out);
            }
            Ok(None) => {} // the command waits, or its face is gone
            Err(refusal) => self.replies.refuse(&request.reply_to, &refusal, out),
        }
    }

    /// Reads, judges and carries out a command, and writes a line to the log if it is done.
    fn carry_out(
        &mut self,
        request: &Request<'_>,
        command: &Command,
        environment: &mut dyn Environment,
        out: &mut Vec<Effect>,
    ) -> Result<Option<ControlParameters>, Refusal> {
        if request.interest.name().value().len() > MAX_COMMAND_NAME_BYTES {
            return Err(refusal(414, format!("Command name cannot exceed {MAX_COMMAND_NAME_BYTES} bytes")));
        }
        let mut parameters = read_parameters(request.interest)?;
        let arrival =
            Arrival { request, module: command.module, names_face: parameters.face_id, parameter_components: 1 };
        if self.admit(&arrival, out)? != Admission::Now {
            return Ok(None);
        }
        command.check_fields(&parameters)?;
        if command.takes_self && parameters.face_id.is_none_or(|face| face == FaceId::INVALID) {
            parameters.face_id = Some(request.incoming());
        }
        let before = self.route_of(command.module, &parameters);
        let body = (command.run)(self, request, parameters, environment, out)?;
        if let Some(body) = &body {
            let (faces, rib) = (&self.faces, &self.routes.rib);
            (command.log)(&Done { request, body, before: before.as_ref(), faces, rib });
        }
        Ok(body)
    }

    /// The route that a command of `rib` names, if there is one.
    fn route_of(&self, module: Module, parameters: &ControlParameters) -> Option<Route> {
        let prefix = parameters.name.as_ref().filter(|_| module == Module::Rib)?;
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
            && (self.on_record(now, data.name(), Some(packet), environment, out)
                || self.on_certificate(now, from, &data, environment, out))
        {
            return;
        }
        if let (Some(_), Ok(interest)) = (nack, Interest::parse(packet))
            && self.on_record(now, interest.name(), None, environment, out)
        {
            return;
        }
        match self.own_interests.take_answered(packet, nack) {
            Some((purpose, answer)) => self.on_ended(now, purpose, &answer, out),
            None => self.replies.counters.unsolicited_answers += 1,
        }
    }

    /// Keeps the answer just given if it went to another host, because it may be lost on its way.
    pub(crate) fn keep_answer(&mut self, request: &Request<'_>, out: &[Effect]) {
        if let (Prefix::Localhop, Some(Effect::Reply { packet, .. })) = (request.prefix, out.last()) {
            let (name, now_ns) = (request.interest.name(), request.now.mono_ns);
            self.authorizer.recent_answers.add(name, request.incoming(), packet.clone(), now_ns);
        }
    }
}

/// The row that serves a request.
///
/// # Errors
/// The answer to a request that no row serves under its prefix.
fn row_of(request: &Request<'_>) -> Result<&'static Row, Refusal> {
    let name = request.interest.name();
    // A component of another type makes another name, which rules for `rib` do not catch.
    let text = |at| name.get(at).filter(|one| one.type_number == types::GENERIC_COMPONENT).map(|one| one.value);
    let row = verbs::find(text(2).unwrap_or_default(), text(3).unwrap_or_default());
    if request.prefix == Prefix::Localhop {
        let row = row.filter(|row| row.is_for_other_hosts);
        return row.ok_or_else(|| refusal(501, "Only rib commands and rib/list are served under /localhop/nfd"));
    }
    row.ok_or_else(|| unknown(name))
}

/// The answer to a request that no row serves.
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
