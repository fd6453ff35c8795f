//! Faces with peers on a link: UDP multicast, and Ethernet, unicast and multicast.
//!
//! A UDP multicast face has two sockets. All Ethernet faces of an interface share one packet socket, or one AF_XDP
//! socket for each receive queue, which one worker owns. Frames to this station belong to their sender's face, frames
//! to the group to the group's face.

use std::io;

use namewire_links::LinkOptions;
use namewire_packet::{
    FaceId,
    nfd::{FacePersistency, LinkType, MacAddress},
};

use super::{Channel, SocketDriver};
use crate::datagram_port::DatagramPort;
use crate::datagram_socket::{DatagramSocket, LinkPeers, Peers};
use crate::ethernet::{self, LinkSocket};
use crate::remote::{LinkAddress, Remote};
use crate::sys::Addressee;
use crate::udp_multicast::MulticastSockets;
use crate::{AddFaceError, CloseReason, FaceInfo, LinkDrop};

impl SocketDriver {
    /// Takes over the sockets of a UDP multicast face. As in NFD, packets above the MTU are refused, not fragmented.
    ///
    /// # Errors
    /// [`AddFaceError::Exists`] if the id is in use; [`AddFaceError::FaceLimit`] if the worker has no room for a face;
    /// [`AddFaceError::Io`] if a socket cannot be watched.
    pub fn add_multicast_face(
        &mut self,
        face: FaceId,
        sockets: MulticastSockets,
        info: FaceInfo,
    ) -> Result<(), AddFaceError> {
        self.check_room(face, &info)?;
        let own = sockets.sender.local_addr()?;
        let receiver =
            self.watch_datagrams(DatagramPort::Socket(sockets.receiver.into()), Peers::Group { face, own })?;
        let sender = match self.watch_datagrams(DatagramPort::Socket(sockets.sender.into()), Peers::Nobody { receiver })
        {
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

    /// Takes over the ports of an interface. With `listens`, an unknown station that sends this one a frame in
    /// the shape of an NDN packet becomes an on-demand face.
    ///
    /// # Errors
    /// If a socket cannot be watched.
    pub fn add_link(&mut self, link: LinkSocket, listens: bool) -> io::Result<()> {
        let LinkSocket { ports, interface, name, mtu, .. } = link;
        let mut ports = ports.into_iter();
        let Some(first) = ports.next() else { return Err(io::ErrorKind::InvalidInput.into()) };
        let link = Peers::Link(LinkPeers { interface, name, mtu, listens, group: None });
        let index = self.watch_datagrams(first, link)?;
        for port in ports {
            if let Err(error) = self.watch_datagrams(port, Peers::Queue { link: index }) {
                self.remove_link(interface);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Closes an interface's ports and all its faces ([`CloseReason::InterfaceGone`]).
    pub fn remove_link(&mut self, interface: u32) {
        let Some((index, _)) = self.sockets.link(interface) else { return };
        for face in self.faces.of_socket(index) {
            self.close(face, CloseReason::InterfaceGone);
        }
        self.sockets.queues_of(index).into_iter().for_each(|queue| self.close_datagrams(queue));
        self.close_datagrams(index);
    }

    /// Sets the new MTU of the interface, in bytes. Faces that had the old one follow; a face whose MTU a command has
    /// lowered keeps it while it fits.
    pub fn set_link_mtu(&mut self, interface: u32, mtu: usize) {
        let Some((index, link)) = self.sockets.link(interface) else { return };
        let before = std::mem::replace(&mut link.mtu, mtu);
        for face in self.faces.of_socket(index) {
            if self.info(face).is_some_and(|info| ethernet::follows_link(info.mtu, before, mtu)) {
                self.set_mtu(face, mtu);
            }
        }
    }

    /// Sets whether unknown stations of the interface become on-demand faces from now on.
    pub fn set_link_listens(&mut self, interface: u32, listens: bool) {
        if let Some((_, link)) = self.sockets.link(interface) {
            link.listens = listens;
        }
    }

    /// Creates an Ethernet face to a station or a group of an interface that was added before. Returns its facts.
    /// `mtu`, in bytes, is at most that of the interface, which is the default.
    ///
    /// # Errors
    /// [`AddFaceError::NoLink`] if the interface was not added; [`AddFaceError::Exists`] if the id is in use, or if the
    /// station or the group has a face; [`AddFaceError::FaceLimit`] if the worker has no room for a face;
    /// [`AddFaceError::Io`] if the interface cannot join the group.
    pub fn add_ethernet_face(
        &mut self,
        face: FaceId,
        interface: u32,
        address: MacAddress,
        persistency: FacePersistency,
        link_type: LinkType,
        mtu: Option<usize>,
    ) -> Result<FaceInfo, AddFaceError> {
        let (index, link) = self.sockets.link(interface).ok_or(AddFaceError::NoLink(interface))?;
        let mtu = mtu.map_or(link.mtu, |mtu| mtu.min(link.mtu));
        let info = ethernet::face_info(&link.name, address, persistency, link_type, mtu);
        self.check_room(face, &info)?;
        let remote = Remote::Ethernet(LinkAddress { interface, address });
        if let Some(other) = self.faces.of_remote(index, remote) {
            return Err(AddFaceError::Exists(other));
        }
        if address.is_multicast() {
            self.join_group(index, interface, address, face)?;
        }
        let channel = Channel::Datagram { socket: index, destination: Some(remote.into()) };
        let options = self.datagram_options(&remote, info.mtu);
        self.insert_face(face, channel, options, info.clone());
        Ok(info)
    }

    fn join_group(
        &mut self,
        index: usize,
        interface: u32,
        group: MacAddress,
        face: FaceId,
    ) -> Result<(), AddFaceError> {
        let Some(socket) = self.sockets.get_mut(index) else { return Err(AddFaceError::NoLink(interface)) };
        let Peers::Link(link) = &mut socket.peers else { return Err(AddFaceError::NoLink(interface)) };
        if let Some(other) = link.group {
            return Err(AddFaceError::Exists(other));
        }
        socket.port.join(interface, group)?;
        link.group = Some(face);
        for queue in self.sockets.queues_of(index) {
            if let Some(DatagramSocket { port: DatagramPort::Frames(port), .. }) = self.sockets.get_mut(queue) {
                port.hear(group);
            }
        }
        Ok(())
    }

    /// The face of an Ethernet frame, created if need be.
    pub(super) fn face_of_frame(
        &mut self,
        index: usize,
        addressee: Addressee,
        remote: Remote,
        bytes: &[u8],
    ) -> Option<FaceId> {
        let index = match &self.sockets.get(index)?.peers {
            Peers::Queue { link } => *link,
            Peers::Application { face } => return Some(*face),
            _ => index,
        };
        let Peers::Link(link) = &self.sockets.get(index)?.peers else { return None };
        let face = match (addressee, remote) {
            // No station has a group address: a face to it would send to the whole group.
            (_, Remote::Ethernet(sender)) if sender.address.is_multicast() => None,
            (Addressee::Us, Remote::Ethernet(station)) => match self.faces.of_remote(index, remote) {
                Some(face) => Some(face),
                None if link.listens => {
                    let (persistency, link_type) = (FacePersistency::OnDemand, LinkType::PointToPoint);
                    let info = ethernet::face_info(&link.name, station.address, persistency, link_type, link.mtu);
                    return self.create_on_demand(index, remote.into(), bytes, info);
                }
                None => None,
            },
            (Addressee::Group, _) => link.group,
            _ => None,
        };
        face.or_else(|| self.refuse_datagram(bytes, LinkDrop::ForeignRemote))
    }

    /// Largest frame that the interface of an Ethernet face takes, in bytes.
    pub(super) fn mtu_of_link(&self, face: FaceId) -> Option<usize> {
        let Channel::Datagram { socket, .. } = &self.faces.get(face)?.channel else { return None };
        match &self.sockets.get(*socket)?.peers {
            Peers::Link(link) => Some(link.mtu),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DriverConfig;
    use crate::ethernet::PortLimits;
    use std::net::UdpSocket;

    const INTERFACE: u32 = 7;
    const STATION: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    /// An Interest for `/a`.
    const INTEREST: [u8; 7] = [5, 5, 7, 3, 8, 1, b'a'];

    /// A driver with an interface, whose socket is not an Ethernet one: that would need a privilege.
    fn driver(listens: bool) -> SocketDriver {
        let mut driver = SocketDriver::new(DriverConfig::default()).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap().into();
        let (ports, name) = (vec![DatagramPort::Socket(socket)], "eth0".to_owned());
        let limits = PortLimits { address: None, mtu_max: usize::MAX };
        let link =
            LinkSocket { ports, interface: INTERFACE, name, mtu: 1500, how: "a packet socket".to_owned(), limits };
        driver.add_link(link, listens).unwrap();
        driver
    }

    /// The face of a frame to us.
    fn face_of(driver: &mut SocketDriver, sender: MacAddress) -> Option<FaceId> {
        driver.face_of_frame(
            0,
            Addressee::Us,
            Remote::Ethernet(LinkAddress { interface: INTERFACE, address: sender }),
            &INTEREST,
        )
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
            assert_eq!(driver.faces.get(face).unwrap().link.options().mtu, expected);
        }
        driver.set_link_mtu(INTERFACE, 9000);
        assert_eq!(mtu(&driver), 8800, "it follows");
    }
}
