//! Third-party software: testpmd of DPDK as the peer, in both roles. It sends back every frame.
//!
//! If `dpdk-testpmd` is not installed (Debian: package `dpdk-dev`), the test prints this and passes. testpmd needs no
//! privileges and no huge pages for this.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use namewire_memif::{Accept, ClientOptions, Listener, Port, Progress, connect};

const PATIENCE: Duration = Duration::from_secs(60);

/// A testpmd never sleeps: one at a time.
static ONE: Mutex<()> = Mutex::new(());

/// A testpmd, ended when dropped.
struct Testpmd(Child);

impl Testpmd {
    /// `None` if it is not installed.
    fn start(role: &str, socket: &Path) -> Option<Testpmd> {
        let device = format!("net_memif0,role={role},id=3,socket={},socket-abstract=no", socket.display());
        let child = Command::new("dpdk-testpmd")
            .args([
                "--no-huge",
                "--no-shconf",
                "--no-pci",
                "--no-telemetry",
                "-m",
                "128",
                "-l",
                "0,1",
                "--vdev",
                &device,
            ])
            .args(["--", "--port-topology=loop", "--forward-mode=io", "--auto-start", "--no-mlockall"])
            .args(["--total-num-mbufs=4096", "--no-flush-rx"]) // It flushes what came before it forwards.
            .stdin(Stdio::piped()) // It ends at the end of its input.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match child {
            Ok(child) => Some(Testpmd(child)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                println!("skipped: dpdk-testpmd is not installed");
                None
            }
            Err(error) => panic!("dpdk-testpmd: {error}"),
        }
    }

    fn assert_runs(&mut self) {
        assert_eq!(self.0.try_wait().expect("a child"), None, "testpmd has ended");
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends frames of up to `bytes_max` bytes and expects them back in order, with at most 200 on their way.
fn check_echo(port: &mut Port, testpmd: &mut Testpmd, bytes_max: usize) {
    const FRAMES: u32 = 150_000; // The indices of the rings pass 2^16 twice.
    let deadline = Instant::now() + PATIENCE;
    let (mut sent, mut received) = (0u32, 0u32);
    let length = |number: u32| 60 + (number as usize * 7) % (bytes_max - 59);
    let mut out = [0; 8_192];
    while received < FRAMES {
        while sent < FRAMES && sent < received + 200 {
            let number = sent.to_ne_bytes();
            let filler = [sent as u8; 8_192];
            if !port.send(&[&[2; 14], &number, &filler[..length(sent) - 18]]) {
                break;
            }
            sent += 1;
        }
        port.flush().expect("flushed");
        let taken = port.receive(64, |frame| {
            assert_eq!((frame.copy_to(&mut out), frame.len()), (length(received), length(received)));
            assert_eq!(out[14..18], received.to_ne_bytes());
            assert!(out[18..frame.len()].iter().all(|byte| *byte == received as u8));
            received += 1;
        });
        if taken == 0 {
            assert!(Instant::now() < deadline, "sent {sent}, received {received}");
            testpmd.assert_runs();
            port.check_peer().expect("connected");
            std::thread::yield_now();
        }
    }
    assert_eq!((port.malformed(), port.id()), (0, 3));
    assert!(port.peer_name().starts_with("DPDK"), "{}", port.peer_name());
}

#[test]
fn testpmd_as_client_sends_frames_back() {
    let _one = ONE.lock();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("memif.sock");
    let listener = Listener::bind(&path, 0o600, Accept { id: Some(3), secret: None }).expect("listens");
    let Some(mut testpmd) = Testpmd::start("client", &path) else { return };
    let deadline = Instant::now() + PATIENCE;
    let mut handshake = None;
    let mut port = loop {
        assert!(Instant::now() < deadline, "testpmd does not connect");
        testpmd.assert_runs();
        handshake = handshake.or(listener.accept().expect("accepts"));
        if let Some(handshake) = &mut handshake
            && let Progress::Ready(port) = handshake.step().expect("testpmd keeps the rules")
        {
            break port;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    // Its buffers have 2,048 bytes, so that long frames take two or three each way.
    check_echo(&mut port, &mut testpmd, 5_000);
}

#[test]
fn testpmd_as_server_sends_frames_back() {
    let _one = ONE.lock();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("memif.sock");
    let Some(mut testpmd) = Testpmd::start("server", &path) else { return };
    let deadline = Instant::now() + PATIENCE;
    let options = ClientOptions { id: 3, ..ClientOptions::default() };
    let mut port = loop {
        match connect(&path, &options, PATIENCE) {
            Ok(port) => break port,
            Err(error) => assert!(Instant::now() < deadline, "{error}"), // Not started yet.
        }
        testpmd.assert_runs();
        std::thread::sleep(Duration::from_millis(10));
    };
    // N.B. On its fast path, DPDK 22.11 copies a buffer of any length into an mbuf, here of 2,048 bytes.
    check_echo(&mut port, &mut testpmd, 2_048);
}
