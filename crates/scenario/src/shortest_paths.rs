//! Next hops along the shortest paths to a producer.
//!
//! A neighbour is a next hop if its own shortest path does not lead back through the node (RFC 5286, inequality 1, with
//! the link between them as the distance); so a strategy has other next hops than the best one. The cost is the delay
//! of the path through the neighbour, in microseconds. Of more next hops than are allowed, the cheapest stay.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A neighbour, the delay to it in microseconds, and the number of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Neighbour {
    pub(crate) node: usize,
    pub(crate) delay_us: u64,
    pub(crate) link: usize,
}

/// A route of `node` by a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NextHop {
    pub(crate) node: usize,
    pub(crate) link: usize,
    pub(crate) cost: u64,
}

/// The next hops of all nodes that reach `producer`, at most `most` each; in the order of nodes and links.
pub(crate) fn next_hops(neighbours: &[Vec<Neighbour>], producer: usize, most: usize) -> Vec<NextHop> {
    let delays = delays_us(neighbours, producer);
    let mut next_hops = Vec::new();
    for (node, of_node) in neighbours.iter().enumerate() {
        let mut of_node: Vec<NextHop> = of_node
            .iter()
            .filter_map(|neighbour| {
                let (own, theirs) = (delays[node]?, delays[neighbour.node]?);
                let cost = theirs + neighbour.delay_us;
                (theirs < own + neighbour.delay_us.max(1)).then_some(NextHop { node, link: neighbour.link, cost })
            })
            .collect();
        of_node.sort_by_key(|hop| (hop.cost, hop.link));
        of_node.truncate(most);
        next_hops.append(&mut of_node);
    }
    next_hops.sort_unstable();
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
        let to = |node, delay_us, link| Neighbour { node, delay_us, link };
        let neighbours = [
            vec![to(1, 10, 0), to(2, 30, 1)],
            vec![to(0, 10, 0), to(3, 10, 2)],
            vec![to(0, 30, 1), to(3, 30, 3)],
            vec![to(1, 10, 2), to(2, 30, 3)],
            vec![],
        ];
        let hop = |node, link, cost| NextHop { node, link, cost };
        assert_eq!(
            next_hops(&neighbours, 3, 4),
            [hop(0, 0, 20), hop(0, 1, 60), hop(1, 2, 10), hop(2, 1, 50), hop(2, 3, 30)],
            "1 would go to 3 through 0 only by itself"
        );
        assert_eq!(next_hops(&neighbours, 3, 1), [hop(0, 0, 20), hop(1, 2, 10), hop(2, 3, 30)]);
    }
}
