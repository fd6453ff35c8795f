//! What a check finds: how bad it is, one sentence about it, and the command to type.

use serde::{Serialize, Serializer};

/// How bad a finding is. The order is that of exit codes: the worst finding decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// As it should be.
    Ok,
    /// It works; somebody may want it otherwise.
    Note,
    /// Something is lost, or will be soon.
    Warning,
    /// Something does not work.
    Error,
}

impl Severity {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Severity::Ok => "ok",
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

impl Serialize for Severity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// Something that a person should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Never [`Severity::Ok`].
    pub severity: Severity,
    /// One sentence.
    pub message: String,
    /// The exact command to type.
    #[serde(rename = "try")]
    pub command: String,
}

impl Finding {
    /// Something does not work; `command` is what to type.
    pub fn error(message: impl Into<String>, command: impl Into<String>) -> Self {
        Finding { severity: Severity::Error, message: message.into(), command: command.into() }
    }

    /// Something is lost, or will be.
    pub fn warning(message: impl Into<String>, command: impl Into<String>) -> Self {
        Finding { severity: Severity::Warning, ..Finding::error(message, command) }
    }

    /// Something to know.
    pub fn note(message: impl Into<String>, command: impl Into<String>) -> Self {
        Finding { severity: Severity::Note, ..Finding::error(message, command) }
    }
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All is well, with what was seen in one sentence.
    Good(String),
    /// What is not.
    Found(Vec<Finding>),
    /// The check could not be made, for this reason.
    NotMade(String),
}

impl Outcome {
    /// The findings, or that all is well.
    pub fn of(findings: Vec<Finding>, good: impl Into<String>) -> Self {
        if findings.is_empty() { Outcome::Good(good.into()) } else { Outcome::Found(findings) }
    }

    /// The worst of it; `None` if the check was not made.
    pub fn severity(&self) -> Option<Severity> {
        match self {
            Outcome::Good(_) => Some(Severity::Ok),
            Outcome::Found(findings) => findings.iter().map(|finding| finding.severity).max(),
            Outcome::NotMade(_) => None,
        }
    }
}
