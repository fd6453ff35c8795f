//! The datagram sockets of a worker, by index.

use std::io;
use std::net::SocketAddr;

use namewire_packet::FaceId;
use namewire_shares::Pool;

use super::poller::{Poller, Source};
use crate::datagram_port::DatagramPort;
use crate::datagram_socket::{DatagramSocket, LinkPeers, Peers};

#[derive(Default)]
pub(super) struct SocketTable {
    /// `None`: closed; the index is free.
    sockets: Vec<Option<DatagramSocket>>,
    /// Sockets with datagrams to flush.
    dirty: Vec<usize>,
    /// Ports whose memory is looked at before any system call: they have brought something since the worker slept.
    polled: Vec<usize>,
}

impl SocketTable {
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&DatagramSocket> {
        self.sockets.get(index)?.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut DatagramSocket> {
        self.sockets.get_mut(index)?.as_mut()
    }

    /// Takes over a socket and watches it; returns its index.
    pub(super) fn add(
        &mut self,
        poller: &Poller,
        port: DatagramPort,
        peers: Peers,
        offload: bool,
        waiting: Option<Pool>,
    ) -> io::Result<usize> {
        let free = self.sockets.iter().position(Option::is_none);
        let index = free.unwrap_or(self.sockets.len());
        match port.descriptor() {
            Some(descriptor) => poller.watch(descriptor, Source::Datagrams(index))?,
            None => self.polled.push(index),
        }
        if let Some(peer) = port.peer()
            && let Err(error) = poller.watch(peer, Source::Peer(index))
        {
            // The other end has the same open file, so the watch would stay.
            port.descriptor().into_iter().for_each(|descriptor| poller.forget(descriptor));
            return Err(error);
        }
        let socket = Some(DatagramSocket::new(port, peers, offload, waiting));
        match free {
            Some(index) => self.sockets[index] = socket,
            None => self.sockets.push(socket),
        }
        Ok(index)
    }

    pub(super) fn remove(&mut self, index: usize) -> Option<DatagramSocket> {
        self.polled.retain(|&polled| polled != index);
        self.sockets.get_mut(index)?.take()
    }

    /// Sends the socket's queue with the next flush.
    #[inline]
    pub(super) fn mark_dirty(&mut self, index: usize) {
        if let Some(Some(socket)) = self.sockets.get_mut(index)
            && !socket.is_dirty
        {
            socket.is_dirty = true;
            self.dirty.push(index);
        }
    }

    /// Whether a port is always polled.
    pub(super) fn has_sleepless(&self) -> bool {
        let is_sleepless = |index: &usize| self.get(*index).is_some_and(|socket| socket.port.descriptor().is_none());
        self.polled.iter().any(is_sleepless)
    }

    /// Looks at the port's memory from now on, if it has any.
    pub(super) fn poll(&mut self, index: usize) {
        let Some(DatagramSocket { port: port @ DatagramPort::Frames(_), .. }) = self.get(index) else { return };
        port.begin_polling();
        if !self.polled.contains(&index) {
            self.polled.push(index);
        }
    }

    /// The index and the only face of each polled port that has something to receive and no turn to come. Marks it
    /// ready.
    #[inline]
    pub(super) fn take_ready_ports(&mut self) -> impl Iterator<Item = (usize, Option<FaceId>)> + '_ {
        let SocketTable { sockets, polled, .. } = self;
        polled.iter().filter_map(|&index| match &mut sockets[index] {
            Some(socket) if !socket.is_ready && socket.port.has_input() => {
                socket.is_ready = true;
                Some((index, socket.peers.only_face()))
            }
            _ => None,
        })
    }

    /// The worker is about to sleep: descriptors report what comes from now on. False if something has come already.
    pub(super) fn stop_polling(&mut self) -> bool {
        let SocketTable { sockets, polled, .. } = self;
        polled.retain(|&index| sockets[index].as_ref().is_some_and(|socket| !socket.port.end_polling()));
        polled.is_empty()
    }

    /// Takes the list of sockets to flush, leaving it empty. [`SocketTable::keep_list`] takes its memory back.
    pub(super) fn take_dirty(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.dirty)
    }

    /// Keeps the memory of an empty list.
    pub(super) fn keep_list(&mut self, empty: Vec<usize>) {
        self.dirty = empty;
    }

    /// Index of the listener at an address.
    pub(super) fn listener(&self, address: SocketAddr) -> Option<usize> {
        self.sockets.iter().position(
            |socket| matches!(socket, Some(DatagramSocket { peers: Peers::Anyone { local }, .. }) if *local == address),
        )
    }

    /// All open sockets, with their indices.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &DatagramSocket)> {
        self.sockets.iter().enumerate().filter_map(|(index, socket)| Some((index, socket.as_ref()?)))
    }

    /// The packet socket of an interface, with its index.
    pub(super) fn link(&mut self, interface: u32) -> Option<(usize, &mut LinkPeers)> {
        self.sockets.iter_mut().enumerate().find_map(|(index, socket)| match &mut socket.as_mut()?.peers {
            Peers::Link(link) if link.interface == interface => Some((index, link)),
            _ => None,
        })
    }

    /// The other queues of the link at this index.
    pub(super) fn queues_of(&self, of_link: usize) -> Vec<usize> {
        let is_queue = |socket: &DatagramSocket| matches!(socket.peers, Peers::Queue { link } if link == of_link);
        let indexed = self.sockets.iter().enumerate();
        indexed.filter(|(_, socket)| socket.as_ref().is_some_and(is_queue)).map(|(index, _)| index).collect()
    }
}
