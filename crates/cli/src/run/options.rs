//! The keys of a configuration that each option of `namewire run` sets.

use super::Args;
use namewire_configuration::{
    log_levels::LogArea,
    sources::{Sources, key_of_strategy},
};

/// An option, the keys that it sets, and whether it was given.
type Row = (&'static str, &'static [&'static str], fn(&Args) -> bool);

/// Options that declare faces and routes set no key: these have lists of their own.
const OPTIONS: &[Row] = &[
    ("--state", &["state.file"], |args| args.state.is_some()),
    ("--state-sync", &["state.sync"], |args| args.state_sync.is_some()),
    ("--listen-udp", &["faces.udp.enabled", "faces.udp.listen"], |args| !args.listen_udp.is_empty()),
    ("--no-udp", &["faces.udp.enabled"], |args| args.no_udp),
    ("--listen-tcp", &["faces.tcp.enabled", "faces.tcp.listen"], |args| !args.listen_tcp.is_empty()),
    ("--no-tcp", &["faces.tcp.enabled"], |args| args.no_tcp),
    ("--listen-ws", WEBSOCKET, |args| !args.listen_ws.is_empty()),
    ("--listen-wss", WEBSOCKET, |args| !args.listen_wss.is_empty()),
    ("--tls-cert", &["faces.websocket.certificate"], |args| args.tls_cert.is_some()),
    ("--tls-key", &["faces.websocket.key"], |args| args.tls_key.is_some()),
    ("--tls-trust", &["faces.websocket.trusted_certificates"], |args| args.tls_trust.is_some()),
    ("--multicast", &["faces.multicast.enabled"], |args| args.multicast),
    ("--ethernet", &["faces.ethernet.listen", "faces.ethernet.multicast"], |args| args.ethernet),
    ("--ethernet-io", &["faces.ethernet.io"], |args| args.ethernet_io.is_some()),
    ("--dpdk-port", &["faces.dpdk.ports"], |args| !args.dpdk_port.is_empty()),
    ("--dpdk-eal", &["faces.dpdk.eal"], |args| args.dpdk_eal.is_some()),
    ("--interface", &["faces.multicast.interfaces", "faces.ethernet.interfaces"], |args| !args.interfaces.is_empty()),
    ("--no-interface", &["faces.multicast.except", "faces.ethernet.except"], |args| !args.denied_interfaces.is_empty()),
    ("--socket", &["faces.unix.enabled", "faces.unix.path"], |args| args.socket.is_some()),
    ("--memif", &["faces.memif.path"], |args| args.memif.is_some()),
    ("--observe", &["observe.listen"], |args| !args.observe.is_empty()),
    ("--workers", &["router.workers"], |args| args.workers.is_some()),
    ("--pin", &["router.pin"], |args| !args.pin.is_empty()),
    ("--busy-poll", &["router.busy_poll"], |args| args.busy_poll.is_some()),
    ("--no-udp-offload", &["faces.udp.offload"], |args| args.no_udp_offload),
    ("--cs-capacity", &["cs.capacity", "cs.packets"], |args| args.cs_capacity.is_some()),
    ("--cs-packets", &["cs.packets"], |args| args.cs_packets.is_some()),
    ("--cs-policy", &["cs.policy"], |args| args.cs_policy.is_some()),
    ("--cs-admission", &["cs.admission"], |args| args.cs_admission.is_some()),
    ("--cs-prefix-lookup", &["cs.prefix_lookup"], |args| args.cs_prefix_lookup.is_some()),
    ("--pit-capacity", &["tables.pit_capacity"], |args| args.pit_capacity.is_some()),
    ("--max-lifetime", &["tables.max_lifetime"], |args| args.max_lifetime.is_some()),
    ("--pit-role", &["pit.role"], |args| args.pit_role.is_some()),
    ("--fib-design", &["fib.design"], |args| args.fib_design.is_some()),
    ("--pages", &["tables.pages"], |args| args.pages.is_some()),
    ("--repo", &["repo.enabled", "repo.folder"], |args| args.repo.is_some()),
    ("--seed", &["router.seed"], |args| args.seed.is_some()),
    ("--keep-privileges", &["router.privileges"], |args| args.keep_privileges),
    ("--log-format", &["log.format"], |args| args.log_format.is_some()),
    ("--quiet", &["router.quiet"], |args| args.quiet),
];

const WEBSOCKET: &[&str] = &["faces.websocket.enabled", "faces.websocket.listen", "faces.websocket.listen_tls"];

/// Notes which values are of options.
pub(super) fn note(args: &Args, sources: &mut Sources) {
    for (option, keys, _) in OPTIONS.iter().filter(|(_, _, is_given)| is_given(args)) {
        keys.iter().for_each(|key| sources.set_by_option(key, option));
    }
    for assignment in &args.assignments {
        sources.set_by_option(assignment.key(), "--set");
    }
    for (prefix, _) in &args.strategies {
        sources.set_by_option(&key_of_strategy(prefix), "--strategy");
    }
    if let Some(change) = &args.log {
        if change.others.is_some() {
            sources.set_by_option("log.level", "--log");
        }
        let is_changed = |area: &LogArea| change.others.is_some() || change.areas.contains_key(area);
        for area in LogArea::ALL.into_iter().filter(is_changed) {
            sources.set_by_option(&format!("log.areas.{}", area.name()), "--log");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args as _, Parser};
    use std::collections::BTreeSet;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    /// Options that set no key, or have a rule of their own in [`note`].
    const OTHERS: [&str; 8] =
        ["--config", "--nfd-conf", "--ignore-state", "--face", "--route", "--strategy", "--log", "--set"];

    #[test]
    fn every_option_is_in_the_table() {
        let command = Args::augment_args(clap::Command::new("run"));
        let all: BTreeSet<String> = command
            .get_arguments()
            .filter_map(|argument| argument.get_long())
            .map(|long| format!("--{long}"))
            .collect();
        let known = OPTIONS.iter().map(|(option, _, _)| *option).chain(OTHERS);
        assert_eq!(all, known.map(str::to_owned).collect());
    }

    /// An option changes its keys, and no others.
    #[test]
    fn each_option_sets_the_keys_of_its_row() {
        let lines = [
            "--state s --state-sync always --listen-udp 127.0.0.1:1 --listen-tcp 127.0.0.1:1",
            "--listen-ws 127.0.0.1:9 --tls-trust t --multicast --ethernet --ethernet-io xdp --dpdk-port a --dpdk-eal b",
            "--interface eth* --no-interface eth1 --socket s --memif m --observe 9695 --workers 2 --pin 0,1",
            "--busy-poll 50us --no-udp-offload --cs-capacity 1KiB --cs-packets 7 --cs-policy lru --cs-admission filter",
            "--cs-prefix-lookup all --pit-capacity 9 --max-lifetime 5s --pit-role core --fib-design npt --pages 2MiB",
            "--repo r --seed 7 --keep-privileges --log-format json --quiet --no-udp --no-tcp",
        ];
        for line in lines {
            let args = Line::try_parse_from(format!("run {line}").split_whitespace()).unwrap().args;
            let settings = args.load().unwrap().settings;
            let changed = namewire_configuration::changed_keys(&namewire_configuration::Settings::default(), &settings);
            let given: Vec<&Row> = OPTIONS.iter().filter(|(_, _, is_given)| is_given(&args)).collect();
            let keys: BTreeSet<&str> = given.iter().flat_map(|(_, keys, _)| keys.iter().copied()).collect();
            let stray: Vec<&String> = changed.iter().filter(|key| !keys.contains(&key[..])).collect();
            assert!(stray.is_empty(), "{line}: {stray:?}");
            for (option, keys, _) in given {
                assert!(
                    keys.iter().any(|key| changed.iter().any(|changed| changed == key)),
                    "{option} sets none of {keys:?}"
                );
            }
        }
    }
}
