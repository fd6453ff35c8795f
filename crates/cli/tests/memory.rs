//! A router gives back the memory that a flood needed.

use crate::router_process::{NAMEWIRE, Router, eventually, free_port};
use std::{net::UdpSocket, process::Command};

/// The first fragment of a packet of two: Sequence, FragIndex 0, FragCount 2, 1000 bytes of Fragment.
fn first_fragment(sequence: u64) -> Vec<u8> {
    let fields = [&[81, 8], &sequence.to_be_bytes()[..], &[82, 1, 0, 83, 1, 2, 80, 253, 3, 232], &[7; 1000]].concat();
    [&[100, 253], &(fields.len() as u16).to_be_bytes()[..], &fields].concat()
}

/// The story: after a flood of fragments that belonged to no whole packet, a router kept up to 317 MB.
#[test]
fn memory_of_unfinished_packets_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("nfd.sock");
    let port = free_port();
    let mut command = Command::new(NAMEWIRE);
    command.args(["run", "--no-tcp", "--listen-udp", &format!("127.0.0.1:{port}"), "--socket"]).arg(&socket);
    let router = Router::start(&socket, &mut command);
    router.ask(&["status"]);
    let before_kib = router.status_kib("RssAnon");
    let peers: Vec<UdpSocket> = (0..400).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    for sequence in 0..64 {
        for peer in &peers {
            peer.send_to(&first_fragment(sequence * 2), ("127.0.0.1", port)).unwrap();
        }
    }
    eventually("they are counted", || router.ask(&["status"]).contains("link.reassembly-timeout"));
    // What remains is the memory of 400 faces.
    eventually("memory comes back", || router.status_kib("RssAnon") < before_kib + 3_000);
    assert!(router.status_kib("VmHWM") > router.status_kib("VmRSS") + 8_000, "it was no flood");
}

/// The story: a router that had read 100,000 routes and lost them kept 186 of 290 MB. The C library keeps the free end
/// of a thread's heap: here, 26 MB stay, and 75 if pages are not given back.
#[test]
fn memory_of_routes_and_of_their_file_comes_back() {
    const ROUTES: usize = 50_000;
    const FACE: &str = "udp4://127.0.0.1:9";
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("routes.toml");
    let routes = |count| (0..count).map(|n| format!("[[route]]\nprefix = \"/{n}\"\nface = \"{FACE}\"\n")).collect();
    let write = |count| std::fs::write(&file, String::from_iter::<Vec<String>>(routes(count))).unwrap();
    write(0);
    let socket = directory.path().join("nfd.sock");
    let mut command = Command::new(NAMEWIRE);
    let listen = format!("127.0.0.1:{}", free_port());
    command.args(["run", "--no-tcp", "--listen-udp", &listen, "--config"]).arg(&file).arg("--socket").arg(&socket);
    let router = Router::start(&socket, &mut command);
    let before_kib = router.status_kib("RssAnon");
    write(ROUTES);
    router.hang_up();
    assert!(router.ask(&["route", "list", "--json"]).contains(&format!("\"/{}\"", ROUTES - 1)));
    let most_kib = router.status_kib("VmHWM");
    write(0);
    router.hang_up();
    eventually("memory comes back", || router.status_kib("RssAnon") < before_kib + 55_000);
    assert!(most_kib > before_kib + 100_000, "{most_kib} KiB were not much");
}
