//! The forwarder and the key chain of this user, and ndn-cxx's words when they fail.

use crate::{FAILED, Stop, USAGE};
use namewire_client::{Client, CloseReason, ControlError, ServeError, discovery::Environment};
use namewire_nfdc::not_connected;
use namewire_packet::{Name, NameBuf};
use namewire_security::{
    Signer,
    key_chain::{KeyChain, KeyChainError, PibError},
};

/// Names the signer that computes a digest (ndn-cxx, `SigningInfo`).
const DIGEST_IDENTITY: &str = "/localhost/identity/digest-sha256";

/// Connects to the forwarder that the environment names. `code` is the exit code if there is none.
pub(crate) async fn connect(code: u8) -> Result<Client, Stop> {
    Client::connect().await.map_err(|error| Stop::error(code, not_connected(&error)))
}

/// Why a connection that was lost carries nothing more.
pub(crate) fn lost(reason: &CloseReason) -> String {
    match reason {
        CloseReason::Remote => "socket read error (End of file)".to_owned(),
        reason => reason.to_string(),
    }
}

/// Why the forwarder gives no route.
pub(crate) fn not_registered(error: &ServeError) -> String {
    match error {
        ServeError::NotRegistered(ControlError::Refused(response)) => response.text.clone(),
        ServeError::NotRegistered(error) => error.to_string(),
        error => error.to_string(),
    }
}

/// Reads a name as ndn-cxx does: the slash at its start may be absent.
pub(crate) fn name(text: &str) -> Result<NameBuf, Stop> {
    text.parse().map_err(Stop::usage)
}

/// Checks `--naming-convention`.
pub(crate) fn check_naming(convention: Option<&str>) -> Result<(), Stop> {
    match convention {
        None | Some("" | "typed" | "t" | "2") => Ok(()),
        Some("marker" | "m" | "1") => Err(Stop::usage("names by markers are not supported: use 'typed'")),
        Some(other) => Err(Stop::usage(format!("'{other}' is not a valid naming convention"))),
    }
}

/// The signer of `--signing-info`: `id:NAME`, `key:NAME` or `cert:NAME`. Without it, the default identity signs; if
/// there is none, a digest does.
pub(crate) fn signer(info: &str) -> Result<Signer, Stop> {
    if info.is_empty() {
        return default_signer().map_err(|error| Stop::error(FAILED, error));
    }
    let Some((scheme, text)) = info.split_once(':') else {
        return Err(Stop::usage("Invalid signing string cannot represent SigningInfo"));
    };
    match scheme {
        "id" if text == DIGEST_IDENTITY => Ok(Signer::digest()),
        "id" | "key" | "cert" => {
            let name = name(text)?;
            let chain = open_key_chain().map_err(|error| Stop::error(FAILED, error))?;
            let signer = chain.and_then(|chain| chain.signer(name.as_name()));
            signer.map_err(|error| Stop::error(FAILED, error))
        }
        "hmac-sha256" => Err(Stop::error(USAGE, "signing by hmac-sha256 is not supported")),
        _ => Err(Stop::usage("Invalid signing string scheme")),
    }
}

fn open_key_chain() -> Result<Result<KeyChain, KeyChainError>, String> {
    let location = Environment::of_process().key_chain_location();
    let (location, home) = location.map_err(|error| format!("no key chain: {error}"))?;
    Ok(KeyChain::open(&location, &home))
}

fn default_signer() -> Result<Signer, String> {
    let chain = match open_key_chain()? {
        Err(KeyChainError::Pib(PibError::Missing(_))) => return Ok(Signer::digest()),
        chain => chain.map_err(|error| error.to_string())?,
    };
    let identities = chain.pib().identities().map_err(|error| error.to_string())?;
    let default = identities.iter().find(|identity| identity.is_default);
    let sign = |name: Name<'_>| chain.signer(name).map_err(|error| error.to_string());
    default.map_or(Ok(Signer::digest()), |identity| sign(identity.name.as_name()))
}
