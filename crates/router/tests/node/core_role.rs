//! Edge and core routers over UDP, with real applications: names are made to collide, and everybody gets their Data.
//!
//! ```text
//!   near ──── core 1 ──── core 2 ──── far
//!     └──────────────────────┘
//! ```
//!
//! /west goes all the way, /south from near to core 2 at once: there their names collide, and core 1 gets Data of
//! /south that it never asked for. All routers have the same seed, and so the same fingerprints.

use crate::application::{Application, name, start_with};
use namewire_packet::{FaceId, nfd::ControlParameters};
use namewire_router::{CoreConfig, FaceList, FingerprintPitConfig, PitRole, RouterHandle};
use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// Names that each consumer asks for.
const NAMES: usize = 600;
/// Of which so many at once.
const WINDOW: usize = 24;

struct Nodes {
    near: RouterHandle,
    cores: [RouterHandle; 2],
    far: RouterHandle,
    _directories: Vec<tempfile::TempDir>,
}

/// `faces`: how the cores keep them. Nobody stores Data, which would hide what is lost.
fn start_nodes(workers: usize, faces: FaceList) -> Nodes {
    let mut directories = Vec::new();
    let mut start = |pit_role: PitRole| {
        let (router, directory) = start_with(workers, |config| {
            config.engine.pit_role = pit_role;
            config.engine.cs_admit = false;
            config.seed = Some(1);
        });
        directories.push(directory);
        router
    };
    let fingerprints = FingerprintPitConfig { fingerprint_bits: 1, faces, ..FingerprintPitConfig::new(256) };
    let core = PitRole::Core(CoreConfig { fingerprints, ..CoreConfig::new(256) });
    let [near, far] = [(); 2].map(|()| start(PitRole::Edge));
    let cores = [(); 2].map(|()| start(core.clone()));
    Nodes { near, cores, far, _directories: directories }
}

/// A face from one router to another, and routes that lead there. The way back comes with the first packet.
fn link(from: &RouterHandle, to: &RouterHandle, prefixes: &[&str]) -> FaceId {
    let mut operator = Application::connect(from);
    let uri = Some(format!("udp4://{}", to.udp()[0]));
    let face_id = operator.succeed("/faces/create", ControlParameters { uri, ..Default::default() }).face_id;
    for prefix in prefixes {
        let name = Some(name(prefix));
        operator.succeed("/rib/register", ControlParameters { name, face_id, ..Default::default() });
    }
    face_id.expect("a face")
}

/// Asks for all names under `prefix`; each must come.
fn ask_for_all(consumer: &mut Application, prefix: &str) {
    let uri = |number: usize| format!("{prefix}/{number}");
    let (mut asked, mut pending) = (0, BTreeSet::new());
    for received in 0..NAMES {
        while asked < NAMES && pending.len() < WINDOW {
            let interest = consumer.interest(name(&uri(asked))).build();
            consumer.send(&interest);
            pending.insert(uri(asked));
            asked += 1;
        }
        let packet = consumer.receive().unwrap_or_else(|| panic!("after {received} nothing came of {pending:?}"));
        assert_eq!((packet.headers.nack, packet.headers.collided), (None, false));
        let came = packet.data().name().to_string();
        assert_eq!(packet.data().content(), b"content");
        assert!(pending.remove(&came), "{came} was not asked for");
    }
}

fn everything_is_delivered(workers: usize, faces: FaceList) {
    let nodes = start_nodes(workers, faces);
    let Nodes { near, cores, far, .. } = &nodes;
    let mut producer = Application::connect(far);
    producer.register("/west");
    producer.register("/south");
    link(&cores[1], far, &["/west", "/south"]);
    link(&cores[0], &cores[1], &["/west"]);
    link(near, &cores[0], &["/west"]);
    link(near, &cores[1], &["/south"]);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                producer.serve_for(Duration::from_millis(100), b"content");
            }
        });
        let asking = ["/west/a", "/west/b", "/south/a", "/south/b"].map(|prefix| {
            let mut consumer = Application::connect(near);
            scope.spawn(move || ask_for_all(&mut consumer, prefix))
        });
        let ended = asking.map(|asking| asking.join());
        done.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|ended| ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    });
    let what = |core: &RouterHandle, count: &str| Application::connect(core).drops(&format!("core.{count}"));
    assert_eq!(what(&cores[1], "by-fingerprint"), 4 * NAMES as u64, "{workers} workers");
    assert!(what(&cores[1], "fingerprints-collided") > 0);
    let status = Application::connect(&cores[1]).status();
    assert!(status.n_satisfied_interests >= 4 * NAMES as u64, "{status:?}");
    assert!(what(&cores[0], "collided-marks-in") > 0);
    assert_eq!(what(near, "by-fingerprint") + what(far, "by-fingerprint"), 0, "edges keep names");
    assert!(Application::connect(near).drops("engine.unsolicited-data") > 0, "what collided came too");
}

#[test]
fn edges_and_cores_deliver_everything_though_names_collide() {
    everything_is_delivered(1, FaceList::Bits);
    everything_is_delivered(2, FaceList::Sets { max_sets: 64 });
}

/// What a core's own management and applications ask is kept by name, and a core can be a router's only one.
#[test]
fn a_core_serves_its_own_applications_too() {
    let (core, _directory) = start_with(2, |config| config.engine.pit_role = PitRole::Core(CoreConfig::new(4096)));
    let mut producer = Application::connect(&core);
    producer.register("/own");
    let mut consumer = Application::connect(&core);
    let serving = std::thread::spawn(move || producer.serve(50, b"own"));
    for number in 0..50 {
        let reply = consumer.express(&format!("/own/{number}")).expect("Data");
        assert_eq!(reply.data().content(), b"own");
    }
    serving.join().unwrap();
    assert_eq!(consumer.drops("core.by-fingerprint"), 0);
    assert!(consumer.express("/none").expect("a Nack").headers.nack.is_some());
}
