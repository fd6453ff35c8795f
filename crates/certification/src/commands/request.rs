//! `namewire cert info`, `request` and `renew`: from an authority over the network.
//!
//! An authority must be known before anybody tells it an address or a code: by its certificate or that of somebody who
//! vouches for it (`--anchor`), or by the digest of its certificate (`--digest`), which people can read out to each
//! other.

use super::{DAY_MS, digest_text, end_text, failed, now_ms, open_key_chain, parse_name, read_certificate};
use namewire_certificates::request::{
    CaProfile, CaTrust, CertificationError, Challenge, Need, Parameters, Question, RequestedKey, Terms, ca_profile,
    probe_names, renew_certificate, request_certificate,
};
use namewire_client::{Client, Validator};
use namewire_packet::NameBuf;
use namewire_printing::output::fields;
use namewire_security::{
    Certificate, PrivateKey,
    key_chain::{KeyChain, KeyChainError},
};
use namewire_tools::{ExitCode, Failure, Global};
use serde::Serialize;
use std::{io, path::PathBuf};

/// The challenge that is chosen if nothing says another one.
const USUAL_CHALLENGE: &str = "pin";

/// How the authority is known.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct TrustArgs {
    /// Certificate of the authority, or of somebody who vouches for it
    #[arg(long, value_name = "CERTIFICATE")]
    pub anchor: Option<PathBuf>,
    /// SHA-256 digest of the authority's certificate, as `cert info` shows it
    #[arg(long, value_name = "HEX", conflicts_with = "anchor", value_parser = parse_digest)]
    pub digest: Option<[u8; 32]>,
}

fn parse_digest(text: &str) -> Result<[u8; 32], String> {
    let digits: String = text.chars().filter(|c| !matches!(c, ':' | ' ')).collect();
    let mut digest = [0; 32];
    if digits.len() != 64 || !digits.is_ascii() {
        return Err("a SHA-256 digest has 64 hexadecimal digits".to_owned());
    }
    for (byte, pair) in digest.iter_mut().zip(digits.as_bytes().chunks(2)) {
        let pair = std::str::from_utf8(pair).unwrap_or_default();
        *byte = u8::from_str_radix(pair, 16).map_err(|_| format!("{pair} is not hexadecimal"))?;
    }
    Ok(digest)
}

impl TrustArgs {
    /// The authority of a prefix, if it is the one that is known.
    ///
    /// # Errors
    /// If nobody answers, if it is another one, or if nothing says which one is right.
    pub async fn profile(&self, client: &Client, prefix: &NameBuf) -> Result<CaProfile, Failure> {
        if let Some(path) = &self.anchor {
            let schema = Validator::hierarchical([read_certificate(path)?]);
            return ca_profile(client, prefix, CaTrust::Schema(&schema)).await.map_err(not_certified);
        }
        if let Some(digest) = self.digest {
            return ca_profile(client, prefix, CaTrust::Digest(digest)).await.map_err(not_certified);
        }
        let found = ca_profile(client, prefix, CaTrust::Nothing).await.map_err(not_certified)?;
        let digest = digest_text(&found.certificate);
        Err(Failure::usage(format!(
            "who answers for {prefix} has the certificate {} with the digest\n{digest}\nIf its operator told you the same, \
             add --digest {digest}; or give its certificate by --anchor FILE.",
            found.certificate.name()
        )))
    }
}

/// A failure with the exit code of its cause.
pub(crate) fn not_certified(error: CertificationError) -> Failure {
    match &error {
        CertificationError::NoAnswer(_, cause) => Failure::new(Failure::from(cause.clone()).code(), error.to_string()),
        _ => failed(error),
    }
}

/// The arguments of `cert info`.
#[derive(Debug, clap::Args)]
pub struct InfoArgs {
    /// Prefix of the authority, for example /site
    #[arg(value_parser = parse_name)]
    prefix: NameBuf,
}

#[derive(Serialize)]
struct Info {
    prefix: String,
    info: String,
    certificate: String,
    digest: String,
    ends: String,
    longest_days: u64,
    asks_for: Vec<String>,
}

pub(crate) async fn info(global: &Global, args: InfoArgs) -> Result<(), Failure> {
    let client = global.connect().await?;
    let profile = ca_profile(&client, &args.prefix, CaTrust::Nothing).await.map_err(not_certified)?;
    let info = Info {
        prefix: profile.prefix.to_string(),
        info: profile.info.chars().map(|c| if c.is_control() { ' ' } else { c }).collect(),
        certificate: profile.certificate.name().to_string(),
        digest: digest_text(&profile.certificate),
        ends: end_text(&profile.certificate),
        longest_days: profile.max_validity_ms / DAY_MS,
        asks_for: profile.probe_keys,
    };
    let text = || {
        fields(&[
            ("prefix", info.prefix.clone()),
            ("about", info.info.clone()),
            ("certificate", info.certificate.clone()),
            ("digest", info.digest.clone()),
            ("ends", info.ends.clone()),
            ("gives", format!("at most {} days", info.longest_days)),
        ])
    };
    Ok(global.output().print(&info, text)?)
}

/// What proves that the name is the requester's.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ProofArgs {
    /// How to prove that the name is yours: pin, email, possession, dns, or one of the authority's own [default: pin,
    /// or what the other options say]
    #[arg(long, value_name = "CHALLENGE")]
    pub challenge: Option<String>,
    /// Code that the operator gave you, or that came by mail [default: asked for]
    #[arg(long, visible_alias = "pin", value_name = "CODE")]
    pub code: Option<String>,
    /// Your address, for the challenge email
    #[arg(long, value_name = "ADDRESS")]
    pub email: Option<String>,
    /// Your domain, for the challenge dns
    #[arg(long, value_name = "DOMAIN")]
    pub domain: Option<String>,
    /// Identity, key or certificate that you have already, for the challenge possession
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub with: Option<NameBuf>,
    /// What a challenge of the authority's own asks for; may be repeated
    #[arg(long = "parameter", value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub parameters: Vec<(String, String)>,
}

pub(crate) fn parse_pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("a parameter is KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

impl ProofArgs {
    fn challenge(&self, chain: &KeyChain) -> Result<Challenge, Failure> {
        let implied = match (&self.email, &self.domain, &self.with) {
            (Some(_), ..) => "email",
            (_, Some(_), _) => "dns",
            (.., Some(_)) => "possession",
            _ => USUAL_CHALLENGE,
        };
        let needs = |option: &str| Failure::usage(format!("this challenge needs {option}"));
        Ok(match self.challenge.as_deref().unwrap_or(implied) {
            "pin" => Challenge::Pin,
            "email" => Challenge::Email(self.email.clone().ok_or_else(|| needs("--email"))?),
            "dns" => Challenge::Dns(self.domain.clone().ok_or_else(|| needs("--domain"))?),
            "possession" => {
                let held = self.with.as_ref().ok_or_else(|| needs("--with"))?;
                let certificate = chain.parsed_certificate_of(held.as_name())?;
                Challenge::Possession(Box::new(certificate), chain.lasting_signer(held.as_name())?)
            }
            other => {
                let pairs = self.parameters.iter();
                let said = pairs.fold(Parameters::default(), |said, (key, value)| said.with(key, value.as_str()));
                Challenge::Other(other.to_owned(), said)
            }
        })
    }
}

/// The arguments of `cert request`.
#[derive(Debug, clap::Args)]
pub struct RequestArgs {
    /// Identity to certify, below the authority's prefix [default: what the authority offers for --email]
    #[arg(value_parser = parse_name)]
    name: Option<NameBuf>,
    /// Prefix of the authority
    #[arg(long, value_name = "PREFIX", value_parser = parse_name)]
    ca: NameBuf,
    /// Days for which the certificate is to hold [default: as many as the authority allows]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..=36500))]
    days: Option<u64>,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    proof: ProofArgs,
}

#[derive(Serialize)]
struct Got {
    certificate: String,
    identity: String,
    ends: String,
}

fn print_got(global: &Global, certificate: &Certificate) -> Result<(), Failure> {
    let got = Got {
        certificate: certificate.name().to_string(),
        identity: certificate.identity().to_string(),
        ends: end_text(certificate),
    };
    let text =
        || format!("{}\nholds until {}, and is what {} signs with now\n", got.certificate, got.ends, got.identity);
    Ok(global.output().print(&got, text)?)
}

pub(crate) async fn request(global: &Global, args: RequestArgs) -> Result<(), Failure> {
    let client = global.connect().await?;
    let profile = args.trust.profile(&client, &args.ca).await?;
    let name = match args.name {
        Some(name) => name,
        None => offered_name(&client, &profile, &args.proof).await?,
    };
    let certificate =
        get_certificate(&client, profile, &name, &args.proof, args.days.map(|days| days * DAY_MS)).await?;
    print_got(global, &certificate)
}

/// The name that the authority offers for what the requester says about itself.
pub(crate) async fn offered_name(client: &Client, profile: &CaProfile, proof: &ProofArgs) -> Result<NameBuf, Failure> {
    let which =
        || Failure::usage(format!("which name? The authority certifies names below {}; give one", profile.prefix));
    let email = proof.email.as_ref().ok_or_else(which)?;
    let said = Parameters::default().with("email", email.as_str());
    let names = probe_names(client, profile, &said).await.map_err(not_certified)?;
    let whole = names.into_iter().map(|(name, _)| name).find(|name| name.len() > profile.prefix.len());
    whole.ok_or_else(which)
}

/// Gets a certificate for the key of an identity, which is made if there is none, and makes it the key's default.
pub(crate) async fn get_certificate(
    client: &Client,
    profile: CaProfile,
    identity: &NameBuf,
    proof: &ProofArgs,
    period_ms: Option<u64>,
) -> Result<Certificate, Failure> {
    if !profile.prefix.as_name().is_prefix_of(&identity.as_name()) {
        let line = format!("the authority of {} certifies no name outside of it, such as {identity}", profile.prefix);
        return Err(Failure::usage(line));
    }
    let chain = open_key_chain()?;
    let challenge = proof.challenge(&chain)?;
    let is_new = chain.key_of(identity.as_name()).is_err();
    let key = key_of(&chain, identity)?;
    let mut given = proof.code.clone();
    let ask = async |need: Need, question: Question| ask_user(need, question, given.take()).await;
    let terms = Terms { period_ms, ..Terms::now() };
    let requested = request_certificate(client, profile, key, &challenge, terms, ask).await;
    if requested.is_err() && is_new {
        chain.remove(identity.as_name())?;
    }
    let certificate = requested.map_err(not_certified)?;
    chain.adopt_certificate(&certificate, now_ms())?;
    Ok(certificate)
}

/// The default key of an identity, made if there is none.
fn key_of(chain: &KeyChain, identity: &NameBuf) -> Result<RequestedKey, Failure> {
    let entry = match chain.key_of(identity.as_name()) {
        Err(KeyChainError::NotFound(_) | KeyChainError::NoKey(_)) => {
            let key = PrivateKey::generate_ecdsa().map_err(failed)?;
            chain.add_identity_key(identity.as_name(), key, now_ms())?;
            chain.key_of(identity.as_name())?
        }
        entry => entry?,
    };
    let signer = chain.lasting_signer(entry.name.as_name())?;
    Ok(RequestedKey { name: entry.name, spki: entry.bytes, signer })
}

/// Gets from the user what a question needs. A code that was given on the command line is taken once.
async fn ask_user(need: Need, question: Question, given: Option<String>) -> Result<Option<String>, String> {
    let tries = match question.remaining_tries {
        0 => String::new(),
        1 => " (the last try)".to_owned(),
        tries => format!(" ({tries} tries)"),
    };
    match need {
        Need::Nothing => Ok(None),
        Need::Code => match given.filter(|_| question.status != "wrong-code") {
            Some(code) => Ok(Some(code)),
            None => {
                let what = match question.status.as_str() {
                    "need-code" => "Code",
                    "wrong-code" => "That code is wrong. Code",
                    other => other,
                };
                let code = read_line(format!("{what}{tries}: ")).await?;
                code.map(Some).ok_or_else(|| match question.status.as_str() {
                    "wrong-code" => "the code is wrong".to_owned(),
                    "need-code" => "the authority asks for a code: give it by --code".to_owned(),
                    _ => format!("the authority asks {:?}", question.status),
                })
            }
        },
        Need::Record(name, value) => {
            let again = if question.status == "need-record" { "" } else { "The record is not there yet. " };
            let prompt = format!("{again}Make the DNS record{tries}\n  {name}  TXT  \"{value}\"\nand press Enter: ");
            read_line(prompt).await.map(|_| None)
        }
    }
}

/// A line of standard input; `None` at its end.
async fn read_line(prompt: String) -> Result<Option<String>, String> {
    let read = tokio::task::spawn_blocking(move || {
        eprint!("{}", prompt.chars().filter(|c| *c == '\n' || !c.is_control()).collect::<String>());
        let mut line = String::new();
        io::stdin().read_line(&mut line).map(|read| (read, line))
    });
    match read.await {
        Ok(Ok((0, _))) => {
            eprintln!();
            Ok(None)
        }
        Ok(Ok((_, line))) => Ok(Some(line.trim().to_owned())),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// The arguments of `cert renew`.
#[derive(Debug, clap::Args)]
pub struct RenewArgs {
    /// Identity, key or certificate
    #[arg(value_parser = parse_name)]
    name: NameBuf,
    /// Days for which the new certificate is to hold [default: as long as the present one]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..=36500))]
    days: Option<u64>,
    /// Certificate of somebody who vouches for the authority, if the authority has a new key
    #[arg(long, value_name = "CERTIFICATE")]
    anchor: Option<PathBuf>,
}

pub(crate) async fn renew(global: &Global, args: RenewArgs) -> Result<(), Failure> {
    let chain = open_key_chain()?;
    let present = chain.parsed_certificate_of(args.name.as_name())?;
    if present.names_itself_as_issuer() {
        let line = format!("{} is self-signed: `namewire key renew` renews it", present.name());
        return Err(Failure::new(ExitCode::Usage, line));
    }
    let signer = chain.lasting_signer(present.key_name())?;
    let schema =
        args.anchor.as_deref().map(read_certificate).transpose()?.map(|anchor| Validator::hierarchical([anchor]));
    let client = global.connect().await?;
    let validity = present.validity();
    let as_before_ms = validity.not_after_ms.saturating_sub(validity.not_before_ms);
    let period_ms = Some(args.days.map_or(as_before_ms, |days| days * DAY_MS));
    let terms = Terms { period_ms, ..Terms::now() };
    let renewed = renew_certificate(&client, &present, &signer, terms, schema.as_ref()).await.map_err(not_certified)?;
    chain.adopt_certificate(&renewed, now_ms())?;
    print_got(global, &renewed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_may_have_colons() {
        let digits = "0a".repeat(32);
        let colons: Vec<String> =
            digits.as_bytes().chunks(2).map(|pair| String::from_utf8_lossy(pair).into()).collect();
        assert_eq!(parse_digest(&digits), Ok([10; 32]));
        assert_eq!(parse_digest(&colons.join(":")), Ok([10; 32]));
        assert!(parse_digest("0a").is_err() && parse_digest(&"zz".repeat(32)).is_err());
    }
}
