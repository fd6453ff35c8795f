//! Spanning tree: the breadth-first tree of a graph from a root.
//!
//! Every node is as far from the root as in the graph. Of several possible parents the lowest number wins, so that all
//! routers that know the graph find the same tree. Cost: O(n log n + m) for n nodes and m links; no recursion.

/// Why a graph has no spanning tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpanningTreeError {
    /// The root, or a neighbour of this node, is no node.
    #[error("node {0} is the root, or has a neighbour, that is no node")]
    UnknownNode(u32),
    /// A node that the root does not reach.
    #[error("the root does not reach node {0}")]
    Unreached(u32),
}

/// The parent of each node in the breadth-first tree from `root`, where node i has the neighbours `neighbours[i]`.
///
/// # Errors
/// If the root or a neighbour is no node, or the root does not reach every node.
pub fn spanning_tree(neighbours: &[Vec<u32>], root: u32) -> Result<Vec<Option<u32>>, SpanningTreeError> {
    if root as usize >= neighbours.len() {
        return Err(SpanningTreeError::UnknownNode(root));
    }
    // The root is its own parent until the end: so it counts as reached.
    let mut parents = vec![None; neighbours.len()];
    parents[root as usize] = Some(root);
    let mut level = vec![root];
    while !level.is_empty() {
        let mut next = Vec::new();
        for &parent in &level {
            for &node in &neighbours[parent as usize] {
                let entry = parents.get_mut(node as usize).ok_or(SpanningTreeError::UnknownNode(parent))?;
                if entry.is_none() {
                    *entry = Some(parent);
                    next.push(node);
                }
            }
        }
        next.sort_unstable();
        level = next;
    }
    parents[root as usize] = None;
    let unreached = (0..).zip(&parents).find(|&(node, parent)| parent.is_none() && node != root);
    unreached.map_or(Ok(()), |(node, _)| Err(SpanningTreeError::Unreached(node)))?;
    Ok(parents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_neighbour_of_the_level_above_is_the_parent() {
        // 0 is the root; 5 and 1 are below it, 2 and 3 have both as neighbours, and 4 has 3 and 2.
        let graph = [vec![5, 1], vec![0, 2, 3], vec![5, 1, 4], vec![5, 1, 4], vec![3, 2], vec![0, 2, 3, 5]];
        let tree = spanning_tree(&graph, 0).unwrap();
        assert_eq!(tree, [None, Some(0), Some(1), Some(1), Some(2), Some(0)]);
        assert_eq!(spanning_tree(&graph, 4).unwrap(), [Some(1), Some(2), Some(4), Some(4), None, Some(2)]);
    }

    #[test]
    fn invalid_or_disconnected_graphs_are_refused() {
        assert_eq!(spanning_tree(&[], 0), Err(SpanningTreeError::UnknownNode(0)));
        assert_eq!(spanning_tree(&[vec![1], vec![0]], 2), Err(SpanningTreeError::UnknownNode(2)));
        assert_eq!(spanning_tree(&[vec![1], vec![7]], 0), Err(SpanningTreeError::UnknownNode(1)));
        assert_eq!(spanning_tree(&[vec![1], vec![0], vec![]], 1), Err(SpanningTreeError::Unreached(2)));
        assert_eq!(spanning_tree(&[vec![]], 0), Ok(vec![None]));
    }
}
