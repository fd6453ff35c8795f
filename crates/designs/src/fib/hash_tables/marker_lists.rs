//! Marker lists: each prefix knows the markers that inherit from it.
//!
//! Source: Yuan15 §3.3.1, "FIB Updates", the second solution, which leaves the data structure open. This one is ours.
//! The list of a prefix is in the order of the markers' bytes, so the markers that a new prefix takes over from the
//! prefix above it are neighbours there. All lists are in one sequence, in the order of their prefixes. Markers that
//! inherit only from the root are the first list. A marker's slot names the prefix from which the marker inherits.
//!
//! ```text
//!  chunks:  | /a/b /a/c /q/r | /a: /a/d/e /a/d/f | /a/x: /a/x/y … |        256 markers to a chunk at most
//!             list of the root   list of /a          list of /a/x
//! ```
//!
//! Cost: inserting, changing or removing a prefix writes each marker that inherits from it, and moves these markers to
//! their new place in one piece. To find a place takes some log₂ comparisons of names for all markers.
//! Bytes: a marker takes 8, and unused room. Writers: the owner.

use super::maintenance::{Marker, name_of};
use super::name_entries::{Forwarding, NOTHING, NameEntries};

/// The most markers of a chunk.
const CHUNK_MARKERS: usize = 256;

/// All lists, one behind the other.
#[derive(Default)]
pub(super) struct MarkerLists {
    /// None is empty.
    chunks: Vec<Vec<Marker>>,
}

/// Where a marker is in the order: the prefix that it inherits from, and its own bytes.
type Key<'n> = (&'n [u8], &'n [u8]);

/// A chunk, and a place in it.
#[derive(Clone, Copy)]
struct Position {
    chunk: usize,
    place: usize,
}

impl MarkerLists {
    pub(super) fn bytes(&self) -> usize {
        let markers: usize = self.chunks.iter().map(Vec::capacity).sum();
        markers * size_of::<Marker>() + self.chunks.capacity() * size_of::<Vec<Marker>>()
    }

    pub(super) fn enter(&mut self, names: &mut NameEntries, marker: Marker, inherited: Forwarding) {
        names.set(marker.at(), inherited);
        let position = self.find(names, key_of(names, marker));
        self.put(position, vec![marker]);
    }

    pub(super) fn leave(&mut self, names: &NameEntries, marker: Marker) {
        let Position { chunk, place } = self.find(names, key_of(names, marker));
        debug_assert!(self.chunks[chunk].get(place) == Some(&marker), "a marker is where its name belongs");
        self.chunks[chunk].remove(place);
        self.join(chunk, chunk + 1);
    }

    pub(super) fn hand_over(&mut self, names: &mut NameEntries, prefix: &[u8], from: u16, to: Forwarding) {
        let owner = &prefix[..bytes_of(from)];
        let moved = self.take(names, (owner, prefix));
        let Some(&first) = moved.first() else { return };
        for marker in &moved {
            names.set(marker.at(), to);
        }
        let position = self.find(names, key_of(names, first));
        self.put(position, moved);
    }

    /// Takes the markers below a prefix out of a list.
    fn take(&mut self, names: &NameEntries, (owner, prefix): Key<'_>) -> Vec<Marker> {
        let Position { chunk: first, place: mut start } = self.find(names, (owner, prefix));
        let is_below = |&marker: &Marker| {
            let (of, name) = key_of(names, marker);
            of == owner && name.starts_with(prefix)
        };
        let mut taken = Vec::new();
        let mut end_chunk = first;
        for members in &mut self.chunks[first..] {
            let end = start + members[start..].partition_point(is_below);
            let is_last = end < members.len();
            taken.extend(members.drain(start..end));
            (start, end_chunk) = (0, end_chunk + 1);
            if is_last {
                break;
            }
        }
        if !taken.is_empty() {
            self.join(first, end_chunk);
        }
        taken
    }

    /// The first marker that is not before `key`; else the end of its chunk.
    fn find(&self, names: &NameEntries, key: Key<'_>) -> Position {
        let begins_before = |members: &Vec<Marker>| key_of(names, members[0]) <= key;
        let chunk = self.chunks.partition_point(begins_before).saturating_sub(1);
        let is_before = |&marker: &Marker| key_of(names, marker) < key;
        let place = self.chunks.get(chunk).map_or(0, |members| members.partition_point(is_before));
        Position { chunk, place }
    }

    /// Inserts markers that are neighbours in the order.
    fn put(&mut self, Position { chunk, place }: Position, markers: Vec<Marker>) {
        let Some(members) = self.chunks.get_mut(chunk) else {
            self.chunks.push(Vec::new());
            return self.put(Position { chunk, place }, markers);
        };
        members.splice(place..place, markers);
        if members.len() > CHUNK_MARKERS {
            let piece = members.len().div_ceil(members.len().div_ceil(CHUNK_MARKERS));
            let rest = members.split_off(piece);
            members.shrink_to_fit();
            self.chunks.splice(chunk + 1..chunk + 1, rest.chunks(piece).map(<[Marker]>::to_vec));
        }
    }

    /// Removes the empty ones of the chunks `first..end`, which lost markers, and joins the last that remains with its
    /// neighbour if both are small.
    fn join(&mut self, first: usize, end: usize) {
        let empty = self.chunks[first..end].iter().filter(|members| members.is_empty()).count();
        let kept_first = usize::from(!self.chunks[first].is_empty());
        self.chunks.drain(first + kept_first..first + kept_first + empty);
        if let [members, next, ..] = &mut self.chunks[first..]
            && members.len() + next.len() <= CHUNK_MARKERS / 2
        {
            members.append(next);
            self.chunks.remove(first + 1);
        }
    }
}

fn key_of(names: &NameEntries, marker: Marker) -> Key<'_> {
    let name = name_of(names, marker);
    (&name[..bytes_of(names.forwarding(marker.at()).matched_bytes)], name)
}

fn bytes_of(matched_bytes: u16) -> usize {
    if matched_bytes == NOTHING { 0 } else { matched_bytes.into() }
}
