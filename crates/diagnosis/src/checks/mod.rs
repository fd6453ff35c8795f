//! The catalogue of checks: pure functions from [`Facts`] to an [`Outcome`].
//!
//! A new check is a function in the file of its group, a line in [`CHECKS`], a row in `docs/diagnosis.md` and a unit
//! test with facts in which it finds something and facts in which it does not.

mod counters;
mod files;
mod installation;
mod keys;
mod limits;
mod neighbours;
mod routes;
mod strategies;
#[cfg(test)]
pub(crate) mod test_facts;

use crate::{
    facts::{Facts, ForwarderFacts},
    finding::Outcome,
};
use serde::Serialize;

/// What a check is about, and the heading of its findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// Is there a forwarder, and does it start?
    Installation,
    /// Does the system grant what the settings need?
    Limits,
    /// Do the other ends of faces answer?
    Neighbours,
    /// Do routes lead somewhere?
    Routes,
    /// Do strategies do what was meant?
    Strategies,
    /// What does the router refuse and drop?
    Counters,
    /// Keys and certificates.
    Keys,
    /// Files and disks.
    Files,
}

impl Group {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Group::Installation => "installation",
            Group::Limits => "limits",
            Group::Neighbours => "neighbours",
            Group::Routes => "routes",
            Group::Strategies => "strategies",
            Group::Counters => "counters",
            Group::Keys => "keys",
            Group::Files => "files",
        }
    }
}

/// An outcome; as an error if the check was not made.
type Checked = Result<Outcome, Outcome>;

/// A check.
pub struct Check {
    /// Its name in JSON.
    pub name: &'static str,
    /// Where its findings are shown.
    pub group: Group,
    run: fn(&Facts) -> Checked,
}

macro_rules! checks {
    ($($group:ident $name:literal $file:ident::$function:ident,)+) => {
        /// All checks, in the order in which they are shown.
        pub const CHECKS: &[Check] =
            &[$(Check { name: $name, group: Group::$group, run: $file::$function },)+];
    };
}

checks! {
    Installation "forwarder" installation::forwarder,
    Installation "client-transport" installation::client_transport,
    Installation "socket" installation::socket,
    Installation "ports" installation::ports,
    Installation "configuration" installation::configuration,
    Installation "privileges" installation::privileges,
    Installation "clock" installation::clock,
    Limits "descriptors" limits::descriptors,
    Limits "locked-memory" limits::locked_memory,
    Limits "memory" limits::memory,
    Limits "huge-pages" limits::huge_pages,
    Limits "af-xdp" limits::af_xdp,
    Limits "ipv6" limits::ipv6,
    Neighbours "faces-up" neighbours::faces_up,
    Neighbours "neighbour-answers" neighbours::answers,
    Neighbours "neighbour-health" neighbours::health,
    Neighbours "neighbour-nacks" neighbours::nacks,
    Neighbours "neighbour-software" neighbours::software,
    Neighbours "mtu" neighbours::mtu,
    Neighbours "networks" neighbours::networks,
    Routes "route-next-hop" routes::next_hop,
    Routes "route-loop" routes::looping,
    Routes "route-twice" routes::twice,
    Routes "route-hidden" routes::hidden,
    Routes "route-out" routes::out,
    Strategies "strategy-route" strategies::without_route,
    Strategies "strategy-hidden" strategies::hidden,
    Strategies "strategy-multicast" strategies::multicast,
    Counters "drops" counters::drops,
    Counters "shares" counters::shares,
    Counters "tables" counters::tables,
    Counters "refused" counters::refused,
    Counters "content-store" counters::content_store,
    Counters "log" counters::log,
    Keys "key-chain" keys::key_chain,
    Keys "key-files" keys::key_files,
    Keys "default-key" keys::default_key,
    Keys "certificates" keys::certificates,
    Keys "trust-anchors" keys::trust_anchors,
    Files "state-file" files::state_file,
    Files "repository" files::repository,
}

/// Makes all checks.
pub fn check_all(facts: &Facts) -> Vec<(&'static Check, Outcome)> {
    CHECKS.iter().map(|check| (check, (check.run)(facts).unwrap_or_else(|not_made| not_made))).collect()
}

/// The forwarder that answers.
///
/// # Errors
/// If none does.
fn any(facts: &Facts) -> Result<&ForwarderFacts, Outcome> {
    facts.forwarder.as_ref().ok_or_else(|| Outcome::NotMade("no forwarder answers".to_owned()))
}

/// The forwarder that answers, if it is one of ours.
///
/// # Errors
/// If it is not, or none does.
fn ours(facts: &Facts) -> Result<&ForwarderFacts, Outcome> {
    let forwarder = any(facts)?;
    let not_ours =
        || Outcome::NotMade(format!("only Namewire tells this; the forwarder is version {}", forwarder.version));
    if forwarder.is_namewire { Ok(forwarder) } else { Err(not_ours()) }
}

/// Settings are known.
///
/// # Errors
/// If they are not.
fn settings(facts: &Facts) -> Result<&crate::facts::SettingsFacts, Outcome> {
    if facts.settings.is_empty() {
        return Err(Outcome::NotMade("the settings are not known: no Namewire runs, and no file was given".to_owned()));
    }
    Ok(&facts.settings)
}

/// The first few of many, and how many are left: `/a, /b and 7 others`.
fn some_of<T: std::fmt::Display>(items: &[T]) -> String {
    const SHOWN: usize = 3;
    let shown = items.iter().take(SHOWN).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match items.len().saturating_sub(SHOWN) {
        0 => shown,
        1 => format!("{shown} and 1 other"),
        more => format!("{shown} and {more} others"),
    }
}

/// A number and its noun: `1 packet`, `2 packets`.
fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_the_page_has_each_check() {
        let page = include_str!("../../../../docs/diagnosis.md");
        for (place, check) in CHECKS.iter().enumerate() {
            assert_eq!(CHECKS.iter().position(|other| other.name == check.name), Some(place), "{}", check.name);
            let row = format!("| {} | `{}` |", check.group.word(), check.name);
            assert!(page.contains(&row), "docs/diagnosis.md has no row {row}");
        }
        let of_checks = page.lines().filter(|line| {
            let group = line.split('|').nth(1).map(str::trim);
            CHECKS.iter().any(|check| Some(check.group.word()) == group)
        });
        assert_eq!(of_checks.count(), CHECKS.len(), "the page has rows of checks that do not exist");
    }

    #[test]
    fn nothing_is_found_without_facts_but_that_no_forwarder_answers() {
        let results = check_all(&Facts::default());
        let found: Vec<&str> = results
            .iter()
            .filter(|(_, outcome)| matches!(outcome, Outcome::Found(_)))
            .map(|(check, _)| check.name)
            .collect();
        assert_eq!(found, ["forwarder", "clock"], "time 0 is a clock that is off");
    }

    #[test]
    fn a_forwarder_in_order_gives_no_finding() {
        let results = check_all(&test_facts::in_order());
        let found: Vec<_> = results
            .iter()
            .filter_map(|(check, outcome)| match outcome {
                Outcome::Good(_) => None,
                outcome => Some((check.name, outcome.clone())),
            })
            .collect();
        assert_eq!(found, []);
    }

    #[test]
    fn lists_are_short() {
        assert_eq!(some_of(&["/a", "/b"]), "/a, /b");
        assert_eq!(some_of(&["/a", "/b", "/c", "/d"]), "/a, /b, /c and 1 other");
        assert_eq!((counted(1, "packet"), counted(2, "packet")), ("1 packet".into(), "2 packets".into()));
    }
}
