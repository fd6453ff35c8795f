//! Batch: packets that came together are searched for together.
//!
//! A search waits for memory most of the time. Up to [`PACKETS_MAX`] searches at a time overlap these waits. Each
//! packet goes where it would go alone, and results come in the order of the packets.
//!
//! A search that is longer than its limit is not finished: its packet must be forwarded alone, in steps
//! ([`SteppedTables`](super::SteppedTables)).

use super::{Arrival, Choice, Chosen, SearchedTable, TagDrop, TagTransmit, TagView};
use crate::{
    Descriptor,
    matching::{
        Entry, SubsetTable,
        burst_trie::{BurstTrieView, StepLimit, WALKS},
    },
};
use namewire_packet::{
    FaceId,
    tag::{TagAddress, TagPacket},
};
use std::{ops::ControlFlow, task::Poll};

/// Most packets of a batch.
pub const PACKETS_MAX: usize = WALKS;

/// Memory of a worker for a batch, used again for the next.
#[derive(Debug, Default)]
pub struct BatchScratch {
    /// One for each packet.
    chosen: Vec<Chosen>,
    transmits: Vec<TagTransmit>,
}

/// Searches of one kind: their queries, and the places of their packets.
struct Queries {
    descriptors: [Descriptor; PACKETS_MAX],
    places: [u8; PACKETS_MAX],
    count: usize,
}

impl Queries {
    fn none() -> Self {
        Queries { descriptors: [Descriptor::EMPTY; PACKETS_MAX], places: [0; PACKETS_MAX], count: 0 }
    }

    fn push(&mut self, descriptor: Descriptor, place: usize) {
        (self.descriptors[self.count], self.places[self.count]) = (descriptor, place as u8);
        self.count += 1;
    }

    fn descriptors(&self) -> &[Descriptor] {
        &self.descriptors[..self.count]
    }

    fn place(&self, walk: usize) -> usize {
        usize::from(self.places[walk])
    }

    /// Marks the packets whose searches were stopped.
    fn stopped(&self, stopped: u32) -> u32 {
        let walks = (0..self.count).filter(|walk| stopped >> walk & 1 == 1);
        walks.fold(0, |bits, walk| bits | 1 << self.places[walk])
    }
}

/// What packets ask for, by their places: nothing for one by locator.
type Choices<'p> = [Option<Result<Choice<'p>, TagDrop>>; PACKETS_MAX];

/// What searches found: for the largest subset, the answer of each packet; for all, the branches are chosen at once.
struct Found<'s> {
    chosen: &'s mut [Chosen],
    largest: [Option<Entry>; PACKETS_MAX],
}

fn choice<'c, 'p>(choices: &'c Choices<'p>, place: usize) -> Option<&'c Choice<'p>> {
    choices[place].as_ref()?.as_ref().ok()
}

impl TagView<'_, SearchedTable<'_>> {
    /// Forwards packets as [`TagView::forward`] does each. Calls `done` with each place in turn and with what became of
    /// the packet: `Pending` if its search would take more steps than the limit. Returns the steps of all searches.
    ///
    /// # Panics
    /// If there are more than [`PACKETS_MAX`] packets.
    pub fn forward_each(
        &self,
        packets: &[(TagPacket<'_>, Arrival)],
        is_application: &dyn Fn(FaceId) -> bool,
        limit: StepLimit,
        scratch: &mut BatchScratch,
        mut done: impl FnMut(usize, Poll<Result<(), TagDrop>>, &[TagTransmit]),
    ) -> usize {
        let BatchScratch { chosen, transmits } = scratch;
        chosen.resize_with(packets.len().max(chosen.len()), Chosen::default);
        let (mut all, mut largest) = (Queries::none(), Queries::none());
        let mut choices: Choices<'_> = [const { None }; PACKETS_MAX];
        for (place, (packet, from)) in packets.iter().enumerate() {
            let TagAddress::Descriptor { filter, tags } = packet.address else { continue };
            let query = Descriptor::from_bytes(filter);
            let choice = self.passage(packet, *from, is_application).and_then(|passage| {
                passage.check_filter(&query, tags)?;
                passage.choice(tags)
            });
            if let Ok(choice) = &choice {
                chosen[place].begin(choice.fan_out);
                if choice.fan_out == 1 { largest.push(query, place) } else { all.push(query, place) }
            }
            choices[place] = Some(choice);
        }
        let mut found = Found { chosen, largest: [None; PACKETS_MAX] };
        let (steps, stopped) = match self.descriptors {
            SearchedTable::Burst(trie) => self.search_together(trie, limit, (&all, &largest), (&choices, &mut found)),
            SearchedTable::Vector(_) => self.search_each((&all, &largest), (&choices, &mut found)),
        };
        let Found { chosen, largest } = found;
        for (place, (packet, from)) in packets.iter().enumerate() {
            transmits.clear();
            let result = match (stopped >> place & 1, &choices[place]) {
                (1, _) => Poll::Pending,
                (_, Some(Err(why))) => Poll::Ready(Err(*why)),
                (_, choice) => Poll::Ready(self.passage(packet, *from, is_application).and_then(|passage| {
                    match (packet.address, choice) {
                        (TagAddress::Locator(to), _) => passage.by_locator(to, transmits),
                        (_, Some(Ok(choice))) => {
                            passage.choose_of(largest[place], choice, &mut chosen[place]);
                            passage.send_to(&chosen[place], transmits)
                        }
                        _ => Ok(()),
                    }
                })),
            };
            done(place, result, transmits);
        }
        steps
    }

    /// Searches in the trie, several packets at a time. Returns the steps, and a bitmap of the packets whose searches
    /// were longer than the limit.
    fn search_together(
        &self,
        trie: &BurstTrieView<'_>,
        limit: StepLimit,
        (all, largest): (&Queries, &Queries),
        (choices, found): (&Choices<'_>, &mut Found<'_>),
    ) -> (usize, u32) {
        let (mut steps, mut stopped) = (0, 0);
        if all.count > 0 {
            let limited = trie.find_all_limited(all.descriptors(), limit, |walk, value| {
                let place = all.place(walk);
                let Some(choice) = choice(choices, place) else { return ControlFlow::Break(()) };
                found.chosen[place].add_all(self.branch_set(value), choice)
            });
            steps += limited.steps;
            stopped |= all.stopped(limited.stopped);
        }
        if largest.count > 0 {
            let limit = StepLimit { together: limit.together.saturating_sub(steps), ..limit };
            let (limited, answers) = trie.find_largest_limited(largest.descriptors(), limit, |walk, value| {
                let place = largest.place(walk);
                let false_positives = &mut found.chosen[place].false_positives;
                let chosen_by = |choice| self.branch_set(value).chosen_by(choice, false_positives).next();
                choice(choices, place).and_then(chosen_by).is_some()
            });
            (0..largest.count).for_each(|walk| found.largest[largest.place(walk)] = answers[walk]);
            steps += limited.steps;
            stopped |= largest.stopped(limited.stopped);
        }
        (steps, stopped)
    }

    /// Searches in the vector, which knows neither batches nor limits.
    fn search_each(
        &self,
        (all, largest): (&Queries, &Queries),
        (choices, found): (&Choices<'_>, &mut Found<'_>),
    ) -> (usize, u32) {
        for (walk, query) in all.descriptors().iter().enumerate() {
            let place = all.place(walk);
            let Some(choice) = choice(choices, place) else { continue };
            self.descriptors.find_all(query, |value| found.chosen[place].add_all(self.branch_set(value), choice));
        }
        for (walk, query) in largest.descriptors().iter().enumerate() {
            let place = largest.place(walk);
            let Some(choice) = choice(choices, place) else { continue };
            let accepts = self.has_branch(choice, &mut found.chosen[place]);
            found.largest[place] = self.descriptors.find_largest_of(query, accepts);
        }
        ((all.count + largest.count) * super::live::VECTOR_SEARCH_STEPS, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        TagSet,
        forwarder::{Branch, BranchSet, LiveTables, Serves, TagScratch, TreeTable},
        locator::{TreeLabels, WideLabel},
        matching::vector::VectorOptions,
    };
    use namewire_packet::tag::{Place, TagPacketBuilder, TagPacketKind, TreeEpoch};

    const TREE: TreeEpoch = TreeEpoch { tree: 1, epoch: 7 };
    const FROM: FaceId = FaceId(300);
    const APPLICATION: FaceId = FaceId(900);
    const UNLIMITED: StepLimit = StepLimit { each: usize::MAX, together: usize::MAX };

    fn set(number: u32) -> TagSet {
        TagSet::new([format!("kind{}", number % 9), format!("own{}", number % 400)]).unwrap()
    }

    /// A router between three neighbours and an application, beyond which sets were advertised.
    fn change(tables: &mut LiveTables) {
        let labels: TreeLabels<u32> = TreeLabels::of(&[None, Some(0), Some(1), Some(1)]).unwrap();
        let (state, label): (_, WideLabel) = (*labels.state(1), labels.label(1));
        let faces = vec![FaceId(301), FaceId(302), FROM];
        tables.set_trees(vec![TreeTable { tree: 1, epoch: 7, state, label, faces }], [].into());
        let branches = |number: u32| {
            let branch = |face| Branch { tree: 1, face, serves: Serves::BOTH, is_application: face == APPLICATION };
            let faces = [FaceId(301), FaceId(302), APPLICATION];
            let branches = (0..3).filter(|bit| (number % 7 + 1) >> bit & 1 == 1).map(|bit| branch(faces[bit]));
            // Some sets of the application have other tags than their filter says.
            let tags = if number.is_multiple_of(5) { set(number + 1) } else { set(number) };
            Some(BranchSet::new(branches.collect(), vec![(APPLICATION, tags)]))
        };
        tables.change((0..400).map(|number| (set(number).descriptor(), branches(number))));
    }

    /// Packets of all kinds, some of which go nowhere.
    fn packets(random: &mut fastrand::Rng) -> Vec<Vec<u8>> {
        let packet = |_| {
            let kind = [TagPacketKind::Push, TagPacketKind::Pull][random.usize(..2)];
            let (one, other) = (set(random.u32(..500)), set(random.u32(..500)));
            let mut tags: Vec<&str> = one.tags().iter().chain(other.tags()).map(String::as_str).collect();
            tags.sort_unstable();
            tags.dedup();
            let filter = match random.u8(..10) {
                0 => [255; 24],
                _ => Descriptor::of_tags(tags.iter().copied()).to_bytes(),
            };
            if random.u8(..8) == 0 {
                return TagPacketBuilder::by_locator(kind, TREE, Place { endpoint: 900, label: &[0; 6] }).build();
            }
            let packet = TagPacketBuilder::by_descriptor(kind, TREE, filter, tags.iter().copied());
            match random.u8(..3) {
                0 => packet.fan_out(random.u32(..4)).build(),
                _ => packet.nonce(random.u32(..)).build(),
            }
        };
        (0..PACKETS_MAX).map(packet).collect()
    }

    #[test]
    fn packets_go_together_where_each_goes_alone() {
        for is_vector in [false, true] {
            let mut tables = LiveTables::new(1_000).unwrap();
            if is_vector {
                tables.search_by_vector(VectorOptions::PAPER);
            }
            change(&mut tables);
            let vector = tables.begin_vector().and_then(|build| build.run().ok());
            tables.finish_vector(vector);
            let mut reader = tables.reader();
            let (pinned, mut random) = (reader.pin(), fastrand::Rng::with_seed(3));
            let (view, mut scratch, mut sent) = (pinned.view(), BatchScratch::default(), 0);
            for count in (0..=PACKETS_MAX).chain([PACKETS_MAX; 40]) {
                let wires = packets(&mut random);
                let packet = |wire| TagPacket::parse(wire).unwrap();
                let from = Arrival { face: FROM, is_application: false };
                let batch: Vec<_> = wires[..count].iter().map(|wire| (packet(wire), from)).collect();
                let is_application = |face| face == APPLICATION;
                let mut next = 0;
                view.forward_each(&batch, &is_application, UNLIMITED, &mut scratch, |place, result, transmits| {
                    let mut alone = Vec::new();
                    let mut scratch = TagScratch::default();
                    let expected = view.forward(&batch[place].0, from, &is_application, &mut scratch, &mut alone);
                    assert_eq!((place, result), (next, Poll::Ready(expected)));
                    assert_eq!(transmits, alone);
                    (next, sent) = (next + 1, sent + alone.len());
                });
                assert_eq!(next, count);
            }
            assert!(sent > 500, "{sent}");
            // Without steps, only packets by locator and wrong ones are done.
            let wires = packets(&mut random);
            let from = Arrival { face: FROM, is_application: false };
            let batch: Vec<_> = wires.iter().map(|wire| (TagPacket::parse(wire).unwrap(), from)).collect();
            let (none, mut pending) = (StepLimit { each: 0, together: 0 }, 0);
            view.forward_each(&batch, &|_| true, none, &mut scratch, |_, result, _| {
                pending += usize::from(result.is_pending());
            });
            assert_eq!(pending > 0, !is_vector);
        }
    }
}
