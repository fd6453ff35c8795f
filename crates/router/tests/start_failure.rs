//! A router that cannot start leaves nothing behind. A file of its own: it takes
//! descriptors from the whole process.

use namewire_router::{Router, RouterConfig};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{fs, net::UdpSocket, time::Duration};

/// Threads of routers; one that was waited for may be listed a moment longer.
fn threads_of_routers() -> usize {
    let count = || {
        let tasks = fs::read_dir("/proc/self/task").unwrap().filter_map(Result::ok);
        let names = tasks.map(|task| fs::read_to_string(task.path().join("comm")).unwrap_or_default());
        names.filter(|name| name.starts_with("nw-")).count()
    };
    for _ in 0..100 {
        if count() == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    count()
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn without_descriptors_neither_threads_nor_sockets_stay() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nfd.sock");
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = RouterConfig {
        socket: Some(path.clone()),
        tcp: vec!["127.0.0.1:0".parse().unwrap()],
        udp: vec![udp],
        workers: 4,
        ..RouterConfig::default()
    };
    // What the runtime opens once per process, it opens here.
    Router::start(config.clone()).unwrap().stop();
    let (limit, before) = (getrlimit(Resource::Nofile), descriptors());
    let mut failures = 0;
    for spare in 0..100 {
        setrlimit(Resource::Nofile, Rlimit { current: Some(before as u64 + spare), ..limit }).unwrap();
        let started = Router::start(config.clone());
        setrlimit(Resource::Nofile, limit).unwrap();
        match started {
            Ok(router) => {
                router.stop();
                assert!(!path.exists());
                assert!(failures > 10, "{failures} failures met");
                return;
            }
            Err(error) => {
                failures += 1;
                assert_eq!(threads_of_routers(), 0, "with {spare} descriptors: {error}");
                assert!(descriptors() <= before, "with {spare} descriptors: {error}");
                assert!(!path.exists(), "with {spare} descriptors: {error}");
            }
        }
    }
    panic!("did not start with 100 descriptors to spare");
}
