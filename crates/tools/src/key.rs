//! `namewire key`: the identities, keys and certificates of this user, in the key chain that ndn-cxx's and python-ndn's
//! tools use too (drop-in §3).

use crate::{
    Failure, Global, certificates,
    failure::ExitCode,
    key_files::{der_of, packet_of, read_file, read_passphrase, write_base64},
    name_argument,
    output::fields,
    quantity,
};
use namewire_client::discovery::Environment;
use namewire_packet::{Component, KeyLocator, NameBuf};
use namewire_security::{
    Certificate, PrivateKey, PublicKey, SafeBag, Signer, ValidityPeriod, issue_certificate,
    key_chain::{Entry, Expiry, KeyChain, KeyChainError, KeyChainLocation, PibError},
    trust::revocation::Reason,
};
use serde::Serialize;
use std::{
    path::{Path, PathBuf},
    sync::Once,
    time::{SystemTime, UNIX_EPOCH},
};

const DAY_MS: u64 = 24 * 3600 * 1000;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// List identities with their keys and certificates; a star marks the default of each
    List,
    /// Make a key with a self-signed certificate for an identity, and the identity if it is new
    Make {
        /// Identity of the key, for example /alice
        #[arg(value_parser = name_argument::parse_not_root)]
        name: NameBuf,
        /// What the key signs with
        #[arg(long = "type", value_enum, default_value = "ecdsa", conflicts_with = "from")]
        kind: KeyType,
        /// Take an existing private key (PKCS#8, SEC 1 or PKCS#1; PEM or DER; - is standard input), for example RSA
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
    },
    /// Show a certificate, or the default certificate of an identity or a key
    Show {
        /// Name of an identity, a key or a certificate
        #[arg(value_parser = name_argument::parse)]
        name: NameBuf,
    },
    /// Set the default identity, the default key of an identity, or the default certificate of a key
    Default {
        /// Name of an identity, a key or a certificate
        #[arg(value_parser = name_argument::parse)]
        name: NameBuf,
    },
    /// Delete an identity, a key or a certificate, and everything that belongs to it, including private keys
    Delete {
        /// Name of an identity, a key or a certificate
        #[arg(value_parser = name_argument::parse)]
        name: NameBuf,
    },
    /// Print a certificate, to give it to others
    ExportCert {
        /// Name of an identity, a key or a certificate
        #[arg(value_parser = name_argument::parse)]
        name: NameBuf,
        /// Write to this file
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Print a certificate with its private key, locked with a pass phrase (a safe bag, as of ndnsec export)
    Export {
        /// Name of an identity, a key or a certificate
        #[arg(value_parser = name_argument::parse)]
        name: NameBuf,
        /// File whose first line is the pass phrase
        #[arg(long, value_name = "FILE")]
        passphrase_file: PathBuf,
        /// Write to this file
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Import a safe bag, or a certificate of a key in this key chain
    Import {
        /// File to read; - is standard input
        file: PathBuf,
        /// File whose first line is the pass phrase of the safe bag
        #[arg(long, value_name = "FILE")]
        passphrase_file: Option<PathBuf>,
    },
    /// Serve certificates through the router until Ctrl-C, so that consumers can fetch them
    Serve {
        /// Identities, keys or certificates to serve, each with the certificates of its issuers that are in this key
        /// chain [default: the whole key chain]
        #[arg(value_name = "NAME", value_parser = name_argument::parse)]
        names: Vec<NameBuf>,
        /// Serve the certificate in this file, or those in the files of this directory, too; repeatable
        #[arg(long = "file", value_name = "FILE|DIR")]
        files: Vec<PathBuf>,
    },
    /// Replace a certificate before it expires: same key, same issuer; the issuer's private key must be in this key
    /// chain
    Renew {
        /// Name of an identity, a key or a certificate
        #[arg(value_parser = name_argument::parse)]
        name: NameBuf,
        /// Days for which the new certificate is valid; without this option, as long as the present one
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..=36500))]
        days: Option<u64>,
    },
    /// Revoke a certificate: make a record, signed by its issuer's key or by its own, that routers and consumers refuse
    /// the certificate by; one of these private keys must be in this key chain
    Revoke {
        /// File of the certificate (- is standard input), or name of an identity, a key or a certificate
        certificate: String,
        /// Why; after a compromise, no signature counts, whatever its time
        #[arg(long, value_enum, default_value = "unspecified")]
        reason: RevocationReason,
        /// Write the record to this file
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Certify another person's key: read that person's self-signed certificate, and print one signed by --identity
    Issue {
        /// Certificate of the key to certify; - is standard input
        file: PathBuf,
        /// Days for which the certificate is valid
        #[arg(long, value_name = "DAYS", default_value_t = 365, value_parser = clap::value_parser!(u64).range(1..=36500))]
        days: u64,
        /// Issuer component of the certificate's name
        #[arg(long, default_value = "NA")]
        issuer_id: String,
        /// Write to this file
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum KeyType {
    /// ECDSA on P-256, which every NDN software reads
    Ecdsa,
    /// Ed25519
    Ed25519,
    /// RSA: cannot be made here, see --from
    Rsa,
}

/// Why a certificate is revoked.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum RevocationReason {
    /// None is given
    Unspecified,
    /// Another person has the private key, or may have it
    KeyCompromise,
    /// Another person has the issuer's private key, or may have it
    CaCompromise,
    /// Another certificate replaces this one
    Superseded,
}

impl RevocationReason {
    /// As records have it.
    pub fn code(self) -> Reason {
        match self {
            RevocationReason::Unspecified => Reason::UNSPECIFIED,
            RevocationReason::KeyCompromise => Reason::KEY_COMPROMISE,
            RevocationReason::CaCompromise => Reason::CA_COMPROMISE,
            RevocationReason::Superseded => Reason::SUPERSEDED,
        }
    }
}

pub(crate) async fn execute(global: &Global, command: Command) -> Result<(), Failure> {
    match command {
        Command::List => list(global),
        Command::Make { name, kind, from } => make(global, &name, kind, from.as_deref()),
        Command::Show { name } => show(global, &name),
        Command::Default { name } => Ok(open_to_change()?.set_default(name.as_name())?),
        Command::Delete { name } => Ok(open_to_change()?.remove(name.as_name())?),
        Command::ExportCert { name, output } => {
            let entry = certificate_entry(&open()?, &name)?;
            write_base64(&entry.bytes, output.as_deref())
        }
        Command::Export { name, passphrase_file, output } => {
            let bag = open()?.export_safe_bag(name.as_name(), &read_passphrase(&passphrase_file)?)?;
            write_base64(&bag.to_wire(), output.as_deref())
        }
        Command::Import { file, passphrase_file } => import(&file, passphrase_file.as_deref()),
        Command::Serve { names, files } => certificates::execute(global, names, files).await,
        Command::Renew { name, days } => renew(global, &name, days),
        Command::Revoke { certificate, reason, output } => revoke(global, &certificate, reason, output.as_deref()),
        Command::Issue { file, days, issuer_id, output } => issue(global, &file, days, &issuer_id, output.as_deref()),
    }
}

/// The signer for `--identity`, which may also name a key or a certificate. Warns of a certificate that expires soon.
pub(crate) fn signer(name: &NameBuf) -> Result<Signer, Failure> {
    let chain = open()?;
    let signer = chain.signer(name.as_name())?;
    if let Ok(certificate) = chain.parsed_certificate_of(name.as_name())
        && let Some(end) = end_of(certificate.validity())
    {
        static ONCE: Once = Once::new(); // a command may sign what it sends and what it serves
        ONCE.call_once(|| eprintln!("namewire: {} {end}; see `namewire key renew --help`", certificate.name()));
    }
    Ok(signer.with_time(now_ms))
}

/// When it ends, if it is due to be renewed.
fn end_of(validity: ValidityPeriod) -> Option<String> {
    match Expiry::of(validity, now_ms()) {
        Expiry::DueAt(_) => None,
        Expiry::Due(left_ms) => Some(format!("expires in {}", quantity::ms(left_ms))),
        Expiry::Expired => Some("has expired".to_owned()),
    }
}

pub(crate) fn open() -> Result<KeyChain, Failure> {
    let (location, home) = location()?;
    Ok(KeyChain::open(&location, &home)?)
}

/// Opens the key chain, which must exist, to be changed.
fn open_to_change() -> Result<KeyChain, Failure> {
    open()?;
    open_or_create()
}

fn open_or_create() -> Result<KeyChain, Failure> {
    let (location, home) = location()?;
    Ok(KeyChain::open_or_create(&location, &home)?)
}

pub(crate) fn location() -> Result<(KeyChainLocation, PathBuf), Failure> {
    let location = Environment::of_process().key_chain_location();
    location.map_err(|error| Failure::new(ExitCode::Failed, format!("no key chain: {error}")))
}

impl From<KeyChainError> for Failure {
    fn from(error: KeyChainError) -> Self {
        match &error {
            KeyChainError::NotFound(_) | KeyChainError::NoKey(_) | KeyChainError::NoCertificate(_) => {
                Failure::not_found(error.to_string())
            }
            KeyChainError::Pib(PibError::Missing(_)) => {
                Failure::not_found(format!("{error}; `namewire key make` makes one"))
            }
            _ => Failure::new(ExitCode::Failed, error.to_string()),
        }
    }
}

impl From<PibError> for Failure {
    fn from(error: PibError) -> Self {
        KeyChainError::from(error).into()
    }
}

#[derive(Serialize)]
struct IdentityLine {
    identity: String,
    is_default: bool,
    keys: Vec<KeyLine>,
}

#[derive(Serialize)]
struct KeyLine {
    key: String,
    is_default: bool,
    algorithm: String,
    has_private_key: bool,
    certificates: Vec<CertificateLine>,
}

#[derive(Serialize)]
struct CertificateLine {
    certificate: String,
    is_default: bool,
    not_after_ms: Option<u64>,
    #[serde(skip)]
    end: Option<String>,
}

impl CertificateLine {
    fn new(entry: &Entry) -> Self {
        let validity = Certificate::parse(&entry.bytes).ok().map(|certificate| certificate.validity());
        CertificateLine {
            certificate: entry.name.to_string(),
            is_default: entry.is_default,
            not_after_ms: validity.map(|validity| validity.not_after_ms),
            end: validity.and_then(end_of),
        }
    }
}

fn list(global: &Global) -> Result<(), Failure> {
    let chain = open()?;
    let pib = chain.pib();
    let mut identities = Vec::new();
    for identity in pib.identities()? {
        let mut keys = Vec::new();
        for key in pib.keys(identity.name.as_name())? {
            let certificates = pib.certificates(key.name.as_name())?;
            keys.push(KeyLine {
                key: key.name.to_string(),
                is_default: key.is_default,
                algorithm: algorithm(&key.bytes),
                has_private_key: chain.key_files().has(key.name.as_name()),
                certificates: certificates.iter().map(CertificateLine::new).collect(),
            });
        }
        identities.push(IdentityLine { identity: identity.name.to_string(), is_default: identity.is_default, keys });
    }
    Ok(global.output().print(&identities, || list_text(&identities))?)
}

fn list_text(identities: &[IdentityLine]) -> String {
    if identities.is_empty() {
        return "no identities\n".to_owned();
    }
    let star = |is_default| if is_default { '*' } else { ' ' };
    let mut text = String::new();
    for identity in identities {
        text += &format!("{} {}\n", star(identity.is_default), identity.identity);
        for key in &identity.keys {
            let missing = if key.has_private_key { "" } else { ", no private key" };
            text += &format!("  {} {}  {}{missing}\n", star(key.is_default), key.key, key.algorithm);
            for certificate in &key.certificates {
                let end = certificate.end.as_ref().map_or(String::new(), |end| format!("  {end}"));
                text += &format!("    {} {}{end}\n", star(certificate.is_default), certificate.certificate);
            }
        }
    }
    text
}

fn algorithm(spki: &[u8]) -> String {
    PublicKey::from_spki(spki).map_or_else(|error| error.to_string(), |key| key.algorithm().to_string())
}

#[derive(Serialize)]
struct Made {
    identity: String,
    key: String,
    certificate: String,
    private_key_file: PathBuf,
}

fn make(global: &Global, identity: &NameBuf, kind: KeyType, from: Option<&Path>) -> Result<(), Failure> {
    let made = match (from, kind) {
        (Some(file), _) => PrivateKey::from_der(&der_of(read_file(file)?)?),
        (None, KeyType::Ecdsa) => PrivateKey::generate_ecdsa(),
        (None, KeyType::Ed25519) => PrivateKey::generate_ed25519(),
        (None, KeyType::Rsa) => {
            return Err(Failure::usage(format!(
                "RSA keys are not made here, but taken: openssl genrsa 2048 | namewire key make {identity} --from -"
            )));
        }
    };
    let key = made.map_err(|error| Failure::new(ExitCode::Failed, error.to_string()))?;
    let chain = open_or_create()?;
    let certificate = chain.add_identity_key(identity.as_name(), key, now_ms())?;
    let made = Made {
        identity: identity.to_string(),
        key: certificate.key_name().to_string(),
        certificate: certificate.name().to_string(),
        private_key_file: chain.key_files().path(certificate.key_name()),
    };
    let text = || fields(&[("key", made.key.clone()), ("certificate", made.certificate.clone())]);
    Ok(global.output().print(&made, text)?)
}

#[derive(Serialize)]
struct Shown {
    certificate: String,
    identity: String,
    key: String,
    algorithm: String,
    signed_by: Option<String>,
    is_self_signed: bool,
    not_before_ms: u64,
    not_after_ms: u64,
    is_valid_now: bool,
    has_private_key: bool,
}

fn show(global: &Global, name: &NameBuf) -> Result<(), Failure> {
    let chain = open()?;
    let entry = certificate_entry(&chain, name)?;
    let certificate = parse_certificate(&entry.bytes)?;
    let is_self_signed = certificate.names_itself_as_issuer()
        && certificate.public_key().is_ok_and(|key| certificate.verify(&key).is_ok());
    let shown = Shown {
        certificate: certificate.name().to_string(),
        identity: certificate.identity().to_string(),
        key: certificate.key_name().to_string(),
        algorithm: algorithm(certificate.spki()),
        signed_by: match certificate.key_locator() {
            Some(KeyLocator::Name(name)) => Some(name.to_string()),
            Some(KeyLocator::KeyDigest(digest)) => Some(digest.iter().map(|byte| format!("{byte:02x}")).collect()),
            None => None,
        },
        is_self_signed,
        not_before_ms: certificate.validity().not_before_ms,
        not_after_ms: certificate.validity().not_after_ms,
        is_valid_now: certificate.is_valid_at(now_ms()),
        has_private_key: chain.key_files().has(certificate.key_name()),
    };
    let not_yet = (now_ms() < shown.not_before_ms).then(|| "not yet".to_owned());
    let end = not_yet.or_else(|| end_of(certificate.validity()));
    let yes = |yes| if yes { "yes" } else { "no" }.to_owned();
    let text = || {
        fields(&[
            ("certificate", shown.certificate.clone()),
            ("identity", shown.identity.clone()),
            ("key", shown.key.clone()),
            ("algorithm", shown.algorithm.clone()),
            ("signed by", shown.signed_by.clone().unwrap_or_default()),
            ("self-signed", yes(shown.is_self_signed)),
            ("valid", format!("{}{}", certificate.validity(), end.map_or(String::new(), |end| format!(", {end}")))),
            ("private key", yes(shown.has_private_key)),
        ])
    };
    Ok(global.output().print(&shown, text)?)
}

fn import(file: &Path, passphrase_file: Option<&Path>) -> Result<(), Failure> {
    let wire = packet_of(read_file(file)?)?;
    if let Ok(certificate) = Certificate::parse(&wire) {
        return Ok(open_to_change()?.import_certificate(&certificate)?);
    }
    let bag = SafeBag::parse(&wire).map_err(|error| {
        Failure::new(ExitCode::Failed, format!("{}: neither a certificate nor a safe bag ({error})", file.display()))
    })?;
    let passphrase_file = passphrase_file.ok_or_else(|| Failure::usage("a safe bag needs --passphrase-file"))?;
    Ok(open_or_create()?.import_safe_bag(&bag, &read_passphrase(passphrase_file)?)?)
}

#[derive(Serialize)]
struct Renewed {
    certificate: String,
    not_after_ms: u64,
}

fn renew(global: &Global, name: &NameBuf, days: Option<u64>) -> Result<(), Failure> {
    let certificate = open_to_change()?.renew(name.as_name(), days.map(|days| days * DAY_MS), now_ms())?;
    let renewed =
        Renewed { certificate: certificate.name().to_string(), not_after_ms: certificate.validity().not_after_ms };
    let text =
        || fields(&[("certificate", renewed.certificate.clone()), ("valid", certificate.validity().to_string())]);
    Ok(global.output().print(&renewed, text)?)
}

fn issue(global: &Global, file: &Path, days: u64, issuer_id: &str, output: Option<&Path>) -> Result<(), Failure> {
    let issuer = global.identity.as_ref().ok_or_else(|| Failure::usage("--identity must name the issuer"))?;
    let request = parse_certificate(&packet_of(read_file(file)?)?)?;
    // Whoever asks must have the key: the request is signed by it.
    if !request.public_key().is_ok_and(|key| request.verify(&key).is_ok()) {
        return Err(Failure::new(ExitCode::Failed, "the certificate to be certified is not signed by its own key"));
    }
    let now_ms = now_ms();
    let validity = ValidityPeriod {
        not_before_ms: now_ms.saturating_sub(1000),
        not_after_ms: now_ms.saturating_add(days * DAY_MS),
    };
    let issuer_id = Component::generic(issuer_id.as_bytes());
    let issued = issue_certificate(&signer(issuer)?, request.key_name(), request.spki(), issuer_id, now_ms, validity)
        .map_err(KeyChainError::from)?;
    write_base64(issued.wire(), output)
}

#[derive(Serialize)]
struct Revoked {
    certificate: String,
    reason: String,
    record: String,
    served_under: String,
}

fn revoke(global: &Global, named: &str, reason: RevocationReason, output: Option<&Path>) -> Result<(), Failure> {
    let (chain, file) = (open()?, Path::new(named));
    let certificate = if named == "-" || file.is_file() {
        parse_certificate(&packet_of(read_file(file)?)?)?
    } else {
        let name = name_argument::parse(named).map_err(Failure::usage)?;
        chain.parsed_certificate_of(name.as_name())?
    };
    let reason = reason.code();
    let record = chain.revoke(&certificate, reason, now_ms())?;
    write_base64(record.wire(), output)?;
    let revoked = Revoked {
        certificate: certificate.name().to_string(),
        reason: reason.to_string(),
        record: record.name().to_string(),
        served_under: record.name().parent().to_string(),
    };
    if output.is_none() {
        eprintln!("namewire: serve this Data under {}, or name its file in trust.revocations", revoked.served_under);
        return Ok(());
    }
    let text = || {
        fields(&[
            ("certificate", revoked.certificate.clone()),
            ("reason", revoked.reason.clone()),
            ("record", revoked.record.clone()),
            ("serve it under", revoked.served_under.clone()),
        ])
    };
    Ok(global.output().print(&revoked, text)?)
}

fn certificate_entry(chain: &KeyChain, name: &NameBuf) -> Result<Entry, Failure> {
    chain.certificate_of(name.as_name())?.ok_or_else(|| Failure::not_found(format!("{name} has no certificate")))
}

fn parse_certificate(wire: &[u8]) -> Result<Certificate, Failure> {
    Certificate::parse(wire).map_err(|error| Failure::new(ExitCode::Failed, format!("not a certificate: {error}")))
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis() as u64)
}
