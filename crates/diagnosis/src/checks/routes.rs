//! Do routes lead somewhere, and only there?

use super::{Checked, any, counted, ours, some_of};
use crate::{
    facts::{Facts, ForwarderFacts},
    finding::{Finding, Outcome, Severity},
};
use namewire_packet::{
    FaceId, NameBuf,
    nfd::{DroppedPacket, RibEntry, origin, route_flags},
};
use namewire_security::certificate::is_key_name;
use std::collections::{BTreeMap, BTreeSet};

/// Dropped packets that are older say nothing of the routes now.
const RECENT_MS: u64 = 10 * 60 * 1000;

/// Routes that hide others, and strategy choices, that are compared with all others.
pub(super) const COMPARED_MAX: usize = 200;

/// Names that every forwarder has for itself, or that several applications share by convention.
pub(super) fn is_of_forwarders(name: &NameBuf) -> bool {
    let first = name.as_name().get(0);
    first.is_some_and(|first| first.value == b"localhost" || first.value == b"localhop")
}

/// Each prefix has a next hop to which packets can go.
pub(super) fn next_hop(facts: &Facts) -> Checked {
    let forwarder = any(facts)?;
    // By the faces that are unusable: many prefixes may share them.
    let mut dead: BTreeMap<Vec<FaceId>, Vec<String>> = BTreeMap::new();
    let mut partly: BTreeMap<FaceId, Vec<String>> = BTreeMap::new();
    for entry in &forwarder.fib {
        let (usable, unusable): (Vec<FaceId>, Vec<FaceId>) =
            entry.next_hops.iter().map(|hop| hop.face_id).partition(|face| forwarder.is_usable(*face));
        if usable.is_empty() && !unusable.is_empty() {
            dead.entry(unusable).or_default().push(entry.name.to_string());
        } else {
            unusable.into_iter().for_each(|face| partly.entry(face).or_default().push(entry.name.to_string()));
        }
    }
    let why = |face: FaceId| match forwarder.face(face) {
        Some(_) => format!("{}, which is down", forwarder.describe(face)),
        None => format!("{}, which is gone", forwarder.describe(face)),
    };
    let mut findings = Vec::new();
    for (faces, prefixes) in dead {
        let lead = if prefixes.len() == 1 { "leads" } else { "lead" };
        let places: Vec<String> = faces.iter().map(|face| why(*face)).collect();
        let message = format!("{} {lead} nowhere: the only next hop is {}.", some_of(&prefixes), places.join("; "));
        findings.push(Finding::error(message, format!("namewire explain {}", prefixes[0])));
    }
    for (face, prefixes) in partly {
        let message = format!("A next hop of {} is {}.", some_of(&prefixes), why(face));
        findings.push(Finding::warning(message, format!("namewire explain {}", prefixes[0])));
    }
    findings.extend(shut_in(forwarder));
    Ok(Outcome::of(findings, counted(forwarder.fib.len() as u64, "prefix").replace("prefixs", "prefixes")))
}

/// Prefixes under /localhost whose next hops are on other machines, to which they may not go.
fn shut_in(forwarder: &ForwarderFacts) -> Vec<Finding> {
    let is_local_name = |name: &NameBuf| name.as_name().get(0).is_some_and(|first| first.value == b"localhost");
    let entries = forwarder.fib.iter().filter(|entry| is_local_name(&entry.name));
    let leaves = |face: FaceId| forwarder.face(face).is_some() && !forwarder.is_local_face(face);
    entries
        .filter(|entry| !entry.next_hops.is_empty() && entry.next_hops.iter().all(|hop| leaves(hop.face_id)))
        .map(|entry| {
            let message =
                format!("{} leads to another machine, but names under /localhost stay on this one.", entry.name);
            Finding::warning(message, format!("namewire route list --under {}", entry.name))
        })
        .collect()
}

/// Packets do not come back.
pub(super) fn looping(facts: &Facts) -> Checked {
    let forwarder = ours(facts)?;
    let mut findings = Vec::new();
    let mut seen: BTreeSet<(NameBuf, FaceId)> = BTreeSet::new();
    let is_recent = |packet: &&DroppedPacket| packet.time_ms + RECENT_MS > facts.now_ms;
    for packet in forwarder.after.state.dropped.iter().filter(is_recent) {
        let Some((face, name)) = packet.face.zip(packet.name.as_ref()) else { continue };
        let Some(entry) = forwarder.fib_entry(name) else { continue };
        if is_of_forwarders(name) || !seen.insert((entry.name.clone(), face)) {
            continue;
        }
        findings.extend(loop_finding(forwarder, packet, face, name));
    }
    let ended = forwarder.growth("engine.hop-limit-zero");
    if ended > 0 {
        let message = format!(
            "{} reached this router with a hop limit of 0: somewhere is a loop, or a long path.",
            counted(ended, "Interest")
        );
        findings.push(Finding::warning(message, "namewire drops --reason hop-limit-zero"));
    }
    Ok(Outcome::of(findings, "no packet came back"))
}

fn loop_finding(forwarder: &ForwarderFacts, packet: &DroppedPacket, face: FaceId, name: &NameBuf) -> Option<Finding> {
    let entry = forwarder.fib_entry(name)?;
    let hops: Vec<FaceId> = entry.next_hops.iter().map(|hop| hop.face_id).collect();
    let (prefix, who) = (&entry.name, forwarder.describe(face));
    let command = format!("namewire explain {name} --from {face}");
    match &*packet.reason {
        // An Interest never goes back to where it came from.
        "engine.no-route" if hops == [face] && !forwarder.is_local_face(face) => Some(Finding::error(
            format!(
                "Interests for {prefix} come from {who}, and the only route for them leads back there: two routers point at each other."
            ),
            command,
        )),
        "engine.duplicate-nonce" if forwarder.is_local_face(face) => Some(Finding::note(
            format!("An application at {who} sends Interests for {prefix} again with the nonce of the first one."),
            command,
        )),
        "engine.duplicate-nonce" => {
            let severity =
                if forwarder.growth("engine.duplicate-nonce") > 0 { Severity::Error } else { Severity::Warning };
            let how = match hops.contains(&face) {
                true => "the neighbour sends them back",
                false => "they come back over several routers",
            };
            let message = format!("Interests for {prefix} loop: {who} brought one that had been here before ({how}).");
            Some(Finding { severity, message, command })
        }
        _ => None,
    }
}

/// No prefix is registered by two that know nothing of each other.
pub(super) fn twice(facts: &Facts) -> Checked {
    let forwarder = any(facts)?;
    let mut findings = Vec::new();
    for entry in forwarder.rib.iter().filter(|entry| !is_of_forwarders(&entry.name)) {
        findings.extend(twice_finding(forwarder, entry));
    }
    let contested =
        forwarder.rib.iter().filter(|entry| entry.routes.iter().any(|route| route.is_contested == Some(true)));
    findings.extend(contested.map(|entry| {
        let message = format!("Two users of this machine have routes for {}; either may answer.", entry.name);
        Finding::warning(message, format!("namewire route list --under {}", entry.name))
    }));
    Ok(Outcome::of(findings, format!("{} prefixes are registered", forwarder.rib.len())))
}

fn twice_finding(forwarder: &ForwarderFacts, entry: &RibEntry) -> Option<Finding> {
    // Several origins may register the same face.
    let mut costs: BTreeMap<FaceId, u64> = BTreeMap::new();
    for route in &entry.routes {
        let cost = costs.entry(route.face_id).or_insert(route.cost);
        *cost = route.cost.min(*cost);
    }
    let (local, remote): (Vec<_>, Vec<_>) = costs.iter().partition(|(face, _)| forwarder.is_local_face(**face));
    if local.is_empty() || local.len() + remote.len() < 2 {
        return None;
    }
    let strategy = strategy_of(forwarder, &entry.name);
    if !asks_one(&strategy) {
        return None;
    }
    let command = format!("namewire route list --under {}", entry.name);
    let name = &entry.name;
    let cheapest = costs.iter().min_by_key(|(face, cost)| (**cost, **face)).map(|(face, _)| *face)?;
    let asked = forwarder.describe(cheapest);
    if local.len() > 1 {
        let message =
            format!("{} applications of this machine registered {name}; {strategy} asks {asked} first.", local.len());
        return Some(Finding::warning(message, command));
    }
    let hidden = if forwarder.is_local_face(cheapest) { "the network" } else { "the application of this machine" };
    let message =
        format!("{name} is registered here and leads to the network, too; {strategy} asks {asked} and hides {hidden}.");
    Some(Finding::note(message, command))
}

/// The short name of the strategy for a prefix.
pub(super) fn strategy_of(forwarder: &ForwarderFacts, name: &NameBuf) -> String {
    let choices = &forwarder.after.state.strategies;
    let covers = |name: &NameBuf, choice: &NameBuf| choice.as_name().is_prefix_of(&name.as_name());
    let choice = choices.iter().filter(|choice| covers(name, &choice.name)).max_by_key(|choice| choice.name.len());
    choice.map_or_else(|| "best-route".to_owned(), |choice| namewire_node_model::explanation::short(&choice.strategy))
}

/// Strategies that send an Interest to one next hop while that answers.
fn asks_one(strategy: &str) -> bool {
    ["best-route", "asf", "random"].contains(&strategy)
}

/// No route hides others unnoticed.
pub(super) fn hidden(facts: &Facts) -> Checked {
    let forwarder = any(facts)?;
    // Those for keys and for networks that the host has joined are meant so.
    let is_meant = |entry: &RibEntry, of: u64| is_key_name(entry.name.as_name()) || of == origin::AUTOCONF;
    let captures = |entry: &&RibEntry| {
        let mut routes = entry.routes.iter();
        routes.any(|route| route.flags & route_flags::CAPTURE != 0 && !is_meant(entry, route.origin))
    };
    let mut findings = Vec::new();
    for entry in forwarder.rib.iter().filter(captures).take(COMPARED_MAX) {
        let hides = |other: &&RibEntry| {
            other.name.len() < entry.name.len()
                && other.name.as_name().is_prefix_of(&entry.name.as_name())
                && other.routes.iter().any(|route| {
                    let is_another = entry.routes.iter().all(|own| own.face_id != route.face_id);
                    is_another && route.flags & route_flags::CHILD_INHERIT != 0
                })
        };
        let hidden: Vec<String> = forwarder.rib.iter().filter(hides).map(|other| other.name.to_string()).collect();
        if !hidden.is_empty() {
            let message =
                format!("A route for {} hides those of {} for its names (capture).", entry.name, some_of(&hidden));
            findings.push(Finding::note(message, format!("namewire explain {}", entry.name)));
        }
    }
    Ok(Outcome::of(findings, "no route hides shorter ones"))
}

/// A route leads to another machine.
pub(super) fn out(facts: &Facts) -> Checked {
    let forwarder = any(facts)?;
    let leads_out = forwarder
        .fib
        .iter()
        .filter(|entry| !is_of_forwarders(&entry.name))
        .flat_map(|entry| &entry.next_hops)
        .filter(|hop| !forwarder.is_local_face(hop.face_id))
        .count();
    let mut of_others = forwarder.fib.iter().filter(|entry| !is_of_forwarders(&entry.name));
    let has_producers = of_others.any(|entry| !entry.next_hops.is_empty());
    let finding = || Finding::note("No route leads to another machine.", "namewire route add / udp://ROUTER");
    let text = format!("{} lead to other machines", counted(leads_out as u64, "next hop"));
    Ok(Outcome::of((leads_out == 0 && !has_producers).then(finding).into_iter().collect(), text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::test_facts::{
        APPLICATION, NEIGHBOUR, application, choice, fib_entry, found, in_order, name, rib_entry,
    };
    use namewire_packet::nfd::{DropCounter, FaceState, PacketKind};

    fn forwarder(facts: &mut Facts) -> &mut ForwarderFacts {
        facts.forwarder.as_mut().unwrap()
    }

    #[test]
    fn prefixes_without_a_usable_next_hop_are_one_finding_for_each_face() {
        let mut facts = in_order();
        forwarder(&mut facts).fib.extend([fib_entry("/b", &[NEIGHBOUR]), fib_entry("/c", &[NEIGHBOUR, APPLICATION])]);
        let faces = &mut forwarder(&mut facts).after.state.faces;
        faces.iter_mut().find(|face| face.face_id == NEIGHBOUR).unwrap().state = Some(FaceState::Down);
        let findings = found(next_hop(&facts));
        assert!(findings[0].message.starts_with("/, /b lead nowhere: the only next hop is face 300"), "{findings:?}");
        assert_eq!(findings[0].command, "namewire explain /");
        assert_eq!((findings[0].severity, findings[1].severity), (Severity::Error, Severity::Warning));
        forwarder(&mut facts).after.state.faces.retain(|face| face.face_id != NEIGHBOUR);
        assert!(found(next_hop(&facts))[0].message.contains("which is gone"));
    }

    #[test]
    fn names_of_the_machine_must_not_lead_away() {
        let mut facts = in_order();
        forwarder(&mut facts).fib.push(fib_entry("/localhost/x", &[NEIGHBOUR]));
        assert!(found(next_hop(&facts))[0].message.contains("/localhost/x leads to another machine"));
    }

    fn dropped(facts: &Facts, reason: &str, at: &str, face: FaceId) -> DroppedPacket {
        DroppedPacket {
            reason: reason.to_owned(),
            time_ms: facts.now_ms - 1000,
            kind: PacketKind::Interest,
            face: Some(face),
            name: Some(name(at)),
            is_name_cut: false,
            count: 1,
        }
    }

    #[test]
    fn two_routers_that_point_at_each_other_are_found() {
        let mut facts = in_order();
        let drop = dropped(&facts, "engine.no-route", "/far/x", NEIGHBOUR);
        forwarder(&mut facts).after.state.dropped = vec![drop.clone(), drop.clone()];
        let [finding] = &found(looping(&facts))[..] else { panic!("once") };
        assert!(finding.message.contains("two routers point at each other"), "{finding:?}");
        assert_eq!(finding.command, "namewire explain /far/x --from 300");
        forwarder(&mut facts).fib[0] = fib_entry("/", &[NEIGHBOUR, APPLICATION]);
        assert!(found(looping(&facts)).is_empty(), "there is another way");
        forwarder(&mut facts).after.state.dropped = vec![DroppedPacket { time_ms: 1, ..drop }];
        assert!(found(looping(&facts)).is_empty(), "long ago");
    }

    #[test]
    fn packets_that_come_back_are_a_loop_and_those_of_applications_are_not() {
        let mut facts = in_order();
        forwarder(&mut facts).after.state.dropped =
            vec![dropped(&facts, "engine.duplicate-nonce", "/far/x", NEIGHBOUR)];
        let [finding] = &found(looping(&facts))[..] else { panic!() };
        assert!(finding.severity == Severity::Warning && finding.message.contains("the neighbour sends them back"));
        let drop = DropCounter { reason: "engine.duplicate-nonce".into(), count: 4 };
        forwarder(&mut facts).after.state.drops.push(drop);
        assert_eq!(found(looping(&facts))[0].severity, Severity::Error);
        forwarder(&mut facts).after.state.dropped =
            vec![dropped(&facts, "engine.duplicate-nonce", "/far/x", APPLICATION)];
        assert_eq!(found(looping(&facts))[0].severity, Severity::Note);
        forwarder(&mut facts).after.state.dropped.clear();
        forwarder(&mut facts).after.state.drops =
            vec![DropCounter { reason: "engine.hop-limit-zero".into(), count: 1 }];
        assert!(found(looping(&facts))[0].message.contains("1 Interest reached"));
    }

    #[test]
    fn a_prefix_of_two_is_found_unless_the_strategy_asks_both() {
        let mut facts = in_order();
        forwarder(&mut facts).after.state.faces.push(application(FaceId(301)));
        forwarder(&mut facts).rib.push(rib_entry("/p", &[(APPLICATION, 10), (FaceId(301), 0)]));
        let [finding] = &found(twice(&facts))[..] else { panic!() };
        assert!(finding.severity == Severity::Warning && finding.message.contains("2 applications"), "{finding:?}");
        assert!(finding.message.contains("best-route asks face 301"), "{finding:?}");
        forwarder(&mut facts).after.state.strategies.push(choice("/p", "multicast"));
        assert!(found(twice(&facts)).is_empty());
        forwarder(&mut facts).rib.push(rib_entry("/q", &[(APPLICATION, 0), (NEIGHBOUR, 10)]));
        let [finding] = &found(twice(&facts))[..] else { panic!() };
        assert!(finding.severity == Severity::Note && finding.message.contains("hides the network"), "{finding:?}");
        let mut contested = rib_entry("/localhost/x", &[(APPLICATION, 0)]);
        contested.routes[0].is_contested = Some(true);
        forwarder(&mut facts).rib = vec![contested];
        assert!(found(twice(&facts))[0].message.contains("Two users"));
    }

    #[test]
    fn a_route_that_captures_hides_shorter_ones() {
        let mut facts = in_order();
        let mut entry = rib_entry("/a/b", &[(APPLICATION, 0)]);
        entry.routes[0].flags = route_flags::CAPTURE;
        forwarder(&mut facts).rib.push(entry);
        assert!(found(hidden(&facts))[0].message.contains("hides those of / for"));
        forwarder(&mut facts).rib[1].routes[0].face_id = NEIGHBOUR;
        assert!(found(hidden(&facts)).is_empty(), "the shorter route has the same face");
        forwarder(&mut facts).rib[1].routes[0].face_id = APPLICATION;
        forwarder(&mut facts).rib[0].routes[0].flags = 0;
        assert!(found(hidden(&facts)).is_empty(), "nothing is inherited");
    }

    #[test]
    fn a_router_without_a_way_out_is_noted() {
        let mut facts = in_order();
        forwarder(&mut facts).fib = vec![fib_entry("/localhop/x", &[NEIGHBOUR])];
        assert_eq!(found(out(&facts))[0].severity, Severity::Note);
        forwarder(&mut facts).fib.push(fib_entry("/p", &[APPLICATION]));
        assert!(found(out(&facts)).is_empty(), "it has what it serves");
    }
}
