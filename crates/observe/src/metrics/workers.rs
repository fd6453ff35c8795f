//! Metrics of each worker thread.

use super::{Metric, ROWS_MAX, Samples, Value, View};
use crate::snapshot::Worker;

pub(super) const WORKER: &[&str] = &["worker"];

pub(super) const METRICS: &[Metric] = &[
    Metric::gauge("namewire_worker_busy_ratio", "The share of time in which the worker had work.", |view, samples| {
        each(view, samples, |worker| worker.busy_ratio);
    })
    .unit("ratio")
    .labels(WORKER),
    Metric::gauge("namewire_worker_pit_entries", "Pending Interests.", |view, samples| {
        each(view, samples, |worker| Some(worker.pit_entries));
    })
    .unit("entries")
    .labels(WORKER),
    Metric::gauge("namewire_worker_cs_entries", "Data packets in the Content Store.", |view, samples| {
        each(view, samples, |worker| Some(worker.cs_entries));
    })
    .unit("entries")
    .labels(WORKER),
    Metric::gauge("namewire_worker_cs_bytes", "Bytes of Data in the Content Store.", |view, samples| {
        each(view, samples, |worker| Some(worker.cs_bytes));
    })
    .unit("bytes")
    .labels(WORKER),
    Metric::counter(
        "namewire_worker_satisfied_interests",
        "Pending Interests that Data satisfied.",
        |view, samples| {
            each(view, samples, |worker| Some(worker.satisfied));
        },
    )
    .labels(WORKER),
    Metric::counter(
        "namewire_worker_unsatisfied_interests",
        "Pending Interests that ended without Data.",
        |view, samples| each(view, samples, |worker| Some(worker.unsatisfied)),
    )
    .labels(WORKER),
    Metric::counter("namewire_worker_cs_hits", "Interests that the Content Store answered.", |view, samples| {
        each(view, samples, |worker| Some(worker.cs_hits));
    })
    .labels(WORKER),
    Metric::counter("namewire_worker_cs_misses", "Interests that it could not answer.", |view, samples| {
        each(view, samples, |worker| Some(worker.cs_misses));
    })
    .labels(WORKER),
];

/// One sample per worker that has a value.
pub(super) fn each<V: Into<Value>>(view: &View, samples: &mut Samples, value: impl Fn(&Worker) -> Option<V>) {
    for worker in view.snapshot.workers.iter().take(ROWS_MAX) {
        if let Some(value) = value(worker) {
            samples.add([&worker.number.to_string()], value);
        }
    }
}
