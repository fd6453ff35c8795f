//! Routes: which next hops do nodes have to the prefixes of producers, and how do they follow the links?
//!
//! A destination is a prefix at a node. With shortest paths, each node has up to `next_hops` next hops to it, at the
//! beginning or after each change of a link. A node's routes change only if the order of its next hops does: a strategy
//! sees the order, and a delay that moves by a millisecond is no news.

use crate::file::Routing;
use crate::shortest_paths::{Neighbour, NextHop, next_hops};
use crate::world::{PlacedAir, PlacedNode, Wire};
use namewire_sim::Network;
use std::collections::BTreeMap;

pub(crate) struct Routes {
    routing: Routing,
    next_hops: usize,
    destinations: Vec<Destination>,
}

struct Destination {
    prefix: String,
    place: usize,
    /// In the order of nodes; those of a node by cost.
    hops: Vec<NextHop>,
}

impl Routes {
    pub(crate) fn new(routing: Routing, next_hops: usize) -> Self {
        Routes { routing, next_hops, destinations: Vec::new() }
    }

    /// Whether strategies find them.
    pub(crate) fn are_learned(&self) -> bool {
        self.routing == Routing::SelfLearning
    }

    /// Whether they follow the links.
    pub(crate) fn follow_links(&self) -> bool {
        self.routing == Routing::Recomputed
    }

    /// Nodes get routes to a prefix at a place.
    pub(crate) fn add_destination(
        &mut self,
        prefix: &str,
        place: usize,
        net: &mut Network,
        nodes: &[PlacedNode],
        wires: &[Wire],
        airs: &[PlacedAir],
    ) {
        match self.routing {
            Routing::ShortestPaths | Routing::Recomputed => {
                let hops = next_hops(&neighbours(nodes.len(), wires), place, self.next_hops);
                let mut destination = Destination { prefix: prefix.to_owned(), place, hops: Vec::new() };
                destination.change_to(hops, net, nodes, wires);
                self.destinations.push(destination);
            }
            Routing::Flood => {
                let by_wire = wires.iter().flat_map(|wire| [0, 1].map(|end| (wire.ends[end], wire.faces[end])));
                let by_air = airs.iter().flat_map(|air| air.members.iter().copied());
                for (at, face) in by_wire.chain(by_air).filter(|hop| hop.0 != place) {
                    net.add_route(nodes[at].id, prefix, face, 1);
                }
            }
            Routing::SelfLearning | Routing::None => {}
        }
    }

    /// Links have changed. Returns how many routes did.
    pub(crate) fn recompute(&mut self, net: &mut Network, nodes: &[PlacedNode], wires: &[Wire]) -> usize {
        let neighbours = neighbours(nodes.len(), wires);
        let mut by_place: BTreeMap<usize, Vec<NextHop>> = BTreeMap::new();
        let mut changed = 0;
        for destination in &mut self.destinations {
            let place = destination.place;
            let hops = by_place.entry(place).or_insert_with(|| next_hops(&neighbours, place, self.next_hops));
            changed += destination.change_to(hops.clone(), net, nodes, wires);
        }
        changed
    }
}

impl Destination {
    /// Replaces the routes of the nodes whose next hops differ in their order.
    fn change_to(&mut self, hops: Vec<NextHop>, net: &mut Network, nodes: &[PlacedNode], wires: &[Wire]) -> usize {
        let (before, after) = (by_node(&self.hops), by_node(&hops));
        let mut changed = 0;
        for (place, node) in nodes.iter().enumerate() {
            let [old, new] = [&before, &after].map(|hops| hops.get(&place).copied().unwrap_or_default());
            let links = |hops: &[NextHop]| -> Vec<usize> { ordered(hops).iter().map(|hop| hop.link).collect() };
            if links(old) == links(new) {
                continue;
            }
            // First what is new, so that there is no moment without a route.
            for hop in new {
                net.add_route(node.id, &self.prefix, wires[hop.link].face_of(place), hop.cost);
            }
            for hop in old.iter().filter(|hop| !new.iter().any(|other| other.link == hop.link)) {
                net.remove_route(node.id, &self.prefix, wires[hop.link].face_of(place));
            }
            changed += 1;
        }
        self.hops = hops;
        changed
    }
}

fn ordered(hops: &[NextHop]) -> Vec<NextHop> {
    let mut hops = hops.to_vec();
    hops.sort_by_key(|hop| (hop.cost, hop.link));
    hops
}

/// The next hops of each node.
fn by_node(hops: &[NextHop]) -> BTreeMap<usize, &[NextHop]> {
    hops.chunk_by(|one, other| one.node == other.node).map(|hops| (hops[0].node, hops)).collect()
}

/// Who can reach whom, by links that work.
fn neighbours(nodes: usize, wires: &[Wire]) -> Vec<Vec<Neighbour>> {
    let mut neighbours = vec![Vec::new(); nodes];
    for (link, wire) in wires.iter().enumerate().filter(|(_, wire)| wire.is_up) {
        let delay_us = wire.delay_ns / 1_000;
        let [a, b] = wire.ends;
        neighbours[a].push(Neighbour { node: b, delay_us, link });
        neighbours[b].push(Neighbour { node: a, delay_us, link });
    }
    neighbours
}
