//! The structure of a model: one tree of at most [`DEPTH_MAX`] levels, and signers without a circle.
//!
//! Source: python-ndn's `Checker._sanity_check`. Stricter: every node belongs to the tree, and only the first has no
//! parent.

use super::{
    SchemaError,
    model::{DEPTH_MAX, Model, Node},
};

/// Refuses a model whose nodes do not form a tree, or whose rules sign themselves.
pub(super) fn check(model: &Model) -> Result<(), SchemaError> {
    check_tree(model)?;
    check_signers(model)
}

fn malformed(number: usize, problem: &str) -> SchemaError {
    SchemaError::Malformed { place: format!("node {number}"), problem: problem.to_owned() }
}

/// The nodes at the end of a node's edges.
fn children(node: &Node) -> impl Iterator<Item = usize> + '_ {
    let values = node.values.iter().map(|edge| edge.to);
    values.chain(node.patterns.iter().map(|edge| edge.to))
}

fn check_tree(model: &Model) -> Result<(), SchemaError> {
    let mut is_reached = vec![false; model.nodes.len()];
    match model.nodes.get(model.start) {
        None => return Err(malformed(model.start, "is where names begin, and does not exist")),
        Some(node) if node.parent.is_some() => return Err(malformed(model.start, "is the first, and has a parent")),
        Some(_) => is_reached[model.start] = true,
    }
    let mut level = vec![model.start];
    for depth in 0.. {
        if level.is_empty() {
            break;
        }
        if depth > DEPTH_MAX {
            return Err(SchemaError::TooLarge { what: "components in a name", limit: DEPTH_MAX });
        }
        let mut next = Vec::new();
        for &parent in &level {
            for child in children(&model.nodes[parent]) {
                let node = model.nodes.get(child).ok_or_else(|| malformed(parent, "has an edge to no node"))?;
                if std::mem::replace(&mut is_reached[child], true) {
                    return Err(malformed(child, "is the end of two edges"));
                }
                if node.parent != Some(parent) {
                    return Err(malformed(child, "has another parent than its edge says"));
                }
                next.push(child);
            }
        }
        level = next;
    }
    match is_reached.iter().position(|reached| !reached) {
        Some(number) => Err(malformed(number, "is the end of no edge")),
        None => Ok(()),
    }
}

/// Removes nodes that sign nothing that is left, until none is left.
fn check_signers(model: &Model) -> Result<(), SchemaError> {
    let mut signs = vec![0_usize; model.nodes.len()];
    for (number, node) in model.nodes.iter().enumerate() {
        for &signer in &node.signers {
            *signs.get_mut(signer).ok_or_else(|| malformed(number, "is signed by a key of no node"))? += 1;
        }
    }
    let mut ready: Vec<usize> = (0..signs.len()).filter(|&number| signs[number] == 0).collect();
    let mut removed = 0;
    while let Some(number) = ready.pop() {
        removed += 1;
        for &signer in &model.nodes[number].signers {
            signs[signer] -= 1;
            if signs[signer] == 0 {
                ready.push(signer);
            }
        }
    }
    if removed == signs.len() {
        return Ok(());
    }
    let number = signs.iter().position(|&signs| signs > 0).unwrap_or_default();
    let rule = model.nodes[number].rules.first().cloned();
    Err(SchemaError::Circle(rule.unwrap_or_else(|| format!("node {number}"))))
}

/// Nodes that sign others and that need no signature themselves, in order.
pub(super) fn roots_of_trust(model: &Model) -> Vec<usize> {
    let mut roots: Vec<usize> = model.nodes.iter().flat_map(|node| node.signers.iter().copied()).collect();
    roots.retain(|&signer| model.nodes[signer].signers.is_empty());
    roots.sort_unstable();
    roots.dedup();
    roots
}
