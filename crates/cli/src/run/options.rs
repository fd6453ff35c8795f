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
    ("--listen-udp", &["faces.udp.enabled", "faces.udp.listen"], |args| !args.listen_udp.is_empty()),
    ("--no-udp", &["faces.udp.enabled"], |args| args.no_udp),
    ("--listen-tcp", &["faces.tcp.enabled", "faces.tcp.listen"], |args| !args.listen_tcp.is_empty()),
    ("--no-tcp", &["faces.tcp.enabled"], |args| args.no_tcp),
    ("--listen-ws", WEBSOCKET, |args| !args.listen_ws.is_empty()),
    ("--listen-wss", WEBSOCKET, |args| !args.listen_wss.is_empty()),
    ("--tls-cert", &["faces.websocket.certificate"], |args| args.tls_cert.is_some()),
    ("--tls-key", &["faces.websocket.key"], |args| args.tls_key.is_some()),
    ("--multicast", &["faces.multicast.enabled"], |args| args.multicast),
    ("--ethernet", &["faces.ethernet.listen", "faces.ethernet.multicast"], |args| args.ethernet),
    ("--interface", &["faces.multicast.interfaces", "faces.ethernet.interfaces"], |args| !args.interfaces.is_empty()),
    ("--no-interface", &["faces.multicast.except", "faces.ethernet.except"], |args| !args.denied_interfaces.is_empty()),
    ("--socket", &["faces.unix.enabled", "faces.unix.path"], |args| args.socket.is_some()),
    ("--memif", &["faces.memif.path"], |args| args.memif.is_some()),
    ("--observe", &["observe.listen"], |args| !args.observe.is_empty()),
    ("--workers", &["router.workers"], |args| args.workers.is_some()),
    ("--cs-capacity", &["cs.capacity", "cs.packets"], |args| args.cs_capacity.is_some()),
    ("--repo", &["repo.enabled", "repo.folder"], |args| args.repo.is_some()),
    ("--keep-privileges", &["router.privileges"], |args| args.keep_privileges),
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
            "--state s --listen-udp 127.0.0.1:1 --listen-tcp 127.0.0.1:1",
            "--listen-ws 127.0.0.1:9 --multicast --ethernet",
            "--interface eth* --no-interface eth1 --socket s --memif m --observe 9695 --workers 2",
            "--cs-capacity 1KiB --repo r --keep-privileges --quiet --no-udp --no-tcp",
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
