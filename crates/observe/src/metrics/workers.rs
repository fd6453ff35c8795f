//! Metrics of each worker thread.

use super::{Metric, ROWS_MAX, Samples, View, of_facts};
use crate::snapshot::Worker;
use namewire_packet::nfd::{PacketCounts, WorkerLoad};

const WORKER: &[&str] = &["worker"];

pub(super) const METRICS: &[Metric] = &[
    Metric::gauge("namewire_worker_busy_ratio", "The share of time in which the worker had work.", |view, samples| {
        gauges(view, samples, |worker| worker.busy_ratio)
    })
    .labels(WORKER),
    Metric::gauge(
        "namewire_worker_poll_ratio",
        "The share of time in which the worker looked for packets instead of sleeping.",
        |view, samples| gauges(view, samples, |worker| worker.poll_ratio),
    )
    .labels(WORKER),
    Metric::gauge(
        "namewire_worker_poll_window_seconds",
        "How long the worker would look for packets now before it sleeps.",
        |view, samples| gauges(view, samples, |worker| Some(worker.load.poll_window_ns as f64 / 1e9)),
    )
    .labels(WORKER),
];

fn gauges(view: &View, samples: &mut Samples, of: impl Fn(&Worker) -> Option<f64>) {
    for worker in view.snapshot.workers.iter().take(ROWS_MAX) {
        of(worker).into_iter().for_each(|value| samples.add(&[&worker.load.number.to_string()], value));
    }
}

pub(super) fn derived() -> Vec<Metric> {
    let loads = of_facts("namewire_worker_", WORKER, WorkerLoad::FACTS, |view, visit| each(view, visit));
    let packets = of_facts("namewire_worker_", WORKER, PacketCounts::FACTS, |view, visit| {
        each(view, &mut |labels, load| visit(labels, &load.packets));
    });
    loads.chain(packets).collect()
}

fn each(view: &View, visit: &mut dyn FnMut(&[&str], &WorkerLoad)) {
    for worker in view.snapshot.workers.iter().take(ROWS_MAX) {
        visit(&[&worker.load.number.to_string()], &worker.load);
    }
}
