//! A router with few file descriptors.

use crate::router_process::{NAMEWIRE, Router, eventually, free_port};
use std::{io::Write, net::TcpStream, process::Command};

/// The story: under `ulimit -n 1024`, 1,224 idle TCP connections took all descriptors, and for ten minutes no
/// application could connect.
#[test]
fn idle_connections_leave_descriptors_for_applications() {
    for workers in ["1", "4"] {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("nfd.sock");
        let port = free_port();
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n 200; exec \"$@\"", "sh", NAMEWIRE, "run", "--no-udp", "--workers", workers]);
        command.arg("--socket").arg(&socket).args(["--listen-tcp", &format!("127.0.0.1:{port}")]);
        let router = Router::start(&socket, &mut command);
        let idle: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
        let drops = || {
            let status: serde_json::Value = serde_json::from_str(&router.ask(&["status", "--json"])).unwrap();
            status["drops"].clone()
        };
        eventually("connections are refused", || drops()["share-used.descriptors"].as_u64() > Some(100));
        assert_eq!(drops()["router.accept-failed"], serde_json::Value::Null, "never without any");
        let holders = router.ask(&["status", "--holders"]);
        assert!(holders.contains("descriptors: ") && holders.contains("  loopback: "), "{holders}");
        drop(idle);
    }
}

/// A request for a WebSocket connection from a page of another host, which counts as a remote one.
const PAGE: &[u8] = b"GET / HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Origin: https://example.net\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

/// The story: under `ulimit -n 64`, the pool had been counted before all threads had opened their descriptors, and
/// connections to the observer were not counted at all. So there were none left: in twenty seconds, listeners failed
/// 525 times to accept, and `namewire status` took up to 15 s.
#[test]
fn listeners_take_no_descriptors_that_others_need() {
    for workers in ["1", "4"] {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("nfd.sock");
        let [tcp, websocket, observer] = [free_port(), free_port(), free_port()];
        let at = |port: u16| format!("127.0.0.1:{port}");
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n 64; exec \"$@\"", "sh", NAMEWIRE, "run", "--no-udp", "--workers", workers]);
        command.arg("--socket").arg(&socket).args(["--listen-tcp", &at(tcp), "--listen-ws", &at(websocket)]);
        command.args(["--observe", &at(observer), "--state"]).arg(directory.path().join("state.toml"));
        let router = Router::start(&socket, &mut command);
        let pile_up = |port: u16, bytes: &[u8]| -> Vec<TcpStream> {
            let open = |_| {
                let mut connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
                let _ = connection.write_all(bytes); // it may have been refused already
                connection
            };
            (0..60).map(open).collect()
        };
        let _idle = [pile_up(websocket, PAGE), pile_up(observer, b"GET / HTTP/1.1\r\n"), pile_up(tcp, b"")];
        let drops = || {
            let status: serde_json::Value = serde_json::from_str(&router.ask(&["status", "--json"])).unwrap();
            status["drops"].clone()
        };
        eventually("connections are refused", || {
            let refused = ["share-used.descriptors", "pool-full.descriptors"].map(|name| drops()[name].as_u64());
            refused.into_iter().flatten().sum::<u64>() > 60
        });
        let drops = drops();
        for name in ["router.accept-failed", "websocket.accept-failed"] {
            assert_eq!(drops[name], serde_json::Value::Null, "{workers} workers: {name}");
        }
    }
}
