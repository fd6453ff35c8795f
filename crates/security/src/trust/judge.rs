//! The validator: do the rules of a validator section accept a packet and the key that signed it?
//!
//! Source: ndn-cxx `security-validator-config.rst`. The first rule whose filters match the packet decides. One of its
//! checkers must accept the signature type and the KeyLocator. The certificate that the KeyLocator names must be a
//! trust anchor, or Data that the rules accept in the same way.
//!
//! If the section is an LVS schema, the schema decides who may sign the packet, and who may sign each certificate. It
//! sees the name in the KeyLocator; if that names a key only, also the name of the certificate that was found.
//!
//! Stricter than ndn-cxx: a trust anchor must be valid now, too. Limit: [`MAX_CHAIN`] certificates from the packet to
//! the anchor.

use super::{
    certificates::{Certificates, Teller},
    denial::Denial,
    instant::Instant,
    lvs::{Refusal, Schema},
    rules::{Checker, KeyLocatorRule, NameFilter, PacketKind, Rule, RulesOrAny, SchemaConfig, ValidatorConfig},
    signed_packet::SignedPacket,
};
use crate::{
    Certificate,
    certificate::{is_certificate_name, key_name_in},
    quoted_name::quoted,
};
use namewire_packet::{KeyLocator, Name, NameBuf, signature::signature_type};

/// Most certificates from a packet to its trust anchor.
pub const MAX_CHAIN: usize = 10;

/// ndn-cxx's name for the KeyLocator of a DigestSha256 signature.
const DIGEST_SIGNER: &str = "/localhost/identity/digest-sha256";

/// Signatures that prove a key of a schema. A digest proves no key, and the key of an HMAC is no certificate's.
const SIGNATURES_OF_SCHEMAS: [u64; 3] =
    [signature_type::SHA256_ECDSA, signature_type::ED25519, signature_type::SHA256_RSA];

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
    let policy = match section {
        RulesOrAny::Any => return Ok(Signatory::Anyone),
        RulesOrAny::Rules(rules) => Policy::Rules(rules),
        RulesOrAny::Schema(schema) => Policy::Schema(schema),
    };
    Judge { host, policy, certificates, at: Instant::now(now_unix_ms) }.packet(kind, packet, 0)
}

/// Who decides which key may sign a name.
#[derive(Clone, Copy)]
enum Policy<'a> {
    Rules(&'a ValidatorConfig),
    Schema(&'a SchemaConfig),
}

/// May a key sign a packet?
struct Permission<'a> {
    /// If this schema lets the key's certificate sign it: the KeyLocator names the key only.
    if_certificate: Option<&'a Schema>,
    /// Certificates also count that were valid when the packet was signed.
    at_signing_time: bool,
}

#[derive(Clone, Copy)]
struct Judge<'a> {
    host: Option<Teller>,
    policy: Policy<'a>,
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
        let permission = self.may_sign(kind, packet, signer)?;
        if packet.is_digest() {
            packet.verify_digest()?;
            return Ok(Signatory::Anyone);
        }
        // The rule of the packet decides about the instant, and those of the certificates do not change it.
        let is_of_signing = depth == 0 && permission.at_signing_time;
        let at = if is_of_signing { self.at.signed_at(packet.time_ms) } else { self.at };
        let judge = Judge { at, ..*self };
        let found = judge.find(signer)?;
        let certificate = found.certificate;
        if let Some(schema) = permission.if_certificate {
            let checked = schema.check(packet.plain_name, certificate.name());
            checked.map_err(|refusal| Denial::not_allowed(refusal.to_string()))?;
        }
        judge.trust(&found, depth)?;
        let key = certificate
            .public_key()
            .map_err(|error| Denial::BadSignature(format!("{}: {error}", quoted(certificate.name()))))?;
        packet.verify(&key)?;
        Ok(Signatory::Key(certificate.key_name().to_buf()))
    }

    /// May the key with this name sign the packet?
    fn may_sign(
        &self,
        kind: PacketKind,
        packet: &SignedPacket<'_>,
        signer: Name<'_>,
    ) -> Result<Permission<'a>, Denial> {
        match self.policy {
            Policy::Rules(rules) => check_rules(rules, kind, packet, signer)
                .map(|rule| Permission { if_certificate: None, at_signing_time: rule.at_signing_time }),
            Policy::Schema(config) => {
                if !SIGNATURES_OF_SCHEMAS.contains(&packet.signature_type()) {
                    return Err(Denial::not_allowed(format!("the schema does not let {} sign", packet.signer())));
                }
                let if_certificate = match config.schema.check(packet.plain_name, signer) {
                    Ok(_) => None,
                    Err(Refusal::OtherSigner { .. }) if !is_certificate_name(signer) => Some(&*config.schema),
                    Err(refusal) => return Err(Denial::not_allowed(refusal.to_string())),
                };
                Ok(Permission { if_certificate, at_signing_time: config.at_signing_time })
            }
        }
    }

    /// The certificate of the key that a KeyLocator names.
    fn find(&self, locator: Name<'_>) -> Result<Found<'a>, Failure> {
        self.at_hand(locator).ok_or_else(|| Failure::CertificateMissing(locator.to_buf()))
    }

    /// The anchor that a KeyLocator names, or else the fetched certificate, which need not be trusted.
    fn at_hand(&self, locator: Name<'_>) -> Option<Found<'a>> {
        let anchors = match self.policy {
            Policy::Rules(rules) => &rules.anchors,
            Policy::Schema(config) => &config.anchors,
        };
        if let Some(certificate) = self.certificates.anchor(anchors, locator) {
            return Some(Found { certificate, is_anchor: true });
        }
        let certificate = self.certificates.fetched(locator, self.host, self.at.now_ms)?;
        Some(Found { certificate, is_anchor: false })
    }

    /// Accepts a certificate that is an anchor, or Data that the policy accepts.
    fn trust(&self, found: &Found<'_>, depth: usize) -> Result<(), Failure> {
        let Found { certificate, is_anchor } = *found;
        self.at.check_validity(certificate)?;
        match self.policy {
            Policy::Schema(config) if is_anchor => {
                let is_root = config.check_anchor(certificate.name());
                is_root.map_err(|refused| Denial::not_allowed(refused.to_string()))?;
            }
            _ if is_anchor => {}
            _ => drop(self.packet(PacketKind::Data, &SignedPacket::of_data(&certificate.data()), depth + 1)?),
        }
        let issuer = match certificate.key_locator() {
            Some(KeyLocator::Name(issuer)) if !is_anchor => self.at_hand(issuer).map(|found| found.certificate),
            _ => None,
        };
        Ok(self.certificates.revocations().check(certificate, issuer, self.at)?)
    }
}

/// A certificate that a KeyLocator names.
struct Found<'a> {
    certificate: &'a Certificate,
    /// True if it needs no proof.
    is_anchor: bool,
}

/// The first rule that catches the packet decides.
fn check_rules<'a>(
    config: &'a ValidatorConfig,
    kind: PacketKind,
    packet: &SignedPacket<'_>,
    signer: Name<'_>,
) -> Result<&'a Rule, Denial> {
    let mut rules = config.rules.iter().filter(|rule| rule.packet == kind);
    let rule = rules.find(|rule| catches(rule, packet.name));
    let rule = rule.ok_or_else(|| Denial::not_allowed(format!("no rule is for {}", quoted(packet.name))))?;
    if rule.checkers.iter().any(|checker| accepts(checker, packet, signer)) {
        return Ok(rule);
    }
    Err(Denial::not_allowed(format!("rule \"{}\" does not let {} sign this", rule.id, packet.signer())))
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
