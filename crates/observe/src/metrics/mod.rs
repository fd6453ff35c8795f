//! Metrics: a snapshot as text for Prometheus and for other readers of OpenMetrics.
//!
//! Contract: [`families`] lists every metric once, with its type, unit, labels and meaning. The text and
//! docs/reference/metrics.md are both made from that list. The declaration of a dataset makes its numbers metrics
//! ([`Fact`]); only computed values have a family here. A family without a sample is left out, as is a value that is
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

use crate::{
    peers::PeerCounts,
    snapshot::{Answers, Face, Snapshot},
};
use namewire_packet::nfd::{Fact, FactKind};
use std::{borrow::Cow, sync::LazyLock};

pub(crate) use encoder::encode_with;
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
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// One sentence for people.
    pub help: &'static str,
    collect: Collect,
}

/// A function that makes the samples of a family.
type Collector = Box<dyn Fn(&View, &mut Samples) + Send + Sync>;

/// Passes each entry of a kind, with the values of its labels.
type Each<T> = fn(&View, &mut dyn FnMut(&[&str], &T));

/// Where the samples of a family come from.
enum Collect {
    By(fn(&View, &mut Samples)),
    Of(Collector),
}

/// Units that end a name.
const UNITS: [&str; 4] = ["bytes", "entries", "ratio", "seconds"];

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
    /// What reading other routers came to.
    peers: &'a ReadPeers,
}

/// What reading other routers came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadPeers {
    /// One for each peer.
    pub(crate) counts: Vec<PeerCounts>,
    /// Explanations that clients were refused.
    pub(crate) refused: u64,
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
    static DERIVED: LazyLock<[Vec<Metric>; 3]> =
        LazyLock::new(|| [workers::derived(), faces::derived(), tables::derived()]);
    let [workers, faces, tables] = &*DERIVED;
    [node::METRICS, workers::METRICS, workers, faces::METRICS, faces, tables::METRICS, tables].into_iter().flatten()
}

/// The metrics of a dataset's numbers. `each` passes each of its entries, with the values of the labels.
fn of_facts<T: 'static>(
    prefix: &str,
    labels: &'static [&'static str],
    facts: &'static [Fact<T>],
    each: Each<T>,
) -> impl Iterator<Item = Metric> {
    let metric = move |fact: &'static Fact<T>| Metric {
        name: Cow::Owned(format!("{prefix}{}", fact.name)),
        kind: match fact.kind {
            FactKind::Counter => Kind::Counter,
            FactKind::Gauge => Kind::Gauge,
        },
        labels,
        help: fact.help,
        collect: Collect::Of(Box::new(move |view, samples| {
            each(view, &mut |labels, entry| (fact.of)(entry).into_iter().for_each(|value| samples.add(labels, value)));
        })),
    };
    facts.iter().map(metric)
}

impl Metric {
    const fn gauge(name: &'static str, help: &'static str, collect: fn(&View, &mut Samples)) -> Self {
        let (name, collect) = (Cow::Borrowed(name), Collect::By(collect));
        Self { name, kind: Kind::Gauge, labels: &[], help, collect }
    }

    /// The unit, which ends the name. Empty: a count without unit.
    pub fn unit(&self) -> &'static str {
        let is_end = |unit: &&&str| self.name.strip_suffix(**unit).is_some_and(|rest| rest.ends_with('_'));
        UNITS.iter().find(is_end).copied().unwrap_or_default()
    }

    fn collect(&self, view: &View<'_>, samples: &mut Samples) {
        match &self.collect {
            Collect::By(collect) => collect(view, samples),
            Collect::Of(collect) => collect(view, samples),
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
    fn of(snapshot: &'a Snapshot, peers: &'a ReadPeers) -> Self {
        let mut faces: Vec<&Face> = snapshot.faces.iter().collect();
        faces.sort_by_key(|face| face.about.id);
        faces.truncate(FACES_MAX);
        Self { snapshot, faces, peers }
    }
}

impl Samples {
    /// The one sample of a family without labels.
    fn only(&mut self, value: impl Into<Value>) {
        self.add(&[], value);
    }

    fn add(&mut self, label_values: &[&str], value: impl Into<Value>) {
        let label_values = label_values.iter().map(|&value| value.to_owned()).collect();
        self.rows.push(Sample { label_values, part: None, value: value.into() });
    }

    /// A histogram: the counts of values up to each bound and above the one before.
    fn add_histogram(&mut self, label_values: &[&str], answers: &Answers) {
        let label_values: Vec<String> = label_values.iter().map(|&value| value.to_owned()).collect();
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
