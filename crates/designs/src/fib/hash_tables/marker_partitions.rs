//! Marker partitions: markers that inherit from the same prefix share one place that names this prefix.
//!
//! Source: marker partitioning is from Waldvogel, Varghese, Turner and Plattner. Yuan15 §3.3.1 leaves the design for
//! names open: this one is ours. All markers are in the order of their bytes, so those below any prefix are
//! neighbours. The order is cut in partitions: a partition is a run of markers that inherit from one prefix, at most
//! [`PARTITION_MARKERS`]. A marker's slot holds the number of its partition. The *cell* of the partition holds what
//! all its markers inherit.
//!
//! ```text
//!  groups:      | 3 9 4 … | 7 1 … | …            partitions in order, 512 to a group at most
//!  partition 9: | /a/b | /a/c | /a/q/r |         all inherit from /a
//!  cell 9:      | number | bytes of /a |        what look-ups read, 8 bytes
//! ```
//!
//! Cost: a look-up that ends at a marker reads 1 line more. Inserting, changing or removing a prefix writes the cells
//! of the partitions between the first and the last marker below it, and cuts at most two partitions. To insert or
//! remove a marker takes some 2 log₂ comparisons of names to find its place. Partitions that become small are joined
//! with neighbours of the same prefix.
//! Bytes: a marker takes 8, and unused room; a partition takes 40 and its cell. Writers: the owner.

use super::maintenance::{Marker, name_of};
use super::name_entries::{Forwarding, IN_PARTITION, NOTHING, NameEntries};
use bytemuck::{Pod, Zeroable};
use namewire_tables::pages::{PageArray, PageSize};
use std::io;

/// The most markers of a partition.
const PARTITION_MARKERS: usize = 64;
/// Neighbours with no more than this together are joined.
const JOINED_MARKERS: usize = PARTITION_MARKERS / 2;
/// The most partitions of a group.
const GROUP_PARTITIONS: usize = 512;
const LEAST_CELLS: usize = 512;

/// All markers in order.
pub(super) struct MarkerPartitions {
    groups: Vec<Vec<u32>>,
    /// Element `n`: the markers of partition `n`; empty if it is free.
    partitions: Vec<Vec<Marker>>,
    cells: PageArray<Cell>,
    free: Vec<u32>,
    markers: usize,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Cell {
    number: u32,
    matched_bytes: u16,
    reserved: u16,
}

const _: () = assert!(size_of::<Cell>() == 8 && size_of::<Marker>() == 8);

/// Where a partition is: its group, and its place there.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Position {
    group: usize,
    place: usize,
}

impl MarkerPartitions {
    pub(super) fn new(pages: PageSize) -> io::Result<Self> {
        let cells = PageArray::zeroed_for_growth(LEAST_CELLS, pages)?.or_transparent();
        Ok(Self { groups: Vec::new(), partitions: Vec::new(), cells, free: Vec::new(), markers: 0 })
    }

    pub(super) fn bytes(&self) -> usize {
        let groups: usize = self.groups.iter().map(|group| group.capacity() * 4 + size_of::<Vec<u32>>()).sum();
        let partitions: usize = self
            .partitions
            .iter()
            .map(|members| members.capacity() * size_of::<Marker>() + size_of::<Vec<Marker>>())
            .sum();
        groups + partitions + self.cells.touched_bytes(self.partitions.len()) + self.free.capacity() * 4
    }

    /// Room for this many more markers: every partition has at least one marker.
    pub(super) fn reserve(&mut self, more: usize) -> io::Result<()> {
        let markers = self.markers + more;
        if markers > self.cells.len() {
            self.cells.grow(markers.next_power_of_two())?;
        }
        Ok(())
    }

    #[inline(always)]
    pub(super) fn forwarding(&self, partition: u32) -> Forwarding {
        let Cell { number, matched_bytes, .. } = self.cells[partition as usize];
        Forwarding { number, matched_bytes }
    }

    pub(super) fn enter(&mut self, names: &mut NameEntries, marker: Marker, inherited: Forwarding) {
        self.markers += 1;
        let mut found = self.find(names, name_of(names, marker));
        if let Some(position) = found {
            let place = self.first_from(names, position, name_of(names, marker));
            if self.inherits(names, position, marker, inherited) {
                return self.insert_at(names, position, place, marker);
            }
            if place < self.members(position).len() {
                let behind = self.split(names, position, place);
                found = self.previous(behind);
            }
        }
        let next = match found {
            Some(position) => self.next(position),
            None => self.first(),
        };
        match next.filter(|&next| self.inherits(names, next, marker, inherited)) {
            Some(next) => self.insert_at(names, next, 0, marker),
            None => self.add_partition(names, found, vec![marker], inherited),
        }
    }

    pub(super) fn leave(&mut self, names: &mut NameEntries, marker: Marker) {
        let Some(position) = self.find(names, name_of(names, marker)) else { return };
        let place = self.first_from(names, position, name_of(names, marker));
        let number = self.number(position);
        debug_assert!(
            self.partitions[number as usize].get(place) == Some(&marker),
            "a marker is where its name belongs"
        );
        self.partitions[number as usize].remove(place);
        self.markers -= 1;
        if self.members(position).is_empty() {
            self.remove_partition(position);
        } else {
            self.join_neighbours(names, position);
        }
    }

    /// What is below `prefix` and inherited from a prefix of `from` bytes inherits `to` now.
    pub(super) fn hand_over(&mut self, names: &mut NameEntries, prefix: &[u8], from: u16, to: Forwarding) {
        let Some(mut position) = self.find(names, prefix).or_else(|| self.first()) else { return };
        loop {
            let start = self.first_from(names, position, prefix);
            let members = self.members(position);
            if let Some(&first) = members.get(start) {
                if !name_of(names, first).starts_with(prefix) {
                    break;
                }
                if self.forwarding(self.number(position)).matched_bytes == from {
                    position = self.cut_out(names, position, start, prefix);
                    self.set_cell(position, to);
                    position = self.join_neighbours(names, position);
                }
            }
            match self.next(position) {
                Some(next) => position = next,
                None => break,
            }
        }
    }

    /// Cuts a partition so that exactly its markers below `prefix`, from `start` on, are a partition.
    fn cut_out(&mut self, names: &mut NameEntries, mut position: Position, start: usize, prefix: &[u8]) -> Position {
        if start > 0 {
            position = self.split(names, position, start);
        }
        let end = self.members(position).partition_point(|&member| name_of(names, member).starts_with(prefix));
        if end < self.members(position).len() {
            let after = self.split(names, position, end);
            // Splitting may have cut the group in two.
            position = self.previous(after).unwrap_or(position);
        }
        position
    }

    /// The last partition whose first marker is not behind `name`.
    fn find(&self, names: &NameEntries, name: &[u8]) -> Option<Position> {
        let first_name = |&number: &u32| name_of(names, self.partitions[number as usize][0]);
        let group = self.groups.partition_point(|group| first_name(&group[0]) <= name).checked_sub(1)?;
        let place = self.groups[group].partition_point(|number| first_name(number) <= name) - 1;
        Some(Position { group, place })
    }

    fn first(&self) -> Option<Position> {
        (!self.groups.is_empty()).then_some(Position { group: 0, place: 0 })
    }

    fn next(&self, Position { group, place }: Position) -> Option<Position> {
        if place + 1 < self.groups[group].len() {
            return Some(Position { group, place: place + 1 });
        }
        (group + 1 < self.groups.len()).then_some(Position { group: group + 1, place: 0 })
    }

    fn previous(&self, Position { group, place }: Position) -> Option<Position> {
        if place > 0 {
            return Some(Position { group, place: place - 1 });
        }
        let group = group.checked_sub(1)?;
        Some(Position { group, place: self.groups[group].len() - 1 })
    }

    fn number(&self, Position { group, place }: Position) -> u32 {
        self.groups[group][place]
    }

    fn members(&self, position: Position) -> &[Marker] {
        &self.partitions[self.number(position) as usize]
    }

    /// The first marker of the partition that is not before `name`.
    fn first_from(&self, names: &NameEntries, position: Position, name: &[u8]) -> usize {
        self.members(position).partition_point(|&member| name_of(names, member) < name)
    }

    /// Whether the marker inherits from the same prefix as the partition's markers.
    fn inherits(&self, names: &NameEntries, position: Position, marker: Marker, inherited: Forwarding) -> bool {
        let bytes = inherited.matched_bytes;
        let same_prefix = |other| {
            let bytes = usize::from(bytes);
            name_of(names, marker)[..bytes] == name_of(names, other)[..bytes]
        };
        self.forwarding(self.number(position)).matched_bytes == bytes
            && (bytes == NOTHING || same_prefix(self.members(position)[0]))
    }

    fn set_cell(&mut self, position: Position, Forwarding { number, matched_bytes }: Forwarding) {
        let partition = self.number(position);
        self.cells[partition as usize] = Cell { number, matched_bytes, reserved: 0 };
    }

    fn insert_at(&mut self, names: &mut NameEntries, position: Position, place: usize, marker: Marker) {
        let number = self.number(position);
        names.set(marker.at(), Forwarding { number, matched_bytes: IN_PARTITION });
        let members = &mut self.partitions[number as usize];
        members.insert(place, marker);
        if members.len() > PARTITION_MARKERS {
            self.split(names, position, PARTITION_MARKERS / 2);
        }
    }

    /// Moves the markers from `place` on to a partition of their own, behind this one.
    fn split(&mut self, names: &mut NameEntries, position: Position, place: usize) -> Position {
        let number = self.number(position);
        let rest = self.partitions[number as usize].split_off(place);
        let first = rest[0];
        self.add_partition(names, Some(position), rest, self.forwarding(number));
        match self.find(names, name_of(names, first)) {
            Some(behind) => behind,
            None => unreachable!("a partition that was added is found"),
        }
    }

    /// Adds a partition behind `before`, or before all.
    fn add_partition(
        &mut self,
        names: &mut NameEntries,
        before: Option<Position>,
        members: Vec<Marker>,
        inherited: Forwarding,
    ) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.partitions.push(Vec::new());
            self.partitions.len() as u32 - 1
        });
        for member in &members {
            names.set(member.at(), Forwarding { number, matched_bytes: IN_PARTITION });
        }
        self.partitions[number as usize] = members;
        let Position { group, place } = match before {
            Some(Position { group, place }) => Position { group, place: place + 1 },
            None => Position { group: 0, place: 0 },
        };
        if self.groups.is_empty() {
            self.groups.push(Vec::new());
        }
        self.groups[group].insert(place, number);
        self.set_cell(Position { group, place }, inherited);
        if self.groups[group].len() > GROUP_PARTITIONS {
            let rest = self.groups[group].split_off(GROUP_PARTITIONS / 2);
            self.groups.insert(group + 1, rest);
        }
    }

    fn remove_partition(&mut self, Position { group, place }: Position) {
        let number = self.groups[group].remove(place);
        self.partitions[number as usize] = Vec::new();
        self.free.push(number);
        if self.groups[group].is_empty() {
            self.groups.remove(group);
        }
    }

    /// Joins a partition with its neighbours if they inherit from the same prefix and are small; says where the joined
    /// partition is.
    fn join_neighbours(&mut self, names: &mut NameEntries, position: Position) -> Position {
        if let Some(next) = self.next(position) {
            self.join(names, position, next);
        }
        match self.previous(position) {
            Some(previous) if self.join(names, previous, position) => previous,
            _ => position,
        }
    }

    /// Joins two neighbours, the second into the first, if they are to be joined; says whether they were.
    fn join(&mut self, names: &mut NameEntries, first: Position, second: Position) -> bool {
        let inherited = self.forwarding(self.number(second));
        let together = self.members(first).len() + self.members(second).len();
        if together > JOINED_MARKERS || !self.inherits(names, first, self.members(second)[0], inherited) {
            return false;
        }
        let (number, moved) = (self.number(first), self.number(second));
        let moved = std::mem::take(&mut self.partitions[moved as usize]);
        for member in &moved {
            names.set(member.at(), Forwarding { number, matched_bytes: IN_PARTITION });
        }
        self.partitions[number as usize].extend(moved);
        self.remove_partition(second);
        true
    }
}
