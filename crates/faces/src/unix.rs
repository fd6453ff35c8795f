//! Unix stream sockets: how applications on this machine connect (drop-in §1).
//!
//! The face is local, on-demand and unfragmented. As in NFD, the parent directory is created, the socket is open to
//! every user, and a stale socket file is replaced. The file is never replaced if a process still listens on the
//! socket, or if the file is not a socket.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use namewire_packet::{
    MAX_PACKET_BYTES,
    nfd::{FacePersistency, FaceScope, FaceUri, LinkType},
};

use crate::{FaceInfo, peer_credentials::peer_credentials};

/// Permissions of the socket: every user may connect.
const SOCKET_MODE: u32 = 0o666;

/// Listens on `path`, non-blocking. Creates missing directories and replaces a stale socket.
///
/// # Errors
/// `AddrInUse` if another process listens there; `AlreadyExists` if a file other than a socket is there; otherwise if
/// directory or socket cannot be created.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    remove_stale_socket(path)?;
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(SOCKET_MODE))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Facts about the face of an accepted connection.
pub fn face_info(socket: &UnixStream, listener_path: &Path) -> FaceInfo {
    FaceInfo {
        remote: FaceUri::Fd(socket.as_raw_fd().cast_unsigned()),
        local: FaceUri::unix(listener_path),
        scope: FaceScope::Local,
        persistency: FacePersistency::OnDemand,
        link_type: LinkType::PointToPoint,
        mtu: MAX_PACKET_BYTES,
        credentials: peer_credentials(socket.as_fd()).ok(),
    }
}

fn remove_stale_socket(path: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !metadata.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!("{} exists and is not a socket", path.display()),
        ));
    }
    match is_answered(path) {
        Ok(true) => {
            Err(io::Error::new(io::ErrorKind::AddrInUse, format!("another process listens on {}", path.display())))
        }
        Ok(false) => fs::remove_file(path),
        Err(error) => Err(error),
    }
}

/// Whether a process listens on the socket. Does not block: a listener with a full backlog answers "would block", and
/// is alive.
fn is_answered(path: &Path) -> io::Result<bool> {
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    match socket.connect(&socket2::SockAddr::unix(path)?) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PeerCredentials;

    #[test]
    fn creates_directories_and_opens_the_socket_to_everyone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b/nfd.sock");
        let _listener = listen(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o666);
        UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn refuses_a_live_socket_and_replaces_a_stale_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("nfd.sock");
        let live = listen(&path).unwrap();
        assert_eq!(listen(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(live);
        assert!(path.exists(), "the file outlives its listener");
        let _replacement = listen(&path).unwrap();
        UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn a_listener_with_a_full_backlog_is_alive() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("nfd.sock");
        let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
        socket.bind(&socket2::SockAddr::unix(&path).unwrap()).unwrap();
        socket.listen(0).unwrap();
        let _fills_backlog = UnixStream::connect(&path).unwrap();
        assert_eq!(listen(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn the_kernel_says_who_connected() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("nfd.sock");
        let listener = listen(&path).unwrap();
        let _peer = UnixStream::connect(&path).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let info = face_info(&accepted, &path);
        let own = rustix::process::getgroups().unwrap();
        let expected = PeerCredentials {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            groups: own.iter().map(|group| group.as_raw()).collect(),
            pid: std::process::id() as i32,
        };
        assert_eq!(info.credentials, Some(expected));
    }

    #[test]
    fn refuses_what_is_not_a_socket() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("nfd.sock");
        fs::write(&path, "precious").unwrap();
        assert_eq!(listen(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"precious");
    }
}
