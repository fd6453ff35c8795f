//! What the router logs, by area: levels, and their text form.
//!
//! A text of levels, as `--log` and `namewire log set` take it, is a list: `info,faces=debug`. An entry without an area
//! is for every area that the list does not name. Without such an entry, areas that are not in the list keep their
//! level.

use std::{collections::BTreeMap, fmt, str::FromStr};

/// Longest text of levels in bytes. Every area with every level is shorter.
const MAX_TEXT_BYTES: usize = 512;

namewire_packet::names! {
    /// How important a line is. An area logs lines of its level and of all levels above it in this list.
    #[derive(Default, PartialOrd, Ord)]
    pub enum LogLevel {
        /// Nothing is logged.
        Off = "off",
        /// Something that was asked for does not work.
        Error = "error",
        /// Something that the operator should look at.
        Warn = "warn",
        /// One line for each thing that an operator asks about.
        #[default]
        Info = "info",
        /// Details for the search for a cause.
        Debug = "debug",
        /// Everything that there is.
        Trace = "trace",
    }
}

namewire_packet::names! {
    /// A part of the router.
    #[derive(PartialOrd, Ord)]
    pub enum LogArea {
        /// Faces, listeners and network interfaces.
        Faces = "faces",
        /// Routes, and next hops set by hand.
        Routes = "routes",
        /// Strategy choices.
        Strategy = "strategy",
        /// Start, configuration, state file, and commands with their refusals.
        Management = "management",
        /// Commands refused because the sender may not give them, and the rules of who may.
        Trust = "trust",
        /// The repository.
        Repo = "repo",
        /// TagNet.
        Tag = "tag",
        /// Packets dropped and limits met, by reason.
        Drops = "drops",
    }
}

namewire_packet::names! {
    /// The form of a line.
    #[derive(Default)]
    pub enum LogFormat {
        /// For people; where the journal reads, without the time and with the priority that it knows.
        #[default]
        Text = "text",
        /// One JSON object for each line.
        Json = "json",
    }
}

/// The level of each area.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogLevels([LogLevel; LogArea::ALL.len()]);

impl LogLevels {
    /// The level of one area.
    pub const fn of(&self, area: LogArea) -> LogLevel {
        self.0[area as usize]
    }

    /// The same level for all.
    pub const fn all(level: LogLevel) -> Self {
        LogLevels([level; LogArea::ALL.len()])
    }

    pub(crate) fn set(&mut self, area: LogArea, level: LogLevel) {
        self.0[area as usize] = level;
    }

    /// Takes a change over.
    pub fn take(&mut self, change: &LogChange) {
        if let Some(level) = change.others {
            *self = LogLevels::all(level);
        }
        change.areas.iter().for_each(|(area, level)| self.set(*area, *level));
    }

    /// The areas with their levels.
    pub fn iter(&self) -> impl Iterator<Item = (LogArea, LogLevel)> + '_ {
        LogArea::ALL.into_iter().map(|area| (area, self.of(area)))
    }
}

/// As a text of levels: what several areas have in common, and then the others.
impl fmt::Display for LogLevels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |level: &LogLevel| self.0.iter().filter(|one| *one == level).count();
        let common = LogLevel::ALL.into_iter().max_by_key(count).unwrap_or_default();
        f.write_str(common.name())?;
        let mut others = self.iter().filter(|(_, level)| *level != common);
        others.try_for_each(|(area, level)| write!(f, ",{}={}", area.name(), level.name()))
    }
}

/// A change of levels: what a text of levels says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogChange {
    /// The level of all areas that are not named.
    pub others: Option<LogLevel>,
    /// The levels of areas that are.
    pub areas: BTreeMap<LogArea, LogLevel>,
}

/// As a text of levels.
impl fmt::Display for LogChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others = self.others.map(|level| level.name().to_owned());
        let areas = self.areas.iter().map(|(area, level)| format!("{}={}", area.name(), level.name()));
        f.write_str(&others.into_iter().chain(areas).collect::<Vec<_>>().join(","))
    }
}

impl FromStr for LogChange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(format!("more than {MAX_TEXT_BYTES} bytes"));
        }
        let mut change = LogChange::default();
        for entry in text.split(',').map(str::trim) {
            let is_new = match entry.split_once('=') {
                Some((area, level)) => {
                    change.areas.insert(find_area(area.trim())?, find_level(level.trim())?).is_none()
                }
                None => change.others.replace(find_level(entry)?).is_none(),
            };
            if !is_new {
                return Err(format!("\"{text}\" says two things about the same areas"));
            }
        }
        Ok(change)
    }
}

fn find_level(name: &str) -> Result<LogLevel, String> {
    let known = LogLevel::ALL.map(LogLevel::name).join(", ");
    LogLevel::find(name).ok_or_else(|| format!("\"{name}\" is no level; levels are {known}"))
}

fn find_area(name: &str) -> Result<LogArea, String> {
    let known = LogArea::ALL.map(LogArea::name).join(", ");
    LogArea::find(name).ok_or_else(|| format!("there is no area \"{name}\"; areas are {known}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{prelude::*, sample::select};

    fn levels(text: &str) -> LogLevels {
        let mut levels = LogLevels::default();
        levels.take(&text.parse().unwrap());
        levels
    }

    #[test]
    fn a_text_of_levels() {
        let of = |text: &str| {
            let levels = levels(text);
            [LogArea::Faces, LogArea::Routes, LogArea::Drops].map(|area| levels.of(area).name())
        };
        assert_eq!(of("warn"), ["warn", "warn", "warn"]);
        assert_eq!(of("faces=debug"), ["debug", "info", "info"]);
        assert_eq!(of("off,faces=debug"), ["debug", "off", "off"]);
        assert_eq!(of(" faces = debug , error,drops=trace"), ["debug", "error", "trace"], "the order says nothing");
        for (text, reason) in [
            ("", "\"\" is no level"),
            ("loud", "\"loud\" is no level; levels are off, error, warn, info, debug, trace"),
            ("info,", "\"\" is no level"),
            ("info,warn", "two things"),
            ("faces=info,faces=warn", "two things"),
            ("doors=info", "there is no area \"doors\"; areas are faces, routes, strategy"),
            ("faces=", "\"\" is no level"),
            ("INFO", "\"INFO\" is no level"),
        ] {
            let error = text.parse::<LogChange>().expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
        assert!(format!("info,{}", " ".repeat(600)).parse::<LogChange>().is_err());
    }

    proptest! {
        /// What is shown can be typed, and means the same.
        #[test]
        fn levels_are_read_as_they_are_written(
            changes in proptest::collection::vec((select(&LogArea::ALL[..]), select(&LogLevel::ALL[..])), 0..12),
            others in select(&LogLevel::ALL[..]),
        ) {
            let mut wanted = LogLevels::all(others);
            changes.iter().for_each(|(area, level)| wanted.set(*area, *level));
            let mut read = LogLevels::default();
            let change: LogChange = wanted.to_string().parse().unwrap();
            prop_assert_eq!(&change.to_string().parse::<LogChange>(), &Ok(change.clone()));
            read.take(&change);
            prop_assert_eq!(read, wanted);
        }

        #[test]
        fn no_text_is_too_strange(text in ".{0,40}|([a-z]{1,5}[=,]){0,9}") {
            let _ = text.parse::<LogChange>();
        }
    }
}
