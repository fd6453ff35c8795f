//! Does the system grant what the settings need?

use super::{Checked, any, settings};
use crate::{
    facts::Facts,
    finding::{Finding, Outcome},
};
use namewire_printing::quantity;

/// Descriptors of files, workers and listeners, beside those of faces.
const DESCRIPTORS_OF_ROUTER: u64 = 64;

/// AF_XDP shares at least this much memory with the kernel for each interface and worker.
const XDP_BYTES: u64 = 64 << 20;

/// The share of a limit, in percent, from which it is nearly used up, and from which it is as good as used up.
const NEARLY_PERCENT: u64 = 80;
const FULL_PERCENT: u64 = 95;

fn percent(part: u64, whole: u64) -> u64 {
    part.saturating_mul(100) / whole.max(1)
}

/// The process may have as many descriptors as it needs.
pub(super) fn descriptors(facts: &Facts) -> Checked {
    let forwarder = any(facts)?;
    let mut findings = Vec::new();
    let refused = forwarder.count("router.accept-failed");
    if refused > 0 {
        findings.push(Finding::warning(
            format!("{} became no face, for lack of descriptors or memory.", super::counted(refused, "connection")),
            "namewire status --holders",
        ));
    }
    let Some(process) = &facts.process else { return not_readable(findings) };
    let Some((now, most)) = process.descriptors else { return not_readable(findings) };
    let raise = format!("sudo prlimit --pid {} --nofile=65536:65536", process.pid);
    if let Some(open) = process.open_descriptors {
        let used = percent(open, now);
        let message = format!("The router has {open} of at most {now} descriptors open.");
        if used >= FULL_PERCENT {
            findings.push(Finding::error(message, &*raise));
        } else if used >= NEARLY_PERCENT {
            findings.push(Finding::warning(message, &*raise));
        }
    }
    let faces = facts.settings.number("router.workers").zip(facts.settings.number("faces.max_per_worker"));
    if let Some((workers, faces)) = faces {
        let wanted = workers.saturating_mul(faces).saturating_add(DESCRIPTORS_OF_ROUTER);
        // A limit near the settings' is theirs; one that is far below is the system's default.
        if now < wanted / 4 {
            findings.push(Finding::note(
                format!(
                    "The settings allow {} faces, but the router may have {now} descriptors (at most {most}).",
                    workers * faces
                ),
                "ulimit -n 65536; namewire run",
            ));
        }
    }
    let open = process.open_descriptors.map(|open| format!(", {open} open")).unwrap_or_default();
    Ok(Outcome::of(findings, format!("at most {now}{open}")))
}

fn not_readable(findings: Vec<Finding>) -> Checked {
    match findings.is_empty() {
        true => Err(Outcome::NotMade("this user may not read the limits of the forwarder's process".to_owned())),
        false => Ok(Outcome::Found(findings)),
    }
}

/// AF_XDP may lock its memory.
pub(super) fn locked_memory(facts: &Facts) -> Checked {
    let settings = settings(facts)?;
    if !uses_af_xdp(facts) {
        return Ok(Outcome::Good("the settings lock none".to_owned()));
    }
    let workers = settings.number("router.workers").unwrap_or(1);
    let needed = XDP_BYTES.saturating_mul(workers);
    let process = facts.process.as_ref();
    let Some(most) = process.and_then(|process| process.locked_bytes_max) else {
        return Err(Outcome::NotMade("the limit of the process is not known".to_owned()));
    };
    let pid = process.map_or(0, |process| process.pid);
    let finding = || {
        let message = format!(
            "AF_XDP needs about {} of locked memory, and the router may lock {}.",
            quantity::bytes(needed),
            quantity::bytes(most)
        );
        Finding::warning(message, format!("sudo prlimit --pid {pid} --memlock=unlimited:unlimited"))
    };
    Ok(Outcome::of((most < needed).then(finding).into_iter().collect(), "the limit suffices"))
}

fn uses_af_xdp(facts: &Facts) -> bool {
    let settings = &facts.settings;
    let uses_ethernet = settings.is_on("faces.ethernet.listen") || settings.is_on("faces.ethernet.multicast");
    uses_ethernet && settings.text("faces.ethernet.io").is_some_and(|io| io != "socket")
}

/// Memory suffices for the tables.
pub(super) fn memory(facts: &Facts) -> Checked {
    let mut findings = Vec::new();
    let process = facts.process.as_ref();
    let store = facts.settings.bytes("cs.capacity");
    if let Some(limit) = process.and_then(|process| process.group_bytes_max) {
        let used = process.and_then(|process| process.group_bytes).unwrap_or(0);
        if percent(used, limit) >= FULL_PERCENT {
            findings.push(Finding::error(
                format!(
                    "The router's group uses {} of {} memory: the kernel may end it.",
                    quantity::bytes(used),
                    quantity::bytes(limit)
                ),
                "namewire cs config --capacity 64MiB",
            ));
        }
        if let Some(store) = store.filter(|store| percent(*store, limit) >= NEARLY_PERCENT) {
            findings.push(Finding::warning(
                format!(
                    "The Content Store may take {}, and the router's group has {}.",
                    quantity::bytes(store),
                    quantity::bytes(limit)
                ),
                format!("namewire cs config --capacity {}MiB", (limit / 2) >> 20),
            ));
        }
    }
    let (all, free) = (facts.host.memory_bytes, facts.host.available_bytes);
    if let Some((all, free)) = all.zip(free).filter(|(all, free)| percent(*free, *all) < 100 - FULL_PERCENT) {
        findings.push(Finding::warning(
            format!("This machine has {} of {} memory left.", quantity::bytes(free), quantity::bytes(all)),
            "ps aux --sort=-rss | head",
        ));
    }
    // A store that is not full yet may need all of the memory later.
    if let Some((all, store)) = all.zip(store).filter(|(all, store)| percent(*store, *all) >= NEARLY_PERCENT) {
        findings.push(Finding::warning(
            format!("The Content Store may take {} of {} memory.", quantity::bytes(store), quantity::bytes(all)),
            format!("namewire cs config --capacity {}MiB", (all / 2) >> 20),
        ));
    }
    if all.is_none() && process.is_none() {
        return Err(Outcome::NotMade("the system does not tell".to_owned()));
    }
    let resident = process.and_then(|process| process.resident_bytes).map(quantity::bytes);
    Ok(Outcome::of(findings, format!("the router uses {}", resident.as_deref().unwrap_or("an unknown amount"))))
}

/// The huge pages that the settings ask for are reserved.
pub(super) fn huge_pages(facts: &Facts) -> Checked {
    let settings = settings(facts)?;
    let size_kib = match settings.text("tables.pages").as_deref() {
        Some("2MiB") => 2048,
        Some("1GiB") => 1 << 20,
        _ => return Ok(Outcome::Good("the settings ask for none".to_owned())),
    };
    let pages = facts.host.huge_pages.iter().find(|pages| pages.size_kib == size_kib);
    let size = quantity::bytes(size_kib << 10);
    let command = format!("echo 512 | sudo tee /sys/kernel/mm/hugepages/hugepages-{size_kib}kB/nr_hugepages");
    let findings = match pages {
        None => vec![Finding::error(
            format!("This kernel has no pages of {size}, which tables.pages asks for."),
            "grep -i huge /proc/meminfo",
        )],
        Some(pages) if pages.total == 0 => {
            vec![Finding::error(format!("No pages of {size} are reserved, which tables.pages asks for."), command)]
        }
        Some(pages) if pages.free == 0 && facts.forwarder.is_none() => {
            vec![Finding::error(format!("All {} pages of {size} are in use.", pages.total), command)]
        }
        Some(_) => Vec::new(),
    };
    Ok(Outcome::of(findings, format!("pages of {size} are reserved")))
}

/// The kernel has AF_XDP if the settings ask for it.
pub(super) fn af_xdp(facts: &Facts) -> Checked {
    settings(facts)?;
    if !uses_af_xdp(facts) {
        return Ok(Outcome::Good("the settings do not ask for it".to_owned()));
    }
    let io = facts.settings.text("faces.ethernet.io").unwrap_or_default();
    let findings = match (facts.host.has_af_xdp, &*io) {
        (Some(true), _) => Vec::new(),
        (None, _) => return Err(Outcome::NotMade("the kernel does not say whether it has AF_XDP".to_owned())),
        (Some(false), "xdp") => vec![Finding::error(
            "This kernel has no AF_XDP, which faces.ethernet.io = \"xdp\" asks for.",
            "namewire run --set faces.ethernet.io=socket",
        )],
        (Some(false), _) => vec![Finding::note(
            "This kernel has no AF_XDP: Ethernet faces use packet sockets, which cost more.",
            "grep XDP_SOCKETS /boot/config-$(uname -r)",
        )],
    };
    Ok(Outcome::of(findings, "the kernel has it"))
}

/// The machine has IPv6 if the settings ask for it.
pub(super) fn ipv6(facts: &Facts) -> Checked {
    let settings = settings(facts)?;
    let mut wanting: Vec<&str> = ["faces.udp.listen", "faces.tcp.listen"]
        .into_iter()
        .filter(|key| settings.list(key).iter().any(|address| address.starts_with('[')))
        .collect();
    if settings.is_on("faces.multicast.enabled") && settings.is_on("faces.multicast.ipv6") {
        wanting.push("faces.multicast.ipv6");
    }
    if wanting.is_empty() {
        return Ok(Outcome::Good("no setting asks for it by itself".to_owned()));
    }
    let place =
        facts.host.container.as_ref().map_or("This machine".to_owned(), |kind| format!("This container ({kind})"));
    let finding = || {
        let message = format!("{place} has no IPv6 address, which {} needs.", wanting.join(" and "));
        Finding::error(message, "sudo sysctl -w net.ipv6.conf.all.disable_ipv6=0")
    };
    Ok(Outcome::of((!facts.host.has_ipv6).then(finding).into_iter().collect(), "there are IPv6 addresses"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        checks::test_facts::{found, in_order, not_made},
        facts::HugePages,
        finding::Severity,
    };
    use namewire_packet::nfd::DropCounter;

    fn with(pairs: &[(&str, &str)]) -> Facts {
        let mut facts = in_order();
        for (key, value) in pairs {
            facts.settings.values.insert((*key).to_owned(), (*value).to_owned());
        }
        facts
    }

    #[test]
    fn descriptors_that_run_out_are_found_by_degree() {
        let mut facts = with(&[("faces.max_per_worker", "100")]);
        let severity = |facts: &Facts| found(descriptors(facts)).first().map(|finding| finding.severity);
        for (open, expected) in [(100, None), (850, Some(Severity::Warning)), (1000, Some(Severity::Error))] {
            let process = facts.process.as_mut().unwrap();
            (process.descriptors, process.open_descriptors) = (Some((1024, 4096)), Some(open));
            assert_eq!(severity(&facts), expected, "{open}");
        }
        let mut facts = with(&[("faces.max_per_worker", "16384"), ("router.workers", "4")]);
        facts.process.as_mut().unwrap().descriptors = Some((1024, 4096));
        assert!(found(descriptors(&facts))[0].message.contains("allow 65536 faces"));
        facts.process = None;
        assert!(not_made(descriptors(&facts)).contains("may not read"));
        let drops = &mut facts.forwarder.as_mut().unwrap().after.state.drops;
        drops.push(DropCounter { reason: "router.accept-failed".into(), count: 1 });
        assert!(found(descriptors(&facts))[0].message.starts_with("1 connection became no face"));
    }

    #[test]
    fn memory_that_the_tables_can_exhaust_is_found() {
        let mut facts = with(&[("cs.capacity", "\"900 MiB\"")]);
        facts.process.as_mut().unwrap().group_bytes_max = Some(1 << 30);
        let [finding] = &found(memory(&facts))[..] else { panic!() };
        assert!(finding.message.contains("900.0 MiB") && finding.command.ends_with("--capacity 512MiB"), "{finding:?}");
        facts.process.as_mut().unwrap().group_bytes = Some(1 << 30);
        assert_eq!(found(memory(&facts))[0].severity, Severity::Error);
        let mut facts = with(&[("cs.capacity", "\"15 GiB\"")]);
        assert!(found(memory(&facts))[0].message.contains("15.0 GiB of 16.0 GiB"));
        facts = in_order();
        facts.host.available_bytes = Some(1 << 20);
        assert!(found(memory(&facts))[0].message.contains("memory left"));
        facts = Facts::default();
        assert!(not_made(memory(&facts)).contains("does not tell"));
    }

    #[test]
    fn huge_pages_must_be_reserved() {
        let mut facts = with(&[("tables.pages", "\"2MiB\"")]);
        assert!(found(huge_pages(&facts))[0].message.contains("no pages of 2.0 MiB"));
        facts.host.huge_pages = vec![HugePages { size_kib: 2048, total: 0, free: 0 }];
        assert!(found(huge_pages(&facts))[0].command.contains("hugepages-2048kB/nr_hugepages"));
        facts.host.huge_pages = vec![HugePages { size_kib: 2048, total: 8, free: 0 }];
        assert!(found(huge_pages(&facts)).is_empty(), "the running router may have them");
        facts.forwarder = None;
        assert!(found(huge_pages(&facts))[0].message.contains("All 8"));
    }

    #[test]
    fn af_xdp_and_its_memory_are_needed_where_settings_ask() {
        let mut facts = with(&[("faces.ethernet.listen", "true"), ("faces.ethernet.io", "\"xdp\"")]);
        facts.host.has_af_xdp = Some(false);
        assert_eq!(found(af_xdp(&facts))[0].severity, Severity::Error);
        facts.host.has_af_xdp = None;
        assert!(not_made(af_xdp(&facts)).contains("does not say"));
        facts.process.as_mut().unwrap().locked_bytes_max = Some(8 << 20);
        assert!(found(locked_memory(&facts))[0].message.contains("may lock 8.0 MiB"));
        facts.process.as_mut().unwrap().locked_bytes_max = Some(u64::MAX);
        assert!(found(locked_memory(&facts)).is_empty());
        let mut facts = with(&[("faces.ethernet.multicast", "true"), ("faces.ethernet.io", "\"auto\"")]);
        facts.host.has_af_xdp = Some(false);
        assert_eq!(found(af_xdp(&facts))[0].severity, Severity::Note);
    }

    #[test]
    fn ipv6_is_needed_where_settings_ask() {
        let mut facts = with(&[("faces.udp.listen", "[\"[::]:6363\"]"), ("faces.multicast.enabled", "true")]);
        assert!(found(ipv6(&facts)).is_empty());
        facts.host.has_ipv6 = false;
        facts.host.container = Some("docker".into());
        let [finding] = &found(ipv6(&facts))[..] else { panic!() };
        assert!(finding.message.starts_with("This container (docker) has no IPv6"), "{finding:?}");
        assert!(finding.message.contains("faces.udp.listen") && !finding.message.contains("tcp"), "{finding:?}");
    }
}
