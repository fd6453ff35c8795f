//! Speed: how many labels a router forwards in a second.
//!
//! Three routers with large subtrees, because a leaf sends everything to its parent: the root, its heavy child, and its
//! largest light child. And one packet at each of many routers, where the state too comes from memory. They take
//! turns; every interface is checked against the tree.

use std::hint::black_box;

use anyhow::{Context as _, ensure};
use namewire_tagnet::locator::{HEAVY_CHILD, NodeState, TreeLabel, Word};

use super::delivery::next_hop;
use super::{Size, Tree};
use crate::experiment::Context;
use crate::sample_table::SampleTable;

/// Labels of a slice.
const SLICE_LABELS: usize = 16_384;
/// The packets of a slice each at another router.
const MANY_ROUTERS: &str = "another router for each packet";
const METRIC: &str = "forwards";
const UNIT: &str = "million per s";

/// Labels to forward, and the interfaces found.
struct Batch<W> {
    destinations: Vec<u32>,
    labels: Vec<TreeLabel<W>>,
    interfaces: Vec<u32>,
}

/// Times the routers; returns the speed of the slowest single one, unless the clock cannot resolve a slice.
///
/// # Errors
/// If an interface is wrong, or the user interrupted.
pub(super) fn time_routers<W: Word>(
    context: &Context,
    size: &Size,
    tree: &Tree<'_, W>,
    table: &mut SampleTable,
) -> anyhow::Result<Option<f64>> {
    let root = tree.parents.iter().position(Option::is_none).context("no root")? as u32;
    let mut routers = vec![("the root", root)];
    for (subject, interface) in [("its heavy child", HEAVY_CHILD), ("its largest light child", HEAVY_CHILD + 1)] {
        routers.extend(tree.labels.node_behind(root, interface).map(|node| (subject, node)));
    }
    let mut random = fastrand::Rng::with_seed(context.seed);
    for _ in 0..size.repetitions {
        let mut slices_ns = vec![Vec::new(); routers.len() + 1];
        for _ in 0..size.slices {
            context.check_interrupt()?;
            let mut batch = Batch::draw(tree, &mut random);
            for (&(_, node), slices_ns) in routers.iter().zip(&mut slices_ns) {
                slices_ns.push(batch.forward_at_one(context, tree.labels.state(node)));
                batch.check(tree, std::iter::repeat(node))?;
            }
            let nodes: Vec<u32> = (0..SLICE_LABELS).map(|_| random.u32(..tree.parents.len() as u32)).collect();
            let states: Vec<NodeState> = nodes.iter().map(|&node| *tree.labels.state(node)).collect();
            slices_ns[routers.len()].push(batch.forward_at_many(context, &states));
            batch.check(tree, nodes.into_iter())?;
        }
        let subjects = routers.iter().map(|&(subject, _)| subject).chain([MANY_ROUTERS]);
        for (subject, slices_ns) in subjects.zip(slices_ns) {
            let per_label = context.clock.median_ns(slices_ns, SLICE_LABELS);
            table.samples(&tree.case, subject, METRIC, UNIT).add_resolved(per_label.map(|ns| 1e3 / ns));
        }
    }
    let speed = |&(subject, _): &(&str, u32)| table.samples(&tree.case, subject, METRIC, UNIT).median();
    let speeds: Option<Vec<f64>> = routers.iter().map(speed).collect();
    Ok(speeds.and_then(|speeds| speeds.into_iter().min_by(f64::total_cmp)))
}

impl<W: Word> Batch<W> {
    fn draw(tree: &Tree<'_, W>, random: &mut fastrand::Rng) -> Self {
        let nodes = tree.parents.len() as u32;
        let destinations: Vec<u32> = (0..SLICE_LABELS).map(|_| random.u32(..nodes)).collect();
        let labels = destinations.iter().map(|&node| tree.labels.label(node)).collect();
        Self { destinations, labels, interfaces: vec![0; SLICE_LABELS] }
    }

    fn forward_at_one(&mut self, context: &Context, state: &NodeState) -> u64 {
        let started = context.clock.now_ns();
        for (interface, &label) in self.interfaces.iter_mut().zip(black_box(&self.labels)) {
            *interface = state.forward(label);
        }
        black_box(&mut self.interfaces);
        context.clock.now_ns() - started
    }

    fn forward_at_many(&mut self, context: &Context, states: &[NodeState]) -> u64 {
        let started = context.clock.now_ns();
        for ((interface, &label), state) in self.interfaces.iter_mut().zip(black_box(&self.labels)).zip(states) {
            *interface = state.forward(label);
        }
        black_box(&mut self.interfaces);
        context.clock.now_ns() - started
    }

    /// Compares the interfaces found with the tree, and forgets them.
    fn check(&mut self, tree: &Tree<'_, W>, routers: impl Iterator<Item = u32>) -> anyhow::Result<()> {
        for ((interface, &destination), router) in self.interfaces.iter_mut().zip(&self.destinations).zip(routers) {
            let sent_to = tree.labels.node_behind(router, std::mem::replace(interface, u32::MAX));
            let right = next_hop(tree.parents, router, destination);
            ensure!(
                sent_to == right,
                "{}: for {destination}, node {router} sends to {sent_to:?} instead of {right:?}",
                tree.case
            );
        }
        Ok(())
    }
}
