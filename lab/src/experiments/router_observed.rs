//! What does it cost a router's worker to be observed?
//!
//! A fresh router with `--observe` carries the same load three times, in changing order: 64 Interests in flight over
//! Unix sockets, then a constant rate far below saturation for the latency. In one run, no client observes the router.
//! In another, one client requests `/metrics` once a second, and a second client reads the stream of the live page. In
//! the third, a trace runs in addition; the load does not use its prefix. The router logs at the level info, as by
//! default.
//!
//! N.B. Pairs of two routers, one with `--observe` and one without, differed by up to a third in either direction, more
//! than the difference to measure: the place of a process in memory decides. So each ratio is of one process.
//!
//! CPU time is that of the worker thread alone, from before the warm-up to the end of the load, per packet. The ratio
//! of a router is its time without observers divided by its time with them: 1 means free, 0.99 means one percent more.
//! A note gives their mean with its 95 % interval (1.96 standard errors). The headline is their median, unless they
//! spread too far.
//!
//! Limits: the observer's thread shares the router's processor, so that a run has fewer exchanges a second than a
//! router with a processor for it; its own CPU time is below the resolution of the kernel's account. The router has
//! three faces; a scrape of thousands takes longer on that thread.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde::Deserialize;

use crate::clock::resolve_cpu_account;
use crate::experiment::{Context, Outcome};
use crate::load::{LoadReport, Transport};
use crate::process;
use crate::router_process::{RouterProcess, find_program};
use crate::sample_table::SampleTable;

pub(super) const FILE: &str = include_str!("router_observed.toml");

/// How often the metrics are asked for.
const SCRAPE_EVERY: Duration = Duration::from_secs(1);
/// Interests per second where latency is measured.
const PACE_PER_S: u32 = 10_000;
/// The metric of the ratios.
const RATIO: &str = "cpu without a look over its own";
/// What the idle trace is about.
const TRACED_PREFIX: &str = "/not/in/the/load";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    routers: u16,
    saturating: u32,
    paced: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watched {
    Not,
    Observed,
    Traced,
}

impl Watched {
    const ALL: [Watched; 3] = [Watched::Not, Watched::Observed, Watched::Traced];

    const fn label(self) -> &'static str {
        match self {
            Watched::Not => "without a look",
            Watched::Observed => "observed",
            Watched::Traced => "observed and traced",
        }
    }
}

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let (size, cpus) = (context.size::<Size>(FILE)?, process::processors_to_pin());
    let router = find_program(&context.program)?;
    let mut run = Run { context, cpus, router, table: SampleTable::default(), scrapes: 0, lost: 0 };
    context.plan_steps(usize::from(size.routers) * Watched::ALL.len());
    for number in 0..size.routers {
        let subject = run.start()?;
        run.load(&subject, Watched::Not, &["--count=2000".to_owned(), "--stream=999".to_owned()])?; // grows tables
        let mut order = Watched::ALL;
        order.rotate_left(usize::from(number) % Watched::ALL.len());
        let mut cpu_us = BTreeMap::new();
        for (place, watched) in order.into_iter().enumerate() {
            context.begin_step(&format!("router {number}, {}", watched.label()))?;
            let us = run.saturate(&subject, watched, size.saturating, 2 * place)?;
            cpu_us.insert(watched.label(), us);
            run.pace(&subject, watched, size.paced, 2 * place + 1)?;
        }
        for watched in [Watched::Observed, Watched::Traced] {
            let [plain, other] = [Watched::Not, watched].map(|of| cpu_us[of.label()]);
            if let (Some(plain), Some(other)) = (plain, other) {
                run.table.add("ratio", watched.label(), RATIO, "ratio", plain / other);
            }
        }
    }
    Ok(run.outcome())
}

struct Run<'a> {
    context: &'a Context,
    /// The processors for the router and for the load.
    cpus: Option<(usize, usize)>,
    router: PathBuf,
    table: SampleTable,
    scrapes: u64,
    lost: u64,
}

impl Run<'_> {
    fn start(&self) -> anyhow::Result<Subject> {
        let observer = free_tcp_address()?;
        let options = ["--observe".to_owned(), observer.to_string()];
        let router = RouterProcess::start_with(&self.router, 1, self.cpus.map(|cpus| cpus.0), &options)?;
        Ok(Subject { router, observer })
    }

    /// Loads a router as far as it goes; returns the worker's microseconds for each packet.
    fn saturate(
        &mut self,
        subject: &Subject,
        watched: Watched,
        count: u32,
        stream: usize,
    ) -> anyhow::Result<Option<f64>> {
        let warmup = count / 10;
        let options = [format!("--count={count}"), format!("--warmup={warmup}"), format!("--stream={stream}")];
        let loaded = self.load(subject, watched, &options)?;
        let packets = 2.0 * f64::from(count + warmup);
        let us_of = |nanos| resolve_cpu_account(nanos).map(|nanos| nanos as f64 / 1e3 / packets);
        let worker_us = us_of(loaded.worker_ns);
        let per_s = self.context.clock.resolve(loaded.report.elapsed_ns);
        let per_s = per_s.map(|nanos| loaded.report.satisfied as f64 * 1e9 / nanos as f64);
        let (label, table) = (watched.label(), &mut self.table);
        let us = worker_us.as_ref().ok().copied();
        table.samples("unix-100", label, "cpu of the worker", "µs per packet").add_resolved(worker_us);
        table.samples("unix-100", label, "exchanges", "per s").add_resolved(per_s);
        Ok(us)
    }

    /// Loads a router at a constant rate, for the latency.
    fn pace(&mut self, subject: &Subject, watched: Watched, count: u32, stream: usize) -> anyhow::Result<()> {
        let options = [
            format!("--count={count}"),
            "--warmup=200".to_owned(),
            "--window=4096".to_owned(),
            format!("--rate={PACE_PER_S}"),
            format!("--stream={stream}"),
        ];
        let report = self.load(subject, watched, &options)?.report;
        for (metric, latency_ns) in [("latency p50", report.latency_ns_p50), ("latency p99", report.latency_ns_p99)] {
            let us = self.context.clock.resolve(u64::from(latency_ns)).map(|nanos| nanos as f64 / 1e3);
            self.table.samples("paced-unix", watched.label(), metric, "µs").add_resolved(us);
        }
        Ok(())
    }

    fn load(&mut self, subject: &Subject, watched: Watched, options: &[String]) -> anyhow::Result<Loaded> {
        let Subject { router, observer } = subject;
        let clients = (watched != Watched::Not).then(|| Clients::start(*observer, self.cpus.map(|cpus| cpus.1)));
        let _trace = (watched == Watched::Traced).then(|| Trace::start(&self.router, router)).transpose()?;
        let account = || worker_time_ns(router.id()).context("the router's threads cannot be read");
        let before_ns = account()?;
        let lab = Command::new(&self.context.program);
        let report = router.load(lab, self.cpus.map(|cpus| cpus.1), Transport::Unix, options)?;
        let after_ns = account()?;
        ensure!(report.wrong == 0, "{} packets were wrong, so no time of this run is valid", report.wrong);
        self.lost += report.unsatisfied;
        if let Some(clients) = clients {
            self.scrapes += clients.stop()?;
        }
        Ok(Loaded { report, worker_ns: after_ns.saturating_sub(before_ns) })
    }

    fn outcome(mut self) -> Outcome {
        let ratios = [(Watched::Observed, "observed"), (Watched::Traced, "traced")]
            .map(|(watched, key)| (watched, key, self.table.samples("ratio", watched.label(), RATIO, "ratio").clone()));
        let mut outcome = Outcome {
            rows: self.table.rows(),
            headline: BTreeMap::from([
                ("lost".to_owned(), self.lost as f64),
                ("scrapes".to_owned(), self.scrapes as f64),
            ]),
            notes: vec!["A packet is an Interest or a Data: an exchange is two.".to_owned()],
            ..Outcome::default()
        };
        for (watched, key, samples) in ratios {
            outcome.add_ratio(&format!("{key}_over_unobserved"), &samples);
            outcome.notes.extend(samples.against_one(watched.label()));
        }
        outcome
    }
}

struct Subject {
    router: RouterProcess,
    observer: SocketAddr,
}

struct Loaded {
    report: LoadReport,
    /// CPU time of the worker.
    worker_ns: u64,
}

/// CPU time of the threads of workers.
fn worker_time_ns(pid: u32) -> Option<u64> {
    let mut workers_ns = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        let path = task.ok()?.path();
        let Ok(text) = std::fs::read_to_string(path.join("schedstat")) else { continue };
        let nanos: u64 = text.split_whitespace().next()?.parse().ok()?;
        let name = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
        workers_ns += if name.starts_with("nw-worker") { nanos } else { 0 };
    }
    (workers_ns > 0).then_some(workers_ns)
}

fn free_tcp_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// Those who look at the router while it works.
struct Clients {
    is_over: Arc<AtomicBool>,
    scrapes: Arc<AtomicU64>,
    threads: Vec<JoinHandle<std::io::Result<()>>>,
}

impl Clients {
    fn start(observer: SocketAddr, cpu: Option<usize>) -> Self {
        let (is_over, scrapes) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (over, count) = (Arc::clone(&is_over), Arc::clone(&scrapes));
        let scraper = std::thread::spawn(move || {
            let _ = cpu.map(process::stay_on);
            while !over.load(Ordering::Relaxed) {
                let mut text = String::new();
                connect(observer, "/metrics")?.read_to_string(&mut text)?;
                if !text.contains("namewire_pit_entries") {
                    return Err(std::io::Error::other(format!("no metrics: {text}")));
                }
                count.fetch_add(1, Ordering::Relaxed);
                std::thread::park_timeout(SCRAPE_EVERY);
            }
            Ok(())
        });
        let over = Arc::clone(&is_over);
        let reader = std::thread::spawn(move || {
            let _ = cpu.map(process::stay_on);
            let mut stream = connect(observer, "/events")?;
            stream.set_read_timeout(Some(SCRAPE_EVERY))?;
            let mut chunk = [0; 65_536];
            while !over.load(Ordering::Relaxed) {
                match stream.read(&mut chunk) {
                    Ok(0) => return Err(std::io::Error::other("the stream ended")),
                    Ok(_) => {}
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        });
        Clients { is_over, scrapes, threads: vec![scraper, reader] }
    }

    /// Ends them; returns how often the metrics came.
    fn stop(self) -> anyhow::Result<u64> {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.thread().unpark();
            thread.join().map_err(|_| anyhow::anyhow!("a client failed"))?.context("a client of the observer")?;
        }
        Ok(self.scrapes.load(Ordering::Relaxed))
    }
}

fn connect(observer: SocketAddr, path: &str) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(observer)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    Ok(stream)
}

/// `namewire trace`, ended with the measurement.
struct Trace(Child);

impl Trace {
    /// Begins, and waits until the router has been told.
    fn start(program: &PathBuf, router: &RouterProcess) -> anyhow::Result<Self> {
        let transport = format!("unix://{}", router.socket().display());
        let mut command = Command::new(program);
        command.args(["--transport", &transport, "trace", TRACED_PREFIX]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut trace = Trace(child);
        let mut said = String::new();
        let stderr = trace.0.stderr.take().context("it has a standard error")?;
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stderr), &mut said)?;
        ensure!(said.contains("tracing"), "the trace did not begin: {said}");
        Ok(trace)
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_told_apart_by_name() {
        let (sender, wait) = std::sync::mpsc::channel::<()>();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let work = move || {
            let sum: u64 = (0..5_000_000_u64).map(std::hint::black_box).sum();
            ready.send(sum).expect("the test waits");
            let _ = wait.recv();
        };
        let thread = std::thread::Builder::new().name("nw-worker-test".to_owned()).spawn(work).expect("a thread");
        is_ready.recv().expect("it has worked");
        let workers_ns = worker_time_ns(std::process::id()).expect("a worker is there");
        assert!(workers_ns > 0);
        drop(sender);
        thread.join().expect("no panic");
    }
}
