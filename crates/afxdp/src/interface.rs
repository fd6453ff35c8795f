//! What the system says about an interface: its receive queues, and the length of its frames.
//!
//! Source: Documentation/ABI/testing/sysfs-class-net-queues of Linux; netdevice(7) for the ioctl. The number of queues
//! is from /sys, so it is about the network namespace for which /sys was mounted. Cost: a few system calls, only when a
//! socket opens.
#![allow(unsafe_code, reason = "leaf: rustix has no call for the ioctl SIOCGIFMTU")]

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// How many RX queues an interface has.
///
/// # Errors
/// `NotFound` if there is no interface of this name, `InvalidInput` if it cannot be one's name.
pub fn rx_queues(name: &str) -> io::Result<u32> {
    let is_name = !name.is_empty() && name.len() < libc::IFNAMSIZ && !name.contains('/') && !name.starts_with('.');
    if !is_name {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("no interface can have the name {name:?}")));
    }
    let mut queues = 0;
    for entry in std::fs::read_dir(Path::new("/sys/class/net").join(name).join("queues"))? {
        queues += u32::from(entry?.file_name().as_encoded_bytes().starts_with(b"rx-"));
    }
    Ok(queues)
}

/// The MTU of an interface: most bytes of a frame after its Ethernet header.
pub(crate) fn mtu(interface: u32) -> io::Result<usize> {
    // AF_XDP sockets know no ioctl; Unix sockets pass those about interfaces on.
    let socket = UnixDatagram::unbound()?;
    let name = rustix::net::netdevice::index_to_name(&socket, interface)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_the_folder_are_refused() {
        for name in ["", ".", "..", "../block", "a/b", "a-name-of-16-byte"] {
            assert_eq!(rx_queues(name).expect_err(name).kind(), io::ErrorKind::InvalidInput, "{name}");
        }
    }

    #[test]
    fn the_loopback_interface_has_one_queue() {
        match rx_queues("lo") {
            Ok(queues) => assert_eq!(queues, 1),
            Err(why) => println!("skipped, because /sys does not show the loopback interface: {why}"),
        }
    }

    #[test]
    fn an_interface_that_does_not_exist_is_not_found() {
        assert_eq!(rx_queues("nw-absent").expect_err("absent").kind(), io::ErrorKind::NotFound);
    }
}
