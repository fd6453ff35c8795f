//! A router for tests: faces and counters as given, strategies like NFD's, and
//! everything that management emits, taken apart.
#![allow(dead_code)] // each test file uses its part

use namewire_management::{
    CreateFace, Effect, Environment, FaceCommandError, FaceProperties, FibChange, Management, ManagementConfig,
    PeerCredentials, ResolvedStrategy, StrategyError, StrategyRegistry, Times, TrustConfig,
};
use namewire_packet::{
    Data, FaceId, InterestBuilder, NameBuf, Nonce, SignedInterestFields,
    nfd::{
        ControlParameters, ControlResponse, CsInfo, CsPolicyUsage, CsPrefixUsage, CsUsage, FaceCounters,
        FacePersistency, FaceScope, FaceUri, FibUsage, ForwarderStatus, LinkType,
    },
    tlv,
};
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const LOCAL_FACE: FaceId = FaceId(300);
pub(crate) const UDP_FACE: FaceId = FaceId(301);
pub(crate) const REMOTE: &str = "udp4://192.0.2.1:6363";

pub(crate) fn name(uri: &str) -> NameBuf {
    uri.parse().unwrap_or_else(|error| panic!("{uri}: {error:?}"))
}

/// Strategies that exist: name and version.
const STRATEGIES: [(&str, u64); 3] = [("best-route", 5), ("multicast", 5), ("asf", 5)];

#[derive(Default)]
pub(crate) struct Router {
    instances: Vec<NameBuf>,
    pub(crate) released: Vec<u32>,
    pub(crate) cs: CsInfo,
}

impl StrategyRegistry for Router {
    fn resolve(&mut self, requested: &NameBuf) -> Result<ResolvedStrategy, StrategyError> {
        let strategies = name("/localhost/nfd/strategy");
        if !strategies.as_name().is_prefix_of(&requested.as_name()) {
            return Err(StrategyError::Unknown("those of this test".to_owned()));
        }
        let short =
            requested.as_name().get(3).ok_or_else(|| StrategyError::Unknown("those of this test".to_owned()))?;
        let known = STRATEGIES.iter().find(|(known, _)| known.as_bytes() == short.value);
        let (_, version) = known.ok_or_else(|| StrategyError::Unknown("those of this test".to_owned()))?;
        let mut instance = requested.as_name().prefix(4).to_buf();
        instance.push_version(*version);
        match requested.as_name().get(4).map(|component| component.version()) {
            Some(Some(asked)) if asked > *version => {
                return Err(StrategyError::Unknown("those of this test".to_owned()));
            }
            Some(Some(asked)) if asked < *version => {
                return Err(StrategyError::Invalid(format!("version {asked} is not supported")));
            }
            _ => {}
        }
        for parameter in requested.as_name().components().skip(5) {
            if parameter.value.contains(&b'!') {
                return Err(StrategyError::Invalid("bad parameter".to_owned()));
            }
            instance.push(parameter);
        }
        let id = self.instances.iter().position(|known| *known == instance).unwrap_or_else(|| {
            self.instances.push(instance.clone());
            self.instances.len() - 1
        });
        Ok(ResolvedStrategy { id: id as u32, instance })
    }

    fn release(&mut self, id: u32) {
        self.released.push(id);
    }
}

impl Environment for Router {
    fn face_counters(&self, face: FaceId) -> FaceCounters {
        FaceCounters { n_in_interests: face.0, ..Default::default() }
    }
    fn face_expiration_ms(&self, face: FaceId) -> Option<u64> {
        (face == UDP_FACE).then_some(600_000)
    }
    fn forwarder_status(&self) -> ForwarderStatus {
        ForwarderStatus { nfd_version: "test".to_owned(), n_cs_entries: 7, ..Default::default() }
    }
    fn cs_info(&self) -> CsInfo {
        self.cs
    }
    fn fib_usage(&self) -> FibUsage {
        FibUsage { design: "npt".to_owned(), capacity_entries: 100, bytes: 5_000, is_lossy: false }
    }

    fn resolve_cs_policy(&self, text: &str) -> Result<String, String> {
        match text {
            "fifo" => Ok("all/fifo".to_owned()),
            other => Err(format!("no policy is called {other:?}")),
        }
    }

    fn cs_usage(&self) -> CsUsage {
        CsUsage {
            policy: "lru".to_owned(),
            admission: "all".to_owned(),
            capacity_bytes: 1 << 20,
            bytes: 7_000,
            policy_bytes: 640,
            policies: vec![CsPolicyUsage { policy: "lru".to_owned(), hits: 3, ..CsPolicyUsage::default() }],
            prefixes: vec![CsPrefixUsage { misses: 4, ..CsPrefixUsage::default() }],
            prefix_lookup: "all".to_owned(),
            prefix_index_bytes: 4_096,
        }
    }
    fn drop_counters(&self) -> Vec<namewire_packet::nfd::DropCounter> {
        vec![namewire_packet::nfd::DropCounter { reason: "engine.no-route".to_owned(), count: 3 }]
    }

    fn channels(&self) -> Vec<FaceUri> {
        vec!["udp4://0.0.0.0:6363".parse().expect("URI"), "unix:///run/nfd/nfd.sock".parse().expect("URI")]
    }
}

pub(crate) fn local_face() -> FaceProperties {
    FaceProperties {
        face: LOCAL_FACE,
        remote: FaceUri::Fd(17),
        local: "unix:///run/nfd/nfd.sock".parse().expect("URI"),
        scope: FaceScope::Local,
        persistency: FacePersistency::OnDemand,
        link_type: LinkType::PointToPoint,
        flags: 0,
        base_congestion_marking_interval_ns: None,
        default_congestion_threshold_bytes: None,
        mtu: None,
        credentials: Some(ROUTER_PEER),
    }
}

/// The user that the router under test runs as, and one of its processes.
pub(crate) const ROUTER_UID: u32 = 1500;
pub(crate) const ROUTER_PEER: PeerCredentials =
    PeerCredentials { uid: ROUTER_UID, gid: 1500, groups: Vec::new(), pid: 4711 };

pub(crate) fn udp_face() -> FaceProperties {
    FaceProperties {
        face: UDP_FACE,
        remote: REMOTE.parse().expect("URI"),
        local: "udp4://192.0.2.2:6363".parse().expect("URI"),
        scope: FaceScope::NonLocal,
        persistency: FacePersistency::Persistent,
        link_type: LinkType::PointToPoint,
        flags: 4,
        base_congestion_marking_interval_ns: Some(100_000_000),
        default_congestion_threshold_bytes: Some(65536),
        mtu: Some(65467),
        credentials: None,
    }
}

/// One node under test.
pub(crate) struct Bench {
    pub(crate) management: Management,
    pub(crate) router: Router,
    pub(crate) now: Times,
    /// Everything emitted by the last call.
    pub(crate) effects: Vec<Effect>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Bench::with_config(ManagementConfig::default())
    }

    pub(crate) fn with_trust(trust: TrustConfig) -> Self {
        Bench::with_config(ManagementConfig { trust, ..Default::default() })
    }

    /// A node with one application face and one UDP face.
    pub(crate) fn with_config(config: ManagementConfig) -> Self {
        let mut router =
            Router { cs: CsInfo { capacity: 65536, flags: 3, ..Default::default() }, ..Default::default() };
        let mut effects = Vec::new();
        let config = ManagementConfig { router_uid: config.router_uid.or(Some(ROUTER_UID)), ..config };
        let mut management = Management::new(config, &mut router, &mut effects).expect("default strategies exist");
        let now = Times { mono_ns: 1_000_000_000, unix_ms: 1_800_000_000_000 };
        management.on_face_created(now, local_face(), &mut effects);
        management.on_face_created(now, udp_face(), &mut effects);
        Bench { management, router, now, effects }
    }

    pub(crate) fn pass_ms(&mut self, ms: u64) {
        self.now.mono_ns += ms * 1_000_000;
        self.now.unix_ms += ms;
    }

    /// Sends one Interest from the application.
    pub(crate) fn send(&mut self, interest: &[u8]) {
        self.send_from(LOCAL_FACE, interest);
    }

    /// An Interest from a face, or Data in answer to one of this node's own.
    pub(crate) fn send_from(&mut self, face: FaceId, interest: &[u8]) {
        self.effects.clear();
        let (now, router, out) = (self.now, &mut self.router, &mut self.effects);
        if interest.first() == Some(&(tlv::types::DATA as u8)) {
            self.management.on_answer(now, interest, None, router, out);
        } else {
            self.management.on_interest(now, face, interest, None, router, out);
        }
    }

    pub(crate) fn add_face(&mut self, face: FaceProperties) {
        self.management.on_face_created(self.now, face, &mut self.effects);
    }

    pub(crate) fn timers(&mut self) {
        self.effects.clear();
        self.management.run_timers(self.now, &mut self.effects);
    }

    pub(crate) fn close(&mut self, face: FaceId) {
        self.effects.clear();
        self.management.on_face_closed(self.now, face, &mut self.effects);
    }

    pub(crate) fn done(&mut self, result: Result<FaceProperties, FaceCommandError>) {
        let ticket = match self.effects.last() {
            Some(Effect::CreateFace(create)) => create.ticket,
            Some(Effect::UpdateFace(update)) => update.ticket,
            Some(Effect::DestroyFace { ticket, .. }) => *ticket,
            other => panic!("no face command but {other:?}"),
        };
        self.effects.clear();
        self.management.on_face_command_done(self.now, ticket, result, &mut self.effects);
    }

    /// Sends a signed command and returns its answer, checked as a client would.
    pub(crate) fn command(&mut self, command: &str, parameters: &ControlParameters) -> ControlResponse {
        let fields = SignedInterestFields { time_ms: Some(self.now.unix_ms), ..fresh_fields() };
        let interest = InterestBuilder::new(command_name(command, parameters)).nonce(Nonce([1, 2, 3, 4]));
        self.send(&interest.sign_digest(&fields));
        self.answer()
    }

    /// Sends a dataset request.
    pub(crate) fn request(&mut self, dataset: &str) {
        let interest = InterestBuilder::new(name(dataset)).can_be_prefix(true).must_be_fresh(true);
        self.send(&interest.nonce(Nonce([1, 2, 3, 4])).build());
    }

    /// The one reply, which must be the last effect.
    pub(crate) fn reply(&self) -> &[u8] {
        let replies = self.effects.iter().filter(|effect| matches!(effect, Effect::Reply { .. })).count();
        match self.effects.last() {
            Some(Effect::Reply { packet, .. }) if replies == 1 => packet,
            _ => panic!("not one reply at the end: {:?}", self.effects),
        }
    }

    pub(crate) fn answer(&self) -> ControlResponse {
        answer_in(self.reply())
    }

    /// Fetches a dataset the way clients do.
    pub(crate) fn fetch(&mut self, dataset: &str) -> Vec<u8> {
        self.request(dataset);
        let mut content = Vec::new();
        loop {
            let packet = self.reply().to_vec();
            let data = Data::parse(&packet).expect("Data");
            assert!(data.verify_digest_sha256() && data.freshness_ms() == 1000 && packet.len() <= 8800);
            content.extend_from_slice(data.content());
            let last = data.name().last().expect("segment");
            let segment = last.segment().expect("segment");
            assert!(data.name().parent().last().expect("version").version().is_some());
            assert!(name(dataset).as_name().is_prefix_of(&data.name()));
            if data.final_block_id() == Some(last) {
                return content;
            }
            let mut next = data.name().parent().to_buf();
            next.push_segment(segment + 1);
            self.send(&InterestBuilder::new(next).build());
        }
    }

    pub(crate) fn fib_changes(&self) -> Vec<FibChange> {
        let lists = self.effects.iter().filter_map(|effect| match effect {
            Effect::Fib(changes) => Some(changes.clone()),
            _ => None,
        });
        lists.flatten().collect()
    }

    pub(crate) fn create_effect(&self) -> &CreateFace {
        match self.effects.as_slice() {
            [Effect::CreateFace(create)] => create,
            other => panic!("not one CreateFace: {other:?}"),
        }
    }
}

pub(crate) fn answer_in(packet: &[u8]) -> ControlResponse {
    let data = Data::parse(packet).expect("Data");
    assert!(data.verify_digest_sha256());
    ControlResponse::decode(data.content()).expect("ControlResponse")
}

/// `/localhost/nfd/<command>/<parameters>`.
pub(crate) fn command_name(command: &str, parameters: &ControlParameters) -> NameBuf {
    let mut name = name(&format!("/localhost/nfd/{command}"));
    name.push_generic(&parameters.to_wire());
    name
}

/// A signed command that was not sent before.
pub(crate) fn signed_command(command: &str, parameters: &ControlParameters) -> Vec<u8> {
    let fields = fresh_fields();
    InterestBuilder::new(command_name(command, parameters)).nonce(Nonce([1, 2, 3, 4])).sign_digest(&fields)
}

pub(crate) fn fresh_fields() -> SignedInterestFields {
    static NEXT_NONCE: AtomicU64 = AtomicU64::new(0);
    let nonce = NEXT_NONCE.fetch_add(1, Ordering::Relaxed).to_be_bytes().to_vec();
    SignedInterestFields { nonce, time_ms: Some(1_800_000_000_000), seq_num: None }
}

pub(crate) fn for_prefix(prefix: &str) -> ControlParameters {
    ControlParameters { name: Some(name(prefix)), ..Default::default() }
}
