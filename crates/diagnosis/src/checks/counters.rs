//! What does the router refuse and drop?

use super::{Checked, any, counted, ours};
use crate::{
    facts::{Facts, ForwarderFacts},
    finding::{Finding, Outcome, Severity},
};
use namewire_node_model::counters::is_event;
use namewire_printing::quantity;

/// Counters that are no loss, or no fault, though the router drops something.
const HARMLESS: [&str; 10] = [
    "capture.",
    "face-closed.refused", // `faces-up` has it
    "engine.suppressed",
    "link.duplicate-fragment",
    "link.duplicate-sequence",
    "link.foreign-frame",
    "link.nothing-carried",
    "management.not-kept", // programs that fetch lists ask for more than there is
    "router.connection-left",
    "engine.unsolicited-data",
];

/// More drops in a second are a warning, fewer a note.
const MANY_PER_S: u64 = 10;

/// Findings for this number of counters at most; the largest come first.
const SHOWN: usize = 5;

/// The part of a table or share, in percent, from which it is nearly full.
const NEARLY_FULL_PERCENT: u64 = 90;

/// A producer asks for its own name every two seconds, to learn of others. If there are none, that has no route.
const OWN_LOOKS: u64 = 2;

/// Lines of the log that are looked at.
const RECENT_MS: u64 = 60 * 60 * 1000;

/// No counter of drops grows.
pub(super) fn drops(facts: &Facts) -> Checked {
    let forwarder = ours(facts)?;
    let watched_ms = forwarder.watched_ms().max(1);
    let is_drop = |name: &str| !is_event(name) && !HARMLESS.iter().any(|prefix| name.starts_with(prefix));
    let mut grown: Vec<(u64, &str)> = forwarder
        .after
        .state
        .drops
        .iter()
        .filter(|counter| is_drop(&counter.reason) && !is_of_share(&counter.reason))
        .map(|counter| (forwarder.growth(&counter.reason), &*counter.reason))
        .filter(|(growth, reason)| *growth > if *reason == "engine.no-route" { OWN_LOOKS } else { 0 })
        .collect();
    grown.sort_by(|one, other| other.cmp(one));
    let findings = grown.iter().take(SHOWN).map(|(growth, reason)| {
        let severity = if growth * 1000 / watched_ms >= MANY_PER_S { Severity::Warning } else { Severity::Note };
        let message = format!("{reason} grew by {growth} in {}.", quantity::ms(watched_ms));
        let what = reason.split_once('.').map_or(*reason, |(_, rest)| rest);
        Finding { severity, message, command: format!("namewire drops --reason {what}") }
    });
    Ok(Outcome::of(findings.collect(), format!("none grew in {}", quantity::ms(watched_ms))))
}

/// Counters of the check [`shares`].
fn is_of_share(counter: &str) -> bool {
    ["share-used.", "pool-full.", "displaced.", "cut.", "management-cut."]
        .iter()
        .any(|prefix| counter.starts_with(prefix))
        || ["engine.face-share-used", "engine.pit-share-used", "engine.pit-full"].contains(&counter)
}

/// Nobody has its share used up, and no pool is full.
pub(super) fn shares(facts: &Facts) -> Checked {
    let forwarder = ours(facts)?;
    let mut findings = Vec::new();
    let holders = &forwarder.after.state.holders;
    for pool in holders.iter().filter(|entry| entry.holder.is_none() && entry.capacity > 0) {
        if pool.held * 100 >= pool.capacity * NEARLY_FULL_PERCENT {
            let heaviest = holders.iter().find(|entry| entry.pool == pool.pool && entry.holder.is_some());
            let heaviest =
                heaviest.and_then(|entry| Some(format!("; {} holds most, {}", entry.holder.as_ref()?, entry.held)));
            let message = format!(
                "Of the pool {}, {} of {} are held{}.",
                pool.pool,
                pool.held,
                pool.capacity,
                heaviest.unwrap_or_default()
            );
            findings.push(Finding::warning(message, "namewire status --holders"));
        }
    }
    let counters = forwarder.after.state.drops.iter().filter(|counter| is_of_share(&counter.reason));
    for counter in counters.filter(|counter| !counter.reason.contains("cut.")) {
        let growth = forwarder.growth(&counter.reason);
        let (severity, how) = match growth {
            0 => (Severity::Note, format!("{} since the start", counter.count)),
            growth => (Severity::Warning, format!("{growth} in {}", quantity::ms(forwarder.watched_ms()))),
        };
        let message = format!("A limit refused something: {} {how}.", counter.reason);
        findings.push(Finding { severity, message, command: "namewire status --holders".to_owned() });
    }
    findings.extend(cut_faces(forwarder));
    Ok(Outcome::of(findings, counted(holders.iter().filter(|entry| entry.holder.is_none()).count() as u64, "pool")))
}

/// Faces that had their share of the PIT, or of management.
fn cut_faces(forwarder: &ForwarderFacts) -> Vec<Finding> {
    let counters = &forwarder.after.state.drops;
    let cut = counters.iter().filter_map(|counter| Some((counter, counter.reason.split_once("cut.face-")?.1)));
    cut.map(|(counter, face)| {
        let severity = if forwarder.growth(&counter.reason) > 0 { Severity::Warning } else { Severity::Note };
        let of =
            if counter.reason.starts_with("management") { "its queue to management" } else { "its share of the PIT" };
        let message = format!("Face {face} had {of} used up {}.", counted(counter.count, "time"));
        Finding { severity, message, command: format!("namewire face show {face}") }
    })
    .collect()
}

/// Tables have room.
pub(super) fn tables(facts: &Facts) -> Checked {
    let forwarder = ours(facts)?;
    let state = &forwarder.after.state;
    let mut findings = Vec::new();
    let general = state.general.clone().unwrap_or_default();
    let pit =
        facts.settings.number("tables.pit_capacity").map(|room| ("PIT", "pit_capacity", general.n_pit_entries, room));
    let fib =
        state.fib_usage.as_ref().map(|usage| ("FIB", "fib_capacity", general.n_fib_entries, usage.capacity_entries));
    for (table, key, used, room) in [pit, fib].into_iter().flatten() {
        if used * 100 >= room.max(1) * NEARLY_FULL_PERCENT {
            let message = format!("The {table} has {used} of {room} entries.");
            findings.push(Finding::warning(message, format!("namewire run --set tables.{key}={}", room * 2)));
        }
    }
    let refusals = [
        "router.fib-full",
        "router.fib-bytes-full",
        "router.fib-no-memory",
        "router.fib-too-many-next-hops",
        "management.no-memory",
    ];
    for counter in refusals {
        let count = forwarder.count(counter);
        if count > 0 {
            let message = format!(
                "{} refused for lack of room ({counter}).",
                if count == 1 { "1 change was".to_owned() } else { format!("{count} changes were") }
            );
            findings.push(Finding::error(message, "namewire status"));
        }
    }
    Ok(Outcome::of(findings, format!("PIT {}, FIB {} entries", general.n_pit_entries, general.n_fib_entries)))
}

/// No command was refused.
pub(super) fn refused(facts: &Facts) -> Checked {
    let forwarder = ours(facts)?;
    let mut findings = Vec::new();
    let denied = forwarder.after.state.drops.iter().filter(|counter| counter.reason.starts_with("denied."));
    for counter in denied {
        let growing = forwarder.growth(&counter.reason) > 0;
        let severity = if growing { Severity::Warning } else { Severity::Note };
        let message = format!(
            "{} refused since the start: {}.",
            if counter.count == 1 { "1 command was".to_owned() } else { format!("{} commands were", counter.count) },
            counter.reason
        );
        findings.push(Finding {
            severity,
            message,
            command: "namewire events --area trust,management -n 5".to_owned(),
        });
    }
    let is_recent = |unix_ms: u64| unix_ms + RECENT_MS > facts.now_ms;
    let last = forwarder.log.iter().rev().find(|line| line.message == "command refused" && is_recent(line.unix_ms));
    if let Some(line) = last {
        let field = |name: &str| line.fields.iter().find(|field| field.name == name).map(|field| &*field.value);
        let what = field("command").unwrap_or("a command");
        let why = field("why").or(field("text")).or(field("reason")).unwrap_or("the log says why");
        let ago = quantity::ms(facts.now_ms.saturating_sub(line.unix_ms));
        let message = format!("The router refused {what} {ago} ago: {}.", why.trim_end_matches('.'));
        findings.push(Finding::note(message, "namewire events --area trust,management,routes -n 5"));
    }
    Ok(Outcome::of(findings, "none since the start"))
}

/// The Content Store stores and answers.
pub(super) fn content_store(facts: &Facts) -> Checked {
    let forwarder = any(facts)?;
    if !forwarder.is_namewire {
        return Err(Outcome::NotMade("only Namewire tells the settings of its store".to_owned()));
    }
    let settings = &facts.settings;
    let mut findings = Vec::new();
    for (key, what) in [("cs.admit", "stores nothing"), ("cs.serve", "answers nothing")] {
        if settings.values.get(key).is_some_and(|value| value == "false") {
            let option = key.trim_start_matches("cs.");
            let message = format!("The Content Store {what} ({key} = false).");
            findings.push(Finding::note(message, format!("namewire cs config --{option} on")));
        }
    }
    let none = settings.bytes("cs.capacity") == Some(0) || settings.number("cs.packets") == Some(0);
    if none {
        findings.push(Finding::note(
            "The Content Store has no room.",
            "namewire cs config --capacity 64MiB --packets 65536",
        ));
    }
    Ok(Outcome::of(findings, "it stores and answers"))
}

/// The log has no errors of the last hour.
pub(super) fn log(facts: &Facts) -> Checked {
    let forwarder = ours(facts)?;
    let is_recent = |unix_ms: u64| unix_ms + RECENT_MS > facts.now_ms;
    let mut findings = Vec::new();
    for (level, severity) in [("error", Severity::Warning), ("warn", Severity::Note)] {
        let lines: Vec<_> =
            forwarder.log.iter().filter(|line| line.level == level && is_recent(line.unix_ms)).collect();
        if let Some(last) = lines.last() {
            let message = format!(
                "The log has {} of level {level} of the last hour; the last: {}: {}.",
                counted(lines.len() as u64, "line"),
                last.area,
                last.message
            );
            findings.push(Finding {
                severity,
                message,
                command: format!("namewire events --area {} -n 10", last.area),
            });
        }
    }
    Ok(Outcome::of(findings, "no errors or warnings in the last hour"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::test_facts::{found, in_order, not_made};
    use namewire_packet::nfd::{DropCounter, LogField, LogRecord, PoolHolding};

    fn forwarder(facts: &mut Facts) -> &mut ForwarderFacts {
        facts.forwarder.as_mut().unwrap()
    }

    fn counter(reason: &str, count: u64) -> DropCounter {
        DropCounter { reason: reason.to_owned(), count }
    }

    #[test]
    fn only_drops_that_grow_are_found_the_largest_first() {
        let mut facts = in_order();
        forwarder(&mut facts).before.state.drops = vec![counter("engine.no-route", 90), counter("link.send-failed", 7)];
        forwarder(&mut facts).after.state.drops = vec![
            counter("engine.no-route", 100),
            counter("link.send-failed", 7),
            counter("link.malformed-element", 1),
            counter("engine.suppressed", 1000),
            counter("limit.cs-evicted", 1000),
            counter("share-used.faces", 1000),
        ];
        let findings = found(drops(&facts));
        let said: Vec<_> = findings.iter().map(|one| (one.severity, &*one.message, &*one.command)).collect();
        assert_eq!(
            said,
            [
                (Severity::Warning, "engine.no-route grew by 10 in 1 s.", "namewire drops --reason no-route"),
                (
                    Severity::Note,
                    "link.malformed-element grew by 1 in 1 s.",
                    "namewire drops --reason malformed-element"
                ),
            ]
        );
        forwarder(&mut facts).is_namewire = false;
        assert!(not_made(drops(&facts)).contains("only Namewire"));
    }

    #[test]
    fn shares_that_are_used_up_are_found_with_their_holder() {
        let mut facts = in_order();
        let holding = |holder: Option<&str>, held| PoolHolding {
            pool: "pit".into(),
            holder: holder.map(str::to_owned),
            capacity: 100,
            held,
            refused: 0,
        };
        forwarder(&mut facts).after.state.holders = vec![holding(None, 95), holding(Some("192.0.2.9"), 80)];
        assert!(found(shares(&facts))[0].message.contains("95 of 100 are held; 192.0.2.9 holds most, 80"));
        forwarder(&mut facts).after.state.holders.clear();
        forwarder(&mut facts).after.state.drops = vec![counter("engine.pit-full", 5), counter("cut.face-300", 2)];
        let findings = found(shares(&facts));
        assert!(findings[0].message.contains("engine.pit-full 5 in 1 s"), "{findings:?}");
        assert_eq!(findings[1].message, "Face 300 had its share of the PIT used up 2 times.");
        let drops = forwarder(&mut facts).after.state.drops.clone();
        forwarder(&mut facts).before.state.drops = drops;
        assert!(found(shares(&facts)).iter().all(|finding| finding.severity == Severity::Note));
    }

    #[test]
    fn tables_that_are_nearly_full_are_found() {
        let mut facts = in_order();
        facts.settings.values.insert("tables.pit_capacity".into(), "100".into());
        forwarder(&mut facts).after.state.general.as_mut().unwrap().n_pit_entries = 90;
        assert_eq!(found(tables(&facts))[0].command, "namewire run --set tables.pit_capacity=200");
        let usage = forwarder(&mut facts).after.state.fib_usage.as_mut().unwrap();
        usage.capacity_entries = 2;
        assert!(found(tables(&facts))[1].message.starts_with("The FIB has 2 of 2"));
        forwarder(&mut facts).after.state.drops = vec![counter("router.fib-full", 1)];
        assert_eq!(found(tables(&facts))[2].severity, Severity::Error);
    }

    #[test]
    fn refused_commands_are_found_in_counters_and_log() {
        let mut facts = in_order();
        forwarder(&mut facts).after.state.drops = vec![counter("denied.not-allowed", 2)];
        let field = |name: &str, value: &str| LogField { name: name.into(), value: value.into() };
        let line = LogRecord {
            unix_ms: facts.now_ms - 2000,
            level: "info".into(),
            area: "trust".into(),
            message: "command refused".into(),
            fields: vec![field("command", "rib/register"), field("why", "not allowed")],
            ..LogRecord::default()
        };
        forwarder(&mut facts).log.push(line);
        let findings = found(refused(&facts));
        assert_eq!(findings[0].message, "2 commands were refused since the start: denied.not-allowed.");
        assert_eq!(findings[1].message, "The router refused rib/register 2 s ago: not allowed.");
    }

    #[test]
    fn a_store_that_does_nothing_is_noted() {
        let mut facts = in_order();
        facts.settings.values.insert("cs.admit".into(), "false".into());
        facts.settings.values.insert("cs.packets".into(), "0".into());
        let findings = found(content_store(&facts));
        assert_eq!(findings[0].command, "namewire cs config --admit on");
        assert_eq!(findings[1].message, "The Content Store has no room.");
    }

    #[test]
    fn errors_in_the_log_are_found_while_they_are_new() {
        let mut facts = in_order();
        let line = |ago_ms, level: &str| LogRecord {
            unix_ms: facts.now_ms - ago_ms,
            level: level.into(),
            area: "repo".into(),
            message: "disk full".into(),
            ..LogRecord::default()
        };
        let lines = vec![line(5 * RECENT_MS, "error"), line(10, "error"), line(9, "info")];
        forwarder(&mut facts).log = lines;
        let [finding] = &found(log(&facts))[..] else { panic!() };
        assert_eq!(finding.message, "The log has 1 line of level error of the last hour; the last: repo: disk full.");
    }
}
