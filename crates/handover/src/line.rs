//! The line between the old program and the new one: messages with descriptors over a stream of a Unix socket pair.
//!
//! ```text
//!   offset 0      4        8         12          16                      then one byte for each
//!          │ kind │ text   │ bytes   │ descrip-  │ text … │ bytes … │    [`DESCRIPTORS_AT_ONCE`] descriptors,
//!          │      │ length │ length  │ tors      │        │         │    which come with it (SCM_RIGHTS)
//! ```
//!
//! All numbers are u32, little-endian. The text is JSON.
//!
//! Limits: [`TEXT_BYTES_MAX`], [`BYTES_MAX`] and [`DESCRIPTORS_MAX`] for each message. A message beyond them ends the
//! conversation ([`LineError::TooLarge`]). A read or write that makes no progress for the line's time-out ends it, too.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    io::{self, IoSlice, IoSliceMut, Read, Write},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    os::unix::net::UnixStream,
    time::Duration,
};

use crate::messages::Kind;

/// Most bytes of the text of a message.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// Most bytes behind the text: a face keeps at most some 16 MiB.
const BYTES_MAX: usize = 64 << 20;

/// Most descriptors of a message.
pub const DESCRIPTORS_MAX: usize = 1024;

/// Descriptors of one system call; the kernel takes 253.
const DESCRIPTORS_AT_ONCE: usize = 200;

const HEADER_BYTES: usize = 16;

/// The longest time-out of a line: an hour.
pub const WAIT_MAX: Duration = Duration::from_secs(3600);

/// Why the conversation ended.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// The other end has closed the line, or has ended.
    #[error("it closed the connection")]
    Closed,
    /// Nothing came, or nothing was taken, for the line's time-out.
    #[error("it did not answer in time")]
    TimedOut,
    /// A message is larger than it may be.
    #[error("it sent a message that is too large")]
    TooLarge,
    /// A message cannot be read, for this reason.
    #[error("it sent a message that cannot be read: {0}")]
    Malformed(String),
    /// The socket failed.
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for LineError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                LineError::Closed
            }
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => LineError::TimedOut,
            _ => LineError::Io(error),
        }
    }
}

/// One message.
#[derive(Debug)]
pub struct Message {
    /// What it is about.
    pub kind: Kind,
    text: Vec<u8>,
    /// What is not text.
    pub bytes: Vec<u8>,
    /// In the order in which they were sent.
    pub descriptors: Vec<OwnedFd>,
}

impl Message {
    /// The text. Fields that are not known here are skipped.
    ///
    /// # Errors
    /// [`LineError::Malformed`].
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, LineError> {
        serde_json::from_slice(&self.text).map_err(|error| LineError::Malformed(error.to_string()))
    }
}

/// One end of the line.
#[derive(Debug)]
pub struct Line {
    socket: UnixStream,
}

impl Line {
    /// Both ends.
    ///
    /// # Errors
    /// If no descriptor is left.
    pub fn pair() -> io::Result<(Line, OwnedFd)> {
        let (here, there) = UnixStream::pair()?;
        Ok((Line { socket: here }, there.into()))
    }

    /// The end that this process was given.
    pub fn of(descriptor: OwnedFd) -> Line {
        Line { socket: descriptor.into() }
    }

    /// From now on, a read or write fails after this long without progress, at most [`WAIT_MAX`].
    ///
    /// # Errors
    /// If the descriptor is no socket.
    pub fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        let timeout = timeout.clamp(Duration::from_millis(1), WAIT_MAX);
        self.socket.set_read_timeout(Some(timeout))?;
        self.socket.set_write_timeout(Some(timeout))
    }

    /// Sends a message.
    ///
    /// # Errors
    /// If it does not get there, or is too large.
    pub fn send(
        &self,
        kind: Kind,
        text: &impl Serialize,
        bytes: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), LineError> {
        let text = serde_json::to_vec(text).map_err(|error| LineError::Malformed(error.to_string()))?;
        if text.len() > TEXT_BYTES_MAX || bytes.len() > BYTES_MAX || descriptors.len() > DESCRIPTORS_MAX {
            return Err(LineError::TooLarge);
        }
        let mut head = Vec::with_capacity(HEADER_BYTES + text.len());
        for number in [kind.0, text.len() as u32, bytes.len() as u32, descriptors.len() as u32] {
            head.extend(number.to_le_bytes());
        }
        head.extend(text);
        self.write_all(&head)?;
        self.write_all(bytes)?;
        descriptors.chunks(DESCRIPTORS_AT_ONCE).try_for_each(|some| self.send_descriptors(some))
    }

    /// Waits for the next message of a kind that is known here.
    ///
    /// # Errors
    /// If none comes in time, or what comes cannot be read.
    pub fn receive(&self) -> Result<Message, LineError> {
        loop {
            let message = self.receive_any()?;
            if message.kind.is_known() {
                return Ok(message);
            }
        }
    }

    fn receive_any(&self) -> Result<Message, LineError> {
        let mut header = [0; HEADER_BYTES];
        (&self.socket).read_exact(&mut header)?;
        let number = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let [kind, text, bytes, descriptors] = [0, 4, 8, 12].map(number);
        let [text, bytes, count] = [text, bytes, descriptors].map(|number| number as usize);
        if text > TEXT_BYTES_MAX || bytes > BYTES_MAX || count > DESCRIPTORS_MAX {
            return Err(LineError::TooLarge);
        }
        let text = self.read_exactly(text)?;
        let bytes = self.read_exactly(bytes)?;
        let mut descriptors = Vec::with_capacity(count);
        while descriptors.len() < count {
            let before = descriptors.len();
            self.receive_descriptors(&mut descriptors)?;
            if descriptors.len() == before || descriptors.len() > count {
                return Err(LineError::Malformed("it has another number of descriptors than it says".to_owned()));
            }
        }
        Ok(Message { kind: Kind(kind), text, bytes, descriptors })
    }

    /// Grows with what comes, not with what is announced.
    fn read_exactly(&self, count: usize) -> Result<Vec<u8>, LineError> {
        let mut read = Vec::new();
        (&self.socket).take(count as u64).read_to_end(&mut read)?;
        if read.len() == count { Ok(read) } else { Err(LineError::Closed) }
    }

    /// Not `write`: the other end may have ended, which must not raise a signal.
    fn write_all(&self, mut bytes: &[u8]) -> Result<(), LineError> {
        while !bytes.is_empty() {
            let slice = [IoSlice::new(bytes)];
            let none = &mut SendAncillaryBuffer::default();
            match sendmsg(&self.socket, &slice, none, SendFlags::NOSIGNAL) {
                Ok(written) => bytes = &bytes[written..],
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
        Ok((&self.socket).flush()?)
    }

    fn send_descriptors(&self, descriptors: &[BorrowedFd<'_>]) -> Result<(), LineError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_AT_ONCE))];
        loop {
            let mut control = SendAncillaryBuffer::new(&mut space);
            if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
                return Err(LineError::TooLarge);
            }
            match sendmsg(&self.socket, &[IoSlice::new(b"d")], &mut control, SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
    }

    fn receive_descriptors(&self, into: &mut Vec<OwnedFd>) -> Result<(), LineError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_AT_ONCE))];
        let mut byte = [0];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let slice = &mut [IoSliceMut::new(&mut byte)];
            match recvmsg(&self.socket, slice, &mut control, RecvFlags::CMSG_CLOEXEC) {
                Err(rustix::io::Errno::INTR) => {}
                other => break other.map_err(io::Error::from)?,
            }
        };
        if received.bytes == 0 {
            return Err(LineError::Closed);
        }
        if received.flags.contains(ReturnFlags::CTRUNC) {
            return Err(LineError::Io(io::Error::other("this process has no descriptors left")));
        }
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                into.extend(descriptors);
            }
        }
        Ok(())
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
