//! Light VerSec (LVS): trust schemas that are compiled once and that programs of several libraries share. Which key may
//! sign this name?
//!
//! Source: python-ndn's *Light VerSec*, *binary format* and its `Checker`, to which verdicts here are equal. NDNts and
//! ndnd read the same files.
//!
//! A schema is a tree of name patterns. An edge of the tree is one component of a name: a value, or a pattern that has
//! a number (its tag) and constraints. The node where a name ends names the rules that the name follows, and the nodes
//! that its signer's name must reach. A pattern that a packet's name has given a value keeps that value while the name
//! of the key is matched: so `/blog/alice/post` needs the key of `alice`.
//!
//! ```no_run
//! use namewire_security::trust::lvs::Schema;
//!
//! let schema = Schema::parse(&std::fs::read("blog.tlv")?)?;
//! let (post, key) = ("/blog/alice/post".parse()?, "/blog/alice/KEY/1/blog/v=1".parse()?);
//! let (post, key): (namewire_packet::NameBuf, namewire_packet::NameBuf) = (post, key);
//! assert!(schema.check(post.as_name(), key.as_name()).is_ok());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Cost: a look at one edge, or at one option of a constraint, is a step. A name is matched in at most as many steps as
//! the schema has edges and options, and a check matches the key's name once for each pattern that the packet's name
//! matches. Limits: [`MODEL_BYTES_MAX`], [`NODES_MAX`], [`DEPTH_MAX`], [`STEPS_MAX`], [`MATCHES_MAX`].
//!
//! Stricter than python-ndn when a schema is read: nodes form one tree, values are name components, and every function
//! that the schema calls exists.

mod functions;
mod matching;
mod model;
mod structure;

pub use functions::UserFunctions;
pub use matching::STEPS_MAX;
pub use model::{DEPTH_MAX, MODEL_BYTES_MAX, NODES_MAX, VERSION};

use crate::{Certificate, quoted_name::quoted};
use functions::Function;
use matching::{Matcher, Steps, Stop};
use model::Model;
use namewire_packet::{KeyLocator, Name, NameBuf, TlvError, tlv::types};
use std::fmt;

/// Most matches that [`Schema::matches`] finds.
pub const MATCHES_MAX: usize = 256;
/// Most rules that a refusal names.
const RULES_NAMED_MAX: usize = 4;

/// Why bytes are not a schema that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// A limit of this module was exceeded.
    #[error("a schema may have at most {limit} {what}")]
    TooLarge {
        /// The thing that is too large or too many.
        what: &'static str,
        /// Its limit.
        limit: usize,
    },
    /// The TLV structure is broken.
    #[error("not a compiled LVS schema: {0}")]
    Tlv(#[from] TlvError),
    /// An element is missing, or has a value that it cannot have.
    #[error("not a compiled LVS schema: {place} {problem}")]
    Malformed {
        /// The element.
        place: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The version is another one.
    #[error("the schema has version {0:#010x}, and version 0x00011000 is expected: compile it again")]
    Version(u64),
    /// Rules that sign each other.
    #[error("{0} would be signed by itself, directly or through other rules")]
    Circle(String),
    /// Functions that this program does not have.
    #[error("the schema calls {0}, which this program does not have")]
    UnknownFunctions(String),
}

/// Why a key may not sign a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No rule that a key may sign is for this name.
    #[error("no rule of the schema says who may sign {0}")]
    NoRule(String),
    /// The rules for this name need another key.
    #[error("{rules} of the schema does not let {signer} sign this")]
    OtherSigner {
        /// The rules.
        rules: String,
        /// The name of the key.
        signer: String,
    },
    /// The check would take more than [`STEPS_MAX`] steps.
    #[error("the schema needs more than {STEPS_MAX} steps for this name")]
    TooManySteps,
    /// A function needs the value of a pattern that comes later in the name.
    #[error("the schema calls {0} with a pattern that has no value yet")]
    NoValue(&'static str),
}

/// The rules by which a key may sign a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit<'s> {
    /// Rules that the name of the packet follows. Empty if the rule has no name.
    pub packet_rules: &'s [String],
    /// Rules that the name of the key follows.
    pub key_rules: &'s [String],
}

/// A way in which a name matches a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The rules, or `#_` and a number for one without a name.
    pub rules: Vec<String>,
    /// The names and values of the patterns that other names must match, too.
    pub values: Vec<PatternValue>,
}

/// The value that a name gives to a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternValue {
    /// The pattern, as the schema's author named it; its number if the schema does not say.
    pub pattern: String,
    /// The component, as URIs write it.
    pub value: String,
}

/// A checked schema, with the functions that it calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    model: Model,
    /// By the number that the model's calls have.
    functions: Vec<Function>,
    /// Nodes that sign others and that need no signature themselves, in order.
    roots: Vec<usize>,
}

impl Schema {
    /// Reads a compiled schema (`python-ndn`'s `compile_lvs(…).encode()`) that calls no functions but `$eq` and
    /// `$eq_type`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Self, SchemaError> {
        Self::parse_with(bytes, &UserFunctions::default())
    }

    /// As [`Schema::parse`], with these functions too.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse_with(bytes: &[u8], functions: &UserFunctions) -> Result<Self, SchemaError> {
        let model = model::read(bytes)?;
        structure::check(&model)?;
        let found: Vec<Option<Function>> = model.functions.iter().map(|name| functions.get(name)).collect();
        let unknown = model.functions.iter().zip(&found).filter(|(_, function)| function.is_none());
        let unknown: Vec<&str> = unknown.map(|(name, _)| name.as_str()).collect();
        if !unknown.is_empty() {
            return Err(SchemaError::UnknownFunctions(unknown.join(", ")));
        }
        let roots = structure::roots_of_trust(&model);
        Ok(Schema { functions: found.into_iter().flatten().collect(), roots, model })
    }

    /// May the key (or certificate) with this name sign a packet with this name?
    ///
    /// # Errors
    /// Why it may not.
    pub fn check(&self, packet: Name<'_>, key: Name<'_>) -> Result<Permit<'_>, Refusal> {
        let (packet, key) = (without_digest(packet), without_digest(key));
        let mut steps = Steps::default();
        let mut seen = Vec::new();
        let mut matches = Matcher::new(self, packet, Vec::new());
        while let Some(node) = matches.next_node(&mut steps)? {
            seen.push(node);
            let signers = &self.model.nodes[node].signers;
            if signers.is_empty() {
                continue;
            }
            let mut keys = Matcher::new(self, key, matches.values().to_vec());
            while let Some(key_node) = keys.next_node(&mut steps)? {
                if signers.binary_search(&key_node).is_ok() {
                    let rules = |node: usize| self.model.nodes[node].rules.as_slice();
                    return Ok(Permit { packet_rules: rules(node), key_rules: rules(key_node) });
                }
            }
        }
        Err(self.refusal(&seen, packet, key))
    }

    fn refusal(&self, seen: &[usize], packet: Name<'_>, key: Name<'_>) -> Refusal {
        let mut rules: Vec<String> = Vec::new();
        for node in seen.iter().filter(|node| !self.model.nodes[**node].signers.is_empty()) {
            let new = self.rules_of(*node).into_iter().filter(|rule| !rules.contains(rule)).collect::<Vec<_>>();
            rules.extend(new);
            if rules.len() >= RULES_NAMED_MAX {
                break;
            }
        }
        if rules.is_empty() {
            return Refusal::NoRule(quoted(packet));
        }
        rules.truncate(RULES_NAMED_MAX);
        Refusal::OtherSigner { rules: rules.join(", "), signer: quoted(key) }
    }

    /// The ways in which a name matches, at most [`MATCHES_MAX`].
    ///
    /// # Errors
    /// [`Refusal::TooManySteps`], [`Refusal::NoValue`].
    pub fn matches(&self, name: Name<'_>) -> Result<Vec<Match>, Refusal> {
        let (mut steps, mut found) = (Steps::default(), Vec::new());
        let mut matches = Matcher::new(self, without_digest(name), Vec::new());
        while found.len() < MATCHES_MAX
            && let Some(node) = matches.next_node(&mut steps)?
        {
            let value = |tag: u64, value| {
                let pattern = self.model.symbols.get(&tag).cloned().unwrap_or_else(|| tag.to_string());
                PatternValue { pattern, value }
            };
            let values = matches.values().iter().map(|bound| {
                let uri = NameBuf::new().join(bound.component).to_string();
                value(bound.tag, uri.trim_start_matches('/').to_owned())
            });
            found.push(Match { values: values.collect(), rules: self.rules_of(node) });
        }
        Ok(found)
    }

    /// The rules of the keys with which chains of signatures begin.
    pub fn roots_of_trust(&self) -> Vec<String> {
        let mut rules: Vec<String> = self.roots.iter().flat_map(|node| self.rules_of(*node)).collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    }

    /// The rules among [`Schema::roots_of_trust`] that a name follows. A trust anchor follows at least one.
    ///
    /// # Errors
    /// [`Refusal::TooManySteps`], [`Refusal::NoValue`].
    pub fn roots_of(&self, name: Name<'_>) -> Result<Vec<String>, Refusal> {
        let (mut steps, mut found) = (Steps::default(), Vec::new());
        let mut matches = Matcher::new(self, without_digest(name), Vec::new());
        while let Some(node) = matches.next_node(&mut steps)? {
            if self.roots.binary_search(&node).is_ok() {
                found.extend(self.rules_of(node));
            }
        }
        Ok(found)
    }

    /// The first of these certificates that may sign a packet with this name, and that its own issuer may have signed.
    pub fn suggest<'c>(
        &self,
        packet: Name<'_>,
        certificates: impl IntoIterator<Item = &'c Certificate>,
    ) -> Option<&'c Certificate> {
        let may_sign = |certificate: &Certificate| {
            let Some(KeyLocator::Name(issuer)) = certificate.key_locator() else { return false };
            self.check(packet, certificate.name()).is_ok() && self.check(certificate.name(), issuer).is_ok()
        };
        certificates.into_iter().find(|certificate| may_sign(certificate))
    }

    fn rules_of(&self, node: usize) -> Vec<String> {
        let rules = &self.model.nodes[node].rules;
        if rules.is_empty() { vec![format!("#_{node}")] } else { rules.clone() }
    }
}

impl From<Stop> for Refusal {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::TooManySteps => Refusal::TooManySteps,
            Stop::NoValue(function) => Refusal::NoValue(function),
        }
    }
}

impl fmt::Display for Permit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text =
            |rules: &[String]| if rules.is_empty() { "a rule without a name".to_owned() } else { rules.join(", ") };
        write!(f, "{} <= {}", text(self.packet_rules), text(self.key_rules))
    }
}

/// The name without the implicit digest at its end.
fn without_digest(name: Name<'_>) -> Name<'_> {
    match name.last() {
        Some(last) if last.type_number == types::IMPLICIT_SHA256_DIGEST => name.parent(),
        _ => name,
    }
}
