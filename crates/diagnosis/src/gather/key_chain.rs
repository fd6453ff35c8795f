//! The key chain of this user: identities, keys, certificates, and the modes of its files.

use crate::facts::{CertificateFacts, FileFacts, IdentityFacts, KeyFacts, KeyOfIdentity};
use namewire_client::discovery::Environment;
use namewire_security::{
    Certificate,
    key_chain::{Entry, KeyChain, KeyChainError, PibError},
};
use std::{fs, os::unix::fs::MetadataExt, path::Path};

/// Files of keys that are looked at.
const FILES_MAX: usize = 1000;

/// Looks at it.
pub(super) fn look() -> KeyFacts {
    let mut facts = KeyFacts::default();
    let (location, home) = match Environment::of_process().key_chain_location() {
        Ok(found) => found,
        Err(error) => {
            (facts.exists, facts.error) = (true, Some(error.to_string()));
            return facts;
        }
    };
    facts.folder = location.pib_directory.display().to_string();
    facts.files = files_in(&location.key_directory);
    match KeyChain::open(&location, &home) {
        Ok(chain) => {
            facts.exists = true;
            match identities(&chain) {
                Ok(identities) => facts.identities = identities,
                Err(error) => facts.error = Some(error.to_string()),
            }
        }
        Err(KeyChainError::Pib(PibError::Missing(_))) => {}
        Err(error) => (facts.exists, facts.error) = (true, Some(error.to_string())),
    }
    facts
}

fn files_in(folder: &Path) -> Vec<(String, FileFacts)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(FILES_MAX);
    entries
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "privkey"))
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            let facts = FileFacts { uid: metadata.uid(), mode: metadata.mode() & 0o7777 };
            Some((entry.path().display().to_string(), facts))
        })
        .collect()
}

fn identities(chain: &KeyChain) -> Result<Vec<IdentityFacts>, PibError> {
    let pib = chain.pib();
    let mut identities = Vec::new();
    for identity in pib.identities()? {
        let mut keys = Vec::new();
        for key in pib.keys(identity.name.as_name())? {
            let certificates = pib.certificates(key.name.as_name())?;
            keys.push(KeyOfIdentity {
                name: key.name.to_string(),
                is_default: key.is_default,
                has_private_key: chain.key_files().has(key.name.as_name()),
                certificates: certificates.iter().filter_map(certificate).collect(),
            });
        }
        identities.push(IdentityFacts { name: identity.name.to_string(), is_default: identity.is_default, keys });
    }
    Ok(identities)
}

fn certificate(entry: &Entry) -> Option<CertificateFacts> {
    let validity = Certificate::parse(&entry.bytes).ok()?.validity();
    Some(CertificateFacts {
        name: entry.name.to_string(),
        is_default: entry.is_default,
        not_before_ms: validity.not_before_ms,
        not_after_ms: validity.not_after_ms,
    })
}
