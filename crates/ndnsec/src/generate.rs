//! `ndnsec key-gen`: makes a key of an identity, and the identity if it is new.

use crate::{
    arguments::Arguments,
    chain::{Chain, name_of, now_ms},
    stop::Stop,
};
use namewire_packet::{Component, NameBuf, digest::sha256, tlv::types};
use namewire_security::{
    PrivateKey, base64_lines,
    certificate::KEY_COMPONENT,
    key_chain::{KeyChainError, KeyFileError},
};

/// Bytes of a random key id.
const KEY_ID_BYTES: usize = 8;

pub(crate) fn key_gen(arguments: &Arguments) -> Result<String, Stop> {
    let identity = arguments.needed_name("identity", "an identity")?;
    let key_id = KeyId::of(arguments)?;
    match arguments.text("type").unwrap_or("e") {
        "e" => {}
        "r" => {
            return Err(Stop::Failed(format!(
                "RSA keys are not made here, but taken: openssl genrsa 2048 | namewire key make {identity} --from -"
            )));
        }
        other => return Err(Stop::Usage(format!("unrecognized key type '{other}'"))),
    }
    let chain = Chain::open()?;
    let key = PrivateKey::generate_ecdsa().map_err(|error| Stop::Failed(error.to_string()))?;
    let key_id = key_id.component(&key)?;
    let key_id = key_id.as_name().last().expect("one component");
    let identity = identity.as_name();
    let made = chain.inner.add_named_key(identity, key_id, key, now_ms());
    let certificate = made.map_err(|error| match error {
        KeyChainError::KeyFile(KeyFileError::Exists(_)) => {
            let key_name = identity.to_buf().join(KEY_COMPONENT).join(key_id);
            Stop::Failed(format!("Key `{key_name}` already exists"))
        }
        other => other.into(),
    })?;
    if !arguments.is_set("not-default") {
        chain.inner.pib().set_default_key(certificate.key_name())?;
        chain.inner.pib().set_default_identity(identity)?;
    }
    Ok(base64_lines::encode(certificate.wire()).to_string())
}

/// The key id that the command line asks for.
enum KeyId {
    Random,
    Digest,
    /// A name of this component.
    Chosen(NameBuf),
}

impl KeyId {
    fn of(arguments: &Arguments) -> Result<Self, Stop> {
        if let Some(text) = arguments.text("keyid") {
            if arguments.is_set("keyid-type") {
                return Err(Stop::usage("cannot specify both '--keyid' and '--keyid-type'"));
            }
            return one_component(text, "key ID").map(KeyId::Chosen);
        }
        match arguments.text("keyid-type") {
            None | Some("r") => Ok(KeyId::Random),
            Some("h") => Ok(KeyId::Digest),
            Some(other) => Err(Stop::Usage(format!("unrecognized key ID type '{other}'"))),
        }
    }

    fn component(self, key: &PrivateKey) -> Result<NameBuf, Stop> {
        let mut name = NameBuf::new();
        match self {
            KeyId::Chosen(chosen) => return Ok(chosen),
            KeyId::Digest => name.push_generic(&sha256(&[key.public_key().spki()])),
            KeyId::Random => {
                let mut random = [0; KEY_ID_BYTES];
                getrandom::fill(&mut random).map_err(|_| Stop::from(KeyChainError::NoRandomness))?;
                name.push_generic(&random)
            }
        };
        Ok(name)
    }
}

/// A key id or issuer id from the command line, as a name of one component.
pub(crate) fn one_component(text: &str, what: &str) -> Result<NameBuf, Stop> {
    // ndn-cxx refuses an empty text as it refuses a period, and takes a slash as a part of the value.
    let text = if text.is_empty() { ".".to_owned() } else { text.replace('/', "%2F") };
    let name = name_of(&format!("/{text}")).map_err(Stop::Failed)?;
    let refused = |component: Component<'_>| {
        let types = [types::IMPLICIT_SHA256_DIGEST, types::PARAMETERS_SHA256_DIGEST, types::KEYWORD_COMPONENT];
        types.contains(&component.type_number) || (component.value.is_empty() && what == "key ID")
    };
    match name.as_name().last() {
        Some(component) if refused(component) => Err(Stop::Usage(format!("'{component}' cannot be used as {what}"))),
        _ => Ok(name),
    }
}
