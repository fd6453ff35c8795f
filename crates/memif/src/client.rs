//! Client: makes the shared memory and connects to a server.
//!
//! The memory is one file, region 0:
//!
//! ```text
//!   │ S2M ring │ M2S ring │ buffers of S2M, one per slot │ buffers of M2S │     each part begins at a multiple of 64
//! ```
//!
//! The server resets the rings when it gets `connect` (DPDK does this). So the client gives the buffers of M2S to the
//! server only after `connected`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;

use crate::control::{self, Received};
use crate::message::{AddRing, Init, MODE_ETHERNET, Message, SECRET_BYTES, VERSION};
use crate::receiving::ReceiveRing;
use crate::region::Memory;
use crate::ring::{Descriptor, Ring};
use crate::sending::{Buffers, TransmitRing};
use crate::server::{new_socket, padded};
use crate::{APPLICATION, Broken, FRAME_BYTES_MAX, Port, REGION_BYTES_MAX, RING_LOG2_MAX, doorbell, failed, memfd};

/// Bytes of a buffer, unless the options say otherwise: an Ethernet frame with 9,000 bytes, and some more.
pub const DEFAULT_BUFFER_BYTES: u32 = 9_216;

const BUFFER_BYTES_MIN: u32 = 64;
/// Parts of the region begin at a multiple of this, a cache line.
const ALIGN: u32 = 64;

/// Pause between two tries to connect while the server's queue of connections is full.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// Number of the interface at the server. Default 0.
    pub id: u32,
    /// Slots of each ring, as a power of two: 0 to 14. The server may allow less. Default 10: 1,024 slots.
    pub ring_log2: u8,
    /// Bytes of a buffer: 64 to 65,535. Default [`DEFAULT_BUFFER_BYTES`].
    pub buffer_bytes: u32,
    /// How this software calls itself: at most 31 bytes. Default "namewire".
    pub name: String,
    /// What the server wants to know, 1 to 24 bytes without a zero byte. Default `None`.
    pub secret: Option<Vec<u8>>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        ClientOptions {
            id: 0,
            ring_log2: 10,
            buffer_bytes: DEFAULT_BUFFER_BYTES,
            name: APPLICATION.into(),
            secret: None,
        }
    }
}

/// The options, checked.
struct Wanted<'a> {
    options: &'a ClientOptions,
    secret: [u8; SECRET_BYTES],
}

impl<'a> Wanted<'a> {
    fn new(options: &'a ClientOptions) -> io::Result<Self> {
        let wrong = |text: String| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        if options.ring_log2 > RING_LOG2_MAX {
            return wrong(format!("ring of 2^{} slots: at most 2^{RING_LOG2_MAX}", options.ring_log2));
        }
        if !(BUFFER_BYTES_MIN..=FRAME_BYTES_MAX as u32).contains(&options.buffer_bytes) {
            let bytes = options.buffer_bytes;
            return wrong(format!("{bytes} bytes per buffer: must be {BUFFER_BYTES_MIN} to {FRAME_BYTES_MAX}"));
        }
        if options.name.len() > 31 {
            return wrong("a name has at most 31 bytes".into());
        }
        let layout = Layout::new(options.ring_log2, options.buffer_bytes);
        if layout.bytes > REGION_BYTES_MAX {
            return wrong(format!("{} bytes of shared memory: at most {REGION_BYTES_MAX}", layout.bytes));
        }
        let secret = options.secret.as_deref().map(padded).transpose()?.unwrap_or_default();
        Ok(Wanted { options, secret })
    }
}

/// Where the parts of the region are. See the module.
#[derive(Clone, Copy, Debug)]
struct Layout {
    ring_log2: u8,
    m2s_offset: u32,
    s2m_buffers: Buffers,
    m2s_buffers: Buffers,
    bytes: u64,
}

impl Layout {
    /// The buffers' offsets are right only if `bytes` is at most [`REGION_BYTES_MAX`].
    fn new(ring_log2: u8, buffer_bytes: u32) -> Self {
        let m2s_offset = Ring::bytes(ring_log2).next_multiple_of(ALIGN);
        let stride = buffer_bytes.next_multiple_of(ALIGN);
        let buffers = |offset| Buffers { offset, stride, bytes: buffer_bytes };
        let offset = 2 * m2s_offset;
        let all = u64::from(stride) << ring_log2;
        let m2s_buffers = buffers(offset.wrapping_add(all as u32));
        Layout { ring_log2, m2s_offset, s2m_buffers: buffers(offset), m2s_buffers, bytes: u64::from(offset) + 2 * all }
    }
}

/// Connects to the server at `path`. Blocks, at most for `timeout`.
///
/// # Errors
/// `InvalidInput` if an option is out of its range; `TimedOut`; `ConnectionRefused` if the server refuses, with its
/// reason, or no process listens; `NotFound` if there is no socket; `InvalidData` if the server breaks a rule, which
/// the text names; `ConnectionReset` if it goes away; and others of the kernel.
pub fn connect(path: &Path, options: &ClientOptions, timeout: Duration) -> io::Result<Port> {
    let wanted = Wanted::new(options)?;
    let deadline = Instant::now() + timeout;
    let address = SocketAddrUnix::new(path)?;
    let socket = new_socket()?;
    loop {
        match rustix::net::connect(&socket, &address) {
            Ok(()) => break,
            Err(Errno::AGAIN) if Instant::now() < deadline => std::thread::sleep(BUSY_PAUSE),
            Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(failed("connecting", error)),
        }
    }
    let talk = Talk { socket, deadline };
    establish(talk, &wanted).map(|(port, _)| port)
}

/// [`connect`] with a connected socket. Returns the memory file too.
#[cfg(test)]
pub(crate) fn connect_socket(
    socket: OwnedFd,
    options: &ClientOptions,
    timeout: Duration,
) -> io::Result<(Port, OwnedFd)> {
    establish(Talk { socket, deadline: Instant::now() + timeout }, &Wanted::new(options)?)
}

fn establish(talk: Talk, wanted: &Wanted<'_>) -> io::Result<(Port, OwnedFd)> {
    let Message::Hello(hello) = talk.hear()? else { return talk.give_up(Broken("unexpected message")) };
    if !(hello.version_min..=hello.version_max).contains(&VERSION) {
        return talk.give_up(Broken("incompatible memif version"));
    }
    let options = wanted.options;
    let layout = Layout::new(options.ring_log2.min(hello.ring_log2_max), options.buffer_bytes);
    let file = memfd::create(layout.bytes)?;
    let mut memory = Memory::default();
    memory.map(file.as_fd(), layout.bytes as usize, true).map_err(|e| failed("mapping shared memory", e))?;
    let memory = Arc::new(memory);
    let s2m = new_ring(&memory, 0, &layout, layout.s2m_buffers)?;
    let m2s = new_ring(&memory, layout.m2s_offset, &layout, layout.m2s_buffers)?;
    let s2m_doorbell = doorbell::create()?;
    let m2s_doorbell = doorbell::create()?;

    talk.ask(&init(wanted), None)?;
    talk.ask(&Message::AddRegion { index: 0, bytes: layout.bytes }, Some(file.as_fd()))?;
    talk.ask(&add_ring(true, 0, layout.ring_log2), Some(s2m_doorbell.as_fd()))?;
    talk.ask(&add_ring(false, layout.m2s_offset, layout.ring_log2), Some(m2s_doorbell.as_fd()))?;
    control::send(talk.socket.as_fd(), &Message::Connect { name: options.name.clone() }, None)?;
    let Message::Connected { .. } = talk.hear()? else { return talk.give_up(Broken("unexpected message")) };
    let port = Port {
        control: Arc::new(talk.socket),
        receiver: ReceiveRing::of_client(m2s, layout.m2s_buffers.bytes),
        transmitter: TransmitRing::of_client(s2m, layout.s2m_buffers),
        receive_doorbell: m2s_doorbell,
        transmit_doorbell: s2m_doorbell,
        id: options.id,
        peer_name: hello.name,
        ended: None,
    };
    Ok((port, file))
}

/// An empty ring whose descriptors name their buffers.
fn new_ring(memory: &Arc<Memory>, offset: u32, layout: &Layout, buffers: Buffers) -> Result<Ring, Broken> {
    let ring = Ring::new(memory.clone(), 0, offset, layout.ring_log2)?;
    ring.initialize();
    for slot in 0..ring.slots() {
        ring.write(slot, Descriptor { part: buffers.part(slot), has_next: false });
    }
    Ok(ring)
}

fn init(wanted: &Wanted<'_>) -> Message {
    let Wanted { options, secret } = wanted;
    let name = options.name.clone();
    Message::Init(Init { version: VERSION, id: options.id, mode: MODE_ETHERNET, secret: *secret, name })
}

fn add_ring(is_s2m: bool, offset: u32, ring_log2: u8) -> Message {
    Message::AddRing(AddRing { is_s2m, index: 0, region: 0, offset, ring_log2, private_header_bytes: 0 })
}

/// The conversation with the server.
struct Talk {
    socket: OwnedFd,
    deadline: Instant,
}

impl Talk {
    /// Sends a message and waits for `ack`.
    fn ask(&self, message: &Message, file: Option<BorrowedFd<'_>>) -> io::Result<()> {
        control::send(self.socket.as_fd(), message, file)?;
        match self.hear()? {
            Message::Ack => Ok(()),
            _ => self.give_up(Broken("unexpected message")),
        }
    }

    /// Waits for a message that is not `disconnect`.
    fn hear(&self) -> io::Result<Message> {
        loop {
            match control::receive(self.socket.as_fd())? {
                Received::Message(Message::Disconnect { reason, .. }, _) => {
                    let text = format!("server refused: {reason}");
                    return Err(io::Error::new(io::ErrorKind::ConnectionRefused, text));
                }
                Received::Message(message, _) => return Ok(message),
                Received::Nothing => self.wait()?,
                Received::End => {
                    return Err(io::Error::new(io::ErrorKind::ConnectionReset, "server left during the set-up"));
                }
                Received::Broken(broken) => return self.give_up(broken),
            }
        }
    }

    fn wait(&self) -> io::Result<()> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs().min(1 << 30) as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&left)) {
            Ok(0) => Err(io::Error::new(io::ErrorKind::TimedOut, "server does not answer")),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn give_up<T>(&self, broken: Broken) -> io::Result<T> {
        control::send_disconnect(self.socket.as_fd(), broken.0);
        Err(broken.into())
    }
}
