//! Starts a router from its settings, and chooses the sockets that it gets.
//!
//! If systemd passes a listening Unix socket (`LISTEN_FDS`), applications connect there, whatever path the
//! configuration has. With `faces.unix.enabled = false` the router ignores the socket.

use super::Args;
use listenfd::ListenFd;
use namewire_client::discovery::{Environment, make_temporary_directory, temporary_socket_path};
use namewire_configuration::Configuration;
use namewire_packet::nfd::FaceUri;
use namewire_router::{Router, RouterHandle, StartError, TakeOver};
use namewire_tools::{ExitCode, Failure};
use std::{
    io,
    net::{Ipv6Addr, SocketAddr},
    os::unix::net::UnixListener,
    path::{Path, PathBuf},
};

/// NFD's exit code when the system does not allow what it needs.
const NFD_PERMISSION: ExitCode = ExitCode::NoForwarder;

/// Starts on the first socket that can be made. A default listener whose address is
/// taken (another forwarder, no IPv6) is left out with a warning; one that was asked
/// for is an error. A live forwarder on a socket is always an error.
///
/// Returns, in words, the default listeners whose addresses other programs have as well.
pub(super) fn start(configuration: &Configuration, args: &Args) -> Result<(RouterHandle, Vec<String>), Failure> {
    let mut configuration = configuration.clone();
    let inherited = inherited_socket().map_err(cannot_take)?;
    if let Some((path, _)) = &inherited {
        tracing::info!(target: "faces", "systemd passed the socket {}", path.display());
        configuration.settings.faces.unix.path = Some(path.clone());
    }
    let unix = configuration.settings.faces.unix.clone();
    let [has_udp_addresses, has_tcp_addresses] =
        [&configuration.settings.faces.udp.listen, &configuration.settings.faces.tcp.listen].map(Option::is_some);
    let mut sockets = match &unix.path {
        _ if !unix.enabled => Vec::new(),
        Some(path) => vec![shown(path)],
        None => Environment::of_process().sockets_to_make(),
    }
    .into_iter();
    configuration.settings.faces.unix.path = sockets.next();
    let (mut tried, mut taken) = (Vec::new(), Vec::new());
    loop {
        let faces = &configuration.settings.faces;
        if unix.path.is_none() && faces.unix.path == Some(temporary_socket_path()) {
            let cannot =
                |error| Failure::new(ExitCode::Failed, format!("no place for a socket: {}; {error}", tried.join("; ")));
            make_temporary_directory().map_err(cannot)?;
        }
        let listener = inherited.as_ref().map(|(_, listener)| listener.try_clone()).transpose().map_err(cannot_take)?;
        let error = match Router::start_with(&configuration, listener) {
            Ok(router) => return Ok((router, taken)),
            Err(error) => error,
        };
        let StartError::Listen { what, source } = &error else {
            return Err(Failure::new(ExitCode::Failed, error.to_string()));
        };
        let may_be_left_out = |listeners: &[SocketAddr], uri: fn(SocketAddr) -> FaceUri, is_explicit: bool| {
            let position = listeners.iter().position(|address| uri(*address) == *what)?;
            let is_ipv6 = listeners[position].ip() == Ipv6Addr::UNSPECIFIED;
            // An nfd.conf names both families whether or not the host has them.
            let is_missing_family = args.nfd_conf.is_some() && is_ipv6 && source.kind() != io::ErrorKind::AddrInUse;
            (!is_explicit || is_missing_family).then_some(position)
        };
        let faces = &mut configuration.settings.faces;
        let (mut udp, mut tcp) = (faces.udp.addresses(), faces.tcp.addresses());
        if let Some(position) = may_be_left_out(&udp, FaceUri::udp, has_udp_addresses) {
            udp.remove(position);
            faces.udp.listen = Some(udp);
        } else if let Some(position) = may_be_left_out(&tcp, FaceUri::tcp, has_tcp_addresses) {
            tcp.remove(position);
            faces.tcp.listen = Some(tcp);
        } else if source.kind() == io::ErrorKind::AddrInUse {
            let hint = "another forwarder is running there; stop it, or choose other addresses and --socket PATH";
            return Err(Failure::new(ExitCode::Failed, format!("{error}: {hint}")));
        } else if let Some(next) = sockets.next().filter(|_| matches!(what, FaceUri::Unix(_))) {
            faces.unix.path = Some(next);
            tried.push(error.to_string());
            continue; // a place that may not be written to, which is usual without root
        } else {
            return Err(cannot_start(&error, source, args));
        }
        tracing::warn!(target: "faces", "not listening on {what}: {source}");
        taken.extend(of_another(what, source));
    }
}

/// Goes on where the old program stops. Listeners are the same, unless the configuration has changed.
pub(super) fn take_over(configuration: &Configuration, take_over: TakeOver) -> Result<RouterHandle, Failure> {
    let mut configuration = configuration.clone();
    let unix = &mut configuration.settings.faces.unix;
    unix.path = unix.path.as_deref().map(shown);
    Router::take_over(&configuration, take_over).map_err(|error| Failure::new(ExitCode::Failed, error.to_string()))
}

/// The line about a default listener whose address another program has.
fn of_another(what: &FaceUri, source: &io::Error) -> Option<String> {
    let is_taken = source.kind() == io::ErrorKind::AddrInUse;
    is_taken.then(|| format!("not listening on {what}: another program, perhaps a forwarder, does"))
}

fn cannot_start(error: &StartError, source: &io::Error, args: &Args) -> Failure {
    let is_permission = args.nfd_exit_codes && source.kind() == io::ErrorKind::PermissionDenied;
    Failure::new(if is_permission { NFD_PERMISSION } else { ExitCode::Failed }, error.to_string())
}

/// Applications take absolute paths only, and this one will be shown to people.
fn shown(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn cannot_take(error: io::Error) -> Failure {
    Failure::new(ExitCode::Failed, format!("cannot take the socket that systemd passed: {error}"))
}

/// The listening Unix socket that systemd passed, and its path.
fn inherited_socket() -> io::Result<Option<(PathBuf, UnixListener)>> {
    let Some(listener) = ListenFd::from_env().take_unix_listener(0)? else { return Ok(None) };
    let address = listener.local_addr()?;
    let path = address.as_pathname().ok_or_else(|| io::Error::other("it has no path"))?;
    Ok(Some((path.to_owned(), listener)))
}
