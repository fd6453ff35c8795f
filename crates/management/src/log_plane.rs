//! What management asks of the log: its levels and its latest lines.
//!
//! Management decides who may command, and answers. The router keeps the lines and writes them.

use namewire_packet::nfd::{LogAreaLevel, LogRecord};

/// The log of the process that the router runs in.
pub trait LogPlane {
    /// Changes levels as this text says, for example `info,faces=debug`. Returns the levels of all areas in this form.
    ///
    /// # Errors
    /// Why the text says nothing.
    fn set_levels(&mut self, text: &str) -> Result<String, String>;

    /// The level of each area.
    fn levels(&self) -> Vec<LogAreaLevel>;

    /// The lines that are kept and have a number greater than `after`, oldest first.
    fn recent(&self, after: u64) -> Vec<LogRecord>;
}
