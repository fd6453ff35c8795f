//! Tag node: a router's part in TagNet.
//!
//! It runs [`TagRouting`] as the router's control does, and forwards by [`LiveTables`] as its workers do. Two things
//! differ: steps of the tables are done at once, and there is no management, so a test makes
//! advertisements by a call.

use namewire_engine::{FaceId, FaceTable};
use namewire_packet::lp::LpHeaders;
use namewire_packet::tag::{TagFrame, TagPacket};
use namewire_tagnet::advertisements::AdvertisementLimits;
use namewire_tagnet::forwarder::{Arrival, LiveTablesReader, TagDrop, TagScratch, TagTransmit, TagView};
use namewire_tagnet::matching::SubsetTable;
use namewire_tagnet::routing::{TagRouting, TagRoutingConfig};
use namewire_tagnet::tree_protocol::TreeTimes;
use namewire_testbed::{self as testbed, Sent};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

/// Time at which a network begins. Not 0, so that there is a time before the start.
pub(crate) const START_NS: u64 = 1_000_000_000;

/// Control does together what became due in this time.
const CONTROL_DELAY_NS: u64 = 1_000_000;
const MS_NS: u64 = 1_000_000;

pub(crate) struct TagNode {
    pub(crate) routing: TagRouting,
    reader: LiveTablesReader,
    buffers: Buffers,
    neighbours: BTreeSet<FaceId>,
    /// What this router's clock shows at the beginning of the simulation.
    clock_ms: u64,
    /// When the next run is scheduled.
    run_at_ns: u64,
}

#[derive(Default)]
struct Buffers {
    scratch: TagScratch,
    transmits: Vec<TagTransmit>,
}

/// A packet at a node.
struct Passage<'a, T> {
    tables: &'a TagView<'a, T>,
    faces: &'a FaceTable,
    arrival: Arrival,
    headers: &'a LpHeaders,
}

impl TagNode {
    /// A router without neighbours; without settings, it is in no tree and drops every tag packet.
    pub(crate) fn new(config: Option<&TagRoutingConfig>, seed: u64) -> Self {
        let limits = AdvertisementLimits { descriptors: 0, reserved: 0, per_face: 0 };
        let in_no_tree = TagRoutingConfig {
            trees: Vec::new(),
            router: 0,
            times: TreeTimes::default(),
            limits,
            keys: BTreeMap::new(),
        };
        let config = config.unwrap_or(&in_no_tree);
        TagNode::with_routing(routing(config, seed, START_NS / MS_NS))
    }

    fn with_routing(routing: TagRouting) -> Self {
        TagNode {
            reader: routing.tables().reader(),
            routing,
            buffers: Buffers::default(),
            neighbours: BTreeSet::new(),
            clock_ms: 0,
            run_at_ns: u64::MAX,
        }
    }

    /// Ends and starts again with the same faces, by a clock that shows something else. All that applications
    /// advertised is lost.
    pub(crate) fn restart(&mut self, config: Option<&TagRoutingConfig>, seed: u64, now_ns: u64, clock_ms: u64) {
        let Some(config) = config else { return };
        let neighbours = std::mem::take(&mut self.neighbours);
        *self = TagNode { clock_ms, ..TagNode::with_routing(routing(config, seed, now_ns / MS_NS + clock_ms)) };
        neighbours.into_iter().for_each(|face| self.neighbour_up(face));
    }

    /// The router's time. Routers of one network need not agree about it.
    fn ms(&self, now_ns: u64) -> u64 {
        now_ns / MS_NS + self.clock_ms
    }

    pub(crate) fn neighbour_up(&mut self, face: FaceId) {
        self.neighbours.insert(face);
        self.routing.neighbour_up(face);
    }

    pub(crate) fn face_down(&mut self, now_ns: u64, face: FaceId) {
        self.neighbours.remove(&face);
        let now_ms = self.ms(now_ns);
        self.routing.face_down(face, now_ms);
    }

    /// A packet between routers arrived.
    pub(crate) fn hear(&mut self, now_ns: u64, face: FaceId, packet: &[u8]) {
        let now_ms = self.ms(now_ns);
        self.routing.received(face, packet, now_ms);
    }

    /// Takes a frame that the engine left to the caller. The copies that leave are added to `sent`.
    pub(crate) fn receive(
        &mut self,
        now_ns: u64,
        faces: &FaceTable,
        received: &testbed::Arrival,
        sent: &mut Vec<Sent>,
    ) -> Result<(), TagDrop> {
        let testbed::Arrival { face, headers, wire, .. } = received;
        let face = *face;
        if TagFrame::of(wire) == Some(TagFrame::Routing) {
            self.hear(now_ns, face, wire);
            return Ok(());
        }
        let (reader, buffers) = self.tables_up_to_date();
        let packet = TagPacket::parse(wire).map_err(|_| TagDrop::Malformed)?;
        let attributes = faces.get(face).ok_or(TagDrop::NotOnTree)?;
        let pinned = reader.pin();
        let arrival = Arrival { face, is_application: attributes.is_local() };
        let passage = Passage { tables: &pinned.view(), faces, arrival, headers };
        if !arrival.is_application {
            return passage.forward(wire, buffers, sent);
        }
        attributes.speaks_tags.store(true, Ordering::Relaxed);
        let completed = passage.tables.completed(&packet, face)?;
        passage.forward(&completed, buffers, sent)
    }

    /// Brings the tables up to date. No reader is pinned meanwhile, so that each change is complete at once.
    fn tables_up_to_date(&mut self) -> (&mut LiveTablesReader, &mut Buffers) {
        let TagNode { routing, reader, buffers, .. } = self;
        if routing.take_trees_changed() {
            routing.publish_trees();
        }
        let tables = routing.tables_mut();
        tables.run();
        if tables.wants_build() {
            tables.build().expect("memory for the descriptors of a test");
        }
        (reader, buffers)
    }

    /// When [`TagNode::run`] should be called, if no earlier call is scheduled.
    pub(crate) fn take_deadline_ns(&mut self, now_ns: u64) -> Option<u64> {
        let due_ns = match self.routing.deadline_ms() {
            u64::MAX => u64::MAX,
            due_ms => due_ms.saturating_sub(self.clock_ms).saturating_mul(MS_NS),
        };
        let run_at_ns = due_ns.max(now_ns + CONTROL_DELAY_NS);
        let is_earlier = due_ns < u64::MAX && run_at_ns < self.run_at_ns;
        is_earlier.then(|| {
            self.run_at_ns = run_at_ns;
            run_at_ns
        })
    }

    /// The packets that are due for neighbours, unless another call replaced this one.
    pub(crate) fn run(&mut self, now_ns: u64) -> Vec<Sent> {
        if self.run_at_ns != now_ns {
            return Vec::new();
        }
        self.run_at_ns = u64::MAX;
        let now_ms = self.ms(now_ns);
        self.routing.run(now_ms);
        let packets = self.routing.take_packets().into_iter();
        packets.map(|(face, wire)| Sent { face, headers: LpHeaders::default(), wire }).collect()
    }
}

fn routing(config: &TagRoutingConfig, seed: u64, now_ms: u64) -> TagRouting {
    TagRouting::new(config, seed, now_ms).expect("address space for the tables")
}

impl<T: SubsetTable> Passage<'_, T> {
    fn forward(&self, wire: &[u8], buffers: &mut Buffers, sent: &mut Vec<Sent>) -> Result<(), TagDrop> {
        let packet = TagPacket::parse(wire).map_err(|_| TagDrop::Malformed)?;
        let is_application = |face| self.faces.get(face).is_some_and(|face| face.is_local() && face.speaks_tags());
        let Buffers { scratch, transmits } = buffers;
        let result = self.tables.forward(&packet, self.arrival, &is_application, scratch, transmits);
        sent.extend(transmits.iter().map(|&TagTransmit { face, hop_limit, fan_out }| {
            let mut copy = wire.to_vec();
            packet.patch(&mut copy, hop_limit, fan_out);
            Sent { face, headers: *self.headers, wire: copy }
        }));
        result
    }
}
