//! Do strategies do what was meant?

use super::{
    Checked, any,
    routes::{COMPARED_MAX, is_of_forwarders, strategy_of},
};
use crate::{
    facts::{Facts, ForwarderFacts},
    finding::{Finding, Outcome},
};
use namewire_node_model::explanation::short;
use namewire_packet::nfd::{FibEntry, LinkType, StrategyChoice};

/// Choices that every forwarder makes by itself, and the prefixes of this machine.
fn chosen_by_somebody(forwarder: &ForwarderFacts) -> impl Iterator<Item = &StrategyChoice> {
    let is_of_default =
        |choice: &&StrategyChoice| choice.name.is_empty() || choice.name.to_string() == "/ndn/broadcast";
    forwarder
        .after
        .state
        .strategies
        .iter()
        .filter(move |choice| !is_of_default(choice) && !is_of_forwarders(&choice.name))
}

/// Each choice is for a prefix that has routes, or for names above or below one.
pub(super) fn without_route(facts: &Facts) -> Checked {
    let forwarder = any(facts)?;
    let concerns = |choice: &StrategyChoice, entry: &FibEntry| {
        let (choice, entry) = (choice.name.as_name(), entry.name.as_name());
        choice.is_prefix_of(&entry) || entry.is_prefix_of(&choice)
    };
    let has_hops = |entry: &&FibEntry| !entry.next_hops.is_empty();
    let findings = chosen_by_somebody(forwarder)
        .take(COMPARED_MAX)
        .filter(|choice| !forwarder.fib.iter().filter(has_hops).any(|entry| concerns(choice, entry)))
        .map(|choice| {
            let message = format!(
                "A strategy ({}) is chosen for {}, which no route serves.",
                short(&choice.strategy),
                choice.name
            );
            Finding::warning(message, format!("namewire route add {} FACE", choice.name))
        });
    Ok(Outcome::of(findings.collect(), "each choice serves names with routes"))
}

/// Choices that take names from another choice are meant so.
pub(super) fn hidden(facts: &Facts) -> Checked {
    let forwarder = any(facts)?;
    let mut findings = Vec::new();
    for choice in chosen_by_somebody(forwarder).take(COMPARED_MAX) {
        let above = chosen_by_somebody(forwarder)
            .filter(|other| other.name.len() < choice.name.len())
            .filter(|other| other.name.as_name().is_prefix_of(&choice.name.as_name()))
            .max_by_key(|other| other.name.len());
        let Some(above) = above else { continue };
        let command = format!("namewire strategy unset {}", choice.name);
        findings.push(if above.strategy == choice.strategy {
            let message = format!(
                "{} has the strategy of {} by a choice of its own: a change of the latter will not reach it.",
                choice.name, above.name
            );
            Finding::note(message, command)
        } else {
            let (inner, outer) = (short(&choice.strategy), short(&above.strategy));
            let message = format!("{inner} for {} hides {outer}, which was chosen for {}.", choice.name, above.name);
            Finding::note(message, command)
        });
    }
    Ok(Outcome::of(findings, "no choice hides another"))
}

/// No strategy copies every Interest into the network at large.
pub(super) fn multicast(facts: &Facts) -> Checked {
    let forwarder = any(facts)?;
    let goes_far = |entry: &FibEntry| {
        let faces = entry.next_hops.iter().filter_map(|hop| forwarder.face(hop.face_id));
        faces
            .filter(|status| !forwarder.is_local_face(status.face_id) && status.link_type == LinkType::PointToPoint)
            .count()
    };
    let mut findings = Vec::new();
    for entry in forwarder.fib.iter().filter(|entry| !is_of_forwarders(&entry.name)) {
        let far = goes_far(entry);
        if far > 1 && strategy_of(forwarder, &entry.name) == "multicast" {
            let message = format!(
                "multicast sends each Interest for {} to {far} neighbours: over several hops, each router multiplies it again.",
                entry.name
            );
            findings.push(Finding::warning(message, format!("namewire strategy set {} best-route", entry.name)));
        }
    }
    Ok(Outcome::of(findings, "no strategy sends every Interest to several neighbours"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::test_facts::{NEIGHBOUR, application, choice, fib_entry, found, in_order};
    use namewire_packet::{FaceId, nfd::FaceScope};

    fn forwarder(facts: &mut Facts) -> &mut ForwarderFacts {
        facts.forwarder.as_mut().unwrap()
    }

    #[test]
    fn a_choice_for_names_without_routes_is_found() {
        let mut facts = in_order();
        forwarder(&mut facts).fib = vec![fib_entry("/a/b", &[NEIGHBOUR]), fib_entry("/c", &[])];
        forwarder(&mut facts).after.state.strategies = ["/", "/a", "/a/b/c", "/c", "/ndn/broadcast", "/localhost/nfd"]
            .map(|prefix| choice(prefix, "asf"))
            .to_vec();
        let [finding] = &found(without_route(&facts))[..] else { panic!() };
        assert!(finding.message.contains("(asf) is chosen for /c,"), "{finding:?}");
        assert_eq!(finding.command, "namewire route add /c FACE");
    }

    #[test]
    fn a_choice_below_another_is_noted() {
        let mut facts = in_order();
        let choices = [choice("/a", "multicast"), choice("/a/b", "asf"), choice("/a/b/c", "asf")];
        forwarder(&mut facts).after.state.strategies.extend(choices);
        let findings = found(hidden(&facts));
        assert!(findings[0].message.starts_with("asf for /a/b hides multicast"), "{findings:?}");
        assert!(findings[1].message.starts_with("/a/b/c has the strategy of /a/b"), "{findings:?}");
    }

    #[test]
    fn multicast_to_several_neighbours_is_found() {
        let mut facts = in_order();
        let mut second = application(FaceId(301));
        second.face_scope = FaceScope::NonLocal;
        forwarder(&mut facts).after.state.faces.push(second);
        forwarder(&mut facts).fib.push(fib_entry("/m", &[NEIGHBOUR, FaceId(301)]));
        assert!(found(multicast(&facts)).is_empty());
        forwarder(&mut facts).after.state.strategies.push(choice("/m", "multicast"));
        let [finding] = &found(multicast(&facts))[..] else { panic!() };
        assert_eq!(finding.command, "namewire strategy set /m best-route");
        assert!(finding.message.contains("to 2 neighbours"), "{finding:?}");
    }
}
