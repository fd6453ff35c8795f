//! Where the value of each setting came from: the line of a file, an option, or the default.

use crate::{Settings, flat::flat, text::Prefix};
use namewire_packet::nfd::setting_in_force::setting_source;
use std::{collections::BTreeMap, path::Path};
use toml::de::{DeTable, DeValue};

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// One of [`setting_source`].
    pub(crate) source: &'static str,
    /// Where the source says so.
    pub(crate) place: Option<String>,
}

/// Where the values of settings came from, by key. The strategy of a prefix has the key `strategy./prefix`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources(BTreeMap<String, Origin>);

/// The key of the strategy that a configuration chooses for a prefix.
pub fn key_of_strategy(prefix: &Prefix) -> String {
    format!("strategy.{prefix}")
}

impl Origin {
    /// Nothing names another value.
    pub(crate) const DEFAULT: Origin = Origin { source: setting_source::DEFAULT, place: None };

    /// A management command.
    pub(crate) const COMMAND: Origin = Origin { source: setting_source::COMMAND, place: None };
}

impl Sources {
    /// The keys that a file of ours names, with their lines.
    pub(crate) fn of_toml(path: &Path, lines: Vec<(String, usize)>) -> Self {
        let mut sources = Sources::default();
        for (key, line) in lines {
            sources.set(key, setting_source::FILE, format!("{}:{line}", path.display()));
        }
        sources
    }

    /// Of a file of NFD: the keys that have other values than the defaults. Its own keys are others, so no line is
    /// known.
    pub(crate) fn of_nfd_conf(path: &Path, settings: &Settings) -> Self {
        let (mut sources, defaults) = (Sources::default(), flat(&Settings::default()));
        for (key, value) in flat(settings) {
            if defaults.get(&key) != Some(&value) {
                sources.set(key, setting_source::FILE, path.display().to_string());
            }
        }
        sources
    }

    /// An option of the command line has set this key.
    pub fn set_by_option(&mut self, key: &str, option: &str) {
        self.set(key.to_owned(), setting_source::OPTION, option.to_owned());
    }

    fn set(&mut self, key: String, source: &'static str, place: String) {
        self.0.insert(key, Origin { source, place: Some(place) });
    }

    pub(crate) fn of(&self, key: &str) -> Origin {
        self.0.get(key).cloned().unwrap_or(Origin::DEFAULT)
    }

    /// True if a file or an option names the key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }
}

/// The keys of a file with their lines, from 1. The entries of a list of tables are one key, but for strategies.
pub(crate) fn lines_of_keys(text: &str, table: &DeTable<'_>) -> Vec<(String, usize)> {
    let mut places = Vec::new();
    note_places("", table, &mut places);
    places.sort_by_key(|(_, offset)| *offset);
    let (mut line, mut seen) = (1, 0);
    for (_, place) in &mut places {
        let passed = text.as_bytes().get(seen..*place).unwrap_or_default();
        line += passed.iter().filter(|byte| **byte == b'\n').count();
        seen = std::mem::replace(place, line);
    }
    places
}

/// Adds the keys with their offsets in the text.
fn note_places(section: &str, table: &DeTable<'_>, places: &mut Vec<(String, usize)>) {
    for (name, value) in table {
        let key = match section {
            "" => name.get_ref().to_string(),
            _ => format!("{section}.{}", name.get_ref()),
        };
        match value.get_ref() {
            DeValue::Table(table) => note_places(&key, table, places),
            DeValue::Array(entries) if key == "strategy" => {
                for entry in entries {
                    let prefix = entry.get_ref().as_table().and_then(|table| table.get("prefix")?.get_ref().as_str());
                    if let Some(prefix) = prefix.and_then(|prefix| prefix.parse().ok()) {
                        places.push((key_of_strategy(&prefix), entry.span().start));
                    }
                }
            }
            _ => places.push((key, name.span().start)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toml_file::read;

    #[test]
    fn keys_of_a_file_have_lines() {
        let text = "[cs]\npolicy = \"lru\"\n[log]\nareas = { tag = \"off\" }\n[faces]\ntcp.enabled = false\n\
                    [[trust.authorize]]\ncertificate = \"any\"\nprivileges = [\"cs\"]\n[[strategy]]\nprefix = \"ndn:/a\"\n\
                    strategy = \"asf\"\n[[strategy]]\nprefix = \"/\"\nstrategy = \"asf\"\n";
        let mut sources = Sources::of_toml(Path::new("x.toml"), read(text).unwrap().1);
        sources.set_by_option("router.workers", "--workers");
        let of = |key: &str| {
            let Origin { source, place } = sources.of(key);
            format!("{source} {}", place.unwrap_or_default())
        };
        assert_eq!(of("cs.policy"), "file x.toml:2");
        assert_eq!(of("log.areas.tag"), "file x.toml:4");
        assert_eq!(of("faces.tcp.enabled"), "file x.toml:6");
        assert_eq!(of("trust.authorize"), "file x.toml:7");
        assert_eq!((of("strategy./a"), of("strategy./")), ("file x.toml:10".to_owned(), "file x.toml:13".to_owned()));
        assert_eq!(of("router.workers"), "option --workers");
        assert_eq!(of("cs.admit"), "default ");
    }
}
