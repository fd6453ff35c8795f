//! A router that cannot start leaves no threads or files behind. This is a separate file, because it takes descriptors
//! from the whole process.

use namewire_configuration::{Configuration, Settings};
use namewire_router::Router;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{fs, net::UdpSocket, time::Duration};

/// The number of router threads. A thread that was joined may be listed a moment longer.
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
    let mut config = Configuration::default();
    let Settings { router, faces, .. } = &mut config.settings;
    router.workers = 4;
    faces.unix.path = Some(path.clone());
    faces.tcp.listen = Some(vec!["127.0.0.1:0".parse().unwrap()]);
    faces.udp.listen = Some(vec![udp]);
    // The runtime opens some things once per process; this opens them.
    Router::start(&config).unwrap().stop();
    let (limit, before) = (getrlimit(Resource::Nofile), descriptors());
    let mut failures = 0;
    for spare in 0..100 {
        setrlimit(Resource::Nofile, Rlimit { current: Some(before as u64 + spare), ..limit }).unwrap();
        let started = Router::start(&config);
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
