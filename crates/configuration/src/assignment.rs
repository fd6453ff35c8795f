//! A single setting, `cs.policy=lru`, in the form that `namewire run --set` takes.
//!
//! The key has the sections of the file in front. The value is TOML. Quotes around a text may be left out, because a
//! shell removes them.
//!
//! Limits: `[[face]]`, `[[route]]` and `[[strategy]]` are not settings; separate options declare them. Settings that
//! name rules of trust belong in a file ([`FILE_ONLY`]), because they are read with it.

use crate::{
    Settings, SettingsError,
    flat::DECLARATIONS,
    likeness::nearest,
    toml_file::{parse, uncommented_defaults},
};
use std::{mem::take, str::FromStr};
use toml::{Table, Value};

/// Sections and keys that only a file can set.
const FILE_ONLY: [&str; 3] = ["trust", "repo.commands", "repo.data"];

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    key: String,
    /// The value inside of its sections.
    table: Table,
}

impl Assignment {
    /// The key with its sections: `cs.policy`.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl FromStr for Assignment {
    type Err = String;

    /// Reads `KEY=VALUE`, and checks both.
    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE, for example cs.policy=lru")?;
        let (key, value) = (key.trim(), value.trim());
        check_key(key)?;
        let quoted = Value::from(value).to_string();
        let read = |value: &str| -> Result<Table, String> {
            let line = format!("{key} = {value}");
            parse::<Settings>(&line).map_err(|error| error.message)?;
            toml::from_str(&line).map_err(|error| error.message().to_owned())
        };
        // What is no TOML was a text before the shell took its quotes; so was a number where a text belongs.
        let is_toml = toml::from_str::<Table>(&format!("{key} = {value}")).is_ok();
        let table = if is_toml { read(value).or_else(|error| read(&quoted).map_err(|_| error)) } else { read(&quoted) };
        Ok(Assignment { key: key.to_owned(), table: table? })
    }
}

fn check_key(key: &str) -> Result<(), String> {
    let is_within =
        |section: &&str| key == *section || key.strip_prefix(section).is_some_and(|key| key.starts_with('.'));
    if DECLARATIONS.iter().any(&is_within) {
        return Err(format!("{key} is no setting: --face, --route and --strategy declare these"));
    }
    if FILE_ONLY.iter().any(is_within) {
        return Err(format!("{key} can be set in a file only"));
    }
    let known = setting_keys();
    // The areas of the log are a table of their own names.
    if known.iter().any(|one| one == key) || key.starts_with("log.areas.") {
        return Ok(());
    }
    let meant = nearest(key, known.iter().map(String::as_str));
    Err(match meant {
        Some(nearest) => format!("unknown setting {key}; did you mean {nearest}?"),
        None => format!("unknown setting {key}; `namewire config default` prints all"),
    })
}

/// Every key of a file, with its sections.
pub fn setting_keys() -> Vec<String> {
    fn add(all: &mut Vec<String>, key: &str, value: &Value) {
        match value {
            // A list of tables is one key.
            Value::Table(table) if !table.is_empty() => {
                table.iter().for_each(|(name, value)| add(all, &format!("{key}.{name}"), value))
            }
            _ => all.push(key.to_owned()),
        }
    }
    let mut all = Vec::new();
    let sections: Table = toml::from_str(&uncommented_defaults()).unwrap_or_default();
    sections.iter().for_each(|(section, value)| add(&mut all, section, value));
    all
}

impl Settings {
    /// Sets what the assignments say; of two for one key, the later counts. The rest stays.
    ///
    /// # Errors
    /// If the settings cannot be written down. [`Settings::check`] finds values that contradict each other.
    pub fn assign(&mut self, assignments: &[Assignment]) -> Result<(), SettingsError> {
        if assignments.is_empty() {
            return Ok(());
        }
        let failed = |error: String| SettingsError::new(None, error);
        // There may be a million of these, and no assignment names them.
        let (face, route, strategy) = (take(&mut self.face), take(&mut self.route), take(&mut self.strategy));
        let mut all = Table::try_from(&*self).map_err(|error| failed(error.to_string()))?;
        for assignment in assignments {
            merge(&mut all, &assignment.table);
        }
        let names_seed = assignments.iter().any(|assignment| assignment.key == "router.seed");
        let seed = self.router.seed.filter(|_| !names_seed);
        let changed: Settings = all.try_into().map_err(|error: toml::de::Error| failed(error.message().to_owned()))?;
        *self = Settings { face, route, strategy, ..changed };
        // A file cannot hold all of them.
        self.router.seed = seed.or(self.router.seed);
        Ok(())
    }
}

/// Puts the values of `from` into `into`, table by table.
fn merge(into: &mut Table, from: &Table) {
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(Value::Table(into)), Value::Table(from)) => merge(into, from),
            _ => _ = into.insert(key.clone(), value.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_toml;

    fn settings(assignments: &[&str]) -> Settings {
        let text = "[cs]\npolicy = \"fifo\"\npackets = 9\n[[face]]\nuri = \"udp://a\"";
        let mut settings = from_toml(text).unwrap();
        settings.router.seed = Some(u64::MAX);
        let assignments: Vec<Assignment> = assignments.iter().map(|text| text.parse().expect(text)).collect();
        settings.assign(&assignments).unwrap();
        settings
    }

    #[test]
    fn a_value_needs_no_quotes_and_others_stay() {
        let given = settings(&[
            "cs.policy=lru",
            "cs.capacity = 1 MiB",
            "router.user=1000",
            "router.pin=[0, 1]",
            "router.workers=2",
            "faces.udp.listen=[\"127.0.0.1:7001\"]",
            "log.areas.faces=debug",
            "cs.policy=\"lfu\"",
        ]);
        let expected = "[router]\nuser = \"1000\"\npin = [0, 1]\nworkers = 2\n[cs]\npolicy = \"lfu\"\npackets = 9\n\
                        capacity = \"1 MiB\"\n[faces.udp]\nlisten = [\"127.0.0.1:7001\"]\n[log.areas]\nfaces = \"debug\"\n[[face]]\nuri = \"udp://a\"";
        let mut expected = from_toml(expected).unwrap();
        expected.router.seed = Some(u64::MAX);
        assert_eq!(given, expected);
        assert_eq!(settings(&["router.seed=7"]).router.seed, Some(7));
    }

    #[test]
    fn errors_say_what_is_meant() {
        let error = |text: &str| text.parse::<Assignment>().expect_err(text);
        assert!(error("cs.polcy=lru").starts_with("unknown setting cs.polcy; did you mean cs.policy?"));
        assert!(error("xyzzy=1").ends_with("`namewire config default` prints all"));
        assert_eq!(error("cs.policy=lrru"), "cs.policy: unknown value \"lrru\"; did you mean \"lru\"?");
        assert_eq!(error("router.workers=many"), "router.workers is a whole number from 0 to 65535, not \"many\"");
        assert!(error("faces.udp.listen=7001").starts_with("faces.udp.listen is a list"));
        assert!(error("face.uri=udp://a").contains("--face"));
        assert_eq!(error("trust.authorize=[]"), "trust.authorize can be set in a file only");
        assert!(error("cs.policy").starts_with("expected KEY=VALUE"));
        assert!(error("cs = 1\nx.y=2").starts_with("unknown setting"));
    }

    /// Each key of the printed defaults that is a setting can be given with its printed value.
    #[test]
    fn every_setting_can_be_assigned() {
        let sections: Value = toml::from_str(&uncommented_defaults()).unwrap();
        let keys = setting_keys();
        assert!(keys.len() > 80, "{}", keys.len());
        for key in keys.iter().filter(|key| check_key(key).is_ok()) {
            let value = key.split('.').fold(&sections, |value, step| &value[step]);
            let text = format!("{key}={value}");
            assert!(text.parse::<Assignment>().is_ok(), "{text}: {:?}", text.parse::<Assignment>());
        }
    }
}
