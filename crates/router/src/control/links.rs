//! Faces that follow the network interfaces: multicast over UDP and Ethernet, and the packet sockets behind all
//! Ethernet faces.
//!
//! [`LinkFaces::follow`] compares the configuration with the interfaces, at the start and whenever the kernel reports a
//! change. A multicast face lives while its interface is up and has the address that it was made for. A packet socket
//! lives while its interface exists, so that permanent unicast faces outlast a cable that is pulled out and put back
//! (`link_state.rs`).
//!
//! Source: drop-in.md §2, forwarding.md §5. An interface qualifies by NFD's rule: up, not loopback, multicast, allowed
//! by the lists.
//!
//! If a socket cannot be opened (no CAP_NET_RAW for Ethernet), control reports this once at the start, counts it, and
//! tries again with the next change.

use super::{
    devices::Devices,
    faces::Faces,
    interfaces::{self, Interface, News},
};
use crate::messages::ToControl;
use namewire_configuration::{
    InterfacePattern,
    settings::{DpdkSection, EthernetIo, EthernetSection, MulticastSection},
};
use namewire_faces::{
    LinkPolicy, ethernet,
    ethernet::{LinkIo, PortLimits},
    group_holder, udp_multicast,
};
use namewire_handover::messages;
use namewire_packet::{
    FaceId,
    nfd::{FacePersistency, FaceScope, FaceUri, LinkType, MacAddress},
};
use namewire_worker::ToWorker;
use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, SocketAddr},
};
use tokio::{sync::mpsc::UnboundedSender, task::spawn_local};

/// What control knows of links.
pub(crate) struct LinkFaces {
    udp: MulticastSection,
    ethernet: EthernetSection,
    devices: Devices,
    /// Multicast faces.
    groups: BTreeMap<(u32, Group), GroupFace>,
    /// Interfaces with an open packet socket, by number.
    links: BTreeMap<u32, Link>,
    /// A subscription to which no task listens yet.
    news: Option<News>,
    is_subscribed: bool,
    /// Sockets that could not be opened, and interface lists that the kernel did not give.
    failures: u64,
    /// The numbers that another process gave to multicast faces.
    numbers: BTreeMap<(u32, Group), FaceId>,
}

/// A multicast face of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Udp4,
    Udp6,
    Ethernet,
}

impl Group {
    /// As two processes name it.
    const fn word(self) -> &'static str {
        match self {
            Group::Udp4 => "udp4",
            Group::Udp6 => "udp6",
            Group::Ethernet => "ether",
        }
    }
}

struct GroupFace {
    face: FaceId,
    worker: u8,
    /// What the face was made with. When this changes, control makes the face anew.
    made_for: MadeFor,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct MadeFor {
    interface: String,
    local: Option<IpAddr>,
    station: Option<MacAddress>,
    link_type: LinkType,
}

/// The result of a look at the interfaces.
#[derive(Default)]
pub(crate) struct Followed {
    /// Multicast faces that were closed.
    pub(crate) closed: Vec<FaceId>,
    /// Faces whose MTU changed.
    pub(crate) changed: Vec<FaceId>,
    /// The sockets that could not be opened, in words.
    pub(crate) problems: Vec<String>,
}

struct Link {
    worker: u8,
    name: String,
    mtu: usize,
    /// In words, how frames get to the router.
    how: String,
    /// What the port depends on.
    limits: PortLimits,
    /// Unknown stations get faces.
    listens: bool,
}

impl Link {
    /// Whether the port goes on as the interface is now. A port that does not is opened anew.
    fn suits(&self, interface: &Interface) -> bool {
        let PortLimits { address, mtu_max } = self.limits;
        let has_address = address.is_none() || address == interface.ethernet;
        interface.name == self.name && has_address && interface.mtu <= mtu_max
    }
}

impl LinkFaces {
    pub(crate) fn new(udp: MulticastSection, ethernet: EthernetSection) -> Self {
        LinkFaces {
            udp,
            ethernet,
            devices: Devices::default(),
            groups: BTreeMap::new(),
            links: BTreeMap::new(),
            news: None,
            is_subscribed: false,
            failures: 0,
            numbers: BTreeMap::new(),
        }
    }

    /// The multicast faces, for another process.
    pub(super) fn handed_groups(&self) -> Vec<messages::Group> {
        let said = |(&(interface, group), made): (&(u32, Group), &GroupFace)| messages::Group {
            interface,
            group: group.word().to_owned(),
            face: made.face.0,
        };
        self.groups.iter().map(said).collect()
    }

    /// Multicast faces get the numbers that they had in another process.
    pub(crate) fn number_groups(&mut self, groups: &[messages::Group]) {
        for messages::Group { interface, group, face } in groups {
            let named = [Group::Udp4, Group::Udp6, Group::Ethernet].into_iter().find(|one| one.word() == group);
            self.numbers.extend(named.map(|group| ((*interface, group), FaceId(*face))));
        }
    }

    /// The worker of a multicast face.
    pub(super) fn worker_of_group(&self, face: FaceId) -> Option<u8> {
        self.groups.values().find(|group| group.face == face).map(|group| group.worker)
    }

    /// The interfaces whose frames come by AF_XDP: another process cannot have them at the same time.
    pub(super) fn xdp_ports(&self) -> impl Iterator<Item = &str> {
        self.links.values().filter(|link| link.how.starts_with("AF_XDP")).map(|link| link.name.as_str())
    }

    /// True if the router drives devices itself.
    pub(super) fn has_devices(&self) -> bool {
        self.links.keys().any(|index| self.devices.has(*index))
    }

    /// The channels, as management lists them.
    pub(crate) fn channels(&self) -> impl Iterator<Item = FaceUri> + '_ {
        self.links.values().map(|link| FaceUri::Dev(link.name.clone()))
    }

    /// The MTU of the interface that is the local end of an Ethernet face.
    pub(crate) fn mtu_of(&self, local: &FaceUri) -> Option<usize> {
        let FaceUri::Dev(name) = local else { return None };
        self.links.values().find(|link| link.name == *name).map(|link| link.mtu)
    }

    /// In words, how frames of the interface that is the local end of a face get to the router.
    pub(crate) fn port_of(&self, local: &FaceUri) -> Option<&str> {
        let FaceUri::Dev(name) = local else { return None };
        self.links.values().find(|link| link.name == *name).map(|link| link.how.as_str())
    }

    /// How each interface came to its port, where the configuration leaves a choice.
    pub(crate) fn choices(&self) -> Vec<String> {
        let is_chosen = |index: u32| self.ethernet.io != EthernetIo::Socket || self.devices.has(index);
        let chosen = self.links.iter().filter(|(index, _)| is_chosen(**index));
        chosen.map(|(_, link)| format!("dev://{}: {}", link.name, link.how)).collect()
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
        self.udp.group4().is_some()
            || self.udp.group6().is_some()
            || self.ethernet.listen
            || self.ethernet.group().is_some()
    }

    /// The multicast faces that an interface should have.
    fn wanted_groups(&self, interface: &Interface) -> BTreeMap<Group, MadeFor> {
        let mut wanted = BTreeMap::new();
        let Interface { name, addresses, .. } = interface;
        if !interface.is_up || interface.is_loopback || !interface.can_multicast {
            return wanted;
        }
        let link_type = |ad_hoc| if ad_hoc { LinkType::AdHoc } else { LinkType::MultiAccess };
        let made_for = |local, ad_hoc| MadeFor {
            interface: name.clone(),
            local,
            station: interface.ethernet.filter(|_| local.is_none()),
            link_type: link_type(ad_hoc),
        };
        if admits(&self.udp.interfaces, &self.udp.except, interface) {
            let first = |is_family: fn(&IpAddr) -> bool| addresses.iter().copied().find(is_family);
            if let (Some(_), Some(local)) = (self.udp.group4(), first(IpAddr::is_ipv4)) {
                wanted.insert(Group::Udp4, made_for(Some(local), self.udp.ad_hoc));
            }
            // The link-local address if there is one: every link has one, and it does not change.
            let link_local =
                first(|ip| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())).or(first(IpAddr::is_ipv6));
            if let (Some(_), Some(local)) = (self.udp.group6(), link_local) {
                wanted.insert(Group::Udp6, made_for(Some(local), self.udp.ad_hoc));
            }
        }
        if self.ethernet.group().is_some() && admits_ethernet(&self.ethernet, interface) {
            wanted.insert(Group::Ethernet, made_for(None, self.ethernet.ad_hoc));
        }
        wanted
    }
}

/// True if unknown stations of an interface become faces. A device of ours has no other use.
fn listens(ethernet: &EthernetSection, devices: &Devices, interface: &Interface) -> bool {
    devices.has(interface.index) || ethernet.listen && admits_ethernet(ethernet, interface)
}

fn admits_ethernet(config: &EthernetSection, interface: &Interface) -> bool {
    interface.is_up && interface.ethernet.is_some() && admits(&config.interfaces, &config.except, interface)
}

/// True if one of `allow` and none of `deny` matches.
fn admits(allow: &[InterfacePattern], deny: &[InterfacePattern], interface: &Interface) -> bool {
    let Interface { name, ethernet, addresses, .. } = interface;
    let matches = |pattern: &InterfacePattern| pattern.matches(name, *ethernet, addresses);
    allow.iter().any(matches) && !deny.iter().any(matches)
}

impl LinkFaces {
    /// Sockets that could not be opened, and lists of interfaces that the kernel did not give.
    pub(super) fn failures(&self) -> u64 {
        self.failures
    }

    /// The kernel gave no list of interfaces. Returns, in words, what does not work then.
    pub(super) fn unlisted(&mut self, error: &io::Error) -> String {
        self.failures += 1;
        let missing =
            if self.wants_any() { "no multicast and no Ethernet" } else { "links that go down are noticed late" };
        format!("{missing}, because interfaces cannot be listed: {error}")
    }

    pub(super) fn subscribe(&mut self) -> io::Result<()> {
        if !self.is_subscribed {
            self.news = Some(News::subscribe()?);
            self.is_subscribed = true;
        }
        Ok(())
    }

    /// Opens the devices that the router drives itself. Returns, in words, those that cannot be opened.
    pub(super) fn open_devices(&mut self, config: &DpdkSection) -> Vec<String> {
        let problems = self.devices.open(config);
        self.failures += problems.len() as u64;
        problems
    }

    /// The interfaces of the kernel, and the devices that the router drives itself.
    pub(super) fn list_interfaces(&self) -> io::Result<BTreeMap<u32, Interface>> {
        let mut interfaces = interfaces::list()?;
        self.devices.add_to(&mut interfaces);
        Ok(interfaces)
    }

    /// Starts to listen to a new subscription, on the control thread.
    pub(super) fn watch(&mut self, events: &UnboundedSender<ToControl>) {
        if let Some(news) = self.news.take() {
            spawn_local(news.pass_on(events.clone()));
        }
    }

    /// Closes and opens faces to match the interfaces.
    pub(super) fn follow(&mut self, faces: &mut Faces, interfaces: &BTreeMap<u32, Interface>) -> Followed {
        let mut wanted: BTreeMap<(u32, Group), MadeFor> = BTreeMap::new();
        for interface in interfaces.values() {
            let groups = self.wanted_groups(interface);
            wanted.extend(groups.into_iter().map(|(group, made_for)| ((interface.index, group), made_for)));
        }
        let mut closed = Vec::new();
        self.groups.retain(|key, group| {
            let stays = wanted.get(key) == Some(&group.made_for);
            if !stays {
                faces.send(group.worker, ToWorker::RemoveFace { face: group.face });
                closed.push(group.face);
            }
            stays
        });
        let changed = self.follow_links(faces, interfaces);
        let mut problems = Vec::new();
        for interface in interfaces.values() {
            if self.listens(interface) {
                let opened = self.open_link(faces, interface).map(drop);
                self.note(opened, &FaceUri::Dev(interface.name.clone()).to_string(), &mut problems);
            }
        }
        for ((index, group), made_for) in wanted {
            let (false, Some(interface)) = (self.groups.contains_key(&(index, group)), interfaces.get(&index)) else {
                continue;
            };
            let what = match group {
                Group::Udp4 | Group::Udp6 => format!("UDP multicast on {}", interface.name),
                Group::Ethernet => format!("Ethernet multicast on {}", interface.name),
            };
            let opened = self.open_group(faces, interface, group, made_for);
            self.note(opened, &what, &mut problems);
        }
        Followed { closed, changed, problems }
    }

    /// Closes the ports of interfaces that are gone or that they no longer suit, and tells workers about another MTU.
    /// Returns the faces whose MTU changed.
    fn follow_links(&mut self, faces: &mut Faces, interfaces: &BTreeMap<u32, Interface>) -> Vec<FaceId> {
        let mut changed = Vec::new();
        let (ethernet, devices) = (&self.ethernet, &self.devices);
        self.links.retain(|&index, link| {
            let Some(interface) = interfaces.get(&index).filter(|interface| link.suits(interface)) else {
                faces.send(link.worker, ToWorker::RemoveLink { interface: index });
                return false;
            };
            if interface.mtu != link.mtu {
                faces.send(link.worker, ToWorker::SetLinkMtu { interface: index, mtu: interface.mtu });
                let before = std::mem::replace(&mut link.mtu, interface.mtu);
                changed.push((link.name.clone(), before, interface.mtu));
            }
            let listens = listens(ethernet, devices, interface);
            if listens != link.listens {
                faces.send(link.worker, ToWorker::SetLinkListens { interface: index, listens });
                link.listens = listens;
            }
            true
        });
        changed.into_iter().flat_map(|(device, before, now)| faces.follow_mtu(&device, before, now)).collect()
    }

    fn note(&mut self, opened: io::Result<()>, what: &str, problems: &mut Vec<String>) {
        if let Err(error) = opened {
            self.failures += 1;
            problems.push(format!("cannot open {what}: {}", explain(&error)));
        }
    }

    fn open_group(
        &mut self,
        faces: &mut Faces,
        interface: &Interface,
        group: Group,
        made_for: MadeFor,
    ) -> io::Result<()> {
        let (index, link_type) = (interface.index, made_for.link_type);
        let (face, worker) = match (group, made_for.local) {
            (Group::Ethernet, _) => {
                let Some(address) = self.ethernet.group() else { return Ok(()) };
                let worker = self.open_link(faces, interface)?;
                let holder = group_holder(&FaceUri::Ether(address), &FaceUri::Dev(interface.name.clone()));
                faces.number_next(self.numbers.remove(&(index, Group::Ethernet)));
                let face = faces.reserve(worker, FaceScope::NonLocal, link_type, false, &holder);
                faces.send(
                    worker,
                    ToWorker::AddEthernet {
                        face,
                        interface: index,
                        address,
                        persistency: FacePersistency::Permanent,
                        link_type,
                        mtu: None,
                        policy: LinkPolicy::default(),
                    },
                );
                (face, worker)
            }
            (_, Some(local)) => {
                let kind = group;
                let group = match group {
                    Group::Udp6 => self.udp.group6().map(SocketAddr::V6),
                    _ => self.udp.group4().map(SocketAddr::V4),
                };
                let Some(group) = group else { return Ok(()) };
                let (sockets, info) = udp_multicast::open(group, index, &interface.name, local, link_type)?;
                let worker = faces.choose_worker();
                faces.number_next(self.numbers.remove(&(index, kind)));
                let face = faces.reserve(worker, FaceScope::NonLocal, link_type, false, &info.holder());
                let policy = faces.default_policy(&info.remote);
                faces.send(worker, ToWorker::AddMulticast { face, sockets, info, policy });
                (face, worker)
            }
            (_, None) => return Ok(()),
        };
        self.groups.insert((index, group), GroupFace { face, worker, made_for });
        Ok(())
    }

    /// The worker that has the packet socket of an interface. Opens the socket if necessary.
    fn open_link(&mut self, faces: &mut Faces, interface: &Interface) -> io::Result<u8> {
        if let Some(link) = self.links.get(&interface.index) {
            return Ok(link.worker);
        }
        let Some(address) = interface.ethernet else { return Err(io::ErrorKind::Unsupported.into()) };
        let wanted = match self.ethernet.io {
            EthernetIo::Socket => LinkIo::Socket,
            EthernetIo::Xdp => LinkIo::Xdp,
            EthernetIo::Auto => LinkIo::Auto,
        };
        let socket = match self.devices.take(interface.index) {
            Some(link) => link,
            None => ethernet::open(interface.index, &interface.name, address, interface.mtu, wanted)?,
        };
        let (how, limits) = (socket.how().to_owned(), socket.limits());
        let worker = if socket.is_of_frames() { self.choose_for_port(faces) } else { faces.choose_worker() };
        let listens = self.listens(interface);
        faces.send(worker, ToWorker::AddLink { interface: interface.index, socket, listens });
        let link = Link { worker, name: interface.name.clone(), mtu: interface.mtu, how, limits, listens };
        self.links.insert(interface.index, link);
        Ok(worker)
    }

    /// The thread for a port of AF_XDP or DPDK: the I/O thread with the fewest ports, or a worker.
    fn choose_for_port(&self, faces: &Faces) -> u8 {
        let ports = |thread: &u8| self.links.values().filter(|link| link.worker == *thread).count();
        faces.io_threads().min_by_key(ports).unwrap_or_else(|| faces.choose_worker())
    }

    /// The number and the worker of an Ethernet device; `None` if there is no such device. Opens its packet socket if
    /// necessary.
    pub(super) fn open_device(&mut self, faces: &mut Faces, name: &str) -> io::Result<Option<(u32, u8)>> {
        self.subscribe()?;
        let interfaces = self.list_interfaces()?;
        let is_it = |interface: &&Interface| interface.name == name && interface.ethernet.is_some();
        let Some(interface) = interfaces.values().find(is_it) else { return Ok(None) };
        Ok(Some((interface.index, self.open_link(faces, interface)?)))
    }

    /// True if unknown stations of an interface become faces.
    fn listens(&self, interface: &Interface) -> bool {
        listens(&self.ethernet, &self.devices, interface)
    }
}

/// What the administrator can do, where the system's own words do not say it.
pub(super) fn explain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!(
                "{error}; NDN over Ethernet needs the capability CAP_NET_RAW (for example `setcap cap_net_raw+ep`), and by \
                 AF_XDP also CAP_NET_ADMIN, CAP_BPF and CAP_IPC_LOCK; without Ethernet in its configuration, a router \
                 gives them up, except with --keep-privileges"
            )
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn links(except: &[&str]) -> LinkFaces {
        let except: Vec<InterfacePattern> = except.iter().map(|text| text.parse().unwrap()).collect();
        let udp =
            MulticastSection { enabled: true, ad_hoc: true, except: except.clone(), ..MulticastSection::default() };
        LinkFaces::new(udp, EthernetSection { multicast: true, except, ..EthernetSection::default() })
    }

    #[test]
    fn an_interface_gets_a_face_for_each_group_that_it_can_reach() {
        let links = links(&[]);
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
    fn one_pattern_allows_and_any_denies() {
        let eth0 = interface(&["192.0.2.9", "2001:db8::9"]);
        let parse =
            |texts: &[&str]| -> Vec<InterfacePattern> { texts.iter().map(|text| text.parse().unwrap()).collect() };
        for (allow, deny, is_admitted) in [
            (&[][..], &[][..], false),
            (&["wlan*", "eth*"], &[], true),
            (&["*"], &["eth0"], false),
            (&["02:00:00:00:00:01"], &["02:00:00:00:00:02"], true),
            (&["192.0.2.0/24"], &["198.51.100.0/24"], true),
            (&["2001:db8::/32"], &[], true),
            (&["0.0.0.0/0"], &[], true),
            (&["192.0.2.8/32"], &[], false),
            (&["*"], &["::/0"], false),
        ] {
            assert_eq!(admits(&parse(allow), &parse(deny), &eth0), is_admitted, "{allow:?} but {deny:?}");
        }
    }

    #[test]
    fn lists_decide_and_nothing_is_on_by_itself() {
        assert_eq!(links(&["eth*"]).wanted_groups(&interface(&["192.0.2.1"])), BTreeMap::new());
        let nothing = LinkFaces::new(MulticastSection::default(), EthernetSection::default());
        assert!(!nothing.wants_any());
        assert_eq!(nothing.wanted_groups(&interface(&["192.0.2.1"])), BTreeMap::new());
    }
}
