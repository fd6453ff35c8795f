//! `namewire cert ca`, `pin` and `issued`: the authority of a site, and what its operator does beside it.

use super::{DAY_MS, digest_text, end_text, failed, location, now_ms, open_key_chain, parse_name, read_certificate};
use crate::{
    authority::{Authority, Change, Offer, Settings, pins::Pin},
    commands::request::parse_pair,
    service::{Commands, Service},
    store::Store,
};
use namewire_packet::{Name, NameBuf};
use namewire_printing::output::{Output, table};
use namewire_security::{
    Certificate, PrivateKey,
    key_chain::{KeyChain, KeyChainError},
};
use namewire_tools::{Failure, Global, RevocationReason, service::EndSignals};
use serde::Serialize;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

const HOUR_MS: u64 = 3_600_000;
/// Most certificates that `issued` lists.
const LISTED_MAX: u32 = 100_000;

/// The arguments of `cert ca`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The authority's key is that of the identity PREFIX in your key chain; it is made if there is none. \
Give its certificate to everybody: namewire key export-cert PREFIX. A code (namewire cert pin NAME) lets the owner of a \
name get its certificate without you; without one, the code that a request asks for is printed here."
)]
pub struct CaArgs {
    /// It certifies names below this prefix
    #[arg(value_parser = parse_name)]
    prefix: NameBuf,
    /// What it takes as proof, separated by commas: pin, possession, email; --command adds others
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "pin,possession")]
    challenge: Vec<BuiltIn>,
    /// Program that mails a code, for the challenge email: it gets address, code, prefix and name of the key
    #[arg(long, value_name = "PROGRAM")]
    mail_command: Option<PathBuf>,
    /// A challenge of your own, and the program that decides; see docs/certificates.md. May be repeated
    #[arg(long, value_name = "NAME=PROGRAM", value_parser = parse_pair)]
    command: Vec<(String, String)>,
    /// Certificate of another authority whose certificates prove the same name below PREFIX; may be repeated
    #[arg(long, value_name = "CERTIFICATE")]
    accept: Vec<PathBuf>,
    /// Days for which a certificate holds at most
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=36500))]
    days: u64,
    /// Most components of a name after PREFIX
    #[arg(long, value_name = "COMPONENTS", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=32))]
    max_suffix: u8,
    /// What the authority says about itself
    #[arg(long, value_name = "TEXT", default_value = "")]
    info: String,
    #[command(flatten)]
    state: StateArgs,
}

/// Where the authority keeps its state.
#[derive(Debug, clap::Args)]
pub struct StateArgs {
    /// File of the authority's state [default: namewire-ca/PREFIX.db beside the key chain]
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
}

impl StateArgs {
    fn path(&self, prefix: Name<'_>) -> Result<PathBuf, Failure> {
        match &self.state {
            Some(path) => Ok(path.clone()),
            None => {
                // `%` first, so that no two prefixes have one file.
                let file = prefix.to_string().trim_matches('/').replace('%', "%25").replace('/', "%2F");
                Ok(location()?.0.pib_directory.join("namewire-ca").join(format!("{file}.db")))
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum BuiltIn {
    /// A code from you
    Pin,
    /// A certificate that the requester has: of this authority, to renew it, or of one in --accept
    Possession,
    /// A code by mail, for names that are addresses
    Email,
}

impl CaArgs {
    fn proofs(&self) -> Result<Vec<Offer>, Failure> {
        let mut offers = Vec::new();
        for built_in in &self.challenge {
            offers.push(match built_in {
                BuiltIn::Pin => Offer::Pin,
                BuiltIn::Email if self.mail_command.is_none() => {
                    return Err(Failure::usage("the challenge email needs --mail-command"));
                }
                BuiltIn::Email => Offer::Email,
                BuiltIn::Possession => {
                    let read = |path: &PathBuf| Ok(read_certificate(path)?.certificate().clone());
                    Offer::Possession(self.accept.iter().map(read).collect::<Result<_, Failure>>()?)
                }
            });
        }
        offers.extend(self.command.iter().map(|(id, _)| Offer::Command(id.clone())));
        let is_double = |offer: &Offer| offers.iter().filter(|other| other.id() == offer.id()).count() > 1;
        if let Some(double) = offers.iter().find(|offer| is_double(offer)) {
            return Err(Failure::usage(format!("the challenge {} is named twice", double.id())));
        }
        if !self.accept.is_empty() && !self.challenge.contains(&BuiltIn::Possession) {
            return Err(Failure::usage("--accept is for the challenge possession"));
        }
        Ok(offers)
    }
}

pub(crate) async fn execute(global: &Global, args: CaArgs) -> Result<(), Failure> {
    let mut end = EndSignals::listen()?;
    let proofs = args.proofs()?;
    let chain = open_key_chain()?;
    let certificate = own_certificate(&chain, &args.prefix)?;
    let signer = chain.lasting_signer(certificate.key_name())?;
    let settings = Settings {
        prefix: args.prefix.clone(),
        info: if args.info.is_empty() { format!("Authority of {}", args.prefix) } else { args.info.clone() },
        max_validity_ms: args.days * DAY_MS,
        max_suffix: usize::from(args.max_suffix),
        issuer_id: "NDNCERT".to_owned(),
        proofs,
    };
    for program in args.command.iter().map(|(_, program)| Path::new(program)).chain(args.mail_command.as_deref()) {
        if !program.is_file() {
            return Err(Failure::usage(format!("{}: there is no such program", program.display())));
        }
    }
    let authority = Authority::new(settings, certificate.clone(), signer.clone(), now_ms()).map_err(failed)?;
    let path = args.state.path(args.prefix.as_name())?;
    let store = Store::open(&path).map_err(failed)?;
    // The system takes it back when this process ends.
    let _lock = store.lock().map_err(failed)?;
    let judges = args.command.iter().map(|(id, program)| (id.clone(), PathBuf::from(program))).collect();
    let commands = Commands { mail: args.mail_command, judges };
    let output = global.output();
    let tell = move |change: &Change| tell(output, change);
    let service = Arc::new(Service::new(authority, store, signer, commands, tell).map_err(failed)?);
    let client = global.connect().await?;
    eprintln!("authority of {}", args.prefix);
    eprintln!("  certificate  {}", certificate.name());
    eprintln!("  digest       {}", digest_text(&certificate));
    eprintln!("  state        {}", path.display());
    tokio::select! {
        served = Arc::clone(&service).run(&client) => served.map_err(failed)?,
        () = service.keep_own_certificate(chain, client.clone()) => {}
        () = end.came() => {}
    }
    Ok(())
}

/// The certificate of the authority's key, which is made if there is none.
fn own_certificate(chain: &KeyChain, prefix: &NameBuf) -> Result<Certificate, Failure> {
    match chain.parsed_certificate_of(prefix.as_name()) {
        Err(KeyChainError::NotFound(_) | KeyChainError::NoKey(_)) => {
            let key = PrivateKey::generate_ecdsa().map_err(failed)?;
            let made = chain.add_identity_key(prefix.as_name(), key, now_ms())?;
            eprintln!(
                "namewire: made a key of {prefix}; `namewire key export-cert {prefix}` prints its certificate for others"
            );
            Ok(made)
        }
        certificate => Ok(certificate?),
    }
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Told<'a> {
    Code { identity: String, key: String, code: &'a str },
    Issued { certificate: String, ends: String },
    Refused { who: String, why: &'a str },
}

/// Prints what the operator wants to know. Standard output may be gone; the authority goes on.
fn tell(output: Output, change: &Change) {
    let told = match change {
        Change::Code { identity, key_name, code } => {
            Told::Code { identity: identity.to_string(), key: key_name.to_string(), code }
        }
        Change::Issued(certificate) => {
            Told::Issued { certificate: certificate.name().to_string(), ends: end_text(certificate) }
        }
        Change::Refused { who, why } => Told::Refused { who: who.to_string(), why },
        Change::Keep(_) | Change::Forget(_) | Change::PinUsed(_) => return,
    };
    let text = || match &told {
        Told::Code { identity, key, code } => {
            format!("code {code} for {identity}, unless it has one of `cert pin`; its key is {key}")
        }
        Told::Issued { certificate, ends } => format!("issued {certificate}, until {ends}"),
        Told::Refused { who, why } => format!("refused {who}: {why}"),
    };
    let _ = output.print_line(&told, text);
}

/// The arguments of `cert pin`.
#[derive(Debug, clap::Args)]
pub struct PinArgs {
    /// Identity that the code is for, and those below it
    #[arg(value_parser = parse_name)]
    name: NameBuf,
    /// Prefix of the authority [default: the name without its last component]
    #[arg(long, value_name = "PREFIX", value_parser = parse_name)]
    ca: Option<NameBuf>,
    /// Hours for which the code is good
    #[arg(long, value_name = "HOURS", default_value_t = 24, value_parser = clap::value_parser!(u64).range(1..=87600))]
    hours: u64,
    #[command(flatten)]
    state: StateArgs,
}

#[derive(Serialize)]
struct MadePin {
    name: String,
    code: String,
    expires_ms: u64,
}

pub(crate) fn pin(global: &Global, args: &PinArgs) -> Result<(), Failure> {
    let prefix = authority_above(&args.name, args.ca.as_ref(), &args.state)?;
    let path = args.state.path(prefix.as_name())?;
    let now_ms = now_ms();
    let pin = Pin::generate(args.name.clone(), now_ms + args.hours * HOUR_MS)
        .ok_or_else(|| failed("the system provides no random numbers"))?;
    Store::open(&path).and_then(|store| store.add_pin(&pin, now_ms)).map_err(failed)?;
    let made = MadePin { name: pin.name.to_string(), code: pin.readable(), expires_ms: pin.expires_ms };
    Ok(global.output().print(&made, || format!("{}\n", made.code))?)
}

/// The prefix of the authority that certifies this name: the one given, or the nearest above that has its state here.
fn authority_above(name: &NameBuf, given: Option<&NameBuf>, state: &StateArgs) -> Result<NameBuf, Failure> {
    let above = |prefix: &NameBuf| prefix.as_name().is_prefix_of(&name.as_name()) && prefix.len() < name.len();
    if let Some(given) = given {
        let line = || Failure::usage(format!("{name} is not below {given}"));
        return above(given).then(|| given.clone()).ok_or_else(line);
    }
    let mut prefix = name.clone();
    while prefix.len() > 1 {
        prefix.pop();
        if state.path(prefix.as_name())?.exists() {
            return Ok(prefix);
        }
    }
    Err(Failure::not_found(format!(
        "no authority above {name} has its state here: run `namewire cert ca` first, as this user, or name it by --ca"
    )))
}

/// The arguments of `cert revoke`.
#[derive(Debug, clap::Args)]
pub struct RevokeArgs {
    /// Identity, key or certificate: all that was issued to it is revoked
    #[arg(value_parser = parse_name)]
    name: NameBuf,
    /// Prefix of the authority [default: that above the name]
    #[arg(long, value_name = "PREFIX", value_parser = parse_name)]
    ca: Option<NameBuf>,
    /// Why
    #[arg(long, value_enum, default_value = "unspecified")]
    reason: RevocationReason,
    #[command(flatten)]
    state: StateArgs,
}

#[derive(Serialize)]
struct RevokedLine {
    certificate: String,
    record: String,
}

pub(crate) fn revoke(global: &Global, args: &RevokeArgs) -> Result<(), Failure> {
    let prefix = authority_above(&args.name, args.ca.as_ref(), &args.state)?;
    let store = Store::open(&args.state.path(prefix.as_name())?).map_err(failed)?;
    let certificates = store.issued_to(args.name.as_name()).map_err(failed)?;
    if certificates.is_empty() {
        return Err(Failure::not_found(format!("the authority of {prefix} has issued nothing to {}", args.name)));
    }
    let (chain, now_ms) = (open_key_chain()?, now_ms());
    let mut lines = Vec::new();
    for certificate in certificates {
        let record = chain.revoke(&certificate, args.reason.code(), now_ms)?;
        store.add_revoked(&record).map_err(failed)?;
        lines.push(RevokedLine { certificate: certificate.name().to_string(), record: record.name().to_string() });
    }
    let text = || lines.iter().map(|line| format!("revoked {}\n", line.certificate)).collect();
    Ok(global.output().print(&lines, text)?)
}

/// The arguments of `cert issued`.
#[derive(Debug, clap::Args)]
pub struct IssuedArgs {
    /// Prefix of the authority
    #[arg(value_parser = parse_name)]
    prefix: NameBuf,
    #[command(flatten)]
    state: StateArgs,
}

#[derive(Serialize)]
struct IssuedLine {
    certificate: String,
    not_after_ms: u64,
    ends: String,
}

pub(crate) fn issued(global: &Global, args: &IssuedArgs) -> Result<(), Failure> {
    let path = args.state.path(args.prefix.as_name())?;
    if !path.exists() {
        return Err(Failure::not_found(format!("{}: no authority has its state there", path.display())));
    }
    let certificates = Store::open(&path).and_then(|store| store.issued(LISTED_MAX)).map_err(failed)?;
    let lines: Vec<IssuedLine> = certificates
        .iter()
        .map(|certificate| IssuedLine {
            certificate: certificate.name().to_string(),
            not_after_ms: certificate.validity().not_after_ms,
            ends: end_text(certificate),
        })
        .collect();
    let text = || {
        let heading = vec!["ends".to_owned(), "certificate".to_owned()];
        let rows = lines.iter().map(|line| vec![line.ends.clone(), line.certificate.clone()]);
        table(&Vec::from_iter(std::iter::once(heading).chain(rows)), "no certificates")
    };
    Ok(global.output().print(&lines, text)?)
}
