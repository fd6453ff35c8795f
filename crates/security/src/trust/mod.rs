//! Trust schemas: which key may sign which name, and does this packet follow that?
//!
//! Source: ndn-cxx's validator configuration (`security-validator-config.rst`): rules with filters and checkers, and
//! trust anchors. A packet is trusted if the first rule that catches its name accepts its signer, and the signer's
//! certificate is an anchor, or is trusted in the same way.
//!
//! ```
//! use namewire_security::trust::{Checker, DataValidator, PacketKind, Rule, RulesOrAny, ValidatorConfig};
//! use namewire_packet::signature::signature_type;
//!
//! // Each key signs only names under its identity: /alice signs /alice/photos/1.
//! let rule = Rule {
//!     id: "hierarchical".to_owned(),
//!     packet: PacketKind::Data,
//!     filters: Vec::new(),
//!     checkers: vec![Checker::hierarchical(signature_type::SHA256_ECDSA)],
//!     at_signing_time: false,
//! };
//! let anchors = Vec::new(); // TrustAnchor::Certificate(…) of the root of trust
//! let validator = DataValidator::new(RulesOrAny::Rules(ValidatorConfig { rules: vec![rule], anchors }));
//! # let _ = validator;
//! ```
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`rules`] | the rules and anchors as values |
//! | [`lvs`] | compiled Light VerSec schemas, which may decide in place of rules |
//! | [`name_regex`] | NDN regular expressions, which rules may use |
//! | [`revocation`] | records that revoke certificates |
//! | [`DataValidator`] | judges Data, and names the certificate that it still needs |
//!
//! Everything is sans-IO: no socket, no clock. Routers judge commands with the same parts.

mod certificates;
mod data_validator;
mod denial;
mod instant;
mod judge;
pub mod lvs;
pub mod name_regex;
mod reason;
pub mod revocation;
pub mod rules;
mod signed_packet;

pub use crate::quoted_name::quoted;
pub use certificates::{Certificates, MAX_FETCHED, MAX_TOLD, Teller, of_key};
pub use data_validator::{DataValidator, NotAccepted};
pub use denial::Denial;
pub use instant::{CLOCK_SLACK_MS, check_validity};
pub use judge::{Failure, MAX_CHAIN, Signatory, judge, judge_from};
pub use revocation::{RevocationRecord, Revocations};
pub use rules::{
    AnchorCertificate, AnchorError, Checker, HyperRelation, KeyLocatorRule, NameFilter, NameRelation, NotARoot,
    PacketKind, Rule, RulesOrAny, SchemaConfig, TrustAnchor, ValidatorConfig,
};
pub use signed_packet::{SignedPacket, check_parameters_digest};
