//! The validator: do the rules of a validator section accept a packet and the key that signed it?
//!
//! Source: ndn-cxx `security-validator-config.rst`. The first rule whose filters match the packet decides. One of its
//! checkers must accept the signature type and the KeyLocator. The certificate that the KeyLocator names must be a
//! trust anchor, or Data that the rules accept in the same way.
//!
//! Stricter than ndn-cxx: a trust anchor must be valid now, too. Limit: [`MAX_CHAIN`] certificates from the packet to
//! the anchor.

use super::{
    certificates::{Certificates, Teller},
    denial::{Denial, quoted},
    instant::Instant,
    rules::{Checker, KeyLocatorRule, NameFilter, PacketKind, Rule, RulesOrAny, ValidatorConfig},
    signed_packet::SignedPacket,
};
use crate::{Certificate, certificate::key_name_in};
use namewire_packet::{KeyLocator, Name, NameBuf};

/// Most certificates from a packet to its trust anchor.
pub const MAX_CHAIN: usize = 10;

/// ndn-cxx's name for the KeyLocator of a DigestSha256 signature.
const DIGEST_SIGNER: &str = "/localhost/identity/digest-sha256";

/// Why a packet is not accepted, or not yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The rules refuse it.
    Denied(Denial),
    /// This certificate (or one of this key) is needed and is not at hand.
    CertificateMissing(NameBuf),
}

impl From<Denial> for Failure {
    fn from(denial: Denial) -> Self {
        Failure::Denied(denial)
    }
}

/// The verified sender of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signatory {
    /// The signature was not checked, or only a digest was right: it may be any sender.
    Anyone,
    /// The holder of this key.
    Key(NameBuf),
}

/// Judges one packet by one validator section.
///
/// # Errors
/// Why the section does not accept it, or which certificate it needs first.
pub fn judge(
    section: &RulesOrAny,
    kind: PacketKind,
    packet: &SignedPacket<'_>,
    certificates: &Certificates,
    now_unix_ms: u64,
) -> Result<Signatory, Failure> {
    judge_from(None, section, kind, packet, certificates, now_unix_ms)
}

/// Judges one packet that `host` sent: certificates that this host told count, too.
///
/// # Errors
/// As [`judge`].
pub fn judge_from(
    host: Option<Teller>,
    section: &RulesOrAny,
    kind: PacketKind,
    packet: &SignedPacket<'_>,
    certificates: &Certificates,
    now_unix_ms: u64,
) -> Result<Signatory, Failure> {
    match section {
        RulesOrAny::Any => Ok(Signatory::Anyone),
        RulesOrAny::Rules(rules) => {
            Judge { host, rules, certificates, at: Instant::now(now_unix_ms) }.packet(kind, packet, 0)
        }
    }
}

#[derive(Clone, Copy)]
struct Judge<'a> {
    host: Option<Teller>,
    rules: &'a ValidatorConfig,
    certificates: &'a Certificates,
    at: Instant,
}

impl<'a> Judge<'a> {
    fn packet(&self, kind: PacketKind, packet: &SignedPacket<'_>, depth: usize) -> Result<Signatory, Failure> {
        if depth >= MAX_CHAIN {
            // A self-signed certificate that is no anchor leads to itself.
            let leads_to_itself = |name: Name<'_>| key_name_in(name).is_some_and(|key| key.is_prefix_of(&packet.name));
            if matches!(packet.key_locator(), Some(KeyLocator::Name(name)) if leads_to_itself(name)) {
                return Err(Denial::UnknownSigner(packet.signer()).into());
            }
            return Err(Denial::not_allowed(format!("more than {MAX_CHAIN} certificates to the trust anchor")).into());
        }
        let digest_signer;
        let signer = match packet.key_locator() {
            _ if packet.is_digest() => {
                digest_signer = DIGEST_SIGNER.parse::<NameBuf>().expect("a name of the source is well-formed");
                digest_signer.as_name()
            }
            // Any other name would be judged as an identity, whichever owner the key under it has.
            Some(KeyLocator::Name(name)) if key_name_in(name).is_some() => name,
            _ => return Err(Denial::UnknownSigner(packet.signer()).into()),
        };
        let rule = self.check_rules(kind, packet, signer)?;
        if packet.is_digest() {
            packet.verify_digest()?;
            return Ok(Signatory::Anyone);
        }
        // The rule of the packet decides about the instant, and those of the certificates do not change it.
        let is_of_signing = depth == 0 && rule.at_signing_time;
        let at = if is_of_signing { self.at.signed_at(packet.time_ms) } else { self.at };
        let certificate = Judge { at, ..*self }.certificate(signer, depth)?;
        let key = certificate
            .public_key()
            .map_err(|error| Denial::BadSignature(format!("{}: {error}", quoted(certificate.name()))))?;
        packet.verify(&key)?;
        Ok(Signatory::Key(certificate.key_name().to_buf()))
    }

    /// The first rule that catches the packet decides.
    fn check_rules(&self, kind: PacketKind, packet: &SignedPacket<'_>, signer: Name<'_>) -> Result<&'a Rule, Denial> {
        let mut rules = self.rules.rules.iter().filter(|rule| rule.packet == kind);
        let rule = rules.find(|rule| catches(rule, packet.name));
        let rule = rule.ok_or_else(|| Denial::not_allowed(format!("no rule is for {}", quoted(packet.name))))?;
        if rule.checkers.iter().any(|checker| accepts(checker, packet, signer)) {
            return Ok(rule);
        }
        Err(Denial::not_allowed(format!("rule \"{}\" does not let {} sign this", rule.id, packet.signer())))
    }

    /// A trusted certificate of the key that a KeyLocator names.
    fn certificate(&self, locator: Name<'_>, depth: usize) -> Result<&'a Certificate, Failure> {
        let revocations = self.certificates.revocations();
        if let Some(anchor) = self.certificates.anchor(&self.rules.anchors, locator) {
            self.at.check_validity(anchor)?;
            revocations.check(anchor, None, self.at)?;
            return Ok(anchor);
        }
        let missing = || Failure::CertificateMissing(locator.to_buf());
        let certificate = self.at_hand(locator).ok_or_else(missing)?;
        self.at.check_validity(certificate)?;
        self.packet(PacketKind::Data, &SignedPacket::of_data(&certificate.data()), depth + 1)?;
        let issuer = match certificate.key_locator() {
            Some(KeyLocator::Name(issuer)) => self.at_hand(issuer),
            _ => None,
        };
        revocations.check(certificate, issuer, self.at)?;
        Ok(certificate)
    }

    /// The anchor that a KeyLocator names, or else the fetched certificate, which need not be trusted.
    fn at_hand(&self, locator: Name<'_>) -> Option<&'a Certificate> {
        let anchor = self.certificates.anchor(&self.rules.anchors, locator);
        anchor.or_else(|| self.certificates.fetched(locator, self.host, self.at.now_ms))
    }
}

/// True if the rule applies to this name.
fn catches(rule: &Rule, name: Name<'_>) -> bool {
    rule.filters.is_empty()
        || rule.filters.iter().any(|filter| match filter {
            NameFilter::Relation(relation, with) => relation.holds(with.as_name(), name),
            NameFilter::Regex(regex) => regex.is_match(name),
        })
}

/// True if this signer may sign this packet.
fn accepts(checker: &Checker, packet: &SignedPacket<'_>, signer: Name<'_>) -> bool {
    if checker.signature_type != packet.signature_type() {
        return false;
    }
    match &checker.key_locator {
        KeyLocatorRule::Any => true,
        KeyLocatorRule::Relation(relation, with) => {
            let identity = key_name_in(signer).map_or(signer, |key| key.prefix(key.len() - 2)); // a digest has no key
            relation.holds(with.as_name(), identity)
        }
        KeyLocatorRule::Regex(regex) => regex.is_match(signer),
        KeyLocatorRule::Hyper(rule) => {
            let (Some(of_key), Some(of_packet)) = (rule.key.captures(signer), rule.packet.captures(packet.name)) else {
                return false;
            };
            let (key, name) = (rule.key_expand.expand(&of_key), rule.packet_expand.expand(&of_packet));
            rule.relation.holds(key.as_name(), name.as_name())
        }
    }
}
