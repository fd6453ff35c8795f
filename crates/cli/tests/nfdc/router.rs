//! A router of ours to run sessions against.

use std::{
    io::{BufRead, BufReader, Read},
    net::{TcpListener, UdpSocket},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

pub(crate) const NAMEWIRE: &str = env!("CARGO_BIN_EXE_namewire");

/// A router process, ended when the test is over.
pub(crate) struct Router {
    process: Child,
    socket: PathBuf,
    /// Its UDP and TCP port.
    pub(crate) port: u16,
}

impl Router {
    /// Starts one that listens on the loopback addresses.
    pub(crate) fn start(directory: &Path) -> Router {
        let socket = directory.join("nfd.sock");
        let port = free_port();
        let (v4, v6) = (format!("0.0.0.0:{port}"), format!("[::]:{port}"));
        let mut process = Command::new(NAMEWIRE)
            .args(["run", "--listen-udp", &v4, "--listen-udp", &v6, "--listen-tcp", &v4, "--listen-tcp", &v6])
            .arg("--socket")
            .arg(&socket)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line.is_empty() {
            let mut error = String::new();
            process.stderr.take().unwrap().read_to_string(&mut error).unwrap();
            panic!("the router did not start: {error}");
        }
        Router { process, socket, port }
    }

    pub(crate) fn uri(&self) -> String {
        format!("unix://{}", self.socket.display())
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A port that neither UDP nor TCP uses now.
fn free_port() -> u16 {
    loop {
        let udp = UdpSocket::bind("[::]:0").unwrap();
        let port = udp.local_addr().unwrap().port();
        if TcpListener::bind(("::", port)).is_ok() && TcpListener::bind(("0.0.0.0", port)).is_ok() {
            return port;
        }
    }
}

/// Our binary, called `nfdc`.
pub(crate) fn link(directory: &Path) -> PathBuf {
    let link = directory.join("nfdc");
    if !link.exists() {
        std::os::unix::fs::symlink(NAMEWIRE, &link).unwrap();
    }
    link
}
