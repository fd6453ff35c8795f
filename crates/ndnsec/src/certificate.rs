//! `ndnsec cert-dump` and `ndnsec cert-install`: prints a certificate, and imports one.

use crate::{
    arguments::Arguments,
    chain::{self, Chain, name_of},
    describe::describe,
    file,
    stop::Stop,
};
use namewire_security::{Certificate, base64_lines, key_chain::KeyChainError};
use std::{
    io::{self, Write},
    net::{TcpStream, ToSocketAddrs},
    time::Duration,
};

/// How long a repository may take to answer.
const REPO_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn dump(arguments: &Arguments) -> Result<String, Stop> {
    let name = arguments.text("name").ok_or_else(|| Stop::usage("you must specify a name"))?;
    let kinds = ["identity", "key", "file"].map(|kind| arguments.is_set(kind));
    if kinds.iter().filter(|is_set| **is_set).count() > 1 {
        return Err(Stop::usage("at most one of '--identity', '--key', or '--file' may be specified"));
    }
    if arguments.is_set("pretty") && arguments.is_set("repo-output") {
        return Err(Stop::usage("'--pretty' is incompatible with '--repo-output'"));
    }
    let [is_identity, is_key, is_file] = kinds;
    let certificate = if is_file {
        file::load(name, Certificate::parse)?
    } else {
        stored(&Chain::open()?, name, is_identity, is_key)?
    };
    if arguments.is_set("pretty") {
        return Ok(format!("{}\n", describe(&certificate)));
    }
    if arguments.is_set("repo-output") {
        let (host, port) = ["repo-host", "repo-port"].map(|long| arguments.text(long)).into();
        return insert(certificate.wire(), host.unwrap_or("localhost"), port.unwrap_or("7376"))
            .map(|()| String::new())
            .map_err(|_| Stop::failed("Failed to connect to repo instance"));
    }
    Ok(base64_lines::encode(certificate.wire()).to_string())
}

/// The certificate that an identity or a key signs with, or the one of this name.
pub(crate) fn stored(chain: &Chain, name: &str, is_identity: bool, is_key: bool) -> Result<Certificate, Stop> {
    let name = name_of(name).map_err(Stop::Failed)?;
    let name = name.as_name();
    let entry = if is_identity {
        chain.default_certificate(chain.default_key(name)?.name.as_name())?
    } else if is_key {
        chain.default_certificate(chain.key(name)?.name.as_name())?
    } else {
        chain.certificate(name)?
    };
    chain::parse(&entry)
}

/// Sends a packet to a repository's port for bulk insertion.
fn insert(packet: &[u8], host: &str, port: &str) -> io::Result<()> {
    let port: u16 = port.parse().map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, REPO_TIMEOUT) {
            Ok(mut stream) => {
                return stream.set_write_timeout(Some(REPO_TIMEOUT)).and_then(|()| stream.write_all(packet));
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

pub(crate) fn install(arguments: &Arguments) -> Result<String, Stop> {
    let path = arguments.text("cert-file").ok_or_else(|| Stop::usage("you must specify a file name"))?;
    let choices = ["identity-default", "key-default", "no-default"].map(|long| arguments.is_set(long));
    if choices.iter().filter(|is_set| **is_set).count() > 1 {
        return Err(Stop::usage(
            "at most one of '--identity-default', '--key-default', or '--no-default' may be specified",
        ));
    }
    if path.starts_with("http://") {
        let quoted = path.replace('\\', "\\\\").replace('\'', "\\'");
        return Err(Stop::Explained(format!(
            "Downloading certificate over HTTP is no longer supported.\nInstead, please run:\n\
             curl -sfLS '{quoted}' | ndnsec cert-install -"
        )));
    }
    let certificate = file::load(path, Certificate::parse)?;
    let chain = Chain::open()?;
    let (name, key_name) = (certificate.name(), certificate.key_name());
    chain.key(key_name)?;
    chain.inner.import_certificate(&certificate).map_err(|error| match error {
        KeyChainError::OtherKey(_) => {
            Stop::Failed(format!("Public key of certificate `{name}` does not match key `{key_name}`"))
        }
        other => other.into(),
    })?;
    let [for_identity, for_key, for_none] = choices;
    let pib = chain.inner.pib();
    if !for_none {
        pib.set_default_certificate(name)?;
    }
    if !for_none && !for_key {
        pib.set_default_key(key_name)?;
    }
    if !for_none && !for_key && !for_identity {
        pib.set_default_identity(certificate.identity())?;
    }
    eprintln!("OK: certificate with name [{name}] has been successfully installed");
    Ok(String::new())
}
