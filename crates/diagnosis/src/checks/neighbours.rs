//! Do the other ends of faces answer, and does the path to them pass large packets?

use super::{Checked, any, counted, ours};
use crate::{
    facts::{Answer, Facts, ForwarderFacts, ProbeFacts},
    finding::{Finding, Outcome, Severity},
};
use namewire_packet::{
    FaceId,
    nfd::{FaceState, FaceStatus, face_flags},
};
use namewire_printing::quantity;

/// A face that was asked this often without any answer is called silent.
const SILENT_MIN: u64 = 3;

/// Bytes of IPv4 and UDP headers.
const IP_AND_UDP_BYTES: u64 = 28;

/// A frame of this size passes every path with IPv6 and UDP (RFC 8200 §5).
const SAFE_MTU: u64 = 1232;

fn is_neighbour(forwarder: &ForwarderFacts, status: &FaceStatus) -> bool {
    !forwarder.is_local_face(status.face_id)
}

/// Faces to other machines.
fn neighbours(forwarder: &ForwarderFacts) -> Vec<&FaceStatus> {
    forwarder.after.state.faces.iter().filter(|status| is_neighbour(forwarder, status)).collect()
}

/// A finding that is worse if routes need the face.
fn by_use(forwarder: &ForwarderFacts, face: FaceId, message: String, command: String) -> Finding {
    let severity = if forwarder.is_next_hop(face) { Severity::Error } else { Severity::Warning };
    Finding { severity, message, command }
}

/// No face is down.
pub(super) fn faces_up(facts: &Facts) -> Checked {
    let forwarder = ours(facts)?;
    let down = forwarder.after.state.faces.iter().filter(|status| status.state == Some(FaceState::Down));
    let findings: Vec<Finding> = down
        .map(|status| {
            let since = forwarder.health(status.face_id).map(|health| facts.now_ms.saturating_sub(health.since_ms));
            let since = since.map(|ms| format!(" for {}", quantity::ms(ms))).unwrap_or_default();
            let message = format!(
                "{} has been down{since}: the other end does not accept connections, or the link is down.",
                capital(&forwarder.describe(status.face_id))
            );
            by_use(forwarder, status.face_id, message, format!("namewire face show {}", status.face_id))
        })
        .collect();
    Ok(Outcome::of(findings, counted(forwarder.after.state.faces.len() as u64, "face")))
}

/// The host is in the networks that it has joined.
pub(super) fn networks(facts: &Facts) -> Checked {
    let forwarder = ours(facts)?;
    let findings = forwarder.networks.iter().filter(|network| !network.is_joined).map(|network| {
        let why = network.problem.as_deref().unwrap_or("it is being joined");
        Finding::error(format!("The network of {} is not joined: {why}.", network.router), "namewire join")
    });
    Ok(Outcome::of(findings.collect(), counted(forwarder.networks.len() as u64, "network")))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn probes(facts: &Facts) -> Result<&[ProbeFacts], Outcome> {
    any(facts)?;
    match (&facts.no_probes, facts.probes.is_empty()) {
        (Some(why), true) => Err(Outcome::NotMade(why.clone())),
        _ => Ok(&facts.probes),
    }
}

/// Each neighbour answers an Interest that goes one hop.
pub(super) fn answers(facts: &Facts) -> Checked {
    let probes = probes(facts)?;
    let forwarder = any(facts)?;
    let mut findings = Vec::new();
    for probe in probes.iter().filter(|probe| !probe.is_alive()) {
        let Some(status) = forwarder.face(probe.face) else { continue };
        if status.state == Some(FaceState::Down) {
            continue; // `faces-up` has it
        }
        let counters = &status.counters.packets;
        let received = counters.in_interests + counters.in_data + counters.in_nacks;
        let command = format!("namewire capture {} --count 10", probe.face);
        let who = capital(&forwarder.describe(probe.face));
        findings.push(match received {
            0 => by_use(
                forwarder,
                probe.face,
                format!("{who} has never brought a packet, and does not answer an Interest: no forwarder is there, or a firewall is between."),
                command,
            ),
            _ => Finding::note(
                format!("{who} left an Interest without an answer; it has brought {} before.", counted(received, "packet")),
                command,
            ),
        });
    }
    let answered = probes.iter().filter(|probe| probe.is_alive()).count();
    Ok(Outcome::of(findings, format!("{answered} of {} answered", counted(probes.len() as u64, "neighbour"))))
}

/// Neighbours answer the Interests that they get.
pub(super) fn health(facts: &Facts) -> Checked {
    let forwarder = ours(facts)?;
    let mut findings = Vec::new();
    for status in &forwarder.after.state.faces {
        let Some(health) = forwarder.health(status.face_id) else { continue };
        let who = capital(&forwarder.describe(status.face_id));
        let command = format!("namewire face show {}", status.face_id);
        if let Some(recent) = health.recent.filter(|recent| recent.is_degraded()) {
            let avoided = match recent.avoided {
                0 => String::new(),
                count => format!("; {} went elsewhere because of that", counted(count, "Interest")),
            };
            let ended = recent.answered + recent.unanswered;
            let message = format!(
                "{who} is degraded: {} of {} of the last {} got no answer{avoided}.",
                recent.unanswered,
                counted(ended, "Interest"),
                quantity::ms(recent.span_ms)
            );
            findings.push(Finding::warning(message, command));
        } else if health.answered == 0 && health.unanswered >= SILENT_MIN {
            let message = format!("{who} has answered none of {}.", counted(health.unanswered, "Interest"));
            findings.push(Finding::warning(message, command));
        }
    }
    Ok(Outcome::of(findings, "no neighbour leaves many Interests without an answer"))
}

/// Nacks that this program's Interests may cause at a face.
const NACKS_OF_PROBES: u64 = 4;

/// Neighbours have routes for what they get.
pub(super) fn nacks(facts: &Facts) -> Checked {
    let forwarder = any(facts)?;
    let mut findings = Vec::new();
    for status in neighbours(forwarder) {
        let before = forwarder.before.state.faces.iter().find(|before| before.face_id == status.face_id);
        let before = before.map_or(0, |before| before.counters.packets.in_nacks);
        let grown = status.counters.packets.in_nacks.saturating_sub(before);
        if grown > NACKS_OF_PROBES {
            let who = capital(&forwarder.describe(status.face_id));
            let time = quantity::ms(forwarder.watched_ms());
            let message =
                format!("{who} brought {grown} Nacks in {time}: it has no route for what this router sends there.");
            findings.push(Finding::warning(message, format!("namewire capture {} --count 10", status.face_id)));
        }
    }
    Ok(Outcome::of(findings, "no neighbour sends back many Interests"))
}

/// What the other ends are, as far as they show it.
pub(super) fn software(facts: &Facts) -> Checked {
    let probes = probes(facts)?;
    let forwarder = any(facts)?;
    let kinds: Vec<String> = probes
        .iter()
        .map(|probe| {
            let kind = match (&probe.router, &probe.small) {
                (Some(router), _) => {
                    let software = router.software.as_deref().unwrap_or("a forwarder");
                    format!("{software}, router {}", router.name)
                }
                (None, Answer::Nack(reason)) => format!("a forwarder that answers no traceroutes (Nack {reason})"),
                (None, Answer::Data) => "an application or a forwarder (Data)".to_owned(),
                (None, Answer::Silence) => "unknown (silent)".to_owned(),
            };
            format!("{}: {kind}", forwarder.describe(probe.face))
        })
        .collect();
    Ok(Outcome::Good(if kinds.is_empty() { "there are no neighbours".to_owned() } else { kinds.join("; ") }))
}

/// Large packets reach neighbours.
pub(super) fn mtu(facts: &Facts) -> Checked {
    let forwarder = any(facts)?;
    let mut findings = Vec::new();
    for status in neighbours(forwarder) {
        findings.extend(mtu_finding(facts, forwarder, status));
    }
    for (counter, what) in [
        ("link.datagram-too-large", "datagram was larger than its path takes"),
        ("link.packet-too-large", "packet did not fit the MTU of its face"),
    ] {
        let count = forwarder.growth(counter);
        if count > 0 {
            let what = if count == 1 {
                what.to_owned()
            } else {
                what.replace(" was", "s were").replace("packet did", "packets did")
            };
            let message = format!("{count} {what} in the last {}.", quantity::ms(forwarder.watched_ms()));
            findings.push(Finding::warning(message, format!("namewire drops --reason {counter}")));
        }
    }
    let mut good = "no neighbour loses large packets".to_owned();
    if let Some(why) = &facts.no_probes {
        good += &format!(" as far as counters tell (no probes: {why})");
    }
    Ok(Outcome::of(findings, good))
}

fn mtu_finding(facts: &Facts, forwarder: &ForwarderFacts, status: &FaceStatus) -> Option<Finding> {
    let face = status.face_id;
    let probe = facts.probes.iter().find(|probe| probe.face == face)?;
    let who = capital(&forwarder.describe(face));
    if let (true, Some((bytes, Answer::Silence))) = (probe.small.is_answer(), &probe.large) {
        let fit = probe.kernel_mtu.map_or(SAFE_MTU, |mtu| mtu.saturating_sub(IP_AND_UDP_BYTES).min(SAFE_MTU));
        let message =
            format!("{who} answers small Interests, and not one of {bytes} bytes: its path swallows large datagrams.");
        return Some(Finding::error(message, format!("namewire face update {face} --mtu {fit}")));
    }
    let reliability = status.flags & face_flags::LP_RELIABILITY != 0;
    let path_mtu = status.path_mtu.filter(|path| status.mtu.is_some_and(|mtu| *path < mtu))?;
    (!reliability).then(|| {
        let message =
            format!("The path of {} takes {path_mtu} bytes, less than the face's MTU.", forwarder.describe(face));
        Finding::note(message, format!("namewire face update {face} --mtu {path_mtu}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        checks::test_facts::{NEIGHBOUR, found, in_order, not_made},
        facts::NeighbourRouter,
    };
    use namewire_certification::membership::keeper::NetworkState;
    use namewire_packet::nfd::{DropCounter, FaceHealth, FaceRecent};

    fn neighbour(facts: &mut Facts) -> &mut FaceStatus {
        let faces = &mut facts.forwarder.as_mut().unwrap().after.state.faces;
        faces.iter_mut().find(|status| status.face_id == NEIGHBOUR).unwrap()
    }

    fn health_of(facts: &mut Facts) -> &mut FaceHealth {
        &mut facts.forwarder.as_mut().unwrap().after.state.health[0]
    }

    #[test]
    fn a_face_that_is_down_is_an_error_if_routes_need_it() {
        let mut facts = in_order();
        neighbour(&mut facts).state = Some(FaceState::Down);
        let [finding] = &found(faces_up(&facts))[..] else { panic!() };
        assert_eq!((finding.severity, &*finding.command), (Severity::Error, "namewire face show 300"));
        assert!(finding.message.starts_with("Face 300 (udp4://192.0.2.9:6363) has been down for 1 min"), "{finding:?}");
        facts.forwarder.as_mut().unwrap().fib.clear();
        assert_eq!(found(faces_up(&facts))[0].severity, Severity::Warning);
    }

    #[test]
    fn a_network_that_does_not_take_the_host_is_an_error() {
        let mut facts = in_order();
        let network = NetworkState {
            router: "udp4://192.0.2.9:6363".to_owned(),
            name: Some("/site/bob".to_owned()),
            is_joined: true,
            problem: None,
            certificate: None,
        };
        facts.forwarder.as_mut().unwrap().networks = vec![network];
        assert!(found(networks(&facts)).is_empty());
        let network = &mut facts.forwarder.as_mut().unwrap().networks[0];
        (network.is_joined, network.problem) = (false, Some("no answer within 4000 ms".to_owned()));
        let [finding] = &found(networks(&facts))[..] else { panic!() };
        let message = "The network of udp4://192.0.2.9:6363 is not joined: no answer within 4000 ms.";
        assert_eq!((finding.severity, &*finding.message), (Severity::Error, message));
    }

    #[test]
    fn a_neighbour_without_an_answer_is_worse_if_it_never_sent_anything() {
        let mut facts = in_order();
        facts.probes[0].small = Answer::Silence;
        assert_eq!(found(answers(&facts))[0].severity, Severity::Note);
        neighbour(&mut facts).counters = Default::default();
        let [finding] = &found(answers(&facts))[..] else { panic!() };
        assert!(
            finding.severity == Severity::Error && finding.message.contains("never brought a packet"),
            "{finding:?}"
        );
        facts.forwarder.as_mut().unwrap().fib.clear();
        assert_eq!(found(answers(&facts))[0].severity, Severity::Warning);
        neighbour(&mut facts).state = Some(FaceState::Down);
        assert!(found(answers(&facts)).is_empty(), "another check has it");
        facts.probes.clear();
        facts.no_probes = Some("refused".into());
        assert_eq!(not_made(answers(&facts)), "refused");
    }

    #[test]
    fn silence_and_losses_are_found() {
        let mut facts = in_order();
        let recent = FaceRecent { span_ms: 10_000, answered: 10, unanswered: 10, avoided: 1, ..FaceRecent::default() };
        health_of(&mut facts).recent = Some(recent);
        let [finding] = &found(health(&facts))[..] else { panic!() };
        assert!(
            finding.message.contains("10 of 20 Interests of the last 10 s got no answer; 1 Interest went"),
            "{finding:?}"
        );
        *health_of(&mut facts) = FaceHealth { recent: None, answered: 0, unanswered: 5, ..*health_of(&mut facts) };
        assert!(found(health(&facts))[0].message.contains("none of 5 Interests"));
        health_of(&mut facts).unanswered = 2;
        assert!(found(health(&facts)).is_empty());
    }

    #[test]
    fn a_path_that_swallows_large_datagrams_is_found() {
        let mut facts = in_order();
        facts.probes[0].large = Some((8000, Answer::Silence));
        let [finding] = &found(mtu(&facts))[..] else { panic!() };
        assert_eq!((finding.severity, &*finding.command), (Severity::Error, "namewire face update 300 --mtu 1232"));
        facts.probes[0].kernel_mtu = Some(1000);
        assert!(found(mtu(&facts))[0].command.ends_with("--mtu 972"));
        facts.probes[0].small = Answer::Silence;
        assert!(found(mtu(&facts)).is_empty(), "nothing answers there");
        let status = neighbour(&mut facts);
        (status.mtu, status.path_mtu) = (Some(8800), Some(1400));
        assert_eq!(found(mtu(&facts))[0].severity, Severity::Note);
        neighbour(&mut facts).flags = face_flags::LP_RELIABILITY;
        assert!(found(mtu(&facts)).is_empty(), "the link service fragments");
        let drops = &mut facts.forwarder.as_mut().unwrap().after.state.drops;
        drops.push(DropCounter { reason: "link.datagram-too-large".into(), count: 2 });
        assert!(found(mtu(&facts))[0].message.starts_with("2 datagrams were larger"));
    }

    #[test]
    fn a_neighbour_that_sends_back_interests_is_found() {
        let mut facts = in_order();
        neighbour(&mut facts).counters.packets.in_nacks = NACKS_OF_PROBES;
        assert!(found(nacks(&facts)).is_empty(), "they may be of the probes");
        neighbour(&mut facts).counters.packets.in_nacks = 90;
        assert!(found(nacks(&facts))[0].message.contains("brought 90 Nacks in 1 s"));
    }

    #[test]
    fn the_kind_of_a_neighbour_is_told() {
        let mut facts = in_order();
        let text = |facts: &Facts| match software(facts) {
            Ok(Outcome::Good(text)) => text,
            other => panic!("{other:?}"),
        };
        let who = "face 300 (udp4://192.0.2.9:6363)";
        assert_eq!(text(&facts), format!("{who}: a forwarder that answers no traceroutes (Nack NoRoute)"));
        let router = NeighbourRouter { name: "/r".into(), software: Some("namewire-9".into()), clock_ahead_ms: None };
        facts.probes[0].router = Some(router);
        assert_eq!(text(&facts), format!("{who}: namewire-9, router /r"));
    }
}
