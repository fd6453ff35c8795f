//! The machine: kernel, distribution, container, memory, IPv6, AF_XDP.

use crate::facts::{HostFacts, HugePages};
use socket2::{Domain, Socket, Type};
use std::{fs, path::Path};

/// The number of AF_XDP on Linux.
const AF_XDP: i32 = 44;

/// Looks at it.
pub(super) fn look() -> HostFacts {
    let uname = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    HostFacts {
        name: text(uname.nodename()),
        kernel: format!("{} {} {}", text(uname.sysname()), text(uname.release()), text(uname.machine())),
        distribution: distribution(&fs::read_to_string("/etc/os-release").unwrap_or_default()),
        container: container(),
        memory_bytes: bytes_in(&memory, "MemTotal:"),
        available_bytes: bytes_in(&memory, "MemAvailable:"),
        huge_pages: huge_pages(Path::new("/sys/kernel/mm/hugepages")),
        has_ipv6: has_ipv6(&fs::read_to_string("/proc/net/if_inet6").unwrap_or_default()),
        has_af_xdp: has_af_xdp(),
    }
}

fn distribution(os_release: &str) -> Option<String> {
    let value = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim_matches('"').to_owned())
}

fn container() -> Option<String> {
    for (file, kind) in [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")] {
        if Path::new(file).exists() {
            return Some(kind.to_owned());
        }
    }
    if let Ok(kind) = fs::read_to_string("/run/systemd/container") {
        return Some(kind.trim().to_owned());
    }
    std::env::var("container")
        .ok()
        .or_else(|| std::env::var("KUBERNETES_SERVICE_HOST").ok().map(|_| "kubernetes".into()))
}

fn bytes_in(memory: &str, line: &str) -> Option<u64> {
    let value = memory.lines().find_map(|text| text.strip_prefix(line))?;
    Some(value.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10)
}

fn huge_pages(folder: &Path) -> Vec<HugePages> {
    let mut sizes: Vec<HugePages> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let size_kib = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
            let number = |file: &str| fs::read_to_string(entry.path().join(file)).ok()?.trim().parse().ok();
            Some(HugePages { size_kib, total: number("nr_hugepages")?, free: number("free_hugepages")? })
        })
        .collect();
    sizes.sort_by_key(|pages| pages.size_kib);
    sizes
}

/// An interface other than the loopback has an address.
fn has_ipv6(addresses: &str) -> bool {
    addresses.lines().any(|line| !line.trim_end().ends_with(" lo") && !line.trim().is_empty())
}

/// The kernel refuses a family that it does not have before it looks at privileges.
fn has_af_xdp() -> Option<bool> {
    match Socket::new(Domain::from(AF_XDP), Type::RAW, None) {
        Ok(_) => Some(true),
        Err(error) => match rustix::io::Errno::from_io_error(&error)? {
            rustix::io::Errno::AFNOSUPPORT => Some(false),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_system_are_read() {
        assert_eq!(distribution("NAME=\"X\"\nPRETTY_NAME=\"X 12\"\n").as_deref(), Some("X 12"));
        assert_eq!(bytes_in("MemTotal:       16 kB\nMemAvailable: 8 kB\n", "MemAvailable:"), Some(8192));
        assert!(!has_ipv6("00000000000000000000000000000001 01 80 10 80       lo\n") && !has_ipv6(""));
        assert!(has_ipv6("fe800000000000000000000000000001 04 40 20 80     eth0\n"));
        let folder = tempfile::tempdir().unwrap();
        let pages = folder.path().join("hugepages-2048kB");
        fs::create_dir(&pages).unwrap();
        fs::write(pages.join("nr_hugepages"), "8\n").unwrap();
        fs::write(pages.join("free_hugepages"), "3\n").unwrap();
        assert_eq!(huge_pages(folder.path()), [HugePages { size_kib: 2048, total: 8, free: 3 }]);
    }
}
