//! The dataset `status/drops`: drops and refusals, by place and reason.

use crate::{RouterDrop, WorkerStatus};
use namewire_engine::{DropReason, FacesCut, LimitMet};
use namewire_faces::{LinkCounters, LinkDrop};
use namewire_packet::nfd::DropCounter;
use namewire_tagnet::forwarder::TagDrop;

/// The dataset while it is built. Counters at zero are left out.
#[derive(Default)]
pub struct DropReport(Vec<DropCounter>);

impl DropReport {
    /// Drops by engines, and the limits that engines and their workers reached.
    pub fn add_engine(&mut self, status: &WorkerStatus) {
        self.add_all("engine", DropReason::named(&status.counters.drops));
        // Interests of a face that had its share of the PIT; the eight faces with most are named.
        self.add_cuts("cut", &status.counters.faces_cut);
        self.add_all("limit", LimitMet::named(&status.counters.limits));
        self.add_named(status.named());
    }

    /// Drops by links, other counts of links and of the core role, and losses between threads.
    pub fn add_links(&mut self, status: &WorkerStatus, links: &LinkCounters) {
        self.add_all("link", LinkDrop::named(&links.drops));
        self.add_named(status.counters.named());
        self.add_named(links.named());
        self.add_all("router", RouterDrop::named(&status.drops));
        self.add_named(status.tags.named());
        self.add_all("tag", TagDrop::named(&status.tags.drops));
    }

    /// The faces from which most packets were refused.
    pub fn add_cuts(&mut self, place: &str, cuts: &FacesCut) {
        for cut in cuts.iter() {
            self.add(&format!("{place}.face-{}", cut.face.0), cut.interests);
        }
    }

    /// All counters of one place.
    pub fn add_all<'a>(&mut self, place: &str, counts: impl IntoIterator<Item = (&'a str, u64)>) {
        for (name, count) in counts {
            self.add(&format!("{place}.{name}"), count);
        }
    }

    fn add_named(&mut self, counts: Vec<(&'static str, u64)>) {
        for (name, count) in counts {
            self.add(name, count);
        }
    }

    /// One counter, by its whole name.
    pub fn add(&mut self, name: &str, count: u64) {
        if count > 0 {
            self.0.push(DropCounter { reason: name.to_owned(), count });
        }
    }

    /// As datasets have them.
    pub fn into_counters(self) -> Vec<DropCounter> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::counters::Count;
    use std::collections::BTreeSet;

    /// A new counter of a declaration must be shown here, or be listed here as shown elsewhere.
    #[test]
    fn every_counter_is_shown() {
        let (mut status, mut links) = (WorkerStatus::default(), LinkCounters::default());
        let mut number = 0;
        let mut count_up = |count: &mut u64| {
            number += 1;
            *count = number;
        };
        status.visit(&mut count_up);
        links.visit(&mut count_up);
        let mut report = DropReport::default();
        report.add_engine(&status);
        report.add_links(&status, &links);
        let counters = report.into_counters();
        let names: BTreeSet<&str> = counters.iter().map(|counter| counter.reason.as_str()).collect();
        assert!(names.len() >= counters.len() - 7, "two counters have one name, beside the eight faces that were cut");
        let engine = &status.counters;
        let in_general_status = [
            [engine.in_interests, engine.in_data, engine.in_nacks],
            [engine.out_interests, engine.out_data, engine.out_nacks],
            [engine.satisfied, engine.unsatisfied, status.name_groups],
            [status.pit_entries, status.measurement_entries, status.cs_entries],
        ];
        let in_cs_datasets =
            [engine.cs_hits, engine.cs_misses, engine.cs_insertions, engine.cs_not_admitted, status.cs_bytes];
        let in_face_status = [
            [links.in_interests, links.in_data, links.in_nacks, links.in_bytes],
            [links.out_interests, links.out_data, links.out_nacks, links.out_bytes],
        ];
        let polling = &status.polling;
        let in_worker_loads = [
            [status.busy_ns, polling.polled_ns, polling.polls],
            [polling.polls_found, polling.sleeps, polling.window_ns],
            [status.crossed; 3],
        ];
        let for_tests_only = [engine.aggregated, engine.retransmitted, engine.cs_not_asked, engine.redispatched];
        let shown = counters.iter().map(|counter| counter.count);
        let elsewhere =
            in_general_status.as_flattened().iter().chain(&in_cs_datasets).chain(in_face_status.as_flattened());
        let elsewhere = elsewhere.chain(in_worker_loads.as_flattened());
        let known: BTreeSet<u64> = shown.chain(elsewhere.chain(&for_tests_only).copied()).collect();
        assert_eq!(known, (1..=number).collect());
    }
}
