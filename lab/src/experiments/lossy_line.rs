//! How long does a file take over a line that loses packets?
//!
//! Workload: two routers with a UDP face between them. A relay joins the two sockets, and drops each datagram with the
//! case's probability, in each direction; the dice are seeded by case and repetition, so all subjects have the same. A
//! producer at the one router serves a file of random bytes in segments of 8,000 bytes, a consumer at the other fetches
//! it once. The links have no reliability, so all losses are the consumer's to find. Time is that of the consumer's
//! whole process; a fetch that has not ended after [`FETCH_LIMIT`] is refused. What came is compared byte by byte.
//!
//! Subjects, interleaved, each with routers, relay and producer of its own: `namewire get`, and `ndncatchunks` of
//! ndn-tools if `NDN_TOOLS` names the folder with it and `ndnputchunks`.
//!
//! Limits: the line has no delay and no limit of rate besides the processor's; losses are independent. Routers, relay,
//! producer and consumer share the processors.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use fastrand::Rng;
use serde::Deserialize;

use crate::experiment::{Context, Outcome};
use crate::interrupt;
use crate::process::BoundProcess;
use crate::router_process::{RouterProcess, find_program};
use crate::sample_table::SampleTable;

pub(super) const FILE: &str = include_str!("lossy_line.toml");

/// Share of datagrams lost, in thousandths, in each direction.
const LOSSES_PER_MILLE: [u32; 6] = [0, 1, 10, 20, 50, 100];
/// Environment variable with the folder of the programs of ndn-tools.
const NDN_TOOLS: &str = "NDN_TOOLS";
const FETCH_LIMIT: Duration = Duration::from_secs(120);
/// How long a producer may take to register its prefix.
const START_LIMIT: Duration = Duration::from_secs(10);
/// The relay looks for the end of the run so often.
const RELAY_POLL: Duration = Duration::from_millis(20);
/// Both programs publish the file under this name.
const NAME: &str = "/lossy/file";
const METRIC: (&str, &str) = ("time of the fetch", "s");

/// Sizes of a run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    repetitions: u32,
    file_bytes: usize,
}

/// Who fetches.
enum Subject {
    Namewire,
    /// The folder of its programs, and one for its keys.
    NdnTools(PathBuf),
}

impl Subject {
    fn label(&self) -> &'static str {
        match self {
            Self::Namewire => "namewire",
            Self::NdnTools(_) => "ndn-tools",
        }
    }
}

/// Two threads that carry datagrams between two sockets, less those that the line loses.
struct LossyRelay {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl LossyRelay {
    /// What comes to `here` from the router at `left` leaves from `there` for the router at `right`, and back.
    fn start(ends: [(UdpSocket, SocketAddr); 2], per_mille: u32, seed: u64) -> anyhow::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let [(here, left), (there, right)] = ends;
        let mut threads = Vec::new();
        for (number, (from, to, target)) in
            [(here.try_clone()?, there.try_clone()?, right), (there, here, left)].into_iter().enumerate()
        {
            from.set_read_timeout(Some(RELAY_POLL))?;
            let (is_over, dice) = (Arc::clone(&is_over), Rng::with_seed(seed * 2 + number as u64));
            threads.push(std::thread::spawn(move || carry(&from, &to, target, per_mille, dice, &is_over)));
        }
        Ok(Self { is_over, threads })
    }
}

fn carry(from: &UdpSocket, to: &UdpSocket, target: SocketAddr, per_mille: u32, mut dice: Rng, over: &AtomicBool) {
    let mut datagram = vec![0; 65_536];
    while !over.load(Ordering::Relaxed) {
        match from.recv(&mut datagram) {
            Ok(_) if dice.u32(..1000) < per_mille => {}
            // A full socket loses it, as a line would.
            Ok(length) => drop(to.send_to(&datagram[..length], target)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return,
        }
    }
}

impl Drop for LossyRelay {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // a panic of the relay has been printed, and the fetch has failed
        }
    }
}

/// Two routers, and the relay between them.
struct Line {
    consumer: RouterProcess,
    producer: RouterProcess,
    _relay: LossyRelay,
}

impl Line {
    fn start(program: &Path, per_mille: u32, seed: u64) -> anyhow::Result<Self> {
        let (here, there) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
        let route = format!("{NAME}=udp4://{}", here.local_addr()?);
        let consumer = RouterProcess::start_with(program, 1, None, &["--route".to_owned(), route])?;
        let producer = RouterProcess::start_with(program, 1, None, &[])?;
        let ends = [(here, consumer.udp()), (there, producer.udp())];
        let relay = LossyRelay::start(ends, per_mille, seed)?;
        Ok(Self { consumer, producer, _relay: relay })
    }
}

struct Run {
    size: Size,
    router: PathBuf,
    /// The file, the copy, and the keys of ndn-tools.
    folder: tempfile::TempDir,
    table: SampleTable,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let mut run = Run {
        size: context.size(FILE)?,
        router: find_program(&context.program)?,
        folder: tempfile::Builder::new().prefix("namewire-lab-").tempdir()?,
        table: SampleTable::default(),
    };
    let mut content = vec![0; run.size.file_bytes];
    Rng::with_seed(context.seed).fill(&mut content);
    fs::write(run.path("file"), &content)?;
    let mut subjects = vec![Subject::Namewire];
    subjects.extend(std::env::var_os(NDN_TOOLS).map(|folder| Subject::NdnTools(folder.into())));
    context.plan_steps(LOSSES_PER_MILLE.len() * subjects.len() * run.size.repetitions as usize);
    for repetition in 0..run.size.repetitions {
        for per_mille in LOSSES_PER_MILLE {
            for subject in &subjects {
                let case = case_of(per_mille);
                context.begin_step(&format!("{case} {}", subject.label()))?;
                let seed = context.seed * 1_000_000 + u64::from(repetition * 1000 + per_mille);
                let time =
                    run.fetch(subject, per_mille, seed).with_context(|| format!("{case} {}", subject.label()))?;
                run.table.add(&case, subject.label(), METRIC.0, METRIC.1, time.as_secs_f64());
            }
        }
    }
    Ok(run.outcome())
}

fn case_of(per_mille: u32) -> String {
    format!("{} %", f64::from(per_mille) / 10.0)
}

impl Run {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Fetches the file once over a fresh line.
    fn fetch(&self, subject: &Subject, per_mille: u32, seed: u64) -> anyhow::Result<Duration> {
        let line = Line::start(&self.router, per_mille, seed)?;
        let _producer = self.serve(subject, &line.producer)?;
        let copy = self.path("copy");
        let mut command = match subject {
            Subject::Namewire => {
                let mut command = self.tool(&line.consumer);
                command.args(["get", NAME, "--quiet", "--output"]).arg(&copy);
                command
            }
            Subject::NdnTools(folder) => {
                let mut command = self.peer(folder, "ndncatchunks", &line.consumer);
                command.args(["--quiet", NAME]).stdout(File::create(&copy)?);
                command
            }
        };
        let started = Instant::now();
        let output = BoundProcess::start(command.stderr(Stdio::piped()), None)?.output(FETCH_LIMIT)?;
        let elapsed = started.elapsed();
        ensure!(output.status.success(), "the fetch failed: {}", String::from_utf8_lossy(&output.stderr));
        ensure!(fs::read(&copy)? == fs::read(self.path("file"))?, "what came is not what was served");
        fs::remove_file(copy)?;
        Ok(elapsed)
    }

    /// Starts the producer, and waits until its prefix is registered.
    fn serve(&self, subject: &Subject, router: &RouterProcess) -> anyhow::Result<BoundProcess> {
        let file = self.path("file");
        let mut command = match subject {
            Subject::Namewire => {
                let mut command = self.tool(router);
                command.arg("put").arg(&file).args([NAME, "--chunk-size", "8000"]);
                command
            }
            Subject::NdnTools(folder) => {
                let mut command = self.peer(folder, "ndnputchunks", router);
                command.args(["--size", "8000", NAME]).stdin(File::open(&file)?);
                command
            }
        };
        let process = BoundProcess::start(command.stdout(Stdio::null()).stderr(Stdio::null()), None)?;
        let deadline = Instant::now() + START_LIMIT;
        let is_registered = || -> anyhow::Result<bool> {
            let routes = self.tool(router).args(["route", "list"]).output()?;
            Ok(String::from_utf8_lossy(&routes.stdout).contains(NAME))
        };
        while !is_registered()? {
            interrupt::check()?;
            ensure!(Instant::now() < deadline, "the producer registered nothing");
        }
        Ok(process)
    }

    fn tool(&self, router: &RouterProcess) -> Command {
        let mut command = Command::new(&self.router);
        command.arg("--transport").arg(format!("unix://{}", router.socket().display())).stdin(Stdio::null());
        command
    }

    /// A program of ndn-tools with keys of its own.
    fn peer(&self, folder: &Path, program: &str, router: &RouterProcess) -> Command {
        let mut command = Command::new(folder.join(program));
        command
            .env("NDN_CLIENT_TRANSPORT", format!("unix://{}", router.socket().display()))
            .env("HOME", self.folder.path())
            .stdin(Stdio::null());
        command
    }

    fn outcome(self) -> Outcome {
        let mut outcome = Outcome { rows: self.table.rows(), ..Outcome::default() };
        for per_mille in LOSSES_PER_MILLE {
            let case = case_of(per_mille);
            let median =
                |subject| self.table.find(&case, subject, METRIC.0).and_then(crate::experiment::Samples::median);
            let key = case.trim_end_matches(" %").replace('.', "_");
            if let Some(ours) = median("namewire") {
                outcome.headline.insert(format!("lossy_{key}_s"), ours);
                if let Some(theirs) = median("ndn-tools") {
                    outcome.headline.insert(format!("lossy_{key}_over_ndn_tools"), ours / theirs);
                }
            }
        }
        let bytes = self.size.file_bytes;
        outcome
            .notes
            .push(format!("A file of {bytes} bytes; each datagram is lost with the case's probability, both ways."));
        if std::env::var_os(NDN_TOOLS).is_none() {
            outcome.notes.push(format!("ndn-tools were not measured: {NDN_TOOLS} names no folder."));
        }
        outcome
    }
}
