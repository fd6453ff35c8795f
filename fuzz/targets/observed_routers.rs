//! Question: can what other routers say of themselves, an address, or a file of named routers make a reader panic,
//! recurse, hang, or show more than its limits?
//!
//! Input: one byte for the kind, then text. Kind 0: an address of an observer. Kind 1: a file of named routers. Kind 2:
//! lines of JSON, by turns the summary of a router and its explanation of a name.
#![no_main]

use libfuzzer_sys::fuzz_target;
use namewire_network::{
    fate::{Asked, Explained, Fate, HOPS_MAX},
    links::Links,
    network::{Network, Watch, Watched},
    reading::{Problem, Reason},
    summary::{FACES_MAX, LAST_DROPS_MAX, REASONS_MAX, Summary},
};
use namewire_node_model::observer_address::ObservedPeer;
use namewire_routers::Routers;
use std::time::Duration;

/// Routers of one input.
const ROUTERS_MAX: usize = 8;

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, text)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    match kind % 3 {
        0 => {
            if let Ok(peer) = text.parse::<ObservedPeer>() {
                assert_eq!(peer.to_string().parse(), Ok(peer.clone()), "what is printed is read again");
                assert!(peer.address().authority().bytes().all(|byte| byte.is_ascii_graphic()));
            }
        }
        1 => {
            if let Ok(routers) = Routers::parse(text) {
                let written = toml::to_string(&routers).expect("every file has a TOML form");
                assert_eq!(Routers::parse(&written).as_ref(), Ok(&routers), "{written}");
            }
        }
        _ => follow(text),
    }
});

/// Shows routers that say these things, and follows a name through them.
fn follow(text: &str) {
    let mut lines = text.lines();
    let mut watched: Vec<Watched> = Vec::new();
    let mut explained = Vec::new();
    while let Some(line) = lines.next().filter(|_| watched.len() < ROUTERS_MAX) {
        let mut watch = Watch::new(format!("r{}", watched.len()), "");
        for second in 0..2 {
            let said = serde_json::from_str(line).map(Summary::bounded);
            watch.push(Duration::from_secs(second), said.map_err(problem));
        }
        watched.push(watch.shown().clone());
        let said = lines.next().unwrap_or_default();
        explained.push(serde_json::from_str(said).map(Explained::bounded).map_err(problem));
    }
    let network = Network::of(watched);
    for summary in network.routers.iter().filter_map(Watched::present) {
        assert!(summary.faces.len() <= FACES_MAX && summary.drops.len() <= REASONS_MAX);
        assert!(summary.last_drops.len() <= LAST_DROPS_MAX);
    }
    let routers: Vec<Option<&Summary>> = network.routers.iter().map(Watched::present).collect();
    let asked: Vec<Asked<'_>> = network
        .routers
        .iter()
        .zip(explained)
        .map(|(router, explained)| Asked { name: &router.name, explained, summary: router.said() })
        .collect();
    let fate = Fate::of(&"/a/b".parse().expect("a name"), &asked, &Links::between(&routers));
    assert_eq!(fate.steps.len(), network.routers.len(), "each router once");
    assert!(fate.steps.iter().all(|step| step.to.len() <= HOPS_MAX));
    serde_json::to_vec(&(network.links, fate)).expect("all of it is JSON");
}

fn problem(error: serde_json::Error) -> Problem {
    Problem::new(Reason::NotUnderstood, error.to_string())
}
