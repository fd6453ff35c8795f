//! `[log]`: which single events the router logs, by area, and in which form.

use super::choice::Choice;
use crate::log_levels::{LogArea, LogChange, LogFormat, LogLevel, LogLevels};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `[log]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogSection {
    /// The level of every area that `areas` does not name; by default `info`, or `warn` for a quiet router.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<Choice<LogLevel>>,
    /// Levels of single areas.
    pub areas: BTreeMap<Choice<LogArea>, Choice<LogLevel>>,
    /// The form of lines.
    pub format: Choice<LogFormat>,
}

impl LogSection {
    /// Lets an option override what a file says.
    pub fn override_by(&mut self, change: &LogChange) {
        if let Some(level) = change.others {
            self.level = Some(Choice(level));
            self.areas.clear();
        }
        self.areas.extend(change.areas.iter().map(|(area, level)| (Choice(*area), Choice(*level))));
    }

    /// The level of each area.
    pub fn levels(&self, is_quiet: bool) -> LogLevels {
        let default = if is_quiet { LogLevel::Warn } else { LogLevel::Info };
        let mut levels = LogLevels::all(self.level.map_or(default, |level| level.0));
        self.areas.iter().for_each(|(area, level)| levels.set(area.0, level.0));
        levels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_overrides_a_file_and_a_quiet_router_warns_only() {
        let mut section: LogSection = toml::from_str("level = \"error\"\nareas = { tag = \"off\" }").unwrap();
        assert_eq!(section.levels(true).to_string(), "error,tag=off");
        section.override_by(&"repo=trace".parse().unwrap());
        assert_eq!(section.levels(false).to_string(), "error,repo=trace,tag=off");
        section.override_by(&"info,trust=debug".parse().unwrap());
        assert_eq!(section.levels(false).to_string(), "info,trust=debug");
        assert_eq!(LogSection::default().levels(true).to_string(), "warn");
        assert_eq!(LogSection::default().levels(false).to_string(), "info");
    }
}
