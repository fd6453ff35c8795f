//! A router (or a relay) as a separate process, started for one measurement.

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use crate::load::{LoadReport, Transport};
use crate::process::BoundProcess;
use crate::router_control::RouterControl;

/// How long a router may take to answer its first management Interest.
const START_LIMIT: Duration = Duration::from_secs(10);
/// Time between two attempts to reach a starting router.
const START_POLL: Duration = Duration::from_micros(200);
/// How long one load may take: the slowest planned one takes under a minute.
const LOAD_LIMIT: Duration = Duration::from_secs(300);
/// Environment variable with the path of the router to measure.
pub const PROGRAM_VARIABLE: &str = "NAMEWIRE";

/// The router to measure: `$NAMEWIRE`; or `namewire` beside `lab` (the program `namewire-lab`); or the release build in
/// the same target directory; or `target/release/namewire`.
///
/// # Errors
/// If there is none; the message says how to build it.
pub fn find_program(lab: &Path) -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os(PROGRAM_VARIABLE) {
        let path = PathBuf::from(path);
        ensure!(path.is_file(), "{PROGRAM_VARIABLE} says {}, which is not a file", path.display());
        return Ok(path);
    }
    let beside = lab.with_file_name("namewire");
    let release = lab.parent().and_then(Path::parent).map(|target| target.join("release/namewire"));
    let here = PathBuf::from("target/release/namewire");
    [Some(beside), release, Some(here)].into_iter().flatten().find(|path| path.is_file()).with_context(|| {
        format!(
            "there is no router to measure: build it with `cargo build --release -p namewire-cli`, \
             or set {PROGRAM_VARIABLE} to one"
        )
    })
}

/// A running router with a socket directory of its own.
#[derive(Debug)]
pub struct RouterProcess {
    process: BoundProcess,
    socket: PathBuf,
    udp: SocketAddr,
    start_to_answer: Duration,
    _directory: tempfile::TempDir,
}

impl RouterProcess {
    /// Starts `program` with `workers` workers, on processor `cpu` alone if one is
    /// given, and waits until it answers management.
    ///
    /// # Errors
    /// If it ends, or does not answer within [`START_LIMIT`].
    pub fn start(program: &Path, workers: usize, cpu: Option<usize>) -> anyhow::Result<Self> {
        Self::start_with(program, workers, cpu, &[])
    }

    /// A free port. If another process takes it before the router does, the router and the run end with an error; there
    /// is no retry that would hide this.
    ///
    /// # Errors
    /// If no port is free.
    pub fn free_udp_address() -> anyhow::Result<SocketAddr> {
        Ok(UdpSocket::bind("127.0.0.1:0")?.local_addr()?)
    }

    /// As [`RouterProcess::start`], with further options of `namewire run`.
    ///
    /// # Errors
    /// As for [`RouterProcess::start`].
    pub fn start_with(program: &Path, workers: usize, cpu: Option<usize>, options: &[String]) -> anyhow::Result<Self> {
        let udp = Self::free_udp_address()?;
        let mut command = Command::new(program);
        command
            .arg("run")
            .args(["--listen-udp", &udp.to_string(), "--workers", &workers.to_string(), "--no-tcp"])
            // As in NFD: the load requests each name twice in a row, which suits LRU.
            .args(["--set", "cs.policy=lru"])
            .args(options);
        Self::start_command(command, udp, cpu)
    }

    /// Starts a router by a command `namewire run` that listens at `udp`, with a Unix socket of its own.
    ///
    /// # Errors
    /// As for [`RouterProcess::start`].
    pub fn start_command(mut command: Command, udp: SocketAddr, cpu: Option<usize>) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("namewire-lab-").tempdir()?;
        let socket = directory.path().join("router.sock");
        command
            .arg("--socket")
            .arg(&socket)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(directory.path().join("stderr"))?);
        let started = Instant::now();
        let process = BoundProcess::start(&mut command, cpu)?;
        let mut router = Self { process, socket, udp, start_to_answer: Duration::ZERO, _directory: directory };
        router.wait_for_answer(started)?;
        router.start_to_answer = started.elapsed();
        Ok(router)
    }

    fn wait_for_answer(&mut self, started: Instant) -> anyhow::Result<()> {
        loop {
            if let Ok(mut control) = RouterControl::connect(&self.socket) {
                control.status().context("the router does not answer status/general")?;
                return Ok(());
            }
            if let Some(status) = self.process.ended()? {
                bail!("the router ended ({status}): {}", self.stderr());
            }
            ensure!(started.elapsed() < START_LIMIT, "no answer within {START_LIMIT:?}: {}", self.stderr());
            std::thread::sleep(START_POLL);
        }
    }

    fn stderr(&self) -> String {
        let path = self.socket.with_file_name("stderr");
        std::fs::read_to_string(path).map_or_else(|_| String::new(), |text| text.trim().to_owned())
    }

    /// Time from the start of the process to its first management answer.
    pub const fn start_to_answer(&self) -> Duration {
        self.start_to_answer
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Its Unix socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Where it listens for UDP.
    pub const fn udp(&self) -> SocketAddr {
        self.udp
    }

    /// A new management connection.
    ///
    /// # Errors
    /// If the router does not accept it.
    pub fn control(&self) -> anyhow::Result<RouterControl> {
        RouterControl::connect(&self.socket).with_context(|| format!("cannot connect to {}", self.socket.display()))
    }

    /// True while the process lives.
    ///
    /// # Errors
    /// If the system cannot say.
    pub fn is_alive(&mut self) -> anyhow::Result<bool> {
        Ok(self.process.ended()?.is_none())
    }

    /// Puts a load on the router. `lab` starts `namewire-lab`, perhaps in another namespace; `options` are those of its
    /// subcommand `load`, without the addresses.
    ///
    /// # Errors
    /// If the load cannot be made.
    pub fn load(
        &self,
        lab: Command,
        cpu: Option<usize>,
        transport: Transport,
        options: &[String],
    ) -> anyhow::Result<LoadReport> {
        let mut command = load_command(lab, transport);
        command
            .arg("--socket")
            .arg(&self.socket)
            .args(["--udp", &self.udp.to_string(), "--watch", &self.id().to_string()])
            .args(options);
        run_load(&mut command, cpu)
    }

    /// Puts a load on a line of routers of which this one is the consumer's. `options` say which is the producer's
    /// (`--producer-socket`), and which process is watched (`--watch`).
    ///
    /// # Errors
    /// If the load cannot be made.
    pub fn load_line(&self, lab: Command, cpu: Option<usize>, options: &[String]) -> anyhow::Result<LoadReport> {
        let mut command = load_command(lab, Transport::Unix);
        run_load(command.arg("--socket").arg(&self.socket).args(options), cpu)
    }
}

/// A running bare relay, good for one load.
#[derive(Debug)]
pub struct RelayProcess {
    process: BoundProcess,
    socket: PathBuf,
    sides: Option<(SocketAddr, SocketAddr)>,
    _directory: tempfile::TempDir,
}

impl RelayProcess {
    /// Starts one for `transport`.
    ///
    /// # Errors
    /// If it does not come up.
    pub fn start(lab: &Path, transport: Transport, cpu: Option<usize>) -> anyhow::Result<Self> {
        let mut command = Command::new(lab);
        command.arg("relay");
        Self::start_command(command, transport, cpu)
    }

    /// The same by a command `namewire-lab relay`, with its options but those of the transport.
    ///
    /// # Errors
    /// If it does not come up.
    pub fn start_command(mut command: Command, transport: Transport, cpu: Option<usize>) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("namewire-lab-").tempdir()?;
        let socket = directory.path().join("relay.sock");
        let (mut lines, writer) = std::io::pipe().map(|(reader, writer)| (BufReader::new(reader).lines(), writer))?;
        command.stdin(Stdio::null()).stdout(writer);
        match transport {
            Transport::Unix => command.arg("--socket").arg(&socket),
            Transport::Udp => command.arg("--udp"),
            Transport::Ethernet | Transport::Memif => &mut command,
        };
        let process = BoundProcess::start(&mut command, cpu)?;
        drop(command); // it holds the pipe's writer, which must close when the relay ends
        let line = lines.next().context("the relay ended at once")??;
        let mut words = line.split_whitespace().skip(1);
        let sides = match (words.next(), words.next()) {
            (Some(first), Some(second)) => Some((first.parse()?, second.parse()?)),
            _ => None,
        };
        Ok(Self { process, socket, sides, _directory: directory })
    }

    /// Puts a load on the relay; options as for [`RouterProcess::load`].
    ///
    /// # Errors
    /// If the load cannot be made.
    pub fn load(
        &self,
        lab: Command,
        cpu: Option<usize>,
        transport: Transport,
        options: &[String],
    ) -> anyhow::Result<LoadReport> {
        let mut command = load_command(lab, transport);
        command.arg("--relay").arg("--socket").arg(&self.socket).args(["--watch", &self.process.id().to_string()]);
        if let Some((consumer, producer)) = self.sides {
            command.args(["--udp", &consumer.to_string(), "--relay-producer", &producer.to_string()]);
        }
        run_load(command.args(options), cpu)
    }
}

fn load_command(mut command: Command, transport: Transport) -> Command {
    let transport = match transport {
        Transport::Unix => "unix",
        Transport::Udp => "udp",
        Transport::Ethernet => "ethernet",
        Transport::Memif => "memif",
    };
    command.args(["load", "--transport", transport]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a command `namewire-lab load` and returns its report.
///
/// # Errors
/// If the load cannot be made.
pub fn run_load(command: &mut Command, cpu: Option<usize>) -> anyhow::Result<LoadReport> {
    let output = BoundProcess::start(command, cpu)?.output(LOAD_LIMIT)?;
    ensure!(output.status.success(), "the load failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    serde_json::from_slice(&output.stdout).context("the load printed no report")
}
