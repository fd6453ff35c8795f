//! One face of a worker: its link service, its channel to a socket, its timers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use namewire_links::{LinkOptions, LinkService};
use namewire_packet::{FaceId, nfd::FacePersistency, nfd::FaceUri};
use namewire_shares::{HolderId, Pool};

use super::outage::{NO_TIMER, Outage};
use super::path::Path;
use super::socket_table::SocketTable;
use crate::datagram_socket::DatagramSocket;
use crate::prepaid::Prepaid;
use crate::remote::Destination;
use crate::stream::Stream;
use crate::{FaceCounters, FaceInfo};

/// The holder of a face's place. `holder` is the holder whose packets the face carries.
pub(super) fn place_holder(holder: HolderId, persistency: FacePersistency) -> HolderId {
    if persistency == FacePersistency::OnDemand { holder } else { HolderId::MANAGEMENT }
}

pub(super) struct Face {
    pub(super) id: FaceId,
    /// The face that it is a lane link of, or itself.
    pub(super) part_of: FaceId,
    /// Whose share of the pools it uses.
    pub(super) holder: HolderId,
    /// The holder of its place among the faces.
    pub(super) place: HolderId,
    pub(super) channel: Channel,
    pub(super) link: LinkService,
    pub(super) info: FaceInfo,
    pub(super) published: Arc<FaceCounters>,
    pub(super) last_received_ns: u64,
    pub(super) made_ns: u64,
    /// In the list of faces to publish or flush.
    pub(super) is_touched: bool,
    /// In the list of sources with a turn to come.
    pub(super) is_ready: bool,
    pub(super) has_idle_timer: bool,
    pub(super) has_reassembly_timer: bool,
    /// When the timer of Acks comes due, or [`NO_TIMER`].
    pub(super) acks_timer_ns: u64,
    /// The same for retransmissions.
    pub(super) retransmission_timer_ns: u64,
    /// Memory that is counted for it in the pools of reassembly and of unacknowledged frames.
    pub(super) reassembly_bytes: u64,
    pub(super) unacknowledged_bytes: u64,
    /// What those who ask it pay for.
    pub(super) prepaid: Prepaid,
    pub(super) spoke_lp: bool,
    /// When the network first reported that the peer cannot be reached; 0: it has not, or the peer has sent something
    /// since.
    pub(super) reported_ns: u64,
    pub(super) path: Path,
    /// For a permanent datagram face that is down.
    pub(super) outage: Option<Box<Outage>>,
}

impl Face {
    /// How many of these packets that it sent are paid for by those who asked it.
    pub(super) fn spend_prepaid(&mut self, packets: usize) -> usize {
        self.prepaid.spend(self.link.counters().out_interests, packets)
    }

    pub(super) fn new(
        id: FaceId,
        holder: HolderId,
        channel: Channel,
        link: LinkOptions,
        info: FaceInfo,
        now_ns: u64,
    ) -> Self {
        Face {
            id,
            part_of: id,
            holder,
            place: place_holder(holder, info.persistency),
            channel,
            link: LinkService::new(link),
            path: Path::new(&info),
            info,
            published: Arc::default(),
            last_received_ns: now_ns,
            made_ns: now_ns,
            is_touched: false,
            is_ready: false,
            has_idle_timer: false,
            has_reassembly_timer: false,
            acks_timer_ns: NO_TIMER,
            retransmission_timer_ns: NO_TIMER,
            reassembly_bytes: 0,
            unacknowledged_bytes: 0,
            prepaid: Prepaid::default(),
            spoke_lp: false,
            reported_ns: 0,
            outage: None,
        }
    }

    /// True if a connection must bring a packet within some time: any host can open one.
    pub(super) fn is_of_stranger(&self) -> bool {
        matches!(self.channel, Channel::Stream(_))
            && self.info.persistency == FacePersistency::OnDemand
            && !matches!(self.info.remote, FaceUri::Fd(_) | FaceUri::Unix(_))
    }

    /// Counts the memory for unfinished packets. Discards some if the holder has its share.
    #[inline]
    pub(super) fn settle_reassembly(&mut self, pool: &mut Pool) {
        let bytes = self.link.reassembly_memory_bytes() as u64;
        if bytes != self.reassembly_bytes {
            self.change_reassembly(pool, bytes);
        }
    }

    fn change_reassembly(&mut self, pool: &mut Pool, mut bytes: u64) {
        if bytes > self.reassembly_bytes
            && let Err(refusal) = pool.may_take(self.holder, bytes - self.reassembly_bytes)
        {
            pool.count_refusal(self.holder, refusal);
            self.link.shed_reassembly(self.reassembly_bytes as usize);
            bytes = self.link.reassembly_memory_bytes() as u64;
        }
        pool.give_back(self.holder, self.reassembly_bytes);
        pool.take(self.holder, bytes);
        self.reassembly_bytes = bytes;
    }

    /// Counts the memory for unacknowledged frames.
    pub(super) fn settle_unacknowledged(&mut self, pool: &mut Pool) {
        let bytes = self.link.unacknowledged_memory_bytes() as u64;
        if bytes != self.unacknowledged_bytes {
            pool.give_back(self.holder, self.unacknowledged_bytes);
            pool.take(self.holder, bytes);
            self.unacknowledged_bytes = bytes;
        }
    }

    /// Reports the length of the send queue to the link service if it needs it.
    ///
    /// N.B. in the middle of a batch, the queue holds what a flush is about to write, and may look long. The next
    /// measurement is at the beginning of a later batch, before the first mark is due.
    #[inline]
    pub(super) fn look_at_queue(&mut self, now_ns: u64, sockets: &SocketTable) {
        if self.link.wants_queue_length(now_ns) {
            self.measure_queue(now_ns, sockets);
        }
    }

    #[cold]
    fn measure_queue(&mut self, now_ns: u64, sockets: &SocketTable) {
        let bytes = match &self.channel {
            Channel::Stream(stream) => stream.waiting_bytes(),
            Channel::Datagram { socket, .. } => sockets.get(*socket).map_or(0, DatagramSocket::waiting_bytes),
            Channel::Down => 0,
        };
        self.link.note_queue_length(now_ns, bytes);
    }

    /// Frames become as large as the face may have them and its path takes them.
    pub(super) fn apply_mtu(&mut self) {
        self.link.set_mtu(self.info.mtu.min(self.path.mtu()));
    }

    pub(super) fn publish(&self) {
        self.published.publish(self.link.counters());
        self.published.path_mtu.store(self.path.mtu() as u64, Ordering::Relaxed);
        self.published.last_received_ns.store(self.last_received_ns, Ordering::Relaxed);
    }
}

pub(super) enum Channel {
    /// A connected stream.
    Stream(Stream),
    /// A permanent stream face that is not connected.
    Down,
    /// A remote of a datagram socket; `destination` on a shared one, `None` on a connected one.
    Datagram { socket: usize, destination: Option<Destination> },
}
