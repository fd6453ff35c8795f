//! Is there a forwarder? If not, what keeps one from starting?

use super::{Checked, any, settings};
use crate::{
    facts::{ChosenBy, Facts, ForwarderFacts, PortFacts, PortHolder, ProbeFacts, Refusal, SocketFacts},
    finding::{Finding, Outcome},
};
use namewire_client::discovery::TRANSPORT_VARIABLE;
use namewire_printing::quantity;

/// Start of 2025: an earlier clock has never been set.
const EARLIEST_MS: u64 = 1_735_689_600_000;

/// Signed commands of a clock that is further off are refused (management.md §8).
const CLOCK_OFF_MS: u64 = 120_000;

/// Two clocks that differ by more than this between two looks show a jump.
const JUMP_MS: u64 = 500;

/// A forwarder answers.
pub(super) fn forwarder(facts: &Facts) -> Checked {
    if let Some(forwarder) = &facts.forwarder {
        let what = if forwarder.is_namewire { "" } else { "; it is not Namewire, so fewer checks can be made" };
        return Ok(Outcome::Good(format!("version {} answers at {}{what}", forwarder.version, forwarder.transport)));
    }
    if facts.approach.malformed.is_some() {
        return Err(Outcome::NotMade("the place of the forwarder is not known".to_owned()));
    }
    let tried: Vec<String> = facts.approach.tried.iter().map(|(uri, why)| format!("{uri}: {why}")).collect();
    let tried = if tried.is_empty() { String::new() } else { format!(" ({})", tried.join("; ")) };
    let other = facts.approach.sockets.iter().find(|socket| socket.answers());
    let command = match other {
        _ if facts.approach.is_remote => "ssh HOST namewire doctor".to_owned(),
        Some(other) => format!("namewire doctor --transport unix://{}", other.path),
        None => "namewire run".to_owned(),
    };
    Ok(Outcome::Found(vec![Finding::error(format!("No forwarder answers{tried}."), command)]))
}

/// Environment and client.conf lead to the forwarder that runs.
pub(super) fn client_transport(facts: &Facts) -> Checked {
    let approach = &facts.approach;
    let (place, undo) = match &approach.chosen_by {
        ChosenBy::Environment => (TRANSPORT_VARIABLE.to_owned(), format!("unset {TRANSPORT_VARIABLE}")),
        ChosenBy::ClientConf(path) => (path.clone(), format!("sed -i '/^ *transport *=/d' {path}")),
        ChosenBy::Option => ("--transport".to_owned(), "namewire doctor".to_owned()),
        ChosenBy::Default => (String::new(), format!("unset {TRANSPORT_VARIABLE}")),
    };
    if let Some(error) = &approach.malformed {
        return Ok(Outcome::Found(vec![Finding::error(format!("Programs find no forwarder: {error}."), undo)]));
    }
    let chosen =
        |socket: &&SocketFacts| approach.tried.iter().any(|(uri, _)| *uri == format!("unix://{}", socket.path));
    let other = approach.sockets.iter().find(|socket| socket.answers() && !chosen(socket));
    let findings = match (facts.forwarder.is_none(), other) {
        (true, Some(other)) if approach.chosen_by != ChosenBy::Default => vec![Finding::error(
            format!("{place} leads to a forwarder that does not answer, while one answers at {}.", other.path),
            undo,
        )],
        _ => Vec::new(),
    };
    let good = if place.is_empty() { "nobody chose a forwarder: the usual places count".to_owned() } else { place };
    Ok(Outcome::of(findings, good))
}

/// Applications can connect.
pub(super) fn socket(facts: &Facts) -> Checked {
    let mut findings = Vec::new();
    let sockets = &facts.approach.sockets;
    for socket in sockets {
        findings.extend(socket_finding(socket, facts));
    }
    let used = facts.forwarder.as_ref().map(|forwarder| forwarder.transport.clone());
    let answering: Vec<&str> = sockets.iter().filter(|one| one.answers()).map(|one| &*one.path).collect();
    if let [first, second, ..] = answering[..] {
        let used = used.unwrap_or_else(|| format!("unix://{first}"));
        findings.push(Finding::note(
            format!(
                "Two forwarders run here, at {first} and at {second}; programs may use either ({used} is checked)."
            ),
            format!("namewire status --transport unix://{second}"),
        ));
    }
    let can_be_made = sockets.iter().any(|socket| socket.can_be_made);
    if let (None, [], false, Some(socket)) = (&facts.forwarder, &answering[..], can_be_made, sockets.first()) {
        let folder = socket.path.rsplit_once('/').map_or("/", |(folder, _)| folder);
        findings.push(Finding::error(
            format!("This user can make a socket in none of the usual places, for example not in {folder}."),
            "namewire run --socket $HOME/nfd.sock",
        ));
    }
    Ok(Outcome::of(findings, answering.join(", ")))
}

fn socket_finding(socket: &SocketFacts, facts: &Facts) -> Option<Finding> {
    let (path, file) = (&socket.path, socket.file?);
    if !socket.is_socket {
        return Some(Finding::error(
            format!("{path} is no socket, so no router can listen there."),
            format!("rm {path}"),
        ));
    }
    let who = facts.user.name.clone().unwrap_or_else(|| facts.user.uid.to_string());
    match &socket.refusal {
        Some(Refusal::NobodyListens) => Some(Finding::note(
            format!("{path} is of a router that has died; the next one replaces it."),
            format!("rm {path}"),
        )),
        Some(Refusal::NotPermitted) => Some(Finding::error(
            format!("User {who} may not connect to {path} (owner {}, mode {:04o}).", file.uid, file.mode),
            format!("sudo chmod 0666 {path}"),
        )),
        Some(Refusal::Other(why)) => Some(Finding::warning(
            format!("{path} does not answer: {why}."),
            format!("namewire status --transport unix://{path}"),
        )),
        None if file.mode & 0o002 == 0 => Some(Finding::note(
            format!("Only its owner and group can connect to {path} (mode {:04o}), not all users.", file.mode),
            format!("sudo chmod 0666 {path}"),
        )),
        None => None,
    }
}

/// The ports that the settings name are the router's.
pub(super) fn ports(facts: &Facts) -> Checked {
    if facts.ports.is_empty() {
        return Err(Outcome::NotMade("no settings are known that need a port".to_owned()));
    }
    let mut findings = Vec::new();
    for port in &facts.ports {
        let listens =
            |channel: &str| channel.starts_with(port.protocol) && channel.ends_with(&format!(":{}", port.port));
        let channels = facts.forwarder.as_ref().map(|forwarder| &forwarder.after.state.channels);
        let is_ours = channels.is_some_and(|channels| channels.iter().any(|channel| listens(&channel.local_uri)));
        let others: Vec<&PortHolder> =
            port.holders.iter().filter(|holder| holder.pid.is_none() || holder.pid != own_pid(facts)).collect();
        if !is_ours && (!others.is_empty() || channels.is_some()) {
            findings.push(port_finding(port, &others, channels.is_some()));
        }
    }
    let ports: Vec<String> = facts.ports.iter().map(|port| format!("{} {}", port.protocol, port.port)).collect();
    Ok(Outcome::of(findings, ports.join(", ")))
}

fn own_pid(facts: &Facts) -> Option<u32> {
    facts.process.as_ref().map(|process| process.pid)
}

fn port_finding(port: &PortFacts, others: &[&PortHolder], runs: bool) -> Finding {
    let PortFacts { protocol, port: number, is_named, .. } = port;
    let flag = if *protocol == "udp" { "-ulnp" } else { "-tlnp" };
    let command = format!("sudo ss {flag} 'sport = :{number}'");
    let names: Vec<String> = others
        .iter()
        .map(|holder| match (&holder.program, holder.pid) {
            (Some(program), Some(pid)) => format!("{program} (process {pid})"),
            _ => "a process of another user".to_owned(),
        })
        .collect();
    let by = if names.is_empty() { String::new() } else { format!(": {} has it", names.join(" and ")) };
    let upper = protocol.to_uppercase();
    match (runs, is_named) {
        (true, _) => Finding::warning(format!("The router does not listen on {upper} port {number}{by}."), command),
        (false, true) => {
            Finding::error(format!("A router would not start: {upper} port {number} is in use{by}."), command)
        }
        (false, false) => Finding::warning(
            format!("A router would not listen on {upper} port {number}, which is in use{by}."),
            command,
        ),
    }
}

/// A router would take its configuration file, and has taken it.
pub(super) fn configuration(facts: &Facts) -> Checked {
    let Some(file) = &facts.configuration else {
        return Err(Outcome::NotMade("no configuration file is known; --config FILE names one".to_owned()));
    };
    let option = if file.is_of_nfd { "--nfd-conf " } else { "" };
    let command = format!("namewire config check {option}{}", file.path);
    let mut findings = Vec::new();
    findings.extend(file.error.as_ref().map(|error| {
        Finding::error(format!("A router would reject its configuration: {}.", error.trim_end_matches('.')), &*command)
    }));
    findings
        .extend(file.warnings.iter().map(|warning| Finding::warning(format!("{}: {warning}", file.path), &*command)));
    if !file.changed.is_empty() {
        let s = if file.changed.len() == 1 { "s" } else { "" };
        findings.push(Finding::note(
            format!("{} differ{s} between {} and the running router.", super::some_of(&file.changed), file.path),
            "namewire reload",
        ));
    }
    Ok(Outcome::of(findings, file.path.clone()))
}

/// Links that need privileges have them.
pub(super) fn privileges(facts: &Facts) -> Checked {
    let settings = settings(facts)?;
    let needing: Vec<&str> = ["faces.ethernet.listen", "faces.ethernet.multicast", "faces.ethernet.by_command"]
        .into_iter()
        .filter(|key| settings.is_on(key))
        .collect();
    if needing.is_empty() {
        return Ok(Outcome::Good("the settings need none".to_owned()));
    }
    let privileges = facts.forwarder.as_ref().map(|forwarder| forwarder.after.state.privileges.as_ref());
    let (lacks, who) = match privileges {
        Some(Some(has)) => (!has.capabilities.split_whitespace().any(|one| one == "net-raw"), "The router lacks"),
        Some(None) => return Err(Outcome::NotMade("the router does not tell its privileges".to_owned())),
        None => (facts.user.uid != 0, "A router that this user starts lacks"),
    };
    let finding = || {
        let message = format!("{who} CAP_NET_RAW, which {} needs.", needing.join(" and "));
        Finding::error(message, "sudo setcap cap_net_raw+ep $(command -v namewire)")
    };
    Ok(Outcome::of(lacks.then(finding).into_iter().collect(), "CAP_NET_RAW is there"))
}

/// The clock is right, and did not jump.
pub(super) fn clock(facts: &Facts) -> Checked {
    const SYNCHRONISE: &str = "sudo timedatectl set-ntp true";
    let mut findings = Vec::new();
    if facts.now_ms < EARLIEST_MS {
        let message = "The clock of this machine is before 2025: signed commands and certificates are refused.";
        findings.push(Finding::error(message, SYNCHRONISE));
    }
    let starts: Vec<u64> = facts
        .keys
        .identities
        .iter()
        .flat_map(|identity| &identity.keys)
        .flat_map(|key| &key.certificates)
        .map(|certificate| certificate.not_before_ms)
        .collect();
    if let Some(first) = starts.iter().min().filter(|first| **first > facts.now_ms + CLOCK_OFF_MS) {
        let early = quantity::ms(first - facts.now_ms);
        findings.push(Finding::error(
            format!("The clock is {early} before the first moment of every certificate of this user."),
            SYNCHRONISE,
        ));
    }
    if let Ok(forwarder) = any(facts) {
        let (before, after) = (&forwarder.before, &forwarder.after);
        let passed = after.unix_ms as i64 - before.unix_ms as i64;
        if passed.abs_diff(forwarder.watched_ms() as i64) > JUMP_MS {
            findings.push(Finding::warning("The clock jumped while it was watched.", "timedatectl timesync-status"));
        }
        findings.extend(jump_since_start(facts));
        findings.extend(facts.probes.iter().filter_map(|probe| clock_of_neighbour(forwarder, probe)));
        for (counter, when) in [("denied.expired", "too long ago"), ("denied.from-the-future", "later than now")] {
            let count = forwarder.count(counter);
            if count > 0 {
                findings.push(Finding::warning(
                    format!(
                        "{} refused as signed {when}: a clock is off, here or at the signer.",
                        if count == 1 { "1 command was".to_owned() } else { format!("{count} commands were") }
                    ),
                    "namewire events --area trust,management -n 5",
                ));
            }
        }
    }
    Ok(Outcome::of(findings, "it agrees with all that is known"))
}

/// A neighbour with another time: its signed commands, or those of this machine, are refused.
fn clock_of_neighbour(forwarder: &ForwarderFacts, probe: &ProbeFacts) -> Option<Finding> {
    let ahead_ms = probe.router.as_ref()?.clock_ahead_ms?;
    let word = if ahead_ms > 0 { "ahead of" } else { "behind" };
    (ahead_ms.unsigned_abs() > CLOCK_OFF_MS).then(|| {
        let off = quantity::ms(ahead_ms.unsigned_abs());
        let who = forwarder.describe(probe.face);
        let message = format!("The clock of the router at {who} is {off} {word} this one: one of them is wrong.");
        Finding::warning(message, "timedatectl timesync-status")
    })
}

/// The kernel and the router remember its start at different times.
fn jump_since_start(facts: &Facts) -> Option<Finding> {
    let general = facts.forwarder.as_ref()?.after.state.general.as_ref()?;
    let by_kernel = facts.process.as_ref()?.start_unix_ms?;
    let off = by_kernel.abs_diff(general.start_timestamp_ms);
    let word = if by_kernel > general.start_timestamp_ms { "forwards" } else { "backwards" };
    (off > CLOCK_OFF_MS).then(|| {
        let message = format!("The clock was set {word} by {} since the router started.", quantity::ms(off));
        Finding::warning(message, "sudo systemctl restart namewire")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        checks::test_facts::{found, in_order, not_made},
        facts::{ConfigurationFacts, FileFacts, KeyOfIdentity, NeighbourRouter},
        finding::Severity,
    };
    use namewire_packet::nfd::{DropCounter, ProcessPrivileges};

    #[test]
    fn no_forwarder_is_an_error_that_names_what_was_tried() {
        let mut facts = Facts::default();
        facts.approach.tried = vec![("unix:///run/nfd/nfd.sock".into(), "No such file".into())];
        let [finding] = &found(forwarder(&facts))[..] else { panic!() };
        assert!(finding.message.contains("/run/nfd/nfd.sock: No such file"), "{finding:?}");
        assert_eq!((finding.severity, &*finding.command), (Severity::Error, "namewire run"));
        let answers = SocketFacts { path: "/tmp/a".into(), is_socket: true, ..Default::default() };
        facts.approach.sockets.push(SocketFacts { file: Some(FileFacts { uid: 0, mode: 0o666 }), ..answers });
        assert!(found(forwarder(&facts))[0].command.ends_with("--transport unix:///tmp/a"));

        facts.approach.chosen_by = ChosenBy::Environment;
        let [finding] = &found(client_transport(&facts))[..] else { panic!() };
        assert_eq!((finding.severity, &*finding.command), (Severity::Error, "unset NDN_CLIENT_TRANSPORT"));
        facts.approach.malformed = Some("NDN_CLIENT_TRANSPORT: \"x\" has no scheme".into());
        assert!(found(client_transport(&facts))[0].message.contains("no scheme"));
        assert!(not_made(forwarder(&facts)).contains("not known"));
    }

    #[test]
    fn a_forwarder_of_another_machine_tells_nothing() {
        let mut facts = Facts::default();
        facts.approach.is_remote = true;
        assert_eq!(found(forwarder(&facts))[0].command, "ssh HOST namewire doctor");
    }

    #[test]
    fn each_fault_of_a_socket_is_named() {
        let mut facts = in_order();
        let socket_of = |refusal, mode| SocketFacts {
            path: "/s".into(),
            file: Some(FileFacts { uid: 7, mode }),
            is_socket: true,
            refusal,
            can_be_made: true,
        };
        for (one, severity, words) in [
            (SocketFacts { is_socket: false, ..socket_of(None, 0o666) }, Severity::Error, "is no socket"),
            (socket_of(Some(Refusal::NobodyListens), 0o666), Severity::Note, "has died"),
            (socket_of(Some(Refusal::NotPermitted), 0o600), Severity::Error, "(owner 7, mode 0600)"),
            (socket_of(Some(Refusal::Other("slow".into())), 0o600), Severity::Warning, "slow"),
            (socket_of(None, 0o660), Severity::Note, "Only its owner and group"),
        ] {
            facts.approach.sockets = vec![one];
            let [finding] = &found(socket(&facts))[..] else { panic!("{words}") };
            assert!(finding.severity == severity && finding.message.contains(words), "{finding:?}");
        }
        let second = SocketFacts { path: "/t".into(), ..socket_of(None, 0o666) };
        facts.approach.sockets = vec![socket_of(None, 0o666), second];
        assert!(found(socket(&facts))[0].message.contains("Two forwarders"));
        facts.forwarder = None;
        facts.approach.sockets = vec![SocketFacts { path: "/run/nfd/nfd.sock".into(), ..Default::default() }];
        assert!(found(socket(&facts))[0].message.contains("not in /run/nfd"));
    }

    #[test]
    fn a_port_that_another_program_has_is_named_with_the_program() {
        let mut facts = in_order();
        let holder = PortHolder { pid: Some(12), program: Some("nfd".into()) };
        let port = PortFacts { protocol: "tcp", port: 6363, is_named: false, holders: vec![holder] };
        facts.ports = vec![port.clone()];
        assert!(found(ports(&facts)).is_empty(), "the router listens there");
        facts.forwarder.as_mut().unwrap().after.state.channels.clear();
        assert_eq!(found(ports(&facts))[0].severity, Severity::Warning);
        facts.forwarder = None;
        let [finding] = &found(ports(&facts))[..] else { panic!() };
        assert!(finding.message.contains("nfd (process 12) has it"), "{finding:?}");
        assert_eq!(finding.command, "sudo ss -tlnp 'sport = :6363'");
        facts.ports = vec![PortFacts { is_named: true, ..port.clone() }];
        assert_eq!(found(ports(&facts))[0].severity, Severity::Error);
        facts.ports = vec![PortFacts { holders: Vec::new(), ..port }];
        assert!(found(ports(&facts)).is_empty());
    }

    #[test]
    fn a_file_that_a_router_would_reject_is_an_error() {
        let mut facts = in_order();
        let file =
            ConfigurationFacts { path: "/c".into(), error: Some("line 1: unknown key".into()), ..Default::default() };
        facts.configuration = Some(file);
        let [finding] = &found(configuration(&facts))[..] else { panic!() };
        assert_eq!((finding.severity, &*finding.command), (Severity::Error, "namewire config check /c"));
        let changed = vec!["router.workers".to_owned()];
        facts.configuration = Some(ConfigurationFacts {
            path: "/c".into(),
            warnings: vec!["old key".into()],
            changed,
            ..Default::default()
        });
        let findings = found(configuration(&facts));
        assert_eq!((findings[0].severity, findings[1].severity), (Severity::Warning, Severity::Note));
        assert!(findings[1].message.starts_with("router.workers differs"), "{findings:?}");
        assert_eq!(findings[1].command, "namewire reload");
        facts.configuration = None;
        assert!(not_made(configuration(&facts)).contains("--config"));
    }

    #[test]
    fn ethernet_needs_a_privilege() {
        let mut facts = in_order();
        facts.settings.values.insert("faces.ethernet.listen".into(), "true".into());
        let state = &mut facts.forwarder.as_mut().unwrap().after.state;
        state.privileges = Some(ProcessPrivileges { capabilities: "net-admin".into(), ..Default::default() });
        assert!(found(privileges(&facts))[0].message.contains("CAP_NET_RAW"));
        let state = &mut facts.forwarder.as_mut().unwrap().after.state;
        state.privileges = Some(ProcessPrivileges { capabilities: "net-raw".into(), ..Default::default() });
        assert!(found(privileges(&facts)).is_empty());
        facts.forwarder = None;
        facts.user.uid = 1000;
        assert!(found(privileges(&facts))[0].message.contains("this user starts"));
    }

    #[test]
    fn each_sign_of_a_wrong_clock_is_found() {
        let mut facts = in_order();
        assert!(found(clock(&facts)).is_empty());
        facts.now_ms = 5;
        assert!(found(clock(&facts))[0].message.contains("before 2025"));

        let mut facts = in_order();
        let certificate = &mut facts.keys.identities[0].keys[0].certificates[0];
        certificate.not_before_ms = facts.now_ms + 3_600_000;
        assert!(found(clock(&facts))[0].message.contains("1 h 0 min before the first moment"));
        facts.keys.identities[0]
            .keys
            .push(KeyOfIdentity { certificates: vec![Default::default()], ..Default::default() });
        assert!(found(clock(&facts)).is_empty(), "another certificate is valid");

        let mut facts = in_order();
        facts.forwarder.as_mut().unwrap().after.unix_ms += 10_000;
        assert!(found(clock(&facts))[0].message.contains("jumped"));

        let mut facts = in_order();
        facts.process.as_mut().unwrap().start_unix_ms = Some(facts.now_ms);
        assert!(found(clock(&facts))[0].message.contains("set forwards by"));
        for (clock_ahead_ms, words) in [(3_600_000, "1 h 0 min ahead of this one"), (-130_000, "behind this one")] {
            let mut facts = in_order();
            let router = NeighbourRouter { clock_ahead_ms: Some(clock_ahead_ms), ..NeighbourRouter::default() };
            facts.probes[0].router = Some(router);
            assert!(found(clock(&facts))[0].message.contains(words));
        }
        let drops = &mut facts.forwarder.as_mut().unwrap().after.state.drops;
        drops.push(DropCounter { reason: "denied.expired".into(), count: 3 });
        assert!(found(clock(&facts))[1].message.contains("3 commands were refused as signed too long ago"));
    }
}
