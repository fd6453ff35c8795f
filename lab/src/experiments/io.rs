//! What does one router cost per packet, by the driver of its links?
//!
//! Ours, after Yuan15 §3.4.4 (a forwarder without the kernel's network stack). Router and peers are in two network
//! namespaces with two cables between: the consumer is on one, the producer on the other. The workload is that of
//! `router-sockets`: distinct names, 64 Interests in flight, every Data compared. The router has UDP sockets, packet
//! sockets or AF_XDP; beside each stands what the driver alone costs, a relay that only copies packets (none by packet
//! sockets). The load generator uses UDP sockets or AF_XDP, so it never is the slower end.
//!
//! Each repetition of each case has a fresh router. Repetitions are interleaved. CPU time is the process's own, user
//! and system, per packet.
//!
//! Limits: a cable is a pair of virtual interfaces. The kernel delivers a frame on the processor of its sender, so a
//! process pays for the frames that it sends, and the generator for those that the router receives. A network card does
//! both elsewhere. AF_XDP runs in copy mode there.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::clock::resolve_cpu_account;
use crate::experiment::{Context, Experiment, Outcome, Scale};
use crate::load::{LoadReport, Transport};
use crate::namespaces::{Network, Peer, interface, peer_station, router_station};
use crate::process;
use crate::record::Row;
use crate::router_process::{RelayProcess, RouterProcess, find_program};
use crate::sample_table::SampleTable;

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "io",
    source: "ours; Yuan15 §3.4.4",
    question: "What does one router cost per packet, by the driver of its links?",
    needs: "quick: 2 min, 1 GiB; full: 8 min, 1 GiB; needs root and the program `namewire` (see NAMEWIRE)",
    takes: None,
    run,
};

/// Interests in flight.
const WINDOW: u32 = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Driver {
    Udp,
    PacketSocket,
    Xdp,
}

impl Driver {
    const ALL: [Driver; 3] = [Driver::Udp, Driver::PacketSocket, Driver::Xdp];

    fn label(self) -> &'static str {
        match self {
            Driver::Udp => "UDP sockets",
            Driver::PacketSocket => "packet sockets",
            Driver::Xdp => "AF_XDP",
        }
    }

    fn transport(self) -> Transport {
        if self == Driver::Udp { Transport::Udp } else { Transport::Ethernet }
    }
}

struct Run<'a> {
    context: &'a Context,
    program: PathBuf,
    network: Network,
    /// The processors for the process under test and for the load.
    cpus: Option<(usize, usize)>,
    table: SampleTable,
    loads: u32,
    lost: u64,
}

fn run(context: &Context) -> anyhow::Result<Outcome> {
    let network = match Network::new(2) {
        Ok(network) => network,
        Err(error) => {
            let notes = vec![format!("refused: network namespaces cannot be made: {error:#}")];
            return Ok(Outcome { notes, ..Outcome::default() });
        }
    };
    let (program, cpus) = (find_program(&context.program)?, process::processors_to_pin());
    let mut run = Run { context, program, network, cpus, table: SampleTable::default(), loads: 0, lost: 0 };
    let (repetitions, count) = match context.scale {
        Scale::Smoke => (1, 2_000),
        Scale::Quick => (5, 300_000),
        Scale::Full => (9, 1_000_000),
    };
    context.plan_steps(repetitions * 2 * Driver::ALL.len());
    for _ in 0..repetitions {
        for content_bytes in [100, 1_200] {
            for driver in Driver::ALL {
                context.begin_step(&format!("{content_bytes} bytes by {}", driver.label()))?;
                run.measure(driver, content_bytes, count).with_context(|| driver.label())?;
            }
        }
    }
    Ok(run.outcome())
}

impl Run<'_> {
    fn measure(&mut self, driver: Driver, content_bytes: u32, count: u32) -> anyhow::Result<()> {
        let case = format!("{content_bytes} bytes");
        let router = self.start_router(driver)?;
        let options = self.options(driver, content_bytes, count, true);
        let load = self.network.on_peers(&self.context.program);
        let report = router.load(load, self.cpus.map(|cpus| cpus.1), driver.transport(), &options)?;
        drop(router);
        self.add(&case, &format!("namewire by {}", driver.label()), &report)?;
        if driver == Driver::PacketSocket {
            return Ok(());
        }
        let relay = self.start_relay(driver)?;
        let options = self.options(driver, content_bytes, count, false);
        let load = self.network.on_peers(&self.context.program);
        let report = relay.load(load, self.cpus.map(|cpus| cpus.1), driver.transport(), &options)?;
        self.add(&case, &format!("relay by {}", driver.label()), &report)
    }

    fn start_router(&self, driver: Driver) -> anyhow::Result<RouterProcess> {
        let mut command = self.network.on_router(&self.program);
        let listens = self.network.listens();
        command.args(["run", "--no-tcp", "--listen-udp", &listens.to_string(), "--workers", "1"]);
        let io = match driver {
            Driver::Udp => None,
            Driver::PacketSocket => Some("socket"),
            Driver::Xdp => Some("xdp"),
        };
        if let Some(io) = io {
            command.args(["--ethernet", "--ethernet-io", io, "--interface", "eth*"]);
        }
        RouterProcess::start_command(command, listens, self.cpus.map(|cpus| cpus.0))
    }

    fn start_relay(&self, driver: Driver) -> anyhow::Result<RelayProcess> {
        let mut command: Command = self.network.on_router(&self.context.program);
        command.arg("relay");
        match driver {
            Driver::Udp => command.args(["--bind", &self.network.listens().ip().to_string()]),
            Driver::PacketSocket | Driver::Xdp => {
                command.args(["--interfaces", &both(interface), "--stations", &both(peer_station)])
            }
        };
        RelayProcess::start_command(command, driver.transport(), self.cpus.map(|cpus| cpus.0))
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
            Driver::Udp => add("--bind", Peer::Honest.address().to_string()),
            Driver::PacketSocket | Driver::Xdp => {
                add("--interfaces", both(interface));
                add("--stations", both(router_station));
                if is_router {
                    add("--producer", format!("{},{}", peer_station(1), interface(1)));
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

    fn outcome(self) -> Outcome {
        let mut outcome = Outcome { rows: self.table.rows(), ..Outcome::default() };
        let median = |subject: &str| {
            let is_it = |row: &&Row| row.case == "100 bytes" && row.subject == subject && row.metric == "cpu";
            Some(outcome.rows.iter().find(is_it)?.value.as_ref()?.median)
        };
        let [udp, packet, xdp] = Driver::ALL.map(|driver| median(&format!("namewire by {}", driver.label())));
        let relay = median("relay by AF_XDP");
        let figures = [
            ("udp_us", udp),
            ("packet_socket_us", packet),
            ("xdp_us", xdp),
            ("xdp_over_udp", udp.zip(xdp).map(|(udp, xdp)| udp / xdp)),
            ("xdp_us_above_relay", xdp.zip(relay).map(|(xdp, relay)| xdp - relay)),
        ];
        outcome.headline = figures.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
        outcome.headline.insert("lost".to_owned(), self.lost as f64);
        outcome.notes = vec![
            "A packet is an Interest or a Data. CPU time is that of the router or relay, user and system.".to_owned(),
            "xdp_over_udp: CPU time per packet by UDP sockets over that by AF_XDP, 100 bytes of content.".to_owned(),
            match self.cpus {
                Some((router, load)) => format!("Router and relay on CPU {router}, load generator on CPU {load}."),
                None => "Only one CPU: router and load generator share it, so rates mean little.".to_owned(),
            },
        ];
        outcome
    }
}

/// What both cables have, for a list of an option.
fn both(of: impl Fn(usize) -> String) -> String {
    format!("{},{}", of(0), of(1))
}
