//! `ndnsec get-default` and `ndnsec set-default`.

use crate::{arguments::Arguments, chain::Chain, stop::Stop};

pub(crate) fn get(arguments: &Arguments) -> Result<String, Stop> {
    let (wants_key, wants_certificate) = (arguments.is_set("default-key"), arguments.is_set("default-cert"));
    if wants_key && wants_certificate {
        return Err(Stop::usage("cannot specify both '--default-key' and '--default-cert'"));
    }
    if arguments.is_set("identity") && arguments.is_set("key") {
        return Err(Stop::usage("cannot specify both '--identity' and '--key'"));
    }
    let chain = Chain::open()?;
    let name = if let Some(key_name) = arguments.name("key") {
        if !wants_certificate {
            return Err(Stop::Silent);
        }
        chain.default_certificate(chain.key(key_name.as_name())?.name.as_name())?.name
    } else {
        let named = arguments.name("identity");
        let identity = match named {
            Some(identity) => identity.clone(),
            None => chain.default_identity()?.name,
        };
        match (wants_key, wants_certificate) {
            (false, false) if named.is_none() => identity,
            (false, false) => return chain.default_key(identity.as_name()).and(Err(Stop::Silent)),
            (true, _) => chain.default_key(identity.as_name())?.name,
            (false, true) => chain.default_certificate(chain.default_key(identity.as_name())?.name.as_name())?.name,
        }
    };
    Ok(if arguments.is_set("quiet") { name.to_string() } else { format!("{name}\n") })
}

pub(crate) fn set(arguments: &Arguments) -> Result<String, Stop> {
    let name = arguments.needed_name("name", "a name")?.as_name();
    let (is_key, is_certificate) = (arguments.is_set("default-key"), arguments.is_set("default-cert"));
    if is_key && is_certificate {
        return Err(Stop::usage("cannot specify both '--default-key' and '--default-cert'"));
    }
    let chain = Chain::open()?;
    let pib = chain.inner.pib();
    if is_key {
        chain.key(name)?;
        pib.set_default_key(name)?;
    } else if is_certificate {
        chain.certificate(name)?;
        pib.set_default_certificate(name)?;
    } else {
        chain.identity(name)?;
        pib.set_default_identity(name)?;
    }
    Ok(String::new())
}
