//! Forwarder: through which faces does this tag packet leave?
//!
//! ```text
//!   TagPacket ─► tree and epoch ─┬─ locator ───► label ─► one face, or an application here
//!                                └─ descriptor ─► find all, or find largest ─► branches ─► shares of the fan-out
//! ```
//!
//! Source: TagNet16 §2.1, §2.2, §3.3. The paper leaves four questions open; decision 0009 answers them:
//!
//! - **Fan-out over several routers.** A router shares k among the branches that it chooses. So a packet has at most k
//!   deliveries in all. A branch that has fewer applications than its share loses the rest of it.
//! - **False positives.** An application gets a packet only if one of its tag sets is a subset of the packet's tags,
//!   letter by letter. If the largest subset is a false positive here, the search goes on with the next one.
//! - **Loops.** Packets travel along a tree, and never back through the face by which they came. While a tree is
//!   repaired, its epoch and the hop limit stop packets that go in circles.
//! - **Ties.** The lowest descriptor wins. If several branches have this descriptor, the nonce selects one of them.
//!
//! The tables are read-only here; any worker forwards any packet ([`TagView`]). [`LiveTables`] change while workers use
//! them.
//!
//! Cost: by locator, a dozen instructions in addition to parsing; by descriptor, the search. The worker reuses
//! [`TagScratch`] and the output for every packet, so that no packet allocates memory.

pub mod batch;
mod branch_sets;
mod branches;
mod live;
mod stepped;
mod tables;
mod tag_drop;
#[cfg(test)]
mod tests;

pub use branch_sets::BranchSets;
pub use branches::{Branch, BranchSet, Serves};
pub use live::{Kept, LiveTables, LiveTablesReader, PinnedTables, SearchedTable, TableBuild, TableCursor, VectorBuild};
pub use stepped::SteppedTables;
pub use tables::{TagTables, TagView, TreeTable};
pub use tag_drop::TagDrop;

use crate::{
    Descriptor,
    descriptor::MAX_WEIGHT,
    locator::{HERE, WideLabel},
    matching::{Entry, SubsetTable, burst_trie::PausedSearch},
};
use namewire_packet::{
    FaceId,
    tag::{Place, TagAddress, TagPacket, TagPacketKind, Tags},
};
use std::{ops::ControlFlow, task::Poll};

/// The face by which a packet came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The face.
    pub face: FaceId,
    /// An application on this machine, not a neighbour.
    pub is_application: bool,
}

/// A packet that leaves. Its bytes are those of the packet that came, patched
/// ([`TagPacket::patch`](namewire_packet::tag::TagPacket::patch)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagTransmit {
    /// The face.
    pub face: FaceId,
    /// Its hop limit.
    pub hop_limit: u8,
    /// Its fan-out, if the packet has one.
    pub fan_out: u32,
}

/// Memory of a worker for one packet, used again for the next.
#[derive(Debug, Default)]
pub struct TagScratch {
    chosen: Chosen,
    paused: PausedSearch,
}

impl TagScratch {
    /// Gives up a search that has paused.
    pub fn give_up(&mut self) {
        self.paused.give_up();
    }
}

/// A packet under way through the tables.
struct Passage<'p, 't, T> {
    tables: &'t TagView<'t, T>,
    packet: &'p TagPacket<'p>,
    tree: &'t TreeTable,
    from: Arrival,
    is_application: &'t dyn Fn(FaceId) -> bool,
}

impl<T: SubsetTable> TagView<'_, T> {
    /// Finds the faces for a packet, and puts one transmission for each into `out`, which it empties first.
    /// `is_application` tells which faces locators may name.
    ///
    /// # Errors
    /// Why the packet goes nowhere; or, if there are transmissions, why another copy does.
    pub fn forward(
        &self,
        packet: &TagPacket<'_>,
        from: Arrival,
        is_application: &dyn Fn(FaceId) -> bool,
        scratch: &mut TagScratch,
        out: &mut Vec<TagTransmit>,
    ) -> Result<(), TagDrop> {
        out.clear();
        let passage = self.passage(packet, from, is_application)?;
        match packet.address {
            TagAddress::Locator(place) => passage.by_locator(place, out),
            TagAddress::Descriptor { filter, tags } => {
                passage.by_descriptor(&Descriptor::from_bytes(filter), tags, &mut scratch.chosen, out)
            }
        }
    }

    /// A packet that may pass.
    fn passage<'p>(
        &'p self,
        packet: &'p TagPacket<'p>,
        from: Arrival,
        is_application: &'p dyn Fn(FaceId) -> bool,
    ) -> Result<Passage<'p, 'p, T>, TagDrop> {
        let tree = self.tree(packet.tree.tree).ok_or(TagDrop::UnknownTree)?;
        if tree.epoch != packet.tree.epoch {
            return Err(TagDrop::StaleEpoch);
        }
        if !from.is_application && !tree.faces.contains(&from.face) {
            return Err(TagDrop::NotOnTree);
        }
        if from.is_application && packet.kind == TagPacketKind::Push && !self.may_push.contains(&from.face) {
            return Err(TagDrop::PushNotAllowed);
        }
        Ok(Passage { tables: self, packet, tree, from, is_application })
    }
}

impl<T> TagView<'_, T> {
    /// Whether a subset has a branch for the packet.
    fn has_branch<'c>(&'c self, choice: &'c Choice<'c>, chosen: &'c mut Chosen) -> impl FnMut(u32) -> bool + 'c {
        let false_positives = &mut chosen.false_positives;
        move |value| self.branch_set(value).chosen_by(choice, false_positives).next().is_some()
    }
}

impl TagView<'_, SearchedTable<'_>> {
    /// As [`TagView::forward`], but a search makes about so many steps, which it takes from `steps`. `Pending`: the
    /// search goes on with the next call, for the same packet, tables and scratch.
    ///
    /// # Errors
    /// As there.
    pub fn forward_within(
        &self,
        packet: &TagPacket<'_>,
        from: Arrival,
        is_application: &dyn Fn(FaceId) -> bool,
        scratch: &mut TagScratch,
        steps: &mut usize,
        out: &mut Vec<TagTransmit>,
    ) -> Poll<Result<(), TagDrop>> {
        out.clear();
        let TagScratch { chosen, paused } = scratch;
        let passage = match self.passage(packet, from, is_application) {
            Ok(passage) => passage,
            Err(why) => return Poll::Ready(Err(why)),
        };
        match packet.address {
            TagAddress::Locator(place) => Poll::Ready(passage.by_locator(place, out)),
            TagAddress::Descriptor { filter, tags } => {
                passage.by_descriptor_within(&Descriptor::from_bytes(filter), tags, (chosen, paused), steps, out)
            }
        }
    }
}

impl<T: SubsetTable> Passage<'_, '_, T> {
    fn by_locator(&self, place: Place<'_>, out: &mut Vec<TagTransmit>) -> Result<(), TagDrop> {
        let label = WideLabel::parse(place.label).map_err(|_| TagDrop::BadLabel)?;
        let interface = self.tree.state.forward(label);
        let face = if interface == HERE {
            let face = FaceId(place.endpoint.into());
            (self.is_application)(face).then_some(face).ok_or(TagDrop::NoEndpoint)?
        } else {
            // A forged label may name an interface that this router lacks.
            let index = interface as usize - 1;
            self.tree.faces.get(index).copied().ok_or(TagDrop::BadLabel)?
        };
        if face == self.from.face {
            return Err(TagDrop::BackToSender);
        }
        out.push(self.transmit(face, interface == HERE, self.packet.fan_out.unwrap_or(0))?);
        Ok(())
    }

    fn by_descriptor(
        &self,
        query: &Descriptor,
        tags: Tags<'_>,
        chosen: &mut Chosen,
        out: &mut Vec<TagTransmit>,
    ) -> Result<(), TagDrop> {
        self.check_filter(query, tags)?;
        let choice = self.choice(tags)?;
        chosen.begin(choice.fan_out);
        if choice.fan_out == 1 {
            let found = self.tables.descriptors.find_largest_of(query, self.tables.has_branch(&choice, chosen));
            self.choose_of(found, &choice, chosen);
        } else {
            self.tables.descriptors.find_all(query, |value| chosen.add_all(self.tables.branch_set(value), &choice));
        }
        self.send_to(chosen, out)
    }

    fn check_filter(&self, query: &Descriptor, tags: Tags<'_>) -> Result<(), TagDrop> {
        if query.weight() > MAX_WEIGHT {
            return Err(TagDrop::DescriptorTooHeavy);
        }
        // A false filter is stopped where it enters. Between routers, the check would cost a hash for each tag.
        if self.from.is_application && *query != Descriptor::of_tags(tags.iter()) {
            return Err(TagDrop::DescriptorMismatch);
        }
        Ok(())
    }

    fn choice<'c>(&self, tags: Tags<'c>) -> Result<Choice<'c>, TagDrop> {
        let (serves, fan_out) = match self.packet.kind {
            TagPacketKind::Push => (Serves::PUSH, self.packet.fan_out.unwrap_or(u32::MAX)),
            TagPacketKind::Pull => (Serves::PULL, self.packet.fan_out.unwrap_or(1)),
            TagPacketKind::Reply => return Err(TagDrop::ReplyByDescriptor),
        };
        if fan_out == 0 {
            return Err(TagDrop::NoFanOut);
        }
        Ok(Choice { serves, fan_out, tree: self.packet.tree.tree, from: self.from.face, tags })
    }

    /// Chooses one branch of the largest subset that has any.
    fn choose_of(&self, found: Option<Entry>, choice: &Choice<'_>, chosen: &mut Chosen) {
        let Some(found) = found else { return };
        let set = self.tables.branch_set(found.value);
        let mut uncounted = 0;
        let branches = set.chosen_by(choice, &mut uncounted).count();
        let place = self.packet.nonce as usize % branches.max(1);
        chosen.branches.extend(set.chosen_by(choice, &mut uncounted).nth(place));
    }

    /// Shares the fan-out among the chosen branches.
    fn send_to(&self, chosen: &Chosen, out: &mut Vec<TagTransmit>) -> Result<(), TagDrop> {
        let branches = chosen.branches.len() as u32;
        let Some(share) = chosen.fan_out.checked_div(branches) else {
            return Err(if chosen.false_positives > 0 { TagDrop::FalsePositive } else { TagDrop::NoMatch });
        };
        let surplus = chosen.fan_out % branches;
        let mut dropped = Ok(());
        for (place, branch) in (0..).zip(&chosen.branches) {
            match self.transmit(branch.face, branch.is_application, share + u32::from(place < surplus)) {
                Ok(transmit) => out.push(transmit),
                Err(why) => dropped = Err(why),
            }
        }
        dropped
    }

    /// Every router subtracts 1 from the hop limit. With 0, only applications get the packet.
    fn transmit(&self, face: FaceId, is_application: bool, fan_out: u32) -> Result<TagTransmit, TagDrop> {
        let hop_limit = match self.packet.hop_limit.checked_sub(1) {
            Some(hop_limit) => hop_limit,
            None if is_application => 0,
            None => return Err(TagDrop::HopLimitZero),
        };
        Ok(TagTransmit { face, hop_limit, fan_out })
    }
}

impl Passage<'_, '_, SearchedTable<'_>> {
    fn by_descriptor_within(
        &self,
        query: &Descriptor,
        tags: Tags<'_>,
        (chosen, paused): (&mut Chosen, &mut PausedSearch),
        steps: &mut usize,
        out: &mut Vec<TagTransmit>,
    ) -> Poll<Result<(), TagDrop>> {
        let checked = if paused.is_under_way() { Ok(()) } else { self.check_filter(query, tags) };
        let choice = match checked.and_then(|()| self.choice(tags)) {
            Ok(choice) => choice,
            Err(why) => return Poll::Ready(Err(why)),
        };
        if !paused.is_under_way() {
            chosen.begin(choice.fan_out);
        }
        let table = &self.tables.descriptors;
        if choice.fan_out == 1 {
            let Poll::Ready(found) =
                table.find_largest_within(query, paused, steps, self.tables.has_branch(&choice, chosen))
            else {
                return Poll::Pending;
            };
            self.choose_of(found, &choice, chosen);
        } else {
            let visit = |value| chosen.add_all(self.tables.branch_set(value), &choice);
            if table.find_all_within(query, paused, steps, visit).is_pending() {
                return Poll::Pending;
            }
        }
        Poll::Ready(self.send_to(chosen, out))
    }
}

/// What makes a branch a choice for a packet.
struct Choice<'p> {
    serves: Serves,
    fan_out: u32,
    tree: u16,
    from: FaceId,
    tags: Tags<'p>,
}

/// The branches of a packet, in the order of their faces, each face once.
#[derive(Debug, Default)]
struct Chosen {
    branches: Vec<Branch>,
    fan_out: u32,
    /// Applications whose filter matched and whose tags did not.
    false_positives: u32,
}

impl Chosen {
    fn begin(&mut self, fan_out: u32) {
        self.branches.clear();
        (self.fan_out, self.false_positives) = (fan_out, 0);
    }

    /// Adds the branches of a subset, until there are as many as the fan-out.
    fn add_all(&mut self, set: &BranchSet, choice: &Choice<'_>) -> ControlFlow<()> {
        for branch in set.chosen_by(choice, &mut self.false_positives) {
            if let Err(place) = self.branches.binary_search_by_key(&branch.face, |chosen| chosen.face) {
                self.branches.insert(place, branch);
                if self.branches.len() as u32 >= self.fan_out {
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    }
}
