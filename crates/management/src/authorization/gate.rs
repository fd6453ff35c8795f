//! The gate: a command passes, is refused, or waits for a certificate. This file also takes new settings of
//! authorization.

use super::{
    Claim, Module, PassedCommand,
    pending::{FETCH_LIFETIME_MS, Fetching, PendingCommand, Source, ask},
    replay::Sender,
    revocation::RECORD_WAIT_MS,
};
use crate::{
    command::{Refusal, refusal, signature_of},
    effect::Effect,
    environment::{Environment, Times},
    log_lines,
    management::Management,
    next_hop_sets::NextHop,
    replies::ReplyTo,
    request::Request,
    trust_config::TrustConfig,
};
use namewire_packet::{Data, FaceId, Interest, Name, NameBuf};
use namewire_security::{
    Certificate,
    trust::{AnchorCertificate, Denial, Failure, RevocationRecord, SignedPacket, Teller, check_parameters_digest},
};
use namewire_shares::HolderId;
use std::path::PathBuf;

/// A command at the gate.
pub(crate) struct Arrival<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) module: Module,
    /// The FaceId among its parameters.
    pub(crate) names_face: Option<FaceId>,
    /// Components of the name that are parameters: 1, or 0 for `rib/announce`.
    pub(crate) parameter_components: usize,
}

/// What happens to a command that is not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It is carried out.
    Now,
    /// It comes again when a certificate is there, or its answer is on its way already.
    Later,
    /// The face that it came from is gone, and no one waits for the answer.
    Orphaned,
}

impl Management {
    /// Replaces the rules of who may command. Routes and faces stay as they are.
    pub fn set_trust(&mut self, trust: TrustConfig, out: &mut Vec<Effect>) {
        let internal = NextHop { face: FaceId::INTERNAL, cost: 0 };
        if trust.localhop_rib.is_some() {
            self.routes.manual.insert(self.localhop_prefix.as_name(), internal);
        } else {
            self.routes.manual.remove(self.localhop_prefix.as_name(), FaceId::INTERNAL);
        }
        if *self.authorizer.config() != trust {
            log_lines::trust_replaced();
        }
        self.authorizer.certificates.revocations_mut().retain_files(&trust.revocations);
        self.authorizer.set_config(trust);
        self.update_fib(vec![self.localhop_prefix.clone()], out);
    }

    /// What passed before the router started at `start_unix_ms`, of commands that keys signed; `are_all` if none is
    /// missing. No such command passes again.
    pub fn remember_commands(&mut self, now: Times, before: &[PassedCommand], are_all: bool, start_unix_ms: u64) {
        self.authorizer.replay.remember(now, before, are_all, start_unix_ms);
    }

    /// From now on, tells of each command that a key signed and that passes ([`Effect::KeepCommand`]), or no longer
    /// does. Returns those that have passed so far and are remembered.
    pub fn keep_commands(&mut self, is_on: bool) -> Vec<PassedCommand> {
        self.authorizer.replay.keep_passed(is_on);
        self.authorizer.replay.all_passed().collect()
    }

    /// The commands that keys signed, that have passed and are remembered.
    pub fn passed_commands(&self) -> impl Iterator<Item = PassedCommand> + '_ {
        self.authorizer.replay.all_passed()
    }

    /// Sets the certificates that are in an anchor's file or directory now.
    pub fn set_anchors(&mut self, path: PathBuf, anchors: Vec<AnchorCertificate>) {
        self.authorizer.set_anchors(path, anchors);
    }

    /// Sets the revocation records that are in a file or directory now.
    pub fn set_revocations(&mut self, path: PathBuf, records: Vec<RevocationRecord>) {
        self.authorizer.certificates.revocations_mut().set_file(path, records);
    }

    /// Judges the Data of a prefix announcement that came through `incoming`.
    ///
    /// # Errors
    /// Why it is not accepted.
    pub fn authorize_announcement(&mut self, now: Times, incoming: FaceId, data: &Data<'_>) -> Result<(), Denial> {
        self.authorizer.authorize_announcement(data, self.faces.get(incoming), now)
    }

    /// Asks whether a command may be carried out. A command from [`FaceId::INTERNAL`] always may, because the process
    /// that runs the router hands it in. No packet has that incoming face: no link has the number, and no strategy
    /// sends an Interest of management back to it.
    ///
    /// # Errors
    /// The answer that refuses it.
    pub(crate) fn admit(&mut self, arrival: &Arrival<'_>, out: &mut Vec<Effect>) -> Result<Admission, Refusal> {
        let &Request { interest, fetching, .. } = arrival.request;
        let incoming = arrival.request.incoming();
        if incoming == FaceId::INTERNAL {
            return Ok(Admission::Now);
        }
        if self.faces.get(incoming).is_none() {
            self.replies.counters.orphaned += 1;
            return Ok(Admission::Orphaned);
        }
        let host = teller(self.faces.holder(incoming));
        let signature = signature_of(interest, arrival.parameter_components)?;
        let denial = match self.judge_arrival(arrival, signature, out) {
            Ok(admission) => return Ok(admission),
            // The client sent a command again while the first copy is worked on; it gets the first copy's answer.
            Err(Failure::Denied(Denial::Replayed(_))) if self.pending.will_answer(interest.name()) => {
                return Ok(Admission::Later);
            }
            Err(Failure::Denied(Denial::Replayed(_))) if self.answer_again(arrival.request, out) => {
                return Ok(Admission::Later);
            }
            Err(Failure::Denied(denial)) => {
                let is_revoked = matches!(denial, Denial::CertificateRevoked { .. });
                let was_fetched = !fetching.asked.is_empty() && !is_revoked;
                // If a fetched certificate has expired or is revoked, there may be a newer one of that key.
                let is_over = is_revoked || matches!(denial, Denial::CertificateExpired(_));
                if (was_fetched || is_over)
                    && let Some(namewire_packet::KeyLocator::Name(name)) = signature.and_then(|s| s.key_locator())
                {
                    self.authorizer.certificates.forget_chain(name, Some(host));
                }
                if was_fetched && fetching.source == Some(Source::Network) {
                    let command = self.pending_command(arrival.request, fetching.at_its_host(denial.clone()));
                    if self.authorizer.pending.add(command, out) {
                        return Ok(Admission::Later);
                    }
                }
                denial
            }
            // An Interest for this name would itself be a command, and management's own commands are always allowed.
            Err(Failure::CertificateMissing(certificate)) if self.is_own_name(certificate.as_name()) => {
                Denial::unknown_signer(certificate.as_name())
            }
            Err(Failure::CertificateMissing(certificate)) => {
                let command = self.pending_command(arrival.request, fetching.with(certificate));
                if self.authorizer.pending.add(command, out) {
                    return Ok(Admission::Later);
                }
                Denial::TooManyPending
            }
        };
        Err(self.denied(&denial))
    }

    /// Judges a command. It passes, or waits for revocation records.
    fn judge_arrival(
        &mut self,
        arrival: &Arrival<'_>,
        signature: Option<SignedPacket<'_>>,
        out: &mut Vec<Effect>,
    ) -> Result<Admission, Failure> {
        let &Request { now, prefix, interest, fetching, .. } = arrival.request;
        let gone = || Denial::not_allowed("the face is gone");
        let face = self.faces.get(arrival.request.incoming()).ok_or_else(gone)?;
        let claim = Claim { now, prefix, module: arrival.module, face, names_face: arrival.names_face, signature };
        if signature.is_some() {
            check_parameters_digest(interest)?;
        }
        let sender = self.authorizer.judge(&claim)?;
        if let Some(Sender::Key(_)) = sender {
            let (due, open) = self.authorizer.look_up(&claim);
            let is_own = |name: &NameBuf| self.is_own_name(name.as_name());
            out.extend(due.iter().filter(|one| !is_own(&one.prefix)).map(|one| ask(&one.prefix, None)));
            let open: Vec<NameBuf> = open.into_iter().filter(|name| !is_own(name)).collect();
            if !open.is_empty() && !fetching.has_waited_for_records {
                let deadline_ns = now.mono_ns.saturating_add(RECORD_WAIT_MS * 1_000_000);
                let command = self.pending_command(arrival.request, fetching.for_records(open));
                let waits = self.authorizer.pending.add_for_records(PendingCommand { deadline_ns, ..command });
                return if waits { Ok(Admission::Later) } else { Err(Denial::TooManyPending.into()) };
            }
        }
        self.authorizer.pass(&claim, sender)?;
        out.extend(self.authorizer.replay.take_passed().into_iter().map(Effect::KeepCommand));
        Ok(Admission::Now)
    }

    fn pending_command(&self, request: &Request<'_>, fetching: Fetching) -> PendingCommand {
        let incoming = request.incoming();
        PendingCommand {
            interest: request.interest.wire().to_vec(),
            incoming,
            holder: self.faces.holder(incoming),
            pit_token: request.reply_to.pit_token,
            fetching,
            deadline_ns: request.now.mono_ns.saturating_add(FETCH_LIFETIME_MS * 1_000_000),
        }
    }

    /// True for names that this management serves, or would serve with other settings.
    fn is_own_name(&self, name: Name<'_>) -> bool {
        [&self.prefix, &self.localhop_prefix].into_iter().any(|prefix| prefix.as_name().is_prefix_of(&name))
    }

    /// Counts a denial and returns its answer.
    pub(crate) fn denied(&mut self, denial: &Denial) -> Refusal {
        self.authorizer.count(denial);
        refusal(403, format!("authorization rejected: {denial}"))
    }

    /// Repeats the answer to a command of another host, if it was kept. True if it was.
    fn answer_again(&mut self, request: &Request<'_>, out: &mut Vec<Effect>) -> bool {
        let (name, now_ns) = (request.interest.name(), request.now.mono_ns);
        let answer = self.authorizer.recent_answers.find(name, request.incoming(), now_ns);
        let Some(packet) = answer.map(<[u8]>::to_vec) else { return false };
        self.replies.send(packet, request.reply_to.pit_token, out)
    }

    /// Takes Data that answers [`Effect::Express`] and came through face `from`: the commands that waited for this
    /// certificate are judged again. False if none waited.
    pub(crate) fn on_certificate(
        &mut self,
        now: Times,
        from: Option<FaceId>,
        data: &Data<'_>,
        environment: &mut dyn Environment,
        out: &mut Vec<Effect>,
    ) -> bool {
        let name = data.name();
        if !self.authorizer.pending.is_waited_for(name) {
            return false;
        }
        let host = from.and_then(|face| self.faces.get(face)).map(|face| face.holder);
        let (source, commands) = self.authorizer.pending.take_waiting_for(name, host);
        self.authorizer.pending.ask_again(name, out);
        let teller = host.filter(|_| source == Source::Host).map(teller);
        let is_certificate = match Certificate::parse(data.wire()) {
            Ok(certificate) => {
                self.authorizer.certificates.add_fetched(certificate, teller);
                true
            }
            Err(_) => false,
        };
        for command in commands {
            if is_certificate && let Ok(interest) = Interest::parse(&command.interest) {
                let fetching = command.fetching.answered_by(source);
                let request = self.read_request(now, command.incoming, &interest, command.pit_token, &fetching);
                if let Some(request) = request {
                    self.on_request(&request, environment, out);
                }
            } else if source == Source::Host || !self.authorizer.pending.add_at_its_host(&command, out) {
                self.refuse_pending(&command, out);
            }
        }
        true
    }

    /// Takes an answer to a question for revocation records: Data, or a Nack for this name. False if it is none. The
    /// commands that waited for it are judged again.
    pub(crate) fn on_record(
        &mut self,
        now: Times,
        name: Name<'_>,
        wire: Option<&[u8]>,
        environment: &mut dyn Environment,
        out: &mut Vec<Effect>,
    ) -> bool {
        let is_answer = self.authorizer.take_record(name, wire);
        if is_answer {
            for command in self.authorizer.pending.take_with_record(name) {
                self.go_on(now, command, environment, out);
            }
        }
        is_answer
    }

    /// Judges a command again that has waited for revocation records.
    fn go_on(&mut self, now: Times, command: PendingCommand, environment: &mut dyn Environment, out: &mut Vec<Effect>) {
        let fetching = command.fetching.without_records();
        let Ok(interest) = Interest::parse(&command.interest) else { return };
        if let Some(request) = self.read_request(now, command.incoming, &interest, command.pit_token, &fetching) {
            self.on_request(&request, environment, out);
        }
    }

    /// Refuses the commands whose certificates did not come, and goes on with those whose revocation records did not.
    pub(crate) fn expire_pending(&mut self, now: Times, environment: &mut dyn Environment, out: &mut Vec<Effect>) {
        for command in self.authorizer.pending.take_due(now.mono_ns) {
            if command.fetching.records.is_empty() {
                self.refuse_pending(&command, out);
            } else {
                self.go_on(now, command, environment, out);
            }
        }
    }

    fn refuse_pending(&mut self, command: &PendingCommand, out: &mut Vec<Effect>) {
        let Ok(interest) = Interest::parse(&command.interest) else { return };
        let Some(missing) = command.fetching.asked.last() else { return };
        self.authorizer.certificates.forget_issued_by(missing.as_name(), Some(teller(command.holder)));
        if self.faces.get(command.incoming).is_none() {
            return self.replies.counters.orphaned += 1;
        }
        let reply_to = ReplyTo { from: command.incoming, name: interest.name().to_buf(), pit_token: command.pit_token };
        let denial = command.fetching.denial.clone().unwrap_or_else(|| Denial::unknown_signer(missing.as_name()));
        let refusal = self.denied(&denial);
        self.replies.refuse(&reply_to, &refusal, out);
    }
}

/// A host as the one that tells certificates about itself.
pub(super) fn teller(holder: HolderId) -> Teller {
    Teller(holder.index() as u32)
}
