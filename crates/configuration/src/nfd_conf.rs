//! NFD's configuration file, read as NFD reads it: `nfd.conf` into [`Settings`].
//!
//! Source: drop-in.md §3, management.md §8 and the sample file of NFD 24.07 (sections, keys, defaults). A missing
//! protocol section of `face_system` switches the protocol off. A value that NFD would refuse is an error here. A key
//! that NFD would refuse is a warning, and so is a key without a counterpart here. The file was written for another
//! program, and a router that starts with most of its settings is better than none.

mod faces;
mod log;

pub use log::nfd_modules;

use super::{
    Configuration, SettingsError,
    info::{self, Entry},
    likeness::nearest,
    read_text,
    settings::{Choice, Settings, StrategyEntry},
    text::{Prefix, StrategyName},
    trust,
    units::Bytes,
};
use namewire_designs::policies::catalogue::EvictionName;
use namewire_engine::{StrategyTable, UnsolicitedPolicy};
use namewire_management::trust_config::{Authorization, Privileges, TrustConfig};
use namewire_tables::PrefixLookup;
use std::{fmt::Display, ops::RangeInclusive, path::Path, str::FromStr};

/// Most bytes of a packet in the Content Store, including its name and bookkeeping. NFD's limit counts packets alone.
const CS_PACKET_BYTES: u64 = 9 * 1024;

const SECTIONS: &[&str] = &["general", "log", "forwarder", "tables", "face_system", "authorizations", "rib"];

/// Reads an `nfd.conf`. Paths of included files are relative to `directory`.
///
/// # Errors
/// The first error.
pub fn from_nfd_conf(text: &str, directory: &Path) -> Result<Configuration, SettingsError> {
    let mut include = |name: &str| read_text(&directory.join(name)).map_err(|error| error.to_string());
    let entries =
        info::parse(text, &mut include).map_err(|error| SettingsError::new(Some(error.line), error.message))?;
    let mut reader =
        Reader { settings: Settings::default(), trust: TrustConfig::default(), warnings: Vec::new(), directory };
    // NFD's defaults, which differ from ours.
    reader.settings.cs.policy = Choice(EvictionName::Lru);
    reader.settings.cs.prefix_lookup = Choice(PrefixLookup::All);
    // These are off unless the file has their section.
    let faces = &mut reader.settings.faces;
    faces.unix.enabled = false;
    (faces.tcp.enabled, faces.tcp.outgoing) = (false, false);
    (faces.udp.enabled, faces.udp.outgoing) = (false, false);
    for section in &entries {
        match section.key.as_str() {
            "general" => reader.general(section),
            "log" => reader.log(section)?,
            "forwarder" => reader.forwarder(section)?,
            "tables" => reader.tables(section)?,
            "face_system" => reader.face_system(section)?,
            "authorizations" => reader.authorizations(section)?,
            "rib" => reader.rib(section)?,
            _ => reader.unknown("", section, SECTIONS),
        }
    }
    reader.settings.check()?;
    Ok(Configuration {
        settings: reader.settings,
        trust: reader.trust,
        warnings: reader.warnings,
        ..Configuration::default()
    })
}

/// The settings read so far.
struct Reader<'a> {
    settings: Settings,
    trust: TrustConfig,
    warnings: Vec<String>,
    /// The directory of relative file names.
    directory: &'a Path,
}

type Read = Result<(), SettingsError>;

fn wrong(entry: &Entry, message: impl Display) -> SettingsError {
    SettingsError::new(Some(entry.line), format!("{}: {message}", entry.key))
}

/// `yes` or `no`.
fn flag(entry: &Entry) -> Result<bool, SettingsError> {
    match entry.value.as_str() {
        "yes" => Ok(true),
        "no" => Ok(false),
        other => Err(wrong(entry, format!("expected yes or no, not \"{other}\""))),
    }
}

/// A number in a range.
fn number<T: FromStr + PartialOrd + Display>(entry: &Entry, range: RangeInclusive<T>) -> Result<T, SettingsError> {
    let value = entry.value.parse().ok().filter(|value| range.contains(value));
    let expected = || format!("\"{}\" is not a number from {} to {}", entry.value, range.start(), range.end());
    value.ok_or_else(|| wrong(entry, expected()))
}

/// A word as its type reads it.
fn value<T: FromStr<Err: Display>>(entry: &Entry) -> Result<T, SettingsError> {
    entry.value.parse().map_err(|error| wrong(entry, format!("\"{}\": {error}", entry.value)))
}

impl Reader<'_> {
    fn warn(&mut self, entry: &Entry, message: impl Display) {
        self.warnings.push(format!("line {}: {message}", entry.line));
    }

    /// A key that exists in NFD and does nothing here.
    fn ignore(&mut self, entry: &Entry, why: &str) {
        self.warn(entry, format!("{} is ignored: {why}", entry.key));
    }

    /// A key that does not exist in NFD either.
    fn unknown(&mut self, place: &str, entry: &Entry, known: &[&str]) {
        let place = if place.is_empty() { String::new() } else { format!(" in {place}") };
        let hint = match nearest(&entry.key, known.iter().copied()) {
            Some(key) => format!("did you mean {key}?"),
            None => format!("known here are {}", known.join(", ")),
        };
        self.warn(entry, format!("unknown key {}{place} is ignored; {hint}", entry.key));
    }

    fn general(&mut self, section: &Entry) {
        for entry in &section.children {
            match entry.key.as_str() {
                "user" => self.settings.router.user = Some(entry.value.clone()),
                "group" => self.settings.router.group = Some(entry.value.clone()),
                _ => self.unknown("general", entry, &["user", "group"]),
            }
        }
    }

    fn forwarder(&mut self, section: &Entry) -> Read {
        for entry in &section.children {
            match entry.key.as_str() {
                "default_hop_limit" => {
                    if number(entry, 0..=255)? != 0 {
                        self.ignore(entry, "Interests without a hop limit stay without one");
                    }
                }
                _ => self.unknown("forwarder", entry, &["default_hop_limit"]),
            }
        }
        Ok(())
    }

    fn tables(&mut self, section: &Entry) -> Read {
        const KEYS: &[&str] =
            &["cs_max_packets", "cs_policy", "cs_unsolicited_policy", "strategy_choice", "network_region"];
        for entry in &section.children {
            match entry.key.as_str() {
                "cs_max_packets" => {
                    let packets = number(entry, 0..=u64::from(u32::MAX))?;
                    self.settings.cs.packets = Some(packets);
                    if packets > 0 {
                        self.settings.cs.capacity = Some(Bytes(packets * CS_PACKET_BYTES));
                    }
                }
                "cs_policy" => match entry.value.as_str() {
                    "lru" => self.settings.cs.policy = Choice(EvictionName::Lru),
                    "priority_fifo" => self.settings.cs.policy = Choice(EvictionName::PriorityFifo),
                    other => return Err(wrong(entry, format!("\"{other}\" is neither lru nor priority_fifo"))),
                },
                "cs_unsolicited_policy" => {
                    let policy = UnsolicitedPolicy::find(&entry.value);
                    let policy = policy.ok_or_else(|| wrong(entry, format!("unknown policy \"{}\"", entry.value)))?;
                    self.settings.cs.unsolicited = Choice(policy);
                }
                "strategy_choice" => self.strategy_choice(entry)?,
                "network_region" => {
                    for region in &entry.children {
                        let name: Prefix = region.key.parse().map_err(|error| wrong(region, error))?;
                        self.settings.tables.regions.push(name);
                    }
                }
                _ => self.unknown("tables", entry, KEYS),
            }
        }
        Ok(())
    }

    fn strategy_choice(&mut self, section: &Entry) -> Read {
        let mut known = StrategyTable::default();
        for entry in &section.children {
            let prefix: Prefix = entry.key.parse().map_err(|error| wrong(entry, error))?;
            let strategy: StrategyName = value(entry)?;
            if self.settings.strategy.iter().any(|other| other.prefix == prefix) {
                return Err(wrong(entry, "has two strategies"));
            }
            match known.resolve(&strategy.0) {
                Ok(_) => self.settings.strategy.push(StrategyEntry { prefix, strategy }),
                Err(error) => self.warn(entry, format!("strategy {strategy} for {prefix} is ignored: {error}")),
            }
        }
        Ok(())
    }

    fn authorizations(&mut self, section: &Entry) -> Read {
        for authorize in &section.children {
            if authorize.key != "authorize" {
                self.unknown("authorizations", authorize, &["authorize"]);
                continue;
            }
            let certificate = authorize.child("certfile").ok_or_else(|| wrong(authorize, "certfile is missing"))?;
            let modules = authorize.child("privileges").ok_or_else(|| wrong(authorize, "privileges are missing"))?;
            let mut privileges = Privileges::default();
            for module in &modules.children {
                match module.key.as_str() {
                    "faces" => privileges.faces = true,
                    "fib" => privileges.fib = true,
                    "cs" => privileges.cs = true,
                    "strategy-choice" => privileges.strategy_choice = true,
                    "tags" => privileges.tags = true,       // our addition
                    "capture" => privileges.capture = true, // our addition
                    "log" => privileges.log = true,         // our addition
                    _ => self.unknown(
                        "privileges",
                        module,
                        &["faces", "fib", "cs", "strategy-choice", "tags", "capture", "log"],
                    ),
                }
            }
            // NFD warns and continues, because the certificate may come later. Then NFD reloads it.
            match trust::signer(&certificate.value, self.directory) {
                Ok(signer) => self.trust.authorizations.push(Authorization { signer, privileges }),
                Err(error) => self.warn(certificate, format!("this authorization is ignored: {error}")),
            }
        }
        Ok(())
    }

    fn rib(&mut self, section: &Entry) -> Read {
        const KEYS: &[&str] = &[
            "localhost_security",
            "localhop_security",
            "prefix_announcement_validation",
            "auto_prefix_propagate",
            "readvertise_nlsr",
        ];
        let has = |key| section.child(key).is_some();
        for entry in &section.children {
            match entry.key.as_str() {
                "localhost_security" => {
                    self.trust.localhost_rib = Some(trust::validator(&entry.children, self.directory)?);
                }
                "localhop_security" => {
                    self.trust.localhop_rib = Some(trust::validator(&entry.children, self.directory)?);
                }
                "prefix_announcement_validation" => {
                    self.trust.prefix_announcement = Some(trust::validator(&entry.children, self.directory)?);
                }
                "auto_prefix_propagate" if has("localhop_security") => {
                    return Err(wrong(entry, "excludes localhop_security"));
                }
                "auto_prefix_propagate" => self.ignore(entry, "prefixes are not propagated to other routers"),
                "readvertise_nlsr" => self.settings.rib.readvertise_nlsr = flag(entry)?,
                _ => self.unknown("rib", entry, KEYS),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
