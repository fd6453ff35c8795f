//! Turns repetitions into rows and headline.

use std::collections::BTreeMap;

use super::{Run, Subject};
use crate::experiment::Outcome;

impl Run<'_> {
    /// The results of the run.
    pub(super) fn outcome(self) -> Outcome {
        let mut notes = vec![
            "Latency counts from the instant an Interest was handed to the kernel, or (paced) was due.".to_owned(),
            "A packet is an Interest or a Data: an exchange is two.".to_owned(),
        ];
        notes.push(match self.cpus {
            Some((router, load)) => {
                format!("Router and relay on CPU {router} (all workers), load generator on CPU {load}.")
            }
            None => "Only one CPU: router and load generator share it, so rates mean little.".to_owned(),
        });
        let mut rows = self.table.rows();
        for row in &mut rows {
            row.remark = self.remarks.get(&(row.case.clone(), row.subject.clone())).cloned();
        }
        let median = |case: &str, subject: &str, metric: &str| {
            let row = rows.iter().find(|row| row.case == case && row.subject == subject && row.metric == metric)?;
            Some(row.value.as_ref()?.median)
        };
        let mut headline = BTreeMap::from([("lost".to_owned(), self.lost as f64)]);
        let workers = self.context.workers.first().map_or(1, |&workers| workers);
        let [first, sleeping] = [true, false].map(|busy_polls| Subject::Namewire { workers, busy_polls }.label());
        for row in rows.iter().filter(|row| row.subject == first && row.metric != "lost") {
            let Some(value) = &row.value else { continue };
            let unit = row.unit.replace('µ', "u");
            let key = format!("{} {} {unit}", row.case, row.metric).replace([' ', '-'], "_");
            headline.insert(key, value.median);
            let metric = match row.metric.as_str() {
                "cpu" => "cpu",
                "latency p50" => "p50",
                "exchanges" => "exchanges",
                _ => continue,
            };
            for (subject, over) in [("relay", "relay"), (&sleeping, "sleeping")] {
                if let Some(floor) = median(&row.case, subject, &row.metric).filter(|&floor| floor > 0.0) {
                    let key = format!("{}_{metric}_over_{over}", row.case);
                    headline.insert(key.replace('-', "_"), value.median / floor);
                }
            }
        }
        // The targets use small Data, where all cost is per packet.
        for (key, of) in [("unix_over_relay", "unix_100_cpu_over_relay"), ("udp_over_relay", "udp_100_cpu_over_relay")]
        {
            headline.get(of).copied().map(|ratio| headline.insert(key.to_owned(), ratio));
        }
        for (key, of) in [
            ("routes_per_s", "routes_registered_per_s"),
            ("bytes_per_route", "routes_resident_bytes_per_route"),
            ("idle_cpu_ms_per_s", "idle_cpu_while_idle_ms_per_s"),
        ] {
            headline.get(of).copied().map(|value| headline.insert(key.to_owned(), value));
        }
        let rate = |case: &str| median(case, &first, "exchanges");
        if let (Some(with), Some(without)) = (rate("unix-100-among-routes"), rate("unix-100")) {
            headline.insert("forwarding_with_routes_over_without".to_owned(), with / without);
        }
        Outcome { rows, headline, notes, ..Outcome::default() }
    }
}
