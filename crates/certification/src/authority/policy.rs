//! Which names may be certified?
//!
//! An identity lies under the authority's prefix, with one component more and at most as many as the operator allows.
//! An address of e-mail is a name of one component. A certificate that its owner has elsewhere gives a right to the
//! same name under this prefix; see [`name_of_possession`].

use super::settings::Settings;
use namewire_ndncert::Parameters;
use namewire_packet::{Name, NameBuf};
use namewire_security::{Certificate, certificate::KEY_COMPONENT};

/// Longest address of e-mail, in bytes (RFC 5321 §4.5.3.1.3).
const ADDRESS_BYTES_MAX: usize = 254;

/// Checks an identity.
///
/// # Errors
/// Why it is not certified.
pub fn check_name(settings: &Settings, identity: Name<'_>) -> Result<(), String> {
    let prefix = settings.prefix.as_name();
    let suffix = identity.len().saturating_sub(prefix.len());
    if !prefix.is_prefix_of(&identity) || suffix == 0 {
        return Err(format!("{identity} is not below {prefix}"));
    }
    if suffix > settings.max_suffix {
        return Err(format!("{identity} has {suffix} components after {prefix}, of at most {}", settings.max_suffix));
    }
    let mut after = identity.components().skip(prefix.len());
    if after.any(|component| component == KEY_COMPONENT || component.value == b"CA") {
        return Err(format!("{identity} has a component that certificates and authorities use"));
    }
    Ok(())
}

/// The names that a requester may have who says this about itself, each with the components that may follow.
pub(super) fn names_for(settings: &Settings, parameters: &Parameters) -> Result<Vec<(NameBuf, Option<u64>)>, String> {
    let address = parameters.get("email").ok_or("a requester without an address chooses its name")?;
    let address = checked_address(address)?;
    let mut name = settings.prefix.clone();
    name.push_generic(address.as_bytes());
    Ok(vec![(name, Some(settings.max_suffix.saturating_sub(1) as u64))])
}

/// An address of e-mail in small letters.
///
/// # Errors
/// If it is none. The form is checked only as far as a command may depend on it: no white space and no control
/// characters, one `@` with something on both sides, no leading `-`.
pub(super) fn checked_address(address: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(address).map_err(|_| "the address is not text".to_owned())?;
    let address = text.to_lowercase();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._%+-@".contains(c);
    let has_form = address.split('@').count() == 2 && address.split('@').all(|part| !part.is_empty());
    if address.len() > ADDRESS_BYTES_MAX || !has_form || address.starts_with('-') || !address.chars().all(is_plain) {
        return Err(format!("{text:?} is no address of e-mail"));
    }
    Ok(address)
}

/// True if whoever has this address may have this identity: the first component after the prefix is the address.
pub(super) fn fits_address(settings: &Settings, identity: Name<'_>, address: &str) -> bool {
    identity.get(settings.prefix.len()).is_some_and(|component| {
        std::str::from_utf8(component.value).is_ok_and(|text| text.eq_ignore_ascii_case(address))
    })
}

/// The identity to which a certificate gives a right here. One of this authority: the same. One of another authority,
/// which is trusted and has this `issuer` as its identity: the same name under this prefix, for example `/site/bob` for
/// `/ndn/ucla/bob` where `/ndn/ucla` is trusted.
pub(super) fn name_of_possession(settings: &Settings, held: &Certificate, issuer: Name<'_>) -> Option<NameBuf> {
    let identity = held.identity();
    if !issuer.is_prefix_of(&identity) || identity.len() == issuer.len() {
        return None;
    }
    let mut name = settings.prefix.clone();
    identity.components().skip(issuer.len()).for_each(|component| {
        name.push(component);
    });
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            prefix: "/site".parse().unwrap(),
            info: String::new(),
            max_validity_ms: 1,
            max_suffix: 2,
            issuer_id: "NDNCERT".to_owned(),
            proofs: Vec::new(),
        }
    }

    #[test]
    fn identities_lie_below_the_prefix_and_not_too_deep() {
        let check = |name: &str| check_name(&settings(), name.parse::<NameBuf>().unwrap().as_name()).is_ok();
        assert!(check("/site/a") && check("/site/a/b"));
        for refused in ["/", "/site", "/other/a", "/site/a/b/c", "/site/CA", "/site/a/KEY"] {
            assert!(!check(refused), "{refused}");
        }
    }

    #[test]
    fn an_address_is_a_name_and_no_option_of_a_command() {
        assert_eq!(checked_address(b"Bob@Example.org"), Ok("bob@example.org".to_owned()));
        for refused in [&b"bob"[..], b"@a", b"a@", b"a@b@c", b"-r@x.org", b"a b@c", b"a@b\n", b"a@b;rm", &[0xff, b'@']]
        {
            assert!(checked_address(refused).is_err(), "{refused:?}");
        }
        let identity: NameBuf = "/site/bob@example.org/phone".parse().unwrap();
        assert!(fits_address(&settings(), identity.as_name(), "bob@example.org"));
        assert!(!fits_address(&settings(), identity.as_name(), "mallory@example.org"));
    }
}
