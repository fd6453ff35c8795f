//! How many packets of a link cross a ring between workers, with lanes and without?
//!
//! Ours, after Takemasa17 §3, which assumes that packets arrive at the thread of their name (decision 0019). Three
//! routers in a line, joined by UDP faces over loopback; consumer and producer are applications of the outer ones:
//!
//! ```text
//!   consumer ── near ══ link ══ middle ══ link ══ far ── producer
//! ```
//!
//! The middle router is measured, because all its packets come and go by links: crossings of its rings, as its
//! workers count them, over packets that it received; its processor time; and exchanges per second of the whole line.
//! The workload is that of `router-sockets`: distinct names, 64 Interests in flight, every Data compared. Each
//! repetition of each case has fresh routers. Repetitions are interleaved.
//!
//! With one worker at each end, lanes are declared and not used: that case shows what the setting alone costs.
//!
//! Limits: the middle router is on one processor, all others and the load share the other one, which so sets the rate.
//! Loopback UDP does half of its work in the sender's system call.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use namewire_packet::FaceId;
use namewire_packet::nfd::{ControlParameters, FacePersistency, WorkerLoad, decode_dataset, face_flags};
use serde::Deserialize;

use crate::clock::resolve_cpu_account;
use crate::experiment::{Context, Outcome};
use crate::load::LoadReport;
use crate::process;
use crate::router_control::RouterControl;
use crate::router_process::{RouterProcess, find_program};
use crate::sample_table::SampleTable;

pub(super) const FILE: &str = include_str!("experiment.toml");

/// Interests in flight.
const WINDOW: u32 = 64;
const CONTENT_BYTES: u32 = 100;

/// Workers of each router.
const WORKERS: [usize; 2] = [1, 2];

/// How long neighbours may take to agree on lanes.
const AGREEMENT_LIMIT: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    repetitions: u16,
    exchanges: u32,
}

/// Three routers in a line.
struct Line {
    routers: [RouterProcess; 3],
    /// The faces of the middle one.
    middle: [FaceId; 2],
}

/// What the middle router has counted.
#[derive(Clone, Copy)]
struct Counted {
    received: u64,
    crossed: u64,
}

struct Run<'a> {
    context: &'a Context,
    size: Size,
    program: std::path::PathBuf,
    /// The processors of the middle router, and of all others.
    cpus: Option<(usize, usize)>,
    table: SampleTable,
    lost: u64,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let mut run = Run {
        context,
        size: context.size(FILE)?,
        program: find_program(&context.program)?,
        cpus: process::processors_to_pin(),
        table: SampleTable::default(),
        lost: 0,
    };
    context.plan_steps(usize::from(run.size.repetitions) * WORKERS.len() * 2);
    for repetition in 0..run.size.repetitions {
        for workers in WORKERS {
            for has_lanes in [false, true] {
                context.begin_step(&format!("{} {}", case(workers), subject(has_lanes)))?;
                run.measure(workers, has_lanes, repetition)?;
            }
        }
    }
    Ok(run.outcome())
}

impl Run<'_> {
    fn measure(&mut self, workers: usize, has_lanes: bool, repetition: u16) -> anyhow::Result<()> {
        let line = self.start_line(workers, has_lanes)?;
        let before = line.counted()?;
        let report = self.load(&line, repetition)?;
        let after = line.counted()?;
        ensure!(report.wrong == 0, "{} packets were wrong, so no time of this run is valid", report.wrong);
        self.lost += report.unsatisfied;
        let (case, subject, table) = (case(workers), subject(has_lanes), &mut self.table);
        let crossings = (after.crossed - before.crossed) as f64 / (after.received - before.received).max(1) as f64;
        table.add(&case, subject, "crossings", "per packet", crossings);
        let elapsed_ns = self.context.clock.resolve(report.elapsed_ns);
        let per_s = elapsed_ns.map(|ns| report.satisfied as f64 * 1e9 / ns as f64);
        table.samples(&case, subject, "exchanges", "per s").add_resolved(per_s);
        let packets = (report.satisfied * 2).max(1) as f64;
        let samples = table.samples(&case, subject, "cpu", "µs per packet");
        match report.watched_cpu_ns {
            Some(cpu_ns) => samples.add_resolved(resolve_cpu_account(cpu_ns).map(|ns| ns as f64 / 1e3 / packets)),
            None => samples.refuse("the kernel gives no CPU time of other processes".to_owned()),
        }
        Ok(())
    }

    fn load(&self, line: &Line, repetition: u16) -> anyhow::Result<LoadReport> {
        let [near, middle, far] = &line.routers;
        let mut options = vec!["--producer-socket".to_owned(), far.socket().display().to_string()];
        for (name, value) in [
            ("watch", middle.id()),
            ("content", CONTENT_BYTES),
            ("count", self.size.exchanges),
            ("warmup", self.size.exchanges / 10),
            ("window", WINDOW),
            ("stream", repetition.into()),
        ] {
            options.extend([format!("--{name}"), value.to_string()]);
        }
        options.extend(["--seed".to_owned(), (self.context.seed ^ u64::from(repetition)).to_string()]);
        let lab = Command::new(&self.context.program);
        near.load_line(lab, self.cpus.map(|cpus| cpus.1), &options)
    }

    fn start_line(&self, workers: usize, has_lanes: bool) -> anyhow::Result<Line> {
        let on = |is_middle: bool| self.cpus.map(|(middle, others)| if is_middle { middle } else { others });
        let start = |is_middle| RouterProcess::start(&self.program, workers, on(is_middle));
        let routers = [start(false)?, start(true)?, start(false)?];
        let mut faces = Vec::new();
        for (from, to) in [(0, 1), (1, 0), (1, 2), (2, 1)] {
            let mut control = routers[from].control()?;
            faces.push((from, create_link(&mut control, &format!("udp4://{}", routers[to].udp()), has_lanes)?));
        }
        let line = Line { middle: [faces[1].1, faces[2].1], routers };
        for (router, face) in [(0, faces[0].1), (1, faces[2].1)] {
            line.routers[router].control()?.register("/bench".parse()?, Some(face))?;
        }
        if has_lanes && workers > 1 {
            for (router, face) in faces {
                wait_for_lanes(&mut line.routers[router].control()?, face)?;
            }
        }
        Ok(line)
    }

    fn outcome(mut self) -> Outcome {
        let mut outcome = Outcome { rows: self.table.rows(), ..Outcome::default() };
        let (one, two) = (case(1), case(2));
        let mut of =
            |case: &str, has_lanes, metric, unit| self.table.samples(case, subject(has_lanes), metric, unit).clone();
        for (key, samples) in [
            ("crossings_per_packet_lanes", of(&two, true, "crossings", "per packet")),
            ("crossings_per_packet_plain", of(&two, false, "crossings", "per packet")),
        ] {
            if let Some(median) = samples.median() {
                outcome.headline.insert(key.to_owned(), median);
            }
        }
        for (key, case, metric, unit) in [
            ("one_worker_cpu_lanes_over_plain", &one, "cpu", "µs per packet"),
            ("one_worker_exchanges_lanes_over_plain", &one, "exchanges", "per s"),
            ("two_workers_cpu_lanes_over_plain", &two, "cpu", "µs per packet"),
            ("two_workers_exchanges_lanes_over_plain", &two, "exchanges", "per s"),
        ] {
            let (lanes, plain) = (of(case, true, metric, unit), of(case, false, metric, unit));
            outcome.add_ratio(key, &super::io::by_repetition(&lanes, &plain, |lanes, plain| lanes / plain));
        }
        outcome.headline.insert("lost".to_owned(), self.lost as f64);
        outcome.notes.push(
            "A packet is an Interest or a Data that the middle router received by a link. Ratios are those of each \
             repetition, in which both were measured within a minute."
                .to_owned(),
        );
        outcome
    }
}

impl Line {
    fn counted(&self) -> anyhow::Result<Counted> {
        let mut control = self.routers[1].control()?;
        let loads: Vec<WorkerLoad> = decode_dataset(&control.dataset("status/workers")?)?;
        let faces = control.faces()?;
        let links = faces.iter().filter(|face| self.middle.contains(&face.face_id));
        let received = links.map(|face| face.counters.packets.received()).sum();
        Ok(Counted { received, crossed: loads.iter().map(|load| load.crossed).sum() })
    }
}

fn case(workers: usize) -> String {
    format!("{workers} worker{}", if workers == 1 { "" } else { "s" })
}

fn subject(has_lanes: bool) -> &'static str {
    if has_lanes { "lanes" } else { "plain" }
}

fn create_link(control: &mut RouterControl, uri: &str, has_lanes: bool) -> anyhow::Result<FaceId> {
    let parameters = ControlParameters {
        uri: Some(uri.to_owned()),
        face_persistency: Some(FacePersistency::Permanent.code()),
        flags: Some(if has_lanes { face_flags::LANES } else { 0 }),
        mask: Some(face_flags::LANES),
        ..ControlParameters::default()
    };
    let response = control.command("faces", "create", &parameters)?;
    ensure!(response.code == 200, "faces/create {uri}: {} {}", response.code, response.text);
    response.body.and_then(|body| body.face_id).context("faces/create answers without a face")
}

fn wait_for_lanes(control: &mut RouterControl, id: FaceId) -> anyhow::Result<()> {
    let deadline = Instant::now() + AGREEMENT_LIMIT;
    loop {
        let faces = control.faces()?;
        let words = faces.iter().find(|face| face.face_id == id).and_then(|face| face.port.clone());
        if words.as_ref().is_some_and(|words| words.ends_with(", in use")) {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "the routers did not agree on lanes: {words:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
