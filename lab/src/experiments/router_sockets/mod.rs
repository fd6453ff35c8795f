//! What does one router cost per packet over kernel sockets?
//!
//! Workload: one process is consumer and producer on two faces. It requests distinct names
//! `/bench/<run>/<stream>/<sequence>` with 64 Interests in flight. This is the pattern of bulk transfer, and the worst
//! one for the Content Store (which is on, as by default). Other cases: hits from the Content Store, one Interest in
//! flight, a constant rate far below saturation, and the cost of routes ([`routes`]). Every Data is compared byte by
//! byte; losses are counted, never retried.
//!
//! Each repetition of each case has a fresh router. Repetitions are interleaved: all cases once, then all again.
//! Where sleep matters, a router whose idle workers sleep at once (`router.busy_poll=0`) runs right after the one with
//! default settings. Besides these, a bare relay runs that only copies packets: the lower bound of kernel sockets. It
//! sleeps between packets. CPU time is the process's own, user and system, per packet; an exchange is an Interest and a
//! Data, so two packets.
//!
//! What `unix_over_relay` depends on, so that another generator finds the same. The ratio is that of a router that
//! reads its tables to a relay that reads nothing, so it grows with the latency of memory and with what the relay
//! saves:
//!
//! * Packets per system call. This load writes all that the window allows at once and keeps 64 in flight, which the
//!   relay passes on in few calls. With one packet in each write, relay and router both pay for calls, and the ratio
//!   falls to 1.3.
//! * The Content Store. Every Data is new, so each is copied into memory that is in no cache: 0.35 of 1.0 us a packet
//!   on one host. With `cs.capacity=0` the router reads as little as it can.
//! * The host. An independent program in C (pinned, 64 in flight, one write for each window) found 5.1 within the
//!   hour in which this load found 3.7: its relay took 0.21 us a packet, this one 0.22; the router 1.08 and 0.82.
//!
//! The router uses UDP segmentation offload; the relay and the load do not. So their datagrams reach the router one by
//! one, and only the router's own packets are joined.
//!
//! Limits: a network card, many faces, or more than two processors are not covered. Loopback UDP does half of its work
//! in the sender's system call, so the router pays for delivering the packets it sends, and the generator for those
//! that the router receives.

mod outcome;
mod routes;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;

use crate::clock::resolve_cpu_account;
use crate::experiment::{Context, Outcome};
use crate::load::{LoadReport, Transport};
use crate::process;
use crate::router_process::{RelayProcess, RouterProcess, find_program};
use crate::sample_table::SampleTable;

pub(super) const FILE: &str = include_str!("experiment.toml");

/// Interests in flight in the saturating cases.
const WINDOW: u32 = 64;
/// Interests per second in the paced cases.
const PACE_PER_S: u32 = 10_000;
/// The same in the slow case: every exchange finds the router asleep.
const SLOW_PACE_PER_S: u32 = 1_000;
/// An exchange of the slow case takes the time of this many others.
const SLOW_PART: u32 = 5;
/// Most Interests in flight in the paced cases: a stall of 0.4 s.
const PACED_WINDOW: u32 = 4_096;
/// Time for a router to settle before it counts as idle.
const SETTLE: Duration = Duration::from_millis(300);
/// A load generator busier than this may itself be the limit.
const GENERATOR_BUSY_PERCENT: f64 = 90.0;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// As many exchanges as the window allows.
    Saturate,
    /// The same, answered by the Content Store.
    Store,
    /// One Interest in flight.
    One,
    /// A constant rate.
    Paced { per_s: u32 },
}

struct Case {
    id: &'static str,
    transport: Transport,
    content_bytes: u32,
    mode: Mode,
    /// With [`Size::routes`] other routes in the router.
    among_routes: bool,
    /// Also with a router whose idle workers sleep at once.
    beside_sleeping: bool,
    /// Workers of the router, if the case is about their number.
    workers: Option<usize>,
}

impl Case {
    const fn new(id: &'static str, transport: Transport, content_bytes: u32, mode: Mode) -> Self {
        Self { id, transport, content_bytes, mode, among_routes: false, beside_sleeping: false, workers: None }
    }

    const fn among_routes(id: &'static str, transport: Transport, content_bytes: u32, mode: Mode) -> Self {
        Self { among_routes: true, ..Self::new(id, transport, content_bytes, mode) }
    }

    const fn beside_sleeping(id: &'static str, transport: Transport, mode: Mode) -> Self {
        Self { beside_sleeping: true, ..Self::new(id, transport, 100, mode) }
    }

    /// Four workers on one processor, which must not take it from each other.
    const fn of_four_workers(id: &'static str, transport: Transport) -> Self {
        Self { workers: Some(4), ..Self::beside_sleeping(id, transport, Mode::Saturate) }
    }

    /// Whether the subject can run the case: a relay has no store, no routes and no workers.
    fn suits(&self, subject: Subject) -> bool {
        match subject {
            Subject::Namewire { busy_polls, .. } => busy_polls || self.beside_sleeping,
            Subject::Relay => !(self.mode == Mode::Store || self.among_routes || self.workers.is_some()),
        }
    }
}

const CASES: &[Case] = &[
    Case::new("unix-100", Transport::Unix, 100, Mode::Saturate),
    Case::among_routes("unix-100-among-routes", Transport::Unix, 100, Mode::Saturate),
    Case::new("unix-8000", Transport::Unix, 8_000, Mode::Saturate),
    Case::new("udp-100", Transport::Udp, 100, Mode::Saturate),
    Case::new("udp-1200", Transport::Udp, 1_200, Mode::Saturate),
    Case::new("store-unix", Transport::Unix, 100, Mode::Store),
    Case::new("store-udp", Transport::Udp, 100, Mode::Store),
    Case::beside_sleeping("one-unix", Transport::Unix, Mode::One),
    Case::beside_sleeping("one-udp", Transport::Udp, Mode::One),
    Case::new("paced-unix", Transport::Unix, 100, Mode::Paced { per_s: PACE_PER_S }),
    Case::new("paced-udp", Transport::Udp, 100, Mode::Paced { per_s: PACE_PER_S }),
    Case::beside_sleeping("slow-unix", Transport::Unix, Mode::Paced { per_s: SLOW_PACE_PER_S }),
    Case::beside_sleeping("slow-udp", Transport::Udp, Mode::Paced { per_s: SLOW_PACE_PER_S }),
    Case::of_four_workers("four-workers-unix", Transport::Unix),
    Case::of_four_workers("four-workers-udp", Transport::Udp),
];

/// Sizes of a run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    repetitions: u16,
    saturating: u32,
    store_names: u32,
    timed: u32,
    /// Routes in the cases with other routes.
    routes: u64,
    /// Routes registered once, to show that this many work.
    many_routes: Option<u64>,
    idle_ms: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    Namewire {
        workers: usize,
        /// With default settings; otherwise idle workers sleep at once.
        busy_polls: bool,
    },
    Relay,
}

impl Subject {
    fn label(self) -> String {
        match self {
            Self::Namewire { workers: 1, busy_polls: true } => "namewire".to_owned(),
            Self::Namewire { workers: 1, busy_polls: false } => "namewire, sleeping at once".to_owned(),
            Self::Namewire { workers, busy_polls: true } => format!("namewire, {workers} workers"),
            Self::Namewire { workers, busy_polls: false } => format!("namewire, {workers} workers, sleeping at once"),
            Self::Relay => "relay".to_owned(),
        }
    }
}

struct Run<'a> {
    context: &'a Context,
    size: Size,
    router: PathBuf,
    /// The processors for the process under test and for the load.
    cpus: Option<(usize, usize)>,
    table: SampleTable,
    /// By case and subject.
    remarks: BTreeMap<(String, String), String>,
    lost: u64,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let mut run = Run {
        context,
        size: context.size(FILE)?,
        router: find_program(&context.program)?,
        cpus: process::processors_to_pin(),
        table: SampleTable::default(),
        remarks: BTreeMap::new(),
        lost: 0,
    };
    let of = |&workers: &usize| [true, false].map(|busy_polls| Subject::Namewire { workers, busy_polls });
    let mut subjects: Vec<Subject> = context.workers.iter().flat_map(of).collect();
    subjects.push(Subject::Relay);
    let per_repetition = CASES.len() * subjects.len() + 2 * context.workers.len();
    let once = if run.size.many_routes.is_some() { context.workers.len() } else { 0 };
    context.plan_steps(per_repetition * usize::from(run.size.repetitions) + once);
    for repetition in 0..run.size.repetitions {
        for &subject in &subjects {
            if subject != Subject::Relay {
                context.begin_step(&format!("idle {}", subject.label()))?;
                run.idle(subject)?;
            }
        }
        for case in CASES {
            for &subject in &subjects {
                context.begin_step(&format!("{} {}", case.id, subject.label()))?;
                if case.suits(subject) {
                    run.measure(case, subject, repetition)
                        .with_context(|| format!("{} {}", case.id, subject.label()))?;
                }
            }
        }
    }
    if let Some(routes) = run.size.many_routes {
        for &workers in &context.workers {
            let subject = Subject::Namewire { workers, busy_polls: true };
            context.begin_step(&format!("{routes} routes {}", subject.label()))?;
            let router = run.start_router(workers, true)?;
            run.register_routes("many-routes", subject, &router, routes)?;
        }
    }
    Ok(run.outcome())
}

impl Run<'_> {
    /// Start-up time, memory and CPU time of an idle router.
    fn idle(&mut self, subject: Subject) -> anyhow::Result<()> {
        let Subject::Namewire { workers, busy_polls } = subject else { return Ok(()) };
        let router = self.start_router(workers, busy_polls)?;
        std::thread::sleep(SETTLE);
        let resident_kib = process::resident_kib(router.id()).context("the router's memory cannot be read")?;
        let account = || process::cpu_time_ns(router.id()).context("the router's CPU time cannot be read");
        let (started, before_ns) = (Instant::now(), account()?);
        std::thread::sleep(Duration::from_millis(self.size.idle_ms));
        let (elapsed, after_ns) = (started.elapsed(), account()?);
        let start_ms = router.start_to_answer().as_secs_f64() * 1e3;
        let (subject, table) = (subject.label(), &mut self.table);
        table.samples("idle", &subject, "start to first answer", "ms").add(start_ms);
        table.samples("idle", &subject, "resident idle", "MiB").add(resident_kib as f64 / 1024.0);
        // Exact although small: the account of a sleeping thread was updated when it went to sleep.
        let idle_ms = after_ns.saturating_sub(before_ns) as f64 / 1e6;
        table.samples("idle", &subject, "cpu while idle", "ms per s").add(idle_ms / elapsed.as_secs_f64());
        Ok(())
    }

    fn measure(&mut self, case: &Case, subject: Subject, repetition: u16) -> anyhow::Result<()> {
        let options = self.options(case, repetition);
        let (lab, load_cpu) = (self.context.program.as_path(), self.cpus.map(|cpus| cpus.1));
        let report = match subject {
            Subject::Relay => {
                let relay = RelayProcess::start(lab, case.transport, self.cpus.map(|cpus| cpus.0))?;
                relay.load(Command::new(lab), load_cpu, case.transport, &options)?
            }
            Subject::Namewire { .. } => self.load_router(case, subject, &options)?,
        };
        ensure!(report.wrong == 0, "{} packets were wrong, so no time of this run is valid", report.wrong);
        self.add(case, subject, &report);
        Ok(())
    }

    fn load_router(&mut self, case: &Case, subject: Subject, options: &[String]) -> anyhow::Result<LoadReport> {
        let Subject::Namewire { workers, busy_polls } = subject else { bail!("a relay is no router") };
        let mut router = self.start_router(case.workers.unwrap_or(workers), busy_polls)?;
        // Kept while the load runs: dropping it removes the routes.
        let _routes = match case.among_routes {
            true => Some(self.register_routes("routes", subject, &router, self.size.routes)?),
            false => None,
        };
        let lab = Command::new(&self.context.program);
        let report = router.load(lab, self.cpus.map(|cpus| cpus.1), case.transport, options)?;
        ensure!(router.is_alive()?, "the router did not survive the load");
        Ok(report)
    }

    fn start_router(&self, workers: usize, busy_polls: bool) -> anyhow::Result<RouterProcess> {
        let options = if busy_polls { &[][..] } else { &["--set".to_owned(), "router.busy_poll=0".to_owned()] };
        RouterProcess::start_with(&self.router, workers, self.cpus.map(|cpus| cpus.0), options)
    }

    fn options(&self, case: &Case, repetition: u16) -> Vec<String> {
        let mut options = Vec::new();
        let mut option = |name: &str, value: u32| options.extend([format!("--{name}"), value.to_string()]);
        option("content", case.content_bytes);
        option("stream", u32::from(repetition));
        let (count, warmup) = match case.mode {
            Mode::Saturate | Mode::Store => (self.size.saturating, self.size.saturating / 10),
            Mode::Paced { per_s: SLOW_PACE_PER_S } => (self.size.timed / SLOW_PART, 200),
            Mode::One | Mode::Paced { .. } => (self.size.timed, 200),
        };
        option("count", count);
        option("warmup", warmup);
        match case.mode {
            Mode::Saturate => option("window", WINDOW),
            Mode::Store => {
                option("window", WINDOW);
                option("names", self.size.store_names);
            }
            Mode::One => option("window", 1),
            Mode::Paced { per_s } => {
                option("window", PACED_WINDOW);
                option("rate", per_s);
            }
        }
        options.extend(["--seed".to_owned(), (self.context.seed ^ u64::from(repetition)).to_string()]);
        if case.mode == Mode::Store {
            options.push("--from-store".to_owned());
        }
        options
    }

    fn add(&mut self, case: &Case, subject: Subject, report: &LoadReport) {
        let elapsed_ns = self.context.clock.resolve(report.elapsed_ns);
        let (subject, table) = (subject.label(), &mut self.table);
        let packets = (report.satisfied * 2).max(1) as f64;
        let cpu_samples = table.samples(case.id, &subject, "cpu", "µs per packet");
        match report.watched_cpu_ns {
            Some(cpu_ns) => cpu_samples.add_resolved(resolve_cpu_account(cpu_ns).map(|ns| ns as f64 / 1e3 / packets)),
            None => cpu_samples.refuse("the kernel gives no CPU time of other processes".to_owned()),
        }
        match case.mode {
            Mode::Saturate | Mode::Store => {
                let per_s = elapsed_ns.map(|ns| report.satisfied as f64 * 1e9 / ns as f64);
                table.samples(case.id, &subject, "exchanges", "per s").add_resolved(per_s);
                if let (Mode::Saturate, Some(kib)) = (case.mode, report.watched_resident_kib) {
                    table.samples(case.id, &subject, "resident after", "MiB").add(kib as f64 / 1024.0);
                }
            }
            Mode::One | Mode::Paced { .. } => {
                for (metric, latency_ns) in
                    [("latency p50", report.latency_ns_p50), ("latency p99", report.latency_ns_p99)]
                {
                    let latency_us = self.context.clock.resolve(u64::from(latency_ns)).map(|ns| ns as f64 / 1e3);
                    table.samples(case.id, &subject, metric, "µs").add_resolved(latency_us);
                }
            }
        }
        table.samples(case.id, &subject, "lost", "Interests").add(report.unsatisfied as f64);
        self.lost += report.unsatisfied;
        if let Some(remark) = remark_on(case, report) {
            self.remarks.insert((case.id.to_owned(), subject), remark);
        }
    }
}

/// The remark for one measurement.
fn remark_on(case: &Case, report: &LoadReport) -> Option<String> {
    let mut remarks = Vec::new();
    if report.unsatisfied > 0 {
        remarks.push(format!("{} Interests lost ({} by Nack)", report.unsatisfied, report.nacks));
    }
    if report.unexpected > 0 {
        remarks.push(format!("{} Data without an outstanding Interest", report.unexpected));
    }
    if case.mode == Mode::Store && report.producer_interests > 0 {
        remarks.push(format!("{} of {} were not from the store", report.producer_interests, report.sent));
    }
    if let (Mode::Saturate | Mode::Store, Some(cpu_ns)) = (case.mode, report.generator_cpu_ns) {
        let busy_percent = cpu_ns as f64 / report.elapsed_ns.max(1) as f64 * 100.0;
        if busy_percent > GENERATOR_BUSY_PERCENT {
            remarks.push(format!("load generator {busy_percent:.0} % busy: the rate may be its limit"));
        }
    }
    (!remarks.is_empty()).then(|| remarks.join("; "))
}
