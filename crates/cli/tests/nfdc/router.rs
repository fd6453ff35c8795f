//! A Namewire router to run sessions against.

use crate::router_process::{NAMEWIRE, Router, free_port};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Starts one that listens on the loopback addresses; with its UDP and TCP port.
pub(crate) fn start(directory: &Path) -> (Router, u16) {
    let socket = directory.join("nfd.sock");
    let port = free_port();
    let (v4, v6) = (format!("0.0.0.0:{port}"), format!("[::]:{port}"));
    let mut command = Command::new(NAMEWIRE);
    command.args(["run", "--listen-udp", &v4, "--listen-udp", &v6, "--listen-tcp", &v4, "--listen-tcp", &v6]);
    (Router::start(&socket, command.arg("--socket").arg(&socket)), port)
}

/// Our binary, called `nfdc`.
pub(crate) fn link(directory: &Path) -> PathBuf {
    let link = directory.join("nfdc");
    if !link.exists() {
        std::os::unix::fs::symlink(NAMEWIRE, &link).unwrap();
    }
    link
}
