//! One face of a worker: its link, its way to a socket, its timers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use namewire_packet::FaceId;

use super::outages::Outage;
use crate::datagram_socket::DatagramSocket;
use crate::remote::Remote;
use crate::stream::Stream;
use crate::{FaceCounters, FaceInfo, LinkService};

pub(super) struct Face {
    pub(super) id: FaceId,
    pub(super) channel: Channel,
    pub(super) link: LinkService,
    pub(super) info: FaceInfo,
    pub(super) published: Arc<FaceCounters>,
    pub(super) last_received_ns: u64,
    /// In `SocketDriver::touched`.
    pub(super) is_touched: bool,
    /// In `SocketDriver::ready`.
    pub(super) is_ready: bool,
    pub(super) has_idle_timer: bool,
    pub(super) has_reassembly_timer: bool,
    /// When the timer of Acks comes due, or [`NO_TIMER`].
    pub(super) acks_timer_ns: u64,
    /// The same of retransmissions.
    pub(super) retransmission_timer_ns: u64,
    pub(super) spoke_lp: bool,
    /// When the network first said that the peer cannot be reached; 0: it has not, or we have heard
    /// from the peer since.
    pub(super) reported_ns: u64,
    /// Of a permanent datagram face that is down.
    pub(super) outage: Option<Box<Outage>>,
}

impl Face {
    /// Tells the link service how long the send queue is if it must know.
    ///
    /// N.B. in the midst of a batch the queue holds what a flush is going to write, and may look long.
    /// The next look is at the beginning of a later batch, before the first mark is due.
    #[inline]
    pub(super) fn look_at_queue(&mut self, now_ns: u64, sockets: &[Option<DatagramSocket>]) {
        if self.link.wants_queue_length(now_ns) {
            self.measure_queue(now_ns, sockets);
        }
    }

    #[cold]
    fn measure_queue(&mut self, now_ns: u64, sockets: &[Option<DatagramSocket>]) {
        let octets = match &self.channel {
            Channel::Stream(stream) => stream.waiting_octets(),
            Channel::Datagram { socket, .. } => {
                sockets.get(*socket).and_then(Option::as_ref).map_or(0, DatagramSocket::waiting_octets)
            }
            Channel::Down => 0,
        };
        self.link.note_queue_length(now_ns, octets);
    }

    pub(super) fn publish(&self) {
        self.published.publish(self.link.counters());
        self.published.last_received_ns.store(self.last_received_ns, Ordering::Relaxed);
    }
}

/// A timer that is not set.
pub(super) const NO_TIMER: u64 = u64::MAX;

pub(super) enum Channel {
    /// A connected stream.
    Stream(Stream),
    /// A permanent stream face between connections.
    Down,
    /// A remote of a datagram socket; `destination` on a shared one, `None` on a connected one.
    Datagram { socket: usize, destination: Option<Remote> },
}
