//! How long are the locators of a network's trees, do they reach every node, and how fast is a router?
//!
//! Source: TagNet16 §3.3 and Fig. 6: labels of Thorup and Zwick on an AS graph, at most 46 bits long. `--graph` takes
//! such a graph; without a file it is invented ([`crate::network_graph`]). The paper does not say which spanning trees
//! it labels. Here they are breadth-first trees, one from the node with most neighbours ("central root") and the others
//! from random nodes.
//!
//! For comparison, the experiment counts the paper's labels (Thorup and Zwick's codes: `namewire_tagnet::locator`,
//! "Interfaces") and the hops of the shortest path.
//!
//! Limits: it times forwarding by locator alone, from a label in memory to the number of an interface, without packets.

mod delivery;
mod speed;

use anyhow::{Context as _, ensure};
use namewire_tagnet::locator::{TreeLabels, Word, spanning_tree};
use serde::Deserialize;

use crate::experiment::{Context, Outcome};
use crate::network_graph::NetworkGraph;
use crate::papers;
use crate::sample_table::SampleTable;
use delivery::{Delivered, deliver};
use speed::time_routers;

pub(super) const FILE: &str = include_str!("experiment.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    /// Nodes of an invented graph.
    nodes: u32,
    trees: usize,
    /// Sources, and destinations of each.
    sources: u32,
    repetitions: usize,
    /// Slices of a repetition.
    slices: usize,
}

/// The paper's AS graph.
#[derive(Deserialize)]
struct PaperGraph {
    nodes: u32,
    links: u32,
    label_bits_max: u32,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size: Size = context.size(FILE)?;
    let graph = NetworkGraph::given_or_invented(context.graph.as_deref(), size.nodes, context.seed)?;
    if u64::from(graph.nodes()) <= u16::NODES_MAX {
        measure::<u16>(context, &size, &graph)
    } else {
        measure::<u32>(context, &size, &graph)
    }
}

/// What all trees have in common.
#[derive(Default)]
struct Totals {
    bits_max: u32,
    plain_bits_max: u32,
    delivered: Delivered,
}

fn measure<W: Word>(context: &Context, size: &Size, graph: &NetworkGraph) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut totals = Totals::default();
    let mut random = fastrand::Rng::with_seed(context.seed);
    context.plan_steps(size.trees + 1);
    for number in 0..size.trees {
        let (case, root) = match number {
            0 => ("central root".to_owned(), graph.largest_degree()),
            _ => (format!("random root {number}"), random.u32(..graph.nodes())),
        };
        context.begin_step(&case)?;
        let parents = spanning_tree(&graph.neighbours, root).context("the graph is not connected")?;
        let labels = TreeLabels::<W>::of(&parents)?;
        let tree = Tree { case, parents: &parents, labels: &labels };
        tree.add_lengths(&mut outcome, &mut totals)?;
        let delivered = deliver(graph, &tree, size.sources, &mut random)?;
        tree.add_hops(&mut outcome, &delivered);
        totals.delivered.add(&delivered);
        if number == 0 {
            context.begin_step("forwarding")?;
            let mut table = SampleTable::default();
            let slowest = time_routers(context, size, &tree, &mut table)?;
            outcome.rows.extend(table.rows());
            slowest.map(|mlps| outcome.headline.insert("locator_mlps".to_owned(), mlps));
        }
    }
    add_totals(&mut outcome, graph, &totals)?;
    Ok(outcome)
}

fn add_totals(outcome: &mut Outcome, graph: &NetworkGraph, totals: &Totals) -> anyhow::Result<()> {
    let delivered = &totals.delivered;
    for (subject, bits) in [("here", totals.bits_max), ("Thorup-Zwick codes", totals.plain_bits_max)] {
        outcome.add_value("all trees", subject, ("longest label", "bits"), f64::from(bits));
    }
    for (key, value) in [
        ("locator_nodes", f64::from(graph.nodes())),
        ("locator_links", graph.links() as f64),
        ("locator_bits_max", f64::from(totals.bits_max)),
        ("locator_plain_bits_max", f64::from(totals.plain_bits_max)),
        ("locator_pairs_delivered", f64::from(delivered.pairs)),
        ("locator_hops_mean", delivered.tree_mean()),
        ("locator_shortest_hops_mean", delivered.shortest_mean()),
    ] {
        outcome.headline.insert(key.to_owned(), value);
    }
    let PaperGraph { nodes, links, label_bits_max } = papers::figures(papers::TAG_NET_16, "/section_3_3")?;
    let bound = bits_bound(graph.nodes());
    outcome.notes.extend([
        format!(
            "Graph: {}, {} nodes, {} links, {} lines left out. The paper's: {nodes} nodes, {links} links.",
            graph.title,
            graph.nodes(),
            graph.links(),
            graph.left_out
        ),
        format!(
            "The longest label has {} bits, {} with Thorup and Zwick's codes; no tree of this number of nodes has one of \
             more than {bound}. The paper's longest has {label_bits_max} bits; the root of its tree is not known.",
            totals.bits_max, totals.plain_bits_max
        ),
        format!(
            "All {} sampled pairs were reached, each node by node along the tree, with {:.2} hops where the shortest \
             path has {:.2}.",
            delivered.pairs,
            delivered.tree_mean(),
            delivered.shortest_mean()
        ),
        "Forwarding: one thread; labels of random nodes lie one after the other in memory, and the numbers of the \
         interfaces are written to memory. `locator_mlps` is the slowest of the single routers."
            .to_owned(),
    ]);
    Ok(())
}

/// Most bits of a label in a tree of this number of nodes: `namewire_tagnet::locator`, Length of a label.
fn bits_bound(nodes: u32) -> u32 {
    id_bits(nodes) + 2 * nodes.ilog2()
}

fn id_bits(nodes: u32) -> u32 {
    nodes.next_power_of_two().ilog2()
}

/// A tree and its labels.
struct Tree<'t, W> {
    case: String,
    parents: &'t [Option<u32>],
    labels: &'t TreeLabels<W>,
}

impl<W: Word> Tree<'_, W> {
    fn add_lengths(&self, outcome: &mut Outcome, totals: &mut Totals) -> anyhow::Result<()> {
        let nodes = self.parents.len() as u32;
        let bits: Vec<u32> = (0..nodes).map(|node| self.labels.label_bits(node)).collect();
        let plain: Vec<u32> = self.plain_list_bits().into_iter().map(|bits| id_bits(nodes) + 2 * bits).collect();
        let longest = |bits: &[u32]| bits.iter().copied().max().unwrap_or(0);
        let mean = |bits: &[u32]| bits.iter().map(|&bits| f64::from(bits)).sum::<f64>() / f64::from(nodes);
        ensure!(longest(&bits) <= bits_bound(nodes), "{}: a label of {} bits", self.case, longest(&bits));
        for (subject, bits) in [("here", &bits), ("Thorup-Zwick codes", &plain)] {
            outcome.add_value(&self.case, subject, ("longest label", "bits"), f64::from(longest(bits)));
            outcome.add_value(&self.case, subject, ("mean label", "bits"), mean(bits));
        }
        totals.bits_max = totals.bits_max.max(longest(&bits));
        totals.plain_bits_max = totals.plain_bits_max.max(longest(&plain));
        Ok(())
    }

    /// The bits of each node's list if light children had the numbers 0, 1, 2, … in plain binary.
    fn plain_list_bits(&self) -> Vec<u32> {
        let mut by_id: Vec<u32> = (0..self.parents.len() as u32).collect();
        by_id.sort_unstable_by_key(|&node| self.labels.label(node).node_id());
        let mut bits = vec![0; self.parents.len()];
        for node in by_id {
            let Some(parent) = self.parents[node as usize] else { continue };
            let interface = self.labels.state(parent).forward(self.labels.label(node));
            let code_bits = interface.checked_sub(2).map_or(0, |number| number.max(1).ilog2() + 1);
            bits[node as usize] = bits[parent as usize] + code_bits;
        }
        bits
    }

    fn add_hops(&self, outcome: &mut Outcome, delivered: &Delivered) {
        outcome.add_value(&self.case, "along the tree", ("hops", "mean"), delivered.tree_mean());
        outcome.add_value(&self.case, "shortest path", ("hops", "mean"), delivered.shortest_mean());
        outcome.add_value(&self.case, "along the tree", ("longest path", "hops"), f64::from(delivered.longest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_thorup_and_zwick_are_counted() -> anyhow::Result<()> {
        // A star: the heavy child, then light children 0, 1, 2 … 9.
        let parents: Vec<Option<u32>> = (0..12).map(|node| (node > 0).then_some(0)).collect();
        let labels = TreeLabels::<u16>::of(&parents)?;
        let tree = Tree { case: String::new(), parents: &parents, labels: &labels };
        assert_eq!(tree.plain_list_bits(), [0, 0, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4]);
        assert_eq!([1, 2, 3, 4, 5, 65_536].map(id_bits), [0, 1, 2, 2, 3, 16]);
        assert_eq!(bits_bound(42_113), 46);
        Ok(())
    }
}
