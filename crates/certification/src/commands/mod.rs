//! The commands: what each takes and prints.
//!
//! | command | file |
//! | --- | --- |
//! | `namewire cert info`, `request`, `renew` | [`request`] |
//! | `namewire join`, `leave` | [`join`] |
//! | `namewire cert ca`, `pin`, `revoke`, `issued` | [`ca`] |

pub mod ca;
pub mod join;
pub mod request;

use namewire_client::discovery::Environment;
use namewire_packet::NameBuf;
use namewire_security::{
    Certificate,
    key_chain::{KeyChain, KeyChainLocation},
    trust::AnchorCertificate,
};
use namewire_tools::{ExitCode, Failure, Global};
use std::{
    fs,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

pub(crate) const DAY_MS: u64 = 24 * 3600 * 1000;
/// Largest file of a certificate, in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// Certificates over the network.
#[derive(Debug, clap::Subcommand)]
pub enum CertCommand {
    /// Show the authority of a prefix: its certificate, the digest of that, and how long it certifies
    Info(request::InfoArgs),
    /// Get a certificate from an authority
    Request(request::RequestArgs),
    /// Get another certificate before one expires, from the authority that issued it
    Renew(request::RenewArgs),
    /// Run an authority, which certifies the names below a prefix
    Ca(ca::CaArgs),
    /// Make a code with which the owner of a name gets its certificate, on the machine of the authority
    Pin(ca::PinArgs),
    /// Revoke what an authority has issued to a name, on its machine: it serves the records, and renews nothing of it
    Revoke(ca::RevokeArgs),
    /// List the certificates that an authority has issued, on its machine
    Issued(ca::IssuedArgs),
}

/// A command and its arguments.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Get certificates over the network, or run an authority that gives them (NDNCERT)
    #[command(subcommand)]
    Cert(Box<CertCommand>),
    /// Join a network: a face, routes, a certificate if it asks for one, and this host's prefix there, kept from now on
    Join(Box<join::JoinArgs>),
    /// Leave a network: what `join` made is taken back
    Leave(join::LeaveArgs),
}

impl Command {
    /// Does what was asked for.
    ///
    /// # Errors
    /// What failed, in words and as an exit code.
    pub async fn execute(self, global: &Global) -> Result<(), Failure> {
        global.told(match self {
            Command::Join(args) => join::join(global, *args).await,
            Command::Leave(args) => join::leave(global, args).await,
            Command::Cert(command) => match *command {
                CertCommand::Info(args) => request::info(global, args).await,
                CertCommand::Request(args) => request::request(global, args).await,
                CertCommand::Renew(args) => request::renew(global, args).await,
                CertCommand::Ca(args) => ca::execute(global, args).await,
                CertCommand::Pin(args) => ca::pin(global, &args),
                CertCommand::Revoke(args) => ca::revoke(global, &args),
                CertCommand::Issued(args) => ca::issued(global, &args),
            },
        })
    }
}

/// A name that is not the root.
pub(crate) fn parse_name(text: &str) -> Result<NameBuf, String> {
    match namewire_configuration::text::parse_name(text)? {
        name if name.is_empty() => Err("the root / cannot be used here".to_owned()),
        name => Ok(name),
    }
}

pub(crate) fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(ExitCode::Failed, error.to_string())
}

pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis() as u64)
}

fn location() -> Result<(KeyChainLocation, PathBuf), Failure> {
    Environment::of_process().key_chain_location().map_err(|error| failed(format!("no key chain: {error}")))
}

pub(crate) fn open_key_chain() -> Result<KeyChain, Failure> {
    let (location, home) = location()?;
    Ok(KeyChain::open_or_create(&location, &home)?)
}

/// A certificate in a file, as it is or in Base64.
pub(crate) fn read_certificate(path: &Path) -> Result<AnchorCertificate, Failure> {
    let at = |error: &dyn std::fmt::Display| failed(format!("{}: {error}", path.display()));
    let size = fs::metadata(path).map_err(|error| at(&error))?.len();
    if size > FILE_BYTES_MAX {
        return Err(at(&"larger than 64 KiB"));
    }
    let bytes = fs::read(path).map_err(|error| at(&error))?;
    AnchorCertificate::parse(bytes).map_err(|error| at(&error))
}

/// The digest of a certificate's packet, as people compare it.
pub(crate) fn digest_text(certificate: &Certificate) -> String {
    certificate.data().implicit_digest().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The last day of a certificate.
pub(crate) fn end_text(certificate: &Certificate) -> String {
    let [_, end] = certificate.validity().iso_times();
    end
}
