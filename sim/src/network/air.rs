//! Air between nodes: who joins it, where the nodes are, and its events.

use super::{Carrier, End, Event, Link, LinkEnd, LinkId, Network, Place, holder_of_host};
use crate::air::{Air, AirFrame, AirOptions, AirTally, Ended, Track};
use crate::trace::{NodeId, TraceKind};
use namewire_engine::{FaceId, FaceScope, LinkType};
use namewire_links::LinkOptions as LinkServiceOptions;
use namewire_packet::NameBuf;
use std::rc::Rc;

impl Network {
    /// A medium that nodes can share.
    pub fn add_air(&mut self, options: AirOptions) -> LinkId {
        let id = LinkId(self.links.len());
        let air = Air::new(options, self.sub_seed(b'w', id.0));
        self.links.push(Link { ends: Vec::new(), carrier: Carrier::Air(Box::new(air)), tap: None });
        id
    }

    /// A node gets a face on a medium. On radio it is an ad hoc face: Interests may leave where they came from. On a
    /// segment, which all nodes hear, it is a multi-access face.
    ///
    /// # Panics
    /// If the link is a wire.
    pub fn join_air(&mut self, link: LinkId, node: NodeId) -> FaceId {
        let Link { ends, carrier: Carrier::Air(air), .. } = &mut self.links[link.0] else {
            panic!("the link is a wire")
        };
        let link_type = if air.options().range.is_some() { LinkType::AdHoc } else { LinkType::MultiAccess };
        let face = self.nodes[node.0].add_face(FaceScope::NonLocal, link_type, false, holder_of_host(node.0));
        let service =
            LinkServiceOptions { fragmentation: true, mtu: air.options().mtu, ..LinkServiceOptions::default() };
        let end = air.join(node);
        ends.push(LinkEnd::new(Place::Face(node, face), service));
        self.face_ends[node.0].push(End(link, end));
        face
    }

    /// Says where a node is. Nodes of which nothing is said are at (0, 0).
    pub fn place(&mut self, node: NodeId, track: Track) {
        self.tracks.resize(self.tracks.len().max(node.0 + 1), Track::default());
        self.tracks[node.0] = track;
    }

    /// Where a node is now, in metres.
    pub fn place_of(&self, node: NodeId) -> [f64; 2] {
        place_at(&self.tracks, node, self.now_ns())
    }

    /// Counts of a node on a medium; `None` if the link is a wire, or the node did not join.
    pub fn air_tally(&self, link: LinkId, node: NodeId) -> Option<AirTally> {
        match &self.links[link.0].carrier {
            Carrier::Air(air) => air.tally_of(node),
            Carrier::Wire(_) => None,
        }
    }

    fn air(&mut self, link: LinkId) -> &mut Air {
        match &mut self.links[link.0].carrier {
            Carrier::Air(air) => air,
            Carrier::Wire(_) => unreachable!("events of air are about air"),
        }
    }

    pub(super) fn send_by_air(&mut self, end: End, bytes: Vec<u8>, name: &Option<Rc<NameBuf>>) {
        let now_ns = self.now_ns();
        match self.air(end.0).push(end.1, AirFrame { bytes, name: name.clone() }, now_ns) {
            Ok(Some(at_ns)) => self.queue.schedule(at_ns, Event::TryAir(end)),
            Ok(None) => {}
            Err(loss) => self.record_at(end, TraceKind::AirLost(loss), name.clone()),
        }
    }

    pub(super) fn try_air(&mut self, end: End) {
        let Network { queue, links, tracks, .. } = self;
        let Carrier::Air(air) = &mut links[end.0.0].carrier else { return };
        let now_ns = queue.now_ns();
        let Some(leaves) = air.attempt(end.1, now_ns, |node| place_at(tracks, node, now_ns)) else { return };
        queue.schedule(leaves.ends_ns, Event::AirFrameEnds(end.0, leaves.transmission));
        for (member, at_ns) in leaves.later {
            queue.schedule(at_ns, Event::TryAir(End(end.0, member)));
        }
    }

    pub(super) fn air_frame_ends(&mut self, link: LinkId, transmission: u64) {
        let now_ns = self.now_ns();
        let Ended { sender, frame, outcomes, try_at_ns } = self.air(link).end(transmission, now_ns);
        for (member, outcome) in outcomes {
            let (at, name) = (End(link, member), frame.name.clone());
            match outcome {
                Ok(()) => self.take_frame(at, sender as u64, frame.bytes.clone(), name),
                Err(loss) => self.record_at(at, TraceKind::AirLost(loss), name),
            }
        }
        if let Some(at_ns) = try_at_ns {
            self.queue.schedule(at_ns, Event::TryAir(End(link, sender)));
        }
    }
}

fn place_at(tracks: &[Track], node: NodeId, now_ns: u64) -> [f64; 2] {
    tracks.get(node.0).map_or([0.0, 0.0], |track| track.at(now_ns))
}
