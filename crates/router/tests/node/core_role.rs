//! Edge and core routers over UDP, with real applications. The names are made to collide, and every consumer gets its
//! Data.
//!
//! ```text
//!   near ──── core 1 ──── core 2 ──── far
//!     └──────────────────────┘
//! ```
//!
//! /west uses the whole path, /south goes from near to core 2 directly. Their names collide at core 2, and core 1 gets
//! Data of /south that it never asked for. All routers have the same seed, and so the same fingerprints.

use crate::application::{Application, name, start_with};
use namewire_configuration::settings::{Choice, FaceListChoice, PitSection, Role};
use namewire_packet::{FaceId, nfd::ControlParameters};
use namewire_router::RouterHandle;
use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// Names that each consumer asks for.
const NAMES: usize = 600;
/// Names that a consumer asks for at once.
const WINDOW: usize = 24;

struct Nodes {
    near: RouterHandle,
    cores: [RouterHandle; 2],
    far: RouterHandle,
    _directories: Vec<tempfile::TempDir>,
}

/// `faces`: how the cores keep the faces. No router stores Data, which would hide losses.
fn start_nodes(workers: usize, faces: FaceListChoice) -> Nodes {
    let mut directories = Vec::new();
    let mut start = |pit: &PitSection| {
        let (router, directory) = start_with(workers, |config| {
            config.settings.pit = pit.clone();
            config.settings.cs.admit = false;
            config.settings.router.seed = Some(1);
        });
        directories.push(directory);
        router
    };
    let (role, face_sets) = (Choice(Role::Core), 64);
    let core = PitSection { role, fingerprints: 256, fingerprint_bits: 1, faces, face_sets, ..PitSection::default() };
    let [near, far] = [(); 2].map(|()| start(&PitSection::default()));
    let cores = [(); 2].map(|()| start(&core));
    Nodes { near, cores, far, _directories: directories }
}

/// Makes a face from one router to another, and routes to it. The first packet makes the way back.
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

fn everything_is_delivered(workers: usize, faces: FaceListChoice) {
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
    everything_is_delivered(1, FaceListChoice::Bits);
    everything_is_delivered(2, FaceListChoice::Sets);
}

/// A core keeps what its own management and applications ask by name. So a core can be the only router of an
/// application.
#[test]
fn a_core_serves_its_own_applications_too() {
    let (core, _directory) = start_with(2, |config| {
        (config.settings.pit.role, config.settings.pit.fingerprints) = (Choice(Role::Core), 4096);
    });
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
