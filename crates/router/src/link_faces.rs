//! Faces that follow the network interfaces: multicast over UDP and Ethernet, and the packet
//! sockets behind all Ethernet faces.
//!
//! [`Node::follow_interfaces`] compares what the configuration wants with what there is, at the
//! start and whenever the kernel reports a change: a multicast face lives while its interface is
//! up and has the address it was made for; a packet socket while its interface exists, so that
//! permanent unicast faces outlast a cable that is pulled out and put back (`link_state.rs`).
//!
//! Source: drop-in.md §2, forwarding.md §5; which interfaces qualify is NFD's rule (up, not
//! loopback, multicast, allowed by the lists).
//!
//! What cannot be opened (no CAP_NET_RAW for Ethernet) is told once at the start, counted, and
//! tried again with the next change.

use crate::{
    environment::{Node, Wanted},
    interfaces::{self, Interface, News},
    link_config::{EthernetConfig, UdpMulticastConfig},
    messages::ToWorker,
};
use namewire_engine::{FaceAttributes, FaceScope, LinkType as EngineLinkType};
use namewire_faces::{LinkPolicy, LinkType, Persistency, ethernet, face_uri, udp_multicast};
use namewire_management::{CreateFace, FaceCommandError};
use namewire_packet::{
    FaceId, MAX_PACKET_BYTES,
    nfd::{FaceUri, MacAddress},
};
use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, SocketAddr},
};
use tokio::task::spawn_local;

/// What control knows of links.
pub(crate) struct LinkFaces {
    udp: UdpMulticastConfig,
    ethernet: EthernetConfig,
    /// Multicast faces.
    groups: BTreeMap<(u32, Group), GroupFace>,
    /// Interfaces with an open packet socket, by number.
    links: BTreeMap<u32, Link>,
    /// A subscription that nobody listens to yet.
    news: Option<News>,
    is_subscribed: bool,
    /// Sockets that could not be opened, and lists that could not be had.
    pub(crate) failures: u64,
}

/// A multicast face of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Udp4,
    Udp6,
    Ethernet,
}

struct GroupFace {
    face: FaceId,
    worker: u8,
    /// What the face was made with: it is made anew when this changes.
    made_for: MadeFor,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct MadeFor {
    interface: String,
    local: Option<IpAddr>,
    link_type: LinkType,
}

/// What came of a look at the interfaces.
#[derive(Default)]
pub(crate) struct Followed {
    /// Multicast faces that are no more.
    pub(crate) closed: Vec<FaceId>,
    /// Faces with another MTU.
    pub(crate) changed: Vec<FaceId>,
    /// What could not be opened, in words.
    problems: Vec<String>,
}

struct Link {
    worker: u8,
    name: String,
    mtu: usize,
    /// Unknown stations become faces.
    listens: bool,
}

impl LinkFaces {
    pub(crate) fn new(udp: UdpMulticastConfig, ethernet: EthernetConfig) -> Self {
        LinkFaces {
            udp,
            ethernet,
            groups: BTreeMap::new(),
            links: BTreeMap::new(),
            news: None,
            is_subscribed: false,
            failures: 0,
        }
    }

    /// As management lists channels.
    pub(crate) fn channels(&self) -> impl Iterator<Item = FaceUri> + '_ {
        self.links.values().map(|link| FaceUri::Dev(link.name.clone()))
    }

    /// The MTU of the interface that is the local end of an Ethernet face.
    pub(crate) fn mtu_of(&self, local_uri: &str) -> Option<usize> {
        self.links.values().find(|link| face_uri::dev(&link.name) == local_uri).map(|link| link.mtu)
    }

    /// The face is gone, or was never made.
    pub(crate) fn forget_face(&mut self, face: FaceId) {
        self.groups.retain(|_, group| group.face != face);
    }

    /// The worker could not watch the packet socket.
    pub(crate) fn forget_link(&mut self, interface: u32) {
        self.failures += 1;
        self.links.remove(&interface);
    }

    fn wants_any(&self) -> bool {
        self.udp.group4.is_some() || self.udp.group6.is_some() || self.ethernet.listen || self.ethernet.group.is_some()
    }

    /// The multicast faces that an interface is to have.
    fn wanted_groups(&self, interface: &Interface) -> BTreeMap<Group, MadeFor> {
        let mut wanted = BTreeMap::new();
        let Interface { name, addresses, ethernet, .. } = interface;
        if !interface.is_up || interface.is_loopback || !interface.can_multicast {
            return wanted;
        }
        let link_type = |ad_hoc| if ad_hoc { LinkType::AdHoc } else { LinkType::MultiAccess };
        let made_for = |local, ad_hoc| MadeFor { interface: name.clone(), local, link_type: link_type(ad_hoc) };
        if self.udp.interfaces.admits(name, *ethernet, addresses) {
            let first = |is_family: fn(&IpAddr) -> bool| addresses.iter().copied().find(is_family);
            if let (Some(_), Some(local)) = (self.udp.group4, first(IpAddr::is_ipv4)) {
                wanted.insert(Group::Udp4, made_for(Some(local), self.udp.ad_hoc));
            }
            // The link-local address, if there is one: each link has it, and it does not change.
            let link_local =
                first(|ip| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())).or(first(IpAddr::is_ipv6));
            if let (Some(_), Some(local)) = (self.udp.group6, link_local) {
                wanted.insert(Group::Udp6, made_for(Some(local), self.udp.ad_hoc));
            }
        }
        if self.ethernet.group.is_some() && admits_ethernet(&self.ethernet, interface) {
            wanted.insert(Group::Ethernet, made_for(None, self.ethernet.ad_hoc));
        }
        wanted
    }
}

fn admits_ethernet(config: &EthernetConfig, interface: &Interface) -> bool {
    interface.is_up
        && interface.ethernet.is_some()
        && config.interfaces.admits(&interface.name, interface.ethernet, &interface.addresses)
}

impl Node {
    /// Opens what the configuration wants; returns what could not be, in words.
    pub(crate) fn start_links(&mut self) -> Vec<String> {
        match self.subscribe_to_interfaces().and_then(|()| interfaces::list()) {
            Ok(interfaces) => self.follow_interfaces(&interfaces).problems,
            Err(error) => {
                self.links.failures += 1;
                let missing = if self.links.wants_any() {
                    "no multicast and no Ethernet"
                } else {
                    "links that go down are noticed late"
                };
                vec![format!("{missing}, because interfaces cannot be listed: {error}")]
            }
        }
    }

    fn subscribe_to_interfaces(&mut self) -> io::Result<()> {
        if !self.links.is_subscribed {
            self.links.news = Some(News::subscribe()?);
            self.links.is_subscribed = true;
        }
        Ok(())
    }

    /// Listens to a new subscription, on the control thread.
    pub(crate) fn watch_interfaces(&mut self) {
        if let Some(news) = self.links.news.take() {
            spawn_local(news.pass_on(self.sender.events.clone()));
        }
    }

    /// The interfaces have changed.
    pub(crate) fn interfaces_changed(&mut self) -> Followed {
        match interfaces::list() {
            Ok(interfaces) => self.follow_interfaces(&interfaces),
            Err(_) => {
                self.links.failures += 1;
                Followed::default()
            }
        }
    }

    /// Closes and opens faces as the interfaces have it, and lets others know that their links are
    /// down or up.
    fn follow_interfaces(&mut self, interfaces: &BTreeMap<u32, Interface>) -> Followed {
        self.follow_local_ends(interfaces);
        let mut wanted: BTreeMap<(u32, Group), MadeFor> = BTreeMap::new();
        for interface in interfaces.values() {
            let groups = self.links.wanted_groups(interface);
            wanted.extend(groups.into_iter().map(|(group, made_for)| ((interface.index, group), made_for)));
        }
        let mut closed = Vec::new();
        self.links.groups.retain(|key, group| {
            let stays = wanted.get(key) == Some(&group.made_for);
            if !stays {
                self.workers[usize::from(group.worker)].send(ToWorker::RemoveFace { face: group.face });
                closed.push(group.face);
            }
            stays
        });
        let changed = self.follow_links(interfaces);
        let mut problems = Vec::new();
        for interface in interfaces.values() {
            if self.links.ethernet.listen && admits_ethernet(&self.links.ethernet, interface) {
                let opened = self.open_link(interface).map(drop);
                self.note(opened, &face_uri::dev(&interface.name), &mut problems);
            }
        }
        for ((index, group), made_for) in wanted {
            let (false, Some(interface)) = (self.links.groups.contains_key(&(index, group)), interfaces.get(&index))
            else {
                continue;
            };
            let what = match group {
                Group::Udp4 | Group::Udp6 => format!("UDP multicast on {}", interface.name),
                Group::Ethernet => format!("Ethernet multicast on {}", interface.name),
            };
            let opened = self.open_group(interface, group, made_for);
            self.note(opened, &what, &mut problems);
        }
        Followed { closed, changed, problems }
    }

    /// Packet sockets whose interface is gone or has another MTU; the faces that have another
    /// now.
    fn follow_links(&mut self, interfaces: &BTreeMap<u32, Interface>) -> Vec<FaceId> {
        let mut changed = Vec::new();
        self.links.links.retain(|&index, link| {
            let worker = &self.workers[usize::from(link.worker)];
            let Some(interface) = interfaces.get(&index).filter(|interface| interface.name == link.name) else {
                worker.send(ToWorker::RemoveLink { interface: index });
                return false;
            };
            if interface.mtu != link.mtu {
                worker.send(ToWorker::SetLinkMtu { interface: index, mtu: interface.mtu });
                let before = std::mem::replace(&mut link.mtu, interface.mtu);
                changed.push((face_uri::dev(&link.name), before, interface.mtu));
            }
            let listens = self.links.ethernet.listen && admits_ethernet(&self.links.ethernet, interface);
            if listens != link.listens {
                worker.send(ToWorker::SetLinkListens { interface: index, listens });
                link.listens = listens;
            }
            true
        });
        let mut faces = Vec::new();
        for (local_uri, before, now) in changed {
            for (face, record) in self.faces.iter_mut().filter(|(_, record)| record.info.local_uri == local_uri) {
                if ethernet::follows_link(record.info.mtu, before, now) {
                    record.info.mtu = now.min(MAX_PACKET_BYTES);
                    faces.push(*face);
                }
            }
        }
        faces
    }

    fn note(&mut self, opened: io::Result<()>, what: &str, problems: &mut Vec<String>) {
        if let Err(error) = opened {
            self.links.failures += 1;
            problems.push(format!("cannot open {what}: {}", explain(&error)));
        }
    }

    fn open_group(&mut self, interface: &Interface, group: Group, made_for: MadeFor) -> io::Result<()> {
        let (index, link_type) = (interface.index, made_for.link_type);
        let (face, worker) = match (group, made_for.local) {
            (Group::Ethernet, _) => {
                let Some(address) = self.links.ethernet.group else { return Ok(()) };
                let worker = self.open_link(interface)?;
                let face = self.reserve_face_on(worker, link_type);
                self.worker(worker).send(ToWorker::AddEthernet {
                    face,
                    interface: index,
                    address,
                    persistency: Persistency::Permanent,
                    link_type,
                    mtu: None,
                    policy: LinkPolicy::default(),
                    ticket: None,
                });
                (face, worker)
            }
            (_, Some(local)) => {
                let group = match group {
                    Group::Udp6 => self.links.udp.group6.map(SocketAddr::V6),
                    _ => self.links.udp.group4.map(SocketAddr::V4),
                };
                let Some(group) = group else { return Ok(()) };
                let (sockets, info) = udp_multicast::open(group, index, &interface.name, local, link_type)?;
                let worker = self.choose_worker();
                let face = self.reserve_face_on(worker, link_type);
                let policy = self.wanted_by_default(&info).policy;
                self.worker(worker).send(ToWorker::AddMulticast { face, sockets, info, policy });
                (face, worker)
            }
            (_, None) => return Ok(()),
        };
        self.links.groups.insert((index, group), GroupFace { face, worker, made_for });
        Ok(())
    }

    /// The worker that has the packet socket of an interface, opened if need be.
    fn open_link(&mut self, interface: &Interface) -> io::Result<u8> {
        if let Some(link) = self.links.links.get(&interface.index) {
            return Ok(link.worker);
        }
        let socket = ethernet::open(interface.index, &interface.name, interface.mtu)?;
        let worker = self.choose_worker();
        let listens = self.links.ethernet.listen && admits_ethernet(&self.links.ethernet, interface);
        self.worker(worker).send(ToWorker::AddLink { interface: interface.index, socket, listens });
        let link = Link { worker, name: interface.name.clone(), mtu: interface.mtu, listens };
        self.links.links.insert(interface.index, link);
        Ok(worker)
    }

    /// Starts making a unicast Ethernet face by command.
    pub(crate) fn create_ethernet_face(
        &mut self,
        create: &CreateFace,
        address: MacAddress,
        persistency: Persistency,
        policy: LinkPolicy,
    ) -> Result<(), FaceCommandError> {
        let failed = |error: io::Error| FaceCommandError {
            code: 504,
            text: format!("Face creation failed: {}", explain(&error)),
            body: None,
        };
        let Some(FaceUri::Dev(name)) = &create.local else {
            let text = "Creation of unicast Ethernet faces requires a LocalUri with dev:// scheme";
            return Err(FaceCommandError { code: 406, text: text.to_owned(), body: None });
        };
        self.subscribe_to_interfaces().map_err(failed)?;
        let interfaces = interfaces::list().map_err(failed)?;
        let is_it = |interface: &&Interface| interface.name == *name && interface.ethernet.is_some();
        let Some(interface) = interfaces.values().find(is_it) else {
            let text = format!("No channels available to connect: {name} is no Ethernet interface of this machine");
            return Err(FaceCommandError { code: 504, text, body: None });
        };
        let worker = self.open_link(interface).map_err(failed)?;
        self.watch_interfaces();
        let face = self.reserve_face_on(worker, LinkType::PointToPoint);
        self.pending.insert(face, Wanted { local_fields: false, policy });
        self.worker(worker).send(ToWorker::AddEthernet {
            face,
            interface: interface.index,
            address,
            persistency,
            link_type: LinkType::PointToPoint,
            mtu: create.mtu.map(|mtu| usize::try_from(mtu).unwrap_or(usize::MAX)),
            policy,
            ticket: Some(create.ticket),
        });
        Ok(())
    }

    /// Allots an id on a worker, and lets engines know the face before its first packet.
    /// A station is a router's, so it gets our PIT tokens; members of a group may be anyone.
    fn reserve_face_on(&mut self, worker: u8, link_type: LinkType) -> FaceId {
        let face = self.face_ids.allocate();
        self.faces_per_worker[usize::from(worker)] += 1;
        let link_type = match link_type {
            LinkType::PointToPoint => EngineLinkType::PointToPoint,
            LinkType::MultiAccess => EngineLinkType::MultiAccess,
            LinkType::AdHoc => EngineLinkType::AdHoc,
        };
        let tokens = link_type == EngineLinkType::PointToPoint;
        let attributes = FaceAttributes { link_type, ..FaceAttributes::new(FaceScope::NonLocal, worker, tokens) };
        self.shared.faces.change(|faces| faces.insert(face, attributes));
        face
    }
}

/// What to do about it, where the system's own words do not say.
fn explain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("{error}; NDN over Ethernet needs the capability CAP_NET_RAW (for example `setcap cap_net_raw+ep`)")
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link_config::{DEFAULT_ETHERNET_GROUP, DEFAULT_UDP4_GROUP, DEFAULT_UDP6_GROUP, InterfaceFilter};

    fn interface(addresses: &[&str]) -> Interface {
        Interface {
            index: 7,
            name: "eth0".to_owned(),
            ethernet: Some(MacAddress([2, 0, 0, 0, 0, 1])),
            mtu: 1500,
            is_up: true,
            is_loopback: false,
            can_multicast: true,
            addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
        }
    }

    fn links(interfaces: &InterfaceFilter) -> LinkFaces {
        let udp = UdpMulticastConfig {
            group4: Some(DEFAULT_UDP4_GROUP),
            group6: Some(DEFAULT_UDP6_GROUP),
            ad_hoc: true,
            interfaces: interfaces.clone(),
        };
        let group = Some(DEFAULT_ETHERNET_GROUP);
        LinkFaces::new(udp, EthernetConfig { group, interfaces: interfaces.clone(), ..EthernetConfig::default() })
    }

    #[test]
    fn an_interface_gets_a_face_for_each_group_that_it_can_reach() {
        let links = links(&InterfaceFilter::default());
        let locals = |interface: &Interface| -> Vec<(Group, Option<String>)> {
            let wanted = links.wanted_groups(interface).into_iter();
            wanted.map(|(group, made_for)| (group, made_for.local.map(|ip| ip.to_string()))).collect()
        };
        let ip = |text: &str| Some(text.to_owned());
        let both = interface(&["192.0.2.1", "198.51.100.1", "2001:db8::1", "fe80::1"]);
        let expected = [(Group::Udp4, ip("192.0.2.1")), (Group::Udp6, ip("fe80::1")), (Group::Ethernet, None)];
        assert_eq!(locals(&both), expected);
        assert_eq!(links.wanted_groups(&both)[&Group::Udp4].link_type, LinkType::AdHoc);
        assert_eq!(links.wanted_groups(&both)[&Group::Ethernet].link_type, LinkType::MultiAccess);
        assert_eq!(locals(&interface(&[])), [(Group::Ethernet, None)]);
        assert_eq!(locals(&Interface { ethernet: None, ..interface(&["192.0.2.1"]) }).len(), 1, "a tunnel");
        for unfit in [
            Interface { is_up: false, ..both.clone() },
            Interface { is_loopback: true, ..both.clone() },
            Interface { can_multicast: false, ..both.clone() },
        ] {
            assert_eq!(locals(&unfit), []);
        }
    }

    #[test]
    fn lists_decide_and_nothing_is_on_by_itself() {
        let denied = InterfaceFilter { deny: vec!["eth*".parse().unwrap()], ..InterfaceFilter::default() };
        assert_eq!(links(&denied).wanted_groups(&interface(&["192.0.2.1"])), BTreeMap::new());
        let nothing = LinkFaces::new(UdpMulticastConfig::default(), EthernetConfig::default());
        assert!(!nothing.wants_any());
        assert_eq!(nothing.wanted_groups(&interface(&["192.0.2.1"])), BTreeMap::new());
    }
}
