//! `ndnsec sign-req` and `ndnsec cert-gen`: asks for a certificate, and issues one.

use crate::{
    arguments::Arguments,
    chain::{Chain, default_of, now_ms},
    file,
    generate::one_component,
    stop::Stop,
};
use namewire_packet::{Component, NameBuf};
use namewire_security::{
    AdditionalDescription, Certificate, Signer, ValidityPeriod, base64_lines, issue_certificate,
    issue_described_certificate, key_chain::KeyChainError,
};

const DAY_MS: u64 = 24 * 3600 * 1000;
/// Issuer id of a request.
const REQUEST: Component<'static> = Component::generic(b"cert-request");
/// A request is valid for this long, and from a moment before it was made, for clocks that are slow.
const REQUEST_MS: u64 = 10 * DAY_MS;
const CLOCK_SLACK_MS: u64 = 1000;
const CERTIFICATE_MS: u64 = 365 * DAY_MS;

pub(crate) fn sign_req(arguments: &Arguments) -> Result<String, Stop> {
    let name = arguments.needed_name("name", "a name")?.as_name();
    let chain = Chain::open()?;
    let key = if arguments.is_set("key") { chain.key(name)? } else { chain.default_key(name)? };
    let key_name = key.name.as_name();
    let now_ms = now_ms();
    let validity = ValidityPeriod {
        not_before_ms: now_ms.saturating_sub(CLOCK_SLACK_MS),
        not_after_ms: now_ms.saturating_add(REQUEST_MS),
    };
    let request = issue_certificate(&chain.signer(key_name)?, key_name, &key.bytes, REQUEST, now_ms, validity)
        .map_err(KeyChainError::from)?;
    Ok(base64_lines::encode(request.wire()).to_string())
}

pub(crate) fn cert_gen(arguments: &Arguments) -> Result<String, Stop> {
    let description = description(arguments)?;
    let validity = validity(arguments)?;
    let issuer_id = one_component(arguments.text("issuer-id").unwrap_or("NA"), "issuer ID")?;
    let issuer_id = issuer_id.as_name().last().expect("one component");
    let chain = Chain::open()?;
    let request = file::load(arguments.text("request").unwrap_or("-"), Certificate::parse)?;
    if request.public_key().is_err() {
        return Err(Stop::failed("Certificate request contains invalid public key"));
    }
    let (key_name, spki) = (request.key_name(), request.spki());
    let signer = issuer(&chain, arguments.name("sign-id"))?;
    let issued = issue_described_certificate(&signer, key_name, spki, issuer_id, now_ms(), validity, &description)
        .map_err(KeyChainError::from)?;
    Ok(base64_lines::encode(issued.wire()).to_string())
}

fn description(arguments: &Arguments) -> Result<AdditionalDescription, Stop> {
    let mut description = AdditionalDescription::default();
    for info in arguments.texts("info") {
        let (key, text) =
            info.split_once(' ').ok_or_else(|| Stop::Usage(format!("incorrectly formatted info block [{info}]")))?;
        description.0.insert(key.to_owned(), text.to_owned());
    }
    Ok(description)
}

fn validity(arguments: &Arguments) -> Result<ValidityPeriod, Stop> {
    let not_before_ms = arguments.text("not-before").map_or_else(|| Ok(now_ms()), time)?;
    let not_after_ms =
        arguments.text("not-after").map_or_else(|| Ok(not_before_ms.saturating_add(CERTIFICATE_MS)), time)?;
    if not_after_ms < not_before_ms {
        return Err(Stop::usage("'--not-before' cannot be later than '--not-after'"));
    }
    Ok(ValidityPeriod { not_before_ms, not_after_ms })
}

/// Reads `YYYYMMDDhhmmss`; what comes after it is ignored.
fn time(text: &str) -> Result<u64, Stop> {
    let parts = text.get(..8).zip(text.get(8..14));
    parts
        .and_then(|(date, time)| ValidityPeriod::parse_time(format!("{date}T{time}").as_bytes()).ok())
        .ok_or_else(|| Stop::Failed(format!("'{text}' is not a time as YYYYMMDDhhmmss")))
}

/// The identity named, the default one, or a digest if there is none.
fn issuer(chain: &Chain, named: Option<&NameBuf>) -> Result<Signer, Stop> {
    let identity = match named {
        Some(identity) => {
            let missing = || Stop::Failed(format!("Signing identity `{identity}` does not exist"));
            chain.identity(identity.as_name()).map_err(|stop| match stop {
                Stop::Missing(_) => missing(),
                other => other,
            })?;
            identity.clone()
        }
        None => match default_of(chain.inner.pib().identities()?) {
            Some(entry) => entry.name,
            None => return Ok(Signer::digest()),
        },
    };
    let key = default_of(chain.inner.pib().keys(identity.as_name())?)
        .ok_or_else(|| Stop::Failed(format!("Signing identity `{identity}` does not have a default key")))?;
    chain.signer(key.name.as_name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_14_digits() {
        assert_eq!(time("19700101000001").unwrap(), 1000);
        for text in ["2026", "20261301000000", "2026x301000000", "é0260101000000"] {
            let stop = time(text).unwrap_err();
            assert!(matches!(stop, Stop::Failed(message) if message.contains("YYYYMMDDhhmmss")), "{text}");
        }
    }
}
