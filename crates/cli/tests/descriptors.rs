//! A router with few file descriptors.

use crate::router_process::{NAMEWIRE, Router, eventually};
use std::{net::TcpStream, process::Command};

/// The story: under `ulimit -n 1024`, 1,224 idle TCP connections took all descriptors, and for ten minutes no
/// application could connect.
#[test]
fn idle_connections_leave_descriptors_for_applications() {
    for workers in ["1", "4"] {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("nfd.sock");
        let port = crate::router_process::free_port();
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
