//! Who has the ports that a router wants? By `/proc/net` and the descriptors of processes that this user may see.
//!
//! Limit: [`PROCESSES_MAX`] processes are looked at.

use super::process::program_of;
use crate::facts::{PortFacts, PortHolder, SettingsFacts};
use namewire_packet::nfd::face_uri::DEFAULT_PORT;
use std::{collections::BTreeMap, fs, net::SocketAddr};

/// Processes whose descriptors are looked at.
const PROCESSES_MAX: usize = 10_000;

/// The state of a TCP socket that listens, as `/proc/net/tcp` has it.
const LISTENING: &str = "0A";

/// The ports that the settings want, with their holders. `own` is the router, whose descriptors are looked at first.
pub(super) fn look(settings: &SettingsFacts, own: Option<u32>) -> Vec<PortFacts> {
    if settings.is_empty() {
        return Vec::new();
    }
    let mut ports = Vec::new();
    for protocol in ["udp", "tcp"] {
        if !settings.is_on(&format!("faces.{protocol}.enabled")) {
            continue;
        }
        let named = settings.list(&format!("faces.{protocol}.listen"));
        let mut numbers: Vec<u16> =
            named.iter().filter_map(|address| Some(address.parse::<SocketAddr>().ok()?.port())).collect();
        if numbers.is_empty() {
            numbers.push(DEFAULT_PORT);
        }
        numbers.dedup();
        for port in numbers {
            ports.push((protocol, port, !named.is_empty(), inodes(protocol, port)));
        }
    }
    let wanted: Vec<u64> = ports.iter().flat_map(|(_, _, _, inodes)| inodes.clone()).collect();
    let holders = holders_of(&wanted, own);
    ports
        .into_iter()
        .map(|(protocol, port, is_named, inodes)| {
            let mut of_port: Vec<PortHolder> = inodes
                .iter()
                .map(|inode| {
                    let pid = holders.get(inode).copied();
                    PortHolder { pid, program: pid.and_then(program_of) }
                })
                .collect();
            of_port.dedup();
            PortFacts { protocol, port, is_named, holders: of_port }
        })
        .collect()
}

/// The inodes of the sockets at a port.
fn inodes(protocol: &str, port: u16) -> Vec<u64> {
    let tables =
        ["", "6"].map(|family| fs::read_to_string(format!("/proc/net/{protocol}{family}")).unwrap_or_default());
    tables.iter().flat_map(|table| inodes_in(table, port, protocol == "tcp")).collect()
}

fn inodes_in(table: &str, port: u16, only_listening: bool) -> Vec<u64> {
    let socket = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let local = u16::from_str_radix(fields.get(1)?.rsplit_once(':')?.1, 16).ok()?;
        let is_it = local == port && (!only_listening || fields.get(3) == Some(&LISTENING));
        is_it.then(|| fields.get(9)?.parse().ok()).flatten()
    };
    table.lines().skip(1).filter_map(socket).collect()
}

/// The process of each socket, as far as this user may see it.
fn holders_of(inodes: &[u64], own: Option<u32>) -> BTreeMap<u64, u32> {
    let mut holders = BTreeMap::new();
    if inodes.is_empty() {
        return holders;
    }
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).take(PROCESSES_MAX);
    for pid in own.into_iter().chain(pids) {
        for descriptor in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
            let Ok(target) = fs::read_link(descriptor.path()) else { continue };
            let inode =
                target.to_str().and_then(|target| target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok());
            if let Some(inode) = inode.filter(|inode| inodes.contains(inode)) {
                holders.entry(inode).or_insert(pid);
            }
        }
        if holders.len() == inodes.len() {
            break;
        }
    }
    holders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_the_kernel_are_read() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 00000000:18DB 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 41 1 0\n\
            1: 0100007F:18DB 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 42 1 0\n\
            2: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 43 1 0\n";
        assert_eq!(inodes_in(table, 6363, true), [41]);
        assert_eq!(inodes_in(table, 6363, false), [41, 42]);
    }

    #[test]
    fn a_port_of_this_process_is_found() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let mut settings = SettingsFacts::default();
        settings.values.insert("faces.tcp.enabled".into(), "true".into());
        settings.values.insert("faces.tcp.listen".into(), format!("[\"127.0.0.1:{port}\"]"));
        let [facts] = &look(&settings, None)[..] else { panic!() };
        assert_eq!(facts.holders[0].pid, Some(std::process::id()));
        assert!(facts.is_named && facts.protocol == "tcp");
    }
}
