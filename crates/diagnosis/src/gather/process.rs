//! The forwarder's process, by what the kernel says in `/proc`.

use crate::facts::{ForwarderFacts, ProcessFacts};
use namewire_client::TransportUri;
use std::{fs, os::unix::net::UnixStream, path::Path};

/// Its number. The kernel knows who listens at a Unix socket; if that is the service manager, the router's log says.
pub(super) fn find(transport: Option<&TransportUri>, forwarder: Option<&ForwarderFacts>) -> Option<u32> {
    let forwarder = forwarder?;
    let peer = match transport? {
        TransportUri::Unix(path) => UnixStream::connect(path).ok().and_then(|stream| {
            let credentials = rustix::net::sockopt::socket_peercred(&stream).ok()?;
            u32::try_from(credentials.pid.as_raw_nonzero().get()).ok()
        }),
        TransportUri::Tcp { .. } | TransportUri::Udp { .. } => None,
    };
    let is_router = |pid: &u32| program_of(*pid).is_some_and(|program| program != "systemd");
    if let Some(pid) = peer.filter(is_router) {
        return Some(forwarding(pid));
    }
    let start = forwarder.log.iter().find(|line| line.message == "router started")?;
    let pid: u32 = start.fields.iter().find(|field| field.name == "pid")?.value.parse().ok()?;
    // In a container the number is another one.
    (forwarder.is_local && program_of(pid).is_some_and(|program| program.starts_with("namewire"))).then_some(pid)
}

/// The process that forwards. After an upgrade, the one that made the socket may be the parent of it, and do nothing.
fn forwarding(pid: u32) -> u32 {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let mut programs = children.split_whitespace().filter_map(|child| child.parse().ok());
    programs.find(|child| program_of(*child) == program_of(pid)).unwrap_or(pid)
}

/// The short name of a process.
pub(super) fn program_of(pid: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/comm")).ok().map(|comm| comm.trim_end().to_owned())
}

/// What the kernel says of it.
pub(super) fn look(pid: u32) -> ProcessFacts {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let (status, limits) = (read("status"), read("limits"));
    let (group_bytes_max, group_bytes) = memory_group(&read("cgroup"));
    ProcessFacts {
        pid,
        uid: numbers_of(&status, "Uid:").get(1).copied(),
        gids: [numbers_of(&status, "Gid:"), numbers_of(&status, "Groups:")].concat(),
        program: fs::read_link(format!("/proc/{pid}/exe")).ok().map(|path| path.display().to_string()),
        folder: fs::read_link(format!("/proc/{pid}/cwd")).ok().map(|path| path.display().to_string()),
        start_unix_ms: start_of(&read("stat"), &fs::read_to_string("/proc/stat").unwrap_or_default()),
        descriptors: limit(&limits, "Max open files"),
        open_descriptors: fs::read_dir(format!("/proc/{pid}/fd")).ok().map(|open| open.count() as u64),
        locked_bytes_max: limit(&limits, "Max locked memory").map(|(now, _)| now),
        resident_bytes: numbers_of(&status, "VmRSS:").first().map(|kib| u64::from(*kib) << 10),
        group_bytes_max,
        group_bytes,
    }
}

fn numbers_of(status: &str, line: &str) -> Vec<u32> {
    let numbers = status.lines().find_map(|text| text.strip_prefix(line)).unwrap_or_default();
    numbers.split_whitespace().map_while(|number| number.parse().ok()).collect()
}

/// Soft and hard limit.
fn limit(limits: &str, line: &str) -> Option<(u64, u64)> {
    let mut values = limits.lines().find_map(|text| text.strip_prefix(line))?.split_whitespace();
    let mut number = || match values.next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    };
    Some((number()?, number()?))
}

/// When it started: ticks after the start of the machine.
fn start_of(stat: &str, machine: &str) -> Option<u64> {
    let boot_s: u64 = machine.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    // The name of the program, in parentheses, may have spaces.
    let ticks: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    let per_s = rustix::param::clock_ticks_per_second();
    (boot_s > 0).then(|| boot_s * 1000 + ticks * 1000 / per_s.max(1))
}

/// Most bytes that its group may use, and bytes in use. A group without a limit has that of the ones around it.
fn memory_group(cgroup: &str) -> (Option<u64>, Option<u64>) {
    let of = |root: &str, path: &str, limit: &str, used: &str| {
        let folder = Path::new(root).join(path.trim_start_matches('/'));
        let read = |folder: &Path, file: &str| fs::read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok();
        let inside = |folder: &&Path| folder.starts_with(root);
        // Version 1 writes a huge number for no limit.
        let limited = folder.ancestors().take_while(inside).filter_map(|folder| {
            let most = read(folder, limit).filter(|most| *most < 1 << 60)?;
            Some((most, read(folder, used)))
        });
        limited.min_by_key(|(most, _)| *most)
    };
    let found = cgroup.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (controllers, path) = (fields.nth(1)?, fields.next()?);
        match controllers {
            "" => of("/sys/fs/cgroup", path, "memory.max", "memory.current"),
            "memory" => of("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes", "memory.usage_in_bytes"),
            _ => None,
        }
    });
    found.map_or((None, None), |(most, used)| (Some(most), used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
            Max open files            1024                 524288               files     \n\
            Max locked memory         unlimited            unlimited            bytes     \n";
        assert_eq!(limit(limits, "Max open files"), Some((1024, 524_288)));
        assert_eq!(limit(limits, "Max locked memory"), Some((u64::MAX, u64::MAX)));
        assert_eq!(limit(limits, "Max stack"), None);
        let status = "Uid:\t1000\t1001\t1000\t1000\nGroups:\t4 24 \nVmRSS:\t    5120 kB\n";
        assert_eq!((numbers_of(status, "Uid:")[1], numbers_of(status, "VmRSS:")), (1001, vec![5120]));
        assert_eq!(numbers_of(status, "Groups:"), [4, 24]);
    }

    #[test]
    fn this_process_is_found_and_described() {
        let facts = look(std::process::id());
        assert!(facts.resident_bytes.is_some_and(|bytes| bytes > 1 << 20), "{facts:?}");
        assert!(facts.open_descriptors.is_some_and(|open| open > 0) && facts.descriptors.is_some(), "{facts:?}");
        assert_eq!(facts.uid, Some(rustix::process::geteuid().as_raw()));
    }

    #[test]
    fn a_program_with_spaces_and_parentheses_has_a_start() {
        let per_s = rustix::param::clock_ticks_per_second();
        let fields: Vec<String> = (3..=21).map(|number| number.to_string()).collect();
        let stat = format!("7 (a) b (c)) {} {} 5", fields.join(" "), 2 * per_s);
        assert_eq!(start_of(&stat, "cpu 1\nbtime 100\n"), Some(102_000));
        assert_eq!(start_of(&stat, "btime 0\n"), None);
    }
}
