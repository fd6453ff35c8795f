//! What the application waits for in TagNet: replies to its pulls, and the packets of its receiver.
//!
//! A reply repeats the nonce of its request; so the nonce finds the pull that it answers. A pull is forgotten when its
//! last reply has come, or when the application drops it. Replies that come later are counted and dropped.
//!
//! Limits: as many pulls as pending Interests ([`crate::PENDING_INTERESTS_MAX`], together); each pull takes the replies
//! that it asked for; the receiver's queue has [`crate::tag::INCOMING_TAG_PACKETS_MAX`].

use namewire_packet::tag::{TagPacket, TagPacketError, TagPacketKind};
use std::collections::{HashMap, hash_map};
use tokio::sync::mpsc;

/// A tag packet that outlives the buffer it arrived in.
#[derive(Debug)]
pub(crate) struct TagPacketBuf(Box<[u8]>);

impl TagPacketBuf {
    /// Checks the packet and copies it.
    pub(crate) fn new(wire: &[u8]) -> Result<Self, TagPacketError> {
        TagPacket::parse(wire)?;
        Ok(TagPacketBuf(wire.into()))
    }

    /// The packet. Cost: one parse, no copy.
    pub(crate) fn packet(&self) -> TagPacket<'_> {
        TagPacket::parse(&self.0).expect("checked when it was made, and never changed")
    }
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The application gets it.
    Delivered,
    /// A reply to no pull that waits.
    Unsolicited,
    /// No receiver is open.
    Unserved,
    /// The receiver's queue is full.
    Busy,
}

#[derive(Debug)]
struct PendingPull {
    replies: mpsc::UnboundedSender<TagPacketBuf>,
    /// Replies still to come.
    left: u32,
}

/// See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct TagExchange {
    pulls: HashMap<u32, PendingPull>,
    receiver: Option<mpsc::Sender<TagPacketBuf>>,
}

impl TagExchange {
    /// Waits for `left` replies with this nonce. False if another pull has it.
    pub(crate) fn begin(&mut self, nonce: u32, left: u32, replies: mpsc::UnboundedSender<TagPacketBuf>) -> bool {
        match self.pulls.entry(nonce) {
            hash_map::Entry::Occupied(_) => false,
            hash_map::Entry::Vacant(entry) => {
                entry.insert(PendingPull { replies, left });
                true
            }
        }
    }

    /// Waits for no more replies with this nonce.
    pub(crate) fn forget(&mut self, nonce: u32) {
        self.pulls.remove(&nonce);
    }

    /// Gives pulls and pushes to this receiver from now on. False if another is open.
    pub(crate) fn open(&mut self, receiver: mpsc::Sender<TagPacketBuf>) -> bool {
        let is_free = self.receiver.as_ref().is_none_or(mpsc::Sender::is_closed);
        if is_free {
            self.receiver = Some(receiver);
        }
        is_free
    }

    pub(crate) fn deliver(&mut self, buffer: TagPacketBuf) -> Delivery {
        let packet = buffer.packet();
        if packet.kind == TagPacketKind::Reply {
            let nonce = packet.nonce;
            return self.deliver_reply(nonce, buffer);
        }
        match self.receiver.as_ref().map(|receiver| receiver.try_send(buffer)) {
            Some(Ok(())) => Delivery::Delivered,
            Some(Err(mpsc::error::TrySendError::Full(_))) => Delivery::Busy,
            None | Some(Err(mpsc::error::TrySendError::Closed(_))) => Delivery::Unserved,
        }
    }

    fn deliver_reply(&mut self, nonce: u32, buffer: TagPacketBuf) -> Delivery {
        let Some(pull) = self.pulls.get_mut(&nonce) else { return Delivery::Unsolicited };
        pull.left -= 1;
        let sent = pull.replies.send(buffer);
        if pull.left == 0 || sent.is_err() {
            self.pulls.remove(&nonce);
        }
        if sent.is_ok() { Delivery::Delivered } else { Delivery::Unsolicited }
    }
}
