//! Metrics of the node as a whole.

use super::{FACES_MAX, Metric, ROWS_MAX};

pub(super) const METRICS: &[Metric] = &[
    Metric::info("namewire_build", &["version"], "The version of the router.", |view, samples| {
        samples.add(&[&view.snapshot.version], 1u64);
    }),
    Metric::gauge("namewire_start_time_seconds", "When the router started, since 1970.", |view, samples| {
        samples.only(view.snapshot.start_unix_ms as f64 / 1000.0);
    }),
    Metric::gauge("namewire_start_warnings", "Warnings when the router started.", |view, samples| {
        samples.only(view.snapshot.notes.len());
    }),
    Metric::gauge("namewire_workers", "Worker threads.", |view, samples| {
        samples.only(view.snapshot.workers.len());
    }),
    Metric::gauge("namewire_faces", "Faces.", |view, samples| samples.only(view.snapshot.faces.len())),
    Metric::gauge("namewire_faces_not_shown", "Faces without metrics, because there are too many.", |view, samples| {
        samples.only(view.snapshot.faces.len().saturating_sub(FACES_MAX));
    }),
    Metric::gauge("namewire_routes", "Prefixes with a route.", |view, samples| {
        samples.only(view.snapshot.routes.len());
    }),
    Metric::gauge("namewire_next_hops", "Next hops of all routes.", |view, samples| {
        samples.only(view.snapshot.routes.iter().map(|route| route.next_hops.len()).sum::<usize>());
    }),
    Metric::gauge("namewire_strategy_choices", "Prefixes with a strategy of their own.", |view, samples| {
        samples.only(view.snapshot.strategies.len());
    }),
    Metric::counter("namewire_drops", "Packets dropped anywhere in the node.", |view, samples| {
        for drop in view.snapshot.drops.iter().filter(|drop| drop.count > 0).take(ROWS_MAX) {
            samples.add(&[&drop.reason], drop.count);
        }
    })
    .labels(&["reason"]),
    Metric::counter(
        "namewire_peer_requests",
        "Requests to the observers of other routers, and what came of them.",
        |view, samples| {
            for peer in &view.peers.counts {
                let failed = peer.failed.iter().map(|(reason, count)| (*reason, *count));
                for (outcome, count) in [("answered", peer.answered)].into_iter().chain(failed) {
                    samples.add(&[&peer.name, outcome], count);
                }
            }
        },
    )
    .labels(&["peer", "outcome"]),
    Metric::counter(
        "namewire_network_explanations_refused",
        "Explanations of several routers that too many clients asked for.",
        |view, samples| {
            if !view.peers.counts.is_empty() {
                samples.only(view.peers.refused);
            }
        },
    ),
    Metric::counter("namewire_events", "What happened in normal work, anywhere in the node.", |view, samples| {
        for event in view.snapshot.events.iter().filter(|event| event.count > 0).take(ROWS_MAX) {
            samples.add(&[&event.reason], event.count);
        }
    })
    .labels(&["event"]),
];
