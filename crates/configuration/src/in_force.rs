//! The settings in force in a running router: those of its configuration, with the changes that commands have made
//! since.

use crate::{
    Settings,
    flat::flat,
    needs_restart,
    settings::StrategyEntry,
    sources::{Origin, Sources, key_of_strategy},
};
use namewire_management::DEFAULT_CHOICES;
use namewire_packet::{NameBuf, nfd::SettingInForce};
use std::collections::{BTreeMap, HashMap};
use toml::Value;

/// The settings that a router was configured with. It keeps no declared faces and routes: they have lists of their own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InForce {
    settings: Settings,
    sources: Sources,
    /// What the router started with, of the keys that a reload has changed and that need a restart: the value, and
    /// where it came from. No value: the key had none.
    kept: BTreeMap<String, (Option<String>, Origin)>,
}

impl InForce {
    /// A router has these settings.
    pub fn new(settings: &Settings, sources: &Sources) -> Self {
        InForce { settings: without_declarations(settings), sources: sources.clone(), kept: BTreeMap::new() }
    }

    /// The running router has read these settings: those that need a restart stay as they are.
    pub fn reload(&mut self, mut next: InForce) {
        let (values, mut kept) = (flat(&self.settings), std::mem::take(&mut self.kept));
        for key in needs_restart(&self.settings, &next.settings) {
            kept.entry(key.clone()).or_insert_with(|| (values.get(&key).cloned(), self.sources.of(&key)));
        }
        next.kept = kept;
        *self = next;
    }

    /// The settings, for a router to fill in what commands have changed.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Each setting with its value `now`, and where the value came from. A value that differs from the configured one
    /// is of a command.
    pub fn list(&self, now: &Settings) -> Vec<SettingInForce> {
        let configured = flat(&self.settings);
        let mut list = BTreeMap::new();
        for (key, value) in flat(now) {
            let origin = match configured.get(&key) {
                Some(configured) if *configured == value => self.origin(&key),
                _ => Origin::COMMAND,
            };
            list.insert(key, (value, origin));
        }
        for (key, (value, origin)) in &self.kept {
            match value {
                Some(value) => list.insert(key.clone(), (value.clone(), origin.clone())),
                None => list.remove(key),
            };
        }
        let list = list.into_iter().map(|(key, (value, origin))| setting(key, value, origin));
        let entries = &self.settings.strategy;
        let configured: HashMap<_, _> = entries.iter().map(|entry| (&entry.prefix.0, &entry.strategy.0)).collect();
        list.chain(now.strategy.iter().map(|choice| self.strategy(choice, &configured))).collect()
    }

    /// The level of an area may be that of all areas.
    fn origin(&self, key: &str) -> Origin {
        let is_of_all = key.starts_with("log.areas.") && !self.sources.has(key);
        self.sources.of(if is_of_all { "log.level" } else { key })
    }

    fn strategy(&self, choice: &StrategyEntry, configured: &HashMap<&NameBuf, &NameBuf>) -> SettingInForce {
        // A configuration may leave out the version.
        let is = |strategy: &NameBuf| strategy.as_name().is_prefix_of(&choice.strategy.0.as_name());
        let key = key_of_strategy(&choice.prefix);
        let is_configured = configured.get(&choice.prefix.0).is_some_and(|strategy| is(strategy));
        let is_default = DEFAULT_CHOICES.iter().any(|(prefix, strategy)| match (prefix.parse(), strategy.parse()) {
            (Ok(prefix), Ok(strategy)) => choice.prefix.0 == prefix && is(&strategy),
            _ => false,
        });
        let origin = match (is_configured, is_default) {
            (true, _) => self.sources.of(&key),
            (false, true) => Origin::DEFAULT,
            (false, false) => Origin::COMMAND,
        };
        setting(key, Value::String(choice.strategy.to_string()).to_string(), origin)
    }
}

fn setting(key: String, value: String, Origin { source, place }: Origin) -> SettingInForce {
    SettingInForce { key, value, source: source.to_owned(), place }
}

/// There may be very many declared faces and routes, so they are not even copied.
fn without_declarations(settings: &Settings) -> Settings {
    let Settings {
        router,
        log,
        observe,
        probes,
        engine,
        tables,
        pit,
        fib,
        cs,
        faces,
        rib,
        tagnet,
        repo,
        trust,
        state,
        ..
    } = settings;
    Settings {
        router: router.clone(),
        log: log.clone(),
        observe: observe.clone(),
        probes: probes.clone(),
        engine: engine.clone(),
        tables: tables.clone(),
        pit: pit.clone(),
        fib: fib.clone(),
        cs: cs.clone(),
        faces: faces.clone(),
        rib: rib.clone(),
        tagnet: tagnet.clone(),
        repo: repo.clone(),
        trust: trust.clone(),
        state: state.clone(),
        face: Vec::new(),
        route: Vec::new(),
        strategy: settings.strategy.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EvictionName, settings::Choice, toml_file};
    use std::path::Path;

    fn read(text: &str) -> (Settings, Sources) {
        let (settings, lines) = toml_file::read(text).unwrap();
        (settings, Sources::of_toml(Path::new("x.toml"), lines))
    }

    fn strategy(prefix: &str, strategy: &str) -> StrategyEntry {
        StrategyEntry { prefix: prefix.parse().unwrap(), strategy: strategy.parse().unwrap() }
    }

    fn of(list: &[SettingInForce], key: &str) -> String {
        let Some(setting) = list.iter().find(|setting| setting.key == key) else { return "-".to_owned() };
        format!("{} {} {}", setting.value, setting.source, setting.place.as_deref().unwrap_or("-"))
    }

    #[test]
    fn what_commands_have_changed_is_theirs() {
        let (settings, sources) = read(
            "[cs]\npolicy = \"lru\"\ncapacity = \"1 MiB\"\n[log]\nlevel = \"warn\"\n[[strategy]]\nprefix = \"/a\"\n\
             strategy = \"asf\"\n[[face]]\nuri = \"udp://a\"\n",
        );
        let in_force = InForce::new(&settings, &sources);
        let mut now = in_force.settings().clone();
        now.cs.policy = Choice(EvictionName::Fifo);
        now.cs.packets = Some(9);
        now.log.override_by(&"faces=debug".parse().unwrap());
        now.strategy = vec![
            strategy("/", "best-route/v=5"),
            strategy("/a", "asf/v=5"),
            strategy("/b", "multicast/v=5"),
            strategy("/localhost", "asf/v=5"),
        ];
        let list = in_force.list(&now);
        assert_eq!(of(&list, "cs.policy"), "\"fifo\" command -");
        assert_eq!(of(&list, "cs.packets"), "9 command -");
        assert_eq!(of(&list, "cs.capacity"), "\"1 MiB\" file x.toml:3");
        assert_eq!(of(&list, "cs.admit"), "true default -");
        assert_eq!(of(&list, "log.areas.faces"), "\"debug\" command -");
        assert_eq!(of(&list, "log.areas.tag"), "\"warn\" file x.toml:5");
        let whole = |name: &str| format!("\"/localhost/nfd/strategy/{name}/v=5\"");
        assert_eq!(of(&list, "strategy./"), format!("{} default -", whole("best-route")));
        assert_eq!(of(&list, "strategy./a"), format!("{} file x.toml:6", whole("asf")));
        assert_eq!(of(&list, "strategy./b"), format!("{} command -", whole("multicast")));
        assert_eq!(of(&list, "strategy./localhost"), format!("{} command -", whole("asf")));
        assert_eq!(of(&list, "face"), "-");
    }

    #[test]
    fn a_reload_changes_what_a_running_router_takes_over_and_nothing_else() {
        let (settings, sources) = read("[router]\nworkers = 2\n[cs]\nadmit = false\n[faces.tcp]\nlisten = []\n");
        let mut in_force = InForce::new(&settings, &sources);
        let (settings, sources) =
            read("\n\n[router]\nworkers = 3\npin = [1, 2, 3]\n[cs]\nadmit = true\nserve = false\n");
        in_force.reload(InForce::new(&settings, &sources));
        let list = in_force.list(&in_force.settings().clone());
        assert_eq!(of(&list, "router.workers"), "2 file x.toml:2", "it needs a restart");
        assert_eq!(of(&list, "router.pin"), "[] default -");
        assert_eq!(of(&list, "faces.tcp.listen"), "[] file x.toml:6");
        assert_eq!(of(&list, "cs.admit"), "true file x.toml:7");
        assert_eq!(of(&list, "cs.serve"), "false file x.toml:8");
    }
}
