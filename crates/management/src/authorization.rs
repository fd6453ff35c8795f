//! Authorization: decides once, for every command Interest, whether it may be carried out.
//!
//! | from | asks for | needs |
//! | --- | --- | --- |
//! | a local face | a route to itself, registered or announced; tags | a signature, which is not checked |
//! | a local face | anything else | peer credentials, or the signature of an anchor with that privilege |
//! | any face, `/localhop` | a route to itself | what the rules for `/localhop` say; without rules it is not served |
//!
//! A digest does not prove who signed. So an application gets its own routes and tags even if its digest does not
//! match. Clients of ndn-rs (commit cc28c6e, `ndn-packet/src/encode/interest.rs`) compute it over every element of the
//! Interest, including the name's type and length and the empty digest component. ndnd and NFD's default rule accept
//! their commands.
//!
//! Source: management.md §8. Where NFD's configuration says otherwise ([`TrustConfig`]), this module does as NFD does.
//! *Peer credentials* are the kernel's statement about the process at the other end of a Unix socket. A TCP connection
//! within this machine has none.
//!
//! A valid signature is not enough where NFD checks for replay ([`replay`]): for `rib`, and for commands that an
//! anchor's signature admits. The same goes for `tags`. If a rule leads to a certificate that the router does not have,
//! the command waits until the certificate is fetched ([`pending`]), and for the answer to the question whether it was
//! revoked ([`revocation`]).
//!
//! Limits: see [`replay`], [`pending`] and [`namewire_security::trust`].

pub(crate) mod gate;
pub(crate) mod pending;
pub(crate) mod recent_answers;
pub(crate) mod replay;
mod revocation;

use crate::{
    environment::Times,
    face_registry::{FaceProperties, PeerCredentials},
    trust_config::{Privileges, Signer, TrustConfig},
};
use namewire_packet::{
    Data, FaceId, KeyLocator,
    nfd::{DropCounter, FaceScope},
};
use namewire_security::{
    Certificate,
    trust::{
        AnchorCertificate, Certificates, Denial, Failure, PacketKind, RulesOrAny, Signatory, SignedPacket,
        check_validity, judge, judge_from, of_key, revocation::Lookups,
    },
};
use namewire_shares::Groups;
pub use replay::{PASSED_NONCE_BYTES, PassedCommand};
use replay::{ReplayGuard, Sender};
use std::path::PathBuf;

/// The superuser.
const ROOT_UID: u32 = 0;

/// What the kernel says in place of users and groups that this user namespace does not have
/// (`/proc/sys/kernel/overflowuid`). It may be any user, even if the router itself has this number.
const OVERFLOW_ID: u32 = 65_534;

namewire_packet::names! {
    /// A part of management for which privileges are given.
    pub(crate) enum Module {
        Faces = "faces",
        Fib = "fib",
        Cs = "cs",
        StrategyChoice = "strategy-choice",
        Rib = "rib",
        Tags = "tags",
        Capture = "capture",
        Log = "log",
        Process = "process",
    }
}

impl Module {
    /// True if every application may use the module for itself.
    const fn is_of_applications(self) -> bool {
        matches!(self, Module::Rib | Module::Tags)
    }

    /// True if members of `allowed_gids` may use the module. A capture has the packets of all, so it is left to the
    /// operator. The process is left to those who may send it signals.
    const fn is_of_groups(self) -> bool {
        !matches!(self, Module::Capture | Module::Process)
    }

    /// The rules that alone decide who on this machine may use the module, if there are any.
    const fn own_rules(self, config: &TrustConfig) -> Option<&RulesOrAny> {
        match self {
            Module::Rib => config.localhost_rib.as_ref(),
            Module::Tags => config.localhost_tags.as_ref(),
            Module::Faces
            | Module::Fib
            | Module::Cs
            | Module::StrategyChoice
            | Module::Capture
            | Module::Log
            | Module::Process => None,
        }
    }

    const fn is_in(self, privileges: Privileges) -> bool {
        match self {
            Module::Faces => privileges.faces,
            Module::Fib => privileges.fib,
            Module::Cs => privileges.cs,
            Module::StrategyChoice => privileges.strategy_choice,
            Module::Rib => privileges.rib,
            Module::Tags => privileges.tags,
            Module::Capture => privileges.capture,
            Module::Log => privileges.log,
            Module::Process => false, // no signature is enough
        }
    }
}

/// The prefix under which a command came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefix {
    /// `/localhost/nfd`.
    Localhost,
    /// `/localhop/nfd`.
    Localhop,
}

/// The parts of a command that matter here.
pub(crate) struct Claim<'a> {
    pub(crate) now: Times,
    pub(crate) prefix: Prefix,
    pub(crate) module: Module,
    /// The face that it came from.
    pub(crate) face: &'a FaceProperties,
    /// The FaceId among its parameters.
    pub(crate) names_face: Option<FaceId>,
    pub(crate) signature: Option<SignedPacket<'a>>,
}

impl Claim<'_> {
    /// True if the command is about the face that it came from.
    fn is_for_itself(&self, face: &FaceProperties) -> bool {
        self.names_face.is_none_or(|named| named == FaceId::INVALID || named == face.face)
    }
}

/// The rules of who may command, and the record of what senders did.
#[derive(Debug)]
pub(crate) struct Authorizer {
    config: TrustConfig,
    router_uid: Option<u32>,
    replay: ReplayGuard,
    pub(crate) certificates: Certificates,
    pub(crate) pending: pending::PendingCommands,
    pub(crate) lookups: Lookups,
    pub(crate) recent_answers: recent_answers::RecentAnswers,
    denials: [u64; Denial::NAMES.len()],
}

impl Authorizer {
    pub(crate) fn new(config: TrustConfig, router_uid: Option<u32>, groups: &Groups) -> Self {
        Authorizer {
            config,
            router_uid,
            replay: ReplayGuard::default(),
            certificates: Certificates::default(),
            pending: pending::PendingCommands::new(groups),
            lookups: Lookups::default(),
            recent_answers: recent_answers::RecentAnswers::default(),
            denials: [0; Denial::NAMES.len()],
        }
    }

    pub(crate) const fn config(&self) -> &TrustConfig {
        &self.config
    }

    /// Takes new settings. What is known of signers stays.
    pub(crate) fn set_config(&mut self, config: TrustConfig) {
        self.config = config;
    }

    pub(crate) fn set_anchors(&mut self, path: PathBuf, anchors: Vec<AnchorCertificate>) {
        self.certificates.set_file(path, anchors);
    }

    pub(crate) fn forget_face(&mut self, face: FaceId) {
        self.replay.forget_face(face);
    }

    pub(crate) fn count(&mut self, denial: &Denial) {
        self.denials[denial.index()] += 1;
    }

    /// Denials by reason, and limits that were reached. Counters at zero are left out.
    pub(crate) fn drop_counters(&self) -> impl Iterator<Item = DropCounter> + '_ {
        let denials = Denial::NAMES.iter().zip(self.denials).map(|(name, count)| (format!("denied.{name}"), count));
        let limits = [
            // Commands forgotten before their time.
            ("limit.replay-nonces", self.replay.limits_met.nonces),
            // Signers forgotten before their time.
            ("limit.replay-records", self.replay.limits_met.records),
        ];
        let limits = limits.map(|(name, count)| (name.to_owned(), count));
        denials.chain(limits).filter(|(_, count)| *count > 0).map(|(reason, count)| DropCounter { reason, count })
    }

    /// Decides about one command, and whose record it then belongs to; `None`: no replay check.
    pub(crate) fn judge(&self, claim: &Claim<'_>) -> Result<Option<Sender>, Failure> {
        let face = claim.face;
        match claim.prefix {
            Prefix::Localhop => self.localhop(claim, face),
            Prefix::Localhost if face.scope != FaceScope::Local => {
                Err(Denial::not_allowed(format!("face {} is not local", face.face)).into())
            }
            Prefix::Localhost => match claim.module.own_rules(&self.config) {
                Some(rules) => {
                    let signature = claim.signature.ok_or(Denial::NotSigned)?;
                    let signatory = self.judge_command(rules, &signature, claim);
                    signatory.map(|signatory| Some(sender(signatory, face.face)))
                }
                None => self.by_policy(claim, face).map_err(Failure::from),
            },
        }
    }

    /// Lets a command pass that [`Authorizer::judge`] accepts, unless it has passed before. Records that it passes.
    pub(crate) fn pass(&mut self, claim: &Claim<'_>, sender: Option<Sender>) -> Result<(), Failure> {
        if let Some(sender) = sender {
            let signature = claim.signature.ok_or(Denial::NotSigned)?;
            // NFD requires a nonce only for `rib`, and we for `tags` too. The old format always has one.
            let needs_nonce = claim.module.is_of_applications();
            self.replay.check(claim.now, &sender, signature.time_ms, signature.nonce, needs_nonce)?;
        }
        Ok(())
    }

    fn localhop(&self, claim: &Claim<'_>, face: &FaceProperties) -> Result<Option<Sender>, Failure> {
        let rules = self.config.localhop_rib.as_ref();
        let rules = rules.ok_or_else(|| Denial::not_allowed("/localhop/nfd is not served"))?;
        let signature = claim.signature.ok_or(Denial::NotSigned)?;
        if !claim.is_for_itself(face) {
            return Err(Denial::not_allowed("a route of another face under /localhop/nfd").into());
        }
        let signatory = self.judge_command(rules, &signature, claim)?;
        Ok(Some(sender(signatory, face.face)))
    }

    fn judge_command(
        &self,
        rules: &RulesOrAny,
        signature: &SignedPacket<'_>,
        claim: &Claim<'_>,
    ) -> Result<Signatory, Failure> {
        let (host, now_unix_ms) = (Some(gate::teller(claim.face.holder)), claim.now.unix_ms);
        judge_from(host, rules, PacketKind::Interest, signature, &self.certificates, now_unix_ms)
    }

    /// Decides by the table of this module. `None`: no replay check.
    fn by_policy(&self, claim: &Claim<'_>, face: &FaceProperties) -> Result<Option<Sender>, Denial> {
        let is_of_applications = claim.module.is_of_applications();
        let this_face = is_of_applications.then_some(Sender::Face(face.face));
        if is_of_applications && claim.signature.is_none() {
            return Err(Denial::NotSigned);
        }
        let mut granted = self.config.authorizations.iter().filter(|one| claim.module.is_in(one.privileges));
        if granted.any(|one| one.signer == Signer::Any) {
            return Ok(this_face); // as in NFD, the signature is not looked at
        }
        if is_of_applications && claim.is_for_itself(face) {
            return Ok(this_face);
        }
        if let Some(signature) = claim.signature.filter(SignedPacket::is_digest) {
            signature.verify_digest()?;
        }
        if self.peer_may_command(face, claim.module) {
            return Ok(this_face);
        }
        if let Some((certificate, may)) = claim.signature.and_then(|signature| self.find_anchor(&signature, claim)) {
            check_validity(certificate, claim.now.unix_ms)?;
            self.certificates.revocations().check_anchor(certificate, claim.now.unix_ms)?;
            let key = certificate.public_key().map_err(|error| Denial::BadSignature(error.to_string()))?;
            claim.signature.ok_or(Denial::NotSigned)?.verify(&key)?;
            if may {
                return Ok(Some(Sender::Key(certificate.key_name().to_buf())));
            }
        }
        Err(self.why_not(claim, face))
    }

    /// True if the kernel vouches for the other end of this face.
    fn peer_may_command(&self, face: &FaceProperties, module: Module) -> bool {
        let groups = if module.is_of_groups() { &self.config.allowed_gids[..] } else { &[] };
        self.config.peer_credentials
            && face.credentials.as_ref().is_some_and(|peer| {
                peer.uid == ROOT_UID
                    || peer.uid != OVERFLOW_ID && Some(peer.uid) == self.router_uid
                    || groups.iter().any(|gid| *gid != OVERFLOW_ID && peer.is_member_of(*gid))
            })
    }

    /// The anchor that signed, and true if it may use this module.
    fn find_anchor(&self, signature: &SignedPacket<'_>, claim: &Claim<'_>) -> Option<(&Certificate, bool)> {
        let mut of_signer = self.config.authorizations.iter().filter_map(|one| match &one.signer {
            Signer::Certificate(anchor) if is_signer(anchor, signature) => Some((anchor.certificate(), one.privileges)),
            _ => None,
        });
        let (first, privileges) = of_signer.next()?;
        if claim.module.is_in(privileges) {
            return Some((first, true));
        }
        let other = of_signer.find(|(_, privileges)| claim.module.is_in(*privileges));
        Some(other.map_or((first, false), |(certificate, _)| (certificate, true)))
    }

    /// The denial whose text helps the refused sender most.
    fn why_not(&self, claim: &Claim<'_>, face: &FaceProperties) -> Denial {
        let module = claim.module.name();
        let peer = match &face.credentials {
            _ if !self.config.peer_credentials => "peer credentials do not count here".to_owned(),
            None => "this connection has no peer credentials".to_owned(),
            Some(PeerCredentials { uid, gid, .. }) => {
                let groups = if claim.module.is_of_groups() { " nor in an allowed group" } else { "" };
                format!("the peer (uid {uid}, gid {gid}) is neither root nor the router's user{groups}")
            }
        };
        match claim.signature {
            None => Denial::not_allowed(format!("{module} needs a trusted signature, for {peer}")),
            Some(signature) if signature.is_digest() => {
                let what = match claim.module {
                    Module::Rib => "a route of another face",
                    Module::Tags => "tags of another face",
                    _ => module,
                };
                Denial::not_allowed(format!("{what} needs a trusted signature, for {peer}"))
            }
            Some(signature) if self.find_anchor(&signature, claim).is_some() => {
                Denial::not_allowed(format!("{} may not use {module}", signature.signer()))
            }
            Some(signature) => Denial::UnknownSigner(format!("{}; {peer}", signature.signer())),
        }
    }

    /// Judges an announced prefix (`rib/announce`) by `prefix_announcement`. Without such rules, an application may
    /// announce as it may register.
    pub(crate) fn authorize_announcement(
        &mut self,
        data: &Data<'_>,
        face: Option<&FaceProperties>,
        now: Times,
    ) -> Result<(), Denial> {
        let result = match &self.config.prefix_announcement {
            None if face.is_some_and(|face| face.scope == FaceScope::Local) => return Ok(()),
            None => Err(Denial::not_allowed("there are no rules for announcements from other hosts").into()),
            Some(section) => {
                judge(section, PacketKind::Data, &SignedPacket::of_data(data), &self.certificates, now.unix_ms)
            }
        };
        let denial = match result {
            Ok(_) => return Ok(()),
            Err(Failure::Denied(denial)) => denial,
            Err(Failure::CertificateMissing(name)) => Denial::unknown_signer(name.as_name()),
        };
        self.count(&denial);
        Err(denial)
    }
}

/// The sender against whose record a command is checked.
fn sender(signatory: Signatory, face: FaceId) -> Sender {
    match signatory {
        Signatory::Anyone => Sender::Face(face),
        Signatory::Key(key) => Sender::Key(key),
    }
}

/// True if the KeyLocator names this anchor's key.
fn is_signer(anchor: &AnchorCertificate, signature: &SignedPacket<'_>) -> bool {
    if signature.is_digest() {
        return false;
    }
    match signature.key_locator() {
        Some(KeyLocator::Name(name)) => of_key(anchor, name).is_some(),
        Some(KeyLocator::KeyDigest(digest)) => {
            anchor.certificate().public_key().is_ok_and(|key| key.key_digest() == digest)
        }
        None => false,
    }
}
