//! Settings as a list of keys and values in the form of a file: `cs.policy` and `"lru"`.

use crate::{
    Settings,
    settings::{Choice, LogSection},
    units::Bytes,
};
use std::collections::BTreeMap;
use toml::Value;

/// What declares faces, routes and strategies is no setting.
pub(crate) const DECLARATIONS: [&str; 3] = ["face", "route", "strategy"];

/// The seed that every secret of the router follows from.
const SEED: &str = "router.seed";

/// Every key that has a value, and the value in TOML. Passwords in addresses are left out, and so is the seed.
pub(crate) fn flat(settings: &Settings) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    if let Ok(Value::Table(sections)) = Value::try_from(explicit(settings)) {
        sections.iter().for_each(|(section, value)| add(&mut all, section, value));
    }
    all
}

fn add(all: &mut BTreeMap<String, String>, key: &str, value: &Value) {
    match value {
        Value::Table(table) => table.iter().for_each(|(name, value)| add(all, &format!("{key}.{name}"), value)),
        _ if key == SEED => {
            all.insert(key.to_owned(), "\"hidden\"".to_owned());
        }
        value => {
            all.insert(key.to_owned(), without_password(value).to_string());
        }
    }
}

/// The same settings with the values that the omission of a key means. What declares faces, routes and strategies is no
/// setting.
fn explicit(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    (settings.face, settings.route, settings.strategy) = Default::default();
    let (bytes, packets) = settings.cs.capacity();
    settings.cs.capacity = Some(Bytes(bytes));
    // No limit: a file cannot say this number.
    settings.cs.packets = (packets != u64::MAX).then_some(packets);
    let levels = settings.log.levels(settings.router.quiet);
    settings.log = LogSection {
        areas: levels.iter().map(|(area, level)| (Choice(area), Choice(level))).collect(),
        ..settings.log
    };
    settings
}

/// `redis://user:secret@host` without `user:secret`.
fn without_password(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(match text.split_once("://") {
            Some((scheme, rest)) => format!("{scheme}://{}", rest.rsplit_once('@').map_or(rest, |(_, host)| host)),
            None => text.clone(),
        }),
        Value::Array(entries) => Value::Array(entries.iter().map(without_password).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_toml;

    #[test]
    fn every_setting_is_in_the_list() {
        let text = "[cs]\ncapacity = \"1 MiB\"\n[log]\nlevel = \"warn\"\nareas = { tag = \"off\" }\n[repo]\n\
                    redis = [\"redis://me:secret@h:1\"]\n[router]\nseed = 7\n[[face]]\nuri = \"udp://a\"";
        let all = flat(&from_toml(text).unwrap());
        let value = |key: &str| all.get(key).map(String::as_str);
        assert_eq!((value("cs.capacity"), value("cs.packets")), (Some("\"1 MiB\""), None));
        assert_eq!((value("log.areas.tag"), value("log.areas.faces")), (Some("\"off\""), Some("\"warn\"")));
        assert_eq!(value("repo.redis"), Some("[\"redis://h:1\"]"));
        assert_eq!(value("router.seed"), Some("\"hidden\""));
        assert_eq!(value("tables.regions"), Some("[]"));
        assert!(all.keys().all(|key| !key.starts_with("face.") && key != "face"));
        assert_eq!(flat(&Settings::default()).get("cs.packets").map(String::as_str), Some("65536"));
    }
}
