//! `ndnsec delete`: removes an identity, a key or a certificate, with everything that belongs to it.

use crate::{
    arguments::Arguments,
    chain::{Chain, name_of},
    stop::Stop,
};

pub(crate) fn delete(arguments: &Arguments) -> Result<String, Stop> {
    let text = arguments.text("name").ok_or_else(|| Stop::usage("you must specify a name"))?;
    let (is_key, is_certificate) = (arguments.is_set("delete-key"), arguments.is_set("delete-cert"));
    if is_key && is_certificate {
        return Err(Stop::usage("cannot specify both '--delete-key' and '--delete-cert'"));
    }
    let chain = Chain::open()?;
    let name = name_of(text).map_err(Stop::Failed)?;
    let name = name.as_name();
    let removed = if is_certificate {
        chain.certificate(name).and_then(|_| Ok(chain.inner.remove(name)?)).map(|()| "certificate")
    } else if is_key {
        chain.key(name).and_then(|_| Ok(chain.inner.remove_key(name)?)).map(|()| "key")
    } else {
        chain.identity(name).and_then(|()| Ok(chain.inner.remove_identity(name)?)).map(|()| "identity")
    };
    let kind = removed.map_err(|stop| match stop {
        Stop::Missing(message) => Stop::Failed(format!("Cannot delete the item: {message}")),
        other => other,
    })?;
    eprintln!("OK: {kind} deleted: {text}");
    Ok(String::new())
}
