//! Removal from a NameTrie: what becomes of the pieces?
//!
//! Source: NameTrie18 §IV-C: the reverse of insertion. The node and its edge are removed if no other name shares them;
//! single children are joined with their parents, and so on upwards. Ours: a piece is cut off behind its last
//! forwarding or branching point; otherwise short names would keep the memory of long ones that are gone.
//!
//! Joining moves all edges of both pieces to a new address, because the address is part of their keys. A branching
//! point does not record for which bytes it has edges. Joining asks for the bytes one by one, the frequent ones first,
//! until it has found all edges of the point.
//!
//! Cost: a removal reads what a look-up reads, and writes the edges. Joining costs in proportion to the codes of the
//! child, because it asks each branching point for all its edges. All room that joining needs is reserved first. If
//! the kernel grants none, the pieces stay as they are: right, only larger.

use super::super::min_ascii::{BRANCHING_POINT, EOP, FORWARDING_POINT, SLASH};
use super::edge_hash_table::{EdgeKey, SIBLINGS, TO_FIB_ENTRY};
use super::name_nodes::{is_branching, is_eop};
use super::{NameEnd, NameTrie, ROOT, Step, ends_component};

/// Codes that edges are for, the frequent ones first.
const BYTES_BY_FREQUENCY: [u8; 125] = {
    let frequent = b"\x02\x00aeiostrnlcdmpuhgbfkvywjxzq0123456789-._%ABCDEFGHIJKLMNOPQRSTUVWXYZ~+=";
    let (mut bytes, mut is_listed, mut at) = ([0; 125], [false; 127], 0);
    while at < frequent.len() {
        bytes[at] = frequent[at];
        is_listed[frequent[at] as usize] = true;
        at += 1;
    }
    let mut byte = 0;
    while byte < 127 {
        if !is_listed[byte as usize] && byte != 1 && byte != 3 {
            bytes[at] = byte;
            at += 1;
        }
        byte += 1;
    }
    assert!(at == bytes.len());
    bytes
};

/// What a piece is good for.
struct Points {
    /// The offset of its EOP.
    eop: usize,
    /// The last offset before it with a forwarding or branching point.
    last: Option<usize>,
    branching: usize,
}

impl NameTrie {
    /// Removes the prefix that ends at this place; gives its number, if there is such a prefix.
    pub(super) fn remove_at(&mut self, end: NameEnd) -> Option<u32> {
        let (node, number) = match end {
            NameEnd::AtPoint { node, offset } => {
                let number = self.edges.remove(EdgeKey::new(node, offset, TO_FIB_ENTRY))?;
                *self.nodes.code_mut(node, offset) &= !FORWARDING_POINT;
                (node, number)
            }
            NameEnd::Within { node, offset } => (node, self.drop_edge(Step { node, offset, byte: TO_FIB_ENTRY })?),
            NameEnd::Outside { .. } => return None,
        };
        self.len -= 1;
        self.tidy(node);
        Some(number)
    }

    /// Takes an edge away, and with the last edge its branching point; gives what the edge led to.
    fn drop_edge(&mut self, step: Step) -> Option<u32> {
        let value = self.edges.remove(step.key())?;
        let siblings = EdgeKey::new(step.node, step.offset, SIBLINGS);
        match self.edges.get(siblings) {
            None => *self.nodes.code_mut(step.node, step.offset) &= !BRANCHING_POINT,
            Some(2) => drop(self.edges.remove(siblings)),
            Some(edges) => drop(self.edges.set(siblings, edges - 1)),
        }
        Some(value)
    }

    /// Lets a piece, from which something was taken, and those above it be no more than needed.
    /// `path` leads there.
    fn tidy(&mut self, mut node: u32) {
        while node != ROOT {
            let points = self.points(node);
            let ends_prefix = self.nodes.from(node)[points.eop] & FORWARDING_POINT != 0;
            match points.last {
                None if !ends_prefix => {
                    let Some(step) = self.path.pop() else { return };
                    self.nodes.free(node);
                    self.drop_edge(step);
                    node = step.node;
                }
                Some(last) if !ends_prefix => {
                    self.cut_behind(node, last, points.eop);
                    return self.join_single_child(node);
                }
                _ => return self.join_single_child(node),
            }
        }
    }

    fn points(&self, node: u32) -> Points {
        let mut points = Points { eop: 0, last: None, branching: 0 };
        for (offset, &code) in self.nodes.from(node).iter().enumerate() {
            if is_eop(code) {
                points.eop = offset;
                break;
            }
            if is_branching(code) || is_forwarding_slash(code) {
                points.last = Some(offset);
                points.branching += usize::from(is_branching(code));
            }
        }
        points
    }

    /// Cuts a piece off behind its last point, if anything is there. Its EOP is no forwarding point.
    fn cut_behind(&mut self, node: u32, last: usize, eop: usize) {
        let piece = self.nodes.from(node);
        if !is_branching(piece[last]) {
            // A slash that is a forwarding point: EOP serves as well, and at the same offset.
            return self.nodes.truncate(node, last, EOP | FORWARDING_POINT);
        }
        if last + 1 == eop || self.edges.reserve(1).is_err() {
            return;
        }
        let went_on = !ends_component(piece[last]) && !ends_component(piece[last + 1]);
        self.nodes.truncate(node, last + 1, EOP);
        // A prefix that ended where the piece went on ends before an EOP now. (After a slash none does.)
        let moved = Step { node, offset: last, byte: TO_FIB_ENTRY };
        if let Some(number) = went_on.then(|| self.drop_edge(moved)).flatten() {
            *self.nodes.code_mut(node, last + 1) |= FORWARDING_POINT;
            self.edges.insert(EdgeKey::new(node, last + 1, TO_FIB_ENTRY), number);
        }
    }

    /// Joins a piece with its child if it has only one, at its end, and EOP is no forwarding point or
    /// the child begins with a slash that can take its place.
    fn join_single_child(&mut self, node: u32) {
        let Points { eop, last, branching } = self.points(node);
        if branching != 1 || last != Some(eop - 1) || self.edges.get(EdgeKey::new(node, eop - 1, SIBLINGS)).is_some() {
            return;
        }
        let parent = self.nodes.piece(node).to_vec();
        let ends_prefix = parent[eop] & FORWARDING_POINT != 0;
        let bytes = if ends_prefix { &[SLASH][..] } else { &BYTES_BY_FREQUENCY };
        // With byte EOP it would be the edge of a forwarding point, not of a child.
        let children = bytes.iter().filter(|&&byte| byte != TO_FIB_ENTRY);
        let edge = children.map(|&byte| EdgeKey::new(node, eop - 1, byte));
        let found = edge.filter_map(|key| Some((key, self.edges.get(key)?))).next();
        let (Some((edge, child_node)), Some(above)) = (found, self.path.last().copied()) else { return };

        let mut codes = parent[..eop].to_vec();
        codes[eop - 1] &= !BRANCHING_POINT;
        let mut child = self.nodes.piece(child_node).to_vec();
        child[0] |= parent[eop] & FORWARDING_POINT;
        let mut moves = self.edges_from(node, &parent, 0);
        moves.retain(|&(key, _)| key != edge);
        // The slash that became a forwarding point has its edge among the parent's.
        let child_edges = self.nodes.piece(child_node).to_vec();
        moves.extend(self.edges_from(child_node, &child_edges, eop));
        if self.edges.reserve(moves.len()).is_err() || self.nodes.reserve(codes.len() + child.len()).is_err() {
            return;
        }
        let joined = self.nodes.allocate([&codes, &child]);
        self.edges.remove(edge);
        for (key, place) in moves {
            if let Some(value) = self.edges.remove(key) {
                self.edges.insert(EdgeKey::new(joined, place.0, place.1), value);
            }
        }
        self.edges.set(above.key(), joined);
        self.nodes.free(node);
        self.nodes.free(child_node);
    }

    /// All edges of a piece, and the offset and byte of each if the piece begins `further` on.
    fn edges_from(&self, node: u32, piece: &[u8], further: usize) -> Vec<(EdgeKey, (usize, u8))> {
        let mut edges = Vec::new();
        for (offset, &code) in piece.iter().enumerate() {
            let mut add = |byte| edges.push((EdgeKey::new(node, offset, byte), (further + offset, byte)));
            if ends_component(code) && code & FORWARDING_POINT != 0 {
                add(TO_FIB_ENTRY);
            }
            if !is_branching(code) {
                continue;
            }
            let siblings = self.edges.get(EdgeKey::new(node, offset, SIBLINGS));
            if siblings.is_some() {
                add(SIBLINGS);
            }
            let exists = |&byte: &u8| self.edges.get(EdgeKey::new(node, offset, byte)).is_some();
            // Behind a slash or before one, EOP means the edge of a forwarding point, which is added above.
            let bytes = BYTES_BY_FREQUENCY.into_iter().filter(|&byte| byte != TO_FIB_ENTRY || !ends_component(code));
            bytes.filter(exists).take(siblings.unwrap_or(1) as usize).for_each(add);
        }
        edges
    }
}

fn is_forwarding_slash(code: u8) -> bool {
    code & !BRANCHING_POINT == SLASH | FORWARDING_POINT
}
