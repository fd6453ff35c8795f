//! The lines that a repository adds to the log of its process: commands that begin, end or are refused, and failures of
//! the store. Without a log, as in `namewire repo run`, it adds nothing.

use crate::{command::Command, shares::Holder, statistics::Refusal, store::StoreError};
use std::fmt;

/// Most bytes of a name that a line shows.
const MAX_QUOTED_BYTES: usize = 256;

/// The objects or groups of a command: the first one, and how many more there are.
struct About<'a>(&'a Command);

impl fmt::Display for About<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Command { objects, groups } = self.0;
        let first = objects.first().map(|object| &object.name).or(groups.first().map(|group| &group.sync_prefix));
        let Some(first) = first else { return Ok(()) };
        let mut uri = first.to_string();
        uri.truncate(MAX_QUOTED_BYTES); // URIs are ASCII
        f.write_str(&uri)?;
        match objects.len() + groups.len() - 1 {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// A command is carried out from now on.
pub(crate) fn command_begins(command: &str, what: &Command, face: Holder) {
    let face = face.map(|face| face.0);
    tracing::info!(target: "repo", command, about = %About(what), face, "command begins");
}

/// A command has been carried out, as far as possible; its status says how far.
pub(crate) fn command_ended(command: &str, what: &Command) {
    tracing::debug!(target: "repo", command, about = %About(what), "command ended");
}

/// A command is not carried out.
pub(crate) fn command_refused(command: &str, why: Refusal, face: Holder) {
    let face = face.map(|face| face.0);
    tracing::warn!(target: "repo", command, why = why.name(), face, "command refused");
}

/// The store could not do what it was asked.
pub(crate) fn store_failed(error: &StoreError) {
    tracing::error!(target: "repo", "{error}");
}
