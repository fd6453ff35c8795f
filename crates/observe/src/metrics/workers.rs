//! Metrics of each worker thread.

use super::{Metric, ROWS_MAX, View, of_facts};
use namewire_packet::nfd::{PacketCounts, WorkerLoad};

const WORKER: &[&str] = &["worker"];

pub(super) const METRICS: &[Metric] = &[Metric::gauge(
    "namewire_worker_busy_ratio",
    "The share of time in which the worker had work.",
    |view, samples| {
        for worker in view.snapshot.workers.iter().take(ROWS_MAX) {
            worker.busy_ratio.into_iter().for_each(|ratio| samples.add(&[&worker.load.number.to_string()], ratio));
        }
    },
)
.labels(WORKER)];

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
