//! Lanes as control sees them: it opens the lanes of UDP faces at all workers, and agrees on them with the neighbours
//! (decision 0019).
//!
//! ```text
//!  the face is made ─► each worker opens a lane ─► hellos ─► each worker links its lane to the neighbour's lanes
//!                                                    │
//!                    all lanes hear each other ◄─────┘ idle packets by all links
//!                      └► each worker sends by its lane, until the neighbour or a lane falls silent
//! ```
//!
//! [`LaneAgreement`] decides; this file passes what it says to the workers. If a worker can open or link no lane, the
//! face goes on without lanes.

use crate::{
    messages::{LaneChange, LanePeer, ToWorker},
    senders::WorkerSender,
};
use namewire_engine::dispatch::Homes;
use namewire_faces::{
    AddFaceError, FaceCounters, FaceInfo, LinkCounters, LinkPolicy,
    lane_agreement::{HEARD_NS, LaneAgreement, Taken},
};
use namewire_packet::{FaceId, lane_hello::LaneHello};
use namewire_shares::Held;
use namewire_tables::HashKey;
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
};

/// Lanes that are no longer used hear what is on its way for so long.
const GRACE_NS: u64 = 1_000_000_000;

/// The faces with lanes.
pub struct LaneFaces {
    /// The key by which names find their home here.
    key: [u8; 16],
    workers: Arc<[WorkerSender]>,
    /// How many of them have names, and so lanes.
    count: usize,
    faces: BTreeMap<FaceId, LaneFace>,
    /// What former lanes of present faces have counted.
    former: BTreeMap<FaceId, LinkCounters>,
    /// What lanes of former faces have counted.
    gone: LinkCounters,
}

/// What control knows of a face that is to have lanes.
pub struct LaneEnds {
    /// The worker of the trunk.
    pub owner: u8,
    /// Our end.
    pub local: SocketAddr,
    /// The neighbour's end.
    pub remote: SocketAddr,
}

struct LaneFace {
    ends: LaneEnds,
    /// The port of each worker's lane, once it is open.
    ports: Vec<Option<u16>>,
    /// Once all are.
    agreement: Option<LaneAgreement>,
    /// By worker, the counters of its links to the present lanes of the neighbour.
    links: Vec<Option<Vec<Arc<FaceCounters>>>>,
    is_used: bool,
    /// The lanes are given up, and close at this time.
    closes_ns: Option<u64>,
    /// One descriptor for each lane.
    _descriptors: Vec<Held>,
}

impl LaneFaces {
    /// For a router with this key of the dispatcher. The first `count` of its workers have names.
    pub fn new(key: [u8; 16], workers: Arc<[WorkerSender]>, count: usize) -> Self {
        LaneFaces {
            key,
            workers,
            count,
            faces: BTreeMap::new(),
            former: BTreeMap::new(),
            gone: LinkCounters::default(),
        }
    }

    /// Opens the lanes of a face, unless it has some. `descriptor` takes one for each.
    pub fn begin(&mut self, face: FaceId, ends: LaneEnds, descriptor: impl Fn() -> Held) {
        match self.faces.get(&face) {
            Some(LaneFace { closes_ns: None, .. }) => return,
            Some(_) => self.close(face),
            None => {}
        }
        let local = ends.local;
        let lane = LaneFace {
            ends,
            ports: vec![None; self.count],
            agreement: None,
            links: vec![None; self.count],
            is_used: false,
            closes_ns: None,
            _descriptors: (0..self.count).map(|_| descriptor()).collect(),
        };
        self.faces.insert(face, lane);
        tell_all(&self.workers[..self.count], face, || LaneChange::Open { local });
    }

    /// The face is to have no lanes any more. The neighbour is told, and what is on its way is heard.
    pub fn end(&mut self, now_ns: u64, face: FaceId) {
        let Some(lane) = self.faces.get_mut(&face).filter(|lane| lane.closes_ns.is_none()) else { return };
        lane.say_farewell(&self.workers, face);
        lane.closes_ns = Some(now_ns + GRACE_NS);
        lane.set_use(&self.workers[..self.count], face, false);
    }

    /// The face is gone, or about to go. The neighbour is told.
    pub fn forget(&mut self, face: FaceId) {
        if let Some(lane) = self.faces.get_mut(&face) {
            lane.say_farewell(&self.workers, face);
            self.close(face);
        }
        self.former.remove(&face).into_iter().for_each(|former| self.gone.merge(&former));
    }

    /// This program is about to stop, or to be replaced: neighbours use the trunks until they hear of lanes again.
    pub fn say_farewell(&mut self) {
        self.faces.iter_mut().for_each(|(face, lane)| lane.say_farewell(&self.workers, *face));
    }

    /// A worker has opened its lane, or could not. `instance` is random.
    ///
    /// # Errors
    /// What the worker says. The face goes on without lanes.
    pub fn opened(
        &mut self,
        now_ns: u64,
        worker: u8,
        face: FaceId,
        result: Result<u16, AddFaceError>,
        instance: u64,
    ) -> Result<(), AddFaceError> {
        let Some(lane) = self.faces.get_mut(&face) else { return Ok(()) };
        lane.ports[usize::from(worker)] = Some(result.inspect_err(|_| lane.closes_ns = Some(now_ns))?);
        if let Some(ports) = lane.ports.iter().copied().collect::<Option<Vec<u16>>>() {
            lane.agreement = Some(LaneAgreement::new(now_ns, instance, self.key, ports));
        }
        Ok(())
    }

    /// A worker has linked its lane to the neighbour's lanes, or could not.
    ///
    /// # Errors
    /// What the worker says. The face goes on without lanes.
    pub fn linked(
        &mut self,
        now_ns: u64,
        worker: u8,
        face: FaceId,
        result: Result<Vec<Arc<FaceCounters>>, AddFaceError>,
    ) -> Result<(), AddFaceError> {
        let Some(lane) = self.faces.get_mut(&face) else { return Ok(()) };
        match result {
            Ok(counters) => lane.links[usize::from(worker)] = Some(counters),
            Err(error) => {
                self.end(now_ns, face);
                return Err(error);
            }
        }
        Ok(())
    }

    /// The neighbour has said what its lanes are. `info` and `policy` are the face's.
    pub fn heard(&mut self, now_ns: u64, face: FaceId, hello: LaneHello, info: &FaceInfo, policy: LinkPolicy) {
        let Some(lane) = self.faces.get_mut(&face) else { return };
        let Some(agreement) = &mut lane.agreement else { return };
        if agreement.take(now_ns, hello) != Taken::NewLanes {
            return;
        }
        let Some(peer) = agreement.peer() else { return };
        let remote = |port: &u16| {
            let mut remote = lane.ends.remote; // with the interface of a link-local address
            remote.set_port(*port);
            remote
        };
        let peer = Arc::new(LanePeer {
            info: info.clone(),
            policy,
            remotes: peer.ports.iter().map(remote).collect(),
            homes: Arc::new(Homes::new(HashKey::new(peer.key), peer.ports.len())),
        });
        self.former.entry(face).or_default().merge(&lane.counted());
        (lane.links, lane.is_used) = (vec![None; self.count], false);
        tell_all(&self.workers[..self.count], face, || LaneChange::Link(Arc::clone(&peer)));
    }

    /// Sends what is due, lets workers use lanes or not, and closes lanes. Returns the faces whose lanes are used from
    /// now on, or no longer.
    pub fn run(&mut self, now_ns: u64) -> Vec<(FaceId, bool)> {
        let is_over = |lane: &LaneFace| lane.closes_ns.is_some_and(|at| at <= now_ns);
        let over: Vec<FaceId> = self.faces.iter().filter(|(_, lane)| is_over(lane)).map(|(face, _)| *face).collect();
        over.into_iter().for_each(|face| self.close(face));
        let workers = &self.workers[..self.count];
        let changed = |(face, lane): (&FaceId, &mut LaneFace)| Some((*face, lane.run(workers, *face, now_ns)?));
        self.faces.iter_mut().filter_map(changed).collect()
    }

    /// When [`LaneFaces::run`] has something to do.
    pub fn next_run_ns(&self, now_ns: u64) -> Option<u64> {
        let next = |lane: &LaneFace| lane.closes_ns.or_else(|| Some(lane.agreement.as_ref()?.next_look_ns(now_ns)));
        self.faces.values().filter_map(next).min()
    }

    /// The state of a face's lanes, in words.
    pub fn words(&self, face: FaceId) -> Option<String> {
        let lane = self.faces.get(&face).filter(|lane| lane.closes_ns.is_none())?;
        let peer = lane.agreement.as_ref().and_then(LaneAgreement::peer);
        let (ours, theirs) = (lane.ports.len(), peer.map_or(0, |peer| peer.ports.len()));
        Some(match (peer, lane.is_used) {
            (None, _) => format!("{ours} lanes; the neighbour has none"),
            (Some(_), false) => format!("{ours} lanes here, {theirs} there, not in use"),
            (Some(_), true) => format!("{ours} lanes here, {theirs} there, in use"),
        })
    }

    /// What the lanes of a face have counted.
    pub fn counted(&self, face: FaceId) -> LinkCounters {
        let mut counted = self.former.get(&face).copied().unwrap_or_default();
        self.faces.get(&face).into_iter().for_each(|lane| counted.merge(&lane.counted()));
        counted
    }

    /// What all lanes have counted, those of former faces too.
    pub fn counted_in_all(&self) -> LinkCounters {
        let mut counted = self.gone;
        self.former.values().for_each(|former| counted.merge(former));
        self.faces.values().for_each(|lane| counted.merge(&lane.counted()));
        counted
    }

    fn close(&mut self, face: FaceId) {
        if let Some(lane) = self.faces.remove(&face) {
            self.former.entry(face).or_default().merge(&lane.counted());
            tell_all(&self.workers[..self.count], face, || LaneChange::Close);
        }
    }
}

impl LaneFace {
    /// The counters of all links, if every worker has linked its lane.
    fn all_links(&self) -> Option<Vec<&Arc<FaceCounters>>> {
        let links: Option<Vec<_>> = self.links.iter().map(Option::as_ref).collect();
        links.map(|links| links.into_iter().flatten().collect())
    }

    fn counted(&self) -> LinkCounters {
        let mut counted = LinkCounters::default();
        self.links.iter().flatten().flatten().for_each(|link| counted.merge(&link.snapshot()));
        counted
    }

    /// Returns whether lanes are used, if that has changed.
    fn run(&mut self, workers: &[WorkerSender], face: FaceId, now_ns: u64) -> Option<bool> {
        let links = self.all_links();
        let heard = |link: &&Arc<FaceCounters>| link.last_received_ns.load(Ordering::Relaxed);
        let is_fresh = |at_ns: u64| at_ns > 0 && now_ns.saturating_sub(at_ns) < HEARD_NS;
        let hears = links.as_ref().is_some_and(|links| links.iter().map(heard).all(is_fresh));
        let is_linked = links.is_some();
        let agreement = self.agreement.as_mut().filter(|_| self.closes_ns.is_none())?;
        agreement.note_hearing(now_ns, hears);
        if let Some(hello) = agreement.due(now_ns) {
            tell(&workers[usize::from(self.ends.owner)], face, LaneChange::Hello(hello.to_frame()));
            tell_all(workers, face, || LaneChange::Greet);
        }
        let is_used = is_linked && agreement.is_usable(now_ns);
        self.set_use(workers, face, is_used).then_some(is_used)
    }

    /// True if that is a change.
    fn set_use(&mut self, workers: &[WorkerSender], face: FaceId, is_used: bool) -> bool {
        let has_changed = std::mem::replace(&mut self.is_used, is_used) != is_used;
        if has_changed {
            tell_all(workers, face, || LaneChange::Use(is_used));
        }
        has_changed
    }

    /// The neighbour should use the trunk from now on.
    fn say_farewell(&mut self, workers: &[WorkerSender], face: FaceId) {
        let agreement = self.agreement.as_mut().filter(|_| self.closes_ns.is_none());
        if let Some(hello) = agreement.and_then(LaneAgreement::farewell) {
            tell(&workers[usize::from(self.ends.owner)], face, LaneChange::Hello(hello.to_frame()));
        }
    }
}

fn tell(worker: &WorkerSender, face: FaceId, change: LaneChange) {
    worker.send(ToWorker::Lane { face, change });
}

fn tell_all(workers: &[WorkerSender], face: FaceId, change: impl Fn() -> LaneChange) {
    workers.iter().for_each(|worker| tell(worker, face, change()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_faces::Waker;
    use namewire_packet::nfd::{FacePersistency, FaceScope, FaceUri, LinkType};
    use namewire_shares::{Holder, HolderPool, HolderTable, PoolConfig};
    use std::sync::mpsc::{Receiver, sync_channel};

    const FACE: FaceId = FaceId(300);
    const SECOND_NS: u64 = 1_000_000_000;

    struct Bench {
        lanes: LaneFaces,
        workers: Vec<Receiver<ToWorker>>,
        descriptors: HolderPool,
    }

    fn bench() -> Bench {
        let (senders, workers) = (0..2)
            .map(|_| {
                let (sender, receiver) = sync_channel(100);
                (WorkerSender::new(sender, Waker::new().unwrap()), receiver)
            })
            .collect::<(Vec<_>, Vec<_>)>();
        let config = PoolConfig {
            name: "descriptors",
            capacity: 10,
            share_percent: 80,
            management_reserve: 0,
            local_reserve: 0,
        };
        let lanes = LaneFaces::new([1; 16], senders.into(), 2);
        Bench { lanes, workers, descriptors: HolderPool::new(config, &HolderTable::default()) }
    }

    fn info() -> FaceInfo {
        FaceInfo {
            remote: FaceUri::Internal,
            local: FaceUri::Internal,
            scope: FaceScope::NonLocal,
            persistency: FacePersistency::Permanent,
            link_type: LinkType::PointToPoint,
            mtu: 1400,
            credentials: None,
        }
    }

    impl Bench {
        /// What a worker has been told since the last call, in words.
        fn told(&self, worker: usize) -> Vec<String> {
            let said = |message| match message {
                ToWorker::Lane { face: FACE, change } => match change {
                    LaneChange::Open { local } => format!("open {local}"),
                    LaneChange::Link(peer) => format!("link {:?}", peer.remotes),
                    LaneChange::Use(is_used) => format!("use {is_used}"),
                    LaneChange::Hello(_) => "hello".to_owned(),
                    LaneChange::Greet => "greet".to_owned(),
                    LaneChange::Close => "close".to_owned(),
                },
                _ => panic!("another message"),
            };
            self.workers[worker].try_iter().map(said).collect()
        }

        fn begin(&mut self) {
            let [local, remote] = [1, 2].map(|host| SocketAddr::from(([192, 0, 2, host], 6363)));
            let descriptor = || self.descriptors.take(&Holder::Management, 1);
            self.lanes.begin(FACE, LaneEnds { owner: 1, local, remote }, descriptor);
        }

        /// Both workers have opened and linked their lanes, and the neighbour has heard them.
        fn agree(&mut self) -> Vec<Arc<FaceCounters>> {
            self.begin();
            for worker in 0..2 {
                self.lanes.opened(0, worker, FACE, Ok(5000 + u16::from(worker)), 77).unwrap();
            }
            let hello = LaneHello { instance: 5, echo: 77, hears: true, key: [2; 16], ports: vec![7001, 7002] };
            self.lanes.heard(0, FACE, hello, &info(), LinkPolicy::default());
            let links: Vec<Arc<FaceCounters>> = (0..4).map(|_| Arc::default()).collect();
            for worker in 0..2 {
                let of_worker = links[2 * usize::from(worker)..][..2].to_vec();
                self.lanes.linked(0, worker, FACE, Ok(of_worker)).unwrap();
            }
            links
        }
    }

    #[test]
    fn workers_open_link_and_use_their_lanes() {
        let mut bench = bench();
        let links = bench.agree();
        let both = ["open 192.0.2.1:6363", "link [192.0.2.2:7001, 192.0.2.2:7002]"];
        assert_eq!(
            (bench.told(0), bench.told(1)),
            (both.map(str::to_owned).to_vec(), both.map(str::to_owned).to_vec())
        );
        assert_eq!(bench.lanes.run(0), [(FACE, true)]);
        assert_eq!(
            (bench.told(0), bench.told(1)),
            (words(&["greet", "use true"]), words(&["hello", "greet", "use true"]))
        );
        // What the links have counted is the face's.
        links.iter().for_each(|link| link.in_data.store(3, Ordering::Relaxed));
        assert_eq!(bench.lanes.counted(FACE).in_data, 12);
        assert_eq!(bench.lanes.words(FACE).as_deref(), Some("2 lanes here, 2 there, in use"));
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn lanes_that_are_given_up_hear_for_a_second_and_their_counts_stay() {
        let mut bench = bench();
        let links = bench.agree();
        bench.lanes.run(0);
        bench.told(0);
        bench.told(1);
        bench.lanes.end(0, FACE);
        bench.lanes.end(0, FACE);
        assert_eq!((bench.told(0), bench.told(1)), (words(&["use false"]), words(&["hello", "use false"])));
        links[0].in_data.store(3, Ordering::Relaxed);
        assert_eq!(bench.lanes.next_run_ns(0), Some(SECOND_NS));
        assert_eq!(bench.lanes.run(SECOND_NS - 1), []);
        assert_eq!(bench.told(0), words(&[]));
        bench.lanes.run(SECOND_NS);
        assert_eq!((bench.told(0), bench.told(1)), (words(&["close"]), words(&["close"])));
        assert_eq!((bench.lanes.next_run_ns(SECOND_NS), bench.lanes.words(FACE)), (None, None));
        assert_eq!(bench.lanes.counted(FACE).in_data, 3);
        bench.lanes.forget(FACE);
        assert_eq!((bench.lanes.counted(FACE).in_data, bench.lanes.counted_in_all().in_data), (0, 3));
    }

    #[test]
    fn a_worker_without_a_lane_ends_them_all() {
        let mut bench = bench();
        bench.begin();
        bench.lanes.opened(0, 0, FACE, Ok(5000), 77).unwrap();
        let refused = AddFaceError::FaceLimit(1);
        assert!(bench.lanes.opened(0, 1, FACE, Err(refused), 77).is_err());
        bench.lanes.run(0);
        assert_eq!(bench.told(1), words(&["open 192.0.2.1:6363", "close"]));
        // Once there is room, a command opens them again.
        bench.begin();
        assert_eq!(bench.told(0), words(&["open 192.0.2.1:6363", "close", "open 192.0.2.1:6363"]));
    }
}
