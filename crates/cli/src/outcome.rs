//! What became of a task of the router's process: the report that the router gives and that commands print.
//!
//! Limit: lists are cut to [`LIST_MAX`] lines of [`LINE_MAX`] characters, so that a report fits into a packet.

use serde::{Deserialize, Serialize};

const LIST_MAX: usize = 16;
const LINE_MAX: usize = 200;

/// How far a task is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    /// It has not ended.
    #[default]
    Running,
    /// It is done.
    Done,
    /// Nothing has changed; `why` says the reason.
    Failed,
}

/// See the module documentation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Outcome {
    /// The number of the task, over all programs that have taken over.
    pub(crate) number: u64,
    /// `reload` or `upgrade`.
    pub(crate) task: String,
    pub(crate) state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    /// Reload: the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    /// Reload: the settings that have changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) changed: Vec<String>,
    /// Reload: the settings that wait for the next start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) needs_restart: Vec<String>,
    /// Reload: what could not be made. Upgrade: what was dropped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) problems: Vec<String>,
    /// Upgrade: the program that forwards now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upgraded: Option<Upgraded>,
}

/// A successful upgrade.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Upgraded {
    /// The version before.
    pub(crate) from_version: String,
    pub(crate) version: String,
    /// The process that forwards.
    pub(crate) pid: u32,
    pub(crate) faces: u64,
    pub(crate) routes: u64,
    /// How long no program forwarded.
    pub(crate) stall_ms: f64,
}

impl Outcome {
    pub(crate) fn failed(self, why: impl Into<String>) -> Self {
        Outcome { state: State::Failed, why: Some(why.into()), ..self }
    }

    /// As JSON that fits into a packet.
    pub(crate) fn report(&self) -> String {
        let mut cut = self.clone();
        for list in [&mut cut.changed, &mut cut.needs_restart, &mut cut.problems] {
            let more = list.len().saturating_sub(LIST_MAX);
            list.truncate(LIST_MAX);
            list.iter_mut().for_each(|line| *line = line.chars().take(LINE_MAX).collect());
            if more > 0 {
                list.push(format!("and {more} more"));
            }
        }
        cut.why = cut.why.map(|why| why.chars().take(4 * LINE_MAX).collect());
        serde_json::to_string(&cut).unwrap_or_else(|_| "{}".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_fits_into_a_packet() {
        let many = vec!["x".repeat(1000); 1000];
        let outcome = Outcome { changed: many.clone(), ..Outcome::default() }.failed("y".repeat(10_000));
        let report = outcome.report();
        assert!(report.len() <= namewire_management_limit(), "{}", report.len());
        let read: Outcome = serde_json::from_str(&report).unwrap();
        assert_eq!((read.changed.len(), read.changed.last().unwrap().as_str()), (LIST_MAX + 1, "and 984 more"));
    }

    /// `namewire_management::MAX_REPORT_BYTES`.
    fn namewire_management_limit() -> usize {
        6_000
    }
}
