//! Next hops along the shortest paths to each producer.
//!
//! A neighbour is a next hop if its own shortest path does not lead back through the node (RFC 5286, inequality 1, with
//! the link between them as the distance); so a strategy has other next hops than the best one. The cost is the delay
//! of the path through the neighbour, in microseconds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A neighbour and the delay to it, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    pub node: usize,
    pub delay_us: u64,
}

/// A route of `node` to its neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    pub node: usize,
    pub neighbour: usize,
    pub cost: u64,
}

/// The next hops of all nodes that reach `producer`.
pub fn next_hops(neighbours: &[Vec<Neighbour>], producer: usize) -> Vec<NextHop> {
    let delays = delays_us(neighbours, producer);
    let mut next_hops = Vec::new();
    for (node, of_node) in neighbours.iter().enumerate() {
        for neighbour in of_node {
            if let (Some(own), Some(theirs)) = (delays[node], delays[neighbour.node])
                && theirs < own + neighbour.delay_us.max(1)
            {
                next_hops.push(NextHop { node, neighbour: neighbour.node, cost: theirs + neighbour.delay_us });
            }
        }
    }
    next_hops
}

/// The delay from each node (Dijkstra); `None` if there is no path.
fn delays_us(neighbours: &[Vec<Neighbour>], source: usize) -> Vec<Option<u64>> {
    let mut delays = vec![None; neighbours.len()];
    let mut nearest = BinaryHeap::from([(Reverse(0), source)]);
    while let Some((Reverse(delay_us), node)) = nearest.pop() {
        if delays[node].is_some() {
            continue;
        }
        delays[node] = Some(delay_us);
        // A link without a delay still is a step.
        let onward = |neighbour: &Neighbour| (Reverse(delay_us + neighbour.delay_us.max(1)), neighbour.node);
        nearest.extend(neighbours[node].iter().map(onward));
    }
    delays
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A square 0-1-3, 0-2-3 whose lower way is longer, and 4 apart.
    #[test]
    fn neighbours_that_do_not_lead_back_are_next_hops() {
        let link = |node, delay_us| Neighbour { node, delay_us };
        let neighbours = [
            vec![link(1, 10), link(2, 30)],
            vec![link(0, 10), link(3, 10)],
            vec![link(0, 30), link(3, 30)],
            vec![link(1, 10), link(2, 30)],
            vec![],
        ];
        let hop = |node, neighbour, cost| NextHop { node, neighbour, cost };
        assert_eq!(
            next_hops(&neighbours, 3),
            [hop(0, 1, 20), hop(0, 2, 60), hop(1, 3, 10), hop(2, 0, 50), hop(2, 3, 30)],
            "1 would go to 3 through 0 only by itself"
        );
    }
}
