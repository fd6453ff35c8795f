//! Reads the rules about who may command this node, from a configuration file into [`TrustConfig`].
//!
//! Source: management.md §8; the validator configuration format of ndn-cxx (`security-validator-config.rst`). That
//! format is always INFO: in sections of an `nfd.conf`, or in a separate file that our own configuration names. Paths
//! are relative to the directory of the file that names them. Our own configuration may also name a compiled LVS
//! schema.

use super::{
    SettingsError,
    info::{self, Entry},
    read_text,
    settings::{Privilege, RepoSection, TrustSection},
    text::{Prefix, parse_name},
};
use crate::{input_file, trust_anchors::read_certificate};
use namewire_management::trust_config::{Authorization, Privileges, Signer, TrustConfig};
use namewire_security::trust::{
    AnchorCertificate, Checker, HyperRelation, KeyLocatorRule, NameFilter, NameRelation, PacketKind, Rule, RulesOrAny,
    SchemaConfig, TrustAnchor, ValidatorConfig,
    lvs::{MODEL_BYTES_MAX, Schema},
    name_regex::{NameRegex, NameTemplate},
};
use std::{
    fmt::Display,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// The word that means every signer, in place of a certificate or rules.
const ANY: &str = "any";

/// The key of a rule for old Data.
const AT_SIGNING_TIME: &str = "at-signing-time";
/// The word that means the schema of `[trust]`, in place of rules.
const SCHEMA: &str = "schema";

/// Units of a `refresh`.
const REFRESH_UNITS: [(char, u64); 3] = [('h', 3600), ('m', 60), ('s', 1)];

/// How often anchors are read again by default (ndn-cxx: one hour).
const REFRESH_DEFAULT: Duration = Duration::from_secs(3600);

type Read<T> = Result<T, SettingsError>;

fn wrong(entry: &Entry, message: impl Display) -> SettingsError {
    SettingsError::new(Some(entry.line), format!("{}: {message}", entry.key))
}

/// The signer for `any` or for the file of a certificate.
pub(super) fn signer(text: &str, directory: &Path) -> Result<Signer, String> {
    if text == ANY {
        return Ok(Signer::Any);
    }
    let certificate = read_certificate(&directory.join(text));
    certificate.map(Signer::Certificate).map_err(|error| format!("{}: {}", error.path.display(), error.why))
}

impl TrustSection {
    /// Reads the certificates and rules that the section names.
    ///
    /// # Errors
    /// The first error.
    pub(super) fn read(&self, schema: Option<&SchemaConfig>, directory: &Path) -> Result<TrustConfig, SettingsError> {
        let wrong = |message: String| SettingsError::new(None, message);
        let mut trust = TrustConfig {
            peer_credentials: self.peer_credentials,
            allowed_gids: self.groups.clone(),
            revocations: self.revocations.iter().map(|path| directory.join(path)).collect(),
            looks_up_revocations: self.look_up_revocations,
            ..TrustConfig::default()
        };
        for entry in &self.authorize {
            let signer = signer(&entry.certificate, directory)
                .map_err(|error| wrong(format!("[[trust.authorize]] certificate: {error}")))?;
            trust.authorizations.push(Authorization { signer, privileges: privileges(&entry.privileges) });
        }
        let source = RulesSource { section: "trust", schema, directory };
        trust.localhost_rib = source.rules("localhost_rib", self.localhost_rib.as_deref())?;
        trust.localhost_tags = source.rules("localhost_tags", self.localhost_tags.as_deref())?;
        trust.localhop_rib = source.rules("localhop_rib", self.localhop_rib.as_deref())?;
        trust.prefix_announcement = source.rules("prefix_announcement", self.prefix_announcement.as_deref())?;
        Ok(trust)
    }

    /// Reads the schema that the section names, and checks the anchors that are there.
    ///
    /// # Errors
    /// If the schema cannot be used, or if the certificate in a file is no root of trust of it.
    pub(super) fn read_schema(&self, directory: &Path) -> Result<Option<SchemaConfig>, SettingsError> {
        let wrong = |message: String| SettingsError::new(None, message);
        let Some(file) = &self.schema else {
            let only_anchors = || wrong("[trust] anchors: there is no schema that they belong to".to_owned());
            return if self.anchors.is_empty() { Ok(None) } else { Err(only_anchors()) };
        };
        if self.anchors.is_empty() {
            return Err(wrong("[trust] schema needs anchors, the certificates of its roots of trust".to_owned()));
        }
        let path = directory.join(file);
        let in_file = |error: &dyn Display| wrong(format!("[trust] schema: {}: {error}", path.display()));
        let bytes = input_file::read(&path, MODEL_BYTES_MAX as u64).map_err(|error| in_file(&error))?;
        let schema = Schema::parse(&bytes).map_err(|error| in_file(&error))?;
        let anchors = self.anchors.iter().map(|anchor| anchor_at(directory.join(anchor))).collect();
        let config = SchemaConfig { schema: Arc::new(schema), anchors, at_signing_time: false };
        for anchor in &config.anchors {
            // A file that is not there yet is read later, and counts then if it is a root of trust.
            let TrustAnchor::File { path, .. } = anchor else { continue };
            let Ok(certificate) = read_certificate(path) else { continue };
            let checked = config.check_anchor(certificate.certificate().name());
            checked.map_err(|error| wrong(format!("[trust] anchors: {}: {error}", path.display())))?;
        }
        Ok(Some(config))
    }

    /// The settings that may say `schema`, with their values.
    pub(super) fn rules(&self) -> [&Option<String>; 4] {
        [&self.localhost_rib, &self.localhost_tags, &self.localhop_rib, &self.prefix_announcement]
    }

    /// The files of rules that the section names.
    pub fn files_of_rules(&self) -> impl Iterator<Item = &Path> {
        let named = self.rules().into_iter().flatten();
        named.filter(|value| ![ANY, SCHEMA].contains(&value.as_str())).map(Path::new)
    }
}

/// True if this setting leaves the decision to the schema.
pub(super) fn is_schema(value: &Option<String>) -> bool {
    value.as_deref() == Some(SCHEMA)
}

/// A file of one certificate, or a folder of such files.
fn anchor_at(path: PathBuf) -> TrustAnchor {
    let refresh = Some(REFRESH_DEFAULT);
    if path.is_dir() { TrustAnchor::Directory { path, refresh } } else { TrustAnchor::File { path, refresh } }
}

/// Rules of who may command a repository, and whose Data it stores. `None`: there are none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RepoTrust {
    /// For commands of other machines.
    pub commands: Option<RulesOrAny>,
    /// For Data.
    pub data: Option<RulesOrAny>,
}

impl RepoTrust {
    /// Reads the rules that the section names.
    ///
    /// # Errors
    /// The first error.
    pub(super) fn read(
        section: &RepoSection,
        schema: Option<&SchemaConfig>,
        directory: &Path,
    ) -> Result<Self, SettingsError> {
        let source = RulesSource { section: "repo", schema, directory };
        let commands = source.rules("commands", section.commands.as_deref())?;
        Ok(RepoTrust { commands, data: source.rules("data", section.data.as_deref())? })
    }
}

/// Where the rules of a section come from.
struct RulesSource<'a> {
    section: &'static str,
    schema: Option<&'a SchemaConfig>,
    directory: &'a Path,
}

impl RulesSource<'_> {
    fn rules(&self, key: &str, value: Option<&str>) -> Read<Option<RulesOrAny>> {
        let place = format!("[{}] {key}", self.section);
        Ok(match value {
            None => None,
            Some(ANY) => Some(RulesOrAny::Any),
            Some(SCHEMA) => {
                let missing = || SettingsError::new(None, format!("{place}: \"schema\" needs the schema of [trust]"));
                Some(RulesOrAny::Schema(self.schema.ok_or_else(missing)?.clone()))
            }
            Some(file) => {
                let wrong = |error| SettingsError::new(None, format!("{place}: {file}: {error}"));
                Some(rules_in_file(&self.directory.join(file)).map_err(wrong)?)
            }
        })
    }
}

fn privileges(given: &[Privilege]) -> Privileges {
    let has = |privilege: Privilege| given.contains(&privilege);
    Privileges {
        faces: has(Privilege::Faces),
        fib: has(Privilege::Fib),
        cs: has(Privilege::Cs),
        strategy_choice: has(Privilege::StrategyChoice),
        rib: has(Privilege::Rib),
        tags: has(Privilege::Tags),
        capture: has(Privilege::Capture),
        log: has(Privilege::Log),
    }
}

fn rules_in_file(path: &Path) -> Read<RulesOrAny> {
    let text = read_text(path).map_err(|error| SettingsError::new(None, error.to_string()))?;
    let directory = path.parent().unwrap_or(Path::new(""));
    let mut include = |name: &str| read_text(&directory.join(name)).map_err(|error| error.to_string());
    let entries =
        info::parse(&text, &mut include).map_err(|error| SettingsError::new(Some(error.line), error.message))?;
    validator(&entries, directory)
}

/// The rules and trust anchors of a validator section.
pub(super) fn validator(entries: &[Entry], directory: &Path) -> Read<RulesOrAny> {
    let mut config = ValidatorConfig::default();
    let mut is_any = false;
    for entry in entries {
        match entry.key.as_str() {
            "rule" => config.rules.push(rule(entry)?),
            "trust-anchor" => match anchor(entry, directory)? {
                Some(anchor) => config.anchors.push(anchor),
                None => is_any = true,
            },
            _ => return Err(wrong(entry, "expected rule or trust-anchor")),
        }
    }
    Ok(if is_any { RulesOrAny::Any } else { RulesOrAny::Rules(config) })
}

/// The value of a required key.
fn required<'a>(entry: &'a Entry, key: &str) -> Read<&'a Entry> {
    entry.child(key).ok_or_else(|| wrong(entry, format!("{key} is missing")))
}

/// `None`: `type any`.
fn anchor(entry: &Entry, directory: &Path) -> Read<Option<TrustAnchor>> {
    let kind = required(entry, "type")?;
    Ok(Some(match kind.value.as_str() {
        ANY => return Ok(None),
        "file" => {
            let name = required(entry, "file-name")?;
            TrustAnchor::File { path: directory.join(&name.value), refresh: refresh(entry)? }
        }
        "dir" => {
            let name = required(entry, "dir")?;
            TrustAnchor::Directory { path: directory.join(&name.value), refresh: refresh(entry)? }
        }
        "base64" => {
            let text = required(entry, "base64-string")?;
            let certificate =
                AnchorCertificate::parse(text.value.clone().into_bytes()).map_err(|error| wrong(text, error))?;
            TrustAnchor::Certificate(certificate)
        }
        other => return Err(wrong(kind, format!("\"{other}\" is none of file, base64, dir and any"))),
    }))
}

/// `refresh 1h`: hours, minutes, seconds, or seconds without unit; 0 is never.
fn refresh(entry: &Entry) -> Read<Option<Duration>> {
    let Some(child) = entry.child("refresh") else { return Ok(Some(REFRESH_DEFAULT)) };
    let text = child.value.as_str();
    let unit = REFRESH_UNITS.iter().find(|(unit, _)| text.ends_with(*unit));
    let (digits, scale) = unit.map_or((text, 1), |(unit, scale)| (text.trim_end_matches(*unit), *scale));
    let seconds = digits.parse::<u32>().map_err(|_| wrong(child, format!("\"{text}\" is not a time such as 1h")))?;
    Ok((seconds > 0).then(|| Duration::from_secs(u64::from(seconds) * scale)))
}

fn rule(entry: &Entry) -> Read<Rule> {
    let packet = required(entry, "for")?;
    let packet = match packet.value.as_str() {
        "data" => PacketKind::Data,
        "interest" => PacketKind::Interest,
        other => return Err(wrong(packet, format!("\"{other}\" is neither data nor interest"))),
    };
    let children = |key: &str| entry.children.iter().filter(move |child| child.key == key).collect::<Vec<_>>();
    let filters = children("filter").into_iter().map(filter).collect::<Read<_>>()?;
    let checkers: Vec<Checker> = children("checker").into_iter().map(checker).collect::<Read<_>>()?;
    if checkers.is_empty() {
        return Err(wrong(entry, "checker is missing"));
    }
    let known = ["id", "for", "filter", "checker", AT_SIGNING_TIME];
    if let Some(other) = entry.children.iter().find(|child| !known.contains(&child.key.as_str())) {
        return Err(wrong(other, "expected id, for, filter, checker or at-signing-time"));
    }
    let at_signing_time = at_signing_time(entry, packet)?;
    Ok(Rule { id: required(entry, "id")?.value.clone(), packet, filters, checkers, at_signing_time })
}

/// `at-signing-time yes`, which ndn-cxx does not have.
fn at_signing_time(rule: &Entry, packet: PacketKind) -> Read<bool> {
    let Some(entry) = rule.child(AT_SIGNING_TIME) else { return Ok(false) };
    match entry.value.as_str() {
        "yes" if packet == PacketKind::Data => Ok(true),
        "yes" => Err(wrong(entry, "only for data: a command must be signed now")),
        "no" => Ok(false),
        other => Err(wrong(entry, format!("\"{other}\" is neither yes nor no"))),
    }
}

fn filter(entry: &Entry) -> Read<NameFilter> {
    let kind = required(entry, "type")?;
    if kind.value != "name" {
        return Err(wrong(kind, format!("\"{}\" is not name", kind.value)));
    }
    match entry.child("regex") {
        Some(text) => regex(text).map(NameFilter::Regex),
        None => {
            let name: Prefix = name(required(entry, "name")?)?;
            Ok(NameFilter::Relation(relation(required(entry, "relation")?)?, name.0))
        }
    }
}

fn checker(entry: &Entry) -> Read<Checker> {
    let signature_type = match entry.child("sig-type") {
        None => "ecdsa-sha256",
        Some(text) => &text.value,
    };
    let Some(signature_type) = Checker::signature_type_named(signature_type) else {
        return Err(wrong(entry, format!("unknown sig-type \"{signature_type}\"")));
    };
    let kind = required(entry, "type")?;
    match kind.value.as_str() {
        "hierarchical" => Ok(Checker::hierarchical(signature_type)),
        "customized" => Ok(Checker { signature_type, key_locator: key_locator(entry)? }),
        other => Err(wrong(kind, format!("\"{other}\" is neither hierarchical nor customized"))),
    }
}

fn key_locator(checker: &Entry) -> Read<KeyLocatorRule> {
    let Some(entry) = checker.child("key-locator") else {
        let is_digest = checker.child("sig-type").is_some_and(|text| text.value == "sha256");
        return if is_digest { Ok(KeyLocatorRule::Any) } else { Err(wrong(checker, "key-locator is missing")) };
    };
    let kind = required(entry, "type")?;
    if kind.value != "name" {
        return Err(wrong(kind, format!("\"{}\" is not name", kind.value)));
    }
    if let Some(text) = entry.child("regex") {
        return regex(text).map(KeyLocatorRule::Regex);
    }
    if let Some(hyper) = entry.child("hyper-relation") {
        let (key, packet) = (regex(required(hyper, "k-regex")?)?, regex(required(hyper, "p-regex")?)?);
        return Ok(KeyLocatorRule::Hyper(Box::new(HyperRelation {
            key_expand: template(required(hyper, "k-expand")?, &key)?,
            relation: relation(required(hyper, "h-relation")?)?,
            packet_expand: template(required(hyper, "p-expand")?, &packet)?,
            key,
            packet,
        })));
    }
    let name = name(required(entry, "name")?)?;
    Ok(KeyLocatorRule::Relation(relation(required(entry, "relation")?)?, name.0))
}

fn name(entry: &Entry) -> Read<Prefix> {
    parse_name(&entry.value).map(Prefix).map_err(|error| wrong(entry, error))
}

fn regex(entry: &Entry) -> Read<NameRegex> {
    NameRegex::parse(&entry.value).map_err(|error| wrong(entry, error))
}

fn template(entry: &Entry, regex: &NameRegex) -> Read<NameTemplate> {
    let template = NameTemplate::parse(&entry.value).map_err(|error| wrong(entry, error))?;
    template.check(regex).map_err(|error| wrong(entry, error))?;
    Ok(template)
}

fn relation(entry: &Entry) -> Read<NameRelation> {
    Ok(match entry.value.as_str() {
        "equal" => NameRelation::Equal,
        "is-prefix-of" => NameRelation::IsPrefixOf,
        "is-strict-prefix-of" => NameRelation::IsStrictPrefixOf,
        other => return Err(wrong(entry, format!("\"{other}\" is none of equal, is-prefix-of, is-strict-prefix-of"))),
    })
}
