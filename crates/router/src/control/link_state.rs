//! Which links carry packets? Control finds out, and informs engines and workers.
//!
//! There are two sources. First, a worker reports that a face is down, up or closed ([`LinkStates::note`]). The face
//! table shows this to all engines. Then a message lets the engines send again the packets that wait for that face.
//! Second, the kernel reports that a network interface is down or up ([`LinkStates::follow`]). Then control informs the
//! workers about the datagram faces with their local end on this interface. So a router notices a pulled cable even if
//! no packet is sent.
//!
//! A UDP face belongs to the interface that has its local address, an Ethernet face to the interface that it names. TCP
//! faces do not change: a connection survives if a cable is pulled out and put back.
//!
//! Cost: all changes that control finds at once take one copy of the face table.

use super::{faces::Faces, interfaces::Interface};
use namewire_engine::FaceAttributes;
use namewire_packet::{
    FaceId,
    nfd::{FacePersistency, FaceUri, LinkType},
};
use namewire_worker::{Shared, ToWorker, WorkerSender};
use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    net::IpAddr,
    sync::Arc,
};

/// Most changes told at once. While there are events, the first change waits at most `CHANGES_WAIT_NS` for others.
const CHANGES_MAX: usize = 4096;
const CHANGES_WAIT_NS: u64 = 5_000_000;

/// See the module documentation.
#[derive(Default)]
pub(crate) struct LinkStates {
    /// Links that went down or came up and that engines do not know about yet: the latest state of each face.
    untold: BTreeMap<FaceId, bool>,
    untold_since_ns: u64,
    /// The local ends that interfaces had at the last look.
    ends: LocalEnds,
}

/// The local end of a face, if an interface has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum LocalEnd {
    Address(IpAddr),
    Device(String),
}

/// The local ends of interfaces that are up, and of those that are down.
#[derive(Default)]
struct LocalEnds {
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

    /// True if an interface that is down has the end and no interface that is up has it.
    fn is_down(&self, end: &LocalEnd) -> bool {
        self.down.contains(end) && !self.up.contains(end)
    }
}

impl LinkStates {
    /// Records that the link of a face carries packets, or does not. Engines learn it with [`LinkStates::tell`].
    pub(super) fn note(&mut self, now_ns: u64, face: FaceId, is_up: bool) {
        if self.untold.is_empty() {
            self.untold_since_ns = now_ns;
        }
        self.untold.insert(face, is_up);
    }

    /// Tells engines what has changed. While more events wait, the changes may wait a little too.
    pub(crate) fn tell(&mut self, shared: &Shared, workers: &[WorkerSender], more_events_wait: bool) {
        let age_ns = shared.now_ns().saturating_sub(self.untold_since_ns);
        let may_wait = more_events_wait && age_ns < CHANGES_WAIT_NS && self.untold.len() < CHANGES_MAX;
        if self.untold.is_empty() || may_wait {
            return;
        }
        let changes = std::mem::take(&mut self.untold);
        // The table comes first, so that a worker finds the change there when it gets the message.
        shared.faces.change(|faces| {
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
            for worker in workers {
                let faces = Arc::clone(&faces);
                worker.send(if is_up { ToWorker::FacesUp(faces) } else { ToWorker::FacesDown(faces) });
            }
        }
    }

    /// A permanent face made while its interface is down is down as well. A face that is not permanent is left alone:
    /// it would close at once, which would surprise the user who has just made it.
    pub(super) fn look_at_local_end(&self, faces: &Faces, face: FaceId) {
        let Some(record) = faces.get(face) else { return };
        let end = LocalEnd::of(&record.info.local);
        let is_unicast = record.info.link_type == LinkType::PointToPoint;
        let is_permanent = record.info.persistency == FacePersistency::Permanent;
        if is_permanent && is_unicast && end.is_some_and(|end| self.ends.is_down(&end)) {
            faces.send(record.worker, ToWorker::SetInterfaceUp { faces: vec![face], is_up: false });
        }
    }

    /// Tells workers about the faces whose interfaces went down or came up since the last call.
    pub(super) fn follow(&mut self, faces: &Faces, interfaces: &BTreeMap<u32, Interface>) {
        let now = LocalEnds::of(interfaces);
        let before = std::mem::replace(&mut self.ends, now);
        let now = &self.ends;
        if before.up == now.up {
            return;
        }
        let mut changed: BTreeMap<(u8, bool), BTreeSet<FaceId>> = BTreeMap::new();
        for (face, record) in faces.iter().filter(|(_, record)| record.info.link_type == LinkType::PointToPoint) {
            let Some(end) = LocalEnd::of(&record.info.local) else { continue };
            let is_up = now.up.contains(&end);
            if is_up != before.up.contains(&end) {
                changed.entry((record.worker, is_up)).or_default().insert(*face);
            }
        }
        for ((worker, is_up), changed) in changed {
            faces.send(worker, ToWorker::SetInterfaceUp { faces: changed.into_iter().collect(), is_up });
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
