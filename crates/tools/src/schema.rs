//! `namewire schema`: compiled LVS schemas (Light VerSec). Which key may sign which name, and why? No router is asked.

use crate::{Failure, Global, failure::ExitCode, key_files::read_file, name_argument, output::fields};
use namewire_packet::NameBuf;
use namewire_security::trust::{
    AnchorCertificate, SchemaConfig, TrustAnchor,
    lvs::{MODEL_BYTES_MAX, Match, Schema, SchemaError},
};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Check a compiled LVS schema; say which rules a name follows, and whether a key may sign it
    Check {
        /// The schema, as python-ndn compiles it
        file: PathBuf,
        /// Name of a packet
        #[arg(long, value_parser = name_argument::parse)]
        name: Option<NameBuf>,
        /// Name of a certificate or of a key: may it sign a packet with this name?
        #[arg(long, requires = "name", value_parser = name_argument::parse)]
        key: Option<NameBuf>,
        /// A certificate that must be a root of trust of the schema (repeatable)
        #[arg(long, value_name = "FILE")]
        anchor: Vec<PathBuf>,
    },
}

#[derive(Serialize)]
struct Report {
    roots: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Named>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Verdict>,
}

#[derive(Serialize)]
struct Named {
    name: NameBuf,
    matches: Vec<Followed>,
    /// Why not all matches are known. A verdict may be known nevertheless.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// Rules that the name follows, and the values that it gives to patterns.
#[derive(Serialize)]
struct Followed {
    rules: Vec<String>,
    values: BTreeMap<String, String>,
}

#[derive(Serialize)]
struct Verdict {
    key: NameBuf,
    allowed: bool,
    /// The rules by which it is allowed, or why it is not.
    reason: String,
}

impl From<Match> for Followed {
    fn from(found: Match) -> Self {
        let values = found.values.into_iter().map(|value| (value.pattern, value.value)).collect();
        Followed { rules: found.rules, values }
    }
}

pub(crate) fn execute(global: &Global, command: Command) -> Result<(), Failure> {
    let Command::Check { file, name, key, anchor } = command;
    let schema = read(&file)?;
    let verdict = match (&name, key) {
        (Some(name), Some(key)) => Some(match schema.check(name.as_name(), key.as_name()) {
            Ok(permit) => Verdict { key, allowed: true, reason: permit.to_string() },
            Err(refusal) => Verdict { key, allowed: false, reason: refusal.to_string() },
        }),
        _ => None,
    };
    let named = name.map(|name| match schema.matches(name.as_name()) {
        Ok(matches) => Named { name, matches: matches.into_iter().map(Followed::from).collect(), problem: None },
        Err(refusal) => Named { name, matches: Vec::new(), problem: Some(refusal.to_string()) },
    });
    let report = Report { roots: schema.roots_of_trust(), name: named, verdict };
    with_anchors(schema, &anchor)?;
    global.output().print(&report, || text(&report))?;
    match &report.verdict {
        Some(verdict) if !verdict.allowed => Err(Failure::of_code(ExitCode::Failed)),
        _ => Ok(()),
    }
}

fn text(report: &Report) -> String {
    let mut rows = vec![("roots of trust", listed(&report.roots))];
    if let Some(named) = &report.name {
        let followed = |one: &Followed| {
            let values = one.values.iter().map(|(pattern, value)| format!(" {pattern}={value}")).collect::<String>();
            format!("{}{values}", one.rules.join(", "))
        };
        let matches: Vec<String> = named.matches.iter().map(followed).collect();
        rows.push(("name follows", named.problem.clone().unwrap_or_else(|| listed(&matches))));
    }
    if let Some(verdict) = &report.verdict {
        rows.push((if verdict.allowed { "allowed" } else { "refused" }, verdict.reason.clone()));
    }
    fields(&rows)
}

fn listed(items: &[String]) -> String {
    if items.is_empty() { "none".to_owned() } else { items.join("; ") }
}

/// A compiled schema in a file.
pub(crate) fn read(path: &Path) -> Result<Schema, Failure> {
    let failed = |error: SchemaError| Failure::new(ExitCode::Failed, format!("{}: {error}", path.display()));
    Schema::parse(&bytes_of(path)?).map_err(failed)
}

/// The file of a schema, and of a file that is too long only so much that its reader refuses it.
pub(crate) fn bytes_of(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: io::Error| Failure::new(ExitCode::Failed, format!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(failed)?;
    file.take(MODEL_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// A schema with anchors from files.
pub(crate) fn with_anchors(schema: Schema, files: &[PathBuf]) -> Result<SchemaConfig, Failure> {
    let mut config = SchemaConfig { schema: schema.into(), anchors: Vec::new(), at_signing_time: false };
    for path in files {
        let anchor = read_anchor(path)?;
        let checked = config.check_anchor(anchor.certificate().name());
        checked.map_err(|error| Failure::new(ExitCode::Failed, format!("{}: {error}", path.display())))?;
        config.anchors.push(TrustAnchor::Certificate(anchor));
    }
    Ok(config)
}

/// The certificate in a file.
pub(crate) fn read_anchor(path: &Path) -> Result<AnchorCertificate, Failure> {
    let certificate = AnchorCertificate::parse(read_file(path)?.to_vec());
    certificate.map_err(|error| Failure::new(ExitCode::Failed, format!("{}: {error}", path.display())))
}
