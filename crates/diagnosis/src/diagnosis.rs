//! Diagnosis: the outcomes of all checks, as text and as the JSON document that programs read.
//!
//! The document is stable: keys are added and never renamed. `version` grows when a program must read it differently.
//!
//! Limits: [`FINDINGS_MAX`] findings of one check; text shows [`SHOWN`] of them, or all if it is verbose.

use crate::{
    checks::{CHECKS, Group, check_all},
    facts::Facts,
    finding::{Finding, Outcome, Severity},
};
use namewire_printing::terminal;
use namewire_tools::ExitCode;
use serde::Serialize;

/// The version of the document.
const VERSION: u32 = 1;

/// Findings of one check in the document.
const FINDINGS_MAX: usize = 1000;

/// Findings of one check in a text that is not verbose.
const SHOWN: usize = 5;

/// See the module documentation.
#[derive(Serialize)]
pub struct Diagnosis {
    version: u32,
    /// The program that made the checks.
    program: String,
    forwarder: Option<ForwarderLine>,
    /// The worst severity.
    pub severity: Severity,
    exit_code: u8,
    /// Time in which counters were watched.
    watched_ms: u64,
    checks: Vec<CheckLine>,
    findings: Vec<FindingLine>,
}

#[derive(Serialize)]
struct ForwarderLine {
    version: String,
    transport: String,
    is_namewire: bool,
    /// Datasets that did not come in time.
    missing: Vec<String>,
}

#[derive(Serialize)]
struct CheckLine {
    check: &'static str,
    group: Group,
    /// A severity, or `not-made`.
    outcome: &'static str,
    /// What was seen, or why the check was not made.
    message: Option<String>,
}

#[derive(Serialize)]
struct FindingLine {
    check: &'static str,
    group: Group,
    #[serde(flatten)]
    finding: Finding,
}

/// How an outcome that is no severity is called.
const NOT_MADE: &str = "not-made";

impl Diagnosis {
    /// Makes all checks.
    pub fn of(facts: &Facts) -> Self {
        let mut findings = Vec::new();
        let mut checks = Vec::new();
        let mut severity = Severity::Ok;
        for (check, outcome) in check_all(facts) {
            let worst = outcome.severity();
            severity = severity.max(worst.unwrap_or(Severity::Ok));
            let message = match outcome {
                Outcome::Good(text) | Outcome::NotMade(text) => Some(text).filter(|text| !text.is_empty()),
                Outcome::Found(found) => {
                    let line = |finding| FindingLine { check: check.name, group: check.group, finding };
                    findings.extend(found.into_iter().take(FINDINGS_MAX).map(line));
                    None
                }
            };
            let outcome = worst.map_or(NOT_MADE, Severity::word);
            checks.push(CheckLine { check: check.name, group: check.group, outcome, message });
        }
        let forwarder = facts.forwarder.as_ref();
        Diagnosis {
            version: VERSION,
            program: format!("namewire-{}", env!("CARGO_PKG_VERSION")),
            forwarder: forwarder.map(|forwarder| ForwarderLine {
                version: forwarder.version.clone(),
                transport: forwarder.transport.clone(),
                is_namewire: forwarder.is_namewire,
                missing: forwarder.missing.clone(),
            }),
            severity,
            exit_code: exit_code(severity).map_or(0, |code| code as u8),
            watched_ms: forwarder.map_or(0, |forwarder| forwarder.watched_ms()),
            checks,
            findings,
        }
    }

    /// The same, with its commands as this user must type them.
    pub fn typed(mut self, typed: impl Fn(&str) -> String) -> Self {
        self.findings.iter_mut().for_each(|line| line.finding.command = typed(&line.finding.command));
        self
    }

    /// The exit code; `None` is success.
    pub fn exit_code(&self) -> Option<ExitCode> {
        exit_code(self.severity)
    }

    /// For people: findings by group, the rest if `is_verbose`, and a line that counts.
    pub fn text(&self, is_verbose: bool) -> String {
        let mut text = String::new();
        let mut last = None;
        for check in &self.checks {
            let findings: Vec<&FindingLine> = self.findings.iter().filter(|line| line.check == check.check).collect();
            if findings.is_empty() && !is_verbose {
                continue;
            }
            if last.replace(check.group) != Some(check.group) {
                text += &(terminal::bold(check.group.word()) + "\n");
            }
            let shown = if is_verbose { findings.len() } else { findings.len().min(SHOWN) };
            for FindingLine { finding, .. } in &findings[..shown] {
                let line = format!("  {:<8} {}", finding.severity.word(), finding.message);
                text += &if finding.severity == Severity::Error { terminal::alarming(&line) } else { line };
                text += &format!("\n           try: {}\n", finding.command);
            }
            if findings.len() > shown {
                text += &format!("  and {} more of this kind (--verbose shows all)\n", findings.len() - shown);
            }
            if findings.is_empty() {
                let message = check.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
                text += &format!("  {:<8} {}{message}\n", check.outcome, check.check);
            }
        }
        text + &self.summary(is_verbose)
    }

    /// `39 checks: 1 error, 2 warnings; 4 not made (NFD answers; --verbose says why)`.
    fn summary(&self, is_verbose: bool) -> String {
        let count = |severity: Severity| self.findings.iter().filter(|line| line.finding.severity == severity).count();
        let parts: Vec<String> = [Severity::Error, Severity::Warning, Severity::Note]
            .into_iter()
            .map(|severity| (count(severity), severity.word()))
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") })
            .collect();
        let found = if parts.is_empty() { "nothing is wrong".to_owned() } else { parts.join(", ") };
        let not_made = self.checks.iter().filter(|check| check.outcome == NOT_MADE).count();
        let rest = match not_made {
            0 => String::new(),
            _ => {
                let why = match &self.forwarder {
                    Some(forwarder) if !forwarder.is_namewire => "the forwarder is not Namewire; ",
                    _ => "",
                };
                let hint = if is_verbose { "see above" } else { "--verbose says why" };
                format!("; {not_made} not made ({why}{hint})")
            }
        };
        format!("{} checks: {found}{rest}\n", CHECKS.len())
    }
}

fn exit_code(severity: Severity) -> Option<ExitCode> {
    match severity {
        Severity::Ok | Severity::Note => None,
        Severity::Warning => Some(ExitCode::Warnings),
        Severity::Error => Some(ExitCode::Errors),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::test_facts::{choice, in_order, name};

    #[test]
    fn the_text_is_short_and_says_what_to_type() {
        let mut facts = in_order();
        let diagnosis = Diagnosis::of(&facts);
        assert_eq!(diagnosis.text(false), format!("{} checks: nothing is wrong\n", CHECKS.len()));
        assert_eq!(diagnosis.exit_code(), None);
        assert_eq!(diagnosis.text(true).lines().filter(|line| line.starts_with("  ok")).count(), CHECKS.len());

        let choice = &mut facts.forwarder.as_mut().unwrap().after.state.strategies[0];
        choice.name = name("/alone");
        facts.forwarder.as_mut().unwrap().fib.clear();
        let diagnosis = Diagnosis::of(&facts);
        let text = diagnosis.text(false);
        assert!(
            text.starts_with(
                "routes\n  note     No route leads to another machine.\n           try: namewire route add"
            )
        );
        assert!(text.contains("strategies\n  warning  A strategy (best-route) is chosen for /alone"), "{text}");
        assert!(text.ends_with(" checks: 1 warning, 1 note\n"), "{text}");
        assert_eq!(diagnosis.exit_code(), Some(ExitCode::Warnings));
    }

    #[test]
    fn many_findings_of_one_kind_are_counted() {
        let mut facts = in_order();
        let choices = &mut facts.forwarder.as_mut().unwrap().after.state.strategies;
        choices.extend((0..8).map(|number| choice(&format!("/alone/{number}"), "asf")));
        facts.forwarder.as_mut().unwrap().fib.clear();
        let diagnosis = Diagnosis::of(&facts);
        let lines = |text: String| text.lines().filter(|line| line.contains("is chosen for /alone")).count();
        assert_eq!((lines(diagnosis.text(false)), lines(diagnosis.text(true))), (SHOWN, 8));
        assert!(diagnosis.text(false).contains("  and 3 more of this kind (--verbose shows all)\n"));
        assert!(diagnosis.text(false).ends_with(" checks: 8 warnings, 1 note\n"));
    }

    #[test]
    fn another_forwarder_gets_fewer_checks_and_the_summary_says_so() {
        let mut facts = in_order();
        facts.forwarder.as_mut().unwrap().is_namewire = false;
        let text = Diagnosis::of(&facts).text(false);
        assert!(text.contains("not made (the forwarder is not Namewire; --verbose says why)"), "{text}");
    }

    #[test]
    fn the_document_has_these_keys() {
        let mut facts = in_order();
        facts.forwarder.as_mut().unwrap().fib.clear();
        let document = serde_json::to_value(Diagnosis::of(&facts)).unwrap();
        let keys: Vec<&String> = document.as_object().unwrap().keys().collect();
        let expected = ["checks", "exit_code", "findings", "forwarder", "program", "severity", "version", "watched_ms"];
        assert_eq!(keys, expected);
        assert_eq!((&document["severity"], &document["exit_code"]), (&"note".into(), &0.into()));
        let finding = serde_json::json!({
            "check": "route-out", "group": "routes", "severity": "note",
            "message": "No route leads to another machine.", "try": "namewire route add / udp://ROUTER",
        });
        assert_eq!(document["findings"], serde_json::json!([finding]));
        assert_eq!(document["checks"][0]["outcome"], "ok");
    }
}
