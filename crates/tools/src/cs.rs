//! `namewire cs`: the Content Store's state and settings.

use crate::{
    Failure, Global,
    choice::choice,
    name_argument,
    output::{fields, on_off},
    quantity,
};
use clap::ValueEnum;
use namewire_configuration::{AdmissionName, EvictionName};
use namewire_packet::{
    NameBuf,
    nfd::{ControlParameters, CsInfo, CsPolicyUsage, CsPrefixUsage, CsUsage, NodeState, Part, cs_flags},
};
use serde::Serialize;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Show settings and counters
    Info,
    /// Change settings
    #[command(arg_required_else_help = true)]
    Config(Config),
    /// Erase Data from the store
    Erase(Erase),
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Config {
    /// Which Data is evicted when the store is full: see docs/content-store.md
    #[arg(long, value_name = "POLICY", value_parser = choice::<EvictionName>())]
    policy: Option<EvictionName>,
    /// Which Data is admitted when the store is full
    #[arg(long, value_name = "ADMISSION", value_parser = choice::<AdmissionName>())]
    admission: Option<AdmissionName>,
    /// Memory for cached Data over all workers, for example "1 GiB"; without --packets, any number of packets
    #[arg(long, value_name = "BYTES", value_parser = bytes_with_unit)]
    capacity: Option<u64>,
    /// Most cached Data packets, over all workers
    #[arg(long, value_name = "N")]
    packets: Option<u64>,
    /// Whether new Data are stored
    #[arg(long, value_enum)]
    admit: Option<Switch>,
    /// Whether Interests are answered from the store
    #[arg(long, value_enum)]
    serve: Option<Switch>,
}

/// A size whose unit is written. Formerly a number alone was one of packets, so it is refused.
fn bytes_with_unit(text: &str) -> Result<u64, String> {
    if text.trim().parse().is_ok_and(|number: u64| number > 0) {
        return Err("write the unit, for example 64MiB; --packets takes a number of packets".to_owned());
    }
    quantity::parse_bytes(text)
}

#[derive(Debug, clap::Args)]
pub(crate) struct Erase {
    /// Data of this name and of all names under it
    #[arg(value_parser = name_argument::parse)]
    prefix: NameBuf,
    /// Most packets to erase; all if not given
    #[arg(long, value_name = "PACKETS", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

#[derive(Serialize)]
struct Info {
    #[serde(flatten)]
    cs: CsInfo,
    admit: bool,
    serve: bool,
    /// `None`: the forwarder does not tell (other forwarders than Namewire).
    usage: Option<CsUsage>,
}

/// Only bytes limit the store.
const ANY_NUMBER_OF_PACKETS: u64 = u64::MAX;

impl Info {
    fn entries_text(&self) -> String {
        match self.cs.capacity {
            ANY_NUMBER_OF_PACKETS => format!("{} packets", self.cs.n_cs_entries),
            most => format!("{} of at most {most} packets", self.cs.n_cs_entries),
        }
    }
}

/// Memory and policy.
pub(crate) fn usage_text(usage: &CsUsage) -> String {
    let (now, most) = (quantity::bytes(usage.bytes), quantity::bytes(usage.capacity_bytes));
    format!("{now} of at most {most}, policy {}", policy_text(&usage.admission, &usage.policy))
}

/// A line for each policy that was in force, and for each prefix that is counted.
pub(crate) fn counts(usage: &CsUsage) -> impl Iterator<Item = (&'static str, String)> {
    let policies = usage.policies.iter().map(|counts| {
        let CsPolicyUsage { hits, misses, insertions, not_admitted, evictions, .. } = counts;
        let name = policy_text(&counts.admission, &counts.policy);
        let text = format!(
            "{name}: hits {hits}  misses {misses}  stored {insertions}  not admitted {not_admitted}  evicted {evictions}"
        );
        ("Policy", text)
    });
    let prefixes = usage.prefixes.iter().map(|counts| {
        let CsPrefixUsage { prefix, hits, misses, insertions } = counts;
        ("Under", format!("{prefix}: hits {hits}  misses {misses}  stored {insertions}"))
    });
    policies.chain(prefixes)
}

/// Admission and eviction, as commands take them.
fn policy_text(admission: &str, eviction: &str) -> String {
    if admission == "all" { eviction.to_owned() } else { format!("{admission}/{eviction}") }
}

#[derive(Serialize)]
struct Erased {
    prefix: String,
    erased: u64,
}

#[derive(Serialize)]
struct Settings {
    capacity_packets: Option<u64>,
    /// `None`: the forwarder does not tell (other forwarders than Namewire).
    capacity_bytes: Option<u64>,
    /// `None`: the command did not name one, or the forwarder does not know the field.
    policy: Option<String>,
    admit: bool,
    serve: bool,
}

/// In place of what only our own forwarders say.
pub(crate) const NOT_TOLD: &str = "not told by this forwarder";

pub(crate) async fn execute(global: &Global, command: Command) -> Result<(), Failure> {
    match command {
        Command::Info => info(global).await,
        Command::Config(config) => configure(global, config).await,
        Command::Erase(erase) => erase_prefix(global, erase).await,
    }
}

async fn info(global: &Global) -> Result<(), Failure> {
    let client = global.connect().await?;
    let NodeState { cs, cs_usage: usage, .. } = client.state(&[Part::Cs, Part::CsUsage]).await?;
    let Some(cs) = cs else {
        return Err(Failure::new(crate::ExitCode::Failed, "the forwarder reports no Content Store"));
    };
    let (admit, serve) = (cs.flags & cs_flags::ADMIT != 0, cs.flags & cs_flags::SERVE != 0);
    let info = Info { cs, admit, serve, usage };
    global.output().print(&info, || {
        let mut lines = vec![
            ("Entries", info.entries_text()),
            ("Memory", info.usage.as_ref().map_or_else(|| NOT_TOLD.to_owned(), usage_text)),
            ("Admit", on_off(info.admit).to_owned()),
            ("Serve", on_off(info.serve).to_owned()),
        ];
        // The line of the only policy says the same.
        if info.usage.as_ref().is_none_or(|usage| usage.policies.len() != 1) {
            lines.insert(2, ("Look-ups", format!("{} hits, {} misses", info.cs.n_hits, info.cs.n_misses)));
        }
        if let Some(usage) = &info.usage {
            let prefixes = if usage.prefix_lookup == "all" { "all of its name" } else { "those that fetched it" };
            lines.push(("Prefixes", prefixes.to_owned()));
            lines.extend(counts(usage));
        }
        fields(&lines)
    })?;
    Ok(())
}

async fn configure(global: &Global, config: Config) -> Result<(), Failure> {
    let client = global.connect().await?;
    let (flags, mask) = flags_and_mask(&config);
    let names_policy = config.policy.is_some() || config.admission.is_some();
    let admission = config.admission.map_or("", AdmissionName::name);
    let eviction = config.policy.map_or("", EvictionName::name);
    let parameters = ControlParameters {
        capacity: config.packets,
        cs_capacity_bytes: config.capacity,
        cs_policy: names_policy.then(|| format!("{admission}/{eviction}")),
        flags: (mask != 0).then_some(flags),
        mask: (mask != 0).then_some(mask),
        ..ControlParameters::default()
    };
    let done = client.control("cs", "config", &parameters).await?.body.unwrap_or(parameters);
    if names_policy && done.cs_policy.is_none() {
        return Err(Failure::new(crate::ExitCode::Failed, "this forwarder takes no policy by command"));
    }
    if config.capacity.is_some() && done.cs_capacity_bytes.is_none() {
        let what = "this forwarder takes no capacity in bytes by command; --packets limits the number of packets";
        return Err(Failure::new(crate::ExitCode::Failed, what));
    }
    let mut capacity_packets = done.capacity;
    // As when a router starts. It is a command by itself, because another forwarder understands this part alone.
    if config.capacity.is_some() && config.packets.is_none() {
        let any = ControlParameters { capacity: Some(ANY_NUMBER_OF_PACKETS), ..ControlParameters::default() };
        client.control("cs", "config", &any).await?;
        capacity_packets = any.capacity;
    }
    let usage = client.state(&[Part::CsUsage]).await?.cs_usage;
    let flags = done.flags.unwrap_or_default();
    let settings = Settings {
        capacity_packets,
        capacity_bytes: config.capacity.or(usage.map(|usage| usage.capacity_bytes)),
        policy: done.cs_policy,
        admit: flags & cs_flags::ADMIT != 0,
        serve: flags & cs_flags::SERVE != 0,
    };
    global.output().print(&settings, || {
        let bytes = settings.capacity_bytes.map(|bytes| format!("capacity {}, ", quantity::bytes(bytes)));
        let bytes = bytes.unwrap_or_default();
        let packets = match settings.capacity_packets {
            None | Some(ANY_NUMBER_OF_PACKETS) => "any number of".to_owned(),
            Some(packets) => format!("at most {packets}"),
        };
        let (admit, serve) = (on_off(settings.admit), on_off(settings.serve));
        let policy = settings.policy.as_ref().map_or_else(String::new, |policy| format!(", policy {policy}"));
        format!("Content Store: {bytes}{packets} packets, admit {admit}, serve {serve}{policy}\n")
    })?;
    Ok(())
}

/// The forwarder erases a part per command, and says by Capacity that more may be left.
async fn erase_prefix(global: &Global, erase: Erase) -> Result<(), Failure> {
    let client = global.connect().await?;
    let mut total = 0;
    loop {
        let count = erase.count.map(|count| count - total);
        let parameters = ControlParameters { name: Some(erase.prefix.clone()), count, ..ControlParameters::default() };
        let body = client.control("cs", "erase", &parameters).await?.body.unwrap_or_default();
        let erased = body.count.unwrap_or_default();
        total += erased;
        let is_enough = erase.count.is_some_and(|count| total >= count);
        if body.capacity.is_none() || erased == 0 || is_enough {
            break;
        }
    }
    let erased = Erased { prefix: erase.prefix.to_string(), erased: total };
    global.output().print(&erased, || format!("Erased {total} packets under {}\n", erased.prefix))?;
    Ok(())
}

/// Flags come with a mask of the bits that are meant.
fn flags_and_mask(config: &Config) -> (u64, u64) {
    let bits = [(config.admit, cs_flags::ADMIT), (config.serve, cs_flags::SERVE)];
    bits.into_iter().fold((0, 0), |(flags, mask), (switch, bit)| match switch {
        None => (flags, mask),
        Some(switch) => (flags | if switch == Switch::On { bit } else { 0 }, mask | bit),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A capacity was bytes where a router starts, and packets here.
    #[test]
    fn a_capacity_is_bytes_and_says_so() {
        assert_eq!(bytes_with_unit("64 MiB"), Ok(64 << 20));
        assert_eq!((bytes_with_unit("0"), bytes_with_unit("7B")), (Ok(0), Ok(7)));
        assert!(bytes_with_unit("1000").unwrap_err().contains("--packets"));
    }

    #[test]
    fn only_the_bits_named_are_masked() {
        let config =
            |admit, serve| Config { policy: None, admission: None, capacity: None, packets: None, admit, serve };
        assert_eq!(flags_and_mask(&config(None, None)), (0, 0));
        assert_eq!(flags_and_mask(&config(Some(Switch::On), None)), (1, 1));
        assert_eq!(flags_and_mask(&config(Some(Switch::Off), Some(Switch::On))), (2, 3));
    }
}
