//! Doorbells: eventfds by which one side wakes the other.
//!
//! The client makes both, and passes them to the server by the control socket. Both sides then share the open file,
//! with its flags. So a peer can clear `O_NONBLOCK` at any time. Therefore:
//!
//! - [`adopt`] takes only an eventfd: a write to any other file could block, stop the process or change a disk;
//! - [`clear`] reads with `RWF_NOWAIT`, which never blocks, whatever the flags are (Linux 5.8);
//! - [`ring`] asks `poll` before it writes. An eventfd accepts 1 until it holds 2⁶⁴ − 2.
//!
//! Limit: a hostile peer that clears the flag *and* fills the counter between these two calls makes [`ring`] block. No
//! call writes an eventfd without this race. Give the socket a mode that keeps such processes away.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, ReadWriteFlags, ioctl_fionbio, preadv2, write};

use crate::Broken;

const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Makes a doorbell, which has not rung.
///
/// # Errors
/// Those of the kernel, for example too many open files.
pub(crate) fn create() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// Takes what a peer sent as a doorbell.
///
/// # Errors
/// The rule that it breaks.
pub(crate) fn adopt(file: OwnedFd) -> Result<OwnedFd, Broken> {
    use std::os::fd::AsRawFd;
    // The kernel names the kind of a file without a path only here.
    let link = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    match link.as_deref() {
        Ok(link) if link == Path::new("anon_inode:[eventfd]") => {}
        Ok(_) => return Err(Broken("ring's interrupt is no eventfd")),
        Err(_) => return Err(Broken("cannot tell whether ring's interrupt is an eventfd")),
    }
    ioctl_fionbio(&file, true).map_err(|_| Broken("ring's interrupt is no eventfd"))?;
    refuse_semaphore(&file)?;
    Ok(file)
}

/// A semaphore gives its counter one by one, so it could stay readable for ever. Only a read shows that it is one.
fn refuse_semaphore(file: &OwnedFd) -> Result<(), Broken> {
    let mut counter = [0; 8];
    // A full counter is no fault, and neither is a peer that reads first.
    let _ = write(file, &2u64.to_ne_bytes());
    let read = preadv2(file, &mut [IoSliceMut::new(&mut counter)], u64::MAX, ReadWriteFlags::NOWAIT);
    match (read, u64::from_ne_bytes(counter)) {
        (Ok(_), 1) => Err(Broken("ring's interrupt is a semaphore")),
        // It had rung before.
        (Ok(_), 3..) => ring(file.as_fd()).map_err(|_| Broken("ring's interrupt cannot be rung")),
        _ => Ok(()),
    }
}

/// Wakes the peer. Two system calls.
///
/// # Errors
/// Those of the kernel; none is expected.
pub(crate) fn ring(doorbell: BorrowedFd<'_>) -> io::Result<()> {
    let mut wanted = [PollFd::from_borrowed_fd(doorbell.as_fd(), PollFlags::OUT)];
    match poll(&mut wanted, Some(&NOW)) {
        // The counter is full, so the doorbell has rung.
        Ok(0) | Err(Errno::INTR) => return Ok(()),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    match write(doorbell, &1u64.to_ne_bytes()) {
        Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Makes a doorbell that has rung unreadable. One system call, which does not block.
pub(crate) fn clear(doorbell: BorrowedFd<'_>) {
    let mut counter = [0; 8];
    // An error means that it had not rung. The offset u64::MAX means "no offset".
    let _ = preadv2(doorbell, &mut [IoSliceMut::new(&mut counter)], u64::MAX, ReadWriteFlags::NOWAIT);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_rung(doorbell: &OwnedFd) -> bool {
        poll(&mut [PollFd::new(doorbell, PollFlags::IN)], Some(&NOW)).expect("poll") == 1
    }

    #[test]
    fn a_doorbell_rings_until_it_is_cleared() {
        let doorbell = adopt(create().expect("a doorbell")).expect("it is one");
        assert!(!has_rung(&doorbell));
        ring(doorbell.as_fd()).expect("rings");
        ring(doorbell.as_fd()).expect("rings");
        assert!(has_rung(&doorbell));
        clear(doorbell.as_fd());
        assert!(!has_rung(&doorbell));
    }

    #[test]
    fn no_call_blocks_when_the_peer_made_the_file_blocking() {
        let doorbell = adopt(create().expect("a doorbell")).expect("it is one");
        ioctl_fionbio(&doorbell, false).expect("blocking");
        clear(doorbell.as_fd());
        write(&doorbell, &(u64::MAX - 1).to_ne_bytes()).expect("fills the counter");
        ring(doorbell.as_fd()).expect("has rung");
        clear(doorbell.as_fd());
        assert!(!has_rung(&doorbell));
    }

    #[test]
    fn a_semaphore_is_no_doorbell_and_one_that_has_rung_stays_so() {
        let semaphore = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE).expect("an eventfd");
        assert!(adopt(semaphore).is_err());
        let rung = create().expect("a doorbell");
        ring(rung.as_fd()).expect("rings");
        assert!(has_rung(&adopt(rung).expect("it is one")));
    }

    #[test]
    fn other_files_are_no_doorbells() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        assert!(adopt(reader.into()).is_err());
        assert!(adopt(writer.into()).is_err());
        assert!(adopt(tempfile::tempfile().expect("a file").into()).is_err());
    }
}
