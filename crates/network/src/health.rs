//! Health: what is wrong with a router, the worst first?

use crate::{rates::DropRate, reading::Problem, summary::Summary};
use serde::Serialize;

/// A router that drops fewer packets per second than this, for one reason, is well: single packets are dropped in
/// normal work.
const DROPS_PER_S_MIN: f64 = 3.0;
/// A worker with this share of busy time or more, or a PIT this full, is a warning, and from the second on a trouble.
const FULL: [f64; 2] = [0.8, 0.95];
/// The most findings that are shown of one router.
const FINDINGS_MAX: usize = 20;

/// How bad it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Nothing is wrong.
    #[default]
    Well,
    /// Somebody should look.
    Warning,
    /// Something does not work.
    Trouble,
    /// The router says nothing of itself.
    Unknown,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// In words.
    pub text: String,
}

impl Level {
    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            Level::Well => "well",
            Level::Warning => "warning",
            Level::Trouble => "trouble",
            Level::Unknown => "unknown",
        }
    }
}

/// What is wrong with a router that says this of itself, the worst first.
pub fn findings(summary: &Summary, drops: &[DropRate]) -> Vec<Finding> {
    let faces = summary.faces.iter().filter(|face| !face.is_local).filter_map(|face| match &*face.state {
        "down" => Some((Level::Trouble, format!("face {} to {} is down", face.id, face.remote))),
        "degraded" => Some((Level::Warning, format!("face {} to {} often gets no answer", face.id, face.remote))),
        _ => None,
    });
    let busy = summary.busiest_worker.and_then(|share| fullness("a worker is busy", share));
    let has_pit = summary.pit_capacity > 0;
    let pit = has_pit.then(|| summary.pit_entries as f64 / summary.pit_capacity as f64);
    let pit = pit.and_then(|share| fullness("the PIT is full", share));
    let drops = drops.iter().filter(|drops| drops.per_s >= DROPS_PER_S_MIN);
    let drops = drops.map(|drops| (Level::Warning, format!("drops {:.0} packets/s: {}", drops.per_s, drops.reason)));
    let mut found: Vec<Finding> =
        faces.chain(busy).chain(pit).chain(drops).map(|(level, text)| Finding { level, text }).collect();
    found.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    found.truncate(FINDINGS_MAX);
    found
}

/// What is wrong with a router that does not say anything.
pub fn unreachable(problem: &Problem) -> Vec<Finding> {
    vec![Finding { level: Level::Unknown, text: problem.text.clone() }]
}

fn fullness(what: &str, share: f64) -> Option<(Level, String)> {
    let [warning, trouble] = FULL;
    let level = match share {
        share if share >= trouble => Level::Trouble,
        share if share >= warning => Level::Warning,
        _ => return None,
    };
    Some((level, format!("{what}: {:.0} %", share * 100.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::FaceSummary;

    fn face(id: u64, state: &str, is_local: bool) -> FaceSummary {
        let remote = "udp4://192.0.2.1:6363".to_owned();
        FaceSummary { id, state: state.into(), is_local, remote, ..FaceSummary::default() }
    }

    #[test]
    fn the_worst_is_first() {
        let summary = Summary {
            faces: vec![
                face(1, "degraded", false),
                face(2, "down", false),
                face(3, "up", false),
                face(4, "down", true),
            ],
            busiest_worker: Some(0.82),
            pit_entries: 96,
            pit_capacity: 100,
            ..Summary::default()
        };
        let drop = |reason: &str, per_s| DropRate { reason: reason.into(), per_s, count: 9 };
        let found = findings(&summary, &[drop("engine.no-route", 4.4), drop("engine.looped", 0.9)]);
        let shown: Vec<String> = found.iter().map(|found| format!("{}: {}", found.level.word(), found.text)).collect();
        let expected = [
            "trouble: face 2 to udp4://192.0.2.1:6363 is down",
            "trouble: the PIT is full: 96 %",
            "warning: face 1 to udp4://192.0.2.1:6363 often gets no answer",
            "warning: a worker is busy: 82 %",
            "warning: drops 4 packets/s: engine.no-route",
        ];
        assert_eq!(shown, expected);
        assert!(findings(&Summary::default(), &[]).is_empty());
    }

    #[test]
    fn a_router_with_many_faces_down_has_few_lines() {
        let summary = Summary { faces: (0..200).map(|id| face(id, "down", false)).collect(), ..Summary::default() };
        assert_eq!(findings(&summary, &[]).len(), FINDINGS_MAX);
    }
}
