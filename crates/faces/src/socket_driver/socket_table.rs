//! The datagram sockets of a worker, by index.

use std::io;
use std::net::SocketAddr;

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
        poller.watch(&port, Source::Datagrams(index))?;
        let socket = Some(DatagramSocket::new(port, peers, offload, waiting));
        match free {
            Some(index) => self.sockets[index] = socket,
            None => self.sockets.push(socket),
        }
        Ok(index)
    }

    pub(super) fn remove(&mut self, index: usize) -> Option<DatagramSocket> {
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
