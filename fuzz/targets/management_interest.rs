//! Question: can any sequence of management requests make management panic, answer
//! with something that is not Data, leave a route whose face is gone, or do for a
//! stranger what is not a stranger's to do?
//!
//! Input: records {action, two octets of length, octets}. The action's low four
//! bits choose a command, whose ControlParameters are the octets, signed as a
//! client would, or say that the octets are a whole Interest (15), a packet that answers an
//! Interest of this node (14), or the contents of such an answer (12); the high bits
//! move the clock, choose the requesting face and let a face command fail.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use namewire_engine::{StrategyTable, strategy};
use namewire_management::{
    Effect, Environment, FaceCommandError, FaceProperties, FibChange, Management, ManagementConfig, NextHop,
    PeerCredentials, ReadvertiseConfig, ResolvedStrategy, StrategyError, StrategyRegistry, Times, TrustConfig,
    trust_config::{Checker, KeyLocatorRule, PacketKind, Rule, RulesOrAny, ValidatorConfig},
};
use namewire_packet::{
    Component, Data, DataBuilder, FaceId, Interest, InterestBuilder, MAX_PACKET_BYTES, NackReason, NameBuf,
    SignedInterestFields,
    nfd::{
        CsInfo, CsUsage, DropCounter, FaceCounters, FacePersistency, FaceScope, FaceUri, FibUsage, ForwarderStatus,
        LinkType,
    },
};

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
/// The router's user, and a stranger.
const REQUESTERS: [FaceId; 2] = [FaceId(256), FaceId(257)];
/// Another host.
const REMOTE: FaceId = FaceId(258);
const ROUTER_UID: u32 = 1000;
/// Requests of one input; more only take longer.
const REQUESTS_MAX: usize = 64;

/// A router with the strategies of the engine and nothing else to tell.
#[derive(Default)]
struct Router(StrategyTable);

impl StrategyRegistry for Router {
    fn resolve(&mut self, requested: &NameBuf) -> Result<ResolvedStrategy, StrategyError> {
        match self.0.resolve(requested) {
            Ok((id, instance)) => Ok(ResolvedStrategy { id, instance }),
            Err(strategy::StrategyError::Unknown) => {
                Err(StrategyError::Unknown(strategy::registry::known_strategies()))
            }
            Err(strategy::StrategyError::Invalid(reason)) => Err(StrategyError::Invalid(reason)),
            Err(strategy::StrategyError::TooMany) => Err(StrategyError::Full),
        }
    }
}

impl Environment for Router {
    fn face_counters(&self, _: FaceId) -> FaceCounters {
        FaceCounters::default()
    }
    fn face_expiration_ms(&self, _: FaceId) -> Option<u64> {
        None
    }
    fn forwarder_status(&self) -> ForwarderStatus {
        ForwarderStatus::default()
    }
    fn drop_counters(&self) -> Vec<DropCounter> {
        vec![DropCounter { reason: "malformed".to_owned(), count: 1 }]
    }
    fn cs_info(&self) -> CsInfo {
        CsInfo::default()
    }
    fn fib_usage(&self) -> FibUsage {
        FibUsage::default()
    }

    fn resolve_cs_policy(&self, text: &str) -> Result<String, String> {
        Ok(text.to_owned())
    }

    fn cs_usage(&self) -> CsUsage {
        CsUsage::default()
    }
    fn channels(&self) -> Vec<FaceUri> {
        Vec::new()
    }
}

struct Node {
    management: Management,
    router: Router,
    now: Times,
    faces: Vec<FaceId>,
    fib: BTreeMap<NameBuf, Vec<NextHop>>,
    replies: usize,
    /// Names of Interests of this node.
    expressed: Vec<NameBuf>,
}

impl Node {
    fn new() -> Self {
        let mut router = Router::default();
        let mut effects = Vec::new();
        let readvertise = ReadvertiseConfig { nlsr: true, origins: vec![0, 65] };
        let config = ManagementConfig {
            trust: trust(),
            router_uid: Some(ROUTER_UID),
            readvertise,
            ..ManagementConfig::default()
        };
        let management = Management::new(config, &mut router, &mut effects).expect("the default strategies exist");
        let now = Times { mono_ns: 0, unix_ms: 1_700_000_000_000 };
        let mut node = Node {
            management,
            router,
            now,
            faces: Vec::new(),
            fib: BTreeMap::new(),
            replies: 0,
            expressed: Vec::new(),
        };
        node.carry_out(effects, false);
        for (index, face) in REQUESTERS.into_iter().enumerate() {
            let remote = format!("fd://{}", 30 + index);
            node.face_appears(properties(face, remote.parse().expect("a FaceUri"), FaceScope::Local));
        }
        let remote = "udp4://192.0.2.1:6363".parse().expect("a FaceUri");
        node.face_appears(properties(REMOTE, remote, FaceScope::NonLocal));
        node
    }

    fn face_appears(&mut self, face: FaceProperties) {
        let mut effects = Vec::new();
        self.faces.push(face.face);
        self.management.on_face_created(self.now, face, &mut effects);
        self.carry_out(effects, false);
    }

    fn face_closes(&mut self, face: FaceId) {
        let mut effects = Vec::new();
        self.faces.retain(|known| *known != face);
        self.management.on_face_closed(self.now, face, &mut effects);
        self.carry_out(effects, false);
        let left = self.fib.values().flatten().filter(|hop| hop.face == face).count();
        assert_eq!(left, 0, "face {face} is gone, but {left} next hops lead to it");
    }

    fn request(&mut self, requester: FaceId, interest: &[u8], let_face_commands_fail: bool) {
        let mut effects = Vec::new();
        self.management.on_interest(self.now, requester, interest, None, &mut self.router, &mut effects);
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
        self.carry_out(effects, let_face_commands_fail);
    }

    /// An answer to an Interest of this node; a Nack if `refused`.
    fn answer(&mut self, packet: &[u8], refused: bool) {
        let mut effects = Vec::new();
        let nack = refused.then_some(NackReason::NoRoute);
        self.management.on_answer(self.now, packet, nack, &mut self.router, &mut effects);
        self.carry_out(effects, false);
    }

    /// Does what a router does with effects.
    fn carry_out(&mut self, effects: Vec<Effect>, fail: bool) {
        for effect in effects {
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
                        Ok(properties(face, create.remote, FaceScope::NonLocal))
                    };
                    self.command_done(create.ticket, result);
                }
                Effect::UpdateFace(update) => {
                    let known = self.management.face(update.face).cloned();
                    self.command_done(update.ticket, known.ok_or_else(not_found));
                }
                Effect::DestroyFace { ticket, face } => {
                    let known = self.management.face(face).cloned();
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
                Effect::Express { packet } => {
                    let interest = Interest::parse(&packet).expect("an Interest");
                    assert!(interest.parameters_digest_is_valid(), "a command is signed");
                    self.expressed.push(interest.name().to_buf());
                }
                Effect::ConfigureCs { .. } => {}
                Effect::EraseCs { ticket, limit, .. } => {
                    let mut effects = Vec::new();
                    self.management.on_cs_erased(ticket, limit, &mut effects);
                    self.carry_out(effects, false);
                }
            }
        }
    }

    fn command_done(&mut self, ticket: namewire_management::Ticket, result: Result<FaceProperties, FaceCommandError>) {
        let mut effects = Vec::new();
        self.management.on_face_command_done(self.now, ticket, result, &mut effects);
        self.carry_out(effects, false);
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

fn properties(face: FaceId, remote: FaceUri, scope: FaceScope) -> FaceProperties {
    FaceProperties {
        face,
        local: "internal://".parse().expect("a FaceUri"),
        remote,
        scope,
        persistency: FacePersistency::Persistent,
        link_type: LinkType::PointToPoint,
        flags: 0,
        base_congestion_marking_interval_ns: None,
        default_congestion_threshold_bytes: None,
        mtu: Some(MAX_PACKET_BYTES as u64),
        credentials: (scope == FaceScope::Local).then(|| PeerCredentials {
            uid: if face == REQUESTERS[0] { ROUTER_UID } else { ROUTER_UID + 1 },
            gid: 100,
            groups: vec![101],
            pid: 1,
        }),
    }
}

/// Commands under `/localhop` need a digest, those by a key a chain that is never there.
fn trust() -> TrustConfig {
    let rule = |packet, checker| Rule { id: "any".to_owned(), packet, filters: Vec::new(), checkers: vec![checker] };
    let digest = Checker { signature_type: 0, key_locator: KeyLocatorRule::Any };
    let mut commands = rule(PacketKind::Interest, digest);
    commands.checkers.push(Checker { signature_type: 3, key_locator: KeyLocatorRule::Any });
    let rules = vec![commands, rule(PacketKind::Data, Checker::hierarchical(3))];
    let rules = RulesOrAny::Rules(ValidatorConfig { rules, anchors: Vec::new() });
    TrustConfig { localhop_rib: Some(rules), ..TrustConfig::default() }
}

/// A command as a client signs it.
fn command(prefix: &str, (module, verb): (&str, &str), parameters: &[u8], now: Times, number: usize) -> Vec<u8> {
    let mut name = NameBuf::new();
    for part in [prefix.as_bytes(), b"nfd", module.as_bytes(), verb.as_bytes(), parameters] {
        name.push_generic(part);
    }
    let nonce = number.to_be_bytes().to_vec();
    let fields = SignedInterestFields { nonce, time_ms: Some(now.unix_ms), seq_num: None };
    InterestBuilder::new(&name).sign_digest(&fields)
}

fuzz_target!(|input: &[u8]| {
    let mut node = Node::new();
    let mut rest = input;
    let mut requests = 0;
    while let Some((&[action, high, low], tail)) = rest.split_first_chunk::<3>() {
        let size = usize::from(u16::from_be_bytes([high, low])).min(tail.len());
        let (octets, tail) = tail.split_at(size);
        rest = tail;
        requests += 1;
        if requests > REQUESTS_MAX {
            break;
        }
        if action & 0x10 != 0 {
            node.now.mono_ns += 700_000_000;
            node.now.unix_ms += 700;
            let mut effects = Vec::new();
            node.management.run_timers(node.now, &mut effects);
            node.carry_out(effects, false);
            assert!(node.management.next_deadline().is_none_or(|deadline| deadline > node.now.mono_ns));
        }
        let is_localhop = matches!(action & 0x0F, LOCALHOP_REGISTER | LOCALHOP_UNREGISTER);
        let requester = if is_localhop { REMOTE } else { REQUESTERS[usize::from(action >> 5 & 1)] };
        let fails = action & 0x40 != 0;
        match action & 0x0F {
            ANSWER => {
                if let Some(name) = node.expressed.pop() {
                    node.answer(&DataBuilder::new(name).content(octets).sign_digest(), false);
                }
            }
            RAW_ANSWER => node.answer(octets, fails),
            LOCALHOP_REGISTER | LOCALHOP_UNREGISTER => {
                let verb = VERBS[usize::from(action & 0x0F != LOCALHOP_REGISTER)];
                node.request(requester, &command("localhop", verb, octets, node.now, requests), fails);
            }
            verb => match VERBS.get(usize::from(verb)) {
                Some(verb) => {
                    node.request(requester, &command("localhost", *verb, octets, node.now, requests), fails);
                }
                None => node.request(requester, octets, fails),
            },
        }
        if action & 0x80 != 0 && !is_localhop {
            node.face_closes(requester);
            node.face_appears(properties(requester, "fd://30".parse().expect("a FaceUri"), FaceScope::Local));
        }
    }
    for face in node.faces.clone() {
        node.face_closes(face);
    }
    let counters = node.management.counters();
    assert!(node.replies as u64 >= counters.commands_ok, "a command was carried out without an answer");
});
