//! Delivery: packets between sampled pairs, each hop checked against the tree.
//!
//! The tree's path comes from the parents alone: up to the last common ancestor, and down.

use anyhow::ensure;
use namewire_tagnet::locator::{HERE, Word};

use super::Tree;
use crate::network_graph::NetworkGraph;

/// Pairs that were reached, and their hops.
#[derive(Clone, Debug, Default)]
pub(super) struct Delivered {
    pub(super) pairs: u32,
    tree_hops: u64,
    shortest_hops: u64,
    /// Most hops of a pair on the tree.
    pub(super) longest: u32,
}

impl Delivered {
    pub(super) fn add(&mut self, other: &Self) {
        self.pairs += other.pairs;
        self.tree_hops += other.tree_hops;
        self.shortest_hops += other.shortest_hops;
        self.longest = self.longest.max(other.longest);
    }

    pub(super) fn tree_mean(&self) -> f64 {
        self.tree_hops as f64 / f64::from(self.pairs)
    }

    pub(super) fn shortest_mean(&self) -> f64 {
        self.shortest_hops as f64 / f64::from(self.pairs)
    }
}

/// Sends a packet from each of `sources` random nodes to as many random nodes.
///
/// # Errors
/// If a packet leaves the path of the tree, or does not end at its destination.
pub(super) fn deliver<W: Word>(
    graph: &NetworkGraph,
    tree: &Tree<'_, W>,
    sources: u32,
    random: &mut fastrand::Rng,
) -> anyhow::Result<Delivered> {
    let mut delivered = Delivered::default();
    for _ in 0..sources {
        let source = random.u32(..graph.nodes());
        let distances = graph.distances(source);
        for _ in 0..sources {
            let destination = random.u32(..graph.nodes());
            let path = tree_path(tree.parents, source, destination);
            send(tree, source, destination, &path)?;
            delivered.pairs += 1;
            delivered.tree_hops += path.len() as u64;
            delivered.shortest_hops += u64::from(distances[destination as usize]);
            delivered.longest = delivered.longest.max(path.len() as u32);
        }
    }
    Ok(delivered)
}

fn send<W: Word>(tree: &Tree<'_, W>, source: u32, destination: u32, path: &[u32]) -> anyhow::Result<()> {
    let label = tree.labels.label(destination);
    let mut at = source;
    for &next in path {
        let sent_to = tree.labels.next(at, label);
        ensure!(
            sent_to == Some(next),
            "{}: from {source} to {destination}, node {at} sends to {sent_to:?} instead of {next}",
            tree.case
        );
        at = next;
    }
    let interface = tree.labels.state(at).forward(label);
    ensure!(interface == HERE, "{}: {destination} sends its own packet to interface {interface}", tree.case);
    Ok(())
}

/// The nodes on the way from `source`, which is left out, to `destination`.
fn tree_path(parents: &[Option<u32>], source: u32, destination: u32) -> Vec<u32> {
    let (up, down) = (ancestors(parents, source), ancestors(parents, destination));
    let common = up.iter().rev().zip(down.iter().rev()).take_while(|(one, other)| one == other).count();
    let above = up[1..=up.len() - common].iter();
    above.chain(down[..down.len() - common].iter().rev()).copied().collect()
}

/// The node, its parent, and so on to the root.
fn ancestors(parents: &[Option<u32>], node: u32) -> Vec<u32> {
    std::iter::successors(Some(node), |&node| parents[node as usize]).collect()
}

/// The next node on the way from a node to another; the node itself at the destination.
pub(super) fn next_hop(parents: &[Option<u32>], from: u32, destination: u32) -> Option<u32> {
    let mut below = destination;
    for node in std::iter::successors(Some(destination), |&node| parents[node as usize]) {
        if node == from {
            return Some(below);
        }
        below = node;
    }
    parents[from as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_go_up_and_down() {
        // 0 has 1 and 2; 1 has 3 and 4.
        let parents = [None, Some(0), Some(0), Some(1), Some(1)];
        for (source, destination, path) in
            [(3, 4, vec![1, 4]), (3, 2, vec![1, 0, 2]), (0, 4, vec![1, 4]), (4, 0, vec![1, 0]), (2, 2, vec![])]
        {
            assert_eq!(tree_path(&parents, source, destination), path);
            assert_eq!(next_hop(&parents, source, destination), Some(path.first().copied().unwrap_or(source)));
        }
    }
}
