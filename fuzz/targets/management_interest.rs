//! Question: can any sequence of management requests make management panic, answer with bytes that are not Data, leave
//! a route to a closed face, or act on a request without permission?
//!
//! Input: records {action, two bytes of length, bytes}. The action's low four bits choose a command, whose
//! ControlParameters are the bytes, signed like a client's; or the bytes are a whole Interest (15), a packet that
//! answers an Interest of this node (14), or the contents of such an answer (12). The high bits advance the clock,
//! choose the requesting face and let a face command fail.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use namewire_management::{
    Effect, FaceCommandError, FaceProperties, FibChange, ManagementConfig, NextHop, PeerCredentials, ReadvertiseConfig,
    Ticket, TrustConfig,
};
use namewire_packet::{
    Component, Data, DataBuilder, FaceId, Interest, InterestBuilder, MAX_PACKET_BYTES, NackReason, NameBuf,
    SignedInterestFields, nfd::NameLook,
};
use namewire_security::trust::{Checker, KeyLocatorRule, PacketKind, Rule, RulesOrAny, ValidatorConfig};
use namewire_testbed::management::{Bench, ROUTER_PEER, ROUTER_UID, local_face, udp_face};

const VERBS: [(&str, &str); 11] = [
    ("rib", "register"),
    ("rib", "unregister"),
    ("faces", "create"),
    ("faces", "update"),
    ("faces", "destroy"),
    ("fib", "add-nexthop"),
    ("fib", "remove-nexthop"),
    ("strategy-choice", "set"),
    ("strategy-choice", "unset"),
    ("cs", "config"),
    ("cs", "erase"),
];
/// Actions that answer Interests of this node.
const ANSWER: u8 = 12;
const RAW_ANSWER: u8 = 14;
/// Actions that are `rib` commands under `/localhop`, from another host.
const LOCALHOP_REGISTER: u8 = 11;
const LOCALHOP_UNREGISTER: u8 = 13;
/// The router's user, and a user without permissions.
const REQUESTERS: [FaceId; 2] = [FaceId(256), FaceId(257)];
/// Another host.
const REMOTE: FaceId = FaceId(258);
/// Most requests of one input; more only take longer.
const REQUESTS_MAX: usize = 64;

/// Management, and what it has asked for so far.
struct Watched {
    bench: Bench,
    faces: Vec<FaceId>,
    fib: BTreeMap<NameBuf, Vec<NextHop>>,
    replies: usize,
    /// Names of the Interests that this node sent.
    expressed: Vec<NameBuf>,
}

impl Watched {
    fn new() -> Self {
        let readvertise = ReadvertiseConfig { nlsr: true, origins: vec![0, 65] };
        let bench = Bench::without_faces(ManagementConfig { trust: trust(), readvertise, ..Default::default() });
        let mut node = Watched { bench, faces: Vec::new(), fib: BTreeMap::new(), replies: 0, expressed: Vec::new() };
        node.carry_out(false);
        REQUESTERS.into_iter().for_each(|face| node.face_appears(application(face)));
        node.face_appears(FaceProperties { face: REMOTE, ..udp_face() });
        node
    }

    fn face_appears(&mut self, face: FaceProperties) {
        self.faces.push(face.face);
        self.bench.add_face(face);
        self.carry_out(false);
    }

    fn face_closes(&mut self, face: FaceId) {
        self.faces.retain(|known| *known != face);
        self.bench.close(face);
        self.carry_out(false);
        let left = self.fib.values().flatten().filter(|hop| hop.face == face).count();
        assert_eq!(left, 0, "face {face} is gone, but {left} next hops lead to it");
    }

    fn request(&mut self, requester: FaceId, interest: &[u8], let_face_commands_fail: bool) {
        let Bench { management, router, now, effects } = &mut self.bench;
        management.on_interest(*now, requester, interest, None, router, effects);
        let immediate = effects.iter().filter(|effect| matches!(effect, Effect::Reply { .. })).count();
        assert!(immediate <= 1, "{immediate} answers to one request");
        if requester != REQUESTERS[0] {
            let is_privileged = |effect: &Effect| {
                use Effect::{ConfigureCs, CreateFace, DestroyFace, EraseCs, UpdateFace};
                matches!(
                    effect,
                    CreateFace(_) | UpdateFace(_) | DestroyFace { .. } | ConfigureCs { .. } | EraseCs { .. }
                )
            };
            assert!(!effects.iter().any(is_privileged), "face {requester} was let do {effects:?}");
        }
        self.carry_out(let_face_commands_fail);
    }

    /// An answer to an Interest of this node; a Nack if `refused`.
    fn answer(&mut self, packet: &[u8], refused: bool) {
        let nack = refused.then_some(NackReason::NoRoute);
        let Bench { management, router, now, effects } = &mut self.bench;
        management.on_answer(*now, Some(REMOTE), packet, nack, router, effects);
        self.carry_out(false);
    }

    /// Applies effects as a router does.
    fn carry_out(&mut self, fail: bool) {
        for effect in std::mem::take(&mut self.bench.effects) {
            match effect {
                Effect::Reply { packet, .. } => {
                    assert!(packet.len() <= MAX_PACKET_BYTES);
                    let data = Data::parse(&packet).expect("an answer is Data");
                    assert!(data.verify_digest_sha256(), "an answer is signed");
                    assert_eq!(data.name().get(1), Some(Component::generic(b"nfd")));
                    self.replies += 1;
                }
                Effect::CreateFace(create) => {
                    let face = FaceId(300 + self.faces.len() as u64);
                    let result = if fail {
                        Err(FaceCommandError { code: 504, text: "no socket".to_owned(), body: None })
                    } else {
                        self.faces.push(face);
                        Ok(FaceProperties { face, remote: create.remote, ..udp_face() })
                    };
                    self.command_done(create.ticket, result);
                }
                Effect::UpdateFace(update) => {
                    let known = self.bench.management.face(update.face).cloned();
                    self.command_done(update.ticket, known.ok_or_else(not_found));
                }
                Effect::DestroyFace { ticket, face } => {
                    let known = self.bench.management.face(face).cloned();
                    self.face_closes(face);
                    self.command_done(ticket, known.ok_or_else(not_found));
                }
                Effect::Fib(changes) => changes.into_iter().for_each(|change| self.change_fib(change)),
                Effect::Announcements(announcements) => {
                    for (prefix, announcement) in announcements {
                        let data = Data::parse(&announcement).expect("only what was read is handed on");
                        assert!(prefix.as_name().is_prefix_of(&data.name()));
                    }
                }
                Effect::NewNextHops(prefixes) => {
                    for (prefix, face) in prefixes {
                        let entry = self.fib.get(&prefix).expect("a new next hop belongs to a FIB entry");
                        assert!(entry.iter().any(|hop| hop.face == face));
                    }
                }
                Effect::Express { packet, .. } => {
                    let interest = Interest::parse(&packet).expect("an Interest");
                    assert!(interest.parameters_digest_is_valid(), "a command is signed");
                    self.expressed.push(interest.name().to_buf());
                }
                Effect::ConfigureCs { .. } | Effect::KeepCommand(_) => {}
                Effect::LookAtName { ticket, .. } => {
                    let Bench { management, now, effects, .. } = &mut self.bench;
                    management.on_name_looked(*now, ticket, &[NameLook::default()], effects);
                    self.carry_out(false);
                }
                Effect::EraseCs { ticket, limit, .. } => {
                    self.bench.management.on_cs_erased(ticket, limit, &mut self.bench.effects);
                    self.carry_out(false);
                }
            }
        }
    }

    fn command_done(&mut self, ticket: Ticket, result: Result<FaceProperties, FaceCommandError>) {
        let Bench { management, now, effects, .. } = &mut self.bench;
        management.on_face_command_done(*now, ticket, result, effects);
        self.carry_out(false);
    }

    fn change_fib(&mut self, change: FibChange) {
        match change {
            FibChange::Insert { name, next_hops, hidden, .. } => {
                assert!(hidden || !next_hops.is_empty());
                assert!(next_hops.is_sorted_by_key(|hop| (hop.cost, hop.face)));
                self.fib.insert(name, next_hops);
            }
            FibChange::Remove { name } => assert!(self.fib.remove(&name).is_some(), "{name} was not in the FIB"),
        }
    }
}

fn not_found() -> FaceCommandError {
    FaceCommandError { code: 404, text: "no such face".to_owned(), body: None }
}

/// A face of an application: the first belongs to the router's user, any other to a stranger.
fn application(face: FaceId) -> FaceProperties {
    let uid = if face == REQUESTERS[0] { ROUTER_UID } else { ROUTER_UID + 1 };
    FaceProperties { face, credentials: Some(PeerCredentials { uid, ..ROUTER_PEER }), ..local_face() }
}

/// Commands under `/localhop` need a digest; commands with a key need a certificate chain that does not exist.
fn trust() -> TrustConfig {
    let rule = |packet, checker| Rule {
        id: "any".to_owned(),
        packet,
        filters: Vec::new(),
        checkers: vec![checker],
        at_signing_time: false,
    };
    let digest = Checker { signature_type: 0, key_locator: KeyLocatorRule::Any };
    let mut commands = rule(PacketKind::Interest, digest);
    commands.checkers.push(Checker { signature_type: 3, key_locator: KeyLocatorRule::Any });
    let rules = vec![commands, rule(PacketKind::Data, Checker::hierarchical(3))];
    let rules = RulesOrAny::Rules(ValidatorConfig { rules, anchors: Vec::new() });
    TrustConfig { localhop_rib: Some(rules), ..TrustConfig::default() }
}

/// A command as a client signs it.
fn command(prefix: &str, (module, verb): (&str, &str), parameters: &[u8], unix_ms: u64, number: usize) -> Vec<u8> {
    let mut name = NameBuf::new();
    for part in [prefix.as_bytes(), b"nfd", module.as_bytes(), verb.as_bytes(), parameters] {
        name.push_generic(part);
    }
    let nonce = number.to_be_bytes().to_vec();
    let fields = SignedInterestFields { nonce, time_ms: Some(unix_ms), seq_num: None };
    InterestBuilder::new(&name).sign_digest(&fields)
}

fuzz_target!(|input: &[u8]| {
    let mut node = Watched::new();
    let mut rest = input;
    let mut requests = 0;
    while let Some((&[action, high, low], tail)) = rest.split_first_chunk::<3>() {
        let size = usize::from(u16::from_be_bytes([high, low])).min(tail.len());
        let (bytes, tail) = tail.split_at(size);
        rest = tail;
        requests += 1;
        if requests > REQUESTS_MAX {
            break;
        }
        if action & 0x10 != 0 {
            node.bench.pass_ms(700);
            node.bench.timers();
            node.carry_out(false);
            let Bench { management, now, .. } = &node.bench;
            assert!(management.next_deadline().is_none_or(|deadline| deadline > now.mono_ns));
        }
        let is_localhop = matches!(action & 0x0F, LOCALHOP_REGISTER | LOCALHOP_UNREGISTER);
        let requester = if is_localhop { REMOTE } else { REQUESTERS[usize::from(action >> 5 & 1)] };
        let fails = action & 0x40 != 0;
        match action & 0x0F {
            ANSWER => {
                if let Some(name) = node.expressed.pop() {
                    node.answer(&DataBuilder::new(name).content(bytes).sign_digest(), false);
                }
            }
            RAW_ANSWER => node.answer(bytes, fails),
            LOCALHOP_REGISTER | LOCALHOP_UNREGISTER => {
                let verb = VERBS[usize::from(action & 0x0F != LOCALHOP_REGISTER)];
                node.request(requester, &command("localhop", verb, bytes, node.bench.now.unix_ms, requests), fails);
            }
            verb => match VERBS.get(usize::from(verb)) {
                Some(verb) => {
                    node.request(
                        requester,
                        &command("localhost", *verb, bytes, node.bench.now.unix_ms, requests),
                        fails,
                    );
                }
                None => node.request(requester, bytes, fails),
            },
        }
        if action & 0x80 != 0 && !is_localhop {
            node.face_closes(requester);
            node.face_appears(application(requester));
        }
    }
    for face in node.faces.clone() {
        node.face_closes(face);
    }
    let counters = node.bench.management.counters();
    assert!(node.replies as u64 >= counters.commands_ok, "a command was carried out without an answer");
});
