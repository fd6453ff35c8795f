//! The configuration file, read with the router's own code.

use super::forwarder::settings_facts;
use crate::facts::{ConfigurationFacts, Facts};
use namewire_configuration::{
    Settings, Source, in_force::InForce, open_observers, sources::Sources, trust_anchors::TrustAnchors,
};
use namewire_packet::nfd::setting_in_force::setting_source;
use std::path::{Path, PathBuf};

/// Where the packages put the file.
const PACKAGED: &str = "/etc/namewire/namewire.toml";

/// Reads the file, and takes its settings if no router tells its own. Without a file and a router, those of a router
/// that starts without a file count.
pub(super) fn read(named: Option<Source>, facts: &mut Facts) {
    let runs = facts.forwarder.is_some();
    let packaged = || (!runs && Path::new(PACKAGED).exists()).then(|| Source::Toml(PathBuf::from(PACKAGED)));
    let Some(source) = named.or_else(|| of_router(facts)).or_else(packaged) else {
        if !runs {
            facts.settings = settings_facts(list(&Settings::default(), &Sources::default()));
        }
        return;
    };
    let path = source.path().display().to_string();
    let is_of_nfd = matches!(source, Source::NfdConf(_));
    let mut file = ConfigurationFacts { path, is_of_nfd, ..ConfigurationFacts::default() };
    match source.load() {
        Ok(configuration) => {
            let mut anchors = TrustAnchors::read(&configuration.trust).problems();
            anchors.extend(configuration.repo_trust.unreadable());
            file.warnings = configuration.warnings;
            file.warnings.retain(|warning| !anchors.contains(warning));
            file.warnings.extend(open_observers(&configuration.settings));
            facts.unreadable_anchors = anchors;
            let listed = settings_facts(list(&configuration.settings, &configuration.sources));
            if runs {
                let differs = |key: &&String| {
                    is_of_file(facts, key) && listed.values.get(*key) != facts.settings.values.get(*key)
                };
                file.changed = listed.values.keys().filter(differs).cloned().collect();
            } else {
                facts.settings = listed;
            }
        }
        Err(error) => file.error = Some(error.to_string()),
    }
    facts.configuration = Some(file);
}

fn list(settings: &Settings, sources: &Sources) -> Vec<namewire_packet::nfd::SettingInForce> {
    InForce::new(settings, sources).list(settings)
}

/// The file that settings of the running router came from.
fn of_router(facts: &Facts) -> Option<Source> {
    let prefix = format!("{} ", setting_source::FILE);
    let place = facts.settings.places.values().find_map(|place| place.strip_prefix(&prefix))?;
    // The path is as the router was given it.
    let folder = facts.process.as_ref().and_then(|process| process.folder.as_deref());
    let absolute = |path: &str| match path.starts_with('/') {
        true => Some(PathBuf::from(path)),
        false => folder.map(|folder| Path::new(folder).join(path)),
    };
    let of_ours = place.rsplit_once(':').filter(|(_, line)| line.parse::<u32>().is_ok());
    Some(match of_ours {
        Some((path, _)) => Source::Toml(absolute(path)?),
        None => Source::NfdConf(absolute(place)?),
    })
}

/// The value in force came from the file or is the default: no option and no command has set it.
fn is_of_file(facts: &Facts, key: &str) -> bool {
    let place = facts.settings.places.get(key).map_or(setting_source::DEFAULT, |place| place);
    let is_command = place.starts_with(setting_source::COMMAND) || place.starts_with(setting_source::OPTION);
    !is_command && !key.starts_with("strategy.") && !key.starts_with("log.areas.")
}
