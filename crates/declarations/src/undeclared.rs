//! The undeclared faces, routes and strategies of a node, which a state file keeps.

use crate::{Keeper, default_strategies};
use namewire_configuration::{
    Declarations,
    settings::{FaceEntry, RouteEntry, StrategyEntry},
    text::{Origin, Prefix, StrategyName, Uri},
    units::{Bytes, Span},
};
use namewire_management::FaceProperties;
use namewire_packet::{
    FaceId, NameBuf,
    nfd::{FacePersistency, FaceUri, face_flags, route_flags},
};
use namewire_router::operator::Inventory;
use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

/// Largest number that a file can hold; commands take larger ones.
const FILE_NUMBER_MAX: u64 = i64::MAX as u64;

impl Keeper {
    /// The part of an inventory that this keeper did not make. Leaves out names and FaceUris whose text would
    /// not read as the same again.
    pub fn others(&self, inventory: &Inventory) -> Declarations {
        let uris: HashMap<FaceId, &FaceProperties> = inventory.faces.iter().map(|face| (face.face, face)).collect();
        let own_faces: BTreeSet<FaceId> = self.faces.values().map(|(_, face)| *face).collect();
        let own_routes: BTreeSet<(&NameBuf, FaceId, u64)> =
            self.routes.values().map(|(route, face)| (&route.prefix.0, *face, route.origin.0)).collect();
        let faces = inventory.faces.iter().filter(|face| !own_faces.contains(&face.face));
        let routes = inventory.routes.iter().filter(|route| {
            let is_own = own_routes.contains(&(&route.prefix, route.face, route.origin));
            !is_own && uris.contains_key(&route.face) && is_writable(&route.prefix)
        });
        let routes = routes.filter_map(|route| {
            Some(RouteEntry {
                prefix: Prefix(route.prefix.clone()),
                face: writable(&uris.get(&route.face)?.remote)?,
                cost: route.cost.min(FILE_NUMBER_MAX),
                origin: Origin(route.origin),
                inherit: route.flags & route_flags::CHILD_INHERIT != 0,
                capture: route.flags & route_flags::CAPTURE != 0,
            })
        });
        let defaults = default_strategies();
        let is_own = |prefix: &NameBuf| self.strategies.contains_key(&Prefix(prefix.clone()));
        let strategies = inventory
            .strategies
            .iter()
            .filter(|choice| !is_own(&choice.name) && defaults.get(&choice.name) != Some(&choice.strategy));
        let chosen: BTreeSet<&NameBuf> = inventory.strategies.iter().map(|choice| &choice.name).collect();
        let unset = defaults.keys().filter(|prefix| !chosen.contains(prefix) && !is_own(prefix));
        Declarations {
            faces: faces.filter_map(|face| face_entry(face, self.operator.default_mtu(&face.remote))).collect(),
            routes: routes.collect(),
            strategies: strategies
                .map(|choice| StrategyEntry {
                    prefix: Prefix(choice.name.clone()),
                    strategy: StrategyName(choice.strategy.clone()),
                })
                .collect(),
            unset: unset.map(|prefix| Prefix(prefix.clone())).collect(),
        }
    }
}

/// True if the text of the name reads as the same name again.
fn is_writable(name: &NameBuf) -> bool {
    let prefix = Prefix(name.clone());
    prefix.to_string().parse() == Ok(prefix)
}

/// The FaceUri, if its text reads as the same FaceUri again. A device may have a name that no FaceUri can hold.
fn writable(uri: &FaceUri) -> Option<Uri> {
    (uri.to_string().parse().as_ref() == Ok(uri)).then(|| Uri(uri.clone()))
}

/// The entry that makes the face again. It gives no MTU that a face has without one.
fn face_entry(face: &FaceProperties, default_mtu: u64) -> Option<FaceEntry> {
    let flag = |bit: u64| Some(face.flags & bit != 0);
    let has_mtu = face.remote.is_datagrams();
    Some(FaceEntry {
        uri: writable(&face.remote)?,
        local_uri: match &face.local {
            local @ FaceUri::Dev(_) => Some(writable(local)?),
            _ => None,
        },
        persistency: match face.persistency {
            FacePersistency::OnDemand => FacePersistency::Persistent,
            lasting => lasting,
        },
        mtu: face.mtu.filter(|mtu| has_mtu && *mtu != default_mtu),
        reliability: flag(face_flags::LP_RELIABILITY),
        lanes: Some(true).filter(|_| face.flags & face_flags::LANES != 0),
        congestion_marking: flag(face_flags::CONGESTION_MARKING),
        congestion_marking_interval: face.base_congestion_marking_interval_ns.map(|ns| Span(Duration::from_nanos(ns))),
        congestion_threshold: face.default_congestion_threshold_bytes.map(|bytes| Bytes(bytes.min(FILE_NUMBER_MAX))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_face_uri_that_reads_back_is_written() {
        for text in
            ["udp4://192.0.2.1:6363", "dev://eth0", "ws://router.example:9696/ndn", "tcp6://[fe80::1%eth0]:6363"]
        {
            let uri: FaceUri = text.parse().unwrap();
            assert_eq!(writable(&uri), Some(Uri(uri.clone())), "{text}");
        }
        assert_eq!(writable(&FaceUri::Dev("lan#1".to_owned())), None);
    }
}
