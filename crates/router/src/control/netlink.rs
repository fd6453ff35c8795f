//! Lists that the kernel gives by netlink, and the socket on which it reports changes.
//!
//! Source: netlink(7), rtnetlink(7) and Documentation/userspace-api/netlink/intro.rst of Linux. A request is one
//! message to the kernel. The answer has many messages; a *part* (one read of the socket) has several. The last message
//! ends the list.
//!
//! ```text
//!   message    │ length 4 │ type 2 │ flags 2 │ sequence 4 │ port 4 │ payload │ fill │    lengths: without the fill,
//!   attribute  │ length 2 │ type 2 │ value │ fill │                                     with what is before it
//! ```
//!
//! Integers have the processor's order; the fill goes up to a multiple of 4 bytes. Every length is checked: at an
//! impossible length, the part or the list of attributes ends. The parsers of netlink-packet-route 0.28 were tried
//! here. They panic at some attributes that are shorter than expected, and another kernel may send such attributes.
//!
//! Cost: three system calls for a socket, one for the request, two for each part. Memory: one part, with the length
//! that the kernel reports. Limit: [`MESSAGES_MAX`] messages of an answer; the rest is not read.

use rustix::{
    io::retry_on_intr,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, connect, netlink::SocketAddrNetlink, recv,
        send, socket_with,
    },
};
use std::{io, os::fd::OwnedFd};

/// Messages read from one answer.
const MESSAGES_MAX: usize = 65_536;

/// Kinds and flags of messages (linux/netlink.h).
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;

/// The type of an attribute without its two flags, nested and network order (linux/netlink.h).
const NLA_TYPE_MASK: u16 = 0x3FFF;

const MESSAGE_HEADER_BYTES: usize = 16;
const ATTRIBUTE_HEADER_BYTES: usize = 4;

/// Groups of rtnetlink, as bits of an address: links, IPv4 addresses, IPv6 addresses (linux/rtnetlink.h).
const GROUPS: u32 = 0x1 | 0x10 | 0x100;

/// What the kernel can list.
#[derive(Clone, Copy, Debug)]
pub(super) enum List {
    Links,
    Addresses,
}

impl List {
    /// The question: a message whose payload is a header of zeroes, which means all.
    fn question(self) -> Vec<u8> {
        let (kind, header_bytes): (u16, usize) = match self {
            List::Links => (18, 16),    // RTM_GETLINK, struct ifinfomsg
            List::Addresses => (22, 8), // RTM_GETADDR, struct ifaddrmsg
        };
        let bytes = MESSAGE_HEADER_BYTES + header_bytes;
        let mut question = (bytes as u32).to_ne_bytes().to_vec();
        question.extend(kind.to_ne_bytes());
        question.extend((NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
        question.resize(bytes, 0);
        question
    }
}

/// Asks for a list and hands the payload of each entry to `take`.
pub(super) fn dump(list: List, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let socket = ask(list)?;
    let mut messages = 0;
    while messages < MESSAGES_MAX {
        let part = receive(&socket)?;
        let (count, end) = read_part(&part, &mut take);
        messages += count;
        if let Some(result) = end {
            return result;
        }
    }
    Ok(())
}

/// A socket on which the kernel will answer.
pub(super) fn ask(list: List) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // The kernel chooses our address. Its own is 0, and nobody else can send to a connected socket.
    bind(&socket, &SocketAddrNetlink::new(0, 0))?;
    connect(&socket, &SocketAddrNetlink::new(0, 0))?;
    send(&socket, &list.question(), SendFlags::empty())?;
    Ok(socket)
}

/// The next part of the answer, whole.
pub(super) fn receive(socket: &OwnedFd) -> io::Result<Vec<u8>> {
    let look = || recv(socket, &mut [0u8; 0][..], RecvFlags::PEEK | RecvFlags::TRUNC);
    let (_, bytes) = retry_on_intr(look)?;
    let mut part = vec![0; bytes];
    let (_, bytes) = retry_on_intr(|| recv(socket, &mut part[..], RecvFlags::empty()))?;
    part.truncate(bytes);
    Ok(part)
}

/// Hands the payload of each entry in a part of the answer to `take`. Returns how many messages there were, and the
/// result if the list ended.
pub(super) fn read_part(mut part: &[u8], take: &mut impl FnMut(&[u8])) -> (usize, Option<io::Result<()>>) {
    let mut messages = 0;
    while let Some((header, _)) = part.split_first_chunk::<MESSAGE_HEADER_BYTES>() {
        let &[a, b, c, d, kind_a, kind_b, ..] = header;
        let bytes = u32::from_ne_bytes([a, b, c, d]) as usize;
        let Some(payload) = part.get(MESSAGE_HEADER_BYTES..bytes) else { break };
        messages += 1;
        match u16::from_ne_bytes([kind_a, kind_b]) {
            NLMSG_DONE => return (messages, Some(Ok(()))),
            NLMSG_ERROR => {
                let code = payload.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
                return (messages, Some(Err(io::Error::from_raw_os_error(code.wrapping_neg()))));
            }
            _ => take(payload),
        }
        part = part.get(bytes.next_multiple_of(4)..).unwrap_or_default();
    }
    (messages, None)
}

/// The type and the value of each attribute, as far as their lengths can be.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (&[a, b, kind_a, kind_b], _) = bytes.split_first_chunk::<ATTRIBUTE_HEADER_BYTES>()?;
        let length = usize::from(u16::from_ne_bytes([a, b]));
        let value = bytes.get(ATTRIBUTE_HEADER_BYTES..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([kind_a, kind_b]) & NLA_TYPE_MASK, value))
    })
}

/// A socket that becomes readable when a link or an address has changed. It does not block.
pub(super) fn subscribe() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, None)?;
    bind(&socket, &SocketAddrNetlink::new(0, GROUPS))?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of this kind, with a length of its own.
    fn message(length: u32, kind: u16, payload: &[u8]) -> Vec<u8> {
        [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 10], payload].concat()
    }

    /// The entries, and how the list ended, with the system's number of an error.
    type Read = (Vec<Vec<u8>>, Option<Result<(), i32>>);

    fn read(part: &[u8]) -> Read {
        let mut payloads = Vec::new();
        let (messages, end) = read_part(part, &mut |payload: &[u8]| payloads.push(payload.to_vec()));
        assert_eq!(messages, payloads.len() + usize::from(end.is_some()));
        (payloads, end.map(|result| result.map_err(|error| error.raw_os_error().unwrap())))
    }

    #[test]
    fn messages_are_read_up_to_the_end() {
        let entry = message(18, 16, &[1, 2, 0, 0]); // two bytes of fill
        let other = message(16, 16, &[]);
        let done = message(20, 3, &[0; 4]);
        assert_eq!(read(&[&entry[..], &other].concat()), (vec![vec![1, 2], vec![]], None));
        assert_eq!(read(&[&entry[..], &done, &entry].concat()), (vec![vec![1, 2]], Some(Ok(()))));
        let refused = message(36, 2, &[&(-13i32).to_ne_bytes()[..], &[0; 16]].concat());
        assert_eq!(read(&[entry, refused].concat()), (vec![vec![1, 2]], Some(Err(13))));
    }

    #[test]
    fn a_message_with_a_length_that_cannot_be_ends_the_part() {
        let entry = message(18, 16, &[1, 2]); // its fill is missing, as at the end of a part it may
        assert_eq!(read(&entry), (vec![vec![1, 2]], None));
        for length in [0, 15, 19, 1 << 31, u32::MAX] {
            assert_eq!(read(&message(length, 16, &[1, 2])), (vec![], None), "{length}");
        }
        assert_eq!(read(&entry[..15]), (vec![], None));
        assert_eq!(read(&message(16, 2, &[])), (vec![], Some(Err(0))), "an error without a code");
        let lowest = message(20, 2, &i32::MIN.to_ne_bytes());
        assert_eq!(read(&lowest), (vec![], Some(Err(i32::MIN))));
    }

    #[test]
    fn attributes_are_read_as_far_as_they_can_be() {
        let attribute =
            |length: u16, kind: u16, value: &[u8]| [&length.to_ne_bytes(), &kind.to_ne_bytes(), value].concat();
        let read = |bytes: &[u8]| attributes(bytes).map(|(kind, value)| (kind, value.to_vec())).collect::<Vec<_>>();
        let name = attribute(7, 3, &[b'l', b'o', 0, 0]);
        let nested = attribute(4, 0x8000 | 0x4000 | 18, &[]);
        let expected = [(3, vec![b'l', b'o', 0]), (18, vec![])];
        assert_eq!(read(&[&name[..], &nested].concat()), expected);
        for length in [0, 3, 17, u16::MAX] {
            let wrong = attribute(length, 4, &[0; 4]);
            assert_eq!(read(&[&name[..], &nested, &wrong, &name].concat()), expected, "{length}");
        }
        assert_eq!(read(&name[..7]), expected[..1], "the last has no fill");
        assert_eq!(read(&name[..6]), []);
    }
}
