//! The common part of the tests. DPDK starts once per process, so each file of tests has one test.
#![allow(dead_code, reason = "each test uses some of it")]

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use namewire_dpdk::{Eal, Port, PortOptions};

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts DPDK without huge pages and cards. `None`, with a line that says why, if this process may not.
pub(crate) fn start() -> Option<Arc<Eal>> {
    let args = ["--no-huge", "-m", "256", "--no-pci"].map(String::from);
    match Eal::init(&args) {
        Ok(eal) => Some(eal),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A port with few buffers, so that several fit into the memory of a test.
pub(crate) fn small() -> PortOptions {
    PortOptions { receive_descriptors: 256, transmit_descriptors: 256, buffers: 2_047, ..PortOptions::default() }
}

/// One end of net_memif: `role` is `server` or `client`.
pub(crate) fn open_memif(eal: &Arc<Eal>, folder: &Path, name: &str, role: &str) -> Port {
    let socket = folder.join("memif.sock");
    let device = format!("{name},role={role},id=0,socket={},socket-abstract=no", socket.display());
    Port::open(eal, &device, &small()).expect(role)
}

/// A frame of so many bytes, each of which depends on `number`.
pub(crate) fn frame(number: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (number * 31 + i * 7) as u8).collect()
}

/// All frames that come until there are `count`.
pub(crate) fn receive(port: &mut Port, count: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    wait_for("frames", || {
        port.receive(64, |frame| frames.push(frame.to_vec()));
        frames.len() >= count
    });
    frames
}

/// Calls `is_done` until it says so.
pub(crate) fn wait_for(what: &str, mut is_done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_done() {
        assert!(start.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::sleep(Duration::from_micros(100));
    }
}
