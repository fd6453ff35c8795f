//! Control messages: what the kernel and the router exchange about one message in addition to its bytes (`cmsg(3)`).
//!
//! ```text
//!   │ length │ level │ type │ value │ fill │ the next ...
//!   0        8       12     16                             on 64-bit systems
//! ```
//!
//! Two kinds are used: the size of the datagrams that one message consists of (segmentation offload), and our own
//! address in a datagram of a socket that is bound to all addresses.
//!
//! Limit: [`CONTROL_BYTES`], room for one of each kind.

use std::mem;
use std::net::IpAddr;

/// The longest: the segment size as 4 bytes (24), and our IPv6 address (40).
const CONTROL_BYTES: usize = 64;

// SAFETY: the functions only compute a size.
const _: () = unsafe {
    let segment = libc::CMSG_SPACE(size_of::<libc::c_int>() as u32);
    assert!((segment + libc::CMSG_SPACE(size_of::<libc::in6_pktinfo>() as u32)) as usize <= CONTROL_BYTES);
};

/// The control messages of one message, back to back.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(super) struct Control {
    bytes: [u8; CONTROL_BYTES],
    /// How many of them count.
    len: usize,
}

/// A value that the kernel puts into a control message.
///
/// # Safety
///
/// Any bytes are a value of it.
unsafe trait Value: Copy {}

// SAFETY: all are integers, or structures of integers.
unsafe impl Value for u16 {}
// SAFETY: as above.
unsafe impl Value for libc::c_int {}
// SAFETY: as above.
unsafe impl Value for libc::cmsghdr {}
// SAFETY: as above.
unsafe impl Value for libc::in_pktinfo {}
// SAFETY: as above.
unsafe impl Value for libc::in6_pktinfo {}

impl Control {
    pub(super) const NONE: Self = Control { bytes: [0; CONTROL_BYTES], len: 0 };

    /// Where the kernel reads or writes control messages, and how many bytes it may write.
    pub(super) fn room(&mut self) -> (*mut libc::c_void, usize) {
        (self.bytes.as_mut_ptr().cast(), CONTROL_BYTES)
    }

    /// Bytes that count.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Takes the number of bytes that the kernel has written.
    pub(super) fn set_len(&mut self, bytes: usize) {
        self.len = bytes.min(CONTROL_BYTES);
    }

    /// To send: the message is a run of datagrams of this size.
    pub(super) fn add_segment_bytes(&mut self, bytes: u16) {
        self.add(libc::SOL_UDP, libc::UDP_SEGMENT, bytes);
    }

    /// To send: our address in the datagrams.
    pub(super) fn add_own_address(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => {
                let ipi_spec_dst = libc::in_addr { s_addr: u32::from(address).to_be() };
                let info = libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst, ipi_addr: libc::in_addr { s_addr: 0 } };
                self.add(libc::IPPROTO_IP, libc::IP_PKTINFO, info);
            }
            IpAddr::V6(address) => {
                let ipi6_addr = libc::in6_addr { s6_addr: address.octets() };
                self.add(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, libc::in6_pktinfo { ipi6_addr, ipi6_ifindex: 0 });
            }
        }
    }

    /// Received: the size of the datagrams of a message, if the kernel says that there are several.
    pub(super) fn segment_bytes(&self) -> Option<usize> {
        let bytes: libc::c_int = self.find(libc::SOL_UDP, libc::UDP_GRO)?;
        usize::try_from(bytes).ok().filter(|bytes| *bytes > 0)
    }

    /// Received: the address of ours that the datagram was sent to, or at which it arrived if it went to a group.
    pub(super) fn own_address(&self) -> Option<IpAddr> {
        if let Some(info) = self.find::<libc::in_pktinfo>(libc::IPPROTO_IP, libc::IP_PKTINFO) {
            return Some(IpAddr::from(u32::from_be(info.ipi_spec_dst.s_addr).to_be_bytes()));
        }
        let info: libc::in6_pktinfo = self.find(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO)?;
        Some(IpAddr::from(info.ipi6_addr.s6_addr)).filter(|address| !address.is_multicast())
    }

    fn add<T: Value>(&mut self, level: libc::c_int, kind: libc::c_int, value: T) {
        // SAFETY: cmsghdr is integers, and the functions compute sizes.
        let (mut header, length, space): (libc::cmsghdr, _, _) = unsafe {
            (mem::zeroed(), libc::CMSG_LEN(size_of::<T>() as u32), libc::CMSG_SPACE(size_of::<T>() as u32) as usize)
        };
        (header.cmsg_len, header.cmsg_level, header.cmsg_type) = (length as _, level, kind);
        let place = &mut self.bytes[self.len..self.len + space];
        // SAFETY: `place` has room for header and value, as the kernel lays them out; both are written as a whole.
        unsafe {
            place.as_mut_ptr().cast::<libc::cmsghdr>().write_unaligned(header);
            place.as_mut_ptr().add(HEADER_BYTES).cast::<T>().write_unaligned(value);
        }
        self.len += space;
    }

    fn find<T: Value>(&self, level: libc::c_int, kind: libc::c_int) -> Option<T> {
        let mut rest = &self.bytes[..self.len];
        loop {
            let header: libc::cmsghdr = read(rest)?;
            let bytes: usize = header.cmsg_len as _; // the width depends on the C library
            let value_bytes = bytes.checked_sub(HEADER_BYTES).filter(|bytes| *bytes <= rest.len())?;
            if (header.cmsg_level, header.cmsg_type) == (level, kind) && value_bytes >= size_of::<T>() {
                return read(rest.get(HEADER_BYTES..)?);
            }
            // SAFETY: computes a size.
            let space = unsafe { libc::CMSG_SPACE(value_bytes as u32) } as usize;
            rest = rest.get(space..)?;
        }
    }
}

/// Where the value begins.
// SAFETY: computes a size.
const HEADER_BYTES: usize = unsafe { libc::CMSG_LEN(0) } as usize;

fn read<T: Value>(bytes: &[u8]) -> Option<T> {
    // SAFETY: there are that many bytes, and any bytes are a value of the type.
    (bytes.len() >= size_of::<T>()).then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_found_whatever_stands_before_it() {
        let addresses: [IpAddr; 2] = ["192.0.2.7".parse().unwrap(), "2001:db8::7".parse().unwrap()];
        for address in addresses {
            let mut control = Control::NONE;
            control.add(libc::SOL_UDP, libc::UDP_GRO, 1200 as libc::c_int);
            control.add_own_address(address);
            assert_eq!((control.segment_bytes(), control.own_address()), (Some(1200), Some(address)));
            for len in 0..control.len() {
                let mut cut = control;
                cut.set_len(len);
                assert!(cut.own_address().is_none() || len >= 24 + HEADER_BYTES + 12, "{len}");
            }
            let mut alone = Control::NONE;
            alone.add_own_address(address);
            assert_eq!((alone.segment_bytes(), alone.own_address()), (None, Some(address)));
        }
        assert_eq!((Control::NONE.segment_bytes(), Control::NONE.own_address()), (None, None));
    }

    #[test]
    fn a_length_that_makes_no_sense_ends_the_search() {
        let mut control = Control { bytes: [0; CONTROL_BYTES], len: CONTROL_BYTES };
        assert_eq!(control.own_address(), None);
        control.bytes = [0xFF; CONTROL_BYTES];
        assert_eq!(control.own_address(), None);
    }
}
