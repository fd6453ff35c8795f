//! The section `log` of nfd.conf: NFD's levels and modules, as levels of our areas.
//!
//! Source: NFD's sample file (levels) and its `NFD_LOG_INIT` lines (modules). A module may have the prefix `nfd.`, and
//! `*` means all modules. NFD accepts an unknown module, and so does this router: the entry has no effect. If several
//! modules belong to one area, the area gets the most verbose of their levels.

use super::{Read, Reader, wrong};
use crate::{
    info::Entry,
    log_levels::{LogArea, LogLevel},
    settings::Choice,
};

/// The modules of an area. An entry with `*` at an end stands for all modules that begin or end like this.
const MODULES: [(LogArea, &[&str]); 6] = [
    (
        LogArea::Faces,
        &[
            "Face*",
            "Lp*",
            "*Transport",
            "*Channel",
            "*Factory",
            "*LinkService",
            "Netdev*",
            "NetworkInterface*",
            "ChannelManager",
        ],
    ),
    (LogArea::Routes, &["Rib*", "Fib*", "*Readvertise*", "AutoPrefixPropagator", "*ReadvertisePolicy"]),
    (LogArea::Strategy, &["Strategy*", "*Strategy", "AsfProbingModule"]),
    (LogArea::Trust, &["CommandAuthenticator", "security*", "*Validator"]),
    (
        LogArea::Management,
        &["Main", "Nfd", "ManagerBase", "CsManager", "ForwarderStatusManager", "*ConfigSection", "ConfigFile"],
    ),
    (
        LogArea::Drops,
        &["Forwarder", "Pit*", "ContentStore", "Cs*", "DeadNonceList", "UnsolicitedDataPolicy", "NameTree*"],
    ),
];

/// The modules that have an effect here, as nfd.conf may name them.
pub fn nfd_modules() -> impl Iterator<Item = &'static str> {
    MODULES.into_iter().flat_map(|(_, modules)| modules).copied()
}

/// The area that says what this module of NFD says.
fn area_of(module: &str) -> Option<LogArea> {
    let is_like = |pattern: &&str| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(_), Some(_)) => module.contains(pattern.trim_matches('*')),
        (Some(end), None) => module.ends_with(end),
        (None, Some(start)) => module.starts_with(start),
        (None, None) => module == *pattern,
    };
    // An exact name goes before a pattern: CsManager is no table.
    let exact = MODULES.iter().find(|(_, modules)| modules.contains(&module));
    exact.or_else(|| MODULES.iter().find(|(_, modules)| modules.iter().any(is_like))).map(|(area, _)| *area)
}

fn level(entry: &Entry) -> Result<LogLevel, crate::SettingsError> {
    Ok(match entry.value.as_str() {
        "NONE" => LogLevel::Off,
        "FATAL" | "ERROR" => LogLevel::Error,
        "WARN" => LogLevel::Warn,
        "INFO" => LogLevel::Info,
        "DEBUG" => LogLevel::Debug,
        "TRACE" | "ALL" => LogLevel::Trace,
        other => {
            let known = "NONE, FATAL, ERROR, WARN, INFO, DEBUG, TRACE, ALL";
            return Err(wrong(entry, format!("\"{other}\" is no level; levels are {known}")));
        }
    })
}

impl Reader<'_> {
    pub(super) fn log(&mut self, section: &Entry) -> Read {
        for entry in &section.children {
            let level = level(entry)?;
            if entry.key == "ndn.*" {
                continue; // loggers of the library alone
            }
            let module = entry.key.strip_prefix("ndn.").unwrap_or(&entry.key);
            let module = module.strip_prefix("nfd.").unwrap_or(module);
            let log = &mut self.settings.log;
            match module {
                "default_level" | "*" => log.level = Some(Choice(level)),
                module => {
                    if let Some(area) = area_of(module) {
                        let place = log.areas.entry(Choice(area)).or_insert(Choice(level));
                        place.0 = place.0.max(level);
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::from_nfd_conf;
    use std::path::Path;

    fn levels(log: &str) -> Result<String, String> {
        let read =
            from_nfd_conf(&format!("log\n{{\n{log}\n}}\n"), Path::new("/")).map_err(|error| error.to_string())?;
        assert_eq!(read.warnings, <[&str; 0]>::default());
        Ok(read.settings.log.levels(false).to_string())
    }

    #[test]
    fn nfd_levels_and_modules() {
        for (log, expected) in [
            ("", "info"),
            ("default_level INFO", "info"),
            ("default_level NONE", "off"),
            ("default_level ALL", "trace"),
            ("default_level WARN\nForwarder DEBUG", "warn,drops=debug"),
            ("nfd.FaceTable TRACE\nnfd.UnicastUdpTransport ERROR", "info,faces=trace"),
            ("ndn.nfd.RibManager DEBUG\nAsfStrategy ERROR", "info,routes=debug,strategy=error"),
            ("* ERROR\nCommandAuthenticator ALL", "error,trust=trace"),
            ("CsManager DEBUG\nStrategyChoiceManager TRACE", "info,strategy=trace,management=debug"),
            ("NoSuchModule TRACE\nndn.KeyChain DEBUG\nndn.* DEBUG", "info"),
            ("default_level FATAL", "error"),
        ] {
            assert_eq!(levels(log).as_deref(), Ok(expected), "{log}");
        }
        assert_eq!(
            levels("default_level LOUD").unwrap_err(),
            "line 3: default_level: \"LOUD\" is no level; levels are NONE, FATAL, ERROR, WARN, INFO, DEBUG, TRACE, ALL"
        );
        assert!(levels("Forwarder info").is_err());
    }
}
