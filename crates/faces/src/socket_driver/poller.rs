//! Poller: which sockets are ready? It has one epoll instance.
//!
//! The kernel reports a socket again and again while it has input, at most [`EVENTS_PER_WAIT`] sockets at a time. If
//! thousands have input, the sockets that already wait for their turns would keep the kernel from reporting others. So
//! the driver *mutes* a stream that waits: it does not watch the stream for input until its turns have drained it.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use namewire_packet::FaceId;
use rustix::event::{Timespec, epoll};

use crate::Waker;
use crate::stream::Stream;

/// A longer sleep ends early, which does no harm: epoll counts milliseconds in 31 bits.
const LONGEST_SLEEP: Duration = Duration::from_secs(24 * 3600);

/// Sockets reported as ready by one system call; the others follow with the next.
pub(super) const EVENTS_PER_WAIT: usize = 256;

/// While memory always has something to read, descriptors are looked at once in this many waits.
const WAITS_PER_LOOK: u32 = 16;

/// epoll data: a face id, or one of these.
const WAKER_TOKEN: u64 = u64::MAX;
const DATAGRAM_TOKEN: u64 = 1 << 63;
const PEER_TOKEN: u64 = 1 << 62;

/// A watched socket.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The socket of a stream face.
    Stream(FaceId),
    /// A datagram socket by its index.
    Datagrams(usize),
    /// The descriptor on which the other end of that port says that it leaves.
    Peer(usize),
}

impl Source {
    fn token(self) -> epoll::EventData {
        epoll::EventData::new_u64(match self {
            Source::Stream(face) => face.0,
            Source::Datagrams(index) => DATAGRAM_TOKEN | index as u64,
            Source::Peer(index) => PEER_TOKEN | index as u64,
        })
    }
}

/// What a source can do now.
#[derive(Clone, Copy)]
pub(super) struct Readiness {
    pub(super) source: Source,
    pub(super) is_readable: bool,
    pub(super) is_writable: bool,
}

/// The epoll instance of a worker.
pub(super) struct Poller {
    epoll: OwnedFd,
    waker: Waker,
    /// Waits since the last look at descriptors.
    skipped: u32,
}

impl Poller {
    pub(super) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let waker = Waker::new()?;
        let token = epoll::EventData::new_u64(WAKER_TOKEN);
        epoll::add(&epoll, waker.descriptor(), token, epoll::EventFlags::IN)?;
        Ok(Poller { epoll, waker, skipped: 0 })
    }

    pub(super) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Watches a socket for input.
    pub(super) fn watch(&self, socket: impl AsFd, source: Source) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, source.token(), epoll::EventFlags::IN)?)
    }

    /// Watches a datagram socket for input, and for room to write while it is blocked.
    pub(super) fn watch_room(&self, socket: impl AsFd, source: Source, is_blocked: bool) {
        let mut flags = epoll::EventFlags::IN;
        if is_blocked {
            flags |= epoll::EventFlags::OUT;
        }
        // Can fail only for lack of memory, and an existing watch needs none.
        let _ = epoll::modify(&self.epoll, socket, source.token(), flags);
    }

    /// Watches a stream for room to write while it is blocked, and for input unless it is held or muted.
    pub(super) fn watch_stream(&self, stream: &Stream, face: FaceId) {
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::IN, !stream.is_held && !stream.is_muted);
        flags.set(epoll::EventFlags::OUT, stream.is_blocked);
        // Can fail only for lack of memory, and an existing watch needs none.
        let _ = epoll::modify(&self.epoll, &stream.socket, Source::Stream(face).token(), flags);
    }

    /// Stops watching a socket. Fails only if epoll no longer watches it, which is the aim.
    pub(super) fn forget(&self, socket: impl AsFd) {
        let _ = epoll::delete(&self.epoll, socket);
    }

    /// Whether a wait may leave descriptors alone because memory has something to read. So a worker that is busy with
    /// ports makes a system call for sockets and messages only now and then.
    pub(super) fn may_skip_look(&mut self) -> bool {
        self.skipped += 1;
        self.skipped < WAITS_PER_LOOK
    }

    /// Sleeps until a source is ready, the waker wakes it or `timeout` is over, and fills `ready`. True if something
    /// was ready.
    pub(super) fn wait(
        &mut self,
        timeout: Option<Duration>,
        ready: &mut arrayvec::ArrayVec<Readiness, EVENTS_PER_WAIT>,
    ) -> io::Result<bool> {
        self.skipped = 0;
        let timeout = timeout.map(|timeout| {
            let timeout = timeout.min(LONGEST_SLEEP);
            Timespec { tv_sec: timeout.as_secs() as _, tv_nsec: timeout.subsec_nanos() as _ }
        });
        let mut space = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS_PER_WAIT];
        let events = match epoll::wait(&self.epoll, &mut space, timeout.as_ref()) {
            Ok((events, _)) => events,
            Err(rustix::io::Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        for event in &*events {
            let (flags, data) = (event.flags, event.data);
            let source = match data.u64() {
                WAKER_TOKEN => {
                    self.waker.reset();
                    continue;
                }
                token if token & (DATAGRAM_TOKEN | PEER_TOKEN) == PEER_TOKEN => {
                    Source::Peer((token & !PEER_TOKEN) as usize)
                }
                token if token & DATAGRAM_TOKEN != 0 => Source::Datagrams((token & !DATAGRAM_TOKEN) as usize),
                token => Source::Stream(FaceId(token)),
            };
            ready.push(Readiness {
                source,
                is_readable: flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR),
                is_writable: flags.contains(epoll::EventFlags::OUT),
            });
        }
        Ok(!events.is_empty())
    }
}
