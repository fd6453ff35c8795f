//! Accepting connections: one task per listener on the control thread.

use crate::messages::ToControl;
use namewire_faces::{FaceInfo, Persistency, StreamSocket, tcp, unix};
use std::{io, path::PathBuf, time::Duration};
use tokio::{
    net::{TcpListener, UnixListener},
    sync::mpsc::UnboundedSender,
    task::spawn_local,
    time::sleep,
};

/// Pause after a failed accept: it fails when descriptors run out, and trying at
/// once would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Connections accepted but not yet given to a worker are bounded by the worker's
/// queue; a listener that gets ahead of it waits there.
async fn accepted(result: io::Result<(StreamSocket, FaceInfo)>, events: &UnboundedSender<ToControl>) {
    match result {
        Ok((socket, info)) => {
            // Control is gone only when the router stops.
            let _ = events.send(ToControl::Accepted { socket, info });
        }
        Err(_) => sleep(ACCEPT_PAUSE).await,
    }
}

/// Serves a Unix listener until the runtime ends.
pub(crate) fn serve_unix(
    listener: std::os::unix::net::UnixListener,
    path: PathBuf,
    events: UnboundedSender<ToControl>,
) -> io::Result<()> {
    let listener = UnixListener::from_std(listener)?;
    spawn_local(async move {
        loop {
            let result = listener.accept().await.and_then(|(socket, _)| {
                let socket = socket.into_std()?;
                let info = unix::face_info(&socket, &path);
                Ok((StreamSocket::Unix(socket), info))
            });
            accepted(result, &events).await;
        }
    });
    Ok(())
}

/// Serves a TCP listener until the runtime ends.
pub(crate) fn serve_tcp(listener: std::net::TcpListener, events: UnboundedSender<ToControl>) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    spawn_local(async move {
        loop {
            let result = listener.accept().await.and_then(|(socket, _)| {
                let socket = socket.into_std()?;
                let info = tcp::face_info(&socket, Persistency::OnDemand)?;
                Ok((StreamSocket::Tcp(socket), info))
            });
            accepted(result, &events).await;
        }
    });
    Ok(())
}
