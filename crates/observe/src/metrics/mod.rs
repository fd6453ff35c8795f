//! Metrics: a snapshot as text for Prometheus and for other readers of OpenMetrics.
//!
//! Contract: [`families`] lists every metric once, with its type, unit, labels and meaning. The text and
//! docs/reference/metrics.md are both made from that list. A family without a sample is left out, as is a value that is
//! not a number.
//!
//! Cardinality is bounded: [`FACES_MAX`] faces (those with the smallest numbers, so that series do not come and go
//! with the load), [`ROWS_MAX`] rows of any other kind. Reasons that never dropped anything are left out.
//!
//! Format: OpenMetrics 1.0, or the text format 0.0.4 of Prometheus. We have our own encoder because the maintained
//! crate (`prometheus-client`) writes OpenMetrics alone. Cost: one pass over the snapshot per family.

mod encoder;
mod faces;
mod node;
mod tables;
mod workers;

#[cfg(test)]
mod tests;

use crate::snapshot::{Answers, Face, Snapshot};
use namewire_packet::nfd::{PacketCount, PacketCounts};
use std::{borrow::Cow, sync::LazyLock};

pub use encoder::{Format, encode};

/// How many faces have metrics.
pub const FACES_MAX: usize = 1000;
/// How many workers, drop reasons, pools or prefixes have metrics.
pub const ROWS_MAX: usize = 1000;

/// One family of samples.
pub struct Metric {
    /// The name of the family: without `_total` and `_info`, which the samples have.
    pub name: Cow<'static, str>,
    /// What its values mean.
    pub kind: Kind,
    /// The unit, which then also ends the name. Empty: a count without unit.
    pub unit: &'static str,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// One sentence for people.
    pub help: &'static str,
    collect: Collect,
}

/// Where the samples of a family come from.
#[derive(Clone, Copy)]
enum Collect {
    By(fn(&View, &mut Samples)),
    /// A count of packets of each face.
    OfFaces(&'static PacketCount),
    /// A count of packets of each worker.
    OfWorkers(&'static PacketCount),
}

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Always 1; the labels are the information.
    Info,
    /// Counts of values up to some bounds, and their sum.
    Histogram,
}

/// The part of a snapshot that has metrics.
struct View<'a> {
    snapshot: &'a Snapshot,
    /// By number, at most [`FACES_MAX`].
    faces: Vec<&'a Face>,
}

/// The samples of one family.
#[derive(Default)]
struct Samples {
    rows: Vec<Sample>,
}

struct Sample {
    /// One per label of the family.
    label_values: Vec<String>,
    /// For a part of a histogram.
    part: Option<Part>,
    value: Value,
}

/// A sample of a histogram.
#[derive(Clone, Copy)]
enum Part {
    /// Values up to this bound.
    Bucket(f64),
    Count,
    Sum,
}

#[derive(Clone, Copy)]
enum Value {
    Integer(u64),
    Real(f64),
}

/// All metrics, in the order of the text.
pub fn families() -> impl Iterator<Item = &'static Metric> {
    static OF_WORKERS: LazyLock<Vec<Metric>> = LazyLock::new(|| {
        let of = |count| Metric::packets("namewire_worker_", count, Collect::OfWorkers(count)).labels(workers::WORKER);
        PacketCounts::ALL.iter().map(of).collect()
    });
    static OF_FACES: LazyLock<Vec<Metric>> = LazyLock::new(|| {
        let of = |count| Metric::packets("namewire_face_", count, Collect::OfFaces(count)).labels(faces::FACE);
        PacketCounts::ALL.iter().map(of).collect()
    });
    [node::METRICS, workers::METRICS, &OF_WORKERS, faces::METRICS, &OF_FACES, tables::METRICS].into_iter().flatten()
}

impl Metric {
    const fn gauge(name: &'static str, help: &'static str, collect: fn(&View, &mut Samples)) -> Self {
        let (name, collect) = (Cow::Borrowed(name), Collect::By(collect));
        Self { name, kind: Kind::Gauge, unit: "", labels: &[], help, collect }
    }

    /// The counter of one count of packets.
    fn packets(prefix: &str, count: &'static PacketCount, collect: Collect) -> Self {
        let name = Cow::Owned(format!("{prefix}{}", count.name));
        Self { name, kind: Kind::Counter, unit: "", labels: &[], help: count.help, collect }
    }

    fn collect(&self, view: &View<'_>, samples: &mut Samples) {
        match self.collect {
            Collect::By(collect) => collect(view, samples),
            Collect::OfFaces(count) => faces::each(view, samples, |face| Some((count.of)(&face.counters.packets))),
            Collect::OfWorkers(count) => workers::each(view, samples, |worker| Some((count.of)(&worker.packets))),
        }
    }

    const fn counter(name: &'static str, help: &'static str, collect: fn(&View, &mut Samples)) -> Self {
        Self::gauge(name, help, collect).kind(Kind::Counter)
    }

    const fn info(
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
        collect: fn(&View, &mut Samples),
    ) -> Self {
        Self::gauge(name, help, collect).kind(Kind::Info).labels(labels)
    }

    const fn histogram(name: &'static str, help: &'static str, collect: fn(&View, &mut Samples)) -> Self {
        Self::gauge(name, help, collect).kind(Kind::Histogram)
    }

    const fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    const fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    const fn labels(mut self, labels: &'static [&'static str]) -> Self {
        self.labels = labels;
        self
    }

    /// The name that its samples have.
    pub fn sample_name(&self) -> String {
        match self.kind {
            Kind::Counter => format!("{}_total", self.name),
            Kind::Gauge | Kind::Histogram => self.name.clone().into_owned(),
            Kind::Info => format!("{}_info", self.name),
        }
    }
}

impl<'a> View<'a> {
    fn of(snapshot: &'a Snapshot) -> Self {
        let mut faces: Vec<&Face> = snapshot.faces.iter().collect();
        faces.sort_by_key(|face| face.id);
        faces.truncate(FACES_MAX);
        Self { snapshot, faces }
    }
}

impl Samples {
    /// The one sample of a family without labels.
    fn only(&mut self, value: impl Into<Value>) {
        self.add([], value);
    }

    fn add<const N: usize>(&mut self, label_values: [&str; N], value: impl Into<Value>) {
        let label_values = label_values.into_iter().map(str::to_owned).collect();
        self.rows.push(Sample { label_values, part: None, value: value.into() });
    }

    /// A histogram: the counts of values up to each bound and above the one before.
    fn add_histogram<const N: usize>(&mut self, label_values: [&str; N], answers: &Answers) {
        let label_values: Vec<String> = label_values.into_iter().map(str::to_owned).collect();
        let mut add = |part, value| {
            self.rows.push(Sample { label_values: label_values.clone(), part: Some(part), value });
        };
        let mut count = 0;
        for (bound, in_bucket) in answers.buckets.iter().copied().chain([(f64::INFINITY, answers.slower)]) {
            count += in_bucket;
            add(Part::Bucket(bound), count.into());
        }
        add(Part::Count, count.into());
        add(Part::Sum, answers.sum_s.into());
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Integer(value)
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Self::Integer(value as u64)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}
