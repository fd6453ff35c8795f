//! How a router starts, reads its configuration again and ends, also with faulty files and peers: the real binary, real
//! files, real signals.

mod pipes;
mod storm;

use crate::router_process::{NAMEWIRE, PATIENCE, Router, eventually, run_command};
use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

/// How a process ended, which it must.
fn end_of(process: &mut Child) -> ExitStatus {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = process.try_wait().unwrap() {
            return status;
        }
        if Instant::now() >= end {
            process.kill().unwrap();
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn terminate(process: &mut Child) -> ExitStatus {
    assert!(Command::new("kill").args(["-TERM", &process.id().to_string()]).status().unwrap().success());
    end_of(process)
}

/// Waits until SIGTERM would no longer end a process by itself.
fn until_sigterm_is_caught(process: &Child) {
    const SIGTERM_BIT: u64 = 1 << 14;
    eventually("SIGTERM is caught", || {
        let status = fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & SIGTERM_BIT != 0
    });
}

fn run(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = run_command(&directory.join("nfd.sock"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// The story: a router removed the file at the path of its socket when it ended, also its successor's. That one ran on,
/// and no application found it.
#[test]
fn a_router_leaves_the_socket_of_its_successor_alone() {
    let directory = tempfile::tempdir().unwrap();
    let mut former = Router::run(directory.path(), &[]);
    fs::remove_file(&former.socket).unwrap();
    let mut latter = Router::run(directory.path(), &[]);
    former.terminate();
    assert!(latter.socket.exists(), "it was the other one's");
    assert!(latter.tool(&["status"]).status.success());
    let socket = latter.socket.clone();
    latter.terminate();
    assert!(!socket.exists(), "its own is removed");
    // What is no socket at all is not ours either.
    let mut third = Router::run(directory.path(), &[]);
    fs::remove_file(&socket).unwrap();
    fs::write(&socket, "precious").unwrap();
    third.terminate();
    assert_eq!(fs::read(&socket).unwrap(), b"precious");
}

/// The story: SIGTERM was not obeyed before all declared faces were made or had failed, 8 s each.
#[test]
fn sigterm_does_not_wait_for_neighbours_that_do_not_answer() {
    let directory = tempfile::tempdir().unwrap();
    let (_listener, _connections, port) = deaf_listener();
    let file = directory.path().join("namewire.toml");
    let faces: String = (2..32).map(|host| format!("[[face]]\nuri = \"tcp://127.0.0.{host}:{port}\"\n")).collect();
    fs::write(&file, &faces).unwrap();
    let arguments = ["--config", file.to_str().unwrap()];
    let mut process = run(directory.path(), &arguments).spawn().unwrap();
    eventually("it makes its faces", || directory.path().join("nfd.sock").exists());
    assert!(terminate(&mut process).success());
    assert!(!directory.path().join("nfd.sock").exists());
    // The same in a reload.
    fs::write(&file, "").unwrap();
    let mut router = Router::run(directory.path(), &arguments);
    fs::write(&file, &faces).unwrap();
    router.signal("-HUP");
    std::thread::sleep(Duration::from_millis(500)); // until it reads; if it does not yet, this proves less
    assert!(terminate(&mut router.process).success());
}

/// A port where connections are neither accepted nor refused.
fn deaf_listener() -> (TcpListener, Vec<TcpStream>, u16) {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let port = listener.local_addr().unwrap().port();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut connections = Vec::new();
    while let Ok(connection) = TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
        connections.push(connection);
        assert!(connections.len() < 100, "the kernel takes all");
    }
    (listener, connections, port)
}
