//! From settings to a running router: which sockets it gets.

use super::Args;
use crate::{ExitCode, Failure};
use namewire_client::discovery::{Environment, make_temporary_directory, temporary_socket_path};
use namewire_packet::nfd::FaceUri;
use namewire_router::{Router, RouterHandle, StartError, configuration::Loaded};
use std::{
    io,
    net::{Ipv6Addr, SocketAddr},
};

/// NFD's exit code when the system does not allow what it needs.
const NFD_PERMISSION: ExitCode = ExitCode::NoForwarder;

/// Starts on the first socket that can be made. A default listener whose address is
/// taken (another forwarder, no IPv6) is left out with a warning; one that was asked
/// for is an error. A live forwarder on a socket is always an error.
pub(super) fn start(loaded: &Loaded, args: &Args) -> Result<RouterHandle, Failure> {
    let settings = &loaded.settings;
    let (udp, tcp) = (settings.udp_listeners(), settings.tcp_listeners());
    let mut config = settings.router_config();
    config.trust = loaded.trust.clone();
    let unix = &settings.faces.unix;
    let mut sockets = match &unix.path {
        _ if !unix.enabled => Vec::new(),
        // Applications take absolute paths only, and this one will be shown to people.
        Some(path) => vec![std::path::absolute(path).unwrap_or_else(|_| path.clone())],
        None => Environment::of_process().sockets_to_make(),
    }
    .into_iter();
    config.socket = sockets.next();
    let mut tried = Vec::new();
    loop {
        if unix.path.is_none() && config.socket == Some(temporary_socket_path()) {
            let cannot =
                |error| Failure::new(ExitCode::Failed, format!("no place for a socket: {}; {error}", tried.join("; ")));
            make_temporary_directory().map_err(cannot)?;
        }
        let error = match Router::start(config.clone()) {
            Ok(router) => return Ok(router),
            Err(error) => error,
        };
        let StartError::Listen { what, source } = &error else {
            return Err(Failure::new(ExitCode::Failed, error.to_string()));
        };
        let may_be_left_out = |listeners: &[SocketAddr], uri: fn(SocketAddr) -> FaceUri, is_explicit: bool| {
            let position = listeners.iter().position(|address| uri(*address).to_string() == *what)?;
            let is_ipv6 = listeners[position].ip() == Ipv6Addr::UNSPECIFIED;
            // An nfd.conf names both families whether or not the host has them.
            let is_missing_family = args.nfd_conf.is_some() && is_ipv6 && source.kind() != io::ErrorKind::AddrInUse;
            (!is_explicit || is_missing_family).then_some(position)
        };
        if let Some(position) = may_be_left_out(&config.udp, FaceUri::udp, udp.is_explicit) {
            config.udp.remove(position);
        } else if let Some(position) = may_be_left_out(&config.tcp, FaceUri::tcp, tcp.is_explicit) {
            config.tcp.remove(position);
        } else if source.kind() == io::ErrorKind::AddrInUse {
            let hint = "another forwarder is running there; stop it, or choose other addresses and --socket PATH";
            return Err(Failure::new(ExitCode::Failed, format!("{error}: {hint}")));
        } else if let Some(next) = sockets.next().filter(|_| what.starts_with("unix:")) {
            config.socket = Some(next);
            tried.push(error.to_string());
            continue; // a place that may not be written to, which is usual without root
        } else {
            let is_permission = args.nfd_exit_codes && source.kind() == io::ErrorKind::PermissionDenied;
            let code = if is_permission { NFD_PERMISSION } else { ExitCode::Failed };
            return Err(Failure::new(code, error.to_string()));
        }
        eprintln!("namewire: not listening on {what}: {source}");
    }
}
