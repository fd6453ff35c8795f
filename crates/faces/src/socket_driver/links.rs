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
