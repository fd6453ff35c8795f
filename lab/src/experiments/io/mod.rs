//! What does one router cost per packet, by the driver of its links?
//!
//! Ours, after Yuan15 §3.4.4 (a forwarder without the kernel's network stack). The workload is that of
//! `router-sockets`: distinct names, every Data compared; 128 Interests are in flight. Consumer and producer are one
//! process:
//!
//! | driver | where they are |
//! | --- | --- |
//! | UDP sockets, packet sockets, AF_XDP | in another network namespace, at two virtual cables |
//! | DPDK | at two devices of net_memif, which the router drives with DPDK |
//! | Unix sockets, memif | applications of the router |
//!
//! By AF_XDP, the router also runs with an I/O thread (Yuan15's design): the worker has the names, the I/O thread the
//! ports, and every packet crosses two rings. Both are on the processor that the worker has otherwise.
//!
//! For comparison, each driver has its lower bound: a relay that only copies packets. All of them have the engine
//! alone, which gets the same packets from memory. The load generator uses UDP sockets, Unix sockets, AF_XDP or memif,
//! so it never is the slower end of a case with sockets. In the cases with memif and DPDK, both ends poll the memory
//! all the time, and the slower end sets the rate.
//!
//! Each repetition of each case has a fresh router. Repetitions are interleaved. CPU time is the process's own, user
//! and system, per packet. DPDK never sleeps, so its CPU time includes every wait for the load generator.
//!
//! Limits: a cable is a pair of virtual interfaces. The kernel delivers a frame on the processor of its sender, so a
//! process pays for the frames that it sends, and the generator for those that the router receives. A network card does
//! both elsewhere. AF_XDP runs in copy mode there.

mod dpdk_programs;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use namewire_load::frame_port::{MEMIF_PEER, MEMIF_ROUTER};

use crate::clock::resolve_cpu_account;
use crate::experiment::{Context, Outcome, Samples, Scale};
use crate::load::{EngineAlone, LoadReport, Transport};
use crate::namespaces::{Network, Peer, interface, peer_station, router_station};
use crate::process;
use crate::router_process::{RelayProcess, RouterProcess, find_program};
use crate::sample_table::SampleTable;
use dpdk_programs::DpdkPrograms;

pub(super) const FILE: &str = include_str!("experiment.toml");

/// Interests in flight.
const WINDOW: u32 = 128;

/// Bytes of content in the case of the headline.
const SMALL_BYTES: u32 = 100;
const LARGE_BYTES: u32 = 1_200;

/// Options of DPDK: it needs no huge pages for two ports.
const EAL_OPTIONS: &str = "--no-huge -m 512 --no-pci";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Driver {
    Udp,
    PacketSocket,
    Xdp,
    Unix,
    Memif,
    Dpdk,
    XdpApart,
}

impl Driver {
    const ALL: [Driver; 7] =
        [Driver::Udp, Driver::PacketSocket, Driver::Xdp, Driver::Unix, Driver::Memif, Driver::Dpdk, Driver::XdpApart];

    fn label(self) -> &'static str {
        match self {
            Driver::Udp => "UDP sockets",
            Driver::PacketSocket => "packet sockets",
            Driver::Xdp => "AF_XDP",
            Driver::Unix => "Unix sockets",
            Driver::Memif => "memif",
            Driver::Dpdk => "DPDK",
            Driver::XdpApart => "AF_XDP at an I/O thread",
        }
    }

    fn transport(self) -> Transport {
        match self {
            Driver::Udp => Transport::Udp,
            Driver::PacketSocket | Driver::Xdp | Driver::XdpApart => Transport::Ethernet,
            Driver::Unix => Transport::Unix,
            Driver::Memif | Driver::Dpdk => Transport::Memif,
        }
    }

    /// Router and peers are in namespaces of their own.
    fn has_cables(self) -> bool {
        matches!(self, Driver::Udp | Driver::PacketSocket | Driver::Xdp | Driver::XdpApart)
    }
}

struct Run<'a> {
    context: &'a Context,
    program: PathBuf,
    dpdk: Option<DpdkPrograms>,
    network: Network,
    /// For sockets of memif.
    folder: tempfile::TempDir,
    /// The processors for the process under test and for the load.
    cpus: Option<(usize, usize)>,
    table: SampleTable,
    loads: u32,
    lost: u64,
    notes: Vec<String>,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let network = match Network::new(2) {
        Ok(network) => network,
        Err(error) => {
            let notes = vec![format!("refused: network namespaces cannot be made: {error:#}")];
            return Ok(Outcome { notes, ..Outcome::default() });
        }
    };
    let (program, cpus) = (find_program(&context.program)?, process::processors_to_pin());
    let (table, folder) = (SampleTable::default(), tempfile::Builder::new().prefix("namewire-lab-").tempdir()?);
    let mut notes = Vec::new();
    let dpdk = DpdkPrograms::find(&context.program, context.scale != Scale::Smoke);
    let dpdk = dpdk.map_err(|error| notes.push(format!("DPDK was not measured: {error:#}"))).ok();
    let mut run = Run { context, program, dpdk, network, folder, cpus, table, loads: 0, lost: 0, notes };
    let (repetitions, count) = match context.scale {
        Scale::Smoke => (1, 2_000),
        Scale::Quick => (5, 300_000),
        Scale::Full => (9, 1_000_000),
    };
    context.plan_steps(repetitions * 2 * Driver::ALL.len());
    for _ in 0..repetitions {
        for content_bytes in [SMALL_BYTES, LARGE_BYTES] {
            for driver in Driver::ALL {
                context.begin_step(&format!("{content_bytes} bytes by {}", driver.label()))?;
                run.measure(driver, content_bytes, count).with_context(|| driver.label())?;
            }
            run.measure_engine(content_bytes, count)?;
        }
    }
    Ok(run.outcome())
}

impl Run<'_> {
    fn measure(&mut self, driver: Driver, content_bytes: u32, count: u32) -> anyhow::Result<()> {
        if driver == Driver::Dpdk && self.dpdk.is_none() {
            return Ok(());
        }
        // What the faster drivers need to be measured as long.
        let count = if driver.has_cables() { count } else { 4 * count };
        let case = case(content_bytes);
        let router = self.start_router(driver)?;
        let options = self.options(driver, content_bytes, count, true);
        let report = router.load(self.load_of(driver), self.cpus.map(|cpus| cpus.1), driver.transport(), &options)?;
        drop(router);
        self.add(&case, &format!("namewire by {}", driver.label()), &report)?;
        if matches!(driver, Driver::PacketSocket | Driver::XdpApart) {
            return Ok(());
        }
        let relay = self.start_relay(driver)?;
        let options = self.options(driver, content_bytes, count, false);
        let report = relay.load(self.load_of(driver), self.cpus.map(|cpus| cpus.1), driver.transport(), &options)?;
        self.add(&case, &format!("relay by {}", driver.label()), &report)
    }

    /// The engine alone, on the processor that the router has otherwise.
    fn measure_engine(&mut self, content_bytes: u32, count: u32) -> anyhow::Result<()> {
        let (cpus, seed) = (self.cpus, self.context.seed);
        let measured = std::thread::spawn(move || {
            if let Some((cpu, _)) = cpus {
                process::stay_on(cpu)?;
            }
            let mut engine = EngineAlone::new(content_bytes as usize, seed)?;
            engine.exchange(count / 10);
            anyhow::Ok(engine.exchange(count))
        });
        let (spent, packets) = measured.join().map_err(|_| anyhow::anyhow!("the engine panicked"))??;
        let (case, packets) = (case(content_bytes), packets as f64);
        self.table.add(&case, "engine alone", "throughput", "Mpps", packets / 1e6 / spent.as_secs_f64());
        self.table.add(&case, "engine alone", "cpu", "µs per packet", spent.as_secs_f64() * 1e6 / packets);
        Ok(())
    }

    /// The command of the load generator.
    fn load_of(&self, driver: Driver) -> Command {
        if driver.has_cables() { self.network.on_peers(&self.context.program) } else { self.lab() }
    }

    fn lab(&self) -> Command {
        Command::new(&self.context.program)
    }

    fn memif_path(&self, side: &str) -> PathBuf {
        self.folder.path().join(format!("{side}.sock"))
    }

    /// The same without the socket of a process that has ended: DPDK does not replace it.
    fn fresh_memif_path(&self, side: &str) -> std::io::Result<PathBuf> {
        let path = self.memif_path(side);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(path),
        }
    }

    fn start_router(&self, driver: Driver) -> anyhow::Result<RouterProcess> {
        let program = self.dpdk.as_ref().filter(|_| driver == Driver::Dpdk).map_or(&self.program, |dpdk| &dpdk.router);
        let (mut command, listens) = if driver.has_cables() {
            (self.network.on_router(program), self.network.listens())
        } else {
            (Command::new(program), RouterProcess::free_udp_address()?)
        };
        command.args(["run", "--no-tcp", "--listen-udp", &listens.to_string(), "--workers", "1"]);
        match driver {
            Driver::Udp | Driver::Unix => {}
            Driver::PacketSocket | Driver::Xdp | Driver::XdpApart => {
                let io = if driver == Driver::PacketSocket { "socket" } else { "xdp" };
                command.args(["--ethernet", "--set", &format!("faces.ethernet.io={io}"), "--interface", "eth*"]);
                if driver == Driver::XdpApart {
                    command.args(["--set", "router.io_threads=1"]);
                }
            }
            Driver::Memif => {
                command.arg("--memif").arg(self.memif_path("router"));
            }
            Driver::Dpdk => {
                let mut ports = Vec::new();
                for (number, side) in SIDES.into_iter().enumerate() {
                    ports.push(device(number, &self.fresh_memif_path(side)?));
                }
                let eal: Vec<&str> = EAL_OPTIONS.split(' ').collect();
                command.args(["--set", &format!("faces.dpdk.ports={ports:?}")]);
                command.args(["--set", &format!("faces.dpdk.eal={eal:?}")]);
            }
        }
        RouterProcess::start_command(command, listens, self.cpus.map(|cpus| cpus.0))
    }

    fn start_relay(&self, driver: Driver) -> anyhow::Result<RelayProcess> {
        let mut command = if driver.has_cables() { self.network.on_router(&self.context.program) } else { self.lab() };
        match (driver, &self.dpdk) {
            (Driver::Dpdk, Some(dpdk)) => {
                command = Command::new(&dpdk.forwarder);
                for (number, side) in SIDES.into_iter().enumerate() {
                    command.arg("--device").arg(device(number, &self.fresh_memif_path(side)?));
                }
                command.arg("--").args(EAL_OPTIONS.split(' '));
            }
            (Driver::Memif | Driver::Dpdk, _) => {
                command.arg("relay").arg("--memif").arg(self.memif_paths());
            }
            (Driver::Udp, _) => {
                command.args(["relay", "--bind", &self.network.listens().ip().to_string()]);
            }
            (Driver::PacketSocket | Driver::Xdp | Driver::XdpApart, _) => {
                command.args(["relay", "--interfaces", &both(interface), "--stations", &both(peer_station)]);
            }
            (Driver::Unix, _) => {
                command.arg("relay");
            }
        }
        RelayProcess::start_command(command, driver.transport(), self.cpus.map(|cpus| cpus.0))
    }

    /// The sockets of both sides, for a list of an option.
    fn memif_paths(&self) -> String {
        SIDES.map(|side| self.memif_path(side).display().to_string()).join(",")
    }

    fn options(&mut self, driver: Driver, content_bytes: u32, count: u32, is_router: bool) -> Vec<String> {
        self.loads += 1;
        let mut options: Vec<String> = Vec::new();
        for (name, value) in [
            ("content", content_bytes),
            ("count", count),
            ("warmup", count / 10),
            ("window", WINDOW),
            ("stream", self.loads),
        ] {
            options.extend([format!("--{name}"), value.to_string()]);
        }
        let mut add = |name: &str, value: String| options.extend([name.to_owned(), value]);
        add("--seed", (self.context.seed ^ u64::from(self.loads)).to_string());
        match driver {
            Driver::Unix => {}
            Driver::Udp => add("--bind", Peer::Honest.address().to_string()),
            Driver::PacketSocket | Driver::Xdp | Driver::XdpApart => {
                add("--interfaces", both(interface));
                add("--stations", both(router_station));
                if is_router {
                    add("--producer", format!("{},{}", peer_station(1), interface(1)));
                }
            }
            Driver::Memif if is_router => {
                let path = self.memif_path("router");
                add("--memif", format!("{path},{path}", path = path.display()));
            }
            Driver::Memif => add("--memif", self.memif_paths()),
            Driver::Dpdk => {
                add("--memif", self.memif_paths());
                if is_router {
                    add("--producer", format!("{MEMIF_PEER},{}", device_name(1)));
                }
            }
        }
        options
    }

    fn add(&mut self, case: &str, subject: &str, report: &LoadReport) -> anyhow::Result<()> {
        ensure!(report.wrong == 0, "{} packets were wrong, so no time of this run is valid", report.wrong);
        self.lost += report.unsatisfied;
        let packets = (report.satisfied * 2).max(1) as f64;
        let elapsed_ns = self.context.clock.resolve(report.elapsed_ns);
        let mpps = elapsed_ns.map(|ns| packets * 1e3 / ns as f64);
        self.table.samples(case, subject, "throughput", "Mpps").add_resolved(mpps);
        let samples = self.table.samples(case, subject, "cpu", "µs per packet");
        match report.watched_cpu_ns {
            Some(cpu_ns) => samples.add_resolved(resolve_cpu_account(cpu_ns).map(|ns| ns as f64 / 1e3 / packets)),
            None => samples.refuse("the kernel gives no CPU time of other processes".to_owned()),
        }
        let generator = report.generator_cpu_ns.unwrap_or(0) as f64 * 100.0 / report.elapsed_ns.max(1) as f64;
        self.table.samples(case, subject, "generator busy", "%").add(generator);
        self.table.samples(case, subject, "lost", "Interests").add(report.unsatisfied as f64);
        Ok(())
    }

    fn outcome(mut self) -> Outcome {
        let mut outcome = Outcome { rows: self.table.rows(), notes: self.notes, ..Outcome::default() };
        add_headline(&mut outcome, &mut self.table);
        outcome.headline.insert("lost".to_owned(), self.lost as f64);
        outcome.notes.extend([
            "A packet is an Interest or a Data. CPU time is that of the router or relay, user and system; by DPDK it \
             includes all waiting."
                .to_owned(),
            "Headline: 100 bytes of content. dpdk_over_udp and xdp_over_udp: CPU time per packet by UDP sockets over \
             that by DPDK or AF_XDP. shared_memory_over_engine and unix_over_engine: packets per second of the whole \
             router over those of the engine alone."
                .to_owned(),
            match self.cpus {
                Some((router, load)) => {
                    format!("Router, relay and engine on CPU {router}, load generator on CPU {load}.")
                }
                None => "Only one CPU: router and load generator share it, so rates mean little.".to_owned(),
            },
        ]);
        outcome
    }
}

/// Adds the figures by which drivers are compared. A ratio or a difference is that of each repetition, in which both
/// were measured within a minute.
fn add_headline(outcome: &mut Outcome, table: &mut SampleTable) {
    let mut of = |subject: &str, metric, unit| table.samples(&case(SMALL_BYTES), subject, metric, unit).clone();
    let mut cpu = |subject: String| of(&subject, "cpu", "µs per packet");
    let router = |driver: Driver| format!("namewire by {}", driver.label());
    let relay = |driver: Driver| format!("relay by {}", driver.label());
    let [udp, packet, xdp, unix, memif, dpdk, xdp_apart] = Driver::ALL.map(|driver| cpu(router(driver)));
    let engine = cpu("engine alone".to_owned());
    let [xdp_relay, memif_relay, dpdk_relay] =
        [Driver::Xdp, Driver::Memif, Driver::Dpdk].map(|driver| cpu(relay(driver)));
    let mut rate = |subject: String| of(&subject, "throughput", "Mpps");
    let [memif_rate, unix_rate] = [Driver::Memif, Driver::Unix].map(|driver| rate(router(driver)));
    let engine_rate = rate("engine alone".to_owned());
    let over = |a: &Samples, b: &Samples| by_repetition(a, b, |a, b| a / b);
    let above = |a: &Samples, b: &Samples| by_repetition(a, b, |a, b| a - b);
    for (key, samples) in [
        ("udp_us", udp.clone()),
        ("packet_socket_us", packet),
        ("xdp_us", xdp.clone()),
        ("xdp_io_thread_us", xdp_apart.clone()),
        ("io_thread_over_one_thread", over(&xdp_apart, &xdp)),
        ("unix_us", unix),
        ("memif_us", memif.clone()),
        ("dpdk_us", dpdk.clone()),
        ("engine_us", engine),
        ("xdp_over_udp", over(&udp, &xdp)),
        ("dpdk_over_udp", over(&udp, &dpdk)),
        ("shared_memory_over_engine", over(&memif_rate, &engine_rate)),
        ("unix_over_engine", over(&unix_rate, &engine_rate)),
        ("xdp_us_above_relay", above(&xdp, &xdp_relay)),
        ("memif_us_above_relay", above(&memif, &memif_relay)),
        ("dpdk_us_above_relay", above(&dpdk, &dpdk_relay)),
    ] {
        if !samples.taken().is_empty() {
            outcome.add_steady(key, &samples); // otherwise a note says what was not measured
        }
    }
}

/// One figure for each repetition of two quantities.
pub(super) fn by_repetition(a: &Samples, b: &Samples, figure: impl Fn(f64, f64) -> f64) -> Samples {
    let mut samples = Samples::default();
    if a.median().is_none() || b.median().is_none() {
        samples.refuse("one of both was refused".to_owned());
    }
    a.taken().iter().zip(b.taken()).for_each(|(a, b)| samples.add(figure(*a, *b)));
    samples
}

fn case(content_bytes: u32) -> String {
    format!("{content_bytes} bytes")
}

/// Consumer and producer at the devices of DPDK, or at the relay.
const SIDES: [&str; 2] = ["consumer", "producer"];

fn device_name(number: usize) -> String {
    format!("net_memif{number}")
}

/// A device of DPDK at which one side of the load connects.
fn device(number: usize, socket: &Path) -> String {
    let name = device_name(number);
    format!("{name},role=server,id=0,bsize=2048,socket={},socket-abstract=no,mac={MEMIF_ROUTER}", socket.display())
}

/// What both cables have, for a list of an option.
fn both(of: impl Fn(usize) -> String) -> String {
    format!("{},{}", of(0), of(1))
}
