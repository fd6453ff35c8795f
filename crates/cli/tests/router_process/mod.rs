//! The binary as a process: started, asked, signalled, ended.
#![allow(dead_code, reason = "each program of tests uses a part of this")]

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

pub(crate) const NAMEWIRE: &str = env!("CARGO_BIN_EXE_namewire");

/// Longer than anything takes here, also on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(100);

/// A router process whose messages are collected; ended when the test is over.
pub(crate) struct Router {
    pub(crate) process: Child,
    pub(crate) line: String,
    pub(crate) messages: Receiver<String>,
    pub(crate) socket: PathBuf,
}

impl Router {
    /// Runs a command that starts a router with its socket at this path.
    pub(crate) fn start(socket: &Path, command: &mut Command) -> Router {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, messages) = channel();
        let stderr = process.stderr.take().unwrap();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let router = Router { process, line, messages, socket: socket.to_owned() };
        if router.line.is_empty() {
            panic!("the router did not start: {:?}", router.messages.iter().collect::<Vec<_>>());
        }
        router
    }

    /// `namewire run` with its socket in `directory`, on no port.
    pub(crate) fn run(directory: &Path, arguments: &[&str]) -> Router {
        Router::run_at(&directory.join("nfd.sock"), arguments)
    }

    /// The same with its socket at this path.
    pub(crate) fn run_at(socket: &Path, arguments: &[&str]) -> Router {
        Router::start(socket, run_command(socket).args(arguments))
    }

    /// Where applications connect.
    pub(crate) fn uri(&self) -> String {
        format!("unix://{}", self.socket.display())
    }

    pub(crate) fn ask(&self, arguments: &[&str]) -> String {
        let output = self.tool(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn tool(&self, arguments: &[&str]) -> Output {
        self.tool_of(Path::new("/nonexistent"), arguments)
    }

    /// A tool of the user with this home, that is, with the keys there.
    pub(crate) fn tool_of(&self, home: &Path, arguments: &[&str]) -> Output {
        self.command_of(home).args(arguments).output().unwrap()
    }

    /// The binary as a tool of this router, to be started.
    pub(crate) fn command(&self) -> Command {
        self.command_of(Path::new("/nonexistent"))
    }

    fn command_of(&self, home: &Path) -> Command {
        let mut command = namewire_of(home);
        command.args(["--transport", &self.uri()]);
        command
    }

    /// What the kernel says of the process in this line of its status, in KiB.
    pub(crate) fn status_kib(&self, line: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let value = status.lines().find_map(|text| text.strip_prefix(line)).unwrap();
        value.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Number of the face that leads there.
    pub(crate) fn face(&self, uri: &str) -> Option<u64> {
        let faces: serde_json::Value = serde_json::from_str(&self.ask(&["face", "list", "--json"])).unwrap();
        let face = faces.as_array().unwrap().iter().find(|face| face["remote_uri"] == uri)?;
        face["face_id"].as_u64()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// Waits for a message with all these words; gives those before it as well.
    pub(crate) fn wait_for(&self, words: &[&str]) -> String {
        self.wait_for_line(&format!("with {words:?}"), |line| words.iter().all(|word| line.contains(word)))
    }

    fn wait_for_line(&self, what: &str, is_it: impl Fn(&str) -> bool) -> String {
        let mut seen = String::new();
        let end = Instant::now() + PATIENCE;
        while let Ok(line) = self.messages.recv_timeout(end.saturating_duration_since(Instant::now())) {
            seen += &line;
            seen.push('\n');
            if is_it(&line) {
                return seen;
            }
        }
        panic!("no message {what}; there were:\n{seen}");
    }

    /// Lets the router read its files again; what it said up to the one word or the other.
    pub(crate) fn hang_up(&self) -> String {
        self.signal("-HUP");
        let is_end = |line: &str| line.contains("was read") || line.contains("stays as it was");
        self.wait_for_line("that the file was read or is refused", |line| line.contains("SIGHUP") && is_end(line))
    }

    pub(crate) fn terminate(&mut self) {
        self.signal("-TERM");
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `namewire run` with its socket at this path, on no port.
pub(crate) fn run_command(socket: &Path) -> Command {
    let mut command = Command::new(NAMEWIRE);
    command.args(["run", "--no-udp", "--no-tcp", "--socket"]).arg(socket);
    command
}

/// The binary with the key chain that is in this home.
pub(crate) fn namewire_of(home: &Path) -> Command {
    let mut command = Command::new(NAMEWIRE);
    command.env("HOME", home).env_remove("NDN_CLIENT_PIB").env_remove("NDN_CLIENT_TPM");
    command
}

/// A key of `identity` in this home; its certificate goes to `file`.
pub(crate) fn make_identity(home: &Path, identity: &str, file: &Path) {
    let made = namewire_of(home).args(["key", "make", identity]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let exported = namewire_of(home).args(["key", "export-cert", identity]).output().unwrap();
    assert!(exported.status.success(), "{exported:?}");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, exported.stdout).unwrap();
}

/// The lines of a page's block of commands, as they stand there.
pub(crate) fn lines_of_block(page: &'static str, nth: usize) -> impl Iterator<Item = &'static str> {
    let block = page.split("```sh\n").nth(nth + 1).and_then(|rest| rest.split("```").next());
    block.expect("a block of commands").lines()
}

pub(crate) fn namewire(arguments: &[&str]) -> Output {
    Command::new(NAMEWIRE).args(arguments).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The body of what an observer answers.
pub(crate) fn http_get(observer: &str, path: &str) -> String {
    let mut connection = TcpStream::connect(observer).unwrap();
    write!(connection, "GET {path} HTTP/1.1\r\nHost: {observer}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").expect("a head").1.to_owned()
}

/// Waits until something is so.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "not so: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn text_of_failure(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    text(&output.stderr)
}

/// A port that was free a moment ago, for both protocols.
pub(crate) fn free_port() -> u16 {
    loop {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        if UdpSocket::bind(("0.0.0.0", port)).is_ok() {
            return port;
        }
    }
}

/// A file as NFD has it, with only its paths, ports and user changed, and the certificate that it trusts. This machine
/// may have no user `ndn`.
pub(crate) fn nfd_conf(directory: &Path, port: u16) -> PathBuf {
    make_identity(directory, "/operator", &directory.join("keys/default.ndncert"));
    let sample = include_str!("../../../configuration/tests/nfd.conf");
    let socket = directory.join("nfd.sock");
    let text = sample
        .replace("  user ndn ", "  ; ")
        .replace("  group ndn", "  ; no group")
        .replace("port 6363", &format!("port {port}"))
        .replace("path /run/nfd/nfd.sock", &format!("path {}", socket.display()));
    let path = directory.join("nfd.conf");
    fs::write(&path, text).unwrap();
    path
}
