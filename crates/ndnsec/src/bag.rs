//! `ndnsec export` and `ndnsec import`: a private key with its certificate, locked with a pass phrase; `unlock-tpm`.

use crate::{
    arguments::Arguments,
    certificate::stored,
    chain::Chain,
    file,
    passphrase::{Confirmation, passphrase},
    stop::Stop,
};
use namewire_security::{
    SafeBag, SafeBagError, base64_lines,
    key_chain::{KeyChainError, KeyFileError},
};
use zeroize::Zeroizing;

pub(crate) fn export(arguments: &Arguments) -> Result<String, Stop> {
    let name = arguments.needed_name("name", "a name")?;
    let kinds = ["identity", "key", "cert"].map(|kind| arguments.is_set(kind));
    if kinds.iter().filter(|is_set| **is_set).count() > 1 {
        return Err(Stop::usage("at most one of '--identity', '--key', or '--cert' may be specified"));
    }
    let [_, is_key, is_certificate] = kinds;
    let chain = Chain::open()?;
    let certificate = stored(&chain, &name.to_string(), !is_key && !is_certificate, is_key)?;
    let passphrase = given_or_typed(arguments, Confirmation::Asked)?;
    let bag = chain.inner.export_safe_bag(certificate.name(), passphrase.as_bytes()).map_err(|error| match error {
        KeyChainError::KeyFile(KeyFileError::Missing(_)) => {
            Stop::Failed(format!("Failed to export private key `{}`", certificate.key_name()))
        }
        other => other.into(),
    })?;
    let text = base64_lines::encode(&bag.to_wire());
    match arguments.text("output").unwrap_or("-") {
        "-" => Ok(text.to_string()),
        path => file::write(path, &text).map(|()| String::new()),
    }
}

pub(crate) fn import(arguments: &Arguments) -> Result<String, Stop> {
    let chain = Chain::open()?;
    let bag = file::load(arguments.text("input").unwrap_or("-"), SafeBag::parse)?;
    let passphrase = given_or_typed(arguments, Confirmation::NotAsked)?;
    let certificate = bag.certificate();
    let (name, key_name) = (certificate.name(), certificate.key_name());
    if chain.inner.key_files().has(key_name) {
        return Err(Stop::Failed(format!("Private key `{key_name}` already exists")));
    }
    if chain.key(key_name).is_ok() {
        return Err(Stop::Failed(format!("Public key `{key_name}` already exists")));
    }
    let imported = chain.inner.import_safe_bag(&bag, passphrase.as_bytes());
    imported.map(|()| String::new()).map_err(|error| match error {
        KeyChainError::SafeBag(SafeBagError::OtherKey) => {
            Stop::Failed(format!("Certificate `{name}` and private key `{key_name}` do not match"))
        }
        KeyChainError::SafeBag(_) => Stop::Failed(format!("Failed to import private key `{key_name}`")),
        other => other.into(),
    })
}

/// Private keys in files have no lock.
pub(crate) fn unlock_tpm() -> Result<String, Stop> {
    Chain::open()?;
    eprintln!("OK: TPM is unlocked");
    Ok(String::new())
}

fn given_or_typed(arguments: &Arguments, confirmation: Confirmation) -> Result<Zeroizing<String>, Stop> {
    match arguments.text("password").filter(|text| !text.is_empty()) {
        Some(text) => Ok(Zeroizing::new(text.to_owned())),
        None => passphrase(confirmation),
    }
}
