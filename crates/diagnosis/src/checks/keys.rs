//! Keys and certificates of the user who asks, and those that the router trusts.

use super::{Checked, some_of};
use crate::{
    facts::{Facts, KeyFacts, KeyOfIdentity},
    finding::{Finding, Outcome},
};
use namewire_printing::quantity;
use namewire_security::{ValidityPeriod, key_chain::Expiry};

fn key_chain_of(facts: &Facts) -> Result<&KeyFacts, Outcome> {
    let keys = &facts.keys;
    match (keys.exists, &keys.error) {
        (true, None) => Ok(keys),
        (true, Some(_)) => Err(Outcome::NotMade("the key chain cannot be opened".to_owned())),
        (false, _) => Err(Outcome::NotMade("this user has no key chain, and needs none for local commands".to_owned())),
    }
}

/// The key chain can be opened.
pub(super) fn key_chain(facts: &Facts) -> Checked {
    let finding = facts.keys.error.as_ref().map(|error| {
        let message = format!("The key chain cannot be used: {}.", error.trim_end_matches('.'));
        Finding::error(message, format!("ls -la {}", facts.keys.folder))
    });
    if finding.is_none() {
        key_chain_of(facts)?;
    }
    let identities = facts.keys.identities.len();
    Ok(Outcome::of(finding.into_iter().collect(), format!("{} has {identities} identities", facts.keys.folder)))
}

/// Nobody else reads private keys.
pub(super) fn key_files(facts: &Facts) -> Checked {
    let keys = key_chain_of(facts)?;
    let open: Vec<&str> =
        keys.files.iter().filter(|(_, file)| file.mode & 0o077 != 0).map(|(path, _)| &**path).collect();
    let others: Vec<&str> =
        keys.files.iter().filter(|(_, file)| file.uid != facts.user.uid).map(|(path, _)| &**path).collect();
    let mut findings = Vec::new();
    if let Some(first) = open.first() {
        let message = format!("Other users of this machine may read private keys: {}.", some_of(&open));
        let folder = first.rsplit_once('/').map_or(*first, |(folder, _)| folder);
        findings.push(Finding::error(message, format!("chmod -R go= {folder}")));
    }
    if let Some(first) = others.first() {
        let message = format!("Private keys belong to another user: {}.", some_of(&others));
        findings.push(Finding::warning(message, format!("sudo chown $(id -u) {first}")));
    }
    Ok(Outcome::of(findings, format!("{} are readable by this user only", keys.files.len())))
}

/// What `--identity` and applications sign with is there.
pub(super) fn default_key(facts: &Facts) -> Checked {
    let keys = key_chain_of(facts)?;
    let mut findings = Vec::new();
    if keys.identities.is_empty() {
        findings.push(Finding::note("The key chain has no identity.", "namewire key make /NAME"));
    } else if !keys.identities.iter().any(|identity| identity.is_default) {
        let message = "The key chain has no default identity.";
        findings.push(Finding::warning(message, format!("namewire key default {}", keys.identities[0].name)));
    }
    for identity in &keys.identities {
        let name = &identity.name;
        let Some(key) = identity.keys.iter().find(|key| key.is_default) else {
            let command = identity.keys.first().map_or_else(
                || format!("namewire key make {name}"),
                |key| format!("namewire key default {}", key.name),
            );
            findings.push(Finding::warning(format!("Identity {name} has no default key."), command));
            continue;
        };
        findings.extend(key_finding(name, key));
    }
    Ok(Outcome::of(findings, "each identity can sign"))
}

fn key_finding(identity: &str, key: &KeyOfIdentity) -> Option<Finding> {
    if !key.has_private_key {
        let message = format!("The private key of {} is missing: {identity} cannot sign.", key.name);
        return Some(Finding::error(message, format!("namewire key make {identity}")));
    }
    (!key.certificates.iter().any(|certificate| certificate.is_default)).then(|| {
        let message = format!("Key {} has no default certificate, so others cannot check what it signs.", key.name);
        let command = key.certificates.first().map_or_else(
            || format!("namewire key make {identity}"),
            |certificate| format!("namewire key default {}", certificate.name),
        );
        Finding::warning(message, command)
    })
}

/// The certificates that are used hold, and hold on.
pub(super) fn certificates(facts: &Facts) -> Checked {
    let keys = key_chain_of(facts)?;
    let all = keys.identities.iter().flat_map(|identity| &identity.keys);
    let used: Vec<_> = all.flat_map(|key| &key.certificates).filter(|certificate| certificate.is_default).collect();
    let mut findings = Vec::new();
    for certificate in &used {
        let name = &certificate.name;
        let renew = format!("namewire key renew {name}");
        let validity =
            ValidityPeriod { not_before_ms: certificate.not_before_ms, not_after_ms: certificate.not_after_ms };
        if facts.now_ms < certificate.not_before_ms {
            let wait = quantity::ms(certificate.not_before_ms - facts.now_ms);
            let message = format!(
                "Certificate {name} is not valid yet, for {wait}: the clock is slow, or it was made for later."
            );
            findings.push(Finding::error(message, "date -u"));
            continue;
        }
        match Expiry::of(validity, facts.now_ms) {
            Expiry::DueAt(_) => {}
            Expiry::Due(left_ms) => {
                findings
                    .push(Finding::warning(format!("Certificate {name} ends in {}.", quantity::ms(left_ms)), renew));
            }
            Expiry::Expired => {
                let ago = quantity::ms(facts.now_ms - certificate.not_after_ms);
                findings.push(Finding::error(format!("Certificate {name} expired {ago} ago."), renew));
            }
        }
    }
    Ok(Outcome::of(findings, super::counted(used.len() as u64, "default certificate")))
}

/// The certificates that rules of trust name can be read.
pub(super) fn trust_anchors(facts: &Facts) -> Checked {
    let mut findings = Vec::new();
    for problem in &facts.unreadable_anchors {
        let path = problem.split_once(' ').map_or(&**problem, |_| problem.as_str());
        let is_record = problem.starts_with("revocations ");
        let what = if is_record { "a revocation record" } else { "a certificate that it is to trust" };
        findings.push(Finding::error(
            format!("The router cannot read {what}: {path}."),
            "namewire events --area trust -n 10",
        ));
    }
    let counter = facts.forwarder.as_ref().map_or(0, |forwarder| forwarder.count("router.anchor-unreadable"));
    if counter > 0 && findings.is_empty() {
        let message = format!(
            "The router failed {} to read a certificate that a trust rule names.",
            super::counted(counter, "time")
        );
        findings.push(Finding::warning(message, "namewire events --area trust -n 10"));
    }
    if facts.forwarder.is_none() && facts.configuration.is_none() {
        return Err(Outcome::NotMade("no configuration is known that could name any".to_owned()));
    }
    Ok(Outcome::of(findings, "all can be read, as far as is known"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        checks::test_facts::{found, in_order, not_made},
        facts::FileFacts,
        finding::Severity,
    };
    use namewire_packet::nfd::DropCounter;

    #[test]
    fn without_a_key_chain_nothing_is_checked_and_a_broken_one_is_an_error() {
        let mut facts = in_order();
        facts.keys = KeyFacts::default();
        assert!(
            not_made(key_chain(&facts)).contains("no key chain")
                && not_made(certificates(&facts)).contains("needs none")
        );
        facts.keys.exists = true;
        facts.keys.error = Some("pib.db is no database".into());
        assert!(found(key_chain(&facts))[0].message.contains("no database"));
        assert!(not_made(key_files(&facts)).contains("cannot be opened"));
    }

    #[test]
    fn key_files_that_others_read_are_an_error() {
        let mut facts = in_order();
        facts.keys.files = vec![("/k/a.privkey".into(), FileFacts { uid: 5, mode: 0o640 })];
        let findings = found(key_files(&facts));
        assert_eq!((findings[0].severity, &*findings[0].command), (Severity::Error, "chmod -R go= /k"));
        assert_eq!(findings[1].command, "sudo chown $(id -u) /k/a.privkey");
    }

    #[test]
    fn identities_that_cannot_sign_are_found() {
        let mut facts = in_order();
        facts.keys.identities[0].keys[0].has_private_key = false;
        assert!(found(default_key(&facts))[0].message.contains("cannot sign"));
        facts.keys.identities[0].keys[0].has_private_key = true;
        facts.keys.identities[0].keys[0].certificates[0].is_default = false;
        assert!(found(default_key(&facts))[0].message.contains("no default certificate"));
        facts.keys.identities[0].keys[0].is_default = false;
        assert!(found(default_key(&facts))[0].message.contains("no default key"));
        facts.keys.identities[0].is_default = false;
        assert!(found(default_key(&facts))[0].message.contains("no default identity"));
        facts.keys.identities.clear();
        assert_eq!(found(default_key(&facts))[0].severity, Severity::Note);
    }

    #[test]
    fn certificates_are_judged_by_their_validity() {
        let mut facts = in_order();
        let now = facts.now_ms;
        for (begin, end, expected) in [
            (now + 60_000, now + 120_000, Some((Severity::Error, "is not valid yet, for 1 min 0 s"))),
            (now - 120_000, now - 60_000, Some((Severity::Error, "expired 1 min 0 s ago"))),
            (now - 120_000, now + 10_000, Some((Severity::Warning, "ends in 10 s"))),
            (now - 10_000, now + 120_000, None),
        ] {
            let certificate = &mut facts.keys.identities[0].keys[0].certificates[0];
            (certificate.not_before_ms, certificate.not_after_ms) = (begin, end);
            let findings = found(certificates(&facts));
            let said = findings.first().map(|finding| (finding.severity, &*finding.message));
            assert_eq!(said.is_some(), expected.is_some(), "{findings:?}");
            if let Some(((severity, message), (expected, words))) = said.zip(expected) {
                assert!(severity == expected && message.contains(words), "{message}");
            }
        }
    }

    #[test]
    fn trust_anchors_that_cannot_be_read_are_found() {
        let mut facts = in_order();
        facts.unreadable_anchors = vec!["trust anchor /a: No such file".into()];
        assert!(found(trust_anchors(&facts))[0].message.contains("/a: No such file"));
        facts.unreadable_anchors.clear();
        let drops = &mut facts.forwarder.as_mut().unwrap().after.state.drops;
        drops.push(DropCounter { reason: "router.anchor-unreadable".into(), count: 1 });
        assert_eq!(found(trust_anchors(&facts))[0].severity, Severity::Warning);
    }
}
