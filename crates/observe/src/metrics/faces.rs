//! Metrics of each face.

use super::{Metric, ROWS_MAX, Samples, Value, View, of_facts};
use crate::snapshot::Face;
use namewire_packet::nfd::{FaceCounters, LinkCounts, PacketCounts};

const FACE: &[&str] = &["face", "remote", "local"];

pub(super) const METRICS: &[Metric] = &[
    Metric::info(
        "namewire_face",
        &["face", "remote", "local", "scope", "persistency", "link_type", "port"],
        "What kind of face it is. The port is empty if it is not known.",
        |view, samples| {
            for face in &view.faces {
                let id = face.about.id.to_string();
                let port = face.about.port.as_deref().unwrap_or_default();
                let kind = [&face.about.scope, &face.about.persistency, &face.about.link_type].map(String::as_str);
                samples.add(&[&id, &face.about.remote, &face.about.local, kind[0], kind[1], kind[2], port], 1u64);
            }
        },
    ),
    Metric::gauge("namewire_face_up", "1 if the face is up, 0 if it is down.", |view, samples| {
        each(view, samples, |face| Some(u64::from(face.about.state != "down")));
    })
    .labels(FACE),
    Metric::gauge(
        "namewire_face_degraded",
        "1 if the face is up, and in the last 10 s a strategy avoided it, or it left a tenth of at least ten Interests unanswered.",
        |view, samples| {
            each(view, samples, |face| Some(u64::from(face.about.state == "degraded")));
        },
    )
    .labels(FACE),
    Metric::gauge("namewire_face_mtu_bytes", "The largest packet of the link.", |view, samples| {
        each(view, samples, |face| Some(face.about.mtu).filter(|&mtu| mtu > 0));
    })
    .labels(FACE),
    Metric::histogram(
        "namewire_face_answer_seconds",
        "The time from an Interest sent there to its Data. Under load an estimate from a sample.",
        |view, samples| {
            for face in &view.faces {
                if let Some(answers) = &face.answers {
                    samples.add_histogram(&[&face.about.id.to_string(), &face.about.remote, &face.about.local], answers);
                }
            }
        },
    )
    .labels(FACE),
    Metric::counter(
        "namewire_face_unanswered_interests",
        "Interests sent there that expired without Data or Nack.",
        |view, samples| each(view, samples, |face| face.answers.as_ref().map(|answers| answers.unanswered)),
    )
    .labels(FACE),
    Metric::gauge("namewire_face_rtt_seconds", "The round-trip time last measured.", |view, samples| {
        each(view, samples, |face| face.about.rtt_ms.map(|rtt_ms| rtt_ms / 1000.0));
    })
    .labels(FACE),
    Metric::gauge(
        "namewire_face_loss_ratio",
        "The share of Interests sent there that expired without an answer.",
        |view, samples| {
            each(view, samples, |face| face.about.loss);
        },
    )
    .labels(FACE),
    Metric::gauge(
        "namewire_face_idle_seconds",
        "How long the face has neither received nor sent anything.",
        |view, samples| each(view, samples, |face| face.about.idle_ms.map(|idle_ms| idle_ms as f64 / 1000.0)),
    )
    .labels(FACE),
    Metric::counter("namewire_face_drops", "Packets that the face's link dropped.", |view, samples| {
        for face in &view.faces {
            let id = face.about.id.to_string();
            for drop in face.about.drops.iter().filter(|drop| drop.count > 0).take(ROWS_MAX) {
                samples.add(&[&id, &drop.reason], drop.count);
            }
        }
    })
    .labels(&["face", "reason"]),
];

pub(super) fn derived() -> Vec<Metric> {
    let bytes = of_facts("namewire_face_", FACE, FaceCounters::FACTS, |view, visit| {
        each_face(view, &mut |labels, face| visit(labels, &face.counters));
    });
    let packets = of_facts("namewire_face_", FACE, PacketCounts::FACTS, |view, visit| {
        each_face(view, &mut |labels, face| visit(labels, &face.counters.packets));
    });
    let link = of_facts("namewire_face_", FACE, LinkCounts::FACTS, |view, visit| {
        each_face(view, &mut |labels, face| visit(labels, &face.link));
    });
    bytes.chain(packets).chain(link).collect()
}

fn each_face(view: &View, visit: &mut dyn FnMut(&[&str], &Face)) {
    for face in &view.faces {
        visit(&[&face.about.id.to_string(), &face.about.remote, &face.about.local], face);
    }
}

/// One sample per face that has a value.
fn each<V: Into<Value>>(view: &View, samples: &mut Samples, value: impl Fn(&Face) -> Option<V>) {
    each_face(view, &mut |labels, face| value(face).into_iter().for_each(|value| samples.add(labels, value)));
}
