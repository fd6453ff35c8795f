//! Our own configuration format: TOML into [`Settings`], with errors that help.

use super::{
    DEFAULT_TOML,
    settings::{RouteEntry, RouterSection, Settings},
    sources::lines_of_keys,
    text::nearest_strategy,
    toml_error::{self, SettingsError},
};
use namewire_designs::fib::catalogue::FibDesignError;
use namewire_engine::{StrategyTable, dispatch::MAX_WORKERS, strategy::registry::StrategyError};
use serde::Deserialize;
use std::collections::HashSet;
use toml::de::{DeTable, Deserializer};

/// Reads and checks a configuration.
///
/// # Errors
/// The first error.
pub fn from_toml(text: &str) -> Result<Settings, SettingsError> {
    read(text).map(|(settings, _)| settings)
}

/// The same, and the line of each key.
pub(crate) fn read(text: &str) -> Result<(Settings, Vec<(String, usize)>), SettingsError> {
    let in_words = |error| toml_error::in_words(text, &error);
    let table = DeTable::parse(text).map_err(in_words)?;
    let lines = lines_of_keys(text, table.get_ref());
    let settings = Settings::deserialize(Deserializer::from(table)).map_err(in_words)?;
    settings.check()?;
    Ok((settings, lines))
}

/// Reads TOML into one of our types.
///
/// # Errors
/// The first error: the line, and in words what is wrong.
pub fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, SettingsError> {
    toml::from_str(text).map_err(|error| toml_error::in_words(text, &error))
}

/// The printed defaults with keys that have no default uncommented. Such keys follow "# "; every other comment is
/// prose.
pub(crate) fn uncommented_defaults() -> String {
    let known = ["[[trust.authorize]]", "[[repo.retention]]", "[[face]]", "[[route]]", "[[strategy]]"];
    let is_key = |line: &str| {
        let key = line.split_once(" = ").map(|(key, _)| key);
        known.contains(&line) || key.is_some_and(|key| !key.contains(' '))
    };
    let lines = DEFAULT_TOML.lines().map(|line| match line.strip_prefix("# ") {
        Some(rest) if is_key(rest) => rest,
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

impl Settings {
    /// Refuses settings that contradict each other, or that this router cannot carry out.
    ///
    /// # Errors
    /// The first such setting.
    pub fn check(&self) -> Result<(), SettingsError> {
        let wrong = |message: String| Err(SettingsError::new(None, message));
        let router = &self.router;
        if router.threads() > MAX_WORKERS {
            let RouterSection { workers, io_threads, .. } = router;
            return wrong(format!("{workers} workers and {io_threads} I/O threads: choose at most {MAX_WORKERS}"));
        }
        if !router.pin.is_empty() && router.pin.len() != router.threads() {
            return wrong(format!("{} processors for {}: name one for each", router.pin.len(), router.threads_text()));
        }
        self.observe.check().map_err(|message| SettingsError::new(None, message))?;
        if let Err(error @ FibDesignError::Option { .. }) = self.fib.design.0.check(&self.fib.options()) {
            return wrong(format!("[fib]: {error}"));
        }
        let websocket = &self.faces.websocket;
        if websocket.certificate.is_some() != websocket.key.is_some() {
            return wrong("[faces.websocket] needs certificate and key, or neither".to_owned());
        }
        if !websocket.listen_tls.is_empty() && websocket.certificate.is_none() {
            return wrong("[faces.websocket] listen_tls needs certificate and key".to_owned());
        }
        let multicast = &self.faces.multicast;
        if !multicast.group_v4.ip().is_multicast() || !multicast.group_v6.ip().is_multicast() {
            return wrong("[faces.multicast] group_v4 and group_v6 must be multicast addresses".to_owned());
        }
        if let Some(problem) = self.repo.problem() {
            return wrong(problem);
        }
        if !self.faces.ethernet.group.0.is_multicast() {
            return wrong("[faces.ethernet] group must be a multicast address".to_owned());
        }
        let mut faces = HashSet::new();
        for face in &self.face {
            if !faces.insert((&face.uri, &face.local_uri)) {
                return wrong(format!("two [[face]] entries for {}", face.uri));
            }
        }
        let mut routes = HashSet::new();
        for RouteEntry { prefix, face, origin, .. } in &self.route {
            if !routes.insert((prefix, face, origin)) {
                return wrong(format!("two [[route]] entries for {prefix} to {face} of origin {origin}"));
            }
        }
        let mut strategies = HashSet::new();
        let mut known = StrategyTable::default();
        for entry in &self.strategy {
            if !strategies.insert(&entry.prefix) {
                return wrong(format!("two [[strategy]] entries for {}", entry.prefix));
            }
            if let Err(error) = known.resolve(&entry.strategy.0) {
                let meant = nearest_strategy(&entry.strategy.0).filter(|_| error == StrategyError::Unknown);
                let meant = meant.map_or(String::new(), |nearest| format!("; did you mean {nearest}?"));
                return wrong(format!("strategy {} for {}: {error}{meant}", entry.strategy, entry.prefix));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_designs::fib::catalogue::FibDesign;
    use namewire_designs::policies::catalogue::EvictionName;
    use proptest::prelude::*;

    fn error(text: &str) -> String {
        from_toml(text).expect_err(text).to_string()
    }

    #[test]
    fn the_printed_defaults_are_the_defaults() {
        assert_eq!(from_toml(DEFAULT_TOML), Ok(Settings::default()));
        assert_eq!(from_toml(""), Ok(Settings::default()));
    }

    /// The printed options of FIB designs belong to several designs; this keeps those of one design.
    fn with_design(mut settings: Settings, design: FibDesign) -> Settings {
        let fib = &mut settings.fib;
        fib.design.0 = design;
        if design != FibDesign::Fpt {
            (fib.fingerprint_components, fib.leaf_components, fib.prefix_bytes_max) = (None, None, None);
        }
        if design != FibDesign::NameTrie {
            fib.name_codes = None;
        }
        // The printed route for the root prefix is exact: there is no default table.
        fib.local_bits = None;
        if design.is_lossless() {
            (fib.fingerprint_bits, fib.port_bits, fib.default_route) = (None, None, None);
        }
        if design != FibDesign::TwoStage {
            (fib.hash, fib.string_matching, fib.marker_maintenance) = (None, None, None);
            (fib.first_components, fib.level_pulling) = (None, None);
        }
        settings
    }

    #[test]
    fn what_stands_behind_a_comment_sign_can_be_taken_as_it_is() {
        let settings: Settings = parse(&uncommented_defaults()).unwrap();
        for design in [FibDesign::TwoStage, FibDesign::NameTrie, FibDesign::Fht, FibDesign::Fpt] {
            assert_eq!(with_design(settings.clone(), design).check(), Ok(()));
        }
        assert_eq!((settings.fib.port_bits, settings.fib.level_pulling.map(u32::from)), (Some(16), Some(16)));
        assert_eq!((settings.face.len(), settings.route.len(), settings.strategy.len()), (1, 1, 1));
        assert_eq!(settings.cs.capacity.map(|bytes| bytes.0), Some(64 << 20));
    }

    /// The printed defaults have every key that the types know.
    #[test]
    fn no_key_is_left_out_of_the_printed_defaults() {
        let all: toml::Table = toml::from_str(&uncommented_defaults()).unwrap();
        let sections = [
            "",
            "router",
            "observe",
            "probes",
            "tables",
            "pit",
            "fib",
            "cs",
            "faces",
            "faces.unix",
            "faces.memif",
            "faces.tcp",
            "faces.udp",
            "faces.websocket",
            "faces.multicast",
            "faces.ethernet",
            "faces.dpdk",
            "rib",
            "tagnet",
            "repo",
            "[repo.retention]",
            "trust",
            "[trust.authorize]",
            "state",
            "[face]",
            "[route]",
            "[strategy]",
        ];
        for section in sections {
            let header = if section.is_empty() { String::new() } else { format!("[{section}]\n") };
            // For an unknown key, serde lists all known ones.
            let error = toml::from_str::<Settings>(&format!("{header}no-such-key = 1")).unwrap_err();
            let keys: Vec<&str> = error.message().split('`').skip(3).step_by(2).collect();
            assert!(!keys.is_empty(), "{section}: {error}");
            let mut table = toml::Value::Table(all.clone());
            for step in section.trim_matches(['[', ']']).split('.').filter(|step| !step.is_empty()) {
                table = table[step].clone();
            }
            let table = table.get(0).cloned().unwrap_or(table);
            for key in keys {
                assert!(table.get(key).is_some(), "[{section}] {key} is not in default.toml");
            }
        }
    }

    /// The documentation's table has every key of the printed defaults, by its whole name.
    #[test]
    fn no_key_is_left_out_of_the_documentation() {
        let documentation = include_str!("../../../docs/configuration.md");
        let mut section = String::new();
        let text = uncommented_defaults();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        for line in lines.filter(|line| !line.is_empty()) {
            match line.split_once(" = ") {
                None => section = line.trim_matches(['[', ']']).to_owned(),
                Some((key, _)) => {
                    let key = format!("`{section}.{key}`");
                    assert!(documentation.contains(&key), "{key} is not in docs/configuration.md");
                }
            }
        }
    }

    #[test]
    fn errors_name_the_line_and_the_nearest_key() {
        assert_eq!(error("[router]\nworker = 2"), "line 2: unknown key \"worker\"; did you mean \"workers\"?");
        assert_eq!(error("[ruoter]"), "line 1: unknown key \"ruoter\"; did you mean \"router\"?");
        let known: Vec<&str> = EvictionName::ALL.iter().map(|eviction| eviction.name()).collect();
        assert_eq!(
            error("[cs]\npolicy = \"best\""),
            format!("line 2: cs.policy: unknown value \"best\"; known here are {}", known.join(", "))
        );
        assert_eq!(
            error("[cs]\npolicy = \"lrru\""),
            "line 2: cs.policy: unknown value \"lrru\"; did you mean \"lru\"?"
        );
        assert!(error("\n[state]\nzzz = 1").contains("known here are"), "{}", error("\n[state]\nzzz = 1"));
        for (text, line) in [
            ("[router]\n\nworkers = 0", 3),
            ("[router]\nbusy_poll = \"2 s\"", 2),
            ("[faces.udp]\nidle_timeout = 600", 2),
            ("[faces.udp]\nidle_timeout = \"0 s\"", 2),
            ("[faces.udp]\nmtu = 63", 2),
            ("[faces.udp]\nmtu = \"9 KiB\"", 2),
            ("[faces.udp]\nlisten = [\"7001\"]", 2),
            ("[cs]\ncapacity = -1", 2),
            ("[tables]\npit_capacity = 0", 2),
            ("[tables]\npit_face_share = 101", 2),
            ("[[face]]\nuri = \"a\"", 2),
            ("[[face]]\nuri = \"udp://a\"\nmtu = 63", 3),
            ("[[route]]\nprefix = \"a\"\nface = \"udp://a\"", 2),
            ("[[route]]\nprefix = \"/a\"\nface = \"udp://a\"\norigin = \"nobody\"", 4),
            ("[router", 1),
        ] {
            let error = from_toml(text).expect_err(text);
            assert_eq!(error.line, Some(line), "{text}: {error}");
        }
    }

    #[test]
    fn contradictions_are_refused() {
        assert!(error("[router]\nworkers = 2\npin = [1]").contains("1 processors for 2 workers"));
        let both = error("[router]\nworkers = 2\nio_threads = 1\npin = [1, 2]");
        assert!(both.contains("2 processors for 2 workers and 1 I/O threads"), "{both}");
        let many = error("[router]\nworkers = 60\nio_threads = 5");
        assert!(many.contains("60 workers and 5 I/O threads: choose at most 64"), "{many}");
        let face = "[[face]]\nuri = \"udp://a\"\n";
        assert!(error(&format!("{face}{face}")).contains("two [[face]]"));
        let route = "[[route]]\nprefix = \"/a\"\nface = \"udp://a\"\n";
        assert!(error(&format!("{route}{route}")).contains("two [[route]]"));
        let strategy = "[[strategy]]\nprefix = \"/a\"\nstrategy = \"multicast\"\n";
        assert!(error(&format!("{strategy}{strategy}")).contains("two [[strategy]]"));
        assert!(error("[[strategy]]\nprefix = \"/\"\nstrategy = \"teleport\"").contains("teleport"));
        assert!(error("[[strategy]]\nprefix = \"/\"\nstrategy = \"asff\"").ends_with("; did you mean asf?"));
        assert!(error("[faces.websocket]\nlisten_tls = [\"[::]:443\"]").contains("listen_tls needs"));
        assert!(error("[faces.websocket]\nkey = \"k.pem\"").contains("or neither"));
        assert!(error("[faces.multicast]\ngroup_v4 = \"192.0.2.1:1\"").contains("multicast addresses"));
        assert!(error("[faces.ethernet]\ngroup = \"02:00:00:00:00:01\"").contains("multicast address"));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let settings = with_design(parse(&uncommented_defaults()).unwrap(), FibDesign::TwoStage);
        let written = toml::to_string(&settings).unwrap();
        assert_eq!(from_toml(&written).unwrap(), settings, "{written}");
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in "(\\[{0,2}[a-z.]{0,8}\\]{0,2}\n?|[a-z_]{1,9} = |\"[^\"]{0,9}\"\n|[0-9]{1,20}\n|.){0,40}") {
            let _ = from_toml(&text);
        }
    }
}
