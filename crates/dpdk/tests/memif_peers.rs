//! Peers of a memif device come and go while a worker sends and receives. With DPDK 22.11, each leaving peer may crash
//! a worker that is within a burst, after a few dozen at most: see `src/gate.rs`.
#![cfg(feature = "dpdk")]

mod dpdk_process;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const PEERS: usize = 100;

#[test]
fn peers_leave_under_load() {
    let Some(eal) = dpdk_process::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let open = |name: &str, role: &str| dpdk_process::open_memif(&eal, folder.path(), name, role);
    let mut server = open("net_memif0", "server");
    let (stop, received) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                while server.send(&[&[1; 200]]) {}
                server.flush();
                received.fetch_add(server.receive(64, |_| ()), Ordering::Relaxed);
            }
        });
        for _ in 0..PEERS {
            let mut client = open("net_memif1", "client");
            dpdk_process::wait_for("the link", || client.is_up());
            for _ in 0..300 {
                while client.send(&[&[1; 200]]) {}
                client.flush();
                client.receive(64, |_| ());
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(received.into_inner() > PEERS);
}
