//! Where commands meet their authorization: pass, be refused, or wait for a certificate.
//! And where its settings come in.

use super::{
    Module, Prefix, Request,
    denial::Denial,
    pending::{FETCH_LIFETIME_MS, PendingCommand},
    signed_packet::{SignedPacket, check_parameters_digest},
    validator::Failure,
};
use crate::{
    command::{Refusal, refusal},
    dispatcher::{Management, ReplyTo},
    effect::Effect,
    environment::{Environment, Times},
    fib_computation::NextHop,
    trust_config::{AnchorCertificate, TrustConfig},
};
use namewire_packet::{Data, FaceId, Interest, Name, lp::PitToken};
use namewire_security::Certificate;
use std::path::PathBuf;

/// A command at the gate.
pub(crate) struct Arrival<'a> {
    pub(crate) prefix: Prefix,
    pub(crate) module: Module,
    pub(crate) incoming: FaceId,
    /// The FaceId among its parameters.
    pub(crate) names_face: Option<FaceId>,
    pub(crate) interest: &'a Interest<'a>,
    /// Components of the name that are parameters: 1, or 0 for `rib/announce`.
    pub(crate) parameter_components: usize,
    pub(crate) pit_token: Option<PitToken>,
    /// Certificates fetched for it so far.
    pub(crate) fetches: usize,
}

/// What a command that is not refused does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It is carried out.
    Now,
    /// It comes again when a certificate is there, or its answer is on the way already.
    Later,
    /// The face that it came from is gone, and with it all that waited for an answer.
    Orphaned,
}

impl Management {
    /// Who may command, from now on. Routes and faces stay as they are.
    pub fn set_trust(&mut self, trust: TrustConfig, out: &mut Vec<Effect>) {
        let internal = NextHop { face: FaceId::INTERNAL, cost: 0 };
        if trust.localhop_rib.is_some() {
            self.manual.insert(self.localhop_prefix.as_name(), internal);
        } else {
            self.manual.remove(self.localhop_prefix.as_name(), FaceId::INTERNAL);
        }
        self.authorizer.set_config(trust);
        self.update_fib(vec![self.localhop_prefix.clone()], out);
    }

    /// The certificates that are in an anchor's file or directory now.
    pub fn set_anchors(&mut self, path: PathBuf, anchors: Vec<AnchorCertificate>) {
        self.authorizer.set_anchors(path, anchors);
    }

    /// Judges the Data of a prefix announcement that came through `incoming`.
    ///
    /// # Errors
    /// Why it is not accepted.
    pub fn authorize_announcement(&mut self, now: Times, incoming: FaceId, data: &Data<'_>) -> Result<(), Denial> {
        self.authorizer.authorize_announcement(data, self.faces.get(incoming), now)
    }

    /// Asks whether a command may be carried out. From [`FaceId::INTERNAL`] it always may: the
    /// process that runs the router hands it in. No packet has that incoming face, since no link
    /// has the number and no strategy sends what management expresses back to it.
    ///
    /// # Errors
    /// The answer that refuses it.
    pub(crate) fn admit(
        &mut self,
        now: Times,
        arrival: &Arrival<'_>,
        out: &mut Vec<Effect>,
    ) -> Result<Admission, Refusal> {
        if arrival.incoming == FaceId::INTERNAL {
            return Ok(Admission::Now);
        }
        let Some(face) = self.faces.get(arrival.incoming) else {
            self.counters.orphaned += 1;
            return Ok(Admission::Orphaned);
        };
        let signature = SignedPacket::of_command(arrival.interest, arrival.parameter_components)?;
        let request = Request {
            now,
            prefix: arrival.prefix,
            module: arrival.module,
            face,
            names_face: arrival.names_face,
            signature,
        };
        let digest = if signature.is_some() { check_parameters_digest(arrival.interest) } else { Ok(()) };
        let verdict = digest.map_err(Failure::from).and_then(|()| self.authorizer.authorize(&request));
        let denial = match verdict {
            Ok(()) => return Ok(Admission::Now),
            // A client that sent it again while the first is worked on gets the first's answer.
            Err(Failure::Denied(Denial::Replayed(_))) if self.is_in_progress(arrival.interest) => {
                return Ok(Admission::Later);
            }
            Err(Failure::Denied(Denial::Replayed(_))) if self.answer_again(now, arrival, out) => {
                return Ok(Admission::Later);
            }
            Err(Failure::Denied(denial)) => {
                // Or a fetched certificate is over, and there may be a newer one of that key.
                let is_over = matches!(denial, Denial::CertificateExpired(_));
                if (arrival.fetches > 0 || is_over)
                    && let Some(namewire_packet::KeyLocator::Name(name)) = signature.and_then(|s| s.key_locator())
                {
                    self.authorizer.certificates.forget_chain(name);
                }
                denial
            }
            // An Interest for it would be a command, from whom everything is allowed.
            Err(Failure::CertificateMissing(certificate)) if self.is_own_name(certificate.as_name()) => {
                Denial::unknown_signer(certificate.as_name())
            }
            Err(Failure::CertificateMissing(certificate)) => {
                let command = PendingCommand {
                    interest: arrival.interest.wire().to_vec(),
                    incoming: arrival.incoming,
                    pit_token: arrival.pit_token,
                    certificate,
                    fetches: arrival.fetches + 1,
                    deadline_ns: now.mono_ns.saturating_add(FETCH_LIFETIME_MS * 1_000_000),
                };
                match self.authorizer.pending.add(command) {
                    Ok(interest) => {
                        out.extend(interest.map(|packet| Effect::Express { packet }));
                        return Ok(Admission::Later);
                    }
                    Err(_) => Denial::TooManyPending,
                }
            }
        };
        Err(self.denied(&denial))
    }

    /// True for names that this management serves, or would with other settings.
    fn is_own_name(&self, name: Name<'_>) -> bool {
        [&self.prefix, &self.localhop_prefix].into_iter().any(|prefix| prefix.as_name().is_prefix_of(&name))
    }

    /// Counts a denial; its answer.
    pub(crate) fn denied(&mut self, denial: &Denial) -> Refusal {
        self.authorizer.count(denial);
        refusal(403, format!("authorization rejected: {denial}"))
    }

    fn is_in_progress(&self, interest: &Interest<'_>) -> bool {
        self.face_commands.values().any(|command| command.will_answer(interest.name()))
    }

    /// Repeats the answer to a command of another host, if it is kept. True if it was.
    fn answer_again(&mut self, now: Times, arrival: &Arrival<'_>, out: &mut Vec<Effect>) -> bool {
        let name = arrival.interest.name();
        let answer = self.authorizer.recent_answers.find(name, arrival.incoming, now.mono_ns);
        let Some(packet) = answer.map(<[u8]>::to_vec) else { return false };
        self.send(packet, arrival.pit_token, out)
    }

    /// Takes Data that came in answer to [`Effect::Express`]: the commands that waited
    /// for this certificate are judged again. False if none did.
    pub(crate) fn on_certificate(
        &mut self,
        now: Times,
        data: &Data<'_>,
        environment: &mut dyn Environment,
        out: &mut Vec<Effect>,
    ) -> bool {
        let commands = self.authorizer.pending.take_waiting_for(data.name());
        if commands.is_empty() {
            return false;
        }
        // What is no certificate leaves them without one, and they are refused.
        if let Ok(certificate) = Certificate::parse(data.wire()) {
            self.authorizer.certificates.add_fetched(certificate);
        } else {
            commands.iter().for_each(|command| self.refuse_pending(command, out));
            return true;
        }
        for command in commands {
            if let Ok(interest) = Interest::parse(&command.interest) {
                self.on_request(now, command.incoming, &interest, command.pit_token, command.fetches, environment, out);
            }
        }
        true
    }

    /// Refuses the commands whose certificates did not come.
    pub(crate) fn expire_pending(&mut self, now: Times, out: &mut Vec<Effect>) {
        for command in self.authorizer.pending.take_due(now.mono_ns) {
            self.refuse_pending(&command, out);
        }
    }

    fn refuse_pending(&mut self, command: &PendingCommand, out: &mut Vec<Effect>) {
        let Ok(interest) = Interest::parse(&command.interest) else { return };
        self.authorizer.certificates.forget_issued_by(command.certificate.as_name());
        if self.faces.get(command.incoming).is_none() {
            return self.counters.orphaned += 1;
        }
        let reply_to = ReplyTo { name: interest.name().to_buf(), pit_token: command.pit_token };
        let denial = Denial::unknown_signer(command.certificate.as_name());
        let refusal = self.denied(&denial);
        self.refuse(&reply_to, &refusal, out);
    }
}
