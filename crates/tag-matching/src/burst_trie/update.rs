//! Updates: insertion and removal while readers search.
//!
//! An update copies the leaf of the descriptor into a free block, with a row more or less ([`super::parts`]). If the
//! leaf overflows, it bursts ([`super::layout`]). If it becomes small, it takes in a neighbour. Where the number of a
//! node's children changes, the node is copied, and its parent's slot changes instead. So there is always one slot
//! whose store ends the update. If only one child of a node is left, and it is a leaf, the node is removed: the leaf
//! becomes a child of the parent.
//!
//! The weights in the slots above change separately: before an insertion they are widened, after a removal they are
//! narrowed. So their range always includes the weights of all stored descriptors.

use super::blocks::Words;
use super::layout::{Layout, load};
use super::leaf::{Leaf, ROWS_MAX, Row};
use super::parts::Parts;
use super::slot::{END_POSITION, Slot, weights};
use super::{BurstTrie, Refusal, SLOTS_MAX, Shared, WAITING_MAX};
use crate::Entry;
use crate::permutation::Key;
use arrayvec::ArrayVec;
use namewire_packet::descriptor::Descriptor;
use namewire_tables::prefetch::prefetch_lines;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A leaf with fewer rows takes in a neighbour, if both together have at most twice this.
const ROWS_MIN: usize = ROWS_MAX / 4;
/// Rows at which a leaf takes no further group when it bursts: half of what overflowed.
const ROWS_BURST: usize = ROWS_MAX / 2 + 1;

/// Lines that are fetched before a leaf is read: all of most leaves.
const LEAF_LINES: usize = 5;
/// An insertion leaves this part of the words to removals: they need a block for what remains before the former one is
/// free.
const RESERVE_PART: usize = 16;

/// A slot of a node on the way to a descriptor.
#[derive(Clone, Copy)]
struct Level {
    node: u32,
    /// The first position of the node's children.
    from: u8,
    place: usize,
}

impl Level {
    /// The places of its slot alone.
    fn only(self) -> Range<usize> {
        self.place..self.place + 1
    }
}

/// The way to a descriptor.
struct Way {
    partition: u16,
    /// What the partition's trie stores of the descriptor.
    key: Key,
    /// Inner slots from the root on.
    above: ArrayVec<Level, SLOTS_MAX>,
    /// The slot of its leaf, or where its slot would be.
    end: Level,
    is_there: bool,
}

/// An update of what is at the end of a way.
struct Update<'a> {
    way: &'a Way,
    /// The places of the slots that it replaces.
    replaced: Range<usize>,
    /// What is stored below these slots afterwards.
    rows: &'a [Row],
}

/// One store that ends an update.
enum Change {
    Slot { node: u32, place: usize, slot: Slot },
    Root { partition: u16, slot: Slot },
}

impl Shared {
    fn way(&self, descriptor: &Descriptor) -> Way {
        let whole = self.order.key(descriptor);
        let partition = self.partitions.of(&whole);
        self.way_in(partition, whole.without(self.partitions.get(partition).mask))
    }

    fn way_in(&self, partition: u16, key: Key) -> Way {
        let mut above = ArrayVec::new();
        let mut node = self.root(partition).block();
        let mut from = 0;
        loop {
            let position = key.next(from).min(END_POSITION);
            let slots = self.words.slots(node);
            let place = slots.partition_point(|slot| Slot::load(slot).last() < position);
            let end = Level { node, from, place };
            match slots.get(place).map(Slot::load) {
                Some(slot) if slot.first() <= position => {
                    if !slot.is_inner() {
                        return Way { partition, key, above, end, is_there: true };
                    }
                    above.push(end);
                    (node, from) = (slot.block(), position + 1);
                }
                _ => return Way { partition, key, above, end, is_there: false },
            }
        }
    }

    fn slot(&self, level: Level) -> Slot {
        Slot::load(&self.words.slots(level.node)[level.place])
    }

    fn leaf(&self, slot: Slot) -> Leaf<'_> {
        let words = self.words.block(slot.block());
        prefetch_lines(&words[0], LEAF_LINES);
        Leaf::new(words)
    }

    /// The rows of a leaf with this path.
    fn rows(&self, leaf: Slot, path: Key) -> Vec<Row> {
        self.leaf(leaf).rows(path).collect()
    }

    pub(super) fn get(&self, descriptor: &Descriptor) -> Option<u32> {
        let Way { key, end, is_there, .. } = self.way(descriptor);
        let leaf = is_there.then(|| self.leaf(self.slot(end)))?;
        let parts = Parts::of_leaf(leaf);
        parts.find(&key).ok().map(|place| parts.values[place])
    }
}

impl BurstTrie {
    /// Number of descriptors.
    pub fn len(&self) -> usize {
        self.shared.len.load(Ordering::Relaxed)
    }

    /// True without descriptors.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a stored descriptor.
    pub fn get(&self, descriptor: &Descriptor) -> Option<u32> {
        self.view().get(descriptor)
    }

    /// Stores a descriptor, or gives a stored one this value. Returns the value that it had.
    ///
    /// # Errors
    /// If it would be one descriptor too many, or if there is no memory. The table is then what it was.
    pub fn insert(&mut self, entry: Entry) -> Result<Option<u32>, Refusal> {
        let shared = Arc::clone(&self.shared);
        let way = shared.way(&entry.descriptor);
        let row = Row { key: way.key, value: entry.value };
        if !way.is_there {
            return self.insert_into_gap(&way, row).map(|()| None);
        }
        let slot = shared.slot(way.end);
        let mut parts = Parts::of_leaf(shared.leaf(slot));
        let found = parts.find(&row.key);
        match found {
            Ok(place) if parts.values[place] == row.value => return Ok(Some(row.value)),
            Err(_) if self.len() == self.capacity => return Err(Refusal::Descriptors),
            _ => {}
        }
        self.widen(&way, row.key.weight());
        let before = match found {
            Ok(place) => Some(std::mem::replace(&mut parts.values[place], row.value)),
            Err(place) if parts.count() < ROWS_MAX => {
                parts.insert(place, row);
                None
            }
            Err(place) => {
                let mut rows = shared.rows(slot, row.key.before(way.end.from));
                rows.insert(place, row);
                self.replace(Update { way: &way, replaced: way.end.only(), rows: &rows }, false)?;
                self.count(1, 0);
                return Ok(None);
            }
        };
        let weight = row.key.weight();
        let weights = [slot.min_weight().min(weight), slot.max_weight().max(weight)];
        self.replace_leaf(way.end, &parts, weights, false)?;
        self.count(usize::from(before.is_none()), 0);
        Ok(before)
    }

    /// Stores a descriptor whose position no slot of the node has: in a leaf beside it, or in one of its own.
    fn insert_into_gap(&mut self, way: &Way, row: Row) -> Result<(), Refusal> {
        if self.len() == self.capacity {
            return Err(Refusal::Descriptors);
        }
        let replaced = emptiest_neighbour(&self.shared.words, way.end);
        let leaf = self.shared.words.slots(way.end.node)[replaced.clone()].first().map(Slot::load);
        let mut rows = leaf.map_or(vec![], |leaf| self.shared.rows(leaf, row.key.before(way.end.from)));
        let place = rows.partition_point(|stored| stored.key > row.key);
        rows.insert(place, row);
        self.widen(way, row.key.weight());
        self.replace(Update { way, replaced, rows: &rows }, false)?;
        self.count(1, 0);
        Ok(())
    }

    /// Removes a descriptor. Returns the value that it had.
    ///
    /// # Errors
    /// If there is no memory for what remains, because readers hold former blocks. The table is then what it was.
    pub fn remove(&mut self, descriptor: &Descriptor) -> Result<Option<u32>, Refusal> {
        let shared = Arc::clone(&self.shared);
        let way = shared.way(descriptor);
        let key = way.key;
        if !way.is_there {
            return Ok(None);
        }
        let slot = shared.slot(way.end);
        let mut parts = Parts::of_leaf(shared.leaf(slot));
        let Ok(place) = parts.find(&key) else { return Ok(None) };
        let removed = parts.remove(place);
        // The first and the last row decide about the positions in the slot.
        if (1..parts.count()).contains(&place) && parts.count() >= ROWS_MIN {
            let extremes = [slot.min_weight(), slot.max_weight()];
            let path_weight = key.before(shared.leaf(slot).first()).weight();
            let weights = if extremes.contains(&key.weight()) { parts.weights(path_weight) } else { extremes };
            self.replace_leaf(way.end, &parts, weights, true)?;
        } else {
            let path = key.before(way.end.from);
            let slots = load(shared.words.slots(way.end.node));
            let mut rows = shared.rows(slot, path);
            rows.remove(place);
            let replaced = take_in_neighbour(&shared, &slots, way.end.place, path, &mut rows);
            self.replace(Update { way: &way, replaced, rows: &rows }, true)?;
        }
        self.narrow(way.partition, key);
        self.count(0, 1);
        Ok(Some(removed))
    }

    fn count(&mut self, inserted: usize, removed: usize) {
        self.shared.len.store(self.len() + inserted - removed, Ordering::Relaxed);
        if self.retired.is_due() {
            self.reclaim();
        }
    }

    fn reclaim(&mut self) {
        let words = &self.shared.words;
        self.retired.reclaim(|block| self.space.release(block, words.header(block).words()));
    }

    /// Replaces slots at the end of a way.
    fn replace(&mut self, update: Update<'_>, is_removal: bool) -> Result<(), Refusal> {
        self.change(is_removal, |layout, unlinked| prepare(layout, unlinked, &update))
    }

    /// Replaces a leaf by one with the same positions.
    fn replace_leaf(&mut self, end: Level, parts: &Parts, weights: [u8; 2], is_removal: bool) -> Result<(), Refusal> {
        let before = self.shared.slot(end);
        let words = parts.encode();
        self.change(is_removal, |layout, unlinked| {
            unlinked.push(before.block());
            let slot = Slot::new(layout.block(&words)?, false, [before.first(), before.last()], weights);
            Ok(Change::Slot { node: end.node, place: end.place, slot })
        })
    }

    /// Makes the blocks of a change, publishes it, and retires the blocks that it unlinks.
    fn change(
        &mut self,
        is_removal: bool,
        prepare: impl Fn(&mut Layout<'_>, &mut Vec<u32>) -> Result<Change, Refusal>,
    ) -> Result<(), Refusal> {
        let result = self.try_to_change(is_removal, &prepare);
        if result.is_ok() || self.retired.is_empty() {
            return result;
        }
        // Former blocks may be free by now.
        self.reclaim();
        self.try_to_change(is_removal, &prepare)
    }

    fn try_to_change(
        &mut self,
        is_removal: bool,
        prepare: impl Fn(&mut Layout<'_>, &mut Vec<u32>) -> Result<Change, Refusal>,
    ) -> Result<(), Refusal> {
        if self.retired.len() >= WAITING_MAX {
            return Err(Refusal::Readers);
        }
        let words = &self.shared.words;
        let reserve = if is_removal { 0 } else { words.len() / RESERVE_PART };
        let space = &mut self.space;
        let mut layout = Layout { words, space, rows_wanted: ROWS_BURST, reserve, made: vec![] };
        let mut unlinked = vec![];
        match prepare(&mut layout, &mut unlinked) {
            Err(refusal) => {
                layout.made.drain(..).for_each(|block| layout.space.release(block, words.header(block).words()));
                return Err(refusal);
            }
            Ok(Change::Slot { node, place, slot }) => slot.publish(&words.slots(node)[place]),
            Ok(Change::Root { partition, slot }) => slot.publish(&self.shared.roots[usize::from(partition)]),
        }
        unlinked.into_iter().for_each(|block| self.retired.retire(block));
        Ok(())
    }

    /// Lets the slots above include a descriptor of this weight.
    fn widen(&self, way: &Way, weight: u8) {
        for level in &way.above {
            let word = &self.shared.words.slots(level.node)[level.place];
            let slot = Slot::load(word);
            let wider = [slot.min_weight().min(weight), slot.max_weight().max(weight)];
            publish_weights(word, wider);
        }
    }

    /// Lets the slots above what was a key's place include what is there now, and no more.
    fn narrow(&self, partition: u16, key: Key) {
        let words = &self.shared.words;
        for level in self.shared.way_in(partition, key).above.iter().rev() {
            let word = &words.slots(level.node)[level.place];
            let slot = Slot::load(word);
            if (slot.min_weight() + 1..slot.max_weight()).contains(&key.weight()) {
                // Others are lighter and heavier, here and above.
                break;
            }
            publish_weights(word, weights(words.slots(slot.block()).iter().map(Slot::load)));
        }
    }
}

fn publish_weights(word: &AtomicU64, weights: [u8; 2]) {
    let slot = Slot::load(word);
    if [slot.min_weight(), slot.max_weight()] != weights {
        slot.with_weights(weights).publish(word);
    }
}

/// Makes the blocks of an update, and says which store makes them visible, and which blocks it unlinks.
fn prepare(layout: &mut Layout<'_>, unlinked: &mut Vec<u32>, update: &Update<'_>) -> Result<Change, Refusal> {
    let words = layout.words;
    let Update { way, rows, .. } = update;
    let mut replaced = update.replaced.clone();
    let Level { mut node, mut from, .. } = way.end;
    unlinked.extend(words.slots(node)[replaced.clone()].iter().map(|slot| Slot::load(slot).block()));
    let mut with = match rows.len() > ROWS_MAX {
        true => layout.slots(rows, from)?,
        false => layout.leaf_of(rows, from)?.into_iter().collect(),
    };
    for above in way.above.iter().map(Some).rev().chain([None]) {
        let mut slots = load(words.slots(node));
        let stays = slots.len() > 1 || above.is_none() || with.first().is_some_and(|slot| slot.is_inner());
        if let ([slot], 1, true) = (&with[..], replaced.len(), stays) {
            return Ok(Change::Slot { node, place: replaced.start, slot: *slot });
        }
        slots.splice(replaced, with);
        unlinked.push(node);
        let Some(above) = above else {
            return Ok(Change::Root { partition: way.partition, slot: Slot::root(layout.node(&slots)?) });
        };
        with = match slots[..] {
            [] => vec![],
            [leaf] if !leaf.is_inner() => {
                let rows: Vec<Row> = Leaf::new(words.block(leaf.block())).rows(way.key.before(from)).collect();
                layout.discard(leaf.block(), unlinked);
                layout.leaf_of(&rows, above.from)?.into_iter().collect()
            }
            _ => vec![Slot::new(layout.node(&slots)?, true, [from - 1; 2], weights(slots))],
        };
        (node, from, replaced) = (above.node, above.from, above.place..above.place + 1);
    }
    unreachable!("the root has nothing above it")
}

/// The leaf beside a gap that has room and fewer rows; the gap if there is none.
fn emptiest_neighbour(words: &Words, gap: Level) -> Range<usize> {
    let slots = words.slots(gap.node);
    let rows = |place: &usize| {
        let slot = Slot::load(&slots[*place]);
        (!slot.is_inner()).then(|| Leaf::new(words.block(slot.block())).count()).filter(|rows| *rows < ROWS_MAX)
    };
    let places = gap.place.saturating_sub(1)..(gap.place + 1).min(slots.len());
    let with_room = places.filter_map(|place| rows(&place).map(|rows| (rows, place)));
    with_room.min().map_or(gap.place..gap.place, |(_, place)| place..place + 1)
}

/// If a leaf became small, adds the rows of a neighbouring leaf, if these are few. Returns the slots of the rows.
fn take_in_neighbour(shared: &Shared, slots: &[Slot], place: usize, path: Key, rows: &mut Vec<Row>) -> Range<usize> {
    if rows.len() < ROWS_MIN {
        for neighbour in [Some(place + 1), place.checked_sub(1)].into_iter().flatten() {
            let Some(slot) = slots.get(neighbour).filter(|slot| !slot.is_inner()) else { continue };
            let count = Leaf::new(shared.words.block(slot.block())).count();
            if count + rows.len() <= 2 * ROWS_MIN {
                let end = if neighbour > place { rows.len() } else { 0 };
                rows.splice(end..end, shared.rows(*slot, path));
                return place.min(neighbour)..place.max(neighbour) + 1;
            }
        }
    }
    place..place + 1
}
