//! Encoder: families as text, with escaping.
//!
//! Source: OpenMetrics 1.0 (openmetrics.io) and Prometheus' text format 0.0.4. They differ in the line with the type
//! of a counter (the family's name, or the name of its samples), in UNIT and EOF lines, and in the type `info`.
//!
//! Errors: none. A label set that occurs twice in a family is written once, because a reader refuses the whole text
//! otherwise.

use std::collections::HashSet;
use std::fmt::Write;

use super::{Kind, Metric, Part, ReadPeers, Sample, Samples, Value, View, families};
use crate::snapshot::Snapshot;

/// Which text the reader asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The older text format of Prometheus, 0.0.4.
    Prometheus,
}

impl Format {
    /// The format for an Accept header. OpenMetrics only for a reader that names it and does not refuse it.
    pub fn accepted(accept: &str) -> Self {
        let wanted = accept.split(',').any(|range| {
            let mut parts = range.split(';').map(str::trim);
            let named = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/openmetrics-text"));
            named && !parts.any(is_zero_quality)
        });
        if wanted { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// The value of Content-Type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

fn is_zero_quality(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else { return false };
    name.trim().eq_ignore_ascii_case("q") && value.trim().parse() == Ok(0.0)
}

/// The snapshot as text.
pub fn encode(snapshot: &Snapshot, format: Format) -> String {
    encode_with(snapshot, &ReadPeers::default(), format)
}

/// The same, and what reading other routers came to.
pub(crate) fn encode_with(snapshot: &Snapshot, peers: &ReadPeers, format: Format) -> String {
    let view = View::of(snapshot, peers);
    let mut text = String::new();
    for metric in families() {
        let mut samples = Samples::default();
        metric.collect(&view, &mut samples);
        samples.rows.retain(|sample| !matches!(sample.value, Value::Real(value) if !value.is_finite()));
        if !samples.rows.is_empty() {
            write_header(&mut text, metric, format);
            write_samples(&mut text, metric, &samples);
        }
    }
    if format == Format::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

fn write_header(text: &mut String, metric: &Metric, format: Format) {
    let (name, kind) = match (format, metric.kind) {
        (Format::OpenMetrics, kind) => (metric.name.clone().into_owned(), kind.open_metrics_name()),
        (Format::Prometheus, Kind::Info) => (metric.sample_name(), Kind::Gauge.open_metrics_name()),
        (Format::Prometheus, kind) => (metric.sample_name(), kind.open_metrics_name()),
    };
    let _ = writeln!(text, "# HELP {name} {}", metric.help);
    let _ = writeln!(text, "# TYPE {name} {kind}");
    if format == Format::OpenMetrics && !metric.unit().is_empty() {
        let _ = writeln!(text, "# UNIT {name} {}", metric.unit());
    }
}

fn write_samples(text: &mut String, metric: &Metric, samples: &Samples) {
    let name = metric.sample_name();
    let mut written = HashSet::with_capacity(samples.rows.len());
    for sample in &samples.rows {
        let series = series(&name, metric.labels, sample);
        let _ = match sample.value {
            _ if written.contains(&series) => continue,
            Value::Integer(value) => writeln!(text, "{series} {value}"),
            Value::Real(value) => writeln!(text, "{series} {value}"),
        };
        written.insert(series);
    }
}

/// Name and labels of a sample.
fn series(name: &str, names: &[&str], sample: &Sample) -> String {
    let labels = |names: &[&str]| labels(names, &sample.label_values);
    match sample.part {
        None => format!("{name}{}", labels(names)),
        Some(Part::Count) => format!("{name}_count{}", labels(names)),
        Some(Part::Sum) => format!("{name}_sum{}", labels(names)),
        Some(Part::Bucket(bound)) => {
            let bound = if bound.is_finite() { format!("{bound:?}") } else { "+Inf".to_owned() };
            let mut values = sample.label_values.clone();
            values.push(bound);
            format!("{name}_bucket{}", self::labels(&[names, &["le"]].concat(), &values))
        }
    }
}

fn labels(names: &[&str], values: &[String]) -> String {
    assert_eq!(names.len(), values.len(), "a value for each label");
    if names.is_empty() {
        return String::new();
    }
    let mut text = String::from("{");
    for (index, (name, value)) in names.iter().zip(values).enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(text, "{comma}{name}=\"{}\"", escaped(value.as_bytes()));
    }
    text.push('}');
    text
}

/// A label value: backslash, quote and line feed escaped, bytes that are not UTF-8 replaced by U+FFFD.
pub(super) fn escaped(value: &[u8]) -> String {
    let mut text = String::with_capacity(value.len());
    for character in String::from_utf8_lossy(value).chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
    text
}

impl Kind {
    fn open_metrics_name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Info => "info",
            Self::Histogram => "histogram",
        }
    }
}
