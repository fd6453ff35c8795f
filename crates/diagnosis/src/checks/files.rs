//! Files that the router writes, and their disks.

use super::{Checked, settings};
use crate::{
    facts::{Facts, FolderFacts},
    finding::{Finding, Outcome},
};
use namewire_printing::quantity;

/// A disk with less is as good as full, and one with less than the second is nearly so.
const FULL_BYTES: u64 = 16 << 20;
const NEARLY_FULL_BYTES: u64 = 256 << 20;

/// The state file can be written.
pub(super) fn state_file(facts: &Facts) -> Checked {
    let settings = settings(facts)?;
    let Some(path) = settings.text("state.file") else {
        return Ok(Outcome::Good("the settings keep no state".to_owned()));
    };
    let mut findings = folder_findings(facts, "state file");
    let counters = ["state.write-failed", "state.changes-not-on-disk", "state.commands-not-kept"];
    let count = |counter: &str| facts.forwarder.as_ref().map_or(0, |forwarder| forwarder.count(counter));
    for counter in counters.into_iter().filter(|counter| count(counter) > 0) {
        let message = format!("The state file {path} could not be written ({counter} {}).", count(counter));
        findings.push(Finding::error(message, "namewire events --area management -n 10"));
    }
    let broken = facts.folders.iter().any(|folder| folder.purpose == "state file" && folder.was_put_aside);
    if broken {
        let message = format!("A damaged state file was put aside: {path}.ignored.");
        findings.push(Finding::note(message, format!("less {path}.ignored")));
    }
    Ok(Outcome::of(findings, path))
}

/// The disk of the repository has room.
pub(super) fn repository(facts: &Facts) -> Checked {
    let settings = settings(facts)?;
    let (is_on, Some(path)) = (settings.is_on("repo.enabled"), settings.text("repo.folder")) else {
        return Ok(Outcome::Good("the settings name no folder of a repository".to_owned()));
    };
    if !is_on {
        return Ok(Outcome::Good("the router has no repository".to_owned()));
    }
    let mut findings = folder_findings(facts, "repository");
    let folder = facts.folders.iter().find(|folder| folder.purpose == "repository");
    let room = folder.and_then(|folder| folder.disk_bytes).zip(settings.bytes("repo.capacity"));
    if let Some((disk, wanted)) = room.filter(|(disk, wanted)| wanted > disk) {
        let (wanted, disk) = (quantity::bytes(wanted), quantity::bytes(disk));
        let message = format!("The repository may take {wanted}, and its disk has {disk}.");
        findings.push(Finding::note(message, format!("df -h {path}")));
    }
    Ok(Outcome::of(findings, path))
}

fn folder_findings(facts: &Facts, purpose: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for folder in facts.folders.iter().filter(|folder| folder.purpose == purpose) {
        let FolderFacts { path, .. } = folder;
        if let Some(error) = &folder.error {
            findings.push(Finding::error(
                format!("The router's {purpose} {path} cannot be used: {error}."),
                format!("ls -ld {path}"),
            ));
            continue;
        }
        if folder.is_writable == Some(false) {
            let user = facts.process.as_ref().and_then(|process| process.uid).unwrap_or(facts.user.uid);
            let message = format!("User {user}, who runs the router, may not write its {purpose} {path}.");
            findings.push(Finding::error(message, format!("sudo chown -R {user} {path}")));
        }
        let Some(free) = folder.free_bytes.filter(|free| *free < NEARLY_FULL_BYTES) else { continue };
        let message = format!("The disk of the {purpose} {path} has {} left.", quantity::bytes(free));
        let command = format!("df -h {path}");
        findings.push(if free < FULL_BYTES {
            Finding::error(message, command)
        } else {
            Finding::warning(message, command)
        });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        checks::test_facts::{found, in_order},
        finding::Severity,
    };
    use namewire_packet::nfd::DropCounter;

    fn with_state() -> Facts {
        let mut facts = in_order();
        facts.settings.values.insert("state.file".into(), "\"/var/s.toml\"".into());
        facts.folders = vec![FolderFacts {
            purpose: "state file",
            path: "/var/s.toml".into(),
            is_writable: Some(true),
            free_bytes: Some(1 << 40),
            ..FolderFacts::default()
        }];
        facts
    }

    #[test]
    fn a_state_file_that_cannot_be_written_is_an_error() {
        let mut facts = with_state();
        assert!(found(state_file(&facts)).is_empty());
        facts.folders[0].is_writable = Some(false);
        assert!(found(state_file(&facts))[0].message.contains("User 1000, who runs the router, may not write"));
        facts = with_state();
        facts.folders[0].error = Some("No such file or directory".into());
        assert!(found(state_file(&facts))[0].message.contains("cannot be used: No such file"));
        facts = with_state();
        facts.folders[0].was_put_aside = true;
        assert!(found(state_file(&facts))[0].message.ends_with("/var/s.toml.ignored."));
        let drops = &mut facts.forwarder.as_mut().unwrap().after.state.drops;
        drops.push(DropCounter { reason: "state.write-failed".into(), count: 2 });
        assert!(found(state_file(&facts))[0].message.contains("state.write-failed 2"));
    }

    #[test]
    fn a_disk_that_fills_up_is_found_by_degree() {
        let mut facts = with_state();
        for (free, expected) in [(1 << 20, Severity::Error), (100 << 20, Severity::Warning)] {
            facts.folders[0].free_bytes = Some(free);
            let [finding] = &found(state_file(&facts))[..] else { panic!() };
            assert_eq!((finding.severity, &*finding.command), (expected, "df -h /var/s.toml"));
        }
    }

    #[test]
    fn a_repository_larger_than_its_disk_is_noted() {
        let mut facts = in_order();
        let values = &mut facts.settings.values;
        for (key, value) in [("repo.enabled", "true"), ("repo.folder", "\"/r\""), ("repo.capacity", "\"100 GiB\"")] {
            values.insert(key.into(), value.into());
        }
        let folder = FolderFacts { purpose: "repository", path: "/r".into(), ..FolderFacts::default() };
        facts.folders = vec![FolderFacts { disk_bytes: Some(1 << 30), free_bytes: Some(1 << 29), ..folder }];
        let [finding] = &found(repository(&facts))[..] else { panic!() };
        assert_eq!(finding.message, "The repository may take 100.0 GiB, and its disk has 1.0 GiB.");
    }
}
