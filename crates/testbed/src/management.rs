//! Management in memory: given faces and counters, the engine's strategies, and all effects of management in a form
//! that tests can check.

use crate::packet::uri;
use namewire_engine::{StrategyTable, strategy};
use namewire_management::{
    CapturePlane, CreateFace, Effect, Environment, FaceCommandError, FaceProperties, FibChange, Management,
    ManagementConfig, PeerCredentials, ProcessPlane, ProcessTask, ResolvedStrategy, StrategyError, StrategyRegistry,
    TagPlane, Times, TrustConfig,
};
use namewire_packet::{
    Data, FaceId, InterestBuilder, NameBuf, Nonce, SignedInterestFields,
    nfd::{
        ChannelStatus, ControlParameters, ControlResponse, CsInfo, CsPolicyUsage, CsPrefixUsage, CsUsage, DropCounter,
        DroppedPacket, FaceHealth, FacePersistency, FaceScope, FaceUri, FibUsage, ForwarderStatus, LinkType, NodeState,
        PacketKind, Part, PoolHolding, ProcessPrivileges, WorkerLoad,
    },
    tlv,
};
use namewire_shares::HolderId;
use namewire_tables::{Fib, FibRefusal, NextHop, fib::FibEntryKind};
use std::sync::atomic::{AtomicU64, Ordering};

/// An application of the user that the router runs as.
pub const LOCAL_FACE: FaceId = FaceId(300);
/// A router on another machine.
pub const UDP_FACE: FaceId = FaceId(301);
/// The address of that router.
pub const REMOTE: &str = "udp4://192.0.2.1:6363";

/// The router as management sees it.
#[derive(Default)]
pub struct Router {
    strategies: StrategyTable,
    /// Strategies that no prefix uses any more.
    pub released: Vec<u32>,
    /// The Content Store's report.
    pub cs: CsInfo,
    /// What the path of [`UDP_FACE`] takes, if that is known.
    pub path_mtu: Option<u64>,
    /// TagNet, if it is on.
    pub tag_plane: Option<Box<dyn TagPlane>>,
    /// Captures, if there are any.
    pub capture_plane: Option<Box<dyn CapturePlane>>,
    /// The tasks that the process was given, if there is one.
    pub process: Option<Tasks>,
}

/// A process that notes its tasks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tasks(pub Vec<ProcessTask>);

impl ProcessPlane for Tasks {
    fn begin(&mut self, task: ProcessTask) -> Result<String, String> {
        self.0.push(task);
        Ok(format!("{{\"number\":{}}}", self.0.len()))
    }

    fn last_outcome(&self) -> String {
        "{}".to_owned()
    }
}

impl Router {
    /// The strategies by number, as the FIB's entries name them.
    pub const fn strategies(&self) -> &StrategyTable {
        &self.strategies
    }
}

/// Makes a change of management in the FIB, as the router's writer does.
///
/// # Errors
///
/// The FIB refuses it.
pub fn change_fib(fib: &mut Fib, change: &FibChange) -> Result<(), FibRefusal> {
    match change {
        FibChange::Insert { name, next_hops, strategy, chooses, hidden } => {
            let kind = match (next_hops.iter().any(|hop| hop.face == FaceId::INTERNAL), hidden, chooses) {
                (true, _, _) => FibEntryKind::Own,
                (_, true, _) => FibEntryKind::Strategy,
                (_, _, true) => FibEntryKind::RouteWithStrategy,
                (_, _, false) => FibEntryKind::Route,
            };
            let next_hops: Vec<NextHop> =
                next_hops.iter().map(|hop| NextHop { face: hop.face.0, cost: hop.cost }).collect();
            fib.insert_as(name.value(), &next_hops, *strategy, kind).map(drop)
        }
        FibChange::Remove { name } => fib.remove(name.value()).map(drop),
    }
}

impl StrategyRegistry for Router {
    fn resolve(&mut self, requested: &NameBuf) -> Result<ResolvedStrategy, StrategyError> {
        match self.strategies.resolve(requested) {
            Ok((id, instance)) => Ok(ResolvedStrategy { id, instance }),
            Err(strategy::StrategyError::Unknown) => {
                Err(StrategyError::Unknown(strategy::registry::known_strategies()))
            }
            Err(strategy::StrategyError::Invalid(why)) => Err(StrategyError::Invalid(why)),
            Err(strategy::StrategyError::TooMany) => Err(StrategyError::Full),
        }
    }

    fn release(&mut self, id: u32) {
        self.released.push(id);
    }
}

impl Router {
    /// A part of what it says of itself.
    pub fn part(&self, part: Part) -> NodeState {
        let mut state = NodeState::default();
        self.fill(part, &mut state);
        state
    }
}

impl Environment for Router {
    fn fill(&self, part: Part, state: &mut NodeState) {
        match part {
            Part::Faces => {
                for face in &mut state.faces {
                    face.counters.packets.in_interests = face.face_id.0;
                    let is_udp = face.face_id == UDP_FACE;
                    face.expiration_period_ms = is_udp.then_some(600_000);
                    face.path_mtu = self.path_mtu.filter(|_| is_udp);
                }
            }
            Part::General => {
                let version = "test".to_owned();
                state.general = Some(ForwarderStatus { nfd_version: version, n_cs_entries: 7, ..Default::default() });
            }
            Part::Privileges => {
                let capabilities = "net-raw".to_owned();
                state.privileges = Some(ProcessPrivileges { user: 7, capabilities, no_new_privileges: true });
            }
            Part::Cs => state.cs = Some(self.cs),
            Part::FibUsage => {
                let design = "npt".to_owned();
                state.fib_usage = Some(FibUsage { design, capacity_entries: 100, bytes: 5_000, is_lossy: false });
            }
            Part::CsUsage => state.cs_usage = Some(cs_usage()),
            Part::Dropped => state.dropped = vec![dropped()],
            Part::Health => state.health = vec![health()],
            Part::Holders => {
                let all = PoolHolding { pool: "faces".to_owned(), capacity: 16_384, held: 2, ..PoolHolding::default() };
                let holder = Some("192.0.2.1".to_owned());
                state.holders = vec![all.clone(), PoolHolding { holder, held: 1, refused: 3, ..all }];
            }
            Part::Drops => state.drops = vec![DropCounter { reason: "engine.no-route".to_owned(), count: 3 }],
            Part::Channels => {
                let uris = ["udp4://0.0.0.0:6363", "unix:///run/nfd/nfd.sock"];
                state.channels = uris.map(|uri| ChannelStatus { local_uri: uri.to_owned() }).into();
            }
            Part::Workers => state.workers = vec![WorkerLoad { busy_ns: 5, ..WorkerLoad::default() }],
            Part::Strategies | Part::Settings => {}
        }
    }

    fn resolve_cs_policy(&self, text: &str) -> Result<String, String> {
        match text {
            "fifo" => Ok("all/fifo".to_owned()),
            other => Err(format!("no policy is called {other:?}")),
        }
    }

    fn tag_plane(&mut self) -> Option<&mut dyn TagPlane> {
        self.tag_plane.as_deref_mut().map(|plane| plane as &mut dyn TagPlane)
    }

    fn process_plane(&mut self) -> Option<&mut dyn ProcessPlane> {
        self.process.as_mut().map(|process| process as &mut dyn ProcessPlane)
    }

    fn capture_plane(&mut self) -> Option<&mut dyn CapturePlane> {
        self.capture_plane.as_deref_mut().map(|plane| plane as &mut dyn CapturePlane)
    }
}

fn cs_usage() -> CsUsage {
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

fn dropped() -> DroppedPacket {
    DroppedPacket {
        reason: "engine.no-route".to_owned(),
        time_ms: 5,
        kind: PacketKind::Interest,
        face: Some(FaceId(300)),
        name: Some("/a/b".parse().expect("a name")),
        is_name_cut: true,
        count: 1,
    }
}

fn health() -> FaceHealth {
    let (answered, unanswered) = (10, 1);
    let (last_us, median_us, p99_us) = (Some(70), Some(100), None);
    FaceHealth { face: UDP_FACE, since_ms: 5, answered, unanswered, last_us, median_us, p99_us, recent: None }
}

/// The properties of [`LOCAL_FACE`].
pub fn local_face() -> FaceProperties {
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
        holder: HolderId::ANY_LOCAL,
        credentials: Some(ROUTER_PEER),
    }
}

/// The user that the router under test runs as.
pub const ROUTER_UID: u32 = 1500;
/// One of its processes.
pub const ROUTER_PEER: PeerCredentials = PeerCredentials { uid: ROUTER_UID, gid: 1500, groups: Vec::new(), pid: 4711 };

/// The properties of [`UDP_FACE`].
pub fn udp_face() -> FaceProperties {
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
        holder: HolderId::ANY_REMOTE,
        credentials: None,
    }
}

/// Management under test.
pub struct Bench {
    /// Management itself.
    pub management: Management,
    /// The router that management sees.
    pub router: Router,
    /// The time.
    pub now: Times,
    /// Everything emitted by the last call.
    pub effects: Vec<Effect>,
}

impl Default for Bench {
    fn default() -> Self {
        Bench::with_config(ManagementConfig::default())
    }
}

impl Bench {
    /// With the default settings.
    pub fn new() -> Self {
        Bench::default()
    }

    /// With these rules of who may command.
    pub fn with_trust(trust: TrustConfig) -> Self {
        Bench::with_config(ManagementConfig { trust, ..Default::default() })
    }

    /// With one application face and one UDP face.
    pub fn with_config(config: ManagementConfig) -> Self {
        let mut bench = Bench::without_faces(config);
        bench.add_face(local_face());
        bench.add_face(udp_face());
        bench
    }

    /// Without any face. It asks for no revocation records, until [`Management::set_trust`] says otherwise.
    pub fn without_faces(mut config: ManagementConfig) -> Self {
        config.trust.looks_up_revocations = false;
        let mut router =
            Router { cs: CsInfo { capacity: 65536, flags: 3, ..Default::default() }, ..Default::default() };
        let mut effects = Vec::new();
        let config = ManagementConfig { router_uid: config.router_uid.or(Some(ROUTER_UID)), ..config };
        let management = Management::new(config, &mut router, &mut effects).expect("default strategies exist");
        let now = Times { mono_ns: 1_000_000_000, unix_ms: 1_800_000_000_000 };
        Bench { management, router, now, effects }
    }

    /// Lets time pass.
    pub fn pass_ms(&mut self, ms: u64) {
        self.now.mono_ns += ms * 1_000_000;
        self.now.unix_ms += ms;
    }

    /// Sends one Interest from the application.
    pub fn send(&mut self, interest: &[u8]) {
        self.send_from(LOCAL_FACE, interest);
    }

    /// An Interest from a face, or Data that answers an Interest of this node.
    pub fn send_from(&mut self, face: FaceId, interest: &[u8]) {
        self.effects.clear();
        let (now, router, out) = (self.now, &mut self.router, &mut self.effects);
        if interest.first() == Some(&(tlv::types::DATA as u8)) {
            self.management.on_answer(now, Some(face), interest, None, router, out);
        } else {
            self.management.on_interest(now, face, interest, None, router, out);
        }
    }

    /// A face appears.
    pub fn add_face(&mut self, face: FaceProperties) {
        self.management.on_face_created(self.now, face, &mut self.effects);
    }

    /// Runs the timers that are due.
    pub fn timers(&mut self) {
        self.effects.clear();
        self.management.run_timers(self.now, &mut self.router, &mut self.effects);
    }

    /// A face closes.
    pub fn close(&mut self, face: FaceId) {
        self.effects.clear();
        self.management.on_face_closed(self.now, face, &mut self.effects);
    }

    /// Ends the last face command with this result.
    pub fn done(&mut self, result: Result<FaceProperties, FaceCommandError>) {
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
    pub fn command(&mut self, command: &str, parameters: &ControlParameters) -> ControlResponse {
        let fields = SignedInterestFields { time_ms: Some(self.now.unix_ms), ..fresh_fields() };
        let interest = InterestBuilder::new(command_name(command, parameters)).nonce(Nonce([1, 2, 3, 4]));
        self.send(&interest.sign_digest(&fields));
        self.answer()
    }

    /// Sends a dataset request.
    pub fn request(&mut self, dataset: &str) {
        let interest = InterestBuilder::new(uri(dataset)).can_be_prefix(true).must_be_fresh(true);
        self.send(&interest.nonce(Nonce([1, 2, 3, 4])).build());
    }

    /// The only reply, which must be the last effect.
    pub fn reply(&self) -> &[u8] {
        let replies = self.effects.iter().filter(|effect| matches!(effect, Effect::Reply { .. })).count();
        match self.effects.last() {
            Some(Effect::Reply { packet, .. }) if replies == 1 => packet,
            _ => panic!("not one reply at the end: {:?}", self.effects),
        }
    }

    /// The only reply, as a ControlResponse.
    pub fn answer(&self) -> ControlResponse {
        answer_in(self.reply())
    }

    /// Fetches a dataset as clients do.
    pub fn fetch(&mut self, dataset: &str) -> Vec<u8> {
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
            assert!(uri(dataset).as_name().is_prefix_of(&data.name()));
            if data.final_block_id() == Some(last) {
                return content;
            }
            let mut next = data.name().parent().to_buf();
            next.push_segment(segment + 1);
            self.send(&InterestBuilder::new(next).build());
        }
    }

    /// All FIB changes of the last call.
    pub fn fib_changes(&self) -> Vec<FibChange> {
        let lists = self.effects.iter().filter_map(|effect| match effect {
            Effect::Fib(changes) => Some(changes.clone()),
            _ => None,
        });
        lists.flatten().collect()
    }

    /// The only face that the last call asked to create.
    pub fn create_effect(&self) -> &CreateFace {
        match self.effects.as_slice() {
            [Effect::CreateFace(create)] => create,
            other => panic!("not one CreateFace: {other:?}"),
        }
    }
}

/// The ControlResponse in a reply; checks the reply's signature.
pub fn answer_in(packet: &[u8]) -> ControlResponse {
    let data = Data::parse(packet).expect("Data");
    assert!(data.verify_digest_sha256());
    ControlResponse::decode(data.content()).expect("ControlResponse")
}

/// `/localhost/nfd/<command>/<parameters>`.
pub fn command_name(command: &str, parameters: &ControlParameters) -> NameBuf {
    let mut name = uri(&format!("/localhost/nfd/{command}"));
    name.push_generic(&parameters.to_wire());
    name
}

/// A signed command that was not sent before.
pub fn signed_command(command: &str, parameters: &ControlParameters) -> Vec<u8> {
    let fields = fresh_fields();
    InterestBuilder::new(command_name(command, parameters)).nonce(Nonce([1, 2, 3, 4])).sign_digest(&fields)
}

/// Fields of a signature that were not used before.
pub fn fresh_fields() -> SignedInterestFields {
    static NEXT_NONCE: AtomicU64 = AtomicU64::new(0);
    let nonce = NEXT_NONCE.fetch_add(1, Ordering::Relaxed).to_be_bytes().to_vec();
    SignedInterestFields { nonce, time_ms: Some(1_800_000_000_000), seq_num: None }
}

/// Parameters with this name.
pub fn for_prefix(prefix: &str) -> ControlParameters {
    ControlParameters { name: Some(uri(prefix)), ..Default::default() }
}
