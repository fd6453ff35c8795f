//! Hand-over: what does another process need to go on with the faces of this worker?
//!
//! [`SocketDriver::hand_over`] describes every face. The driver keeps its own descriptors and can go on if the other
//! process fails, as long as only one of the two uses the sockets. [`SocketDriver::take_over`] makes a face of a
//! description, and neither reads nor writes its socket.
//!
//! What stays behind: fragments of unfinished packets, unacknowledged frames, datagrams that the kernel has not taken,
//! what is known of paths, and captures. Shared memory (memif, AF_XDP, DPDK) is not described.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;

use namewire_links::LinkOptions;
use namewire_packet::FaceId;
use namewire_shares::HolderId;

use super::SocketDriver;
use super::face::{Channel, Face};
use crate::datagram_port::DatagramPort;
use crate::datagram_socket::Peers;
use crate::remote::{Destination, Remote};
use crate::stream::{Stream, StreamRest, StreamSocket};
use crate::{AddFaceError, FaceCounters, FaceInfo, LinkCounters, LinkPolicy};

/// A face as another process goes on with it.
#[derive(Debug)]
pub struct HandedFace {
    /// Its number.
    pub face: FaceId,
    /// Facts about it.
    pub info: FaceInfo,
    /// Reliability and congestion marks.
    pub policy: LinkPolicy,
    /// Its application may see and choose faces.
    pub local_fields: bool,
    /// What it has counted.
    pub counters: LinkCounters,
    /// The sequence number of its next frame.
    pub next_sequence: u64,
    /// Nanoseconds since something was received.
    pub silent_ns: u64,
    /// Its peer understands link headers.
    pub speaks_lp: bool,
    /// How it gets at its packets.
    pub channel: HandedChannel,
}

/// How a face gets at its packets.
#[derive(Debug)]
pub enum HandedChannel {
    /// A connection, and what was read and not delivered, or queued and not sent.
    Stream(StreamSocket, StreamRest),
    /// A permanent stream face without a connection.
    Down,
    /// A socket of its own, bound to `local` and connected to `remote`.
    Udp {
        /// The socket.
        socket: UdpSocket,
        /// Our end.
        local: SocketAddr,
        /// The other end.
        remote: SocketAddr,
    },
    /// A remote of a listener.
    UdpOfListener {
        /// The listener's address.
        listener: SocketAddr,
        /// The other end.
        remote: SocketAddr,
        /// Our address in what we send, where the kernel would choose another.
        from: Option<IpAddr>,
    },
    /// A UDP multicast face, or one of an Ethernet link: the sockets hold nothing, and are opened anew.
    OpenedAnew,
    /// Memory of an application, which cannot be handed over.
    Memory,
}

/// A listening UDP socket.
#[derive(Debug)]
pub struct HandedListener {
    /// The socket.
    pub socket: UdpSocket,
    /// Its address.
    pub local: SocketAddr,
}

impl SocketDriver {
    /// All faces and listening sockets. Sends first what the kernel takes.
    ///
    /// # Errors
    /// If no descriptors are left.
    pub fn hand_over(&mut self, now_ns: u64) -> io::Result<(Vec<HandedFace>, Vec<HandedListener>)> {
        self.now_ns = now_ns;
        self.flush();
        let mut listeners = Vec::new();
        for (_, socket) in self.sockets.iter() {
            if let &Peers::Anyone { local } = &socket.peers
                && let Some(descriptor) = socket.port.duplicate()?
            {
                listeners.push(HandedListener { socket: descriptor.into(), local });
            }
        }
        // Control opens lanes anew.
        let ids: Vec<FaceId> = self.faces.iter().filter(|face| !face.is_part()).map(|face| face.id).collect();
        let faces = ids.into_iter().map(|id| self.describe(id)).collect::<io::Result<Vec<_>>>()?;
        Ok((faces.into_iter().flatten().collect(), listeners))
    }

    fn describe(&mut self, id: FaceId) -> io::Result<Option<HandedFace>> {
        let Some(face) = self.faces.get_mut(id) else { return Ok(None) };
        let channel = match &mut face.channel {
            Channel::Stream(stream) => {
                let rest = stream.rest();
                HandedChannel::Stream(stream.socket.duplicate()?, rest)
            }
            Channel::Down => HandedChannel::Down,
            &mut Channel::Datagram { socket, destination } => {
                let Some(socket) = self.sockets.get(socket) else { return Ok(None) };
                match (&socket.peers, destination) {
                    (&Peers::One { local, remote, .. }, _) => match socket.port.duplicate()? {
                        Some(descriptor) => HandedChannel::Udp { socket: descriptor.into(), local, remote },
                        None => HandedChannel::Memory,
                    },
                    (&Peers::Anyone { local: listener }, Some(Destination { remote: Remote::Udp(remote), from })) => {
                        HandedChannel::UdpOfListener { listener, remote, from }
                    }
                    (Peers::Application { .. }, _) => HandedChannel::Memory,
                    _ => HandedChannel::OpenedAnew,
                }
            }
        };
        Ok(Some(HandedFace {
            face: id,
            info: face.info.clone(),
            policy: face.link.options().policy,
            local_fields: face.link.options().local_fields,
            counters: *face.link.counters(),
            next_sequence: face.link.next_sequence(),
            silent_ns: self.now_ns.saturating_sub(face.last_received_ns),
            speaks_lp: face.link.peer_speaks_lp(),
            channel,
        }))
    }

    /// Goes on with a face of another process. `published` becomes its published counters. If the face was opened anew
    /// already, only its counters are taken over.
    ///
    /// # Errors
    /// [`AddFaceError::Exists`] if the id is in use; [`AddFaceError::Io`] if the socket cannot be watched;
    /// [`AddFaceError::NotDown`] if its listener is missing.
    pub fn take_over(
        &mut self,
        now_ns: u64,
        handed: HandedFace,
        published: Arc<FaceCounters>,
    ) -> Result<(), AddFaceError> {
        self.now_ns = now_ns;
        let (id, info) = (handed.face, handed.info.clone());
        let remote = match &handed.channel {
            HandedChannel::Udp { remote, .. } | HandedChannel::UdpOfListener { remote, .. } => {
                Some(Remote::Udp(*remote))
            }
            _ => None,
        };
        let options = match &remote {
            Some(remote) => self.datagram_options(remote, info.mtu),
            None => LinkOptions { mtu: info.mtu, ..LinkOptions::default() },
        };
        let options = LinkOptions {
            policy: handed.policy,
            local_fields: handed.local_fields,
            first_sequence: handed.next_sequence,
            ..options
        };
        if matches!(handed.channel, HandedChannel::OpenedAnew | HandedChannel::Memory) {
            self.faces.change(id, |face| face.link.resume(handed.counters, handed.speaks_lp));
            return Ok(());
        }
        if self.faces.get(id).is_some() {
            return Err(AddFaceError::Exists(id));
        }
        let holder = self.config.holders.enter(&info.holder());
        let (mut output, mut has_backlog) = (Vec::new(), false);
        let channel = self.channel_of(id, handed.channel, holder, &mut |rest| {
            (output, has_backlog) = (std::mem::take(&mut rest.output), rest.has_backlog);
        });
        let channel = match channel {
            Ok(channel) => channel,
            Err(error) => {
                self.config.holders.leave(holder);
                return Err(error);
            }
        };
        let mut face = Face::new(id, holder, channel, options, info, now_ns);
        face.link.resume(handed.counters, handed.speaks_lp);
        face.spoke_lp = handed.speaks_lp;
        face.last_received_ns = now_ns.saturating_sub(handed.silent_ns);
        face.published = published;
        face.publish();
        self.places.pool.take(face.place, 1);
        self.faces.insert(face);
        self.schedule_idle(id);
        self.look_at_path(id);
        if let Some(Face { channel: Channel::Stream(stream), .. }) = self.faces.touch(id)
            && !output.is_empty()
        {
            self.outlet.queue_on_stream(stream, None, &[], &output);
        }
        if has_backlog {
            self.release(id);
        }
        Ok(())
    }

    /// Watches the socket of a face. `rest_of` sees what a stream holds.
    fn channel_of(
        &mut self,
        id: FaceId,
        handed: HandedChannel,
        holder: HolderId,
        rest_of: &mut dyn FnMut(&mut StreamRest),
    ) -> Result<Channel, AddFaceError> {
        Ok(match handed {
            HandedChannel::Down | HandedChannel::OpenedAnew | HandedChannel::Memory => Channel::Down,
            HandedChannel::Stream(socket, mut rest) => {
                self.watch_stream(id, &socket)?;
                let mut stream = Stream::new(socket, holder);
                stream.resume(&rest);
                self.inlet.note_turn(holder, 0, stream.kept_bytes());
                rest_of(&mut rest);
                Channel::Stream(stream)
            }
            HandedChannel::Udp { socket, local, remote } => {
                socket.set_nonblocking(true)?;
                let peers = Peers::One { face: id, local, remote };
                let socket = self.watch_datagrams(DatagramPort::Socket(socket.into()), peers)?;
                Channel::Datagram { socket, destination: None }
            }
            HandedChannel::UdpOfListener { listener, remote, from } => {
                let socket = self.sockets.listener(listener).ok_or(AddFaceError::NotDown(id))?;
                Channel::Datagram { socket, destination: Some(Destination { remote: Remote::Udp(remote), from }) }
            }
        })
    }
}
