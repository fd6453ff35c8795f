//! The control socket: messages and at most one file with each. Never blocks.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use crate::Broken;
use crate::message::{MESSAGE_BYTES, Message};

/// What the control socket had for us.
#[derive(Debug)]
pub(crate) enum Received {
    /// A message, and the file that came with it.
    Message(Message, Option<OwnedFd>),
    /// Nothing now.
    Nothing,
    /// The peer closed the connection.
    End,
    /// Something that is no message.
    Broken(Broken),
}

/// Sends one message.
///
/// # Errors
/// `WouldBlock` if the peer does not read its messages, `BrokenPipe` if it is gone, and others of the kernel.
pub(crate) fn send(socket: BorrowedFd<'_>, message: &Message, file: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files: Vec<_> = file.into_iter().collect();
    if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let bytes = message.encode();
    loop {
        match sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(_) => return Ok(()), // All bytes: messages of this kind of socket are not split.
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Tells the peer why the connection ends. That it may be gone already does not matter.
pub(crate) fn send_disconnect(socket: BorrowedFd<'_>, reason: &str) {
    let _ = send(socket, &Message::Disconnect { code: 0, reason: reason.into() }, None);
}

/// Receives one message, if there is one. Files that nobody asked for are closed.
///
/// # Errors
/// Those of the kernel. A connection that the peer reset is [`Received::End`].
pub(crate) fn receive(socket: BorrowedFd<'_>) -> io::Result<Received> {
    let mut bytes = [0; MESSAGE_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let result = match recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
        Ok(result) => result,
        Err(Errno::AGAIN | Errno::INTR) => return Ok(Received::Nothing),
        Err(Errno::CONNRESET) => return Ok(Received::End),
        Err(error) => return Err(error.into()),
    };
    let mut files = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            files.extend(rights);
        }
    }
    if result.bytes == 0 {
        return Ok(Received::End);
    }
    if files.len() > 1 || result.flags.contains(ReturnFlags::CTRUNC) {
        return Ok(Received::Broken(Broken("more than one file in a message")));
    }
    if result.bytes != MESSAGE_BYTES || result.flags.contains(ReturnFlags::TRUNC) {
        return Ok(Received::Broken(Broken("invalid message size")));
    }
    Ok(match Message::decode(&bytes) {
        Some(message) => Received::Message(message, files.pop()),
        None => Received::Broken(Broken("unknown message type")),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::fd::AsFd;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;
    use crate::doorbell;

    /// Two ends of a control connection.
    pub(crate) fn pair() -> (OwnedFd, OwnedFd) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).expect("a pair")
    }

    #[test]
    fn messages_arrive_with_their_files() {
        let (here, there) = pair();
        assert!(matches!(receive(there.as_fd()), Ok(Received::Nothing)));
        let file = doorbell::create().expect("a file");
        send(here.as_fd(), &Message::Ack, Some(file.as_fd())).expect("sent");
        send(here.as_fd(), &Message::Ack, None).expect("sent");
        assert!(matches!(receive(there.as_fd()), Ok(Received::Message(Message::Ack, Some(_)))));
        assert!(matches!(receive(there.as_fd()), Ok(Received::Message(Message::Ack, None))));
        drop(here);
        assert!(matches!(receive(there.as_fd()), Ok(Received::End)));
        assert!(send(there.as_fd(), &Message::Ack, None).is_err());
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let (here, there) = pair();
        let too_long = [0; MESSAGE_BYTES + 1];
        for bytes in [&too_long[..1], &too_long[..127], &too_long[..128], &too_long] {
            rustix::net::send(&here, bytes, SendFlags::empty()).expect("sent");
            assert!(matches!(receive(there.as_fd()), Ok(Received::Broken(_))), "{} bytes", bytes.len());
        }
        for count in 2..5 {
            let file = doorbell::create().expect("a file");
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            let files = vec![file.as_fd(); count];
            assert!(control.push(SendAncillaryMessage::ScmRights(&files)));
            let ack = Message::Ack.encode();
            sendmsg(&here, &[IoSlice::new(&ack)], &mut control, SendFlags::empty()).expect("sent");
            assert!(matches!(receive(there.as_fd()), Ok(Received::Broken(_))), "{count} files");
        }
    }
}
