//! The changes of settings that a running router can take over.

use crate::Settings;

/// Keys (and all below them) that a running router takes over.
const LIVE: [&str; 25] = [
    "face",
    "route",
    "strategy",
    "trust",
    "state.file",
    "state.sync",
    "router.quiet",
    "router.serve_certificates",
    "router.keep_networks",
    "log.level",
    "log.areas",
    "cs.capacity",
    "cs.packets",
    "cs.admit",
    "cs.serve",
    "cs.policy",
    "cs.admission",
    "cs.filter_history",
    "cs.filter_counters",
    "cs.filter_counters_per_name",
    "cs.filter_threshold",
    "cs.tiny_lfu_window",
    "cs.w_tiny_lfu_window",
    "cs.request_count_least",
    "cs.count",
];

/// The keys in which two settings differ and which a running router cannot take over.
pub fn needs_restart(old: &Settings, new: &Settings) -> Vec<String> {
    // Everything that a file or an option can say has a TOML form.
    let (old, new) = (toml::Value::try_from(old).ok(), toml::Value::try_from(new).ok());
    let mut keys = Vec::new();
    compare("", old.as_ref(), new.as_ref(), &LIVE, &mut keys);
    keys
}

/// All keys in which two settings differ. Declared faces, routes and strategies are one key each.
pub fn changed_keys(old: &Settings, new: &Settings) -> Vec<String> {
    let (old, new) = (toml::Value::try_from(old).ok(), toml::Value::try_from(new).ok());
    let mut keys = Vec::new();
    compare("", old.as_ref(), new.as_ref(), &[], &mut keys);
    keys
}

/// Adds the keys that differ, except these and all below them.
fn compare(path: &str, old: Option<&toml::Value>, new: Option<&toml::Value>, except: &[&str], keys: &mut Vec<String>) {
    if old == new || except.contains(&path) {
        return;
    }
    let empty = toml::Table::new();
    let ((Some(toml::Value::Table(_)), _) | (_, Some(toml::Value::Table(_)))) = (old, new) else {
        keys.push(path.to_owned());
        return;
    };
    let table = |value: Option<&'_ toml::Value>| value.and_then(toml::Value::as_table).cloned();
    let (old, new) = (table(old).unwrap_or(empty.clone()), table(new).unwrap_or(empty));
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        compare(&path, old.get(name), new.get(name), except, keys);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_toml;

    #[test]
    fn what_cannot_change_in_a_running_router_is_named() {
        let old = Settings::default();
        let new = "[router]\nworkers = 2\nquiet = true\n[cs]\ncapacity = 1000\npolicy = \"fifo\"\n\
                   admission = \"filter\"\nfilter_threshold = 3\ncount = [\"/a\"]\nunsolicited = \"admit-all\"\n\
                   prefix_lookup = \"all\"\n\
                   [faces.tcp]\nlisten = []\n[trust]\ngroups = [7]\n[[face]]\nuri = \"udp://a\"\n";
        let new = from_toml(new).unwrap();
        assert_eq!(
            needs_restart(&old, &new),
            ["cs.prefix_lookup", "cs.unsolicited", "faces.tcp.listen", "router.workers"]
        );
        assert_eq!(
            needs_restart(&new, &old),
            ["cs.prefix_lookup", "cs.unsolicited", "faces.tcp.listen", "router.workers"]
        );
        assert_eq!(needs_restart(&new, &new), <[&str; 0]>::default());
        let mut newer = new.clone();
        newer.router.quiet = false;
        newer.face.clear();
        newer.log = toml::from_str("level = \"debug\"\nformat = \"json\"").unwrap();
        assert_eq!(changed_keys(&new, &newer), ["face", "log.format", "log.level", "router.quiet"]);
        assert_eq!(needs_restart(&new, &newer), ["log.format"]);
    }
}
