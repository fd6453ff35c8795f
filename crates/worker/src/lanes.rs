//! The faces with lanes: which link of this worker's lane leads to the home that a packet has at the neighbour?
//!
//! While a face's lanes are in use, this worker sends its packets by its own lane (decision 0019); otherwise by the
//! socket of the worker that owns the face. Control decides when ([`crate::LaneChange`]).
//!
//! Cost: one test of an empty map for each packet sent while no face has lanes. With lanes, a look-up of the face and a
//! hash of the packet's name.

use hashbrown::HashMap;
use namewire_engine::{FaceId, dispatch::Homes};
use namewire_packet::lp::LpHeaders;
use std::sync::Arc;

/// The lanes that are in use, by face.
#[derive(Default)]
pub(crate) struct Lanes {
    in_use: HashMap<FaceId, LinkedLane>,
    /// The linked lanes that are not.
    at_rest: HashMap<FaceId, LinkedLane>,
}

/// This worker's lane of a face: the links to the neighbour's lanes, in the order of its workers.
struct LinkedLane {
    homes: Arc<Homes>,
    links: Vec<FaceId>,
}

impl Lanes {
    /// The link by which this worker sends a packet of the face, or the face itself if its lanes are not in use.
    /// `carried` is the packet with its lead in front.
    #[inline]
    pub(crate) fn way(&self, face: FaceId, headers: &LpHeaders, carried: &[u8]) -> FaceId {
        if self.in_use.is_empty() { face } else { self.link(face, headers, carried).unwrap_or(face) }
    }

    fn link(&self, face: FaceId, headers: &LpHeaders, carried: &[u8]) -> Option<FaceId> {
        let LinkedLane { homes, links } = self.in_use.get(&face)?;
        links.get(usize::from(homes.of_packet(headers.packet(carried))?)).copied()
    }

    /// Lanes of these links are there, and not in use.
    pub(crate) fn link_to(&mut self, face: FaceId, homes: Arc<Homes>, links: Vec<FaceId>) {
        self.at_rest.insert(face, LinkedLane { homes, links });
    }

    pub(crate) fn set_use(&mut self, face: FaceId, is_used: bool) {
        match is_used {
            true => self.in_use.extend(self.at_rest.remove_entry(&face)),
            false => self.at_rest.extend(self.in_use.remove_entry(&face)),
        }
    }

    pub(crate) fn forget(&mut self, face: FaceId) {
        self.in_use.remove(&face);
        self.at_rest.remove(&face);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::{InterestBuilder, NameBuf};
    use namewire_tables::HashKey;

    #[test]
    fn packets_take_the_link_to_their_home_while_lanes_are_in_use() {
        let homes = Arc::new(Homes::new(HashKey::from_seed(1), 3));
        let links: Vec<FaceId> = (500..503).map(FaceId).collect();
        let mut lanes = Lanes::default();
        lanes.link_to(FaceId(300), Arc::clone(&homes), links.clone());
        let headers = LpHeaders::default();
        let interests: Vec<(u8, Vec<u8>)> = (0..30)
            .map(|number| {
                let name: NameBuf = format!("/a/{number}").parse().unwrap();
                (homes.home(name.as_name()), InterestBuilder::new(&name).build())
            })
            .collect();
        let ways = |lanes: &Lanes, face: u64| -> Vec<FaceId> {
            interests.iter().map(|(_, interest)| lanes.way(FaceId(face), &headers, interest)).collect()
        };
        assert_eq!(ways(&lanes, 300), [FaceId(300); 30]);
        lanes.set_use(FaceId(300), true);
        let expected: Vec<FaceId> = interests.iter().map(|(home, _)| links[usize::from(*home)]).collect();
        assert_eq!(ways(&lanes, 300), expected);
        assert_eq!(ways(&lanes, 301), [FaceId(301); 30], "another face");
        assert_eq!(lanes.way(FaceId(300), &headers, &[6, 0]), FaceId(300), "a packet without a name");
        lanes.set_use(FaceId(300), false);
        assert_eq!(ways(&lanes, 300), [FaceId(300); 30]);
        lanes.set_use(FaceId(300), true);
        lanes.forget(FaceId(300));
        lanes.set_use(FaceId(300), true);
        assert_eq!(ways(&lanes, 300), [FaceId(300); 30]);
    }
}
