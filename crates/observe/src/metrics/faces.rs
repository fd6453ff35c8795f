//! Metrics of each face.

use super::{Metric, ROWS_MAX, Samples, Value, View};
use crate::snapshot::Face;

pub(super) const FACE: &[&str] = &["face", "remote", "local"];

pub(super) const METRICS: &[Metric] = &[
    Metric::info(
        "namewire_face",
        &["face", "remote", "local", "scope", "persistency", "link_type", "port"],
        "What kind of face it is. The port is empty if it is not known.",
        |view, samples| {
            for face in &view.faces {
                let id = face.id.to_string();
                let port = face.port.as_deref().unwrap_or_default();
                let kind = [&face.scope, &face.persistency, &face.link_type].map(String::as_str);
                samples.add([&id, &face.remote, &face.local, kind[0], kind[1], kind[2], port], 1u64);
            }
        },
    ),
    Metric::gauge("namewire_face_up", "1 if the face is up, 0 if it is down.", |view, samples| {
        each(view, samples, |face| Some(u64::from(face.state != "down")));
    })
    .labels(FACE),
    Metric::gauge(
        "namewire_face_degraded",
        "1 if the face is up, and in the last 10 s a strategy avoided it, or it left a tenth of at least ten Interests unanswered.",
        |view, samples| {
            each(view, samples, |face| Some(u64::from(face.state == "degraded")));
        },
    )
    .labels(FACE),
    Metric::gauge("namewire_face_mtu_bytes", "The largest packet of the link.", |view, samples| {
        each(view, samples, |face| Some(face.mtu).filter(|&mtu| mtu > 0));
    })
    .unit("bytes")
    .labels(FACE),
    Metric::histogram(
        "namewire_face_answer_seconds",
        "The time from an Interest sent there to its Data. Under load an estimate from a sample.",
        |view, samples| {
            for face in &view.faces {
                if let Some(answers) = &face.answers {
                    samples.add_histogram([&face.id.to_string(), &face.remote, &face.local], answers);
                }
            }
        },
    )
    .labels(FACE)
    .unit("seconds"),
    Metric::counter(
        "namewire_face_unanswered_interests",
        "Interests sent there that expired without Data or Nack.",
        |view, samples| each(view, samples, |face| face.answers.as_ref().map(|answers| answers.unanswered)),
    )
    .labels(FACE),
    Metric::gauge("namewire_face_rtt_seconds", "The round-trip time last measured.", |view, samples| {
        each(view, samples, |face| face.rtt_ms.map(|rtt_ms| rtt_ms / 1000.0));
    })
    .unit("seconds")
    .labels(FACE),
    Metric::gauge(
        "namewire_face_loss_ratio",
        "The share of Interests sent there that expired without an answer.",
        |view, samples| {
            each(view, samples, |face| face.loss);
        },
    )
    .unit("ratio")
    .labels(FACE),
    Metric::gauge(
        "namewire_face_idle_seconds",
        "How long the face has neither received nor sent anything.",
        |view, samples| each(view, samples, |face| face.idle_ms.map(|idle_ms| idle_ms as f64 / 1000.0)),
    )
    .unit("seconds")
    .labels(FACE),
    Metric::counter("namewire_face_in_bytes", "Bytes received.", |view, samples| {
        each(view, samples, |face| Some(face.counters.in_bytes));
    })
    .unit("bytes")
    .labels(FACE),
    Metric::counter("namewire_face_out_bytes", "Bytes sent.", |view, samples| {
        each(view, samples, |face| Some(face.counters.out_bytes));
    })
    .unit("bytes")
    .labels(FACE),
    Metric::counter("namewire_face_drops", "Packets that the face's link dropped.", |view, samples| {
        for face in &view.faces {
            let id = face.id.to_string();
            for drop in face.drops.iter().filter(|drop| drop.count > 0).take(ROWS_MAX) {
                samples.add([&id, &drop.reason], drop.count);
            }
        }
    })
    .labels(&["face", "reason"]),
];

/// One sample per face that has a value.
pub(super) fn each<V: Into<Value>>(view: &View, samples: &mut Samples, value: impl Fn(&Face) -> Option<V>) {
    for face in &view.faces {
        if let Some(value) = value(face) {
            samples.add([&face.id.to_string(), &face.remote, &face.local], value);
        }
    }
}
