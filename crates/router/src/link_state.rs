//! Which links carry packets, as engines and workers are told.
//!
//! Two ways lead here. A worker says that a face is down, up or closed ([`Node::note_link`]); the
//! face table says it to all engines, and then a message lets them send again what waits for that
//! face. And the kernel says that a network interface is down or up ([`LocalEnds::follow`]); then the
//! workers are told of the datagram faces that have their local end there, so that a cable that is
//! pulled out is noticed without a packet.
//!
//! A UDP face belongs to the interface that has its local address, an Ethernet face to the one that
//! it names. TCP faces are left alone: a connection outlives a cable that is put back.
//!
//! Cost: one copy of the face table for all changes that control finds at once.

use crate::{environment::Node, interfaces::Interface, messages::ToWorker};
use namewire_engine::FaceAttributes;
use namewire_faces::{LinkType, Persistency};
use namewire_packet::{FaceId, nfd::FaceUri};
use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    net::IpAddr,
    sync::Arc,
};

/// Changes that are told at once, at most; and how long the first of them waits for others, while
/// there are events.
const CHANGES_MAX: usize = 4096;
const CHANGES_WAIT_NS: u64 = 5_000_000;

/// Links that went down or came up and that engines have not been told of.
#[derive(Default)]
pub(crate) struct LinkChanges {
    /// The last word on each face.
    is_up: BTreeMap<FaceId, bool>,
    since_ns: u64,
}

/// The local end of a face, as far as an interface has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum LocalEnd {
    Address(IpAddr),
    Device(String),
}

/// The local ends that interfaces have which are up, and which are down.
#[derive(Default)]
pub(crate) struct LocalEnds {
    up: HashSet<LocalEnd>,
    down: HashSet<LocalEnd>,
}

impl LocalEnd {
    fn of(local: &FaceUri) -> Option<LocalEnd> {
        match local {
            FaceUri::Udp4(address) => Some(LocalEnd::Address((*address.ip()).into())),
            FaceUri::Udp6(end) => Some(LocalEnd::Address(end.address.into())),
            FaceUri::Dev(name) => Some(LocalEnd::Device(name.clone())),
            _ => None,
        }
    }
}

impl LocalEnds {
    fn of(interfaces: &BTreeMap<u32, Interface>) -> Self {
        let mut ends = LocalEnds::default();
        for interface in interfaces.values() {
            let addresses = interface.addresses.iter().copied().map(LocalEnd::Address);
            let of_interface = addresses.chain([LocalEnd::Device(interface.name.clone())]);
            if interface.is_up { &mut ends.up } else { &mut ends.down }.extend(of_interface);
        }
        ends
    }

    /// True if no interface that is up has the end, and one that is down has it.
    fn is_down(&self, end: &LocalEnd) -> bool {
        self.down.contains(end) && !self.up.contains(end)
    }
}

impl Node {
    /// The link of a face carries packets, or does not. Engines learn it with
    /// [`Node::tell_link_changes`].
    pub(crate) fn note_link(&mut self, face: FaceId, is_up: bool) {
        if self.link_changes.is_up.is_empty() {
            self.link_changes.since_ns = self.shared.now_ns();
        }
        self.link_changes.is_up.insert(face, is_up);
    }

    /// Tells engines what has changed. While more events wait, so may the changes, a little.
    pub(crate) fn tell_link_changes(&mut self, more_events_wait: bool) {
        let changes = &self.link_changes;
        let age_ns = self.shared.now_ns().saturating_sub(changes.since_ns);
        let may_wait = more_events_wait && age_ns < CHANGES_WAIT_NS && changes.is_up.len() < CHANGES_MAX;
        if changes.is_up.is_empty() || may_wait {
            return;
        }
        let changes = std::mem::take(&mut self.link_changes.is_up);
        // First, so that a worker that is told finds it there.
        self.shared.faces.change(|faces| {
            for (&face, &is_up) in &changes {
                if let Some(attributes) = faces.get(face).cloned() {
                    faces.insert(face, FaceAttributes { is_up, ..attributes });
                }
            }
        });
        for is_up in [false, true] {
            let faces: Arc<[FaceId]> = changes.iter().filter(|(_, up)| **up == is_up).map(|(face, _)| *face).collect();
            if faces.is_empty() {
                continue;
            }
            for worker in &self.workers {
                let faces = Arc::clone(&faces);
                worker.send(if is_up { ToWorker::FacesUp(faces) } else { ToWorker::FacesDown(faces) });
            }
        }
    }

    /// A permanent face that was made while its interface is down is down as well. One that is not
    /// permanent would close at once, which surprises the user who has just made it.
    pub(crate) fn look_at_local_end(&self, face: FaceId) {
        let Some(record) = self.faces.get(&face) else { return };
        let end = record.info.local_uri.parse().ok().as_ref().and_then(LocalEnd::of);
        let is_unicast = record.info.link_type == LinkType::PointToPoint;
        let is_permanent = record.info.persistency == Persistency::Permanent;
        if is_permanent && is_unicast && end.is_some_and(|end| self.local_ends.is_down(&end)) {
            self.worker(record.worker).send(ToWorker::SetInterfaceUp { faces: vec![face], is_up: false });
        }
    }

    /// Tells workers of the faces whose interfaces went down or came up since the last call.
    pub(crate) fn follow_local_ends(&mut self, interfaces: &BTreeMap<u32, Interface>) {
        let now = LocalEnds::of(interfaces);
        let before = std::mem::replace(&mut self.local_ends, now);
        let now = &self.local_ends;
        if before.up == now.up {
            return;
        }
        let mut changed: BTreeMap<(u8, bool), BTreeSet<FaceId>> = BTreeMap::new();
        for (face, record) in self.faces.iter().filter(|(_, record)| record.info.link_type == LinkType::PointToPoint) {
            let Some(end) = record.info.local_uri.parse().ok().as_ref().and_then(LocalEnd::of) else { continue };
            let is_up = now.up.contains(&end);
            if is_up != before.up.contains(&end) {
                changed.entry((record.worker, is_up)).or_default().insert(*face);
            }
        }
        for ((worker, is_up), faces) in changed {
            self.worker(worker).send(ToWorker::SetInterfaceUp { faces: faces.into_iter().collect(), is_up });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_up_or_down_with_an_interface_that_has_it() {
        let interface = |name: &str, is_up: bool, address: &str| Interface {
            index: 1,
            name: name.to_owned(),
            ethernet: None,
            mtu: 1500,
            is_up,
            is_loopback: false,
            can_multicast: true,
            addresses: vec![address.parse().unwrap()],
        };
        let interfaces = [interface("eth0", true, "192.0.2.1"), interface("eth1", false, "fe80::1")];
        let ends =
            LocalEnds::of(&interfaces.into_iter().zip(1..).map(|(interface, index)| (index, interface)).collect());
        for (local, is_up_or_down) in [
            ("udp4://192.0.2.1:6363", Some((true, false))),
            ("udp4://192.0.2.2:6363", Some((false, false))),
            ("udp6://[fe80::1%eth1]:6363", Some((false, true))),
            ("dev://eth0", Some((true, false))),
            ("dev://eth1", Some((false, true))),
            ("tcp4://192.0.2.1:6363", None),
            ("unix:///run/nfd/nfd.sock", None),
        ] {
            let end = LocalEnd::of(&local.parse().unwrap());
            assert_eq!(end.map(|end| (ends.up.contains(&end), ends.is_down(&end))), is_up_or_down, "{local}");
        }
    }
}
