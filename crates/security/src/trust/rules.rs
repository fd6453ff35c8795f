//! The rules of a trust schema: which names need which keys.
//!
//! Source: ndn-cxx's validator configuration (`security-validator-config.rst`).
//!
//! Limits: see [`NameRegex`]; the length of lists is not limited.

use super::{
    lvs::Schema,
    name_regex::{NameRegex, NameTemplate},
};
use crate::{Certificate, quoted_name::quoted};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use namewire_packet::{Name, NameBuf, signature::signature_type, tlv::types};
use std::{path::PathBuf, sync::Arc, time::Duration};

/// A validator section: rules, a schema, or a permission for all signed packets.
#[derive(Clone, Debug, PartialEq)]
pub enum RulesOrAny {
    /// `trust-anchor { type any }`: a signature must be there, but is not verified.
    Any,
    /// Rules and trust anchors.
    Rules(ValidatorConfig),
    /// A compiled schema and trust anchors.
    Schema(SchemaConfig),
}

impl RulesOrAny {
    /// The trust anchors.
    pub fn anchors(&self) -> &[TrustAnchor] {
        match self {
            RulesOrAny::Any => &[],
            RulesOrAny::Rules(rules) => &rules.anchors,
            RulesOrAny::Schema(schema) => &schema.anchors,
        }
    }
}

/// A compiled LVS schema and trust anchors. It does not tell commands from Data: names decide. An anchor counts only if
/// its name follows one of the schema's roots of trust.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaConfig {
    /// The schema.
    pub schema: Arc<Schema>,
    /// Certificates that need no proof.
    pub anchors: Vec<TrustAnchor>,
    /// As [`Rule::at_signing_time`], for everything that the schema decides.
    pub at_signing_time: bool,
}

/// A trust anchor that a schema does not have as a root of trust.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the anchor {anchor} is no root of trust of the schema ({roots})")]
pub struct NotARoot {
    /// The anchor's name.
    pub anchor: String,
    /// The rules that a root of trust follows.
    pub roots: String,
}

impl SchemaConfig {
    /// A schema with these anchors.
    ///
    /// # Errors
    /// If one of them is no root of trust of the schema.
    pub fn new(schema: Schema, anchors: impl IntoIterator<Item = AnchorCertificate>) -> Result<Self, NotARoot> {
        let anchors = anchors.into_iter().map(TrustAnchor::Certificate).collect();
        let config = SchemaConfig { schema: Arc::new(schema), anchors, at_signing_time: false };
        for anchor in &config.anchors {
            if let TrustAnchor::Certificate(anchor) = anchor {
                config.check_anchor(anchor.certificate().name())?;
            }
        }
        Ok(config)
    }

    /// Refuses a trust anchor that no root of trust of the schema describes.
    ///
    /// # Errors
    /// If the schema has other roots of trust.
    pub fn check_anchor(&self, anchor: Name<'_>) -> Result<(), NotARoot> {
        if self.schema.roots_of(anchor).is_ok_and(|roots| !roots.is_empty()) {
            return Ok(());
        }
        Err(NotARoot { anchor: quoted(anchor), roots: self.schema.roots_of_trust().join(", ") })
    }
}

/// Rules and trust anchors. A packet must satisfy the first rule that catches it. A packet that no rule catches is
/// refused.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValidatorConfig {
    /// The rules, in the order of the configuration.
    pub rules: Vec<Rule>,
    /// Certificates that need no proof.
    pub anchors: Vec<TrustAnchor>,
}

impl ValidatorConfig {
    /// The usual schema for Data: a key signs names under its identity, and each chain of certificates ends at one of
    /// `anchors`.
    pub fn hierarchical(anchors: impl IntoIterator<Item = AnchorCertificate>) -> Self {
        let algorithms = [signature_type::SHA256_ECDSA, signature_type::ED25519, signature_type::SHA256_RSA];
        let rule = Rule {
            id: "hierarchical".to_owned(),
            packet: PacketKind::Data,
            filters: Vec::new(),
            checkers: algorithms.map(Checker::hierarchical).to_vec(),
            at_signing_time: false,
        };
        ValidatorConfig { rules: vec![rule], anchors: anchors.into_iter().map(TrustAnchor::Certificate).collect() }
    }
}

/// A kind of packet to which rules apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// Certificates and prefix announcements.
    Data,
    /// Commands.
    Interest,
}

/// One rule. It catches a packet if any filter does (or there is no filter). The packet satisfies the rule if it
/// satisfies any checker.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Its name in messages.
    pub id: String,
    /// The kind of packet it applies to.
    pub packet: PacketKind,
    /// The names it catches. A command's name ends before the digest component, or in the old format before
    /// SignatureInfo.
    pub filters: Vec<NameFilter>,
    /// The checkers; at least one.
    pub checkers: Vec<Checker>,
    /// True for old Data: certificates also count that were valid at the SignatureTime of the packet. The thief of a
    /// key that has expired can choose that time.
    pub at_signing_time: bool,
}

/// `filter { type name … }`.
#[derive(Clone, Debug, PartialEq)]
pub enum NameFilter {
    /// `name` and `relation`.
    Relation(NameRelation, NameBuf),
    /// `regex`.
    Regex(NameRegex),
}

/// How the configured name relates to the packet's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRelation {
    /// `equal`.
    Equal,
    /// `is-prefix-of`.
    IsPrefixOf,
    /// `is-strict-prefix-of`.
    IsStrictPrefixOf,
}

impl NameRelation {
    /// True if the relation holds between `first` and `second`.
    pub fn holds(self, first: Name<'_>, second: Name<'_>) -> bool {
        match self {
            NameRelation::Equal => first == second,
            NameRelation::IsPrefixOf => first.is_prefix_of(&second),
            NameRelation::IsStrictPrefixOf => first.is_prefix_of(&second) && first != second,
        }
    }
}

/// `checker`: the algorithm, and the key that each name needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Checker {
    /// One of [`signature_type`].
    pub signature_type: u64,
    /// The rule for the KeyLocator.
    pub key_locator: KeyLocatorRule,
}

/// The rule that a KeyLocator must satisfy.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyLocatorRule {
    /// Anything: `sig-type sha256` without `key-locator`.
    Any,
    /// This name and the signer's identity have this relation.
    Relation(NameRelation, NameBuf),
    /// The KeyLocator's name matches.
    Regex(NameRegex),
    /// Parts of the KeyLocator's name and of the packet's name have a relation.
    Hyper(Box<HyperRelation>),
}

/// `hyper-relation`: `key_expand`, filled from the KeyLocator's name, must have `relation` to `packet_expand`, filled
/// from the packet's name.
#[derive(Clone, Debug, PartialEq)]
pub struct HyperRelation {
    /// `k-regex`.
    pub key: NameRegex,
    /// `k-expand`.
    pub key_expand: NameTemplate,
    /// `h-relation`.
    pub relation: NameRelation,
    /// `p-regex`.
    pub packet: NameRegex,
    /// `p-expand`.
    pub packet_expand: NameTemplate,
}

impl Checker {
    /// `type hierarchical`: the signer's identity is a prefix of the packet's name.
    pub fn hierarchical(signature_type: u64) -> Self {
        let regex = |text| NameRegex::parse(text).expect("patterns in the source are well-formed");
        let first = || NameTemplate::parse("\\1").expect("templates in the source are well-formed");
        Checker {
            signature_type,
            key_locator: KeyLocatorRule::Hyper(Box::new(HyperRelation {
                key: regex("^(<>*)<KEY><>{1,3}$"),
                key_expand: first(),
                relation: NameRelation::IsPrefixOf,
                packet: regex("^(<>*)$"),
                packet_expand: first(),
            })),
        }
    }

    /// The number of a `sig-type`, if it exists. The default is `ecdsa-sha256`.
    pub fn signature_type_named(name: &str) -> Option<u64> {
        Some(match name.to_ascii_lowercase().as_str() {
            "sha256" => signature_type::DIGEST_SHA256,
            "rsa-sha256" => signature_type::SHA256_RSA,
            "ecdsa-sha256" => signature_type::SHA256_ECDSA,
            "ed25519" => signature_type::ED25519,
            _ => return None,
        })
    }
}

/// The place of trusted certificates.
#[derive(Clone, Debug, PartialEq)]
pub enum TrustAnchor {
    /// Given in the configuration (`type base64`).
    Certificate(AnchorCertificate),
    /// One certificate in base64 (`type file`), read again every `refresh`.
    File {
        /// Absolute, or relative to the directory where the router runs.
        path: PathBuf,
        /// `None`: never.
        refresh: Option<Duration>,
    },
    /// Every certificate in a directory (`type dir`), read again every `refresh`.
    Directory {
        /// Absolute, or relative to the directory where the router runs.
        path: PathBuf,
        /// `None`: never.
        refresh: Option<Duration>,
    },
}

/// A certificate that was read successfully. Its key can verify signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnchorCertificate(Certificate);

impl AnchorCertificate {
    /// Checks a certificate: its Data packet, or that in base64 with any white space, as `namewire key export-cert` and
    /// `ndnsec cert-dump` write it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(mut bytes: Vec<u8>) -> Result<Self, AnchorError> {
        let is_packet = bytes.first() == Some(&(types::DATA as u8)); // no character of base64
        let wire = if is_packet {
            bytes
        } else {
            bytes.retain(|byte| !byte.is_ascii_whitespace());
            STANDARD.decode(bytes).map_err(|error| AnchorError(format!("not base64: {error}")))?
        };
        let certificate = Certificate::parse(&wire).map_err(|error| AnchorError(error.to_string()))?;
        certificate.public_key().map_err(|error| AnchorError(error.to_string()))?;
        Ok(AnchorCertificate(certificate))
    }

    /// The certificate.
    pub const fn certificate(&self) -> &Certificate {
        &self.0
    }
}

/// Why bytes are not a certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a certificate: {0}")]
pub struct AnchorError(String);
