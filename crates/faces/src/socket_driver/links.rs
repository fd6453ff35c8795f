//! Faces whose peers are on a link: UDP multicast, and Ethernet, unicast and multicast.
//!
//! A UDP multicast face has two sockets of its own. All Ethernet faces of an interface share
//! one packet socket, which one worker owns: frames to us belong to the face of their sender,
//! frames to the group to the group's face.

use std::io;

use namewire_packet::FaceId;
use namewire_packet::nfd::MacAddress;

use super::{Channel, SocketDriver};
use crate::datagram_socket::{LinkPeers, Peers};
use crate::ethernet::{self, LinkSocket};
use crate::remote::{LinkAddress, Remote};
use crate::sys::{self, Addressee};
use crate::udp_multicast::MulticastSockets;
use crate::{AddFaceError, CloseReason, FaceInfo, LinkDrop, LinkOptions, LinkType, Persistency};
use std::os::fd::AsFd;

impl SocketDriver {
    /// Takes over the sockets of a UDP multicast face. Packets above the MTU are refused and
    /// not fragmented, as NFD does.
    pub fn add_multicast_face(
        &mut self,
        face: FaceId,
        sockets: MulticastSockets,
        info: FaceInfo,
    ) -> Result<(), AddFaceError> {
        self.check_room(face)?;
        let own = sockets.sender.local_addr()?;
        let receiver = self.watch_datagrams(sockets.receiver.into(), Peers::Group { face, own })?;
        let sender = match self.watch_datagrams(sockets.sender.into(), Peers::Nobody { receiver }) {
            Ok(sender) => sender,
            Err(error) => {
                self.close_datagrams(receiver);
                return Err(error.into());
            }
        };
        let options = LinkOptions { mtu: info.mtu, ..LinkOptions::default() };
        self.insert_face(face, Channel::Datagram { socket: sender, destination: None }, options, info);
        Ok(())
    }

    /// Takes over the packet socket of an interface. With `listens`, an unknown station that
    /// sends us something like an NDN packet becomes an on-demand face.
    pub fn add_link(&mut self, link: LinkSocket, listens: bool) -> io::Result<()> {
        let LinkSocket { socket, interface, name, mtu } = link;
        self.watch_datagrams(socket, Peers::Link(LinkPeers { interface, name, mtu, listens, group: None }))?;
        Ok(())
    }

    /// Closes an interface's packet socket and all its faces ([`CloseReason::InterfaceGone`]).
    pub fn remove_link(&mut self, interface: u32) {
        let Some((index, _)) = self.link(interface) else { return };
        for face in self.faces_of_socket(index) {
            self.close(face, CloseReason::InterfaceGone);
        }
        self.close_datagrams(index);
    }

    /// The interface has another MTU now. Faces that had the old one follow; one that was
    /// given a smaller MTU by command keeps it while it fits.
    pub fn set_link_mtu(&mut self, interface: u32, mtu: usize) {
        let Some((index, link)) = self.link(interface) else { return };
        let before = std::mem::replace(&mut link.mtu, mtu);
        for face in self.faces_of_socket(index) {
            if self.info(face).is_some_and(|info| ethernet::follows_link(info.mtu, before, mtu)) {
                self.set_mtu(face, mtu);
            }
        }
    }

    /// From now on, unknown stations of the interface become on-demand faces, or do not.
    pub fn set_link_listens(&mut self, interface: u32, listens: bool) {
        if let Some((_, link)) = self.link(interface) {
            link.listens = listens;
        }
    }

    /// Makes an Ethernet face to a station or a group of an interface that was added before.
    /// Returns its facts. `mtu` is at most that of the interface, which is the default.
    pub fn add_ethernet_face(
        &mut self,
        face: FaceId,
        interface: u32,
        address: MacAddress,
        persistency: Persistency,
        link_type: LinkType,
        mtu: Option<usize>,
    ) -> Result<FaceInfo, AddFaceError> {
        self.check_room(face)?;
        let (index, link) = self.link(interface).ok_or(AddFaceError::NoLink(interface))?;
        let mtu = mtu.map_or(link.mtu, |mtu| mtu.min(link.mtu));
        let info = ethernet::face_info(&link.name, address, persistency, link_type, mtu);
        let remote = Remote::Ethernet(LinkAddress { interface, address });
        if let Some(&other) = self.remotes.get(&(index, remote)) {
            return Err(AddFaceError::Exists(other));
        }
        if address.is_multicast() {
            self.join_group(index, interface, address, face)?;
        }
        let channel = Channel::Datagram { socket: index, destination: Some(remote) };
        let options = self.datagram_options(&remote, info.mtu);
        self.insert_face(face, channel, options, info.clone());
        self.remotes.insert((index, remote), face);
        Ok(info)
    }

    fn join_group(
        &mut self,
        index: usize,
        interface: u32,
        group: MacAddress,
        face: FaceId,
    ) -> Result<(), AddFaceError> {
        let Some(Some(socket)) = self.datagram_sockets.get_mut(index) else {
            return Err(AddFaceError::NoLink(interface));
        };
        let Peers::Link(link) = &mut socket.peers else { return Err(AddFaceError::NoLink(interface)) };
        if let Some(other) = link.group {
            return Err(AddFaceError::Exists(other));
        }
        sys::join_link_group(socket.socket.as_fd(), interface, group)?;
        link.group = Some(face);
        Ok(())
    }

    /// The face that an Ethernet frame belongs to, made if need be. `message` is its number
    /// in the batch.
    pub(super) fn face_of_frame(
        &mut self,
        index: usize,
        message: usize,
        remote: Remote,
        octets: &[u8],
    ) -> Option<FaceId> {
        let Peers::Link(link) = &self.datagram_sockets.get(index)?.as_ref()?.peers else { return None };
        let face = match (self.batch.addressee(message), remote) {
            // No station has such an address: a face to it would send to all of a group.
            (_, Remote::Ethernet(sender)) if sender.address.is_multicast() => None,
            (Addressee::Us, Remote::Ethernet(station)) => match self.remotes.get(&(index, remote)) {
                Some(face) => Some(*face),
                None if link.listens => {
                    let (persistency, link_type) = (Persistency::OnDemand, LinkType::PointToPoint);
                    let info = ethernet::face_info(&link.name, station.address, persistency, link_type, link.mtu);
                    return self.create_on_demand(index, remote, octets, info);
                }
                None => None,
            },
            (Addressee::Group, _) => link.group,
            _ => None,
        };
        face.or_else(|| self.refuse_datagram(octets, LinkDrop::ForeignRemote))
    }

    /// Largest frame that the interface of an Ethernet face takes, in octets.
    pub(super) fn mtu_of_link(&self, face: FaceId) -> Option<usize> {
        let Channel::Datagram { socket, .. } = &self.faces.get(&face)?.channel else { return None };
        match &self.datagram_sockets.get(*socket)?.as_ref()?.peers {
            Peers::Link(link) => Some(link.mtu),
            _ => None,
        }
    }

    fn link(&mut self, interface: u32) -> Option<(usize, &mut LinkPeers)> {
        self.datagram_sockets.iter_mut().enumerate().find_map(|(index, socket)| match &mut socket.as_mut()?.peers {
            Peers::Link(link) if link.interface == interface => Some((index, link)),
            _ => None,
        })
    }

    fn faces_of_socket(&self, index: usize) -> Vec<FaceId> {
        let is_of = |channel: &Channel| matches!(channel, Channel::Datagram { socket, .. } if *socket == index);
        self.faces.iter().filter(|(_, face)| is_of(&face.channel)).map(|(id, _)| *id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DriverConfig;
    use std::net::UdpSocket;

    const INTERFACE: u32 = 7;
    const STATION: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const IDLE: [u8; 2] = [100, 0];

    /// A driver with an interface, whose socket is none of Ethernet: that would need a privilege.
    fn driver(listens: bool) -> SocketDriver {
        let mut driver = SocketDriver::new(DriverConfig::default()).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap().into();
        let link = LinkSocket { socket, interface: INTERFACE, name: "eth0".to_owned(), mtu: 1500 };
        driver.add_link(link, listens).unwrap();
        driver
    }

    /// The face of a frame to us.
    fn face_of(driver: &mut SocketDriver, sender: MacAddress) -> Option<FaceId> {
        assert_eq!(driver.batch.addressee(0), Addressee::Us, "what zeroes mean");
        driver.face_of_frame(0, 0, Remote::Ethernet(LinkAddress { interface: INTERFACE, address: sender }), &IDLE)
    }

    #[test]
    fn stations_become_faces_while_somebody_listens_and_groups_never_do() {
        let mut driver = driver(false);
        assert_eq!(face_of(&mut driver, STATION), None);
        driver.set_link_listens(INTERFACE, true);
        let face = face_of(&mut driver, STATION).expect("a face");
        for sender in [MacAddress([0xff; 6]), MacAddress([1, 0, 0x5e, 0, 0x17, 0xaa])] {
            assert_eq!(face_of(&mut driver, sender), None, "{sender}");
        }
        driver.set_link_listens(INTERFACE, false);
        assert_eq!(face_of(&mut driver, STATION), Some(face));
        assert_eq!(face_of(&mut driver, MacAddress([2, 0, 0, 0, 0, 2])), None);
        assert_eq!(driver.face_count(), 1);
        assert_eq!(driver.faceless.dropped(LinkDrop::ForeignRemote), 4);
    }

    #[test]
    fn no_face_has_a_larger_mtu_than_its_interface() {
        let mut driver = driver(true);
        let face = face_of(&mut driver, STATION).expect("a face");
        let mtu = |driver: &SocketDriver| driver.info(face).unwrap().mtu;
        for (wanted, expected) in [(9000, 1500), (600, 600), (1501, 1500)] {
            assert!(driver.set_mtu(face, wanted));
            assert_eq!(mtu(&driver), expected);
            assert_eq!(driver.faces[&face].link.options().mtu, expected);
        }
        driver.set_link_mtu(INTERFACE, 9000);
        assert_eq!(mtu(&driver), 8800, "it follows");
    }
}
