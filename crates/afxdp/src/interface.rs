//! Facts about an interface, from the system: its name, and the length of its frames.
//!
//! Source: netdevice(7). Cost: a few system calls, only when a socket opens.
#![allow(unsafe_code, reason = "leaf: rustix has no call for the ioctl SIOCGIFMTU")]

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

/// The name of an interface; an error if there is no such interface.
pub(crate) fn name(interface: u32) -> io::Result<String> {
    // AF_XDP sockets know no ioctl; Unix sockets pass those about interfaces on.
    Ok(rustix::net::netdevice::index_to_name(UnixDatagram::unbound()?, interface)?)
}

/// The MTU of an interface: most bytes of a frame after its Ethernet header.
pub(crate) fn mtu(interface: u32) -> io::Result<usize> {
    let name = name(interface)?;
    let socket = UnixDatagram::unbound()?;
    let mut request =
        libc::ifreq { ifr_name: [0; libc::IFNAMSIZ], ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_mtu: 0 } };
    // The last place keeps its zero.
    for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()).take(libc::IFNAMSIZ - 1) {
        *place = byte as libc::c_char;
    }
    // SAFETY:
    // - the request reads the name, which ends with a zero, and writes the MTU into the same structure, which is alive;
    // - `socket` is open until the end of the function.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel wrote this variant; before, it was written above.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    usize::try_from(mtu).map_err(|_| io::ErrorKind::InvalidData.into())
}
