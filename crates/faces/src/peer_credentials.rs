//! The process at the other end of a Unix socket: user, groups and process number at the time when it connected
//! (`SO_PEERCRED`, and `SO_PEERGROUPS` of Linux 4.13). `/proc` would give the groups of the process that has this
//! number now, which may be another process.
//!
//! N.B. rustix offers the first option, but has no value for process number 0. The kernel reports 0 for a peer in
//! another process namespace, such as an application in a container that mounts the socket.
//!
//! Limit: [`MAX_GROUPS`], the kernel's own.
#![allow(unsafe_code, reason = "leaf: no crate in use offers these socket options in full")]

use crate::PeerCredentials;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Most groups of a process (the kernel's `NGROUPS_MAX`).
const MAX_GROUPS: usize = 65_536;

/// Groups asked for at first; few processes have more.
const USUAL_GROUPS: usize = 64;

/// What the kernel knows of the peer.
///
/// # Errors
/// If the kernel knows nothing: not a Unix socket, or not connected.
pub(crate) fn peer_credentials(socket: BorrowedFd<'_>) -> io::Result<PeerCredentials> {
    let mut peer = [libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX }];
    if read(socket, libc::SO_PEERCRED, &mut peer)? != 1 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let [peer] = peer;
    let groups = peer_groups(socket).unwrap_or_default();
    Ok(PeerCredentials { uid: peer.uid, gid: peer.gid, groups, pid: peer.pid })
}

fn peer_groups(socket: BorrowedFd<'_>) -> io::Result<Vec<u32>> {
    let mut groups: Vec<libc::gid_t> = vec![0; USUAL_GROUPS];
    let mut result = read(socket, libc::SO_PEERGROUPS, &mut groups);
    if result.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::ERANGE)) {
        groups.resize(MAX_GROUPS, 0);
        result = read(socket, libc::SO_PEERGROUPS, &mut groups);
    }
    groups.truncate(result?);
    Ok(groups)
}

/// Values that the kernel writes. Any bytes are a valid value.
trait Plain: Copy {}
impl Plain for libc::ucred {}
impl Plain for libc::gid_t {}

/// Reads a socket option into `values`; returns how many values the kernel wrote.
fn read<T: Plain>(socket: BorrowedFd<'_>, option: libc::c_int, values: &mut [T]) -> io::Result<usize> {
    let mut bytes = size_of_val(values) as libc::socklen_t;
    // SAFETY: `values` has `bytes` bytes that the kernel may write, and any bytes make
    // a `Plain` value; the descriptor is borrowed and open; the kernel keeps neither pointer.
    let result = unsafe {
        let values = values.as_mut_ptr().cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, values, &raw mut bytes)
    };
    if result == 0 { Ok(bytes as usize / size_of::<T>()) } else { Err(io::Error::last_os_error()) }
}
