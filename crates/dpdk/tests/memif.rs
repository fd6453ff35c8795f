//! Two devices of net_memif, server and client in one process: frames of all sizes both ways, and peers that
//! return.
#![cfg(feature = "dpdk")]

mod dpdk_process;

use std::path::Path;
use std::sync::Arc;

use namewire_dpdk::{Eal, Port};

#[test]
fn a_memif_pair_exchanges_frames() {
    let Some(eal) = dpdk_process::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let open = |name: &str, role: &str| dpdk_process::open_memif(&eal, folder.path(), name, role);
    let mut server = open("net_memif0", "server");
    assert_eq!(server.driver(), "net_memif");
    assert!(!server.is_up(), "no client yet");
    assert!(server.send(&[&[1; 60]]));
    assert_eq!((server.flush(), server.waiting()), (0, 1), "nobody takes it");

    for round in 0..3 {
        let mut client = open("net_memif1", "client");
        dpdk_process::wait_for("the link", || client.is_up() && server.is_up());
        if round == 0 {
            // A client offers memory for frames when it receives.
            let mut received = Vec::new();
            dpdk_process::wait_for("the first frame", || {
                server.flush();
                client.receive(64, |frame| received.push(frame.to_vec())) > 0
            });
            assert_eq!((received, server.waiting()), (vec![vec![1; 60]], 0));
        }
        exchange(&mut server, &mut client);
        exchange(&mut client, &mut server);
        drop(client);
        dpdk_process::wait_for("the end of the link", || !server.is_up());
    }

    // The server leaves and returns. The client must be opened again.
    let mut client = open("net_memif1", "client");
    dpdk_process::wait_for("the link", || client.is_up() && server.is_up());
    drop(server);
    dpdk_process::wait_for("the end of the link", || !client.is_up());
    drop(client);
    server = open("net_memif0", "server");
    client = open("net_memif1", "client");
    dpdk_process::wait_for("the link", || client.is_up() && server.is_up());
    exchange(&mut server, &mut client);
    exchange(&mut client, &mut server);
    the_shared_memory_of_a_peer_is_refused(&eal);
    a_client_needs_a_server(&eal, folder.path());
}

fn exchange(from: &mut Port, to: &mut Port) {
    let sizes = (60..2_200).step_by(13).chain([2_048, 2_049, 4_096, 8_999, 9_000]);
    let frames: Vec<_> = sizes.enumerate().map(|(number, bytes)| dpdk_process::frame(number, bytes)).collect();
    let mut received: Vec<Vec<u8>> = Vec::new();
    for frame in &frames {
        while !from.send(&[&frame[..14], &frame[14..]]) {
            from.flush();
            to.receive(64, |frame| received.push(frame.to_vec()));
        }
    }
    dpdk_process::wait_for("the last frames", || {
        from.flush();
        to.receive(64, |frame| received.push(frame.to_vec()));
        received.len() >= frames.len()
    });
    assert!(received == frames, "all frames, in order");
    assert_eq!(to.counters().receive_malformed, 0);
}

fn the_shared_memory_of_a_peer_is_refused(eal: &Arc<Eal>) {
    let device = "net_memif7,role=client,id=7,zero-copy=yes";
    let error = Port::open(eal, device, &dpdk_process::small()).expect_err("a peer could change frames");
    assert_eq!(error.kind(), std::io::ErrorKind::Unsupported, "{error}");
}

fn a_client_needs_a_server(eal: &Arc<Eal>, folder: &Path) {
    let device =
        |role: &str| format!("net_memif8,role={role},id=8,socket={}/other.sock,socket-abstract=no", folder.display());
    let error = Port::open(eal, &device("client"), &dpdk_process::small()).expect_err("no server");
    assert_ne!(error.kind(), std::io::ErrorKind::PermissionDenied, "{error}");
    let _server = Port::open(eal, &device("server"), &dpdk_process::small()).expect("the name is free");
}
